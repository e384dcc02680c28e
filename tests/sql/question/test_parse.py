"""Reading the one statement of a question, and what all questions in SQL share."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

import sqlglot
from tests.drawn import Drawn
from tests.sql.compile.judges import world
from tests.sql.grammar import Grammar
from tests.sql.inside_generator import Inside
from tests.sql.linked_generator import Linked

from tulle.core.errors import InputError, QueryError
from tulle.sql.compile.inside import EXACTLY
from tulle.sql.compile.owned_rows import TAKING_PART
from tulle.sql.compile.rewrite import BOUND
from tulle.sql.expressions.conversions import WRITTEN
from tulle.sql.queries import sql


def test_the_parser_makes_no_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has to say about a statement is a refusal of ours, or nothing."""
    from tulle.sql.question import parse

    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    def remark() -> None:
        with parse.not_too_deep():
            logging.getLogger("sqlglot").warning("a remark")

    ear = Ear()
    logging.getLogger("sqlglot").addHandler(ear)
    try:
        remark()
        assert heard == []
        monkeypatch.setattr(parse, "quiet", lambda families: nullcontext())
        remark()
        assert heard == ["a remark"]
    finally:
        logging.getLogger("sqlglot").removeHandler(ear)


MARKS = (TAKING_PART, EXACTLY, BOUND, WRITTEN, "groups")
"""What the library tells its own parts of a statement by."""


def commented(text: str, draw: random.Random) -> str:
    """Return a statement with comments between its words that the parser takes for such marks."""
    comment = f"/* sqlglot.meta {', '.join(MARKS)}, {EXACTLY}=1 */"
    made, end = [], 0
    for token in sqlglot.tokenize(text, read="duckdb"):
        made += [text[end : token.start], text[token.start : token.end + 1]]
        end = token.end + 1
        if draw.random() < 0.5:
            made.append(f" {comment} ")
    return "".join(made)


def compiled(text: str) -> str:
    """Return what an engine is given for a statement, or why it is refused."""
    database = world(1, unique=True).database
    try:
        question: Any = sql(text).bind(database)
        return str(question.rewrite(database.schema).text)
    except (QueryError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def told_apart(seeds: range) -> list[str]:
    """Return which random statements mean something else with comments in them."""
    found = []
    for seed in seeds:
        draw = random.Random(seed)
        text = (Inside, Linked, Grammar)[seed % 3](seed).question(1)
        plain = text if isinstance(text, str) else text.text
        if compiled(plain) != compiled(commented(plain, draw)):
            found.append(plain)
    return found


def test_no_comment_changes_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser keeps what a comment says beside a tree, where the library has its own marks."""
    from tulle.sql.question import parse

    assert told_apart(range(30)) == []
    monkeypatch.setattr(parse, "_forget_comments", lambda tree: None)
    assert len(told_apart(range(30))) > 5


DIALECTS = ("duckdb", "postgres", "spark")
UNREADABLE = (
    "SELECT COUNT(*) FROM person WHERE CAST(age AS DECIMAL(id, 2)) > 1",
    "SELECT SUM(CAST(age AS DECIMAL((SELECT 1)))) FROM person",
    "SELECT SUM(x) FROM (SELECT cust, ARG_MAX(, okey) AS x FROM orders GROUP BY cust) t",
    "SELECT SUM(age * @) FROM person",
    "SELECT COUNT(*) FROM person WHERE EXISTS (SELECT FROM edge)",
    "SELECT COUNT(*) FROM person WHERE id IN (SELECT FROM edge)",
    "SELECT COUNT(*) FROM person, (VALUES ()) AS v(n)",
    "SELECT SUM(price / qty) orders JOIN item USING (okey)",
    "SELECT COUNT(*) FROM person FETCH",
    "SELECT VAR_MAP(x) FROM (SELECT id, LAST 2 FROM person) t",
    "SELECT SUM(x) FROM (SELECT J_S_O_N_OBJECT(*) AS x FROM person) t",
)
"""Statements of which a part is missing, or is of another kind than it has to be."""


@lru_cache(maxsize=3)
def words(dialect: str) -> tuple[str, ...]:
    """Return words that the parser knows, and some of the tables'."""
    known: Any = sqlglot.Dialect.get_or_raise(dialect)
    listed = {*known.tokenizer_class.KEYWORDS, *known.parser_class.FUNCTIONS}
    listed |= {"person", "id", "age", "p", "1", "'a'", "(", ")", "*", ",", "(SELECT 1)", "INTEGER"}
    return tuple(sorted(word for word in listed if word.strip() and "{" not in word))


def changed(seed: int) -> tuple[str, str]:
    """Return a dialect, and a random statement in which such words are put in, or some are gone."""
    draw = random.Random(seed)
    dialect = draw.choice(DIALECTS)
    text: Any = (Inside, Linked, Grammar)[seed % 3](seed).question(1)
    text = text if isinstance(text, str) else text.text
    tokens = sqlglot.tokenize(text, read="duckdb")
    made = [text[token.start : token.end + 1] for token in tokens]
    for _ in range(draw.choice([1, 1, 2])):
        place = draw.randrange(len(made))
        added = draw.choice([[], [draw.choice(words(dialect))]])
        made[place : place + draw.choice([0, 1])] = added
    return dialect, " ".join(made)


def raised(texts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the statements that are neither answered nor refused in words."""
    for dialect, text in texts:
        try:
            sql(text, dialect=dialect).bind(world(1, unique=True).database)
        except (QueryError, InputError):
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no refusal
            yield f"{text}: {error!r}"


def test_whatever_cannot_be_read_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [(dialect, text) for text in UNREADABLE for dialect in DIALECTS]
    assert list(raised([*written, *map(changed, range(150))])) == []
    monkeypatch.setattr(sqlglot.exp.Expression, "error_messages", lambda node, given=None: [])
    assert any("ARG_MAX" in found for found in raised(written))


@pytest.mark.slow
@pytest.mark.timed(1)
def test_thousands_of_changed_statements_are_answered_or_refused(drawn: Drawn) -> None:
    for seed in drawn.seeds():
        assert list(raised([changed(seed)])) == []
