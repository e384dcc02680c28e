"""Every type that an engine lists, in every place that a column may have in a question.

Types come from the engine's own catalogue and their values from texts that it can convert, so that
a new type is tried by itself. A database has one row per person; its variants differ in the value
of one person, who may also be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.audit.replay.engine import Onlooker, Opener, Replayed, Tape, entries, replay

import tulle
from tulle.ledger.ledger import Ledger

TAME = (
    *("1", "2", "3", "1.5", "true", "false", "a", "b", "ab", "sad", "ok", "happy"),
    *("2020-01-02", "2021-03-04", "2020-01-02 10:00:00", "2021-03-04 11:30:00"),
    *("2020-01-02 10:00:00+00", "10:20:30", "11:00:00", "10:20:30+00", "1 day", "2 months"),
    *("6f9619ff-8b86-d011-b42d-00c04fc964ff", "00000000-0000-0000-0000-000000000001"),
    *("[1, 2]", "[3]", "[1, 2, 3]", "[4, 5, 6]", "{'a': 1, 'b': x}", "{'a': 2, 'b': y}"),
    *("{k=1}", "{k=2, l=3}", "101", "010", "10.0.0.1", "192.168.0.0/16", "08:00:2b:01:02:03"),
    *("08:00:2b:01:02:03:04:05", "(1,2)", "(3,4)", "{1,2,-1}", "((0,0),(1,1))", "<(0,0),1>"),
    *("((0,0),(1,0),(0,1))", "[(0,0),(1,1)]", "[1,5)", "[2020-01-01,2020-02-01)", "{[1,3)}"),
    *("[2020-01-01 00:00,2020-02-01 00:00)", "{[2020-01-01,2020-02-01)}", "{1,2}", "{3}"),
    *("{[2020-01-01 00:00,2020-02-01 00:00)}", "<a>1</a>", "fat & rat", "cat dog", "POINT(1 2)"),
    *('{"a": 1}', '{"b": [2]}', '"word"', "$.a", "0/16B3740", "10:20:10,14", "pg_class", "(a,1)"),
    *("INTEGER", "VARCHAR", "postgres", "int4", "english", "sum(int4)", "+(int4,int4)"),
)
"""Texts of ordinary values; a type takes those that it can convert."""

ODD = (
    *("", " ", "-1", "0", "-0.0", "NaN", "Infinity", "-Infinity", "infinity", "-infinity"),
    *("127", "-128", "255", "32767", "-32768", "65535", "2147483647", "-2147483648"),
    *("4294967295", "9223372036854775807", "-9223372036854775808", "18446744073709551615"),
    *("170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"),
    *("340282366920938463463374607431768211455", "9" * 38, "-" + "9" * 38, "9" * 400),
    *(
        "1e308",
        "-1.7976931348623157e308",
        "5e-324",
        "3.4028235e38",
        "1e-400",
        "0." + "0" * 36 + "1",
    ),
    *("5881580-07-10", "5877642-06-25 (BC)", "5874897-12-31", "4713-01-01 BC", "9999-12-31"),
    *("0001-01-01", "294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00"),
    *("294276-12-31 23:59:59.999999", "1677-09-22 00:00:00", "2262-04-11 23:47:16.854775806"),
    *("0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00", "24:00:00", "23:59:59.999999"),
    *("00:00:00", "24:00:00-15:59", "00:00:00+15:59", "23:59:60", "-178000000 years"),
    *("2147483647 months", "2147483647 days", "-1 microseconds", "106751991 days 04:00:54.775807"),
    *("ffffffff-ffff-ffff-ffff-ffffffffffff", "[]", "[NULL]", "[9223372036854775807]", "{}"),
    *("[-1, 0, NULL]", "{'a': NULL, 'b': NULL}", "{'a': 2147483647, 'b': }", "1" * 300),
    *("\\x00\\xff", "\\xFF", "\\", "'", '"', "%", "_", "\u00e9\u4e2d\U0001f600", "x" * 3000),
    *("A", "a ", "SAD", "null", "NULL", "[", "{", '{"a": 1, "a": 2}', "[1,[2,[3]]]", "1e400"),
    *("::", "::/0", "255.255.255.255", "ff:ff:ff:ff:ff:ff", "(,)", "empty", "[,]", "(infinity,)"),
    *("(NaN,NaN)", "(1e308,-1e308)", "{0,1,NaN}", "{NULL}", "{{1},{2}}", "{}", "[0:1]={1,2}"),
    *("$92233720368547758.07", "-92233720368547758.08", "FFFFFFFF/FFFFFFFF", "''", "!a", "a:1A"),
    *("POINT EMPTY", "GEOMETRYCOLLECTION EMPTY", "4294967295:4294967295:", "0", "-", "NULL::INT"),
)
"""Texts at the edges, and odd ones."""

NEAR = (
    *("9007199254740992", "9007199254740993", "16777216", "16777217"),
    *("0.1234567890123456788", "0.1234567890123456789"),
    *("2020-01-02 10:00:00.123456001", "2020-01-02 10:00:00.123456002"),
    *("10:20:30.000000001", "10:20:30.000000002"),
)
"""Texts of different values that are one in a type of fewer digits."""


@dataclass(frozen=True)
class Place:
    """One use of a column v, in questions about a table t (id, v, w) with one row a person."""

    name: str
    text: str
    groups: Callable[[Sequence[str]], Mapping[str, Any] | None] = lambda tame: None
    owners: Mapping[str, str] = field(default_factory=lambda: {"t": "id"})
    ranges: Mapping[str, Any] | None = None
    times: Mapping[str, str] | None = None
    unit: str = "participant"
    options: Mapping[str, Any] = field(default_factory=dict)


_V = {"t": "v"}
_DAYS = {"t.v": ("2000-01-01", "2030-12-31")}
PLACES = (
    Place("owner", "SELECT COUNT(*) FROM t", owners=_V),
    Place("owner with a weight", "SELECT SUM(w) FROM t WHERE w < 9", owners=_V),
    Place("owner of found keys", "SELECT w, COUNT(*) FROM t GROUP BY w", owners=_V),
    Place("owner counted", "SELECT COUNT(DISTINCT v) FROM t", owners=_V),
    Place("key on the way", "SELECT COUNT(*) FROM u", owners={"u": "v -> t[v].id", "t": "id"}),
    Place("half of an owner", "SELECT COUNT(*) FROM t", owners={"t": "(id, v)"}),
    Place("both owners", "SELECT COUNT(*) FROM t", owners={"t": "id and v"}),
    Place("weight", "SELECT SUM(v) FROM t"),
    Place("converted weight", "SELECT SUM(CAST(v AS DOUBLE)) FROM t"),
    Place("squared weight", "SELECT SUM(v * v) FROM t"),
    Place("mean", "SELECT AVG(v) AS m, COUNT(v) AS n FROM t", ranges={"t.v": (0, 10)}),
    Place("group", "SELECT COUNT(*) FROM t GROUP BY v", lambda tame: {"v": list(tame)}),
    Place("found key", "SELECT v, COUNT(*) FROM t GROUP BY v"),
    Place(
        "found key as text",
        "SELECT CAST(v AS TEXT) AS k, SUM(w) AS s FROM t GROUP BY CAST(v AS TEXT)",
    ),
    Place("range", "SELECT SUM(v) FROM t", ranges={"t.v": (0, 10)}),
    Place("range and condition", "SELECT COUNT(*) FROM t WHERE v > 1", ranges={"t.v": (0, 10)}),
    Place("join", "SELECT COUNT(*) FROM t JOIN u ON t.v = u.v", owners={"t": "id", "u": "id"}),
    Place("self-join", "SELECT SUM(a.w) FROM t a JOIN t b ON a.v = b.v AND a.id < b.id"),
    Place("ordered join", "SELECT COUNT(*) FROM t a, t b WHERE a.v < b.v"),
    Place("time", "SELECT COUNT(*) FROM t", times={"t": "v"}, unit="participant-week"),
    Place("equality", "SELECT COUNT(*) FROM t WHERE v = '1'"),
    Place("comparison", "SELECT COUNT(*) FROM t WHERE v > 1"),
    Place("list", "SELECT COUNT(*) FROM t WHERE v IN ('1', 'a')"),
    Place("pattern", "SELECT COUNT(*) FROM t WHERE v LIKE '%a%'"),
    Place("truth", "SELECT COUNT(*) FROM t WHERE v"),
    Place("missing", "SELECT COUNT(v) FROM t WHERE v IS NOT NULL"),
    Place("case", "SELECT SUM(CASE WHEN v = v THEN w ELSE 0 END) FROM t"),
    Place("field", "SELECT COUNT(*) FROM t WHERE EXTRACT(YEAR FROM v) = 2020"),
    Place("length", "SELECT SUM(LENGTH(v)) FROM t", ranges={"t.w": (0, 1)}),
    Place("text", "SELECT COUNT(*) FROM t WHERE CAST(v AS TEXT) = '1'"),
    Place("date", "SELECT COUNT(*) FROM t WHERE CAST(v AS DATE) > DATE '2020-01-01'"),
    Place("sum of two", "SELECT COUNT(*) FROM t WHERE v + 1 > w"),
    Place("distinct", "SELECT COUNT(DISTINCT v) FROM t"),
    Place("distinct rows", "SELECT COUNT(*) FROM (SELECT DISTINCT v FROM t) x"),
    Place(
        "union",
        "SELECT COUNT(*) FROM (SELECT v FROM t UNION SELECT v FROM u) x",
        owners={"t": "id", "u": "id"},
    ),
    Place(
        "exists",
        "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.v = t.v)",
        owners={"t": "id", "u": "id"},
    ),
    Place(
        "in", "SELECT COUNT(*) FROM t WHERE v IN (SELECT v FROM u)", owners={"t": "id", "u": "id"}
    ),
    Place(
        "within one person", "SELECT SUM(x.m) FROM (SELECT id, MAX(v) AS m FROM t GROUP BY id) x"
    ),
    Place(
        "order within one person",
        "SELECT COUNT(*) FROM (SELECT id, w, ROW_NUMBER() OVER "
        "(PARTITION BY id ORDER BY v DESC, w) AS r FROM t) x WHERE x.r = 1",
    ),
    Place(
        "limit",
        "SELECT COUNT(*) FROM t a WHERE a.w = (SELECT MAX(b.w) FROM t b WHERE "
        "b.id = a.id AND b.v = a.v)",
    ),
    Place("median", "SELECT MEDIAN(v) FROM t", ranges={"t.v": (0, 10)}),
    Place(
        "quantile",
        "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY v) FROM t",
        ranges={"t.v": (0, 10)},
    ),
    Place("last day", "SELECT MAX(v) AS last, COUNT(*) AS n FROM t", ranges=_DAYS),
    Place("days apart", "SELECT AVG(DATE_DIFF('day', DATE '2001-01-01', v)) FROM t", ranges=_DAYS),
    Place("day and condition", "SELECT COUNT(*) FROM t WHERE v > '2001-01-01'", ranges=_DAYS),
)


@dataclass(frozen=True)
class Column:
    """A type as it is declared, and texts of its values: ordinary ones and others."""

    type: str
    tame: tuple[str, ...]
    odd: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Statements that make the type."""


