"""Single fair bits, and the exact choices that need only a few of them."""

from __future__ import annotations

from tulle.core.source import Source
from tulle.noise.source import TapeSource, resolve


class Bits:
    """Reads a source bit by bit; lives for one call, so that nothing is kept to be replayed.

    Example:
        >>> from tulle.noise import TapeSource
        >>> Bits(TapeSource("101")).take(3)
        5
    """

    __slots__ = ("_count", "_source", "_tape", "_value")

    def __init__(self, source: Source | None = None) -> None:
        self._source = resolve(source)
        # A tape is read one bit at a time, so that a test sees how many bits decided the outcome.
        self._tape = self._source if isinstance(self._source, TapeSource) else None
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

    def fraction(self, numerator: int, denominator: int) -> bool:
        """Return True with probability numerator/denominator, in two bits on average.

        A uniform real is compared with the fraction digit by digit, and only until they differ.
        """
        if numerator >= denominator:
            return True
        while numerator:
            numerator *= 2
            digit = numerator >= denominator
            if digit:
                numerator -= denominator
            if self.bit() != digit:
                return digit
        return False

    def exponential(self, numerator: int, denominator: int) -> bool:
        """Return True with probability exp(-numerator/denominator).

        Reference: Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*,
        NeurIPS 2020, algorithm 1.
        """
        while numerator > denominator:
            if not self._exponential_small(1, 1):
                return False
            numerator -= denominator
        return self._exponential_small(numerator, denominator)

    def _exponential_small(self, numerator: int, denominator: int) -> bool:
        step = 1
        while self.fraction(numerator, denominator * step):
            step += 1
        return step % 2 == 1

    def geometric(self, numerator: int, denominator: int) -> int:
        """Return k >= 0 with probability proportional to exp(-k * denominator / numerator).

        The scale is numerator/denominator. A geometric variable of scale ``numerator`` has a
        remainder modulo ``numerator`` and a quotient that are independent; dividing it by
        ``denominator`` rounds it to the wanted scale (the same reference, algorithm 2).
        """
        while True:
            remainder = self.below(numerator)
            if self._exponential_small(remainder, numerator):
                break
        quotient = 0
        while self._exponential_small(1, 1):
            quotient += 1
        return (remainder + numerator * quotient) // denominator
