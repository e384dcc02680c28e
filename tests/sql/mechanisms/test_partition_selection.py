"""GROUP BY without a public list: what is found, what is refused, what it costs."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import tulle
from tulle.audit.engine.cost import Case, watch_runs
from tulle.core import registry
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Terms
from tulle.core.table import LabelledTable
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource
from tulle.noise.partition_selection import weight_levels
from tulle.sql.engines.duckdb.dialect import DuckDBDialect
from tulle.sql.keys import statements as key_statements
from tulle.sql.keys.question import DiscoveredTable
from tulle.sql.keys.statements import KEY, LONGEST, PEOPLE, PLACE
from tulle.sql.mechanisms import partition_selection
from tulle.sql.mechanisms.found_keys import FoundKeys, table_of
from tulle.sql.queries import SqlQuery

MAKE = (
    "CREATE TABLE visit (person INTEGER, town VARCHAR(2000), x DOUBLE PRECISION, day DATE, "
    "cost DOUBLE PRECISION, many BIGINT, good BOOLEAN, price DECIMAL(9, 2), moment TIMESTAMP)",
    "CREATE TABLE knows (a INTEGER, b INTEGER, kind VARCHAR(10))",
    "CREATE TABLE kinds (kind VARCHAR(10), label VARCHAR(10))",
)
OWNERS = {"visit": "person", "knows": ["a", "b"]}
RANGES = {"visit.cost": (0, 10)}
ASKED = {"unit": "participant", "epsilon": 6.0, "delta": 1e-6}


def rows(people: int = 200) -> Iterator[str]:
    """Yield statements that fill the tables, the same for every engine; keys of every kind."""
    for who in range(people):
        town = ("'Oslo'", "'oslo'", "NULL", "'It''s \"Å\" '")[who % 4]
        x = ("-0.0", "0.0", "'NaN'", "'Infinity'", "1.5")[who % 5]
        day = ("'2024-02-29'", "'0001-01-01'", "NULL")[who % 3]
        many = ("9223372036854775807", "-1", "0")[who % 3]
        good = ("TRUE", "FALSE")[who % 2]
        price = ("1.50", "-0.05")[who % 2]
        at = ("'2024-01-01 10:00:00'", "'1999-12-31 23:59:59.5'")[who % 2]
        yield (
            f"INSERT INTO visit VALUES ({who}, {town}, CAST({x} AS DOUBLE PRECISION), "
            f"CAST({day} AS DATE), {who % 7}, {many}, {good}, {price}, CAST({at} AS TIMESTAMP))"
        )
    # One person alone, with a key of each kind that nobody else has.
    yield (
        f"INSERT INTO visit VALUES ({people}, '{'long' * 400}', 99.25, CAST('1950-05-05' AS DATE), "
        "1, 77, NULL, 77.77, CAST('2001-01-01 00:00:00' AS TIMESTAMP))"
    )
    for who in range(40):
        yield f"INSERT INTO knows VALUES ({who}, {who + 1}, 'k{who % 2}')"
    yield "INSERT INTO kinds VALUES ('k0', 'none'), ('k1', 'one'), ('k2', 'two')"


def in_duckdb(statements: Any) -> tulle.Database:
    connection = duckdb.connect()
    for statement in (*MAKE, *statements):
        connection.execute(statement)
    return tulle.Database.connect(connection, owners=OWNERS, public=["kinds"], ranges=RANGES)


@pytest.fixture(scope="module")
def clinic() -> Any:
    return in_duckdb(rows())


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def engine(request: Any) -> Any:
    """The same rows in each engine."""
    if request.param == "duckdb":
        return in_duckdb(rows())
    if request.param == "postgres":
        import adbc_driver_postgresql.dbapi as driver

        url = request.getfixturevalue("postgres_url")
        with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.executescript(";".join((*MAKE, *rows())))
        return tulle.Database.connect(url, owners=OWNERS, public=["kinds"], ranges=RANGES)
    session = request.getfixturevalue("spark_session")
    connection = duckdb.connect()
    for statement in (*MAKE, *rows()):
        connection.execute(statement)
    for name in ("visit", "knows", "kinds"):
        frame = connection.sql(f"SELECT * FROM {name}").to_arrow_table()
        session.createDataFrame(frame).createOrReplaceTempView(name)
    return tulle.Database.connect(session, owners=OWNERS, public=["kinds"], ranges=RANGES)


def release(database: Any, text: str, seed: int = 1, **options: Any) -> tulle.Release:
    return tulle.release(database, tulle.sql(text, **options), source=SeededSource(seed), **ASKED)


KINDS = {
    "town": {"Oslo", "oslo", None, 'It\'s "Å" '},
    "x": {0.0, math.inf, 1.5, "nan"},
    "day": {datetime.date(2024, 2, 29), datetime.date(1, 1, 1), None},
    "many": {2**63 - 1, -1, 0},
    "good": {True, False},
    "moment": {
        datetime.datetime(2024, 1, 1, 10),
        datetime.datetime(1999, 12, 31, 23, 59, 59, 500000),
    },
}


@pytest.mark.filterwarnings("ignore")
def test_a_text_that_is_no_utf8_is_no_key(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark takes any bytes for a text."""
    rows = [(person, b"a" if person % 2 else b"\xff") for person in range(80)]
    spark_session.createDataFrame(rows, "person INT, v BINARY").createOrReplaceTempView("bytes")
    database = tulle.Database.connect(spark_session, owners={"bytes": "person"})
    text = "SELECT CAST(v AS TEXT) AS k, COUNT(*) AS n FROM bytes GROUP BY CAST(v AS TEXT)"
    assert release(database, text).value.to_dict()["k"] == ["a"]
    monkeypatch.setattr(partition_selection, "texts_in", lambda column: column.to_pylist())
    with pytest.raises(UnicodeDecodeError):
        release(database, text)
    spark_session.catalog.dropTempView("bytes")


