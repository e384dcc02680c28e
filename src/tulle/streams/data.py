"""Records of people with a time: what is summed up step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import cells, validate
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, UnitError
from tulle.core.labels import Axis
from tulle.core.period import Calendar, Day
from tulle.core.public import public
from tulle.core.unit import Unit
from tulle.streams.clipping import LARGEST_BOUND, LARGEST_SUM, clipped_totals
from tulle.streams.declaration import Declaration, check_steps

MOST_STEPS = 10_000


@public("Hold data")
class Series(Dataset):
    """Records of people, each with a day, a whole number and possibly a group. Sealed.

    The calendar (``every``, the ``first`` day, how many ``steps``), the ``groups`` and ``bound``,
    the most that one person adds in one step over all groups, are declared and public. A person
    with more in a step is scaled down to the bound, whoever else is there. Records of other days
    and groups, without a day or without a person are left out, and a value that is no number is 0:
    no record makes this fail. People are told apart by what they read as: 7, 7.0 and "7" are one.

    Example:
        >>> trips = Series(["ann", "ann", "bob"], ["2026-01-05", "2026-01-06", "2026-01-12"],
        ...                every="week", first="2026-01-05", steps=4, bound=1)
        >>> trips
        <Series: sealed>
    """

    kind: ClassVar[str] = "series"
    units: ClassVar[tuple[str, ...]] = ("participant",)

    def __init__(
        self,
        people: Sequence[Any],
        days: Sequence[Any],
        values: Sequence[Any] | None = None,
        *,
        every: str,
        first: Day,
        steps: int,
        bound: int,
        groups: Sequence[Any] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self._calendar = Calendar.of(every)
        self._first = self._calendar.number(self._calendar.day(first))
        self._steps = check_steps(self._calendar, self._first, steps, MOST_STEPS)
        self._bound = validate.whole(at_least=1, at_most=LARGEST_BOUND, bound=bound)
        self._names = tuple(str(name) for name in names)
        if (groups is None) != (not self._names) or len(set(self._names)) < len(self._names):
            raise InputError(
                "groups= has the group of each record and names= all groups, each once."
            )
        lengths = {len(part) for part in (people, days, values, groups) if part is not None}
        if len(lengths) > 1:
            raise InputError("people, days, values and groups must have one entry per record.")
        self._codes, self._numbers, self._places = self._read(people, days, groups)
        given = np.ones(len(self._codes)) if values is None else cells.numbers(values, "values")
        whole = np.rint(np.nan_to_num(given, nan=0.0))
        self._values = np.clip(whole, -LARGEST_SUM, LARGEST_SUM).astype(np.int64)

    def _read(
        self, people: Sequence[Any], days: Sequence[Any], groups: Sequence[Any] | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return people, steps and groups as numbers; a step or group that is none is -1.

        Each cell is read by itself, and none can make this fail.
        """
        codes = cells.codes(people, "people")
        distinct, where = np.unique(cells.days(days, "days")[0], return_inverse=True)
        steps = [self._step(day) for day in distinct.tolist()]
        numbers = np.array(steps or [0], dtype=np.int64)[where if len(distinct) else slice(0, 0)]
        # Nobody's records are no person's: they are left out, as those of no step are.
        numbers = np.where(codes >= 0, numbers, -1)
        if groups is None:
            return codes, numbers, np.zeros(len(codes), dtype=np.int64)
        return codes, numbers, cells.places(groups, self._names, "groups")

    def _step(self, day: date | None) -> int:
        step = -1 if day is None else self._calendar.number(day) - self._first
        return step if 0 <= step < self._steps else -1

    @property
    def steps(self) -> int:
        """How many steps there are in all; public."""
        return self._steps

    @property
    def bound(self) -> int:
        """The most that one person adds in a step; public."""
        return self._bound

    @property
    def names(self) -> tuple[str, ...]:
        """The groups; public. None when there is one total."""
        return self._names

    def label(self, step: int) -> str:
        """Return the name of a step: its day, week, month or year."""
        return self._calendar.label(self._first + step)

    def check_unit(self, unit: str | Unit) -> Unit:
        """Return the unit: participants, or their records of one step.

        Raises:
            UnitError: when it is another one.
        """
        known = Unit.of(unit)
        if known.base != "participant" or known.period not in (None, self._calendar.every):
            raise UnitError(
                f"This series has a step for each {self._calendar.every}: its units are "
                f"participant-{self._calendar.every} and participant; got {known.name}."
            )
        return known

    def facts(self, unit: Unit) -> Facts:
        """Return what is declared: the calendar, the groups and the bound."""
        return self.declaration.to_json()

    @property
    def declaration(self) -> Declaration:
        """What is declared, and public."""
        axes = (Axis("group", self._names),) if self._names else ()
        return Declaration(self._calendar, self._first, self._steps, self._bound, axes=axes)

    def totals(self, until: int | None = None, periods: int | None = None) -> npt.NDArray[np.int64]:
        """Return the sum of every step and group, of people cut to the bound. Custodian side.

        People count in the first ``periods`` steps in which they have records; None is all.
        """
        return clipped_totals(
            self._codes,
            self._numbers,
            self._places,
            self._values,
            shape=(self._steps if until is None else until, max(len(self._names), 1)),
            bound=self._bound,
            periods=self._steps if periods is None else periods,
        )

    def neighbours(self, unit: str | Unit) -> Iterator[Series]:
        """Yield the series without each participant, or without their records of each step."""
        whole = self.check_unit(unit).period is None
        units = self._codes if whole else self._codes * (self._steps + 1) + self._numbers
        for one in np.unique(units):
            yield self._only(units != one)

    def _only(self, kept: npt.NDArray[np.bool_]) -> Series:
        made = Series.__new__(Series)
        made.__dict__.update(self.__dict__)
        for name in ("_codes", "_numbers", "_places", "_values"):
            made.__dict__[name] = self.__dict__[name][kept]
        return made
