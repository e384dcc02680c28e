"""One value on all engines: every supported expression, on ordinary and on odd values."""

from __future__ import annotations

import math
import re
from datetime import time
from decimal import Decimal
from typing import Any

import pytest
from tests.sql.expressions.test_total import in_duckdb, in_postgres, in_spark
from tests.sql.sql_extremes import CONSTANTS, TYPES, compiled, expressions

from tulle.sql.data import Database
from tulle.sql.dialect import dialect_of
from tulle.sql.expressions import entry, kinds, total
from tulle.sql.expressions.kinds import Kind

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

VALUES: dict[str, list[str | None]] = {
    "i": ["3", "-7", "0", "1", "100", "12345", None],
    "w": ["4", "-1", "0", "12", "63", "-40000", None],
    "h": ["5", "-2", "0", "90", "7", "11", None],
    "e": ["1.50", "-0.01", "0", "12.25", "99.99", "0.50", None],
    "g": ["6", "-6", "0", "41", "2", "13", None],
    "p": ["0.25", "-0.5", "0", "1.75", "3", "0.125", None],
    "f": ["2.5", "-1.5", "0", "NaN", "Infinity", "-Infinity", "700.25", None],
    "r": ["1.5", "-2.25", "0", "NaN", "Infinity", "16", None],
    "s": ["12", "", "a", "ab12", "xyz\nb", "b-a-c", "\u00e9\u4e2d1", "A{}[]^\\", "a1\n", None],
    "b": ["true", "false", None],
    "day": ["2020-02-29", "2019-12-30", "1999-12-31", "0001-01-01", "9999-12-31", None],
    "moment": [
        *("2020-02-29 23:59:59.999999", "2021-01-03 00:00:00", "1969-12-31 12:30:01", None),
        *("0001-01-01 00:00:00", "9999-12-31 23:59:59"),
    ],
    "clock": ["00:00:00", "23:59:59", None],
    "u": ["00000000-0000-0000-0000-000000000000", None],
}

APART = re.compile(
    # How a number or a moment looks as a text is each engine's own: 1e20, 100000000000000000000.
    r"CAST\(x\.(f|r|p|h|g|e|moment|clock) AS VARCHAR\)|CONCAT|\|\|"
    # PostgreSQL has no numbers of one byte.
    r"|TINYINT"
    # Where decimals have more digits than a type has, DuckDB and Spark take doubles, or NULL.
    r"|\.[ghp] [*%]|[*%] y\.[ghp]"
    # Arithmetic with infinities and NaN is NULL in PostgreSQL, where it could fail.
    r"|\.[fr] [-+*/%]|[-+*/%] y\.[fr]"
)
"""Expressions whose values differ between engines, for the reasons given."""


def listed() -> list[dict[str, str | None]]:
    count = max(map(len, VALUES.values()))
    return [
        {"who": str(row), **{name: values[row % len(values)] for name, values in VALUES.items()}}
        for row in range(count)
    ]


def plain(value: Any) -> Any:
    """Return a value in a form that is the same whatever type the engine gave it."""
    if isinstance(value, bool | None):
        return value
    if isinstance(value, int | float | Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, time) else str(value)


def alike(one: Any, other: Any) -> bool:
    one, other = plain(one), plain(other)
    kinds = {type(one), type(other)}
    if kinds == {bool, float} or kinds == {str, float}:
        # PostgreSQL's driver gives numeric as text.
        one, other = float(one), float(other)
    if isinstance(one, float) and isinstance(other, float):
        both = math.isnan(one) and math.isnan(other)
        return both or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return bool(one == other)


def values_of(database: Database, texts: list[str]) -> dict[str, list[Any]]:
    """Return what each expression is for every pair of rows."""
    dialect = database.schema.dialect
    found: dict[str, list[Any]] = {}
    for start in range(0, len(texts), 60):
        part = texts[start : start + 60]
        taken, _, query = compiled(part, dialect)
        assert taken == part
        ordered = query.order_by("x.who", "y.who")
        rows = database._engine.fetch(ordered.sql(dialect=dialect))
        for place, text in enumerate(part):
            found[text] = _listed(rows.column(f"c{place}"))
    return found


