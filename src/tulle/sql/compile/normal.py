"""One spelling for all spellings of a question, so that a ledger knows it again."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import traverse_scope

from tulle.sql.compile.names import resolve
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.schema import Schema

_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In)
"""What binds more or less tightly than what stands beside it."""


def resolved_text(resolved: Any, dialect: str) -> str:
    """Return a statement in one spelling: case, quotes, brackets, spaces, comments, aliases.

    Its names are resolved (:attr:`tulle.sql.compile.names.Named.resolved`): every column says which
    table it is from. Tables have names by their place, and names are compared as the schema's
    engine does.
    """
    whole = resolved.copy()
    _name_by_place(whole)
    return _spelled(whole, dialect)


def normal_text(tree: Any, dialect: str, schema: Schema | None = None) -> str:
    """Return a statement in one spelling, as far as that is possible without a schema.

    Without one, only names that no engine tells apart become equal: all of them read a name without
    quotes in lower case. With one it is :func:`resolved_text`.

    Raises:
        QueryError: when the statement does not fit the schema.

    Example:
        >>> import sqlglot
        >>> trees = map(sqlglot.parse_one, ["select count(*) FROM P", 'SELECT (COUNT(*)) from "p"'])
        >>> len({normal_text(tree, "duckdb") for tree in trees})
        1
    """
    if schema is not None:
        return resolved_text(resolve(tree, schema), dialect)
    whole = tree.copy()
    for name in whole.find_all(exp.Identifier):
        normalize_identifiers(name)
        name.set("quoted", True)
    return _spelled(whole, dialect)


def _spelled(whole: Any, dialect: str) -> str:
    for expression in list(whole.expressions):
        if isinstance(expression, exp.Alias) and isinstance(expression.this.unnest(), exp.AggFunc):
            # What the answer is called asks nothing.
            expression.replace(expression.this)
    for join in whole.find_all(exp.Join):
        if str(join.args.get("kind") or "").upper() in {"INNER", "CROSS"}:
            join.set("kind", None)
    _bracket(whole)
    return str(whole.sql(dialect=dialect, comments=False, copy=False))


def _name_by_place(tree: Any) -> None:
    """Call every source t0, t1, ... in the order in which they are found."""
    renamed: list[tuple[Any, str]] = []
    for scope in traverse_scope(tree):
        for name, (node, _) in scope.selected_sources.items():
            holder: Any = node
            while not isinstance(holder, exp.Table | exp.Subquery) or holder.alias != name:
                holder = holder.parent
            # In two steps: a new name must not be taken for an old one that is still there.
            between = f"{RESERVED}_{len(renamed)}"
            for column in scope.columns:
                if column.table == name:
                    column.set("table", exp.to_identifier(between, quoted=True))
            holder.args["alias"].set("this", exp.to_identifier(between, quoted=True))
            renamed.append((holder, between))
    final = {between: f"t{place}" for place, (_, between) in enumerate(renamed)}
    for column in tree.find_all(exp.Column):
        if column.table in final:
            column.set("table", exp.to_identifier(final[column.table], quoted=True))
    for holder, between in renamed:
        holder.args["alias"].set("this", exp.to_identifier(final[between], quoted=True))


def _bracket(tree: Any) -> None:
    """Put brackets around every operator within another one, and nowhere else."""
    for paren in list(tree.find_all(exp.Paren)):
        paren.replace(paren.this)
    for query in list(tree.find_all(exp.Subquery)):
        if isinstance(query.parent, exp.Subquery) and not query.alias:
            query.replace(query.this)
    # From the inside out: what is put into brackets is copied, with what is in it.
    for node in reversed(list(tree.find_all(*_OPERATORS))):
        above = node.parent
        # Sides of AND, or of OR, may be put together in any order.
        joined = isinstance(node, exp.Connector) and type(node) is type(above)
        if isinstance(above, _OPERATORS) and not joined and not isinstance(node, exp.Dot):
            node.replace(exp.Paren(this=node.copy()))
