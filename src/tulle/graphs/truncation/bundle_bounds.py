"""Bounds on the truncated value of bundles that hold in spite of rounding.

Both are worked out on the whole problem from vectors of any origin and trust nothing else. Each
sum over the leaves of a bundle carries a bound on its rounding error: with unit roundoff u, n terms
and magnitude M (the sum of absolute values), at most 2 (n + 8) u M. Totals over bundles are exact
sums rounded once (``math.fsum``).
"""

from __future__ import annotations

import math

import numpy as np

from tulle.core.arrays import Array
from tulle.core.compiled import compiled
from tulle.graphs.truncation.bundles import Bundles, chosen

ROUNDOFF = 2.0**-53
GRID = 2.0**40


class Tables:
    """s(i) = C(i, k-1) and b(i) = (k-1) C(i+1, k) for i from 0 to the largest bundle's size."""

    def __init__(self, bundles: Bundles) -> None:
        places = np.arange(int(bundles.sizes.max(initial=0)) + 1)
        self.slope = chosen(places, bundles.k - 1)
        self.shift = (bundles.k - 1) * chosen(places + 1, bundles.k)


def upper_bound(bundles: Bundles, tables: Tables, tau: float, deletions: Array) -> float:
    """Return a float that is certainly at least X(tau), from any deletions g."""
    clean = np.clip(np.nan_to_num(deletions, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    # On this grid g, m and a are exact, and so are the sums over a bundle of up to 2^12 leaves.
    clean = np.rint(clean * GRID) / GRID
    kept = _kept(
        bundles.k, bundles.stems, bundles.offsets, bundles.leaves, tables.slope, tables.shift, clean
    )
    bound = (math.fsum(kept) + tau * math.fsum(clean)) * (1.0 + 16.0 * ROUNDOFF)
    return float(np.nextafter(bound, np.inf)) if bound > 0.0 else 0.0


@compiled
def _kept(
    k: int, stems: Array, offsets: Array, leaves: Array, slope: Array, shift: Array, g: Array
) -> Array:
    """Return Phi of each bundle, rounded upwards."""
    result = np.zeros(len(stems))
    for bundle in range(len(stems)):
        stem = 1.0
        for column in range(stems.shape[1]):
            stem -= g[stems[bundle, column]]
        if stem <= 0.0:
            continue
        size = offsets[bundle + 1] - offsets[bundle]
        part = 0.0
        for leaf in range(offsets[bundle], offsets[bundle + 1]):
            left = stem
            for column in range(leaves.shape[1]):
                left -= g[leaves[leaf, column]]
            part += max(left, 0.0)
        error = 2.0 * (size + 8) * ROUNDOFF
        part *= 1.0 + error
        # Phi is the largest of these lines; next to the right one, the neighbours cover rounding.
        place = int(part / stem)
        best = 0.0
        for line in range(max(place - 1, k - 1), min(place + 2, size)):
            up, down = slope[line] * part, shift[line] * stem
            best = max(best, up - down + 8.0 * ROUNDOFF * (up + down))
        if place >= size:
            line = size - 1
            up, down = slope[line] * part, shift[line] * stem
            best = max(best, up - down + 8.0 * ROUNDOFF * (up + down))
        result[bundle] = best
    return result


def lower_bound(
    bundles: Bundles, tables: Tables, tau: float, limits: Array, heights: Array, uses: Array
) -> float:
    """Return a float that is certainly at most X(tau), from any S (limits), R (heights), w (uses).

    A limit of infinity means that S is as large as R and w allow.
    """
    kept = _feasible(
        bundles.k,
        bundles.stems,
        bundles.offsets,
        bundles.leaves,
        tables.slope,
        tables.shift,
        bundles.count,
        tau,
        np.nan_to_num(limits, nan=0.0, posinf=np.inf),
        np.nan_to_num(heights, nan=0.0),
        np.nan_to_num(uses, nan=0.0),
    )
    return max(0.0, float(np.nextafter(math.fsum(kept) * (1.0 - 4.0 * ROUNDOFF), -np.inf)))


@compiled
def _price(slope: Array, shift: Array, k: int, size: int, height: float) -> float:
    """Return B(height), rounded upwards."""
    low, high = k - 2, size - 1
    # The last place with slope <= height; slope is 0 at k - 2 and grows strictly from there.
    while low < high:
        middle = (low + high + 1) >> 1
        if slope[middle] <= height:
            low = middle
        else:
            high = middle - 1
    base = shift[low] if low >= k - 1 else 0.0
    start = slope[low] if low >= k - 1 else 0.0
    return (base + (low + 1) * max(height - start, 0.0)) * (1.0 + 32.0 * ROUNDOFF)


@compiled
def _feasible(
    k: int,
    stems: Array,
    offsets: Array,
    leaves: Array,
    slope: Array,
    shift: Array,
    count: int,
    tau: float,
    limits: Array,
    heights: Array,
    uses: Array,
) -> Array:
    """Shrink R and w until they are certainly feasible, and return S of each bundle, rounded down.

    Leaves with an overloaded participant shrink first; what the bundle keeps shrinks by as much.
    Then bundles with an overloaded stem shrink as a whole: B is convex with B(0) = 0, so S may
    shrink in proportion. Everything only falls, so nobody's load can rise on the way.
    """
    bundles = len(stems)
    width = leaves.shape[1]
    tall = np.empty(bundles)
    use = np.empty(len(uses))
    kept = np.zeros(bundles)
    loads = np.zeros(count)
    terms = np.zeros(count)
    for bundle in range(bundles):
        size = offsets[bundle + 1] - offsets[bundle]
        most = slope[size - 1] * (1.0 - 4.0 * ROUNDOFF)
        tall[bundle] = min(max(heights[bundle], 0.0), most)
        total = 0.0
        highest = 0.0
        for leaf in range(offsets[bundle], offsets[bundle + 1]):
            use[leaf] = min(max(uses[leaf], 0.0), tall[bundle])
            highest = max(highest, use[leaf])
            total += use[leaf]
        # A height above all uses only costs.
        tall[bundle] = highest
        price = _price(slope, shift, k, size, highest)
        upper = total - price + 4.0 * (size + 8) * ROUNDOFF * (total + price)
        if limits[bundle] < upper:
            # Uses beyond what the bundle shall keep are a waste; B is convex with B(0) = 0.
            factor = max(limits[bundle], 0.0) / upper
            tall[bundle] *= factor
            total *= factor
            for leaf in range(offsets[bundle], offsets[bundle + 1]):
                use[leaf] *= factor
            price = _price(slope, shift, k, size, tall[bundle])
            upper = total - price + 4.0 * (size + 8) * ROUNDOFF * (total + price)
            upper = min(upper, limits[bundle])
        kept[bundle] = max(upper, 0.0)
        if upper <= 0.0:
            tall[bundle] = 0.0
            for leaf in range(offsets[bundle], offsets[bundle + 1]):
                use[leaf] = 0.0
            continue
        for column in range(stems.shape[1]):
            loads[stems[bundle, column]] += upper
            terms[stems[bundle, column]] += 1.0
        for leaf in range(offsets[bundle], offsets[bundle + 1]):
            for column in range(width):
                loads[leaves[leaf, column]] += use[leaf]
                terms[leaves[leaf, column]] += 1.0
    shrink = np.ones(count)
    for participant in range(count):
        most = loads[participant] * (1.0 + 4.0 * ROUNDOFF * (terms[participant] + 8.0))
        if most > tau:
            shrink[participant] = tau / most * (1.0 - 8.0 * ROUNDOFF)
    for bundle in range(bundles):
        if tall[bundle] <= 0.0:
            continue
        size = offsets[bundle + 1] - offsets[bundle]
        total = 0.0
        highest = 0.0
        for leaf in range(offsets[bundle], offsets[bundle + 1]):
            least = 1.0
            for column in range(width):
                least = min(least, shrink[leaves[leaf, column]])
            use[leaf] *= least
            highest = max(highest, use[leaf])
            total += use[leaf]
        price = _price(slope, shift, k, size, highest)
        lower = total - price - 4.0 * (size + 8) * ROUNDOFF * (total + price)
        least = 1.0
        for column in range(stems.shape[1]):
            least = min(least, shrink[stems[bundle, column]])
        # A lower height may leave room for more than before; taking it would load the stem.
        lower = min(max(lower, 0.0), kept[bundle])
        kept[bundle] = lower * least * (1.0 - 4.0 * ROUNDOFF)
    return kept
