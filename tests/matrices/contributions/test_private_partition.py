"""Blocks chosen privately: one vote a person, and what they bring together with private bounds."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError
from tulle.matrices.contributions.private_partition import thresholds, votes
from tulle.noise.watch import watch

BOUNDS = [2.0**power for power in range(-20, 13)]


def table(people):
    """Return the table in which each person has these weights in three cells."""
    entries = [(who, cell, w) for who, row in enumerate(people) for cell, w in enumerate(row) if w]
    who, cell, weight = zip(*entries, strict=True) if entries else ((), (), ())
    return tulle.Contributions(who, [0] * len(who), cell, weight, rows=1, columns=3)


@pytest.mark.parametrize("pieces", [1, 3, 2**16])
def test_one_person_moves_all_votes_by_no_more_than_one(pieces):
    """All pairs of people on three cells, one more or less, odd sizes among them."""
    sizes = (0, 1, -3, 1e-300, 1e300)
    rows = [row for row in product(sizes, repeat=3) if any(row)]
    one = rows[7]
    alone = votes(table([one]), pieces)
    moved = [int(np.abs(votes(table([one, row]), pieces) - alone).sum()) for row in rows]
    assert max(moved) == pieces
    assert int(np.abs(alone).sum()) <= pieces
    assert not votes(table([]), pieces).any()


def test_a_vote_is_divided_as_contributions_are():
    assert votes(table([(5, 0, 0), (1, 1, 0), (0, 1, 3)]), 8).tolist() == [[11, 4, 5]]
    # However much somebody contributes, it is one vote.
    assert votes(table([(1e9, 0, 0)]), 8).tolist() == votes(table([(1, 0, 0)]), 8).tolist()


def test_contributions_as_votes_would_move_by_more():
    """Broken version: the same check rejects totals in place of votes."""
    moved = np.abs(table([(1, 0, 0), (50, 0, 0)]).totals() - table([(1, 0, 0)]).totals()).sum()
    assert moved > 1


def test_what_is_drawn_is_paid_for():
    with watch() as events:
        release = tulle.release(
            table([(1, 0, 0)] * 50), tulle.block_partition(), unit="participant", epsilon=0.7
        )
    assert release.guarantee.epsilon == Fraction(7, 10)
    assert len(events) == 1
    assert release.parameters["people"] == pytest.approx([1 / 0.7], rel=1e-9)


def test_cells_outside_of_the_support_and_blocks_without_cells():
    """Blocks are numbered without a gap, so that weights takes them as they are."""
    support = [[True, True, False]]
    who = np.arange(400)
    data = tulle.Contributions(who, who * 0, who * 0, rows=1, columns=3, support=support)
    asked = {"unit": "participant", "epsilon": 5.0}
    for blocks in (2, 3, 8):
        labels = tulle.release(data, tulle.block_partition(blocks), **asked).value
        assert labels.tolist() == [[1, 0, -1]]
        query = tulle.weights(labels=labels, block_total=[1, 1])
        assert tulle.release(data, query, **asked).value[0, 2] == 0
    nobody = tulle.Contributions([], [], [], rows=2, columns=2)
    assert tulle.release(nobody, tulle.block_partition(), **asked).value.max() <= 1


def test_noise_alone_fills_about_one_cell():
    nobody = tulle.Contributions([1], [0], [0], rows=50, columns=40)
    found = [
        int(
            tulle.release(
                nobody, tulle.block_partition(), unit="participant", epsilon=0.1
            ).value.sum()
        )
        for _ in range(60)
    ]
    # About Poisson of mean one.
    assert 0.4 < np.mean(found) < 1.8
    assert thresholds(2000, 2, Fraction(1))[0] == pytest.approx(np.log(1000))


def commuters(people=4000, side=30, seed=3):
    """Most of what people do is on a few public places, by a heavy tail; the rest anywhere."""
    generator = np.random.default_rng(seed)
    visits = np.minimum(generator.zipf(1.8, people), 2000)
    who = np.repeat(np.arange(people), visits)
    start, end = generator.integers(0, side, (2, len(who)))
    common = generator.random(len(who)) < 0.85
    start[common] = end[common] = generator.integers(0, 4, int(common.sum()))
    return tulle.Contributions(who, start, end, rows=side, columns=side)


def error_of(data, partition, epsilon=1.0):
    truth, ask = data.totals(), {"unit": "participant"}
    labels = np.zeros(data.shape, dtype=int)
    spent = 0.25 * epsilon
    if partition:
        labels = tulle.release(data, tulle.block_partition(), epsilon=0.15 * epsilon, **ask).value
        spent = 0.4 * epsilon
    left = epsilon - spent
    query = tulle.block_bounds(None, BOUNDS, labels=labels, error_at=left)
    bounds = tulle.release(data, query, epsilon=0.25 * epsilon, **ask).value
    asked = tulle.weights(labels=labels, block_total=bounds)
    released = tulle.release(data, asked, epsilon=left, mechanism="block_laplace", **ask)
    return float(np.abs(released.value - truth).mean())


def test_a_private_partition_more_than_pays_for_itself():
    data = commuters()
    with_blocks = np.mean([error_of(data, True) for _ in range(4)])
    without = np.mean([error_of(data, False) for _ in range(4)])
    zeros = float(np.abs(data.totals()).mean())
    assert with_blocks < 0.75 * min(without, zeros), (with_blocks, without, zeros)


@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_never_worse_than_all_zeros(epsilon):
    """Where the grid is too fine for so few people, next to nothing is released."""
    data = commuters(people=60, side=40)
    found = np.mean([error_of(data, True, epsilon) for _ in range(6)])
    assert found < 1.03 * float(np.abs(data.totals()).mean())


@pytest.mark.parametrize(("blocks", "pieces"), [(1, 4), (17, 4), (2, 0), (2, 2**31)])
def test_what_is_not_supported_is_refused(blocks, pieces):
    with pytest.raises(InputError):
        tulle.block_partition(blocks, pieces=pieces)
