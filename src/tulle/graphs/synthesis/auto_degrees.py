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
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled
from tulle.graphs.isotonic import decreasing, graphical
from tulle.graphs.synthesis.degrees import degrees_from_counts

Wholes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_HARDLY_ANY = 1.0
"""Noise up to this scale leaves the counts as they are."""

_SURE = 2.0
"""From so many standard deviations on, the sum of squares is believed."""

_STRETCHES = 10

_LITTLE = 3.0
"""Noise below this scale leaves single degrees visible: less is averaged."""

_STEADY = (4.0, 12.0)
"""A density is averaged until it holds so many standard deviations of noise, little or much."""

_COVERED = (1.2, 0.65)
"""Below so many expected nodes for each degree the tail begins, where noise is little or much."""


def estimate_degrees(
    reached: Wholes,
    sequence: Wholes,
    edges: int,
    scale: float,
    nodes: int,
    sequence_scale: float | None = None,
) -> Wholes:
    """Return a graphical degree sequence, descending, with 2·edges stubs where that is possible.

    ``reached`` is the noisy number of nodes of degree at least 1 ... n - 1 (noise of this scale),
    ``sequence`` the noisy sorted degrees; with ``sequence_scale``, the scale of its noise, the
    sum of squares is kept as well.

    Example:
        >>> estimate_degrees(np.array([4, 1, 1]), np.array([3, 1, 1, 1]), 3, 0.01, 4).tolist()
        [3, 1, 1, 1]
    """
    edges = min(max(edges, 0), nodes * (nodes - 1) // 2)
    if edges == 0:
        return np.zeros(nodes, dtype=np.int64)
    if scale <= _HARDLY_ANY:
        plain = degrees_from_counts(reached, Fraction(scale))
        return _exact_total(plain, 2 * edges, nodes)
    noise = math.sqrt(2) * scale
    much = int(scale >= _LITTLE)
    at_least = np.clip(np.append(float(nodes), _slanted(decreasing(reached), nodes)), 0, nodes)
    density = np.maximum(-np.diff(np.append(at_least, 0.0)), 0.0)
    if noise > 1:
        density = _average(density, _STEADY[much] * noise)
    turn = _crossover(density, _COVERED[much])
    top = decreasing(sequence)
    largest = float(np.clip(top[0], 1, nodes - 1))
    in_tail = int(np.clip(round(float(at_least[turn])), 0, nodes)) if turn < nodes else 0
    loose = _slanted(top, largest)[:in_tail]
    total = int(sequence[:in_tail].sum())

    def assemble(stretch: float) -> Wholes:
        tail = _tail(loose, total, turn, nodes - 1, stretch)
        stubs = 2 * edges - int(tail.sum())
        bulk = _bulk(density[:turn], nodes - in_tail, stubs, _COVERED[much] / 2)
        return _exact_total(np.append(tail, bulk), 2 * edges, nodes)

    if sequence_scale is None or in_tail == 0:
        return assemble(1.0)
    return _with_squares(assemble, sequence, sequence_scale)


def _with_squares(assemble: Callable[[float], Wholes], sequence: Wholes, scale: float) -> Wholes:
    """Return the degrees with the tail stretched until their squares add up as the noisy ones do.

    Noise adds 2·scale² to each square, on average, which is known and taken off.
    """
    squares = sequence.astype(np.float64) ** 2
    wanted = float(squares.sum()) - len(sequence) * 2 * scale**2
    best = assemble(1.0)
    apart = wanted - float(np.dot(best, best))
    # The variance of (d + x)² is 8·(scale·d)² + 20·scale⁴ for Laplace noise x.
    spread = math.sqrt(8 * scale**2 * max(wanted, 0.0) + 20 * len(sequence) * scale**4)
    if abs(apart) <= _SURE * spread:
        return best
    low, high = 0.6, 1.5
    for _ in range(_STRETCHES):
        stretch = (low + high) / 2
        tried = assemble(stretch)
        left = wanted - float(np.dot(tried, tried))
        if abs(left) < abs(apart):
            best, apart = tried, left
        if left > 0:
            low = stretch
        else:
            high = stretch
    return best


def _slanted(steps: Floats, start: float) -> Floats:
    """Return a decreasing row with each level stretch replaced by a slope through its middle."""
    cuts = np.flatnonzero(np.diff(steps))
    first, last = np.append(0, cuts + 1), np.append(cuts, len(steps) - 1)
    places = np.append(-0.5, (first + last) / 2)
    slanted: Floats = np.interp(np.arange(len(steps)), places, np.append(start, steps[first]))
    return slanted


@compiled
def _average(density: Any, enough: Any) -> Any:
    """Return each entry averaged with as many neighbours as hold ``enough`` in all."""
    count = len(density)
    sums = np.zeros(count + 1)
    for place in range(count):
        sums[place + 1] = sums[place] + density[place]
    smooth = density.copy()
    for place in range(1, count):
        if sums[count] - sums[place] < 0.3:
            break
        reach = 0
        while (
            reach < place // 3
            and place + reach < count
            and sums[min(count, place + reach + 1)] - sums[place - reach] < enough
        ):
            reach += 1
        end = min(count, place + reach + 1)
        smooth[place] = (sums[end] - sums[place - reach]) / (end - place + reach)
    total = smooth.sum()
    return smooth * (sums[count] / total) if total > 0 else smooth


def _crossover(density: Floats, covered: float) -> int:
    """Return the degree from which on there is less than about one node for each degree."""
    count = len(density)
    sums = np.append(0.0, np.cumsum(density))
    place = np.arange(1, count)
    end = np.minimum(place + np.maximum(3, place // 4), count)
    thin = (sums[end] - sums[place]) / (end - place) < covered
    found = np.flatnonzero(thin)
    return int(found[0]) + 1 if len(found) else count


def _tail(degrees: Floats, total: int, least: int, most: int, stretch: float) -> Wholes:
    """Return the degrees of the tail, from ``least`` on, drawn together until they have the total.

    The noisy total is unbiased; sorting noise and cutting at the least degree are not.
    """
    over = np.maximum(degrees - least, 0.0)
    excess = max(total - least * len(degrees), 0)
    if (sum_over := float(over.sum())) > 0:
        over = over * (stretch * min(excess / sum_over, 1.0))
    return _apart(np.clip(np.rint(least + over), least, most).astype(np.int64), least, most)


def _apart(tail: Wholes, least: int, most: int) -> Wholes:
    """Move equal degrees to free ones nearby: real tails hardly repeat themselves."""
    used: set[int] = set()
    placed = []
    for value in tail.tolist():
        for step in (0, 1, -1, 2, -2):
            if least <= value + step <= most and value + step not in used:
                value += step
                break
        used.add(value)
        placed.append(value)
    return np.array(placed, dtype=np.int64)


def _bulk(density: Floats, nodes: int, stubs: int, likely: float) -> Wholes:
    """Return so many degrees with this density, tilted until they have this total."""
    if nodes <= 0:
        return np.empty(0, dtype=np.int64)
    if density.sum() <= 0:
        density = np.ones(len(density))
    degree = np.arange(len(density))
    low, high = -40.0, 40.0
    weights = density
    for _ in range(60):
        tilt = (low + high) / 2
        logs = tilt * degree / len(density)
        weights = density * np.exp(logs - logs.max())
        weights = weights * (nodes / max(float(weights.sum()), 1e-300))
        if float(np.dot(weights, degree)) < stubs:
            low = tilt
        else:
            high = tilt
    counts = np.diff(np.append(0, np.rint(np.cumsum(weights)))).astype(np.int64)
    # A degree that is likely to occur is worth one node; the fullest degree gives it.
    for empty in np.flatnonzero((counts == 0) & (weights >= likely)):
        counts[empty] += 1
        counts[np.argmax(counts)] -= 1
    return np.repeat(degree, counts)


def _exact_total(degrees: Wholes, total: int, nodes: int) -> Wholes:
    """Return the degrees, descending and graphical, after moving many by one to fix the total."""
    degrees = np.sort(degrees)[::-1].copy()
    while (missing := total - int(degrees.sum())) != 0:
        step = 1 if missing > 0 else -1
        able = np.flatnonzero((degrees + step >= min(1, step + 1)) & (degrees + step < nodes))
        able = able[degrees[able] > 0] if step < 0 or (degrees > 0).any() else able
        if not len(able):
            break
        # Spread evenly over the sequence, so that no degree is emptied.
        chosen = able[np.linspace(0, len(able) - 1, min(abs(missing), len(able))).astype(int)]
        degrees[np.unique(chosen)] += step
    return graphical(np.sort(degrees)[::-1].copy())
