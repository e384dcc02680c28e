"""Statements with several aggregates: what is bought, what it costs, what comes back."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import tulle
from tulle.core.events import Composed, price
from tulle.ledger.answer import draw, plan_for
from tulle.noise import SeededSource
from tulle.noise.watch import watch
from tulle.sql.tables.question import SqlTable, _shown, _whole_ends

EVERYTHING = (
    "SELECT dept, COUNT(*) AS n, SUM(pay) AS total, AVG(pay) AS mean, STDDEV_POP(pay) AS spread, "
    "COUNT_IF(pay > 50) AS high, AVG(age) FILTER (WHERE pay > 20) AS age, MEDIAN(pay) AS middle, "
    "100 * SUM(pay) / COUNT(*) AS share FROM staff GROUP BY dept"
)
DEPTS = {"dept": ["a", "b", "none"]}


@pytest.fixture(scope="module")
def staff() -> Any:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE staff AS SELECT range AS who, (range * 37) % 101 AS pay, "
        "CASE WHEN range % 9 = 0 THEN NULL ELSE 20 + range % 45 END AS age, "
        "CASE WHEN range % 3 = 0 THEN 'a' ELSE 'b' END AS dept FROM range(3000);"
        "CREATE TABLE edge AS SELECT range % 50 AS a, (range * 7) % 50 AS b, "
        "range % 11 AS w FROM range(200)"
    )
    return tulle.Database.connect(
        connection,
        owners={"staff": "who", "edge": ["a", "b"]},
        ranges={"staff.pay": (0, 100), "edge.w": (0, 10)},
    )


def bought(database: Any, text: str, groups: Any = None) -> list[str]:
    question = tulle.sql(text, groups=groups).bind(database)
    return [str(getattr(part, "text", part)) for part in question.parts()]


def test_what_is_shared_is_bought_once(staff: Any) -> None:
    listed = bought(
        staff,
        "SELECT AVG(pay), VAR_POP(pay), STDDEV_SAMP(pay), COUNT(pay), AVG(pay) * 2, "
        "COUNT(*), COUNT_IF(pay > 3), COUNT(*) FILTER (WHERE pay > 3) FROM staff",
    )
    assert listed == [
        "SELECT COUNT(pay) FROM staff",
        "SELECT SUM(CAST(pay AS DOUBLE) - 50.0) FROM staff",
        "SELECT SUM(ABS((CAST(pay AS DOUBLE) - 50.0) * (CAST(pay AS DOUBLE) - 50.0))) FROM staff",
        "SELECT COUNT(*) FROM staff",
        "SELECT COUNT(CASE WHEN pay > 3 THEN 1 END) FROM staff",
    ]


def test_averages_are_taken_around_what_suits_the_rows(staff: Any) -> None:
    # The sum is there already; the middle; an end, where signs are paid for one by one.
    assert "SELECT SUM(pay) FROM staff" in bought(staff, "SELECT SUM(pay), AVG(pay) FROM staff")
    assert "SELECT SUM(CAST(pay AS DOUBLE) - 50.0) FROM staff" in bought(
        staff, "SELECT AVG(pay) FROM staff"
    )
    assert "SELECT SUM(w) FROM edge" in bought(staff, "SELECT AVG(w) FROM edge")
    # Without a range an average can still be had.
    assert "SELECT SUM(age) FROM staff" in bought(staff, "SELECT AVG(age) FROM staff")


def test_a_table_has_keys_columns_and_ends(staff: Any) -> None:
    r = tulle.release(staff, tulle.sql(EVERYTHING, groups=DEPTS), unit="participant", epsilon=50.0)
    table = r.value
    assert table.keys == ("dept",)
    assert table.names[:7] == ("dept", "n", "n_low", "n_high", "total", "total_low", "total_high")
    listed = table.to_dict()
    assert listed["dept"] == ["a", "b", "none"]
    assert listed["n"] == pytest.approx([1000, 2000, 0], abs=60)
    assert all(low <= n for low, n in zip(listed["n_low"], listed["n"], strict=True))
    assert listed["n_high"] == [None] * 3
    assert listed["mean"][:2] == pytest.approx([50, 50], abs=3)
    assert listed["middle"][:2] == pytest.approx([50, 50], abs=5)
    assert r.parameters["after_noise"] == []
    again = tulle.Release.from_json(r.to_json())
    assert again.value == table
    assert again.table() == table
    with pytest.raises(tulle.core.errors.NoIntervalError, match="n_low"):
        r.interval(0.9)


def test_what_is_done_after_the_noise_is_said(staff: Any) -> None:
    text = EVERYTHING + " HAVING COUNT(*) > 500 AND dept <> 'zz' ORDER BY total DESC LIMIT 1"
    r = tulle.release(staff, tulle.sql(text, groups=DEPTS), unit="participant", epsilon=50.0)
    assert r.value["dept"] == ("b",)
    assert len(r.parameters["after_noise"]) == 3
    assert r.parameters["after_noise"][2] == "LIMIT 1"


def test_one_plain_aggregate_stays_a_number(staff: Any) -> None:
    for text in ("SELECT COUNT(*) AS n FROM staff", "SELECT SUM(pay) FROM staff"):
        assert not isinstance(tulle.sql(text), SqlTable)
    r = tulle.release(
        staff, tulle.sql("SELECT COUNT(*) FROM staff"), unit="participant", epsilon=1.0
    )
    assert isinstance(r.value, int)


def test_parts_cost_the_price(staff: Any) -> None:
    question = tulle.sql(EVERYTHING, groups=DEPTS)
    for epsilon in (Fraction(1, 10), Fraction(3)):
        with watch() as events:
            r = tulle.release(staff, question, unit="participant", epsilon=epsilon)
        spent, delta = price(Composed(tuple(events)))
        assert r.guarantee.epsilon is not None
        assert delta == 0
        assert spent <= r.guarantee.epsilon <= epsilon
        assert spent >= Fraction(99, 100) * epsilon
        assert len(r.parts) == 8


def test_a_part_that_pays_twice_would_be_seen(staff: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken version: all parts get the whole budget."""
    from tulle.planning import planner

    def generous(terms: Any, leaf: Any, share: Any, count: int) -> Any:
        from dataclasses import replace

        return replace(terms, query=leaf)

    monkeypatch.setattr(planner, "_part_of", generous)
    with watch() as events:
        tulle.release(
            staff, tulle.sql("SELECT COUNT(*), AVG(pay) FROM staff"), unit="participant", epsilon=1
        )
    assert price(Composed(tuple(events)))[0] > 1


