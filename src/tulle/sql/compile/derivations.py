"""Rows that say which participants they need: the intermediate form of every sub-select.

A form is a SELECT whose rows are *derivations*: one way in which a tuple comes about, with the
participants that this way needs in its owner columns. Without ``keys`` every row is a tuple of its
own, which needs all of its owners. With ``keys``, rows that agree on these columns are ways to get
the same tuple, which is there when any of them is; ``times`` says how many copies of the tuple
there are. This is positive algebra on annotated relations, kept in disjunctive normal form: a join
pairs ways, a projection without duplicates and a union put ways side by side.

Reference: Chen & Zhou, Recursive mechanism, SIGMOD 2013, section 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tulle.sql.compile.whose import Whose
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.ranges import ANY, Range
from tulle.sql.schema.schema import Schema


@dataclass(frozen=True)
class Slot:
    """A column with the identifier of one participant of a kind, or NULL for none."""

    entity: str
    name: str


@dataclass(frozen=True)
class Form:
    """A SELECT of derivations; see the module's text."""

    query: Any
    values: tuple[str, ...]
    slots: tuple[Slot, ...]
    keys: tuple[str, ...] | None = None
    times: str | None = None
    origins: tuple[tuple[str, str] | None, ...] = ()
    """For each slot the column it copies as it is, if there is one; used to drop repetitions."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    """For some of the values, by name, the range they lie in."""
    whose: tuple[Whose, ...] = ()
    """For each slot the terms over values that say who it is; empty where nothing is known."""
    single_owner: bool = False
    """Whether all slots are one participant, unless a key on a path is not unique."""
    once: bool = False
    """Whether nobody has more than one row, as far as declared keys hold."""
    unique: tuple[str, ...] = ()
    """Of a public table, the values that a declared key says are those of one row."""

    def range(self, value: str) -> Range:
        """Return the range that a value is known to lie in."""
        return self.ranges.get(value, ANY)


class Namer:
    """Hands out names for added columns and sources that no user can have."""

    def __init__(self) -> None:
        self._last = 0

    def fresh(self) -> str:
        """Return a name that was not used before in this statement."""
        self._last += 1
        return f"{RESERVED}_{self._last}"


def column(name: str, source: str | None = None) -> Any:
    """Return a quoted column."""
    return exp.column(name, table=source, quoted=True)


def free(part: Any) -> Any:
    """Return a part that may be put into a statement: itself if it is in none yet, or a copy.

    So what is nested is not copied again for each SELECT around it.
    """
    return part if part.parent is None else part.copy()


def alias(expression: Any, name: str) -> Any:
    """Return an expression under a quoted name."""
    return exp.alias_(free(expression), name, quoted=True, copy=False)


def source_of(query: Any, name: str) -> Any:
    """Return a query as something to select from."""
    called = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    return exp.Subquery(this=free(query), alias=called)


def select(
    expressions: Sequence[Any],
    sources: Sequence[Any],
    conditions: Sequence[Any] = (),
    *,
    distinct: bool = False,
    group: Sequence[Any] = (),
) -> Any:
    """Return a SELECT over the product of sources; what compares two of them is a join's ON.

    So the statement joins by hashing also where an engine runs it as it is written.
    """
    # A SELECT needs at least one column, also when nothing of a row is wanted.
    wanted = expressions or [alias(exp.Literal.number(1), f"{RESERVED}_one")]
    query = exp.select(*map(free, wanted), copy=False)
    joined, rest = _joined(sources, conditions)
    for place, (source, on) in enumerate(joined):
        if place == 0:
            query = query.from_(free(source), copy=False)
        elif on:
            query = query.join(free(source), on=exp.and_(*map(free, on), copy=False), copy=False)
        else:
            query = query.join(free(source), join_type="cross", copy=False)
    query = query.where(*(_bracketed(free(part)) for part in rest), copy=False)
    if group:
        query = query.group_by(*map(free, group), copy=False)
    return query.distinct(copy=False) if distinct else query


Joined = list[tuple[Any, list[Any]]]


def _joined(sources: Sequence[Any], conditions: Sequence[Any]) -> tuple[Joined, list[Any]]:
    """Return the sources, each with the comparisons that join it to those before; and the rest.

    The first stays the first. After it, what is equal to something before comes next: in the order
    that a user wrote, two sources that only a third one links would be a product.
    """
    names = {source.alias_or_name for source in sources}
    about: list[tuple[Any, set[str]]] = []
    rest: list[Any] = []
    for condition in conditions:
        used = {found.table for found in condition.find_all(exp.Column)}
        plain = isinstance(condition, _COMPARISONS) and condition.find(exp.Query) is None
        if plain and len(used) > 1 and used <= names:
            about.append((condition, used))
        else:
            rest.append(condition)
    waiting = list(sources)
    joined: Joined = []
    placed: set[str] = set()
    while waiting:
        near = [(used - placed, c) for c, used in about if len(used - placed) == 1]
        equal = {name for left, c in near if isinstance(c, _EQUALITIES) for name in left}
        compared = equal or {name for left, _ in near for name in left}
        here = next((one for one in waiting if one.alias_or_name in compared), waiting[0])
        waiting = [one for one in waiting if one is not here]
        placed.add(here.alias_or_name)
        joined.append((here, [c for c, used in about if used <= placed]))
        about = [(c, used) for c, used in about if not used <= placed]
    return joined, rest


_EQUALITIES = (exp.EQ, exp.NullSafeEQ)
_COMPARISONS = (*_EQUALITIES, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def _bracketed(condition: Any) -> Any:
    return exp.paren(condition, copy=False) if isinstance(condition, exp.Or) else condition


def owner_type(schema: Schema, entity: str) -> Any:
    """Return the SQL type in which identifiers of this kind are compared."""
    return exp.DataType.build(schema.entity_class(entity))


def identify(form: Form, used: Sequence[str], namer: Namer) -> Form:
    """Give tuples a key: rows with equal used columns and owners become one, counted.

    They join with the same rows, weigh the same and need the same participants, so that one tuple
    with a multiplicity says all about them.
    """
    if form.keys is not None:
        return form
    name, times = namer.fresh(), namer.fresh()
    kept = [value for value in form.values if value in set(used)]
    keys = [*kept, *(slot.name for slot in form.slots)]
    columns = [column(key, name) for key in keys]
    counted = alias(exp.Count(this=exp.Star(), big_int=True), times)
    # Without a column to group by, an empty table would still give a row: that one counts zero
    # copies and weighs nothing, but it would be a tuple that nobody's leaving removes.
    having = [] if columns else [exp.GT(this=exp.Count(this=exp.Star()), expression=_number(0))]
    query = select([*columns, counted], [source_of(form.query, name)], group=columns)
    for condition in having:
        query = query.having(condition)
    return Form(query, tuple(kept), form.slots, tuple(keys), times, ranges=form.ranges)


def number_tuples(form: Form, namer: Namer) -> tuple[Form, str]:
    """Replace the key columns by one number, so that keys of any shape can be put in one column."""
    assert form.keys is not None
    name, rank = namer.fresh(), namer.fresh()
    times = namer.fresh()
    copies = column(form.times, name) if form.times else _number(1)
    query = select(
        [
            *(column(value, name) for value in form.values),
            *(column(slot.name, name) for slot in form.slots),
            alias(ranked([column(key, name) for key in form.keys]), rank),
            alias(copies, times),
        ],
        [source_of(form.query, name)],
    )
    return Form(query, form.values, form.slots, (rank,), times, ranges=form.ranges), rank


def ranked(keys: Sequence[Any]) -> Any:
    """Return the number of each row's tuple: rows with equal keys get the same."""
    if not keys:
        return _number(1)
    order = exp.Order(expressions=[exp.Ordered(this=key) for key in keys])
    return exp.Window(this=exp.DenseRank(), order=order)


