"""What people add to groups, counted, clipped and added up by the engine: only sums come back.

Where each row is about one participant, a question's statement gives one amount for each person and
group. The engine keeps these, and two statements read them. The first gives the largest *loads*: of
one person, the sum of absolute amounts over all groups, or their L2 norm. They are kept as well,
with whose they are. The second cuts everyone whose load is above a threshold down to it and adds up
by group. No row for each person leaves the engine.

Where an engine keeps nothing, each statement sees the rows as they are then. So all loads come from
one statement, and the one that cuts computes them itself: nobody who has come since is left whole.

*Exact, in any order.* A load is rounded up, as a sum of whole steps of a public size, in parts of a
few bits whose sums doubles hold exactly (or it is added in the order of the values, where no public
bound says what size suits). What remains of an amount is rounded towards zero to whole multiples of
a unit, two to the minus fiftieth of the threshold, and whole numbers are added exactly. So neither
the order of rows nor other people's rows show in any digit, and one person's rounded vector has at
most the norm that the threshold says.

*No failure.* Amounts are cut to public ends, within which every product and quotient here is an
ordinary double: no row makes an engine overflow or underflow.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tulle.core.arrays import Floats
from tulle.sql.compile.fetched import numbers_in
from tulle.sql.compile.rewrite import ABOVE, BELOW, GROUP, Rewritten
from tulle.sql.dialect import dialect_of

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine, Workspace


FETCHED = 2**16
"""So many of the largest loads are fetched at first: more than the level in nearly all cases."""

_SMALLEST, _LARGEST = 2.0**-250, 2.0**400
"""Amounts below count as nothing, those above as this: public ends."""
_NOTHING = 2.0**-240
"""With a threshold below this nothing is left to add."""
_TIMES = 24
"""Nobody's amount in one group is above two to this power of the largest rows."""
_MOST_ROWS = 31
"""Nor above two to this power of rows, where rows are counted."""
_GROUPS = 2**22
_EXPONENT = 240
"""With more groups, or larger powers of two in a row, loads are added in the order of values."""
_STEPS, _SQUARED_STEPS = 60, 56
"""A load is whole steps of the largest row over two to this power; of its square, for squares."""
_PART = 52
"""Bits of a part, and of the number of groups: doubles are exact up to one more."""
_UNIT = 50
_UP = 1.0 + 2.0**-30
"""Covers the rounding of a load."""


