"""How the model auto divides its epsilon: by what each part is expected to gain.

First come the number of edges, the order of nodes and a first count of triangles, at fixed shares;
then the degrees, which get more of what is left where there is more of it. The rest is divided by
what is known by then. A part that spends b leaves an error of about floor + noise / b, where noise
follows from released numbers and the floor is what does not matter any more. Halving any error is
held to be worth the same, times a weight: how many questions hang on the part, and how much hope
there is that noise will be less than what would be guessed without it. So the sum of
weight·log(floor + noise / b) is made least, over all b that add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.ladder_counts import Rungs

_TUNING = TUNING.budget

GRAIN = 1000
"""Shares are whole thousandths of what is left after the parts before."""

LEAST = Fraction(1, GRAIN)
"""The smallest share of that: no part that is measured gets less."""

FIRST = ("edges", "order", "triangles")
"""These come before anything else is known."""

DEGREES = ("reached", "sequence")

_LAST = ("recount", "stars", "closure", "correlation", "mixing")

SCHEDULES: Mapping[str, tuple[str, ...]] = {
    "plain": (*DEGREES, *_LAST),
    "blocks": (*DEGREES, *_LAST, "members", "pairs"),
}
"""What is measured after the first parts, one way or the other."""


class Gain(NamedTuple):
    """What a part gains from its budget."""

    weight: float
    noise: float
    """Its error at a budget of one."""
    floor: float
    """The error that is good enough."""
    guessed: float = math.inf
    """The error of a guess without it."""

    def hope(self, budget: float) -> Gain:
        """Return the gain with less weight if a budget would hardly do better than a guess."""
        weight = self.weight / (1 + self.noise / (budget * self.guessed))
        return self._replace(weight=weight if weight >= _TUNING.hopeless * self.weight else 0.0)

    def spends(self, price: float) -> float:
        """Return the budget at which one more of it gains exactly the price.

        The root of weight·noise = price·b·(floor·b + noise).
        """
        half = self.noise / (2 * self.floor)
        return math.sqrt(half**2 + 2 * half * self.weight / price) - half


class Known(NamedTuple):
    """What released parts say, before the rest is divided."""

    nodes: int
    edges: float
    largest: float
    second: float
    squares: float
    """The sum of all degrees' squares."""
    triangles: float

    def closing(self) -> float:
        """Return about how many triangles one edge closes at most."""
        return max(self.largest / 3, 4.0)

    def clustering(self) -> float:
        """Return about how many pairs of edges that meet are closed, of all."""
        return min(max(6 * self.triangles / max(self.squares - 2 * self.edges, 1.0), 0.0), 1.0)


def guess_known(nodes: int, edges: int) -> Known:
    """Return what is likely of a graph with so many edges, before its degrees are known."""
    size = float(max(edges, 10))
    mean = 2 * size / max(nodes, 2)
    largest = min(20 * mean, nodes - 1.0)
    return Known(nodes, size, largest, largest, 6 * mean * size, size)


def rungs_of(known: Known, name: str) -> Rungs:
    """Return about how wide the rungs of a part's ladder are."""
    if name == "stars":
        return Rungs(known.largest + known.second, 1.0)
    return Rungs(known.closing(), 1.0)


def gains(known: Known, rest: float, scale: float) -> dict[str, Gain]:
    """Return the gain of each part of the rest, when so much epsilon is left for it.

    ``scale`` is that of the noise in the degrees.
    """
    size, count = max(known.edges, 10.0), float(max(known.nodes, 2))
    nominal = _TUNING.nominal * rest
    recount, stars = (
        nominal * rungs_of(known, name).scale(nominal) for name in ("recount", "stars")
    )
    pairs = max(known.squares / 2 - size, 1.0)
    found = {
        "recount": Gain(6.0, recount / max(known.triangles, 1.0), 0.0005, 0.5),
        # The curve of degrees has a variance too, the nearer the less noise there is.
        "stars": Gain(1.8, stars / pairs, 0.0005, 0.002 * scale**1.5),
        # The noise of a few picks, beside all that are joined.
        "closure": Gain(1.6, 6 / max(known.clustering() * count, 1.0), 0.03, 0.3),
        # A few edges' worth, beside the scores' variance.
        "correlation": Gain(_TUNING.correlation, 6 / size, 0.01, 0.03),
        # Some dozens of edges' worth, over all classes.
        "mixing": Gain(_TUNING.mixing, 60 / size, 0.002, 0.12),
        # The noise of one node's neighbours in a block, beside its degree.
        "members": Gain(1.0, 1.4 * count / size, 0.1, 0.5),
        "pairs": Gain(0.5, 100 / size, 0.01),
    }
    return {name: gain.hope(nominal) for name, gain in found.items()}


