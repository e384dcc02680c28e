"""Reading the one statement of a question, and what all questions in SQL share."""

from __future__ import annotations

import logging
import random
from contextlib import nullcontext
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")

import sqlglot
from tests.sql.compile.judges import world
from tests.sql.grammar import Grammar
from tests.sql.inside_generator import Inside
from tests.sql.linked_generator import Linked

from tulle.core.errors import QueryError
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
