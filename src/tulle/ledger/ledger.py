"""The account book of privacy: one file, debits before noise, answers kept.

A debit is durable before the first random bit is drawn. A crash can lose budget, never privacy.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tulle.core import validate
from tulle.core.dataset import Dataset
from tulle.core.errors import BudgetError, InputError, LedgerError
from tulle.core.events import Event, event_to_json
from tulle.core.exact import Number, rational, round_down, text
from tulle.core.guarantee import Guarantee, display, floor_to
from tulle.core.plan import Plan
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.ledger.batch import composed
from tulle.ledger.chain import Entry, Head, Problem, canonical
from tulle.ledger.divergence import best_order
from tulle.ledger.filters import Filter
from tulle.ledger.session import Session
from tulle.ledger.store import Store
from tulle.ledger.store_file import View, unreadable
from tulle.ledger.totals import Totals


class Budget(float):
    """What is left of an account: epsilon as a float rounded down, and the numbers exactly.

    Where debits are added up tightly, ``epsilon`` is the most that one more question may cost;
    several that cost less cost less together than their sum.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None
    tight: bool

    def __new__(
        cls, epsilon: Fraction, delta: Fraction, *, rho: Fraction | None = None, tight: bool = False
    ) -> Budget:
        """Make the budget; the float is never above the exact epsilon."""
        self = super().__new__(cls, round_down(epsilon))
        self.epsilon, self.delta, self.rho, self.tight = epsilon, delta, rho, tight
        return self

    def __str__(self) -> str:
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
        """The totals of the account before any debit."""
        return Totals().after("open", self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        found = {"kind": self.kind, "terms": self.terms.to_json(), "facts": dict(self.facts)}
        if self.order is None:
            return found
        tight = {"delta": text(self.composition_delta), "order": text(self.order)}
        return found | {"composition": tight}

    @classmethod
    def from_entry(cls, entry: Entry) -> Account:
        """Read the account from the entry that opened it."""
        body = entry.body
        terms = Guarantee.from_json(body["terms"])
        account = cls(entry.account, body["kind"], terms.unit, terms, body["facts"])
        if "composition" not in body:
            return account
        tight = body["composition"]
        return replace(
            account, composition_delta=rational(tight["delta"]), order=rational(tight["order"])
        )


@public("Plan, pay, release")
class Ledger:
    """One SQLite file with any number of accounts.

    Example:
        >>> import tempfile, tulle
        >>> folder = tempfile.TemporaryDirectory()
        >>> friends = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=4)
        >>> ledger = tulle.Ledger(folder.name + "/study.ledger")
        >>> study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
        >>> r = study.ask(tulle.edges(), epsilon=0.4)
        >>> study.remaining
        epsilon = 0.6
        >>> study.ask(tulle.edges(), epsilon=0.4).value == r.value  # asked before: free
        True
        >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self._store = Store(path, create=create)

    @property
    def path(self) -> Path:
        """Where the ledger lies."""
        return self._store.path

    def open(
        self,
        name: str,
        dataset: Dataset,
        *,
        unit: str | Unit,
        epsilon: Number | None = None,
        delta: Number = 0.0,
        rho: Number | None = None,
        composition_delta: Number | None = None,
    ) -> Session:
        """Open an account with a total budget, or open it again with the same terms or none.

        The budget is (epsilon, delta), or rho. With a delta, debits are added up tightly: many
        small ones cost much less than the sum of their epsilons, also when questions and prices
        are chosen in view of earlier answers (:mod:`tulle.ledger.filters`). For this a part of
        delta is set aside, ``composition_delta``: half of it unless given; 0 adds epsilons.

        The account is for one dataset. The ledger stores its kind and its public facts, nothing
        computed from records, so it cannot tell two datasets with equal facts apart.

        Raises:
            LedgerError: when the account exists with other terms or other public facts.
        """
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"name must be printable text that names the account; got {name!r}.")
        if not isinstance(dataset, Dataset):
            raise InputError(f"A sealed dataset is needed; got {type(dataset).__name__}.")
        known = dataset.check_unit(unit)
        entry = self._store.read(name, View.first)
        if entry is not None and epsilon is None and rho is None:
            with self._reading():
                terms = replace(Account.from_entry(entry).terms, unit=known)
        else:
            terms = _terms(known, epsilon, delta, rho)
        account = Account(name, dataset.kind, known, terms, dict(dataset.facts(known)))
        account = _composing(account, composition_delta)

        if entry is None:
            entry = self._store.append("open", name, account.to_json(), reuse=View.first)
        with self._reading():
            booked = Account.from_entry(entry)
        if composition_delta is None or booked.composition_delta == account.composition_delta:
            # How debits are added up was settled when the account was opened.
            account = replace(
                account, composition_delta=booked.composition_delta, order=booked.order
            )
        if booked != account:
            raise LedgerError(_differences(booked, account))
        return Session(self, booked, dataset)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever entries that are no ledger's make Python raise into a LedgerError."""
        try:
            yield
        except (BudgetError, LedgerError):
            raise
        except Exception as error:
            raise unreadable(self.path, error) from error

    def accounts(self) -> list[Account]:
        """Return all accounts, in the order in which they were opened."""
        with self._reading():
            firsts = self._store.read_all(View.first)
            return [Account.from_entry(entry) for entry in sorted(firsts, key=lambda e: e.number)]

    def account(self, name: str) -> Account:
        """Return one account's terms.

        Raises:
            LedgerError: when there is none of that name.
        """
        return self._look(name, lambda view: None)[0]

    def _look(self, name: str, also: Callable[[View], Any]) -> tuple[Account, Any]:
        """Return an account's terms and what else is to be read of it, as they are at once."""
        first, more = self._store.read(name, lambda view: (view.first(), also(view)))
        if first is None:
            raise LedgerError(_no_account(name, self._store.accounts()))
        with self._reading():
            return Account.from_entry(first), more

    def debits(self, name: str) -> list[Entry]:
        """Return an account's debits, in order."""
        found = self._store.entries(name, kinds=("debit",))
        with self._reading():
            for entry in found:
                Guarantee.from_json(entry.body["guarantee"])
                str(entry.body["question"])
        return found

    def releases(self, name: str) -> list[Release]:
        """Return the answers that were kept for an account, in order."""
        kept = self._store.entries(name, kinds=("release",))
        with self._reading():
            return [Release.from_json(entry.body["release"]) for entry in kept]

    def spent(self, name: str) -> Guarantee | None:
        """Return the composed guarantee of everything booked, or None if nothing was."""
        debits = self.debits(name)
        with self._reading():
            booked = [Guarantee.from_json(entry.body["guarantee"]) for entry in debits]
            return Guarantee.compose(booked) if booked else None

    def remaining(self, name: str) -> Budget:
        """Return what is left of an account."""
        return _left(*self._look(name, lambda view: view.totals))

    def book(
        self,
        name: str,
        question: str,
        key: Mapping[str, Any],
        price: Guarantee,
        *,
        event: Event | None = None,
        again: bool = False,
    ) -> tuple[str, Release | None]:
        """Book a debit durably, or find the kept answer to the identical question.

        ``event`` is what the answer does to privacy, more closely than its guarantee says.

        Returns:
            The debit's digest, and the kept release when there is one (then nothing is booked).

        Raises:
            BudgetError: when the price exceeds what is left.
        """
        if price.epsilon is None:
            raise InputError("A price has an epsilon and a delta; convert rho to those first.")
        identity = canonical(key)

        def kept(view: View) -> Entry | None:
            return None if again else view.kept(identity)

        account, found = self._look(name, kept)

        body = debit_body(question, identity, price, event)

        def afford(view: View) -> None:
            if not _payable(account, view.totals, body):
                raise BudgetError(_overspend(question, account, price, view.totals))

        entry = found or self._store.append("debit", name, body, guard=afford, reuse=kept)
        if entry.kind != "release":
            return entry.digest, None
        with self._reading():
            return str(entry.body["debit"]), Release.from_json(entry.body["release"])

    def book_all(
        self, name: str, asked: Sequence[tuple[str, Mapping[str, Any], Plan]]
    ) -> tuple[str | None, list[Release | None]]:
        """Book one debit for several questions, each with its key and plan, or find their answers.

        Returns:
            The debit's digest (None when every answer was kept), and the kept releases in order.

        Raises:
            BudgetError: when the prices together exceed what is left; nothing is booked.
        """
        identities = [canonical(key) for _, key, _ in asked]

        def kept(view: View) -> list[Entry | None]:
            return [view.kept(identity) for identity in identities]

        account, found = self._look(name, kept)
        rest = [item for item, entry in zip(asked, found, strict=True) if entry is None]
        debit: str | None = None
        if rest:
            price, event = composed([plan for _, _, plan in rest])
            question = "; ".join(text for text, _, _ in rest)
            body = debit_body(
                question, canonical({"all": [key for _, key, _ in rest]}), price, event
            )

            def afford(view: View) -> None:
                if not _payable(account, view.totals, body):
                    raise BudgetError(_overspend(question, account, price, view.totals))

            debit = self._store.append("debit", name, body, guard=afford).digest
        with self._reading():
            return debit, [
                None if entry is None else Release.from_json(entry.body["release"])
                for entry in found
            ]

    def price_words(self, name: str, plan: Plan) -> str:
        """Say what a plan's price means to an account."""
        account, totals = self._look(name, lambda view: view.totals)
        body = debit_body("", "", plan.guarantee, plan.event)
        if not _payable(account, totals, body):
            return f"The account cannot pay this: {_left(account, totals)} is left."
        share = account.filter.used(totals, totals.after("debit", body))
        return f"It takes {float(share):.2%} of the account."

    def keep(self, name: str, debit: str, key: Mapping[str, Any], answer: Release) -> None:
        """Store an answer beside its debit, so that asking again is free."""
        body = {"debit": debit, "key": canonical(key), "release": answer.to_json()}
        self._store.append("release", name, body)

    def description(self, release: Release) -> dict[str, Any]:
        """Return the whole question that a release answers, as it was booked."""
        kept = self._store.entries(kinds=("release",))
        with self._reading():
            for entry in kept:
                same = entry.body["debit"] == release.debit
                if same and entry.body["release"]["query"] == release.query:
                    found: dict[str, Any] = json.loads(entry.body["key"])["query"]
                    return found
        return {}

    def entries(self) -> list[Entry]:
        """Return every entry of the ledger, in order."""
        return self._store.entries()

    def since(self, head: Head) -> list[Entry]:
        """Return the entries that were booked after this head, in order."""
        return self._store.since(head)

    def head(self) -> Head:
        """Return the ledger's length and last digest: note it elsewhere to detect an old copy."""
        return self._store.head()

    def verify(
        self, *, head: Head | None = None, releases: Iterable[Release] = ()
    ) -> list[Problem]:
        """Check the chain; with a noted head or published releases, also against those.

        A release must be booked, and must read as the ledger kept it.

        Returns:
            The problems found; an empty list when the ledger is sound.
        """
        published = [item for item in releases if item.debit is not None]
        digests = [str(item.debit) for item in published]
        problems = self._store.verify(expected_head=head, expected_digests=digests)
        if problems or not published:
            return problems
        entries = self._store.entries(kinds=("release",))
        with self._reading():
            # One debit pays for a whole batch, which may ask the same thing twice.
            kept: dict[tuple[str, str], list[Entry]] = {}
            for entry in entries:
                key = entry.body["debit"], entry.body["release"]["query"]
                kept.setdefault(key, []).append(entry)
            for item in published:
                found = kept.get((str(item.debit), item.query), [])
                if found and not any(_same(entry.body["release"], item) for entry in found):
                    what = f"keeps another answer to {item.query} than the release shown"
                    problems.append(Problem(found[-1].number, what))
        return problems

    def __repr__(self) -> str:
        return f"<Ledger {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:left'>{html.escape(str(cell))}</td>"
                for cell in (
                    account.name,
                    account.terms,
                    self.remaining(account.name),
                    len(self.debits(account.name)),
                )
            )
            + "</tr>"
            for account in self.accounts()
        )
        head = "".join(f"<th>{title}</th>" for title in ("account", "terms", "left", "debits"))
        name = html.escape(self.path.name)
        return f"<table><caption>Ledger <b>{name}</b></caption><tr>{head}</tr>{rows}</table>"


