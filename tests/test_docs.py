"""Every example in the guide runs."""

from __future__ import annotations

import doctest
import importlib.util
import re
import shutil
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
    written = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", written):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_included_tables_are_made_from_the_results(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "results")
    (tmp_path / "generated").mkdir()
    tables.write_tables(tmp_path)
    included = {
        name
        for page in PAGES
        for name in re.findall(r"\{include\} (generated/\S+)", page.read_text(encoding="utf-8"))
    }
    assert included == {f"generated/{made.name}" for made in (tmp_path / "generated").iterdir()}
    for name in included:
        rows = [row for row in (tmp_path / name).read_text().splitlines() if row.startswith("|")]
        assert len(rows) > 3
        assert not any("nan" in row for row in rows)
