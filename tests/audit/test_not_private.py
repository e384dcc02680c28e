"""The page on published mistakes names all of them, and broken versions that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tulle.audit.surveys.kind import broken

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "not-private.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| [0B]\d*\.", line)]
KNOWN = {
    line.split(" | ")[1]
    for line in (ROOT / "tests" / "audit" / "faults.txt").read_text(encoding="utf-8").splitlines()
    if " | " in line
} | {f"{design}: {fault}" for design, fault, _ in broken()}
BASELINES = (ROOT / "tests" / "baselines" / "test_xor_columns.py").read_text(encoding="utf-8")
KNOWN |= {
    f"paper_xor, {n.replace('_', ' ')}" for n in re.findall(r"def test_twin_(\w+)", BASELINES)
}


def test_every_line_has_its_row():
    listed = [row[0].removeprefix("| ") for row in ROWS]
    counts = {"000": 8, "001": 5, "003": 7, "004": 18, "B": 4}
    assert listed == [f"{paper}.{n + 1}" for paper, count in counts.items() for n in range(count)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].removeprefix("| "))
def test_the_broken_versions_that_a_row_names_exist(row):
    cell = row[-1].removesuffix(" |").strip()
    assert len(row) == 4
    named = re.findall(r"`([^`]+)`", cell) or [cell] * bool(cell.strip("| "))
    assert set(named) <= KNOWN
