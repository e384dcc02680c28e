"""Counts that models draw from smoothed ladders, without buying an interval for them."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.ladder import (
    TUNING,
    LadderSettings,
    best_middle,
    draw_ladder,
    ladder_widths,
)
from tulle.graphs.queries.counts import ProfiledCount
from tulle.graphs.sensitivity.counts import public_length
from tulle.noise.charge import LadderCharge, charge

_SHARES = tuple(Fraction(parts, 16) for parts in (1, 2, 3, 4, 6))
"""What may be spent on smoothing."""


def ladder_settings(
    query: ProfiledCount, nodes: int, epsilon: Fraction, share: Fraction = TUNING.smoothing_share
) -> LadderSettings:
    """Return the settings of the ladder that a count is drawn from."""
    decay, smoothing = epsilon * (1 - share), epsilon * share
    # The global bound, from the public length on, must not show through the smoothing.
    slowest = min(decay, smoothing * (1 / TUNING.smoothing_share - 1))
    length = public_length(query, nodes, slowest)
    return LadderSettings(nodes, epsilon, Fraction(0), length, smoothing, decay, best_middle(decay))


def draw_count(
    query: ProfiledCount,
    graph: Graph,
    epsilon: Fraction,
    source: Source | None,
    share: Fraction = TUNING.smoothing_share,
) -> int:
    """Return a count, drawn from a smoothed ladder; it may come out negative.

    ``share`` is the part of epsilon that is spent on smoothing, any public number below one.
    """
    nodes = graph.node_count
    ladder = ladder_settings(query, nodes, epsilon, share)
    widths = ladder_widths(query, graph, ladder)
    with charge(LadderCharge(ladder.smoothing, ladder.middle)):
        noise = draw_ladder(widths.profile, query.cap(nodes), ladder.decay, source, ladder.middle)
    return int(query.truth(graph)) + noise


_PLACES = 1000
"""How many rungs are looked at to know how far a draw is from the truth."""

_NEAREST = 0.01
"""No draw is taken to be nearer than that on average."""


class Rungs(NamedTuple):
    """About how wide the rungs of a ladder are: start + growth·t + bend·t²."""

    start: float
    growth: float
    bend: float = 0.0

    def scale(self, epsilon: float, share: float = float(TUNING.smoothing_share)) -> float:
        """Return about how far a draw is from the truth, on average."""
        smoothing, decay = epsilon * share, epsilon * (1 - share)
        # Far rungs in steps of several; they are as wide as smoothing makes them.
        step = max(40 / (min(smoothing, decay) * _PLACES), 1.0)
        places = step * np.arange(_PLACES)
        widths = np.log(self.start + self.growth * places + self.bend * places**2)
        faded = np.maximum.accumulate((widths - smoothing * places)[::-1])[::-1]
        widths = np.exp(np.minimum(faded + smoothing * places, 600.0))
        chances = 2 * step * np.exp(faded - (decay - smoothing) * places - decay)
        share = float(best_middle(Fraction(decay)))
        middle = max(share * float(widths[0]) - 0.5, 0.0)
        away = step * (np.cumsum(widths) - widths / 2) + share * widths
        weight = 1 + 2 * middle + float(chances.sum())
        return max((middle**2 + float(chances @ away)) / weight, _NEAREST)

    def best_share(self, epsilon: Fraction) -> Fraction:
        """Return the part of epsilon to spend on smoothing for the least noise.

        Example:
            >>> Rungs(1000.0, 1.0).best_share(Fraction(1)), Rungs(2.0, 1.0).best_share(Fraction(1))
            (Fraction(1, 16), Fraction(3, 16))
        """
        return min(_SHARES, key=lambda share: self.scale(float(epsilon), float(share)))
