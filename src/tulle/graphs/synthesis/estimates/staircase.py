"""What noisy counts along both axes of a degree curve say about each degree.

How many nodes have degree at least k, and the degree of the i-th node, draw the same staircase:
down by one degree, or across by one node. All staircases are weighed at once, by the likelihood of
both noisy rows and by a smooth guess of how many nodes each degree has, in two sweeps. Only those
within reach of the noise are looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled, inner

_REACH = 9.0
"""How many scales of noise around the middle line staircases are looked at."""


def weigh_staircases(
    reached: Wholes,
    sequence: Wholes,
    scales: tuple[float, float],
    guess: Floats,
    middle: Floats,
    tilt: Floats | None = None,
) -> Floats:
    """Return how many nodes have each degree on average, from 0 up to the length of the guess.

    ``reached`` is the noisy number of nodes of degree at least 1, 2, ..., ``sequence`` the noisy
    sorted degrees, ``scales`` the scales of their Laplace noise. ``guess`` is about how many
    nodes have each degree, ``middle`` about how many have at least each degree. ``tilt`` is what
    else is known: the logarithm of a weight for each node of each degree.

    Example:
        >>> reached, sequence = np.array([4, 1, 1]), np.array([3, 1, 1, 1])
        >>> middle = np.array([4.0, 4.0, 1.0, 1.0])
        >>> found = weigh_staircases(reached, sequence, (0.1, 0.1), np.ones(4), middle)
        >>> found.round(2).tolist()
        [0.0, 3.0, 0.0, 1.0]
    """
    nodes = len(sequence)
    reach = _REACH * scales[0] + 8
    low = np.clip(np.floor(middle - reach), 0, nodes).astype(np.int64)
    high = np.clip(np.ceil(middle + reach), 0, nodes).astype(np.int64)
    low[0] = high[0] = nodes
    low, high = np.append(low, 0), np.append(high, 0)
    odds = np.maximum(guess, 1e-3)
    across, down = np.log(odds / (1 + odds)), -np.log1p(odds)
    at_least = _sweep(
        reached.astype(np.float64),
        sequence.astype(np.float64),
        1 / scales[0],
        1 / scales[1],
        across if tilt is None else across + tilt,
        down,
        low,
        high,
    )
    expected: Floats = np.maximum(-np.diff(np.append(at_least, 0.0)), 0.0)
    return expected


@inner
def _plus(one: Any, other: Any) -> Any:
    """Return log(exp(one) + exp(other))."""
    if one < other:
        one, other = other, one
    if other == -np.inf:
        return one
    return one + np.log1p(np.exp(other - one))


@compiled
def _sweep(
    reached: Any,
    sequence: Any,
    first: Any,
    second: Any,
    across: Any,
    down: Any,
    low: Any,
    high: Any,
) -> Any:
    """Return the mean number of nodes that reach each degree.

    Forwards, from the largest degree: before[k] is the weight of all ways to arrive at degree k
    with so many nodes placed, after[k] with those of degree k placed too. Backwards: the weight of
    all ways on from there.
    """
    degrees = len(across)
    starts = np.zeros(degrees + 1, np.int64)
    for degree in range(degrees):
        starts[degree + 1] = starts[degree] + high[degree] - low[degree + 1] + 1
    before = np.full(starts[degrees], -np.inf)
    after = np.full(starts[degrees], -np.inf)
    for degree in range(degrees - 1, -1, -1):
        base = starts[degree] - low[degree + 1]
        if degree == degrees - 1:
            before[base] = 0.0
        else:
            above = starts[degree + 1] - low[degree + 2]
            for rank in range(low[degree + 1], high[degree + 1] + 1):
                before[base + rank] = (
                    after[above + rank] + down[degree + 1] - first * abs(rank - reached[degree])
                )
        carried = -np.inf
        for rank in range(low[degree + 1], high[degree] + 1):
            if rank > low[degree + 1]:
                carried += across[degree] - second * abs(degree - sequence[rank - 1])
            carried = _plus(carried, before[base + rank])
            after[base + rank] = carried if rank >= low[degree] else -np.inf
    total = after[starts[0] - low[1] + high[0]]
    at_least = np.zeros(degrees)
    onwards = np.zeros(1)
    for degree in range(degrees):
        base, bottom = starts[degree] - low[degree + 1], low[degree + 1]
        mean = 0.0
        # From here on, after the nodes of this degree are placed.
        ahead = np.full(high[degree] - bottom + 1, -np.inf)
        for rank in range(low[degree], high[degree] + 1):
            value = onwards[rank - low[degree]]
            ahead[rank - bottom] = value
            weight = np.exp(after[base + rank] + value - total)
            mean += rank * weight
        at_least[degree] = mean
        if degree == degrees - 1:
            break
        # From here on, before they are placed.
        carried = -np.inf
        for rank in range(high[degree], bottom - 1, -1):
            if rank < high[degree]:
                carried += across[degree] - second * abs(degree - sequence[rank])
            carried = _plus(carried, ahead[rank - bottom])
            ahead[rank - bottom] = carried
        onwards = np.full(high[degree + 1] - bottom + 1, -np.inf)
        for rank in range(bottom, high[degree + 1] + 1):
            onwards[rank - bottom] = (
                ahead[rank - bottom] + down[degree + 1] - first * abs(rank - reached[degree])
            )
    return at_least
