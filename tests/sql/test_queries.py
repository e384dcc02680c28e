"""A question in SQL is bound to its database once; everything after uses the bound form."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import pytest

import tulle
from tulle.core.errors import QueryError
from tulle.core.query import Query
from tulle.sql.queries import SqlQuery, sql

SOURCE = str(Path(tulle.__file__).parent)

ONCE = {
    "parse_statement": "the text is parsed",
    "rewrite": "the statement is rewritten",
    "resolve": "its names are resolved",
    "resolved_text": "its one spelling is written",
    "total_statement": "it is compiled to what cannot fail",
}
"""Functions that do work on a whole statement, each needed once for a question."""

NEVER = {
    "parse_owner": "an owner is parsed",
    "from_json": "the schema is read from its public facts",
    "_follow": "the paths to owners are followed",
}
"""What connecting has done already."""


@contextmanager
def traced() -> Iterator[Counter[str]]:
    """Count the calls of functions of ours by name."""
    found: Counter[str] = Counter()

    def listen(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            module = code.co_filename[len(SOURCE) :]
            # Methods of the class SqlQuery have names of functions that they only call.
            if not module.endswith("/queries.py") and "/sql/" in module:
                found[code.co_name] += 1

    sys.setprofile(listen)
    try:
        yield found
    finally:
        sys.setprofile(None)


@pytest.fixture
def clinic() -> Any:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE person AS SELECT range AS id FROM range(40)").fetchall()
    connection.execute(
        "CREATE TABLE visit AS SELECT range AS number, range % 40 AS who, range % 3 AS day, "
        "CAST(range % 7 AS DOUBLE) AS price FROM range(200)"
    ).fetchall()
    connection.execute(
        "CREATE TABLE item AS SELECT range % 200 AS visit, range % 5 AS kind FROM range(300)"
    ).fetchall()
    return tulle.Database.connect(
        connection,
        owners={"person": "id", "visit": "who", "item": "visit -> visit[number].who"},
        ranges={"visit.price": (0, 10)},
    )


ASKED: dict[str, Callable[[], SqlQuery]] = {
    "count": lambda: sql("SELECT COUNT(*) FROM visit"),
    "sum by day": lambda: sql(
        "SELECT day, SUM(price) FROM visit GROUP BY day", groups={"day": [0, 1, 2]}
    ),
    "join": lambda: sql("SELECT COUNT(*) FROM visit JOIN item ON visit = number"),
    "several people": lambda: sql("SELECT COUNT(*) FROM visit x JOIN visit y ON x.day = y.day"),
    "distinct": lambda: sql("SELECT COUNT(DISTINCT kind) FROM item"),
}


def walk(clinic: Any, make: Callable[[], Query], folder: Path, **options: Any) -> Counter[str]:
    """Build a question, plan it, ask it of a ledger, ask again, and count what happens."""
    ledger = tulle.Ledger(folder / "study.ledger")
    study = ledger.open("study", clinic, unit="participant", epsilon=10)
    with traced() as found:
        study.ask(make(), epsilon=1.0, **options)
    return found


def faults(found: Counter[str], questions: int) -> list[str]:
    """Say what was done more or less often than once for each question."""
    wrong = [f"{why} {found[name]} times" for name, why in ONCE.items() if found[name] != questions]
    return wrong + [f"{why} again" for name, why in NEVER.items() if found[name]]


@pytest.mark.parametrize("name", ASKED)
def test_a_question_is_rewritten_once(clinic: Any, name: str, tmp_path: Path) -> None:
    assert faults(walk(clinic, ASKED[name], tmp_path), 1) == []


def test_a_release_without_a_ledger_rewrites_once(clinic: Any) -> None:
    with traced() as found:
        tulle.release(clinic, ASKED["count"](), unit="participant", epsilon=1.0)
    assert faults(found, 1) == []


def test_a_leaf_that_occurs_twice_is_rewritten_once(clinic: Any, tmp_path: Path) -> None:
    def share() -> Query:
        part, rest = ASKED["count"](), sql("SELECT SUM(price) FROM visit")
        return part / (part + rest)

    assert faults(walk(clinic, share, tmp_path), 2) == []


def test_a_bound_question_asked_again_is_not_rewritten(clinic: Any) -> None:
    bound = ASKED["join"]().bind(clinic)
    with traced() as found:
        for _ in range(2):
            tulle.release(clinic, bound, unit="participant", epsilon=1.0)
    assert faults(found, 0) == []


def test_the_report_of_a_ledger_reads_the_bound_form(clinic: Any, tmp_path: Path) -> None:
    study = tulle.Ledger(tmp_path / "study.ledger").open(
        "study", clinic, unit="participant", epsilon=10
    )
    question = ASKED["count"]()
    study.ask(question, epsilon=1.0)
    with traced() as found:
        study.report()
    assert (found["parse_statement"], found["rewrite"]) == (1, 1)
    with traced() as found:
        study.report(questions=[question.bind(clinic)])
    assert (found["parse_statement"], found["rewrite"]) == (0, 1)


def test_a_stand_in_is_bound_once_for_all_predictions(clinic: Any) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit (who INTEGER, price DOUBLE)").fetchall()
    connection.execute("INSERT INTO visit SELECT range % 9, 1 FROM range(30)").fetchall()
    stand_in = tulle.Database.connect(
        connection, owners={"visit": "who"}, ranges={"visit.price": (0, 10)}
    )
    question = ASKED["count"]() / sql("SELECT SUM(price) FROM visit")
    with traced() as found:
        tulle.release(clinic, question, unit="participant", epsilon=1.0, like=stand_in)
    assert found["rewrite"] == 4  # two questions, of two databases
    assert found["parse_statement"] == 0  # that was when they were built


TWINS: dict[str, tuple[str, Callable[..., Any]]] = {
    "the plan forgets the bound form": (
        "tulle.sql.queries.SqlQuery.bind",
        lambda self, public, facts: self,
    ),
    "the run rewrites for itself": (
        "tulle.sql.queries.SqlQuery.rewrite",
        lambda self, schema, gone=None: self._rewrite(schema, gone),
    ),
    "settings bind again": (
        "tulle.sql.mechanisms.truncation.bound_query",
        lambda terms: terms.query.bound_to(terms.facts),
    ),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_version_that_rewrites_twice_is_caught(
    clinic: Any, twin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*TWINS[twin])
    found = walk(clinic, ASKED["count"], tmp_path)
    assert any("rewritten" in fault for fault in faults(found, 1))


def test_owners_of_another_database_are_looked_up_anew() -> None:
    """A question bound to one database keeps nothing of it when it is asked of another."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE call AS SELECT 1 AS a, 2 AS b").fetchall()
    callers = tulle.Database.connect(connection, owners={"call": "a"})
    both = tulle.Database.connect(connection, owners={"call": ["a", "b"]})
    question = sql("SELECT COUNT(*) FROM call").bind(callers)
    assert question.single_owner
    again = question.bind(both)
    assert not again.single_owner
    found = tulle.release(both, question, unit="participant", epsilon=1.0).parameters
    assert found["single_owner"] is False
    assert question.rewrite(both.schema).text == sql(question.text).rewrite(both.schema).text


def test_a_neighbour_has_a_statement_of_its_own(clinic: Any) -> None:
    question = ASKED["count"]().bind(clinic)
    fewer = clinic.without("participant", 7)
    assert question.rewrite(fewer.schema, fewer._gone).text != question.rewrite(fewer.schema).text
    assert question.truth(fewer) == 195
    again = question.bind(fewer)
    # What is bound does not depend on who is there.
    assert again.bound is question.bound


def test_a_bound_question_is_checked_again(clinic: Any) -> None:
    question = ASKED["count"]().bind(clinic)
    clinic._engine._connection.execute("ALTER TABLE visit DROP COLUMN price").fetchall()
    with pytest.raises(QueryError, match="Connect again"):
        question.bind(clinic)
