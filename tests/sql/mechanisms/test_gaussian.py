"""Groups with Gaussian noise, from the statement to the release."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Composed, noise_of, price
from tulle.core.guarantee import largest_rho
from tulle.ledger.answer import plan_for
from tulle.ledger.divergence import concentration
from tulle.sql.queries import one_aggregate

DAYS = [date(2024, 1, 1) + timedelta(days=day) for day in range(60)]
UNIT = {"unit": "participant"}
WITH_DELTA: dict[str, Any] = {**UNIT, "epsilon": 4, "delta": 1e-6}
BY_DAY = "SELECT day, COUNT(*) FROM call GROUP BY day"


@pytest.fixture(scope="module")
def calls() -> tulle.Database:
    """Calls between two people each, on sixty days; one of them calls a great deal."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE call AS SELECT "
        "(range * 7919) % 3000 AS a, CASE WHEN range % 40 = 0 THEN 0 ELSE (range * 104729) % 3000 "
        "END AS b, DATE '2024-01-01' + CAST(range % 60 AS INTEGER) AS day, range % 9 - 2 AS cost "
        "FROM range(60000)"
    )
    connection.execute("CREATE TABLE visit AS SELECT a AS person, day, cost FROM call")
    return tulle.Database.connect(
        connection,
        owners={"call": ["a", "b"], "visit": "person"},
        ranges={"call.cost": (-2, 6), "visit.cost": (-2, 6)},
    )


