"""How many nodes get each degree: whole numbers from what is known on average.

A reader of a synthetic graph who sees no node of some degree concludes that it cannot occur, which
is the worst error there is about a distribution of degrees. So a degree that may occur gets a
node even if less than one is expected, as far as the number of nodes, of edges, of pairs of
edges that meet and of three allow: each is kept, and has its price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.graphs.mechanisms.isotonic import graphical


@dataclass(frozen=True)
class Tuning:
    """How counts of degrees are fitted to noisy ones.

    Which networks chose these numbers is not on record.
    """

    missed: float = 28.0
    """How much worse it is to miss a node altogether than to halve the nodes of its degree."""
    seen: float = 1e6
    """And to miss one where the middle staircase has it."""
    likely: float = 1e-3
    """Degrees with fewer nodes than this, on average, get none."""
    steep: tuple[float, float, float] = (4.0, 12.0, 40.0)
    """How abruptly a degree is given up where its price exceeds its worth, ever more so."""
    kept: float = 0.9
    """A degree that is not bought so far is given up."""
    least_reaction: float = 0.03
    """A degree is taken to lose at least so much of what it got as its price rises, relatively."""
    cheapest: float = 1e-6
    """No price is below this."""
    met: float = 1e-3
    """Totals are met if they are off by no more than this part of the squares."""
    room: float = 1.01
    """How far cubes may exceed what they should be, for the sake of more degrees that occur."""
    exact: float = 1e-7
    steps: int = 80
    shortest: float = 1e-6


_TUNING = Tuning()


def choose_counts(expected: Floats, nodes: int, edges: int, squares: float) -> Wholes:
    """Return how many nodes have each degree: n in all, with about 2·edges stubs and these squares.

    Nodes stand where the middle staircase has them, so that the tail is where it was seen. Beyond
    them, the expected divergence of the counts from the true ones is made least: its derivative
    in a degree's count, expected / count, equals the degree's price, which is a polynomial
    of the degree with a coefficient for each total. A degree without a node is worth its
    expected number of nodes, each ``_MISSED`` times; it gets one if that exceeds its price.

    Example:
        >>> choose_counts(np.array([0.0, 3.0, 0.2, 0.8]), 4, 3, 12.0).tolist()
        [0, 3, 0, 1]
    """
    middle = _rounded(expected)
    places = np.flatnonzero((expected >= _TUNING.likely) | (middle > 0))
    known = np.maximum(expected[places], _TUNING.likely)
    worth = np.where(middle[places] > 0, np.maximum(_TUNING.seen, known), _TUNING.missed * known)
    unit = max(float(places[-1]), 1.0) ** np.arange(4)
    powers = places.astype(np.float64) ** np.arange(4)[:, None] / unit[:, None]
    cubes = _TUNING.room * float(expected @ np.arange(len(expected), dtype=np.float64) ** 3)
    goal = np.array([nodes, 2 * edges, squares, cubes]) / unit
    counts = middle
    for totals in (3, 4):
        found = _buy(known, worth, powers[:totals], goal[:totals])
        if found is None:
            break
        counts = np.zeros(len(expected))
        counts[places] = found
        # Cubes say how unlike the ends of edges are. Mostly they are near enough.
        if float(powers[3] @ found) <= goal[3]:
            break
    # Rounding may leave a node or two: the fullest degree takes them.
    counts[np.argmax(counts)] += nodes - counts.sum()
    return (counts if counts.min() >= 0 else middle).astype(np.int64)


def _buy(known: Floats, worth: Floats, powers: Floats, goal: Floats) -> Floats | None:
    """Return whole numbers of nodes that meet the goal, or None if none do."""
    even = np.append(1.0, np.zeros(len(goal) - 1))
    prices = even
    for steep in _TUNING.steep:
        prices = _balance(known, worth, powers, goal, prices, steep)
    # Once more with whole nodes, for the degrees that got one.
    kept = _bought(known, worth, prices @ powers, _TUNING.steep[-1])[0] >= _TUNING.kept
    worth = np.where(kept, np.inf, 0.0)
    # The tail alone may have too many squares: then they are left as they are.
    for totals, start in ((len(goal), prices), (2, even)):
        rows, wanted = powers[:totals], goal[:totals]
        bought = _bought(known, worth, _balance(known, worth, rows, wanted, start[:totals]) @ rows)[
            0
        ]
        if np.abs(rows @ bought - wanted).max() <= max(
            _TUNING.met * goal[2], 2 * _TUNING.exact * goal[0]
        ):
            return kept + _rounded(bought - kept)
        if len(goal) > 3:
            break
    return None


def _bought(
    known: Floats, worth: Floats, price: Floats, steep: float = math.inf
) -> tuple[Floats, Floats]:
    """Return how many nodes each degree gets at its price, and how fast that changes with it.

    One while its worth exceeds the price, more while even more are expected.
    """
    price = np.maximum(price, _TUNING.cheapest)
    several = (known >= price) & (worth > 0)
    if math.isinf(steep):
        single, slope = (worth >= price).astype(np.float64), np.zeros_like(price)
    else:
        single = 1 / (1 + np.exp(np.clip(steep * np.log(price / worth), -60.0, 60.0)))
        slope = -steep * single * (1 - single)
    bought = np.where(several, known / price, single)
    return bought, np.where(several, -bought, slope) / price


def _balance(
    known: Floats,
    worth: Floats,
    powers: Floats,
    goal: Floats,
    prices: Floats,
    steep: float = math.inf,
) -> Floats:
    """Return prices at which what is bought adds up, by Newton's method on a convex function.

    Where prices could change without any effect, a degree is taken to react a little anyway.
    """
    least = 0.0 if math.isinf(steep) else _TUNING.least_reaction
    enough = _TUNING.exact * (np.abs(goal).max() + 1)
    price = np.maximum(prices @ powers, _TUNING.cheapest)
    bought, slope = _bought(known, worth, price, steep)
    for _ in range(_TUNING.steps):
        over = powers @ bought - goal
        if np.abs(over).max() <= enough or price.min() < _TUNING.cheapest:
            break
        reaction = (powers * np.maximum(-slope, least * bought / price)) @ powers.T
        reaction[np.diag_indices(len(goal))] += 1e-10 * (np.trace(reaction) + 1)
        step = np.linalg.solve(reaction, over)
        moves = step @ powers
        # Not all the way to a price of nothing.
        size = min(1.0, 0.8 / max(float((-moves / price).max()), 1e-9))
        before = float(over @ step)
        while size >= _TUNING.shortest:
            bought, slope = _bought(known, worth, price + size * moves, steep)
            if abs(float((powers @ bought - goal) @ step)) <= before:
                break
            size /= 2
        prices, price = prices + size * step, price + size * moves
    return prices


def _rounded(expected: Floats) -> Floats:
    """Return whole numbers whose sums from the top on are the rounded sums."""
    return np.diff(np.append(0.0, np.rint(np.cumsum(expected[::-1]))))[::-1]


def with_totals(counts: Wholes, edges: int, squares: float) -> Wholes:
    """Return degrees, descending and graphical, with these totals as nearly as possible.

    Nodes of crowded degrees move by one, to degrees that occur if possible: the tail stays.
    """
    nodes = int(counts.sum())
    degrees = _exact_total(np.repeat(np.arange(len(counts)), counts), 2 * edges, nodes)
    return graphical(_exact_squares(degrees, squares))


def _exact_total(degrees: Wholes, total: int, nodes: int) -> Wholes:
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
    return degrees


def _exact_squares(degrees: Wholes, squares: float) -> Wholes:
    """Return the degrees after pairs moved by one, up and down, until the squares add up.

    A node of degree a that rises and one of degree b that falls change them by 2(a - b) + 2.
    """
    counts = np.bincount(degrees, minlength=int(degrees[0]) + 2)
    for _ in range(200):
        held = np.arange(len(counts))
        missing = round((squares - float(counts @ (held.astype(np.float64) ** 2))) / 2)
        if missing == 0:
            break
        crowded = counts >= 3
        up = np.flatnonzero(crowded[:-1] & (counts[1:] > 0) & (held[:-1] > 0))
        down = np.flatnonzero(crowded & (held > 1) & (np.append(0, counts[:-1]) > 0))
        if not len(up) or not len(down):
            break
        gained = up[:, None] - down[None, :] + 1
        off = np.abs(missing - gained)
        best = int(np.argmin(off))
        rises, falls = up[best // len(down)], down[best % len(down)]
        if off.ravel()[best] >= abs(missing):
            break
        counts[rises] -= 1
        counts[rises + 1] += 1
        counts[falls] -= 1
        counts[falls - 1] += 1
    return np.repeat(np.arange(len(counts)), counts)[::-1].copy()


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
