"""Anything inside one person's rows: what the engine says, and what falls when somebody leaves.

Random statements of this kind are in ``test_grammar``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlglot import exp
from tests.sql.compile.judges import world, wrong
from tests.sql.grammar import Asked
from tests.sql.inside_generator import Inside

import tulle.sql.compile.inside
import tulle.sql.compile.select_rewriter
from tulle.core.errors import QueryError
from tulle.sql.compile.select_rewriter import Rewriter
from tulle.sql.queries import one_aggregate, sql

SEEDS = (1, 2, 3, 4)


def differences(text: str, seed: int, *, unique: bool) -> Iterator[str]:
    """Yield what is wrong with a question's relation, whoever leaves."""
    return (what for _, what in wrong([Asked(text)], seed, unique=unique))


@pytest.mark.parametrize("kind", ["right", "full"])
def test_random_right_and_full_joins(kind: str) -> None:
    for seed in range(12):
        drawn = Inside(seed)
        inner = getattr(drawn, kind)(0)
        chosen = ("COUNT(*)", "SUM(t.x)", "COUNT(t.y)")[seed % 3]
        text = f"SELECT {chosen} FROM ({inner}) t"
        if seed % 4 == 3:
            text = f"SELECT SUM(c) FROM (SELECT t.k, COUNT(t.x) AS c FROM ({inner}) t GROUP BY t.k)"
        found = list(differences(text, SEEDS[seed % 4], unique=bool(seed % 4)))
        assert found == [], text


QUESTIONS = [
    "SELECT COUNT(*) FROM orders RIGHT JOIN person ON id = cust LEFT JOIN city ON name = note",
    "SELECT COUNT(*) FROM person NATURAL RIGHT JOIN (SELECT cust AS id, okey FROM orders) t",
    "SELECT COUNT(o.okey) FROM person p FULL JOIN orders o ON p.id = o.cust AND o.note = 'x'",
    "SELECT COUNT(*) FROM person p FULL OUTER JOIN orders o ON p.id = o.cust WHERE p.age > 20",
    "SELECT SUM(n) FROM (SELECT id, COUNT(o.okey) AS n FROM person FULL JOIN (SELECT cust AS id,"
    " okey FROM orders) o USING (id) GROUP BY id) t",
    "SELECT COUNT(*) FROM person LEFT JOIN orders ON id = cust LEFT JOIN city ON name = note",
    "SELECT COUNT(*) FROM edge LEFT JOIN person ON a = id",
    "SELECT COUNT(*) FROM edge e LEFT JOIN edge f ON e.a = f.b AND e.b = f.a",
    "SELECT COUNT(*) FROM orders o LEFT JOIN item i ON o.okey = i.okey",
    "SELECT SUM(qty) FROM item WHERE okey IN (SELECT okey FROM item GROUP BY okey"
    " HAVING SUM(qty) > 2)",
    "SELECT COUNT(*) FROM (SELECT okey, COUNT(*) AS n FROM item GROUP BY okey) t WHERE n > 1",
    "SELECT SUM(r) FROM (SELECT okey, ROW_NUMBER() OVER (PARTITION BY okey ORDER BY qty, sku) AS r"
    " FROM item) t",
    "SELECT COUNT(DISTINCT p.city) FROM person p LEFT JOIN orders o ON p.id = o.cust"
    " WHERE EXISTS (SELECT 1 FROM edge WHERE a = p.id)",
    "SELECT COUNT(*) FROM person p LEFT JOIN orders o ON p.id = o.cust AND o.note = 'x'"
    " WHERE EXISTS (SELECT 1 FROM edge WHERE a = p.id)",
    "SELECT COUNT(*) FROM (SELECT note FROM orders o WHERE NOT EXISTS (SELECT 1 FROM item i"
    " WHERE i.okey = o.okey) UNION SELECT city FROM person WHERE id NOT IN (SELECT cust FROM"
    " orders)) t",
    "SELECT COUNT(*) FROM (SELECT cust, price, AVG(price) OVER (PARTITION BY cust) AS a,"
    " COUNT_IF(price > 2) OVER (PARTITION BY cust) AS c FROM orders) t WHERE price > a OR c > 1",
    "SELECT COUNT(*) FROM person p WHERE (SELECT COUNT(*) FROM city c WHERE EXISTS (SELECT 1 FROM"
    " orders o WHERE o.cust = p.id AND o.price > 0 AND c.name = p.city)) > 0",
    "SELECT COUNT(*) FROM person p, visit v WHERE p.id = v.pid AND v.minutes >= (SELECT"
    " MIN(w.minutes) FROM visit w WHERE w.pid = v.pid AND w.sid = v.sid)",
    "SELECT SUM(a.n * b.n) FROM (SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust) a,"
    " (SELECT id, COUNT(*) AS n FROM person GROUP BY id) b WHERE a.n >= b.n",
]


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("text", QUESTIONS)
def test_chosen_questions_inside_one_person(text: str, unique: bool) -> None:
    assert [d for seed in SEEDS[:2] for d in differences(text, seed, unique=unique)] == []


