"""Intervals of ladders and of smooth sensitivity, whose spread is known with noise only."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tulle.graphs.mechanisms.ladder import LadderLaw, best_middle, rung_counts, smooth_widths
from tulle.graphs.mechanisms.smooth import SmoothLaplaceLaw
from tulle.graphs.sensitivity import counts as sensitivity
from tulle.graphs.sensitivity.counts import public_length, upper_spread

NODES = 400
QUERIES = (("triangles", 0), ("stars", 3), ("cliques", 4))


def ladder_law(query: str, k: int, epsilon: Fraction) -> LadderLaw:
    """Return the law of a smoothed ladder that spends a tenth of epsilon on its spread."""
    answer = epsilon * 9 / 10
    decay = answer * 7 / 8
    return LadderLaw(query, k, NODES, 0, 10 / epsilon, decay, answer / 8, best_middle(decay))


def exceeds(law: LadderLaw, spread: int, reaches: np.ndarray) -> np.ndarray:
    """Return how often the widest ladder of a spread draws an error above each reach, exactly."""
    query = law.question()
    most = query.cap(NODES)
    length = public_length(query, NODES, law.decay)
    row = query.envelope_profiles(NODES, spread, length)[0]
    widths = smooth_widths(row, most, law.smoothing)
    counts = rung_counts(widths, most, law.middle)[:-1]
    logs = np.log(np.array(counts, dtype=float)) - float(law.decay) * np.arange(length + 1)
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    # Rungs end where their numbers do; the truth counts half on either side.
    sizes = np.array(counts, dtype=float) / (4 * law.middle.denominator)
    ends = np.cumsum(sizes)
    beyond = np.clip((ends - np.floor(reaches)[:, None] - 0.5) / sizes, 0, 1)
    beyond[:, 0] = np.where(reaches < 0, 1.0, beyond[:, 0])
    return beyond @ shares


def missed(law: LadderLaw, spread: int, level: float) -> float:
    """Return how often the interval misses on a graph of this spread: over all noise on it."""
    scale = float(law.spread_scale)
    rate = 1 / scale
    farthest = math.ceil(16 * scale)
    step = max(farthest // 40, 1)
    noise = np.arange(-farthest, farthest + 1, step)
    # Each draw counts as the lowest of its step: intervals grow with the released spread.
    above = np.exp(-rate * np.abs(np.where(noise > 0, noise, noise - 1))) / (1 + math.exp(-rate))
    above = np.where(noise > 0, above, 1 - above)
    chances = above - np.append(above[1:], 0.0)
    reaches = [replace(law, spread=spread + int(z)).half_width(level) for z in noise]
    return float(chances @ exceeds(law, spread, np.array(reaches)))


def spreads(law: LadderLaw) -> list[int]:
    scale = float(law.spread_scale)
    found = {round(scale * part) for part in (0, 0.2, 0.5, 0.8, 1, 1.3, 2, 3, 4.5, 7, 12, 30)}
    return sorted(law.upper(max(spread, 1)) for spread in found)


@pytest.mark.parametrize("epsilon", ["0.3", "2"])
@pytest.mark.parametrize(("query", "k"), QUERIES)
def test_no_spread_is_missed_more_often_than_stated(query, k, epsilon):
    law = ladder_law(query, k, Fraction(epsilon))
    for level in (0.8, 0.95):
        worst = max(missed(law, spread, level) for spread in spreads(law))
        assert worst <= 1 - level


def test_half_the_allowance_would_miss_too_often(monkeypatch):
    law = ladder_law("stars", 3, Fraction(1))
    right = sensitivity._allowance
    monkeypatch.setattr(sensitivity, "_allowance", lambda *asked: right(*asked) // 2)
    assert max(missed(law, spread, 0.95) for spread in spreads(law)) > 0.05


@pytest.mark.parametrize(
    ("query", "k", "epsilon", "most"), [("triangles", 0, 1, 1.4), ("stars", 3, 3, 1.6)]
)
def test_intervals_are_hardly_wider_than_those_of_a_known_spread(query, k, epsilon, most):
    law = replace(ladder_law(query, k, Fraction(epsilon)), spread=25)
    assert 1 < law.wider < most
    # Two bounds side by side, one for the spread and one for the answer, are much wider.
    apart = law.width_at(upper_spread(25, float(law.spread_scale), 0.05 / 4), 0.75 * 0.05)
    assert law.half_width(0.95) < 0.75 * apart


def test_the_smooth_bound_has_the_same_allowance_and_none_where_the_spread_is_known():
    smooth = SmoothLaplaceLaw(
        "triangles", 0, NODES, 25, Fraction(10), Fraction(1, 2), Fraction(1, 30)
    )
    known = replace(smooth, spread_scale=Fraction(0))
    assert known.half_width(0.95) == smooth.width_at(25, 1 - 0.95)
    assert known.half_width(0.95) < smooth.half_width(0.95) < 1.5 * known.half_width(0.95)
    assert known.wider == 1.0
