"""The account book of privacy: one file, debits before noise, answers kept.

A debit is durable before the first random bit is drawn. A crash can lose budget, never privacy.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.errors import BudgetError, InputError, LedgerError
from tulle.core.events import Event
from tulle.core.guarantee import Guarantee
from tulle.core.period import Calendar, Day
from tulle.core.plan import Plan
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.core.validate import Number
from tulle.ledger.account import (
    Account,
    Budget,
    account_for,
    account_terms,
    check_affordable,
    check_name,
    debit_body,
    described_version,
    differences,
    identity_of,
    is_payable,
    left_of,
    no_account,
    not_present,
)
from tulle.ledger.batch import composed
from tulle.ledger.chain import Entry, Head, Problem, canonical
from tulle.ledger.renewal import Elapsed, Renewal
from tulle.ledger.session import Session
from tulle.ledger.store import Store
from tulle.ledger.store_file import View, unreadable
from tulle.ledger.totals import Totals, Version

_LONGEST_NAME = 200
"""Of a new account: the name is in every entry, and twice in every index of them."""


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
        every: str | None = None,
        carry: bool = False,
        zone: str = "UTC",
        begins: str = "monday",
        version: str | None = None,
        date: Day | None = None,
    ) -> Session:
        """Open an account with a budget, or open it again with the same terms or none.

        The budget is (epsilon, delta), or rho. With a delta, debits are added up tightly: many
        small ones cost much less than the sum of their epsilons, also when questions and prices
        are chosen in view of earlier answers (:mod:`tulle.ledger.filters`). For this a part of
        delta is set aside, ``composition_delta``: half of it unless given; 0 adds epsilons.

        With ``every`` ("day", "week", "month", "year") the budget is there again in each period of
        the calendar in ``zone``, weeks beginning on ``begins``; with ``carry`` what is left is
        added to the next (:mod:`tulle.ledger.renewal`). For whoever stays in the data it adds up:
        ``account.words`` says to how much. Such an account is opened with the ``version`` of the
        data and its ``date``, which decides the period. Any account may be. Opening an account with
        a version that it does not know declares it (:meth:`declare`).

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
        renewal = None if every is None else Renewal(Calendar.of(every, zone, begins), bool(carry))
        if every is None and (carry or zone != "UTC" or begins != "monday"):
            raise InputError("carry=, zone= and begins= go with every=, the period of the budget.")
        if date is not None and version is None:
            raise InputError("date= goes with version=, the name of the data's version.")
        entry = self._store.read(name, View.first)
        if entry is None and len(name) > _LONGEST_NAME:
            raise InputError(f"name must have at most {_LONGEST_NAME} characters; got {len(name)}.")
        if entry is not None and epsilon is None and rho is None:
            with self._reading():
                opened = Account.from_entry(entry)
                terms = replace(opened.terms, unit=known)
                renewal = opened.renewal if every is None else renewal
        else:
            terms = account_terms(known, epsilon, delta, rho)
        account = account_for(name, dataset, terms, composition_delta)
        account = replace(account, renewal=renewal)

        if entry is None:
            if version is not None:
                account = replace(account, version=described_version(version, date, renewal))
                account.divided(dataset)
            elif renewal is not None:
                raise InputError(
                    "The date of the data decides which period's budget is spent: give version= "
                    "and date=, such as version='2026-W46', date='2026-11-09'."
                )
            self._store.append(
                "open",
                name,
                account.to_json(),
                guard=lambda view: check_name(name, view.accounts()),
                reuse=View.first,
            )
        elif version is not None:
            self._check_terms(name, account, composition_delta)
            self.declare(name, version, date=date, dataset=dataset)
        booked = self._check_terms(name, account, composition_delta)
        if version is not None and (booked.version is None or booked.version.name != version):
            raise LedgerError(not_present(booked, version))
        if booked.facts != account.facts:
            raise LedgerError(differences(booked, account))
        return Session(self, booked, dataset)

    def _check_terms(
        self, name: str, account: Account, composition_delta: Number | None
    ) -> Account:
        """Return the account as it is booked, unless it has other terms."""
        booked, _ = self._look(name, lambda view: None)
        account = replace(account, version=booked.version)
        if composition_delta is None or booked.composition_delta == account.composition_delta:
            # How debits are added up was settled when the account was opened.
            account = replace(
                account, composition_delta=booked.composition_delta, order=booked.order
            )
        if booked != replace(account, facts=booked.facts):
            raise LedgerError(differences(booked, account))
        return booked

    def declare(
        self,
        name: str,
        version: str,
        *,
        date: Day | None,
        dataset: Dataset | None = None,
    ) -> Version:
        """Declare that an account's data is new: a version with a name and a date.

        Kept answers belong to a version; the same question about a new one is answered and paid
        for anew. Of an account whose budget renews, the date decides the present period. It is
        never before the date of the last version. Public facts that have changed, such as the
        number of nodes, are those of ``dataset``; without it they stay as they are.

        Sessions that were opened before have the old data: they refuse to go on.

        Raises:
            LedgerError: when the version was declared before with another date or other facts, or
                is dated before the present one.
        """
        account, _ = self._look(name, lambda view: None)
        facts = dict(account.facts)
        if dataset is not None:
            if not isinstance(dataset, Dataset):
                raise InputError(f"A sealed dataset is needed; got {type(dataset).__name__}.")
            facts = dict(dataset.facts(dataset.check_unit(account.unit)))
            if dataset.kind != account.kind:
                raise LedgerError(
                    f"Account {name!r} is for a {account.kind}, not a {dataset.kind}. Nothing "
                    "was declared."
                )

        def known(view: View) -> Entry | None:
            return view.version(version)

        if date is None:
            entry = self._store.read(name, known)
            if entry is None:
                raise InputError(
                    f"Version {version!r} of account {name!r} is new: give its date, such as "
                    "date='2026-11-09'."
                )
            wanted = Version.from_json(entry.body["version"])
        else:
            wanted = described_version(version, date, account.renewal)

        def in_order(view: View) -> None:
            last = view.totals.version
            if last is not None and wanted.date < last.date:
                raise LedgerError(
                    f"Version {wanted.name!r} of account {name!r} is dated {wanted.date}, before "
                    f"the present version {last.name!r} of {last.date}. Dates of versions do not "
                    "go backwards: else a period's budget could be spent twice. Nothing was "
                    "declared."
                )

        body = {"version": wanted.to_json(), "facts": facts}
        entry = self._store.append("version", name, body, guard=in_order, reuse=known)
        with self._reading():
            same = entry.body["version"] == body["version"]
            if not same or (dataset is not None and entry.body["facts"] != facts):
                raise LedgerError(
                    f"Version {version!r} of account {name!r} was declared before, of "
                    f"{entry.body['version']['date']}"
                    f"{' with other public facts' if same else ''}. Give the new data a "
                    "name of its own. Nothing was declared."
                )
        return wanted

    def version(self, name: str, version: str) -> Version | None:
        """Return a version of an account's data, or None when it was not declared."""
        _, entry = self._look(name, lambda view: view.version(version))
        with self._reading():
            return None if entry is None else Version.from_json(entry.body["version"])

    def calendar(self, name: str) -> list[Elapsed]:
        """Return the periods of an account with their versions and what each cost.

        An account without a period is one, from its first version on.
        """
        account, _ = self._look(name, lambda view: None)
        totals, rows = Totals(), [list[Version]()]
        spent = [totals]
        days: list[tuple[str, str, str]] = []
        with self._reading():
            for entry in self._store.entries(name):
                before = None if totals.period is None else totals.period.number
                totals = totals.after(entry.kind, entry.body)
                now = None if totals.period is None else totals.period.number
                if now != before and before is not None:
                    rows.append([])
                    spent.append(totals)
                if now is not None and now != before:
                    assert totals.period is not None
                    calendar = totals.period.calendar
                    first, last = calendar.first_day(now), calendar.last_day(now)
                    days.append((calendar.label(now), first.isoformat(), last.isoformat()))
                if entry.kind in ("open", "version") and totals.version is not None:
                    rows[-1].append(totals.version)
                spent[-1] = totals if totals.period is None else totals.period.spent
            if account.renewal is None:
                dates = [item.date for item in rows[0]] or [""]
                days = [("all", dates[0], dates[-1])]
            return [
                Elapsed(*names, tuple(versions), cost)
                for names, versions, cost in zip(days, rows, spent, strict=True)
            ]

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
            found = self._store.read_all(lambda view: (view.first(), view.version()))
            return [Account.from_entry(*pair) for pair in sorted(found, key=lambda e: e[0].number)]

    def account(self, name: str) -> Account:
        """Return one account's terms.

        Raises:
            LedgerError: when there is none of that name.
        """
        return self._look(name, lambda view: None)[0]

    def _look(self, name: str, also: Callable[[View], Any]) -> tuple[Account, Any]:
        """Return an account's terms and what else is to be read of it, as they are at once."""
        first, declared, more = self._store.read(
            name, lambda view: (view.first(), view.version(), also(view))
        )
        if first is None:
            raise LedgerError(no_account(name, self._store.accounts()))
        with self._reading():
            return Account.from_entry(first, declared), more

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
        return left_of(*self._look(name, lambda view: view.totals))

    def book(
        self,
        name: str,
        question: str,
        key: Mapping[str, Any],
        price: Guarantee,
        *,
        event: Event | None = None,
        again: bool = False,
        version: str | None = None,
    ) -> tuple[str, Release | None]:
        """Book a debit durably, or find the kept answer to the identical question.

        ``event`` is what the answer does to privacy, more closely than its guarantee says;
        ``version`` that of the data at hand, which must be the account's present one.

        Returns:
            The debit's digest, and the kept release when there is one (then nothing is booked).

        Raises:
            BudgetError: when the price exceeds what is left.
        """
        if price.epsilon is None:
            raise InputError("A price has an epsilon and a delta; convert rho to those first.")
        identity = identity_of(key, version)

        def kept(view: View) -> Entry | None:
            return None if again else view.kept(identity)

        account, found = self._look(name, kept)

        body = debit_body(question, identity, price, event)

        def afford(view: View) -> None:
            check_affordable(account, view.totals, body, version, price)

        entry = found or self._store.append("debit", name, body, guard=afford, reuse=kept)
        if entry.kind != "release":
            return entry.digest, None
        with self._reading():
            return str(entry.body["debit"]), Release.from_json(entry.body["release"])

    def book_stream(
        self,
        name: str,
        question: str,
        key: Mapping[str, Any],
        price: Guarantee,
        event: Event,
        version: str | None = None,
    ) -> str:
        """Book the price of a stream of answers once, or find where it was booked; its digest.

        Raises:
            BudgetError: when the price exceeds what is left.
        """
        identity = canonical(key)
        body = debit_body(question, identity, price, event) | {"stream": True}

        def known(view: View) -> Entry | None:
            return view.stream(identity)

        account, entry = self._look(name, known)

        def afford(view: View) -> None:
            check_affordable(account, view.totals, body, version, price)

        entry = entry or self._store.append("debit", name, body, guard=afford, reuse=known)
        return str(entry.digest)

    def enter_step(
        self,
        name: str,
        stream: str,
        step: int,
        values: Sequence[int],
        *,
        version: str | None = None,
        day: str | None = None,
    ) -> Entry:
        """Enter a step of a stream, once: whoever comes second gets what was entered first.

        Only what is entered may be shown. ``values`` have their noise already; ``version`` is that
        of the data at hand, and ``day`` the one on which they were begun.

        Raises:
            LedgerError: when the step before it was not entered, or the data is of an earlier
                version than the present one.
        """
        account = self.account(name)

        def known(view: View) -> Entry | None:
            return view.step(stream, step)

        def in_order(view: View) -> None:
            present = view.totals.version
            if version != (None if present is None else present.name):
                raise LedgerError(not_present(replace(account, version=present), version))
            if step and view.step(stream, step - 1) is None:
                raise LedgerError(
                    f"Step {step + 1} cannot be released before step {step}. Nothing was released."
                )

        body: dict[str, Any] = {"stream": stream, "step": step, "values": list(values)}
        if version is not None:
            body["version"] = version
        return self._store.append("step", name, body, guard=in_order, reuse=known, day=day)

    def steps(self, name: str, stream: str) -> list[Entry]:
        """Return the steps of a stream that were released, in order."""

        def listed(view: View) -> list[Entry]:
            found: list[Entry] = []
            while (entry := view.step(stream, len(found))) is not None:
                found.append(entry)
            return found

        return list(self._look(name, listed)[1])

    def book_all(
        self,
        name: str,
        asked: Sequence[tuple[str, Mapping[str, Any], Plan]],
        *,
        version: str | None = None,
    ) -> tuple[str | None, list[Release | None]]:
        """Book one debit for several questions, each with its key and plan, or find their answers.

        Returns:
            The debit's digest (None when every answer was kept), and the kept releases in order.

        Raises:
            BudgetError: when the prices together exceed what is left; nothing is booked.
        """
        identities = [identity_of(key, version) for _, key, _ in asked]

        def kept(view: View) -> list[Entry | None]:
            return [view.kept(identity) for identity in identities]

        account, found = self._look(name, kept)
        rest = [item for item, entry in zip(asked, found, strict=True) if entry is None]
        debit: str | None = None
        if rest:
            price, event = composed([plan for _, _, plan in rest])
            question = "; ".join(text for text, _, _ in rest)
            body = debit_body(
                question, identity_of({"all": [key for _, key, _ in rest]}, version), price, event
            )

            def afford(view: View) -> None:
                check_affordable(account, view.totals, body, version, price)

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
        if not is_payable(account, totals, body):
            return f"The account cannot pay this: {left_of(account, totals)} is left."
        found, spent = account.allowed(totals)
        share = found.used(spent, spent.after("debit", body))
        part = "account" if totals.period is None else f"budget of {totals.period.label}"
        return f"It takes {float(share):.2%} of the {part}."

    def keep(self, name: str, debit: str, key: Mapping[str, Any], answer: Release) -> None:
        """Store an answer beside its debit, so that asking again is free.

        It belongs to the version of the data that the release names.
        """
        identity = identity_of(key, answer.version)
        body = {"debit": debit, "key": identity, "release": answer.to_json()}
        self._store.append("release", name, body, day=answer.date)

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
        return problems + self._other_steps(published)

    def _other_steps(self, published: Sequence[Release]) -> list[Problem]:
        """Return the steps of streams that read otherwise than they were shown."""
        numbers = {entry.digest: entry.number for entry in self._store.entries(kinds=("step",))}
        shown = [item for item in published if item.debit in numbers]
        if not shown:
            return []
        released = registry.find("releases", "ledger")["streams"]
        with self._reading():
            kept = {item.debit: item.to_json() for item in released(self)}
            return [
                Problem(numbers[str(item.debit)], f"has another value of {item.query} than shown")
                for item in shown
                if not _same(kept[item.debit], item)
            ]

    def __repr__(self) -> str:
        return f"<Ledger {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:left'>{html.escape(str(cell))}</td>"
                for cell in (
                    account.name,
                    account.words,
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


def _same(kept: Mapping[str, Any], shown: Release) -> bool:
    """Say whether a release reads as it was kept, by whichever version of tulle."""
    return canonical(Release.from_json(kept).to_json()) == canonical(shown.to_json())
