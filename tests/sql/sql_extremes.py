"""Rows of values at the edges of their types, and every supported expression over them.

Expressions come from the supported ones (``tulle.sql.expressions.total.ENTRIES``), so that a new
entry is tried by itself, on all kinds of arguments that it takes.
"""

from __future__ import annotations

import random
import re
from itertools import product
from typing import Any

import sqlglot
from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.compile.statements import Compiler, Scope
from tulle.sql.expressions import kinds
from tulle.sql.expressions.total import ENTRIES
from tulle.sql.schema.schema import Schema

TYPES: dict[str, dict[str, str]] = {
    "duckdb": {
        "who": "INTEGER",
        "i": "INTEGER",
        "w": "BIGINT",
        "h": "HUGEINT",
        "e": "DECIMAL(10,2)",
        "g": "DECIMAL(38,0)",
        "p": "DECIMAL(38,37)",
        "f": "DOUBLE",
        "r": "FLOAT",
        "s": "VARCHAR",
        "b": "BOOLEAN",
        "day": "DATE",
        "moment": "TIMESTAMP",
        "clock": "TIME",
        "u": "UUID",
    },
    "postgres": {
        "who": "integer",
        "i": "integer",
        "w": "bigint",
        "h": "numeric",
        "e": "numeric(10,2)",
        "g": "numeric(38,0)",
        "p": "numeric(38,37)",
        "f": "double precision",
        "r": "real",
        "s": "text",
        "b": "boolean",
        "day": "date",
        "moment": "timestamp without time zone",
        "clock": "time without time zone",
        "u": "uuid",
    },
    "spark": {
        "who": "int",
        "i": "int",
        "w": "bigint",
        "h": "decimal(20,0)",
        "e": "decimal(10,2)",
        "g": "decimal(38,0)",
        "p": "decimal(38,37)",
        "f": "double",
        "r": "float",
        "s": "string",
        "b": "boolean",
        "day": "date",
        "moment": "timestamp",
    },
}
_MOST = 38 * "9"
EXTREMES: dict[str, list[str]] = {
    "i": ["2147483647", "-2147483648", "0", "-1", "7"],
    "w": ["9223372036854775807", "-9223372036854775808", "0", "-1", "2"],
    "h": ["99999999999999999999", "-99999999999999999999", "0", "-1", "2"],
    "e": ["99999999.99", "-99999999.99", "0", "0.01", "2.50"],
    "g": [_MOST, "-" + _MOST, "0", "-1", "3"],
    "p": ["9." + 37 * "9", "-9." + 37 * "9", "0", "0." + 36 * "0" + "1", "0.5"],
    "f": [
        *("1.7976931348623157e308", "-1.7976931348623157e308", "5e-324", "NaN", "Infinity"),
        *("-Infinity", "0", "-0.0", "1e-200", "1e154", "9.3e18", "-1.5"),
    ],
    "r": ["3.4028235e38", "-3.4028235e38", "1e-38", "NaN", "Infinity", "-Infinity", "0", "1.5"],
    "s": [
        *("", "x", "5", "-0.5", "1e309", "99999999999999999999999999", "2021-02-29", "2024-02-29"),
        *("true", "a%", "\\", "23:59:60", "NaN", "  7 ", "0001-01-01 BC", "\u00e9\u4e2d", "1e5"),
    ],
    "b": ["true", "false"],
    "day": ["2020-02-29", "0001-01-01", "9999-12-31", "1970-01-01"],
    "moment": ["2020-02-29 23:59:59.999999", "0001-01-01 00:00:00", "9999-12-31 23:59:59"],
    "clock": ["00:00:00", "23:59:59.999999"],
    "u": ["00000000-0000-0000-0000-000000000000"],
}
FAR = {
    "duckdb": {
        "h": [
            "170141183460469231731687303715884105727",
            "-170141183460469231731687303715884105728",
        ],
        "day": ["5881580-07-10", "5877642-06-25 (BC)", "infinity", "-infinity", "290000-01-01"],
        "moment": ["294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00", "infinity"],
    },
    "postgres": {
        "h": ["9" * 1000, "-" + "9" * 130000, "0." + 16000 * "0" + "1", "NaN", "Infinity"],
        "e": ["NaN"],
        "day": ["5874897-12-31", "4713-01-01 BC", "infinity", "-infinity"],
        "moment": [
            "294276-12-31 23:59:59.999999",
            "4713-01-01 00:00:00 BC",
            "infinity",
            "-infinity",
        ],
        "clock": ["24:00:00"],
    },
    "spark": {
        "day": ["+5881580-07-11", "-5877641-06-24"],
        "moment": ["+294247-01-10T04:00:54.775807", "-290308-12-21T19:59:06"],
    },
}
"""Beyond those, what only some engines have."""


