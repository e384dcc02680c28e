"""How many people contribute, and what a plan makes of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np

import tulle
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource
from tulle.noise.watch import watch

PERSON: dict[str, Any] = {"unit": "participant"}


def test_everybody_with_a_record_in_the_grid_counts_once() -> None:
    trips = tulle.Contributions(
        [1, 1, 2, 3, 4],
        [0, 1, 0, 0, 9],
        [0] * 5,
        [5, 5, 1, -2, 1],
        rows=2,
        columns=1,
        outside="drop",
    )
    assert tulle.participants().truth(trips) == 3
    assert tulle.release(trips, tulle.participants(), epsilon=60.0, **PERSON).value == 3


def test_in_a_database() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE trip AS SELECT i % 70 AS rider, i % 7 AS origin, i % 5 AS goal "
        "FROM range(1000) t(i)"
    )
    database = tulle.Database.connect(connection, owners={"trip": "rider"})
    stored = tulle.Contributions.from_query(
        database, "SELECT origin, goal FROM trip", rows=7, columns=5
    )
    found = tulle.release(stored, tulle.participants(), epsilon=60.0, **PERSON)
    assert found.value == 70


def test_noise_is_paid_for_and_has_the_law_that_is_said() -> None:
    trips = tulle.Contributions(range(500), [0] * 500, [0] * 500, rows=1, columns=1)
    with watch() as events:
        release = tulle.release(trips, tulle.participants(), epsilon=0.5, **PERSON)
    assert release.guarantee.epsilon == Fraction(1, 2)
    assert len(events) == 1
    drawn = [
        tulle.release(
            trips, tulle.participants(), epsilon=0.5, source=SeededSource(seed), **PERSON
        ).value
        for seed in range(300)
    ]
    # The deviation of Laplace noise of scale 2.
    assert 2.2 < np.std(drawn) < 3.5
    assert abs(np.mean(drawn) - 500) < 0.8


def test_a_plan_tells_what_clipping_takes_away_once_the_number_is_known() -> None:
    """A reference of a fifth of the people: without their number a fifth of it is planned."""
    generator = np.random.default_rng(5)
    who, size = np.arange(6000), np.ceil(generator.lognormal(1, 1.2, 6000))
    place = generator.integers(0, 4, 6000)
    few = who % 5 == 0
    public = tulle.Contributions(who[few], place[few], place[few] * 0, size[few], rows=4, columns=1)
    data = tulle.Contributions(
        who[~few], place[~few], place[~few] * 0, size[~few], rows=4, columns=1
    )
    people = tulle.release(data, tulle.participants(), epsilon=0.05, **PERSON).value
    asked: dict[str, Any] = {**PERSON, "epsilon": 1.0, "mechanism": "block_laplace"}
    known = tulle.weights(reference=public, about=people)
    planned = plan_for(data, known, **asked).chosen.prediction.mean_error
    seen = np.mean(
        [np.abs(tulle.release(data, known, **asked).value - data.totals()).mean() for _ in range(5)]
    )
    blind = plan_for(data, tulle.weights(reference=public), **asked).chosen.prediction.mean_error
    assert planned is not None
    assert blind is not None
    assert 0.5 < planned / seen < 2
    assert blind / seen < 0.5
