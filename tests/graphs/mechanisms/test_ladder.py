"""The middle of ladders: what is drawn, what it costs, and what it brings."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tulle
from tulle.audit.engine.exhaustive import check_claims, describe_world
from tulle.audit.graphs.faults import stiff_middle
from tulle.audit.graphs.kind import AuditedGraphs
from tulle.core.registry import mechanisms
from tulle.graphs.generators import social_network
from tulle.graphs.mechanisms.ladder import (
    KnownLadderLaw,
    best_middle,
    draw_ladder,
    middle_reach,
    rung_counts,
    smooth_widths,
)
from tulle.noise import SeededSource

NONE = Fraction(0)


def weight_of(distance, widths, most, decay, middle):
    """Return the weight of a number by the definition: its parts on all rungs."""
    row = [*widths, *[most] * (distance + 3)]
    q, reaches, inner = math.exp(-decay), [], 0
    for width in row:
        reach, whole = middle_reach(width, middle)
        reaches.append(inner + Fraction(reach, whole))
        inner += width
    parts = [min(max(reach + 1 - distance, 0), 1) for reach in reaches]
    steps = [parts[0], *(b - a for a, b in pairwise(parts))]
    return sum(float(step) * q**rung for rung, step in enumerate(steps))


@pytest.mark.parametrize("middle", [NONE, Fraction(3, 8), Fraction(1, 9)])
def test_draws_follow_the_weights(middle):
    widths, most, decay, runs = [2, 3, 5], 6, Fraction(3, 2), 5_000
    source = SeededSource(5)
    seen = Counter(draw_ladder(widths, most, decay, source, middle) for _ in range(runs))
    weights = {x: weight_of(abs(x), widths, most, decay, middle) for x in range(-90, 91)}
    total = math.fsum(weights.values())
    for value, weight in weights.items():
        expected = runs * weight / total
        assert abs(seen[value] - expected) <= 6 * math.sqrt(expected) + 6


@given(
    first=st.integers(1, 60),
    steps=st.lists(st.integers(0, 30), max_size=8),
    share=st.fractions(0, Fraction(1, 2), max_denominator=64),
    decay=st.sampled_from([0.05, 0.7, 3.0]),
    level=st.sampled_from([0.1, 0.5, 0.9, 0.99]),
)
def test_rungs_rise_and_half_widths_are_the_smallest(first, steps, share, decay, level):
    widths = np.cumsum([first, *steps]).tolist()
    most = widths[-1] + 5
    counts = rung_counts(widths, most, share)
    # What the sampler needs: no rung has fewer numbers than the one before.
    assert all(a <= b for a, b in pairwise(counts))
    half = KnownLadderLaw(Fraction(decay), most, tuple(widths), share).half_width(level)
    one = middle_reach(1, share)[1]
    weights = [
        count * math.exp(-decay * rung)
        for rung, count in enumerate([*counts, *[counts[-1]] * math.ceil(40 / decay)])
    ]
    ends = np.cumsum([*counts, *[counts[-1]] * math.ceil(40 / decay)]) / one

    def beyond(distance):
        """Return the part of all weight further off than this, from the ends of rungs."""
        starts = np.concatenate([[0.0], ends[:-1]])
        outside = np.clip((ends - (2 * distance + 1)) / (ends - starts), 0, 1)
        return float(outside @ weights) / math.fsum(weights)

    assert beyond(half) <= 1 - level + 1e-9
    if half < np.sum(widths):
        assert half == 0 or beyond(half - 1) > 1 - level - 1e-9


def test_a_middle_that_rungs_make_no_room_for_is_caught():
    kind, ladder = AuditedGraphs(), mechanisms("graph")["smoothed_ladder"]
    world = kind.world_for(5, tulle.stars(2))
    asked = tulle.stars(2), world, Fraction(2), Fraction(0)

    def refused(mechanism):
        described = describe_world(kind, mechanism, *asked)
        found = check_claims(kind, mechanism, *asked[:2], described)
        laws = [one.parts[0][1] for one in described]
        worst = max(laws[a].loss(laws[b]) for a, b in world.distinct_pairs(laws)[0])
        return {item.check for item in found if not item.passed}, worst

    # A tenth of epsilon is for the spread.
    fine, worst = refused(ladder)
    assert not fine
    assert 0.95 * 1.8 < worst <= 1.8 + 1e-9
    broken, worst = refused(stiff_middle(ladder, [tulle.stars(2)]))
    assert "claims: answer, reaches shift by one" in broken
    assert worst > 1.1 * 1.8


@pytest.mark.parametrize(("epsilon", "times"), [(1, 1.05), (2, 1.2), (5, 2.2)])
def test_a_middle_lowers_the_mean_error(epsilon, times):
    graph, query = social_network(600, seed=3), tulle.triangles()
    answer = Fraction(epsilon) * 9 / 10
    decay, most = answer * 7 / 8, query.cap(600)
    widths = smooth_widths(query.measure(graph, 400).profile, most, answer / 8)
    levels = (np.arange(400) + 0.5) / 400

    def error(middle):
        law = KnownLadderLaw(decay, most, tuple(widths), middle)
        return np.mean([law.half_width(float(level)) for level in levels])

    assert error(NONE) >= times * error(best_middle(decay))