def rows_of(column: Column) -> list[list[tuple[int, str | None]]]:
    """Return the ordinary rows, and those with one more person who has every other value."""
    count = len(column.tame)
    base: list[tuple[int, str | None]] = [(who, column.tame[who % count]) for who in range(1, 7)]
    return [base, [*base, *((7, value) for value in (None, *column.odd))]]


def attack(column: Column, place: Place, connect: Callable[[Column, Any, Place], Any]) -> Replayed:
    """Ask one question about one type on the ordinary rows and with one person more."""
    variants = [partial(_opened, connect, column, rows, place) for rows in rows_of(column)]
    return replay(variants, partial(_path, column, place))


def _opened(connect: Any, column: Column, rows: Any, place: Place, folder: Path) -> Any:
    return connect(column, rows, place)


def _path(
    column: Column, place: Place, onlooker: Onlooker, tape: Tape, opener: Opener, folder: Path
) -> None:
    dataset = onlooker.see("open", lambda: opener(folder))
    if dataset is None:
        return
    try:
        query = onlooker.see(
            "question",
            lambda: tulle.sql(place.text, groups=place.groups(column.tame), **place.options),
        )
        if query is None:
            return
        onlooker.see("objection", lambda: query.objection(dataset))
        ledger = Ledger(folder / "study.ledger")
        session = ledger.open("study", dataset, unit=place.unit, epsilon="100", delta="0.5")
        terms = {"epsilon": "1", "delta": "1e-6"}
        onlooker.see("plan", lambda: session.plan(query, **terms))
        onlooker.see("ask", lambda: session.ask(query, **terms), show=lambda r: r.to_json())
        entries(onlooker, ledger)
    finally:
        dataset.close()
