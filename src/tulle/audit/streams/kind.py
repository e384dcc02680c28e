"""The audit of streams: every small history of a unit, the noise as it is entered, and restarts.

A stream is no mechanism that answers one question: it is paid for once and goes on for a year. It
is examined all the same, as it is used: the clipping, the price and the noise of the real thing, in
a real ledger, with a new object for every step, as after a restart. The same checks must reject
broken streams.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle import streams
from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import classes_without
from tulle.core.labels import Axis
from tulle.core.period import Calendar
from tulle.core.source import Source
from tulle.ledger.ledger import Ledger
from tulle.ledger.session import Session
from tulle.noise.source import SeededSource
from tulle.streams import factor
from tulle.streams.clipping import clipped_totals
from tulle.streams.data import Series
from tulle.streams.declaration import Declaration
from tulle.streams.stream import MECHANISM, Stream, StreamTerms, make_terms

BUDGETS = ((Fraction(1, 2), Fraction(1, 10**6)), (Fraction(3), Fraction(1, 20)))
BOUND = 2
SHAPE = (3, 2)
"""Steps and groups of the histories that are all examined."""
AMOUNTS = (-3, 0, 2)
"""What a unit may have in each of them, within the bound and beyond."""

DRAWN_STEPS, DRAWN_GROUPS = 16, 64
TOLERANCE = 0.25
"""How far the variance of that many draws may be from its own: more than five deviations."""

FIRST = date(2026, 1, 5)

Clip = Callable[..., npt.NDArray[np.int64]]
Price = Callable[[Declaration, str, Fraction, Fraction, int], StreamTerms]
Noise = Callable[[StreamTerms, int, int], Any]


@dataclass(frozen=True)
class Subject:
    """A stream that is examined: the real one, or one with a part replaced."""

    fault: str = ""
    caught_by: tuple[str, ...] = ()
    clip: Clip = clipped_totals
    price: Price = make_terms
    noise: Noise | None = None
    """From terms, number of entries and number of the step; None where the real noise is drawn."""


# --- the price -------------------------------------------------------------------------------


def check_price(subject: Subject) -> Finding:
    """Compare what every small history of a unit costs with what was booked, in fractions."""
    steps, size = SHAPE
    axes = (Axis("group", tuple("ab"[:size])),)
    declared = Declaration(Calendar("week"), 0, steps, BOUND, axes=axes)
    place = np.arange(steps * size)
    cases, worst, where = 0, Fraction(0), ""
    for epsilon, delta in BUDGETS:
        for unit, periods in (("participant-week", 1), ("participant", 2)):
            terms = subject.price(declared, unit, epsilon, delta, periods)
            for amounts in _histories(unit, steps, size):
                values = np.array(amounts)
                there = values != 0
                rows = (place * 0, place // size, place % size, values)
                moved = subject.clip(
                    *(part[there] for part in rows), shape=SHAPE, bound=BOUND, periods=periods
                )
                squared = sum(
                    entry**2 for step in range(steps) for entry in factor.encode(moved, step)
                )
                ratio = Fraction(squared, 2 * terms.variance) / terms.rho
                cases += 1
                if ratio > worst:
                    worst, where = ratio, f"per {unit}, amounts {amounts}"
    figure = f"rho {float(worst):.6g} of what was booked"
    return Finding(MECHANISM, _ASKED, "exact", cases, float(worst), worst <= 1, figure, where)


def _histories(unit: str, steps: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yield all amounts of one unit; of a unit with a period, in one step."""
    if unit == "participant":
        yield from product(AMOUNTS, repeat=steps * size)
        return
    for step, own in product(range(steps), product(AMOUNTS, repeat=size)):
        yield (0,) * (step * size) + own + (0,) * ((steps - step - 1) * size)


# --- the noise, in a ledger -------------------------------------------------------------------


def check_drawn(subject: Subject) -> list[Finding]:
    """Run a stream in a ledger, each step by a new object, and look at the noise it entered."""
    with tempfile.TemporaryDirectory() as folder:
        noise, variance, again = _entered(subject, Path(folder) / "audit.ledger")
    ratio = float(np.mean(noise.astype(float) ** 2)) / variance
    law = Finding(
        MECHANISM,
        _ASKED,
        "drawn",
        noise.size,
        max(ratio, 1 / ratio) / (1 + TOLERANCE) if ratio else math.inf,
        1 - TOLERANCE <= ratio <= 1 + TOLERANCE,
        f"variance {ratio:.3f} of what was paid for",
        "noise as entered in a ledger",
    )
    rows = {tuple(row) for row in noise.tolist()}
    columns = {tuple(column) for column in noise.T.tolist()}
    fresh = len(rows) == noise.shape[0] and len(columns) == noise.shape[1]
    figure = f"{len(rows)} of {noise.shape[0]} steps, {len(columns)} of {noise.shape[1]} groups"
    own = Finding(
        MECHANISM,
        _ASKED,
        "fresh",
        sum(noise.shape),
        0.0 if fresh else math.inf,
        fresh,
        f"noise of its own: {figure}",
        "after restarts",
    )
    once = Finding(
        MECHANISM,
        _ASKED,
        "once",
        noise.shape[0],
        0.0 if again else math.inf,
        again,
        "a step that was entered keeps its value" if again else "a step has a second value",
        "entered twice",
    )
    return [law, own, once]