def test_keys_of_every_kind_are_found_and_told_alike_by_every_engine(engine: Any) -> None:
    for key in (*KINDS, "price"):
        text = f"SELECT {key}, COUNT(DISTINCT person) AS n FROM visit GROUP BY {key}"
        answer = release(engine, text, keys_per_person=1).value
        found = ["nan" if value != value else value for value in answer[key]]
        if key == "price":
            assert [str(value) for value in found] == ["-0.05", "1.50"]
        else:
            # The one person's own keys are not among them.
            assert set(found) == KINDS[key]
            assert len(found) == len(KINDS[key])
        if key == "x":
            assert [math.copysign(1, value) for value in answer[key] if value == 0] == [1.0]
        # The order is that of the values, NULL and NaN last.
        ordered = [value for value in found if value not in (None, "nan")]
        assert ordered == sorted(ordered)
        assert found[: len(ordered)] == ordered


def test_weights_follow_from_how_many_keys_everyone_has(engine: Any) -> None:
    # Who is good has three keys, everyone else one.
    text = "SELECT k.kind, COUNT(*) FROM visit v, kinds k WHERE k.kind = 'k0' OR v.good GROUP BY 1"
    query = tulle.sql(text).bind(engine)
    assert query.bound is not None
    for most, has in ((64, 577), (2, 707), (1, 1000)):
        levels = weight_levels(most, 1000)
        fetched = engine._engine.fetch(query.bound.rows.counted("0" * 32, most, levels)).to_pydict()
        found = dict(zip(fetched[f"{KEY}_0"], fetched[PEOPLE], strict=True))
        kept = {64: 3, 2: 2, 1: 1}[most]
        assert sum(found.values()) == 101 * 1000 + 100 * kept * has
        if most == 64:
            assert found == {"k0": 101 * 1000 + 100 * has, "k1": 100 * has, "k2": 100 * has}


def test_the_number_of_keys_is_chosen_privately(engine: Any) -> None:
    # Two thirds of the people have three keys, the others one: four are enough for three quarters.
    text = "SELECT k.kind, COUNT(DISTINCT v.person) AS n FROM visit v, kinds k "
    text += "WHERE k.kind = 'k0' OR v.many <> 0 GROUP BY 1"
    question = tulle.sql(text, keys_per_person="private")
    plan = plan_for(engine, question, **ASKED)
    assert plan.chosen.settings["epsilon_choice"] == "0.6"
    assert "is chosen privately" in str(plan)
    answer = tulle.release(engine, question, source=SeededSource(1), **ASKED)
    assert answer.parameters["keys_counted"] == 4
    assert list(answer.value["kind"]) == ["k0", "k1", "k2"]
    rows = question.bind(engine).bound.rows
    found = engine._engine.fetch(rows.having("0" * 32, 2)).to_pydict()
    assert dict(zip(found[PLACE], found[PEOPLE], strict=True)) == {1: 66, 2: 135}


