"""Sub-selects beside aggregates: the engine's own answer is ours, on rows with NULL among them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql.question.test_spellings import OWNERS, world

from tulle.core.errors import QueryError
from tulle.sql.data import Database
from tulle.sql.queries import sql

BUYS = "EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id)"
CITIES = {"city": ["Rome", "Oslo", "Bern", None]}
TRUTHS = {"buys": [True, False]}

STATEMENTS: list[tuple[str, Any]] = [
    (f"SELECT city, COUNT(*) FILTER (WHERE {BUYS}) AS n FROM users u GROUP BY city", CITIES),
    (f"SELECT u.city, COUNT(*) AS n, COUNT_IF(NOT {BUYS}) AS m FROM users u GROUP BY 1", CITIES),
    (f"SELECT {BUYS} AS buys, COUNT(*) AS n FROM users u GROUP BY buys", TRUTHS),
    (f"SELECT {BUYS} AS buys, COUNT(*) AS n FROM users u GROUP BY 1 HAVING COUNT(*) > 2", TRUTHS),
    (
        "SELECT SUM(price + (SELECT COUNT(*) FROM city c WHERE c.city IS NOT NULL)) FROM orders",
        None,
    ),
    (
        "SELECT COUNT(*) AS n, SUM(CASE WHEN id IN (SELECT user_id FROM orders WHERE price > 2) "
        "THEN 1 ELSE 0 END) AS buyers FROM users",
        None,
    ),
    (
        "SELECT AVG(n) AS mean FROM (SELECT 2 * (SELECT COUNT(*) FROM orders o WHERE "
        "o.user_id = u.id) AS n FROM users u) t",
        None,
    ),
    (
        "SELECT u.city AS city, SUM(o.price) FILTER (WHERE o.price > (SELECT MIN(p.price) FROM "
        "orders p WHERE p.user_id = o.user_id)) AS above FROM users u JOIN orders o "
        "ON o.user_id = u.id GROUP BY u.city ORDER BY above",
        CITIES,
    ),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("text", "groups"), STATEMENTS)
def test_the_engines_own_answer_is_ours(text: str, groups: Any, seed: int) -> None:
    connection = world(seed)
    database = Database.connect(connection, owners=OWNERS, public=["city"])
    found: Any = sql(text, groups=groups).truth(database)
    rows = connection.cursor().execute(text).fetchall()
    if not hasattr(found, "names"):
        assert float(found) == pytest.approx(float(rows[0][0] or 0))
        return
    width = len(found.keys)
    theirs = {row[:width]: row[width:] for row in rows}
    for row in zip(*(found[name] for name in found.names), strict=True):
        expected = theirs.get(row[:width], [0] * len(row[width:]))
        for mine, other in zip(row[width:], expected, strict=True):
            assert float(mine or 0) == pytest.approx(float(other or 0))
    if groups and "HAVING" not in text:
        shown = list(zip(*(found[name] for name in found.keys), strict=True))
        assert set(theirs) <= set(shown)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT_IF(price IN (SELECT id FROM users)) AS n FROM orders", "Compare the owners"),
        ("SELECT SUM(price - (SELECT MIN(price) FROM orders)) FROM orders", "Compare the owners"),
        (
            "SELECT COUNT(*) AS n FROM orders HAVING COUNT(*) > (SELECT 2 FROM city)",
            "question of its own",
        ),
    ],
)
def test_what_is_looked_up_is_one_persons_own(text: str, words: str) -> None:
    database = Database.connect(world(0), owners=OWNERS, public=["city"])
    with pytest.raises(QueryError, match=words):
        sql(text).bind(database)


def test_a_condition_is_a_key_as_it_stands() -> None:
    """Without brackets city = 'Rome' OR id > 2 = TRUE would be another condition."""
    connection = world(1)
    database = Database.connect(connection, owners=OWNERS, public=["city"])
    for condition in ("city = 'Rome' OR id > 2", "city = 'Rome'", "NOT id > 2 AND city = 'Oslo'"):
        text = f"SELECT {condition} AS k, COUNT(*) AS n FROM users GROUP BY k"
        table: Any = sql(text, groups={"k": [True, False, None]}).truth(database)
        theirs = dict(connection.cursor().execute(text).fetchall())
        mine = dict(zip(table["k"], table["n"], strict=True))
        assert mine == {key: theirs.get(key, 0) for key in mine}


def test_a_public_row_is_looked_up_by_its_key() -> None:
    """There may be two otherwise; whether there are must not show, even where the key is wrong."""
    connection = world(0)
    text = "SELECT {a} FROM users u WHERE (SELECT country FROM city c WHERE c.city = u.city) = 'IT'"
    counted = text.format(a="COUNT(*)")
    plain = Database.connect(connection, owners=OWNERS, public=["city"])
    with pytest.raises(QueryError, match="whole primary key"):
        sql(counted).bind(plain)
    keyed = Database.connect(connection, owners=OWNERS, public=["city"], keys={"city": "city"})
    rome = connection.cursor().execute("SELECT COUNT(*) FROM users WHERE city = 'Rome'").fetchone()
    # Rome is there twice: one of the two is taken.
    assert sql(counted).truth(keyed) == rome[0] > 0
    for other in ("c.country = u.city", "c.city > u.city", "c.city = c.country"):
        with pytest.raises(QueryError, match="whole primary key"):
            sql(counted.replace("c.city = u.city", other)).bind(keyed)
