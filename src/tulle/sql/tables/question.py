"""A SELECT with any number of aggregates: its answer is a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import gcd, prod
from typing import Any, Self

import numpy as np
from sqlglot import exp

from tulle.core import registry
from tulle.core.arrays import Floats
from tulle.core.dataset import Facts
from tulle.core.error_law import ErrorLaw
from tulle.core.errors import NoIntervalError
from tulle.core.expression_error import (
    SampledLaw,
    even_fractions,
    signed_points,
    variance_of,
)
from tulle.core.query import Composite, Query
from tulle.core.table import LabelledTable
from tulle.sql.question.aggregate import Groups
from tulle.sql.question.parse import Statement
from tulle.sql.stand_in.laws import StandInLaw
from tulle.sql.tables.columns import OTHERS, Arithmetic, Column
from tulle.sql.tables.moments import UNKNOWN, check_moments, earlier, moments
from tulle.sql.tables.post_processing import PostProcessing
from tulle.sql.tables.purchases import (
    Bind,
    Cuts,
    Leaf,
    Purchases,
    Recipe,
    leaves_of,
    plan_purchases,
)
from tulle.sql.tables.select_list import (
    SelectList,
    TableQuestion,
    aggregate_of,
    aggregates_in,
    is_plain,
    read_select_list,
)
from tulle.sql.tables.windows import is_rank, sorted_rows

LEVEL = 0.95
"""At which level the intervals of a table hold, those of one column all at once."""

_ANY = (-np.inf, np.inf)

SOME_GROUPS = 32
"""On how many groups of a stand-in errors of what is computed are predicted."""

POINTS = 511
"""For how many errors of the parts, in each group."""

LEAST_SHEETS = 31
SHEET_ROWS = 20_000
"""Where a window looks at all groups: for how many tables at least, of how many rows together."""

LEAST_SIZE = 0.1
"""Errors are weighed against answers, or against this part of what is likely from public facts."""


@dataclass(frozen=True)
class SqlTable(TableQuestion, Composite):
    """Several aggregates of the same rows, plain or by public groups. Build with :func:`sql`.

    What the aggregates need is bought from the data, each thing once; aggregates, whatever is
    computed with them, HAVING, ORDER BY and LIMIT are worked out on the noisy numbers.
    """

    text: str
    dialect: str
    groups: Groups
    functions: tuple[str, ...]
    bought: Purchases | None = field(default=None, compare=False, repr=False)
    """What is bought from a database with a public schema; None before the question is bound."""
    resolved: str = field(default="", compare=False, repr=False)
    """The statement with every name resolved and one spelling; empty before it is bound."""
    cuts: Cuts = field(default=(), repr=False, kw_only=True)
    """Expressions that are held within bounds that were bought, and how that is written."""
    statement: Statement | None = field(default=None, compare=False, repr=False, kw_only=True)
    """The text, parsed."""

    @cached_property
    def tree(self) -> Any:
        """The parsed statement; it is not to be changed."""
        return super().tree if self.statement is None else self.statement.tree

    @cached_property
    def chosen(self) -> SelectList:
        """The statement taken apart."""
        return read_select_list(self.tree, self.groups, self.functions, self.dialect)

    def in_words(self) -> str:
        """Return the names of the columns, and by what they are listed."""
        by = ", ".join(name for name, _ in self.groups)
        return f"A table of {self.listed}{f' by {by}' if by else ''}."

    @property
    def _bound_as(self) -> Purchases | None:
        """What is bought; None before the question is bound."""
        return self.bought

    def check(self) -> None:
        """Refuse whatever can be refused without a schema.

        Raises:
            QueryError: naming the part that is not supported.
        """
        for aggregate in _probes(self.chosen):
            self.ask(aggregate)
        calls = self.chosen.calls()
        self._check_after({n: UNKNOWN for n, call in calls.items() if call.kind == "quantile"})

    def _check_after(self, kinds: Mapping[Any, str]) -> None:
        """Refuse whatever cannot be worked out after the noise, by the kinds of aggregates."""
        blank = Column.exact(1.0, self.size)
        processing = PostProcessing(
            Arithmetic({}),
            self._keys(),
            lambda node: replace(blank, kind=kinds.get(node, "")),
            self.size,
        )
        _finish(self.chosen, processing)
        for _, expression in self.chosen.columns:
            processing.column(expression)

    def ask(self, aggregate: Any) -> Query:
        """Return the question for one aggregate of the statement's rows."""
        build = registry.find("part", "database")["aggregate"]
        text, statement = self._written(aggregate)
        asked: Query = build(
            text,
            groups=self._lists or None,
            dialect=self.dialect,
            functions=self.functions,
            statement=statement,
        )
        return asked

    def single(self) -> Query | None:
        """Return the one COUNT or SUM that the table shows as it is; None if it is more."""
        return self.ask(aggregate_of(self.tree)) if is_plain(self.tree) else None

    def _written(self, aggregate: Any) -> tuple[str, Statement | None]:
        """Return the statement with one aggregate; as the user wrote it, if it has no other."""
        if is_plain(self.tree) and aggregate_of(self.tree) == aggregate:
            return self.text, self.statement
        text, tree = self.chosen.parsed(aggregate, self.dialect)
        return text, Statement(tree, str(tree.sql(dialect=self.dialect, comments=False)))

    @property
    def size(self) -> int:
        """How many rows the table has before HAVING and LIMIT."""
        return prod(len(values) for _, values in self.groups)

    def counted(self) -> Query:
        """Return the question how many rows there are, for showing whose they are."""
        return self.ask(exp.Count(this=exp.Star(), big_int=True))

    def _bind(self, public: Any) -> Self:
        return self._bound(public.schema, lambda query: query.bind(public, {}))

    def bound_to(self, facts: Facts) -> Self:
        """Return the question bound to a database's public facts alone.

        Raises:
            QueryError: when it does not fit them.
        """
        from tulle.sql.schema.schema import Schema

        return self._bound(Schema.from_json(facts), lambda query: query.bound_to(facts))

    def _bound(self, schema: Any, bind: Bind) -> Self:
        from tulle.sql.compile.names import Named
        from tulle.sql.compile.normal import resolved_text

        bought = plan_purchases(
            self.chosen,
            self.ask,
            bind,
            schema,
            self.groups,
            self.dialect,
            self.functions,
            self.cuts,
        )
        if is_plain(self.tree) and not self.cuts:
            resolved = str(vars(bought.leaves[0].query)["resolved"])
        else:
            resolved = resolved_text(Named(self.tree, schema).resolved, self.dialect)
        kinds = {node: recipe.kind for node, recipe in bought.recipes}
        check_moments(self.chosen, kinds)
        self._check_after(kinds)
        return replace(self, bought=bought, resolved=resolved)

    def parts(self) -> tuple[Query, ...]:
        """Return what is bought; before the question is bound, that is not known."""
        return (self,) if self.bought is None else tuple(leaf.query for leaf in self.bought.leaves)

    def canonical(self) -> dict[str, Any]:
        """Return a form that is equal for equivalent spellings of the same columns."""
        from tulle.sql.compile.normal import normal_text

        text = self.resolved or normal_text(self.tree, self.dialect)
        return self._form(text, columns=[name for name, _ in self.chosen.columns])

    # Answers

    def truth(self, dataset: Any) -> LabelledTable:
        """Return the exact table. Custodian side: its values are not private."""
        bound = self.bind(dataset)
        exact = {name: leaf.query.truth(dataset) for name, leaf in bound._leaves().items()}
        columns = {name: Column.exact(np.ravel(value), self.size) for name, value in exact.items()}
        return bound._table(columns, {}, None)

    def assemble(self, parts: Mapping[str, Any]) -> tuple[LabelledTable, dict[str, Any]]:
        """Return the table of released numbers, and what was done to it after the noise."""
        variances = {
            name: variance_of(part.error) for name, part in parts.items() if part.error is not None
        }
        values = {
            name: Column.exact(np.ravel(part.value), self.size) for name, part in parts.items()
        }
        table = self._table(values, variances, parts)
        after = list(self.chosen.after(self.dialect))
        return table, {"level": LEVEL, "after_noise": after, "groups": self.size}

    @np.errstate(all="ignore")
    def spreads(
        self, values: Mapping[str, Any] | None, deviations: Mapping[str, float] | None
    ) -> list[float]:
        """Return what one deviation of each part does to the columns, as a share of them."""
        leaves = self._leaves()
        size = self.size if values is not None else 1
        noisy = {}
        for name, leaf in leaves.items():
            value = leaf.likely if values is None else values[name]
            slope = np.full(size, leaf.move if deviations is None else deviations[name])
            column = Column.exact(np.ravel(value), size)
            noisy[name] = replace(column, slopes={name: slope}, known=True)
        processing = self._processing(noisy, {}, [0] if values is None else None)
        usual = {name: Column.exact(leaf.likely, 1) for name, leaf in leaves.items()}
        expected = self._processing(usual, {}, [0])
        found = {name: np.zeros(size) for name in leaves}
        for expression in self._weighed():
            column = processing.column(expression)
            moved = sum(np.abs(slope) for slope in column.slopes.values())
            # An answer that happens to be zero need not be exact beyond all others.
            least = np.nan_to_num(np.abs(expected.column(expression).value)) * LEAST_SIZE
            scale = np.fmax(np.fmax(np.abs(column.value), least), moved)
            for name, slope in column.slopes.items():
                share = np.abs(slope) / np.where(scale > 0, scale, 1.0)
                found[name.removesuffix(OTHERS)] += np.nan_to_num(share) ** 2
        # Quantiles have no slopes in anything: they count like one column of their own.
        return [float(np.sqrt(np.median(one))) or 1.0 / len(leaves) for one in found.values()]

    @np.errstate(all="ignore")
    def predict(
        self, values: Mapping[str, Any] | None, laws: Mapping[str, Any]
    ) -> tuple[tuple[str, ErrorLaw | None], ...]:
        """Return the error to expect in each column; by groups, that of some of the groups."""
        recipes = self._recipes()
        found: list[tuple[str, ErrorLaw | None]] = []
        for name, expression in self.chosen.columns:
            used = leaves_of(recipes, aggregates_in(expression))
            known = {leaf: laws[leaf] for leaf in used if laws.get(leaf) is not None}
            law: ErrorLaw | None = None
            if expression in recipes and recipes[expression].call.kind in ("count", "sum"):
                law = known.get(used[0])
            elif values is not None and len(known) == len(used) > 0:
                law = self._expected(expression, values, known)
            found.append((name, law))
        return tuple(found)

    def _expected(
        self, expression: Any, values: Mapping[str, Any], laws: Mapping[str, Any]
    ) -> SampledLaw | None:
        variances = {leaf: variance_of(law) for leaf, law in laws.items()}
        groups, points = list(range(self.size)), POINTS
        if expression.find(exp.Window) is None:
            groups = np.unique(np.linspace(0, self.size - 1, SOME_GROUPS).astype(int)).tolist()
        else:
            # A window looks at all groups: fewer tables of them are tried out.
            points = min(POINTS, max(LEAST_SHEETS, SHEET_ROWS // self.size))
        rows = np.repeat(groups, points).tolist()
        sheets = np.tile(np.arange(points), len(groups)).tolist()
        noisy, exact = {}, {}
        for leaf, errors in _errors_of(laws, groups, points).items():
            here = np.ravel(values[leaf]).astype(np.float64)
            column = Column.exact(here[rows] + errors, len(rows))
            noisy[leaf] = replace(column, slopes={leaf: np.ones(len(rows))}, known=True)
            exact[leaf] = Column.exact(here[rows], len(rows))
        answers = self._processing(noisy, variances, rows, sheets=sheets).column(expression).value
        truth = self._processing(exact, {}, rows, sheets=sheets).column(expression).value
        sizes = np.abs(answers - truth)[~np.isnan(truth)]
        if not len(sizes):
            return None
        return SampledLaw(tuple(np.sort(np.nan_to_num(sizes, nan=np.inf)).tolist()))

    # Putting the table together

    def _leaves(self) -> dict[str, Leaf]:
        assert self.bought is not None
        return {leaf.name: leaf for leaf in self.bought.leaves}

    def _recipes(self) -> dict[Any, Recipe]:
        assert self.bought is not None
        return dict(self.bought.recipes)

    def _weighed(self) -> Iterator[Any]:
        """Yield what should be exact: the columns, and aggregates that only choose rows."""
        listed = [expression for _, expression in self.chosen.columns]
        yield from listed
        selected = {node for expression in listed for node in aggregates_in(expression)}
        yield from (node for node in self._recipes() if node not in selected)

    def _keys(self, kept: Sequence[int] | None = None) -> list[tuple[str, Any, list[Any]]]:
        """Return name, meaning and values of each key, for all rows or for some."""
        rows = list(product(*(values for _, values in self.groups)))
        rows = rows if kept is None else [rows[row] for row in kept]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in self.groups]
        return [
            (name, meant, values)
            for (name, meant), values in zip(self.chosen.keys, columns, strict=True)
        ]

    def _processing(
        self,
        columns: Mapping[str, Column],
        variances: Mapping[str, float],
        kept: Sequence[int] | None = None,
        *,
        left: Sequence[int] | None = None,
        sheets: Sequence[int] | None = None,
    ) -> PostProcessing:
        arithmetic = Arithmetic(variances)
        recipes = self._recipes()

        def leaf(node: Any) -> Column:
            return recipes[node].column(arithmetic, columns.__getitem__)

        size = self.size if kept is None else len(kept)
        return PostProcessing(arithmetic, self._keys(kept), leaf, size, left=left, sheets=sheets)

    def _table(
        self, values: Mapping[str, Column], variances: Mapping[str, float], parts: Any
    ) -> LabelledTable:
        leaves, recipes = self._leaves(), self._recipes()
        plain = self._processing(_sloped(values, leaves), variances)
        rows = _finish(self.chosen, plain)
        columns: dict[str, Any] = {
            name: [listed[row] for row in rows] for name, _, listed in self._keys()
        }
        for name, expression in self.chosen.columns:
            used = leaves_of(recipes, aggregates_in(expression))
            ends = {} if parts is None else _ends(parts, used)
            inner = {
                leaf: _between(column, ends.get(leaf), leaves[leaf])
                for leaf, column in values.items()
            }
            processing = self._processing(_sloped(inner, leaves), variances, left=plain.left)
            made = processing.column(expression)
            counted = expression in recipes and recipes[expression].call.kind == "count"
            whole = counted or is_rank(expression)
            columns[name] = _shown(made.value[rows], made.kind, whole=whole)
            if parts is not None:
                lowest, highest = recipes[expression].ends() if expression in recipes else _ANY
                there = ~np.isnan(made.value)
                # The end of a declared range is known without asking.
                low = np.where(there & (made.low > lowest), made.low, np.nan)
                high = np.where(there & (made.high < highest), made.high, np.nan)
                columns[f"{name}_low"] = _shown(low[rows], made.kind, rounded=math.floor)
                columns[f"{name}_high"] = _shown(high[rows], made.kind, rounded=math.ceil)
        return LabelledTable(columns, keys=[name for name, _, _ in self._keys()])


def _errors_of(laws: Mapping[str, ErrorLaw], groups: Sequence[int], points: int) -> dict[str, Any]:
    """Return errors of each part in each of some groups, the parts' independent of each other.

    So are those of the groups: each goes through the points in steps of its own.
    """
    spread = even_fractions(np.arange(1, points + 1))
    steps = [step for step in range(1, points + 1) if gcd(step, points) == 1]
    found = {}
    for (leaf, law), fractions in zip(laws.items(), spread, strict=False):
        one = signed_points(law.of_one(), fractions)
        made = []
        for place, group in enumerate(groups):
            errors = law.points(group, fractions) if isinstance(law, StandInLaw) else one
            step = steps[place % len(steps)]
            made.append(errors[(np.arange(points) * step + place // len(steps)) % points])
        found[leaf] = np.concatenate(made)
    return found


def _probes(chosen: SelectList) -> Iterable[Any]:
    """Return an aggregate for each of the statement's that is checked like COUNT and SUM are."""
    for call in chosen.calls().values():
        if not call.arguments:
            yield exp.Count(this=exp.Star(), big_int=True)
        elif call.kind == "count" and call.distinct:
            yield exp.Count(
                this=exp.Distinct(expressions=[a.copy() for a in call.arguments]), big_int=True
            )
        else:
            kind = exp.Count if call.kind == "count" else exp.Sum
            options = {"big_int": True} if call.kind == "count" else {}
            yield kind(this=call.arguments[0].copy(), **options)


def _sloped(columns: Mapping[str, Column], leaves: Mapping[str, Leaf]) -> dict[str, Column]:
    """Return bought numbers as columns that vary with themselves alone."""
    return {
        name: replace(
            column, slopes={name: np.ones(len(column.value))}, known=not leaves[name].is_quantile
        )
        for name, column in columns.items()
    }


def _ends(parts: Mapping[str, Any], used: tuple[str, ...]) -> dict[str, Any]:
    """Return the ends of each part, such that all of those used hold together at the level.

    Their noise is independent, so k intervals at the k-th root of the level do.
    """
    found = {}
    for name in used:
        try:
            found[name] = parts[name].interval(LEVEL ** (1 / len(used)))
        except NoIntervalError:
            found[name] = -np.inf, np.inf
    return found


def _between(column: Column, ends: Any, leaf: Leaf) -> Column:
    if ends is None:
        return column
    low, high = (np.broadcast_to(np.asarray(end, float), column.value.shape) for end in ends)
    if leaf.query.integral:
        low, high = _whole_ends(low, high)
    return replace(column, low=np.maximum(low, leaf.least), high=high)


def _whole_ends(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the outermost whole numbers between ends: a count lies between these as often.

    Where no whole number is between them, they stay. The last digits of a float decide nothing.
    """
    slack = [np.where(np.isfinite(end), 1e-9 * (1.0 + np.abs(end)), 0.0) for end in (low, high)]
    first, last = np.ceil(low - slack[0]), np.floor(high + slack[1])
    there = first <= last
    return np.where(there, first, low), np.where(there, last, high)


def _finish(chosen: SelectList, processing: PostProcessing) -> list[int]:
    """Return which rows are left and in which order, after HAVING, QUALIFY, ORDER BY and LIMIT.

    Windows look at the rows that HAVING leaves.
    """
    if chosen.having is not None:
        holds = processing.condition(chosen.having)
        processing.left = [row for row in processing.left if holds[row]]
    rows = list(processing.left)
    if chosen.qualify is not None:
        holds = processing.condition(chosen.qualify)
        rows = [row for row in rows if holds[row]]
    rows = sorted_rows(rows, chosen.order, processing.values)
    stop = None if chosen.limit is None else chosen.offset + chosen.limit
    return rows[chosen.offset : stop]


def _shown(
    numbers: Any,
    kind: str = "",
    *,
    whole: bool = False,
    rounded: Callable[[float], int] = earlier,
) -> Any:
    """Return a column of a table: what has no end or is NULL is None."""
    if kind:
        return moments(numbers, kind, rounded)
    known = np.isfinite(numbers)
    if whole and known.all():
        # At a tiny epsilon noise goes beyond 64 bits.
        fits = (np.abs(numbers) < 2.0**62).all()
        return np.rint(numbers).astype(np.int64 if fits else np.float64)
    if known.all():
        return numbers.astype(np.float64)
    return [one if there else None for one, there in zip(numbers.tolist(), known, strict=True)]