def test_a_distribution_by_public_groups() -> None:
    here = world(2, unique=True)
    database, plain = here.database, here.part.connection
    text = """SELECT n, COUNT(*) AS people FROM (SELECT id, COUNT(okey) AS n FROM person
        LEFT JOIN orders ON id = cust GROUP BY id) AS t GROUP BY n"""
    question = one_aggregate(text, groups={"n": [0, 1, 2, 3, 4]}).bind(database)
    assert question.single_owner
    expected = dict(plain.execute(text).fetchall())
    found = question.truth(database)
    assert list(found) == [expected.get(n, 0) for n in range(5)]
    assert sum(found) > 0


def test_errors_show_the_statement_as_it_was_written() -> None:
    schema = world(1, unique=True).database.schema
    for text, words in (
        (
            "SELECT cust, MAX(price) + MAX(note) AS s FROM orders GROUP BY cust",
            r"MAX\(price\) \+ MAX\(note\) is not supported",
        ),
        (
            "SELECT cust, price FROM orders WHERE price > 2 * (SELECT MAX(age) FROM person p"
            " WHERE p.id = cust)",
            "compute it inside",
        ),
    ):
        with pytest.raises(QueryError, match=words) as caught:
            sql(f"SELECT COUNT(*) FROM ({text}) t").rewrite(schema)
        assert "__tulle" not in str(caught.value)


# --- broken twins: the same check must catch each -----------------------------------------------


def accept_any_match(patch: pytest.MonkeyPatch) -> list[str]:
    """LEFT JOIN, NOT IN and sub-selects that do not compare owners are accepted."""
    true = Rewriter._same_owners
    patch.setattr(Rewriter, "_same_owners", lambda *a, **k: true(*a, **k) or [])
    return [
        "SELECT COUNT(*) FROM person p LEFT JOIN orders o ON p.age - 20 = o.cust",
        "SELECT COUNT(*) FROM person WHERE age - 20 NOT IN (SELECT cust FROM orders)",
        "SELECT COUNT(*) FROM orders o WHERE price < (SELECT MAX(age) - 19 FROM person)",
    ]


def match_without_the_owners(patch: pytest.MonkeyPatch) -> list[str]:
    """Owners are compared as the statement says only: two with one key meet."""
    true = Rewriter._same_owners
    patch.setattr(Rewriter, "_same_owners", lambda *a, **k: None if true(*a, **k) is None else [])
    return ["SELECT COUNT(*) FROM orders o LEFT JOIN item i ON o.okey = i.okey"]


def accept_any_group(patch: pytest.MonkeyPatch) -> list[str]:
    """GROUP BY and PARTITION BY of any columns are accepted."""
    patch.setattr(tulle.sql.compile.inside, "says_whose", lambda found, columns: True)
    return [
        "SELECT COUNT(*) FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) t WHERE n > 1",
        "SELECT SUM(r) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY city ORDER BY id) AS r"
        " FROM person) t",
    ]


def forget_the_owner_of_a_window(patch: pytest.MonkeyPatch) -> list[str]:
    patch.setattr(tulle.sql.compile.inside.Inside, "_by_owner", lambda self: [])
    return [next(text for text in QUESTIONS if "PARTITION BY" in text)]


def keep_rows_of_nobody(patch: pytest.MonkeyPatch) -> list[str]:
    """A NULL owner is a person like others."""
    true = tulle.sql.compile.select_rewriter.owned_rows

    def owned_rows(*arguments: Any) -> Any:
        sources, conditions = true(*arguments)
        return sources, [c for c in conditions if not isinstance(c, exp.Not)]

    patch.setattr(tulle.sql.compile.select_rewriter, "owned_rows", owned_rows)
    return ["SELECT COUNT(*) FROM (SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust) t"]


TWINS = [
    accept_any_match,
    match_without_the_owners,
    accept_any_group,
    forget_the_owner_of_a_window,
    keep_rows_of_nobody,
]


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_caught(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in twin(monkeypatch):
        found = (
            difference
            for unique in (True, False)
            for seed in SEEDS
            for difference in differences(text, seed, unique=unique)
        )
        assert next(found, None) is not None, text
