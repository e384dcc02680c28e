"""Compiled loops of the XOR noise. Imported only when noise is drawn."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from tulle.core.arrays import Array


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def choose_places(words: Array, bits: int, limits: Array, want: Array, out: Array) -> int:
    """Choose as many places of each line as wanted, one word for each place; count the good lines.

    From left to right a place is chosen with probability (still wanted) / (places left): the
    product of a word and the places left, over 2**bits, is a number below the latter, and each
    such number is equally likely once products that leave less than ``limits`` are thrown away. A
    line with such a product is not good and is marked by 2 in its first place. Nothing is skipped,
    and no jump depends on a word.
    """
    length = out.shape[1]
    good = np.int64(0)
    mask = (np.int64(1) << bits) - 1
    for line in range(out.shape[0]):
        wanted = want[line]
        bad = np.int64(0)
        for place in range(length):
            left = length - place
            product = np.int64(words[line, place]) * left
            bad |= np.int64((product & mask) < limits[left])
            hit = np.int64((product >> bits) < wanted)
            out[line, place] = hit
            wanted -= hit
        out[line, 0] |= bad << 1
        good += 1 - bad
    return int(good)


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