def test_ledgers_book_the_price_and_know_the_question_again(staff: Any, tmp_path: Path) -> None:
    study = tulle.Ledger(tmp_path / "study.ledger").open(
        "staff", staff, unit="participant", epsilon=5.0
    )
    text = "SELECT COUNT(*) AS n, AVG(pay) AS m FROM staff HAVING COUNT(*) > 1"
    first = study.ask(tulle.sql(text), epsilon=1.0)
    again = study.ask(
        tulle.sql("select count(*) AS n, avg(s.pay) AS m from Staff s having count(*) > 1"),
        epsilon=1.0,
    )
    assert again.debit == first.debit
    assert again.value == first.value
    assert 3.99 <= float(study.remaining) <= 4.01
    # Other names are another table.
    other = study.ask(tulle.sql(text.replace("AS m", "AS k")), epsilon=1.0)
    assert other.debit != first.debit
    assert other.value.names[3] == "k"
    assert "AVG(pay)" in study.report()


def test_ends_are_found_in_a_range_that_is_far_too_wide() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT range AS who, range % 1000 + 0.5 AS x FROM range(20000)"
    )
    wide = tulle.Database.connect(connection, owners={"t": "who"}, ranges={"t.x": (-1e6, 1e6)})
    question = tulle.sql("SELECT MIN(x) AS least, MEDIAN(x) AS middle, MAX(x) AS most FROM t")
    plan = plan_for(wide, question, unit="participant", epsilon=3.0)
    for seed in range(10):
        table = draw(plan, wide, SeededSource(seed), debit=None).value.to_dict()
        assert table["least"][0] == pytest.approx(0, abs=40)
        assert table["middle"][0] == pytest.approx(500, abs=20)
        assert table["most"][0] == pytest.approx(1000, abs=40)


