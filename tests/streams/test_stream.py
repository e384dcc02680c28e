"""Counts over time: paid once, each step entered once, whatever happens in between."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.audit.replay.engine import entries, replay

import tulle
from tulle.core.errors import BudgetError, InputError, LedgerError, UnitError
from tulle.core.gaussian import delta_of_gaussian
from tulle.core.guarantee import epsilon_of_rho
from tulle.ledger.ledger import Ledger
from tulle.noise import SeededSource
from tulle.streams import factor
from tulle.streams import stream as stream_module
from tulle.streams.data import Series

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

FIRST = date(2026, 1, 5)
TERMS = {"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**7)}


def series(rows: list[tuple[Any, ...]], **more: Any) -> Series:
    terms = {"every": "week", "first": FIRST, "steps": 6, "bound": 2} | more
    people, days, values = [list(part) for part in zip(*rows, strict=True)] if rows else ([],) * 3
    return Series(people, days, values, **terms)


def weeks(count: int) -> list[tuple[Any, ...]]:
    return [(f"p{n % 7}", FIRST + timedelta(days=3 * n), 1) for n in range(count)]


def opened(path: Path, data: Series | None = None, **terms: Any) -> tulle.Stream:
    account = {"unit": "participant-week", "epsilon": 1, "delta": Fraction(1, 10**6)}
    study = Ledger(path).open("trips", data or series(weeks(14)), **account)  # type: ignore[arg-type]
    return tulle.Stream(study, **(TERMS | terms))


# --- the data -----------------------------------------------------------------------------------


def slow_totals(rows: list[tuple[Any, ...]], steps: int, bound: int, names: list[str]) -> Any:
    """Return what a series sums up, the slow and obvious way."""
    found = np.zeros((steps, max(len(names), 1)), dtype=int)
    for person in {row[0] for row in rows}:
        for step in range(steps):
            own = [0] * max(len(names), 1)
            for who, day, value, *group in rows:
                here = who == person and (day - FIRST).days // 7 == step
                if here and (not names or group[0] in names):
                    own[names.index(group[0]) if names else 0] += value
            whole = sum(map(abs, own))
            if whole > bound:
                own = [(1 if v > 0 else -1) * (abs(v) * bound // whole) for v in own]
            found[step] += own
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("names", [[], ["a", "b", "c"]])
def test_sums_are_those_of_a_slow_count(seed: int, names: list[str]) -> None:
    chance = random.Random(seed)
    rows = [
        (chance.choice("xyz"), FIRST + timedelta(days=chance.randrange(-9, 50)),
         chance.randrange(-3, 4), chance.choice(["a", "b", "c", "d"]))
        for _ in range(30)
    ]  # fmt: skip
    people, days, values, groups = map(list, zip(*rows, strict=True))
    made = Series(
        people, days, values, every="week", first=FIRST, steps=6, bound=2,
        groups=groups if names else None, names=names,
    )  # fmt: skip
    assert np.array_equal(made.totals(), slow_totals(rows, 6, 2, names))
    # Nobody moves a step by more than the bound: all neighbours, per step and per person.
    whole = made.totals()
    for unit, most in (("participant-week", 1), ("participant", 6)):
        for other in made.neighbours(unit):
            moved = np.abs(whole - other.totals())
            assert moved.sum(axis=1).max(initial=0) <= 2
            assert (moved.sum(axis=1) > 0).sum() <= most


def test_odd_records_are_left_out() -> None:
    days = ["NaT", "1500-01-01", "9999-12-31", "2026-01-05"]
    made = Series(["a"] * 4, days, [1, 1, 1, float("nan")], every="week", first=FIRST, steps=6,
                  bound=2)  # fmt: skip
    assert made.totals().sum() == 0
    assert series([]).totals().shape == (6, 1)
    for bad in (
        *({"steps": 0}, {"steps": 10**30}, {"bound": 0}, {"bound": 2**21}, {"every": "hour"}),
        *({"names": ["a"]}, {"first": "9999-12-01"}),
    ):
        with pytest.raises(InputError):
            series(weeks(3), **bad)
    for unit in ("participant-day", "edge", "node"):
        with pytest.raises(UnitError, match="participant-week"):
            made.check_unit(unit)


ODD: list[Any] = [
    *("a", "", "hunter2", None, float("nan"), float("inf"), 1, 1.0, "1", True, -3, 10**30, 1e308),
    *(b"\xff", "\ud800", "2026-01-05", "2026-01-05T23:00:00+05:00", "2026-02-30", "now", "2026-01"),
    *(FIRST, datetime(2026, 1, 5, tzinfo=UTC), np.datetime64("2026-01-05"), np.datetime64("NaT")),
    *(Decimal("sNaN"), (1, 2), [1], object),
]


def odd_findings(make: Any) -> list[str]:
    """Return what a record with something odd in one of its columns changes for other people."""
    base = (["x", "y"], ["2026-01-05", "2026-01-12"], [1, 2], ["a", "b"])
    held = make(base).totals()
    found = []
    for place, odd in itertools.product(range(4), ODD):
        record = ["guest", "2026-01-06", 1, "a"]
        record[place] = odd
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                more = make([[*column, cell] for column, cell in zip(base, record, strict=True)])
            except Exception as error:  # noqa: BLE001 - this is what is looked for
                found.append(f"{place} {odd!r}: {type(error).__name__}")
                continue
        found += [f"{place} {odd!r}: {one.message}" for one in warned]
        # The guest is one person, who adds at most the bound in one step.
        moved = np.abs(more.totals() - held)
        if moved.sum() > 2 or (moved.sum(axis=1) > 0).sum() > 1:
            found.append(f"{place} {odd!r} moves others")
    return found


def test_no_record_shows_in_how_others_are_read() -> None:
    def make(columns: Any) -> Series:
        people, days, values, groups = columns
        return Series(people, days, values, every="week", first=FIRST, steps=6, bound=2,
                      groups=groups, names=["a", "b"])  # fmt: skip

    def guess(columns: Any) -> Series:
        """The broken twin: types are found by looking at all cells of a column."""
        days = np.asarray(columns[1], dtype="datetime64[D]")
        return make([columns[0], days, np.asarray(columns[2], dtype=float), columns[3]])

    assert odd_findings(make) == []
    assert len(odd_findings(guess)) > 10
    same = Series(["7", 7, 7.0], ["2026-01-05"] * 3, every="week", first=FIRST, steps=1, bound=2)
    assert same.totals().tolist() == [[2]]  # one person, who has three


# --- the stream ---------------------------------------------------------------------------------


def test_a_stream_is_paid_for_once_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    first = opened(path)
    left = Ledger(path).remaining("trips").epsilon
    shown = [first.advance() for _ in range(3)]
    again = opened(path)
    assert again.released == 3
    assert [r.value for r in again.releases()] == [r.value for r in shown]
    shown += [again.advance() for _ in range(3)]
    assert len({r.debit for r in shown}) == 6
    with pytest.raises(InputError, match="All 6 steps"):
        again.advance()
    ledger = Ledger(path)
    assert len(ledger.debits("trips")) == 1
    assert ledger.remaining("trips").epsilon == left
    assert ledger.verify(releases=shown) == []
    truth = np.cumsum(series(weeks(14)).totals())
    for release, total in zip(shown, truth, strict=True):
        low, high = release.interval(0.9999999)
        assert low <= total <= high
        assert release.guarantee.unit.name == "participant-week"


def test_a_page_shows_the_series_with_its_band(tmp_path: Path) -> None:
    found = opened(tmp_path / "study.ledger")
    assert "No step was released yet" in found.report()
    found.advance()
    found.advance()
    page = found.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert 'class="band"' in page
    assert "2026-W03" in page
    assert "at most 54 weeks" in page
    people, days, _ = map(list, zip(*weeks(9), strict=True))
    grouped = Series(
        people, days, every="week", first=FIRST, steps=6, bound=2, groups=["a", "b", "<c>"] * 3,
        names=["a", "<c>"],
    )  # fmt: skip
    other = opened(tmp_path / "groups.ledger", grouped)
    assert len(other.advance().value) == 2
    assert "&lt;c&gt;" in other.report()


def test_the_price_is_that_of_the_noise(tmp_path: Path) -> None:
    made = opened(tmp_path / "study.ledger").terms
    squared = factor.squared_sensitivity(6, 1, 2)
    assert made.rho == Fraction(squared, 2 * made.variance)
    assert epsilon_of_rho(made.rho, TERMS["delta"]) <= TERMS["epsilon"]
    assert epsilon_of_rho(made.rho * Fraction(101, 100), TERMS["delta"]) > made.guarantee.epsilon
    booked = Ledger(tmp_path / "study.ledger").debits("trips")[0].body["event"]
    assert Fraction(booked["rho"]) == made.rho


def test_where_prices_are_only_added_up_a_stream_has_less_noise(tmp_path: Path) -> None:
    data, (epsilon, delta) = series(weeks(14)), (Fraction(1, 2), Fraction(1, 10**7))
    account: dict[str, Any] = {"unit": "participant-week", "epsilon": 1, "delta": delta * 10}
    added = Ledger(tmp_path / "added.ledger").open("trips", data, composition_delta=0, **account)
    tight = Ledger(tmp_path / "tight.ledger").open("trips", data, **account)
    alone = tulle.Stream(added, epsilon=epsilon, delta=delta)
    among = tulle.Stream(tight, epsilon=epsilon, delta=delta)
    assert alone.terms.variance < 0.95 * among.terms.variance
    noise = ((alone.terms.rho, alone.terms.event.moved, Fraction(alone.terms.variance)),)
    assert delta_of_gaussian(noise, epsilon) <= delta
    assert delta_of_gaussian(noise, epsilon * Fraction(99, 100)) > delta
    # It is found again by the same terms, and a step is paid for once.
    alone.advance()
    assert tulle.Stream(added, epsilon=epsilon, delta=delta).released == 1
    assert tulle.Stream.again(added).terms == alone.terms


def test_noise_is_drawn_as_it_is_charged(tmp_path: Path) -> None:
    """What is drawn over all steps costs together what was booked."""
    from tulle.core.events import Gaussian
    from tulle.noise.watch import watch

    found = opened(tmp_path / "study.ledger")
    with watch() as events:
        for _ in range(6):
            found.advance()
    assert all(isinstance(event, Gaussian) for event in events)
    assert sum(event.rho for event in events) == found.terms.rho  # type: ignore[attr-defined]


def test_per_participant_the_number_of_steps_is_an_assumption(tmp_path: Path) -> None:
    data = series(weeks(14))
    ledger = Ledger(tmp_path / "study.ledger")
    study = ledger.open("trips", data, unit="participant", epsilon=1, delta=Fraction(1, 10**6))
    with pytest.raises(InputError, match="give periods="):
        tulle.Stream(study, **TERMS)  # type: ignore[arg-type]
    made = tulle.Stream(study, periods=3, **TERMS)  # type: ignore[arg-type]
    assert "nobody has records in more than 3 of 6 steps" in str(made.terms.guarantee)
    assert made.terms.rho == Fraction(factor.squared_sensitivity(6, 3, 2), 2 * made.terms.variance)
    with pytest.raises(InputError, match="leave periods= out"):
        opened(tmp_path / "other.ledger", periods=2)
    with pytest.raises(BudgetError):
        tulle.Stream(study, epsilon=4, delta=Fraction(1, 10**7), periods=3)


def test_another_calendar_is_another_stream(tmp_path: Path) -> None:
    """Else a person's week could count in two steps for the price of one."""
    path = tmp_path / "study.ledger"
    ledger = Ledger(path)
    terms = {"unit": "participant-week", "epsilon": 3, "delta": Fraction(1, 10**6)}
    study = ledger.open("trips", series(weeks(9)), version="a", date="2026-01-05", **terms)  # type: ignore[arg-type]
    tulle.Stream(study, **TERMS).advance()  # type: ignore[arg-type]
    moved = series(weeks(9), first=FIRST + timedelta(days=7))
    later = study.next_version("b", moved, date="2026-01-12")
    other = tulle.Stream(later, **TERMS)  # type: ignore[arg-type]
    assert other.released == 0
    assert len(ledger.debits("trips")) == 2


