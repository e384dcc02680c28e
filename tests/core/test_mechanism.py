from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from typing import Any

import pytest

from tulle.core.mechanism import Settings
from tulle.genomes.top import TopScoresSettings
from tulle.relations.mechanisms.race import RaceSettings
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.sql.mechanisms.truncation import DatabaseRaceSettings, DatabaseRecursiveSettings

MADE: list[Settings] = [
    RecursiveSettings(1.5, 0.1, 0.5, 2.0, Fraction(1, 4), Fraction(3, 4)),
    DatabaseRecursiveSettings(1.5, 0.1, 0.5, 2.0, Fraction(1, 3), Fraction(2, 3), 90, True),
    RaceSettings(Fraction(1, 3), 12, Fraction(7, 10)),
    DatabaseRaceSettings(Fraction(100), 7, Fraction(1), 4),
    TopScoresSettings(9, 2, 4, Fraction(1, 8), (1, -3), Fraction(5, 2), Fraction(1, 3)),
    TopScoresSettings(9, 2, 4, Fraction(1, 8), None, Fraction(5, 2)),
]


@pytest.mark.parametrize("settings", MADE, ids=lambda one: type(one).__name__)
def test_settings_survive_json(settings: Settings) -> None:
    stored: dict[str, Any] = json.loads(json.dumps(dict(settings)))
    again = type(settings).read({**stored, "thresholds found": [3.0]})
    assert again == settings
    assert hash(again) == hash(settings)
    for one in fields(settings):
        value, other = getattr(settings, one.name), getattr(again, one.name)
        assert (value, type(value)) == (other, type(other))


def test_settings_are_read_as_they_were_booked() -> None:
    """The form in which ledgers and releases hold them."""
    stored = {
        "theta": 1.0,
        "beta": 0.065,
        "start": 1.0,
        "reach": 1.75,
        "epsilon_select": "0.3",
        "epsilon_answer": "0.7",
        "groups": 1,
        "single_owner": True,
    }
    found = DatabaseRecursiveSettings.read(stored)
    assert found == stored
    assert list(found) == list(stored)
    assert found.epsilon_select == Fraction(3, 10)
    with pytest.raises(KeyError):
        DatabaseRecursiveSettings.read({"theta": 1.0})
    with pytest.raises(KeyError):
        found["nothing"]
    with pytest.raises(FrozenInstanceError):
        found.theta = 2.0  # type: ignore[misc]


def test_settings_that_differ_are_not_equal() -> None:
    """The twin: a mapping that leaves a field out would book two questions as one."""
    base = MADE[1]
    for one in fields(base):
        value = getattr(base, one.name)
        changed = {**base, one.name: not value if value is True else str(2 * value + 1)}
        assert type(base).read(changed) != base, one.name


def test_typed_settings_are_taken_as_they_are() -> None:
    base = MADE[1]
    assert RecursiveSettings.read(base) is base
