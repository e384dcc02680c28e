"""How the guide is built: ``make docs``. Everything it needs is on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "tulle"
author = "the tulle developers"
copyright = "the tulle developers, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "Thumbs.db"]
html_theme = "furo"
html_title = "tulle"
html_static_path = ["_static"]
html_css_files = ["guide.css"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# Pages link to files of the repository that are not pages of the guide.
suppress_warnings = ["myst.xref_missing"]


def setup(app: object) -> None:
    """Write the generated pages and pictures before anything is read."""
    from generate import generate

    generate(HERE)
