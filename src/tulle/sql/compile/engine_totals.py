"""Who contributed how much to which cell, added up and cut down by the engine.

Everything is one statement over the rows that have owners. Numbers are doubles that hold whole
numbers below 2**52, on which sums are exact in any order; totals are added as decimals, which
cannot overflow. So the engine's clipping is the one that arrays get, to the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError, QueryError
from tulle.core.validate import counted
from tulle.sql.compile.derivations import alias, column, select, source_of
from tulle.sql.compile.inside import is_inside
from tulle.sql.compile.names import Named
from tulle.sql.compile.owned_rows import Gone
from tulle.sql.compile.select_rewriter import Rewriter
from tulle.sql.compile.statements import Compiler, Scope
from tulle.sql.compile.sums import ordered_sum
from tulle.sql.dialect import dialect_of
from tulle.sql.expressions.conversions import Typed, convert, shown
from tulle.sql.expressions.kinds import DOUBLE, NUMBERS, WHOLE, Kind
from tulle.sql.question.check import check_rows
from tulle.sql.schema.schema import Schema

if TYPE_CHECKING:
    from tulle.sql.engines.base import Engine

Further = Callable[[list[Any], list[Kind]], list[tuple[Any, str]]]

_LARGEST = 2.0**200
"""Single records are cut to this, so that no sum of them overflows."""
_COUNTED = 2.0**52
_WHOLE_DIGITS = 15
"""Whole numbers of so many digits are the same as doubles."""
_MARGIN = 1 - 2.0**-26
"""As for clipping in memory: covers the rounding of a factor and of a long sum."""

SIGN = "CASE WHEN e.w < 0 THEN -1 ELSE 1 END"
"""Of a weight ``e.w``, beside its size in steps."""


class EngineTotals:
    """Rows (row, column, weight) of a SELECT, each belonging to its one owner. Custodian side."""

    def __init__(self, engine: Engine, schema: Schema, tree: Any, gone: Gone = None) -> None:
        self._engine = engine
        dialect = dialect_of(schema.dialect)
        self._dialect = schema.dialect
        self._double, self._text = dialect.type_name("DOUBLE"), dialect.type_name("TEXT")
        self._owned, kind = owned_statement(schema, tree, gone)
        # Whatever the order of the rows: that must not show in the last digits of a sum.
        self._summed = ordered_sum("w", schema.dialect)
        if kind.name == WHOLE and kind.digits is not None and kind.digits <= _WHOLE_DIGITS:
            self._summed = f"CAST(SUM(CAST(w AS DECIMAL(38, 0))) AS {self._double})"
        engine.check(self._owned)

    def place(self, rows: Sequence[Any], columns: Sequence[Any]) -> None:
        """Say what the rows and columns of the grid are called.

        Raises:
            InputError: when names and columns of the SELECT are of different types.
        """
        kinds = self._engine.fetch(f"SELECT * FROM ({self._owned}) o LIMIT 0").schema
        joins, conditions, places = "", [], []
        for name, names in (("r", rows), ("c", columns)):
            kind = kinds.field(name).type
            join, condition, place = _placed(name, names, kind, self._dialect)
            joins += join
            conditions += condition
            places.append(place)
        weight, finite = self._weight()
        self._inside = (
            f"SELECT o.i AS i, {places[0]} * {len(columns)} + {places[1]} AS k,"
            f" {weight} AS w"
            f" FROM ({self._owned}) o{joins}"
            f" WHERE {' AND '.join([*conditions, finite])}"
        )
        self._entries = f"SELECT i, k, {self._summed} AS w FROM ({self._inside}) f GROUP BY i, k"

    def _weight(self) -> tuple[str, str]:
        """Return a record's weight, cut to what sums can hold, and that it is a finite number."""
        weight = f"CAST(o.w AS {self._double})"
        top = f"CAST({_LARGEST!r} AS {self._double})"
        # Engines order NaN after all numbers, so this leaves it out, and infinities too.
        finite = f"ABS({weight}) <= CAST(1.7976931348623157E308 AS {self._double})"
        return f"GREATEST(LEAST({weight}, {top}), -{top})", finite

    def entries(self) -> tuple[Any, Wholes, Floats]:
        """Return owner, cell and sum of weights for each pair of owner and cell."""
        found = self._engine.fetch(f"SELECT i, k, w FROM ({self._entries}) e ORDER BY i, k")
        return found["i"], np.asarray(found["k"], dtype=np.int64), _floats(found["w"])

    def records(self) -> tuple[Any, Any, Any, Any]:
        """Return owner, row, column and weight of every row; equal ones by weight.

        The order says in which order weights are added up: it must not be that of the rows.
        """
        weight, finite = self._weight()
        found = self._engine.fetch(
            f"SELECT o.i AS i, o.r AS r, o.c AS c, {weight} AS w FROM ({self._owned}) o"
            f" WHERE {finite} ORDER BY i, r, c, w"
        )
        return found["i"], found["r"], found["c"], found["w"]

    def totals(self, size: int) -> Floats:
        """Return the true total of each cell."""
        found = self._engine.fetch(f"SELECT k, SUM(w) AS w FROM ({self._inside}) f GROUP BY k")
        totals = np.zeros(size)
        totals[np.asarray(found["k"], dtype=np.int64)] = _floats(found["w"])
        return totals

    def clipped(self, limits: Any) -> Wholes:
        """Return the totals of all owners, each cut down to the limits, in steps.

        ``limits`` has what one owner may contribute at most, as :mod:`tulle.matrices` describes
        it: ``exponent``, ``labels``, ``cells``, ``totals``, ``total``, ``squares``, ``square``.
        """
        cells = np.asarray(limits.cells, dtype=np.float64).reshape(-1)
        labels = np.asarray(limits.labels, dtype=np.int64).reshape(-1)
        found = self._engine.fetch(self.statement(limits))
        steps: Wholes = np.zeros(len(cells), dtype=np.int64)
        steps[np.asarray(found["k"], dtype=np.int64)] = read_steps(found["s"])
        assert not steps[labels < 0].any()
        return steps

    def statement(self, limits: Any) -> str:
        """Return the statement that clips and adds up."""
        double = self._double
        cells = np.asarray(limits.cells, dtype=np.float64).reshape(-1)
        labels = np.asarray(limits.labels, dtype=np.int64).reshape(-1)
        uniform = len(np.unique(cells)) == 1 and len(np.unique(labels)) == 1
        if uniform:
            bound, label, joined = f"CAST({float(cells[0])!r} AS {double})", str(labels[0]), ""
        else:
            used = np.flatnonzero(labels >= 0)
            listed = ", ".join(
                f"({k}, {b!r}, {g})"
                for k, b, g in zip(
                    used.tolist(), cells[used].tolist(), labels[used].tolist(), strict=True
                )
            )
            bound, label = f"CAST(b.b AS {double})", "b.g"
            joined = f" JOIN (VALUES {listed}) AS b(k, b, g) ON b.k = e.k"
        largest, count = float(cells.max()), len(limits.totals)
        sized = (
            f"SELECT e.i AS i, e.k AS k, {label} AS g, {SIGN} AS z,"
            f" {self.in_steps(limits.exponent, largest, bound)} AS s"
            f" FROM ({self._entries}) e{joined}"
        )
        sized = self._shrunk(sized, limits.totals, largest, 1)
        if count > 1 or limits.total != limits.totals[0]:
            sized = self._shrunk(sized, (limits.total,), largest, 1)
        if limits.squares is not None:
            sized = self._shrunk(sized, limits.squares, largest, 2)
        if limits.square is not None and (
            limits.squares is None or count > 1 or limits.square != limits.squares[0]
        ):
            sized = self._shrunk(sized, (limits.square,), largest, 2)
        return f"SELECT k, {self.steps_added()} AS s FROM ({sized}) t GROUP BY k"

    def in_steps(self, exponent: int, largest: float, bound: str) -> str:
        """Return the size of a weight ``e.w``, cut to the bound, as a whole number of steps.

        ``bound`` is at most ``largest`` steps.
        """
        # Cut and rounded down before it is scaled: PostgreSQL fails when a product of doubles is
        # too large or too small. What is below a quarter of a step is no step.
        size = 2.0**exponent
        step, low, top = (
            f"CAST({end!r} AS {self._double})"
            for end in (2.0**-exponent, size / 4, size * (largest + 1))
        )
        held = f"CASE WHEN ABS(e.w) < {low} THEN 0 ELSE LEAST(ABS(e.w), {top}) END"
        return f"FLOOR(LEAST({held} * {step}, {bound}) + 0.5)"

    def steps_added(self) -> str:
        """Return the sum of steps ``s`` with signs ``z``, as a text: it may be a large number."""
        whole = "CAST(z * CAST(s AS BIGINT) AS DECIMAL(38, 0))"
        return f"CAST(SUM({whole}) AS {self._text})"

    def _shrunk(self, sized: str, limits: Sequence[int], largest: float, power: int) -> str:
        """Scale the entries of everyone whose sum of powers, in a block or in all, is too large."""
        double = self._double
        allowed = [float(most) if most < _COUNTED else most * _MARGIN for most in limits]
        if len(limits) == 1:
            by, cap = "i", f"CAST({allowed[0]!r} AS {double})"
        else:
            cases = " ".join(f"WHEN {g} THEN {most!r}" for g, most in enumerate(allowed))
            by, cap = "i, g", f"CAST(CASE g {cases} END AS {double})"
        raised = "s" if power == 1 else "s * s"
        if power == 1 and largest * max(allowed) < _COUNTED:
            smaller = "FLOOR(s * m / u)"
        else:
            factor = "m / u" if power == 1 else "SQRT(m / u)"
            smaller = f"FLOOR(s * ({factor} * CAST({_MARGIN!r} AS {double})))"
        summed = (
            f"SELECT i, k, g, z, s, {cap} AS m, SUM({raised}) OVER (PARTITION BY {by}) AS u"
            f" FROM ({sized}) t"
        )
        return (
            f"SELECT i, k, g, z, CASE WHEN u > m THEN {smaller} ELSE s END AS s FROM ({summed}) t"
        )


