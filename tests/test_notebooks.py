"""Tutorials become notebooks that were run: cells, outputs, drawings, announced errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import notebooks  # noqa: E402 - a module of the guide, not of the package

PAGE = """# A page

Text.

```python
>>> 1 + 1
2
>>> print("said")
said
>>> {"a": 1}["b"]
Traceback (most recent call last):
...
KeyError: 'b'

```

More text.

```python
>>> shown
<a drawing, as SVG>

```
"""


def outputs(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [out for cell in notebook["cells"] for out in cell.get("outputs", [])]


def test_a_page_is_run_cell_by_cell() -> None:
    page = PAGE.replace("1 + 1\n2", "from tulle.core.release import Drawing").replace(
        '>>> print("said")', '>>> shown = Drawing("<svg/>"); print("said")'
    )
    found = notebooks.run(page)
    kinds = [cell["cell_type"] for cell in found["cells"]]
    assert kinds == ["markdown", "code", "markdown", "code"]
    said, raised, drawn = outputs(found)
    assert said["text"] == ["said\n"]
    assert (raised["ename"], drawn["data"]["image/svg+xml"]) == ("KeyError", ["<svg/>"])
    assert not any(">>>" in "".join(cell["source"]) for cell in found["cells"])
    assert list(notebooks.drawings(found)) == ["<svg/>"]


def test_values_before_the_last_are_printed() -> None:
    found = notebooks.run("```python\n>>> 1\n1\n>>> 2\n2\n\n```\n")
    first, last = outputs(found)
    assert first == {"output_type": "stream", "name": "stdout", "text": ["1"]}
    assert last["data"] == {"text/plain": ["2"]}


def test_what_the_page_does_not_announce_stops_the_build() -> None:
    with pytest.raises(ZeroDivisionError):
        notebooks.run("```python\n>>> 1 / 0\n1\n\n```\n")


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda p: p.stem)
def test_tutorials_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = notebooks.run(text)
    assert outputs(found)
    for drawing in notebooks.drawings(found):
        ElementTree.fromstring(drawing)
    # Each drawing that a page shows is one that its notebook makes.
    wanted = text.count(":::{figure} ../generated/notebooks/")
    assert wanted == len(list(notebooks.drawings(found)))
    assert f"notebooks/{page.stem}.ipynb" in text


def test_every_page_starts_with_a_question() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        inside = page.relative_to(DOCS)
        if inside.parts[0] in ("_build", "generated", "gallery", "results") or page.stem == "index":
            continue
        title = page.read_text(encoding="utf-8").split("\n", 1)[0]
        assert "?" in title, f"{inside} starts with {title!r}, not with a question"
