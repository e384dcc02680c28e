"""MIN, MAX and quantiles of dates and timestamps: answers are dates, and little is computed."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tulle
from tulle.core.codec import finite
from tulle.core.errors import InputError, QueryError
from tulle.core.release import Release
from tulle.sql.data import Database
from tulle.sql.queries import sql

RANGES = {
    "visit.day": ("2020-01-01", "2024-12-31"),
    "visit.number": (0, 9),
    "visit.moment": ("2020-01-01", "2024-12-31 23:59:59"),
}
GROUPS = {"kind": ["a", "b"]}


def rows() -> Any:
    connection = duckdb.connect()
    connection.execute(
        """CREATE TABLE visit AS SELECT range // 2 AS who, ['a', 'b'][range % 2 + 1] AS kind,
        DATE '2022-01-01' + CAST(range % 400 AS INTEGER) AS day,
        TIMESTAMP '2022-01-01 12:00:00' + to_seconds(range % 4000) AS moment,
        range % 9 AS number FROM range(4000)"""
    )
    return connection


def clinic(**more: Any) -> Database:
    return Database.connect(rows(), owners={"visit": "who"}, **{"ranges": RANGES, **more})


def ask(text: str, *, groups: Any = None, epsilon: float = 40.0, **more: Any) -> Release:
    question = sql(text, groups=groups)
    return tulle.release(clinic(), question, unit="participant", epsilon=epsilon, **more)


def test_answers_and_their_ends_are_dates() -> None:
    r = ask(
        "SELECT MIN(day) AS first, MAX(day) AS last, MEDIAN(moment) AS middle, "
        "MAX(day) - MIN(day) AS days FROM visit"
    )
    found = {name: values[0] for name, values in r.value.to_dict().items()}
    near = timedelta(days=40)
    assert date(2022, 1, 1) <= found["first"] < date(2022, 1, 1) + near
    assert date(2023, 2, 4) - near < found["last"] <= date(2023, 2, 4)
    assert found["first_low"] is found["last_high"] is None
    assert found["first"] <= found["first_high"]
    assert found["last_low"] <= found["last"]
    assert type(found["middle"]) is datetime
    assert found["middle_low"] <= found["middle"] <= found["middle_high"]
    assert found["days"] == (found["last"] - found["first"]).days
    written = json.loads(json.dumps(r.to_json()))
    assert Release.from_json(written).value == r.value
    assert json.loads(json.dumps(finite(r.value.to_dict())))["last"] == [str(found["last"])]
    assert str(found["last"]) in r.value.to_csv()
    assert str(found["last"]) in str(r)
    assert str(found["last"]) in r.report()


TRUTHS = (
    "SELECT MIN(day), MAX(day), QUANTILE_CONT(day, 0.3) FROM visit",
    "SELECT MIN(moment), MAX(moment), MEDIAN(moment) FROM visit",
    "SELECT kind, MAX(day) AS d, MAX(day) - MIN(day) AS n FROM visit GROUP BY kind ORDER BY d DESC",
    "SELECT kind, MAX(day) FROM visit GROUP BY kind HAVING MAX(day) > '2023-02-03'",
    "SELECT kind, MIN(day) FROM visit GROUP BY kind HAVING MIN(day) BETWEEN DATE '2022-01-01' "
    "AND DATE '2022-01-01' ORDER BY MIN(moment)",
    "SELECT kind, MAX(moment) FROM visit GROUP BY kind HAVING MAX(moment) = MIN(moment)",
    "SELECT kind, MAX(day), RANK() OVER (ORDER BY MAX(day)) FROM visit GROUP BY kind ORDER BY kind",
    "SELECT MAX(COALESCE(day, DATE '2021-01-01')) FROM visit WHERE who > 7",
    "SELECT MAX(CASE WHEN kind = 'a' THEN moment END), COUNT(*) FROM visit",
    "SELECT MEDIAN(last) FROM (SELECT who, MAX(day) AS last FROM visit GROUP BY who) AS t",
    "SELECT MAX(day) FROM visit WHERE day > DATE '2024-01-01'",
    "SELECT kind, COUNT(*) FROM visit WHERE day > DATE '2024-01-01' GROUP BY kind "
    "HAVING MAX(day) > '2020-02-01'",
)


@pytest.mark.parametrize("text", TRUTHS)
def test_the_truth_is_the_engines(text: str) -> None:
    question = sql(text, groups=GROUPS if "GROUP BY kind" in text else None)
    theirs = rows().execute(text).fetchall()
    mine = list(question.truth(clinic()).rows())
    assert len(mine) == len(theirs)
    for ours, row in zip(mine, theirs, strict=True):
        for one, other in zip(ours, row, strict=True):
            if isinstance(other, datetime):
                # DuckDB has hours of a quantile between two days, and parts of seconds.
                other = other.date() if type(one) is date else other.replace(microsecond=0)
            assert one == other, (text, ours, row)


REFUSED = {
    "SELECT MAX(day) + 1 FROM visit": "MAX(day) - MIN(day)",
    "SELECT MAX(moment) - MIN(moment) FROM visit": "it is a timestamp",
    "SELECT MAX(day) - MIN(moment) FROM visit": "is not supported",
    "SELECT COALESCE(MAX(day), 0) FROM visit": "it is a date",
    "SELECT ABS(MAX(day)) FROM visit": "it is a date",
    "SELECT CASE WHEN COUNT(*) > 1 THEN MAX(day) END FROM visit": "it is a date",
    "SELECT kind, LAG(MAX(day)) OVER (ORDER BY kind) FROM visit GROUP BY kind": "it is a date",
    "SELECT kind, MAX(day) FROM visit GROUP BY kind HAVING MAX(day) > 7": "of two kinds",
    "SELECT kind, MAX(day) FROM visit GROUP BY kind HAVING MAX(day) > 'noon'": "not a date",
    "SELECT kind, MAX(day) FROM visit GROUP BY kind HAVING MAX(day) > kind": "not a date",
    "SELECT kind, MAX(number) FROM visit GROUP BY kind HAVING MAX(number) > 'x'": "of two kinds",
    "SELECT kind, MAX(day) FROM visit GROUP BY kind HAVING NULLIF(MAX(day), 1) > 'x'": "two kinds",
    "SELECT kind, MAX(number) FROM visit GROUP BY kind HAVING 'x' = (MAX(number))": "of two kinds",
    "SELECT AVG(day) FROM visit": "MEDIAN(day)",
    "SELECT STDDEV(moment) FROM visit": "MEDIAN(moment)",
    "SELECT SUM(day) FROM visit": "DATE_DIFF",
    "SELECT MAX(day + INTERVAL 1 DAY) FROM visit": "ranges=",
    "SELECT MAX(CAST(day AS VARCHAR)) FROM visit": "it is a text",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_computed_with_dates_is_refused_before_the_price(text: str) -> None:
    with pytest.raises(QueryError) as error:
        sql(text, groups=GROUPS if "GROUP BY" in text else None).bind(clinic())
    assert REFUSED[text] in str(error.value)


def test_bounds_of_dates_cannot_be_bought() -> None:
    question = sql("SELECT MAX(day) FROM visit", ranges="private")
    with pytest.raises(QueryError, match="it is a date"):
        question.bind(clinic(ranges=None))
    with pytest.raises(QueryError, match=r"no range of visit\.day"):
        sql("SELECT MAX(day) FROM visit").bind(clinic(ranges=None))


def test_keys_that_are_found_have_dates_too() -> None:
    r = ask("SELECT kind, MAX(day) AS last FROM visit GROUP BY kind", delta=1e-6)
    assert list(r.value["kind"]) == ["a", "b"]
    assert all(date(2022, 9, 1) < last <= date(2023, 2, 4) for last in r.value["last"])


def test_the_error_is_predicted_in_days() -> None:
    question = sql("SELECT MEDIAN(day) AS middle FROM visit")
    plan = tulle.plan(clinic(), question, unit="participant", epsilon=1.0, people=2000)
    ((_, law),) = plan.columns
    assert law is not None
    assert 0 < law.of_one().half_width(0.5) < 100


def test_ranges_of_dates_in_toml_and_bad_ones(tmp_path: Path) -> None:
    (tmp_path / "visit.csv").write_text("who,day,at\n1,2021-05-01,2021-05-01 10:00:00\n")
    file = tmp_path / "visit.toml"
    file.write_text(
        'url = "duckdb://"\n[owners]\nvisit = "who"\n[tables]\nvisit = "visit.csv"\n'
        '[types]\n"visit.day" = "DATE"\n"visit.at" = "TIMESTAMP"\n[ranges]\n'
        '"visit.day" = [2022-01-01, 2022-12-31]\n"visit.at" = "2020-01-01, 2022-01-01 06:00:00"\n'
    )
    database = Database.from_toml(file)
    assert database.facts("participant")["ranges"] == {
        "visit.day": ["2022-01-01", "2022-12-31"],
        "visit.at": ["2020-01-01 00:00:00", "2022-01-01 06:00:00"],
    }
    # What lies beyond is moved to the nearer end, whatever is asked.
    assert sql("SELECT COUNT(*) FROM visit WHERE day = '2022-01-01'").truth(database) == 1
    assert sql("SELECT MAX(day) AS d FROM visit").truth(database)["d"] == (date(2022, 1, 1),)
    for wrong in (
        ("2022-01-02", "2022-01-01"),
        (0, 1),
        ("soon", None),
        ("2022-01-01T10:00:00", "2023-01-01"),
        ("2022-01-01+01:00", None),
        ("2022-01-01",),
        (math.nan, None),
    ):
        with pytest.raises(InputError, match="two days"):
            Database.connect(rows(), owners={"visit": "who"}, ranges={"visit.day": wrong})


def test_the_time_of_a_record_has_no_range_where_it_tells_units_apart() -> None:
    database = clinic(times={"visit": "day"})
    question = sql("SELECT COUNT(*) FROM visit")
    assert tulle.plan(database, question, unit="participant", epsilon=1.0) is not None
    with pytest.raises(InputError, match="when a record is from"):
        tulle.plan(database, question, unit="participant-day", epsilon=1.0)
