"""Patterns: what is supported means the same on all engines, and none of them fails or hangs."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import pytest
from tests.sql.expressions.test_total import failing, in_duckdb, in_postgres, in_spark
from tests.sql.sql_extremes import rows

from tulle.sql.data import Database
from tulle.sql.dialect import dialect_of
from tulle.sql.expressions.conversions import Impossible, Typed
from tulle.sql.expressions.kinds import TEXT, Kind
from tulle.sql.expressions.patterns import MOST_ENDLESS, translated

pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

TEXTS = [
    *(
        "",
        "a",
        "A",
        "ab",
        "aab",
        "abab",
        "b\n",
        "\nb",
        "a\nb",
        "a.b",
        "a-b",
        "12",
        "a1_",
        " \t",
        "x&y",
    ),
    *(
        "[a]",
        "a]",
        "{2}",
        "a|b",
        "\\d",
        "^a$",
        "é",
        "中a",
        "a\r",
        "K\u212a",
        "aaaaaaaaaaaa",
        "(a)",
        "x&y",
    ),
]
PATTERNS = [
    *("a", "^a", "a$", "^a$", "^$", "a.b", ".", "a|b", "^(a|b)", "^(?:ab){2}$", "[a-c]+$", "[^a]"),
    *("[^a-z]$", r"\d", r"\D", r"\w+$", r"\s", r"^\S+$", r"a\.b", r"\[a\]", r"\{2\}", r"a\|b"),
    *(
        r"\\d",
        r"\^a\$",
        "a{2}",
        "a{2,}",
        "a{1,3}b",
        "(ab)?a",
        "x&y",
        "é",
        "中.",
    ),
    *(r"[\]a]", r"[a\-z]", r"[\^a]$", "[.]", "[a-]", "a]", "(a)", r"\(a\)", ".*a.*b", "^.{3}$"),
]
REFUSED = [
    *("(a+)+", "(a|b)*", "(a*)*", "a**", "a+?", "a{2,1}", "a{101}", "(a|aa){2}", ".*.*.*.*"),
    *(
        "(?=a)",
        "(?i)a",
        r"\b",
        r"\1",
        r"\p{L}",
        r"\x41",
        "[[:alpha:]]",
        "[a",
        "(a",
        "a)",
        "",
        "a||b",
    ),
    *("[z-a]", "[a-Z]", "^*", "*a", "()", "(a|b)?" * 7 + "(a|b|c|d|e|f)", "a" * 201, "[]a]", "a\\"),
    *("[à-é]", "[a&&b", "a||b", "(?:a{9}){9}b?" * 40),
]


def matches(database: Database, patterns: list[str]) -> dict[str, list[bool]]:
    """Return, for each pattern, which of the texts an engine finds it in."""
    dialect = database.schema.dialect
    listed = ["'" + t.replace("'", "''") + "'" for t in TEXTS]
    if dialect == "spark":
        listed = [t.replace("\\", "\\\\") for t in listed]
    values = ", ".join(f"({place}, {text})" for place, text in enumerate(listed))
    from sqlglot import exp

    known, text = dialect_of(dialect), Typed(exp.column("s", "t"), Kind(TEXT))
    chosen = []
    for place, pattern in enumerate(patterns):
        node = exp.RegexpLike(this=text.node, expression=exp.Literal.string(pattern))
        found = known.forms["match"](node, [text], known)
        chosen.append(exp.alias_(found.node, f"c{place}").sql(dialect=dialect))
    statement = f"SELECT {', '.join(chosen)} FROM (VALUES {values}) AS t(n, s) ORDER BY t.n"
    found = database._engine.fetch(statement)
    return {p: found.column(f"c{i}").to_pylist() for i, p in enumerate(patterns)}


def in_python(pattern: str) -> list[bool]:
    """Return what the pattern means: Python's own, with the same reading of dots and ends."""
    meant = translated(pattern, "$").replace("$", r"\Z") if "$" in pattern else pattern
    meant = meant.replace(r"\\Z", r"\$")
    return [bool(re.search(meant, text, re.ASCII)) for text in TEXTS]


def random_patterns(seed: int, count: int) -> list[str]:
    """Return random patterns that are supported."""
    draw = random.Random(seed)
    atoms = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "é", "-", "1", r"\.", "[a-z]", r"\s"]

    def piece(depth: int) -> str:
        if depth and draw.random() < 0.25:
            parts = [piece(depth - 1) for _ in range(draw.randint(1, 2))]
            inner = draw.choice(["|", ""]).join(parts)
            return f"({inner})" + draw.choice(["", "", "?", "{2}"])
        return draw.choice(atoms) + draw.choice(["", "", "", "*", "+", "?", "{2}", "{1,2}"])

    found: list[str] = []
    while len(found) < count:
        body = "".join(piece(2) for _ in range(draw.randint(1, 4)))
        pattern = draw.choice(["", "", "^"]) + body + draw.choice(["", "", "$"])
        try:
            translated(pattern, dialect_of("spark").pattern_end)
        except Impossible:
            continue
        found.append(pattern)
    return found


def test_duckdb_and_postgresql_find_the_same(postgres_url: str) -> None:
    one, other = in_duckdb(rows("duckdb")), in_postgres(postgres_url, rows("postgres"))
    patterns = [*PATTERNS, *random_patterns(1, 200)]
    left, right = matches(one, patterns), matches(other, patterns)
    assert {p: left[p] for p in patterns if left[p] != right[p]} == {}
    plain = [p for p in PATTERNS if "$" not in p and "." not in p.replace(r"\.", "")]
    assert {p: left[p] for p in plain if left[p] != in_python(p)} == {}
    other.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_duckdb_and_spark_find_the_same(spark_session: Any) -> None:
    patterns = [*PATTERNS, *random_patterns(2, 200)]
    left = matches(in_duckdb(rows("duckdb")), patterns)
    right = matches(in_spark(spark_session, rows("spark")), patterns)
    assert {p: (left[p], right[p]) for p in patterns if left[p] != right[p]} == {}


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_engines_do_not_agree_on_is_refused(pattern: str) -> None:
    for dialect in ("duckdb", "postgres", "spark"):
        with pytest.raises(Impossible):
            translated(pattern, dialect_of(dialect).pattern_end)


def test_no_pattern_takes_forever() -> None:
    """Python's engine backtracks as Java's does: the worst that is let through is bounded."""
    worst = ["a*" * MOST_ENDLESS + "$b", "(a|a)?" * 6 + "b", "a?" * 9 + "b", "a{0,9}" * 2 + "b"]
    for pattern in [*worst, *random_patterns(3, 100)]:
        started = time.process_time()
        re.search(translated(pattern, "$"), "a" * 60)
        assert time.process_time() - started < 2, pattern


def test_the_twin_that_runs_what_was_written_is_caught(postgres_url: str) -> None:
    """Run as it was written, a dot matches a line feed in PostgreSQL and not in DuckDB."""
    one, other = in_duckdb(rows("duckdb")), in_postgres(postgres_url, rows("postgres"))
    found = [
        one._engine.fetch("SELECT REGEXP_MATCHES('a\nb', 'a.b') AS c").column("c")[0].as_py(),
        other._engine.fetch("SELECT 'a\nb' ~ 'a.b' AS c").column("c")[0].as_py(),
    ]
    assert found == [False, True]
    assert failing(one, ["REGEXP_MATCHES(x.s, 'a.b')"]) == []
    other.close()
