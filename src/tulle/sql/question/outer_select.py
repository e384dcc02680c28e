"""A SELECT around an aggregated one: both are one table, with what is computed on it afterwards.

``SELECT month, revenue - LAG(revenue) OVER (ORDER BY month) FROM (SELECT ... GROUP BY month)`` asks
for the inner table; the outer SELECT computes with its rows, which costs nothing. So names of inner
columns are replaced by what they stand for, and WHERE becomes HAVING.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.sql.question.with_names import body_of

_OUTER = {"with_", "expressions", "from_", "where", "qualify", "order", "limit", "offset"}
_INNER = {"with_", "expressions", "from_", "joins", "where", "group", "having", "order"}


def merge_outer_selects(tree: Any, dialect: str) -> Any:
    """Return a statement whose outer SELECT, if it only computes with an answer, is merged in."""
    while isinstance(tree, exp.Select):
        merged = _merged(tree, dialect)
        if merged is None:
            return tree
        tree = merged
    return tree


def _merged(outer: Any, dialect: str) -> Any:
    start = outer.args.get("from_")
    if start is None or any(found for name, found in outer.args.items() if name not in _OUTER):
        return None
    parts = {clause: outer.args.get(clause) for clause in ("where", "qualify", "order")}
    if any(map(_is_total, outer.expressions)) or any(
        part is not None and part.find(exp.Query) for part in parts.values()
    ):
        return None
    views = outer.args.get("with_")
    name, inner = start.this.alias_or_name, _source(start.this, views, dialect)
    own = inner.args.get("with_") if isinstance(inner, exp.Select) else None
    if not isinstance(inner, exp.Select) or (own is not None and own.args.get("recursive")):
        return None
    # A statement by itself, which may be around an answer in turn.
    inner = inner.copy()
    inner.set("with_", _views(views, body_of(start.this, dialect), own))
    inner = merge_outer_selects(inner, dialect)
    if not _is_answer(inner):
        return None
    ranked = any(map(_has_window, inner.expressions))
    if ranked and (outer.args.get("qualify") or any(map(_has_window, outer.expressions))):
        return None
    columns = {one.alias_or_name.lower(): one.unalias() for one in inner.expressions}
    if len(columns) != len(inner.expressions) or "" in columns or "*" in columns:
        return None
    made = inner.copy()
    _write_out_places(made)
    listed = []
    for one in outer.expressions:
        if one.is_star:
            left_out = _left_out(one)
            if left_out is None:
                return None
            names = [e.alias_or_name for e in inner.expressions]
            names = [each for each in names if each.lower() not in left_out]
            listed += [exp.alias_(exp.column(each), each) for each in names]
        else:
            listed.append(exp.alias_(one.unalias().copy(), one.alias_or_name or one.sql()))
    whole = exp.Tuple(expressions=[*listed, *(p.copy() for p in parts.values() if p is not None)])
    aliases = {one.alias.lower() for one in listed}
    for node in list(whole.find_all(exp.Column)):
        meant = columns.get(node.name.lower()) if node.table in ("", name) else None
        if meant is None:
            if node.table or node.name.lower() not in aliases:
                return None
            continue
        plain = isinstance(meant, exp.Column | exp.Func | exp.Literal)
        node.replace(meant.copy() if plain else exp.Paren(this=meant.copy()))
    found = whole.expressions
    made.set("expressions", found[: len(listed)])
    for clause in found[len(listed) :]:
        if isinstance(clause, exp.Where) and not ranked:
            made.having(clause.this, copy=False)
        elif isinstance(clause, exp.Where):
            # Windows were worked out before it.
            made.set("qualify", exp.Qualify(this=clause.this))
        else:
            made.set(clause.key, clause)
    for clause in ("limit", "offset"):
        made.set(clause, outer.args.get(clause))
    return made


def _is_total(expression: Any) -> bool:
    """Say whether an expression adds rows up, other than in a window; or looks something up."""
    calls = expression.find_all(exp.AggFunc, exp.Query)
    return any(not (isinstance(c.parent, exp.Window) and c.arg_key == "this") for c in calls)


def _is_answer(inner: Any) -> bool:
    """Say whether a SELECT aggregates, and chooses no rows of what that makes but with HAVING."""
    if any(found for name, found in inner.args.items() if name not in _INNER):
        return False
    return any(map(_is_total, inner.expressions))


def _has_window(expression: Any) -> bool:
    return expression.find(exp.Window) is not None


def _left_out(star: Any) -> set[str] | None:
    """Return the columns that * EXCLUDE (...) leaves out; None where it says anything else."""
    star = star.this if isinstance(star, exp.Column) else star
    if not isinstance(star, exp.Star) or star.args.get("replace") or star.args.get("rename"):
        return None
    return {one.name.lower() for one in star.args.get("except_") or []}


def _source(source: Any, views: Any, dialect: str) -> Any:
    """Return the SELECT that stands in FROM, written there or in WITH."""
    if views is not None and views.args.get("recursive"):
        return None
    if isinstance(source, exp.Subquery):
        plain = not source.args.get("joins") and not source.args.get("pivots")
        return source.this if plain else None
    if not isinstance(source, exp.Table) or source.args.get("joins"):
        return None
    body = body_of(source, dialect)
    if body is None or body.parent is not views or body.args["alias"].columns:
        return None
    named = [one for one in views.find_all(exp.Table) if body_of(one, dialect) is body]
    return None if named else body.this


def _views(views: Any, body: Any, own: Any) -> Any:
    """Return what is left of WITH: the names that are known where the inner SELECT stands.

    Those that a SELECT brings itself come after them, and hide them.
    """
    seen = [] if views is None else views.expressions
    if body is not None:
        seen = seen[: [id(one) for one in seen].index(id(body))]
    kept = [one.copy() for one in (*seen, *(own.expressions if own is not None else ()))]
    return exp.With(expressions=kept) if kept else None


def _write_out_places(select: Any) -> None:
    """GROUP BY 1 or an alias is what it stands for: other columns will be selected."""
    group = select.args.get("group")
    selected = select.expressions
    named = {one.alias.lower(): one.this for one in selected if isinstance(one, exp.Alias)}
    for key in list(group.expressions if group is not None else ()):
        if isinstance(key, exp.Literal) and key.is_int and 1 <= int(key.name) <= len(selected):
            key.replace(selected[int(key.name) - 1].unalias().copy())
        elif isinstance(key, exp.Column) and not key.table and key.name.lower() in named:
            key.replace(named[key.name.lower()].copy())
    having = select.args.get("having")
    for node in list(having.find_all(exp.Column) if having is not None else ()):
        meant = None if node.table else named.get(node.name.lower())
        if meant is not None and node.find_ancestor(exp.AggFunc) is None:
            node.replace(exp.Paren(this=meant.copy()))
    select.set("order", None)
