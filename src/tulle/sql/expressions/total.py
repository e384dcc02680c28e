"""Which functions and operators are supported, each written so that no row makes it fail.

The table is in three parts: :mod:`numbers`, :mod:`dates` and :mod:`texts`. An entry says what kinds
of arguments it takes and how a user writes it. Each engine has a form of it, by its name, that
gives a value or NULL for all arguments of these kinds (``sql/engines/<name>/forms.py``). Everything
that is not listed, here or by the engine, is refused when a question is built. Tests are generated
from this list: ``written`` is how a user writes an entry.
"""

from __future__ import annotations

from typing import Any

from tulle.sql.dialect import Dialect
from tulle.sql.expressions import dates, numbers, texts
from tulle.sql.expressions.conversions import Impossible, Typed
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


def apply(entry: Entry, node: Any, given: list[Typed], dialect: Dialect) -> Typed:
    """Return an expression in the form in which this engine cannot fail on it.

    Raises:
        Impossible: when there is none.
    """
    entry.check_arguments(node)
    if entry.constants is not None:
        entry.constants(node, [one.kind for one in given])
    form = dialect.forms.get(entry.name)
    if form is None:
        raise Impossible(f"{dialect.title} has no form of it that fails on no row")
    return form(node, given, dialect)
