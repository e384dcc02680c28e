"""Streams over questions in SQL: rows of one person, plain and by public group."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.core.errors import BudgetError, InputError, LedgerError, QueryError
from tulle.core.period import Calendar
from tulle.ledger.ledger import Ledger
from tulle.streams import clipping, factor
from tulle.streams import question as question_module
from tulle.streams.stream import KeptStream, kept_streams

duckdb = pytest.importorskip("duckdb")

MONDAY = date(2026, 1, 5)
CITIES = ["a", "b"]
COUNT = "SELECT COUNT(*) FROM trips"
GROUPED = "SELECT city, COUNT(*) FROM trips GROUP BY city"
SUM = "SELECT city, SUM(fare) AS total FROM trips WHERE fare > -9 GROUP BY city"
JOINED = "SELECT COUNT(*) FROM trips t JOIN stops s ON s.trip = t.number"
TERMS: dict[str, Any] = {"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**7)}
CALENDAR: dict[str, Any] = {"every": "week", "first": MONDAY, "steps": 4, "bound": 2}

Row = tuple[int, int | None, date | None, str, float]


def rows_of(seed: int, count: int = 24) -> list[Row]:
    """Return trips: number, rider, day, city and fare; before, in and after the steps."""
    chance = random.Random(seed)
    return [
        (
            number,
            None if chance.random() < 0.05 else chance.randrange(3),
            None if chance.random() < 0.05 else MONDAY + timedelta(chance.randrange(-9, 36)),
            chance.choice("abc"),
            chance.choice([0.5, 1, 1.25, -2, 7]),
        )
        for number in range(count)
    ]


def database(rows: list[Row], stops: int = 2) -> Any:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE trips (number INTEGER, rider INTEGER, day DATE, city TEXT, fare DOUBLE)"
    )
    connection.execute("CREATE TABLE stops (trip INTEGER)")
    if rows:
        connection.executemany("INSERT INTO trips VALUES (?, ?, ?, ?, ?)", rows)
        connection.executemany(
            "INSERT INTO stops VALUES (?)", [(row[0],) for row in rows for _ in range(stops)]
        )
    return tulle.Database.connect(
        connection,
        owners={"trips": "rider", "stops": "trip -> trips[number]"},
        times={"trips": "day"},
    )


def asked(text: str) -> Any:
    return tulle.sql(text, groups={"city": CITIES} if "GROUP" in text else None)


def study_of(path: Path, data: Any, unit: str = "participant-week") -> tulle.Session:
    return Ledger(path).open("trips", data, unit=unit, epsilon=2, delta=Fraction(1, 10**6))


def opened(path: Path, data: Any, text: str = GROUPED, **more: Any) -> tulle.Stream:
    unit = more.pop("unit", "participant-week")
    return tulle.Stream(study_of(path, data, unit), asked(text), **(TERMS | CALENDAR | more))


def summed(data: Any, text: str, unit: str, **more: Any) -> question_module.Asked:
    terms = CALENDAR | more
    return question_module.Asked.of(data.under(tulle.Unit.of(unit)), asked(text), **terms)


def slow_totals(
    rows: list[Row], text: str, unit: str, *, every: str, steps: int, periods: int, made: Any
) -> Any:
    """Return what a stream sums up on its lattice, the slow and obvious way."""
    scale, bound = made.declaration.scale, made.declaration.bound
    calendar, grouped = Calendar(every), "GROUP" in text
    first, own = calendar.number(MONDAY), unit.partition("-")[2]
    weights: dict[Any, dict[int, list[Fraction]]] = {}
    for _, rider, day, city, fare in rows:
        if rider is None or day is None or (grouped and city not in CITIES):
            continue
        step = calendar.number(day) - first
        if not 0 <= step < steps:
            continue
        unit_key = (rider, Calendar(own).number(day) if own else 0)
        place = CITIES.index(city) if grouped else 0
        amount = Fraction(fare) if "SUM" in text else Fraction(2 if "stops" in text else 1)
        mine = weights.setdefault(unit_key, {}).setdefault(step, [Fraction(0)] * (1 + grouped))
        mine[place] += amount
    found = np.zeros((steps, 1 + grouped), dtype=int)
    for mine in weights.values():
        for step in sorted(mine)[:periods]:
            own_sums = [round(amount / scale) for amount in mine[step]]
            whole = max(sum(map(abs, own_sums)), bound)
            found[step] += [(1 if a > 0 else -1) * (abs(a) * bound // whole) for a in own_sums]
    return found


@pytest.mark.parametrize("text", [COUNT, GROUPED, SUM, JOINED])
def test_totals_are_those_of_a_slow_count(text: str) -> None:
    """Against plain loops, for units and steps of different lengths."""
    rows = rows_of(1)
    data = database(rows)
    cases = [("participant-week", "week", 1, 2), ("participant", "week", 2, 2)]
    if text == GROUPED:
        cases += [("participant-week", "day", 7, 1), ("participant-day", "month", 1, 3)]
        cases += [("participant-month", "week", 6, 2), ("participant", "week", 4, 1)]
    for unit, every, periods, bound in cases:
        steps = 20 if every == "day" else 4
        made = summed(data, text, unit, every=every, steps=steps, bound=bound)
        wanted = slow_totals(rows, text, unit, every=every, steps=steps, periods=periods, made=made)
        found = made.totals(steps, periods)
        assert np.array_equal(found, wanted)
        # Earlier steps do not depend on what comes later.
        assert np.array_equal(made.totals(2, periods), made.totals(steps, periods)[:2])


def moves(data: Any, text: str, unit: str, periods: int, **more: Any) -> list[Any]:
    """Return by what each unit that can leave moves the totals: an array of steps and groups."""
    whole = data.under(tulle.Unit.of(unit))
    made = summed(data, text, unit, **more)
    steps = made.declaration.steps
    found = made.totals(steps, periods)
    return [
        found - summed(other, text, unit, **more).totals(steps, periods)
        for other in (whole.without(*gone) for gone in whole.participants())
    ]


def within(found: list[Any], bound: int, periods: int, steps: int) -> bool:
    """Say whether every unit moves C·x by no more than is paid for."""
    allowed = factor.squared_sensitivity(steps, periods, bound)
    root = np.array([[0] * steps for _ in range(steps)], dtype=object)
    for t, s in itertools.product(range(steps), repeat=2):
        root[t, s] = factor.coefficients(steps)[t - s] if s <= t else 0
    return all(int(((root @ move.astype(object)) ** 2).sum()) <= allowed for move in found)


def lattice_bound(data: Any, text: str) -> int:
    return summed(data, text, "participant").declaration.bound


# One rider with many trips in all weeks and cities, and another beside.
HEAVY: list[Row] = [
    (n, 0 if n else 1, MONDAY + timedelta(n % 28), "ab"[n % 2], 5.0) for n in range(56)
]


@pytest.mark.parametrize(
    ("unit", "every", "periods"),
    [("participant-week", "week", 1), ("participant", "week", 2), ("participant-month", "week", 4)],
)
def test_no_unit_moves_the_entries_further_than_is_paid_for(
    unit: str, every: str, periods: int
) -> None:
    data = database(HEAVY)
    bound = lattice_bound(data, GROUPED)
    found = moves(data, GROUPED, unit, periods, every=every)
    assert within(found, bound, periods, 4)
    # The bound is nearly reached, so that half the price would show.
    assert not within([move * 2 for move in found], bound, periods, 4)
    assert max(int((move != 0).any(axis=1).sum()) for move in found) <= periods


def each_group_by_itself(*arrays: Any, **terms: Any) -> Any:
    """The broken twin prices the groups as one: each is cut to the bound by itself."""
    units, steps, groups, values = arrays
    size = terms["shape"][1]
    parts = [
        clipping.clipped_totals(
            units[groups == place], steps[groups == place], groups[groups == place],
            values[groups == place], **terms,
        )
        for place in range(size)
    ]  # fmt: skip
    return sum(parts[1:], parts[0])


def every_step_for_one_price(*arrays: Any, **terms: Any) -> Any:
    """The broken twin bounds a person in each step, and is paid for one of them."""
    return clipping.clipped_totals(*arrays, **(terms | {"periods": terms["shape"][0]}))


def rows_by_themselves(units: Any, *arrays: Any, **terms: Any) -> Any:
    """The broken twin cuts each row to the bound, and not all that somebody adds."""
    return clipping.clipped_totals(np.arange(len(units)), *arrays, **terms)


@pytest.mark.parametrize("twin", [each_group_by_itself, every_step_for_one_price])
def test_broken_clipping_is_caught(
    monkeypatch: pytest.MonkeyPatch, twin: Callable[..., Any]
) -> None:
    monkeypatch.setattr(question_module, "clipped_totals", twin)
    unit, periods = ("participant-week", 1)
    if twin is every_step_for_one_price:
        unit, periods = "participant", 1
    data = database(HEAVY)
    bound = lattice_bound(data, GROUPED)
    assert not within(moves(data, GROUPED, unit, periods), bound, periods, 4)


def test_all_small_histories_by_brute_force() -> None:
    """Every way in which one unit's records can lie in three steps and two groups."""
    steps, size, bound = 3, 2, 2
    amounts = (-3, 0, 2)
    honest, twins = clipping.clipped_totals, (each_group_by_itself, every_step_for_one_price)
    caught = dict.fromkeys((*twins, rows_by_themselves), False)
    for values in itertools.product(amounts, repeat=steps * size):
        cells = np.array(values)
        kept = cells != 0
        step, group = np.arange(steps * size) // size, np.arange(steps * size) % size
        rows = [np.zeros(kept.sum(), dtype=np.int64), step[kept], group[kept], cells[kept]]
        for periods in (1, 2):
            terms = {"shape": (steps, size), "bound": bound, "periods": periods}
            assert within([honest(*rows, **terms)], bound, periods, steps)
            for twin in caught:
                caught[twin] |= not within([twin(*rows, **terms)], bound, periods, steps)
    assert all(caught.values())


