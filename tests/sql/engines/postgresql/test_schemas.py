"""Random schemas of PostgreSQL: no row ends a statement, and who leaves is struck out of relations.

Whoever leaves is deleted, and the statement is run again; see :mod:`tests.sql.postgresql_schemas`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.drawn import Drawn
from tests.sql.compile.test_removal import forget_an_owner_of_a_join
from tests.sql.postgresql_schemas import SETUP, World

import tulle
from tulle.core.errors import QueryError
from tulle.sql.compile.gather import Gathered, gather
from tulle.sql.engines.base import EngineError
from tulle.sql.engines.postgresql import conversions
from tulle.sql.engines.postgresql.dialect import PostgreSQLDialect
from tulle.sql.expressions import kinds
from tulle.sql.queries import SqlQuery, sql

QUESTIONS = 12
"""So many are asked of each schema; about half are answered."""

Summary = dict[tuple[frozenset[frozenset[Any]], bool], float]


def summary(found: Gathered, gone: Any = None) -> list[Summary]:
    """Return the total weight of every annotation, after somebody has been struck out."""
    made = []
    for whole in found.relations:
        struck = gone in found.names
        relation = whole.without(found.names.index(gone)) if struck else whole
        totals: Summary = {}
        for note, weight in relation.annotations():
            clauses = note.normal_form().clauses()
            ways = frozenset(frozenset(found.names[p] for p in clause) for clause in clauses)
            totals[ways, weight > 0] = totals.get((ways, weight > 0), 0.0) + weight
        made.append(totals)
    return made


def are_equal(one: list[Summary], other: list[Summary]) -> bool:
    """Say whether two are the same but for the rounding of sums."""
    for a, b in zip(one, other, strict=True):
        near = 1e-12 * max((abs(w) for w in (*a.values(), *b.values())), default=0.0) + 1e-9
        if any(not math.isclose(a.get(k, 0), b.get(k, 0), abs_tol=near) for k in {*a, *b}):
            return False
    return True


def bound(database: Any, texts: Iterable[str]) -> dict[str, SqlQuery]:
    """Return the questions that the schema answers."""
    found = {}
    for text in texts:
        try:
            found[text] = sql(text).bind(database)
        except QueryError:
            continue
    return found


def wrong(url: str, seeds: Iterable[int]) -> Iterator[str]:
    """Yield every statement that ends at a row, and relations that are not what they have to be."""
    import adbc_driver_postgresql.dbapi as driver

    answered = 0
    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:

        def run(statements: Iterable[str]) -> None:
            for statement in statements:
                cursor.execute(statement)

        run(SETUP)
        for seed in seeds:
            world = World(seed)
            run([*world.statements, *world.load()])
            here = f"{url}&options=-csearch_path%3D{world.space}"
            with closing(tulle.Database.connect(here, **world.declared())) as database:
                asked = bound(database, world.questions(QUESTIONS))

                def gathered(question: SqlQuery, database: Any = database) -> Gathered | None:
                    rewritten = question.rewrite(database.schema)
                    try:
                        return gather(rewritten, database._engine.fetch(rewritten.text))
                    except EngineError:
                        return None

                whole = {text: gathered(question) for text, question in asked.items()}
                answered += len(whole)
                try:
                    people = database.participants()
                except EngineError:
                    people = []
                    yield f"{seed}: who takes part cannot be listed"
                for gone in people:
                    run([*world.load(), *world.leave(gone[1])])
                    for text, question in asked.items():
                        before, left = whole[text], gathered(question)
                        if before is None or left is None:
                            yield f"{seed}: {text} ended"
                        elif not are_equal(summary(left), summary(before, gone)):
                            yield f"{seed}: {text} when {gone} leaves"
            run([f"DROP SCHEMA {world.space} CASCADE"])
    assert answered


def test_leaving_in_a_random_schema(postgres_url: str) -> None:
    assert list(wrong(postgres_url, [103])) == []


@pytest.mark.slow
@pytest.mark.timed(2)
def test_leaving_in_random_schemas(postgres_url: str, drawn: Drawn) -> None:
    assert list(wrong(postgres_url, drawn.seeds())) == []


# --- broken versions: the same check must catch each ----------------------------------------------


def read_every_column_in_its_collation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PostgreSQLDialect, "text_collation", None)


def cast_texts_that_are_no_numbers(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(conversions._STEPS, (kinds.TEXT, kinds.DOUBLE), conversions._plain)


TWINS = [
    (read_every_column_in_its_collation, 103, "ended"),
    (cast_texts_that_are_no_numbers, 100, "ended"),
    (forget_an_owner_of_a_join, 101, "leaves"),
]
"""With a schema in which each is caught, and what is wrong there."""


@pytest.mark.parametrize(("twin", "seed", "what"), TWINS)
def test_a_broken_twin_is_caught(
    twin: Any, seed: int, what: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin(monkeypatch)
    assert what in next(wrong(postgres_url, [seed]), "")
