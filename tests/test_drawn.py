"""The random cases of slow suites: replayed by their seed, and bounded in time."""

import time

import pytest
from tests.drawn import MINUTES, SEED, Drawn, are_enough, seconds_of


@pytest.fixture(autouse=True)
def chosen_seed(monkeypatch):
    monkeypatch.setenv(SEED, "5")


def take(cases, count):
    return [one for one, _ in zip(cases, range(count), strict=False)]


def test_one_seed_gives_the_same_cases_and_another_gives_others(monkeypatch):
    first = take(Drawn("a test", 60).seeds(), 20)
    assert take(Drawn("a test", 60).seeds(), 20) == first
    assert take(Drawn("another", 60).seeds(), 20) != first
    monkeypatch.setenv(SEED, "6")
    assert take(Drawn("a test", 60).seeds(), 20) != first


def test_all_of_a_list_is_tried_once_where_there_is_time():
    found = list(Drawn("a test", 60).shuffled(range(100)))
    assert sorted(found) == list(range(100))
    assert found != sorted(found)


def test_cases_end_with_the_time_and_one_is_tried_at_least():
    assert len(list(Drawn("a test", 0).seeds())) == 1
    assert len(list(Drawn("a test", 0).shuffled(range(100)))) == 1
    begun = time.monotonic()
    assert len(list(Drawn("a test", 0.05).seeds())) > 1
    assert 0.05 <= time.monotonic() - begun < 5


def test_minutes_come_from_the_environment(monkeypatch):
    monkeypatch.setenv(MINUTES, "0.5")
    assert seconds_of(MINUTES) == 30
    monkeypatch.delenv(MINUTES)
    assert seconds_of(MINUTES) == 1200


def test_a_part_or_a_number_must_be_answered():
    assert are_enough(5, 1000, 5)
    assert not are_enough(4, 1000, 5)
    assert are_enough(200, 1000, 0.2)
    assert not are_enough(199, 1000, 0.2)
