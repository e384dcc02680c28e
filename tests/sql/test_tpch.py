"""TPC-H with customers and suppliers as participants: relations add up to the true answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

tpch: Any = pytest.importorskip("benchmarks.tpch", reason="TPC-H: the benchmarks are not here")


def check(folder: Path, scale: float) -> None:
    try:
        paths = tpch.generate(folder, scale)
    except FileNotFoundError as error:
        pytest.skip(f"TPC-H: {error}")
    database = tpch.connect(paths)
    rows = {name: tpch.measure(database, name) for name in tpch.QUESTIONS}
    assert all(row["agrees"] for row in rows.values()), rows
    assert {name for name, row in rows.items() if row["of them in several ways"] != "0"} == {
        "Q10",
        "Q21",
    }
    database.close()


def test_the_questions_at_a_hundredth(tmp_path: Path) -> None:
    check(tmp_path, 0.01)


@pytest.mark.slow
def test_the_questions_at_a_tenth(tmp_path: Path) -> None:
    check(tmp_path, 0.1)
