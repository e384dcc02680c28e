"""What a noisy count says of a network, beside what networks are like.

Where noise is larger than a count, the count alone would ask for no triangle at all, or for several
times as many as there can be. So it is weighed with what is known without it: a network with these
degrees has at least about as many triangles as chance brings, at most as many as it has pairs of
edges that meet, and anything between the two is as likely, as a logarithm. Everything here reads
released numbers only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import count_triangles
from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.edge_counts import CLOSURE_LIMIT, closed_picks
from tulle.graphs.synthesis.generators.realise import realise_degrees
from tulle.graphs.synthesis.generators.tuning import Target, TriangleTargets
from tulle.noise.post_processing import Random

_TUNING = TUNING.likely

_UNKNOWN = 1e18
"""The noise of what was not counted."""

_PLACES = 200
"""How many numbers are weighed, over the whole span and again around the one that was counted."""

_FURTHEST = 8.0
"""How far around, in deviations of the noise."""


class Span(NamedTuple):
    """From what chance brings, place 0, to the most there can be, place 1, as logarithms."""

    chance: float
    most: float

    @classmethod
    def of(cls, chance: float, most: float) -> Span:
        """Return a span that is not empty."""
        low = max(chance, 0.5)
        return cls(low, max(most, low * (1 + 1e-6)))

    def place(self, value: Floats | float) -> Floats:
        """Return where numbers lie; below chance there is hardly a place."""
        part = np.maximum(np.asarray(value, dtype=np.float64) / self.chance, 1e-3)
        return np.asarray(np.log(part) / math.log(self.most / self.chance))

    def numbers(self, seen: Target) -> Floats:
        """Return numbers from 0 to the most, closer together around the one that was counted."""
        steps = np.linspace(0.0, 1.0, _PLACES)
        even = self.chance * (self.most / self.chance) ** steps
        near = seen.value + seen.noise * _FURTHEST * (2 * steps - 1)
        low = self.chance * steps[:: _PLACES // 20]
        return np.unique(np.clip(np.concatenate([low, even, near]), 0.0, self.most))


def likely_counts(
    triangles: Target, picks: Target, spans: tuple[Span, Span]
) -> tuple[Target, Target]:
    """Return a number of triangles and one of closed picks that are likely, with their spreads.

    Both were counted with Laplace noise. Before that, all places of the triangles in their span
    are as likely, and picks have nearly the same place in theirs, so that each tells of the other.

    Errors are judged relatively, and a number too large by some factor costs more than one too
    small by it: what is returned is the middle of the likelihood over a root of the number.

    Example:
        >>> spans = Span.of(100.0, 10_000.0), Span.of(10.0, 1_000.0)
        >>> [round(one.value) for one in likely_counts(Target(3e3, 1.0), Target(300, 0.1), spans)]
        [3000, 300]
        >>> unknown = Target(-3_000.0, 1e9)
        >>> 200 < likely_counts(unknown, unknown, spans)[0].value < 1_000
        True
        >>> 2_000 < likely_counts(unknown, Target(400, 10), spans)[0].value < 3_000
        True
    """
    numbers = spans[0].numbers(triangles), spans[1].numbers(picks)
    below = _TUNING.below_chance
    place, other = (span.place(some) for span, some in zip(spans, numbers, strict=True))
    cuts = (numbers[0][1:] + numbers[0][:-1]) / 2
    reached = below * np.minimum(cuts / spans[0].chance, 1.0)
    reached += (1 - below) * np.clip(spans[0].place(cuts), 0.0, 1.0)
    before = np.maximum(np.diff(np.concatenate([[0.0], reached, [1.0]])), 1e-300)
    apart = (other[None, :] - place[:, None] - _TUNING.clustered) / _TUNING.spread
    width = np.maximum(np.gradient(other), 1e-300) if len(other) > 1 else np.ones(1)
    logs = np.log(before)[:, None] + np.log(width)[None, :] - apart**2 / 2
    logs += _laplace(numbers[0], triangles)[:, None] + _laplace(numbers[1], picks)[None, :]
    both = np.exp(logs - logs.max())
    return (
        _middle(numbers[0], both.sum(axis=1), triangles.noise),
        _middle(numbers[1], both.sum(axis=0), picks.noise),
    )


def _laplace(numbers: Floats, seen: Target) -> Floats:
    """Return the logarithms of how likely noise makes the counted number of these."""
    return -np.abs(numbers - seen.value) / max(seen.noise / math.sqrt(2), 1e-9)


def _middle(numbers: Floats, likely: Floats, noise: float) -> Target:
    weights = np.cumsum(likely / (numbers + 1.0) ** _TUNING.caution)
    middle = float(numbers[np.searchsorted(weights, weights[-1] / 2)])
    spread = math.sqrt(float(likely @ (numbers - middle) ** 2) / float(likely.sum()))
    return Target(middle, min(spread, noise))


def with_likely(targets: TriangleTargets, degrees: Wholes, random: Random) -> TriangleTargets:
    """Return targets that a network with these degrees can be expected to have.

    Counts with little noise stay what they are. Where picks were not counted, triangles say about
    how many there are. What chance brings is counted in one random graph.
    """
    wanted, closure = targets.triangles, targets.closure
    if wanted is None or (
        closure is not None
        and all(one.noise <= _TUNING.clear * one.value for one in (wanted, closure))
    ):
        return targets
    limit = targets.closure_limit if closure is not None else CLOSURE_LIMIT
    graph = Graph.from_edges(realise_degrees(degrees, random), nodes=len(degrees))
    pairs = float((degrees * (degrees - 1) // 2).sum())
    spans = (
        Span.of(count_triangles(graph), pairs / 3),
        Span.of(closed_picks(graph, limit), float((degrees > 1).sum())),
    )
    triangles, picked = likely_counts(wanted, closure or Target(0.0, _UNKNOWN), spans)
    return targets._replace(triangles=triangles, closure=picked, closure_limit=limit)
