"""From a checked statement to forms: every sub-select with the participants that its rows need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from tulle.core.errors import QueryError
from tulle.sql.compile.derivations import (
    Form,
    Namer,
    Slot,
    alias,
    column,
    common_terms,
    identify,
    intersect,
    select,
    source_of,
    union,
)
from tulle.sql.compile.inside import ELSEWHERE, Inside, SameValue, as_written, is_inside, short
from tulle.sql.compile.names import Named
from tulle.sql.compile.owned_rows import Gone, identifier, owned_rows, values_of
from tulle.sql.compile.whose import Equal, Whose, merged, renamed, says_whose, whose
from tulle.sql.expressions.conversions import WRITTEN, Written
from tulle.sql.expressions.kinds import named_type
from tulle.sql.question.check import conjuncts, is_semi_join, refuse
from tulle.sql.schema.ranges import range_of
from tulle.sql.schema.schema import HERE, INTEGER, Schema

Views = Mapping[str, tuple[Any, Any]]
"""What WITH has named so far: each body, with the names that it sees itself."""

_NESTED = "a sub-select in a condition is looked up among the rows of one person, or public ones"


@dataclass
class Block:
    """Sources and conditions of one SELECT, before anything is chosen from them."""

    items: list[tuple[str, Form]] = field(default_factory=list)
    """What every tuple is made of."""

    witnesses: list[tuple[str, Form]] = field(default_factory=list)
    """What only has to exist: rows of EXISTS and IN. They give ways, not tuples."""

    conditions: list[Any] = field(default_factory=list)

    optional: list[tuple[str, Form, list[Any]]] = field(default_factory=list)
    """What LEFT JOIN adds, where it is of the same person as the rest or public, and its ON."""

    outer: Block | None = None
    """For a sub-select in a condition: the SELECT whose rows it is worked out for."""

    strict: bool = False
    """Whether EXISTS and IN must be about the same person as the rest: there are no witnesses."""

    @property
    def keyed(self) -> bool:
        """Whether a tuple can come about in several ways."""
        return bool(self.witnesses) or any(form.keys is not None for _, form in self.items)

    @property
    def sources(self) -> list[tuple[str, Form]]:
        """What every row, and every way to get it, needs."""
        return [*self.items, *self.witnesses]

    def settled(self) -> set[str]:
        """Return the sources of which nobody has more than one row.

        A public table is one of them where conditions compare its key with what the others say.
        """
        found = {name for name, form in self.items if form.once}
        compared = [c for c in self.conditions if isinstance(c, exp.EQ)]
        while True:
            told = {place for condition in compared for place in _told(condition, found)}
            new = {
                name
                for name, form in self.items
                if form.unique and {(name, value) for value in form.unique} <= told
            }
            if new <= found:
                return found
            found |= new

    def settles(self, expressions: Iterable[Any]) -> bool:
        """Say whether expressions have one value each for all rows of a person.

        They are made of what says whose a row is, and of rows of which a person has one.
        """
        settled = self.settled()
        own = {
            (name, value)
            for name, form in self.items
            for terms in form.whose
            for values, way in terms
            if not way
            for value in values
        }
        return all(
            found.table in settled or (found.table, found.name) in own
            for expression in expressions
            for found in expression.find_all(exp.Column)
        )

    def has_one_row_each(self) -> bool:
        """Say whether nobody has more than one row, where all that has owners is about one person.

        Whoever has at most one row of each source has at most one combination of them.
        """
        optional = all(form.once for _, form, _ in self.optional)
        return optional and self.settled() == {name for name, _ in self.sources}

    def finds_one_row(self) -> bool:
        """Say whether a public row is looked up by its key, so that there are never two."""
        if len(self.sources) != 1 or self.optional:
            return False
        ((name, form),) = self.items
        known = {other for block in self.around() for other, _ in block.sources}
        known |= {other for block in self.around() for other, *_ in block.optional}
        compared = [c for c in self.conditions if isinstance(c, exp.EQ)]
        told = {place for condition in compared for place in _told(condition, known)}
        return bool(form.unique) and {(name, value) for value in form.unique} <= told

    def around(self) -> Iterator[Block]:
        """Yield the SELECTs that this one is inside of."""
        place = self.outer
        while place is not None:
            yield place
            place = place.outer

    def equal(self) -> Equal:
        """Return which columns are equal in every row, seen from here."""
        return Equal([c for block in (self, *self.around()) for c in block.conditions])

    def matched(self) -> Iterator[Any]:
        """Yield for columns that LEFT JOIN added, where they are not NULL, what each is equal to.

        One for each column: two columns that are equal to it in a match need not be in a row
        without one.
        """
        for name, _, on in self.optional:
            seen: set[str] = set()
            for condition in on:
                if isinstance(condition, exp.EQ):
                    sides = [condition.this.unnest(), condition.expression.unnest()]
                    mine = [one for one in sides if getattr(one, "table", "") == name]
                    if len(mine) == 1 and mine[0].name not in seen:
                        seen.add(mine[0].name)
                        yield condition


class Rewriter:
    """Turns parts of one statement, in which every source has a name of its own, into forms."""

    def __init__(self, schema: Schema, named: Named, gone: Gone = None) -> None:
        self.schema = schema
        self.named = named
        self.gone = gone
        self.namer = Namer()
        self.per_person = False
        """Whether some part was kept to the rows of one person, whatever the statement compares."""

    def _keep_to_person(self) -> None:
        """Note that a part sees all rows of a person, which nothing may where periods count."""
        period = self.schema.period
        if period is not None:
            raise QueryError(
                "Groups, windows, LEFT JOIN, NOT EXISTS and the like inside one person's rows see "
                f"all of that person's records, of whichever {period}: this is not supported where "
                f"one {period} is protected. Ask with unit='participant'."
            )
        self.per_person = True

    def rows(self, tree: Any, views: Views, *, one: bool = False) -> Form:
        """Return the form of anything that gives rows; with ``one``, with one slot if possible."""
        views = self.views(tree, views)
        if isinstance(tree, exp.Subquery):
            return self.rows(tree.this, views, one=one)
        if isinstance(tree, exp.SetOperation):
            distinct = bool(tree.args.get("distinct"))
            per_person = not isinstance(tree, exp.Union) and not (
                isinstance(tree, exp.Intersect) and distinct
            )
            sides = [
                self.rows(side, views, one=one or per_person)
                for side in (tree.this, tree.expression)
            ]
            self._check_widths(sides)
            if (
                isinstance(tree, exp.Union)
                and not distinct
                and all(side.keys is None for side in sides)
            ):
                return union(sides, self.schema, self.namer, distinct=False)
            # Which of two equal rows stays must not be the engine's choice: before, for what it
            # takes for equal; and after, for what becomes equal when the sides are of two kinds.
            sides = [self.named_alike(side) for side in sides]
            if isinstance(tree, exp.Union) and not distinct:
                return union(sides, self.schema, self.namer, distinct=False)
            if isinstance(tree, exp.Union):
                made = self.named_alike(union(sides, self.schema, self.namer, distinct=True))
                return self._owned_union(made, sides)
            if not per_person:
                return intersect(sides[0], sides[1], self.namer)
            return self.named_alike(self._per_person(tree, sides[0], sides[1]))
        if not isinstance(tree, exp.Select):
            raise QueryError(
                f"{tree.key.upper()} is not supported: rows come from SELECT and UNION."
            )
        if is_inside(tree):
            self._keep_to_person()
            return Inside(self, tree, self.block(tree, views, strict=True)).form()
        block = self.block(tree, views)
        # What is selected must follow from the tuple, in whichever way it came about.
        here = replace(block, witnesses=[])
        wanted = [
            (self.looked_up(e.unalias(), views, here), e.alias_or_name) for e in tree.expressions
        ]
        distinct = tree.args.get("distinct") is not None
        if distinct:
            wanted = [(SameValue(this=e), name) for e, name in wanted]
        form = self.project(block, wanted, distinct=distinct)
        if one and form.single_owner and len(form.slots) > 1:
            self._keep_to_person()
            return self.project(block, wanted, distinct=False, single_owner=True)
        return self.exactly_whose(form, block, wanted) if distinct else form

    def exactly_whose(self, form: Form, block: Block, wanted: Sequence[tuple[Any, str]]) -> Form:
        """Return distinct rows as tuples of their own where one of their columns is the owner."""
        if block.keyed or len(form.slots) != 1:
            return form
        terms = self.project(block, wanted, distinct=False).whose
        if not self._tells_owner(terms):
            return form
        once = block.settles(expression for expression, _ in wanted)
        return replace(form, keys=None, whose=terms, single_owner=True, once=once)

    def _owned_union(self, made: Form, sides: Sequence[Form]) -> Form:
        """Return a UNION as rows of their own where one column is the owner on both sides."""
        if len(made.slots) != 1 or any(s.keys is not None or len(s.slots) != 1 for s in sides):
            return made
        terms = common_terms(sides)
        return (
            replace(made, keys=None, whose=terms, single_owner=True)
            if self._tells_owner(terms)
            else made
        )

    def _tells_owner(self, terms: tuple[Whose, ...]) -> bool:
        """Say whether rows that are equal have one owner: some of their columns are the owner.

        Under a period they may be of several of one person's periods.
        """
        return self.schema.period is None and any(not way for found in terms for _, way in found)

    def views(self, tree: Any, views: Views) -> Views:
        """Return the views with those that this tree's WITH adds."""
        with_clause = tree.args.get("with_")
        if with_clause is None:
            return views
        known = dict(views)
        for cte in with_clause.expressions:
            # A body sees the names before it, not its own: WITH t AS (SELECT ... FROM t) is fine.
            known[cte.alias] = (cte.this, dict(known))
        return known

    def block(
        self, tree: exp.Select, views: Views, *, strict: bool = False, outer: Block | None = None
    ) -> Block:
        """Return the sources and conditions of a SELECT, with EXISTS and IN as witnesses."""
        block = Block(outer=outer, strict=strict)
        self._gather(tree, views, block, block.items)
        return block

    def _gather(
        self, tree: exp.Select, views: Views, block: Block, place: list[tuple[str, Form]]
    ) -> None:
        start = tree.args.get("from_")
        if start is not None:
            form = self._source(start.this, views, one=block.strict)
            place.append((start.this.alias_or_name, form))
        added = []
        for join in tree.args.get("joins") or []:
            left = str(join.args.get("side") or "").upper() == "LEFT"
            name = join.this.alias_or_name
            form = self._source(join.this, views, one=left or block.strict)
            on = list(conjuncts(join.args.get("on")))
            if not left:
                place.append((name, form))
                block.conditions.extend(on)
                continue
            if place is block.witnesses:
                refuse("LEFT JOIN in EXISTS or IN", "put it into a sub-select in FROM")
            added.append((name, form, on))
        where = tree.args.get("where")
        nested: list[Any] = []
        for condition in conjuncts(where.this if where else None):
            (nested if condition.find(exp.Query) else block.conditions).append(condition)
        for one in added:
            block.optional.append(self._optional(block, *one))
        for condition in nested:
            if is_semi_join(condition) and not block.strict:
                self._semi_join(condition, views, block)
            else:
                block.conditions.append(self.looked_up(condition, views, block))

    def _source(self, source: Any, views: Views, *, one: bool) -> Form:
        if isinstance(source, exp.Subquery):
            return self.rows(source, views, one=one)
        if source.name in views:
            body, seen = views[source.name]
            return self.rows(body.copy(), seen, one=one)
        return self.table(source)

    def _semi_join(self, condition: Any, views: Views, block: Block) -> None:
        """Add EXISTS (...) or ... IN (...) that has to hold.

        Most are about the same person as the row, and then they need nobody else. Others are
        witnesses: further people, whom the row needs.
        """
        inner, per_person = _body(condition), self.per_person
        try:
            block.conditions.append(self.looked_up(condition, views, block))
        except QueryError:
            inside = isinstance(inner, exp.Select) and (is_inside(inner) or _has_left_join(inner))
            if inside and _looks_outside(inner):
                raise
            self.per_person = per_person
            self._witness(condition, inner, views, block)

    def _witness(self, condition: Any, inner: Any, views: Views, block: Block) -> None:
        """Add EXISTS (...) or ... IN (...): its rows are ways in which the outer tuple is there."""
        plain = isinstance(inner, exp.Select) and not (is_inside(inner) or _has_left_join(inner))
        if plain:
            views = self.views(inner, views)
            self._gather(inner, views, block, block.witnesses)
            found = inner.expressions[0].unalias()
            width = len(inner.expressions)
        else:
            form = self.rows(inner, views)
            name = self.namer.fresh()
            block.witnesses.append((name, form))
            found, width = column(form.values[0], name), len(form.values)
        if isinstance(condition, exp.In):
            if width != 1:
                raise QueryError("IN (SELECT ...) must select one column.")
            if found.find(exp.Query):
                refuse("A sub-select that another one selects after IN", ELSEWHERE)
            block.conditions.append(exp.EQ(this=condition.this, expression=found))

    # What is looked up among the rows of the same person

    def _optional(
        self, block: Block, name: str, form: Form, on: list[Any]
    ) -> tuple[str, Form, list[Any]]:
        """Return what a LEFT JOIN adds, joined with rows of the same person only."""
        self._keep_to_person()
        for condition in on:
            if condition.find(exp.Query):
                refuse("A sub-select in ON of a LEFT JOIN", "join a sub-select instead")
        equal = block.equal()
        equal.add(block.matched())
        equal.add(on)
        same = self._same_owners(block, [(name, form)], equal, within=True)
        if same is None:
            refuse(
                f"LEFT JOIN {self._called(name)}",
                "a row without a match would appear when somebody else leaves. Compare the owners "
                "of both sides in ON, or join a public table; for groups without rows JOIN is "
                "enough, because all of groups= are in the answer",
            )
        return name, form, [*on, *same]

    def _what_would_do(self, inner: Block) -> str:
        shared = [name for name, form in inner.items if len(form.slots) > 1]
        if shared:
            return (
                f"A row of {self._called(shared[0])} belongs to several people and goes with any "
                "of them: join it, or use EXISTS or IN in WHERE, joined by AND"
            )
        return (
            "Compare the owners inside, as in WHERE o.customer = c.id, or join. A number about "
            "everybody is a question of its own: ask for it first, and write it in"
        )

    def _called(self, name: str) -> str:
        for source in self.named.tree.find_all(exp.Table):
            if source.alias_or_name == name:
                return str(source.name)
        return "(SELECT ...)"

    def _same_owners(
        self, block: Block, sources: Sequence[tuple[str, Form]], equal: Equal, *, within: bool
    ) -> list[Any] | None:
        """Return conditions that owners of sources are owners of the rows around them.

        None where the statement does not say so; then the sources are about other people too.
        """
        around = [*([block] if within else []), *block.around()]
        known = [
            (slot, name, equal.terms(name, terms))
            for one in around
            for name, form in one.sources
            if form.keys is None and len(form.whose) == len(form.slots)
            for slot, terms in zip(form.slots, form.whose, strict=True)
        ]
        conditions = []
        for name, form in sources:
            if form.slots and (form.keys is not None or len(form.whose) != len(form.slots)):
                return None
            for slot, terms in zip(form.slots, form.whose, strict=False):
                mine = equal.terms(name, terms)
                found = next(
                    (
                        column(theirs.name, other)
                        for theirs, other, there in known
                        if theirs.entity == slot.entity and there & mine
                    ),
                    None,
                )
                if found is None:
                    return None
                conditions.append(exp.EQ(this=column(slot.name, name), expression=found))
        return conditions

    def looked_up(self, expression: Any, views: Views, block: Block) -> Any:
        """Return an expression whose sub-selects look at rows of the same person, or public ones.

        Raises:
            QueryError: when one looks at rows of others.
        """
        if not expression.find(exp.Query):
            return expression
        if isinstance(expression, exp.Exists):
            return exp.Exists(this=self._nested(expression, expression.this, views, block))
        if isinstance(expression, exp.In) and expression.args.get("query") is not None:
            this = self.looked_up(expression.this, views, block)
            query = self._nested(expression, expression.args["query"], views, block)
            return exp.In(this=this, query=exp.Subquery(this=query))
        if isinstance(expression, exp.Subquery | exp.Select):
            return exp.Subquery(this=self._nested(expression, expression, views, block))
        if isinstance(expression, exp.Any | exp.All | exp.SetOperation):
            refuse(short(expression), "write EXISTS or NOT EXISTS (SELECT ... WHERE ...)")
        made = expression.copy()
        made.meta[WRITTEN] = Written(expression)
        for name, part in expression.args.items():
            if isinstance(part, exp.Expression):
                made.set(name, self.looked_up(part, views, block))
            elif isinstance(part, list):
                made.set(
                    name,
                    [
                        self.looked_up(p, views, block) if isinstance(p, exp.Expression) else p
                        for p in part
                    ],
                )
        return made

    def _nested(self, whole: Any, body: Any, views: Views, block: Block) -> Any:
        """Return the SELECT of a sub-select in a condition, kept to the rows of one person."""
        self._keep_to_person()
        body = body.unnest() if isinstance(body, exp.Subquery) else body
        views = self.views(body, views)
        scalar = not isinstance(whole, exp.Exists | exp.In)
        if isinstance(body, exp.Select) and (scalar or not is_inside(body)):
            inner = self.block(body, views, strict=True, outer=block)
            found = [e.unalias() for e in body.expressions]
        else:
            form, name = self.rows(body, views, one=True), self.namer.fresh()
            inner = Block([(name, form)], outer=block, strict=True)
            found = [column(value, name) for value in form.values]
        equal = inner.equal()
        for outside in inner.around():
            equal.add(outside.matched())
        if isinstance(whole, exp.In):
            if len(found) != 1:
                raise QueryError("IN (SELECT ...) must select one column.")
            added = {name for outside in inner.around() for name, *_ in outside.optional}
            if getattr(whole.this, "table", "") not in added:
                # NULL is in no set, but neither is it outside of one: it would matter whose.
                equal.add([exp.EQ(this=whole.this, expression=found[0])])
        same = self._same_owners(inner, inner.items, equal, within=False)
        if same is None or inner.keyed:
            refuse(short(whole), f"{_NESTED}. {self._what_would_do(inner)}")
        inner.conditions.extend(same)
        if scalar:
            return Inside(self, body, inner).value()
        if isinstance(whole, exp.Exists):
            found = [exp.Literal.number(1)]
        else:
            found = [self.looked_up(found[0], views, inner)]
        return self.selected(inner, [alias(found[0], self.namer.fresh())])

    def _per_person(self, tree: Any, left: Form, right: Form) -> Form:
        """Return EXCEPT, EXCEPT ALL or INTERSECT ALL of rows that say whose they are."""
        self._keep_to_person()
        word = tree.key.upper() + ("" if tree.args.get("distinct") else " ALL")
        forms = [left, right]
        slots = [form.slots for form in forms]
        both = union(forms, self.schema, self.namer, distinct=False)
        ready = all(form.keys is None and len(form.slots) <= 1 for form in forms)
        if not ready or len(slots[0]) != len(slots[1]) or len(both.slots) != len(slots[0]):
            refuse(word, "its sides must be about the same one person, row by row, or both public")
        if both.slots and not (both.whose and says_whose(both.whose, both.values)):
            refuse(
                word,
                "rows would appear when somebody else leaves. Select the owner's column at the "
                "same place on both sides",
            )
        made = type(tree)(
            this=both.query.this, expression=both.query.expression, distinct=tree.args["distinct"]
        )
        return replace(both, query=made, single_owner=True, once=left.once, ranges=left.ranges)

    def _identified(self, name: str, form: Form) -> Form:
        """Return the rows of a source with a key, so that equal ones are one tuple, counted."""
        if form.keys is not None:
            return form
        used = set(self.named.used(name))
        kept = replace(form, values=tuple(value for value in form.values if value in used))
        return identify(self.named_alike(kept), kept.values, self.namer)

    def named_alike(self, form: Form) -> Form:
        """Return a form with every value made the same wherever it is equal."""
        name = self.namer.fresh()
        added = {*(form.keys or ()), *([form.times] if form.times else [])} - {*form.values}
        chosen = [
            *(alias(SameValue(this=column(value, name)), value) for value in form.values),
            *(column(slot.name, name) for slot in form.slots),
            *(column(one, name) for one in sorted(added)),
        ]
        return replace(form, query=select(chosen, [source_of(form.query, name)]))

    def table(self, source: exp.Table) -> Form:
        """Return the rows of a table with their owners; rows without an owner are left out."""
        table = self.named.table(source)
        name = source.alias_or_name
        values = self.named.used(name)
        sources, conditions = owned_rows(self.schema, table, self.gone)
        slots, owners, origins = [], [], []
        ties = self.schema.ownership(table).ties
        for tie in ties:
            slots.append(Slot(tie.entity, self.namer.fresh()))
            owners.append(alias(identifier(self.schema, tie), slots[-1].name))
            copied = tie.place == HERE and self.schema.entity_class(tie.entity) == INTEGER
            origins.append((name, self.named.normal(tie.columns[0])) if copied else None)
        ranges = self.named.ranges(table)
        query = select([*values_of(values, ranges), *owners], sources, conditions)
        known = tuple(whose(self.schema, table, tie, self.named.normal) for tie in ties)
        key = self.schema.keys.get(table, ())
        alone = len(ties) == 1 and ties[0].place == HERE
        return Form(
            query,
            tuple(values),
            tuple(slots),
            origins=tuple(origins),
            ranges={**self.named.truths(table), **ranges},
            whose=known,
            once=alone and bool(key) and set(key) <= set(ties[0].columns),
            unique=() if ties or set(key) & set(ranges) else tuple(map(self.named.normal, key)),
        )

    def selected(
        self,
        block: Block,
        chosen: Sequence[Any],
        conditions: Sequence[Any] = (),
        *,
        distinct: bool = False,
    ) -> Any:
        """Return a SELECT of a block's rows."""
        query = select(
            chosen,
            [source_of(form.query, name) for name, form in block.sources],
            [*block.conditions, *conditions],
            distinct=distinct,
        )
        for name, form, on in block.optional:
            source = source_of(form.query, name)
            query = query.join(source, on=exp.and_(*on), join_type="left", copy=False)
        return query

    def project(
        self,
        block: Block,
        wanted: Sequence[tuple[Any, str]],
        *,
        distinct: bool,
        conditions: Sequence[Any] = (),
        single_owner: bool = False,
    ) -> Form:
        """Return the wanted expressions of a block's tuples, with their owners.

        With ``single_owner``, all owners of a tuple have to be one, who is the only slot.

        Raises:
            QueryError: when they are not, as far as the statement says.
        """
        items = block.items
        optional = block.optional
        if block.keyed and not distinct:
            items = [(n, self._identified(n, f)) for n, f in items]
            optional = [(n, self._identified(n, f), on) for n, f, on in optional]
        everything = [*items, *block.witnesses]
        kept = _Repetitions(block.conditions, [f.origins for _, f in everything])
        slots, owners = [], []
        people, fresh = [], []
        equal = block.equal()
        for (name, form), (_, before) in zip(everything, block.sources, strict=True):
            origins = form.origins or (None,) * len(form.slots)
            known = before.whose if len(before.whose) == len(form.slots) else ()
            for place, (slot, origin) in enumerate(zip(form.slots, origins, strict=True)):
                terms = known[place] if known and before.keys is None else frozenset()
                people.append((slot.entity, equal.terms(name, terms)))
                fresh.append(kept.is_new(slot.entity, origin))
                if fresh[-1]:
                    slots.append(Slot(slot.entity, self.namer.fresh()))
                    owners.append(alias(column(slot.name, name), slots[-1].name))
        same = merged(people)
        one = len({number for number, _ in same}) <= 1
        if single_owner and not one:
            refuse(
                "A sub-select with GROUP BY, an aggregate or a window over rows of several people",
                "it may be about one person's rows only: join tables on their owners, or on the "
                "keys that lead to them",
            )
        if single_owner and len(slots) > 1:
            first, *others = (owner.this for owner in owners)
            conditions = [
                *conditions,
                *(exp.EQ(this=first.copy(), expression=other.copy()) for other in others),
            ]
            slots, owners, fresh = slots[:1], owners[:1], [True] + [False] * (len(fresh) - 1)
        values = tuple(name for _, name in wanted)
        keys: list[str] = []
        chosen = [*(alias(e, name) for e, name in wanted), *owners]
        times = None
        if block.keyed and not distinct:
            parts = [*items, *((name, form) for name, form, _ in optional)]
            for name, form in parts:
                for key in form.keys or ():
                    keys.append(self.namer.fresh())
                    chosen.append(alias(column(key, name), keys[-1]))
            copies = [column(form.times, name) for name, form in items if form.times]
            # A row without a match is there once.
            copies += [
                exp.Coalesce(this=column(form.times, name), expressions=[exp.Literal.number(1)])
                for name, form, _ in optional
                if form.times
            ]
            if copies:
                times = self.namer.fresh()
                # As doubles: a product of many counts may not fit a whole number.
                copies = [exp.cast(copy, named_type("DOUBLE")) for copy in copies]
                product = copies[0]
                for factor in copies[1:]:
                    product = exp.Mul(this=product, expression=factor)
                chosen.append(alias(product, times))
        query = self.selected(
            replace(block, items=items, optional=optional), chosen, conditions, distinct=distinct
        )
        parts = [*everything, *((name, form) for name, form, _ in optional)]
        ends = {(name, value): r for name, form in parts for value, r in form.ranges.items()}
        ranges = {name: range_of(as_written(expression), ends) for expression, name in wanted}
        if distinct:
            return Form(query, values, tuple(slots), values, ranges=ranges)
        if block.keyed:
            return Form(query, values, tuple(slots), tuple(keys), times, ranges=ranges)
        # What LEFT JOIN added is NULL in some rows, and says nothing about those.
        there = {name for name, _ in block.sources}
        names: dict[tuple[str, str], list[str]] = {}
        for expression, name in wanted:
            copied = _copied(expression)
            if copied is not None and copied.table in there:
                names.setdefault(equal.root((copied.table, copied.name)), []).append(name)
        told = [renamed(found, names) for (_, found), new in zip(same, fresh, strict=True) if new]
        # Terms say whose a row is, and not of when: under a period a person is several owners.
        one &= len(slots) == 1 or (bool(slots) and self.schema.period is None)
        return Form(
            query,
            values,
            tuple(slots),
            ranges=ranges,
            whose=tuple(told),
            single_owner=one,
            once=one and block.has_one_row_each(),
        )

    def _check_widths(self, sides: Sequence[Form]) -> None:
        if len({len(side.values) for side in sides}) != 1:
            widths = " and ".join(str(len(side.values)) for side in sides)
            raise QueryError(f"The sides of a UNION or INTERSECT have {widths} columns.")


