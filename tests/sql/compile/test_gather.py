from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tulle
from tulle.sql.compile.gather import gather
from tulle.sql.queries import one_aggregate as sql

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

MEETINGS = """
    CREATE TABLE meeting (a INTEGER, b INTEGER, day INTEGER, price DOUBLE);
    INSERT INTO meeting SELECT range % 7, range * 3 % 11, range % 3, (range % 9 - 3) / 7
        FROM range(90);
"""
QUESTIONS = (
    "SELECT day, SUM(price) FROM meeting GROUP BY day",
    "SELECT day, COUNT(DISTINCT price) FROM meeting GROUP BY day",
)


def seen(relation: Any) -> Any:
    """Return all of a relation, by value."""
    listed = [(str(note), weight) for note, weight in relation.annotations()]
    return relation.count, sorted(listed)


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_order_of_rows_changes_nothing(text: str) -> None:
    """Sums of floats are rounded in one order, whatever order the engine returns rows in."""
    connection = duckdb.connect()
    connection.execute(MEETINGS)
    database = tulle.Database.connect(connection, owners={"meeting": ["a", "b"]})
    question: Any = sql(text, groups={"day": [0, 2, 9]}).bind(database)
    rows = database._engine.fetch(question.bound.text)
    generator = np.random.default_rng(1)
    found = []
    for _ in range(5):
        shuffled = rows.take(generator.permutation(rows.num_rows))
        found.append([seen(one) for one in gather(question.bound, shuffled).relations])
    assert all(one == found[0] for one in found)
    assert max(len(listed) for _, listed in found[0]) > 2
