"""Noise patterns b with weight exp(b'Πb) for a chosen symmetric Π, exactly.

Up to twenty bits: all patterns are listed. More bits: coupling from the past, when every coupling
is attractive (no off-diagonal entry of Π is negative) and weak enough to end soon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import InputError
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.noise.select import uniform_below
from tulle.noise.source import Bits, exp_bounds, logistic_floor, report, resolve
from tulle.noise.tables import ranks

Method = Literal["enumeration", "coupling from the past"]

ENUMERABLE = 20
"""Up to so many bits all patterns are listed."""

_LARGEST = 2**52
"""Entries are whole numbers whose sizes add up to less: sums of them are exact, even as floats."""

_UNIT = 2**40
"""Weights of proposals are whole multiples of 1 / _UNIT of the largest weight."""

_MARGIN = 2.0**-40
"""Assumed to cover the errors of ``exp`` in floating point; correct libraries reach 2**-52."""

_CELLS = 1 << 17
"""About so many sites are coupled together; each needs eight bytes for every sweep."""


@dataclass(frozen=True)
class Couplings:
    """A symmetric Π with whole-number entries; the scale that multiplies it is given apart.

    ``pairs`` holds (i, j, entry) with i < j and entry not zero; each acts twice, as Π_ij and Π_ji.
    """

    diagonal: tuple[int, ...]
    pairs: tuple[tuple[int, int, int], ...]

    def __post_init__(self) -> None:
        total = sum(map(abs, self.diagonal)) + 2 * sum(abs(entry) for _, _, entry in self.pairs)
        if total >= _LARGEST:
            raise InputError("The entries of pi have too many digits. Round them first.")
        if total == 0:
            raise InputError("pi must have an entry other than zero: else nothing is released.")

    @classmethod
    def of(cls, size: int, entries: Iterable[tuple[int, int, Fraction]]) -> Couplings:
        """Return Π up to a factor, from entries (i, j, value) with i <= j.

        Values with few digits are kept exactly, others are rounded to 2**-30 of the largest. The
        rounded matrix is the one that is priced and drawn from, so that nothing is understated.
        """
        listed = list(entries)
        common = math.lcm(*(value.denominator for _, _, value in listed)) if listed else 1
        if sum(abs(value) for _, _, value in listed) * common * 2 >= _LARGEST:
            largest = max(abs(value) for _, _, value in listed)
            step = largest * len(listed) / 2**49
            scaled = [(i, j, round(value / step)) for i, j, value in listed]
        else:
            scaled = [(i, j, int(value * common)) for i, j, value in listed]
        diagonal = [0] * size
        for i, j, value in scaled:
            if i == j:
                diagonal[i] += value
        pairs = tuple(sorted((i, j, value) for i, j, value in scaled if i != j and value))
        return cls(tuple(diagonal), pairs)

    @property
    def size(self) -> int:
        """How many bits a pattern has."""
        return len(self.diagonal)

    @property
    def attractive(self) -> bool:
        """Whether a flip never makes another one less likely."""
        return all(entry >= 0 for _, _, entry in self.pairs)

    def energies(self) -> Array:
        """Return b'Πb for all patterns b; bit i of the place is bit i of the pattern."""
        if self.size > ENUMERABLE:
            raise InputError(f"Patterns of more than {ENUMERABLE} bits are not listed.")
        return _energies(self)

    def price_of_bit(self) -> int:
        """Return the exact price of one changed bit, in units of the scale.

        Flipping bit i changes the exponent by Π_ii + 2·(sum of Π_ij over the other ones), up or
        down; it is furthest from zero when all positive, or all negative, couplings are on.
        """
        most, least = list(self.diagonal), list(self.diagonal)
        for i, j, entry in self.pairs:
            for site in (i, j):
                most[site] += 2 * max(entry, 0)
                least[site] += 2 * min(entry, 0)
        return max(max(map(abs, most)), max(map(abs, least)))

    def price_of_line(self, length: int) -> tuple[int, bool]:
        """Return the price of any change within one line of ``length`` bits, and if it is exact.

        Up to twenty bits: the largest difference of exponents over all patterns that agree
        outside the line. Else for each line exactly, place by place, if it is short or few of its
        bits are coupled, or a bound by a minimum cut (:mod:`tulle.noise.xor.prices`), which is
        exact where two patterns were found that reach it, and never above the plain bound: each
        diagonal entry and each pair that touches the line can change its term from zero to its
        coefficient, or back.
        """
        lines = self.size // length
        if self.size <= ENUMERABLE:
            energies = self.energies()
            worst = 0
            for line in range(lines):
                cube = energies.reshape(-1, 1 << length, 1 << line * length)
                worst = max(worst, int((cube.max(axis=1) - cube.min(axis=1)).max()))
            return worst, True
        return _price_of_lines(self, length)

    def plain_price_of_line(self, length: int) -> int:
        """Return the plain bound: all entries that touch a line, in full."""
        total = [0] * (self.size // length)
        for site, entry in enumerate(self.diagonal):
            total[site // length] += abs(entry)
        for i, j, entry in self.pairs:
            for line in {i // length, j // length}:
                total[line] += 2 * abs(entry)
        return max(total)

    def influence(self, scale: Fraction) -> float:
        """Return how much one bit can sway all others together; below 1 couplings are weak."""
        sway = [0.0] * self.size
        for i, j, entry in self.pairs:
            # The chance of a one moves by at most tanh(change of the exponent / 4).
            moved = math.tanh(float(scale * abs(entry)) / 2)
            sway[i] += moved
            sway[j] += moved
        return max(sway)

    def method(self, scale: Fraction) -> Method:
        """Return how patterns are drawn at this scale.

        Raises:
            InputError: when neither way is open; it depends on public numbers only.
        """
        if self.size <= ENUMERABLE:
            return "enumeration"
        if not self.attractive:
            raise InputError(
                f"pi couples {counted(self.size, 'bit')}, some of them repulsively (an entry off "
                "the diagonal is negative). An exact draw needs attractive couplings or at most "
                f"{ENUMERABLE} bits: give a smaller pi, one per row, or drop those entries."
            )
        if self.influence(scale) >= 0.95:
            raise InputError(
                f"The couplings of pi are so strong at this epsilon ({self.influence(scale):.2f}, "
                "allowed 0.95) that an exact draw may take very long. Lower them."
            )
        return "coupling from the past"

    def draw(self, scale: Fraction, blocks: int, source: Source | None = None) -> Array:
        """Draw independent patterns, one per row, with weights exp(scale · b'Πb).

        Example:
            >>> Couplings.of(2, [(0, 0, Fraction(-1)), (1, 1, Fraction(-1))]).draw(
            ...     Fraction(1000), 1).tolist()
            [[0, 0]]
        """
        report("pattern", law=self, scale=scale)
        source = resolve(source)
        if self.method(scale) == "enumeration":
            places = draw_listed(self, scale, blocks, source)
            return (places[:, None] >> np.arange(self.size) & 1).astype(np.uint8)
        step = max(1, _CELLS // self.size)
        parts = [
            couple(self, scale, min(step, blocks - start), source)
            for start in range(0, blocks, step)
        ]
        return np.concatenate(parts)

    def marginals(self, scale: Fraction) -> Array:
        """Return the probability of a one in each place, from all patterns, in floating point."""
        weights = np.exp(float(scale) * (self.energies() - self.energies().max()))
        weights /= weights.sum()
        places = np.arange(len(weights))
        return np.array([weights[(places >> site & 1) == 1].sum() for site in range(self.size)])


@lru_cache(maxsize=16)
def _price_of_lines(couplings: Couplings, length: int) -> tuple[int, bool]:
    """Return the largest price of a line and whether it is exact; lines that are alike once."""
    from tulle.noise.xor.prices import cut_price, exact_price, reached_price

    lines = couplings.size // length
    plain = couplings.plain_price_of_line(length)
    inner: list[dict[tuple[int, int], int]] = [{} for _ in range(lines)]
    outer: list[dict[int, dict[int, int]]] = [{} for _ in range(lines)]
    for i, j, entry in couplings.pairs:
        for site, other in ((i, j), (j, i)):
            line, place = divmod(site, length)
            if other // length == line:
                inner[line][place, other % length] = entry
            else:
                outer[line].setdefault(other, {})[place] = entry
    known: dict[tuple[Any, ...], tuple[int, bool]] = {}
    for line in range(lines):
        fields = couplings.diagonal[line * length : (line + 1) * length]
        columns = sorted(tuple(sorted(column.items())) for column in outer[line].values())
        key = fields, tuple(sorted(inner[line].items())), tuple(columns)
        if key in known:
            continue
        within = np.zeros((length, length), dtype=np.int64)
        for (place, other), entry in inner[line].items():
            within[place, other] = entry
        across = np.zeros((length, len(columns)), dtype=np.int64)
        for number, column in enumerate(columns):
            for place, entry in column:
                across[place, number] = entry
        given = np.array(fields, dtype=np.int64), within, across
        found = exact_price(*given)
        if found is None:
            cut = min(cut_price(*given), plain)
            known[key] = cut, reached_price(*given) == cut
        else:
            known[key] = found, True
    worst = max(price for price, _ in known.values())
    # Exact if a line whose price is known exactly is the worst of all.
    return worst, any(exact for price, exact in known.values() if price == worst)


@lru_cache(maxsize=8)
def _energies(couplings: Couplings) -> Array:
    size = couplings.size
    table = np.zeros((size, size), dtype=np.int64)
    for i, j, entry in couplings.pairs:
        table[j, i] = 2 * entry
    energies = np.zeros(1, dtype=np.int64)
    for site in range(size):
        field = np.array([couplings.diagonal[site]], dtype=np.int64)
        for other in range(site):
            field = np.concatenate([field, field + table[site, other]])
        energies = np.concatenate([energies, energies + field])
    energies.flags.writeable = False
    return energies


# --- all patterns listed ----------------------------------------------------------------------


def draw_listed(couplings: Couplings, scale: Fraction, count: int, source: Source) -> Array:
    """Draw places in the list of all patterns.

    *Method.* Whole numbers a little above the weights propose a pattern exactly; it is accepted
    with probability weight / number. Floating point decides only where it is certain to 2**-40.
    """
    depths, approximate, proposals = _proposals(couplings, scale)
    ends = np.cumsum(proposals)
    bits = Bits(source)
    out = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        batch = count - done
        chosen = ranks(ends, uniform_below(int(ends[-1]), batch, source))
        words = np.frombuffer(source.read(8 * batch), dtype="<u8")
        share = approximate[chosen] * _UNIT / proposals[chosen]
        uniform = words * 2.0**-64
        accepted = uniform < share * (1 - 2 * _MARGIN) - 2.0**-63
        unsure = ~accepted & (uniform < share * (1 + 2 * _MARGIN) + 2.0**-63)
        for place in np.flatnonzero(unsure).tolist():
            index = int(chosen[place])
            accepted[place] = accept_exactly(
                scale * int(depths[index]), int(proposals[index]), int(words[place]), bits
            )
        kept = chosen[accepted]
        out[done : done + len(kept)] = kept
        done += len(kept)
    return out


@lru_cache(maxsize=8)
def _proposals(couplings: Couplings, scale: Fraction) -> tuple[Array, Array, Array]:
    energies = couplings.energies()
    depths = energies.max() - energies
    approximate = np.exp(-float(scale) * depths)
    proposals = np.floor(approximate * _UNIT * (1 + 2 * _MARGIN)).astype(np.int64) + 2
    return depths, approximate, proposals


def accept_exactly(x: Fraction, proposal: int, uniform: int, bits: Bits, known: int = 64) -> bool:
    """Tell whether a uniform real, given its first bits, is below exp(-x) · _UNIT / proposal."""
    while True:
        low, high = exp_bounds(x, known)
        if (uniform + 1) * proposal <= low * _UNIT:
            return True
        if uniform * proposal >= high * _UNIT:
            return False
        uniform = uniform << 64 | bits.take(64)
        known += 64


# --- coupling from the past -------------------------------------------------------------------


def couple(
    couplings: Couplings,
    scale: Fraction,
    blocks: int,
    source: Source,
    margin: float = _MARGIN,
) -> Array:
    """Draw patterns by monotone coupling from the past.

    The heat-bath chain, run from ever earlier times with the same uniforms for the same times,
    from all ones and from all zeros. Where the two meet by time zero, every start would have led
    there, and the state at time zero has exactly the stationary law.

    *Guarantee.* There is no cap on the time: stopping early would change the law. Weak couplings
    (checked before) make the expected time logarithmic in the number of sites.

    Reference: Propp, Wilson, *Exact sampling with coupled Markov chains*, Random Structures and
    Algorithms 9, 1996.
    """
    from tulle.noise.xor import kernels as xor_kernels  # numba is slow to import

    shape = blocks, couplings.size
    fields, offsets, others, entries = _adjacency(couplings)
    past: list[Array] = []  # uniforms by age: the last sweep before time zero comes first
    further: dict[tuple[int, int, int], tuple[int, int]] = {}
    while True:
        for _ in range(max(len(past), 8)):
            raw = source.read(8 * blocks * couplings.size)
            past.append(np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(shape))
        upper, lower = np.ones(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        undecided = 0
        for words in reversed(past):
            undecided += xor_kernels.sweep(
                upper, lower, words, fields, offsets, others, entries, float(scale), margin
            )
        if undecided and not np.array_equal(upper, lower):
            # A uniform fell too close to a chance for floating point, and it mattered.
            upper, lower = _sweep_exactly(couplings, scale, past, further, Bits(source))
        if np.array_equal(upper, lower):
            return upper


def _adjacency(couplings: Couplings) -> tuple[Array, Array, Array, Array]:
    both = sorted(
        [(i, j, entry) for i, j, entry in couplings.pairs]
        + [(j, i, entry) for i, j, entry in couplings.pairs]
    )
    table = np.array(both, dtype=np.int64).reshape(-1, 3)
    counts = np.bincount(table[:, 0], minlength=couplings.size)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    fields = np.array(couplings.diagonal, dtype=np.int64)
    others, entries = np.ascontiguousarray(table[:, 1]), np.ascontiguousarray(table[:, 2])
    return fields, offsets, others, entries


def _sweep_exactly(
    couplings: Couplings,
    scale: Fraction,
    past: list[Array],
    further: dict[tuple[int, int, int], tuple[int, int]],
    bits: Bits,
) -> tuple[Array, Array]:
    """Run both chains in integer arithmetic; ``further`` keeps the bits that were added."""
    blocks, size = past[0].shape
    fields, offsets, others, entries = (part.tolist() for part in _adjacency(couplings))
    upper, lower = np.ones((blocks, size), dtype=np.uint8), np.zeros((blocks, size), dtype=np.uint8)

    def is_below(age: int, block: int, site: int, field: int) -> bool:
        key = age, block, site
        uniform, known = further.get(key, (int(past[age][block, site]), 64))
        while True:
            threshold = logistic_floor(-scale * field, known)
            if uniform != threshold or field == 0:
                return uniform < threshold
            uniform, known = uniform << 64 | bits.take(64), known + 64
            further[key] = uniform, known

    for age in range(len(past) - 1, -1, -1):
        for block in range(blocks):
            for site in range(size):
                for chain in (upper, lower):
                    row = chain[block]
                    field = fields[site]
                    for index in range(offsets[site], offsets[site + 1]):
                        field += 2 * entries[index] * int(row[others[index]])
                    row[site] = is_below(age, block, site, field)
    return upper, lower
