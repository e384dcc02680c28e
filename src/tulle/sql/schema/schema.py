"""What is public about a database: its tables and columns, and whose their rows are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, lru_cache
from typing import Any

from tulle.core.errors import InputError, QueryError
from tulle.sql.expressions.kinds import named_type
from tulle.sql.schema.catalogue import Catalogue, Definition, Keys, Names, spelled
from tulle.sql.schema.owners import Columns, Owner, Step, parse_owners
from tulle.sql.schema.ranges import Range, check_ranges, read_ranges

HERE = "t"
"""What a table is called where its own owners are worked out."""

INTEGER = "BIGINT"
TEXT = "TEXT"


@dataclass(frozen=True)
class Link:
    """A join that leads from a row to another one that says whose it is."""

    start: str
    columns: Columns
    table: str
    name: str
    key: Columns


@dataclass(frozen=True)
class Tie:
    """One owner of a row: a kind of participant and the columns that identify it."""

    entity: str
    place: str
    columns: Columns
    time: tuple[str, str] | None = None
    """Where the time of the record stands, as place and column; None where no time is declared."""


@dataclass(frozen=True)
class Ownership:
    """Everyone a row of a table needs, and the joins that find them."""

    links: tuple[Link, ...] = ()
    ties: tuple[Tie, ...] = ()


@dataclass(frozen=True)
class Schema:
    """Tables that may be asked about, checked against the catalogue. Holds no records.

    Example:
        >>> tables = {"edge": {"a": "INTEGER", "b": "INTEGER"}}
        >>> schema = Schema.build("duckdb", tables, owners={"edge": ["a", "b"]})
        >>> [tie.columns for tie in schema.ownership("edge").ties]
        [('a',), ('b',)]
    """

    dialect: str
    tables: Catalogue
    owners: Mapping[str, tuple[Owner, ...]]
    public: tuple[str, ...]
    ranges: Mapping[str, Mapping[str, Range]] = field(default_factory=dict)
    """For columns of some tables the range that their values are cut to."""
    others: tuple[str, ...] = ()
    """Tables that exist but are neither owned nor public: they cannot be asked about."""
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each table the catalog and schema that it was found in when connecting, if any."""
    times: Mapping[str, str] = field(default_factory=dict)
    """For some tables the column that says when a record is from."""
    period: str | None = None
    """Into which periods the records of a participant are divided; None when they are not."""
    days: tuple[str, str] | None = None
    """The first and last day of the records that take part; None when all do."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """For some tables the columns of a declared primary key. They are not among the facts: nothing
    that is promised rests on them."""
    views: Mapping[str, str] = field(default_factory=dict)
    """For each name that stands for a SELECT over these tables, that SELECT; see
    :mod:`tulle.sql.compile.views`."""
    refused: Mapping[str, str] = field(default_factory=dict, compare=False)
    """For each other view why it cannot be asked about."""
    _ownerships: dict[str, Ownership] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _classes: dict[str, str] = field(default_factory=dict, init=False, compare=False, repr=False)
    # What was worked out from the above, so that it is worked out once.

    def __post_init__(self) -> None:
        check_ranges(self.ranges, self.owners, self.times if self.period else {})

    @classmethod
    def build(
        cls,
        dialect: str,
        catalogue: Catalogue,
        *,
        owners: Mapping[str, Any],
        public: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        times: Mapping[str, str] | None = None,
        keys: Keys | None = None,
        declared_keys: Mapping[str, Any] | None = None,
        place: Callable[[str], tuple[str, ...]] = lambda table: (),
        definitions: Mapping[str, Definition] | None = None,
    ) -> Schema:
        """Check the owners against the catalogue, and fill in the keys that paths go through.

        Raises:
            InputError: naming what is missing and what there is.
        """
        if isinstance(public, str):
            raise InputError(f"public must be a list of tables, such as [{public!r}].")
        keys = (keys or Keys({}, {})).with_primary(read_keys(declared_keys or {}, catalogue))
        known = Names(catalogue, keys, definitions or {})
        real_public = tuple(known.table(name, "public") for name in public)
        by_table: dict[str, Any] = {}
        for name, given in owners.items():
            table = known.table(name, "owners")
            if table in by_table:
                raise InputError(f"owners names the table {table} twice.")
            by_table[table] = given
        both = sorted(set(real_public) & set(by_table))
        if both:
            raise InputError(
                f"{', '.join(both)} is declared public and owned. Rows that anyone owns are not "
                "public: leave it out of public=."
            )
        resolved = parse_owners(known.plain(by_table))
        declared = {*real_public, *resolved}
        full = {
            table: tuple(known.fill(table, owner, declared) for owner in listed)
            for table, listed in resolved.items()
        }
        tables = {table: dict(catalogue[table]) for table in sorted(declared)}
        schema = cls(
            dialect,
            tables,
            full,
            real_public,
            read_ranges(ranges or {}, tables, dialect),
            tuple(sorted(set(catalogue) - declared)),
            {table: place(table) for table in tables},
            read_times(times or {}, tables, real_public, dialect),
            keys={table: key for table, key in keys.primary.items() if table in tables},
        )
        for table in full:
            for link in schema.ownership(table).links:
                schema._check_key(link)
        for entity in schema.entities():
            schema.entity_class(entity)
        return schema

    def to_json(self) -> dict[str, Any]:
        """Return the schema as public facts; :meth:`from_json` reads them back."""
        facts: dict[str, Any] = {
            "dialect": self.dialect,
            "tables": {table: dict(columns) for table, columns in self.tables.items()},
            "owners": {t: [str(owner) for owner in listed] for t, listed in self.owners.items()},
            "public": list(self.public),
        }
        if self.ranges:
            facts["ranges"] = {
                f"{table}.{column}": found.to_json()
                for table, columns in self.ranges.items()
                for column, found in columns.items()
            }
        if self.views:
            facts["views"] = dict(self.views)
        if self.times:
            facts["times"] = dict(self.times)
        if self.period is not None:
            facts["period"] = self.period
        if self.days is not None:
            facts["days"] = list(self.days)
        return facts

    def with_views(self, views: Mapping[str, str], refused: Mapping[str, str]) -> Schema:
        """Return the schema with views; whose the rows of its tables are is known already."""
        made = replace(self, views=views, refused=refused)
        made._ownerships.update(self._ownerships)
        made._classes.update(self._classes)
        return made

    def within(self, period: str) -> Schema:
        """Return the schema in which a participant's records of each period are a unit each.

        Raises:
            InputError: when no table says when its records are from.
        """
        if not self.times:
            raise InputError(
                f"Nobody knows of which {period} a record is. Say which column is the time of a "
                "table: times={'trips': 'started_on'}."
            )
        return replace(self, period=period)

    def of_days(self, first: date, last: date) -> Schema:
        """Return the schema whose tables have the records of these days alone."""
        return replace(self, days=(first.isoformat(), last.isoformat()))

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Schema:
        """Read what :meth:`to_json` wrote."""
        return cls(
            facts["dialect"],
            facts["tables"],
            parse_owners(facts["owners"]),
            tuple(facts["public"]),
            read_ranges(facts.get("ranges", {}), facts["tables"], facts["dialect"]),
            views=facts.get("views", {}),
            times=facts.get("times", {}),
            period=facts.get("period"),
            days=tuple(facts["days"]) if "days" in facts else None,
        )

    def ownership(self, table: str) -> Ownership:
        """Return everyone that a row of this table needs, following every path to its end.

        A row found over a path also needs the owners of the rows on the way: when they leave,
        the way is gone.

        Raises:
            InputError: when paths lead in a circle.
        """
        if table not in self._ownerships:
            self._ownerships[table] = _follow(self.owners, self.times, table, HERE, (), _counter())
        return self._ownerships[table]

    def check_table(self, table: str) -> None:
        """Refuse a table that is neither owned nor public.

        Raises:
            QueryError: naming the table and what may be asked about.
        """
        if table in self.tables:
            self._check_times(table)
            return
        allowed = ", ".join(dict.fromkeys([*self.tables, *self.views])) or "none"
        refused = spelled(table, self.refused)
        if refused is not None:
            raise QueryError(f"{refused} {self.refused[refused]}")
        if table in self.others:
            raise QueryError(
                f"Table {table} has no owners and is not declared public, so nobody knows whom "
                f"its rows are about. Add it to owners= or public=. Tables to ask about: {allowed}."
            )
        raise QueryError(f"There is no table {table}. Tables to ask about: {allowed}.")

    def is_divided(self, table: str) -> bool:
        """Say whether each row of a table is of some period, as far as the unit has periods."""
        return self.period is None or all(tie.time for tie in self.ownership(table).ties)

    def _check_times(self, table: str) -> None:
        """Refuse a table of whose rows nobody knows the period, where the unit has one."""
        if self.is_divided(table):
            return
        dated = ", ".join(sorted(self.times))
        raise QueryError(
            f"A row of {table}, or of a table on the way to its owners, has no time: it is there "
            f"in every {self.period}, so it cannot be protected per {self.period}. Tables with "
            f"times: {dated}. Declare its time with times=, declare it public if it is, or ask "
            "with unit='participant'."
        )

    def entities(self) -> tuple[str, ...]:
        """Return the kinds of participants, in order of declaration."""
        found = (o.entity for listed in self.owners.values() for o in listed if o.columns)
        return tuple(dict.fromkeys(entity for entity in found if entity is not None))

    def has_composites(self, entity: str) -> bool:
        """Say whether some identifier of this kind is made of several parts."""
        return self.period is not None or any(
            owner.entity == entity and len(owner.columns) > 1
            for listed in self.owners.values()
            for owner in listed
        )

    def entity_class(self, entity: str) -> str:
        """Return the type in which identifiers of this kind are compared: BIGINT, or else TEXT.

        Raises:
            InputError: for a column whose values are no good identifiers, such as floats.
        """
        if entity in self._classes:
            return self._classes[entity]
        whole = True
        for table, listed in self.owners.items():
            for owner in listed:
                if owner.entity == entity and owner.columns:
                    end = owner.steps[-1].table if owner.steps else table
                    whole &= len(owner.columns) == 1
                    for column in owner.columns:
                        whole &= self._is_whole(end, column)
        self._classes[entity] = INTEGER if whole and self.period is None else TEXT
        return self._classes[entity]

    @cached_property
    def types(self) -> Any:
        """Columns and types of all tables, as the parser wants them."""
        from sqlglot import exp
        from sqlglot.schema import MappingSchema

        def quoted(name: str) -> str:
            return exp.to_identifier(name, quoted=True).sql(dialect=self.dialect)

        known: dict[str, object] = {
            quoted(table): {
                quoted(name): _written(kind, self.dialect) for name, kind in columns.items()
            }
            for table, columns in self.tables.items()
        }
        return MappingSchema(known, dialect=self.dialect)

    def _check_key(self, link: Link) -> None:
        """Refuse a path over a key of which two values are read as one."""
        for column in link.key:
            written = self.tables[link.table][column]
            if written.lower().startswith("timestamp_ns"):
                raise InputError(
                    f"{link.table}.{column} has type {written}, and timestamps are read to the "
                    "microsecond: a row could lead to two owners. Lead there over another key, "
                    "such as a number."
                )

    def _is_whole(self, table: str, column: str) -> bool:
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        written = self.tables[table][column]
        try:
            kind = exp.DataType.build(written, dialect=self.dialect)
        except (SqlglotError, ValueError):
            kind = named_type("UNKNOWN")
        types = exp.DataType.Type
        if "collate" in written.lower():
            kind = named_type("UNKNOWN")
        if kind.this in {
            *(types.TINYINT, types.SMALLINT, types.INT, types.BIGINT),
            *(types.UTINYINT, types.USMALLINT, types.UINT),
        }:
            return True
        if (
            kind.this in exp.DataType.TEXT_TYPES
            or kind.this in exp.DataType.INTEGER_TYPES
            or kind.this in {types.UUID, types.DATE, types.ENUM}
        ):
            return False
        if kind.this == types.DECIMAL:
            sizes = [part.name for part in kind.expressions]
            if sizes and sizes[1:] in ([], ["0"]):
                return False
        raise InputError(
            f"{table}.{column} has type {written}, in which one owner can be written in several "
            "ways. Owners are whole numbers, texts, dates or UUIDs."
        )


def _counter() -> Callable[[], int]:
    state = [0]

    def count() -> int:
        state[0] += 1
        return state[0]

    return count


def read_keys(keys: Mapping[str, Any], tables: Catalogue) -> dict[str, Columns]:
    """Check the columns that are declared to be the key of each table.

    Raises:
        InputError: when there is no such table or column.

    Example:
        >>> read_keys({"person": "ID"}, {"person": {"id": "INTEGER"}})
        {'person': ('id',)}
    """
    found: dict[str, Columns] = {}
    for name, given in keys.items():
        table = spelled(name, tables)
        if table is None:
            there = ", ".join(sorted(tables)) or "none"
            raise InputError(f"keys: there is no table {name!r}. Tables: {there}.")
        listed = given.split(",") if isinstance(given, str) else given
        columns = []
        for one in listed:
            column = spelled(str(one).strip(), tables[table])
            if column is None:
                there = ", ".join(tables[table])
                raise InputError(f"keys: table {table} has no column {one!r}. Columns: {there}.")
            columns.append(column)
        if not columns:
            raise InputError(f"keys: the key of {table} has no columns.")
        found[table] = tuple(columns)
    return found


def read_times(
    times: Mapping[str, str], tables: Catalogue, public: Collection[str], dialect: str
) -> dict[str, str]:
    """Check which column is the time of each table.

    Raises:
        InputError: when there is no such column, or its values do not name a day by themselves.
    """
    from tulle.sql.expressions import kinds

    found: dict[str, str] = {}
    for name, given in times.items():
        table = spelled(name, tables)
        if table is None or table in public:
            owned = ", ".join(sorted(set(tables) - set(public))) or "none"
            raise InputError(f"times: {name!r} is not a table with owners. Such tables: {owned}.")
        column = spelled(str(given), tables[table])
        if column is None:
            there = ", ".join(tables[table])
            raise InputError(f"times: table {table} has no column {given!r}. Columns: {there}.")
        written = tables[table][column]
        if kinds.kind_of_column(written, dialect).name not in {kinds.DATE, kinds.TIMESTAMP}:
            raise InputError(
                f"times: {table}.{column} has type {written}. The time of a record is a date or a "
                "timestamp without time zone, in local time: which day a moment is depends on a "
                "zone and its rules, which engines do not share. Convert it in a view, such as "
                "(moment AT TIME ZONE 'Europe/Zurich')::date."
            )
        found[table] = column
    return found


def _follow(
    owners: Mapping[str, tuple[Owner, ...]],
    times: Mapping[str, str],
    table: str,
    name: str,
    above: tuple[str, ...],
    count: Callable[[], int],
) -> Ownership:
    if table in above:
        raise InputError(
            f"The owners' paths lead in a circle: {' -> '.join((*above, table))}. Let one of these "
            "tables name its owner's column."
        )
    links: dict[tuple[str, Step], Link] = {}
    ties: dict[Tie, None] = {}
    for owner in owners.get(table, ()):
        place, end = name, table
        for step in owner.steps:
            assert step.key is not None
            if (place, step) not in links:
                fresh = f"{HERE}{count()}"
                links[place, step] = Link(place, step.columns, step.table, fresh, step.key)
                below = _follow(owners, times, step.table, fresh, (*above, table), count)
                for link in below.links:
                    links[link.start, Step(link.columns, link.table, link.key)] = link
                ties |= dict.fromkeys(below.ties)
            place, end = links[place, step].name, step.table
        # A row's own time counts, and those of the rows on the way: when one of these is gone,
        # the way is. A row without a time has that of the row that says whose it is.
        own = (name, times[table]) if table in times else None
        if owner.columns:
            assert owner.entity is not None
            time = own or ((place, times[end]) if end in times else None)
            ties[Tie(owner.entity, place, owner.columns, time)] = None
        elif not owners.get(end):
            raise InputError(
                f"'{owner}' takes over the owners of {end}, which has none. Name a column of it, "
                "or declare its owners."
            )
        elif own is not None:
            ties |= {replace(tie, time=own): None for tie in tuple(ties) if tie.place != name}
    return Ownership(tuple(links.values()), tuple(ties))


@lru_cache(maxsize=4096)
def _written(kind: str, dialect: str) -> str:
    """Return a type as the parser writes it."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        return str(exp.DataType.build(kind, dialect=dialect).sql(dialect=dialect))
    except (SqlglotError, ValueError):
        # The type matters for casts only, and an unknown one is refused there.
        return "UNKNOWN"
