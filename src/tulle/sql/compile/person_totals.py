"""What people add to groups, counted, clipped and added up by the engine: only sums come back.

Where each row is about one participant, a question's statement gives one amount for each person and
group. The engine keeps these, and two statements read them. The first gives the largest *loads*: of
one person, the sum of absolute amounts over all groups, or their L2 norm. The second cuts everyone
whose load is above a threshold down to it and adds up by group. No row for each person leaves the
engine.

*Exact, in any order.* A load is rounded up, as a sum of whole steps of a public size (or in the
order of the values, where no public bound says what size suits). What remains of an amount is
rounded towards zero to whole multiples of a unit, two to the minus fiftieth of the threshold, and
whole numbers are added as decimals. So neither the order of rows nor other people's rows show in
any digit, and one person's rounded vector has at most the norm that the threshold says.

*No failure.* Amounts are cut to public ends, within which every product and quotient here is an
ordinary double: no row makes an engine overflow or underflow.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tulle.sql.compile.rewrite import ABOVE, BELOW, GROUP, Rewritten
from tulle.sql.dialect import dialect_of

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine, KeptRows

Numbers = npt.NDArray[np.float64]

FETCHED = 2**16
"""So many of the largest loads are fetched at first: more than the level in nearly all cases."""

_SMALLEST, _LARGEST = 2.0**-250, 2.0**400
"""Amounts below count as nothing, those above as this: public ends."""
_NOTHING = 2.0**-240
"""With a threshold below this nothing is left to add."""
_TIMES = 2**24
"""Nobody's amount in one group is above this many of the largest rows."""
_MOST_ROWS = 2.0**31
"""Nor above this many rows, where rows are counted."""
_GROUPS = 2**22
_EXPONENT = 240
"""With more groups, or larger powers of two in a row, loads are added in the order of values."""
_STEPS, _SQUARED_STEPS = 60, 56
"""A load is whole steps of the largest row over two to this power; of its square, for squares."""
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
        self._fixed: Numbers | None = None
        self._sums: tuple[float, Numbers] | None = None

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
        return (
            f"SELECT a.g, a.i, CASE WHEN ABS(a.w) >= {least} THEN a.w ELSE {zero} END AS w "
            f"FROM ({inner}) a WHERE ABS(a.w) >= {least}"
        )

    @cached_property
    def _kept(self) -> KeptRows:
        return self._engine.keep(self.entries)

    def _people(self, entries: str) -> str:
        """Return the statement of owner (i) and load (l); ``entries`` gives the amounts."""
        by = "" if self.groups == 1 else " GROUP BY e.i"
        load = self._load("e.w")
        return f"SELECT e.i AS i, {load} AS l FROM {entries} e WHERE e.i IS NOT NULL{by}"

    @property
    def _most(self) -> float:
        """The most that anybody's amount in a group counts for."""
        if self._counts:
            return _MOST_ROWS
        return min(_TIMES * self._rewritten.term, _LARGEST)

    def _load(self, of: str) -> str:
        """Return the load of one person, rounded up, from the amounts of all groups."""
        size = f"ABS({of})"
        if self.groups == 1:
            return f"{size} * {self._number(_UP)}"
        raised = size if self._power == 1 else f"{size} * {size}"
        exponent = math.frexp(self._rewritten.term)[1]
        known = math.isfinite(self._rewritten.term) and abs(exponent) <= _EXPONENT
        wide = self._dialect.wide
        if self.groups > _GROUPS:
            summed = self._dialect.ordered_sum(raised)
        elif self._counts and self._power == 1:
            # Whole numbers, whose sum is below 2**53.
            summed = f"SUM({size})"
        elif self._counts:
            whole = f"CAST({size} AS BIGINT)"
            squares = f"SUM(CAST({whole} * {whole} AS {self._dialect.long}))"
            summed = f"CAST({squares} AS {self._double})"
        elif known and not self._dialect.exact:
            fine = self._power * exponent - (_STEPS if self._power == 1 else _SQUARED_STEPS)
            # Rounded up: what is rounded to the nearest whole number is half a step higher.
            steps = f"ROUND({raised} * {self._number(2.0**-fine)} + {self._number(0.5)})"
            steps = f"SUM(CAST({steps} AS {wide}))"
            summed = f"CAST({steps} AS {self._double}) * {self._number(2.0**fine)}"
        else:
            summed = self._dialect.ordered_sum(raised)
        root = summed if self._power == 1 else f"SQRT({summed})"
        return f"{root} * {self._number(_UP)}"

    def largest(self, count: int) -> str:
        """Return the statement that gives the largest loads."""
        people = self._people(self._kept.source)
        return f"SELECT o.l AS l FROM ({people}) o ORDER BY o.l DESC LIMIT {count}"

    @cached_property
    def _loads(self) -> Numbers:
        return self._fetch_loads(FETCHED)

    def _fetch_loads(self, count: int) -> Numbers:
        """Return the largest loads, the least first."""
        found = self._kept.fetch(self.largest(count)).column("l").to_numpy()
        self._all = len(found) < count
        return np.sort(np.asarray(found, dtype=np.float64))

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
        per = self._number(1.0 / unit_of(tau))
        if self.groups == 1:
            source = f"{self._kept.source} e"
            load, above = f"(ABS(e.w) * {up})", f"ABS(e.w) * {up} > {limit}"
            with_clause = ""
        else:
            cut = f"SELECT o.i AS i, o.l AS l FROM ({self._people('e')}) o WHERE o.l > {limit}"
            # Where the engine keeps nothing, the rows are still read once.
            with_clause = f"WITH e AS (SELECT * FROM {self._kept.source} k), c AS ({cut}) "
            source = "e LEFT JOIN c ON c.i = e.i"
            load, above = "c.l", "c.l IS NOT NULL"
        size = f"CASE WHEN {above} THEN ABS(e.w) * ({limit} / {load}) ELSE ABS(e.w) END"
        steps = f"CAST(FLOOR(LEAST({size}, {limit}) * {per}) AS BIGINT)"
        steps = f"CASE WHEN e.i IS NULL THEN 0 WHEN e.w < 0 THEN -{steps} ELSE {steps} END"
        public = "MAX(CASE WHEN e.i IS NULL THEN e.w END)"
        total = f"SUM(CAST({steps} AS {self._dialect.long}))"
        text = self._dialect.type_name("TEXT")
        return (
            f"{with_clause}SELECT e.g AS g, CAST({total} AS {text}) AS s, "
            f"{public} AS f FROM {source} GROUP BY e.g"
        )

    def clipped(self, tau: float) -> Numbers:
        """Return the sum for each group when nobody has a load above tau."""
        if self._sums is not None and self._sums[0] == tau:
            return self._sums[1]
        asked, nothing = tau, tau < _NOTHING
        tau = min(max(tau, _NOTHING), _LARGEST * _GROUPS)
        found = self._kept.fetch(self.statement(tau))
        places = found.column("g").to_numpy().astype(np.int64)
        sums, fixed = np.zeros(self.groups), np.zeros(self.groups)
        # A whole number is rounded to a double once, and units are powers of two.
        units = np.array([float(int(steps)) for steps in found.column("s").to_pylist()])
        sums[places] = 0.0 if nothing else units * unit_of(tau)
        fixed[places] = np.nan_to_num(found.column("f").to_numpy().astype(np.float64), nan=0.0)
        self._fixed, self._sums = fixed, (asked, sums)
        return sums

    @property
    def fixed(self) -> Numbers:
        """What needs nobody, for each group: public."""
        if self._fixed is None:
            self.clipped(1.0)
        assert self._fixed is not None
        return self._fixed


def unit_of(tau: float) -> float:
    """Return the power of two of which clipped amounts are multiples."""
    return math.ldexp(1.0, math.frexp(tau)[1] - _UNIT)
