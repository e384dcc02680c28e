"""Threshold tables: exact bulk sampling from 31 bits per digit, more only where those tie.

A uniform real U picks the smallest k with U < P(X <= k). Given only the first 31 bits of U, the
answer is certain unless those bits equal the first 31 bits of some threshold. Then (about once in
a million draws) more bits of both are taken. No float is involved, no rounding.

How long a draw takes does not depend on its value: the search has a fixed number of steps, and the
rare ties are settled among a fixed number of made-up ones.

The base-b digits of a geometric variable are independent, and each is a truncated geometric: one
small table per digit serves any scale.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt, prod
from typing import Any, ClassVar, Literal

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.source import Source
from tulle.noise.source import Bits, Size, exp_bounds, shape_of

Bounds = tuple[int, int]

Mode = Literal["magnitude", "signed", "folded", "mirrored"]

WORD_BITS = 31
"""Bits of a 32-bit word that choose a digit; the last one is the sign."""

FEW = 128
"""Up to so many draws are made one by one: less work than a table, and no compiled code."""

LARGEST_SCALE = 2**48
"""Bulk draws beyond this scale are refused: their sums would come near the end of int64."""

_REACH = Fraction(43, 2)
"""-ln(2**-31) = 21.49: so many scales are in reach of 31 bits."""

_CHUNK_WORDS = 1 << 16

_SETTLED = 8
"""So many ties are settled for each chunk, true or made up. More than that many true ones come once
in 10^11 chunks: there are a quarter of one on average where tables are longest."""

_MORE = 33
"""So many bits are added to those that tie: together they tie once in 2^50 draws."""

_MODES: dict[Mode, int] = {"magnitude": 0, "signed": 1, "folded": 2, "mirrored": 3}


# --- laws on 0, 1, 2, ..., by certified bounds on their cumulative probabilities -----------------


class TableLaw(ABC):
    """A law on the whole numbers from 0, sampled by comparing random bits with thresholds.

    Subclasses are frozen and hashable: their thresholds are computed once and kept.
    """

    finite: ClassVar[bool] = False

    @abstractmethod
    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield, for k = 0, 1, ..., integers that enclose ``2**precision * P(X <= k)``.

        A law on finitely many values ends with exactly ``2**precision``. One on infinitely many
        goes on until 1 is inside the bounds, and then ends.
        """

    def floors(self, bits: int) -> list[int]:
        """Return ``floor(2**bits * P(X <= k))`` for k = 0, 1, ..., all of them certain.

        The list ends at the first value from which on the floor no longer changes: ``2**bits``
        for a law on finitely many values, else ``2**bits - 1``.
        """
        return _floors(self, bits)


@lru_cache(maxsize=256)  # a long list of large integers each
def _floors(law: TableLaw, bits: int) -> list[int]:
    guard = 64
    while True:
        found = _certain_floors(law, bits, guard)
        if found is not None:
            return found
        guard *= 2


def _certain_floors(law: TableLaw, bits: int, guard: int) -> list[int] | None:
    top = 1 << bits
    result = []
    for low, high in law.cumulative(bits + guard):
        if low == high == top << guard:
            result.append(top)
            return result
        floor = low >> guard
        # Below one in truth, whatever the upper bound says: only the last value reaches one.
        if floor != min(high >> guard, top - 1):
            return None
        result.append(floor)
        if floor == top - 1 and not law.finite:
            return result
    return None


def _powers(ratio: Bounds, precision: int) -> Iterator[Bounds]:
    """Yield bounds of ratio, ratio², ratio³, ... in units of ``2**-precision``."""
    low, high = ratio
    while True:
        yield low, high
        low = low * ratio[0] >> precision
        high = -(-high * ratio[1] >> precision)


