"""The database on which errors of a question in SQL are predicted, where none was given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tulle.core import registry
from tulle.core.dataset import Facts
from tulle.core.errors import InputError, raise_alone
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.planning.preview import Preview
from tulle.sql.data import Database
from tulle.sql.dialect import DEFAULT
from tulle.sql.schema.schema import Schema
from tulle.sql.stand_in.assumption import Assumption, Formula
from tulle.sql.stand_in.generators import MANY_ROWS, MOST_ROWS, MadeUpRows, Type
from tulle.sql.stand_in.mentions import Mentions

KEPT = 12
"""How many made-up databases are kept for other plans of the same questions."""

OTHERS = 5
"""How many databases are made up where the answer would drown in its noise."""

_made: dict[str, Preview] = {}


@registry.register("preview", "database", "made-up rows")
def preview_database(
    query: Query, facts: Facts, public: Any, unit: Unit, assumed: Mapping[str, Any]
) -> Preview:
    """Return a made-up database for a question, and what to call it.

    It is made of the public schema, of the statement, and of what is assumed; nothing is read from
    the data, so it is the same for all rows.

    Raises:
        InputError: when what is assumed does not fit the schema.
    """
    schema = public.schema if isinstance(public, Database) else Schema.from_json(facts)
    assumption = Assumption.read(schema, **assumed)
    asked = [(part.text, part.dialect, getattr(part, "groups", ())) for part in _statements(query)]
    keys = sorted(schema.keys.items())
    key = json.dumps([facts, keys, repr(asked), repr(assumption), unit.name], default=str)
    if key not in _made:
        while len(_made) >= KEPT:
            # Whoever still plans with it holds it; the rest is forgotten.
            _made.pop(next(iter(_made)))
        build = partial(_build, query, schema, assumption, unit)
        others = tuple(partial(build, seed, MANY_ROWS) for seed in range(1, OTHERS + 1))
        _made[key] = replace(build(), others=others)
    return _made[key]


def _statements(query: Query) -> list[Any]:
    """Return the questions that a question is put together from, each with a statement."""
    if hasattr(query, "tree") and hasattr(query, "text"):
        return [query]
    return [one for part in query.parts() if part is not query for one in _statements(part)]


def _build(
    query: Query,
    schema: Schema,
    assumption: Assumption,
    unit: Unit,
    seed: int = 0,
    most_rows: int = MOST_ROWS,
) -> Preview:
    import duckdb
    import pyarrow

    mentions = Mentions()
    for part in _statements(query):
        mentions.read(part.tree, schema, getattr(part, "groups", ()))
    connection = duckdb.connect(
        config={"enable_external_access": "false", "threads": 2, "memory_limit": "2GB"}
    )

    def evaluate(text: str) -> Any:
        try:
            found = connection.execute(f"SELECT {text}").fetchall()
        except duckdb.Error:
            # A function of the user's own, say; then nothing is known about the column.
            return None
        return found[0][0]

    rows = MadeUpRows(schema, mentions, assumption, evaluate, seed, most_rows)
    for table in rows.tables:
        columns = rows.table(table)
        types = {
            name: Type.read(text, schema.dialect).written
            for name, text in schema.tables[table].items()
        }
        there = {name: values for name, values in columns.items() if values is not None}
        numbers = pyarrow.array(range(rows.sizes[table]))
        frame = pyarrow.table({"__tulle_row": numbers, **{n: _array(v) for n, v in there.items()}})
        connection.register("__tulle_frame", frame)
        listed = ", ".join(f"{_quoted(name)} {types[name]}" for name in columns)
        chosen = ", ".join(
            f"TRY_CAST({_quoted(name)} AS {types[name]})" if name in there else "NULL"
            for name in columns
        )
        connection.execute(f"CREATE TABLE {_quoted(table)} ({listed})")
        connection.execute(f"INSERT INTO {_quoted(table)} SELECT {chosen} FROM __tulle_frame")
        connection.unregister("__tulle_frame")
        formulas = {
            column: rows.values.get(f"{table}.{column}")
            for column in columns
            if (table, column) in rows.wanted and (table, column) not in rows.codes
        }
        _compute(
            connection,
            table,
            {name: (f, types[name]) for name, f in formulas.items() if isinstance(f, Formula)},
        )
    database = Database.connect(
        connection,
        owners={t: [str(o) for o in schema.owners[t]] for t in rows.tables if t in schema.owners},
        public=[table for table in rows.tables if table not in schema.owners],
        ranges={
            f"{table}.{column}": found.to_json()
            for table, listed in schema.ranges.items()
            for column, found in listed.items()
            if table in rows.tables
        },
        times={table: name for table, name in schema.times.items() if table in rows.tables},
    )
    if schema.views:
        database._schema = database._schema.with_views(_views(schema), {})
    rates = {table: rate for table, (rate, _) in rows.rates.items()}
    made = database.under(unit)
    made.stands_for = 1 / rows.scale
    return Preview(made, assumption.words(rates))


def _compute(connection: Any, table: str, formulas: Mapping[str, tuple[Formula, str]]) -> None:
    """Fill the columns of which a formula is stated, those that others are made of first."""
    import duckdb

    # With one thread and a seed, random() is the same each time.
    connection.execute("SET threads = 1; SELECT setseed(0.5)")
    waiting = dict(formulas)
    while waiting:
        ready = [n for n, (f, _) in waiting.items() if not {*f.columns} & ({*waiting} - {n})]
        for name in ready or list(waiting):
            formula, kind = waiting.pop(name)
            value = f"TRY_CAST(({formula.text}) AS {kind})"
            try:
                connection.execute(f"UPDATE {_quoted(table)} SET {_quoted(name)} = {value}")
            except duckdb.Error as error:
                raise_alone(InputError(f"values[{table}.{name}] cannot be computed: {error}"))
    connection.execute("SET threads = 2")


def _views(schema: Schema) -> dict[str, str]:
    import sqlglot

    if schema.dialect == DEFAULT:
        return dict(schema.views)
    return {
        name: sqlglot.transpile(text, read=schema.dialect, write=DEFAULT)[0]
        for name, text in schema.views.items()
    }


def _array(values: Any) -> Any:
    import pyarrow

    if isinstance(values, list):
        kinds = {type(one) for one in values if one is not None}
        if len(kinds) > 1:
            values = [None if one is None else str(one) for one in values]
    return pyarrow.array(values)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
