"""Compiled loops of the XOR noise. Imported only when noise is drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def throw(randoms: Array, thresholds: Array, out: Array, have: Array) -> None:
    """Set each cell of line i where its random byte is below the line's threshold; count them."""
    for line in range(out.shape[0]):
        threshold = thresholds[line]
        count = np.int64(0)
        for place in range(out.shape[1]):
            hit = np.uint8(np.int64(randoms[line, place]) < threshold)
            out[line, place] = hit
            count += np.int64(hit)
        have[line] = count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def correct(out: Array, have: Array, want: Array, first: int, words: Array, limit: int) -> int:
    """Turn random cells until each line has as many as wanted; return the first open line.

    A cell of the wrong kind is tried again: given the set, the cell turned is uniform among those
    of its kind. ``limit`` is the number of 32-bit words that fall evenly on the cells.
    """
    length = out.shape[1]
    used = 0
    for line in range(first, out.shape[0]):
        while have[line] != want[line]:
            if used == words.shape[0]:
                return line
            word = np.int64(words[used])
            used += 1
            if word >= limit:
                continue
            place = word % length
            if have[line] < want[line]:
                if out[line, place] == 0:
                    out[line, place] = 1
                    have[line] += 1
            elif out[line, place] == 1:
                out[line, place] = 0
                have[line] -= 1
    return int(out.shape[0])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def sweep(
    upper: Array,
    lower: Array,
    words: Array,
    fields: Array,
    offsets: Array,
    others: Array,
    couplings: Array,
    scale: float,
    margin: float,
) -> int:
    """Update every site of every block once, in the two bounding chains; count the open draws.

    ``upper`` and ``lower`` hold one block per row. Site i becomes 1 when its uniform is below the
    chance 1 / (1 + exp(-h)), h = scale · (field + 2 · sum of couplings to ones). The chance is
    widened by ``margin`` for the upper chain and narrowed for the lower one, which keeps every
    true chain between them; a uniform that falls into the margin is counted as open.
    """
    undecided = 0
    for block in range(upper.shape[0]):
        for site in range(upper.shape[1]):
            high = fields[site]
            low = fields[site]
            for index in range(offsets[site], offsets[site + 1]):
                if upper[block, others[index]]:
                    high += 2 * couplings[index]
                if lower[block, others[index]]:
                    low += 2 * couplings[index]
            uniform = np.float64(words[block, site]) * 2.0**-64
            most = 1.0 / (1.0 + math.exp(-scale * np.float64(high)))
            least = 1.0 / (1.0 + math.exp(-scale * np.float64(low)))
            upper[block, site] = uniform < most + margin
            lower[block, site] = uniform < least - margin
            if abs(uniform - most) <= margin or abs(uniform - least) <= margin:
                undecided += 1
    return undecided
