"""Reading the one statement of a question, and what all questions in SQL share."""

from __future__ import annotations

import logging
from contextlib import nullcontext

import pytest


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
