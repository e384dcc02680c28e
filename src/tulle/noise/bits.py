"""Single fair bits, and the exact choices that need only a few of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from operator import eq

from tulle.core.source import Source
from tulle.noise.exponent import exp_bounds, exp_bounds_of, logistic_floor
from tulle.noise.source import TapeSource, resolve


class Bits:
    """Reads a source bit by bit; lives for one call, so that nothing is kept to be replayed.

    Example:
        >>> from tulle.noise import TapeSource
        >>> Bits(TapeSource("101")).take(3)
        5
    """

    __slots__ = ("_count", "_source", "_tape", "_value", "step")

    def __init__(self, source: Source | None = None) -> None:
        self._source = resolve(source)
        # A tape is read one bit at a time, so that a test sees how many bits decided the outcome.
        self._tape = self._source if isinstance(self._source, TapeSource) else None
        self.step = 128 if self._tape is None else 1
        """So many bits are taken for a decision, and again if they do not decide."""
        self._value = 0
        self._count = 0

    def bit(self) -> int:
        """Return one fair bit."""
        if self._tape is not None:
            return self._tape.bit()
        if not self._count:
            self._value = int.from_bytes(self._source.read(8), "little")
            self._count = 64
        self._count -= 1
        result = self._value & 1
        self._value >>= 1
        return result

    def take(self, count: int) -> int:
        """Return a uniform integer of ``count`` bits."""
        if self._tape is not None:
            value = 0
            for _ in range(count):
                value = 2 * value + self._tape.bit()
            return value
        missing = count - self._count
        if missing > 0:
            size = max(8, -(-missing // 8))
            self._value |= int.from_bytes(self._source.read(size), "little") << self._count
            self._count += 8 * size
        result = self._value & ((1 << count) - 1)
        self._value >>= count
        self._count -= count
        return result

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound)."""
        width = (bound - 1).bit_length()
        while True:
            value = self.take(width)
            if value < bound:
                return value

    def scaled(self, bound: int) -> int:
        """Return a uniform integer in [0, bound), in as many steps whatever the bound below 2**64.

        It is the floor of bound·U for a uniform real U, of which :attr:`step` bits are taken, and
        more only where those leave it open: once in 2**64 times.
        """
        uniform = known = 0
        while True:
            uniform = uniform << self.step | self.take(self.step)
            known += self.step
            low = uniform * bound >> known
            if low == (uniform + 1) * bound - 1 >> known:
                return low

    def less(
        self, floor: Callable[[int], tuple[int, bool]], uniform: int = 0, known: int = 0
    ) -> bool:
        """Tell whether a uniform real is below a probability p.

        ``floor(n)`` returns the floor of 2**n·p and whether it is exact. The real is compared
        :attr:`step` bits at a time; beyond the first step, once in 2**128 coins, only if all of
        them are equal. ``uniform`` holds the first ``known`` bits, if some are known already.
        """
        while True:
            if known:
                low, exact = floor(known)
                if uniform != low or exact:
                    return uniform < low
            uniform = uniform << self.step | self.take(self.step)
            known += self.step

    def fraction(self, numerator: int, denominator: int) -> bool:
        """Return True with probability numerator/denominator, in two bits on average."""

        def floor(known: int) -> tuple[int, bool]:
            quotient, rest = divmod(numerator << known, denominator)
            return quotient, rest == 0

        return self.less(floor)

    def exponential(self, numerator: int, denominator: int) -> bool:
        """Return True with probability exp(-numerator/denominator)."""

        def floor(known: int) -> tuple[int, bool]:
            low, high = exp_bounds_of(numerator, denominator, known)
            return low, low == high

        return self.less(floor)

    def geometric(self, scale: Fraction) -> int:
        """Return k >= 0 with probability proportional to exp(-k / scale).

        *Method.* The binary digits of k are independent: digit i is 1 with probability
        1 / (1 + exp(2**i / scale)). As many digits are drawn as the scale needs, whatever they
        come out as; what is left is geometric again, and zero but once in 2**184 draws.
        """
        if self._tape is not None:
            coins = [self.less(partial(coin_floor, x)) for x in coin_exponents(scale)]
        else:
            thresholds = coin_thresholds(scale)
            drawn = self._source.read(16 * len(thresholds))
            words = [
                int.from_bytes(drawn[start : start + 16], "little")
                for start in range(0, len(drawn), 16)
            ]
            coins = [word < limit for word, limit in zip(words, thresholds, strict=True)]
            if any(map(eq, words, thresholds)):
                coins = [
                    self.less(partial(coin_floor, x), word, 128)
                    for word, x in zip(words, coin_exponents(scale), strict=True)
                ]
        value = 0
        for place, coin in enumerate(coins[:-1]):
            value |= coin << place
        if coins[-1]:
            digits = len(coins) - 1
            value += (1 + self.geometric(scale / 2**digits)) << digits
        return value


REACH = 128
"""So many scales are in reach of the digits of a geometric variable; beyond are 2**-184 of them."""


@lru_cache(maxsize=256)
def coin_exponents(scale: Fraction) -> tuple[Fraction, ...]:
    """Return x for each binary digit of a geometric variable, and last for what is left.

    A digit is 1 with probability 1 / (1 + exp(x)); anything is left with probability exp(-x).
    The last is written as a negative number, to be told apart.
    """
    digits = 0
    while 1 << digits < REACH * scale:
        digits += 1
    return (*(2**place / scale for place in range(digits)), -(2**digits) / scale)


@lru_cache(maxsize=1024)
def coin_floor(x: Fraction, bits: int) -> tuple[int, bool]:
    """Return the floor of 2**bits times the probability of such a coin; it is never exact."""
    return (logistic_floor(x, bits) if x > 0 else exp_bounds(-x, bits)[0]), False


@lru_cache(maxsize=256)
def coin_thresholds(scale: Fraction) -> tuple[int, ...]:
    """Return the first 128 bits of the probability of each coin."""
    return tuple(coin_floor(x, 128)[0] for x in coin_exponents(scale))
