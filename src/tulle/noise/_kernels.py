"""Compiled loops of the bulk samplers. Imported only when an array is drawn.

Integers only, except in :func:`accept_exponential`, which says what it assumes of floats.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

MAGNITUDE, SIGNED, FOLDED, MIRRORED = 0, 1, 2, 3
"""What the sign bit does to a magnitude m: nothing; ±m without -0; ±m; m or -m-1."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def draw_single(
    words: Array, floors: Array, guide: Array, shift: int, mode: int, out: Array, pending: Array
) -> tuple[int, int]:
    """Turn one word per draw into values; return how many were made and how many are pending.

    The low bit of a word is the sign, the others are 31 bits of a uniform real. ``pending`` gets
    pairs (place in ``out``, place in ``words``) of draws that those bits do not decide.
    """
    made = 0
    waiting = 0
    for position in range(words.shape[0]):
        word = words[position]
        uniform = word >> np.uint32(1)
        index = np.int64(guide[uniform >> shift])
        index += floors[index] <= uniform
        while floors[index] <= uniform:
            index += 1
        if index > 0 and floors[index - 1] == uniform:
            pending[waiting, 0] = made
            pending[waiting, 1] = position
            waiting += 1
        elif mode == SIGNED and index == 0 and word & np.uint32(1):
            continue
        negative = np.int64(word & np.uint32(1))
        if mode == MAGNITUDE:
            out[made] = index
        elif mode == MIRRORED:
            out[made] = index ^ -negative
        else:
            out[made] = (index ^ -negative) + negative
        made += 1
    return made, waiting


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def draw_digits(
    words: Array,
    floors: Array,
    starts: Array,
    guide: Array,
    guide_starts: Array,
    shifts: Array,
    widths: Array,
    mode: int,
    out: Array,
    pending: Array,
) -> tuple[int, int]:
    """Do the same with several digits per draw, the most significant first, one word each."""
    digits = starts.shape[0]
    made = 0
    waiting = 0
    for position in range(0, words.shape[0] - digits + 1, digits):
        value = np.int64(0)
        tied = False
        for digit in range(digits):
            uniform = words[position + digit] >> np.uint32(1)
            start = starts[digit]
            index = start + np.int64(guide[guide_starts[digit] + (uniform >> shifts[digit])])
            index += floors[index] <= uniform
            while floors[index] <= uniform:
                index += 1
            tied |= index > start and floors[index - 1] == uniform
            value = (value << widths[digit]) + (index - start)
        negative = np.int64(words[position] & np.uint32(1))
        if tied:
            pending[waiting, 0] = made
            pending[waiting, 1] = position
            waiting += 1
        elif mode == SIGNED and value == 0 and negative:
            continue
        if mode == MAGNITUDE:
            out[made] = value
        elif mode == MIRRORED:
            out[made] = value ^ -negative
        else:
            out[made] = (value ^ -negative) + negative
        made += 1
    return made, waiting


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def accept_exponential(exponents: Array, words: Array, verdicts: Array) -> int:
    """Decide Bernoulli(exp(-x)) from 64 bits each: 1, 0, or 2 where they do not; count the 2s.

    Assumes that ``math.exp`` and the exponent together are right to 2**-40 relative; a correct
    mathematical library is right to about 2**-52. Inside that margin the draw is left open.
    """
    undecided = 0
    for index in range(exponents.shape[0]):
        chance = math.exp(-exponents[index])
        uniform = np.float64(words[index]) * 2.0**-64
        # The absolute part covers the width of the 64-bit cell and underflow of the chance.
        margin = chance * 2.0**-40 + 2.0**-63
        if uniform < chance - margin:
            verdicts[index] = 1
        elif uniform > chance + margin:
            verdicts[index] = 0
        else:
            verdicts[index] = 2
            undecided += 1
    return undecided
