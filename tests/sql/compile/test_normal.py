"""Equivalent spellings are one question; questions that differ stay different."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlglot
from tests.sql.sql_generator import Generator
from tests.sql.sql_questions import GROUPED, QUESTIONS
from tests.sql.sql_worlds import connect, random_world

import tulle
import tulle.sql.compile.normal
from tulle.core.errors import QueryError
from tulle.sql.compile.normal import normal_text
from tulle.sql.queries import relation_of, sql
from tulle.sql.schema.schema import Schema

ALIKE = [
    [
        "SELECT COUNT(*) FROM edge",
        "select count( * ) from EDGE",
        'SELECT COUNT(*) FROM "edge"',
        'SELECT COUNT(*) FROM "Edge" AS "E"',
        "SELECT COUNT(*) AS n FROM edge e -- how many",
        "SELECT /* all */ COUNT(*) FROM edge;",
    ],
    [
        "SELECT SUM(w) FROM edge WHERE a = 1 AND b > 2 AND w <> 3",
        "SELECT SUM(e.w) FROM edge e WHERE ((a = 1) AND (e.b > 2 AND (W != 3)))",
        'SELECT SUM("W") FROM edge "x" WHERE "x".a = 1 AND ((b) > (2)) AND w <> 3',
    ],
    [
        "SELECT COUNT(*) FROM edge x JOIN person y ON x.a = y.id",
        "SELECT COUNT(*) FROM edge INNER JOIN person ON a = id",
        "SELECT COUNT(*) FROM edge AS l JOIN person AS r ON (l.a = r.id)",
    ],
    [
        "SELECT COUNT(*) FROM (SELECT DISTINCT a FROM edge) t",
        "SELECT COUNT(*) FROM ((SELECT DISTINCT e.a FROM edge AS e)) u",
    ],
    [
        "WITH e AS (SELECT a, b FROM edge) SELECT COUNT(*) FROM e x, e y WHERE x.b = y.a",
        "with E as (select f.a, f.b from edge f) select count(*) from e p, e q where p.b = q.a",
    ],
    [
        "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM edge e WHERE e.a = p.id)",
        "SELECT COUNT(*) FROM person e WHERE EXISTS (SELECT 1 FROM edge p WHERE p.a = e.id)",
    ],
    ["SELECT COUNT(*) FROM edge, city", "SELECT COUNT(*) FROM edge CROSS JOIN city"],
    ["SELECT SUM(w + 2 * a) FROM edge", "SELECT SUM((w) + ((2) * a)) FROM edge"],
]

DIFFERENT = [
    "SELECT SUM(w + 2 * a) FROM edge",
    "SELECT SUM((w + 2) * a) FROM edge",
    "SELECT SUM(w - 2 - a) FROM edge",
    "SELECT SUM(w - (2 - a)) FROM edge",
    "SELECT SUM(-(w + a)) FROM edge",
    "SELECT SUM(-w + a) FROM edge",
    "SELECT COUNT(*) FROM edge WHERE a = 1 OR b = 1 AND w = 1",
    "SELECT COUNT(*) FROM edge WHERE (a = 1 OR b = 1) AND w = 1",
    "SELECT COUNT(*) FROM edge WHERE NOT (a = 1 AND b = 1)",
    "SELECT COUNT(*) FROM edge WHERE NOT a = 1 AND b = 1",
    "SELECT COUNT(*) FROM edge WHERE a = 1 AND b = 1",
    "SELECT COUNT(*) FROM edge WHERE (a = 1) = (b = 1)",
    "SELECT COUNT(*) FROM person WHERE city = 'A'",
    "SELECT COUNT(*) FROM person WHERE city = 'a'",
    "SELECT COUNT(*) FROM person WHERE city = ' a'",
    "SELECT COUNT(*) FROM edge x JOIN edge y ON x.a = y.b",
    "SELECT COUNT(*) FROM edge x JOIN edge y ON x.b = y.b",
    "SELECT COUNT(*) FROM edge x JOIN edge y ON x.a = x.b",
    "SELECT COUNT(*) FROM (SELECT a FROM edge UNION SELECT b FROM edge) t",
    "SELECT COUNT(*) FROM (SELECT a FROM edge UNION ALL SELECT b FROM edge) t",
    "SELECT COUNT(DISTINCT a) FROM edge",
    "SELECT COUNT(a) FROM edge",
]


@pytest.fixture(scope="module")
def schema() -> Schema:
    return connect(random_world(1)).schema


def described(text: str, schema: Schema, **given: Any) -> Any:
    return sql(text, **given).bound_to(schema.to_json()).canonical()


def test_equivalent_spellings_are_one_question(schema: Schema) -> None:
    for texts in ALIKE:
        assert len({str(described(text, schema)) for text in texts}) == 1, texts


def test_questions_that_differ_stay_different(schema: Schema) -> None:
    listed = [*DIFFERENT, *(texts[0] for texts in ALIKE[:4])]
    asked = [(text, described(text, schema), sql(text).canonical()) for text in listed]
    for (one, bound, plain), (other, *others) in combinations(asked, 2):
        assert bound != others[0], (one, other)
        assert plain != others[1], (one, other)


def test_forgotten_brackets_are_caught(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: brackets are taken away and not put back."""

    def strip(tree: Any) -> None:
        for paren in list(tree.find_all(sqlglot.exp.Paren)):
            paren.replace(paren.this)

    monkeypatch.setattr(tulle.sql.compile.normal, "_bracket", strip)
    with pytest.raises(AssertionError):
        test_questions_that_differ_stay_different(schema)


