"""The statements that count people by key, and that number the rows of keys once they are found.

A key is told by a text that is the same for equal values and for no others, whatever the collation
of a column or the sign of a zero: what is shown of a key must not depend on how one row spells it.
Its digest, with a salt that is drawn for each release, is what statements compare.

Everyone keeps at most so many keys: those with the least digests of salt, owner and key. That
depends on the person's own rows and on the salt alone, and not on other people or on the order of
rows. Nothing rests on how good the digest is, except that the choice is even.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp, parse_one

from tulle.core.errors import QueryError
from tulle.sql.compile.derivations import Slot, alias, column, select, source_of
from tulle.sql.compile.inside import SameValue
from tulle.sql.compile.names import Named
from tulle.sql.compile.owned_rows import Gone
from tulle.sql.compile.rewrite import GROUP
from tulle.sql.compile.select_rewriter import Rewriter
from tulle.sql.compile.single_owner import needs_one
from tulle.sql.compile.statements import Compiler, Scope
from tulle.sql.dialect import dialect_of
from tulle.sql.expressions import kinds
from tulle.sql.expressions.conversions import collation_name
from tulle.sql.expressions.kinds import Kind, named_type
from tulle.sql.question.aggregate import Groups, Number, group_expressions
from tulle.sql.question.check import conjuncts
from tulle.sql.question.parse import parse_statement
from tulle.sql.schema.catalogue import RESERVED
from tulle.sql.schema.schema import Schema

LONGEST = 1000
"""Texts of more characters are no keys: a public limit."""

KEY, OWNER = f"{RESERVED}_key", f"{RESERVED}_owner"
DIGEST, PEOPLE, PLACE = f"{RESERVED}_digest", f"{RESERVED}_people", f"{RESERVED}_place"

_KEYS = frozenset(
    {
        kinds.WHOLE,
        kinds.DECIMAL,
        kinds.DOUBLE,
        kinds.TEXT,
        kinds.BOOLEAN,
        kinds.DATE,
        kinds.TIMESTAMP,
        kinds.ZONED,
        kinds.TIME,
        kinds.UUID,
    }
)
_ONLY = "source"


@dataclass(frozen=True)
class KeyRows:
    """The rows of a statement as keys and owners, and what the public schema says of them."""

    text: str
    """Gives the text of each key column, the text of the whole key, and the owners."""
    kinds: tuple[Kind, ...]
    slots: tuple[Slot, ...]
    single_owner: bool
    """Whether each row is about one participant."""
    once: bool
    """Whether a primary key says that nobody has more than one row."""
    named: Named = field(compare=False, repr=False)
    dialect: str = field(kw_only=True)

    def counted(self, salt: str, most: int, levels: Sequence[tuple[int, int]] = ()) -> str:
        """Return the statement that counts the people of each key, everyone with ``most`` keys.

        With ``levels`` whoever has at most so many keys counts for this much in each of them.
        """
        keys = [f"{KEY}_{place}" for place in range(len(self.kinds))]
        people, having = "COUNT(*)", ""
        if any(weight != 1 for _, weight in levels):
            # Whoever has more keys than are counted keeps the last level's number of them.
            cases = " ".join(f"WHEN b.n <= {up_to} THEN {weight}" for up_to, weight in levels)
            people = f"CAST(SUM(CASE {cases} ELSE {levels[-1][1]} END) AS BIGINT)"
            having = ", COUNT(*) OVER (PARTITION BY d.i) AS n"
        ranked = rank_keys(self._distinct(salt), salt, self.dialect, having)
        shown = ", ".join(f"MAX(b.{key}) AS {key}" for key in keys)
        return (
            f"SELECT b.h AS {DIGEST}, {shown}, {people} AS {PEOPLE} FROM ({ranked}) b "
            f"WHERE b.r <= {most} GROUP BY b.h"
        )

    def having(self, salt: str, most: int) -> str:
        """Return the statement that counts people by how many keys they have, up to ``most``."""
        numbers = f"SELECT d.i, COUNT(*) AS n FROM ({self._distinct(salt)}) d GROUP BY d.i"
        return (
            f"SELECT LEAST(c.n, {most}) AS {PLACE}, COUNT(*) AS {PEOPLE} FROM ({numbers}) c "
            f"GROUP BY LEAST(c.n, {most})"
        )

    def _distinct(self, salt: str) -> str:
        """Return the statement that gives each person's keys, each once."""
        keys = [f"{KEY}_{place}" for place in range(len(self.kinds))]
        owners = [f"{OWNER}_{place}" for place in range(len(self.slots))]
        one = [f"q.{owners[0]} IS NOT NULL", *(f"q.{o} = q.{owners[0]}" for o in owners[1:])]
        digest = f"md5('{salt}' || q.{GROUP})"
        # By digest and not by text: should two texts have one, a person counts once all the same.
        return (
            f"SELECT q.{owners[0]} AS i, {digest} AS h, "
            f"{', '.join(f'MAX(q.{key}) AS {key}' for key in keys)} FROM ({self.text}) q "
            f"WHERE {' AND '.join([*one, *self._short()])} GROUP BY q.{owners[0]}, {digest}"
        )

    def listed(self, salt: str) -> str:
        """Return the statement that lists all keys, each once; for keys of public rows."""
        keys = [f"q.{KEY}_{place}" for place in range(len(self.kinds))]
        short = self._short()
        return (
            f"SELECT DISTINCT md5('{salt}' || q.{GROUP}) AS {DIGEST}, {', '.join(keys)} "
            f"FROM ({self.text}) q{' WHERE ' if short else ''}{' AND '.join(short)}"
        )

    def _short(self) -> list[str]:
        """Return conditions that texts are not too long to be keys."""
        return [
            f"(q.{KEY}_{place} IS NULL OR LENGTH(q.{KEY}_{place}) <= {LONGEST})"
            for place, kind in enumerate(self.kinds)
            if kind.name == kinds.TEXT
        ]