class PersonTotals:
    """What each person adds to each group, left in the engine. Custodian side.

    It decides as :class:`tulle.relations.truncation.totals.Decider` does, with the number of people
    whose load is above tau for D(tau). ``power`` is 1 for loads that are sums of absolute amounts,
    2 for L2 norms.
    """

    def __init__(self, engine: Engine, rewritten: Rewritten, *, signed: bool, power: int) -> None:
        self._engine = engine
        self._dialect = dialect_of(rewritten.schema.dialect)
        self._double = self._dialect.type_name("DOUBLE")
        self._rewritten, self._signed, self._power = rewritten, signed, power
        self.groups = rewritten.groups
        self._all = False
        self._largest = ""
        self._fixed: Floats | None = None
        self._sums: tuple[float, Floats] | None = None

    # What is known of people

    @property
    def _counts(self) -> bool:
        return not self._rewritten.summed

    def _number(self, value: float) -> str:
        """Write a double: with an exponent every engine reads it as one, to the last bit."""
        return f"CAST({value:.17e} AS {self._double})"

    @cached_property
    def entries(self) -> str:
        """The statement of group (g), owner (i) and amount (w), once for each of both."""
        rewritten = self._rewritten
        first, *others = (f"q.{slot.name}" for slot in rewritten.slots)
        # Rows of several people, where a key on a path to owners is not unique, count for nothing.
        same = " AND ".join(f"{other} = {first}" for other in others)
        number = f"CAST(q.{GROUP} AS BIGINT)" if rewritten.grouped else "CAST(0 AS BIGINT)"
        zero = self._number(0.0)
        amount = f"COALESCE(q.{ABOVE}, {zero})"
        if self._signed and rewritten.signed and rewritten.summed:
            amount = f"{amount} + COALESCE(q.{BELOW}, {zero})"
        top = self._number(self._most)
        low = f"-{top}" if self._signed else zero
        owner = first
        if rewritten.text_owners and self._dialect.owner_collation is not None:
            # As in the statement itself: a connection may take "Ann" for "ann" by default.
            owner += f" COLLATE {self._dialect.owner_collation}"
        cut = f"GREATEST(LEAST({amount}, {top}), {low})"
        inner = f"SELECT {number} AS g, {owner} AS i, {cut} AS w FROM ({rewritten.text}) q"
        if same:
            inner += f" WHERE {same}"
        least = self._number(_SMALLEST)
        # Without a condition: an engine would work out every sum once more for it.
        return (
            f"SELECT a.g, a.i, CASE WHEN ABS(a.w) >= {least} THEN a.w ELSE {zero} END AS w "
            f"FROM ({inner}) a"
        )

    @cached_property
    def _space(self) -> Workspace:
        return self._engine.workspace()

    @cached_property
    def _kept(self) -> str:
        return self._space.keep(self.entries)

    def _people(self, entries: str) -> str:
        """Return the statement of owner (i) and load (l); ``entries`` gives the amounts."""
        by = "" if self.groups == 1 else " GROUP BY e.i"
        load = self._load("e.w")
        return f"SELECT e.i AS i, {load} AS l FROM {entries} e WHERE e.i IS NOT NULL{by}"

    @property
    def _most(self) -> float:
        """The most that anybody's amount in a group counts for."""
        if self._counts:
            return 2.0**_MOST_ROWS
        return min(2.0**_TIMES * self._rewritten.term, _LARGEST)

    def _load(self, of: str) -> str:
        """Return the load of one person, rounded up, from the amounts of all groups."""
        size = f"ABS({of})"
        if self.groups == 1:
            return f"{size} * {self._number(_UP)}"
        raised = size if self._power == 1 else f"{size} * {size}"
        exponent = math.frexp(self._rewritten.term)[1]
        known = math.isfinite(self._rewritten.term) and abs(exponent) <= _EXPONENT
        if self.groups > _GROUPS or not (known or self._counts):
            summed = self._dialect.ordered_sum(raised)
        elif self._counts:
            summed = self._sum_in_parts(raised, self._power * _MOST_ROWS, 0, up=0.0)
        else:
            steps = _STEPS if self._power == 1 else _SQUARED_STEPS
            top, low = self._power * (exponent + _TIMES), self._power * exponent - steps
            # Rounded up: what is rounded to the nearest whole number is half a step higher.
            summed = self._sum_in_parts(raised, top, low, up=0.5)
        root = summed if self._power == 1 else f"SQRT({summed})"
        return f"{root} * {self._number(_UP)}"

    def _sum_in_parts(self, value: str, top: int, low: int, up: float) -> str:
        """Return the sum of numbers of at most two to the power ``top``, whatever their order.

        Each is rounded to a multiple of two to the power ``low``, after so many of it are added.
        """
        bits = _PART - (self.groups - 1).bit_length()
        ends = [*range(top - bits, low, -bits), low]
        sums, above = [], ""
        for place, end in enumerate(ends):
            scaled = f"{value} * {self._number(math.ldexp(1.0, -end))}" if end else value
            if end == low and up:
                scaled += f" + {self._number(up)}"
            whole = self._dialect.nearest(scaled)
            # All of these are whole doubles: what the parts above hold is taken off exactly.
            part = whole
            if above:
                part += f" - {above} * {self._number(math.ldexp(1.0, ends[place - 1] - end))}"
            sums.append(
                f"SUM({part}) * {self._number(math.ldexp(1.0, end))}" if end else f"SUM({part})"
            )
            above = whole
        return f"({' + '.join(sums)})"

    def largest(self, count: int | None) -> str:
        """Return the statement that gives the largest loads, or all, and whose they are."""
        people = self._people(self._kept)
        first = "" if count is None else f" ORDER BY o.l DESC LIMIT {count}"
        return f"SELECT o.i AS i, o.l AS l FROM ({people}) o{first}"

    @cached_property
    def _loads(self) -> Floats:
        return self._fetch_loads(FETCHED if self._space.keeps else None)

    def _fetch_loads(self, count: int | None) -> Floats:
        """Return the largest loads, the least first; where there are groups, they are kept."""
        self._largest = f"({self.largest(count)})"
        if self.groups > 1:
            self._largest = self._space.keep(self.largest(count), looked_up="i")
        found = numbers_in(self._space.fetch(f"SELECT o.l AS l FROM {self._largest} o"), "l")
        self._all = count is None or len(found) < count
        return np.sort(found.astype(np.float64))

    def _above(self, tau: float) -> int:
        """Return how many of the loads that were fetched are above tau."""
        return int(len(self._loads) - np.searchsorted(self._loads, tau, side="right"))

    def decide(self, tau: float, level: int) -> bool:
        """Say whether at most so many people have a load above tau."""
        while self._above(tau) == len(self._loads) <= level and not self._all:
            # All that were fetched are above: there may be more.
            self._loads = self._fetch_loads(16 * len(self._loads))
        return self._above(tau) <= level

    def estimate(self, tau: float) -> float | None:
        """Return at least how many there are, which costs nothing."""
        return float(self._above(tau))

    # What they add up to

    def statement(self, tau: float) -> str:
        """Return the statement that cuts everyone to tau and adds up, in units, by group."""
        limit, up = self._number(tau), self._number(_UP)
        source, load = f"{self._kept} e", f"(ABS(e.w) * {up})"
        part = f"CASE WHEN {load} > {limit} THEN {limit} / {load} ELSE {self._number(1.0)} END"
        if self.groups > 1:
            known = self._all or self._above(tau) < len(self._loads)
            people = self._largest if known else f"({self._people(self._kept)})"
            cut = f"(SELECT o.i AS i, o.l AS l FROM {people} o WHERE o.l > {limit})"
            source += f" LEFT JOIN {cut} c ON c.i = e.i"
            part = f"COALESCE({limit} / c.l, {self._number(1.0)})"
        size = f"LEAST(ABS(e.w) * {part}, {limit})"
        steps = f"CAST(FLOOR({size} * {self._number(1.0 / unit_of(tau))}) AS BIGINT)"
        if self._signed:
            steps = f"CASE WHEN e.w < 0 THEN -1 ELSE 1 END * {steps}"
        # Worked out once, below: where an engine compiles statements, long expressions are slow.
        entries = (
            f"SELECT e.g AS g, CASE WHEN e.i IS NULL THEN 0 ELSE {steps} END AS s, "
            f"CASE WHEN e.i IS NULL THEN e.w END AS f FROM {source}"
        )
        total, text = self._dialect.whole_sum("t.s"), self._dialect.type_name("TEXT")
        return (
            f"SELECT t.g AS g, CAST({total} AS {text}) AS s, MAX(t.f) AS f "
            f"FROM ({entries}) t GROUP BY t.g"
        )

    def clipped(self, tau: float) -> Floats:
        """Return the sum for each group when nobody has a load above tau."""
        if self._sums is not None and self._sums[0] == tau:
            return self._sums[1]
        asked, nothing = tau, tau < _NOTHING
        tau = min(max(tau, _NOTHING), _LARGEST * _GROUPS)
        found = self._space.fetch(self.statement(tau))
        places = numbers_in(found, "g")
        sums, fixed = np.zeros(self.groups), np.zeros(self.groups)
        # A whole number is rounded to a double once, and units are powers of two.
        units = np.array([float(int(steps)) for steps in found.column("s").to_pylist()])
        sums[places] = 0.0 if nothing else units * unit_of(tau)
        fixed[places] = np.nan_to_num(numbers_in(found, "f"), nan=0.0)
        self._fixed, self._sums = fixed, (asked, sums)
        return sums

    @property
    def fixed(self) -> Floats:
        """What needs nobody, for each group: public."""
        if self._fixed is None:
            self.clipped(_LARGEST * _GROUPS)  # which cuts nobody
        assert self._fixed is not None
        return self._fixed


def unit_of(tau: float) -> float:
    """Return the power of two of which clipped amounts are multiples."""
    return math.ldexp(1.0, math.frexp(tau)[1] - _UNIT)
