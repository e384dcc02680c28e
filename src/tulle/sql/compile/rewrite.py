"""The one statement that an engine runs for a question: tuples, merged by who they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tulle.sql.compile.derivations import (
    Form,
    Namer,
    Slot,
    alias,
    column,
    ranked,
    select,
    source_of,
)
from tulle.sql.compile.names import Named
from tulle.sql.compile.owned_rows import Gone
from tulle.sql.compile.select_rewriter import Rewriter
from tulle.sql.compile.single_owner import needs_one
from tulle.sql.compile.statements import total_statement
from tulle.sql.compile.sums import BOUND
from tulle.sql.dialect import dialect_of
from tulle.sql.expressions.kinds import named_type
from tulle.sql.question.aggregate import (
    Aggregate,
    Groups,
    Number,
    find_aggregate,
    group_expressions,
    group_number,
    is_ordered,
    literal,
    number_of,
)
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.ranges import Range
from tulle.sql.schema.schema import HERE, TEXT, Schema

GROUP = f"{RESERVED}_group"
TUPLE = f"{RESERVED}_tuple"
WEIGHT = f"{RESERVED}_weight"
TIMES = f"{RESERVED}_times"
ABOVE = f"{RESERVED}_above"
BELOW = f"{RESERVED}_below"
OWNER = f"{RESERVED}_owner"
VALUE, PLACE = f"{RESERVED}_value", f"{RESERVED}_place"

_LARGEST = "1E240"
"""Larger numbers weigh nothing, so that no engine's sum of doubles overflows."""


@dataclass(frozen=True)
class Rewritten:
    """A statement for one dialect, and how to read its rows.

    When ``keyed`` is false, each row is a set of owners with the sum of the positive (``ABOVE``)
    and, if there may be any, of the negative (``BELOW``) weights of all tuples that need exactly
    them. Otherwise each row is one way in which the tuple numbered ``TUPLE`` comes about.
    """

    text: str
    slots: tuple[Slot, ...]
    text_owners: bool
    """Whether the first owner's identifier is a text."""
    keyed: bool
    groups: int
    grouped: bool
    """Whether rows have the number of a group."""
    summed: bool
    """Whether weights are added; otherwise tuples are counted."""
    signed: bool
    """Whether weights may be negative, by the aggregate and the declared ranges."""
    term: float
    """The most that one row adds, by the same; infinite when nothing says so."""
    linked: int
    """How many links between participants of one kind, as in a network, make up a joined row."""
    single_owner: bool
    """Whether each row needs one participant alone, but where a key on a path is not unique."""
    once: bool
    """Whether nobody has more than one row, as far as declared keys hold."""
    per_person: bool
    """Whether some part was kept to the rows of one person (:mod:`tulle.sql.compile.inside`)."""
    schema: Schema = field(compare=False, repr=False)
    """What it was written for."""
    named: Named = field(compare=False, repr=False)
    """The statement's names, resolved; its own ``tree`` has become part of the text."""
    others: list[tuple[Schema, Gone, Rewritten]] = field(
        default_factory=list, compare=False, repr=False
    )
    """The same question written for other databases, as far as that was needed."""

    def written_for(
        self, schema: Schema, gone: Gone, write: Callable[[Schema, Gone], Rewritten]
    ) -> Rewritten:
        """Return the question's statement for another database, which is written once.

        Others are a stand-in, and the same database after somebody has left.
        """
        for known, left, written in self.others:
            if known is schema and left == gone:
                return written
        self.others.append((schema, gone, write(schema, gone)))
        return self.others[-1][2]


