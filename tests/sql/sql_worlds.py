"""Tiny random databases whose owners are worked out by hand, apart from the library."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import duckdb

from tulle.relations.data import Relation
from tulle.sql.compile.gather import Gathered
from tulle.sql.data import Database

Who = tuple[str, int]
Rows = dict[str, list[tuple[Any, ...]]]

COLUMNS = {
    "person": "id INTEGER, city VARCHAR, age INTEGER",
    "edge": "a INTEGER, b INTEGER, w INTEGER",
    "orders": "okey INTEGER, cust BIGINT, price DECIMAL(10, 2), note VARCHAR",
    "item": "okey INTEGER, sku INTEGER, qty INTEGER",
    "visit": "pid INTEGER, sid INTEGER, minutes INTEGER",
    "city": "name VARCHAR, region VARCHAR",
    "secret": "x INTEGER",
}

OWNERS = {
    "person": "person: id",
    "edge": ["person: a", "person: b"],
    "orders": "person: cust",
    "item": "okey -> orders[okey]",
    "visit": ["person: pid", "shop: sid"],
}

PUBLIC = ["city"]


def random_world(seed: int, people: int = 4) -> Rows:
    """Return made-up rows, with NULLs, repetitions, loops, dangling keys and doubled keys."""
    draw = random.Random(seed)

    def maybe(value: Any, chance: float = 0.15) -> Any:
        return None if draw.random() < chance else value

    def person() -> int:
        return draw.randint(1, people)

    cities = ["ams", "ber", "cph"]
    return {
        "person": [
            (maybe(p, 0.1), maybe(draw.choice(cities)), maybe(draw.randint(20, 23)))
            for p in range(1, people + 1)
        ],
        "edge": [
            (person(), maybe(person(), 0.1), draw.randint(-2, 2)) for _ in range(draw.randint(4, 8))
        ],
        "orders": [
            (
                draw.randint(1, 6),
                maybe(person(), 0.1),
                draw.choice([-1.5, 0, 2.25, 3, 10]),
                maybe(draw.choice(["x", "y"]), 0.3),
            )
            for _ in range(draw.randint(3, 6))
        ],
        "item": [
            (draw.randint(1, 7), draw.randint(1, 3), maybe(draw.randint(0, 3)))
            for _ in range(draw.randint(4, 8))
        ],
        "visit": [
            (person(), draw.randint(1, 3), draw.randint(1, 3)) for _ in range(draw.randint(3, 6))
        ],
        "city": [("ams", "n"), ("ber", "e"), ("cph", "n"), ("cph", "n")],
        "secret": [(1,)],
    }


def everyone(rows: Rows) -> set[Who]:
    """Return all participants, by hand."""
    found = {("person", r[0]) for r in rows["person"]}
    found |= {("person", p) for r in rows["edge"] for p in r[:2]}
    found |= {("person", r[1]) for r in rows["orders"]}
    found |= {("person", r[0]) for r in rows["visit"]} | {("shop", r[1]) for r in rows["visit"]}
    return {who for who in found if who[1] is not None}


def take_away(rows: Rows, gone: Who) -> Rows:
    """Return the rows that are left when one participant goes with everything of theirs."""
    kind, number = gone
    left = {table: list(kept) for table, kept in rows.items()}
    if kind == "shop":
        left["visit"] = [r for r in rows["visit"] if r[1] != number]
        return left
    left["person"] = [r for r in rows["person"] if r[0] != number]
    left["edge"] = [r for r in rows["edge"] if number not in r[:2]]
    left["orders"] = [r for r in rows["orders"] if r[1] != number]
    left["visit"] = [r for r in rows["visit"] if r[0] != number]
    buyers = defaultdict(set)
    for key, cust, *_ in rows["orders"]:
        buyers[key].add(cust)
    left["item"] = [r for r in rows["item"] if buyers[r[0]] != {number}]
    return left


def taking_part(rows: Rows) -> Rows:
    """Return the rows that answers are about: none without an owner, one per way to its owner."""
    kept = {table: list(found) for table, found in rows.items()}
    kept["person"] = [r for r in rows["person"] if r[0] is not None]
    kept["edge"] = [r for r in rows["edge"] if None not in r[:2]]
    kept["orders"] = [r for r in rows["orders"] if r[1] is not None]
    kept["visit"] = [r for r in rows["visit"] if None not in r[:2]]
    kept["item"] = [r for r in rows["item"] for o in kept["orders"] if o[0] == r[0]]
    return kept


def load(connection: Any, rows: Rows) -> Any:
    """Put rows into a DuckDB connection, replacing what was there; return the connection."""
    for table, columns in COLUMNS.items():
        connection.execute(f"CREATE OR REPLACE TABLE {table} ({columns})")
        if rows[table]:
            marks = ", ".join("?" * len(rows[table][0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
    return connection


def connect(rows: Rows, ranges: Any = None) -> Database:
    connection = load(duckdb.connect(), rows)
    return Database.connect(connection, owners=OWNERS, public=PUBLIC, ranges=ranges)


Summary = dict[tuple[frozenset[frozenset[Any]], bool], float]


def summary(relation: Relation, names: tuple[tuple[str, Any], ...]) -> Summary:
    """Return the total weight, above and below zero, of every annotation in normal form."""
    totals: Summary = {}
    for note, weight in relation.annotations():
        ways = frozenset(
            frozenset(names[p] for p in clause) for clause in note.normal_form().clauses()
        )
        totals[ways, weight > 0] = totals.get((ways, weight > 0), 0.0) + weight
    return {key: round(total, 6) for key, total in totals.items() if total}


def without(gathered: Gathered, gone: Who) -> list[Summary]:
    """Return what the relations say after a participant has been struck out of them."""
    if gone not in gathered.names:
        return [summary(r, gathered.names) for r in gathered.relations]
    number = gathered.names.index(gone)
    return [summary(r.without(number), gathered.names) for r in gathered.relations]
