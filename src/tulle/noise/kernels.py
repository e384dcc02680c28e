"""Compiled loops of the bulk samplers. Imported only when an array is drawn.

Integers only, except in :func:`accept_exponential`, which says what it assumes of floats.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from tulle.core.arrays import Array

MAGNITUDE, SIGNED, FOLDED, MIRRORED = 0, 1, 2, 3
"""What the sign bit does to a magnitude m: nothing; ±m without -0; ±m; m or -m-1."""


BLOCK = 64
"""So many draws are looked up side by side."""


@njit(cache=True, nogil=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def draw_digits(
    words: Array,
    floors: Array,
    starts: Array,
    sizes: Array,
    widths: Array,
    mode: int,
    out: Array,
    pending: Array,
) -> tuple[int, int]:
    """Turn words into values, one word for each digit, the most significant first.

    The low bit of the first word is the sign; the other 31 bits of each are those of a uniform
    real, which is looked up among the digit's thresholds. Return how many values were made and how
    many are pending: ``pending`` gets pairs (place in ``out``, place in ``words``) of draws that
    those bits do not decide. The same is done for every word, whatever it is: the search takes as
    many steps, nothing is skipped, and no jump depends on a word.
    """
    digits = starts.shape[0]
    count = words.shape[0] // digits
    made = np.int64(0)
    waiting = np.int64(0)
    # A block of draws at a time goes through each step of the search together: one search has to
    # wait for its memory, many side by side have not.
    index = np.empty(BLOCK, dtype=np.int64)
    uniform = np.empty(BLOCK, dtype=np.uint32)
    value = np.empty(BLOCK, dtype=np.int64)
    tied = np.empty(BLOCK, dtype=np.int64)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        value[:] = 0
        tied[:] = 0
        for digit in range(digits):
            start = starts[digit]
            for lane in range(size):
                uniform[lane] = words[(begin + lane) * digits + digit] >> np.uint32(1)
                index[lane] = start
            half = sizes[digit] >> 1
            while half:
                for lane in range(size):
                    index[lane] += half * np.int64(floors[index[lane] + half - 1] <= uniform[lane])
                half >>= 1
            for lane in range(size):
                place = index[lane]
                before = floors[place - np.int64(place > start)]
                tied[lane] |= np.int64(before == uniform[lane])
                value[lane] = (value[lane] << widths[digit]) + place - start
        for lane in range(size):
            position = (begin + lane) * digits
            negative = np.int64(words[position] & np.uint32(1))
            pending[waiting, 0] = made
            pending[waiting, 1] = position
            waiting += tied[lane]
            if mode == MAGNITUDE:
                out[made] = value[lane]
            elif mode == MIRRORED:
                out[made] = value[lane] ^ -negative
            else:
                out[made] = (value[lane] ^ -negative) + negative
            # Minus zero is left out: the next value takes its place.
            out_of_law = np.int64(mode == SIGNED) & np.int64(value[lane] == 0) & negative
            made += 1 - (out_of_law & (1 - tied[lane]))
    return int(made), int(waiting)


@njit(cache=True, nogil=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def flip_coins(first: Array, more: Array, threshold: int, rest: int, out: Array) -> tuple[int, int]:
    """Set ``out`` where a random byte, and where it ties the next word, is below a probability.

    Return how many words of ``more`` were used, and how many of those tied once again; such coins
    are set to 2. Nothing is skipped: a word is looked at for every byte, and a jump depends on
    neither.
    """
    used = np.int64(0)
    open_coins = np.int64(0)
    last = more.shape[0] - 1
    for place in range(first.shape[0]):
        byte = np.int64(first[place])
        word = more[min(used, last)]
        tied = np.int64(byte == threshold)
        again = tied & np.int64(word == rest)
        out[place] = np.int64(byte < threshold) | (tied & np.int64(word < rest)) | (again << 1)
        used += tied
        open_coins += again
    return int(used), int(open_coins)


@njit(cache=True, nogil=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def accept_exponential(exponents: Array, words: Array, verdicts: Array) -> int:
    """Decide Bernoulli(exp(-x)) from 64 bits each: 1, 0, or 2 where they do not; count the 2s.

    Assumes that ``math.exp`` and the exponent together are right to 2**-40 relative; a correct
    mathematical library is right to about 2**-52. Inside that margin the draw is left open.
    """
    undecided = np.int64(0)
    for index in range(exponents.shape[0]):
        chance = math.exp(-exponents[index])
        uniform = np.float64(words[index]) * 2.0**-64
        # The absolute part covers the width of the 64-bit cell and underflow of the chance.
        margin = chance * 2.0**-40 + 2.0**-63
        surely = np.int64(uniform < chance - margin)
        unsure = (1 - surely) & np.int64(uniform <= chance + margin)
        verdicts[index] = surely | unsure << 1
        undecided += unsure
    return int(undecided)