def rows(dialect: str) -> list[dict[str, str | None]]:
    """Return rows that hold every extreme at least once; the last is all NULL."""
    values = {
        name: [*EXTREMES.get(name, []), *FAR[dialect].get(name, [])]
        for name in TYPES[dialect]
        if name != "who"
    }
    count = max(map(len, values.values()))
    listed: list[dict[str, str | None]] = [
        {"who": str(place), **{name: v[place % len(v)] for name, v in values.items()}}
        for place in range(count)
    ]
    return [*listed, {"who": str(count), **dict.fromkeys(values)}]


TAME: dict[str, str | None] = {
    "i": "3",
    "w": "4",
    "h": "5",
    "e": "1.50",
    "g": "6",
    "p": "0.25",
    "f": "2.5",
    "r": "1.5",
    "s": "12",
    "b": "true",
    "day": "2020-05-05",
    "moment": "2020-05-05 10:00:00",
    "clock": "10:00:00",
    "u": "00000000-0000-0000-0000-000000000001",
}


def inserted(dialect: str, listed: list[dict[str, str | None]]) -> str:
    """Return the rows as a list for VALUES."""
    shown = []
    for row in listed:
        cells = []
        for name, kind in TYPES[dialect].items():
            value = row[name]
            if value is None:
                cells.append(f"CAST(NULL AS {kind})")
            elif dialect == "spark" and name == "s":
                cells.append("'" + value.replace("\\", "\\\\") + "'")
            else:
                cells.append(f"CAST('{value}' AS {kind})")
        shown.append("(" + ", ".join(cells) + ")")
    return ", ".join(shown)


def columns(dialect: str) -> dict[str, list[str]]:
    """Return the columns of each kind."""
    found: dict[str, list[str]] = {}
    for name, kind in Compiler(schema(dialect))._tables["extreme"].items():
        if name != "who":
            found.setdefault(kind.name, []).append(name)
    return found


def schema(dialect: str) -> Schema:
    return Schema.build(dialect, {"extreme": TYPES[dialect]}, owners={"extreme": "who"})


SHAPES = [
    *(f"{{}} {sign} {{}}" for sign in ("=", "<>", "<", ">=")),
    "{} IS NOT DISTINCT FROM {}",
    "{} BETWEEN {} AND {}",
    "{} NOT BETWEEN {} AND {}",
    "{} IN ({}, {})",
    "{} NOT IN ({}, NULL)",
    "({0}, {1}) IN (({1}, {0}), ({0}, {0}))",
    "CASE WHEN x.b THEN {} ELSE {} END",
    "CASE {} WHEN {} THEN 1 WHEN {} THEN 2 END",
    "CASE WHEN {} THEN 1 ELSE 2 END",
    "COALESCE({}, {})",
    "GREATEST({}, {})",
    "LEAST({}, {})",
    "NULLIF({}, {})",
    "NOT {}",
    "{} AND x.b",
    "{} OR {}",
    "{} IS NULL",
    "{} IS TRUE",
    "{} || {}",
    "CONCAT({}, {})",
    *(
        f"CAST({{}} AS {kind})"
        for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL(10, 2)", "DECIMAL(38, 0)")
    ),
    *(f"CAST({{}} AS {kind})" for kind in ("DOUBLE", "REAL", "VARCHAR", "BOOLEAN", "DATE")),
    *(f"TRY_CAST({{}} AS {kind})" for kind in ("TIMESTAMP", "TIMESTAMPTZ", "TIME", "UUID")),
]
"""What takes values of any kind."""

