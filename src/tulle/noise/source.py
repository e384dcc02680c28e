"""Where random bits come from, and the exact choices that need only a few of them.

Bits come from the operating system, a seed, or a tape written by a test. A choice compares a
uniform real, bit by bit, with a probability that certified integer bounds enclose. An audit can
watch what is drawn (:mod:`tulle.noise.charge`); nobody does in ordinary use.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache, partial
from operator import eq
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tulle.core import validate
from tulle.core.errors import InputError, TulleError
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import counted

MOST_DRAWS = 2**36
"""No array of draws has more entries: it would not fit into memory."""

if TYPE_CHECKING:
    from tulle.noise.charge import Charge


@public()
class TapeExhausted(TulleError):  # noqa: N818 - it names what happened, and only tests see it
    """A :class:`TapeSource` was asked for more bits than its tape holds."""


@public()
class SystemSource(Source):
    """The operating system's secure source; the only one that keeps a guarantee.

    Nothing is buffered between calls, so a forked child or a second thread can never replay bits.
    If the system has no secure source the call fails: there is no fallback.
    """

    secure: ClassVar[bool] = True

    def read(self, count: int) -> bytes:
        """Return ``count`` fresh random bytes."""
        return os.urandom(count)

    def __repr__(self) -> str:
        return "SystemSource()"


@public()
class SeededSource(Source):
    """A replayable stream of bits; it voids every guarantee and serves tests and examples.

    The stream does not depend on how it is cut into reads.

    Example:
        >>> SeededSource(7).read(4) == SeededSource(7).read(4)
        True
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(validate.whole(seed=seed, at_least=0, at_most=None))
        self._left = b""

    def read(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the stream."""
        missing = count - len(self._left)
        if missing > 0:
            words = self._generator.random_raw(max(-(-missing // 8), 32))
            self._left += words.astype("<u8").tobytes()
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def __repr__(self) -> str:
        return "SeededSource(...)"


@public()
class TapeSource(Source):
    """A finite tape of bits, to drive a sampler through every choice it can make.

    A tape is given as bytes (most significant bit first) or as bits (a text of 0 and 1, or any
    iterable of them). :attr:`used` counts the bits consumed.

    Raises:
        TapeExhausted: on reading past the end.

    Example:
        >>> tape = TapeSource("10")
        >>> tape.bit(), tape.used
        (1, 1)
    """

    def __init__(self, tape: bytes | str | Iterable[int]) -> None:
        if isinstance(tape, bytes):
            bits = "".join(f"{byte:08b}" for byte in tape)
        else:
            bits = "".join(str(bit) for bit in tape)
        if bits.strip("01"):
            raise InputError("A tape holds only the bits 0 and 1.")
        self._bits = bits
        self.used = 0

    def bit(self) -> int:
        """Return the next bit."""
        if self.used >= len(self._bits):
            raise TapeExhausted(f"The tape of {counted(len(self._bits), 'bit')} is used up.")
        self.used += 1
        return int(self._bits[self.used - 1])

    def read(self, count: int) -> bytes:
        """Return the next ``count`` bytes; all or none are consumed."""
        stop = self.used + 8 * count
        if stop > len(self._bits):
            raise TapeExhausted(f"The tape of {counted(len(self._bits), 'bit')} is used up.")
        value = int(self._bits[self.used : stop] or "0", 2)
        self.used = stop
        return value.to_bytes(count, "big")


# --- who watches ------------------------------------------------------------------------------


class Watcher(ABC):
    """Somebody who is told what is drawn and what it is charged for."""

    @abstractmethod
    def charging(self, what: Charge) -> AbstractContextManager[None]:
        """Hold the draws inside a ``with`` block against what they are charged for."""

    @abstractmethod
    def report(self, kind: str, parameters: dict[str, Any]) -> None:
        """Take note that a sampler was called."""

    @abstractmethod
    def guard(self, source: Source) -> Source:
        """Return a source that gives no bits outside of a charge."""


WATCHER: ContextVar[Watcher | None] = ContextVar("tulle_noise_watch", default=None)
NOTHING: AbstractContextManager[None] = nullcontext()


def charge(what: Charge) -> AbstractContextManager[None]:
    """Say what the draws inside a ``with`` block are charged for; see :mod:`tulle.noise.charge`."""
    found = WATCHER.get()
    return NOTHING if found is None else found.charging(what)


def report(kind: str, **parameters: Any) -> None:
    """Tell whoever watches that a sampler was called. Samplers do this, nobody else."""
    found = WATCHER.get()
    if found is not None:
        found.report(kind, parameters)


# --- the arguments that samplers share ----------------------------------------------------------

Size = int | tuple[int, ...]

BACKEND: ContextVar[str] = ContextVar("tulle_noise_backend", default="tulle")
"""Which library draws Laplace and Gaussian noise; see :mod:`tulle.noise.opendp_backend`."""


_SYSTEM = SystemSource()


def drawn_elsewhere() -> bool:
    """Tell whether another library is to draw noise here."""
    return BACKEND.get() != "tulle"


@public()
def system() -> SystemSource:
    """Return the shared secure source, which every sampler uses unless told otherwise."""
    return _SYSTEM


def resolve(source: Source | None) -> Source:
    """Return ``source``, or the secure one when it is None.

    Raises:
        InputError: when it is neither.
    """
    if source is None:
        source = _SYSTEM
    elif not isinstance(source, Source):
        raise InputError(f"source must be a Source or None; got {type(source).__name__}.")
    found = WATCHER.get()
    return source if found is None else found.guard(source)


def shape_of(size: Size) -> tuple[int, ...]:
    """Return ``size`` as a shape.

    Raises:
        InputError: when it is not a whole number or a tuple of them.
    """
    parts = size if isinstance(size, tuple) else (size,)
    shape = tuple(validate.whole(size=part, at_least=0, at_most=MOST_DRAWS) for part in parts)
    validate.whole(size=math.prod(shape), at_least=0, at_most=MOST_DRAWS)
    return shape


def is_array(value: Any) -> bool:
    """Tell whether a parameter is an array or a list, one entry per draw."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


# --- bounds on probabilities, and bits compared with them --------------------------------------


def exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Return integers ``low <= 2**precision * exp(-x) <= high`` for x >= 0.

    The two differ by at most 1, and are equal only where x = 0.

    *Method.* exp(y) for y = x / 2**halvings is bounded by its Taylor sum with every term rounded
    down, or up plus the remainder; its inverse is squared ``halvings`` times, each time rounding
    outwards. Integers only.

    Example:
        >>> exp_bounds(Fraction(1), 8)
        (94, 95)
    """
    if x >= precision:  # exp(-x) < 2**-x
        return 0, 1
    return exp_bounds_of(x.numerator, x.denominator, precision)


def exp_bounds_of(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Do the same for x = numerator / denominator, in as many steps whatever the numerator."""
    # exp(-x) < 2**-x, so beyond this the bounds are 0 and 1; they are computed all the same.
    near = min(numerator, precision * denominator)
    guard = 16
    while True:
        low, high = _exp_bounds(near, denominator, precision + guard)
        low >>= guard
        high = -(-high >> guard)
        if high - low <= 1:
            break
        guard *= 2
    if numerator == 0:
        return 1 << precision, 1 << precision
    return (0, 1) if near < numerator else (low, high)


@lru_cache(maxsize=64)
def _steps(precision: int) -> tuple[int, int, int]:
    """Return halvings, width and terms that are enough for all x up to the precision."""
    halvings = precision.bit_length() + 8
    width = precision + halvings + 8
    # y <= 2**-8: after so many terms what is left is below 2**-width.
    terms, bits = 0, 0
    while bits < width + 1:
        terms += 1
        bits += 8 + terms.bit_length() - 1
    return halvings, width, terms


def _exp_bounds(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    halvings, width, terms = _steps(precision)
    one = 1 << width
    small = (numerator << width - halvings) // denominator  # 2**width * y, rounded down
    large = small + 1
    sum_low = sum_high = term_low = term_high = one
    for step in range(1, terms + 1):
        term_low = (term_low * small >> width) // step
        term_high = -(-term_high * large // (step << width))
        sum_low += term_low
        sum_high += term_high
    sum_high += 1  # all further terms together are below the last one
    low = (one << width) // sum_high
    high = -(-(one << width) // sum_low)
    for _ in range(halvings):
        low = low * low >> width
        high = -(-high * high >> width)
    drop = width - precision
    return low >> drop, -(-high >> drop)


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