def read_steps(texts: Any) -> Wholes:
    """Return sums of steps that were added up; beyond 64 bits they wrap around, as in memory."""
    found = [(int(text) + 2**63) % 2**64 - 2**63 for text in texts.to_pylist()]
    return np.array(found, dtype=np.int64)


def _floats(column: Any) -> Floats:
    return np.asarray(column, dtype=np.float64)


def owned_statement(
    schema: Schema, tree: Any, gone: Gone, further: Further | None = None
) -> tuple[str, Kind]:
    """Return a SELECT of owner (i), row (r), column (c) and weight (w), and the weights' kind.

    ``further`` gives columns besides, with their names, for the expressions of row and column and
    for the kinds of both.

    Raises:
        QueryError: when rows do not have exactly one owner, or other columns are selected.
    """
    check_rows(tree, ())
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        raise QueryError(
            "Contributions are the rows of one SELECT without DISTINCT or UNION: each must have "
            "one owner of its own."
        )
    if is_inside(tree):
        raise QueryError(
            "GROUP BY, aggregates and windows are not supported here: put them into a sub-select, "
            "SELECT r, c, w FROM (SELECT ...) AS t."
        )
    named = Named(tree, schema)
    rewriter = Rewriter(schema, named, gone)
    chosen = named.tree.expressions
    if len(chosen) not in (2, 3):
        raise QueryError(
            f"Select the row, the column and if there is one the weight; this selects "
            f"{counted(len(chosen), 'column')}. The individual is the owner of the rows."
        )
    wanted = [(e.unalias(), name) for e, name in zip(chosen, "rcw", strict=False)]
    if len(wanted) == 2:
        wanted.append((exp.Literal.number(1), "w"))
    block = rewriter.block(named.tree, rewriter.views(named.tree, {}))
    if block.keyed:
        raise QueryError(
            "EXISTS, IN (SELECT ...) and DISTINCT are not supported here: a row that is there "
            "because of others has no one owner."
        )
    form = rewriter.project(block, wanted, distinct=False)
    if len(form.slots) != 1:
        owners = counted(len(form.slots), "participant") if form.slots else "no participant"
        raise QueryError(
            f"Each row belongs to {owners}; contributions need one owner each. Read one owned "
            "table, joined with public ones only."
        )

    def rows_of(form: Any, names: Sequence[str]) -> Any:
        owner = alias(column(form.slots[0].name, "s"), "i")
        return select([owner, *(column(name, "s") for name in names)], [source_of(form.query, "s")])

    names = ["r", "c", "w"]
    if further is not None:
        known = Compiler(schema).query(rows_of(form, names).copy(), Scope({}))
        added = further([e for e, _ in wanted[:2]], [known["r"], known["c"]])
        names += [name for _, name in added]
        form = rewriter.project(block, [*wanted, *added], distinct=False)
    rows = rows_of(form, names)
    kinds = Compiler(schema).query(rows, Scope({}))
    if kinds["w"].name not in NUMBERS:
        # Whether a text can be read as a number would depend on the row.
        raise QueryError(
            f"The weight {shown(wanted[2][0])} is not known to be a number. "
            "Select a column of numbers, or CAST(... AS DOUBLE)."
        )
    targets = {"w": Kind(DOUBLE), WHOLE: Kind(WHOLE, 19)}
    chosen = []
    for name in ("i", *names):
        value = Typed(column(name, "q"), kinds[name])
        target = targets.get(name, targets.get(kinds[name].name))
        if target is not None and name in ("r", "c", "w"):
            value = convert(value, target, dialect_of(schema.dialect))
        chosen.append(alias(value.node, name))
    text = str(select(chosen, [source_of(rows, "q")]).sql(dialect=schema.dialect))
    return text, kinds["w"]


