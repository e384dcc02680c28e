"""A degree sequence from one curve, measured along both of its axes.

How many nodes have degree at least k, and the degree of the i-th node in order, are the same
curve. Noise of equal size falls on the number of nodes in one and on the degree in the other, so
the first is better where a degree has many nodes (the bulk) and the second where a node has many
degrees to itself (the tail). All of this reads noisy numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.mechanisms.isotonic import decreasing
from tulle.graphs.mechanisms.ladder import TUNING as LADDER
from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.estimates.degree_counts import choose_counts, with_totals
from tulle.graphs.synthesis.estimates.staircase import weigh_staircases
from tulle.graphs.synthesis.ladder_counts import Rungs

_TUNING = TUNING.degrees


class Noisy(NamedTuple):
    """A count, or a row of them, with Laplace noise of this scale."""

    value: Any
    scale: float


class Climbed(NamedTuple):
    """A count that was drawn from a ladder with this epsilon."""

    value: int
    epsilon: Fraction
    smoothing: Fraction = LADDER.smoothing_share
    """What part of it was spent on smoothing."""


def estimate_degrees(
    nodes: int,
    edges: Noisy,
    reached: Noisy,
    sequence: Noisy | None = None,
    stars: Climbed | None = None,
) -> Wholes:
    """Return a graphical degree sequence, descending.

    ``reached`` is the number of nodes of degree at least 1 ... n - 1, ``sequence`` the sorted
    degrees, if they were measured. The curve has a number of edges too, and of pairs of edges
    that meet: they are averaged with ``edges`` and ``stars``.

    Example:
        >>> reached = Noisy(np.array([4, 1, 1]), 0.1)
        >>> estimate_degrees(4, Noisy(3, 0.1), reached).tolist()
        [3, 1, 1, 1]
    """
    most = nodes * (nodes - 1) // 2
    if min(edges.value, most) <= 0:
        return np.zeros(nodes, dtype=np.int64)
    weigh = _weighing(nodes, reached, sequence or Noisy(np.zeros(nodes, dtype=np.int64), math.inf))
    start = weigh(np.zeros(1))
    degree = np.arange(len(start), dtype=np.float64)
    sums = [degree / 2]
    known = [Noisy(float(edges.value), max(edges.scale, _TUNING.exact))]
    if stars is not None:
        # One edge moves them by the largest two degrees together.
        first, second = (_place_of(start, rank) for rank in (0.5, 1.5))
        sums.append(degree * (degree - 1) / 2)
        scale = Rungs(first + second, 1.0).scale(float(stars.epsilon), float(stars.smoothing))
        known.append(Noisy(float(stars.value), scale))
    expected = _reconcile(weigh, start, np.array(sums), known)
    total = min(max(round(float(expected @ degree) / 2), 1), most)
    squares = float(expected @ degree**2)
    return with_totals(choose_counts(expected, nodes, total, squares), total, squares)


def _place_of(expected: Floats, rank: float) -> float:
    """Return the largest degree that more than so many nodes are expected to reach."""
    reaching = np.cumsum(expected[::-1])[::-1]
    return float(max(int((reaching > rank).sum()) - 1, 1))


def _reconcile(
    weigh: Callable[[Floats], Floats], start: Floats, sums: Floats, known: list[Noisy]
) -> Floats:
    """Return how many nodes have each degree, given noisy sums over all nodes.

    All staircases are weighed anew, each node with a weight of its degree, until the sums are what
    the curve and the noisy sums say together: a sum's weight is as far as it is from its noisy
    value, in variances of the noise. How sums change with weights is how uncertain the curve
    leaves them. Noise is treated as if it were normal.
    """
    noise = np.diag([2 * one.scale**2 for one in known])
    wanted = np.array([one.value for one in known])
    weights, expected = np.zeros(len(sums)), start
    spread = noise + _spread(weigh, weights, start, sums)
    # Sums will be moved by a share of what they are off, the curve's in the uncertainty.
    share = np.maximum(1 - np.diag(noise) / np.diag(spread), 1e-9)
    unit = np.sqrt(np.diag(noise) / share)
    off, size = wanted - sums @ start, 1.0
    for _ in range(_TUNING.steps):
        if (far := np.abs(off / unit).max()) <= _TUNING.close:
            break
        tried = weights + size * np.linalg.solve(spread, off)
        found = weigh(tried @ sums)
        still = wanted - sums @ found - noise @ tried
        left = np.abs(still / unit).max() / far
        if not left < 1:
            size /= 4
            continue
        weights, expected, off, size = tried, found, still, min(2 * size, 1.0)
        if left > _TUNING.poor:
            spread = noise + _spread(weigh, weights, expected, sums)
    return expected


def _spread(
    weigh: Callable[[Floats], Floats], weights: Floats, expected: Floats, sums: Floats
) -> Floats:
    """Return the covariances that the curve leaves in the sums, given their weights."""
    spread = np.empty((len(sums), len(sums)))
    for place, row in enumerate(sums):
        step = _TUNING.step / max(float(row.max()), 0.5)
        spread[place] = sums @ (weigh(weights @ sums + step * row) - expected) / step
    deviations = np.sqrt(np.maximum(np.diag(spread), 0.0))
    # Rounding must not make them more alike than they can be.
    bound = 0.999 * np.outer(deviations, deviations)
    limited = np.clip((spread + spread.T) / 2, -bound, bound)
    limited[np.diag_indices(len(sums))] = deviations**2
    return limited


def _weighing(nodes: int, reached: Noisy, sequence: Noisy) -> Callable[[Floats], Floats]:
    """Return how to weigh what the noisy rows say, given a weight for each degree."""
    scales = reached.scale, sequence.scale
    middle = np.clip(np.append(float(nodes), decreasing(reached.value)), 0, nodes)
    most = float((middle >= 0.5).sum() - 1) + 3 * min(scales)
    if math.isfinite(sequence.scale):
        most = max(most, float(decreasing(sequence.value)[0]) + 3 * min(scales))
    top = int(np.clip(most + 2, 1, nodes - 1))
    # Steps that noise has made are replaced by slopes before they are averaged.
    slanted = np.append(float(nodes), _slanted(middle[1:], nodes))
    guess = np.maximum(-np.diff(np.append(slanted, 0.0)), 0.0)
    if (noise := math.sqrt(2) * reached.scale) > 1:
        guess = _average(guess, _TUNING.steady * noise)
    guess = np.maximum(guess[: top + 1], 0.01)

    def weigh(tilt: Floats) -> Floats:
        tilt = np.broadcast_to(tilt, guess.shape)
        rows = reached.value, sequence.value
        return weigh_staircases(*rows, scales, guess, middle[: top + 1], tilt)

    return weigh


def _slanted(steps: Floats, start: float) -> Floats:
    """Return a decreasing row with each level stretch replaced by a slope through its middle."""
    cuts = np.flatnonzero(np.diff(steps))
    first, last = np.append(0, cuts + 1), np.append(cuts, len(steps) - 1)
    places = np.append(-0.5, (first + last) / 2)
    slanted: Floats = np.interp(np.arange(len(steps)), places, np.append(start, steps[first]))
    return slanted


def _average(density: Floats, enough: float) -> Floats:
    """Return each entry averaged with as many neighbours as hold ``enough`` in all.

    It reaches as far on both sides, up to a third of its place; a tail that holds next to nothing
    is left as it is.
    """
    count = len(density)
    sums = np.append(0.0, np.cumsum(density))
    place = np.arange(1, count)
    place = place[np.cumprod(sums[count] - sums[place] >= 0.3) > 0]

    def window(reach: Wholes) -> Floats:
        return np.asarray(sums[np.minimum(count, place + reach + 1)] - sums[place - reach])

    # The least reach that holds enough: what is held grows with it.
    low, high = np.zeros_like(place), np.minimum(place // 3, count - place)
    while (low < high).any():
        middle = (low + high) // 2
        holds = window(middle) >= enough
        low, high = (
            np.where(holds, low, np.minimum(middle + 1, high)),
            np.where(holds, middle, high),
        )
    smooth = density.copy()
    smooth[place] = window(low) / (np.minimum(count, place + low + 1) - place + low)
    total = smooth.sum()
    return smooth * (sums[count] / total) if total > 0 else smooth
