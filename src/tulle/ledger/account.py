"""Accounts: terms, versions of the data, what is left of a budget, and how a debit reads."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from tulle.core import validate
from tulle.core.dataset import Dataset
from tulle.core.errors import BudgetError, InputError, LedgerError
from tulle.core.events import Event, event_to_json
from tulle.core.guarantee import Guarantee, display, floor_to
from tulle.core.period import Day, check_zone, day_in
from tulle.core.unit import Unit
from tulle.core.validate import Number, rational, round_down, text
from tulle.ledger.chain import Entry, canonical
from tulle.ledger.divergence import best_order
from tulle.ledger.filters import Filter
from tulle.ledger.renewal import Renewal
from tulle.ledger.totals import Totals, Version


class Budget(float):
    """What is left of an account: epsilon as a float rounded down, and the numbers exactly.

    Where debits are added up tightly, ``epsilon`` is the most that one more question may cost;
    several that cost less cost less together than their sum.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None
    tight: bool
    period: str | None
    """Of which period it is, where the budget renews."""

    def __new__(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        rho: Fraction | None = None,
        tight: bool = False,
        period: str | None = None,
    ) -> Budget:
        """Make the budget; the float is never above the exact epsilon."""
        self = super().__new__(cls, round_down(epsilon))
        self.epsilon, self.delta, self.rho, self.tight = epsilon, delta, rho, tight
        self.period = period
        return self

    def __str__(self) -> str:
        return self._words() if self.period is None else f"{self._words()} for {self.period}"

    def _words(self) -> str:
        if self.rho is not None:
            return (
                f"rho = {_down(self.rho)} (one more question: epsilon up to {_down(self.epsilon)})"
            )
        left = f"epsilon = {_down(self.epsilon)}{' for one more question' if self.tight else ''}"
        return f"{left}, delta = {_down(self.delta)}" if self.delta else left

    __repr__ = __str__


def _down(value: Fraction) -> str:
    exact = text(value)
    if "/" not in exact and len(exact) <= 12:
        return exact
    return f"{float(floor_to(value, 6)) or round_down(value):.6g}"


@dataclass(frozen=True)
class Account:
    """The terms of an account, as booked when it was opened."""

    name: str
    kind: str
    unit: Unit
    terms: Guarantee
    facts: Mapping[str, Any]
    composition_delta: Fraction = Fraction(0)
    """Which part of delta pays for adding debits up tightly; zero where epsilons are added."""
    order: Fraction | None = None
    renewal: Renewal | None = None
    """When the budget is there again; None where it is for ever."""
    version: Version | None = None
    """The present version of the data, if the custodian declared one."""

    @property
    def filter(self) -> Filter:
        """What decides whether the account can pay."""
        terms = self.terms
        if terms.rho is not None:
            return Filter(rho=terms.rho)
        assert terms.epsilon is not None
        return Filter(terms.epsilon, terms.delta, self.composition_delta, self.order)

    @property
    def empty(self) -> Totals:
        """The totals of one budget before any debit."""
        return Totals().after("open", self.to_json()).unspent()

    def allowed(self, totals: Totals) -> tuple[Filter, Totals]:
        """Return the filter at present, and those of the totals that it is for."""
        return (
            (self.filter, totals)
            if self.renewal is None
            else self.renewal.allowed(self.filter, totals)
        )

    def divided(self, dataset: Dataset) -> Dataset:
        """Return the data as answers see it: as the unit says whose a record is.

        Where the budget renews and the unit has a period, only the records of the present period
        are in it, so that each unit's are paid for in the periods that it has days in
        (:mod:`tulle.ledger.renewal`).
        """
        known = dataset.under(self.unit)
        if self.renewal is None or self.unit.period is None or self.version is None:
            return known
        calendar = self.renewal.calendar
        number = calendar.number(day_in(self.version.date, calendar.zone))
        return known.of_days(calendar.first_day(number), calendar.last_day(number))

    def can_pay(self, price: Guarantee, event: Event | None) -> bool:
        """Say whether one question could be paid for if nothing else were."""
        return self.filter.admits_debit(self.empty, debit_body("", "", price, event))

    @property
    def words(self) -> str:
        """The terms in words; for a budget that renews, also what it adds up to."""
        return str(self.terms) if self.renewal is None else self.renewal.words(self.terms)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        found = {"kind": self.kind, "terms": self.terms.to_json(), "facts": dict(self.facts)}
        if self.order is not None:
            tight = {"delta": text(self.composition_delta), "order": text(self.order)}
            found["composition"] = tight
        if self.renewal is not None:
            found["renewal"] = self.renewal.to_json()
        return found if self.version is None else found | {"version": self.version.to_json()}

    @classmethod
    def from_entry(cls, entry: Entry, declared: Entry | None = None) -> Account:
        """Read the account from the entry that opened it and the one of its present version."""
        body = entry.body
        terms = Guarantee.from_json(body["terms"])
        account = cls(entry.account, body["kind"], terms.unit, terms, body["facts"])
        if "renewal" in body:
            account = replace(account, renewal=Renewal.from_json(body["renewal"]))
        if declared is not None:
            version = Version.from_json(declared.body["version"])
            account = replace(account, version=version, facts=declared.body["facts"])
        if "composition" not in body:
            return account
        tight = body["composition"]
        return replace(
            account, composition_delta=rational(tight["delta"]), order=rational(tight["order"])
        )


