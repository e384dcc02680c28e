"""Views and computed columns of the database, written out as sub-selects over its tables.

An engine evaluates a view's own expressions while it reads it, and may stop at a row. So a view is
never read as such: a question about it is a question about its SELECT, which is checked, compiled
and analysed for owners like any sub-select of the question itself. Which views can be, and what
they say, is settled when the database is connected; no row is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.qualify import qualify

from tulle.core.errors import QueryError, raise_alone
from tulle.sql.question.check import check_rows
from tulle.sql.question.parse import not_too_deep, parse_statement
from tulle.sql.schema.catalogue import Definition
from tulle.sql.schema.schema import Schema

INSTEAD = "Ask about its tables, or make it a table: CREATE TABLE ... AS SELECT * FROM it."


def with_views(schema: Schema, definitions: Mapping[str, Definition]) -> Schema:
    """Return the schema with the views that can be written out, and why the others cannot be."""
    reader = _Reader(schema, definitions)
    views: dict[str, str] = {}
    refused: dict[str, str] = {}
    for name in definitions:
        try:
            with not_too_deep():
                views[name] = reader.read(name, ()).sql(dialect=schema.dialect)
        except QueryError as error:
            refused[name] = str(error)
    lost = [name for name in refused if name in schema.tables]
    # What is stored can be asked about all the same; computed columns are then not there.
    refused = {name: reason for name, reason in refused.items() if name not in lost}
    return schema.with_views(views, refused)


def expand(tree: Any, schema: Schema) -> Any:
    """Return the statement with every view in FROM replaced by its SELECT."""
    if not schema.views:
        return tree
    views = {_normal(exp.to_identifier(v, quoted=True), schema): t for v, t in schema.views.items()}
    tree = tree.copy()
    for source, named in list(_sources(tree, schema)):
        text = views.get(_normal(source.this, schema))
        if named or text is None or source.args.get("db"):
            continue
        body = _parsed(text, schema.dialect).copy()
        _check_capture(source, body, schema)
        _replace(source, body)
    return tree


class _Reader:
    """Reads definitions; those that name others are read with these written out."""

    def __init__(self, schema: Schema, definitions: Mapping[str, Definition]) -> None:
        self._schema = schema
        self._definitions = definitions
        self._names = {self._key(name): name for name in definitions}
        self._tables = {self._key(name): name for name in schema.tables}

    def _key(self, name: str) -> str:
        return _normal(exp.to_identifier(name, quoted=True), self._schema)

    def read(self, name: str, above: tuple[str, ...]) -> Any:
        """Return a definition's SELECT over declared tables, with the columns' names.

        Raises:
            QueryError: with the end of a sentence about the view.
        """
        definition = self._definitions[name]
        if not definition.text:
            raise QueryError(definition.reason)
        if name in above:
            raise QueryError(f"is a view that reads itself. {INSTEAD}")
        try:
            tree = parse_statement(definition.text, self._schema.dialect)
            if not isinstance(tree, exp.Query):
                raise QueryError("it is not a SELECT.")
            for source, named in list(_sources(tree, self._schema)):
                if not named:
                    self._place(source)
            _open_brackets(tree)
            check_rows(tree, ())
        except QueryError as error:
            reason = str(error)
            raise_alone(QueryError(f"is a view that cannot be asked about: {reason} {INSTEAD}"))
        for source, named in list(_sources(tree, self._schema)):
            if named:
                continue
            key = _normal(source.this, self._schema)
            inner = self._names.get(key)
            if inner is not None and not (inner == name and key in self._tables):
                body = self.read(inner, (*above, name))
                _check_capture(source, body, self._schema)
                _replace(source, body)
            elif key not in self._tables:
                raise QueryError(
                    f"is a view over {source.name}, which is neither owned nor public. Add "
                    f"{source.name} to owners= or public=, or make the view a table: CREATE TABLE "
                    "... AS SELECT * FROM it."
                )
        return self._columns(tree, definition.columns)

    def _written_out(self, tree: Any) -> list[str]:
        """Return the names of the columns of a SELECT with stars."""
        schema = self._schema
        try:
            found = qualify(tree.copy(), dialect=schema.dialect, schema=schema.types)
            return list(found.named_selects)
        except SqlglotError:
            raise_alone(QueryError(f"is a view that does not fit its tables any more. {INSTEAD}"))

    def _place(self, source: Any) -> None:
        """Take away the schema that the tables are in anyway.

        Raises:
            QueryError: for a table of another one, or a function in its place.
        """
        if not isinstance(source.this, exp.Identifier):
            raise QueryError(f"it reads {source.this.sql()[:60]}, which is not a table.")
        given = [source.args[part].name for part in ("catalog", "db") if source.args.get(part)]
        places = {place for place in self._schema.places.values() if place}
        if given and not any(tuple(given) == place[-len(given) :] for place in places):
            raise QueryError(f"it reads {source.sql()[:60]}, which is in another schema.")
        source.set("db", None)
        source.set("catalog", None)

    def _columns(self, tree: Any, columns: tuple[str, ...]) -> Any:
        """Give the columns the names that the engine's catalogue has for them."""
        first = tree
        while not isinstance(first, exp.Select):
            first = first.this
        if not any(e.is_star for e in first.expressions):
            found = len(first.expressions)
            names = list(columns)
        else:
            # Only to write the stars out; the statement itself is resolved with the question.
            names = self._written_out(tree)
            found = len(names)
        if found != len(columns) or len(set(names)) != len(names):
            raise QueryError(
                "is a view whose columns are not those of its tables any more, or have one name "
                f"twice. {INSTEAD}"
            )
        identifiers = [exp.to_identifier(name, quoted=True) for name in columns]
        if names == list(columns) and names and not any(e.is_star for e in first.expressions):
            for expression, identifier in zip(list(first.expressions), identifiers, strict=True):
                expression.replace(exp.alias_(expression.unalias().copy(), identifier))
            return tree
        if [_normal(identifier, self._schema) for identifier in identifiers] == names:
            return tree
        chosen = [
            exp.alias_(exp.column(exp.to_identifier(name, quoted=True), table="inner_rows"), column)
            for name, column in zip(names, identifiers, strict=True)
        ]
        alias = exp.TableAlias(this=exp.to_identifier("inner_rows"))
        return exp.select(*chosen).from_(exp.Subquery(this=tree, alias=alias))