def test_private_keys_are_paid_for_in_full(clinic: Any) -> None:
    selection = registry.make_mechanism("database", "partition_selection")
    unit = clinic.check_unit("participant")
    query = tulle.sql(
        "SELECT good, COUNT(*) AS n, COUNT(DISTINCT person) AS m FROM visit GROUP BY good",
        keys_per_person="private",
    ).bind(clinic)
    terms = Terms(query, unit, Fraction(60), Fraction(1, 10**6), clinic.facts(unit))
    (run,) = watch_runs(selection, [Case(terms, {}, clinic)])
    assert run.good, run.fault
    assert run.cost is not None
    assert run.cost.share > 0.99
    with pytest.raises(InputError, match="whole number or 'private'"):
        tulle.sql("SELECT a, COUNT(*) FROM t GROUP BY a", keys_per_person="many")


def test_people_are_weighted_where_nobody_asks_for_their_number(clinic: Any) -> None:
    text = "SELECT town, COUNT(*) AS n FROM visit GROUP BY town"
    plan = plan_for(clinic, tulle.sql(text), **ASKED)
    assert plan.chosen.settings["rule"] == "weighted gaussian"
    assert plan.chosen.settings["keys_per_person"] == 64
    assert "people on who have no other key" in str(plan)
    for options in ({"minimum": 2}, {"top": 3}):
        plan = plan_for(clinic, tulle.sql(text, **options), **ASKED)
        assert plan.chosen.settings["rule"] != "weighted gaussian"
        assert plan.chosen.settings["keys_per_person"] == 4
    assert len(release(clinic, text, keys_per_person=9).value) >= 2


def test_what_is_bought_is_near_the_truth(engine: Any) -> None:
    text = "SELECT good, COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m, MEDIAN(cost) AS h, "
    text += "COUNT(DISTINCT person) AS people FROM visit GROUP BY good"
    question = tulle.sql(text, keys_per_person=1)
    answer = tulle.release(engine, question, source=SeededSource(2), **{**ASKED, "epsilon": 200.0})
    truth = question.truth(engine)
    assert truth.to_dict()["good"] == [False, True, None]
    for name, slack in (("n", 3), ("s", 20), ("m", 0.3), ("h", 1), ("people", 3)):
        for got, real in zip(answer.value[name], truth[name], strict=False):
            assert abs(got - real) <= slack, name


def test_keys_of_several_columns_and_the_rest(clinic: Any) -> None:
    text = "SELECT good, day, COUNT(*) AS n FROM visit GROUP BY good, day"
    answer = release(clinic, text, keys_per_person=1, other="rest").value
    assert len(answer) == 7
    assert answer.keys == ("good", "day")
    assert answer["good"][-1] == "rest"
    assert answer["day"][-1] is None
    assert abs(sum(answer["n"]) - 201) < 60


def test_top_and_minimum(clinic: Any) -> None:
    text = "SELECT day, COUNT(DISTINCT person) AS n FROM visit GROUP BY day"
    whole = release(clinic, text, keys_per_person=1).value
    one = release(clinic, text, keys_per_person=1, top=1).value
    assert len(whole) == 3
    assert len(one) == 1
    assert one["n"][0] == max(whole["n"])
    assert len(release(clinic, text, keys_per_person=1, minimum=68).value) == 0
    assert len(release(clinic, text, keys_per_person=1, minimum=40).value) == 3


def test_nothing_is_found_where_nobody_is() -> None:
    empty = in_duckdb(())
    text = "SELECT day, COUNT(*) AS n FROM visit GROUP BY day HAVING n > 0 ORDER BY day"
    answer = release(empty, text)
    assert answer.value.to_dict() == {"day": [], "n": [], "n_low": [], "n_high": []}
    assert tulle.Release.from_json(answer.to_json()).value == answer.value
    rest = release(empty, "SELECT day, COUNT(*) AS n FROM visit GROUP BY day", other=True).value
    assert list(rest["day"]) == ["other"]


def test_long_texts_are_no_keys() -> None:
    statements = [
        f"INSERT INTO visit (person, town, cost) VALUES ({who}, '{'y' * size}', 1)"
        for size in (LONGEST, LONGEST + 1)
        for who in range(60)
    ]
    answer = release(in_duckdb(statements), "SELECT town, COUNT(*) AS n FROM visit GROUP BY town")
    assert list(answer.value["town"]) == ["y" * LONGEST]