def _listed(column: Any) -> list[Any]:
    """Return a column; dates and moments as microseconds, since Python's end at the year 9999."""
    if pyarrow.types.is_date(column.type):
        days = column.cast(pyarrow.date32()).cast(pyarrow.int32()).to_pylist()
        return [None if day is None else day * 86_400_000_000 for day in days]
    if pyarrow.types.is_timestamp(column.type):
        unit = pyarrow.timestamp("us", column.type.tz)
        return list(column.cast(unit).cast(pyarrow.int64()).to_pylist())
    return list(column.to_pylist())


def shared(*dialects: str, every: int) -> list[str]:
    """Return every so many of the expressions that all of these engines support."""
    listed = [t for t in expressions(dialects[-1]) if not APART.search(t) and t not in CONSTANTS]
    listed = listed[::every]
    for dialect in dialects:
        names = [n for n in TYPES["duckdb"] if n not in TYPES[dialect]]
        listed = [t for t in listed if not any(f".{name}" in t for name in names)]
        listed = compiled(listed, dialect)[0]
    return listed


def different(one: Database, other: Database, texts: list[str]) -> list[str]:
    left, right = values_of(one, texts), values_of(other, texts)
    found = []
    for text in texts:
        pairs = list(zip(left[text], right[text], strict=True))
        wrong = [(a, b) for a, b in pairs if not alike(a, b)]
        if wrong:
            found.append(f"{text}: {wrong[0]} ({len(wrong)})")
    return found


def check(one: Database, other: Database, *, every: int, apart: str = "$^") -> None:
    dialects = (one.schema.dialect, other.schema.dialect)
    texts = [t for t in shared(*dialects, every=every) if not re.search(apart, t)]
    assert len(texts) > 700 / every
    found = different(one, other, texts)
    assert not found, "\n".join(found)


CASTS = r"CAST\(x\.[efrpgh] AS (SMALLINT|INTEGER|BIGINT)\)"
"""Spark leaves the fraction off where DuckDB and PostgreSQL round."""


def test_duckdb_and_postgresql_agree(postgres_url: str) -> None:
    one, other = in_duckdb(listed()), in_postgres(postgres_url, listed())
    check(one, other, every=4)
    other.close()


@pytest.mark.filterwarnings("ignore")
def test_duckdb_and_spark_agree(spark_session: Any) -> None:
    check(in_duckdb(listed()), in_spark(spark_session, listed()), every=30, apart=CASTS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_agree_on_everything(postgres_url: str, spark_session: Any) -> None:
    one, other = in_duckdb(listed()), in_postgres(postgres_url, listed())
    check(one, other, every=1)
    other.close()
    check(one, in_spark(spark_session, listed()), every=1, apart=CASTS)


@pytest.mark.parametrize(
    ("written", "broken"),
    [
        ("LN({})", "LN(ABS({0}))"),
        ("STRPOS({}, {})", "STRPOS({0}, {1}) - 1"),
        ("REGEXP_MATCHES({}, '^[a-z]+[0-9]{{2}}$')", "REGEXP_MATCHES({0}, '[0-9]$')"),
    ],
)
def test_an_engine_that_has_another_value_is_caught(
    written: str, broken: str, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """The twin: one entry means something else in DuckDB."""
    other = in_postgres(postgres_url, listed())
    arguments = ("x.f",) if written.startswith("LN") else ("x.s", "y.s")
    text = written.format(*arguments)
    expected = values_of(other, [text])
    hold = (lambda node: node) if written.startswith("LN") else None
    known = dialect_of("duckdb")
    (name,) = {one.name for one in total.ENTRIES if one.written == written}
    kind = Kind({"LN": kinds.DOUBLE, "ST": kinds.WHOLE, "RE": kinds.BOOLEAN}[written[:2]])
    form = entry.said(broken, kind, hold)
    monkeypatch.setattr(type(known), "forms", {**known.forms, name: form})
    found = values_of(in_duckdb(listed()), [text])
    assert not all(map(alike, found[text], expected[text]))
    other.close()