def _open_brackets(tree: Any) -> None:
    """Take joins out of brackets, which engines put around them; inner joins mean the same then."""
    for select in tree.find_all(exp.Select):
        start = select.args.get("from_")
        if start is None:
            continue
        first, waiting = _opened(start.this)
        start.set("this", first)
        joins: list[Any] = []
        for join in [*waiting, *(select.args.get("joins") or [])]:
            source, inner = _opened(join.this)
            if inner and not any(one.args.get("side") for one in (join, *inner)):
                # All conditions come last, where every source is known.
                on = [one.args.get("on") for one in (*inner, join) if one.args.get("on")]
                using = [one for one in (join, *inner) if one.args.get("using")]
                if not using:
                    joins.append(exp.Join(this=source))
                    joins += [exp.Join(this=one.this) for one in inner]
                    joins[-1].set("on", exp.and_(*on) if on else None)
                    continue
            joins.append(join)
        select.set("joins", joins or None)


def _opened(source: Any) -> tuple[Any, list[Any]]:
    """Return the first source of a join in brackets, and its joins; or the source as it is."""
    if not isinstance(source, exp.Subquery) or source.alias:
        return source, []
    first: Any = source
    joins = list(source.args.get("joins") or [])
    while isinstance(first, exp.Subquery) and not first.alias:
        if not isinstance(first.this, exp.Table | exp.Subquery):
            return source, []
        first = first.this
        joins = [*(first.args.get("joins") or []), *joins]
    first = first.copy()
    first.set("joins", None)
    return first, [join.copy() for join in joins]


def _sources(tree: Any, schema: Schema) -> Iterator[tuple[Any, bool]]:
    """Yield every name in FROM, and whether it is one that WITH has given."""
    for source in tree.find_all(exp.Table):
        named = isinstance(source.this, exp.Identifier) and _normal(source.this, schema) in _given(
            source, schema
        )
        yield source, named and not source.args.get("db")


def _given(source: Any, schema: Schema) -> set[str]:
    """Return the names that WITH has given where a source stands.

    Inside a body only the names before it are known: WITH t AS (SELECT ... FROM t) is fine.
    """
    known: set[str] = set()
    node: Any = source
    while node is not None:
        above = node.parent
        listed: list[Any] = []
        if isinstance(node, exp.CTE):
            everything = above.expressions
            listed = everything[: [id(cte) for cte in everything].index(id(node))]
            above = above.parent.parent
        elif node.args.get("with_") is not None:
            listed = node.args["with_"].expressions
        known |= {_normal(cte.args["alias"].this, schema) for cte in listed}
        node = above
    return known


def _check_capture(source: Any, body: Any, schema: Schema) -> None:
    """Refuse a name of WITH that a table of the view's own would be taken for.

    Raises:
        QueryError: naming it.
    """
    outside = _given(source, schema)
    for inner, named in _sources(body, schema):
        if not named and _normal(inner.this, schema) in outside:
            raise QueryError(
                f"WITH {inner.name} hides a table that the view {source.name} reads; choose "
                "another name."
            )


def _replace(source: Any, body: Any) -> None:
    alias = source.args.get("alias")
    if alias is None:
        alias = exp.TableAlias(this=source.this.copy())
    source.replace(exp.Subquery(this=body, alias=alias.copy()))


def _normal(identifier: Any, schema: Schema) -> str:
    return str(normalize_identifiers(identifier.copy(), dialect=schema.dialect).name)


@lru_cache(maxsize=512)
def _parsed(text: str, dialect: str) -> Any:
    return parse_statement(text, dialect)
