"""How the model auto divides its epsilon: by what each part is expected to gain.

A part that spends b leaves an error of about floor + noise / b. The noise follows from public
facts and the number of edges, which is released first; the floor is what the generator gets wrong
anyway. Halving any error is held to be worth the same, times a weight: how many questions hang
on the part. So the sum of weight·log(floor + noise / b) is made least, over all b that add up.
While noise rules, a part gets its weight's share; once it is down to its floor, more would be
wasted on it, and what it leaves goes mostly to degrees, which have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

GRAIN = 1000
"""Shares are whole thousandths of what is left after the first parts."""

LEAST = Fraction(1, GRAIN)
"""The smallest share of that: no part that is measured gets less."""

_TAIL = 0.4
"""What the sorted degrees get of the degrees' budget where there is much noise."""

_NOISES = (0.8, 4.8)
"""Up to this scale of noise they get nothing, from that one on all of it."""

_WORTH_IT = 0.05
"""A smaller part than this is not measured at all."""

FIRST = ("edges", "order")
"""These come before anything else is known."""

DEGREES = ("reached", "sequence")

SCHEDULES: Mapping[str, tuple[str, ...]] = {
    "plain": ("reached", "sequence", "triangles", "closure", "mixing"),
    "blocks": ("reached", "sequence", "triangles", "closure", "mixing", "members", "pairs"),
}
"""What is measured after the first parts, one way or the other."""


class Gain(NamedTuple):
    """What a part gains from its budget."""

    weight: float
    noise: float
    """Its relative error at a budget of one."""
    floor: float
    """Its relative error at any budget."""

    def spends(self, price: float) -> float:
        """Return the budget at which one more of it gains exactly the price.

        The root of weight·noise = price·b·(floor·b + noise).
        """
        if self.floor == 0:
            return self.weight / price
        half = self.noise / (2 * self.floor)
        return math.sqrt(half**2 + 2 * half * self.weight / price) - half


def gains(nodes: int, edges: int) -> dict[str, Gain]:
    """Return the gain of each part, for a graph of about so many edges."""
    size, count = float(max(edges, 10)), float(max(nodes, 2))
    return {
        # Both axes of the curve together.
        "degrees": Gain(5.0, 1.0, 0.0),
        # One edge closes some dozens of triangles at most, and there are about as many as edges.
        "triangles": Gain(1.2, 100 / size, 0.002),
        # The noise of a few picks, beside a third of all nodes.
        "closure": Gain(1.0, 20 / count, 0.03),
        # Some hundred edges' worth, over all classes.
        "mixing": Gain(1.2, 250 / size, 0.02),
        # The noise of one node's neighbours in a block, beside its degree.
        "members": Gain(1.0, 1.4 * count / size, 0.1),
        "pairs": Gain(0.5, 100 / size, 0.01),
    }


def first_shares(nodes: int, epsilon: Fraction, parts: Iterable[str]) -> dict[str, Fraction]:
    """Return the shares of the first parts, of all of epsilon.

    Edges get what keeps them nearer than the sum of noisy degrees would be; the order needs less
    where there is more.

    Example:
        >>> first_shares(4039, Fraction(1), FIRST)
        {'edges': Fraction(9, 100), 'order': Fraction(77, 1000)}
    """
    about = {
        "edges": 0.09,
        "order": 0.09 / (1 + min(float(epsilon), 1e6) / 6),
    }
    return {
        name: max(Fraction(round(share * GRAIN), GRAIN), LEAST)
        for name, share in about.items()
        if name in tuple(parts)
    }


@lru_cache(maxsize=64)
def later_shares(
    names: tuple[str, ...], epsilon: Fraction, nodes: int, edges: int
) -> dict[str, Fraction]:
    """Return the shares of these parts in an epsilon that they have together; they add up to one.

    A part may get nothing, and is then not measured: the sorted degrees are of no use beside
    counts with little noise.

    Example:
        >>> shares = later_shares(SCHEDULES["plain"], Fraction(1, 2), 1000, 10_000)
        >>> sum(shares.values()), max(shares, key=shares.get)
        (Fraction(1, 1), 'reached')
    """
    known = gains(nodes, edges)
    wanted = {name: known[name] for name in names if name in known}
    curve = [name for name in names if name in DEGREES]
    if curve:
        wanted["degrees"] = known["degrees"]
    if not wanted:
        return {}
    spent = _spread(wanted, max(float(epsilon), 1e-12))
    if curve:
        spent.update(_both_axes(spent.pop("degrees"), curve))
    # Whole thousandths, the last ones to the largest part.
    shares = {
        name: max(round(GRAIN * spent[name] / float(epsilon)), int(spent[name] > 0))
        for name in names
    }
    shares[max(names, key=lambda name: shares[name])] += GRAIN - sum(shares.values())
    return {name: Fraction(share, GRAIN) for name, share in shares.items()}


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


def _both_axes(spent: float, names: list[str]) -> dict[str, float]:
    """Return the budgets of the two axes of the degree curve.

    With noise of more than about one node, the sorted degrees tell more about the tail; with less,
    the counts alone show every step.
    """
    if len(names) == 1:
        return {names[0]: spent}
    # The scale of the noise, if the counts had it all.
    little, much = _NOISES
    share = _TAIL * min(max((2 / spent - little) / (much - little), 0.0), 1.0)
    share = share if share >= _WORTH_IT else 0.0
    return {"reached": spent * (1 - share), "sequence": spent * share}
