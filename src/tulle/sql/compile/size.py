"""How large a statement is once an engine has planned it, and may be."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.core.validate import counted

MOST_PARTS = 400_000
"""A statement may have so many parts as an engine plans it; with millions that takes minutes."""

MOST_TIMES = 8
"""Long lists have more parts, and are no trouble: nothing in them is planned as often as this."""


def size_as_planned(tree: Any) -> int:
    """Return how many parts a statement has once an engine has written it out.

    NULLIF(x, y) is planned as CASE WHEN x = y THEN NULL ELSE x END, and CASE x WHEN ... compares x
    again for each branch: what they hold counts as often as it is then there.
    """
    sizes: dict[int, int] = {}
    for node in reversed(list(tree.walk(bfs=True))):
        size = 1 + sum(sizes[id(child)] for child in node.iter_expressions())
        if isinstance(node, exp.Nullif):
            size += sizes[id(node.this)]
        elif isinstance(node, exp.Anonymous) and node.name.upper() == "NULLIF":
            size += sizes[id(node.expressions[0])]
        elif isinstance(node, exp.Case) and node.this is not None:
            size += sizes[id(node.this)] * (len(node.args["ifs"]) - 1)
        sizes[id(node)] = size
    return sizes[id(tree)]


def check_size(tree: Any) -> None:
    """Refuse a statement that takes an engine long to plan; that follows from the text alone.

    Raises:
        QueryError: saying how large it is and may be.
    """
    size = size_as_planned(tree)
    if size > MOST_PARTS and size > MOST_TIMES * sum(1 for _ in tree.walk()):
        raise QueryError(
            "The statement is too large: as the engine plans it, it has about "
            f"{counted(size, 'part')}, and {MOST_PARTS:,} are allowed. What is nested counts many "
            "times over: nest fewer functions and divisions, compute a part of it in a "
            "sub-select, or store it in a table."
        )
