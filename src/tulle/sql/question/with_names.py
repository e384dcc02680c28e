"""Names that WITH gives: which body a name in FROM stands for."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers


def body_of(table: Any, dialect: str) -> Any:
    """Return the CTE that a name in FROM stands for, or None for a table.

    The innermost WITH decides, and in one that was put together of two the last body of a name.
    Inside a body only the names before it are known.
    """
    if table.args.get("db") or not isinstance(table.this, exp.Identifier):
        return None
    meant = _normal(table.this, dialect)
    node: Any = table
    while node is not None:
        above = node.parent
        if isinstance(node, exp.CTE):
            listed = above.expressions
            known = listed[: [id(cte) for cte in listed].index(id(node))]
            above = above.parent.parent
        else:
            with_clause = node.args.get("with_")
            known = with_clause.expressions if with_clause is not None else []
        for cte in reversed(known):
            if _normal(cte.args["alias"].this, dialect) == meant:
                return cte
        node = above
    return None


def _normal(identifier: Any, dialect: str) -> str:
    return str(normalize_identifiers(identifier.copy(), dialect=dialect).name)
