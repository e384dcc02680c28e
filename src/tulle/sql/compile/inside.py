"""Groups, aggregates and windows inside one person's rows: a sub-select that is a new owned table.

What a SELECT makes of the rows of one person alone, person by person, leaves with that person and
changes with nobody else. So every group and every window is divided by the owner as well, whatever
the statement says; and the statement must already say so, or its answer would be another one: its
GROUP BY, PARTITION BY or DISTINCT has to have columns that say whose a row is
(:mod:`tulle.sql.compile.whose`).

A SELECT is written as one within another: the arguments of aggregates, then groups, then HAVING,
then windows, then QUALIFY and what is selected. So every expression over a row is an expression
over columns, which is made total like any other (:mod:`tulle.sql.compile.statements`). Nothing
here may depend on the order in which an engine happens to find rows, because other people's rows
can change it: sums are exact, and ties in ORDER BY are broken by all columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp

from tulle.sql.compile.derivations import Form, alias, column, select, source_of
from tulle.sql.compile.ranked import EXTREMES, Ranked
from tulle.sql.compile.whose import Equal, Whose, renamed, says_whose
from tulle.sql.expressions.conversions import WRITTEN, Written
from tulle.sql.expressions.kinds import named_type
from tulle.sql.question.aggregate import SPREADS, quantile_of
from tulle.sql.question.check import refuse
from tulle.sql.question.scalars import as_written as written_text
from tulle.sql.schema.ranges import ANY, POSITIVE, Range, range_of

if TYPE_CHECKING:
    from tulle.sql.compile.select_rewriter import Block, Rewriter

_COMMON = "COUNT, COUNT_IF, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, BOOL_OR, BOOL_AND"
AGGREGATES = f"{_COMMON}, MIN, MAX, MEDIAN, QUANTILE_CONT(x, q), ARG_MAX and ARG_MIN"
WINDOWS = f"ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE, {_COMMON}, MIN and MAX"

EXACTLY = "exactly"
"""Marks a sum that must not depend on the order of its terms; holds the most that one can be, by
the declared ranges."""

ELSEWHERE = "put it into WHERE, or into a sub-select in FROM"
"""Where a sub-select may stand instead."""

_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_NEIGHBOURS = (exp.Lag, exp.Lead, exp.FirstValue)


class SameValue(exp.Expression, exp.Func):
    """A value in one form where several are equal, such as 0 and -0; equal values are then one."""

    arg_types = {"this": True}  # noqa: RUF012 - as the parser declares all of its own


def as_written(expression: Any) -> Any:
    """Return an expression as it is written, where it is brought into one form."""
    return expression.this if isinstance(expression, SameValue) else expression


def is_inside(tree: Any) -> bool:
    """Say whether a SELECT does more than choose rows and compute with each."""
    distinct = tree.args.get("distinct")
    if any(tree.args.get(name) for name in ("group", "having", "qualify")):
        return True
    if distinct is not None and distinct.args.get("on"):
        return True
    return any(next(_calls(e), None) is not None for e in tree.expressions)


def _calls(node: Any, kinds: Any = (exp.AggFunc, exp.Filter, exp.Window)) -> Iterator[Any]:
    """Yield the outermost calls of some kinds; sub-selects are left alone."""
    if isinstance(node, kinds):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from _calls(child, kinds)


def _aggregates(node: Any) -> Iterator[Any]:
    """Yield the outermost aggregates, those inside a window's own parts included."""
    for call in _calls(node):
        if isinstance(call, exp.Window):
            function = call.this.this if isinstance(call.this, exp.Filter) else call.this
            for part in (*function.iter_expressions(), *_parts(call)):
                yield from _aggregates(part)
        else:
            yield call


def _parts(window: Any) -> Iterator[Any]:
    yield from window.args.get("partition_by") or []
    order = window.args.get("order")
    if order is not None:
        yield from order.expressions
    if isinstance(window.this, exp.Filter):
        yield window.this.expression