def first_shares(nodes: int, epsilon: Fraction, parts: Iterable[str]) -> dict[str, Fraction]:
    """Return the shares of the first parts, of all of epsilon.

    Edges get what keeps them nearer than the sum of noisy degrees would be, which takes more where
    these are nearly exact; the order needs less where there is more. Triangles are counted
    roughly: how much more they are worth depends on how many there are.

    Example:
        >>> first_shares(4039, Fraction(1), FIRST)
        {'edges': Fraction(17, 200), 'order': Fraction(9, 125), 'triangles': Fraction(1, 40)}
    """
    spent = min(float(epsilon), 1e6)
    about = {
        "edges": min(max(0.06 + 0.025 * spent, _TUNING.few / (nodes * spent)), 0.15),
        "order": 0.09 / (1 + spent / 4),
        "triangles": 0.025,
    }
    return {
        name: max(Fraction(round(share * GRAIN), GRAIN), LEAST)
        for name, share in about.items()
        if name in tuple(parts)
    }


def degree_budgets(
    names: Iterable[str], nodes: int, epsilon: Fraction, left: Fraction
) -> dict[str, Fraction]:
    """Return the budgets of the two axes of the degree curve, of what is left of an epsilon.

    Two fifths of it, and up to three where there is so much that the curve is nearly exact:
    whether a degree occurs at all is worth nothing by halves. With noise of more than about one
    node, the sorted degrees tell more about the tail; with less, the counts alone show every step.
    On few nodes the noise may be as large as any degree: the counts have it all then, too.

    Example:
        >>> degree_budgets(SCHEDULES["plain"], 1000, Fraction(5), Fraction(4))
        {'reached': Fraction(12, 5)}
    """
    curve = [name for name in DEGREES if name in tuple(names)]
    if not curve:
        return {}
    if len(curve) == len(tuple(names)):
        share = GRAIN
    else:
        spent = float(epsilon)
        share = round(GRAIN * min(0.32 + 0.1 * spent, 0.6))
    both = left * Fraction(share, GRAIN)
    if len(curve) == 1:
        return {curve[0]: both}
    little, much = _TUNING.noises
    # The scale of the noise, if the counts had it all.
    noise = float(2 / both)
    tail = _TUNING.tail * min(max((noise - little) / (much - little), 0.0), 1.0)
    second = both * Fraction(round(GRAIN * tail), GRAIN)
    if tail < _TUNING.worth_it or float(2 / second) > _TUNING.drowned * nodes:
        second = Fraction(0)
    return {name: b for name, b in zip(DEGREES, (both - second, second), strict=True) if b}


def last_budgets(
    names: Iterable[str], left: Fraction, known: Known, scale: float
) -> dict[str, Fraction]:
    """Return the budgets of the other parts; they add up to what is left.

    A part without hope gets nothing, and is not measured.

    Example:
        >>> known = guess_known(1000, 10_000)
        >>> budgets = last_budgets(("stars", "closure", "mixing"), Fraction(1, 2), known, 2.0)
        >>> sum(budgets.values())
        Fraction(1, 2)
    """
    every = gains(known, max(float(left), 1e-12), scale)
    wanted = {name: every[name] for name in names if every[name].weight}
    if "members" not in wanted:
        # Blocks in which most nodes stand in the wrong place keep apart what belongs together.
        wanted.pop("pairs", None)
    if not wanted:
        # There is nothing better to spend it on.
        wanted = {name: every[name]._replace(weight=1.0) for name in names}
    if not wanted:
        return {}
    spent = _spread(wanted, max(float(left), 1e-12))
    # Whole thousandths, the last ones to the largest part.
    shares = {name: max(round(GRAIN * b / float(left)), 1) for name, b in spent.items()}
    shares[max(shares, key=lambda name: shares[name])] += GRAIN - sum(shares.values())
    return {name: left * Fraction(share, GRAIN) for name, share in shares.items()}


def _spread(wanted: Mapping[str, Gain], total: float) -> dict[str, float]:
    """Return budgets that add up to the total, at one price for all."""
    low, high = 1e-9, 1e12
    for _ in range(200):
        price = math.sqrt(low * high)
        if sum(gain.spends(price) for gain in wanted.values()) > total:
            low = price
        else:
            high = price
    found = {name: gain.spends(high) for name, gain in wanted.items()}
    rest = total / sum(found.values())
    return {name: spent * rest for name, spent in found.items()}
