"""Reading the one statement of a question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tulle.core.errors import MissingExtraError, QueryError, raise_alone


@dataclass(frozen=True, eq=False)
class Statement:
    """A text that was read once."""

    tree: Any
    """The parsed statement; it is not to be changed."""
    line: str
    """The statement on one line, without comments. Only for reading: writing SQL can change it
    (COUNT(DISTINCT a, b) becomes a CASE), so what runs is always made from the tree."""

    @classmethod
    def read(cls, text: str, dialect: str) -> Statement:
        """Read a text; see :func:`parse_statement`."""
        with not_too_deep():
            tree = parse_statement(text, dialect)
            return cls(tree, str(tree.sql(dialect=dialect, comments=False)))


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Refuse what is nested more deeply than can be worked on; that follows from the text alone.

    Raises:
        QueryError: in place of the interpreter's own error.
    """
    try:
        yield
    except RecursionError:
        raise_alone(
            QueryError(
                "The query is nested too deeply. Write x IN (1, 2, ...) in place of a long list of "
                "OR, and make long sums and conditions shorter."
            )
        )


def parse_statement(text: str, dialect: str) -> Any:
    """Return the one statement that a text holds.

    Raises:
        QueryError: when it cannot be read, or is not one.
    """
    try:
        import sqlglot
        from sqlglot.errors import SqlglotError
    except ImportError:
        raise_alone(MissingExtraError("sqlglot", "sql", "A question in SQL"))
    if not isinstance(text, str):
        raise QueryError(f"A query is a text; got {type(text).__name__}.")
    try:
        statements = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise_alone(QueryError(f"The query cannot be read as {dialect} SQL: {first}"))
    if len(statements) != 1:
        raise QueryError(f"One statement is asked at a time; got {len(statements)}.")
    from tulle.sql.question.spellings import plain_spelling

    with not_too_deep():
        return plain_spelling(statements[0], dialect)