def account_terms(
    unit: Unit, epsilon: Number | None, delta: Number, rho: Number | None
) -> Guarantee:
    """Return the budget that is asked for, as a guarantee."""
    if (epsilon is None) == (rho is None):
        raise InputError("An account has a budget: give epsilon= (and delta=), or rho=.")
    if rho is not None:
        most = int(validate.MOST_EPSILON**2) // 2  # that of the largest pure epsilon
        checked = validate.positive(at_most=most, rho=rho)
        return Guarantee.of(unit, rho=checked, delta=delta)
    assert epsilon is not None
    return Guarantee(unit, validate.epsilon(epsilon=epsilon), validate.delta(delta=delta))


def new_account(
    name: str,
    dataset: Dataset,
    *,
    unit: str | Unit,
    epsilon: Number | None = None,
    delta: Number = 0.0,
    rho: Number | None = None,
    composition_delta: Number | None = None,
) -> Account:
    """Return the account that :meth:`Ledger.open` would open; nothing is written."""
    terms = account_terms(dataset.check_unit(unit), epsilon, delta, rho)
    return account_for(name, dataset, terms, composition_delta)


def account_for(
    name: str, dataset: Dataset, terms: Guarantee, composition_delta: Number | None
) -> Account:
    """Return an account of these terms for a dataset."""
    facts = dict(dataset.facts(terms.unit))
    return _composing(Account(name, dataset.kind, terms.unit, terms, facts), composition_delta)


def _composing(account: Account, composition_delta: Number | None) -> Account:
    """Return the account with the part of its delta that adds up debits tightly."""
    terms = account.terms
    if composition_delta is None:
        part = terms.delta / 2
    else:
        part = validate.delta(composition_delta=composition_delta)
    if part > terms.delta:
        raise InputError(
            f"composition_delta = {display(part)} is above the account's delta = "
            f"{display(terms.delta)}: it is a part of it."
        )
    if not part:
        return account
    assert terms.epsilon is not None
    return replace(account, composition_delta=part, order=best_order(terms.epsilon, part))


def check_name(name: str, known: Sequence[str]) -> None:
    """Refuse the name of a new account that reads like that of another.

    The same data would have two budgets for a space, a capital or two ways to write an accent.

    Raises:
        LedgerError: naming the account that is there.
    """
    alike = [other for other in known if other != name and _read_aloud(other) == _read_aloud(name)]
    if alike:
        raise LedgerError(
            f"Account {name!a} would be new, and {alike[0]!a} is there already: they read alike, "
            "and one dataset has one account. Open that one, or choose a name that differs by "
            "letters or digits. Nothing was opened."
        )


def _read_aloud(name: str) -> str:
    """Return a name without case, width, ligatures, and more than one space."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(plain.split())


def debit_body(
    question: str, identity: str, price: Guarantee, event: Event | None
) -> dict[str, Any]:
    """Return what a debit says."""
    body: dict[str, Any] = {"question": question, "key": identity, "guarantee": price.to_json()}
    return body if event is None else body | {"event": event_to_json(event)}


def identity_of(key: Mapping[str, Any], version: str | None) -> str:
    """Return what identifies a question: about a version of the data, if there are versions."""
    return canonical(key if version is None else {**key, "version": version})


def described_version(name: str | None, day: Day | None, renewal: Renewal | None) -> Version:
    """Return the version that a custodian describes."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or day is None:
        raise InputError(
            "A version of the data has a name and a date: give both, such as version='2026-W46', "
            f"date='2026-11-09'; got {name!r} and {day!r}."
        )
    zone = "UTC" if renewal is None else renewal.calendar.zone
    found = day_in(day, zone)
    # The clock decides no period. But a date mistyped into a far future could never be taken back.
    today = datetime.now(check_zone(zone)).date()
    if found > today:
        raise InputError(
            f"The date {found} of version {name!r} is in the future: today is {today} in {zone}. "
            "Dates never go backwards, so this could not be taken back. Give the day of the data."
        )
    return Version(name, found.isoformat())


