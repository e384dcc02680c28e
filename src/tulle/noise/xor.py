"""Exact noise patterns for binary matrices: to be XORed with a matrix, bit by bit.

Independent coins (:func:`response_bits`), lines of exchangeable bits (:func:`exchangeable_bits`)
and the pieces they are made of. No float takes part in a decision.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tulle.core import validate
from tulle.core.exact import Number
from tulle.core.source import Source
from tulle.noise.bits import Bits
from tulle.noise.charge import report
from tulle.noise.exponent import exp_bounds
from tulle.noise.laws import Law
from tulle.noise.source import resolve
from tulle.noise.tables import settle
from tulle.noise.xor_laws import Counts

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 20
"""Random bytes taken at a time: they stay in the cache."""

_WORD_BITS = 62


def response_bits(epsilon: Number, count: int, source: Source | None = None) -> Array:
    """Draw bits that are 1 with probability 1 / (1 + exp(epsilon)), independently and exactly.

    *Guarantee.* A bit XORed with one is epsilon-private: it is kept exp(epsilon) times as often
    as it is flipped.

    *Method.* Random bytes are compared with the binary digits of the probability, byte by byte
    and only until they differ; the digits come from certified bounds of exp.

    Raises:
        InputError: when epsilon is not above zero or the count is not a whole number.

    Example:
        >>> response_bits(1000, 3).tolist()
        [0, 0, 0]

    Reference: Warner, *Randomized response*, Journal of the American Statistical Association 1965.
    """
    exact = validate.positive(epsilon=epsilon)
    count = validate.whole(count=count, at_least=0)
    report("response", epsilon=exact)
    source = resolve(source)
    out = np.empty(count, dtype=np.uint8)
    for start in range(0, count, _CHUNK):
        part = out[start : start + _CHUNK]
        part[:] = _below_logistic(exact, len(part), 1, source)
    return out


def flip_probability(epsilon: Number) -> float:
    """Return 1 / (1 + exp(epsilon)): no epsilon-private bit is wrong less often.

    Example:
        >>> round(flip_probability(0.5), 3)
        0.378
    """
    exact = validate.positive(epsilon=epsilon)
    return logistic_floor(exact, 128) / 2.0**128


def _below_logistic(x: Fraction, count: int, digit: int, source: Source) -> Array:
    """Compare random bytes with digit ``digit`` of 1 / (1 + e^x); where they tie, with the next."""
    threshold = logistic_floor(x, 8 * digit) & 255
    randoms = np.frombuffer(source.read(count), dtype=np.uint8)
    out = randoms < threshold
    ties = np.flatnonzero(randoms == threshold)
    if len(ties):
        out[ties] = _below_logistic(x, len(ties), digit + 1, source)
    return out


@lru_cache(maxsize=1024)
def logistic_floor(x: Fraction, bits: int) -> int:
    """Return floor(2**bits / (1 + exp(x))), certainly.

    Unless x = 0 the value is irrational, so that finer bounds always decide.

    Example:
        >>> logistic_floor(Fraction(0), 8), logistic_floor(Fraction(1), 8)
        (128, 68)
    """
    if x == 0:
        return 1 << bits - 1
    guard = 64
    while True:
        width = bits + guard
        low, high = exp_bounds(abs(x), width)
        one = 1 << width
        if x > 0:
            least, most = (low << bits) // (one + low), (high << bits) // (one + high)
        else:
            least, most = (one << bits) // (one + high), (one << bits) // (one + low)
        if least == most:
            return least
        guard *= 2


def draw_law(law: Law, count: int, source: Source | None = None) -> Array:
    """Draw from a law on finitely many whole numbers, in bulk and exactly.

    *Method.* Sixty-two bits of a uniform real are looked up among the law's thresholds; in the
    rare case that they equal one, more bits of both are taken.
    """
    source = resolve(source)
    floors = np.array(law.floors(_WORD_BITS), dtype=np.uint64)
    words = np.frombuffer(source.read(8 * count), dtype="<u8") >> np.uint64(64 - _WORD_BITS)
    drawn = np.searchsorted(floors, words, side="right")
    ties = np.flatnonzero(floors[np.maximum(drawn, 1) - 1] == words)
    bits = Bits(source)
    for place in ties[drawn[ties] > 0].tolist():
        drawn[place] = settle(law, int(words[place]), _WORD_BITS, bits)
    return drawn.astype(np.int64, copy=False)


def exchangeable_bits(law: Counts, lines: int, source: Source | None = None) -> Array:
    """Draw lines of bits: the number of ones in each from ``law``, then a uniform set of places.

    Returns a uint8 array with one line per row.

    Example:
        >>> from tulle.noise.xor_laws import TwoLevel
        >>> exchangeable_bits(TwoLevel(Fraction(1000), 8, 0), 2).sum(axis=1).tolist()
        [0, 0]
    """
    report("pattern", law=law)
    source = resolve(source)
    return uniform_subsets(draw_law(law, lines, source), law.length, source)


def uniform_subsets(sizes: Array, length: int, source: Source | None = None) -> Array:
    """Draw, for each size, a uniformly random set of that many of ``length`` places, as bits.

    *Method.* Coins of about the right chance set some places; then random places are set or
    cleared until the number is right. Both steps treat all places alike, so given the size every
    set is equally likely; and hardly more than one random byte is spent on a place.
    """
    from tulle.noise import xor_kernels  # numba is slow to import

    source = resolve(source)
    want = np.ascontiguousarray(sizes, dtype=np.int64)
    out = np.empty((len(want), length), dtype=np.uint8)
    have = np.empty(len(want), dtype=np.int64)
    thresholds = (512 * want + length) // (2 * length)
    limit = (1 << 32) // length * length
    step = max(1, _CHUNK // length)
    for start in range(0, len(want), step):
        part = slice(start, min(start + step, len(want)))
        lines = part.stop - part.start
        raw = np.frombuffer(source.read(lines * length), dtype=np.uint8)
        view = out[part]
        xor_kernels.throw(raw.reshape(lines, length), thresholds[part], view, have[part])
        line = 0
        while line < lines:
            missing = int(np.abs(have[part] - want[part]).sum())
            if missing == 0:
                break
            words = np.frombuffer(source.read(4 * min(2 * missing + 64, 1 << 16)), dtype="<u4")
            line = xor_kernels.correct(view, have[part], want[part], line, words, limit)
    return out
