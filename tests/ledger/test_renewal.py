"""Budgets that renew, for units with a period: each unit is paid for in its own period."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import tulle
from tulle.core.errors import InputError, UnitError
from tulle.core.guarantee import Guarantee
from tulle.core.period import MOST_IN_A_YEAR, WEEKDAYS, Calendar
from tulle.ledger.account import Account
from tulle.ledger.renewal import Renewal

duckdb = pytest.importorskip("duckdb")

MONDAY = date(2026, 8, 24)
SPAN = 14
QUESTIONS = (
    "SELECT COUNT(*) FROM orders",
    "SELECT SUM(price) FROM lines",
    "SELECT COUNT(*) FROM friends",
    "SELECT COUNT(*) FROM late",
)


@pytest.mark.parametrize("begins", WEEKDAYS)
@pytest.mark.parametrize("every", MOST_IN_A_YEAR)
def test_how_many_periods_a_period_touches_by_brute_force(every: str, begins: str) -> None:
    calendar = Calendar(every, begins=begins)
    days = [date(1999, 1, 1) + timedelta(days=n) for n in range(366 * 29)]
    for period in MOST_IN_A_YEAR:
        met: dict[int, set[int]] = {}
        for day in days:
            met.setdefault(Calendar(period).number(day), set()).add(calendar.number(day))
        largest = max(map(len, met.values()))
        assert largest <= calendar.touched(period)
        # Weeks that begin on another day: a year may have one fewer of them than is allowed for.
        assert largest >= calendar.touched(period) - (period == "year")


def database(seed: int) -> Any:
    """Return orders, their lines and pairs of friends, dated over some weeks; some have no date."""
    chance = random.Random(seed)

    def day() -> date | None:
        return None if chance.random() < 0.1 else MONDAY + timedelta(days=chance.randrange(SPAN))

    connection = duckdb.connect()
    connection.execute("CREATE TABLE orders (number INTEGER, person INTEGER, made_on DATE)")
    connection.execute("CREATE TABLE lines (number INTEGER, sent TIMESTAMP, price INTEGER)")
    connection.execute("CREATE TABLE friends (a INTEGER, b INTEGER, since DATE)")
    connection.execute("CREATE VIEW late AS SELECT * FROM orders WHERE number > 1")
    for number in range(6):
        connection.execute(
            "INSERT INTO orders VALUES (?, ?, ?)", (number, chance.randrange(2), day())
        )
    for _ in range(8):
        connection.execute(
            "INSERT INTO lines VALUES (?, ?, ?)",
            (chance.randrange(6), day(), 1 + chance.randrange(5)),
        )
        friends = (chance.randrange(2), chance.randrange(2), day())
        connection.execute("INSERT INTO friends VALUES (?, ?, ?)", friends)
    return tulle.Database.connect(
        connection,
        owners={
            "orders": "person",
            "lines": "number -> orders[number].person",
            "friends": ["a", "b"],
        },
        times={"orders": "made_on", "lines": "sent", "friends": "since"},
    )


def periods_that_see_a_unit(folder: Path, data: Any, every: str, unit: str, text: str) -> int:
    """Return in how many periods, at most, the exact answer depends on one and the same unit."""
    ledger = tulle.Ledger(folder / f"{len(list(folder.iterdir()))}.ledger")
    calendar, days = Calendar(every), [MONDAY + timedelta(days=n) for n in range(SPAN)]
    firsts = {calendar.number(day): day for day in reversed(days)}
    seen: dict[Any, int] = {}
    question = tulle.sql(text)
    for number, day in sorted(firsts.items()):
        study = ledger.open(
            "shop", data, unit=unit, epsilon=1, every=every, version=str(number), date=day
        )
        whole = study.dataset
        bound = question.bind(whole)
        truth = bound.truth(whole)
        for gone in data.under(study.unit).participants():
            changed = bound.truth(whole.without(*gone)) != truth  # type: ignore[attr-defined]
            seen[gone] = seen.get(gone, 0) + changed
    return max(seen.values())


CASES = [
    *(("week", "participant-week", text) for text in QUESTIONS),
    ("week", "participant-day", QUESTIONS[0]),
    ("month", "participant-week", QUESTIONS[0]),
]


@pytest.mark.parametrize(("every", "unit", "text"), CASES)
def test_a_unit_is_in_the_answers_of_its_own_period_alone(
    tmp_path: Path, every: str, unit: str, text: str
) -> None:
    allowed = Calendar(every).touched(unit.partition("-")[2])
    assert 1 <= periods_that_see_a_unit(tmp_path, database(3), every, unit, text) <= allowed


def test_the_data_is_not_its_own_stand_in_when_a_session_sees_a_part_of_it(tmp_path: Path) -> None:
    data, text = database(3), "SELECT COUNT(*) FROM orders"
    study = tulle.Ledger(tmp_path / "s.ledger").open(
        "shop", data, unit="participant-week", epsilon=1, every="week", version="1", date=MONDAY
    )
    assert study.dataset is not data
    for stand_in in (data, study.dataset):
        for act in (study.plan, study.ask):
            with pytest.raises(tulle.InputError, match="the dataset itself"):
                act(tulle.sql(text), epsilon=1, like=stand_in)
    assert study.remaining == 1


def test_a_version_with_other_periods_records_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin takes the custodian's word that each version has its own week alone."""
    honest = Account.divided
    monkeypatch.setattr(Account, "divided", lambda self, data: data.under(self.unit))
    for every, unit, text in CASES[:2]:
        assert periods_that_see_a_unit(tmp_path, database(3), every, unit, text) > 1
    monkeypatch.setattr(Account, "divided", honest)


def test_rows_over_a_path_by_their_own_time_alone_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin looks at one time of a row: its order may be of another week."""
    from tulle.sql.compile import owned_rows

    honest: Callable[..., list[Any]] = owned_rows._within_days

    def own(schema: Any, tie: Any) -> list[Any]:
        return honest(schema, tie) if tie.time is not None and tie.time[0] == "t" else []

    monkeypatch.setattr(owned_rows, "_within_days", own)
    assert periods_that_see_a_unit(tmp_path, database(3), *CASES[1]) > 1


def test_the_words_say_for_whom_it_is_for_good() -> None:
    def words(every: str, unit: str, *, carry: bool = False) -> str:
        return Renewal(Calendar(every), carry).words(Guarantee.of(unit, epsilon=1))

    assert words("week", "participant-week").endswith("in one of them alone: epsilon = 1 for good.")
    assert "in at most 2 of them: epsilon = 2 for good" in words("month", "participant-week")
    assert "in at most 54 of them: epsilon = 54" in words("week", "participant-year")
    for other in (words("week", "participant"), words("week", "participant-week", carry=True)):
        assert "for good" not in other
        assert "adds up" in other


def test_data_without_days_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    series = tulle.Series(["a"], [MONDAY], every="week", first=MONDAY, steps=2, bound=1)
    terms = {"epsilon": 1, "every": "week", "version": "1", "date": MONDAY}
    with pytest.raises(UnitError, match="of which day each record is"):
        ledger.open("trips", series, unit="participant-week", **terms)  # type: ignore[arg-type]
    assert ledger.accounts() == []
    study = ledger.open("shop", database(0), unit="participant-week", **terms)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="does not renew"):
        tulle.Stream(
            study, tulle.sql("SELECT COUNT(*) FROM orders"), every="week", first=MONDAY, steps=4,
            bound=1, epsilon=0.5, delta=1e-7,
        )  # fmt: skip
    assert ledger.debits("shop") == []