def test_a_stream_in_a_restored_copy_is_found_by_what_was_shown(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    found = opened(path)
    content = path.read_bytes()
    shown = found.advance()
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="older copy"):
        found.advance()
    assert Ledger(path).verify() == []
    assert Ledger(path).verify(releases=[shown])


def test_a_step_that_was_shown_otherwise_is_found(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    found = opened(path)
    shown = [found.advance() for _ in range(2)]
    assert Ledger(path).verify(releases=shown) == []
    assert Ledger(path).verify(releases=[tulle.Release.from_json(r.to_json()) for r in shown]) == []
    for forged in (
        replace(shown[1], value=shown[1].value + 1),
        replace(shown[0], query=shown[1].query),
        replace(shown[0], parameters={**shown[0].parameters, "label": "2026-W09"}),
    ):
        (problem,) = Ledger(path).verify(releases=[shown[0], forged])
        assert "than shown" in str(problem)


def test_noise_of_steps_and_streams_is_never_the_same(tmp_path: Path) -> None:
    def noise(name: str) -> list[int]:
        path = tmp_path / name
        for _ in range(6):
            opened(path).advance()  # a new process each time, as far as the stream knows
        found = opened(path)
        exact = [factor.encode(series(weeks(14)).totals(), step)[0] for step in range(6)]
        steps = found._session.ledger.steps("trips", found._debit)
        return [e.body["values"][0] - x for e, x in zip(steps, exact, strict=True)]

    drawn = noise("one") + noise("two")
    assert len(set(drawn)) == 12


HONEST_NOISE = stream_module.discrete_gaussian


def test_noise_that_is_reused_after_a_restart_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin begins anew with a seed whenever the program does."""
    from tulle.noise.source import SeededSource

    def again(**options: Any) -> Any:
        return HONEST_NOISE(**options | {"source": SeededSource(7)})

    monkeypatch.setattr(stream_module, "discrete_gaussian", again)
    with pytest.raises(AssertionError):
        test_noise_of_steps_and_streams_is_never_the_same(tmp_path)


def losses(data: Series, unit: str, variance: int, order: float) -> float:
    """Return the largest Rényi divergence between what neighbours' streams enter, summed exactly.

    The laws are those of discrete Gaussian noise around each entry, written out.
    """

    def law(centre: int) -> Any:
        weights = -((np.arange(-600, 601) - centre) ** 2) / (2 * variance)
        return weights - np.logaddexp.reduce(weights)

    def entries(one: Series) -> list[list[int]]:
        return [factor.encode(one.totals(), step) for step in range(one.steps)]

    whole, largest = entries(data), 0.0
    for other in data.neighbours(unit):
        moves = np.array(entries(other)) - np.array(whole)
        for sign in (1, -1):
            total = sum(
                np.logaddexp.reduce(order * law(sign * int(m)) + (1 - order) * law(0)) / (order - 1)
                for m in moves.ravel()
            )
            largest = max(largest, float(total))
    return largest


def forget_factors() -> None:
    factor.coefficients.cache_clear()
    factor._moved.cache_clear()


@pytest.mark.parametrize(("unit", "periods"), [("participant-week", 1), ("participant", 3)])
def test_the_law_of_all_entries_on_neighbours(
    monkeypatch: pytest.MonkeyPatch, unit: str, periods: int
) -> None:
    """On a coarse lattice every law is small enough to be written out; the price is reached."""
    monkeypatch.setattr(factor, "RESOLUTION", 4)
    forget_factors()
    try:
        rows = [("x", FIRST + timedelta(days=7 * n), 9) for n in range(3)]
        data = series([*rows, ("y", FIRST, 1)], steps=3)
        squared, variance = factor.squared_sensitivity(3, periods, 2), 500
        rho = squared / (2 * variance)
        for order in (1.5, 2.0, 6.0):
            found = losses(data, unit, variance, order)
            assert found <= order * rho * (1 + 1e-9)
            assert found > order * rho * 0.99
            # Half the variance, and a sensitivity without the entries after the first, are caught.
            assert losses(data, unit, variance // 2, order) > order * rho * 1.5
            assert found > order * (2 * 4) ** 2 / (2 * variance) * 1.05
    finally:
        monkeypatch.undo()
        forget_factors()


# --- kills and races ----------------------------------------------------------------------------


def fork(work: Callable[[int], None], delay: float | None = None) -> tuple[bool, str]:
    """Run ``work`` in a child; return whether it lived to the end, and what it told the pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            work(writing)
        except Exception:  # noqa: BLE001 - the parent shows it
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading) as told:
        text = told.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text


