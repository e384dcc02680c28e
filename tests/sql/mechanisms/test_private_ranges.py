"""Bounds that are bought, through the whole path."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import pytest

import tulle
from tulle.core import wording
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Composed, price
from tulle.ledger.answer import plan_for
from tulle.noise.watch import watch
from tulle.sql.unranged import UnrangedTable

WORDS = "SELECT AVG(pay) AS mean, MAX(pay) AS most, SUM(hours) AS total, COUNT(*) AS n FROM staff"


def staff(rows: str = "range(4000)", pay: str = "100 + range % 100") -> Any:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE staff AS SELECT range // 2 AS who, {pay} AS pay, range % 8 + 0.5 AS hours, "
        f"CASE WHEN range % 2 = 0 THEN 'a' ELSE 'b' END AS dept FROM {rows};"
        "CREATE TABLE edge (a INTEGER, b INTEGER, w INTEGER)"
    )
    return tulle.Database.connect(connection, owners={"staff": "who", "edge": ["a", "b"]})


@pytest.fixture(scope="module")
def people() -> Any:
    return staff()


def test_bounds_are_found_and_said(people: Any) -> None:
    question = tulle.sql(WORDS, ranges="private")
    plan = plan_for(people, question, unit="participant", epsilon=4.0)
    assert any("each bound costs epsilon 0.5" in note for note in plan.notes())
    with watch() as events:
        r = tulle.release(people, question, unit="participant", epsilon=4.0)
    spent, delta = price(Composed(tuple(events)))
    assert 3.99 < spent <= 4
    assert delta == 0
    assert r.parameters["ranges_found"]["pay"] == [64.0, 256.0]
    found = r.value.to_dict()
    assert found["mean"][0] == pytest.approx(149.5, abs=4)
    assert found["most"][0] == pytest.approx(199, abs=12)
    assert found["total"][0] == pytest.approx(16000, rel=0.1)
    said = wording.leaves_out(tulle.Release.from_json(r.to_json()))
    assert "clipped to the bounds found, 64 and 256" in said
    assert "is not known" in said


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("SELECT MEDIAN(pay) AS m, AVG(hours) AS h FROM staff", {}),
        ("SELECT dept, MAX(pay) AS m FROM staff GROUP BY dept", {"groups": {"dept": ["a", "b"]}}),
        ("SELECT dept, MIN(pay) AS m FROM staff GROUP BY dept", {}),
    ],
)
def test_public_facts_are_enough_for_a_plan(people: Any, text: str, options: Any) -> None:
    from tulle.planning.planner import make_plan

    unit = people.check_unit("participant")
    asked = tulle.sql(text, ranges="private", **options)
    terms: Any = {"unit": unit, "epsilon": Fraction(2), "delta": Fraction(1, 10**6)}
    alone = make_plan(asked, kind="database", facts=people.facts(unit), **terms)
    here = plan_for(people, asked, unit="participant", epsilon=2.0, delta=1e-6)
    assert alone.canonical() == here.canonical()


def test_only_ends_that_are_missing_are_bought(people: Any) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range AS who, range % 50 AS x FROM range(3000)")
    half = tulle.Database.connect(connection, owners={"t": "who"}, ranges={"t.x": (0, "inf")})
    asked = tulle.sql("SELECT AVG(x) AS mean FROM t", ranges="private")
    r = tulle.release(half, asked, unit="participant", epsilon=2.0)
    assert r.parameters["epsilon_end"] == r.parameters["epsilon_ranges"] == "1"
    assert r.parameters["ranges_found"] == {"x": [0.0, 64.0]}
    whole = tulle.Database.connect(connection, owners={"t": "who"}, ranges={"t.x": (0, 50)})
    with pytest.raises(QueryError, match="nothing to buy"):
        plan_for(whole, asked, unit="participant", epsilon=1.0)


def test_of_what_is_computed_inside(people: Any) -> None:
    text = "SELECT MEDIAN(n) AS middle FROM (SELECT who, SUM(pay) AS n FROM staff GROUP BY who) t"
    with pytest.raises(QueryError, match='ranges="private"'):
        plan_for(people, tulle.sql(text), unit="participant", epsilon=1.0)
    r = tulle.release(people, tulle.sql(text, ranges="private"), unit="participant", epsilon=4.0)
    assert r.parameters["ranges_found"] == {"n": [128.0, 512.0]}
    assert r.value["middle"][0] == pytest.approx(299, abs=25)


def test_together_with_groups_and_with_keys_that_are_found(people: Any) -> None:
    text = "SELECT dept, AVG(pay) AS mean, COUNT(*) AS n FROM staff GROUP BY dept ORDER BY n"
    listed = tulle.sql(text, groups={"dept": ["a", "b", "c"]}, ranges="private")
    r = tulle.release(people, listed, unit="participant", epsilon=6.0)
    assert sorted(r.value["dept"]) == ["a", "b", "c"]
    found = tulle.sql(text, ranges="private", keys_per_person=2)
    with watch() as events:
        r = tulle.release(people, found, unit="participant", epsilon=6.0, delta=1e-6)
    assert price(Composed(tuple(events)))[0] <= 6
    assert sorted(r.value["dept"]) == ["a", "b"]
    assert list(r.value["mean"]) == pytest.approx([149.5, 149.5], abs=8)
    assert r.parameters["epsilon_ranges"] == "3"


@pytest.mark.parametrize(
    "pay",
    [
        "NULL::DOUBLE",
        "'nan'::DOUBLE",
        "'inf'::DOUBLE",
        "CASE WHEN range % 2 = 0 THEN '-inf'::DOUBLE ELSE 1e308 END",
        "9223372036854775807 - range",
        "(-9223372036854775807)::BIGINT",
        "0.0::DOUBLE",
    ],
)
def test_no_value_makes_it_fail(pay: str) -> None:
    text = "SELECT VAR_SAMP(pay) AS v, MEDIAN(pay) AS m FROM staff"
    asked = tulle.sql(text, ranges="private")
    for rows in ("range(40)", "range(1)")[: 2 if "nan" in pay else 1]:
        r = tulle.release(staff(rows, pay), asked, unit="participant", epsilon=1.0)
        assert set(r.value.names) >= {"v", "m"}


def test_nobody_has_an_answer_too() -> None:
    asked = tulle.sql("SELECT VAR_SAMP(pay) AS v, MEDIAN(pay) AS m FROM staff", ranges="private")
    r = tulle.release(staff("range(0)"), asked, unit="participant", epsilon=1.0)
    assert set(r.value.names) >= {"v", "m"}


def test_whatever_bounds_are_found_the_answers_can_be_bought(people: Any) -> None:
    """No pair of bounds leads to a refusal once the price is paid."""
    text = "SELECT AVG(pay) AS a, VAR_POP(hours) AS v, MEDIAN(hours) AS m, MAX(pay) AS b FROM staff"
    asked = tulle.sql(text, ranges="private").bind(people)
    assert isinstance(asked, UnrangedTable)
    assert asked.bound is not None
    missing = [one for one, _ in asked.bound.missing]
    for low, high in ((0, 0), (0, -1), (-1, -1), ("zero", "zero")):
        drawn = {}
        for one in missing:
            cells = [
                {"zero": one.cells.side}.get(end, end) % one.cells.count  # type: ignore[call-overload]
                for end in (low, high)
            ]
            drawn[one.name] = one.joined(dict(zip((Fraction(0), Fraction(1)), cells, strict=True)))
        plan = plan_for(people, asked.within(drawn, missing), unit="participant", epsilon="1e-4")
        assert plan.parts


def test_what_is_refused_says_why(people: Any) -> None:
    several = tulle.sql("SELECT AVG(w) AS mean FROM edge", ranges="private")
    with pytest.raises(QueryError, match="need several people"):
        plan_for(people, several, unit="participant", epsilon=1.0)
    with pytest.raises(QueryError, match="nothing to buy"):
        plan_for(
            people,
            tulle.sql("SELECT COUNT(*) FROM staff", ranges="private"),
            unit="participant",
            epsilon=1.0,
        )
    with pytest.raises(InputError, match="can only be 'private'"):
        tulle.sql("SELECT COUNT(*) FROM staff", ranges={"pay": (0, 1)})
    with pytest.raises(InputError, match="too small"):
        plan_for(people, tulle.sql(WORDS, ranges="private"), unit="participant", epsilon="1e-9")


def test_the_identical_question_is_free_and_another_is_not(people: Any, tmp_path: Any) -> None:
    ledger = tulle.Ledger(tmp_path / "a.ledger")
    study = ledger.open("staff", people, unit="participant", epsilon=10)
    text = "SELECT AVG(pay) AS mean FROM staff"
    first = study.ask(tulle.sql(text, ranges="private"), epsilon=1.0)
    assert study.ask(tulle.sql(text.lower(), ranges="private"), epsilon=1.0).kept
    assert first.mechanism == "private_ranges"
    assert not study.ask(tulle.sql(text), epsilon=1.0).kept
