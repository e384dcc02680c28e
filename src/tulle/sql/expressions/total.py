"""Which functions and operators are supported, each written so that no row makes it fail.

The table is in three parts: :mod:`numbers`, :mod:`dates` and :mod:`texts`. An entry says what kinds
of arguments it takes, of what kind its value is, and for each engine the form that gives a value or
NULL for all arguments of these kinds. An engine without a form runs the expression as it is, which
must then be unable to fail; but in DuckDB TRY(...) is put around it unless the entry says that it
``cannot_fail``. Everything that is not listed is refused when a question is built. Tests are
generated from this list: ``written`` is how a user writes an entry.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from tulle.sql.expressions import dates, numbers, texts
from tulle.sql.expressions.conversions import Impossible, Typed, call
from tulle.sql.expressions.entry import Entry

ENTRIES: tuple[Entry, ...] = (*numbers.ENTRIES, *dates.ENTRIES, *texts.ENTRIES)
"""All functions and operators over values; conditions, CASE and the like are in statements."""


def entries_of(node: Any) -> list[Entry]:
    """Return the entries for an expression, whatever the kinds of its arguments."""
    return [entry for entry in ENTRIES if entry.node is type(node)]


def expansion(entry: Entry, node: Any) -> Any:
    """Return the expression of other entries that this one stands for; None if for itself.

    Raises:
        Impossible: when its constants are not supported.
    """
    return None if entry.expands is None else entry.expands(node)


def apply(entry: Entry, node: Any, given: list[Typed], dialect: str) -> Typed:
    """Return an expression in the form in which this engine cannot fail on it.

    Raises:
        Impossible: when there is none.
    """
    shapes = [one.kind for one in given]
    entry.check_arguments(node)
    if entry.constants is not None:
        entry.constants(node, shapes, dialect)
    form = entry.forms.get(dialect)
    if isinstance(form, str):
        raise Impossible(form)
    kind = entry.gives(shapes, node, dialect)
    if form is not None:
        made = form(node, given)
    else:
        made = node.copy()
        for name, one in zip(entry.parts, given, strict=False):
            made.set(name, one.node)
        if isinstance(made, exp.Binary):
            made = exp.Paren(this=made)
    if dialect == "duckdb" and not entry.cannot_fail:
        if made.find(exp.Query):
            raise Impossible(
                "DuckDB cannot be kept from failing on what is computed with a sub-select; compute "
                "it inside: (SELECT 2 * MAX(x) ...) in place of 2 * (SELECT MAX(x) ...)"
            )
        # Around every node of its own: what occurs twice within one TRY, or in two of them, is
        # worked out once beforehand, and outside of both.
        made = call("TRY", made)
    return Typed(made, kind)