def rank_keys(distinct: str, salt: str, dialect: str, more: str = "") -> str:
    """Return a person's keys (``i``, ``h`` for the digest) in an order of salted digests, as ``r``.

    Everyone keeps the first of them.
    """
    text = dialect_of(dialect).type_name("TEXT")
    # So short that an engine keeps it in place; equal ones are told apart by the whole digest.
    order = f"SUBSTR(md5('{salt}' || CAST(d.i AS {text}) || ':' || d.h), 1, 12)"
    return (
        f"SELECT d.*, ROW_NUMBER() OVER (PARTITION BY d.i ORDER BY {order}, d.h) AS r{more} "
        f"FROM ({distinct}) d"
    )


def key_rows(
    text: str,
    dialect: str,
    names: Sequence[str],
    schema: Schema,
    gone: Gone = None,
    functions: Collection[str] = (),
) -> KeyRows:
    """Return the keys and owners of a checked statement's rows.

    Raises:
        QueryError: when it does not fit the schema, or a key is of a kind that cannot be shown.
    """
    named = Named(parse_statement(text, dialect), schema)
    rewriter = Rewriter(schema, named, gone)
    expressions = group_expressions(named.tree, blank_groups(names))
    block = rewriter.block(named.tree, rewriter.views(named.tree, {}))
    probed = [(e.copy(), f"{KEY}_{place}") for place, e in enumerate(expressions)]
    probe = rewriter.project(block, probed, distinct=False)
    found = Compiler(schema, functions).query(probe.query.copy(), Scope({}))
    known = tuple(found[name] for _, name in probed)
    for name, kind in zip(names, known, strict=True):
        _check_kind(name, kind)
    texts = [
        written_key(e, kind, schema.dialect) for e, kind in zip(expressions, known, strict=True)
    ]
    wanted = [(t, f"{KEY}_{place}") for place, t in enumerate(texts)]
    wanted.append((whole_key(expressions, known, schema.dialect), GROUP))
    form = rewriter.project(block, wanted, distinct=False)
    slots = tuple(Slot(slot.entity, f"{OWNER}_{i}") for i, slot in enumerate(form.slots))
    name = rewriter.namer.fresh()
    chosen = [
        *(column(value, name) for _, value in wanted),
        *(
            alias(column(inner.name, name), outer.name)
            for inner, outer in zip(form.slots, slots, strict=True)
        ),
    ]
    query = select(chosen, [source_of(form.query, name)])
    Compiler(schema, functions).query(query, Scope({}))
    single_owner = form.keys is None and (
        len(slots) == 1 or (bool(slots) and needs_one(named, schema))
    )
    return KeyRows(
        str(query.sql(dialect=schema.dialect)),
        known,
        slots,
        single_owner,
        single_owner and form.once,
        named,
        dialect=schema.dialect,
    )