def tell(path: Path, pipe: int) -> None:
    found = opened(path)
    for _ in range(6 - found.released):
        release = found.advance()
        os.write(pipe, f"{release.parameters['step']} {release.value!r}\n".encode())


def shown_again(path: Path, told: str) -> list[str]:
    """Return every way in which the ledger shows another value than a child has told."""
    if not told.strip():
        return []
    found = opened(path)
    kept = {r.parameters["step"]: repr(r.value) for r in found.releases()}
    wrongs = [
        f"step {step} was {value}"
        for step, value in (line.split() for line in told.splitlines())
        if kept.get(int(step)) != value
    ]
    if len(Ledger(path).debits("trips")) != 1:
        wrongs.append("paid twice")
    return wrongs + [str(problem) for problem in Ledger(path).verify()]


@pytest.mark.small_process
def test_kills_never_give_a_step_a_second_value(tmp_path: Path) -> None:
    start = time.perf_counter()
    assert fork(lambda pipe: tell(tmp_path / "whole", pipe))[0]
    length, chance = time.perf_counter() - start, random.Random(3)
    for attempt in range(12):
        path, told = tmp_path / f"{attempt}", ""
        for _ in range(3):
            told += fork(lambda pipe, path=path: tell(path, pipe), chance.uniform(0, length))[1]  # type: ignore[misc]
            assert "Traceback" not in told, told
            assert shown_again(path, told) == []
        told += fork(lambda pipe, path=path: tell(path, pipe))[1]  # type: ignore[misc]
        assert shown_again(path, told) == []
        assert opened(path).released == 6


