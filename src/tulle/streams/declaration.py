"""What is declared of a stream, and public: its calendar, groups, and what one unit adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import prod
from typing import Any

from tulle.core import validate
from tulle.core.codec import decode, encode
from tulle.core.errors import InputError
from tulle.core.labels import Axis
from tulle.core.period import Calendar
from tulle.core.validate import rational, text


def check_steps(calendar: Calendar, first: int, steps: int, most: int) -> int:
    """Return how many steps there are, checked: neither too many nor beyond the calendar.

    Raises:
        InputError: when they are.
    """
    count = validate.whole(at_least=1, at_most=most, steps=steps)
    if first + count > calendar.number(date.max):
        raise InputError("The steps end after the year 9999; give fewer.")
    return count


@dataclass(frozen=True)
class Declaration:
    """The calendar, the groups and the bound of a stream; nothing of it depends on records."""

    calendar: Calendar
    first: int
    """The number of the first step in the calendar."""
    steps: int
    bound: int
    """What one unit adds in a step at most, in all groups together, in units of ``scale``."""
    scale: Fraction = Fraction(1)
    """What one step of the totals' lattice is worth; one for counts."""
    axes: tuple[Axis, ...] = ()
    """The groups; none when there is one total."""
    asked: Mapping[str, Any] | None = None
    """The question that is summed up, as it was asked of a database."""

    @property
    def size(self) -> int:
        """How many totals there are at each step."""
        return prod(len(axis.labels or ()) for axis in self.axes)

    @property
    def line(self) -> str:
        """The question on one line; empty when the data is its own question."""
        return "" if self.asked is None else " ".join(str(self.asked["text"]).split())

    def label(self, step: int) -> str:
        """Return the name of a step: its day, week, month or year."""
        return self.calendar.label(self.first + step)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        found: dict[str, Any] = {
            "every": self.calendar.every,
            "first": self.calendar.first_day(self.first).isoformat(),
            "steps": self.steps,
            "bound": self.bound,
        }
        if self.asked is None:
            return found | {
                "groups": [str(name) for axis in self.axes for name in axis.labels or ()]
            }
        axes = [[axis.name, [encode(label) for label in axis.labels or ()]] for axis in self.axes]
        return found | {"scale": text(self.scale), "axes": axes, "asked": dict(self.asked)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Declaration:
        """Read back what :meth:`to_json` wrote."""
        calendar = Calendar(str(data["every"]))
        first = calendar.number(date.fromisoformat(str(data["first"])))
        axes: tuple[Axis, ...] = (Axis("group", tuple(data.get("groups", ()))),)
        if not data.get("groups"):
            axes = tuple(
                Axis(str(name), tuple(decode(label) for label in labels))
                for name, labels in data.get("axes", ())
            )
        return cls(
            calendar,
            first,
            int(data["steps"]),
            int(data["bound"]),
            rational(data.get("scale", "1")),
            axes,
            data.get("asked"),
        )