def test_a_key_is_shown_by_itself_and_not_by_how_a_row_spells_it() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit (person INTEGER, town VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO visit SELECT range, 'Oslo' FROM range(100)")
    connection.execute("INSERT INTO visit VALUES (1000, 'OSLO')")
    town = tulle.Database.connect(connection, owners={"visit": "person"})
    answer = release(town, "SELECT town, COUNT(*) AS n FROM visit GROUP BY town")
    assert list(answer.value["town"]) == ["Oslo"]


def signs_of_keys() -> list[float]:
    """Return the keys that are found where half of the people have each sign of zero and NaN."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visit AS SELECT range AS person, CASE range % 4 WHEN 0 THEN -0e0 WHEN 1 THEN "
        "0e0 WHEN 2 THEN -x WHEN 3 THEN x END AS x FROM range(400), (SELECT CAST('NaN' AS DOUBLE) "
        "AS x)"
    )
    town = tulle.Database.connect(connection, owners={"visit": "person"})
    answer = release(town, "SELECT x, COUNT(*) AS n FROM visit GROUP BY x")
    return list(answer.value["x"])


def test_a_key_has_no_sign_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    zero, nan = signs_of_keys()
    assert math.copysign(1.0, zero) == 1.0
    assert zero == 0.0
    assert math.isnan(nan)
    # A broken version that writes numbers as rows have them.
    monkeypatch.setattr(key_statements, "SameValue", lambda this: this)
    assert len(signs_of_keys()) == 4


def test_the_order_of_rows_plays_no_part() -> None:
    text = "SELECT town, day, SUM(cost) AS s, COUNT(DISTINCT person) AS n FROM visit GROUP BY 1, 2"
    listed = list(rows())
    one = release(in_duckdb(listed), text, keys_per_person=2)
    other = release(in_duckdb(reversed(listed)), text, keys_per_person=2)
    assert one.value == other.value


def sums_of_the_rest() -> list[float]:
    """Return one person's sum over all keys that are not shown, with rows in other orders."""
    found = []
    for order in ("i", "-i", "hash(i)"):
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.execute(
            "CREATE TABLE t AS SELECT 'k' || i AS k, 1 AS person, "
            "CAST(hash(i) % 10007 AS DOUBLE) / 7919 * POW(2, i % 40) AS w "
            f"FROM range(3000) r(i) ORDER BY {order}"
        )
        data = tulle.Database.connect(connection, owners={"t": "person"})
        asked = tulle.sql("SELECT k, SUM(w) AS s FROM t GROUP BY k", other="rest").bind(data)
        assert isinstance(asked, DiscoveredTable)
        assert asked.bound is not None
        none = FoundKeys(("k",), asked.bound.rows.kinds, "ab" * 16, (), ((),), "rest")
        (part,) = table_of(asked, asked.bound, none).parts()
        assert isinstance(part, SqlQuery)
        assert part.bound is not None
        (row,) = connection.execute(part.bound.text).fetchall()
        found.append(row[2])
    return found


def test_the_order_of_rows_plays_no_part_in_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(set(sums_of_the_rest())) == 1
    # The twin: the engine adds as it likes.
    monkeypatch.setattr(DuckDBDialect, "ordered_sum", lambda self, value: f"SUM({value})")
    assert len(set(sums_of_the_rest())) > 1


def test_neighbours_show_the_same_but_for_numbers(clinic: Any) -> None:
    """The same noise on a neighbour: keys that many have are the same, in the same order."""
    text = "SELECT town, COUNT(*) AS n FROM visit GROUP BY town"
    whole = release(clinic, text)
    for who in (0, 5, 200):
        less = release(clinic.without(clinic.participants()[0][0], who), text)
        assert less.value["town"] == whole.value["town"]
        assert less.value.names == whole.value.names
        assert less.parameters == whole.parameters
        assert len(less.value) == len(whole.value)


def test_the_choice_of_keys_is_even_and_keeps_to_the_bound() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visit AS SELECT p.range AS person, k.range AS k "
        "FROM range(3000) p, range(10) k"
    )
    many = tulle.Database.connect(connection, owners={"visit": "person"})
    question = tulle.sql("SELECT k, COUNT(DISTINCT person) AS n FROM visit GROUP BY k")
    bound = question.bind(many).bound  # type: ignore[union-attr]
    counts = many._engine.fetch(bound.rows.counted("ab" * 16, 4)).to_pydict()["__tulle_people"]
    assert sum(counts) == 12_000
    # Each key is kept by two in five, with a deviation of 27.
    assert all(abs(count - 1200) < 160 for count in counts)
    other = many._engine.fetch(bound.rows.counted("cd" * 16, 4)).to_pydict()["__tulle_people"]
    assert sorted(other) != sorted(counts)


