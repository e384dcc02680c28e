from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tulle
from tulle.graphs.generators import social_network
from tulle.sql.compile.outline import outline_of
from tulle.sql.mechanisms.truncation import LINKED, NETWORK, SINGLE_OWNER, UNLINKED
from tulle.sql.queries import one_aggregate

duckdb = pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

TRIANGLES = (
    "SELECT COUNT(*) FROM edge x JOIN edge y ON x.b = y.a JOIN edge z ON z.a = x.a AND z.b = y.b"
)


@pytest.fixture(scope="module")
def network() -> tulle.Graph:
    return social_network(300, seed=3)


@pytest.fixture(scope="module")
def friends(network: tulle.Graph) -> Any:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE edge (a INTEGER, b INTEGER)")
    connection.executemany("INSERT INTO edge VALUES (?, ?)", network.edges().tolist())
    return tulle.Database.connect(connection, owners={"edge": ["a", "b"]})


def test_a_self_join_counts_what_the_graph_counts(friends: Any, network: tulle.Graph) -> None:
    question = tulle.sql(TRIANGLES)
    truth = tulle.triangles().truth(network)
    assert question.truth(friends) == truth
    errors = []
    for _ in range(15):
        r = tulle.release(friends, question, unit="participant", epsilon=4.0)
        assert isinstance(r.value, int)
        errors.append(abs(r.value - truth) / truth)
    assert np.median(errors) < 0.3


def test_a_ledger_books_sql(friends: Any, tmp_path: Path) -> None:
    study = tulle.Ledger(tmp_path / "study.ledger").open(
        "friends", friends, unit="participant", epsilon=2.0
    )
    first = study.ask(tulle.sql(TRIANGLES), epsilon=0.5)
    # The same question in another writing is the same question.
    again = study.ask(tulle.sql(TRIANGLES.lower().replace(" join", "\n  join")), epsilon=0.5)
    assert again.debit == first.debit
    assert study.remaining == 1.5
    with pytest.raises(tulle.QueryError):
        study.ask(tulle.sql("SELECT COUNT(*) FROM nowhere"), epsilon=0.5)
    with pytest.raises(tulle.QueryError):
        study.ask(tulle.sql("SELECT COUNT(nothing) FROM edge"), epsilon=0.5)
    assert study.remaining == 1.5


def test_public_groups_give_one_number_each(friends: Any) -> None:
    question = tulle.sql(
        "SELECT a % 3 AS k, COUNT(*) FROM edge GROUP BY k", groups={"k": [0, 1, 2, 7]}
    )
    r = tulle.release(friends, question, unit="participant", epsilon=8.0)
    assert r.parameters["groups"] == len(r.value) == 4
    assert r.value.names == ("k", "COUNT(*)", "COUNT(*)_low", "COUNT(*)_high")
    assert list(r.value["k"]) == [0, 1, 2, 7]
    assert list(r.value["COUNT(*)_high"]) == [None] * 4
    assert "COUNT(*) at least COUNT(*)_low, no upper end is known" in str(r)
    assert tulle.Release.from_json(r.to_json()).value == r.value
    (part,) = r.parts.values()
    assert part.value.tolist() == list(r.value["COUNT(*)"])
    assert part.guarantee == r.guarantee
    low, high = part.interval(0.9)
    assert low.shape == (4,)
    assert np.isinf(high).all()


def test_a_sum_pays_for_both_signs(friends: Any) -> None:
    question = tulle.sql("SELECT SUM(a - 100) FROM edge")
    r = tulle.release(friends, question, unit="participant", epsilon=4.0)
    assert len(r.parameters["thresholds"]) == 2
    spent = tulle.core.validate.rational(r.parameters["epsilon_select"])
    spent += tulle.core.validate.rational(r.parameters["epsilon_answer"])
    assert spent == 2


def test_plans_do_not_look_at_rows(friends: Any) -> None:
    from tulle.ledger.answer import plan_for

    smaller = friends.without("", friends.participants()[0][1]) if friends.participants() else None
    question = tulle.sql(TRIANGLES)
    plans = [
        repr(plan_for(data, question, unit="participant", epsilon=1.0))
        for data in (friends, smaller)
        if data is not None
    ]
    assert len(set(plans)) == 1


