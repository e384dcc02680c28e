"""Asking: plan, pay, draw, release. The one way from data to answer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from math import isinf
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
from tulle.core.exact import Number
from tulle.core.guarantee import Guarantee, epsilon_of_rho
from tulle.core.mechanism import Outcome
from tulle.core.public import public
from tulle.core.query import Composite, Expression, Query, parse
from tulle.core.release import Release, noisy_values
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.planning.planner import Plan, make_plan

if TYPE_CHECKING:
    from tulle.core.period import Day
    from tulle.ledger.ledger import Account, Budget, Ledger


NOMINAL = Fraction(1, 10**6)
"""The delta at which Gaussian noise of a batch states its own guarantee; accounts book its rho."""


@public("Plan, pay, release")
def release(
    dataset: Dataset,
    query: Query,
    *,
    unit: str | Unit,
    epsilon: Number,
    delta: Number = 0.0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    source: Source | None = None,
    **options: Any,
) -> Release:
    """Answer one question about a dataset, without a ledger.

    Nobody adds up what was spent this way; use :class:`tulle.Ledger` when more than one answer
    about the same data will be published.

    Guarantee:
        (epsilon, delta) for the unit named, as written in ``release.guarantee``.

    Raises:
        InputError: for arguments out of range; its subclasses say what is allowed.

    Example:
        >>> import tulle
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> r = tulle.release(square, tulle.edges(), unit="edge", epsilon=1.0)
        >>> print(r.guarantee)
        epsilon = 1, pure, per edge (add-remove)
    """
    plan = plan_for(
        dataset,
        query,
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        like=like,
        options=options,
    )
    return _draw(plan, dataset, source, debit=None)


@public("Plan, pay, release")
def plan(
    dataset: Dataset,
    query: Query,
    *,
    unit: str | Unit,
    epsilon: Number,
    delta: Number = 0.0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    people: Any = None,
    rows_per_person: Any = None,
    values: Any = None,
    **options: Any,
) -> Plan:
    """Show which mechanisms could answer a question, their price and predicted error.

    Nothing is spent, and nothing private is looked at: a plan is the same on all data with the same
    public facts.

    ``like`` is a dataset that you declare public, similar to the one at hand: errors that depend on
    the data are predicted on it, and the way to answer is chosen by it; give it to ``release`` too.

    Without it, errors of a question in SQL are predicted on a database that is made up of the
    schema, the declared ranges, the public groups, and the constants of the statement. What else it
    rests on is an assumption, which the plan states: ``people`` is how many there are, by kind if
    there are several (``{"customer": 5000, "shop": 40}``); ``rows_per_person`` in how many rows of
    a table each of them is on average, by table if they differ (``{"orders": 10}``), and the most
    of anybody if few have far more (``{"orders": (10, 400)}``); ``values`` what columns hold: a
    number of different values, a list, a pair of ends (``{"orders.day": ("2024-01-01",
    "2024-12-31")}``), or a formula of other columns (``{"line.cost": "= pieces * price"}``). An
    assumption changes what is predicted, and never what is done.

    Raises:
        InputError: for arguments out of range; its subclasses say what is allowed.

    Example:
        >>> import tulle
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> tulle.plan(square, tulle.edges(), unit="edge", epsilon=1.0).mechanism
        'laplace'
    """
    return plan_for(
        dataset,
        query,
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        like=like,
        options=options,
        assumed={"people": people, "rows_per_person": rows_per_person, "values": values},
    )


def plan_for(
    dataset: Dataset,
    query: Query,
    *,
    unit: str | Unit,
    epsilon: Number,
    delta: Number = 0.0,
    mechanism: str | None = None,
    like: Dataset | None = None,
    options: Mapping[str, Any] | None = None,
    composed: bool = False,
    assumed: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan a question about a dataset from its public facts; nothing is spent.

    ``composed`` says that an account adds the price up by divergences. With ``assumed``, which may
    be empty, errors are predicted also where no ``like`` is given.
    """
    if not isinstance(dataset, Dataset):
        raise InputError(
            f"A sealed dataset is needed, such as tulle.Graph.read(...); got "
            f"{type(dataset).__name__}."
        )
    known = dataset.check_unit(unit)
    dataset = dataset.under(known)
    like = like.under(known) if isinstance(like, Dataset) else like
    facts, side = dataset.facts(known), dataset.public_side(known)
    made = make_plan(
        query,
        kind=dataset.kind,
        facts=facts,
        public=side,
        assumptions=dataset.assumptions(known),
        unit=known,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        like=like,
        options=options,
        composed=composed,
    )
    if assumed is None:
        return made
    if like is not None:
        said = [f"{name}=" for name, value in assumed.items() if value is not None]
        if said:
            raise InputError(
                f"{', '.join(said)} and like= exclude each other: errors are predicted either on "
                "what is assumed or on a dataset that is given."
            )
        return made
    from tulle.planning.preview import preview

    return preview(made, facts=facts, public=side, unit=known, assumed=assumed)


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

    def _plan(self, query: Query, **asked: Any) -> Plan:
        composed = self._account.filter.composes
        return plan_for(self._dataset, query, unit=self.unit, **asked, composed=composed)

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
        key = {**plan.canonical(), "source": _kind_of_source(source)}
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
            answer = self._signed(_draw(plan, self._dataset, source, debit=debit))
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
        keys = [{**item.canonical(), "source": _kind_of_source(None)} for item in plans]
        debit: str | None = None
        answers: list[Release] = []
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
                drawn = _draw(item, self._dataset, None, debit=debit)
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
        bound = query.asked_of(self._dataset.kind)
        if isinstance(bound, Expression | Composite):
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
        there.
        """
        from tulle.reports.report import inside_report, inside_row

        given, rows = list(questions), []
        for release in self._ledger.releases(self.name):
            asked = self._asked_again(release, given)
            truth = None if asked is None else asked.truth(self._dataset)
            rows.append(inside_row(release, truth, self._replanned(asked, release)))
        page = inside_report(self.name, rows, self._account.terms, str(self.remaining))
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
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


def _kind_of_source(source: Source | None) -> str:
    return "secure" if source is None or source.secure else "replayable"


def _draw(plan: Plan, dataset: Dataset, source: Source | None, *, debit: str | None) -> Release:
    guarantee = plan.guarantee
    if _kind_of_source(source) != "secure":
        guarantee = guarantee.void()
    dataset = dataset.under(plan.unit)
    public = dataset.public_side(plan.unit)
    expression = plan.expression
    if expression is not None:
        from tulle.core.expression_error import estimate

        parts = {str(part.query): _draw(part, dataset, source, debit=debit) for part in plan.parts}
        tree = expression.tree()
        low, high = plan.query.limits()
        value = estimate(tree, *noisy_values(parts))
        return Release(
            value=min(max(value, low), high),
            query=str(plan.query),
            mechanism=plan.mechanism,
            guarantee=guarantee,
            error=None,
            parameters={"expression": tree} | ({} if isinf(low) else {"range": [low, high]}),
            debit=debit,
            versions=_versions(),
            parts=parts,
            labels=plan.query.labelled(public, {}),
            date=_today(),
        )
    if isinstance(plan.query, Composite):
        parts = {str(part.query): _draw(part, dataset, source, debit=debit) for part in plan.parts}
        table, parameters = plan.query.assemble(parts)
        return Release(
            value=table,
            query=str(plan.query),
            mechanism=plan.mechanism,
            guarantee=guarantee,
            error=None,
            parameters=parameters,
            debit=debit,
            versions=_versions(),
            parts=parts,
            labels=plan.query.labelled(public, parameters),
            date=_today(),
        )
    offer = plan.chosen
    mechanism = registry.make_mechanism(plan.query.kind, offer.mechanism)
    import numpy as np

    # Whether a number overflows on the way may depend on records; nobody outside is told.
    with np.errstate(all="ignore"):
        outcome: Outcome = mechanism.run(offer.terms, offer.settings, dataset, source)
    parameters = {**offer.settings, **outcome.details}
    return Release(
        value=outcome.value,
        query=str(plan.query),
        mechanism=offer.mechanism,
        guarantee=guarantee,
        error=outcome.error,
        parameters=parameters,
        debit=debit,
        versions=_versions(),
        labels=plan.query.labelled(public, parameters),
        date=_today(),
    )


def _today() -> str:
    """Return the day in UTC; a finer time would tell how long the answer took."""
    return datetime.now(UTC).date().isoformat()


def _versions() -> dict[str, str]:
    import platform

    import numpy

    import tulle

    return {
        "tulle": tulle.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }
