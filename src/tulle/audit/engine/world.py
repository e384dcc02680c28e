"""A world: finitely many tiny datasets, and which of them are neighbours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.unit import Unit


@dataclass(frozen=True, eq=False)
class World:
    """An enumerated set of made-up datasets with every neighbouring pair in it, both ways round.

    A check measures each dataset once and compares along ``first`` and ``second``.
    """

    name: str
    unit: Unit
    datasets: Sequence[Dataset]
    first: Wholes
    second: Wholes
    outside: int
    """How many neighbours were left out because they are not in the enumerated set."""

    @classmethod
    def of(
        cls,
        name: str,
        unit: str | Unit,
        datasets: Iterable[Dataset],
        key: Callable[[Dataset], Hashable],
        *,
        removals_only: bool = False,
    ) -> World:
        """Find all pairs by asking each dataset for its neighbours.

        ``key`` tells datasets apart. Where datasets list removals only, additions are the same
        pairs the other way round. Neighbours outside the set (one node more than the largest
        graph, say) are counted and left out.
        """
        known = Unit.of(unit)
        listed = list(datasets)
        place = {key(dataset): index for index, dataset in enumerate(listed)}
        first: list[int] = []
        second: list[int] = []
        outside = 0
        for index, dataset in enumerate(listed):
            for neighbour in known.neighbours(dataset):
                other = place.get(key(neighbour))
                if other is None:
                    outside += 1
                    continue
                first.append(index)
                second.append(other)
        if removals_only:
            first, second = first + second, second + first
        places = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        return cls(name, known, listed, *places, outside)

    def distinct_pairs(self, values: Sequence[Hashable]) -> tuple[list[tuple[int, int]], Wholes]:
        """Return one pair of places for each pair of values among neighbours, and whose it is.

        ``values`` has one entry per dataset. Many datasets share a value (isomorphic graphs do),
        so that a costly comparison is needed only once for each pair of values. The second array
        says, for each pair of neighbours, which of the first ones has its values.
        """
        codes: dict[Hashable, int] = {}
        code = np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64)
        joint = code[self.first] * len(codes) + code[self.second]
        _, where, whose = np.unique(joint, return_index=True, return_inverse=True)
        places = zip(self.first[where].tolist(), self.second[where].tolist(), strict=True)
        return list(places), whose