def test_a_stream_goes_on_with_new_data_and_after_restarts(tmp_path: Path) -> None:
    """Week after week: more rows, another process, one debit, each step once."""
    path, rows = tmp_path / "study.ledger", rows_of(3, 40)
    shown = []
    for week in range(4):
        there = [row for row in rows if row[2] is None or row[2] < MONDAY + timedelta(7 * week + 7)]
        found = opened(path, database(there))
        assert found.released == week
        shown.append(found.advance())
    again = tulle.Stream.again(study_of(path, database(rows)))
    assert again.released == 4
    with pytest.raises(InputError, match="All 4 steps"):
        again.advance()
    ledger = Ledger(path)
    assert len(ledger.debits("trips")) == 1
    assert ledger.verify(releases=shown) == []
    (kept,) = kept_streams(ledger, "trips")
    assert kept.title == f"running totals of 4 steps: {GROUPED}"
    for one, other in zip(shown, kept.releases(ledger), strict=True):
        assert np.array_equal(one.value, other.value)
        assert one.to_json() == other.to_json()
    made = summed(database(rows), GROUPED, "participant-week")
    truth = np.cumsum(made.totals(4, 1), axis=0) * float(made.declaration.scale)
    for release, total in zip(shown, truth, strict=True):
        low, high = release.interval(0.9999999)
        assert (low <= total).all()
        assert (total <= high).all()
    assert [list(axis.labels or ()) for axis in shown[0].labels.axes] == [CITIES]
    # The noise of each step and group is its own.
    steps = ledger.steps("trips", kept.debit)
    noise = {
        value - exact
        for step, entry in enumerate(steps)
        for value, exact in zip(
            entry.body["values"], factor.encode(made.totals(4, 1), step), strict=True
        )
    }
    assert len(noise) == 8


