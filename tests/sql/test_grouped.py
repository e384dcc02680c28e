"""Groups with Gaussian noise, from the statement to the release."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Gaussian
from tulle.core.guarantee import epsilon_of_rho, largest_rho
from tulle.ledger.session import plan_for

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
    question = tulle.sql(text, groups={"day": DAYS})
    truth = np.asarray(question.truth(calls), float)
    errors = {}
    for delta in (0, 1e-6):
        found = [tulle.release(calls, question, **UNIT, epsilon=4, delta=delta) for _ in range(3)]
        assert {one.mechanism for one in found} == {"gaussian" if delta else "recursive"}
        errors[delta] = np.median([relative(one, truth) for one in found])
    assert errors[1e-6] < 0.6 * errors[0]


def test_few_groups_stay_with_laplace_noise(calls: tulle.Database) -> None:
    for count, mechanism in ((2, "recursive"), (60, "gaussian")):
        question = tulle.sql(BY_DAY, groups={"day": DAYS[:count]})
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
        question = tulle.sql("SELECT day, COUNT(*) FROM visit GROUP BY day", groups={"day": DAYS})
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


def test_the_price_is_one_rho_however_many_groups(calls: tulle.Database) -> None:
    for count in (12, 60):
        question = tulle.sql(BY_DAY, groups={"day": DAYS[:count]})
        plan = plan_for(calls, question, **WITH_DELTA, mechanism="gaussian")
        rho = largest_rho(Fraction(4), Fraction(1, 10**6))
        assert plan.event == Gaussian(rho)
        settings = plan.chosen.settings
        assert Fraction(settings["rho_select"]) + Fraction(settings["rho_answer"]) == rho
        assert epsilon_of_rho(rho, Fraction(1, 10**6)) <= 4
        assert settings["spread"] == count


def test_tables_of_several_aggregates_use_it(calls: tulle.Database) -> None:
    question = tulle.sql(
        "SELECT day, COUNT(*) AS n, SUM(cost) AS paid FROM call GROUP BY day", groups={"day": DAYS}
    )
    release = tulle.release(calls, question, **WITH_DELTA)
    assert release.mechanism == "gaussian"
    assert release.guarantee.epsilon is not None
    assert release.guarantee.epsilon <= 4
    assert release.guarantee.delta <= Fraction(1, 10**6)
    truth = question.truth(calls)
    assert abs(sum(release.value["n"]) / sum(truth["n"]) - 1) < 0.5


def test_groups_may_be_dates_and_times() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visit AS SELECT range AS person, DATE '2024-01-01' AS day, "
        "TIMESTAMP '2024-01-01 12:30:00' AS moment FROM range(10)"
    )
    town = tulle.Database.connect(connection, owners={"visit": "person"})
    for column, values in (("day", DAYS[:2]), ("moment", [datetime(2024, 1, 1, 12, 30)])):
        question = tulle.sql(
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
