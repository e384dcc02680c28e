"""What an answer is about, in words: the question, and what the places of an array are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tulle.core.errors import InputError
from tulle.core.validate import counted


@dataclass(frozen=True, eq=False)
class Axis:
    """What the places along one side of a released array are: a name, and a label for each.

    Without ``labels`` they are numbered from ``first``. Labels are public facts (declared names,
    never what records happen to hold), or they would tell what the noise hides. With ``paired``
    the places are pairs of labels, the second not before the first, row by row: the upper half of
    a symmetric matrix, and ``paired`` is the name of the second.
    """

    name: str
    labels: Sequence[Any] | None = None
    first: int = 0
    paired: str | None = None

    def columns(self, size: int) -> dict[str, Any]:
        """Return a label for each of so many places, by name: one column, or two of pairs.

        Raises:
            InputError: when there are more or fewer labels.

        Example:
            >>> {n: c.tolist() for n, c in Axis("a", first=1, paired="b").columns(3).items()}
            {'a': [1, 1, 2], 'b': [1, 2, 2]}
        """
        import numpy as np

        if self.paired is None:
            return {self.name: self._labels(np.arange(size))}
        count = (math.isqrt(8 * size + 1) - 1) // 2
        if count * (count + 1) // 2 != size:
            raise InputError(f"{counted(size, 'place')} are not the upper half of a matrix.")
        one, other = np.triu_indices(count)
        return {self.name: self._labels(one), self.paired: self._labels(other)}

    def texts(self, size: int) -> list[str]:
        """Return the labels of so many places as text."""
        columns = [list(column) for column in self.columns(size).values()]
        return [" · ".join(map(str, place)) for place in zip(*columns, strict=True)]

    def _labels(self, places: Any) -> Any:
        if self.labels is None:
            return places + self.first
        count = int(places.max(initial=-1)) + 1
        if len(self.labels) != count:
            raise InputError(
                f"{self.name} has {counted(len(self.labels), 'label')} for "
                f"{counted(count, 'place')}. Give one label for each place."
            )
        return [self.labels[place] for place in places.tolist()]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        from tulle.core import codec

        labels = None if self.labels is None else [codec.encode(one) for one in self.labels]
        return {
            "name": self.name,
            "labels": labels,
            "first": self.first,
            "paired": self.paired,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Axis:
        """Read what :meth:`to_json` wrote."""
        from tulle.core import codec

        given = data["labels"]
        labels = None if given is None else [codec.decode(one) for one in given]
        return cls(str(data["name"]), labels, int(data["first"]), data["paired"])


@dataclass(frozen=True, eq=False)
class Labels:
    """What an answer is about, in words for people: all of it public."""

    question: str = ""
    """The question in one plain sentence."""
    measure: str = "value"
    """What its numbers are: "triangles", "people"."""
    axes: tuple[Axis, ...] = ()
    """One for each side of a released array; none are needed for a single number."""

    def sides(self, shape: tuple[int, ...]) -> tuple[tuple[Axis, int], ...]:
        """Return the axes of an array of this shape, each with how many places it has.

        A vector over all combinations of several axes has as many sides as there are axes.
        """
        if len(self.axes) == len(shape):
            return tuple(zip(self.axes, shape, strict=True))
        sizes = [len(axis.labels or ()) for axis in self.axes]
        if len(shape) == 1 and len(self.axes) > 1 and math.prod(sizes) == shape[0]:
            return tuple(zip(self.axes, sizes, strict=True))
        names = {1: ("place",), 2: ("row", "column")}.get(len(shape), _SIDES)
        return tuple((Axis(name), size) for name, size in zip(names, shape, strict=False))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        axes = [axis.to_json() for axis in self.axes]
        return {"question": self.question, "measure": self.measure, "axes": axes}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Labels:
        """Read what :meth:`to_json` wrote; releases of earlier versions have none."""
        if data is None:
            return cls()
        axes = tuple(Axis.from_json(axis) for axis in data["axes"])
        return cls(str(data["question"]), str(data["measure"]), axes)


_SIDES = tuple(f"place {number}" for number in range(1, 33))
