"""Values with how many rows their owners have: what the engine counts against a plain count."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.sql.tables.quantiles import SqlQuantile

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")


def made() -> tuple[Any, list[Any], list[Any]]:
    """Return a database of orders and lines, some of nobody, and its rows."""
    random = np.random.default_rng(0)
    names = [None, "a", "A", "b", "c"]
    orders = [(i, names[random.integers(5)], int(random.integers(4))) for i in range(40)]
    lines = [(int(random.integers(42)), int(random.integers(3))) for _ in range(80)]
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE o (id INTEGER, cust VARCHAR, x INTEGER);CREATE TABLE l (o INTEGER, y INTEGER)"
    )
    connection.executemany("INSERT INTO o VALUES (?, ?, ?)", orders)
    connection.executemany("INSERT INTO l VALUES (?, ?)", lines)
    database = tulle.Database.connect(
        connection,
        owners={"o": "cust", "l": "o -> o[id].cust"},
        ranges={"o.x": (0, 5), "l.y": (0, 5)},
    )
    return database, orders, lines


def test_equal_values_of_people_with_equally_many_rows_are_one() -> None:
    database, orders, lines = made()
    text = "SELECT SUM(y) FROM o JOIN l ON l.o = o.id"
    found = SqlQuantile(text, "duckdb", (), (), Fraction(1, 2)).bind(database).values(database)
    owner = {order: who for order, who, _ in orders}
    loads = Counter(owner[order] for order, _ in lines if owner.get(order))
    expected = Counter((float(y), loads[owner[o]]) for o, y in lines if owner.get(o))
    listed = zip(found.values.tolist(), found.loads.tolist(), found.copies.tolist(), strict=True)
    assert {(value, load): copies for value, load, copies in listed} == expected
    people = dict(zip(found.sizes.tolist(), found.people.tolist(), strict=True))
    assert people == Counter(loads.values())
    # "Ann" and "ann" are two people, and nobody's rows are left out.
    assert len(loads) == 4