@dataclass(frozen=True)
class Geometric(TableLaw):
    """P(k) proportional to exp(-k / scale), for k >= 0."""

    scale: Fraction

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of 1 - r^(k+1), where r = exp(-1 / scale)."""
        one = 1 << precision
        for low, high in _powers(exp_bounds(1 / self.scale, precision), precision):
            yield one - high, one - low


@dataclass(frozen=True)
class BoundedGeometric(TableLaw):
    """P(k) proportional to exp(-k / scale), for 0 <= k < count."""

    finite: ClassVar[bool] = True
    scale: Fraction
    count: int

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of (1 - r^(k+1)) / (1 - r^count), where r = exp(-1 / scale)."""
        # The denominator is about count/scale when that is small: so many bits are lost.
        width = precision + 2 * max(0, int(self.scale).bit_length()) + 16
        one = 1 << width
        total_low, total_high = exp_bounds(self.count / self.scale, width)
        powers = _powers(exp_bounds(1 / self.scale, width), width)
        for _ in range(self.count - 1):
            low, high = next(powers)
            yield (
                ((one - high) << precision) // (one - total_low),
                -(-((one - low) << precision) // (one - total_high)),
            )
        yield 1 << precision, 1 << precision


@dataclass(frozen=True)
class FoldedLaplace(TableLaw):
    """The magnitude of a discrete Laplace: P(k) proportional to exp(-k / scale), halved at 0."""

    scale: Fraction

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of 1 - 2 r^(k+1) / (1 + r), where r = exp(-1 / scale)."""
        one = 1 << precision
        ratio = exp_bounds(1 / self.scale, precision)
        for low, high in _powers(ratio, precision):
            yield (
                one - -(-(high << precision + 1) // (one + ratio[0])),
                one - (low << precision + 1) // (one + ratio[1]),
            )


@dataclass(frozen=True)
class FoldedGaussian(TableLaw):
    """The magnitude of a discrete Gaussian: P(k) ∝ exp(-k² / (2 variance)), halved at 0."""

    variance: Fraction

    def cumulative(self, precision: int) -> Iterator[Bounds]:
        """Yield bounds of the partial sums of the weights over their whole sum."""
        width = precision + int(self.variance).bit_length() + 16
        one = 1 << width
        weights = self._weights(width)
        total_low = one + 2 * sum(low for low, _ in weights)
        total_high = one + 2 * sum(high for _, high in weights)
        # What follows the last weight falls at least as fast as a geometric sequence does.
        ratio = exp_bounds(len(weights) / self.variance, width)[1]
        total_high += 2 * -(-(weights[-1][1] << width) // (one - ratio)) + 2
        part_low = part_high = one
        yield (one << precision) // total_high, -(-(one << precision) // total_low)
        for low, high in weights:
            part_low += 2 * low
            part_high += 2 * high
            yield (
                (part_low << precision) // total_high,
                -(-(part_high << precision) // total_low),
            )

    def _weights(self, width: int) -> list[Bounds]:
        """Return bounds of exp(-k² / (2 variance)) for k = 1, 2, ... until they are negligible."""
        # exp(-k²/2v) < 2**-width once k² > 2 v width ln 2; and 7/10 exceeds ln 2.
        count = isqrt(int(self.variance * width * 14) // 10) + 2
        step_low, step_high = exp_bounds(1 / self.variance, width)
        factor_low, factor_high = low, high = exp_bounds(1 / (2 * self.variance), width)
        weights = [(low, high)]
        for _ in range(count):
            factor_low = factor_low * step_low >> width
            factor_high = -(-factor_high * step_high >> width)
            low = low * factor_low >> width
            high = -(-high * factor_high >> width)
            weights.append((low, high))
        return weights


# --- tables of their thresholds, and draws from them --------------------------------------------


@dataclass(frozen=True)
class SamplingTable:
    """How to draw from digits with the given laws, the most significant first.

    ``widths[i]`` is how many bits digit i has; the first has no limit. The arrays are the laws'
    31-bit thresholds, one after the other, each filled up to a power of two.
    """

    laws: tuple[TableLaw, ...]
    widths: tuple[int, ...]
    floors: Array
    starts: Array
    sizes: Array

    @classmethod
    def of(cls, laws: tuple[TableLaw, ...], widths: tuple[int, ...]) -> SamplingTable:
        """Compute the thresholds of these laws."""
        columns = []
        for law in laws:
            found = law.floors(WORD_BITS)
            size = 1 << len(found).bit_length()
            columns.append(np.full(size, 1 << WORD_BITS, dtype=np.uint32))
            columns[-1][: len(found)] = found
        sizes = np.array([len(column) for column in columns], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        for law in laws:
            law.floors(WORD_BITS + _MORE)  # computed now, and not when the first tie shows
        return cls(laws, widths, np.concatenate(columns), starts, sizes)

    def draw(self, count: int, mode: Mode, source: Source) -> Array:
        """Return ``count`` independent draws as an int64 array.

        The work is the same whatever is drawn: batches of fixed size, a fixed number of steps for
        each draw, and for every batch as many settled ties as there hardly ever are. A draw of
        minus zero is left out and others are made in its place; how many are left out says nothing
        about those that stay.
        """
        from tulle.noise.kernels import draw_digits  # numba is slow to import

        digits = len(self.laws)
        out = np.empty(count, dtype=np.int64)
        pending = np.empty((min(count, _CHUNK_WORDS) + 1, 2), dtype=np.int64)
        widths = np.array(self.widths, dtype=np.int64)
        done = 0
        while done < count:
            batch = min(count - done, _CHUNK_WORDS // digits)
            raw = source.read(4 * digits * batch)
            words = np.frombuffer(raw, dtype="<u4").astype(np.uint32, copy=False)
            part = out[done : done + batch]
            made, waiting = draw_digits(
                words, self.floors, self.starts, self.sizes, widths, _MODES[mode], part, pending
            )
            self._settle_all(pending[:waiting].tolist(), words, part, mode, source)
            done += made
        return out

    def _settle_all(
        self, ties: list[list[int]], words: Array, part: Array, mode: Mode, source: Source
    ) -> None:
        """Finish the draws that their words leave open, and made-up ones up to a fixed number."""
        bits = Bits(source)
        digits = len(self.laws)
        open_draws = [(place, words[at : at + digits].tolist()) for place, at in ties]
        if bits.step == 1:  # a tape holds bits for true ties only
            for place, given in open_draws:
                part[place] = self._settle(given, WORD_BITS, mode, bits)
            return
        missing = max(_SETTLED - len(ties), 0)
        settled = []
        for _, given in [*open_draws, *[(0, [0] * digits)] * missing]:
            # More bits for all digits, although one tied: it is not to be seen which.
            more = [word >> 1 << _MORE | bits.take(_MORE) for word in given]
            more[0] = more[0] << 1 | given[0] & 1
            more[1:] = [word << 1 for word in more[1:]]
            settled.append(self._settle(more, WORD_BITS + _MORE, mode, bits))
        for (place, _), value in zip(open_draws, settled, strict=False):
            part[place] = value

    def _settle(self, words: list[int], known: int, mode: Mode, bits: Bits) -> int:
        """Finish a draw from so many bits for each digit, and the sign in the last place.

        If it is rejected, draw afresh.
        """
        while True:
            value = 0
            for law, width, word in zip(self.laws, self.widths, words, strict=True):
                value = (value << width) + settle(law, word >> 1, known, bits)
            negative = words[0] & 1
            if not (mode == "signed" and negative and value == 0):
                break
            words = [bits.take(known + 1) for _ in words]
        if mode == "magnitude" or not negative:
            return value
        return ~value if mode == "mirrored" else -value


def settle(law: TableLaw, uniform: int, known: int, bits: Bits) -> int:
    """Return the value of ``law`` that a uniform real picks, given its first ``known`` bits.

    More bits are drawn until they differ from those of every threshold.
    """
    while True:
        floors = law.floors(known)
        index = bisect_right(floors, uniform)
        if index == 0 or floors[index - 1] != uniform:
            return index
        wanted = max(128, 2 * known)
        uniform = uniform << wanted - known | bits.take(wanted - known)
        known = wanted


@lru_cache(maxsize=64)
def geometric_table(scale: Fraction) -> SamplingTable:
    """Return the table of a geometric variable of that scale.

    Raises:
        InputError: when the scale is beyond :data:`LARGEST_SCALE`.
    """
    check_scale(scale)
    needed = _exponent(scale, 8192)
    if needed == 0:
        return SamplingTable.of((Geometric(scale),), (0,))
    lower = -(-needed // 12)
    # The word for a lower digit is spent anyway: let it shrink the first table into the cache.
    exponent = min(12 * lower, _exponent(scale, 1024))
    widths = [exponent * (part + 1) // lower - exponent * part // lower for part in range(lower)]
    laws: list[TableLaw] = [Geometric(scale / 2**exponent)]
    place = exponent
    for width in widths:
        place -= width
        laws.append(BoundedGeometric(scale / 2**place, 1 << width))
    return SamplingTable.of(tuple(laws), (0, *widths))


@lru_cache(maxsize=64)
def laplace_table(scale: Fraction) -> tuple[SamplingTable, Mode]:
    """Return the table of a discrete Laplace of that scale, and how it uses the sign."""
    if _exponent(scale, 4096) == 0:
        return SamplingTable.of((FoldedLaplace(scale),), (0,)), "folded"
    return geometric_table(scale), "signed"


def _exponent(scale: Fraction, entries: int) -> int:
    """Return the least e such that scale / 2**e needs at most so many thresholds."""
    exponent = 0
    while scale * _REACH > entries << exponent:
        exponent += 1
    return exponent


def check_scale(scale: Fraction) -> None:
    """Refuse scales that bulk draws cannot serve.

    Raises:
        InputError: when the scale is beyond :data:`LARGEST_SCALE`.
    """
    if scale > LARGEST_SCALE:
        raise InputError(
            "scale must be at most 2**48 for an array of draws. Draw one by one (size=None), or "
            "use coarser units."
        )


def fill(
    size: Size, source: Source, one: Callable[[Bits], int], many: Callable[[int], Array]
) -> Array:
    """Return an array of draws: few from the scalar sampler, many from the bulk one."""
    shape = shape_of(size)
    count = prod(shape)
    if count > FEW:
        return many(count).reshape(shape)
    bits = Bits(source)
    return np.array([one(bits) for _ in range(count)], dtype=np.int64).reshape(shape)


def ranks(limits: Array, values: Array) -> Array:
    """Return for each value how many sorted limits are at most it.

    As ``np.searchsorted(limits, values, side="right")``, in as many steps whatever the values.

    Example:
        >>> ranks(np.array([2, 5]), np.array([1, 2, 7])).tolist()
        [0, 1, 2]
    """
    found = np.zeros(len(values), dtype=np.int64)
    last = len(limits) - 1
    half = 1 << len(limits).bit_length()
    while half := half >> 1:
        place = found + (half - 1)
        found += half * ((place <= last) & (limits[np.minimum(place, last)] <= values))
    return found


def by_value(values: Any, name: str, size: Size | None, draw: Callable[[Any, int], Array]) -> Array:
    """Return one draw per entry of an array of parameters, grouped by equal parameters."""
    entries = np.asarray(values)
    if size is not None and shape_of(size) != entries.shape:
        raise InputError(
            f"size must equal the shape of the array {name}, or be left out: each entry of {name} "
            "gives one draw."
        )
    out = np.empty(entries.shape, dtype=np.int64)
    flat = out.reshape(-1)
    for kind, places in _groups(entries.reshape(-1)):
        flat[places] = draw(kind, len(places))
    return out


def _groups(entries: Array) -> Iterator[tuple[Any, Any]]:
    """Yield each different entry with the places where it stands."""
    if entries.dtype == object:  # fractions and texts: comparable, but not by numpy
        groups: dict[Any, list[int]] = {}
        for place, entry in enumerate(entries.tolist()):
            groups.setdefault(entry, []).append(place)
        yield from groups.items()
    elif entries.size:
        kinds, inverse = np.unique(entries, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        cuts = np.cumsum(np.bincount(inverse))[:-1]
        yield from zip(kinds.tolist(), np.split(order, cuts), strict=True)
