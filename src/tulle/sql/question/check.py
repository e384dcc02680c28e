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
_INSIDE = _SELECT_CLAUSES | {"group", "having", "qualify", "order"}
"""Clauses of sub-selects; the schema decides whether they are about one person's rows."""

_CLAUSES: dict[str, tuple[str, str]] = {
    "having": ("HAVING", "a group can fall below or rise above the bound when somebody leaves"),
    "limit": (
        "LIMIT",
        "another row would move up when somebody leaves; for the first rows of each person use "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY the owner ORDER BY ...) <= n",
    ),
    "offset": ("OFFSET", "another row would move up when somebody leaves"),
    "qualify": (
        "QUALIFY beside an aggregate",
        "put it into a sub-select, over windows of one person's rows: SELECT ... FROM (SELECT ... "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY the owner ORDER BY ...) <= n)",
    ),
    "windows": ("WINDOW", "write out each window: OVER (PARTITION BY ... ORDER BY ...)"),
    "order": ("ORDER BY", "a count or a sum has no order, and groups keep the order of groups="),
    "sample": ("TABLESAMPLE", "it draws at random by itself"),
    "laterals": ("LATERAL", "join with ON or WHERE, or use EXISTS"),
    "pivots": ("PIVOT", "write one aggregate a column: SUM(x) FILTER (WHERE kind = 'a') AS a"),
    "locks": ("FOR UPDATE", "tables are only read"),
    "into": ("INTO", "tables are only read"),
    "connect": ("CONNECT BY", "write out the joins that are needed"),
    "hint": ("A hint", "leave it out"),
    "version": ("A table version", "only the current rows can be asked about"),
    "system_time": ("A table version", "only the current rows can be asked about"),
    "ordinality": ("WITH ORDINALITY", "it numbers rows, and numbers move when somebody leaves"),
}