def is_payable(account: Account, totals: Totals, body: Mapping[str, Any]) -> bool:
    """Say whether what is left pays for a debit."""
    found, spent = account.allowed(totals)
    return found.admits_debit(spent, body)


def check_affordable(
    account: Account,
    totals: Totals,
    body: Mapping[str, Any],
    version: str | None,
    price: Guarantee,
) -> None:
    """Refuse a debit for another version of the data than the present one, or beyond the budget."""
    present = None if totals.version is None else totals.version.name
    if version != present:
        raise LedgerError(not_present(replace(account, version=totals.version), version))
    if not is_payable(account, totals, body):
        raise BudgetError(_overspend(str(body["question"]), account, price, totals))


def not_present(account: Account, asked: str | None) -> str:
    """Say that the data at hand is not of the present version."""
    present = "none" if account.version is None else repr(account.version.name)
    return (
        f"The data at hand is of version {asked!r}; the present version of account "
        f"{account.name!r} is {present}. Only answers that were kept can be given for another "
        "version. Open the account with the present data. Nothing was spent."
    )


def left_of(account: Account, totals: Totals) -> Budget:
    """Return what is left of an account."""
    found, spent = account.allowed(totals)
    delta = found.spendable_delta - spent.delta
    rho = None if found.rho is None else found.rho - (spent.rho or 0)
    tight = found.order is not None
    period = None if totals.period is None else totals.period.label
    return Budget(found.largest_pure(spent), delta, rho=rho, tight=tight, period=period)


def _overspend(question: str, account: Account, price: Guarantee, totals: Totals) -> str:
    left = left_of(account, totals)
    asked = f"epsilon = {display(price.epsilon)}"
    if price.delta:
        asked += f", delta = {display(price.delta)}"
    fits: list[str] = []
    if left.epsilon > 0:
        fits.append(f"epsilon up to {_down(left.epsilon)}")
    if price.delta and left.delta > 0:
        fits.append(f"delta up to {_down(left.delta)}")
    elif price.delta and left.epsilon > 0:
        fits.append("a mechanism without delta")
    what = f"What would fit: {' and '.join(fits)}." if fits else "The account is used up."
    if price.delta > left.delta and account.composition_delta:
        what += (
            f" delta = {display(account.composition_delta)} is set aside for adding up many "
            "answers; an account opened with composition_delta=0 has all of its delta to spend."
        )
    return (
        f"Account {account.name!r} cannot pay for {question}: it asks {asked}; "
        f"{left} is left. {what} Nothing was spent."
    )


def differences(booked: Account, wanted: Account) -> str:
    """Say in what an account differs from the one that is asked for."""
    parts = []
    if booked.kind != wanted.kind:
        parts.append(f"it is for a {booked.kind}, not a {wanted.kind}")
    if booked.terms != wanted.terms:
        parts.append(f"its terms are {booked.terms}; asked for {wanted.terms}")
    if booked.renewal != wanted.renewal:
        parts.append(f"its budget is {_renewed(booked)}; asked for one that is {_renewed(wanted)}")
    if booked.composition_delta != wanted.composition_delta:
        own, other = booked.composition_delta, wanted.composition_delta
        parts.append(f"its composition_delta is {display(own)}; asked for {display(other)}")
    if booked.facts != wanted.facts:
        parts.append(
            f"its data has the public facts {dict(booked.facts)}; "
            f"this data has {dict(wanted.facts)}; new data is declared as a new version"
        )
    return (
        f"Account {booked.name!r} already exists and differs: {'; '.join(parts)}. "
        "Open it with its own terms and data, or choose another name. Nothing was spent."
    )


def _renewed(account: Account) -> str:
    if account.renewal is None:
        return "for ever"
    carried = "" if account.renewal.carry else "not "
    return f"for each {account.renewal.calendar}, {carried}carried over"


def no_account(name: str, known: Sequence[str]) -> str:
    """Say which accounts there are."""
    listed = ", ".join(map(repr, known)) or "none"
    return f"There is no account {name!r} in this ledger. Accounts: {listed}."
