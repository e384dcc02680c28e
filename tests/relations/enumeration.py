"""The general recursive mechanism by enumeration: the oracle that tests compare with.

It works for every monotone question on at most about 15 participants, and looks only at which
tuples are there for which set of participants, never at how annotations are written. It is not a
registered mechanism: refusing more participants would depend on the data.

Reference: Chen & Zhou, Recursive mechanism, SIGMOD 2013, section 4.2.
"""

from __future__ import annotations

from itertools import combinations

from tulle.core.errors import InputError
from tulle.relations.data import Relation

_LARGEST = 15


class General:
    """The recursive sequence H and its bounding sequence G of a relation, by enumeration.

    ``deletions`` counts whole participants here; ``value`` and ``decide`` have the meaning of
    :class:`tulle.relations.truncation.totals.Truncation` with both numbers taken over whole
    deletions.
    """

    def __init__(self, relation: Relation) -> None:
        if relation.count > _LARGEST:
            raise InputError(f"The enumeration is for at most {_LARGEST} participants.")
        self.count = relation.count
        notes = list(relation.annotations())
        self._totals = [
            sum(h for note, h in notes if note.holds(_present(mask, self.count)))
            for mask in range(1 << self.count)
        ]
        self._global = self._empirical()

    def _empirical(self) -> list[float]:
        """Return, for each set of participants, the most that one matters in any subset of it."""
        found = [0.0] * len(self._totals)
        for mask in range(len(self._totals)):
            for p in range(self.count):
                if mask >> p & 1:
                    smaller = mask & ~(1 << p)
                    matters = self._totals[mask] - self._totals[smaller]
                    found[mask] = max(found[mask], matters, found[smaller])
        return found

    def _sets(self, size: int) -> list[int]:
        chosen = combinations(range(self.count), size)
        return [sum(1 << p for p in members) for members in chosen]

    def sequence(self, size: int) -> float:
        """Return H: the least total of any ``size`` participants."""
        return min(self._totals[mask] for mask in self._sets(size))

    def bounding(self, size: int) -> float:
        """Return G: the least global empirical sensitivity of any ``size`` participants."""
        return min(self._global[mask] for mask in self._sets(size))

    def value(self, tau: float, gap: float = 0.0) -> float:
        """Return X at the threshold: the least H_i + (|P| - i)·tau over whole i."""
        return min(self.sequence(i) + (self.count - i) * tau for i in range(self.count + 1))

    def estimate(self, tau: float) -> float | None:
        """Return None: enumeration needs no guess."""
        return None

    def ceiling(self, tau: float) -> float:
        """Return X itself."""
        return self.value(tau)

    def decide(self, tau: float, level: int) -> bool:
        """Say whether deleting ``level`` participants can bring G down to the threshold."""
        return level >= self.count or self.bounding(self.count - level) <= tau


def _present(mask: int, count: int) -> list[bool]:
    return [bool(mask >> p & 1) for p in range(count)]
