"""Which parts of each expression are understood: with any other one it is refused.

The parser reads what any dialect has: MAX(x, 2), COUNT(* EXCLUDE (a)), LIMIT 1 BY a. A part that
nobody looks at would be left out in silence, and the answer would be that of another question.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot import exp

from tulle.sql.question.check import refuse
from tulle.sql.question.scalars import as_written

_ONE = ("this",)
_TWO = ("this", "expression")

_KNOWN: dict[type[Any], Collection[str]] = {
    **dict.fromkeys((exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.CountIf), _ONE),
    **dict.fromkeys((exp.Variance, exp.VariancePop, exp.LogicalOr, exp.LogicalAnd), _ONE),
    **dict.fromkeys((exp.Stddev, exp.StddevSamp, exp.StddevPop), _ONE),
    **dict.fromkeys((exp.PercentileCont, exp.Filter, exp.WithinGroup), _TWO),
    exp.Quantile: {"this", "quantile"},
    exp.Count: {"this", "expressions", "big_int"},
    exp.Star: {"except_", "replace", "rename"},
    exp.Distinct: {"expressions", "on"},
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank), ()),
    **dict.fromkeys((exp.FirstValue, exp.LastValue), _ONE),
    **dict.fromkeys((exp.Lag, exp.Lead), ("this", "offset", "default")),
    exp.Window: {"this", "partition_by", "order", "spec", "over"},
    exp.WindowSpec: {"kind", "start", "start_side", "end", "end_side"},
    exp.Order: {"this", "expressions"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Limit: {"expression", "limit_options"},
    exp.Offset: {"expression"},
    exp.With: {"expressions", "recursive"},
    exp.CTE: {"this", "alias", "materialized"},
    exp.TableAlias: {"this", "columns"},
    exp.Column: {"this", "table", "db", "catalog"},
    **dict.fromkeys((exp.Cast, exp.TryCast), ("this", "to", "safe")),
    exp.DataType: {"this", "expressions", "nested", "values", "kind", "nullable"},
    exp.DataTypeParam: _ONE,
    exp.Round: {"this", "decimals"},
    **dict.fromkeys((exp.Floor, exp.Ceil), _ONE),
    exp.Is: _TWO,
    exp.Between: {"this", "low", "high"},
    exp.Case: {"this", "ifs", "default"},
    exp.Exists: _ONE,
}
"""Of other kinds of expressions every part is looked at where they are compiled."""


def check_arguments(tree: Any) -> None:
    """Refuse a statement that has a part at which nobody looks.

    Raises:
        QueryError: naming the expression and the part.
    """
    for node in tree.walk():
        if isinstance(node, exp.DataTypeParam) and not (
            isinstance(node.this, exp.Literal) and node.this.is_int
        ):
            refuse(as_written(node.parent), "sizes of types are whole numbers")
        known = _KNOWN.get(type(node), node.arg_types)
        if isinstance(node, exp.Star) and isinstance(node.parent, exp.Count):
            known = ()
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            known = ("this", "big_int")
        for name, value in node.args.items():
            if value and name not in known:
                text = as_written(node)
                shown = text if len(text) <= 60 else text[:57] + "..."
                refuse(shown, f"leave out its part '{name.strip('_')}'")