def test_noise_that_is_reused_after_a_restart_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tulle.noise.source import SeededSource
    from tulle.streams import stream as stream_module

    honest = stream_module.discrete_gaussian
    monkeypatch.setattr(
        stream_module,
        "discrete_gaussian",
        lambda **options: honest(**options | {"source": SeededSource(7)}),
    )
    with pytest.raises(AssertionError):
        test_a_stream_goes_on_with_new_data_and_after_restarts(tmp_path)


def test_versions_and_declarations(tmp_path: Path) -> None:
    path, data = tmp_path / "study.ledger", database(rows_of(5))
    ledger = Ledger(path)
    terms: dict[str, Any] = {"unit": "participant-week", "epsilon": 1, "delta": 1e-6}
    study = ledger.open("trips", data, version="a", date=MONDAY, **terms)
    stream = tulle.Stream(study, asked(COUNT), **TERMS, **CALENDAR)
    assert stream.advance().version == "a"
    later = study.next_version("b", data, date=MONDAY + timedelta(7))
    with pytest.raises(LedgerError, match="present version"):
        stream.advance()
    assert stream.released == 1
    assert tulle.Stream.again(later).advance().version == "b"
    assert [r.version for r in stream.releases()] == ["a", "b"]
    assert len(ledger.debits("trips")) == 1
    # Another bound, calendar or question is another stream, with a price of its own.
    with pytest.raises(BudgetError):
        tulle.Stream(later, asked(COUNT), **TERMS | {"epsilon": 1}, **CALENDAR | {"bound": 1})
    with pytest.raises(InputError, match="has no stream 2"):
        tulle.Stream.again(later, 2)


REFUSED = (
    ("SELECT COUNT(DISTINCT rider) FROM trips", {}, "about one person each"),
    ("SELECT COUNT(*) FROM trips x JOIN trips y ON x.city = y.city", {}, "about one person each"),
    ("SELECT COUNT(*) FROM (SELECT * FROM trips) t", {}, "about one person each"),
    ("WITH t AS (SELECT * FROM trips) SELECT COUNT(*) FROM t", {}, "about one person each"),
    (f"{COUNT} WHERE number IN (SELECT trip FROM stops)", {}, "about one person each"),
    ("SELECT AVG(fare) FROM trips", {}, "one COUNT or SUM"),
    ("SELECT COUNT(*) FROM stops", {}, "no table of the question has a time"),
    (COUNT, {"bound": 1.5}, "whole number of rows"),
    (COUNT, {"bound": 0}, "bound must be"),
    (COUNT, {"steps": 0}, "steps must be at least 1"),
    (COUNT, {"steps": 10**6}, "at most"),
    (COUNT, {"every": "hour"}, "A period is one of"),
    (COUNT, {"every": "year", "first": "9990-01-01", "steps": 20}, "after the year 9999"),
    (COUNT, {"time": "city"}, "Times here: trips.day"),
    (COUNT, {"periods": 2}, "leave periods= out"),
    (COUNT, {"every": None}, "needs a question"),
    (COUNT, {"unit": "participant"}, "give periods="),
)


