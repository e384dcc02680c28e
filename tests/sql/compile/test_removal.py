"""The property that privacy rests on: the relation of the database without somebody is the
relation of the whole database with that participant struck out. Checked against rows that are
really deleted, and against DuckDB's own answer to the question as it was written. Random statements
are in ``test_grammar``."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.drawn import Drawn
from tests.sql.sql_questions import GROUPED, IN_DUCKDB, QUESTIONS
from tests.sql.sql_worlds import (
    Rows,
    connect,
    everyone,
    load,
    random_world,
    summary,
    take_away,
    taking_part,
    without,
)

import tulle.sql.compile.derivations
import tulle.sql.compile.gather
import tulle.sql.compile.rewrite
import tulle.sql.compile.select_rewriter
import tulle.sql.question.aggregate
from tulle.core.errors import QueryError
from tulle.sql.compile.gather import gather
from tulle.sql.data import Database
from tulle.sql.queries import SqlQuery, gather_tuples, one_aggregate, relation_of, sql

SEEDS = (1, 2)
WIDE = "SELECT COUNT(*) FROM edge x JOIN edge y ON x.b = y.a"


@lru_cache(maxsize=4)
def world(seed: int) -> tuple[Rows, Database, Any, dict[Any, Database]]:
    """Return rows, their database, a plain connection to rows that take part, and neighbours."""
    rows = random_world(seed)
    plain = load(duckdb.connect(), taking_part(rows))
    smaller = {who: connect(take_away(rows, who)) for who in sorted(everyone(rows))}
    return rows, connect(rows), plain, smaller


def differences(question: SqlQuery, seed: int) -> Iterator[str]:
    """Yield every way in which a question's relation is not what it has to be."""
    _, database, plain, smaller = world(seed)
    gathered = gather_tuples(database, question)
    totals = [relation.total for relation in gathered.relations]
    if not question.groups:
        written = IN_DUCKDB.get(question.text, question.text)
        truth = plain.execute(written).fetchone()[0] or 0
        if not np.isclose(totals[0], float(truth)):
            yield f"total {totals[0]}, but the answer is {truth}"
    if not np.allclose(totals, question.truth(database)):
        yield f"totals {totals}, but truth says {question.truth(database)}"
    # The statement follows from the public schema, which all neighbours share.
    rewritten = question.rewrite(database.schema)
    for who, left in smaller.items():
        fresh = gather(rewritten, left._engine.fetch(rewritten.text))
        found = [summary(relation, fresh.names) for relation in fresh.relations]
        if found != without(gathered, who):
            yield f"{who} leaves: {found} instead of {without(gathered, who)}"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("text", QUESTIONS)
def test_leaving_strikes_a_participant_out_of_the_relation(text: str, seed: int) -> None:
    assert list(differences(sql(text), seed)) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("text", "groups"), GROUPED)
def test_groups_have_relations_of_their_own(text: str, groups: Any, seed: int) -> None:
    assert list(differences(one_aggregate(text, groups=groups), seed)) == []


SIDES = (
    *("SELECT id FROM person", "SELECT cust FROM orders", "VALUES (1), (2)"),
    *("SELECT LENGTH(name) FROM city", "SELECT DISTINCT b FROM edge"),
)


def chained(draw: random.Random, depth: int) -> str:
    """Return rows that are put together again and again, with brackets and without."""
    if not depth:
        return draw.choice(SIDES)
    word = draw.choice(("UNION", "UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT"))
    deep, flat = chained(draw, depth - 1), chained(draw, draw.randrange(depth))
    sides = [draw.choice(("{}", "({})")).format(side) for side in (deep, flat)]
    draw.shuffle(sides)
    return f" {word} ".join(sides)


def unanswered(seeds: Iterable[int]) -> Iterator[str]:
    """Yield what is wrong with such rows; what is refused is refused in words."""
    for seed in seeds:
        text = f"SELECT COUNT(*) FROM ({chained(random.Random(seed), 1 + seed % 3)}) t"
        try:
            yield from differences(sql(text), 1)
        except QueryError:
            continue
        except ValueError as error:
            yield f"{text}: {error}"


def test_chains_of_set_operations_are_answered_or_refused() -> None:
    assert list(unanswered(range(50, 90))) == []


def test_a_chain_of_which_too_little_is_known_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def tells(self: Any, terms: Any) -> bool:
        (found,) = terms
        return any(not way for _, way in found)

    rewriter = tulle.sql.compile.select_rewriter.Rewriter
    monkeypatch.setattr(rewriter, "_tells_owner", tells)
    assert any("not enough values" in found for found in unanswered(range(50, 90)))


@pytest.mark.slow
@pytest.mark.timed(3)
def test_leaving_on_more_worlds(drawn: Drawn) -> None:
    for seed in drawn.seeds():
        for text in QUESTIONS:
            assert list(differences(sql(text), seed)) == [], (seed, text)
        for text, groups in GROUPED:
            found = differences(one_aggregate(text, groups=groups), seed)
            assert list(found) == [], (seed, text)


