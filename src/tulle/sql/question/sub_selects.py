"""Sub-selects beside aggregates: looked up row by row before anything is aggregated.

``SUM(CASE WHEN EXISTS (...) THEN 1 END)`` over some rows is the same over a sub-select of those
rows that has EXISTS (...) as a column. There it is an expression of one row, and what is known of
such (whose rows it may read) decides about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from tulle.sql.question.scalars import as_written

ROWS = "row_of_query"
_ROWS = ("from_", "joins", "where")
"""The clauses that say which rows there are."""


def lift_sub_selects(select: Any) -> None:
    """Compute sub-selects that are computed with, aggregated or grouped by in a sub-select of rows.

    Left as it is: a SELECT that may name columns of a statement around it, one of all columns, and
    one that looks something up after its rows were aggregated.
    """
    start, group = select.args.get("from_"), select.args.get("group")
    if start is None or not _stands_alone(select):
        return
    listed = [one for one in select.expressions if next(_looked_up(one.unalias()), None)]
    keys = [] if group is None else [_meant(select, one) for one in group.expressions]
    if not listed and not any(next(_looked_up(one), None) for one in keys):
        return
    if _is_left(select, keys) or (group is None and _are_columns(listed)):
        return
    for one in select.expressions:
        if not isinstance(one, exp.Alias):
            name = one.name if isinstance(one, exp.Column) else as_written(one)
            one.replace(_named(one, name))
    aliases = {one.alias.lower() for one in select.expressions}
    inner: dict[Any, Any] = {}

    def lifted(node: Any, name: str) -> Any:
        if node not in inner:
            taken = {one.alias.lower() for one in inner.values()}
            free = (name, *(f"{name}_{place}" for place in range(1, len(taken) + 2)))
            chosen = next(one for one in free if one.lower() not in taken)
            inner[node] = _named(node, chosen)
        return exp.column(inner[node].alias, ROWS, quoted=True)

    for part in [*select.expressions, *_clauses(select)]:
        selected = isinstance(part, exp.Alias)
        for node in list(_parts(part.this if selected else part)):
            if not isinstance(node, exp.Column):
                node.replace(lifted(node, "looked_up"))
            elif selected or node.table or node.name.lower() not in aliases:
                node.replace(lifted(node, node.name))
    rows = exp.Select(expressions=[*inner.values()], **{n: select.args.get(n) for n in _ROWS})
    for name in _ROWS:
        select.set(name, None)
    alias = exp.TableAlias(this=exp.to_identifier(ROWS))
    select.set("from_", exp.From(this=exp.Subquery(this=rows, alias=alias)))


def _named(node: Any, name: str) -> Any:
    return exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True))


def _meant(select: Any, key: Any) -> Any:
    """Return what a number or a name in GROUP BY stands for."""
    selected = select.expressions
    if isinstance(key, exp.Literal) and key.is_int and 1 <= int(key.name) <= len(selected):
        return selected[int(key.name) - 1].unalias()
    named = {one.alias.lower(): one.this for one in selected if isinstance(one, exp.Alias)}
    plain = isinstance(key, exp.Column) and not key.table
    return named.get(key.name.lower(), key) if plain else key


def _is_left(select: Any, keys: list[Any]) -> bool:
    """Say whether more than rows, keys and arguments of aggregates would have to move."""
    distinct = select.args.get("distinct")
    if select.args.get("windows") or (distinct is not None and distinct.args.get("on")):
        return True
    if any(one.is_star for one in select.expressions):
        return True
    after = [node for one in _clauses(select) for node in _looked_up(one)]
    if _is_aggregated(select):
        listed = [one.unalias() for one in select.expressions]
        after += [node for one in listed if one not in keys for node in _looked_up(one)]
    return any(
        node.find_ancestor(exp.AggFunc, exp.Filter, exp.Select) in (None, select)
        and node.find_ancestor(exp.Group, exp.Select) in (None, select)
        for node in after
    )


def _is_aggregated(select: Any) -> bool:
    calls = (call for one in select.expressions for call in one.find_all(exp.AggFunc))
    whole = (call for call in calls if not isinstance(call.parent, exp.Window))
    return select.args.get("group") is not None or any(c.parent_select is select for c in whole)


def _are_columns(listed: list[Any]) -> bool:
    """Say whether sub-selects are columns by themselves, with which nothing is computed."""
    return all(next(_looked_up(one.unalias())) is one.unalias() for one in listed)


def _clauses(select: Any) -> Iterator[Any]:
    """Yield what stands beside the selected columns and is about their rows."""
    for name in ("group", "having", "qualify", "order"):
        clause = select.args.get(name)
        if clause is not None:
            yield from clause.expressions or [clause.this]


def _looked_up(part: Any) -> Iterator[Any]:
    return (node for node in _parts(part) if not isinstance(node, exp.Column))


def _parts(part: Any) -> Iterator[Any]:
    """Yield columns, and sub-selects with EXISTS and IN around them, from the outside."""
    inside = isinstance(part, exp.In) and part.args.get("query") is not None
    if inside or isinstance(part, exp.Column | exp.Exists | exp.Query):
        yield part
        return
    for child in part.iter_expressions() if part is not None else ():
        yield from _parts(child)


def _stands_alone(select: Any) -> bool:
    """Say whether a SELECT stands in FROM, WITH or a union, where it sees no columns around it."""
    above = select.parent
    while above is not None:
        if isinstance(above, exp.Lateral):
            return False
        if not isinstance(
            above,
            exp.Subquery | exp.From | exp.Join | exp.CTE | exp.With | exp.SetOperation | exp.Select,
        ):
            return False
        if isinstance(above, exp.Select) and not _in_from(select, above):
            return False
        above = above.parent
    return True


def _in_from(select: Any, above: Any) -> bool:
    """Say whether a SELECT is among the sources of another, not among what that selects."""
    child = select
    while child.parent is not above:
        child = child.parent
    return isinstance(child, exp.From | exp.Join | exp.With)
