from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tulle.relations.alternatives import Alternatives
from tulle.relations.data import Relation
from tulle.relations.truncation.totals import truncate

NOBODY = 9
COUNT = 5


def made_up(seed: int) -> tuple[Relation, Relation]:
    """Return one relation twice: with arrays, and with expressions."""
    generator = np.random.default_rng(seed)
    starts, rows = [0], []
    for _ in range(int(generator.integers(1, 5))):
        # Ways of one size that differ contain no other.
        size = int(generator.integers(1, 3))
        seen = {
            tuple(sorted(generator.choice(COUNT, size, replace=False).tolist())) for _ in range(6)
        }
        ways = sorted(seen)[: int(generator.integers(2, 4))]
        rows += [[*way, *[NOBODY] * (3 - size)] for way in ways]
        starts.append(len(rows))
    weights = generator.integers(1, 9, len(starts) - 1) * generator.choice([-1.0, 1.0])
    ways = Alternatives.of_rows(
        np.array(starts), np.array(rows), NOBODY, weights.astype(np.float64)
    )
    plain = (np.array([0, 1, 3]), np.array([0, 1, 2], dtype=np.int32), np.array([2.0, -3.0]))
    return Relation(*plain, COUNT, alternatives=ways), Relation(*plain, COUNT, ways.annotations())


def seen(relation: Relation) -> Any:
    arrays = [array.tolist() for array in relation.trees()]
    return arrays, relation.total, relation.heights.tolist(), list(relation.annotations())


@pytest.mark.parametrize("seed", range(20))
def test_arrays_say_what_expressions_say(seed: int) -> None:
    one, other = made_up(seed)
    assert seen(one) == seen(other)
    assert not one.is_conjunctive
    for mine, theirs in zip(one.parts(), other.parts(), strict=True):
        assert seen(mine) == seen(theirs)
    for person in range(COUNT):
        mine, theirs = one.without(person), other.without(person)
        assert seen(mine) == seen(theirs)


def test_nothing_is_an_object_for_each_tuple(monkeypatch: pytest.MonkeyPatch) -> None:
    part = next(p for p in made_up(3)[0].parts() if p.alternatives is not None)
    expected = truncate(
        Relation(part.offsets, part.participants, part.weights, COUNT, part.general)
    )
    whole = expected.value(2.0, 0.01)

    def refuse(self: Alternatives) -> Any:
        raise AssertionError("expressions were made")

    monkeypatch.setattr(Alternatives, "annotations", refuse)
    fresh = next(p for p in made_up_arrays(3).parts() if p.alternatives is not None)
    found = truncate(fresh)
    assert found.value(2.0, 0.01) == whole
    assert found.decide(2.0, 3) == expected.decide(2.0, 3)


def made_up_arrays(seed: int) -> Relation:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alternatives, "annotations", lambda self: ())
        return made_up(seed)[0]


def test_a_lost_way_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the first way of a tuple stands for all of them."""
    one, other = made_up(1)
    ways = one.alternatives
    assert ways is not None
    first = ways.starts[:-1]
    rows = [ways.members[ways.offsets[w] : ways.offsets[w + 1]] for w in first]
    lost = Alternatives(
        np.arange(len(first) + 1),
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        np.concatenate(rows),
        ways.weights,
    )
    broken = Relation(one.offsets, one.participants, one.weights, COUNT, alternatives=lost)
    assert seen(broken) != seen(other)