def _terms(unit: Unit, epsilon: Number | None, delta: Number, rho: Number | None) -> Guarantee:
    if (epsilon is None) == (rho is None):
        raise InputError("An account has a budget: give epsilon= (and delta=), or rho=.")
    if rho is not None:
        return Guarantee.of(unit, rho=rho, delta=delta)
    assert epsilon is not None
    return Guarantee(unit, validate.epsilon(epsilon=epsilon), validate.delta(delta=delta))


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


def debit_body(
    question: str, identity: str, price: Guarantee, event: Event | None
) -> dict[str, Any]:
    """Return what a debit says."""
    body: dict[str, Any] = {"question": question, "key": identity, "guarantee": price.to_json()}
    return body if event is None else body | {"event": event_to_json(event)}


def _payable(account: Account, totals: Totals, body: Mapping[str, Any]) -> bool:
    try:
        after = totals.after("debit", body)
    except ValueError:
        # A price that spends a delta has no rho.
        return False
    return account.filter.admits(after)


def _left(account: Account, totals: Totals) -> Budget:
    found = account.filter
    delta = found.spendable_delta - totals.delta
    rho = None if found.rho is None else found.rho - (totals.rho or 0)
    tight = found.order is not None
    return Budget(found.largest_pure(totals), delta, rho=rho, tight=tight)


