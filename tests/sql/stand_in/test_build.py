"""Errors of SQL questions are predicted from public facts: one text on all data, nearly right."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import tulle
import tulle.sql.stand_in.build as build
from tulle.core.errors import InputError
from tulle.core.table import LabelledTable
from tulle.ledger.answer import draw, plan_for
from tulle.planning.planner import make_plan
from tulle.planning.preview import preview
from tulle.sql.engines.duckdb.engine import DuckDB
from tulle.sql.mechanisms import laplace, quantile, truncation

TABLES = """
    CREATE TABLE person (id INTEGER PRIMARY KEY, town VARCHAR, age INTEGER);
    CREATE TABLE orders (number INTEGER, person INTEGER, day DATE, price DOUBLE, kind VARCHAR);
    CREATE TABLE line (orders INTEGER, shop INTEGER, amount DOUBLE);
    CREATE TABLE knows (a INTEGER, b INTEGER);
    CREATE TABLE town (name VARCHAR, land VARCHAR);
    CREATE VIEW young AS SELECT * FROM person WHERE age < 30;
"""
OWNERS: dict[str, Any] = {
    "person": "person: id",
    "orders": "person: person",
    "line": ["orders -> orders[number]", "shop: shop"],
    "knows": ["person: a", "person: b"],
}
RANGES = {"person.age": (0, 100), "orders.price": (0, 50), "line.amount": (0, 10)}

QUESTIONS: dict[str, dict[str, Any]] = {
    "SELECT COUNT(*) FROM person": {},
    "SELECT COUNT(*) FROM orders": {},
    "SELECT SUM(price) FROM orders WHERE kind = 'gift'": {},
    "SELECT COUNT(*) FROM orders o JOIN person p ON o.person = p.id WHERE p.town = 'Oslo'": {},
    "SELECT COUNT(*) FROM knows": {},
    "SELECT COUNT(*) FROM knows x JOIN knows y ON x.b = y.a": {},
    "SELECT SUM(amount) FROM line": {},
    "SELECT COUNT(DISTINCT o.kind) FROM orders o": {},
    "SELECT COUNT(*) AS n, AVG(age) AS a, VAR_POP(age) AS v FROM person": {},
    "SELECT MEDIAN(age) AS m FROM person": {},
    "SELECT AVG(price) AS p, SUM(price) / COUNT(*) AS q FROM orders": {},
    "SELECT town, COUNT(*) FROM person GROUP BY town": {"groups": {"town": ["Oslo", "Bergen"]}},
    "SELECT kind, COUNT(*) AS n, AVG(price) AS p FROM orders GROUP BY kind": {
        "groups": {"kind": ["gift", "food", "book"]}
    },
    "SELECT YEAR(day) AS y, COUNT(*) FROM orders GROUP BY y": {"groups": {"y": [2023, 2024]}},
    "SELECT kind, COUNT(*) AS n, COUNT(DISTINCT person) AS p FROM orders GROUP BY kind": {},
    "SELECT land, COUNT(*) AS n FROM person JOIN town ON name = town GROUP BY land": {},
    "SELECT n, COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM orders GROUP BY person) t"
    " GROUP BY n": {"groups": {"n": [1, 2, 3]}},
    "SELECT kind, MEDIAN(price) AS m FROM orders GROUP BY kind": {
        "groups": {"kind": ["gift", "food", "book"]}
    },
    "SELECT AVG(number) AS m, MAX(number) AS most FROM orders": {"ranges": "private"},
    "SELECT kind, SUM(number) AS s FROM orders GROUP BY kind": {"ranges": "private"},
    "SELECT COUNT(*) FROM young": {},
    "SELECT COUNT(*) FROM person p WHERE NOT EXISTS"
    " (SELECT 1 FROM orders o WHERE o.person = p.id AND o.day > DATE '2024-03-01')": {},
}


def database(rows: Any = ()) -> tulle.Database:
    connection = duckdb.connect()
    connection.execute(TABLES)
    for statement in rows:
        connection.execute(statement)
    return tulle.Database.connect(connection, owners=OWNERS, public=["town"], ranges=RANGES)


def filled(people: int, rate: int, seed: int = 1) -> list[str]:
    """Return statements that fill the tables with people of ``rate`` rows on average."""
    draw = f"hash(range * 7 + {seed})"
    town = f"CASE WHEN {draw} % 3 = 0 THEN 'Oslo' ELSE 'Bergen' END"
    kinds = f"['gift', 'food', 'book'][({draw} // 64 % 3 + 1)::INTEGER]"
    return [
        f"INSERT INTO person SELECT range, {town}, {draw} // 8 % 101 FROM range({people})",
        f"INSERT INTO orders SELECT range, {draw} % {people}, DATE '2023-01-01' + ({draw} // 32 %"
        f" 730)::INTEGER, {draw} // 16 % 51, {kinds} FROM range({people * rate})",
        f"INSERT INTO line SELECT {draw} % {people * rate}, {draw} // 8 % 40, {draw} // 128 % 11"
        f" FROM range({people * rate})",
        f"INSERT INTO knows SELECT {draw} % {people}, {draw} // 1024 % {people} FROM"
        f" range({people * rate // 2})",
        "INSERT INTO town VALUES ('Oslo', 'no'), ('Bergen', 'no'), ('Lund', 'se')",
    ]


def shown(plan: Any) -> str:
    return repr(plan) + json.dumps(plan.to_json()) + plan._repr_html_()


def plan(data: Any, text: str, options: Any, **assumed: Any) -> Any:
    question = tulle.sql(text, **options)
    return tulle.plan(data, question, unit="participant", epsilon=1, delta=1e-6, **assumed)


def worlds() -> list[tulle.Database]:
    """Return neighbours of a database, itself, others, and one without any row."""
    whole = database(filled(30, 4))
    first = next(whole.neighbours("participant"))
    return [whole, first, database()]


def differences(make: Any, asked: Any = tuple(QUESTIONS)) -> list[str]:
    """Return the questions of which a plan is not one text on all databases."""
    found = worlds()
    return [
        text
        for text, options in QUESTIONS.items()
        if text in asked and len({shown(make(data, text, options)) for data in found}) != 1
    ]


def test_a_plan_is_the_same_text_on_all_data() -> None:
    assert differences(plan) == []


def test_a_plan_that_looks_at_the_data_is_caught() -> None:
    def counting(data: Any, text: str, options: Any) -> Any:
        people = tulle.sql("SELECT COUNT(*) FROM person").truth(data) + 1
        return plan(data, text, options, people=int(people))

    assert differences(counting, ["SELECT COUNT(*) FROM orders"])


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> tulle.Database:
    """A database whose rows nobody may read."""
    data = database(filled(5, 2))
    fetch, own = DuckDB.fetch, data._engine

    def fetch_guarded(self: Any, *arguments: Any) -> Any:
        assert self is not own, "the private database is read"
        return fetch(self, *arguments)

    monkeypatch.setattr(DuckDB, "fetch", fetch_guarded)
    return data


def test_reading_the_data_is_caught(guarded: tulle.Database) -> None:
    with pytest.raises(AssertionError, match="private database"):
        tulle.sql("SELECT COUNT(*) FROM orders").truth(guarded)


@pytest.mark.parametrize("text", QUESTIONS)
def test_every_question_has_a_predicted_error_and_an_assumption(
    text: str, guarded: tulle.Database
) -> None:
    made = plan(guarded, text, QUESTIONS[text])
    assert made.unpredicted is None
    assert "a made-up database of 1,000 persons and 1,000 shops" in made.stand_in
    laws = [law for _, law in made.columns] or [made.chosen.prediction.typical]
    assert all(law is not None and 0 < law.of_one().half_width(0.95) < 1e6 for law in laws)


def test_what_is_assumed_changes_what_is_said_and_not_what_is_done() -> None:
    data = database()
    for text, options in list(QUESTIONS.items())[::4]:
        question = tulle.sql(text, **options)
        terms: Any = {"unit": "participant", "epsilon": 1, "delta": 1e-6}
        plain = plan_for(data, question, **terms).canonical()
        assert tulle.plan(data, question, **terms).canonical() == plain
        assert tulle.plan(data, question, **terms, people=50).canonical() == plain


def measured(data: Any, text: str, options: Any, runs: int) -> dict[str, float]:
    question = tulle.sql(text, **options)
    made = plan_for(data, question, unit="participant", epsilon=1, delta=1e-6)
    truth = question.truth(data)
    errors: dict[str, list[Any]] = {}
    for _ in range(runs):
        value = draw(made, data, None, debit=None).value
        table = isinstance(value, LabelledTable)
        for name in [name for name, _ in question.chosen.columns] if table else [""]:
            answer, exact = (value[name], truth[name]) if table else (value, truth)
            if len(np.ravel(answer)) == len(np.ravel(exact)):
                errors.setdefault(name, []).append(
                    np.abs(np.ravel(answer).astype(float) - np.ravel(exact).astype(float))
                )
    return {name: float(np.median(np.concatenate(found))) for name, found in errors.items()}


UNLIKE = ("NOT EXISTS", "DISTINCT", "VAR_POP", "young", "land", "y.a", "s FROM orders")
MEASURED = [text for text in QUESTIONS if not any(word in text for word in UNLIKE)]


@pytest.mark.parametrize("text", MEASURED)
def test_the_predicted_median_error_is_near_the_measured_one(text: str) -> None:
    data = database(filled(600, 5))
    found = measured(data, text, QUESTIONS[text], 15)
    made = plan(
        data,
        text,
        QUESTIONS[text],
        people={"person": 600, "shop": 40},
        rows_per_person={"person": 1, "orders": 5, "line": 5, "knows": 5},
        values={
            "person.town": ["Oslo", "Bergen", "Bergen"],
            "town.name": ["Oslo", "Bergen"],
            "town.land": ["no"],
            "orders.kind": ["gift", "food", "book"],
            "orders.number": (0, 2999),
        },
    )
    laws = dict(made.columns) or {"": made.chosen.prediction.typical}
    for name, error in found.items():
        law = laws[name]
        assert law is not None
        # A median of 15 draws is itself off by a half now and then.
        assert error / 4 < law.of_one().half_width(0.5) < 4 * error + 1e-9, (text, name)


def test_a_made_up_database_that_knows_nothing_of_rows_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same comparison rejects a stand-in in which everyone has one row of everything."""
    monkeypatch.setattr(build.MadeUpRows, "_rate", lambda self, table: (1.0, None))
    wrong = 0
    for text in ("SELECT COUNT(*) FROM orders", "SELECT SUM(amount) FROM line"):
        monkeypatch.setattr(build, "_made", {})
        try:
            test_the_predicted_median_error_is_near_the_measured_one(text)
        except AssertionError:
            wrong += 1
    assert wrong


