"""Columns of any types that Spark has, linked at random, with somebody's rows really deleted.

What the relation says is left when somebody leaves is what Spark gives without their rows. Whose a
row of ``item`` is, is known apart from its key, so that a row whose key leads to two people shows.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from tests.drawn import Drawn, are_enough
from tests.sql.spark_types import SPARK, taken
from tests.sql.sql_worlds import Summary, summary, without

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.sql.compile.gather import Gathered
from tulle.sql.compile.select_rewriter import Rewriter
from tulle.sql.queries import gather_tuples

PEOPLE = (1, 2, 3)


class World:
    """Made-up rows of two tables: of columns of random types, and whose each row is."""

    def __init__(self, seed: int, session: Any) -> None:
        self.draw = draw = random.Random(seed)
        self.session = session
        self.types = {name: draw.choice(list(SPARK)) for name in ("v", "w", "k")}
        # A key is mostly met by keys of its own type, or of one that is like it.
        alike = [name for name in SPARK if name.split("(")[0] == self.types["k"].split("(")[0]]
        self.types["r"] = draw.choice([*alike, *SPARK])
        pools = {name: self.texts(kind, session) for name, kind in self.types.items()}
        keys = draw.sample(sorted({*pools["k"]}), min(len(pools["k"]), 2 * len(PEOPLE)))
        self.people = [
            (1 + place % len(PEOPLE), self.pick(pools["v"]), self.pick(pools["w"]), key)
            for place, key in enumerate(keys)
        ]
        mine = [(who, key) for who, *_, key in self.people if key in pools["r"]]
        self.items = [
            (*draw.choice(mine), self.pick(pools["v"]), draw.randint(-2, 3))
            for _ in range(5 if mine else 0)
        ]

    def texts(self, kind: str, session: Any) -> Sequence[str]:
        found = taken(session)[kind]
        return self.draw.sample(found, min(len(found), 9))

    def pick(self, pool: Sequence[str]) -> str | None:
        return self.draw.choice([*pool[:3], *pool[:3], None]) if pool else None

    def connect(self, gone: int | None) -> tulle.Database:
        """Return the database without somebody's rows."""
        kinds = {"person": "id INT, v STRING, w STRING, k STRING"}
        kinds["item"] = "mine INT, r STRING, v STRING, n INT"
        for table, rows in (("person", self.people), ("item", self.items)):
            left = [row for row in rows if row[0] != gone]
            frame = self.session.createDataFrame(left, kinds[table])
            chosen = [
                f"{SPARK[self.types[name]].format(name)} AS {name}" if name in self.types else name
                for name in frame.columns
                if name != "mine"
            ]
            frame = frame.selectExpr(*chosen)
            frame.localCheckpoint().createOrReplaceTempView(table)
        owners = {"person": "id", "item": "r -> person[k]"}
        return tulle.Database.connect(self.session, owners=owners)

    def has_keys_of_one_value(self) -> bool:
        """Say whether two people's keys are one value, so that they share what is below it."""
        frame = self.session.createDataFrame([(key,) for *_, key in self.people], "k STRING")
        frame = frame.selectExpr(f"{SPARK[self.types['k']].format('k')} AS k")
        if self.types["k"].startswith(("map", "variant")):
            # Spark compares none of these.
            frame = frame.selectExpr("TO_JSON(STRUCT(k)) AS k")
        return bool(frame.distinct().count() < len(self.people))

    def question(self) -> str:
        """Return a random statement over both tables."""
        draw = self.draw
        total = draw.choice(["COUNT(*)", "SUM(q.n)", "COUNT(q.v)", "COUNT(DISTINCT q.v)"])
        return f"SELECT {total} FROM ({self.rows(draw.randint(0, 1))}) q"

    def rows(self, depth: int) -> str:
        """Return rows with the columns id, v and n."""
        draw = self.draw
        if depth == 0:
            return draw.choice(
                [
                    "SELECT id, v, 1 AS n FROM person",
                    "SELECT id, w AS v, 2 AS n FROM person",
                    "SELECT 1 AS id, v, n FROM item",
                    "SELECT p.id, i.v, i.n FROM person p JOIN item i ON p.v = i.v",
                    "SELECT p.id, i.v, i.n FROM person p JOIN item i ON p.k = i.r",
                    "SELECT p.id, p.v, 1 AS n FROM person p JOIN person o ON p.v = o.v",
                    "SELECT p.id, CAST(p.v AS TEXT) AS v, 1 AS n FROM person p",
                ]
            )
        a, b = self.rows(depth - 1), self.rows(depth - 1)
        return draw.choice(
            [
                f"SELECT DISTINCT id, v, n FROM ({a}) s",
                f"SELECT DISTINCT 1 AS id, v, 1 AS n FROM ({a}) s",
                *(f"{a} {word} {b}" for word in ("UNION", "UNION ALL", "INTERSECT")),
                f"SELECT id, MAX(v) AS v, COUNT(*) AS n FROM ({a}) s GROUP BY id",
                f"SELECT id, v, COUNT(*) AS n FROM ({a}) s GROUP BY id, v",
                f"SELECT s.id, s.v, s.n FROM ({a}) s WHERE EXISTS "
                f"(SELECT 1 FROM ({b}) t WHERE s.v = t.v)",
                f"SELECT s.id, s.v, s.n FROM ({a}) s WHERE NOT EXISTS "
                f"(SELECT 1 FROM ({b}) t WHERE s.id = t.id AND s.v < t.v)",
                f"SELECT s.id, s.v, t.n FROM ({a}) s LEFT JOIN ({b}) t ON s.id = t.id",
                f"SELECT id, v, n FROM (SELECT s.*, ROW_NUMBER() OVER (PARTITION BY id "
                f"ORDER BY v, n) AS o FROM ({a}) s) x WHERE o = 1",
                f"SELECT id, v, n FROM ({a}) s WHERE v IN (SELECT v FROM ({b}) t)",
                f"SELECT id, v, LENGTH(CAST(v AS TEXT)) AS n FROM ({a}) s WHERE v IS NOT NULL",
            ]
        )


