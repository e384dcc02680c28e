"""Running totals, released one step at a time for one price.

The price of the whole stream is booked when it is opened, before any noise is drawn. A step's noisy
value is entered in the ledger, once, and only what is entered is shown: whoever comes second, or
comes back after a crash, gets what was entered. Noise that was drawn and not entered was never
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.error_law import GaussianLaw
from tulle.core.errors import InputError
from tulle.core.events import Gaussian
from tulle.core.exact import Number, round_up, text
from tulle.core.guarantee import Guarantee, epsilon_of_rho, largest_rho
from tulle.core.public import public
from tulle.core.query import Axis, Labels
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.ledger.session import Session
from tulle.noise.charge import GaussianCharge, charge
from tulle.noise.gaussian import discrete_gaussian
from tulle.streams import factor
from tulle.streams.data import Series


@dataclass(frozen=True)
class Terms:
    """What a stream is opened with."""

    guarantee: Guarantee
    periods: int
    variance: int
    """Of the noise on the lattice, in squared steps of it."""
    rho: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "guarantee": self.guarantee.to_json(),
            "periods": self.periods,
            "variance": str(self.variance),
            "rho": text(self.rho),
            "resolution": factor.RESOLUTION,
        }


@public("Plan, pay, release")
class Stream:
    """Running totals of a :class:`tulle.Series`, with noise that hardly grows with time.

    Guarantee:
        (epsilon, delta) for all steps together, however many are released and whenever, for the
        unit of the account. Per ``participant-week`` (day, month, year: as the series has steps)
        a unit has records in one step. Per ``participant``, it is assumed that nobody has records
        in more than ``periods`` steps; the guarantee says so. What is released is C·x with
        independent discrete Gaussian noise of variance v in every entry, on a lattice that holds
        C·x exactly. A unit moves entry t by at most m(t), with the squares of all m(t) adding up to
        D² (:func:`tulle.streams.factor.squared_sensitivity`), whatever the entries before it were.
        So each entry is m(t)²/(2v)-zero-concentrated (Canonne, Kamath & Steinke 2020, theorem 4),
        and all are D²/(2v) together, also when later records depend on earlier answers
        (composition). Totals are computed from the entries alone.

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
        self, session: Session, *, epsilon: Number, delta: Number, periods: int | None = None
    ) -> None:
        """Open a stream on an account, or find the one that was opened with the same terms."""
        series = session.dataset
        if not isinstance(series, Series):
            raise InputError(f"A stream is of a Series; this account is for a {series.kind}.")
        self._session, self._series = session, series
        unit = session.unit
        if unit.period is not None and periods not in (None, 1):
            raise InputError(f"Per {unit.name} a unit has records in one step: leave periods= out.")
        if unit.period is None and periods is None:
            raise InputError(
                "Per participant, a stream needs to know in how many steps one person can have "
                "records: give periods=. Or open the account per participant and step, such as "
                "unit='participant-week'."
            )
        count = 1 if periods is None else validate.whole(at_least=1, periods=periods)
        terms = make_terms(series, unit.name, epsilon, delta, min(count, series.steps))
        question = f"running totals of {series.steps} steps"
        # With the declared facts: another calendar would put a person's week into another step.
        key = {"stream": question, "facts": dict(series.facts(unit)), **terms.to_json()}
        self.terms = terms
        self._debit = session.ledger.book_stream(
            session.name, question, key, terms.guarantee, Gaussian(terms.rho), session.version
        )

    @property
    def released(self) -> int:
        """How many steps were released."""
        return len(self._session.ledger.steps(self._session.name, self._debit))

    def deviation(self, step: int) -> float:
        """Return the standard deviation of the total at a step, counted from 1; public."""
        return factor.deviation(float(self.terms.variance), step - 1)

    def advance(self, *, source: Source | None = None) -> Release:
        """Release the next step: the total up to and with it, for each group.

        Records of the steps so far are counted as the series at hand has them; those that come
        late count in later totals.

        Raises:
            InputError: when all steps were released.
        """
        step = self.released
        series = self._series
        if step >= series.steps:
            raise InputError(f"All {series.steps} steps were released; there is no other.")
        if source is not None and not source.secure:
            raise InputError("A stream is entered in a ledger for good: it takes no test source.")
        exact = factor.encode(series.totals(), step)
        terms = self.terms
        moved = factor.squared_at(series.steps, terms.periods, series.bound, step)
        with charge(GaussianCharge(moved)):
            noise = discrete_gaussian(variance=terms.variance, size=len(exact), source=source)
        noisy = [value + int(n) for value, n in zip(exact, noise, strict=True)]
        self._session.ledger.enter_step(self._session.name, self._debit, step, noisy)
        return self.releases()[step]

    def values(self) -> npt.NDArray[np.float64]:
        """Return the totals released so far, by step and group."""
        entries = self._session.ledger.steps(self._session.name, self._debit)
        if not entries:
            return np.zeros((0, max(len(self._series.names), 1)))
        return factor.decode(np.array([entry.body["values"] for entry in entries], dtype=float))

    def releases(self) -> list[Release]:
        """Return every step released so far, as it was released."""
        entries = self._session.ledger.steps(self._session.name, self._debit)
        totals = self.values()
        return [
            self._release(step, totals[step], entry.digest, entry.time[:10])
            for step, entry in enumerate(entries)
        ]

    def report(self, path: str | Path | None = None) -> str:
        """Return a page about the steps released so far, to hand on: totals with their band."""
        from tulle.reports.report import series_report

        page = series_report(self.releases())
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _release(self, step: int, totals: Any, digest: str, day: str) -> Release:
        series, terms = self._series, self.terms
        deviation = Fraction(round_up(Fraction(self.deviation(step + 1))))
        groups = len(series.names)
        until = series.label(step)
        axes = (Axis("group", series.names),) if groups else ()
        return Release(
            value=totals if groups else float(totals[0]),
            query=f"running total up to {until}, step {step + 1} of {series.steps}",
            mechanism="square_root_factor",
            guarantee=terms.guarantee,
            error=GaussianLaw(deviation, max(groups, 1)),
            parameters={
                "step": step + 1,
                "steps": series.steps,
                "label": until,
                "bound": series.bound,
                "periods": terms.periods,
                "rho": text(terms.rho),
            },
            debit=digest,
            labels=Labels(f"How much is there up to {until}?", "total", axes),
            dataset=self._session.name,
            date=day or datetime.now(UTC).date().isoformat(),
            version=self._session.version,
        )


def make_terms(series: Series, unit: str, epsilon: Number, delta: Number, periods: int) -> Terms:
    """Return the noise that a price buys for a series; from public facts only."""
    wanted = validate.epsilon(epsilon=epsilon)
    allowed = validate.probability(delta=delta)
    squared = factor.squared_sensitivity(series.steps, periods, series.bound)
    # Rounded up: never less noise than was paid for.
    variance = -(-squared // (2 * largest_rho(wanted, allowed)))
    rho = Fraction(squared, 2 * variance)
    assumptions: tuple[str, ...] = ()
    if unit == "participant":
        assumptions = (f"nobody has records in more than {periods} of {series.steps} steps",)
    price = epsilon_of_rho(rho, allowed)
    guarantee = Guarantee.of(unit, epsilon=min(price, wanted), delta=allowed)
    return Terms(guarantee.assuming(assumptions), periods, int(variance), rho)