def rewrite(
    tree: exp.Select,
    groups: Groups,
    schema: Schema,
    gone: Gone = None,
    functions: Collection[str] = (),
    number: Number = group_number,
) -> Rewritten:
    """Rewrite a checked statement so that it returns tuples with their owners.

    ``number`` gives, from the columns of GROUP BY, what tells groups apart: their numbers.

    Raises:
        QueryError: when the statement does not fit the schema.
    """
    named = Named(tree, schema)
    tree = named.tree
    rewriter = Rewriter(schema, named, gone)
    aggregate = find_aggregate(tree)
    keys = group_expressions(tree, groups)
    numbered, conditions = number(keys, groups)
    wanted = [(numbered, GROUP)] if groups else []
    # Looking every value of a long list up in a join takes the engine less than comparisons.
    listed = number is group_number and not aggregate.distinct
    listed &= bool(groups) and all(is_ordered(values) for _, values in groups)
    if aggregate.kind == "sum":
        wanted.append((aggregate.arguments[0], WEIGHT))
    elif aggregate.distinct:
        wanted += [(a, f"{RESERVED}_value_{i}") for i, a in enumerate(aggregate.arguments)]
    # Neither COUNT nor SUM looks at NULL; COUNT(*) has no arguments and counts every row.
    conditions += [_is_there(argument) for argument in aggregate.arguments]
    block = rewriter.block(tree, rewriter.views(tree, {}))
    listed &= not block.keyed
    if listed:
        wanted[:1] = [(key, f"{GROUP}_{place}") for place, key in enumerate(keys)]
        # The join leaves out what is not among them.
        conditions = [one for one in conditions if not isinstance(one, exp.In)]
    form = rewriter.project(block, wanted, distinct=aggregate.distinct, conditions=conditions)
    if aggregate.distinct and aggregate.kind == "count":
        form = rewriter.exactly_whose(form, block, wanted)
    weights = form.range(WEIGHT) if aggregate.kind == "sum" else Range(0.0, 1.0)
    if form.keys is not None:
        query, slots = _merge_alternatives(form, aggregate, bool(groups), rewriter.namer)
    else:
        query, slots = _merge_tuples(
            form,
            aggregate,
            groups,
            listed=listed,
            namer=rewriter.namer,
            signed=weights.low < 0,
            bound=max(abs(weights.low), abs(weights.high)),
        )
    size = 1
    for _, values in groups:
        size *= len(values)
    single_owner = form.keys is None and (
        len(slots) == 1 or (bool(slots) and (form.single_owner or needs_one(named, schema)))
    )
    total = total_statement(query, schema, functions=functions, summed=WEIGHT)
    if groups and slots and form.keys is None and dialect_of(schema.dialect).gathers_first:
        _gather_first(total, slots[0])
    return Rewritten(
        total.sql(dialect=schema.dialect, pretty=True, copy=False),
        tuple(slots),
        bool(slots) and schema.entity_class(slots[0].entity) == TEXT,
        form.keys is not None,
        size,
        bool(groups),
        aggregate.kind == "sum",
        weights.low < 0,
        max(abs(weights.low), abs(weights.high)),
        _links(named, schema),
        single_owner,
        single_owner and form.once,
        rewriter.per_person,
        schema,
        named,
    )


def _links(named: Named, schema: Schema) -> int:
    """Count the tables that join themselves, or have rows of two owners of one kind."""
    views = {cte.alias for cte in named.tree.find_all(exp.CTE)}
    times: Counter[str] = Counter()
    for source in named.tree.find_all(exp.Table):
        if source.name not in views and source.find_ancestor(exp.Exists, exp.In) is None:
            times[named.table(source)] += 1
    found = 0
    for table, count in times.items():
        kinds = Counter(tie.entity for tie in schema.ownership(table).ties if tie.place == HERE)
        if kinds and (count > 1 or max(kinds.values()) > 1):
            found += count
    return found


def _is_there(argument: Any) -> Any:
    return exp.Not(this=exp.Is(this=exp.paren(argument.copy()), expression=exp.null()))


def _merge_tuples(
    form: Form,
    aggregate: Aggregate,
    groups: Groups,
    *,
    listed: bool,
    namer: Namer,
    signed: bool,
    bound: float,
) -> tuple[Any, list[Slot]]:
    """Add up all tuples that need the same owners; those below zero only if there may be any.

    With ``listed`` the rows have the columns of GROUP BY, otherwise the number of their group.
    """
    rows, slots = _sorted_owners(form, namer)
    name = namer.fresh()
    sources, conditions = [source_of(rows, name)], []
    by, number = [], []
    if listed:
        for place, (_, values) in enumerate(groups):
            lists = namer.fresh()
            sources.append(_list(values, lists))
            key = column(f"{GROUP}_{place}", name)
            conditions.append(exp.EQ(this=key, expression=column(VALUE, lists)))
            by.append(column(PLACE, lists))
        number = [alias(number_of([place.copy() for place in by], groups), GROUP)]
    elif groups:
        by, number = [column(GROUP, name)], [column(GROUP, name)]
    by += [column(slot.name, name) for slot in slots]
    if aggregate.kind == "count":
        sums = [alias(_double(exp.Count(this=exp.Star(), big_int=True)), ABOVE)]
    else:
        weight = column(WEIGHT, name)
        sums = [alias(_double(_sum_of_side(weight, bound, above=True)), ABOVE)]
        if signed:
            sums.append(alias(_double(_sum_of_side(weight, bound, above=False)), BELOW))
    chosen = [*number, *_numbered(slots, name), *sums]
    return select(chosen, sources, conditions, group=by), _final_slots(slots)