def test_rows_of_several_people_take_keys_of_one_table(clinic: Any) -> None:
    text = (
        "SELECT v.good, COUNT(*) AS n FROM visit v JOIN knows k ON k.a = v.person "
        "WHERE v.cost < 9 GROUP BY v.good"
    )
    plan = plan_for(clinic, tulle.sql(text), **ASKED)
    assert "keys are found in visit first" in str(plan)
    answer = release(clinic, text, keys_per_person=1).value
    assert list(answer["good"]) == [False, True]
    within = (
        "SELECT good, COUNT(*) AS n FROM visit WHERE person IN (SELECT a FROM knows) GROUP BY 1"
    )
    assert list(release(clinic, within, keys_per_person=1).value["good"]) == [False, True]


def test_rows_of_several_people_take_keys_of_a_public_table_for_nothing(clinic: Any) -> None:
    text = "SELECT l.label, COUNT(*) AS n FROM knows k JOIN kinds l ON l.kind = k.kind GROUP BY 1"
    answer = tulle.release(clinic, tulle.sql(text), unit="participant", epsilon=1.0)
    assert list(answer.value["label"]) == ["none", "one", "two"]
    assert answer.guarantee.delta == 0
    assert answer.parameters["epsilon_answers"] == "1"
    with pytest.raises(QueryError, match="public table kinds"):
        plan_for(clinic, tulle.sql(text, top=1), unit="participant", epsilon=1.0)
    rest = tulle.release(clinic, tulle.sql(text, other=True), unit="participant", epsilon=1.0)
    assert list(rest.value["label"]) == ["none", "one", "two", "other"]


def test_only_public_rows(clinic: Any) -> None:
    for options in ({}, {"other": True}):
        question = tulle.sql("SELECT kind, COUNT(*) AS n FROM kinds GROUP BY kind", **options)
        answer = tulle.release(clinic, question, unit="participant", epsilon=1.0)
        assert list(answer.value["kind"][:3]) == ["k0", "k1", "k2"]


def test_a_digest_that_two_keys_share_counts_a_person_once(clinic: Any) -> None:
    question = tulle.sql("SELECT town, COUNT(*) FROM visit GROUP BY town")
    bound = question.bind(clinic).bound  # type: ignore[union-attr]
    counted = bound.rows.counted("0" * 32, 4)
    poor = counted.replace("md5('" + "0" * 32 + "' || q.", "left('same', 4 + 0 * length(q.")
    poor = poor.replace("__tulle_group)", "__tulle_group))")
    (found,) = clinic._engine.fetch(poor).to_pydict()["__tulle_people"]
    # The one who has a text that is too long has no key.
    assert found == 200


def test_the_plan_says_from_which_size_on_a_key_is_seen(clinic: Any) -> None:
    question = tulle.sql("SELECT town, COUNT(*) FROM visit GROUP BY town", keys_per_person=1)
    plan = plan_for(clinic, question, unit="participant", epsilon=1.0, delta=1e-6)
    seen = plan.chosen.settings["seen_from"]
    assert f"seen with 95 % chance from {seen} people on" in str(plan)
    assert plan.to_json()["expected"][0] in str(plan)
    assert 20 < seen < 45


REFUSED = [
    ("SELECT kind, COUNT(*) FROM knows GROUP BY kind", {}, "groups="),
    ("SELECT DISTINCT kind, COUNT(*) FROM knows GROUP BY kind", {}, "DISTINCT"),
    ("SELECT town, COUNT(*) FROM visit GROUP BY ROLLUP (town)", {}, "ROLLUP"),
    ("SELECT town, COUNT(*) FROM visit GROUP BY ROLLUP (town)", {}, "list the columns"),
    ("SELECT town, COUNT(*) FROM visit GROUP BY town ORDER BY town", {"other": True}, "other="),
    ("SELECT town, COUNT(DISTINCT cost) FROM visit GROUP BY town", {"other": True}, "other="),
    ("SELECT COUNT(*) FROM visit", {"top": 3}, "no GROUP BY"),
    ("SELECT town, COUNT(*) FROM visit GROUP BY town", {"minimum": 0}, "minimum"),
    ("SELECT town, COUNT(*) FROM visit GROUP BY town", {"keys_per_person": 0}, "keys_per_person"),
    ("SELECT town, COUNT(*) FROM visit GROUP BY town", {"top": 0}, "top"),
    ("SELECT town, COUNT(*) FROM visit GROUP BY town", {"other": 3}, "other"),
    ("SELECT v.town, k.kind, COUNT(*) FROM visit v, knows k GROUP BY 1, 2", {}, "several people"),
    ("SELECT INTERVAL 1 DAY AS i, COUNT(*) FROM visit GROUP BY i", {}, "type interval"),
]


