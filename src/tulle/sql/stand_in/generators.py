"""Made-up rows for the tables that a statement reads, the same ones for the same facts.

Rows fall on people at random, so that of people with four rows on average some have ten and some
none; where the most of anybody is said, shares are log-normal with that tail, and nobody has more.
Rows that link two people of one kind, as friends are, fall on people of heavy-tailed sociability,
mostly near each other. Values of columns are even over what is known of them. Nothing private is
read, numbers are ordinary pseudo-random ones, and nothing here may be used to protect anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from statistics import NormalDist
from typing import Any

import numpy as np
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tulle.core.arrays import Array
from tulle.sql.dialect import DEFAULT
from tulle.sql.schema.owners import Step
from tulle.sql.schema.ranges import moment_of
from tulle.sql.schema.schema import Schema
from tulle.sql.stand_in.assumption import PEOPLE, Assumption, Formula
from tulle.sql.stand_in.mentions import EQUAL, LIKE, ORDERED, YEAR, Mentions, Place

PUBLIC_ROWS = 100
"""How many rows a public table has, where nobody says how many different keys."""

DISTINCT = 10
"""How many different values a column of texts has, where nobody says."""

LARGEST = 100
"""Up to which number values go, where neither a range nor a constant says."""

NEARBY = 3
"""How far on a ring acquaintances live from each other, mostly."""

MOST_ROWS = 60_000
"""More rows than this are not made up, unless there are few people of some kind: errors follow what
few people have, not how many there are. In no case are there ten times as many."""

MANY_ROWS = 240_000
"""The same where errors follow few rows: one that stands for several would be taken for all."""

_ROUNDS = 50
"""So often rows beyond the most of anybody are given to others; each time far fewer are left."""

_DAY = date(2020, 1, 1)
_YEARS = (1900, 2200)

Evaluate = Callable[[str], Any]


@dataclass(frozen=True)
class Type:
    """What a column holds: a word for its kind, and its type in DuckDB."""

    kind: str
    written: str

    @classmethod
    def read(cls, text: str, dialect: str) -> Type:
        """Read the type that a catalogue says; of unknown kinds the values are NULL."""
        try:
            built = exp.DataType.build(text, dialect=dialect)
            written = built.sql(dialect=DEFAULT)
        except (SqlglotError, ValueError):
            return cls("other", "VARCHAR")
        types = exp.DataType.Type
        for kind, members in (
            ("whole", exp.DataType.INTEGER_TYPES),
            ("number", exp.DataType.NUMERIC_TYPES),
            ("text", exp.DataType.TEXT_TYPES),
            ("date", {types.DATE, types.DATE32}),
            ("moment", exp.DataType.TEMPORAL_TYPES),
            ("truth", {types.BOOLEAN}),
        ):
            if built.this in members:
                return cls(kind, "VARCHAR" if kind == "text" else written)
        return cls("other", "VARCHAR")


class MadeUpRows:
    """Makes up the rows of some tables of a schema."""

    def __init__(
        self,
        schema: Schema,
        mentions: Mentions,
        assumption: Assumption,
        evaluate: Evaluate,
        seed: int = 0,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self.schema, self.mentions, self.assumption = schema, mentions, assumption
        self.values = dict(assumption.values)
        self.random = np.random.default_rng(20 + seed)
        self.evaluate = evaluate
        self.composites: dict[str, tuple[str, list[tuple[str, str]]]] = {}
        """Of tables whose rows refer to others by several columns: to which, and by which."""
        self.tables = self._needed()
        self.rates = {table: self._rate(table) for table in self.tables if table in schema.owners}
        people = dict(assumption.people)
        total = sum(people[self._kind(table)] * rate[0] for table, rate in self.rates.items())
        kinds = {tie.entity for table in self.rates for tie in schema.ownership(table).ties}
        fewest = min((people[kind] for kind in kinds), default=PEOPLE)
        enough = max(most_rows / max(total, 1.0), min(1.0, PEOPLE / fewest))
        self.scale = min(1.0, enough, 10 * MOST_ROWS / max(total, 1.0))
        """Which part of the people and rows that are assumed are made up."""
        self.people = {kind: max(round(n * self.scale), 1) for kind, n in people.items()}
        self.sizes = {table: self._size(table) for table in self.tables}
        self.composites = self._composites()
        self.tables = self._needed()
        self.identifiers, self.references = self._ownership()
        self.kinds = {
            (table, column): Type.read(text, schema.dialect).kind
            for table in self.tables
            for column, text in schema.tables[table].items()
        }
        self.classes: dict[Place, int] = {}
        self.labels: dict[Place, list[Any]] = {}
        """Of columns that are compared with others: what their first values are called."""
        self._share()
        self.wanted = self._wanted()
        self.codes: dict[Place, Array] = {}
        self.found: dict[Place, Any] = {}
        """Values that were made up."""
        self.rows_of: dict[tuple[str, str], Array] = {}
        """Which row of another table each row of a table refers to."""

    # How many

    def _needed(self) -> list[str]:
        """Return the tables that are read, and those on the way to owners, targets first."""
        order: dict[str, None] = {}
        begun = set()

        def visit(table: str) -> None:
            if table in begun:
                return
            begun.add(table)
            if table in self.composites:
                visit(self.composites[table][0])
            for owner in self.schema.owners.get(table, ()):
                for step in owner.steps:
                    if step.table != table:
                        visit(step.table)
            for place, held in self.values.items():
                if place.rpartition(".")[0] == table and _is_near(held):
                    other = held[0].rpartition(".")[0]
                    if other != table and other in self.mentions.tables:
                        visit(other)
            order[table] = None

        for table in self.mentions.tables:
            visit(table)
        return list(order)

    def _composites(self) -> dict[str, tuple[str, list[tuple[str, str]]]]:
        """Return which tables are compared with another by several columns at once.

        Each row of the larger one then refers to a row of the other: were the columns drawn one by
        one, hardly any row would find its like.
        """
        pairs: dict[tuple[str, str], dict[str, str]] = {}
        for one, other in self.mentions.alike:
            if one[0] == other[0] or not {one[0], other[0]} <= self.sizes.keys():
                continue
            larger, smaller = sorted((one, other), key=lambda p: (-self.sizes[p[0]], p[0]))
            pairs.setdefault((larger[0], smaller[0]), {}).setdefault(larger[1], smaller[1])
        return {
            larger: (smaller, list(columns.items()))
            for (larger, smaller), columns in pairs.items()
            if len(columns) > 1 and len({*columns.values()}) == len(columns)
        }

    def _kind(self, table: str) -> str:
        """Return the kind of the first owner of a table's rows."""
        return self.schema.ownership(table).ties[0].entity

    def _rate(self, table: str) -> tuple[float, float | None]:
        stated = dict(self.assumption.rows).get(table)
        if stated is not None:
            return stated
        own = [owner.columns for owner in self.schema.owners[table] if not owner.steps]
        if len(self.schema.owners[table]) == 1 and self.schema.keys.get(table) in own:
            return 1.0, None
        return self.assumption.usual

    def _size(self, table: str) -> int:
        if table not in self.rates:
            stated = [
                held if isinstance(held, int) else len(held)
                for name, held in self.values.items()
                if name.rpartition(".")[0] == table and isinstance(held, int | list)
            ]
            return max(stated, default=PUBLIC_ROWS)
        kind = self._kind(table)
        ties = self.schema.ownership(table).ties
        together = sum(tie.entity == kind and tie.place == ties[0].place for tie in ties)
        return max(round(self.people[kind] * self.rates[table][0] / together), 1)

    # Which columns hold the same

    def _ownership(self) -> tuple[dict[Place, str], dict[Place, Place]]:
        """Return which columns identify whom, and which columns refer to which keys."""
        identifiers: dict[Place, str] = {}
        references: dict[Place, Place] = {}
        for table in self.tables:
            for owner in self.schema.owners.get(table, ()):
                end = owner.steps[-1].table if owner.steps else table
                for column in owner.columns:
                    assert owner.entity is not None
                    identifiers[end, column] = owner.entity
                here = table
                for step in owner.steps:
                    for column, key in zip(step.columns, step.key or (), strict=True):
                        references[here, column] = (step.table, key)
                    here = step.table
        return identifiers, references

    def _wanted(self) -> set[Place]:
        """Return the columns that something depends on; all others are NULL."""
        found = {*self.mentions.used, *self.schema.times.items()}
        waiting = list(found)
        while waiting:
            # A formula may be made of columns that have formulas themselves.
            table, column = waiting.pop()
            held = self.values.get(f"{table}.{column}")
            if isinstance(held, Formula):
                new = {(table, other) for other in held.columns} - found
                found |= new
                waiting += new
        near = [held[0].rpartition(".") for held in self.values.values() if _is_near(held)]
        return found | {(table, column) for table, _, column in near}

    def _share(self) -> None:
        """Work out for columns that are compared with others how many values they share."""
        leader: dict[Place, Place] = {}

        def find(place: Place) -> Place:
            while leader.setdefault(place, place) != place:
                place = leader[place]
            return place

        pairs = [*self.mentions.alike, *self.references.items()]
        for one, other in pairs:
            leader[find(one)] = find(other)
        members: dict[Place, list[Place]] = {}
        for place in list(leader):
            members.setdefault(find(place), []).append(place)
        for group in members.values():
            count = self._shared(group)
            labels = self._named(group, count)
            for place in group:
                self.classes[place], self.labels[place] = count, labels

    def _named(self, group: list[Place], count: int) -> list[Any]:
        """Return the values of columns that are stated, listed, or compared with."""
        found: dict[Any, None] = {}
        for place in group:
            kind = self.kinds.get(place, "other")
            stated = self.values.get(".".join(place))
            others = [
                *self.mentions.listed.get(place, ()),
                *(value for how, value in self._constants(place, kind) if how == EQUAL),
            ]
            if kind == "whole":
                # Codes are whole numbers: those up to the count are there already.
                others = [one for one in others if one not in range(1, count + 1)]
            every = [*(stated if isinstance(stated, list) else ()), *others]
            read = (_as_kind(one, kind) for one in every)
            found |= dict.fromkeys(one for one in read if one is not None)
        return list(found)

    def _shared(self, group: list[Place]) -> int:
        for place in group:
            if place in self.identifiers:
                return self.people[self.identifiers[place]]
        for place in group:
            if place in self.references.values():
                return self.sizes[place[0]]
        public = [self.sizes[table] for table, _ in group if table not in self.rates]
        if public:
            return min(public)
        stated = [self.values.get(".".join(place)) for place in group]
        known = [one for one in stated if isinstance(one, int)]
        return known[0] if known else max(min(self.sizes[table] for table, _ in group) // 4, 1)

    # Rows

    def table(self, table: str) -> dict[str, Any]:
        """Return the columns of a table's rows; None stands for NULL in all rows."""
        size = self.sizes[table]
        kinds = {column: self.kinds[table, column] for column in self.schema.tables[table]}
        self._link(table, size)
        for column in kinds:
            self._fill((table, column), kinds, size)
        return {column: self.found[table, column] for column in kinds}

    def _fill(self, place: Place, kinds: dict[str, str], size: int) -> Any:
        column = place[1]
        if place in self.found:
            return self.found[place]
        kind, stated = kinds[column], self.values.get(".".join(place))
        wanted = place in self.wanted
        self.found[place] = None
        shared = place in self.classes and not isinstance(stated, Formula)
        if shared and place not in self.codes and wanted:
            self.codes[place] = self._shared_codes(place, size)
        if place in self.codes:
            self.found[place] = _encode(self.codes[place], kind, self.labels.get(place, []))
        elif wanted and not isinstance(stated, Formula):
            near = self._near(place, stated, kinds, size) if _is_near(stated) else None
            if near is None:
                near = self._values(place, kind, None if _is_near(stated) else stated, size)
            self.found[place] = near
        return self.found[place]

    def _near(self, place: Place, stated: Any, kinds: dict[str, str], size: int) -> Any:
        """Return values that lie near those of another column, if a row leads to it."""
        table, _, column = stated[0].rpartition(".")
        if table == place[0]:
            values = self._fill((table, column), kinds, size)
        else:
            rows = self._rows_of(place[0], table)
            values = self.found.get((table, column))
            values = None if rows is None or values is None else np.asarray(values)[rows]
        if values is None:
            return None
        moved = np.floor(stated[1] + self.random.random(size) * (stated[2] - stated[1] + 1))
        if kinds[place[1]] in ("date", "moment"):
            return np.asarray(values) + moved.astype(np.int64).astype("timedelta64[D]")
        return np.asarray(values) + moved

    def _rows_of(self, table: str, other: str) -> Array | None:
        """Return which row of another table each row refers to, by a path or by equal keys."""
        if (table, other) in self.rows_of:
            return self.rows_of[table, other]
        for one, two in (*self.mentions.alike, *(p[::-1] for p in self.mentions.alike)):
            if one[0] == table and two[0] == other and one in self.codes and two in self.codes:
                places = np.full(int(max(self.codes[one].max(), self.codes[two].max())) + 1, -1)
                places[self.codes[two]] = np.arange(len(self.codes[two]))
                rows = places[self.codes[one]]
                return rows if bool((rows >= 0).all()) else None
        return None

    def _link(self, table: str, size: int) -> None:
        """Lay down who owns each row, and to which rows of other tables it refers."""
        kinds: dict[str, int] = {}
        self._refer_jointly(table, size)
        for owner in self.schema.owners.get(table, ()):
            if all((table, column) in self.codes for column in owner.columns) and not owner.steps:
                continue
            if owner.steps:
                self._refer(table, owner.steps[0], size)
                continue
            assert owner.entity is not None
            again = kinds.get(owner.entity, 0)
            kinds[owner.entity] = again + 1
            first = not any(place[0] == table for place in self.codes)
            codes = self._owners(table, owner.entity, owner.columns, again, first, size)
            for place, column in enumerate(reversed(owner.columns)):
                # Of a composite identifier the last part tells people apart.
                self.codes[table, column] = codes if place == 0 else codes % DISTINCT + 1
        targets = {key for key in self.references.values() if key[0] == table}
        primary = self.schema.keys.get(table, ())
        for key in targets | {(table, column) for column in primary if len(primary) == 1}:
            self.codes.setdefault(key, self._stated_codes(key, size, np.arange(1, size + 1)))

    def _owners(
        self, table: str, kind: str, columns: Any, again: int, first: bool, size: int
    ) -> Array:
        count = self.people[kind]
        ties = self.schema.ownership(table).ties
        rate, most = self.rates[table]
        if sum(tie.entity == kind for tie in ties) > 1:
            if again:
                before = next(
                    codes
                    for (where, name), codes in self.codes.items()
                    if where == table and self.identifiers.get((where, name)) == kind
                )
                return self._acquainted(before, count)
            if most is None:
                sociable = np.minimum(
                    self.random.pareto(2.2, size=count) + 0.4, math.sqrt(count) / 2 + 1
                )
                return self._drawn(sociable, size)
            return self._shares(count, size, most)
        if first and rate == 1 and most is None:
            return np.arange(1, count + 1)
        stated = self.values.get(f"{table}.{columns[-1]}")
        if isinstance(stated, int):
            # So many have rows here, the others none.
            count = min(max(round(stated * self.scale), 1), count)
        return self._shares(count, size, most if first else None)

    def _shares(self, count: int, size: int, most: float | None) -> Array:
        """Return whose each row is: anybody's alike, or with few who have far more."""
        if most is None:
            return self.random.integers(1, count + 1, size=size)
        mean = size / count
        tail = NormalDist().inv_cdf(1 - 0.5 / max(count, 2))
        ratio = math.log(max(most / max(mean, 1e-9), 1.0))
        spread = tail - math.sqrt(max(tail * tail - 2 * ratio, 0.0))
        drawn = self._drawn(np.exp(spread * self.random.standard_normal(count)), size)
        return self._at_most(drawn, count, math.ceil(most))

    def _at_most(self, codes: Array, count: int, most: int) -> Array:
        """Return codes of which none occurs more often than so: what is too much goes to others."""
        for _ in range(_ROUNDS):
            room = most - np.bincount(codes - 1, minlength=count)
            if (room >= 0).all() or not (room > 0).any():
                break
            order = np.argsort(codes, kind="stable")
            first = np.searchsorted(codes[order], codes[order])
            beyond = order[np.arange(len(codes)) - first >= most]
            codes = codes.copy()
            codes[beyond] = self._drawn(np.maximum(room, 0), len(beyond))
        return codes

    def _drawn(self, weights: Array, size: int) -> Array:
        drawn = self.random.choice(len(weights), size=size, p=weights / weights.sum())
        return np.asarray(drawn + 1)

    def _acquainted(self, codes: Array, count: int) -> Array:
        """Return another end for each link: mostly somebody near, else anybody."""
        near = codes + self.random.integers(1, NEARBY + 1, size=len(codes))
        far = self.random.permutation(codes)
        chosen = np.where(self.random.random(len(codes)) < 2 / 3, near, far)
        return (chosen - 1) % count + 1

    def _refer(self, table: str, step: Step, size: int) -> None:
        """Let each row refer to some row of another table, any of them alike."""
        rows = self.random.integers(0, self.sizes[step.table], size=size)
        self.rows_of[table, step.table] = rows
        for column, key in zip(step.columns, step.key or (), strict=True):
            known = self.codes.get((step.table, key))
            if known is None:
                known = np.arange(1, self.sizes[step.table] + 1)
            self.codes[table, column] = known[rows]

    def _refer_jointly(self, table: str, size: int) -> None:
        """Let each row refer to some row of another table by several columns at once."""
        other, pairs = self.composites.get(table, ("", []))
        known = {mine: self.codes.get((other, theirs)) for mine, theirs in pairs}
        if not known or any(codes is None for codes in known.values()):
            return
        rows = self.random.integers(0, self.sizes[other], size=size)
        self.rows_of[table, other] = rows
        for mine, codes in known.items():
            if codes is not None:
                self.codes[table, mine] = codes[rows]

    def _shared_codes(self, place: Place, size: int) -> Array:
        count = self.classes[place]
        if place[0] not in self.rates and self.sizes[place[0]] <= count:
            return self._stated_codes(place, size, np.arange(1, size + 1))
        return self._stated_codes(place, size, self.random.integers(1, count + 1, size=size))

    def _stated_codes(self, place: Place, size: int, otherwise: Array) -> Array:
        """Return the codes of the values that are stated for a column, if any are."""
        stated, labels = self.values.get(".".join(place)), self.labels.get(place)
        if not isinstance(stated, list) or labels is None:
            return otherwise
        codes = {label: code for code, label in enumerate(labels, start=1)}
        read = (_as_kind(one, self.kinds[place]) for one in self._laid(place, stated, size))
        # What is no value of the column's kind is any other one.
        return np.array([codes.get(value, len(codes) + 1) for value in read], dtype=np.int64)

    def _laid(self, place: Place, stated: list[Any], size: int) -> list[Any]:
        """Return a stated list: of a public table with so many rows, row by row; else at random."""
        if place[0] not in self.rates and len(stated) == size:
            return stated
        return self._pick(stated, size)

    # Values of a column that stands for itself

    def _values(self, place: Place, kind: str, stated: Any, size: int) -> Any:
        if isinstance(stated, tuple):
            return self._between(stated[0], stated[1], kind, size)
        if isinstance(stated, list):
            return self._laid(place, stated, size)
        listed = self.mentions.listed.get(place)
        if listed is not None and not (isinstance(stated, int) and stated > len(listed)):
            return self._pick(list(listed), size)
        years = self.mentions.years.get(place)
        if years:
            ends = date(int(min(years)), 1, 1), date(int(max(years)), 12, 31)
            return self._between(*ends, kind, size)
        constants = [(EQUAL, one) for one in listed or () if _as_kind(one, kind) is not None]
        constants += self._constants(place, kind)
        declared = self.schema.ranges.get(place[0], {}).get(place[1])
        if kind == "truth":
            return self.random.random(size) < 0.5
        if kind in ("whole", "number"):
            return self._numbers(constants, declared, stated, kind, size)
        if kind in ("date", "moment"):
            found: list[date] = [value for _, value in constants]
            if declared is not None and math.isfinite(declared.low + declared.high):
                low, high = (moment_of(end, declared.kind) for end in (declared.low, declared.high))
                return self._between(_day_of(low), _day_of(high), kind, size)
            first, last = min(found, default=_DAY), max(found, default=_DAY)
            more = max(last - first, timedelta(days=365))
            return self._between(first - more, last + more, kind, size)
        if kind == "text":
            pool = list(dict.fromkeys(str(value) for _, value in constants))
            wanted = stated if isinstance(stated, int) else max(DISTINCT, len(pool) + 2)
            pool += [f"v{number}" for number in range(1, wanted - len(pool) + 1)]
            return self._pick(pool, size)
        return None

    def _numbers(
        self, constants: Any, declared: Any, stated: int | None, kind: str, size: int
    ) -> Any:
        low = declared.low if declared is not None else -math.inf
        high = declared.high if declared is not None else math.inf
        found = [float(value) for _, value in constants]
        if stated is not None:
            start = low if math.isfinite(low) else 1.0
            end = high if math.isfinite(high) else start + stated - 1
            known = [value for how, value in constants if how == EQUAL]
            even = np.unique(np.linspace(start, end, stated)).tolist()
            return self._pick(list(dict.fromkeys([*known, *even]))[:stated], size)
        if math.isfinite(low) and math.isfinite(high):
            return self._between(low, high, kind, size)
        if found and all(how == EQUAL for how, _ in constants):
            pool = list(dict.fromkeys(found))
            more = (max(found) + number for number in range(1, DISTINCT))
            return self._pick([*pool, *more][: max(DISTINCT, len(pool) + 2)], size)
        if found:
            reach = max(max(found) - min(found), abs(max(found)), 1.0)
            start, end = min(found) - reach, max(found) + reach
        else:
            start, end = 0.0 if low >= 0 or declared is None else -LARGEST, float(LARGEST)
        start = max(start, low)
        return self._between(start, max(min(end, high), start), kind, size)

    def _constants(self, place: Place, kind: str) -> list[tuple[str, Any]]:
        """Return what a column is compared with, as values of its own kind."""
        found: list[tuple[str, Any]] = []
        for where, how, text in self.mentions.compared:
            if where != place:
                continue
            value = self.evaluate(text)
            if value is None:
                continue
            if how == YEAR and isinstance(value, int | Decimal | float):
                if kind in ("date", "moment") and _YEARS[0] < value < _YEARS[1]:
                    found += [(ORDERED, date(int(value), month, 1)) for month in (1, 12)]
                continue
            if how == LIKE and isinstance(value, str):
                found.append((how, value.replace("%", "").replace("_", "x")))
                continue
            read = _as_kind(value, kind)
            if read is not None:
                found.append((how, read))
        return found

    def _pick(self, pool: list[Any], size: int) -> list[Any]:
        """Return each value as often as the others, or nearly: no share is left to chance."""
        order = self.random.permutation(len(pool))[np.arange(size) % len(pool)]
        return [pool[place] for place in self.random.permutation(order)]

    def _between(self, low: Any, high: Any, kind: str, size: int) -> Any:
        # One in each of as many parts of equal width, in any order.
        parts = (self.random.permutation(size) + self.random.random(size)) / size
        if isinstance(low, date):
            if kind not in ("date", "moment"):
                return None
            days = (high - low).days + 1
            moved = (np.datetime64(low, "D") + (parts * days).astype(np.int64)).astype(
                "datetime64[s]"
            )
            if kind == "date":
                return moved.astype("datetime64[D]")
            return moved + self.random.integers(0, 86_400, size=size).astype("timedelta64[s]")
        if kind == "whole":
            return np.floor(low + parts * (high - low + 1)).astype(np.int64)
        return None if kind not in ("number",) else np.round(low + parts * (high - low), 2)


def _day_of(moment: date) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _is_near(held: Any) -> bool:
    return isinstance(held, tuple) and len(held) == 3


def _encode(codes: Array, kind: str, labels: list[Any]) -> Any:
    """Return numbers of participants or keys as values of a column's kind, labels first."""
    known = np.array([_as_kind(one, kind) for one in labels])
    if kind == "text":
        named = dict(enumerate(known.tolist(), start=1))
        return [named.get(code, f"p{code}") for code in codes.tolist()]
    if kind in ("date", "moment"):
        others, known = np.datetime64(_DAY, "D") + codes, known.astype("datetime64[D]")
    elif kind in ("whole", "number"):
        others, known = codes, known.astype(np.float64 if kind == "number" else np.int64)
    else:
        return None
    if not len(known):
        return others
    # Beyond the labels there are values that none of them is.
    others = np.where(np.isin(others, known), others + (known.max() - others.min()), others)
    return np.where(codes <= len(known), known[np.minimum(codes, len(known)) - 1], others)


def _as_kind(value: Any, kind: str) -> Any:
    if kind in ("whole", "number"):
        fits = isinstance(value, int | float | Decimal) and math.isfinite(value)
        return float(value) if fits else None
    if kind in ("date", "moment"):
        if isinstance(value, datetime):
            return value.date()
        if isinstance(value, str):
            try:
                return date.fromisoformat(value[:10])
            except ValueError:
                return None
        return value if isinstance(value, date) else None
    return value if kind == "text" and isinstance(value, str) else None
