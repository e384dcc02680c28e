"""Declared ranges: what follows for expressions; wrong declarations neither fail nor show."""

from __future__ import annotations

import math
import random
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.drawn import Drawn
from tests.sql.sql_generator import Generator
from tests.sql.sql_worlds import (
    COLUMNS,
    connect,
    everyone,
    random_world,
    summary,
    take_away,
    without,
)

import tulle
from tulle.core.errors import InputError
from tulle.core.validate import rational
from tulle.ledger.answer import plan_for
from tulle.sql.compile import owned_rows as owned
from tulle.sql.compile.gather import gather
from tulle.sql.data import Database
from tulle.sql.expressions.kinds import DATE, TIMESTAMP
from tulle.sql.queries import relation_of, sql
from tulle.sql.schema.ranges import ANY, POSITIVE, Range, range_of
from tulle.sql.schema.schema import Schema

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")
sqlglot = pytest.importorskip("sqlglot")

RANGES = {"orders.price": (0, math.inf), "edge.w": (0, 1), "item.qty": (None, 2)}
"""The rows of the little worlds break all of these."""

SUMS = {
    "SELECT SUM(price) FROM orders": True,
    "SELECT SUM(w) FROM edge": True,
    "SELECT SUM(price * (1 - w)) FROM orders JOIN edge ON a = cust": True,
    "SELECT SUM(price * (1 - 2 * w)) FROM orders JOIN edge ON a = cust": False,
    "SELECT SUM(-w) FROM edge": False,
    "SELECT SUM(2 - qty) FROM item": True,
    "SELECT SUM(qty) FROM item": False,
    "SELECT SUM(ABS(qty)) FROM item": True,
    "SELECT SUM(price / (w + 1)) FROM orders, edge": True,
    "SELECT SUM(CASE WHEN w > 0 THEN price ELSE 0 END) FROM orders, edge": True,
    "SELECT SUM(CASE WHEN w > 0 THEN price ELSE -1 END) FROM orders, edge": False,
    "SELECT SUM(x) FROM (SELECT price + w AS x FROM orders, edge) u": True,
    "SELECT SUM(x) FROM (SELECT price AS x FROM orders UNION ALL SELECT w FROM edge) u": True,
    "SELECT SUM(x) FROM (SELECT price AS x FROM orders UNION ALL SELECT qty FROM item) u": False,
    "SELECT SUM(DISTINCT price) FROM orders": True,
    "SELECT SUM(price) FROM orders WHERE cust IN (SELECT a FROM edge)": True,
    "WITH dear AS (SELECT DISTINCT cust, price FROM orders) SELECT SUM(price) FROM dear": True,
    "SELECT SUM(COALESCE(price, 0)) FROM orders": True,
    "SELECT SUM(GREATEST(qty, 0)) FROM item": True,
    "SELECT SUM(GREATEST(qty, w)) FROM item, edge": False,
    "SELECT SUM(minutes) FROM visit": False,
}
"""Each with whether it is known not to have a term below zero."""


@pytest.mark.parametrize("text", SUMS)
def test_signs_follow_from_ranges(text: str) -> None:
    database = connect(random_world(1), RANGES)
    assert sql(text).rewrite(database.schema).signed is not SUMS[text]
    if SUMS[text]:
        assert (relation_of(database, sql(text)).weights >= 0).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_leaving_commutes_with_cutting(seed: int) -> None:
    rows = random_world(seed)
    whole = connect(rows, RANGES)
    smaller = {who: connect(take_away(rows, who), RANGES) for who in sorted(everyone(rows))}
    for text in SUMS:
        # The statement follows from the public schema, which all neighbours share.
        rewritten = sql(text).rewrite(whole.schema)
        gathered = gather(rewritten, whole._engine.fetch(rewritten.text))
        total = gathered.relations[0].total
        assert total == pytest.approx(sql(text).truth(whole)), text
        for who, left in smaller.items():
            fresh = gather(rewritten, left._engine.fetch(rewritten.text))
            found = [summary(relation, fresh.names) for relation in fresh.relations]
            assert found == without(gathered, who), (text, who)


