"""How noise is shared out among blocks of cells, and where to cut cells into blocks.

One individual contributes a *mass* m_k to block k: the sum of absolute values for Laplace noise,
of squares for Gaussian noise. Known are m_k <= cap_k for each block and sum_k m_k <= total. With
n_k cells and noise of scale s_k in block k the expected absolute error is, up to a constant, the
sum of n_k·s_k, and the guarantee needs

* Laplace: sum_k m_k / s_k <= epsilon,
* Gaussian: sum_k m_k / s_k² <= mu² (= 2·rho)

for *every* possible m. In 1/s_k (or 1/s_k²) the error is convex and the guarantee linear, so the
best scales against the worst m and the worst m against the best scales meet in a saddle point.
For a fixed m the best scales follow from Lagrange's condition, and the error is

* Laplace: s_k = sqrt(m_k / n_k)·f / epsilon, error f² / epsilon, f = sum_k n_k^(1/2)·m_k^(1/2);
* Gaussian: s_k = (m_k / n_k)^(1/3)·sqrt(f) / mu, error f^(3/2) / mu, f = sum_k n_k^(2/3)·m_k^(1/3).

The worst m maximises f, which is concave: it fills blocks to one level, m_k = min(cap_k, w·n_k).
Without a joint total m_k = cap_k, and the Laplace shares epsilon_k = m_k / s_k are proportional
to sqrt(n_k·cap_k): theorem 5 of Brunet et al., *Novel differentially private mechanisms for
graphs*, 2016. With one, blocks that reach the level have equal noise, and by Cauchy's inequality
the error is never above that of plain noise on the total.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tulle.core.arrays import Floats, Wholes

LAPLACE, GAUSSIAN = Fraction(1, 2), Fraction(1, 3)
"""The power of m in f; that of n is one minus it."""

MOST_BLOCKS = 16
"""How many blocks are tried when their number is left open."""

MOST_CLASSES = 256
"""So many different bounds are told apart; more are merged upwards first."""

_LEVELS = 48
"""How many Lagrange multipliers of the joint total are tried."""


def fill(sizes: Floats, caps: Floats, total: float) -> Floats:
    """Return the worst masses: min(cap, w·size), with w such that they add up to the total.

    Example:
        >>> fill(np.array([1.0, 3.0]), np.array([9.0, 9.0]), 8.0).tolist()
        [2.0, 6.0]
    """
    if not caps.sum() > total:
        return caps.copy()
    order = np.argsort(caps / sizes, kind="stable")
    left_mass, left_size = total, float(sizes.sum())
    for place in order:
        if caps[place] * left_size >= left_mass * sizes[place]:
            break
        left_mass -= caps[place]
        left_size -= sizes[place]
    found: Floats = np.minimum(caps, left_mass / left_size * sizes)
    return found


def burden(sizes: Floats, caps: Floats, total: float, power: Fraction) -> float:
    """Return f for the worst masses: the figure that a partition should make small."""
    a = float(power)
    return float(np.sum(sizes ** (1 - a) * fill(sizes, caps, total) ** a))


def scales(
    sizes: Floats, caps: Floats, total: float, power: Fraction, budget: float
) -> tuple[Floats, float]:
    """Return the best scale of each block and the sum of all cells' scales.

    ``budget`` is epsilon for Laplace and mu for Gaussian noise.
    """
    worst = fill(sizes, caps, total)
    a = float(power)
    f = float(np.sum(sizes ** (1 - a) * worst**a))
    # For a = 1/2 and 1/3: f^1 / epsilon and f^(1/2) / mu.
    factor = (f if power == LAPLACE else math.sqrt(f)) / budget
    found: Floats = (worst / sizes) ** a * factor
    return found, float(sizes @ found)


def price(caps: Sequence[int], total: int, rates: Sequence[Fraction]) -> Fraction:
    """Return the exact largest sum of m_k·rate_k over all masses within the caps and the total.

    The largest is found greedily, the dearest block first.

    Example:
        >>> price([3, 3], 4, [Fraction(1, 2), Fraction(1)])
        Fraction(7, 2)
    """
    left, paid = total, Fraction(0)
    for rate, cap in sorted(zip(rates, caps, strict=True), reverse=True):
        taken = min(cap, left)
        paid += taken * rate
        left -= taken
    return paid


# --- cutting ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """Cells grouped by equal bound, from the lowest bound to the highest."""

    bounds: Floats
    sizes: Floats
    caps: Floats
    """caps[i, j]: the most mass one individual can have in classes i to j - 1 together."""
    total: float
    """The most mass one individual can have in all cells."""


def cut(classes: Classes, blocks: int | str, power: Fraction) -> tuple[int, ...]:
    """Return where to cut the classes into blocks: the first class of each, the first being 0.

    For a number of blocks K the cuts minimise the predicted error over all partitions into K
    runs of classes. Without a joint total f is a sum over blocks, and dynamic programming is
    exact. With one, f = min over v >= 0 of v·total + the sum over blocks of
    max over m <= cap of n^(1-a)·m^a - v·m: dynamic programming is exact for each v, and the best
    partition over a fine scale of v is kept. ``"auto"`` takes the smallest K whose error is
    within 1 % of the best for any K up to 16.

    Example:
        >>> caps = np.triu(np.array([[0.0, 1, 101], [0, 0, 100], [0, 0, 0]]))
        >>> cells = Classes(np.array([1.0, 100]), np.array([99.0, 1]), caps, 101.0)
        >>> cut(cells, 2, LAPLACE)
        (0, 1)
    """
    count = len(classes.sizes)
    most = min(count, MOST_BLOCKS if blocks == "auto" else int(blocks))
    best: dict[int, tuple[float, tuple[int, ...]]] = {}
    for multiplier in _multipliers(classes, power):
        for k, cuts in _dynamic(classes, most, power, multiplier).items():
            found = burden(*run_figures(classes, cuts), classes.total, power), cuts
            if k not in best or found < best[k]:
                best[k] = found
    if blocks != "auto":
        return best[most][1]
    # The error is a power of f: f² for Laplace, f^(3/2) for Gaussian noise.
    exponent = 1 / (1 - float(power))
    least = min(f for f, _ in best.values())
    return next(cuts for f, cuts in best.values() if (f / least) ** exponent <= 1.01)


def run_figures(classes: Classes, cuts: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the number of cells and the cap of each run."""
    edges = [*cuts, len(classes.sizes)]
    sizes = np.add.reduceat(classes.sizes, np.array(cuts))
    caps = classes.caps[np.array(edges[:-1]), np.array(edges[1:])]
    return sizes, caps