def _placed(name: str, names: Sequence[Any], kind: Any, dialect: str) -> tuple[str, list[str], str]:
    """Return a join, conditions and an expression for the place of a value among names."""
    import pyarrow as pa

    whole = all(isinstance(value, int | np.integer) for value in names)
    text = all(isinstance(value, str) for value in names)
    fits = (
        pa.types.is_integer(kind)
        if whole
        else pa.types.is_large_string(kind) or pa.types.is_string(kind)
    )
    if not (whole or text) or not fits:
        raise InputError(
            f"The {'row' if name == 'r' else 'column'}s of the SELECT are of type {kind}; the "
            "names of the grid must be whole numbers or texts, and of the same type."
        )
    if isinstance(names, range):
        # Moved into the range as well as kept to it: the engine may compute before it filters.
        inside = f"LEAST(GREATEST(CAST(o.{name} AS BIGINT), 0), {max(len(names) - 1, 0)})"
        return "", [f"o.{name} >= 0", f"o.{name} < {len(names)}"], inside
    # Engines differ in what a backslash means, too.
    quoted = (str(v) if whole else exp.Literal.string(str(v)).sql(dialect=dialect) for v in names)
    listed = ", ".join(f"({value}, {place})" for place, value in enumerate(quoted))
    join = f" JOIN (VALUES {listed}) AS p{name}(v, p) ON p{name}.v = o.{name}"
    return join, [], f"CAST(p{name}.p AS BIGINT)"
