"""Every example in the guide runs."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = {"generated", "_build"}
"""Folders of the guide that are made when it is built."""
PAGES = sorted(
    [
        *(page for page in ROOT.glob("docs/**/*.md") if not MADE & set(page.parts)),
        ROOT / "README.md",
    ]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    import re

    written = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", written):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