def blank_groups(names: Sequence[str]) -> Groups:
    """Return groups of these names whose values are not known."""
    return tuple((name, (None,)) for name in names)


def key_number(known: Sequence[Kind], dialect: str) -> Number:
    """Return what tells the groups of a statement apart by their keys: texts, not numbers."""

    def number(expressions: list[Any], groups: Groups) -> tuple[Any, list[Any]]:
        return whole_key(expressions, known, dialect), []

    return number


def whole_key(expressions: Sequence[Any], known: Sequence[Kind], dialect: str) -> Any:
    """Return the text of all key columns together; a length in front keeps them apart."""
    pieces = []
    for expression, kind in zip(expressions, known, strict=True):
        written = written_key(expression, kind, dialect)
        length = exp.cast(exp.Length(this=written.copy()), named_type("TEXT"))
        there = _joined([exp.Literal.string("v"), length, exp.Literal.string(":"), written.copy()])
        missing = exp.Is(this=exp.paren(written), expression=exp.null())
        pieces.append(
            exp.Case(ifs=[exp.If(this=missing, true=exp.Literal.string("n"))], default=there)
        )
    return _collated(_joined(pieces), dialect)


def numbered(text: str, dialect: str, salt: str, digests: Sequence[str], *, other: bool) -> str:
    """Return a statement whose groups are keys with their numbers in the order of the digests.

    Rows of other keys are left out, or with ``other`` are the last group.
    """
    # No digest is empty, so a list of none has one entry that is never met. One constant is read
    # much faster than a list of a hundred thousand rows; it is put in as it is.
    values = exp.Var(this=dialect_of(dialect).listed(",".join(digests)))
    place: Any = exp.column("p", table="n")
    if other:
        place = exp.Coalesce(this=place, expressions=[exp.Literal.number(len(digests))])
    statement: Any = parse_one(text, dialect=dialect)
    if statement.args.get("group"):
        # Before rows are added up: numbers take less memory than keys.
        rows, joined = statement.args["from_"].this.alias, statement
        chosen, by = statement.expressions, statement.args["group"].expressions
        for at, one in enumerate(chosen):
            if one.alias_or_name == GROUP:
                chosen[at] = exp.alias_(place, GROUP)
        by[:] = [place.copy() if one.name == GROUP else one for one in by]
    else:
        rows = "q"
        kept = [exp.column(name, table=rows) for name in statement.named_selects if name != GROUP]
        joined = exp.select(exp.alias_(place, GROUP), *kept).from_(statement.subquery(rows))
        joined = joined.distinct() if other else joined
    digest = exp.func("md5", _joined([exp.Literal.string(salt), exp.column(GROUP, table=rows)]))
    join = exp.Join(
        this=exp.Table(this=values, alias=exp.TableAlias(this=exp.to_identifier("n"))),
        side="LEFT" if other else None,
        on=exp.EQ(this=exp.column("h", table="n"), expression=digest),
    )
    joined.append("joins", join)
    return str(joined.sql(dialect=dialect, copy=False))


def keys_of_one_table(named: Named, names: Sequence[str]) -> tuple[str, str] | None:
    """Return a statement for the keys of one table alone, and the table, if they all come from it.

    Conditions that are about that table alone are kept. The keys of a join are among its keys.
    """
    tree = named.resolved
    views = {cte.alias for cte in tree.find_all(exp.CTE)}
    beside = [join.this for join in tree.args.get("joins") or []]
    tables = {
        source.alias_or_name: source
        for source in (tree.args["from_"].this, *beside)
        if isinstance(source, exp.Table) and source.name not in views
    }
    expressions = group_expressions(tree, blank_groups(names))
    sources = {found.table for e in expressions for found in e.find_all(exp.Column)}
    if len(sources) != 1 or not sources <= set(tables):
        return None
    (name,) = sources
    source = tables[name]
    pairs = zip(expressions, names, strict=True)
    chosen = [exp.alias_(e.copy(), key, quoted=True) for e, key in pairs]
    query = exp.select(*chosen).from_(source.copy())
    where = tree.args.get("where")
    conditions = [where.this] if where else []
    conditions += [join.args["on"] for join in tree.args.get("joins") or [] if join.args.get("on")]
    for condition in (part for whole in conditions for part in conjuncts(whole)):
        about = {found.table for found in condition.find_all(exp.Column)}
        if about == {name} and condition.find(exp.Query, exp.Exists) is None:
            query = query.where(exp.paren(condition.copy()))
    query = query.group_by(*(e.copy() for e in expressions))
    # Names that resolving has given are reserved.
    only: Any = query.find(exp.Table)
    only.set("alias", exp.TableAlias(this=exp.to_identifier(_ONLY)))
    for found in query.find_all(exp.Column):
        found.set("table", exp.to_identifier(_ONLY))
    return str(query.sql(dialect=named.schema.dialect)), named.table(source)