def test_the_one_spelling_asks_the_same(schema: Schema) -> None:
    """What is booked, asked again, has the same relation and is its own normal form."""
    database = connect(random_world(1))
    public = schema.to_json()
    texts = [*QUESTIONS, *(Generator(seed).question() for seed in range(20))]
    for text in texts:
        if "COUNT(DISTINCT" in text and text.split("FROM")[0].count(","):
            continue  # several columns are written out in a form that cannot be asked
        again = sql(sql(text).bound_to(public).resolved)
        mine, theirs = relation_of(database, sql(text)), relation_of(database, again)
        np.testing.assert_allclose(mine.total, theirs.total, err_msg=text)
        np.testing.assert_array_equal(mine.participants, theirs.participants, err_msg=text)
        assert again.bound_to(public).resolved == again.text, text
        plain = normal_text(sql(text).tree, "duckdb")
        assert normal_text(sql(plain).tree, "duckdb") == plain, text


def test_names_are_compared_as_the_engine_does() -> None:
    tables = {"p": {"id": "integer"}, "P": {"id": "integer"}}
    apart = Schema.build("postgres", tables, owners={"p": "id", "P": "id"})
    small, large = 'SELECT COUNT(*) FROM "p"', 'SELECT COUNT(*) FROM "P"'
    assert described(small, apart) != described(large, apart)
    assert described("SELECT COUNT(*) FROM P", apart) == described(small, apart)
    # Without a schema nobody knows; what no engine tells apart is one question.
    assert sql(small).canonical() != sql(large).canonical()
    assert sql("SELECT COUNT(*) FROM P").canonical() == sql(small).canonical()
    for dialect in ("duckdb", "spark"):
        one = Schema.build(dialect, {"p": {"id": "int"}}, owners={"p": "id"})
        assert described(small, one) == described(large, one)


def test_groups_and_functions_are_part_of_the_question(schema: Schema) -> None:
    text, groups = GROUPED[0]
    other = {"city": ["ams", "ber"]}
    assert described(text, schema, groups=groups) != described(text, schema, groups=other)
    short = "select p.CITY, count(*) from person p group by 1"
    assert described(text, schema, groups=groups) == described(short, schema, groups=groups)


def test_a_ledger_finds_the_answer_of_another_spelling(tmp_path: Path) -> None:
    database = connect(random_world(1))
    study = tulle.Ledger(tmp_path / "study.ledger").open(
        "study", database, unit="participant", epsilon=10
    )
    for texts in ALIKE:
        before = study.remaining
        first = study.ask(sql(texts[0]), epsilon=0.5)
        for text in texts[1:]:
            assert study.ask(sql(text), epsilon=0.5).debit == first.debit
        assert before - study.remaining == pytest.approx(0.5)
    whole = study.ask(sql(ALIKE[0][0]) / 2, epsilon=0.5)
    assert study.ask(sql(ALIKE[0][3]) / 2, epsilon=0.5).debit == whole.debit
    # The custodian's page still finds the question that was booked, from its text.
    booked = study._ledger.releases("study")
    assert [str(study._asked_again(release, ())) for release in booked] == [
        *(str(sql(texts[0])) for texts in ALIKE),
        str(sql(ALIKE[0][0]) / 2),
    ]


def test_what_does_not_fit_is_refused_when_it_is_bound(schema: Schema) -> None:
    with pytest.raises(QueryError, match="does not fit the schema"):
        sql("SELECT SUM(nothing) FROM edge").bound_to(schema.to_json())
