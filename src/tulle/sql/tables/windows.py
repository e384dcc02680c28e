"""Windows over the rows of an answer: shares, ranks, running sums and changes, after the noise.

A window looks at the rows of the released table that HAVING left. The ends of what it computes
follow by interval arithmetic from those of all rows that it looks at, which hold all at once. The
noise of other rows is independent of a row's own, so it has slopes of its own (``OTHERS``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlglot import exp

from tulle.core.errors import QueryError, raise_alone
from tulle.sql.question.check import refuse
from tulle.sql.tables.columns import OTHERS, Column
from tulle.sql.tables.select_list import Order, shown

if TYPE_CHECKING:
    from tulle.sql.tables.post_processing import PostProcessing

WINDOWS = (
    "SUM, AVG, COUNT, MIN, MAX, ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE and LAST_VALUE"
)

_TOTALS = (exp.Sum, exp.Avg, exp.Count, exp.Min, exp.Max)
_ADDED = (exp.Sum, exp.Avg, exp.Count)
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_ENDS = (exp.FirstValue, exp.LastValue)
_SHIFTS = {exp.Lag: -1, exp.Lead: 1}


class Partition(NamedTuple):
    """The rows of one partition in their order; for each, where those equal to it begin and end."""

    rows: list[int]
    first: list[int]
    last: list[int]


def sorted_rows(
    rows: Sequence[int], orders: Sequence[Order], values: Callable[[Any], Any]
) -> list[int]:
    """Return rows in the order of some expressions; equal ones stay as they are.

    Raises:
        QueryError: when values of several kinds are to be ordered.
    """
    ordered = list(rows)
    for one in reversed(orders):
        listed = values(one.expression)
        known = [row for row in ordered if listed[row] is not None]
        nulls = [row for row in ordered if listed[row] is None]
        try:
            known.sort(key=listed.__getitem__, reverse=one.descending)
        except TypeError:
            raise_alone(
                QueryError("ORDER BY a column whose groups are of several kinds is not supported.")
            )
        ordered = [*nulls, *known] if one.nulls_first else [*known, *nulls]
    return ordered


def window_column(processing: PostProcessing, window: Any) -> Column:
    """Return the numbers of a window.

    Raises:
        QueryError: naming what is not supported.
    """
    function: Any = window.this
    if isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        refuse(shown(window), "write the window without FILTER and IGNORE NULLS, and CASE inside")
    if type(function) not in (*_TOTALS, *_RANKS, *_ENDS, *_SHIFTS):
        refuse(shown(window), f"over the rows of an answer these are supported: {WINDOWS}")
    parts = list(_parts(processing, window))
    size = processing.size
    if isinstance(function, _RANKS):
        return _ranks(type(function), parts, size)
    if type(function) is exp.Count and isinstance(function.this, exp.Star | None):
        inner = Column.exact(1.0, size)
    elif isinstance(function.this, exp.Distinct) or function.this is None:
        refuse(shown(window), "over the rows of an answer nothing is DISTINCT; leave it out")
    else:
        inner = processing.column(function.this)
    if type(function) in _SHIFTS:
        return _shifted(processing, function, inner, parts)
    frames = _frames(window)
    made = _Made(inner, size)
    for part in parts:
        seen_by = [frames(place, part) for place in range(len(part.rows))]
        if type(function) in _ADDED and not any(start for start, _ in seen_by):
            made.running(np.array(part.rows), np.array([stop for _, stop in seen_by]), function)
            continue
        for row, (start, stop) in zip(part.rows, seen_by, strict=True):
            seen = np.array(part.rows[start:stop], dtype=int)
            if isinstance(function, _ENDS):
                at = 0 if isinstance(function, exp.FirstValue) else -1
                made.take(row, seen[at] if len(seen) else None)
            else:
                made.total(row, seen, type(function))
    return made.column()


def is_rank(expression: Any) -> bool:
    """Say whether an expression is a place among rows: a whole number."""
    return isinstance(expression, exp.Window) and isinstance(expression.this, _RANKS)


def _parts(processing: PostProcessing, window: Any) -> Iterator[Partition]:
    """Yield the partitions of the rows that are left."""
    by = [processing.values(one) for one in window.args.get("partition_by") or []]
    order = window.args.get("order")
    orders = [
        Order(one.this, bool(one.args.get("desc")), bool(one.args.get("nulls_first")))
        for one in (order.expressions if order is not None else ())
    ]
    ranked = [processing.values(one.expression) for one in orders]
    found: dict[Any, list[int]] = {}
    for row in processing.left:
        key = (processing.sheets[row], *(values[row] for values in by))
        found.setdefault(key, []).append(row)
    for rows in found.values():
        rows = sorted_rows(rows, orders, processing.values)
        keys = [tuple(values[row] for values in ranked) for row in rows]
        first = [0] * len(rows)
        for place in range(1, len(rows)):
            first[place] = first[place - 1] if keys[place] == keys[place - 1] else place
        last = [len(rows)] * len(rows)
        for place in range(len(rows) - 2, -1, -1):
            equal = keys[place] == keys[place + 1]
            last[place] = last[place + 1] if equal else place + 1
        yield Partition(rows, first, last)


def _frames(window: Any) -> Callable[[int, Partition], tuple[int, int]]:
    """Return what says which rows of a partition, from and to, a row's frame has."""
    spec = window.args.get("spec")
    ordered = window.args.get("order") is not None
    if spec is None:
        if ordered:
            return lambda place, part: (0, part.last[place])
        return lambda place, part: (0, len(part.rows))
    kind = str(spec.args.get("kind") or "").upper()
    low, high = (_end(spec, name) for name in ("start", "end"))
    known = kind in {"ROWS", "RANGE"} and not spec.args.get("exclude")
    if low is None or high is None or not known:
        refuse(shown(window), "write ROWS BETWEEN n PRECEDING AND n FOLLOWING, or no frame")
    if kind == "RANGE":
        if not {low, high} <= {-np.inf, 0, np.inf}:
            refuse(shown(window), "write ROWS in place of RANGE")
        return lambda place, part: (
            0 if low == -np.inf else part.first[place],
            len(part.rows) if high == np.inf else part.last[place],
        )
    return lambda place, part: (
        int(min(max(place + low, 0), len(part.rows))),
        int(max(min(place + high + 1, len(part.rows)), 0)),
    )


