"""TPC-H with customers and suppliers as participants: relations add up to the true answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tulle.sql.queries import gather_tuples, sql

tpch: Any = pytest.importorskip("benchmarks.tpch", reason="TPC-H: the benchmarks are not here")


def check(folder: Path, scale: float) -> None:
    try:
        paths = tpch.generate(folder, scale)
    except FileNotFoundError as error:
        pytest.skip(f"TPC-H: {error}")
    several = set()
    asked = [("filtered", name, tpch.OWNERS, text) for name, text in tpch.QUESTIONS.items()]
    asked += [("published", name, *rest) for name, rest in tpch.PUBLISHED.items()]
    for form, name, owners, text in asked:
        database = tpch.connect(paths, owners)
        question = sql(text)
        (relation,) = gather_tuples(database, question).relations
        assert relation.total == pytest.approx(question.truth(database), rel=1e-9), (form, name)
        assert not question.rewrite(database.schema).signed, name
        if relation.general:
            several.add((form, name))
        database.close()
    assert several == {("filtered", "Q10"), ("filtered", "Q21")}


def test_the_questions_at_a_hundredth(tmp_path: Path) -> None:
    check(tmp_path, 0.01)


@pytest.mark.slow
def test_the_questions_at_a_tenth(tmp_path: Path) -> None:
    check(tmp_path, 0.1)


def test_the_benchmark_measures_at_a_hundredth(tmp_path: Path) -> None:
    try:
        paths = tpch.generate(tmp_path, 0.01)
    except FileNotFoundError as error:
        pytest.skip(f"TPC-H: {error}")
    row = tpch.measure(paths, "Q3", "published", *tpch.PUBLISHED["Q3"])
    assert row["answer"] != "DIFFERS"
    # Sixty thousand rows, at most two hundred of one customer.
    assert row["error, %"] < 2.5
    assert row["R2T, %"] == 0.25