def relative(release: Any, truth: Any) -> float:
    return float(np.linalg.norm(np.asarray(release.value, float) - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize(
    "text", [BY_DAY, "SELECT day, SUM(cost) FROM call GROUP BY day"], ids=["count", "signed sum"]
)
def test_many_groups_of_several_people_have_less_error_with_a_delta(
    calls: tulle.Database, text: str
) -> None:
    question = one_aggregate(text, groups={"day": DAYS})
    truth = np.asarray(question.truth(calls), float)
    errors = {}
    for delta in (0, 1e-6):
        found = [tulle.release(calls, question, **UNIT, epsilon=4, delta=delta) for _ in range(3)]
        assert {one.mechanism for one in found} == {"gaussian" if delta else "recursive"}
        errors[delta] = np.median([relative(one, truth) for one in found])
    assert errors[1e-6] < 0.6 * errors[0]


def test_few_groups_stay_with_laplace_noise(calls: tulle.Database) -> None:
    for count, mechanism in ((2, "recursive"), (60, "gaussian")):
        question = one_aggregate(BY_DAY, groups={"day": DAYS[:count]})
        plan = plan_for(calls, question, **WITH_DELTA)
        assert plan.mechanism == mechanism
        assert {offer.mechanism for offer in plan.offers} == {"recursive", "gaussian"}
        assert plan_for(calls, question, **UNIT, epsilon=4).mechanism == "recursive"


def test_rows_of_one_person_choose_by_what_a_stand_in_shows() -> None:
    """Everyone on every day: cutting in L2 wins. Everyone on one day: cutting in L1 does."""
    found = {}
    for name, person in (("every day", "range // 60"), ("one day", "range % 3000")):
        connection = duckdb.connect()
        connection.execute(
            f"CREATE TABLE visit AS SELECT {person} AS person, "
            "DATE '2024-01-01' + CAST(range % 60 AS INTEGER) AS day FROM range(24000)"
        )
        town = tulle.Database.connect(connection, owners={"visit": "person"})
        question = one_aggregate(
            "SELECT day, COUNT(*) FROM visit GROUP BY day", groups={"day": DAYS}
        )
        plan = plan_for(town, question, **WITH_DELTA, like=town)
        found[name] = plan.mechanism
        truth = np.asarray(question.truth(town), float)
        errors = {}
        for offer in plan.offers:
            drawn = [
                tulle.release(town, question, **WITH_DELTA, mechanism=offer.mechanism)
                for _ in range(5)
            ]
            errors[offer.mechanism] = np.mean([relative(one, truth) for one in drawn])
            mean = np.mean([np.abs(np.asarray(one.value) - truth).mean() for one in drawn])
            # What was predicted on the stand-in, which is the data here.
            assert mean < 2.5 * offer.prediction.rank() + 1
        assert errors[found[name]] == min(errors.values())
    assert found == {"every day": "gaussian", "one day": "recursive"}


@pytest.mark.parametrize(
    "text",
    [BY_DAY, "SELECT day, COUNT(DISTINCT cost) FROM call GROUP BY day"],
    ids=["rows", "ways"],
)
def test_a_stand_in_tells_the_error_over_rows_of_several_people(
    calls: tulle.Database, text: str
) -> None:
    question = one_aggregate(text, groups={"day": DAYS[:12]})
    truth = np.asarray(question.truth(calls), float)
    plan = plan_for(calls, question, **WITH_DELTA, like=calls)
    assert {offer.mechanism for offer in plan.offers} == {"recursive", "gaussian"}
    for offer in plan.offers:
        drawn = [
            tulle.release(calls, question, **WITH_DELTA, mechanism=offer.mechanism)
            for _ in range(3)
        ]
        mean = np.mean([np.abs(np.asarray(one.value) - truth).mean() for one in drawn])
        assert mean < 4 * offer.prediction.rank() + 1
        # Counts that noise would take below zero are zero: then less is wrong than predicted.
        assert offer.prediction.rank() < 4 * mean + truth.mean()


def test_rows_of_nobody_are_public() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE place AS SELECT range % 20 AS kind FROM range(200)")
    connection.execute("CREATE TABLE call AS SELECT 1 AS a, 2 AS b")
    town = tulle.Database.connect(connection, owners={"call": ["a", "b"]}, public=["place"])
    question = tulle.sql(
        "SELECT kind, COUNT(*) FROM place GROUP BY kind", groups={"kind": list(range(20))}
    )
    release = tulle.release(town, question, **WITH_DELTA, mechanism="gaussian")
    assert len(release.value) == 20


def test_the_price_is_one_rho_however_many_groups(calls: tulle.Database) -> None:
    for count in (12, 60):
        question = one_aggregate(BY_DAY, groups={"day": DAYS[:count]})
        plan = plan_for(calls, question, **WITH_DELTA, mechanism="gaussian")
        assert noise_of(plan.event)
        rho, delta = concentration(plan.event), Fraction(1, 10**6)
        assert rho is not None
        settings = plan.chosen.settings
        assert Fraction(settings["rho_select"]) + Fraction(settings["rho_answer"]) == rho
        # By itself the noise is less than rho alone would ask for, and costs no more than 4.
        assert rho > largest_rho(Fraction(4), delta) * Fraction(11, 10)
        assert 3.99 < price(plan.event, delta)[0] <= 4
        assert settings["groups_per_person"] == count
        # For accounts that add rho up it is what it was.
        booked = plan_for(calls, question, **WITH_DELTA, mechanism="gaussian", composed=True)
        assert concentration(booked.event) == largest_rho(Fraction(4), delta)


def test_tables_of_several_aggregates_share_one_rho(calls: tulle.Database) -> None:
    text = "SELECT day, COUNT(*) AS n, SUM(cost) AS paid, AVG(cost) AS mean FROM call GROUP BY day"
    question = tulle.sql(text, groups={"day": DAYS})
    plan = plan_for(calls, question, **WITH_DELTA)
    assert plan.mechanism == "gaussian"
    rho = largest_rho(Fraction(4), Fraction(1, 10**6))
    drawn = [part.event for part in plan.parts]
    assert len(drawn) > 1
    assert all(noise_of(event) for event in drawn)
    total = sum(concentration(event) or 0 for event in drawn)
    assert total > rho * Fraction(11, 10)
    # The price of the whole is that of all noise together, and what was allowed.
    assert plan.guarantee.epsilon is not None
    together = Composed(tuple(drawn))
    assert price(together, Fraction(1, 10**6))[0] == plan.guarantee.epsilon
    assert 3.95 < plan.guarantee.epsilon <= 4
    booked = plan_for(calls, question, **WITH_DELTA, composed=True)
    added = sum(concentration(part.event) or 0 for part in booked.parts)
    assert rho * Fraction(999, 1000) <= added <= rho
    assert plan.guarantee.delta == Fraction(1, 10**6)
    # Each by itself would have had the rho of its share of epsilon and delta.
    alone = [largest_rho(4 * share, share / 10**6) / (rho * share) for share in plan.shares]
    assert max(alone) < 0.75
    release = tulle.release(calls, question, **WITH_DELTA)
    assert release.guarantee == plan.guarantee
    assert len(release.value["n"]) == len(DAYS)


def test_a_batch_on_an_account_that_adds_up_tightly_has_gaussian_noise(
    calls: tulle.Database, tmp_path: Path
) -> None:
    ledger = tulle.Ledger(tmp_path / "calls.ledger")
    study = ledger.open("calls", calls, **UNIT, epsilon=4, delta=1e-6)
    sums = tulle.sql("SELECT day, SUM(cost) FROM call GROUP BY day", groups={"day": DAYS})
    answers = study.ask_all([tulle.sql(BY_DAY, groups={"day": DAYS}), sums], share=1)
    assert [answer.mechanism for answer in answers] == ["gaussian", "gaussian"]
    assert study.remaining < 0.2


def test_groups_may_be_dates_and_times() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visit AS SELECT range AS person, DATE '2024-01-01' AS day, "
        "TIMESTAMP '2024-01-01 12:30:00' AS moment FROM range(10)"
    )
    town = tulle.Database.connect(connection, owners={"visit": "person"})
    for column, values in (("day", DAYS[:2]), ("moment", [datetime(2024, 1, 1, 12, 30)])):
        question = one_aggregate(
            f"SELECT {column}, COUNT(*) FROM visit GROUP BY {column}", groups={column: values}
        )
        assert np.asarray(question.truth(town)).tolist() == [10, 0][: len(values)]
        release = tulle.release(town, question, **UNIT, epsilon=1000)
        assert np.asarray(release.value).tolist() == [10, 0][: len(values)]


def test_what_cannot_be_drawn_is_refused_before_it_is_paid_for(calls: tulle.Database) -> None:
    question = tulle.sql(BY_DAY, groups={"day": DAYS})
    with pytest.raises(QueryError, match="needs a delta"):
        plan_for(calls, question, **UNIT, epsilon=1, mechanism="gaussian")
    with pytest.raises(InputError, match="has no option"):
        plan_for(calls, question, **WITH_DELTA, mechanism="gaussian", options={"bound": 3})
    tiny: dict[str, Any] = {**UNIT, "epsilon": 1e-9, "delta": 1e-300}
    with pytest.raises(QueryError, match="too small for the noise on 60 groups"):
        plan_for(calls, question, **tiny, mechanism="gaussian")
    # Nobody named it: then another mechanism answers.
    assert plan_for(calls, question, **tiny).mechanism == "recursive"
