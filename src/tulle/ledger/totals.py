"""The running totals of an account: what all its entries so far add up to.

Every entry states the totals up to and with itself, under its digest. What is left of a budget is
read off the last entry of an account, however long its history is; verification adds up again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tulle.core import validate as exact
from tulle.core.events import Approximate, Event, Pure, event_from_json
from tulle.core.period import Calendar
from tulle.ledger.divergence import added, concentration, divergence

# The same few prices and sums come again and again when a long ledger is added up.
rational = lru_cache(1024)(exact.rational)
text = lru_cache(1024)(exact.text)

LONGEST = 1024
"""Bits of the longest denominator. Sums of unlike fractions would grow with every debit."""


@dataclass(frozen=True)
class Version:
    """A version of an account's data: what the custodian calls it, and of which day it is."""

    name: str
    date: str

    def to_json(self) -> dict[str, str]:
        """Return a JSON-able form."""
        return {"name": self.name, "date": self.date}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Version:
        """Read back what :meth:`to_json` wrote.

        Raises:
            ValueError, LookupError, TypeError: when it is none.
        """
        return cls(str(data["name"]), date.fromisoformat(data["date"]).isoformat())


@dataclass(frozen=True)
class Period:
    """The present period of an account whose budget renews: that of its version's date.

    It never ends by the clock: only a version with a later date ends it.
    """

    calendar: Calendar
    first: int
    """The number of the account's first period."""
    number: int
    spent: Totals
    """What the debits of this period cost together."""

    @property
    def label(self) -> str:
        """The period's usual name."""
        return self.calendar.label(self.number)

    def at(self, day: str) -> Period:
        """Return the period of a day; a new one has nothing spent."""
        number = self.calendar.number(date.fromisoformat(day))
        if number == self.number:
            return self
        return replace(self, number=number, spent=self.spent.unspent())

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        spent = self.spent.to_json()
        return {
            "calendar": self.calendar.to_json(),
            "first": self.first,
            "number": self.number,
            "spent": spent,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Period:
        """Read back what :meth:`to_json` wrote."""
        return cls(
            Calendar.from_json(data["calendar"]),
            int(data["first"]),
            int(data["number"]),
            Totals.from_json(data["spent"]),
        )


@dataclass(frozen=True)
class Totals:
    """How many entries and debits an account has, and what the debits cost together.

    Example:
        >>> debit = {"guarantee": {"epsilon": "0.1", "delta": "0"}}
        >>> Totals().after("debit", debit).after("debit", debit).to_json()["epsilon"]
        '0.2'
    """

    entries: int = 0
    debits: int = 0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    order: Fraction | None = None
    """The order of the account's Rényi filter, if it has one (:mod:`tulle.ledger.filters`)."""
    divergence: Fraction = Fraction(0)
    addable: bool = True
    """Whether every debit has the epsilon that it states by adding up those of its events, and so
    with no more delta than theirs: where there is an order, Gaussian noise has none."""
    rho: Fraction | None = None
    """For an account of rho, what its debits add up to."""
    version: Version | None = None
    """The version of the data that the custodian declared last, if any was."""
    period: Period | None = None
    """For an account whose budget renews, its present period."""

    def after(self, kind: str, body: Mapping[str, Any]) -> Totals:
        """Return the totals with one more entry.

        Raises:
            ValueError, LookupError, TypeError: when the entry is a debit whose price is none.
        """
        grown = replace(self, entries=self.entries + 1)
        if kind == "open":
            order = body.get("composition", {}).get("order")
            rho = body.get("terms", {}).get("rho")
            grown = replace(
                grown,
                order=None if order is None else rational(order),
                rho=None if rho is None else Fraction(0),
            )
            return grown if "version" not in body else grown._begin(body)
        if kind == "version":
            return grown._advance(Version.from_json(body["version"]))
        if kind != "debit":
            return grown
        if grown.period is not None:
            spent = grown.period.spent.after(kind, body)
            grown = replace(grown, period=replace(grown.period, spent=spent))
        return grown._add(body)

    def _begin(self, body: Mapping[str, Any]) -> Totals:
        """Return the totals of an account that is opened with a version of its data."""
        version = Version.from_json(body["version"])
        begun = replace(self, version=version)
        if "renewal" not in body:
            return begun
        calendar = Calendar.from_json(body["renewal"])
        number = calendar.number(date.fromisoformat(version.date))
        return replace(begun, period=Period(calendar, number, number, self.unspent()))

    def _advance(self, version: Version) -> Totals:
        """Return the totals when a version of the data is declared."""
        if self.version is not None and version.date < self.version.date:
            raise ValueError("a version is dated before the one that it follows")
        period = None if self.period is None else self.period.at(version.date)
        return replace(self, version=version, period=period)

    def unspent(self) -> Totals:
        """Return totals that are added up like these, with nothing spent."""
        return Totals(order=self.order, rho=None if self.rho is None else Fraction(0))

    def _add(self, body: Mapping[str, Any]) -> Totals:
        """Return the totals with a debit's price, once the entry is counted."""
        grown = self
        price = body.get("guarantee", {"epsilon": 0, "delta": 0})
        event = event_from_json(body["event"]) if "event" in body else _event_of(price)
        grown = replace(grown, debits=self.debits + 1)
        if self.rho is not None:
            rho = concentration(event)
            if rho is None:
                raise ValueError("an account of rho pays for a delta")
            return replace(grown, rho=_shortened(self.rho + rho))
        epsilon, delta = rational(price["epsilon"]), rational(price["delta"])
        if epsilon < 0 or delta < 0:
            raise ValueError("a price is below zero")
        grown = replace(grown, epsilon=_shortened(self.epsilon + epsilon))
        if self.order is None:
            return replace(grown, delta=_shortened(self.delta + delta))
        cost, spent = divergence(event, self.order)
        own = added(event)
        return replace(
            grown,
            delta=_shortened(self.delta + spent),
            divergence=self.divergence + cost,
            addable=self.addable and own is not None and own <= epsilon,
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form; the sums are exact."""
        found: dict[str, Any] = {
            "entries": self.entries,
            "debits": self.debits,
            "epsilon": text(self.epsilon),
            "delta": text(self.delta),
        }
        if self.order is not None:
            found |= {
                "order": text(self.order),
                "divergence": text(self.divergence),
                "addable": self.addable,
            }
        if self.rho is not None:
            found["rho"] = text(self.rho)
        if self.version is not None:
            found["version"] = self.version.to_json()
        return found if self.period is None else found | {"period": self.period.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Totals:
        """Read back what :meth:`to_json` wrote."""
        order, rho = data.get("order"), data.get("rho")
        version, period = data.get("version"), data.get("period")
        return cls(
            int(data["entries"]),
            int(data["debits"]),
            rational(data["epsilon"]),
            rational(data["delta"]),
            None if order is None else rational(order),
            rational(data.get("divergence", 0)),
            bool(data.get("addable", True)),
            None if rho is None else rational(rho),
            None if version is None else Version.from_json(version),
            None if period is None else Period.from_json(period),
        )


def _event_of(price: Mapping[str, Any]) -> Event:
    """Return the event of a debit that states none: what its guarantee allows."""
    epsilon, delta = rational(price["epsilon"]), rational(price["delta"])
    return Approximate(epsilon, delta) if delta else Pure(epsilon)


def _shortened(spent: Fraction) -> Fraction:
    """Round what was spent up, should its denominator be very long: a budget is rounded down."""
    if spent.denominator.bit_length() <= LONGEST:
        return spent
    return Fraction(math.ceil(spent * 2 ** (LONGEST - 1)), 2 ** (LONGEST - 1))