CONSTANTS = [
    *("CAST('x' AS INTEGER)", "CAST('300' AS TINYINT)", "CAST('2021-02-30' AS DATE)"),
    *("9223372036854775807 + 1", "9223372036854775807 * 9223372036854775807", "1 / 0", "1 % 0"),
    *("2147483647 + 1", "1e308 * 1e308", "1e-308 * 1e-308", "CAST(1e300 AS INTEGER)"),
    *("DATE '2020-01-01' + INTERVAL '3000' YEAR", "CAST('NaN' AS DOUBLE)", "7 // 0"),
    *("99999999999999999999999999999999999999 + 1", "CAST(1e300 AS DECIMAL(10, 2))", "-(0 - 1)"),
    "99999999999999999999 * 99999999999999999999",
    "CAST('x' AS DATE) + INTERVAL '1' DAY",
    "ROUND(99999999999999999999999999999999999999, -2)",
    *("x.s LIKE y.s", "x.s ILIKE y.s", "TRIM(BOTH y.s FROM x.s)", "STARTS_WITH(x.s, y.s)"),
    *("x.day + INTERVAL '4000' YEAR", "x.moment - INTERVAL '1000000' HOUR"),
    *("x.s = 'x'", "x.day > '2020-01-01'", "x.moment < '2020-01-01 10:00:00'", "x.i = '5'"),
    *("x.b = 'true'", "COALESCE(x.i, '7')", "x.u = '00000000-0000-0000-0000-000000000000'"),
]
"""Constants that engines may work out, and stumble over, before any row is looked at."""


def expressions(dialect: str) -> list[str]:
    """Return every supported expression, over all kinds of arguments; and some that are not."""
    having = columns(dialect)
    having.setdefault(kinds.INTERVAL, [])
    first = {kind: names[0] for kind, names in having.items() if names}
    found: dict[str, None] = dict.fromkeys(CONSTANTS)
    for entry in ENTRIES:
        places = entry.written.count("{}")
        takes = [t for t in entry.takes if kinds.INTERVAL not in t][:places]
        choices = [[n for kind in sorted(t) for n in having.get(kind, [])] for t in takes]
        for names in product(*choices):
            sided = [f"{side}.{name}" for side, name in zip("xy", names, strict=False)]
            found[entry.written.format(*sided)] = None
    for shape in SHAPES:
        single = shape.count("{}") == 1
        everything = [name for names in having.values() for name in names]
        for one in everything if single else first.values():
            for other in [one] if single else first.values():
                arguments = [f"x.{one}", f"y.{other}", f"x.{other}"]
                found[shape.format(*arguments)] = None
    # What has the same arguments is run in one statement: engines work out once what is shared.
    return sorted(found, key=lambda written: re.findall(r"[xy]\.\w+", written))


def compiled(texts: list[str], dialect: str) -> tuple[list[str], list[str], Any]:
    """Return the supported expressions, the refused ones, and one statement with all supported."""
    taken, refused, made = [], [], []
    compiler = Compiler(schema(dialect))
    sources = dict.fromkeys(("x", "y"), compiler._tables["extreme"])
    for text in texts:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").expressions[0]
        try:
            made.append(compiler.value(tree, Scope({}, dict(sources))).node)
            taken.append(text)
        except QueryError:
            refused.append(text)
    # Long statements: each copy of one takes as long as compiling a part of it.
    query = exp.Select(expressions=[exp.alias_(e, f"c{i}", copy=False) for i, e in enumerate(made)])
    # As statements have it: PostgreSQL searches no schema but its own.
    table = "public.extreme" if dialect == "postgres" else "extreme"
    query.from_(f"{table} AS x", copy=False)
    return taken, refused, query.join(f"{table} AS y", join_type="cross", copy=False)


def nested(dialect: str, seed: int, count: int) -> list[str]:
    """Return random expressions that are supported, each made of others before it."""
    draw = random.Random(seed)
    compiler = Compiler(schema(dialect))
    scope = Scope({}, dict.fromkeys(("x", "y"), compiler._tables["extreme"]))
    pool: dict[str, list[str]] = {}
    for kind, names in columns(dialect).items():
        pool[kind] = [f"{side}.{name}" for name in names for side in "xy"]
    pool.setdefault(kinds.WHOLE, []).append("3")
    grown: list[str] = []
    for _ in range(60 * count):
        if len(grown) >= count:
            break
        if draw.random() < 0.6:
            entry = draw.choice(ENTRIES)
            takes = [t for t in entry.takes if kinds.INTERVAL not in t]
            shape = entry.written
            wanted = [sorted(t & pool.keys()) for t in takes[: shape.count("{}")]]
            if not all(wanted):
                continue
            parts = [draw.choice(pool[draw.choice(names)][-25:]) for names in wanted]
        else:
            shape = draw.choice(SHAPES)
            several = [draw.choice(pool[draw.choice(sorted(pool))][-25:]) for _ in range(3)]
            parts = several
        text = shape.format(*(f"({part})" for part in parts))
        if len(text) > 600:
            continue
        try:
            tree = sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").expressions[0]
            kind = compiler.value(tree, scope).kind.name
        except QueryError:
            continue
        grown.append(text)
        pool.setdefault(kind, []).append(text)
    return grown