class Inside:
    """One such SELECT; see the module's text."""

    def __init__(self, rewriter: Rewriter, tree: Any, block: Block) -> None:
        self._rewriter, self._tree, self._block = rewriter, tree, block
        self._stage = rewriter.namer.fresh()
        self._known: dict[Any, Any] = {}
        # What expressions of the statement are called in the rows made so far.
        self._columns: list[str] = []
        self._ranges: dict[str, Range] = {}
        self._slots: list[Any] = []
        self._whose: tuple[Whose, ...] = ()
        self._once = False
        self._query: Any = None
        self._selected = [(e.unalias(), e.alias_or_name) for e in tree.expressions]
        having, qualify = tree.args.get("having"), tree.args.get("qualify")
        self._having = None if having is None else having.this
        self._qualify = None if qualify is None else qualify.this
        clauses = (tree.args.get(name) for name in ("group", "distinct", "order"))
        for part in (*self._expressions(), *clauses):
            if part is not None and part.find(exp.Query):
                refuse("A sub-select beside GROUP BY, an aggregate or a window", ELSEWHERE)

    def form(self) -> Form:
        """Return the rows as those of a table with one owner, or of a public one.

        Raises:
            QueryError: when they are not about one person each.
        """
        self._keep_one_a_group()
        if self._group() or any(next(_aggregates(e), None) for e in self._expressions()):
            self._aggregate()
        else:
            self._collect()
        if self._having is not None:
            self._keep(self._having)
        windows = dict.fromkeys(w for e in self._expressions() for w in _calls(e, exp.Window))
        if windows:
            self._look_around([*windows])
        if self._qualify is not None:
            self._keep(self._qualify)
        return self._finish()

    def value(self) -> Any:
        """Return the SELECT of one value: aggregates of all rows of the block."""
        tree = self._tree
        if len(self._selected) != 1 or self._group() or self._having or self._qualify:
            refuse(short(tree), "a sub-select that stands for one value selects one aggregate")
        ((expression, _),) = self._selected
        if next(_aggregates(expression), None) is None:
            # Two rows would be an error, and whether there are two must not show.
            if not self._block.finds_one_row():
                refuse(
                    short(tree),
                    "select an aggregate, such as MAX(...): there may be two rows. In a public "
                    "table, compare its whole primary key (keys={'table': 'column'} declares one)",
                )
            expression = exp.Max(this=expression.copy())
        if next(_calls(expression, exp.Window), None) is not None:
            refuse(short(tree), "select an aggregate without a window")
        calls = self._add_aggregates([expression])
        if calls.ranked.numbers:
            refuse(short(expression), "write it in a sub-select in FROM, with GROUP BY the owner")
        block = self._block
        sources = [*block.sources, *((name, form) for name, form, _ in block.optional)]
        ends = {(name, v): found for name, form in sources for v, found in form.ranges.items()}
        calls.bound_sums({name: range_of(as_written(e), ends) for e, name in calls.wanted})
        wanted = [alias(e, name) for e, name in calls.wanted]
        rows = source_of(self._rewriter.selected(self._block, wanted), self._stage)
        inner = select([alias(e, name) for e, name in calls.found], [rows])
        made = alias(self._replaced(expression), self._rewriter.namer.fresh())
        return select([made], [source_of(inner, self._stage)])

    # Stages

    def _aggregate(self) -> None:
        """Divide the rows into groups, each of one person."""
        groups = []
        wanted: list[tuple[Any, str]] = []
        for expression in self._group():
            name = self._rewriter.namer.fresh()
            groups.append(name)
            wanted.append((SameValue(this=expression.copy()), name))
            self._known[expression] = column(name, self._stage)
        calls = self._add_aggregates(self._expressions())
        form = self._rows([*wanted, *calls.wanted])
        if not says_whose(form.whose, groups):
            if not groups:
                refuse(
                    f"{short(self._tree.expressions[0].unalias())} over everybody's rows in a "
                    "sub-select",
                    "it changes when anybody leaves. GROUP BY the owner, or compare the owners in "
                    "WHERE of a sub-select in a condition",
                )
            self._refuse("GROUP BY", ", ".join(map(short, self._group())))
        self._whose = tuple(
            frozenset(term for term in terms if set(term[0]) <= set(groups)) for terms in form.whose
        )
        self._once |= form.once or self._block.settles(self._group())
        by = [*(column(name, self._stage) for name in groups), *self._by_owner()]
        calls.bound_sums(form.ranges)
        found = [alias(e, name) for e, name in calls.found]
        rows = source_of(self._ranked(form, calls.ranked, by), self._stage)
        self._query = select([*by, *found], [rows], group=by)
        made_of = {name: source for _, name, source in calls.ranked.picked}
        for expression, name in calls.found:
            self._ranges[name] = _range_of(expression, form, made_of)
        self._ranges |= {name: form.range(name) for name in groups}
        self._columns = [*groups, *(name for _, name in calls.found)]

    def _ranked(self, form: Form, ranked: Ranked, by: list[Any]) -> Any:
        """Return the rows with what is kept of those that aggregates look for, if any do."""
        if not ranked.numbers:
            return form.query
        there = [column(name, self._stage) for name in (*form.values, *self._owner_names())]
        windows = ranked.windows(by)
        inner = select([*there, *windows], [source_of(form.query, self._stage)])
        kept = [alias(e, name) for e, name, _ in ranked.picked]
        return select([*(one.copy() for one in there), *kept], [source_of(inner, self._stage)])

    def _collect(self) -> None:
        """Take the rows as they are, with the columns that are used."""
        wanted = []
        listed = [*self._expressions()]
        for found in dict.fromkeys(c for e in listed for c in e.find_all(exp.Column)):
            name = self._rewriter.namer.fresh()
            wanted.append((SameValue(this=found.copy()), name))
            self._known[found] = column(name, self._stage)
        form = self._rows(wanted)
        self._query, self._whose = form.query, form.whose
        self._once |= form.once
        self._ranges |= form.ranges
        self._columns = [name for _, name in wanted]

    def _rows(self, wanted: list[tuple[Any, str]]) -> Form:
        if self._block.keyed:
            refuse(
                "GROUP BY, an aggregate or a window over DISTINCT, UNION or INTERSECT",
                "a row that is there because of several people is nobody's own. Select the owner "
                "too, or use UNION ALL",
            )
        form = self._rewriter.project(self._block, wanted, distinct=False, single_owner=True)
        self._slots = list(form.slots)
        return form

    def _keep(self, condition: Any) -> None:
        rows = source_of(self._query, self._stage)
        self._query = select(self._all(), [rows], [self._replaced(condition)])

    def _look_around(self, windows: list[Any]) -> None:
        """Add windows, each within the rows of one person."""
        ready: list[Any] = []
        made: list[tuple[Any, Any, str]] = []
        ties = [exp.Ordered(this=column(name, self._stage)) for name in self._columns]

        def computed(expression: Any) -> Any:
            replaced = self._replaced(expression)
            name = self._rewriter.namer.fresh()
            ready.append(alias(SameValue(this=replaced), name))
            self._ranges[name] = self._range(replaced)
            return column(name, self._stage)

        for window in windows:
            parts = window.args.get("partition_by") or []
            given = [found for found in map(self._replaced, parts) if isinstance(found, exp.Column)]
            if not says_whose(self._whose, [found.name for found in given]):
                self._refuse("PARTITION BY", ", ".join(map(short, parts)) or "nothing")
            by = [*map(computed, parts), *self._by_owner()]
            order = window.args.get("order")
            ordered = [
                exp.Ordered(**{**one.args, "this": computed(one.this)})
                for one in (order.expressions if order is not None else ())
            ]
            spec = window.args.get("spec")
            if spec is not None:
                _check_frame(spec)
            function = window.this
            pieces: list[tuple[Any, Range]]
            if isinstance(function, (exp.RowNumber, *_NEIGHBOURS)) or spec is not None:
                # Which of two equal rows comes first must not be the engine's choice.
                ordered += [one.copy() for one in ties]
            if isinstance(function, _NEIGHBOURS):
                _check_neighbour(function)
                function = function.copy()
                function.set("this", computed(function.this))
                pieces = [(function, self._range(function.this))]
                whole = _first
            elif isinstance(function, _RANKS):
                pieces, whole = [(type(function)(), POSITIVE)], _first
            else:
                pieces, whole = self._split(function, computed, WINDOWS)
            names = []
            for piece, found in pieces:
                name = self._rewriter.namer.fresh()
                names.append(column(name, self._stage))
                self._ranges[name] = found
                over = exp.Window(
                    this=piece,
                    partition_by=[one.copy() for one in by],
                    order=exp.Order(expressions=[o.copy() for o in ordered]) if ordered else None,
                    spec=None if spec is None else spec.copy(),
                    over="OVER",
                )
                made.append((over, window, name))
            self._known[window] = whole(names)
        inner = select([*self._all(), *ready], [source_of(self._query, self._stage)])
        added = [alias(over, name) for over, _, name in made]
        self._query = select([*self._all(), *added], [source_of(inner, self._stage)])
        self._columns += [name for _, _, name in made]

    def _keep_one_a_group(self) -> None:
        """Write DISTINCT ON as a window: the first row of each."""
        distinct = self._tree.args.get("distinct")
        if distinct is None or not distinct.args.get("on"):
            return
        if self._qualify is not None:
            refuse("DISTINCT ON with QUALIFY", "use one of them, and a sub-select for the other")
        on = distinct.args["on"]
        listed = on.expressions if isinstance(on, exp.Tuple) else [on]
        order = self._tree.args.get("order")
        names = {name: expression for expression, name in self._selected}

        def meant(one: Any) -> Any:
            named = isinstance(one, exp.Column) and not one.table
            return (names.get(one.name, one) if named else one).copy()

        ordered = [
            exp.Ordered(**{**one.args, "this": meant(one.this)})
            for one in (order.expressions if order is not None else ())
        ]
        window = exp.Window(
            this=exp.RowNumber(),
            partition_by=[meant(one) for one in listed],
            order=exp.Order(expressions=ordered) if ordered else None,
            over="OVER",
        )
        self._qualify = exp.EQ(this=window, expression=exp.Literal.number(1))
        self._once = self._block.settles(map(meant, listed))

    def _finish(self) -> Form:
        wanted = [(self._replaced(e), name) for e, name in self._selected]
        distinct = self._tree.args.get("distinct")
        distinct = distinct is not None and not distinct.args.get("on")
        if distinct:
            wanted = [(SameValue(this=e), name) for e, name in wanted]
        chosen = [alias(e, name) for e, name in wanted]
        chosen += [column(name, self._stage) for name in self._owner_names()]
        query = select(chosen, [source_of(self._query, self._stage)], distinct=distinct)
        names: dict[tuple[str, str], list[str]] = {}
        for e, name in wanted:
            copied = as_written(e)
            if isinstance(copied, exp.Column):
                names.setdefault((self._stage, copied.name), []).append(name)
        known = tuple(renamed(Equal().terms(self._stage, t), names) for t in self._whose)
        if distinct and not says_whose(known, [name for _, name in wanted]):
            self._refuse("DISTINCT", ", ".join(name for _, name in wanted))
        ranges = {name: self._range(as_written(e)) for e, name in wanted}
        values = tuple(name for _, name in wanted)
        slots = tuple(self._slots)
        return Form(
            query,
            values,
            slots,
            ranges=ranges,
            whose=known,
            single_owner=bool(slots),
            once=self._once and bool(slots),
        )

    # Expressions

    def _group(self) -> list[Any]:
        group = self._tree.args.get("group")
        return [] if group is None else list(group.expressions)

    def _expressions(self) -> list[Any]:
        rest = [e for e in (self._having, self._qualify) if e is not None]
        return [*(e for e, _ in self._selected), *rest]

    def _owner_names(self) -> list[str]:
        return [slot.name for slot in self._slots]

    def _by_owner(self) -> list[Any]:
        """Return what groups and windows are divided by, whatever the statement says."""
        return [column(name, self._stage) for name in self._owner_names()]

    def _all(self) -> list[Any]:
        return [column(name, self._stage) for name in (*self._columns, *self._owner_names())]

    def _range(self, expression: Any) -> Range:
        known = {(self._stage, name): found for name, found in self._ranges.items()}
        return range_of(expression, known)

    def _replaced(self, node: Any) -> Any:
        """Return an expression over the rows made so far."""
        if node in self._known:
            made = self._known[node].copy()
            made.meta[WRITTEN] = Written(node)
            return made
        if isinstance(node, exp.Column):
            refuse(
                f"{node.name} beside GROUP BY or an aggregate",
                "it may differ within a group. Put it into GROUP BY, or into an aggregate",
            )
        made = node.copy()
        # Errors show what the statement says, not what it has become.
        made.meta[WRITTEN] = Written(node)
        for name, part in node.args.items():
            if isinstance(part, exp.Expression):
                made.set(name, self._replaced(part))
            elif isinstance(part, list):
                made.set(
                    name,
                    [self._replaced(p) if isinstance(p, exp.Expression) else p for p in part],
                )
        return made

    def _add_aggregates(self, expressions: list[Any]) -> _Calls:
        calls = _Calls(Ranked(self._stage))

        def computed(expression: Any) -> Any:
            name = self._rewriter.namer.fresh()
            calls.wanted.append((expression, name))
            return column(name, self._stage)

        for node in dict.fromkeys(a for e in expressions for a in _aggregates(e)):
            pieces, whole = self._look_for(node, computed, calls.ranked) or self._split(
                node, computed, AGGREGATES
            )
            names = []
            for piece, _ in pieces:
                name = self._rewriter.namer.fresh()
                calls.found.append((piece, name))
                names.append(column(name, self._stage))
            self._known[node] = whole(names)
        return calls

    def _look_for(
        self, node: Any, computed: Any, ranked: Ranked
    ) -> tuple[list[tuple[Any, Range]], Any] | None:
        """Return how a value that is looked for among the rows of a group is made; None if it
        is another kind of aggregate."""
        found, condition = node, None
        if isinstance(found, exp.Filter):
            found, condition = found.this, found.expression.this
        fresh = self._rewriter.namer.fresh

        def value(expression: Any, *conditions: Any) -> Any:
            given = [one.copy() for one in (condition, *conditions) if one is not None]
            if given:
                branch = exp.If(this=exp.and_(*given), true=expression.copy())
                expression = exp.Case(ifs=[branch])
            made = computed(SameValue(this=expression.copy()))
            made.meta[WRITTEN] = Written(expression)
            return made

        if type(found) in EXTREMES:
            if found.args.get("count") is not None:
                refuse(short(node), "it gives one value here; leave the number out")
            sides = (found.this, found.expression)
            there = [
                exp.Not(this=exp.Is(this=exp.paren(s.copy()), expression=exp.null())) for s in sides
            ]
            names = value(sides[0], there[1]), value(sides[1], there[0])
            pieces, whole = ranked.extreme(*names, fresh, greatest=EXTREMES[type(found)])
        else:
            asked = quantile_of(found)
            if asked is None:
                return None
            if not isinstance(found, exp.Median | exp.PercentileCont):
                refuse(f"{short(node)} inside a sub-select", "write QUANTILE_CONT(x, 0.9)")
            pieces, whole = ranked.quantile(value(asked[0]), asked[1], fresh)
        return [(piece, ANY) for piece in pieces], whole

    def _split(self, node: Any, computed: Any, allowed: str) -> tuple[list[tuple[Any, Range]], Any]:
        """Return aggregates of columns, each with its range, and what to make of them."""
        written, condition = node, None
        if isinstance(node, exp.Filter):
            node, condition = node.this, node.expression.this

        def argument(expression: Any) -> Any:
            if condition is None:
                return expression.copy()
            branch = exp.If(this=condition.copy(), true=expression.copy())
            return exp.Case(ifs=[branch])

        one = exp.Literal.number(1)
        inner = node.this
        if isinstance(node, exp.CountIf) and inner is not None:
            branch = exp.If(this=argument(inner), true=one)
            return [_count(computed(exp.Case(ifs=[branch])))], _first
        if isinstance(node, exp.LogicalOr | exp.LogicalAnd):
            # Of 1 for true and 0 for false the greatest says whether any is true.
            truth, kind = argument(inner), exp.Max if isinstance(node, exp.LogicalOr) else exp.Min
            branches = [(truth, one), (exp.Not(this=exp.paren(truth)), exp.Literal.number(0))]
            number = exp.Case(ifs=[exp.If(this=when, true=then) for when, then in branches])
            return [(kind(this=computed(number)), POSITIVE)], _is_one
        if type(node) in SPREADS and not isinstance(inner, exp.Distinct):
            value = argument(inner)
            square = exp.Mul(this=exp.paren(value), expression=exp.paren(value.copy()))
            terms = [computed(square), computed(value)]
            sums = [exp.Sum(this=term) for term in terms]
            for total, term in zip(sums, terms, strict=True):
                total.meta[EXACTLY] = _most(self._range(term))
                term.meta[WRITTEN] = Written(inner)
            pieces = [*((total, ANY) for total in sums), _count(terms[1].copy())]
            return pieces, partial(_spread, *SPREADS[type(node)])
        if not isinstance(node, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
            refuse(f"{short(written)} inside a sub-select", f"supported are {allowed}")
        if isinstance(inner, exp.Star) and isinstance(node, exp.Count):
            star = exp.Star() if condition is None else computed(argument(one))
            return [_count(star)], _first
        distinct = isinstance(inner, exp.Distinct)
        listed = inner.expressions if distinct else [inner, *node.expressions]
        if len(listed) != 1 or listed[0] is None or isinstance(listed[0], exp.Star | exp.Tuple):
            refuse(f"{short(written)} inside a sub-select", "it takes one argument here")
        value = argument(listed[0])
        if distinct or isinstance(node, exp.Min | exp.Max):
            value = SameValue(this=value)
        name = computed(value)
        name.meta[WRITTEN] = Written(listed[0])
        found = exp.Distinct(expressions=[name]) if distinct else name
        if isinstance(node, exp.Count):
            return [_count(found)], _first
        if isinstance(node, exp.Min | exp.Max):
            return [(type(node)(this=name), self._range(name))], _first
        total = exp.Sum(this=found)
        total.meta[EXACTLY] = _most(self._range(name))
        if isinstance(node, exp.Sum):
            return [(total, _sum_range(self._range(name)))], _first
        return [(total, ANY), _count(found.copy())], _quotient

    def _refuse(self, clause: str, columns: str) -> NoReturn:
        kinds = {slot.entity for slot in self._slots}
        refuse(
            f"{clause} {columns} in a sub-select",
            "the rows of several people would be put together, and change when one of them "
            f"leaves. Add the column that says whose a row is (the {' or '.join(kinds)})",
        )


class _Calls:
    def __init__(self, ranked: Ranked) -> None:
        self.ranked = ranked
        self.wanted: list[tuple[Any, str]] = []
        self.found: list[tuple[Any, str]] = []

    def bound_sums(self, ranges: Mapping[str, Range]) -> None:
        """Note how large the terms of sums can be, by the ranges of what is wanted."""
        for call, _ in self.found:
            if EXACTLY in call.meta:
                terms = (
                    call.this.expressions[0] if isinstance(call.this, exp.Distinct) else call.this
                )
                call.meta[EXACTLY] = _most(ranges.get(terms.name, ANY))


def _most(found: Range) -> float:
    return max(abs(found.low), abs(found.high))


def _count(inner: Any) -> tuple[Any, Range]:
    return exp.Count(this=inner, big_int=True), POSITIVE


def _first(names: list[Any]) -> Any:
    return names[0]


def _quotient(names: list[Any]) -> Any:
    total, count = (exp.cast(name, named_type("DOUBLE")) for name in names)
    return exp.Paren(this=exp.Div(this=total, expression=count, typed=False, safe=False))


def _is_one(names: list[Any]) -> Any:
    return exp.Paren(this=exp.EQ(this=names[0], expression=exp.Literal.number(1)))


def _spread(sample: bool, root: bool, names: list[Any]) -> Any:
    """Return a variance or its root, of exact sums of squares and values; NULL of too few."""
    squares, total, count = (exp.cast(name, named_type("DOUBLE")) for name in names)
    mean = exp.Div(this=total.copy(), expression=count.copy(), typed=False, safe=False)
    around = exp.Sub(this=squares, expression=exp.Mul(this=total, expression=exp.Paren(this=mean)))
    above = exp.Greatest(this=around, expressions=[exp.Literal.number(0)])
    less = exp.Paren(this=exp.Sub(this=count, expression=exp.Literal.number(1)))
    number = less if sample else count
    spread: Any = exp.Div(this=above, expression=number, typed=False, safe=False)
    spread = exp.Sqrt(this=spread) if root else exp.Paren(this=spread)
    enough = exp.GT(this=names[2].copy(), expression=exp.Literal.number(int(sample)))
    return exp.Case(ifs=[exp.If(this=enough, true=spread)])


def _sum_range(terms: Range) -> Range:
    return POSITIVE if terms.low >= 0 else ANY


def _range_of(expression: Any, form: Form, made_of: Mapping[str, str]) -> Range:
    if isinstance(expression, exp.Count):
        return POSITIVE
    inner = expression.this
    inner = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
    found = form.range(made_of.get(inner.name, inner.name))
    return _sum_range(found) if isinstance(expression, exp.Sum) else found


def _check_frame(spec: Any) -> None:
    ends = [spec.args.get(name) for name in ("start", "end")]
    whole = all(
        end is None
        or (isinstance(end, str) and end.upper() in {"UNBOUNDED", "CURRENT ROW"})
        or (isinstance(end, exp.Literal) and end.is_int)
        for end in ends
    )
    rows = str(spec.args.get("kind") or "").upper() == "ROWS"
    if not rows or not whole or spec.args.get("exclude"):
        refuse("This frame of a window", "write ROWS BETWEEN n PRECEDING AND CURRENT ROW, or none")


def _check_neighbour(function: Any) -> None:
    offset = function.args.get("offset")
    plain = offset is None or (isinstance(offset, exp.Literal) and offset.is_int)
    if not plain or function.args.get("default") is not None:
        refuse(short(function), "write LAG(x) or LAG(x, 2), and COALESCE for a default")


def short(node: Any) -> str:
    """Return a part of a statement as a user would write it, shortened."""
    plain = exp.Paren(this=node.copy())
    for found in plain.find_all(exp.Column):
        found.set("table", None)
        found.this.set("quoted", False)
    for named in list(plain.find_all(exp.Alias, exp.Table, exp.Subquery)):
        if isinstance(named, exp.Alias):
            named.replace(named.this)
        else:
            named.set("alias", None)
            if isinstance(named, exp.Table):
                named.this.set("quoted", False)
    text = written_text(plain.this)
    return text if len(text) <= 60 else text[:57] + "..."