def settings_of(database: Any, text: str, **options: Any) -> Any:
    from tulle.core.mechanism import Terms
    from tulle.core.validate import rational
    from tulle.sql.mechanisms.truncation import DatabaseRecursive

    unit = database.check_unit("participant")
    terms = Terms(tulle.sql(text), unit, rational(1), rational(0), database.facts(unit))
    return DatabaseRecursive().settings(terms, options)


def test_thresholds_start_where_public_facts_say(friends: Any) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE person (id INTEGER, age INTEGER); CREATE TABLE pay (who INTEGER, x DOUBLE);"
        "CREATE TABLE edge (a INTEGER, b INTEGER)"
    )
    database = tulle.Database.connect(
        connection,
        owners={"person": "id", "pay": "who", "edge": ["a", "b"]},
        ranges={"pay.x": (0, 500)},
    )
    found = {
        text: (settings_of(database, text)["theta"], settings_of(database, text)["reach"])
        for text in (
            "SELECT COUNT(*) FROM person JOIN pay ON id = who",
            "SELECT SUM(x / 2) FROM pay",
            "SELECT SUM(2 * x) FROM pay",
            "SELECT SUM(age) FROM person",
            "SELECT COUNT(*) FROM person WHERE id IN (SELECT who FROM pay)",
            "SELECT COUNT(*) FROM person WHERE age IN (SELECT who FROM pay)",
            "SELECT COUNT(*) FROM edge",
            "SELECT COUNT(*) FROM pay p, pay q",
        )
    }
    # One row adds at most this; an undeclared column's size is not known.
    assert list(found.values()) == [
        (1.0, SINGLE_OWNER.reach),
        (pytest.approx(250.0), SINGLE_OWNER.reach),
        (1000.0, SINGLE_OWNER.reach),
        (NETWORK.theta, SINGLE_OWNER.reach),
        (1.0, SINGLE_OWNER.reach),
        (1.0, UNLINKED.reach),
        (1.0, LINKED.reach),
        (NETWORK.theta, NETWORK.reach),
    ]
    asked = settings_of(database, "SELECT COUNT(*) FROM pay", theta=3, reach=5)
    assert (asked["theta"], asked["reach"]) == (3.0, 5.0)


def test_a_plain_count_is_accurate() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE person AS SELECT range AS id FROM range(5000)")
    database = tulle.Database.connect(connection, owners={"person": "id"})
    question = tulle.sql("SELECT COUNT(*) FROM person")
    errors = [
        abs(tulle.release(database, question, unit="participant", epsilon=1.0).value - 5000)
        for _ in range(40)
    ]
    # Everyone has one row: noise of two rows over three quarters of epsilon, or a little more.
    assert np.median(errors) < 8


SHOP = """
    CREATE TABLE customer (id INTEGER, city VARCHAR);
    CREATE TABLE orders (number INTEGER, customer INTEGER, status VARCHAR);
    CREATE TABLE line (orders INTEGER, part INTEGER, price DECIMAL(10, 2));
    CREATE TABLE city (name VARCHAR, country VARCHAR);
    INSERT INTO customer SELECT range, 'c' || range % 5 FROM range(200);
    INSERT INTO orders SELECT range, range // 4, ['a', 'b', 'c'][range % 3 + 1] FROM range(800);
    INSERT INTO line SELECT range // 2, range % 7, range % 10 - 3 FROM range(1600);
    INSERT INTO city SELECT 'c' || range, 'no' FROM range(5);
"""
OWNERS = {
    "customer": "id",
    "orders": "customer",
    "line": "orders -> orders[number]",
}


@pytest.fixture(scope="module")
def shop() -> Any:
    connection = duckdb.connect()
    connection.execute(SHOP)
    return tulle.Database.connect(connection, owners=OWNERS, public=["city"])


