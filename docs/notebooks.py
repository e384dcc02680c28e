"""Tutorials as notebooks: what a page shows, run when the guide is built, with what came out.

A page of ``tutorials/`` is text with examples in ``>>>`` form, which the tests run as well. Its
notebook has a cell of text for each stretch of text and a cell of code for each block, all run in
one namespace; numbers, errors and drawings stand below their cell. An example that raises what the
page does not announce stops the build.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def write_notebooks(docs: Path, folder: Path) -> list[Path]:
    """Run every tutorial and write it as a notebook into the folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in sorted((docs / "tutorials").glob("*.md")):
        file = folder / f"{page.stem}.ipynb"
        notebook = run(page.read_text(encoding="utf-8"))
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(file)
        for place, drawing in enumerate(drawings(notebook), 1):
            (folder / f"{page.stem}-{place}.svg").write_text(drawing, encoding="utf-8")
    return written


def drawings(notebook: dict[str, Any]) -> Iterator[str]:
    """Yield the drawings of a notebook that was run."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if drawn := output.get("data", {}).get("image/svg+xml"):
                yield "".join(drawn)


def run(page: str) -> dict[str, Any]:
    """Return a page as a notebook whose cells have been run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    for is_code, text in split(page):
        cell: dict[str, Any] = {"id": f"cell-{len(cells)}", "metadata": {}}
        if is_code:
            examples = doctest.DocTestParser().get_examples(text)
            source = "".join(example.source for example in examples).rstrip("\n")
            count = sum("execution_count" in other for other in cells) + 1
            outputs = [out for example in examples for out in outputs_of(example, names, count)]
            cell |= {"cell_type": "code", "execution_count": count, "outputs": joined(outputs)}
        else:
            source = text.strip("\n")
            cell |= {"cell_type": "markdown"}
        cells.append({**cell, "source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def split(page: str) -> Iterator[tuple[bool, str]]:
    """Yield the stretches of a page in order: whether each is code, and its text."""
    end = 0
    for block in _BLOCK.finditer(page):
        if (text := page[end : block.start()]).strip():
            yield False, text
        yield True, block[1]
        end = block.end()
    if page[end:].strip():
        yield False, page[end:]


def outputs_of(
    example: doctest.Example, names: dict[str, Any], count: int
) -> Iterator[dict[str, Any]]:
    """Run one example and yield what came out: text, a value, a drawing, or an announced error."""
    printed = io.StringIO()
    shown: list[Any] = []
    with contextlib.redirect_stdout(printed):
        try:
            code = compile(example.source, "<tutorial>", "single")
            with _displaying(shown):
                exec(code, names)
        except Exception as error:
            if example.exc_msg is None:
                raise
            lines = traceback.format_exception_only(error)
            yield {
                "output_type": "error",
                "ename": type(error).__name__,
                "evalue": str(error),
                "traceback": [line.rstrip("\n") for line in lines],
            }
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        yield {"output_type": "stream", "name": "stdout", "text": lines}
    for value in shown:
        data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_svg_"):
            data = {
                "image/svg+xml": value._repr_svg_().splitlines(keepends=True),
                "text/plain": [repr(value)],
            }
        yield {
            "output_type": "execute_result",
            "execution_count": count,
            "metadata": {},
            "data": data,
        }


@contextlib.contextmanager
def _displaying(shown: list[Any]) -> Iterator[None]:
    """Collect the values of expressions, as an interpreter would show them."""
    import sys

    before = sys.displayhook
    sys.displayhook = lambda value: shown.append(value) if value is not None else None
    try:
        yield
    finally:
        sys.displayhook = before


def joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the outputs of a cell: a notebook shows the last value, and prints the others."""
    kept: list[dict[str, Any]] = []
    for place, output in enumerate(outputs):
        last = place == len(outputs) - 1
        if output["output_type"] == "execute_result" and not last:
            plain = "image/svg+xml" not in output["data"]
            output = (
                {"output_type": "stream", "name": "stdout", "text": output["data"]["text/plain"]}
                if plain
                else {k: v for k, v in output.items() if k != "execution_count"}
                | {"output_type": "display_data"}
            )
        if kept and output["output_type"] == kept[-1]["output_type"] == "stream":
            before = kept[-1]["text"]
            if before and not before[-1].endswith("\n"):
                before[-1] += "\n"
            before.extend(output["text"])
            continue
        kept.append(output)
    return kept
