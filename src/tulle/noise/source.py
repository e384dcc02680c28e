"""Where random bits come from: the operating system, a seed, or a tape written by a test."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from tulle.core import validate
from tulle.core.errors import InputError, TulleError
from tulle.core.exact import counted
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise.charge import watched


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
        self._generator = np.random.PCG64(validate.whole(seed=seed, at_least=0))
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


_SYSTEM = SystemSource()


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
        return watched(_SYSTEM)
    if not isinstance(source, Source):
        raise InputError(f"source must be a Source or None; got {type(source).__name__}.")
    return watched(source)
