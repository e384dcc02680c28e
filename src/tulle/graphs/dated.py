"""Records of edges with their days, of which a graph of some days is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, repr=False)
class Dated:
    """Records of edges with their days: a pair and a day each, NaT where there is none.

    The graph of some records has an edge where a pair has at least one of them. So when all records
    of one edge of one period go away, at most that one edge of the graph does, whatever days the
    graph is of: what is private per edge is private per edge and period. The nodes are public, and
    the same for all days.
    """

    pairs: Any
    days: npt.NDArray[np.datetime64]
    numbered: bool = False
    """Whether the pairs have the numbers of nodes that were named beside them."""

    @classmethod
    def of(cls, pairs: Any, times: Sequence[Any]) -> Dated:
        """Check pairs and their days."""
        from tulle.graphs.io.dates import read_days

        found = pairs if hasattr(pairs, "__array__") else list(pairs)
        days = read_days(times)
        if len(days) != len(found):
            raise InputError("times must have one day (or None) for each pair.")
        return cls(found, days)

    @classmethod
    def read(cls, path: Any, time: str, *options: Any) -> Dated:
        """Read pairs and their days from a file."""
        from tulle.graphs.io.dates import read_dated

        return cls.of(*read_dated(path, time, *options))

    def of_days(self, first: date, last: date) -> Dated:
        """Return the records of some days; one without a day is of none."""
        low, high = np.datetime64(first, "D"), np.datetime64(last, "D")
        return self._only((self.days >= low) & (self.days <= high))

    def without_each(self, period: str) -> Iterator[Dated]:
        """Yield the records without those of each edge of each period. For small graphs."""
        from tulle.core.period import Calendar

        calendar = Calendar(period)
        units = [
            (frozenset(pair), None if day is None else calendar.number(day))
            for pair, day in zip(map(tuple, self.pairs), self.days.tolist(), strict=True)
        ]
        for gone in dict.fromkeys(units):
            yield self._only(np.array([unit != gone for unit in units]))

    def _only(self, kept: npt.NDArray[np.bool_]) -> Dated:
        pairs = self.pairs
        chosen = pairs[kept] if hasattr(pairs, "__array__") else list(compress(pairs, kept))
        return replace(self, pairs=chosen, days=self.days[kept])