def test_values_beyond_count_as_the_nearer_end() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE pay AS SELECT * FROM (VALUES (1, -5), (2, 3), (3, 99), (4, NULL)) t(who, x)"
    )
    database = Database.connect(connection, owners={"pay": "who"}, ranges={"Pay.X": (0, 10)})
    assert sql("SELECT SUM(x) FROM pay").truth(database) == 13
    assert sql("SELECT COUNT(*) FROM pay WHERE x = 10").truth(database) == 1
    assert sql("SELECT COUNT(x) FROM pay").truth(database) == 3
    assert relation_of(database, sql("SELECT SUM(x) FROM pay")).total == 13


ENDS = [(1, 2), (0, 1), (2, None), (None, 1)]
OTHERS = ("person.age", "edge.w", "orders.price", "item.sku", "item.qty", "visit.minutes")
"""All columns of numbers that say nothing about owners."""


def differences(text: str, seed: int, ranges: dict[str, Any]) -> list[str]:
    """Compare a relation with the truth, and with rows that are really deleted, for everyone."""
    rows = random_world(seed)
    whole = connect(rows, ranges)
    rewritten = sql(text).rewrite(whole.schema)
    gathered = gather(rewritten, whole._engine.fetch(rewritten.text))
    found = []
    if gathered.relations[0].total != pytest.approx(sql(text).truth(whole)):
        found.append(f"{gathered.relations[0].total} instead of {sql(text).truth(whole)}")
    for who in sorted(everyone(rows)):
        left = connect(take_away(rows, who), ranges)
        fresh = gather(rewritten, left._engine.fetch(rewritten.text))
        if [summary(r, fresh.names) for r in fresh.relations] != without(gathered, who):
            found.append(f"{who} leaves")
    return found


def declared(seed: int) -> dict[str, Any]:
    """Return ranges of some of the columns that may have one, none or all of them."""
    draw = random.Random(seed)
    return {name: draw.choice(ENDS) for name in OTHERS if draw.random() < 0.7}


def test_leaving_commutes_with_cutting_every_column() -> None:
    for seed in range(12):
        text = Generator(seed).question()
        assert differences(text, 1 + seed % 2, declared(seed)) == [], text


@pytest.mark.slow
@pytest.mark.timed(2)
def test_leaving_commutes_with_cutting_in_many_questions(drawn: Drawn) -> None:
    for seed in drawn.seeds():
        text = Generator(seed).question()
        assert differences(text, seed, declared(seed)) == [], text


def test_every_column_that_says_whose_a_row_is_has_no_range() -> None:
    numbers = [f"{t}.{c}" for t, columns in COLUMNS.items() for c in numeric(columns)]
    refused = {name for name in numbers if name not in OTHERS and "secret" not in name}
    assert len(refused) == 8
    for name in refused:
        with pytest.raises(InputError, match="says whose rows they are"):
            connect(random_world(1), {name: (1, 2)})
    connect(random_world(1), dict.fromkeys(OTHERS, (1, 2)))


def numeric(columns: str) -> list[str]:
    listed = [column.split()[:2] for column in columns.replace("(10, 2)", "").split(", ")]
    return [name for name, kind in listed if kind != "VARCHAR"]


PATHS = {
    "a": {"a": "x"},
    "a composite": {"a": "(x, y)"},
    "a key and its other side": {"a": "x -> b[y]", "b": "z"},
    "a composite key": {"a": "(x, y) -> b[(y, z)].x", "b": "x"},
    "a path of two steps": {"a": "x -> b[y].z -> c[x].y", "b": "x", "c": "y"},
    "owners of another table": {"a": "x -> b[y]", "b": "z -> c[y]", "c": "x"},
    "several owners": {"a": ["p: x", "q: y"]},
}