# --- values ---------------------------------------------------------------------------------------


def can_be_key(kind: Kind) -> bool:
    """Say whether values have one text each, by which they can be found."""
    return kind.name in _KEYS and not (kind.name == kinds.DECIMAL and kind.digits is None)


def _check_kind(name: str, kind: Kind) -> None:
    if kind.name not in _KEYS:
        raise QueryError(
            f"GROUP BY {name} needs a list of keys: its values are of the type "
            f"{kind.stored or kind.name}, which cannot be found privately. Write CAST({name} AS "
            "TEXT) in GROUP BY, or list the keys that everyone may know with groups=."
        )
    if not can_be_key(kind):
        raise QueryError(
            f"GROUP BY {name} needs a type of known scale: equal decimals can be written in many "
            f"ways. Write CAST({name} AS DECIMAL(18, 2)) in GROUP BY, or list the keys that "
            "everyone may know with groups=."
        )


def written_key(expression: Any, kind: Kind, dialect: str) -> Any:
    """Return the text of a key column: equal for equal values, NULL for NULL."""
    value: Any = exp.paren(expression.copy())
    if kind.name == kinds.DOUBLE or (kind.name == kinds.DECIMAL and not kind.stored):
        # Zero and what is not a number have two signs; which of them a row has must not show. One
        # decimal is written in several ways where it was made of columns of several scales.
        value = SameValue(this=value)
    written: Any = exp.cast(value, named_type("TEXT"))
    if kind.name == kinds.TEXT:
        # Longer ones are no keys. Joined as they are, they could be longer than an engine allows.
        written = exp.Substring(
            this=written,
            start=exp.Literal.number(1),
            length=exp.Literal.number(LONGEST + 1),
        )
    return _collated(written, dialect)


def _collated(written: Any, dialect: str) -> Any:
    # A column may be declared to take "Ann" for "ann": which of them is shown would be up to a row.
    collation = dialect_of(dialect).key_collation
    return exp.Collate(this=exp.paren(written), expression=collation_name(collation))


def _joined(pieces: Sequence[Any]) -> Any:
    joined = pieces[0]
    for piece in pieces[1:]:
        joined = exp.DPipe(this=joined, expression=piece, safe=True)
    return joined


_READ = {
    kinds.WHOLE: int,
    kinds.DECIMAL: Decimal,
    kinds.DOUBLE: float,
    kinds.BOOLEAN: {"true": True, "false": False}.__getitem__,
    kinds.DATE: date.fromisoformat,
    kinds.TIMESTAMP: datetime.fromisoformat,
    kinds.ZONED: datetime.fromisoformat,
    kinds.TIME: time.fromisoformat,
}


def read_key(written: str | bytes | None, kind: Kind) -> tuple[bool, Any]:
    """Return whether a key's text can be read, and its value; a day after 9999 cannot.

    Nor can bytes: what Spark says is a text and is no UTF-8.

    Example:
        >>> read_key("2024-02-29", Kind(kinds.DATE)), read_key("infinity", Kind(kinds.DATE))
        ((True, datetime.date(2024, 2, 29)), (False, None))
    """
    if written is None:
        return True, None
    if isinstance(written, bytes):
        return False, None
    read: Any = _READ.get(kind.name, str)
    try:
        return True, read(written)
    except (ValueError, LookupError, InvalidOperation, OverflowError):
        return False, None


def order_of(key: Sequence[Any]) -> tuple[Any, ...]:
    """Return what keys are sorted by: their values alone, NULL and then NaN last."""
    made: list[Any] = []
    for value in key:
        if value is None:
            made.append((2, 0))
        elif isinstance(value, float) and value != value:
            made.append((1, 0))
        elif isinstance(value, datetime) and value.tzinfo is not None:
            made.append((0, value.timestamp(), value.isoformat()))
        else:
            made.append((0, value))
    return tuple(made)