def _gather_first(total: Any, slot: Slot) -> None:
    """Bring the rows of a compiled statement together by their first owner."""
    owner = next(one.this for one in total.expressions if one.alias == slot.name)
    rows = total.args["from_"].this
    if isinstance(owner, exp.Column) and isinstance(rows, exp.Subquery):
        by = exp.column(exp.to_identifier(owner.name, quoted=True))
        rows.this.set("distribute", exp.Distribute(expressions=[by]))


def _list(values: Sequence[Any], name: str) -> Any:
    """Return public values, each with its place among them, as rows to join with."""
    pairs = [
        exp.Tuple(expressions=[literal(value), exp.Literal.number(place)])
        for place, value in enumerate(values)
    ]
    columns = [exp.to_identifier(VALUE), exp.to_identifier(PLACE)]
    named = exp.TableAlias(this=exp.to_identifier(name), columns=columns)
    return exp.Values(expressions=pairs, alias=named)


def _merge_alternatives(
    form: Form, aggregate: Aggregate, grouped: bool, namer: Namer
) -> tuple[Any, list[Slot]]:
    """Return every alternative of every tuple once."""
    assert form.keys is not None
    name = namer.fresh()
    keys = [column(key, name) for key in form.keys]
    chosen = [column(GROUP, name)] if grouped else []
    chosen.append(alias(ranked(keys), TUPLE))
    if aggregate.kind == "sum":
        chosen.append(alias(_double(column(WEIGHT, name)), WEIGHT))
    if form.times:
        chosen.append(alias(_double(column(form.times, name)), TIMES))
    chosen += _numbered(form.slots, name)
    rows = source_of(form.query, name)
    return select(chosen, [rows], distinct=True), _final_slots(form.slots)


def _sorted_owners(form: Form, namer: Namer) -> tuple[Any, list[Slot]]:
    """Order the owner columns of each kind within each row, so that equal sets are equal rows.

    Neighbouring columns are exchanged in rounds (odd-even transposition sort). This only saves
    rows that would have to be fetched: sets are compared once more afterwards.
    """
    query, slots = form.query, list(form.slots)
    places: dict[str, list[int]] = {}
    for place, slot in enumerate(slots):
        places.setdefault(slot.entity, []).append(place)
    for turn in range(max((len(p) for p in places.values()), default=0)):
        name = namer.fresh()
        expressions: list[Any] = [column(slot.name, name) for slot in slots]
        exchanged = False
        for mine in places.values():
            if turn >= len(mine) or len(mine) < 2:
                continue
            for first, second in zip(mine[turn % 2 :: 2], mine[turn % 2 + 1 :: 2], strict=False):
                one, other = expressions[first], expressions[second]
                expressions[first] = _pick(exp.Least, one, other)
                expressions[second] = _pick(exp.Greatest, one, other)
                exchanged = True
        if not exchanged:
            continue
        fresh = [Slot(slot.entity, namer.fresh()) for slot in slots]
        kept = [column(value, name) for value in form.values]
        named = [alias(e, slot.name) for e, slot in zip(expressions, fresh, strict=True)]
        query, slots = select([*kept, *named], [source_of(query, name)]), fresh
    return query, slots


def _pick(kind: Any, one: Any, other: Any) -> Any:
    # NULL stands for nobody; leaving it out of the comparison repeats the other owner, who is
    # then in the set once all the same.
    return kind(this=one.copy(), expressions=[other.copy()], ignore_nulls=True)


def _numbered(slots: Sequence[Slot], name: str) -> list[Any]:
    return [alias(column(s.name, name), f"{OWNER}_{i}") for i, s in enumerate(slots)]


def _final_slots(slots: Sequence[Slot]) -> list[Slot]:
    return [Slot(slot.entity, f"{OWNER}_{i}") for i, slot in enumerate(slots)]


def _sum_of_side(weight: Any, bound: float, *, above: bool) -> Any:
    """Return the sum of the weights above zero, or of those below; none is beyond the bound."""
    if bound < float(_LARGEST):
        side: Any = _pick(exp.Greatest if above else exp.Least, weight, _zero())
    else:
        # Infinities and NaN, which engines order after all numbers, weigh nothing.
        beyond, within = (exp.GT, exp.LTE) if above else (exp.LT, exp.GTE)
        end = exp.Literal.number(_LARGEST if above else "-" + _LARGEST)
        there = exp.and_(
            beyond(this=weight, expression=_zero()),
            within(this=weight.copy(), expression=_double(end)),
        )
        side = exp.Case(ifs=[exp.If(this=there, true=weight.copy())], default=_zero())
    made = exp.Sum(this=side)
    made.meta[BOUND] = min(bound, float(_LARGEST))
    return made


def _double(expression: Any) -> Any:
    return exp.cast(expression, named_type("DOUBLE"))


def _zero() -> Any:
    return exp.Literal.number(0)
