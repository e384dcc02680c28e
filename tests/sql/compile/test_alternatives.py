"""Normal forms on arrays, against the same on sets, and how fast they are."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

from tulle.relations.annotations import Either, Participant, either, together
from tulle.sql.compile.alternatives import NOBODY, least_alternatives, merge_equal

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")


def random_tuples(seed: int) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(seed)
    sets = {tuple(sorted(set(generator.integers(0, 6, 3).tolist()))) for _ in range(30)}
    sets |= {(int(p),) for p in generator.integers(0, 6, 2)}
    rows = np.full((len(sets), 3), NOBODY)
    for place, members in enumerate(sorted(sets)):
        rows[place, : len(members)] = members
    sizes = generator.integers(1, 7, 40)
    ways = [np.sort(generator.choice(len(rows), size, replace=False)) for size in sizes]
    return np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(ways), rows


def members(row: Any) -> frozenset[int]:
    return frozenset(p for p in row.tolist() if p != NOBODY)


@pytest.mark.parametrize("seed", range(20))
def test_ways_that_contain_another_are_struck(seed: int) -> None:
    starts, ways, rows = random_tuples(seed)
    kept = least_alternatives(starts, ways, rows, 6)
    for low, high in itertools.pairwise(starts):
        sets = [members(rows[way]) for way in ways[low:high]]
        expected = [not any(other < mine for other in sets) for mine in sets]
        assert kept[low:high].tolist() == expected
        whole = either(*(together(*map(Participant, s)) for s in sets)).normal_form()
        left = {s for s, k in zip(sets, kept[low:high], strict=True) if k}
        assert left == set(whole.clauses())


@pytest.mark.parametrize("seed", range(10))
def test_equal_tuples_are_added_up_and_others_kept_apart(seed: int) -> None:
    starts, ways, _ = random_tuples(seed)
    starts = np.concatenate([starts, starts[-1] + starts[1:]])
    ways = np.concatenate([ways, ways])
    generator = np.random.default_rng(seed)
    weights = generator.choice([-2.0, 1.0, 3.0], len(starts) - 1)
    expected: dict[Any, float] = {}
    for low, high, weight in zip(starts[:-1], starts[1:], weights, strict=True):
        key = (tuple(ways[low:high].tolist()), bool(weight > 0))
        expected[key] = expected.get(key, 0.0) + weight
    merged_starts, merged_ways, sums = merge_equal(starts, ways, weights)
    found = {
        (tuple(merged_ways[low:high].tolist()), bool(total > 0)): total
        for low, high, total in zip(merged_starts[:-1], merged_starts[1:], sums, strict=True)
    }
    assert found == expected
    assert len(sums) == len(expected)


def test_nothing_is_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    starts, ways, sums = merge_equal(np.zeros(1, dtype=np.int64), none, np.zeros(0))
    assert (len(starts), len(ways), len(sums)) == (1, 0, 0)


def test_many_tuples_with_several_ways_are_gathered_fast() -> None:
    from tulle.sql.data import Database
    from tulle.sql.queries import gather_tuples, sql

    connection = duckdb.connect()
    # Every item is bought by three people.
    connection.execute(
        "CREATE TABLE sale AS SELECT i // 3 AS item, (i * 7919) % 50000 AS person "
        "FROM range(300000) t(i)"
    )
    database = Database.connect(connection, owners={"sale": "person"})
    question = sql("SELECT COUNT(DISTINCT item) FROM sale")
    rewritten = question.rewrite(database.schema)
    began = time.process_time()
    database._engine.fetch(rewritten.text)
    fetched = time.process_time()
    relation = gather_tuples(database, question).relations[0]
    done = time.process_time()
    assert relation.total == 100_000
    assert all(isinstance(note, Either) for note, _ in relation.general[:100])
    # A loop over tuples in Python takes twenty times as long as the engine.
    assert done - fetched < 8 * (fetched - began) + 4
