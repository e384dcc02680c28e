"""Reading the one statement of a question, and what all questions in SQL share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tulle.core.errors import MissingExtraError, QueryError, raise_alone
from tulle.core.logs import quiet
from tulle.core.query import Query, vouched


class SqlQuestion(Query):
    """A statement in a dialect of SQL, with public lists of groups if it has any.

    What a public schema makes of it (``bind``, ``bound_to``), and the answer, each kind says.
    """

    name: ClassVar[str] = "sql"
    kind: ClassVar[str] = "database"
    if TYPE_CHECKING:

        @property
        def text(self) -> str: ...
        @property
        def dialect(self) -> str: ...
        @property
        def functions(self) -> tuple[str, ...]: ...

    @cached_property
    def tree(self) -> Any:
        """The parsed statement; it is not to be changed."""
        return parse_statement(self.text, self.dialect)

    @cached_property
    def line(self) -> str:
        """The statement on one line, without comments, for reading."""
        return str(self.tree.sql(dialect=self.dialect, comments=False))

    def assumptions(self) -> tuple[str, ...]:
        return vouched(self.functions)

    @property
    def _lists(self) -> dict[str, list[Any]]:
        """The public lists of its groups, by name."""
        return {name: list(values) for name, values in getattr(self, "groups", ())}

    def objection(self, dataset: Any) -> str | None:
        """Return why the schema, or the engine by its schema, does not accept the statement."""
        try:
            self.bind(dataset, {})
        except QueryError as error:
            return str(error)
        return None

    def _form(self, text: str, **more: Any) -> dict[str, Any]:
        """Return a canonical form: ``text`` says what is asked, in one spelling."""
        form = {"query": self.name, "text": text, "dialect": self.dialect, **more}
        if self._lists:
            form["groups"] = [[name, [repr(v) for v in vs]] for name, vs in self._lists.items()]
        return form | ({"functions": list(self.functions)} if self.functions else {})

    def _called(self, **options: Any) -> str:
        """Return the call that makes this question."""
        given = {**({"groups": self._lists} if self._lists else {}), **options}
        return f"sql({', '.join([repr(self.line), *(f'{n}={v!r}' for n, v in given.items())])})"

    def __str__(self) -> str:
        return self._called()


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
            with _readable(dialect):
                return cls(tree, str(tree.sql(dialect=dialect, comments=False)))


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Refuse what is nested more deeply than can be worked on; that follows from the text alone.

    Meanwhile the parser's own remarks are kept back: what is not supported is refused in our words.

    Raises:
        QueryError: in place of the interpreter's own error.
    """
    try:
        with quiet(("sqlglot",)):
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
    except ImportError:
        raise_alone(MissingExtraError("sqlglot", "sql", "A question in SQL"))
    if not isinstance(text, str):
        raise QueryError(f"A query is a text; got {type(text).__name__}.")
    with _readable(dialect):
        statements = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    if len(statements) != 1:
        raise QueryError(f"One statement is asked at a time; got {len(statements)}.")
    for node in statements[0].walk():
        # The parser lets some parts be missing, and some be what no dialect has.
        for missing in node.error_messages():
            raise QueryError(f"The query cannot be read as {dialect} SQL: {missing}.")
    from tulle.sql.question.arguments import check_arguments
    from tulle.sql.question.spellings import plain_spelling

    with not_too_deep():
        _forget_comments(statements[0])
        made = plain_spelling(statements[0], dialect)
        check_arguments(made)
        return made


@contextmanager
def _readable(dialect: str) -> Iterator[None]:
    """Refuse what the parser cannot read, or not write again, whatever it raises.

    Raises:
        QueryError: in place of the parser's own error.
    """
    from sqlglot.errors import SqlglotError

    try:
        yield
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise_alone(QueryError(f"The query cannot be read as {dialect} SQL: {first}"))
    except (LookupError, TypeError, ValueError, AttributeError):
        raise_alone(QueryError(f"The query cannot be read as {dialect} SQL."))


def _forget_comments(tree: Any) -> None:
    """Take comments away, and what the parser notes beside a tree.

    ``/* sqlglot.meta name=value */`` would set the marks by which parts that the library wrote are
    told from the user's.
    """
    for node in tree.walk():
        node.pop_comments()
        node.meta.clear()