@pytest.mark.parametrize(("text", "more", "words"), REFUSED)
def test_what_cannot_be_summed_up_is_refused_at_no_cost(
    tmp_path: Path, text: str, more: dict[str, Any], words: str
) -> None:
    path = tmp_path / "study.ledger"
    with pytest.raises((InputError, QueryError), match=words):
        opened(path, database([]), text, **more)
    assert Ledger(path).debits("trips") == []


def test_no_record_shows_in_what_a_stream_says(tmp_path: Path) -> None:
    """The same plan, debit and errors whatever the rows are."""
    bodies = []
    for rows in (rows_of(1), [], HEAVY):
        found = opened(tmp_path / f"{len(bodies)}.ledger", database(rows), SUM, bound=12.5)
        (entry,) = found._session.ledger.debits("trips")
        bodies.append({k: v for k, v in entry.body.items() if k != "time"})
        kept = KeptStream.of("trips", entry)
        assert kept.declaration.to_json() == found._summed.declaration.to_json()
        assert kept.terms == found.terms
        assert found.deviation(2) == kept.deviation(2)
    assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize("bound", ["1/3", "1.9999999999999999999", "2", "0.001", "1048576.25"])
def test_a_stream_is_found_again_whatever_its_bound(tmp_path: Path, bound: str) -> None:
    path, data = tmp_path / "study.ledger", database(rows_of(2, 6))
    found = opened(path, data, SUM, bound=Fraction(bound))
    again = tulle.Stream.again(study_of(path, data))
    assert again.debit == found.debit
    declared = found._summed.declaration
    assert declared.bound * declared.scale <= Fraction(bound)
    assert declared.bound * declared.scale > Fraction(bound) * Fraction(999_990, 10**6)
    assert len(Ledger(path).debits("trips")) == 1


def test_other_owners_or_times_are_another_stream(tmp_path: Path) -> None:
    """What is declared is part of the stream: it says whose a row is, and in which step."""
    path = tmp_path / "study.ledger"
    data = database(rows_of(2, 6))
    ledger = Ledger(path)
    terms: dict[str, Any] = {"unit": "participant-week", "epsilon": 1, "delta": 1e-6}
    study = ledger.open("trips", data, version="a", date=MONDAY, **terms)
    tulle.Stream(study, asked(COUNT), **TERMS, **CALENDAR).advance()
    data._engine._connection.execute("ALTER TABLE trips ADD COLUMN booked DATE")
    other = tulle.Database.connect(
        data._engine._connection,
        owners={"trips": "rider", "stops": "trip -> trips[number]"},
        times={"trips": "booked"},
    )
    later = study.next_version("b", other, date=MONDAY + timedelta(7))
    with pytest.raises(InputError, match="not the time of one table"):
        tulle.Stream.again(later)
    third = tulle.Database.connect(
        data._engine._connection,
        owners={"trips": "number", "stops": "trip -> trips[number]"},
        times={"trips": "day"},
    )
    last = later.next_version("c", third, date=MONDAY + timedelta(8))
    with pytest.raises(InputError, match="declared otherwise"):
        tulle.Stream.again(last)
    assert len(ledger.debits("trips")) == 1


def test_a_streams_guarantee_says_which_functions_its_question_vouches_for(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE trips (rider BIGINT, day DATE, fare DOUBLE)")
    connection.execute("CREATE MACRO twice(x) AS 2 * x")
    data = tulle.Database.connect(connection, owners={"trips": "rider"}, times={"trips": "day"})
    text = "SELECT COUNT(*) FROM trips WHERE twice(fare) > 3"
    stream = tulle.Stream(
        study_of(tmp_path / "study.ledger", data),
        tulle.sql(text, functions=["twice"]),
        **TERMS,
        **CALENDAR,
    )
    said = "twice(...) follows from its arguments alone, as the question says"
    assert said in stream.advance().guarantee.assumptions
    plain = tulle.Stream(
        study_of(tmp_path / "other.ledger", data),
        tulle.sql(text.replace("twice(fare)", "fare")),
        **TERMS,
        **CALENDAR,
    )
    assert said not in plain.advance().guarantee.assumptions