@pytest.mark.parametrize("name", PATHS)
def test_columns_on_the_way_to_an_owner_have_no_range(name: str) -> None:
    tables = {t: {"x": "INTEGER", "y": "INTEGER", "z": "INTEGER", "v": "INTEGER"} for t in "abc"}
    owners = PATHS[name]
    plain = Schema.build("duckdb", tables, owners=owners, public=set("abc") - set(owners))
    used = set()
    for table in owners:
        for link in plain.ownership(table).links:
            start = next(
                (one.table for one in plain.ownership(table).links if one.name == link.start), table
            )
            used |= {f"{start}.{c}" for c in link.columns} | {f"{link.table}.{c}" for c in link.key}
        for tie in plain.ownership(table).ties:
            place = next(
                (one.table for one in plain.ownership(table).links if one.name == tie.place), table
            )
            used |= {f"{place}.{c}" for c in tie.columns}
    assert used
    for table in tables:
        for column in "xyzv":
            ranges = {f"{table}.{column}": (0, 1)}
            build = partial(
                Schema.build, "duckdb", tables, owners=owners, public=plain.public, ranges=ranges
            )
            if f"{table}.{column}" in used:
                with pytest.raises(InputError, match="says whose rows they are"):
                    build()
                facts = plain.to_json() | {"ranges": {f"{table}.{column}": [0, 1]}}
                with pytest.raises(InputError, match="says whose rows they are"):
                    Schema.from_json(facts)
            else:
                build()


