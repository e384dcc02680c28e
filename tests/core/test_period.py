"""Days, weeks, months and years of the calendar."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tulle.core.errors import InputError
from tulle.core.period import MOST_IN_A_YEAR, WEEKDAYS, Calendar

DAYS = st.dates(date(1900, 1, 1), date(2200, 1, 1))


@given(DAYS, st.sampled_from(list(MOST_IN_A_YEAR)), st.sampled_from(WEEKDAYS))
def test_every_day_lies_in_one_period(day: date, every: str, begins: str) -> None:
    calendar = Calendar(every, "UTC", begins)
    number = calendar.number(day)
    first, last = calendar.first_day(number), calendar.last_day(number)
    assert first <= day <= last
    assert calendar.number(first) == calendar.number(last) == number
    assert calendar.number(last + timedelta(days=1)) == number + 1
    assert calendar.number(first - timedelta(days=1)) == number - 1
    if every == "week":
        assert WEEKDAYS[first.weekday()] == begins
        assert (last - first).days == 6


@pytest.mark.parametrize("every", MOST_IN_A_YEAR)
def test_the_most_periods_of_a_year_by_counting(every: str) -> None:
    counts = set()
    for begins in WEEKDAYS if every == "week" else ("monday",):
        calendar = Calendar(every, "UTC", begins)
        for year in range(1970, 2100):
            days = (date(year, 1, 1) + timedelta(days=step) for step in range(366))
            counts.add(len({calendar.number(day) for day in days if day.year == year}))
    assert max(counts) == MOST_IN_A_YEAR[every]


def test_a_moment_is_the_day_that_it_is_in_the_zone() -> None:
    zurich = Calendar.of("week", "Europe/Zurich")
    assert str(zurich.day("2026-03-29T00:30:00+01:00")) == "2026-03-29"
    assert str(zurich.day("2026-10-24T22:30:00Z")) == "2026-10-25"  # summer time, two hours
    assert str(zurich.day("2026-10-25T23:30:00Z")) == "2026-10-26"  # winter time, one hour
    assert str(zurich.day("2026-W46")) == "2026-11-09"
    for bad in ("yesterday", "2026-11-09T08:00:00", 5, None):
        with pytest.raises(InputError):
            zurich.day(bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Did you mean 'Europe/Zurich'"):
        Calendar.of("week", "Europe/Zuerich")
    with pytest.raises(InputError, match="day, week, month, year"):
        Calendar.of("fortnight")