@pytest.mark.parametrize("text", [text for text in MEASURED if "MEDIAN(price)" in text])
def test_a_prediction_of_quantiles_at_another_epsilon_is_caught(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same comparison rejects ranks that are thought to be drawn a hundred times as sharply."""
    true = quantile.places_at
    sharp = lambda options, rule, at: true(options, replace(rule, epsilon=100 * rule.epsilon), at)  # noqa: E731
    monkeypatch.setattr(quantile, "places_at", sharp)
    monkeypatch.setattr(build, "_made", {})
    with pytest.raises(AssertionError):
        test_the_predicted_median_error_is_near_the_measured_one(text)


def median_error(text: str, **assumed: Any) -> float:
    made = plan(database(), text, {}, **assumed)
    law = dict(made.columns).popitem()[1] if made.columns else made.chosen.prediction.typical
    return float(law.of_one().half_width(0.5))


NOBODY: dict[str, Any] = {"values": {"person.town": ["Oslo", "Bergen"]}}


@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(age)", "SUM(age) + 1"])
def test_what_is_shown_as_zero_is_predicted_as_that(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of nobody at all: half of the noise is below zero, so the median error is none."""
    text = f"SELECT {what} FROM person WHERE town = 'Lund'"
    assert median_error(text, **NOBODY) == 0
    # The error of what would be shown if it were not cut is caught by the same comparison.
    monkeypatch.setattr(build, "_made", {})
    for module in (laplace, truncation):
        monkeypatch.setattr(module, "shown", lambda query, values: values)
    assert median_error(text, **NOBODY) > 0.1


def test_a_made_up_part_stands_for_the_whole() -> None:
    """Half of all rows with half as many people each: what is cut at zero is not cut sooner."""
    text = "SELECT COUNT(*) FROM orders WHERE kind = 'gift'"
    said: Any = {"values": {"orders.kind": ["gift", *["x"] * 999]}}
    # About 40 of 40,000 rows are made up; of 40 million it is 40,000, far above the noise.
    assert median_error(text, people=10_000, **said) < 60
    few, many = (median_error(text, people=n, **said) for n in (10_000_000, 100_000_000))
    assert few > 1
    assert many < 4 * few


def made_up(text: str, statement: str, **assumed: Any) -> Any:
    """Return what a statement says of the rows that are made up for a question."""
    build._made.clear()
    plan(database(), text, {}, **assumed)
    (kept,) = build._made.values()
    engine: Any = kept.dataset._engine  # type: ignore[attr-defined]
    return [tuple(row.values()) for row in engine.fetch(statement).to_pylist()]


def test_columns_are_computed_as_formulas_say() -> None:
    found = made_up(
        "SELECT SUM(amount) FROM line WHERE shop > 3",
        "SELECT COUNT(*) AS n, COUNT_IF(amount = shop % 7 + 1) AS m FROM line",
        values={"line.amount": "= shop % 7 + 1"},
    )
    assert found[0][0] == found[0][1] > 0


def test_formulas_may_be_made_of_each_other_and_of_what_is_compared() -> None:
    found = made_up(
        "SELECT COUNT(*) FROM person JOIN town ON person.town = town.name",
        "SELECT COUNT(*) AS n, COUNT_IF(town = 'a' || (10 + id % 80) % 2) AS m FROM person",
        values={"person.town": "= 'a' || age % 2", "person.age": "= 10 + id % 80"},
    )
    assert found[0][0] == found[0][1] > 0


def test_of_people_some_may_have_no_rows() -> None:
    found = made_up(
        "SELECT COUNT(*) FROM person p WHERE NOT EXISTS"
        " (SELECT 1 FROM orders o WHERE o.person = p.id)",
        "SELECT COUNT(*) AS people, COUNT(DISTINCT orders.person) AS some, COUNT(*) FILTER (WHERE"
        " orders.person IS NULL) AS none FROM person LEFT JOIN orders ON orders.person = id",
        people=600,
        values={"orders.person": 400},
    )
    ((_, some, none),) = found
    assert 380 <= some <= 400
    assert none == 600 - some


@pytest.mark.parametrize(("rate", "most"), [(4, 7), (3, 3), (5, 40), (2, 2000)])
def test_nobody_has_more_rows_than_is_said(rate: int, most: int) -> None:
    found = made_up(
        "SELECT COUNT(*) FROM orders",
        "SELECT MAX(n) AS m, SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM orders GROUP BY person)",
        people=1000,
        rows_per_person={"orders": (rate, most)},
    )
    ((largest, rows),) = found
    assert rows == 1000 * rate
    assert min(most / 4, 20) < largest <= most


def test_tables_that_are_compared_by_two_columns_refer_to_each_other() -> None:
    """Were both columns drawn by themselves, one row in thousands would find its like."""
    joined = "FROM knows k JOIN orders o ON k.a = o.person AND k.b = o.number"
    ((found,),) = made_up(
        f"SELECT COUNT(*) {joined} WHERE o.kind = 'gift'",
        f"SELECT COUNT(*) AS n {joined}",
        people=500,
        rows_per_person={"orders": 4, "knows": 16},
    )
    assert found >= 500 * 16 / 2


def test_where_an_answer_drowns_several_databases_are_made_up() -> None:
    """A handful of rows is there or not by chance; a clear answer needs one database."""
    data = database()
    made: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        real = build._build

        def counted(*arguments: Any) -> Any:
            made.append(arguments[4] if len(arguments) > 4 else 0)
            return real(*arguments)

        patch.setattr(build, "_build", counted)
        patch.setattr(build, "_made", {})
        clear = plan(data, "SELECT COUNT(*) FROM orders", {}, people=2000)
        assert made == [0]
        rare = "SELECT COUNT(*) FROM orders WHERE kind = 'gift' AND price > 49.9 AND number = 3"
        drowned = plan(data, rare, {}, people=200)
        assert made == [0, 0, *range(1, build.OTHERS + 1)]
    assert type(clear.chosen.prediction.typical).__name__ == "StandInLaw"
    law = drowned.chosen.prediction.typical
    assert type(law).__name__ == "MixedLaw"
    # The errors of all of them alike: no level is beyond those of the parts.
    assert 0 <= law.half_width(0.2) <= law.of_one().half_width(0.5) <= law.half_width(0.99)


def test_lists_of_a_public_table_are_its_rows() -> None:
    lists = {"town.name": ["Oslo", "Lund", "Bergen"], "town.land": ["no", "se", "no"]}
    text = "SELECT COUNT(*) FROM person JOIN town ON name = town WHERE land = 'se'"
    rows = made_up(text, "SELECT name, land FROM town ORDER BY 1", values=lists)
    assert rows == [("Bergen", "no"), ("Lund", "se"), ("Oslo", "no")]
    found = made_up(text, "SELECT DISTINCT town FROM person ORDER BY 1", values=lists)
    assert [name for (name,) in found] == ["Bergen", "Lund", "Oslo"]


@pytest.mark.parametrize(
    "rows",
    [
        "person JOIN town ON name = town WHERE town = 'Oslo'",
        "person JOIN town ON name = town WHERE name = 'Oslo'",
        "orders a JOIN orders b ON a.day = b.day AND a.person = b.person"
        " WHERE a.day = DATE '2031-05-05'",
        "orders a JOIN orders b ON a.number = b.number AND a.person = b.person"
        " WHERE a.number IN (-7, 5000000)",
        "orders a JOIN orders b ON a.price = b.price AND a.person = b.person WHERE a.price = 2.5",
    ],
)
def test_a_column_that_is_joined_holds_what_it_is_compared_with(rows: str) -> None:
    text = f"SELECT COUNT(*) FROM {rows}"
    ((met,),) = made_up(text, text, rows_per_person=4, people=100)
    assert met > 0


def test_listed_groups_are_some_of_more_values() -> None:
    build._made.clear()
    question = tulle.sql(
        "SELECT kind, COUNT(*) FROM orders GROUP BY kind", groups={"kind": ["gift", "food"]}
    )
    terms: Any = {"unit": "participant", "epsilon": 1, "values": {"orders.kind": 50}}
    tulle.plan(database(), question, **terms)
    (kept,) = build._made.values()
    gifts, food = question.truth(kept.dataset)["COUNT(*)"]
    assert 40 < gifts < 130
    assert 40 < food < 130


def test_more_rows_of_a_person_mean_a_larger_error() -> None:
    data = database()

    def error(text: str, rows: Any, **more: Any) -> float:
        made = plan(data, text, {}, rows_per_person=rows, **more)
        return float(made.chosen.prediction.typical.of_one().half_width(0.5))

    for text in ("SELECT COUNT(*) FROM orders", "SELECT COUNT(*) FROM knows"):
        assert error(text, 2) * 3 < error(text, 20)
        assert error(text, 4) < error(text, (4, 400))


def test_more_people_make_averages_better_also_beyond_those_made_up() -> None:
    data = database()

    def error(people: int) -> float:
        made = plan(data, "SELECT AVG(price) AS p FROM orders", {}, people=people)
        return float(dict(made.columns)["p"].of_one().half_width(0.5))

    assert error(100) > 5 * error(10_000) > 25 * error(10_000_000)


def test_a_made_up_database_is_kept_for_the_next_plan() -> None:
    data = database()
    build._made.clear()
    plan(data, "SELECT COUNT(*) FROM orders", {})
    (kept,) = build._made.values()
    plan(data, "SELECT COUNT(*) FROM orders", {})
    assert list(build._made.values()) == [kept]
    for people in range(1, build.KEPT + 3):
        plan(data, "SELECT COUNT(*) FROM person", {}, people=people)
    assert len(build._made) == build.KEPT


def test_periods_have_predictions_too() -> None:
    connection = duckdb.connect()
    connection.execute(TABLES)
    data = tulle.Database.connect(connection, owners={"orders": "person"}, times={"orders": "day"})
    errors = [
        tulle.plan(
            data,
            tulle.sql("SELECT COUNT(*) FROM orders"),
            unit=unit,
            epsilon=1,
            rows_per_person=200,
            values={"orders.day": ("2024-01-01", "2024-12-31")},
        )
        .chosen.prediction.typical.of_one()
        .half_width(0.5)  # type: ignore[union-attr]
        for unit in ("participant", "participant-week")
    ]
    assert errors[1] * 5 < errors[0]


@pytest.mark.parametrize(
    ("assumed", "words"),
    [
        ({"people": 0}, "whole number from 1"),
        ({"people": "many"}, "whole number from 1"),
        ({"people": {"cat": 5}}, "no kind of participant 'cat'. Kinds: person, shop"),
        ({"rows_per_person": {"town": 5}}, "'town' is not a table with owners"),
        ({"rows_per_person": -1}, "number above 0"),
        ({"rows_per_person": (9, 2)}, "the mean and the most"),
        ({"values": {"orders.nothing": 3}}, "no column 'orders.nothing'"),
        ({"values": {"orders.kind": 1.5}}, "a list of them"),
        ({"values": {"orders.kind": ["a", ["b"]]}}, "a list of them"),
        ({"values": {"orders.day": ("x", "y")}}, "numbers or dates"),
        ({"values": 3}, "must map"),
        ({"values": {"orders.price": "= cost * 2"}}, "no column 'cost' beside it"),
        ({"values": {"orders.price": "= 1; DROP TABLE orders"}}, "not one expression"),
        ({"values": {"orders.price": "= 1 FROM person"}}, "not one expression"),
        ({"values": {"orders.price": "= number +"}}, "not one expression"),
        ({"values": {"orders.kind": "= no_such_function(number)"}}, "cannot be computed"),
    ],
)
def test_what_cannot_be_assumed_is_refused(assumed: Any, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        plan(database(), "SELECT COUNT(*) FROM orders WHERE kind = 'x'", {}, **assumed)


def test_like_and_assumptions_exclude_each_other() -> None:
    data = database()
    with pytest.raises(InputError, match="exclude each other"):
        plan(data, "SELECT COUNT(*) FROM orders", {}, like=database(), people=5)


def test_assumptions_are_for_databases() -> None:
    square = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    with pytest.raises(InputError, match="people= is for databases"):
        tulle.plan(square, tulle.edges(), unit="edge", epsilon=1, people=5)


def test_facts_alone_are_enough() -> None:
    """The studio plans where the database is not at hand."""
    data = database()
    unit = data.check_unit("participant")
    facts = json.loads(json.dumps(data.facts(unit)))
    for text in list(QUESTIONS)[1::5]:
        question = tulle.sql(text, **QUESTIONS[text])
        made = make_plan(
            question, kind="database", facts=facts, unit=unit, epsilon=1, delta=Fraction(1, 10**6)
        )
        shown = preview(made, facts=facts, unit=unit)
        assert shown.unpredicted is None
        assert (shown.stand_in or "").startswith("a made-up database")