_JOINS = {
    "RIGHT": (
        "RIGHT JOIN",
        "after another join, and with SELECT *, write it as a LEFT JOIN with the tables exchanged",
    ),
    "FULL": (
        "FULL JOIN",
        "join two tables only, with the table's name in front of every column and no sub-select "
        "beside, or write UNION ALL of a LEFT JOIN and of what is missing from it",
    ),
    "SEMI": ("SEMI JOIN", "write WHERE EXISTS (SELECT ...) instead"),
    "ANTI": ("ANTI JOIN", "write WHERE NOT EXISTS (SELECT ...) instead"),
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
    if isinstance(tree, exp.Pivot):
        refuse(*_CLAUSES["pivots"])
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
        check_group(group)
    elif grouped:
        refuse("groups= without GROUP BY", "add GROUP BY with the columns of groups=")
    if tree.args.get("distinct"):
        refuse("SELECT DISTINCT of an aggregate", "it has no effect; leave it out")
    check_clauses(tree, allowed)
    _check_with(tree, functions)
    _check_from(tree, functions)
    if tree.args.get("from_") is None:
        refuse("A query without FROM", "it asks nothing of the data")


def check_group(group: Any) -> None:
    """Refuse GROUP BY of anything but a list of columns.

    Raises:
        QueryError: saying what to ask instead.
    """
    several = (exp.Rollup, exp.Cube, exp.GroupingSets)
    if group.args.get("all"):
        refuse("GROUP BY ALL beside *, windows or functions that are not known", "list the columns")
    if any(value for name, value in group.args.items() if name != "expressions") or any(
        isinstance(one, several) for one in group.expressions
    ):
        refuse(
            "GROUP BY with ROLLUP, CUBE or GROUPING SETS",
            "list the columns; totals are added up from the released table, or asked for by "
            "themselves",
        )


def check_rows(tree: Any, functions: Collection[str]) -> None:
    """Check something that gives rows: a sub-select, a CTE's body, a side of a union."""
    while isinstance(tree, exp.Subquery):
        check_clauses(tree, {"this", "alias", "with_"})
        _check_with(tree, functions)
        tree = tree.this
    if isinstance(tree, exp.SetOperation):
        _check_set_operation(tree, functions)
        return
    if not isinstance(tree, exp.Select):
        if isinstance(tree, exp.Table):
            refuse("A join in brackets", "leave the brackets out, or write a sub-select")
        refuse(tree.key.upper(), "rows come from tables and sub-selects")
    check_clauses(tree, _INSIDE)
    group = tree.args.get("group")
    if group is not None:
        check_group(group)
    _check_with(tree, functions)
    place = "SELECT of a sub-select"
    if not tree.expressions:
        refuse("SELECT without columns", "write SELECT 1")
    for projection in tree.expressions:
        if isinstance(projection, exp.Star) or projection.is_star:
            continue
        _check_inside(projection.unalias(), place, functions)
    for clause, words in (("having", "HAVING"), ("qualify", "QUALIFY")):
        if tree.args.get(clause) is not None:
            _check_inside(tree.args[clause].this, words, functions)
    distinct = tree.args.get("distinct")
    for name, found in (("group", group), ("order", tree.args.get("order")), ("on", distinct)):
        for part in _listed(name, found):
            _check_inside(part, "GROUP BY, ORDER BY or DISTINCT ON", functions)
    _check_from(tree, functions)


def _listed(name: str, found: Any) -> list[Any]:
    if found is None:
        return []
    if name == "on":
        on = found.args.get("on")
        return list(on.expressions) if isinstance(on, exp.Tuple) else [on] if on else []
    return [part.this if isinstance(part, exp.Ordered) else part for part in found.expressions]


def _check_inside(tree: Any, place: str, functions: Collection[str]) -> None:
    """Check an expression in which aggregates, windows and sub-selects may stand."""
    plain: Any = exp.Paren(this=tree.copy())
    for node in list(_nested(plain)):
        if isinstance(node, exp.Query):
            if isinstance(node.parent, exp.Any | exp.All):
                refuse(
                    f"{node.parent.key.upper()} (SELECT ...)",
                    "write x IN (SELECT ...), EXISTS, or x > (SELECT MAX(y) ...)",
                )
            check_rows(node, functions)
            node.replace(exp.null())
        elif isinstance(node, exp.Exists):
            check_rows(node.this, functions)
            node.replace(exp.true())
        elif isinstance(node, exp.In):
            check_rows(node.args["query"], functions)
            _check_inside(node.this, place, functions)
            if isinstance(node.this, exp.Tuple):
                refuse("(...) IN (SELECT ...)", "write EXISTS (SELECT ... WHERE a = b AND c = d)")
            node.replace(exp.true())
        else:
            # Which of them are supported, and over whose rows, the schema has to say.
            parts = node.args.get("partition_by") or []
            order = node.args.get("order")
            function = node.this if isinstance(node, exp.Window) else node
            if isinstance(function, exp.Filter):
                parts = [*parts, function.expression.this]
                function = function.this
            parts = [*parts, *(one.this for one in (order.expressions if order else ()))]
            parts += [
                one
                for child in function.iter_expressions()
                for one in (child.expressions if isinstance(child, exp.Distinct) else [child])
                if not isinstance(one, exp.Star)
            ]
            for part in parts:
                _check_inside(part, place, functions)
            node.replace(exp.null())
    check_scalar(plain, place, functions)


def _nested(node: Any) -> Iterator[Any]:
    """Yield the outermost sub-selects, aggregates and windows."""
    asks = isinstance(node, exp.In) and node.args.get("query") is not None
    if asks or isinstance(node, (exp.Exists, exp.Query, exp.AggFunc, exp.Window, exp.Filter)):
        yield node
    else:
        for child in node.iter_expressions():
            yield from _nested(child)


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


def check_clauses(tree: Any, allowed: Collection[str]) -> None:
    """Refuse clauses of a statement, or of a part of it, that are not among these.

    Raises:
        QueryError: naming the clause and the reason.
    """
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
        elif condition.find(exp.Query):
            if next((n for n in _nested(condition) if not n.find(exp.Query)), None) is not None:
                refuse("An aggregate or window in WHERE", "use HAVING or QUALIFY in a sub-select")
            _check_inside(condition, "WHERE", functions)
        else:
            check_scalar(condition, "WHERE", functions)


def _check_source(source: Any, functions: Collection[str]) -> None:
    if isinstance(source, exp.Subquery):
        check_rows(source, functions)
        return
    if isinstance(source, exp.Lateral):
        refuse(
            "LATERAL",
            "select the value as a sub-select, (SELECT MAX(x) FROM ... WHERE o.customer = c.id), "
            "or join a sub-select with GROUP BY the owner, or with QUALIFY ROW_NUMBER() OVER "
            "(PARTITION BY the owner ORDER BY ...) = 1",
        )
    if isinstance(source, exp.Unnest):
        refuse("UNNEST", "write the rows as (VALUES (1), (2)) AS t(x), or join a public table")
    if not isinstance(source, exp.Table):
        refuse(f"{source.key.upper()} in FROM", "rows come from tables and sub-selects")
    if not isinstance(source.this, exp.Identifier):
        refuse(
            f"The table function {source.this.sql()}",
            "rows come from tables, sub-selects and VALUES; make it a table, and declare it public",
        )
    if source.args.get("joins"):
        refuse("A join in brackets", "leave the brackets out, or write a sub-select")
    if source.args.get("alias") and source.args["alias"].columns:
        refuse(f"Renaming columns in {source.sql()}", "rename them in a sub-select")
    check_clauses(source, {"this", "alias", "db", "catalog"})


def _check_join(join: exp.Join, functions: Collection[str]) -> None:
    for name in ("side", "kind", "method"):
        word = str(join.args.get(name) or "").upper()
        if word in _JOINS:
            refuse(*_JOINS[word])
        left = ["LEFT"] if name == "side" else []
        if word not in {"", "INNER", "CROSS", "OUTER", "NATURAL", *left}:
            refuse(f"{word} JOIN", "use an inner or a cross join")
    check_clauses(join, {"this", "on", "using", "side", "kind", "method"})
    if join.args.get("on") is not None:
        check_scalar(join.args["on"], "ON", functions)


def _check_semi_join(condition: Any, functions: Collection[str]) -> None:
    inner = condition.args["query"] if isinstance(condition, exp.In) else condition.this
    while isinstance(inner, exp.Subquery):
        check_clauses(inner, {"this"})
        inner = inner.this
    if isinstance(condition, exp.In):
        check_scalar(condition.this, "IN", functions)
        if isinstance(condition.this, exp.Tuple):
            refuse("(...) IN (SELECT ...)", "write EXISTS (SELECT ... WHERE a = b AND c = d)")
    check_rows(inner, functions)


def _check_set_operation(tree: exp.SetOperation, functions: Collection[str]) -> None:
    check_clauses(tree, {"this", "expression", "distinct", "with_"})
    _check_with(tree, functions)
    check_rows(tree.this, functions)
    check_rows(tree.expression, functions)


def _set_name(tree: exp.SetOperation) -> str:
    return tree.key.upper() + ("" if tree.args.get("distinct") else " ALL")
