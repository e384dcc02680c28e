"""An account opened with its data: plan, pay, draw, keep."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.errors import (
    InputError,
    InterruptedAnswer,
    TulleError,
    UnkeptAnswerWarning,
    raise_alone,
)
from tulle.core.guarantee import Guarantee, epsilon_of_rho
from tulle.core.plan import Plan
from tulle.core.public import public
from tulle.core.query import Composite, Expression, Query, parse
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import Number, today
from tulle.ledger.answer import check_stand_in, draw, kind_of_source, plan_for

if TYPE_CHECKING:
    from tulle.core.period import Day
    from tulle.ledger.account import Account, Budget
    from tulle.ledger.ledger import Ledger


NOMINAL = Fraction(1, 10**6)
"""The delta at which Gaussian noise of a batch states its own guarantee; accounts book its rho."""


@public("Plan, pay, release")
class Session:
    """One account of a ledger, opened with its data: ask here."""

    def __init__(self, ledger: Ledger, account: Account, dataset: Dataset) -> None:
        self._ledger = ledger
        self._account = account
        # Of a budget that renews, with a unit of a period: the present period's records alone.
        self._dataset = account.divided(dataset)

    @property
    def name(self) -> str:
        """The account's name."""
        return self._account.name

    @property
    def ledger(self) -> Ledger:
        """The ledger that holds the account."""
        return self._ledger

    @property
    def dataset(self) -> Dataset:
        """The sealed data, as it is protected under the account's unit."""
        return self._dataset

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._account.unit

    @property
    def version(self) -> str | None:
        """The version of the data at hand; None where none was declared."""
        return None if self._account.version is None else self._account.version.name

    @property
    def remaining(self) -> Budget:
        """What is left: a number (epsilon, rounded down) with exact ``epsilon`` and ``delta``."""
        return self._ledger.remaining(self.name)

    def plan(
        self,
        query: Query,
        *,
        epsilon: Number,
        delta: Number = 0.0,
        mechanism: str | None = None,
        like: Dataset | None = None,
        people: Any = None,
        rows_per_person: Any = None,
        values: Any = None,
        **options: Any,
    ) -> Plan:
        """Show which mechanisms could answer, their price and predicted error; spends nothing.

        ``like``, and ``people``, ``rows_per_person`` and ``values``, say what errors are predicted
        on, as in :func:`tulle.plan`.
        """
        plan = self._plan(
            query,
            epsilon=epsilon,
            delta=delta,
            mechanism=mechanism,
            like=like,
            options=options,
            assumed={"people": people, "rows_per_person": rows_per_person, "values": values},
        )
        return replace(plan, account=self._ledger.price_words(self.name, plan))

    def _plan(self, query: Query, *, like: Dataset | None = None, **asked: Any) -> Plan:
        check_stand_in(self._dataset, query, like)
        composed = self._account.filter.composes
        return plan_for(self._dataset, query, unit=self.unit, like=like, **asked, composed=composed)

    def ask(
        self,
        query: Query,
        *,
        epsilon: Number,
        delta: Number = 0.0,
        mechanism: str | None = None,
        like: Dataset | None = None,
        again: bool = False,
        source: Source | None = None,
        version: str | None = None,
        **options: Any,
    ) -> Release:
        """Answer a question and book it.

        The price is on disk before the first random bit is drawn. The identical question gets
        the stored answer at no cost; ``again=True`` pays for a fresh one. Answers belong to a
        version of the data: ``version`` names an earlier one, of which kept answers are given.

        Raises:
            BudgetError: when the account does not hold enough; nothing is spent.
            LedgerError: when the ledger cannot be used; nothing is spent.

            InterruptedAnswer: a KeyboardInterrupt after the price was booked; it says so.

        Warns:
            UnkeptAnswerWarning: when the answer was paid for but could not be stored.
        """
        plan = self._plan(
            query, epsilon=epsilon, delta=delta, mechanism=mechanism, like=like, options=options
        )
        key = {**plan.canonical(), "source": kind_of_source(source)}
        debit: str | None = None
        asked = self.version if version is None else version
        if asked != self.version and again:
            raise InputError(
                f"Version {asked!r} is not the data at hand: it cannot be asked again."
            )
        try:
            debit, stored = self._ledger.book(
                self.name,
                str(query),
                key,
                plan.guarantee,
                event=plan.event,
                again=again,
                version=asked,
            )
            if stored is not None:
                return replace(stored, kept=True)
            answer = self._signed(draw(plan, self._dataset, source, debit=debit))
            try:
                self._ledger.keep(self.name, debit, key, answer)
            except TulleError as error:
                # The price is paid and the answer drawn: losing it as well would help nobody.
                warnings.warn(UnkeptAnswerWarning(self.name, error), stacklevel=2)
        except KeyboardInterrupt:
            raise_alone(self._interrupted([plan], booked=debit is not None))
        return answer

    def ask_all(
        self,
        questions: Sequence[Query],
        *,
        share: Number,
        delta: Number = 0.0,
        like: Dataset | None = None,
    ) -> list[Release]:
        """Answer many questions at once for a share of the account, booked as one debit.

        ``share`` is the part of the account's whole budget to spend, such as 1/52 for one week of
        a year. It is divided for the least sum of the errors that are predicted; where those are
        not known, evenly. In an account that adds up tightly (opened with a delta, or with rho)
        a hundred questions have a tenth of the budget each, not a hundredth. Questions that were
        answered at the same price before cost nothing; the others are paid for together or not at
        all. ``delta`` is what each question may use by itself.

        Raises:
            BudgetError: when the account does not hold the share; nothing is spent.

        Example:
            >>> import tempfile, tulle
            >>> folder = tempfile.TemporaryDirectory()
            >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
            >>> ledger = tulle.Ledger(folder.name + "/study.ledger")
            >>> study = ledger.open("square", square, unit="edge", epsilon=4, delta=1e-6)
            >>> week = study.ask_all([tulle.edges(), tulle.triangles()], share=0.5)
            >>> [release.query for release in week], len(ledger.debits("square"))
            (['edges()', 'triangles()'], 1)
            >>> folder.cleanup()
        """
        from tulle.ledger.batch import divide, order

        listed = list(questions)
        if not listed:
            raise InputError("There is nothing to ask: give at least one question.")
        wanted = validate.positive(share=share)
        if wanted > 1:
            raise InputError(f"share must be at most 1, the whole account; got {share}.")

        account = self._account

        def plan(query: Query, epsilon: Fraction) -> Plan:
            found = [self._plan(query, epsilon=epsilon, delta=delta, like=like)]
            rho = account.filter.concentration(epsilon)
            if rho is None:
                return found[0]
            # Gaussian noise at the same price to this account.
            for name in self._concentrated(query):
                terms = {"epsilon": epsilon_of_rho(rho, NOMINAL), "delta": NOMINAL}
                with suppress(TulleError):
                    found.append(self._plan(query, **terms, mechanism=name, like=like))
            return min(found, key=order)

        return self._pay_and_draw(divide(listed, plan, account.filter, account.empty, wanted))

    def _signed(self, answer: Release) -> Release:
        """Return an answer with what it is about: the account and the version of its data."""
        return replace(answer, dataset=self.name, version=self.version)

    def _pay_and_draw(self, plans: Sequence[Plan]) -> list[Release]:
        """Book one debit for all plans whose answers are not kept, then draw those."""
        keys = [{**item.canonical(), "source": kind_of_source(None)} for item in plans]
        debit: str | None = None
        answers: list[Release] = []
        day = today()
        try:
            debit, stored = self._ledger.book_all(
                self.name,
                [(str(p.query), k, p) for p, k in zip(plans, keys, strict=True)],
                version=self.version,
            )
            for item, key, kept in zip(plans, keys, stored, strict=True):
                if kept is not None:
                    answers.append(replace(kept, kept=True))
                    continue
                assert debit is not None
                drawn = draw(item, self._dataset, None, debit=debit, day=day)
                answers.append(self._signed(drawn))
                try:
                    self._ledger.keep(self.name, debit, key, answers[-1])
                except TulleError as error:
                    warnings.warn(UnkeptAnswerWarning(self.name, error), stacklevel=2)
        except KeyboardInterrupt:
            raise_alone(self._interrupted(plans, booked=debit is not None))
        return answers

    def next_version(self, version: str, dataset: Dataset, *, date: Day) -> Session:
        """Declare that the data is new, and go on with it: the same questions, a new week.

        Returns a session on the new data; this one has the old data and refuses to go on.
        :meth:`repeat` asks of the new data what was asked of the old.

        Raises:
            LedgerError: when the date is before that of the present version; nothing is declared.
        """
        self._ledger.declare(self.name, version, date=date, dataset=dataset)
        return self._ledger.open(self.name, dataset, unit=self.unit, version=version)

    def repeat(
        self, version: str | None = None, *, questions: Iterable[Query] = ()
    ) -> list[Release]:
        """Ask every question that was answered for an earlier version, at the same price.

        ``version`` is by default the last one before the present that has answers. All are booked
        as one debit, or none. What is already answered for the present version is free. Questions
        that text cannot ask again must be among ``questions``.

        Raises:
            BudgetError: when the account cannot pay for all of them; nothing is spent.
            InputError: when nothing was answered, or a question cannot be made again.
        """
        kept = self._ledger.releases(self.name)
        if version is None:
            others = [item.version for item in kept if item.version != self.version]
            version = others[-1] if others else None
        if version == self.version:
            raise InputError(f"Version {version!r} is the data at hand; name an earlier one.")
        given, plans = list(questions), dict[str, Plan]()
        for item in kept:
            if item.version != version or not item.guarantee.holds:
                continue
            asked = self._asked_again(item, given)
            plan = self._replanned(asked, item)
            if plan is None:
                raise InputError(
                    f"{item.query} cannot be made again from the ledger: give it with questions=. "
                    "Nothing was spent."
                )
            plans[f"{plan.canonical()}"] = plan
        if not plans:
            raise InputError(
                f"Nothing was answered for version {version!r}; there is no repeating."
            )
        return self._pay_and_draw(list(plans.values()))

    def _concentrated(self, query: Query) -> list[str]:
        """Return the mechanisms for a question whose noise is Gaussian."""
        asked = query.asked_of(self._dataset.kind)
        bound = asked.single() if isinstance(asked, Composite) else asked
        if bound is None or isinstance(bound, Expression):
            return []
        known = registry.mechanisms(self._dataset.kind, bound)
        named = (name for name, item in known.items() if item.supports(bound, self.unit))
        return [name for name in named if known[name].concentrated]

    def _interrupted(self, plans: Sequence[Plan], *, booked: bool) -> InterruptedAnswer:
        """Say what interrupted answers leave behind in the ledger: one debit paid for all."""
        try:
            left = f" {self.remaining} is left."
        except TulleError:
            left = ""
        asked = "; ".join(str(plan.query) for plan in plans)
        price = Guarantee.compose(plan.guarantee for plan in plans)
        return InterruptedAnswer(self.name, asked, str(price), left, booked=booked)

    def report(self, path: str | Path | None = None, *, questions: Iterable[Query] = ()) -> str:
        """Return the custodian's own page: each kept answer beside its truth. Not private.

        The error that was predicted stands beside the one that came about. The ledger keeps
        questions as text. One that text cannot ask again (groups of a database, bounds for every
        cell of a matrix) is shown with its truth if it is among ``questions``. For people
        outside, use ``release.report()`` or ``tulle report``. With ``path`` the page is written
        there, and only you may read the file.
        """
        from tulle.core.custody import custodian_file
        from tulle.reports.custodian import custodian_report, custodian_row

        given, rows = list(questions), []
        for release in self._ledger.releases(self.name):
            asked = self._asked_again(release, given)
            truth = None if asked is None else asked.truth(self._dataset)
            rows.append(custodian_row(release, truth, self._replanned(asked, release)))
        page = custodian_report(self.name, rows, self._account.terms, str(self.remaining))
        if path is not None:
            custodian_file(path).write_text(page, encoding="utf-8")
        return page

    def _asked_again(self, release: Release, given: Iterable[Query]) -> Query | None:
        """Return the very question that the ledger booked: one of those given, or asked again.

        It is made again from its text, or from its description in the ledger. Either may leave
        something out and then asks for another truth: the question is taken only when its whole
        description is the one that was booked.
        """
        from tulle.ledger.chain import canonical

        booked = self._ledger.description(release)
        public, facts = self._dataset.public_side(self.unit), self._dataset.facts(self.unit)
        for query in self._candidates(release, booked, given):
            with suppress(TulleError):
                bound = query.bind(public, facts)
                if canonical(bound.canonical()) == canonical(booked):
                    return bound
        return None

    def _candidates(
        self, release: Release, booked: Mapping[str, Any], given: Iterable[Query]
    ) -> Iterator[Query]:
        yield from given
        known = registry.find("query", self._dataset.kind)
        with suppress(TulleError, TypeError):
            yield parse(release.query, known)
        with suppress(TulleError, TypeError, LookupError):
            rest = {name: value for name, value in booked.items() if name != "query"}
            yield known[booked["query"]](**rest)

    def _replanned(self, query: Query | None, release: Release) -> Plan | None:
        terms = release.guarantee
        if query is None or terms.epsilon is None:
            return None
        try:
            return self._plan(
                query,
                epsilon=terms.epsilon,
                delta=terms.delta,
                mechanism=None if release.parts else release.mechanism,
            )
        except TulleError:
            return None

    def __repr__(self) -> str:
        return f"<Session {self.name!r}: {self._account.terms}; {self.remaining} left>"
