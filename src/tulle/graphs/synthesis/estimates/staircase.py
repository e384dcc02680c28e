"""What noisy counts along both axes of a degree curve say about each degree.

How many nodes have degree at least k, and the degree of the i-th node, draw the same staircase:
down by one degree, or across by one node. All staircases are weighed at once, by the likelihood of
both noisy rows and by a smooth guess of how many nodes each degree has, in two sweeps. Only those
within reach of the noise are looked at.
"""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Floats, Wholes

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
        (1 / scales[0], 1 / scales[1]),
        across if tilt is None else across + tilt,
        down,
        low,
        high,
    )
    expected: Floats = np.maximum(-np.diff(np.append(at_least, 0.0)), 0.0)
    return expected


def _sweep(
    reached: Floats,
    sequence: Floats,
    rates: tuple[float, float],
    across: Floats,
    down: Floats,
    low: Wholes,
    high: Wholes,
) -> Floats:
    """Return the mean number of nodes that reach each degree.

    Forwards, from the largest degree: ``before`` is the weight, as a logarithm, of all ways to
    arrive at a degree with so many nodes placed, ``after`` with those of this degree placed too.
    Backwards: the weight of all ways on from there. Where a node is placed at a degree, its weight
    comes in: c_r = log(exp(c_{r-1} + w_r) + exp(b_r)) is, beside the sums of w, one running sum.
    """
    degrees, (first, second) = len(across), rates
    ways: list[tuple[Floats, Floats, Floats]] = []
    after, leaving = np.zeros(1), np.zeros(1)
    for degree in range(degrees - 1, -1, -1):
        bottom = low[degree + 1]
        if degree < degrees - 1:
            ranks = np.arange(bottom, high[degree + 1] + 1)
            leaving = down[degree + 1] - first * np.abs(ranks - reached[degree])
        # What it weighs to place one node more at this degree, summed up over its ranks.
        nodes = sequence[bottom : high[degree]]
        sums = np.append(0.0, np.cumsum(across[degree] - second * np.abs(degree - nodes)))
        before = np.full(len(sums), -np.inf)
        before[: len(after)] = after + leaving
        after = (np.logaddexp.accumulate(before - sums) + sums)[low[degree] - bottom :]
        ways.append((after, sums, leaving))
    at_least = np.zeros(degrees)
    onwards = np.zeros(1)
    for degree in range(degrees):
        after, sums, leaving = ways.pop()
        together = after + onwards
        weights = np.exp(together - together.max())
        at_least[degree] = low[degree] + np.arange(len(weights)) @ weights / weights.sum()
        ahead = np.full(len(sums), -np.inf)
        ahead[low[degree] - low[degree + 1] :] = onwards
        carried = np.logaddexp.accumulate((ahead + sums)[::-1])[::-1] - sums
        onwards = carried[: len(leaving)] + leaving
    return at_least
