"""Periods of the calendar: days, weeks, months and years, in a named zone.

A period is a number: days, weeks, months or years counted from the beginning of the calendar. Every
day lies in exactly one of each, and later days never lie in earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tulle.core.errors import InputError, raise_alone
from tulle.core.validate import meant

MOST_IN_A_YEAR = {"day": 366, "week": 54, "month": 12, "year": 1}
"""How many periods of a kind one calendar year can have days in. A leap year that begins on the
last day of a week has days in 54."""

_TOUCHED = {
    "day": {"day": 1, "week": 1, "month": 1, "year": 1},
    "week": {"day": 7, "week": 1, "month": 2, "year": 2},
    "month": {"day": 31, "week": 6, "month": 1, "year": 1},
    "year": {"day": 366, "week": 54, "month": 12, "year": 1},
}

Day = str | date
"""A day as people give it: a date, its text, or a moment with its offset."""

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True)
class Calendar:
    """How time is divided: into days, weeks, months or years of a zone.

    Weeks begin on the weekday named; months and years as everywhere.

    Example:
        >>> weeks = Calendar("week", "Europe/Zurich")
        >>> weeks.label(weeks.number(date(2026, 11, 15)))
        '2026-W46'
        >>> str(weeks.day("2026-11-15T23:30:00Z"))  # it is the next day in Zurich
        '2026-11-16'
    """

    every: str
    zone: str = "UTC"
    begins: str = "monday"

    def __post_init__(self) -> None:
        if not isinstance(self.every, str) or self.every not in MOST_IN_A_YEAR:
            kinds = ", ".join(MOST_IN_A_YEAR)
            raise InputError(f"A period is one of: {kinds}; got {self.every!r}.")
        if not isinstance(self.begins, str) or self.begins not in WEEKDAYS:
            raise InputError(f"A week begins on one of: {', '.join(WEEKDAYS)}; got {self.begins}.")

    @classmethod
    def of(cls, every: str, zone: str = "UTC", begins: str = "monday") -> Calendar:
        """Return the calendar that a user describes; its zone must be known here."""
        check_zone(zone)
        return cls(every, zone, begins)

    def day(self, when: Day) -> date:
        """Return the day that is meant: a date as it is, a moment as the day it is in the zone."""
        return day_in(when, self.zone)

    def number(self, day: date) -> int:
        """Return the number of the period in which a day lies."""
        if self.every == "day":
            return day.toordinal()
        if self.every == "week":
            # Day 1 of the calendar is a Monday.
            return (day.toordinal() - 1 - WEEKDAYS.index(self.begins)) // 7
        return day.year * 12 + day.month - 1 if self.every == "month" else day.year

    def first_day(self, number: int) -> date:
        """Return the first day of a period."""
        if self.every == "day":
            return date.fromordinal(number)
        if self.every == "week":
            return date.fromordinal(max(number * 7 + 1 + WEEKDAYS.index(self.begins), 1))
        if self.every == "month":
            return date(number // 12, number % 12 + 1, 1)
        return date(number, 1, 1)

    def last_day(self, number: int) -> date:
        """Return the last day of a period."""
        if number == self.number(date.max):
            return date.max
        return self.first_day(number + 1) - timedelta(days=1)

    def label(self, number: int) -> str:
        """Return the period's usual name."""
        first = self.first_day(number)
        if self.every == "day":
            return first.isoformat()
        if self.every == "week":
            year, week, _ = first.isocalendar()
            if self.begins == "monday":
                return f"{year}-W{week:02}"
            return f"week of {first.isoformat()}"
        return first.isoformat()[: 7 if self.every == "month" else 4]

    def touched(self, period: str) -> int:
        """Return how many periods of this calendar a day, week, month or year can have days in.

        Weeks are those from Monday on, as in the units with a period.

        Example:
            >>> Calendar("month").touched("week"), Calendar("month").touched("day")
            (2, 1)
        """
        if self.every == period == "week" and self.begins != "monday":
            return 2
        return _TOUCHED[period][self.every]

    def __str__(self) -> str:
        begins = f" (from {self.begins.capitalize()})" if self.every == "week" else ""
        return f"{self.every}{begins}, {self.zone}"

    def to_json(self) -> dict[str, str]:
        """Return a JSON-able form."""
        return {"every": self.every, "zone": self.zone, "begins": self.begins}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calendar:
        """Read back what :meth:`to_json` wrote."""
        return cls(str(data["every"]), str(data["zone"]), str(data["begins"]))


def check_zone(zone: str) -> ZoneInfo:
    """Return a zone by its name.

    Raises:
        InputError: when no zone has that name.
    """
    try:
        return ZoneInfo(zone)
    except (ValueError, OSError, TypeError, LookupError):
        from zoneinfo import available_timezones

        close = meant(zone, available_timezones())
        raise_alone(
            InputError(f"zone={zone!r} is not known.{close} Name one such as 'Europe/Zurich'.")
        )


def day_in(when: Day, zone: str) -> date:
    """Return the day that is meant: a date as it is, a moment as the day it is in the zone.

    Raises:
        InputError: when it is no date, or a moment without its own offset.
    """
    known = check_zone(zone)
    found: Any = when
    if isinstance(when, str):
        try:
            found = date.fromisoformat(when) if len(when) <= 10 else datetime.fromisoformat(when)
        except ValueError:
            found = None
    if isinstance(found, datetime):
        if found.tzinfo is None:
            raise InputError(
                f"{found.isoformat()} does not say in which zone it is. Give a date such as "
                "2026-11-09, or a moment with its offset such as 2026-11-09T08:00:00+01:00."
            )
        try:
            return found.astimezone(known).date()
        except OverflowError:
            found = None
    if not isinstance(found, date):
        raise InputError(f"A date is written 2026-11-09; got {when!r}.")
    return found