def race(path: Path) -> list[str]:
    children = []
    for _ in range(6):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.write(writing, b"".join(
                    f"{r.parameters['step']} {r.value!r}\n".encode()
                    for r in [opened(path).advance() for _ in range(1)]
                ))  # fmt: skip
            except Exception:  # noqa: BLE001 - the parent shows it
                os.write(writing, traceback.format_exc().encode())
            finally:
                os._exit(0)
        os.close(writing)
        children.append((child, reading))
    texts = []
    for child, reading in children:
        with os.fdopen(reading) as pipe:
            texts.append(pipe.read())
        os.waitpid(child, 0)
    return texts


def test_processes_that_race_for_a_step_show_one_value(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    opened(path)
    told = "".join(race(path))
    assert "Traceback" not in told, told
    assert shown_again(path, told) == []


def test_a_step_with_fresh_noise_at_no_cost_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin enters a step whether it was released or not."""

    def enter(self: Ledger, name: str, stream: str, step: int, values: Any) -> Any:
        body = {"stream": stream, "step": step, "values": list(values)}
        return self._store.append("step", name, body)

    path = tmp_path / "study.ledger"
    found = opened(path)
    one = found.advance().value
    monkeypatch.setattr(Ledger, "enter_step", enter)
    exact = factor.encode(series(weeks(14)).totals(), 0)
    found._session.ledger.enter_step("trips", found._debit, 0, [exact[0] + 12345])
    wrongs = shown_again(path, f"1 {one!r}\n")
    assert any("step 1 was" in wrong for wrong in wrongs)
    assert any("entered more than once" in wrong for wrong in wrongs)


def test_a_stream_is_not_of_an_account_that_sees_one_period_alone(tmp_path: Path) -> None:
    """Its steps would be about records that the session's data has not got."""
    ledger, week = Ledger(tmp_path / "s.ledger"), {"every": "week", "version": "W1", "date": FIRST}
    connection = duckdb.connect()
    connection.execute("CREATE TABLE trips (who INTEGER, day DATE)")
    data = tulle.Database.connect(connection, owners={"trips": "who"}, times={"trips": "day"})
    study = ledger.open(
        "trips", data, unit="participant-week", epsilon=1, delta=Fraction(1, 10**6), **week
    )
    question = tulle.sql("SELECT COUNT(*) FROM trips")
    over = {"every": "week", "first": FIRST, "steps": 6, "bound": 1}
    with pytest.raises(InputError, match="does not renew"):
        tulle.Stream(study, question, **TERMS, **over)
    assert ledger.debits("trips") == []


def test_a_stream_takes_no_source_that_can_be_replayed(tmp_path: Path) -> None:
    found = opened(tmp_path / "s.ledger")
    with pytest.raises(InputError, match="no test source"):
        found.advance(source=SeededSource(1))
    assert found.released == 0


def test_steps_are_entered_one_after_the_other_and_of_the_present_data(tmp_path: Path) -> None:
    found = opened(tmp_path / "s.ledger")
    ledger = found._session.ledger
    for step in (1, 5):
        with pytest.raises(LedgerError, match="before step"):
            ledger.enter_step("trips", found.debit, step, [7])
    found.advance()
    ledger.declare("trips", "W2", date=FIRST)
    for version in (None, "W1"):
        with pytest.raises(LedgerError, match="present version"):
            ledger.enter_step("trips", found.debit, 1, [7], version=version)
    with pytest.raises(LedgerError, match="present version"):
        found.advance()
    assert found.released == 1


def test_the_error_is_as_predicted(tmp_path: Path) -> None:
    """The total's deviation, from many streams: both too small and too large would show."""
    found = opened(tmp_path / "study.ledger")
    exact = series(weeks(14)).totals()
    rows = np.array([factor.encode(exact, step) for step in range(6)], dtype=float)
    count = 4000
    noise = HONEST_NOISE(variance=found.terms.variance, size=(count, 6))
    last = np.array([factor.decode((rows[:, 0] + one)[:, None])[-1, 0] for one in noise])
    ratio = np.std(last - exact.sum()) / found.deviation(6)
    assert 0.93 < ratio < 1.07


# --- what shows besides the noise ---------------------------------------------------------------


def stream_path(onlooker: Any, tape: Any, opener: Any, folder: Path) -> None:
    """Open a stream, release steps, go on with it, ask too much; look at all that this shows."""
    data = onlooker.see("open", lambda: opener(folder))
    ledger = Ledger(folder / "study.ledger")
    account = {"unit": "participant-week", "epsilon": 1, "delta": Fraction(1, 10**6)}
    session = onlooker.see("account", lambda: ledger.open("trips", data, **account))
    opened = onlooker.see("stream", lambda: tulle.Stream(session, **TERMS))  # type: ignore[arg-type]
    for _ in range(data.steps + 1):
        onlooker.see("advance", opened.advance)
    onlooker.see("again", lambda: tulle.Stream.again(session, 1).releases())
    onlooker.see("another", lambda: tulle.Stream.again(session, 7))
    onlooker.see("too much", lambda: tulle.Stream(session, epsilon=9, delta=Fraction(1, 10**7)))
    onlooker.see("report", lambda: opened.report(folder / "page.html"))
    onlooker.see("repr", lambda: f"{data!r} {opened.terms} {opened.values()} {ledger.head().count}")
    entries(onlooker, ledger)


def stream_variants() -> list[Callable[[Path], Series]]:
    """A series, and each neighbour of it: somebody's week goes, or comes with something odd."""
    rows: list[tuple[Any, ...]] = [("ann", FIRST, 1), ("bob", FIRST + timedelta(8), 2)]
    odd = [("guest", FIRST, cell) for cell in (0, float("nan"), 1e308, "x", None, -(10**30))]
    odd += [("guest", day, 1) for day in ("soon", None, "9999-12-31", "2026-02-30")]
    found = [rows, rows[1:], rows[:1], [], *([*rows, one] for one in odd)]
    return [lambda folder, rows=rows: series(rows, steps=3) for rows in found]  # type: ignore[misc]


@pytest.fixture
def constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is entered does not depend on records, so that all that is left may not either."""
    monkeypatch.setattr(factor, "encode", lambda totals, step: [5] * totals.shape[1])
    monkeypatch.setattr(tulle.Stream, "_noise", lambda self, size, moved, source: [0] * size)


def test_all_that_a_stream_shows_besides_the_noise_is_the_same(constant: None) -> None:
    seen = replay(stream_variants(), stream_path)
    assert seen.findings == ()
    assert seen.gives("advance")
    assert seen.gives("report")


def test_a_stream_that_tells_of_records_would_be_caught(
    constant: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tulle.Stream.advance

    def empty(self: tulle.Stream, **more: Any) -> Any:
        """Says that there is nothing to sum up."""
        if not self._summed.totals(1, 1).any():
            warnings.warn("nobody has records in the first step", stacklevel=1)
        return kept(self, **more)

    monkeypatch.setattr(tulle.Stream, "advance", empty)
    assert replay(stream_variants(), stream_path).findings