def test_a_range_on_an_owner_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: ranges of owners are taken, and cut what is compared but not who it is."""
    monkeypatch.setattr("tulle.sql.schema.schema.check_ranges", lambda *declared: None)
    cut = {"person.id": (2, 3), "edge.a": (1, 2), "orders.cust": (2, 2)}
    texts = [
        "SELECT COUNT(*) FROM person p JOIN person q ON p.id = q.id",
        "SELECT COUNT(*) FROM person JOIN edge ON id = a",
        "SELECT COUNT(*) FROM person JOIN orders ON id = cust",
    ]
    for text in texts:
        assert any(differences(text, seed, cut) for seed in (1, 2)), text


def failures(database: Database) -> set[str]:
    """Return what a sum says on a database and on all its neighbours."""
    said = set()
    for one in (database, *database.neighbours("participant")):
        try:
            tulle.release(one, sql("SELECT SUM(price) FROM orders"), unit="participant", epsilon=1)
            said.add("answers")
        except Exception as error:  # noqa: BLE001 - any error at all must be the same
            said.add(f"{type(error).__name__}: {error}")
    return said


def test_whether_a_declaration_holds_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_world(1)
    rows["orders"] = [(1, 1, 2.25, "x"), (2, 2, -1.5, "x")]
    database = connect(rows, RANGES)
    assert failures(database) == {"answers"}
    facts = [
        repr(one.facts("participant")) for one in (database, *database.neighbours("participant"))
    ]
    assert len(set(facts)) == 1

    def refuse_negatives(names: Any, ranges: Any) -> Any:
        """The broken twin: a value beyond its range stops the engine."""
        broken = []
        for column in owned_values(names, ranges):
            if column.alias in ranges:
                column = sqlglot.exp.alias_(
                    sqlglot.parse_one(
                        f'IF(t."{column.alias}" < 0, error(\'negative\'), t."{column.alias}")'
                    ),
                    column.alias,
                    quoted=True,
                )
            broken.append(column)
        return broken

    owned_values = owned.values_of
    monkeypatch.setattr("tulle.sql.compile.select_rewriter.values_of", refuse_negatives)
    # As it stands it is refused, for everyone alike; so it is run past the check.
    assert len(failures(database)) == 1
    monkeypatch.setattr(
        "tulle.sql.compile.rewrite.total_statement", lambda tree, schema, **more: tree
    )
    assert len(failures(database)) == 2


def test_a_sum_that_cannot_be_negative_pays_once() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE pay AS SELECT range AS who, range % 40 AS shop, 2.5 AS x FROM range(400)"
    )
    question = sql("SELECT SUM(x) FROM pay")
    owners = {"pay": ["person: who", "shop: shop"]}
    plain = Database.connect(connection, owners=owners)
    declared = Database.connect(connection, owners=owners, ranges={"pay.x": (0, math.inf)})
    one = tulle.release(declared, question, unit="participant", epsilon=1)
    both = tulle.release(plain, question, unit="participant", epsilon=1)
    assert len(one.parameters["thresholds"]) == 1
    assert len(both.parameters["thresholds"]) == 2
    price = [rational(one.parameters[name]) for name in ("epsilon_select", "epsilon_answer")]
    assert sum(price) == 1
    low, high = one.interval(0.95)
    assert 0 < low < high == math.inf
    race = tulle.release(
        declared, question, unit="participant", epsilon=1, mechanism="race", bound=100
    )
    assert race.parameters["epsilon"] == "1"
    like = plan_for(plain, question, unit="participant", epsilon=1, like=plain)
    better = plan_for(declared, question, unit="participant", epsilon=1, like=declared)
    assert better.half_width(0.95) < like.half_width(0.95)
    # What one owner adds is one number, whatever its signs: nothing has to be paid for twice.
    single = Database.connect(connection, owners={"pay": "who"})
    net = tulle.release(single, question, unit="participant", epsilon=1)
    price = [rational(net.parameters[name]) for name in ("epsilon_select", "epsilon_answer")]
    assert sum(price) == 1
    with pytest.raises(tulle.TulleError, match="no interval"):
        net.interval(0.9)


def test_ranges_in_toml_and_bad_ranges(tmp_path: Path) -> None:
    (tmp_path / "pay.csv").write_text("who,x,name\n1,-4,a\n2,6,b\n")
    file = tmp_path / "pay.toml"
    file.write_text(
        'url = "duckdb://"\n[owners]\npay = "who"\n[tables]\npay = "pay.csv"\n'
        '[types]\n"pay.x" = "INTEGER"\n[ranges]\n"pay.x" = [0, inf]\n'
    )
    database = Database.from_toml(file)
    assert sql("SELECT SUM(x) FROM pay").truth(database) == 6
    assert database.facts("participant")["ranges"] == {"pay.x": [0.0, None]}
    connection = duckdb.connect()
    connection.execute("CREATE TABLE pay AS SELECT 1 AS who, 2 AS x, 'a' AS name")
    for wrong in (
        {"pay.y": (0, 1)},
        {"x": (0, 1)},
        {"pay.x": (2, 1)},
        {"pay.x": 0},
        {"pay.x": ("a", 1)},
        {"pay.x": (math.nan, 1)},
        {"pay.name": (0, 1)},
    ):
        with pytest.raises(InputError, match="ranges"):
            Database.connect(connection, owners={"pay": "who"}, ranges=wrong)


def test_expressions_stay_within_their_range() -> None:
    """All expressions of a small grammar, at all corners and some points of the columns' ranges."""
    known = {
        ("t", "p"): POSITIVE,
        ("t", "d"): Range(0, 1),
        ("t", "s"): Range(-2, 1),
        ("t", "f"): ANY,
    }
    points = {"p": (0, 1.5, 7), "d": (0, 0.25, 1), "s": (-2, -0.5, 1), "f": (-3, 4)}
    atoms = ["t.p", "t.d", "t.s", "t.f", "2", "0.5", "-1"]
    pairs = [f"({a} {o} {b})" for a in atoms for b in atoms for o in ("+", "-", "*", "/", "//")]
    wrapped = [f"{f}({a})" for f in ("ABS", "ROUND", "FLOOR", "CEIL", "-") for a in pairs[::7]]
    chosen = [f"GREATEST({a}, {b})" for a in atoms for b in atoms]
    chosen += [f"CASE WHEN t.f > 0 THEN {a} ELSE {b} END" for a in pairs[::9] for b in atoms]
    texts = [
        *atoms,
        *pairs,
        *wrapped,
        *chosen,
        *(f"({a}) * ({b})" for a in pairs[::5] for b in wrapped[::9]),
    ]
    connection = duckdb.connect()
    rows = [
        (p, d, s, f)
        for p in points["p"]
        for d in points["d"]
        for s in points["s"]
        for f in points["f"]
    ]
    connection.execute("CREATE TABLE t (p DOUBLE, d DOUBLE, s DOUBLE, f DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    # Divisors are never zero here: the statement that runs has NULL for them.
    kept = [text for text in texts if not any(f"/ {zero}" in text for zero in ("t.p", "t.d"))]
    columns = ", ".join(f"MIN({text})" for text in kept)
    least = connection.execute(f"SELECT {columns} FROM t").fetchone()
    highest = connection.execute(f"SELECT {columns.replace('MIN(', 'MAX(')} FROM t").fetchone()
    told = 0
    for text, low, high in zip(kept, least, highest, strict=True):
        found = range_of(sqlglot.parse_one(text, dialect="duckdb"), known)
        assert found.low <= low <= high <= found.high, text
        told += found.low > -math.inf
    assert told > len(kept) / 4


def test_days_between_dates_stay_within_their_range() -> None:
    """Dates have ranges, and so have their differences; nothing else made of them has one."""
    known = {
        ("t", "a"): Range(18_000, 18_400, DATE),
        ("t", "b"): Range(18_100, 18_200, DATE),
        ("t", "m"): Range(18_000 * 86_400, 18_001 * 86_400, TIMESTAMP),
        ("t", "n"): Range(1, 2),
    }
    days = ["t.a", "t.b", "COALESCE(t.a, t.b)", "CASE WHEN t.n > 1 THEN t.a ELSE t.b END"]
    days += ["DATE '2019-06-01'", "GREATEST(t.a, DATE '2019-12-31')", "(t.b)", "LEAST(t.a, t.b)"]
    moments = ["t.m", "TIMESTAMP '2019-04-14 10:00:00'", "LEAST(t.m, t.m)"]
    numbers = [f"{x} - {y}" for x in days for y in days]
    numbers += [f"DATE_DIFF('day', {x}, {y})" for x in days for y in days]
    numbers += [f"DATE_DIFF('second', {x}, {y})" for x in moments for y in moments]
    numbers += ["CAST(t.n > 1 AS INT)", "CAST(t.n > 1 AND t.a IS NULL AS INT)"]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a DATE, b DATE, m TIMESTAMP, n INTEGER)")
    for a, b, m, n in product((0, 170, 400), (100, 200), (0, 40_000, 86_400), (1, 2)):
        connection.execute(
            "INSERT INTO t VALUES (DATE '2019-04-14' + ?, DATE '2019-04-14' + ?, "
            "TIMESTAMP '2019-04-14' + to_seconds(?), ?)",
            [a, b, m, n],
        )
    for text in numbers:
        found = range_of(sqlglot.parse_one(text, dialect="duckdb"), known)
        low, high = connection.execute(f"SELECT MIN({text}), MAX({text}) FROM t").fetchone()
        assert found.low <= low <= high <= found.high, text
        assert math.isfinite(found.high - found.low), text
        assert not found.kind
    others = [
        "t.a + 1",
        "-t.a",
        "t.a + t.n",
        "t.m - t.m",
        "CAST(t.a AS INT)",
        "t.a * 2",
    ]
    others += ["DATE_DIFF('day', t.m, t.m)", "DATE_DIFF('month', t.a, t.b)", "t.a - t.m"]
    others += ["COALESCE(t.a, t.n)", "CASE WHEN t.n > 1 THEN t.m ELSE t.a END", "CAST(t.m AS DATE)"]
    for text in others:
        assert range_of(sqlglot.parse_one(text, dialect="duckdb"), known) == ANY, text


def test_a_truth_counts_one_or_nothing() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range AS who, range % 3 = 0 AS yes FROM range(9)")
    database = Database.connect(connection, owners={"t": "who"}, keys={"t": "who"})
    for text in (
        "SELECT SUM(yes) FROM t",
        "SELECT SUM(who > 3) FROM t",
        "SELECT SUM(CAST(yes OR who > 3 AS INTEGER)) FROM t",
        "SELECT SUM(n) FROM (SELECT who, NOT yes AS n FROM t) AS u",
        "SELECT SUM(n) FROM (SELECT who, MAX(yes) AS n FROM t GROUP BY who) AS u",
    ):
        found = sql(text).rewrite(database.schema)
        assert (found.signed, found.term) == (False, 1.0), text
        assert sql(text).truth(database) == connection.execute(text).fetchone()[0], text
