"""A degree sequence from one curve, measured along both of its axes.

How many nodes have degree at least k, and the degree of the i-th node in order, are the same
curve. Noise of equal size falls on the number of nodes in one and on the degree in the other, so
the first is better where a degree has many nodes (the bulk) and the second where a node has many
degrees to itself (the tail). All of this reads noisy numbers only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.compiled import compiled
from tulle.graphs.isotonic import decreasing, graphical
from tulle.graphs.synthesis.staircase import Curve, weigh_staircases

Wholes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STEADY = 12.0
"""A density is averaged until it holds so many standard deviations of noise."""

_LIKELY = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.55, 0.8)
"""A degree that is at least so likely to occur gets a node; the least that leaves room is taken."""

_BENT = 0.3
"""How far, as a logarithm, the rest may be bent on average to make up for these nodes."""

_STEPS = 60


def estimate_degrees(
    reached: Wholes,
    sequence: Wholes | None,
    edges: int,
    scale: float,
    nodes: int,
    sequence_scale: float = math.inf,
    edges_scale: float = 0.0,
) -> Wholes:
    """Return a graphical degree sequence, descending, with 2·edges stubs where that is possible.

    ``reached`` is the noisy number of nodes of degree at least 1 ... n - 1, with noise of this
    scale; ``sequence`` the noisy sorted degrees, if they were measured, with theirs. The curve has
    a number of edges too: it is averaged with ``edges``, which have noise of ``edges_scale``.

    Example:
        >>> estimate_degrees(np.array([4, 1, 1]), np.array([3, 1, 1, 1]), 3, 0.1, 4, 0.1).tolist()
        [3, 1, 1, 1]
    """
    edges = min(max(edges, 0), nodes * (nodes - 1) // 2)
    if edges == 0:
        return np.zeros(nodes, dtype=np.int64)
    curve = _curve(reached, sequence, scale, sequence_scale, nodes)
    edges = _averaged(curve, edges, scale, edges_scale)
    edges = min(max(edges, 1), nodes * (nodes - 1) // 2)
    counts = choose_counts(curve, nodes, edges)
    return _exact_total(np.repeat(np.arange(len(counts)), counts), 2 * edges, nodes)


def _averaged(curve: Curve, edges: int, scale: float, edges_scale: float) -> int:
    """Return the number of edges by both, weighed by their variances.

    Of the curve it is half the sum over all degrees of the nodes that reach them; beyond the
    largest degree there is no noise to speak of.
    """
    reaching = np.cumsum(curve.expected[::-1])[::-1][1:]
    variance = int((reaching >= 0.5).sum()) * scale**2 / 4
    weight = edges_scale**2 / max(edges_scale**2 + variance, 1e-300)
    return round(edges + weight * (float(reaching.sum()) / 2 - edges))


def _curve(
    reached: Wholes, sequence: Wholes | None, scale: float, other: float, nodes: int
) -> Curve:
    """Return what the noisy rows say about each degree that may occur."""
    middle = np.clip(np.append(float(nodes), decreasing(reached)), 0, nodes)
    most = float((middle >= 0.5).sum() - 1) + 3 * min(scale, other)
    if sequence is not None:
        most = max(most, float(decreasing(sequence)[0]) + 3 * min(scale, other))
    top = int(np.clip(most + 2, 1, nodes - 1))
    # Steps that noise has made are replaced by slopes before they are averaged.
    slanted = np.append(float(nodes), _slanted(middle[1:], nodes))
    guess = np.maximum(-np.diff(np.append(slanted, 0.0)), 0.0)
    if (noise := math.sqrt(2) * scale) > 1:
        guess = _average(guess, _STEADY * noise)
    if sequence is None:
        sequence, other = np.zeros(nodes, dtype=np.int64), math.inf
    guess = np.maximum(guess[: top + 1], 0.01)
    return weigh_staircases(reached, sequence, (scale, other), guess, middle[: top + 1])


def choose_counts(curve: Curve, nodes: int, edges: int) -> Wholes:
    """Return how many nodes have each degree: n in all, with nearly 2·edges stubs.

    Nodes stand where the middle staircase has them, so that the tail is where it was seen. A
    degree that is likely to occur is worth a node even so: without it, a reader would conclude
    that it cannot occur. What is left, where degrees have several nodes, is bent until nodes,
    stubs and squares of degrees add up as they should, so that the extra nodes do not count.

    Example:
        >>> curve = Curve(np.array([0.0, 3.0, 0.2, 0.8]), np.array([0.0, 1.0, 0.0, 0.8]))
        >>> choose_counts(curve, 4, 3).tolist()
        [0, 3, 0, 1]
    """
    degree = np.arange(len(curve.expected), dtype=np.float64)
    squares = float(curve.expected @ degree**2)
    middle = _rounded(curve.expected)
    sure = (middle > 0).astype(np.float64)
    spare = np.maximum(curve.expected - sure, 0.0) * sure
    held = sure
    for likely in _LIKELY:
        cover = np.maximum(sure, curve.present >= likely)
        rest = np.maximum(curve.expected - cover, 0.0) * cover
        wanted = (
            nodes - cover.sum(),
            2 * edges - float(cover @ degree),
            squares - float(cover @ degree**2),
        )
        bent = _bent(rest, degree, wanted)
        if bent is not None:
            held, spare = cover, bent
            break
    counts = (held + _rounded(spare)).astype(np.int64)
    # Rounding may leave a node or two: the fullest degree takes them.
    counts[np.argmax(counts)] += nodes - counts.sum()
    return np.maximum(counts, 0)


def _rounded(expected: Floats) -> Floats:
    """Return whole numbers whose sums from the top on are the rounded sums."""
    return np.diff(np.append(0.0, np.rint(np.cumsum(expected[::-1]))))[::-1]


def _bent(rest: Floats, degree: Floats, wanted: tuple[float, float, float]) -> Floats | None:
    """Return rest·exp(a + b·degree + c·degree²) with these sums of 1, degree and degree².

    The least change that does it, by Newton's method on its convex dual; None where it would
    change too much.
    """
    if min(wanted) <= 0 or not rest.any():
        return None
    unit = max(float(degree[rest > 0].max()), 1.0)
    powers = (degree / unit) ** np.arange(3)[:, None]
    goal = np.array(wanted) / unit ** np.arange(3)
    bend = np.zeros(3)

    def at(tried: Floats) -> Floats:
        grown: Floats = rest * np.exp(np.clip(tried @ powers, -30.0, 30.0))
        return grown

    for _ in range(_STEPS):
        weights = at(bend)
        slope = powers @ weights - goal
        if np.abs(slope).max() <= 1e-7 * goal.max():
            break
        curvature = (powers * weights) @ powers.T
        curvature[np.diag_indices(3)] += 1e-9 * weights.sum()
        step = -np.linalg.solve(curvature, slope)
        value, size = weights.sum() - bend @ goal, 1.0
        while size > 1e-6 and at(bend + size * step).sum() - (bend + size * step) @ goal > (
            value + 1e-4 * size * float(slope @ step)
        ):
            size /= 2
        bend = bend + size * step
    weights = at(bend)
    off = float(np.abs(powers @ weights - goal).max())
    changed = float(np.sum(rest * degree * np.abs(bend @ powers)))
    fits = off <= 1e-4 * goal.max() and changed <= _BENT * max(float(rest @ degree), 1e-9)
    return weights if fits else None


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


def _exact_total(degrees: Wholes, total: int, nodes: int) -> Wholes:
    """Return the degrees, descending and graphical, after moving many by one to fix the total.

    Nodes of crowded degrees move, to degrees that occur if possible: the tail stays.
    """
    degrees = np.sort(degrees)[::-1].copy()
    while (missing := total - int(degrees.sum())) != 0:
        step = 1 if missing > 0 else -1
        able = _able(degrees, step, min(abs(missing), 8), nodes)
        if not len(able):
            break
        # Spread evenly over the sequence, so that no degree is emptied.
        taken = min(abs(missing), max(len(able) // 3, 1))
        degrees[np.unique(able[np.linspace(0, len(able) - 1, taken).astype(int)])] += step
        degrees = np.sort(degrees)[::-1].copy()
    return graphical(degrees)


def _able(degrees: Wholes, step: int, enough: int, nodes: int) -> Wholes:
    """Return the places of degrees that may move by a step."""
    often = np.bincount(degrees, minlength=nodes + 1)
    # No node loses its last edge, and one without edges stays so unless none has any.
    least = 1 if degrees.any() else 0
    moving = (degrees >= least) & (degrees + step < nodes) & (degrees + step >= 1)
    for crowd in (3, 2, 1):
        able = np.flatnonzero(moving & (often[degrees] >= crowd))
        into = able[often[degrees[able] + step] > 0]
        if len(into) >= enough:
            return into
        if len(able):
            return able
    return np.empty(0, dtype=np.int64)