def _multipliers(classes: Classes, power: Fraction) -> list[float]:
    if not math.isfinite(classes.total) or classes.total >= classes.caps.max() * len(classes.sizes):
        return [0.0]
    # At the level w = m / n the multiplier is a·w^(a - 1); w lies between these two.
    a = float(power)
    lowest = classes.total / classes.sizes.sum()
    levels = np.geomspace(lowest, max(classes.total / classes.sizes.min(), lowest * 2), _LEVELS)
    return [0.0, *(a * levels ** (a - 1)).tolist()]


def _dynamic(
    classes: Classes, most: int, power: Fraction, multiplier: float
) -> dict[int, tuple[int, ...]]:
    """Return, for each K up to ``most``, the cuts that minimise the sum of the runs' costs."""
    a = float(power)
    count = len(classes.sizes)
    ends = np.concatenate(([0.0], np.cumsum(classes.sizes)))
    sizes = np.maximum(ends[None, :] - ends[:, None], 0.0)
    masses = classes.caps
    if multiplier:
        masses = np.minimum(masses, sizes * (a / multiplier) ** (1 / (1 - a)))
    cost = sizes ** (1 - a) * masses**a - multiplier * masses
    cost[np.tril_indices(count + 1)] = math.inf
    reached = cost[0].copy()
    came: list[Wholes] = []
    found: dict[int, tuple[int, ...]] = {1: (0,)}
    for k in range(2, most + 1):
        ways = reached[:, None] + cost
        origin: Wholes = np.argmin(ways, axis=0)
        came.append(origin)
        reached = ways[origin, np.arange(count + 1)]
        cuts, place = [], count
        for step in range(k - 2, -1, -1):
            place = int(came[step][place])
            cuts.append(place)
        if math.isfinite(reached[count]):
            found[k] = (0, *reversed(cuts))
    return found


def group(
    bounds: Floats, make_caps: Callable[[Wholes, Floats, Floats], tuple[Floats, float]]
) -> tuple[Classes, Wholes]:
    """Group cells by bound; return the classes and the class of each cell.

    ``make_caps`` is given each cell's class, the bounds and the sizes, and returns caps and total.
    """
    distinct, where = np.unique(bounds, return_inverse=True)
    if len(distinct) > MOST_CLASSES:
        # Merge neighbouring bounds so that every class has about as many different ones.
        merged = np.arange(len(distinct)) * MOST_CLASSES // len(distinct)
        highest = np.flatnonzero(np.concatenate((merged[1:] != merged[:-1], [True])))
        distinct, where = distinct[highest], merged[where]
    places = where.reshape(-1).astype(np.int64)
    sizes = np.bincount(places, minlength=len(distinct)).astype(np.float64)
    caps, total = make_caps(places, distinct, sizes)
    return Classes(distinct, sizes, caps, total), places