def gathered(world: World, gone: int | None, texts: Iterable[str]) -> dict[str, Gathered]:
    """Return the relations of what is answered; the others are refused."""
    found = {}
    database = world.connect(gone)
    for text in texts:
        try:
            found[text] = gather_tuples(database, tulle.sql(text).bind(database))  # type: ignore[arg-type]
        except QueryError:
            continue
    database.close()
    return found


def left_by(found: Gathered, who: int) -> list[Summary]:
    return without(found, ("participant", who))


def differences(seeds: Iterable[int], session: Any, each: int = 6) -> Iterator[tuple[str, int]]:
    """Yield what is wrong with random worlds, and how many questions each of them answered."""
    for seed in seeds:
        world = World(seed, session)
        texts = [world.question() for _ in range(each)]
        try:
            whole = gathered(world, None, texts)
        except InputError:
            yield "", 0
            continue
        if not whole or world.has_keys_of_one_value():
            yield "", 0
            continue
        for who in PEOPLE:
            left = gathered(world, who, texts)
            if left.keys() != whole.keys():
                yield f"{seed}: {who} leaves, and other questions are answered", 0
            for text in left.keys() & whole.keys():
                rest = left[text]
                if [summary(one, rest.names) for one in rest.relations] != left_by(
                    whole[text], who
                ):
                    yield f"{seed}: {who} leaves {text} {world.types}", 0
        yield "", len(whole)


def check(seeds: Iterable[int], session: Any, least: float) -> None:
    found = list(differences(seeds, session))
    assert [wrong for wrong, _ in found if wrong] == []
    assert are_enough(sum(answered for _, answered in found), len(found), least)


EVERY_DAY = (6,)


@pytest.mark.filterwarnings("ignore")
def test_leaving_strikes_somebody_out_of_what_spark_gives(spark_session: Any) -> None:
    check(EVERY_DAY, spark_session, 2)


@pytest.mark.filterwarnings("ignore")
def test_a_row_whose_owner_is_forgotten_is_caught(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = Rewriter.table

    def table(self: Rewriter, source: Any) -> Any:
        form = true(self, source)
        forgotten = self.named.table(source) == "person"
        return dataclasses.replace(form, slots=(), origins=()) if forgotten else form

    monkeypatch.setattr(Rewriter, "table", table)
    assert any(wrong for wrong, _ in differences(EVERY_DAY, spark_session))


@pytest.mark.slow
@pytest.mark.timed(5)
@pytest.mark.filterwarnings("ignore")
def test_leaving_in_many_worlds_of_spark(drawn: Drawn, spark_session: Any) -> None:
    check(drawn.seeds(), spark_session, 0.2)