def align(forms: Sequence[Form], schema: Schema, namer: Namer) -> tuple[list[Any], list[Slot]]:
    """Return the forms' rows with equal owner columns in equal order, NULL where one has none.

    The columns are: the values (named as in the first form), the slots, the keys if all forms
    have a single one, and the multiplicity if all have one.
    """
    need: dict[str, int] = {}
    for form in forms:
        for entity in dict.fromkeys(slot.entity for slot in form.slots):
            mine = sum(slot.entity == entity for slot in form.slots)
            need[entity] = max(need.get(entity, 0), mine)
    slots = [Slot(entity, namer.fresh()) for entity, most in need.items() for _ in range(most)]
    aligned = []
    for form in forms:
        name = namer.fresh()
        there = {e: [s.name for s in form.slots if s.entity == e] for e in need}
        owners = []
        for slot in slots:
            left = there[slot.entity]
            value = (
                column(left.pop(0), name)
                if left
                else exp.cast(exp.null(), owner_type(schema, slot.entity))
            )
            owners.append(alias(value, slot.name))
        values = [
            alias(column(mine, name), shared)
            for mine, shared in zip(form.values, forms[0].values, strict=True)
        ]
        aligned.append((values, owners, source_of(form.query, name), name))
    return aligned, slots


def union(forms: Sequence[Form], schema: Schema, namer: Namer, *, distinct: bool) -> Form:
    """Return all rows of the forms: with their copies, or each once (UNION)."""
    if not distinct and any(form.keys is not None for form in forms):
        return _keyed_union_all(forms, schema, namer)
    aligned, slots = align(forms, schema, namer)
    sides = [select([*values, *owners], [source]) for values, owners, source, _ in aligned]
    query = sides[0]
    for side in sides[1:]:
        query = exp.Union(this=query, expression=side, distinct=distinct)
    values = forms[0].values
    keys = values if distinct else None
    known = () if distinct or len(slots) != 1 else common_terms(forms)
    return Form(query, values, tuple(slots), keys, ranges=_common_ranges(forms), whose=known)