@pytest.mark.parametrize(("text", "options", "words"), REFUSED)
def test_what_is_refused_costs_nothing_and_says_what_to_do(
    clinic: Any, text: str, options: Any, words: str
) -> None:
    with pytest.raises((QueryError, InputError), match=words):
        plan_for(clinic, tulle.sql(text, **options), **ASKED)


def test_without_delta_the_error_says_what_to_do(clinic: Any) -> None:
    question = tulle.sql("SELECT town, COUNT(*) FROM visit GROUP BY town")
    with pytest.raises(QueryError, match=r"delta=.*groups=\{'town'"):
        plan_for(clinic, question, unit="participant", epsilon=1.0)


def test_groups_and_options_exclude_each_other() -> None:
    with pytest.raises(InputError, match="leave groups= out"):
        tulle.sql("SELECT a, COUNT(*) FROM t GROUP BY a", groups={"a": [1]}, minimum=3)


def test_the_whole_price_is_spent_where_keys_are_found(clinic: Any) -> None:
    selection = registry.make_mechanism("database", "partition_selection")
    unit = clinic.check_unit("participant")
    for text, options in (
        ("SELECT good, COUNT(*) AS n, AVG(cost) AS m FROM visit GROUP BY good", {}),
        ("SELECT day, COUNT(DISTINCT person) AS n FROM visit GROUP BY day", {"minimum": 3}),
        ("SELECT v.good, COUNT(*) FROM visit v, knows k WHERE k.a = v.person GROUP BY 1", {}),
    ):
        query = tulle.sql(text, **options).bind(clinic)
        terms = Terms(query, unit, Fraction(6), Fraction(1, 10**6), clinic.facts(unit))
        (run,) = watch_runs(selection, [Case(terms, {}, clinic)])
        assert run.good, run.fault
        assert run.cost is not None
        assert run.cost.share > 0.99


def test_an_interval_of_people_covers_all_keys_at_once(clinic: Any) -> None:
    question = tulle.sql(
        "SELECT many, COUNT(DISTINCT person) AS n FROM visit GROUP BY many", keys_per_person=1
    )
    truth = dict(zip(question.truth(clinic)["many"], question.truth(clinic)["n"], strict=True))
    for seed in range(10):
        answer = tulle.release(clinic, question, source=SeededSource(seed), **ASKED).value
        for key, low, high in zip(answer["many"], answer["n_low"], answer["n_high"], strict=True):
            assert low <= truth[key]
            assert high is None


def test_one_row_each_counts_everyone(tmp_path: Any) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, town VARCHAR)")
    connection.execute("INSERT INTO person SELECT range, 't' || (range % 3) FROM range(300)")
    town = tulle.Database.connect(connection, owners={"person": "id"})
    question = tulle.sql("SELECT town, COUNT(DISTINCT id) AS n FROM person GROUP BY town")
    answer = tulle.release(town, question, **ASKED)
    assert answer.parameters["keys_per_person"] == 1
    assert answer.parameters["epsilon_answers"] == "0"
    table = answer.value
    assert list(table["town"]) == ["t0", "t1", "t2"]
    assert np.all(table["n_low"] <= 100)
    assert np.all(table["n_high"] >= 100)


def test_the_ledger_keeps_the_answer_and_gives_it_again(clinic: Any, tmp_path: Any) -> None:
    question = tulle.sql("SELECT good, COUNT(*) AS n FROM visit GROUP BY good", minimum=2)
    with_ledger = tulle.Ledger(tmp_path / "study.ledger")
    study = with_ledger.open("clinic", clinic, unit="participant", epsilon=10, delta=1e-5)
    first = study.ask(question, epsilon=6, delta=1e-6)
    again = study.ask(question, epsilon=6, delta=1e-6)
    assert again.kept
    assert isinstance(first.value, LabelledTable)
    assert again.value == first.value
    assert study.remaining.epsilon == 4
