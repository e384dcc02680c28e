"""Exact noise patterns for binary matrices: to be XORed with a matrix, bit by bit.

Independent coins (:func:`response_bits`), lines of exchangeable bits (:func:`exchangeable_bits`)
and the pieces they are made of. No float takes part in a decision.
"""

from __future__ import annotations

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.source import Source
from tulle.core.validate import Number
from tulle.noise.bernoulli import fixed_coins
from tulle.noise.source import Bits, logistic_floor, report, resolve
from tulle.noise.tables import TableLaw, ranks, settle
from tulle.noise.xor.laws import Counts

_CHUNK = 1 << 20
"""Random bytes taken at a time: they stay in the cache."""

_WORD_BITS = 62


def response_bits(epsilon: Number, count: int, source: Source | None = None) -> Array:
    """Draw bits that are 1 with probability 1 / (1 + exp(epsilon)), independently and exactly.

    *Guarantee.* A bit XORed with one is epsilon-private: it is kept exp(epsilon) times as often
    as it is flipped.

    *Method.* Random bytes, and more bits where those tie, are compared with the binary digits of
    the probability; the digits come from certified bounds of exp.

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
        part[:] = fixed_coins(lambda n: (logistic_floor(exact, n), False), len(part), source)
    return out


def flip_probability(epsilon: Number) -> float:
    """Return 1 / (1 + exp(epsilon)): no epsilon-private bit is wrong less often.

    Example:
        >>> round(flip_probability(0.5), 3)
        0.378
    """
    exact = validate.positive(epsilon=epsilon)
    return logistic_floor(exact, 128) / 2.0**128


def draw_law(law: TableLaw, count: int, source: Source | None = None) -> Array:
    """Draw from a law on finitely many whole numbers, in bulk and exactly.

    *Method.* Sixty-two bits of a uniform real are looked up among the law's thresholds; in the
    rare case that they equal one, more bits of both are taken.
    """
    source = resolve(source)
    floors = np.array(law.floors(_WORD_BITS), dtype=np.uint64)
    words = np.frombuffer(source.read(8 * count), dtype="<u8") >> np.uint64(64 - _WORD_BITS)
    drawn = ranks(floors, words)
    ties = np.flatnonzero(floors[np.maximum(drawn, 1) - 1] == words)
    bits = Bits(source)
    for place in ties[drawn[ties] > 0].tolist():
        drawn[place] = settle(law, int(words[place]), _WORD_BITS, bits)
    return drawn.astype(np.int64, copy=False)


def exchangeable_bits(law: Counts, lines: int, source: Source | None = None) -> Array:
    """Draw lines of bits: the number of ones in each from ``law``, then a uniform set of places.

    Returns a uint8 array with one line per row.

    Example:
        >>> from fractions import Fraction
        >>> from tulle.noise.xor.laws import TwoLevelPatterns
        >>> exchangeable_bits(TwoLevelPatterns(Fraction(1000), 8, 0), 2).sum(axis=1).tolist()
        [0, 0]
    """
    report("pattern", law=law)
    source = resolve(source)
    return uniform_subsets(draw_law(law, lines, source), law.length, source)


def uniform_subsets(sizes: Array, length: int, source: Source | None = None) -> Array:
    """Draw, for each size, a uniformly random set of that many of ``length`` places, as bits.

    *Method.* From left to right a place is taken with probability (still wanted) / (places left).
    Lines in which a word would favour some numbers are drawn again; which lines these are says
    nothing about those that stay. The work is the same whatever the sizes are.

    Reference: Fan, Muller, Rezucha, *Development of sampling plans by using sequential selection
    techniques*, Journal of the American Statistical Association 1962; Lemire, *Fast random integer
    generation in an interval*, ACM Transactions on Modeling and Computer Simulation 2019.
    """
    from tulle.noise.xor import kernels as xor_kernels  # numba is slow to import

    source = resolve(source)
    want = np.ascontiguousarray(sizes, dtype=np.int64)
    out = np.zeros((len(want), length), dtype=np.uint8)
    if not length:
        return out
    width, bits = _word_for(length)
    limits = np.array([0, *((1 << bits) % left for left in range(1, length + 1))], dtype=np.int64)
    step = max(1, _CHUNK // length)
    waiting = np.arange(len(want))
    while len(waiting):
        lines, waiting = waiting[:step], waiting[step:]
        raw = np.frombuffer(source.read(width * len(lines) * length), dtype=f"<u{width}")
        words = (raw >> np.array(8 * width - bits, dtype=raw.dtype)).reshape(len(lines), length)
        drawn = np.empty((len(lines), length), dtype=np.uint8)
        good = xor_kernels.choose_places(words, bits, limits, want[lines], drawn)
        out[lines] = drawn
        if good < len(lines):
            waiting = np.append(waiting, lines[drawn[:, 0] > 1])
    return out


def _word_for(length: int) -> tuple[int, int]:
    """Return bytes read for a place and bits used of them: few lines are to be drawn again."""
    if length <= 64:
        return 2, 16
    if length <= 8192:
        return 4, 32
    return 8, 62 - length.bit_length()