def _overspend(question: str, account: Account, price: Guarantee, totals: Totals) -> str:
    left = _left(account, totals)
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


def _differences(booked: Account, wanted: Account) -> str:
    parts = []
    if booked.kind != wanted.kind:
        parts.append(f"it is for a {booked.kind}, not a {wanted.kind}")
    if booked.terms != wanted.terms:
        parts.append(f"its terms are {booked.terms}; asked for {wanted.terms}")
    if booked.composition_delta != wanted.composition_delta:
        own, other = booked.composition_delta, wanted.composition_delta
        parts.append(f"its composition_delta is {display(own)}; asked for {display(other)}")
    if booked.facts != wanted.facts:
        parts.append(
            f"its data has the public facts {dict(booked.facts)}; "
            f"this data has {dict(wanted.facts)}"
        )
    return (
        f"Account {booked.name!r} already exists and differs: {'; '.join(parts)}. "
        "Open it with its own terms and data, or choose another name. Nothing was spent."
    )


def _same(kept: Mapping[str, Any], shown: Release) -> bool:
    """Say whether a release reads as it was kept, by whichever version of tulle."""
    return canonical(Release.from_json(kept).to_json()) == canonical(shown.to_json())


def _no_account(name: str, known: Sequence[str]) -> str:
    listed = ", ".join(map(repr, known)) or "none"
    return f"There is no account {name!r} in this ledger. Accounts: {listed}."