def common_terms(forms: Sequence[Form]) -> tuple[Whose, ...]:
    """Return the terms that say on every side whose a row is, in the names of the first."""
    found = []
    for form in forms:
        if len(form.whose) != 1:
            return ()
        places = {value: place for place, value in enumerate(form.values)}
        found.append(
            {
                (tuple(places[name] for name in names), way)
                for names, way in form.whose[0]
                if all(name in places for name in names)
            }
        )
    shared = set.intersection(*found)
    first = forms[0].values
    return (frozenset((tuple(first[p] for p in places), way) for places, way in shared),)


def _common_ranges(forms: Sequence[Form]) -> dict[str, Range]:
    """Return, for each value of a union, the range that holds it on every side."""
    found = {}
    for place, value in enumerate(forms[0].values):
        shared = forms[0].range(value)
        for form in forms[1:]:
            shared = shared | form.range(form.values[place])
        found[value] = shared
    return found


def _keyed_union_all(forms: Sequence[Form], schema: Schema, namer: Namer) -> Form:
    """Keep tuples of the sides apart: the key is the side's number and the tuple's number in it."""
    numbered = [number_tuples(identify(f, f.values, namer), namer)[0] for f in forms]
    aligned, slots = align(numbered, schema, namer)
    side_key, tuple_key, times = namer.fresh(), namer.fresh(), namer.fresh()
    query: Any = None
    for place, (form, (values, owners, source, name)) in enumerate(
        zip(numbered, aligned, strict=True)
    ):
        assert form.keys is not None
        assert form.times is not None
        side = select(
            [
                *(*values, *owners, alias(_number(place), side_key)),
                alias(column(form.keys[0], name), tuple_key),
                alias(column(form.times, name), times),
            ],
            [source],
        )
        query = side if query is None else exp.Union(this=query, expression=side, distinct=False)
    keys = (side_key, tuple_key)
    ranges = _common_ranges(forms)
    return Form(query, forms[0].values, tuple(slots), keys, times, ranges=ranges)


def intersect(left: Form, right: Form, namer: Namer) -> Form:
    """Return the rows that are in both, each once: there when some way of each side is."""
    first, second = namer.fresh(), namer.fresh()
    same = [
        exp.NullSafeEQ(this=column(a, first), expression=column(b, second))
        for a, b in zip(left.values, right.values, strict=True)
    ]
    slots, owners = [], []
    for form, name in ((left, first), (right, second)):
        for slot in form.slots:
            slots.append(Slot(slot.entity, namer.fresh()))
            owners.append(alias(column(slot.name, name), slots[-1].name))
    query = select(
        [*(column(value, first) for value in left.values), *owners],
        [source_of(left.query, first), source_of(right.query, second)],
        same,
        distinct=True,
    )
    return Form(query, left.values, tuple(slots), left.values, ranges=left.ranges)


def _number(value: int) -> Any:
    return exp.Literal.number(value)
