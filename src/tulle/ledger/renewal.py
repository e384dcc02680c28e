"""Budgets that renew: so much for each day, week, month or year.

The present period is the one in which the date of the account's data lies, as the custodian
declared it (:meth:`tulle.Ledger.declare`). The computer's clock decides nothing: turned back or
forward it gives no budget. Dates of versions never go backwards, and versions of one period share
its budget.

Guarantee:
    Let one period's budget be (epsilon, delta), or rho. Without carrying over, each period has a
    filter of its own (:mod:`tulle.ledger.filters`), so all that is answered in k periods is
    (k·epsilon, k·delta)-private, or k·rho, by composition. With carrying over, the account has
    after k periods of the calendar the filter of k times the budget: debits add up over its whole
    life and the limit grows. Limits never shrink, so what a path had spent at its last debit is
    within the limit at the end, and the filter's argument holds for that limit. The order and
    ``composition_delta`` stay those of one period, fixed when the account was opened.

    So a budget that renews is *more budget over time* for whoever stays in the data. Where the unit
    has a period (a person's records of one week), a session's data has the records of the present
    period alone (:meth:`tulle.ledger.account.Account.divided`): the rest is left out, by the engine
    and whatever is asked. A unit's records are then in the data of those periods of the calendar
    that its own period has days in, j of them at most (:meth:`tulle.core.period.Calendar.touched`):
    one where both are alike. Other periods' answers do not see it. So without carrying over all
    answers, for ever, are (j·epsilon, j·delta)-private for it. Versions of one period share its
    budget, and dates never go backwards, so no period comes twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tulle.core.guarantee import Guarantee, display
from tulle.core.period import MOST_IN_A_YEAR, Calendar
from tulle.ledger.filters import Filter
from tulle.ledger.totals import Totals, Version


@dataclass(frozen=True)
class Renewal:
    """When an account's budget is there again, and what becomes of the rest."""

    calendar: Calendar
    carry: bool = False
    """Whether what is not spent in a period is added to the next."""

    def allowed(self, each: Filter, totals: Totals) -> tuple[Filter, Totals]:
        """Return the filter at present, and the totals that it is for; ``each`` is one period's."""
        period = totals.period
        assert period is not None
        if not self.carry:
            return each, period.spent
        return each.times(period.number - period.first + 1), totals

    def words(self, terms: Guarantee) -> str:
        """Say what the budget means over time, for one budget's terms."""
        kind = self.calendar.every
        rest = "added to the next" if self.carry else "lost"
        most = MOST_IN_A_YEAR[kind]
        total = _times(terms, most)
        period = terms.unit.period
        if period is not None and not self.carry:
            return f"{self._each(terms)} is lost. {self._for_good(terms, period)}"
        year = "" if kind == "year" else f", in a calendar year at most {_price(total)}"
        if self.carry:
            year = f", after k {kind}s at most k times as much"
            year += (
                "" if kind == "year" else f", so each calendar year adds at most {_price(total)}"
            )
        return (
            f"{self._each(terms)} is {rest}. It adds up for "
            f"any one {terms.unit.name} whose records stay in the data{year}."
        )

    def _each(self, terms: Guarantee) -> str:
        return f"{_price(terms)} each {self.calendar}; what is not spent"

    def _for_good(self, terms: Guarantee, period: str) -> str:
        """Say what the budget is for a unit with a period, whose records are asked about then."""
        times, kind = self.calendar.touched(period), self.calendar.every
        total = _price(_times(terms, times))
        many = "in one of them alone" if times == 1 else f"in at most {times} of them"
        return (
            f"Answers are about the records of the present {kind}. Any one {terms.unit.base}'s "
            f"records of any one {period} are {many}: {total} for good."
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {**self.calendar.to_json(), "carry": self.carry}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Renewal:
        """Read back what :meth:`to_json` wrote."""
        return cls(Calendar.from_json(data), bool(data["carry"]))


def _times(terms: Guarantee, count: int) -> Guarantee:
    """Return the terms of so many budgets."""
    total = replace(terms, assumptions=())
    if terms.rho is not None:
        return replace(total, rho=terms.rho * count)
    assert terms.epsilon is not None
    return replace(total, epsilon=terms.epsilon * count, delta=terms.delta * count)


def _price(terms: Guarantee) -> str:
    return str(replace(terms, assumptions=())).partition(", per ")[0].removesuffix(", pure")


@dataclass(frozen=True)
class Elapsed:
    """One period of an account's calendar: its days, its versions, and what it cost."""

    label: str
    first_day: str
    last_day: str
    versions: tuple[Version, ...]
    spent: Totals
    """What the debits of this period cost together."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "label": self.label,
            "first_day": self.first_day,
            "last_day": self.last_day,
            "versions": [version.to_json() for version in self.versions],
            "spent": self.spent.to_json(),
        }

    @property
    def price(self) -> str:
        """What the period cost, in words."""
        if self.spent.rho is not None:
            return f"rho = {display(self.spent.rho)}"
        return f"epsilon = {display(self.spent.epsilon)} by addition"

    @property
    def debits(self) -> int:
        """How many debits were booked in it."""
        return self.spent.debits