def test_neighbours_are_the_databases_with_rows_deleted() -> None:
    _, database, _, smaller = world(1)
    assert database.participants() == sorted(smaller)
    for text in QUESTIONS[::7]:
        for who, neighbour in zip(smaller, database.neighbours("participant"), strict=True):
            assert sql(text).truth(neighbour) == pytest.approx(sql(text).truth(smaller[who]))


# --- broken twins: the same check must catch each -----------------------------------------------


def forget_distinct(patch: pytest.MonkeyPatch) -> str:
    true = tulle.sql.question.aggregate.find_aggregate
    patch.setattr(
        tulle.sql.compile.rewrite,
        "find_aggregate",
        lambda tree: dataclasses.replace(true(tree), distinct=False),
    )
    return "SELECT COUNT(DISTINCT a) FROM edge"


def forget_null(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(
        tulle.sql.compile.rewrite,
        "_is_there",
        lambda argument: tulle.sql.compile.rewrite.exp.true(),
    )
    return "SELECT COUNT(note) FROM orders"


def forget_an_owner_of_a_join(patch: pytest.MonkeyPatch) -> str:
    true = tulle.sql.compile.select_rewriter.Rewriter.table

    def table(self: Any, source: Any) -> Any:
        form = true(self, source)
        return dataclasses.replace(form, slots=form.slots[:1], origins=form.origins[:1])

    patch.setattr(tulle.sql.compile.select_rewriter.Rewriter, "table", table)
    return WIDE


def forget_the_other_side_of_a_join(patch: pytest.MonkeyPatch) -> str:
    seen: list[Any] = []

    def is_new(self: Any, entity: str, origin: Any) -> bool:
        seen.append(self)
        return sum(one is self for one in seen) <= 2

    patch.setattr(tulle.sql.compile.select_rewriter._Repetitions, "is_new", is_new)
    return "SELECT COUNT(*) FROM edge x, edge y WHERE x.w < y.w"


def take_union_for_union_all(patch: pytest.MonkeyPatch) -> str:
    true = tulle.sql.compile.derivations.union
    patch.setattr(
        tulle.sql.compile.select_rewriter,
        "union",
        lambda *args, distinct, **kw: true(*args, distinct=False, **kw),
    )
    return "SELECT COUNT(*) FROM (SELECT a FROM edge UNION SELECT b FROM edge) u"


def count_every_witness(patch: pytest.MonkeyPatch) -> str:
    true = tulle.sql.compile.select_rewriter.Rewriter.block

    def block(self: Any, tree: Any, views: Any, **more: Any) -> Any:
        made = true(self, tree, views, **more)
        made.items += made.witnesses
        made.witnesses = []
        return made

    patch.setattr(tulle.sql.compile.select_rewriter.Rewriter, "block", block)
    return "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM edge WHERE a = p.id)"


def keep_one_way(patch: pytest.MonkeyPatch) -> str:
    def first(starts: Any, ways: Any, rows: Any, count: int) -> Any:
        kept = np.zeros(len(ways), dtype=bool)
        kept[starts[:-1]] = True
        return kept

    patch.setattr(tulle.sql.compile.gather, "least_alternatives", first)
    return "SELECT COUNT(DISTINCT w) FROM edge"


def forget_the_way_to_an_owner(patch: pytest.MonkeyPatch) -> str:
    """The annotation of a row found over a path leaves out who owns the rows on the way."""
    true = tulle.sql.compile.select_rewriter.Rewriter.table

    def table(self: Any, source: Any) -> Any:
        form = true(self, source)
        far = self.named.table(source) == "item"
        return dataclasses.replace(form, slots=(), origins=()) if far else form

    patch.setattr(tulle.sql.compile.select_rewriter.Rewriter, "table", table)
    return "SELECT COUNT(*) FROM item"


TWINS: list[Callable[[pytest.MonkeyPatch], str]] = [
    forget_distinct,
    forget_null,
    forget_an_owner_of_a_join,
    forget_the_other_side_of_a_join,
    take_union_for_union_all,
    count_every_witness,
    keep_one_way,
    forget_the_way_to_an_owner,
]


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_caught(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = twin(monkeypatch)
    assert any(list(differences(sql(text), seed)) for seed in SEEDS)
    monkeypatch.undo()
    assert not any(list(differences(sql(text), seed)) for seed in SEEDS)


def test_tuples_with_equal_owners_are_merged_before_they_are_fetched() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE edge AS SELECT i % 3 AS a, i % 2 AS b FROM range(600) t(i)")
    database = Database.connect(connection, owners={"edge": ["a", "b"]})
    question = sql("SELECT COUNT(*) FROM edge x, edge y")
    rewritten = question.rewrite(database.schema)
    fetched = database._engine.fetch(rewritten.text)
    assert fetched.num_rows <= 3**4
    relation = relation_of(database, question)
    assert relation.total == 360_000
    assert len(relation.weights) == 6


def test_a_database_without_rows_answers_zero() -> None:
    empty = connect({table: [] for table in random_world(1)})
    for text in QUESTIONS[::3]:
        if "SELECT 21" in text:
            continue
        relation = relation_of(empty, sql(text))
        assert relation.total == sql(text).truth(empty) == relation.count == 0
    for text, groups in GROUPED:
        assert not one_aggregate(text, groups=groups).truth(empty).any()