def _told(equality: Any, known: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns that an equality says, from what is known of some sources."""
    sides = [equality.this.unnest(), equality.expression.unnest()]
    for mine, other in (sides, sides[::-1]):
        sources = {found.table for found in other.find_all(exp.Column)}
        if isinstance(mine, exp.Column) and sources <= known and not other.find(exp.Query):
            yield mine.table, mine.name


def _body(condition: Any) -> Any:
    inner = condition.args["query"] if isinstance(condition, exp.In) else condition.this
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    return inner


def _looks_outside(tree: Any) -> bool:
    inside = {source.alias_or_name for source in tree.find_all(exp.Table, exp.Subquery)}
    return any(found.table and found.table not in inside for found in tree.find_all(exp.Column))


def _has_left_join(tree: Any) -> bool:
    return any(join.args.get("side") for join in tree.args.get("joins") or [])


def _copied(expression: Any) -> Any:
    """Return the column that an expression is a copy of, or None."""
    inner = as_written(expression).unnest()
    return inner if isinstance(inner, exp.Column) else None


class _Repetitions:
    """Knows which owner columns are equal because a condition says so; each is needed once.

    Only conditions between two whole-number owner columns count: equality with anything else (a
    float, a text) can hold for two different owners.
    """

    def __init__(self, conditions: Sequence[Any], origins: Sequence[Sequence[Any]]) -> None:
        known = {origin for listed in origins for origin in listed if origin is not None}
        self._parent: dict[tuple[str, str], tuple[str, str]] = {}
        self._seen: set[tuple[str, tuple[str, str]]] = set()
        for condition in conditions:
            if not isinstance(condition, exp.EQ):
                continue
            left, right = condition.this, condition.expression
            if isinstance(left, exp.Column) and isinstance(right, exp.Column):
                one, other = (left.table, left.name), (right.table, right.name)
                if one in known and other in known:
                    self._parent[self._root(one)] = self._root(other)

    def _root(self, place: tuple[str, str]) -> tuple[str, str]:
        while place in self._parent and self._parent[place] != place:
            place = self._parent[place]
        return place

    def is_new(self, entity: str, origin: tuple[str, str] | None) -> bool:
        if origin is None:
            return True
        found = (entity, self._root(origin))
        if found in self._seen:
            return False
        self._seen.add(found)
        return True