def _entered(subject: Subject, path: Path) -> tuple[npt.NDArray[Any], float, bool]:
    """Return the noise of every step and group, its variance as booked, and whether steps stay."""
    names = [f"g{n}" for n in range(DRAWN_GROUPS)]
    days = [FIRST + timedelta(days=7 * (n % DRAWN_STEPS)) for n in range(DRAWN_GROUPS)]
    data = Series(
        names,
        days,
        every="week",
        first=FIRST,
        steps=DRAWN_STEPS,
        bound=BOUND,
        groups=names,
        names=names,
    )
    budget = {"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**7)}
    kind = _run_of(subject)

    def session() -> Session:
        terms = {"epsilon": 1, "delta": Fraction(1, 10**6)}
        return Ledger(path).open("audit", data, unit="participant-week", **terms)  # type: ignore[arg-type]

    first = kind(session(), **budget)  # type: ignore[arg-type]
    for _ in range(DRAWN_STEPS):
        kind.again(session()).advance()
    ledger = Ledger(path)
    entries = [entry.body["values"] for entry in ledger.steps("audit", first.debit)]
    exact = [factor.encode(data.totals(), step) for step in range(DRAWN_STEPS)]
    for step in range(DRAWN_STEPS):
        ledger.enter_step("audit", first.debit, step, [0] * DRAWN_GROUPS)
    after = [entry.body["values"] for entry in ledger.steps("audit", first.debit)]
    noise = np.array(entries, dtype=object) - np.array(exact, dtype=object)
    return noise, float(first.terms.variance), after == entries


def _run_of(subject: Subject) -> type[Stream]:
    """Return the stream whose noise is the subject's."""
    if subject.noise is None:
        return Stream

    class StreamRun(Stream):
        """A stream with other noise."""

        def _noise(self, size: int, moved: int, source: Source | None) -> Any:
            assert subject.noise is not None
            return subject.noise(self.terms, size, self.released)

    return StreamRun


# --- broken streams ----------------------------------------------------------------------------


def _groups_as_one(*rows: Any, **terms: Any) -> npt.NDArray[np.int64]:
    """Cut each group to the bound by itself."""
    groups = rows[2]
    found = np.zeros(terms["shape"], dtype=np.int64)
    for place in range(terms["shape"][1]):
        found += clipped_totals(*(part[groups == place] for part in rows), **terms)
    return found


def _every_step(*rows: Any, **terms: Any) -> npt.NDArray[np.int64]:
    """Bound a person in each step, in however many there are."""
    return clipped_totals(*rows, **(terms | {"periods": terms["shape"][0]}))


def _not_clipped(*rows: Any, **terms: Any) -> npt.NDArray[np.int64]:
    return clipped_totals(*rows, **(terms | {"bound": 2**20}))


def _priced(squared: Callable[[Declaration, int], int]) -> Price:
    """Price a stream by a wrong sensitivity: the noise of less, at the price of all."""

    def price(
        declared: Declaration, unit: str, epsilon: Fraction, delta: Fraction, periods: int
    ) -> StreamTerms:
        honest = make_terms(declared, unit, epsilon, delta, periods)
        true = factor.squared_sensitivity(declared.steps, periods, declared.bound)
        part = Fraction(squared(declared, periods), true)
        return replace(honest, variance=math.ceil(honest.variance * part))

    return price


def _one_entry(declared: Declaration, periods: int) -> int:
    return declared.bound**2 * factor.coefficients(1)[0] ** 2


def _orthogonal(declared: Declaration, periods: int) -> int:
    return periods * factor.squared_sensitivity(declared.steps, 1, declared.bound)


def _drawn(divided: int = 1, seed: bool = False, shared: bool = False) -> Noise:
    """Return noise of a fraction of the variance, from a seed at each restart, or one for all."""

    def noise(terms: StreamTerms, size: int, step: int) -> Any:
        from tulle.noise.additive import discrete_gaussian

        found = discrete_gaussian(
            variance=terms.variance // divided,
            size=1 if shared else size,
            source=SeededSource(7) if seed else None,
        )
        return [found[0]] * size if shared else found

    return noise


def broken() -> Sequence[Subject]:
    """Return broken streams, and which check must reject each."""
    return (
        Subject("groups priced as one", ("exact",), clip=_groups_as_one),
        Subject("bounded per step, charged once", ("exact",), clip=_every_step),
        Subject("not clipped", ("exact",), clip=_not_clipped),
        Subject("later entries not charged", ("exact",), price=_priced(_one_entry)),
        Subject("steps of one person as if orthogonal", ("exact",), price=_priced(_orthogonal)),
        Subject("half the noise", ("drawn",), noise=_drawn(divided=4)),
        Subject("noise reused after a restart", ("fresh",), noise=_drawn(seed=True)),
        Subject("one noise for all groups", ("fresh",), noise=_drawn(shared=True)),
    )


def check_streams() -> list[Finding]:
    """Return the findings on the real stream."""
    return [check_price(Subject()), *check_drawn(Subject())]


def unexamined() -> list[str]:
    """Return the streams, of those that exist, that nothing here examines."""
    return classes_without(Stream, streams, {Stream})


def catch_broken() -> list[Finding]:
    """Return, for each broken stream, the finding of each check that must reject it."""
    found = []
    for subject in broken():
        by = [check_price(subject)] if subject.caught_by == ("exact",) else check_drawn(subject)
        found += [
            replace(finding, query=subject.fault)
            for finding in by
            if finding.check in subject.caught_by
        ]
    return found


_ASKED = "running totals"
