"""Dates and timestamps in an answer: MIN, MAX and quantiles of them.

They are drawn as numbers of days or seconds since 1970 and shown as dates. After the noise they are
shown, compared and sorted by, and two dates have a difference; nothing else is computed with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from tulle.core.arrays import Floats
from tulle.sql.expressions.kinds import DATE
from tulle.sql.question.check import refuse
from tulle.sql.schema.ranges import moment_of
from tulle.sql.tables.select_list import SelectList, aggregates_in, shown

UNKNOWN = "not known before there is a schema"
"""The kind of a quantile, as long as nobody knows of what it is."""

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is)


def earlier(number: float) -> int:
    """Return the last day, or second, that is not after a number of them.

    Of numbers that were interpolated the last digits are not exact.
    """
    return math.floor(number + 1e-3)


def moments(numbers: Floats, kind: str, rounded: Callable[[float], int] = earlier) -> list[Any]:
    """Return numbers of days or seconds as dates or timestamps; None where there is none."""
    return [moment_of(rounded(n), kind) if math.isfinite(n) else None for n in numbers.tolist()]


def check_moments(chosen: SelectList, kinds: Mapping[Any, str]) -> None:
    """Refuse what is computed with dates after the noise, but for what is said above.

    ``kinds`` has the kind of each aggregate that is one.

    Raises:
        QueryError: naming the part.
    """
    for expression in chosen.expressions():
        for node in aggregates_in(expression):
            if kinds.get(node) and not _stands_alone(node, expression, kinds):
                refuse(
                    f"{shown(node)} in {shown(expression)}",
                    f"it is a {kinds[node]}; after the noise dates are shown, compared and sorted "
                    "by, and one date is subtracted from another: MAX(day) - MIN(day)",
                )


def _stands_alone(node: Any, expression: Any, kinds: Mapping[Any, str]) -> bool:
    while node is not expression and isinstance(node.parent, exp.Paren):
        node = node.parent
    if node is expression:
        return True
    if isinstance(node.parent, exp.Sub):
        return all(
            kinds.get(side.unnest()) == DATE for side in (node.parent.left, node.parent.right)
        )
    return isinstance(node.parent, (*_COMPARED, exp.Ordered))