def _end(spec: Any, name: str) -> float | None:
    """Return how many rows after its own a frame begins or ends."""
    written = spec.args.get(name)
    side = -1 if str(spec.args.get(f"{name}_side") or "").upper() == "PRECEDING" else 1
    if written is None:
        # ROWS n PRECEDING ends at the row itself.
        return 0 if name == "end" else None
    if isinstance(written, str):
        return 0 if written.upper() == "CURRENT ROW" else side * np.inf
    if isinstance(written, exp.Literal) and written.is_int:
        return side * int(written.name)
    return None


def _ranks(kind: type[Any], parts: list[Partition], size: int) -> Column:
    ranks = np.full(size, np.nan)
    for rows, first, _ in parts:
        if kind is exp.RowNumber:
            ranks[rows] = np.arange(1, len(rows) + 1)
        elif kind is exp.Rank:
            ranks[rows] = np.array(first) + 1
        else:
            ranks[rows] = np.cumsum([place == one for place, one in enumerate(first)])
    # Which rank the true numbers would have is not known.
    return Column(ranks, np.full(size, -np.inf), np.full(size, np.inf))


def _shifted(
    processing: PostProcessing, function: Any, inner: Column, parts: list[Partition]
) -> Column:
    offset, default = function.args.get("offset"), function.args.get("default")
    if not (offset is None or (isinstance(offset, exp.Literal) and offset.is_int)):
        refuse(shown(function), "write LAG(x) or LAG(x, 2)")
    away = _SHIFTS[type(function)] * (1 if offset is None else int(offset.name))
    made = _Made(inner, processing.size)
    for part in parts:
        for place, row in enumerate(part.rows):
            there = 0 <= place + away < len(part.rows)
            made.take(row, part.rows[place + away] if there else None)
    found = made.column()
    if default is None:
        return found
    return processing.chosen_where(made.there, found, processing.column(default))