REFUSED = [
    ("SELECT COUNT(*), MEDIAN(age) FROM staff", r"'staff.age': \(least, most\)"),
    ("SELECT COUNT(*), MEDIAN(w) FROM edge", "over rows that need several people"),
    (
        "SELECT MAX(pay) FROM staff WHERE who IN (SELECT a FROM edge)",
        "there because of other rows",
    ),
    ("SELECT COUNT(*), QUANTILE_CONT(pay, 0.33333) FROM staff", "four decimals"),
    ("SELECT COUNT(*), AVG(nothing) FROM staff", "nothing"),
    ("SELECT COUNT(*), AVG(dept) FROM staff", "dept"),
    ("SELECT COUNT(*), SUM(pay) FROM nowhere", "no table nowhere"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_refusals_come_before_the_debit(staff: Any, text: str, words: str, tmp_path: Path) -> None:
    study = tulle.Ledger(tmp_path / "study.ledger").open(
        "staff", staff, unit="participant", epsilon=5.0
    )
    with pytest.raises(tulle.QueryError, match=words):
        study.ask(tulle.sql(text), epsilon=1.0)
    assert float(study.remaining) == 5.0


UNSUPPORTED = [
    ("SELECT COUNT(*), pay FROM staff", "not in GROUP BY"),
    ("SELECT DISTINCT COUNT(*), SUM(pay) FROM staff", "SELECT DISTINCT"),
    ("SELECT COUNT(*) AS n, SUM(pay) AS n_low FROM staff", "would be called n_low"),
    ("SELECT COUNT(*), SUM(pay) OVER () FROM staff", "inside an aggregate"),
    ("SELECT COUNT(*), STRING_AGG(dept) FROM staff", "shows single rows"),
    ("SELECT COUNT(*), QUANTILE_CONT(pay, 1.5) FROM staff", "between 0 and 1"),
    ("SELECT COUNT(*), QUANTILE_CONT(pay, [0.1, 0.5]) FROM staff", "a column of its own"),
    ("SELECT COUNT(*), MEDIAN(DISTINCT pay) FROM staff", "distinct values"),
    ("SELECT COUNT(*), SUM(pay) FROM staff LIMIT 1 + 1", "whole number"),
    ("SELECT COUNT(*), SUM(SUM(pay)) FROM staff", "aggregate"),
    ("SELECT COUNT(*), SUM(pay) FROM staff GROUP BY dept + 1", "give it a name"),
    ("SELECT COUNT(*), SUM(RANDOM()) FROM staff", "volatile"),
    ("SELECT COUNT(*) FILTER (WHERE RANDOM() < 1), SUM(pay) FROM staff", "volatile"),
    ("SELECT COUNT(*), SUM(pay) FROM staff FULL JOIN edge ON who = a", "FULL JOIN"),
    ("SELECT COUNT(*), SUM(pay) FROM staff HAVING SUM(pay) > (SELECT 1)", "sub-select"),
    ("SELECT COUNT(*), SUM(pay) FROM staff ORDER BY 7", "no such column"),
]


@pytest.mark.parametrize(("text", "words"), UNSUPPORTED)
def test_what_is_not_supported_is_refused_when_it_is_built(text: str, words: str) -> None:
    with pytest.raises(tulle.QueryError, match=words):
        tulle.sql(text)


def test_plans_show_parts_and_their_prices(staff: Any) -> None:
    question = tulle.sql("SELECT COUNT(*) AS n, AVG(pay) AS m, MAX(pay) AS top FROM staff")
    plan = plan_for(staff, question, unit="participant", epsilon=1.0)
    prices = [part.guarantee.epsilon for part in plan.parts]
    assert sum(prices) <= 1  # type: ignore[arg-type]
    assert sum(prices) > Fraction(99, 100)  # type: ignore[arg-type]
    assert [name for name, _ in plan.columns] == ["n", "m", "top"]
    assert all(str(part.query) in repr(plan) for part in plan.parts)
    known = plan_for(staff, question, unit="participant", epsilon=1.0, like=staff)
    errors = dict(known.columns)
    assert "Error to expect (95 %): n ±" in repr(known)
    # What is predicted on the data itself is what comes about, within a factor of two.
    truth = question.truth(staff).to_dict()
    found: dict[str, list[float]] = {"n": [], "m": [], "top": []}
    for seed in range(40):
        drawn = draw(known, staff, SeededSource(seed), debit=None).value
        for name, listed in found.items():
            listed.append(abs(drawn.to_dict()[name][0] - truth[name][0]))
    for name, listed in found.items():
        law = errors[name]
        assert law is not None
        typical = max(law.half_width(0.5), 1e-9)
        assert 0.4 < (np.median(listed) + 0.5) / (typical + 0.5) < 2.5, name


def test_budgets_go_where_they_help(staff: Any) -> None:
    """Of a mean far from the middle, the count matters; of one at it, the sum alone."""
    text = "SELECT AVG(pay) AS m FROM staff"
    even = plan_for(staff, tulle.sql(text), unit="participant", epsilon=1.0)
    share = {str(part.query): float(part.guarantee.epsilon or 0) for part in even.parts}
    total = next(value for name, value in share.items() if "SUM" in name)
    assert total > 0.5


@pytest.fixture(scope="module")
def few() -> Any:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE staff AS SELECT range % 70 AS who, (range * 37) % 101 AS pay, "
        "CASE WHEN range % 3 = 0 THEN 'a' ELSE 'b' END AS dept FROM range(150)"
    )
    ranges = {"staff.pay": (0, 100)}
    return tulle.Database.connect(connection, owners={"staff": "who"}, ranges=ranges)


@pytest.mark.parametrize(
    ("epsilon", "runs"),
    [(4.0, 100), *(pytest.param(e, 300, marks=pytest.mark.slow) for e in (1.0, 4.0))],
)
def test_ends_of_every_column_hold(
    few: Any, epsilon: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tulle.sql.mechanisms import truncation
    from tulle.sql.tables.quantiles import SqlQuantile

    # The rows are the same in all runs: the engine is asked for them once.
    relations, values = truncation.relations_of, SqlQuantile.values
    monkeypatch.setattr(truncation, "relations_of", cache(relations))
    monkeypatch.setattr(SqlQuantile, "values", cache(values))
    text = (
        "SELECT dept, COUNT(*) AS n, SUM(pay) AS total, AVG(pay) AS mean, VAR_POP(pay) AS var, "
        "SUM(pay) / 10 + COUNT(*) AS mixed, MEDIAN(pay) AS middle FROM staff GROUP BY dept"
    )
    question = tulle.sql(text, groups=DEPTS)
    plan = plan_for(few, question, unit="participant", epsilon=epsilon)
    truth = question.truth(few).to_dict()
    missed = dict.fromkeys(("n", "total", "mean", "var", "mixed", "middle"), 0)
    assert len(plan.parts) == 5
    for seed in range(runs):
        table = draw(plan, few, SeededSource(seed), debit=None).value.to_dict()
        for name in missed:
            for place, exact in enumerate(truth[name]):
                low, high = table[f"{name}_low"][place], table[f"{name}_high"][place]
                if exact is not None and (
                    (low is not None and exact < low - 1e-9)
                    or (high is not None and exact > high + 1e-9)
                ):
                    missed[name] += 1
                    break
    # One in twenty may be missed; this is beyond five standard deviations.
    assert max(missed.values()) <= runs / 20 + 5.5 * math.sqrt(runs * 0.05 * 0.95), missed
    assert missed["n"] + missed["total"] > 0


def test_whole_ends_hold_every_count_that_the_ends_held() -> None:
    rng = np.random.default_rng(5)
    middle, half = rng.uniform(-30, 30, 4000), rng.choice([0.0, 0.2, 0.5, 1.0, 3.3, 1 / 3], 4000)
    middle = np.where(rng.random(4000) < 0.5, np.rint(middle), middle)
    # Sums of floats, of which some are a hair beyond the whole number that is meant.
    low, high = middle - 7 * (half / 7), middle + 7 * (half / 7)
    first, last = _whole_ends(low, high)
    for count in range(-35, 36):
        held = (low - 1e-9 <= count) & (count <= high + 1e-9)
        assert np.array_equal(held, (first <= count) & (count <= last))
    some = np.floor(high) >= np.ceil(low)
    assert np.array_equal(first[some], np.rint(first[some]))
    assert 0 < some.sum() < 4000
    ends = _whole_ends(np.array([-np.inf, 2.5, 0.2]), np.array([1.5, np.inf, 0.7]))
    assert [end.tolist() for end in ends] == [[-np.inf, 3.0, 0.2], [1.0, np.inf, 0.7]]


def test_counts_have_whole_ends_and_sums_do_not(few: Any) -> None:
    text = "SELECT dept, COUNT(*) AS n, SUM(pay) AS total FROM staff GROUP BY dept"
    found = tulle.release(few, tulle.sql(text, groups=DEPTS), unit="participant", epsilon=2.0)
    ends = [*found.value["n_low"], *found.value["n_high"]]
    assert all(end is None or end == round(end) for end in ends)
    assert any(end != round(end) for end in found.value["total_low"] if end is not None)


def test_whole_numbers_beyond_64_bits_are_shown_as_they_are() -> None:
    assert _shown(np.array([2.0**70, -3.2]), whole=True).tolist() == [2.0**70, -3.0]
    assert _shown(np.array([4.2, -3.2]), whole=True).tolist() == [4, -3]


def test_a_table_says_what_is_in_it() -> None:
    grouped = tulle.sql(
        "SELECT dept, COUNT(*) AS n, AVG(pay) AS mean FROM staff GROUP BY dept",
        groups={"dept": ["a", "b"]},
    )
    assert grouped.in_words() == "A table of n and mean by dept."
    assert tulle.sql("SELECT MEDIAN(pay) AS middle FROM staff").in_words() == "A table of middle."


@pytest.mark.parametrize("written", ["EXP(EXP({}))", "POWER({}, 300)", "{} / ({} - {})", "LN(-{})"])
def test_answers_beyond_all_numbers_are_planned_and_given_without_a_remark(
    staff: Any, written: str
) -> None:
    """With warnings as errors, one would come after the price."""
    question = tulle.sql(
        f"SELECT {written.replace('{}', 'COUNT(*)')} AS n, {written.replace('{}', 'SUM(pay)')} AS p"
        " FROM staff"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tulle.plan(staff, question, unit="participant", epsilon=1)
        assert str(tulle.release(staff, question, unit="participant", epsilon=1))
