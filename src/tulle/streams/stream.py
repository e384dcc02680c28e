"""Running totals, released one step at a time for one price.

Sensitivity:
    Let S be the steps in which a unit has records, at most k of them (:mod:`tulle.streams.clipping`
    has what it adds there). It moves entry t of C·x by at most bound times the sum of f(t - s) over
    the s in S up to t, call it m(t), and the squares of all m(t) add up to at most D² whichever
    steps S are (:func:`tulle.streams.factor.squared_sensitivity`). Given the entries before it,
    entry t with discrete Gaussian noise of variance v is m(t)²/(2v)-zero-concentrated (Canonne,
    Kamath & Steinke 2020, theorem 4). On every path the prices add up to at most D²/(2v), so all
    entries together cost that, also when later records, and so S itself, depend on earlier answers
    (a filter of fixed size; Whitehouse, Ramdas, Rogers & Wu 2023, theorem 1).

    S is the same whenever the data is read, though what a unit adds there may change (records come
    late): each entry sees another vector within the same bound. Under a unit with a period, S is
    given by the calendar. Under ``participant`` people count in the first k steps in which they
    have records. If nobody has records in more than k steps, or none comes or changes after its
    step was released, these are the same k steps at each release; the guarantee names this as what
    it rests on, since nobody can see it in the data at hand.

The price of the whole stream is booked when it is opened, before any noise is drawn. A step's noisy
value is entered in the ledger, once, and only what is entered is shown: whoever comes second, or
comes back after a crash, gets what was entered. Noise that was drawn and not entered was never
seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import GaussianLaw
from tulle.core.errors import InputError, forgetful
from tulle.core.events import Gaussian
from tulle.core.gaussian import largest_rho_alone
from tulle.core.guarantee import Guarantee, epsilon_of_rho, largest_rho
from tulle.core.labels import Labels
from tulle.core.period import Day
from tulle.core.public import public
from tulle.core.query import Query, vouched
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import Number, counted, rational, round_up, text, today, whole_number
from tulle.ledger.chain import Entry, canonical
from tulle.ledger.ledger import Ledger
from tulle.ledger.session import Session
from tulle.noise.additive import discrete_gaussian
from tulle.noise.charge import GaussianCharge, charge
from tulle.streams import factor
from tulle.streams.data import Series
from tulle.streams.declaration import Declaration

MECHANISM = "square_root_factor"
"""What the releases of a stream name as their mechanism."""


@dataclass(frozen=True)
class StreamTerms:
    """What a stream is opened with."""

    guarantee: Guarantee
    periods: int
    variance: int
    """Of the noise on the lattice, in squared steps of it."""
    rho: Fraction

    @property
    def event(self) -> Gaussian:
        """What all steps cost together."""
        return Gaussian.of(2 * self.variance * self.rho, Fraction(self.variance))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "guarantee": self.guarantee.to_json(),
            "periods": self.periods,
            "variance": str(self.variance),
            "rho": text(self.rho),
            "resolution": factor.RESOLUTION,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StreamTerms:
        """Read back what :meth:`to_json` wrote."""
        guarantee = Guarantee.from_json(data["guarantee"])
        periods, variance = int(data["periods"]), int(data["variance"])
        return cls(guarantee, periods, variance, rational(data["rho"]))


class Over(TypedDict, total=False):
    """What a question of a database is summed up over, as :class:`Stream` explains."""

    every: str | None
    first: Day | None
    steps: int | None
    bound: Number | None
    time: str | None


class Summed(Protocol):
    """What a stream sums up: declared in public, and totals of units cut to the bound."""

    @property
    def declaration(self) -> Declaration:
        """What is declared, and public."""

    def totals(self, until: int, periods: int) -> npt.NDArray[np.int64]:
        """Return the sum of every step before ``until`` and group. Custodian side."""


@public("Plan, pay, release")
class Stream:
    """Running totals of a :class:`tulle.Series`, or of a question in SQL over time.

    The noise hardly grows with time. Of a database, the question is a COUNT or SUM over rows of one
    person each, alone or for public groups; ``every``, ``first`` and ``steps`` are its calendar,
    and ``bound`` is the most that one person adds in one step, in all groups together. ``time``
    names the column that decides the step, where there are several (``times=`` of the database).

    Guarantee:
        (epsilon, delta) for all steps together, however many are released and whenever, for the
        unit of the account. Per ``participant-week`` (day, month, year) a unit has records in the
        steps of its period alone: in one, if steps and periods are alike. Per ``participant`` one
        person counts in ``periods`` steps; what that rests on is named in the guarantee. What is
        released is C·x with independent discrete Gaussian noise of variance v in every entry, on
        a lattice that holds C·x exactly; all entries together are D²/(2v)-zero-concentrated (the
        module's text has the argument). Totals are computed from the entries alone.

    Error:
        The standard deviation of the total at step t is known before anything is spent
        (``deviation``). It grows with the logarithm of time, where independent noise grows with
        its root.

    Example:
        >>> import tempfile, tulle
        >>> folder = tempfile.TemporaryDirectory()
        >>> trips = tulle.Series(["ann", "bob", "ann"], ["2026-01-05", "2026-01-07", "2026-01-12"],
        ...                      every="week", first="2026-01-05", steps=52, bound=1)
        >>> ledger = tulle.Ledger(folder.name + "/study.ledger")
        >>> study = ledger.open("trips", trips, unit="participant-week", epsilon=1, delta=1e-6)
        >>> stream = tulle.Stream(study, epsilon=0.5, delta=1e-7)
        >>> first = stream.advance()
        >>> first.query
        'running total up to 2026-W02, step 1 of 52'
        >>> stream.released
        1
        >>> folder.cleanup()
    """

    def __init__(
        self,
        session: Session,
        question: Query | None = None,
        *,
        epsilon: Number,
        delta: Number,
        periods: int | None = None,
        **over: Unpack[Over],
    ) -> None:
        """Open a stream on an account, or find the one that was opened with the same terms.

        Raises:
            QueryError: when the question cannot be summed up over time; nothing is spent.
            BudgetError: when the account does not hold enough; nothing is spent.
        """
        summed, terms = plan_stream(
            session.dataset,
            question,
            unit=session.unit,
            epsilon=epsilon,
            delta=delta,
            periods=periods,
            composed=session.ledger.account(session.name).filter.composes,
            **over,
        )
        self._open(session, summed, terms)

    def _open(self, session: Session, summed: Summed, terms: StreamTerms) -> None:
        renewal = session.ledger.account(session.name).renewal
        if renewal is not None and session.unit.period is not None:
            raise InputError(
                f"The budget of account {session.name!r} is for each {renewal.calendar.every}, and "
                f"its answers are about the records of one {renewal.calendar.every}. A stream is "
                "about many: open an account for it whose budget does not renew."
            )
        self._session, self._summed, self.terms = session, summed, terms
        question = named(summed.declaration)
        # With the declared facts: another calendar would put a person's week into another step.
        facts = summed.declaration.to_json()
        key = {"stream": question, "facts": facts, **terms.to_json()}
        self._debit = session.ledger.book_stream(
            session.name, question, key, terms.guarantee, terms.event, session.version
        )

    @classmethod
    def again(cls, session: Session, stream: str | int = 1) -> Stream:
        """Return a stream that was opened on an account before: by its debit, or its number from 1.

        Raises:
            InputError: when the account has none, or the data at hand is declared otherwise.
        """
        entry = find_stream(session.ledger, session.name, stream)
        kept = KeptStream.of(session.name, entry)
        summed = _summed_again(session, kept.declaration)
        if canonical(summed.declaration.to_json()) != canonical(kept.declaration.to_json()):
            raise InputError(
                f"Stream {stream} of account {session.name!r} was opened for data that was "
                "declared otherwise (owners, times, ranges, calendar or groups). It goes on with "
                "the same declaration only."
            )
        made = cls.__new__(cls)
        made._open(session, summed, kept.terms)
        return made

    def __repr__(self) -> str:
        return f"<Stream: {named(self._summed.declaration)}>"

    @property
    def debit(self) -> str:
        """The digest of the debit that paid for all steps."""
        return self._debit

    @property
    def released(self) -> int:
        """How many steps were released."""
        return len(self._session.ledger.steps(self._session.name, self._debit))

    def deviation(self, step: int) -> float:
        """Return the standard deviation of the total at a step, counted from 1; public."""
        return self._kept.deviation(step)

    @forgetful
    def advance(self, *, source: Source | None = None) -> Release:
        """Release the next step: the total up to and with it, for each group.

        Records of the steps so far are counted as the data at hand has them; those that come
        late count in later totals.

        Raises:
            InputError: when all steps were released.
            LedgerError: when the session's data is of an earlier version.
        """
        step = self.released
        declared, terms = self._summed.declaration, self.terms
        if step >= declared.steps:
            raise InputError(
                f"All {counted(declared.steps, 'step')} were released; there is no other."
            )
        if source is not None and not type(source).secure:
            raise InputError("A stream is entered in a ledger for good: it takes no test source.")
        day = today()
        with np.errstate(all="ignore"):
            exact = factor.encode(self._summed.totals(step + 1, terms.periods), step)
        moved = factor.squared_at(declared.steps, terms.periods, declared.bound, step)
        noise = self._noise(len(exact), moved, source)
        noisy = [value + int(n) for value, n in zip(exact, noise, strict=True)]
        session = self._session
        session.ledger.enter_step(
            session.name, self._debit, step, noisy, version=session.version, day=day
        )
        return self.releases()[step]

    def _noise(self, size: int, moved: int, source: Source | None) -> Any:
        """Return the noise of one step; a unit moves its entries by the root of ``moved``."""
        with charge(GaussianCharge(moved)):
            return discrete_gaussian(variance=self.terms.variance, size=size, source=source)

    @property
    def _kept(self) -> KeptStream:
        return KeptStream(self._session.name, self._debit, self._summed.declaration, self.terms)

    def values(self) -> npt.NDArray[np.float64]:
        """Return the totals released so far, by step and group."""
        return self._kept.values(self._session.ledger)

    def releases(self) -> list[Release]:
        """Return every step released so far, as it was released."""
        return self._kept.releases(self._session.ledger)

    def report(self, path: str | Path | None = None) -> str:
        """Return a page about the steps released so far, to hand on: totals with their band."""
        from tulle.reports.report import series_report

        page = series_report(self.releases())
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


@dataclass(frozen=True)
class KeptStream:
    """A stream as a ledger keeps it: what was declared, paid for and released. No data is needed.

    Example:
        >>> import tempfile, tulle
        >>> folder = tempfile.TemporaryDirectory()
        >>> trips = tulle.Series(["ann"], ["2026-01-05"], every="week", first="2026-01-05",
        ...                      steps=4, bound=1)
        >>> ledger = tulle.Ledger(folder.name + "/study.ledger")
        >>> study = ledger.open("trips", trips, unit="participant-week", epsilon=1, delta=1e-6)
        >>> _ = tulle.Stream(study, epsilon=0.5, delta=1e-7).advance()
        >>> [(kept.title, len(kept.releases(ledger))) for kept in kept_streams(ledger, "trips")]
        [('running totals of 4 steps', 1)]
        >>> folder.cleanup()
    """

    account: str
    debit: str
    declaration: Declaration
    terms: StreamTerms

    @classmethod
    def of(cls, account: str, entry: Entry) -> KeptStream:
        """Read the debit of a stream."""
        key = json.loads(entry.body["key"])
        declared = Declaration.from_json(key["facts"])
        return cls(account, entry.digest, declared, StreamTerms.from_json(key))

    @property
    def title(self) -> str:
        """What is summed up, and in how many steps."""
        return named(self.declaration)

    def deviation(self, step: int) -> float:
        """Return the standard deviation of the total at a step, counted from 1; public."""
        scale = float(self.declaration.scale)
        return factor.deviation(float(self.terms.variance), step - 1) * scale

    def values(self, ledger: Ledger) -> npt.NDArray[np.float64]:
        """Return the totals released so far, by step and group."""
        return self._totals(ledger.steps(self.account, self.debit))

    def _totals(self, entries: Sequence[Entry]) -> npt.NDArray[np.float64]:
        if not entries:
            return np.zeros((0, self.declaration.size))
        found = factor.decode(np.array([entry.body["values"] for entry in entries], dtype=float))
        return found * float(self.declaration.scale)

    def releases(self, ledger: Ledger) -> list[Release]:
        """Return every step released so far, as it was released."""
        # Read once: another process may enter a step at any moment.
        entries = ledger.steps(self.account, self.debit)
        return [
            self._release(step, totals, entry)
            for step, (totals, entry) in enumerate(zip(self._totals(entries), entries, strict=True))
        ]

    def _release(self, step: int, totals: Any, entry: Entry) -> Release:
        declared, terms = self.declaration, self.terms
        deviation = Fraction(round_up(Fraction(factor.deviation(float(terms.variance), step))))
        until = declared.label(step)
        asked = f" of {declared.line}" if declared.line else ""
        words = f"{declared.line}, up to {until}" if asked else f"How much is there up to {until}?"
        return Release(
            value=totals if declared.axes else float(totals[0]),
            query=f"running total{asked} up to {until}, step {step + 1} of {declared.steps}",
            mechanism=MECHANISM,
            guarantee=terms.guarantee,
            error=GaussianLaw(deviation, declared.size, declared.scale),
            parameters={
                "step": step + 1,
                "steps": declared.steps,
                "label": until,
                "bound": float(declared.bound * declared.scale) if asked else declared.bound,
                "periods": terms.periods,
                "rho": text(terms.rho),
            },
            debit=entry.digest,
            labels=Labels(words, "total", declared.axes),
            dataset=self.account,
            date=entry.time[:10] or today(),
            version=entry.body.get("version"),
        )


def kept_streams(ledger: Ledger, account: str) -> list[KeptStream]:
    """Return the streams of an account, in the order in which they were opened."""
    return [KeptStream.of(account, e) for e in ledger.debits(account) if "stream" in e.body]


@registry.register("releases", "ledger", "streams")
def stream_releases(ledger: Ledger) -> list[Release]:
    """Return every step of every stream in a ledger, as it was released."""
    return [
        release
        for account in ledger.accounts()
        for kept in kept_streams(ledger, account.name)
        for release in kept.releases(ledger)
    ]


def find_stream(ledger: Ledger, account: str, stream: str | int) -> Entry:
    """Return the debit of a stream, by the beginning of its digest or its number from 1.

    Raises:
        InputError: when the account has no such stream.
    """
    known = [entry for entry in ledger.debits(account) if "stream" in entry.body]
    number = stream if type(stream) is int else whole_number(str(stream))
    if number is None:
        name = str(stream)
        found = [entry for entry in known if len(name) >= 8 and entry.digest.startswith(name)]
    else:
        found = known[number - 1 : number] if number >= 1 else []
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"{n}: {e.body['question']}" for n, e in enumerate(known, start=1))
    raise InputError(
        f"Account {account!r} has no stream {stream}. Streams: {listed or 'none was opened'}."
    )


def named(declared: Declaration) -> str:
    """Return what a debit is called that pays for a stream."""
    steps = f"running totals of {counted(declared.steps, 'step')}"
    return f"{steps}: {declared.line}" if declared.line else steps


def plan_stream(
    dataset: Dataset,
    question: Query | None = None,
    *,
    unit: str | Unit,
    epsilon: Number,
    delta: Number,
    periods: int | None = None,
    composed: bool = True,
    **over: Unpack[Over],
) -> tuple[Summed, StreamTerms]:
    """Return what a stream would sum up, and its price and noise; nothing is spent.

    ``composed`` says that an account adds the price up by divergences. By itself it buys more.

    Raises:
        QueryError: when the question cannot be summed up over time.
    """
    known = dataset.check_unit(unit)
    summed = _summed(dataset.under(known), question, over)
    count = _periods(known, summed.declaration, periods)
    return summed, make_terms(summed.declaration, known.name, epsilon, delta, count, composed)


def _summed(data: Dataset, question: Query | None, over: Over) -> Summed:
    """Return what is summed up: the series at hand, or a question of the database."""
    unknown = sorted({*over} - {*Over.__annotations__})
    if unknown:
        raise InputError(
            f"A stream has no {', '.join(unknown)}; it has {', '.join(Over.__annotations__)}."
        )
    if isinstance(data, Series):
        given = {**over, "question": question}
        said = [name for name, value in given.items() if value is not None]
        if said:
            raise InputError(
                f"A Series says itself what is summed up: leave out {', '.join(said)}."
            )
        return data
    if data.kind != "database":
        raise InputError(f"A stream is of a Series or a Database, not of a {data.kind}.")
    every, first = over.get("every"), over.get("first")
    steps, bound = over.get("steps"), over.get("bound")
    if question is None or every is None or first is None or steps is None or bound is None:
        raise InputError(
            "A stream of a database needs a question, every=, first=, steps= and bound=, such as "
            "Stream(study, tulle.sql('SELECT COUNT(*) FROM trips'), every='week', "
            "first='2026-01-05', steps=52, bound=1, ...)."
        )
    from tulle.sql.data import Database
    from tulle.streams.question import Asked

    assert isinstance(data, Database)
    return Asked.of(
        data, question, every=every, first=first, steps=steps, bound=bound, time=over.get("time")
    )


def _summed_again(session: Session, declared: Declaration) -> Summed:
    data = session.dataset
    if isinstance(data, Series) and declared.asked is None:
        return data
    if declared.asked is None or data.kind != "database":
        raise InputError(f"That stream is not one of a {data.kind}.")
    from tulle.sql.data import Database
    from tulle.streams.question import Asked

    assert isinstance(data, Database)
    return Asked.again(data, declared)


def _periods(unit: Unit, declared: Declaration, periods: int | None) -> int:
    """Return in how many steps one unit can have records."""
    if unit.period is not None:
        if periods is not None:
            raise InputError(
                f"Per {unit.name} the calendar says in how many steps a unit has records: leave "
                "periods= out."
            )
        return min(declared.calendar.touched(unit.period), declared.steps)
    if periods is None:
        raise InputError(
            "Per participant, a stream needs to know in how many steps one person can have "
            "records: give periods=. Or open the account per participant and step, such as "
            "unit='participant-week'."
        )
    return min(validate.whole(at_least=1, periods=periods), declared.steps)


def make_terms(
    declared: Declaration,
    unit: str,
    epsilon: Number,
    delta: Number,
    periods: int,
    composed: bool = True,
) -> StreamTerms:
    """Return the noise that a price buys for a stream; from public facts only."""
    wanted = validate.epsilon(epsilon=epsilon)
    allowed = validate.delta(above_zero=True, delta=delta)
    squared = factor.squared_sensitivity(declared.steps, periods, declared.bound)
    # Rounded up: never less noise than was paid for.
    most = largest_rho(wanted, allowed)
    if not composed:
        most = largest_rho_alone(wanted, allowed, Fraction(squared))
    variance = -(-squared // (2 * most))
    rho = Fraction(squared, 2 * variance)
    assumptions = vouched((declared.asked or {}).get("functions", ()))
    if unit == "participant" and periods < declared.steps:
        assumptions += (
            f"nobody has records in more than {periods} of {counted(declared.steps, 'step')}, or "
            "none comes or changes after its step was released (people count in their first "
            f"{counted(periods, 'step')})",
        )
    # Rounding the variance up leaves the price of rho at or below what is wanted; by itself the
    # noise was fitted to what is wanted.
    price = min(epsilon_of_rho(rho, allowed), wanted)
    guarantee = Guarantee.of(unit, epsilon=price, delta=allowed)
    return StreamTerms(guarantee.assuming(assumptions), periods, int(variance), rho)