@pytest.mark.parametrize(
    ("text", "single_owner"),
    [
        ("SELECT COUNT(*) FROM orders", True),
        ("SELECT COUNT(*) FROM customer JOIN city ON city = name", True),
        ("SELECT COUNT(*) FROM customer JOIN orders ON id = customer", True),
        ("SELECT COUNT(*) FROM orders JOIN line ON line.orders = number", True),
        (
            "SELECT SUM(price) FROM line, orders, customer WHERE orders = number AND customer = id",
            True,
        ),
        ("SELECT COUNT(*) FROM line x JOIN line y ON x.orders = y.orders", True),
        ("SELECT COUNT(*) FROM orders x JOIN orders y ON x.customer = y.customer", True),
        ("SELECT COUNT(*) FROM (SELECT status FROM orders) s", True),
        # Some other order may be compared with, or none.
        ("SELECT COUNT(*) FROM orders JOIN line ON part = number", False),
        ("SELECT COUNT(*) FROM orders JOIN line ON line.orders = number OR part = 3", False),
        ("SELECT COUNT(*) FROM orders JOIN line ON line.orders <= number", False),
        ("SELECT COUNT(*) FROM orders x, orders y", False),
        ("SELECT COUNT(*) FROM orders x JOIN orders y ON x.status = y.status", False),
        ("SELECT COUNT(*) FROM customer WHERE id IN (SELECT customer FROM orders)", True),
        ("SELECT COUNT(*) FROM customer WHERE id IN (SELECT number FROM orders)", False),
        ("SELECT COUNT(DISTINCT status) FROM orders", False),
        ("SELECT COUNT(*) FROM city", False),
    ],
)
def test_the_schema_says_which_rows_are_about_one_participant(
    shop: Any, text: str, single_owner: bool
) -> None:
    facts = shop.facts(shop.check_unit("participant"))
    assert tulle.sql(text).bound_to(facts).single_owner is single_owner
    if single_owner:
        assert outline_of(tulle.sql(text), shop.schema).needs() == "participant"
    r = tulle.release(shop, tulle.sql(text), unit="participant", epsilon=1.0)
    assert r.parameters["single_owner"] is single_owner
    assert np.isfinite(r.value)


def test_groups_of_single_owners_share_one_threshold_and_all_of_epsilon(shop: Any) -> None:
    question = one_aggregate(
        "SELECT status, COUNT(*) FROM orders JOIN line ON line.orders = number GROUP BY status",
        groups={"status": ["a", "b", "c", "none"]},
    )
    truth = question.truth(shop)
    errors, covered = [], 0
    for _ in range(40):
        r = tulle.release(shop, question, unit="participant", epsilon=1.0)
        spent = [r.parameters["epsilon_select"], r.parameters["epsilon_answer"]]
        assert sum(map(tulle.core.validate.rational, spent)) == 1
        assert len(r.parameters["thresholds"]) == 1
        errors.append(np.abs(r.value - truth).max())
        covered += bool(np.all(r.interval(0.9)[0] <= truth))
    # Eight rows of each: a noise scale of about twenty, for each of four groups.
    assert np.median(errors) < 80
    assert covered >= 28


def test_a_doubled_key_costs_accuracy_and_no_privacy() -> None:
    connection = duckdb.connect()
    connection.execute(SHOP)
    connection.execute("INSERT INTO orders SELECT 0, range, 'a' FROM range(200)")
    doubled = tulle.Database.connect(connection, owners=OWNERS, public=["city"])
    question = tulle.sql("SELECT COUNT(*) FROM orders JOIN line ON line.orders = number")
    from tulle.relations.mechanisms.single_owner import SingleOwnerRows
    from tulle.sql.queries import gather_tuples

    gathered = gather_tuples(doubled, question)
    whole = SingleOwnerRows(gathered.relations, signed=False)
    assert whole.clipped(1e9)[0] < question.truth(doubled)
    # Whoever leaves takes their own along, and changes nobody else's.
    for name in (3, 150):
        place = gathered.names.index(("participant", name))
        less = SingleOwnerRows(
            gather_tuples(doubled.without("participant", name), question).relations, signed=False
        )
        rest = np.delete(whole.loads, place)
        assert np.sort(less.loads).tolist() == np.sort(rest).tolist()
        assert whole.clipped(3.0)[0] - less.clipped(3.0)[0] <= 3.0
