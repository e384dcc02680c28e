"""Which SQL is supported, and why the rest is not.

Everything is refused unless it is listed here: a construct that nobody has thought about could
make a row appear when somebody leaves, and then the guarantee would not hold. No data and no
schema is looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NoReturn

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.question.scalars import check_scalar

_SELECT_CLAUSES = {"with_", "expressions", "from_", "joins", "where", "distinct"}

_CLAUSES: dict[str, tuple[str, str]] = {
    "having": ("HAVING", "a group can fall below or rise above the bound when somebody leaves"),
    "limit": ("LIMIT", "another row would move up when somebody leaves"),
    "offset": ("OFFSET", "another row would move up when somebody leaves"),
    "qualify": ("QUALIFY", "it depends on a window, and windows rank rows against each other"),
    "windows": ("WINDOW", "windows rank rows against each other"),
    "order": ("ORDER BY", "a count or a sum has no order, and groups keep the order of groups="),
    "sample": ("TABLESAMPLE", "it draws at random by itself"),
    "laterals": ("LATERAL", "join with ON or WHERE, or use EXISTS"),
    "pivots": ("PIVOT", "write SUM(CASE WHEN ... THEN 1 ELSE 0 END), or GROUP BY with groups="),
    "locks": ("FOR UPDATE", "tables are only read"),
    "into": ("INTO", "tables are only read"),
    "connect": ("CONNECT BY", "write out the joins that are needed"),
    "group": ("GROUP BY", "inside a sub-select use SELECT DISTINCT instead"),
    "hint": ("A hint", "leave it out"),
    "version": ("A table version", "only the current rows can be asked about"),
    "system_time": ("A table version", "only the current rows can be asked about"),
    "ordinality": ("WITH ORDINALITY", "it numbers rows, and numbers move when somebody leaves"),
}

_OUTER = "a row that matches nothing would appear when somebody leaves; use an inner join"

_JOINS = {
    "LEFT": ("LEFT JOIN", _OUTER),
    "RIGHT": ("RIGHT JOIN", _OUTER),
    "FULL": ("FULL JOIN", _OUTER),
    "SEMI": ("SEMI JOIN", "write WHERE EXISTS (SELECT ...) instead"),
    "ANTI": ("ANTI JOIN", "rows would appear when somebody leaves"),
    "ASOF": ("ASOF JOIN", "another row becomes the nearest when somebody leaves"),
    "POSITIONAL": ("POSITIONAL JOIN", "rows move up when somebody leaves"),
}


def refuse(clause: str, reason: str) -> NoReturn:
    """Raise the error for a clause that is not supported.

    Raises:
        QueryError: always.
    """
    raise QueryError(f"{clause} is not supported: {reason}.")


def check_statement(tree: exp.Expression, *, grouped: bool, functions: Collection[str]) -> None:
    """Check the whole statement.

    Raises:
        QueryError: naming the clause and the reason.
    """
    if isinstance(tree, exp.SetOperation):
        refuse(
            _set_name(tree) + " of two answers",
            "ask one aggregate over a union: SELECT COUNT(*) FROM (... UNION ...)",
        )
    if not isinstance(tree, exp.Select):
        refuse(tree.key.upper(), "only a SELECT can be asked")
    allowed = _SELECT_CLAUSES | ({"group"} if grouped else set())
    group = tree.args.get("group")
    if group is not None:
        if not grouped:
            refuse(
                "GROUP BY",
                "which groups there are is private. Give the list of groups that everyone may "
                "know: groups={'column': [values]}",
            )
        if any(value for name, value in group.args.items() if name != "expressions"):
            refuse("GROUP BY with ROLLUP, CUBE, SETS or ALL", "list the columns")
    elif grouped:
        refuse("groups= without GROUP BY", "add GROUP BY with the columns of groups=")
    if tree.args.get("distinct"):
        refuse("SELECT DISTINCT of an aggregate", "it has no effect; leave it out")
    _check_clauses(tree, allowed)
    _check_with(tree, functions)
    _check_from(tree, functions)
    if tree.args.get("from_") is None:
        refuse("A query without FROM", "it asks nothing of the data")


def check_rows(tree: Any, functions: Collection[str]) -> None:
    """Check something that gives rows: a sub-select, a CTE's body, a side of a union."""
    while isinstance(tree, exp.Subquery):
        _check_clauses(tree, {"this", "alias", "with_"})
        _check_with(tree, functions)
        tree = tree.this
    if isinstance(tree, exp.SetOperation):
        _check_set_operation(tree, functions)
        return
    if not isinstance(tree, exp.Select):
        if isinstance(tree, exp.Table):
            refuse("A join in brackets", "leave the brackets out, or write a sub-select")
        refuse(tree.key.upper(), "rows come from tables and sub-selects")
    if tree.args.get("group") and any(e.find(exp.AggFunc) for e in tree.expressions):
        refuse("An aggregate inside a sub-select", "its value changes when somebody leaves")
    _check_clauses(tree, _SELECT_CLAUSES)
    distinct = tree.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        refuse("DISTINCT ON", "another row is chosen when somebody leaves")
    _check_with(tree, functions)
    for projection in tree.expressions:
        if isinstance(projection, exp.Star) or projection.is_star:
            continue
        check_scalar(projection.unalias(), "SELECT of a sub-select", functions)
    _check_from(tree, functions)


def conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the parts of a condition that are joined by AND."""
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    elif condition is not None:
        yield condition


def is_semi_join(condition: Any) -> bool:
    """Say whether a condition is EXISTS (SELECT ...) or ... IN (SELECT ...), and nothing else."""
    given = {name for name, value in condition.args.items() if value}
    if isinstance(condition, exp.Exists):
        return given == {"this"}
    return isinstance(condition, exp.In) and given == {"this", "query"}


def _check_clauses(tree: Any, allowed: Collection[str]) -> None:
    for name, value in tree.args.items():
        if value and name not in allowed:
            clause, reason = _CLAUSES.get(name, (name.strip("_").upper(), "it is not supported"))
            refuse(clause, reason)


def _check_with(tree: Any, functions: Collection[str]) -> None:
    with_clause = tree.args.get("with_")
    if with_clause is None:
        return
    if with_clause.args.get("recursive"):
        refuse("WITH RECURSIVE", "write out the joins that are needed")
    for cte in with_clause.expressions:
        check_rows(cte.this, functions)


def _check_from(tree: exp.Select, functions: Collection[str]) -> None:
    start = tree.args.get("from_")
    joins = tree.args.get("joins") or []
    for source in [*([start.this] if start else []), *(join.this for join in joins)]:
        _check_source(source, functions)
    for join in joins:
        _check_join(join, functions)
    where = tree.args.get("where")
    for condition in conjuncts(where.this if where else None):
        if is_semi_join(condition):
            _check_semi_join(condition, functions)
        else:
            check_scalar(condition, "WHERE", functions)


def _check_source(source: Any, functions: Collection[str]) -> None:
    if isinstance(source, exp.Subquery):
        check_rows(source, functions)
        return
    if not isinstance(source, exp.Table):
        refuse(f"{source.key.upper()} in FROM", "rows come from tables and sub-selects")
    if not isinstance(source.this, exp.Identifier):
        refuse(f"The table function {source.this.sql()}", "rows come from tables and sub-selects")
    if source.args.get("joins"):
        refuse("A join in brackets", "leave the brackets out, or write a sub-select")
    if source.args.get("alias") and source.args["alias"].columns:
        refuse(f"Renaming columns in {source.sql()}", "rename them in a sub-select")
    _check_clauses(source, {"this", "alias", "db", "catalog"})


def _check_join(join: exp.Join, functions: Collection[str]) -> None:
    for name in ("side", "kind", "method"):
        word = str(join.args.get(name) or "").upper()
        if word in _JOINS:
            refuse(*_JOINS[word])
        if word not in {"", "INNER", "CROSS", "NATURAL"}:
            refuse(f"{word} JOIN", "use an inner or a cross join")
    _check_clauses(join, {"this", "on", "using", "side", "kind", "method"})
    if join.args.get("on") is not None:
        check_scalar(join.args["on"], "ON", functions)


def _check_semi_join(condition: Any, functions: Collection[str]) -> None:
    inner = condition.args["query"] if isinstance(condition, exp.In) else condition.this
    while isinstance(inner, exp.Subquery):
        _check_clauses(inner, {"this"})
        inner = inner.this
    if isinstance(condition, exp.In):
        check_scalar(condition.this, "IN", functions)
        if isinstance(condition.this, exp.Tuple):
            refuse("(...) IN (SELECT ...)", "write EXISTS (SELECT ... WHERE a = b AND c = d)")
    check_rows(inner, functions)


def _check_set_operation(tree: exp.SetOperation, functions: Collection[str]) -> None:
    name = _set_name(tree)
    if isinstance(tree, exp.Except):
        refuse(name, "rows would appear when somebody leaves")
    if isinstance(tree, exp.Intersect) and not tree.args.get("distinct"):
        refuse(name, "it counts copies against each other; use INTERSECT")
    _check_clauses(tree, {"this", "expression", "distinct", "with_"})
    _check_with(tree, functions)
    check_rows(tree.this, functions)
    check_rows(tree.expression, functions)


def _set_name(tree: exp.SetOperation) -> str:
    return tree.key.upper() + ("" if tree.args.get("distinct") else " ALL")