class _Made:
    """A column that is put together row by row of what others have."""

    def __init__(self, inner: Column, size: int) -> None:
        self._inner = inner
        self.there = np.zeros(size, dtype=bool)
        self._value = np.full(size, np.nan)
        self._low, self._high = np.full(size, -np.inf), np.full(size, np.inf)
        names = {name.removesuffix(OTHERS) for name in inner.slopes}
        self._slopes = {name + end: np.zeros(size) for name in names for end in ("", OTHERS)}

    def take(self, row: int, other: Any) -> None:
        """Let a row have what another one has; nothing if there is none."""
        if other is None:
            return
        inner = self._inner
        self.there[row] = True
        self._value[row] = inner.value[other]
        self._low[row], self._high[row] = inner.low[other], inner.high[other]
        self._lean(row, np.array([other]), 1.0)

    def total(self, row: int, seen: Any, kind: type[Any]) -> None:
        """Let a row have a total of what some rows have; NULL counts for nothing."""
        values = self._inner.value[seen]
        known = seen[~np.isnan(values)]
        if kind is exp.Count:
            self._value[row] = len(known)
            sure = len(known) == len(seen)
            self._low[row] = self._high[row] = len(known)
            if not sure:
                self._low[row], self._high[row] = 0, len(seen)
            return
        if not len(known):
            return
        values = self._inner.value[known]
        low, high = self._inner.low[known], self._inner.high[known]
        if kind in (exp.Min, exp.Max):
            pick = np.min if kind is exp.Min else np.max
            self._value[row], ends = pick(values), (pick(low), pick(high))
            self._lean(row, known[values == self._value[row]][:1], 1.0)
        else:
            share = 1.0 / len(known) if kind is exp.Avg else 1.0
            self._value[row], ends = values.sum() * share, (low.sum() * share, high.sum() * share)
            self._lean(row, known, share)
        if len(known) == len(seen) and not np.isnan(ends).any():
            self._low[row], self._high[row] = ends

    def running(self, rows: Any, stops: Any, function: Any) -> None:
        """Let each of some rows have a total of the first of them, up to its own stop.

        What :meth:`total` does row by row, all at once: one pass over the rows.
        """
        inner = self._inner
        known = ~np.isnan(inner.value[rows])

        def upto(numbers: Any) -> Any:
            return np.concatenate([[0.0], np.cumsum(np.where(known, numbers, 0.0))])[stops]

        count = upto(1.0)
        sure = count == stops
        if isinstance(function, exp.Count):
            self._value[rows] = count
            self._low[rows], self._high[rows] = np.where(sure, count, 0), stops
            return
        there = count > 0
        share = 1 / np.maximum(count, 1) if isinstance(function, exp.Avg) else 1.0
        self._value[rows] = np.where(there, upto(inner.value[rows]) * share, np.nan)
        low, high = (upto(ends[rows]) * share for ends in (inner.low, inner.high))
        sure &= there & ~np.isnan(low) & ~np.isnan(high)
        self._low[rows] = np.where(sure, low, -np.inf)
        self._high[rows] = np.where(sure, high, np.inf)
        within = known & (np.arange(len(rows)) < stops)
        for name, slope in inner.slopes.items():
            base, other = name.removesuffix(OTHERS), name.removesuffix(OTHERS) + OTHERS
            squares = upto(slope[rows] ** 2) * share**2
            if name == base:
                own = np.where(within, slope[rows], 0.0) * share
                self._slopes[base][rows] += own
                squares = np.maximum(squares - own**2, 0.0)
            self._slopes[other][rows] = np.hypot(self._slopes[other][rows], np.sqrt(squares))

    def _lean(self, row: int, seen: Any, share: float) -> None:
        """Note how much a row depends on its own noise, and on that of others."""
        for name, slope in self._inner.slopes.items():
            base, other = name.removesuffix(OTHERS), name.removesuffix(OTHERS) + OTHERS
            moved = slope[seen] * share
            if name == base:
                self._slopes[base][row] += moved[seen == row].sum()
                moved = moved[seen != row]
            self._slopes[other][row] = np.hypot(self._slopes[other][row], np.sqrt((moved**2).sum()))

    def column(self) -> Column:
        """Return what was put together."""
        return Column(self._value, self._low, self._high, self._slopes)
