"""Columns that an engine computes while it reads a table, written out as a SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tulle.sql.schema.catalogue import Definition

COMPUTED = (
    "has columns that are computed when it is read, and their text cannot be read here. Make a "
    "table without them: CREATE TABLE ... AS SELECT the stored columns FROM it."
)

UNREADABLE = (
    "is a view whose text cannot be read here. Ask about its tables, or make it a table: CREATE "
    "TABLE ... AS SELECT * FROM it."
)


def with_computed(
    table: str, columns: Mapping[str, str], computed: Mapping[str, str], dialect: str
) -> Definition:
    """Return a table as the SELECT of its stored columns and of those that are computed.

    ``columns`` are all of them with their types, ``computed`` has expressions, which may name
    each other.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    def quoted(name: str) -> Any:
        return exp.to_identifier(name, quoted=True)

    names = {name.lower(): name for name in computed}

    def written(name: str, above: tuple[str, ...]) -> Any:
        made = exp.paren(sqlglot.parse_one(computed[name], dialect=dialect))
        for inner in list(made.find_all(exp.Column)):
            other = names.get(inner.name.lower())
            if other is not None and other not in above:
                inner.replace(written(other, (*above, other)))
        kind = exp.DataType.build(columns[name], dialect=dialect)
        return exp.Cast(this=made, to=kind)

    try:
        chosen = [
            written(name, (name,)) if name in computed else exp.column(quoted(name))
            for name in columns
        ]
    except (SqlglotError, ValueError, RecursionError):
        return Definition(reason=COMPUTED)
    named = [exp.alias_(e, quoted(name)) for e, name in zip(chosen, columns, strict=True)]
    body = exp.select(*named).from_(exp.Table(this=quoted(table)))
    return Definition(body.sql(dialect=dialect), tuple(columns))
