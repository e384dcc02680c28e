"""The public outline of a question's relation: tables, owners, joins; nothing about any row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tulle.sql.question.check import conjuncts
from tulle.sql.schema.schema import Schema

if TYPE_CHECKING:
    from tulle.sql.queries import SqlQuery


@dataclass(frozen=True)
class OutlineSource:
    """A table that a question reads, and whose its rows are."""

    name: str
    table: str
    owners: tuple[str, ...]
    """Empty for a public table."""


@dataclass(frozen=True)
class Outline:
    """What the relation of a question looks like on any database with this schema.

    Example:
        >>> from tulle.sql.queries import sql
        >>> schema = Schema.build(
        ...     "duckdb", {"knows": {"a": "INTEGER", "b": "INTEGER"}}, owners={"knows": ["a", "b"]})
        >>> two_steps = sql("SELECT COUNT(*) FROM knows x JOIN knows y ON x.b = y.a")
        >>> print(outline_of(two_steps, schema).needs())
        up to 3 participants
    """

    sources: tuple[OutlineSource, ...]
    joins: tuple[str, ...]
    """Conditions between several tables, as they are compared."""
    participants: tuple[tuple[str, int], ...]
    """How many of each kind one way to get a tuple needs at most; one, where all are the same."""
    alternatives: bool
    """Whether a tuple may come about in several ways, any of which is enough."""
    signed: bool
    """Whether terms may be negative; both signs are then paid for."""
    groups: int

    def needs(self) -> str:
        """Say in words whom one tuple needs."""
        if not self.participants:
            return "nobody"
        listed = [
            f"{kind}" if most == 1 else f"up to {most} {kind}s" for kind, most in self.participants
        ]
        return " and ".join(listed) + (", or others in another way" if self.alternatives else "")

    def to_json(self) -> dict[str, Any]:
        """Return the outline as JSON."""
        return {
            "tables": [
                {"name": s.name, "table": s.table, "owners": list(s.owners), "public": not s.owners}
                for s in self.sources
            ],
            "joins": list(self.joins),
            "participants": dict(self.participants),
            "alternatives": self.alternatives,
            "signed": self.signed,
            "groups": self.groups,
        }


def outline_of(query: SqlQuery, schema: Schema) -> Outline:
    """Return the outline of a question, from the public schema alone.

    Raises:
        QueryError: when the question does not fit the schema.
    """
    rewritten = query.rewrite(schema)
    named = rewritten.named
    tree = named.resolved
    views = {cte.alias for cte in tree.find_all(exp.CTE)}
    found = [table for table in tree.find_all(exp.Table) if table.name not in views]
    labels = _labels(found)
    sources = tuple(
        OutlineSource(
            labels[table.alias_or_name],
            real := named.table(table),
            tuple(str(owner) for owner in schema.owners.get(real, ())),
        )
        for table in found
    )
    kinds = Counter(slot.entity for slot in rewritten.slots)
    if rewritten.single_owner:
        # Several tables say whose the row is, and all of them name the same one.
        kinds = Counter(dict.fromkeys(kinds, 1))
    return Outline(
        sources,
        tuple(_joins(tree, labels, schema.dialect)),
        tuple(kinds.items()),
        rewritten.keyed,
        rewritten.signed,
        rewritten.groups,
    )


def _labels(tables: list[Any]) -> dict[str, str]:
    """Return a readable name for every source: a table's own, numbered where it occurs again."""
    times = Counter(table.name for table in tables)
    seen: Counter[str] = Counter()
    labels: dict[str, str] = {}
    for table in tables:
        seen[table.name] += 1
        again = times[table.name] > 1
        labels[table.alias_or_name] = f"{table.name} {seen[table.name]}" if again else table.name
    return labels


def _joins(tree: Any, labels: dict[str, str], dialect: str) -> list[str]:
    found: dict[str, None] = {}
    conditions = [where.this for where in tree.find_all(exp.Where)]
    conditions += [join.args["on"] for join in tree.find_all(exp.Join) if join.args.get("on")]
    for condition in (part for whole in conditions for part in conjuncts(whole)):
        if condition.find(exp.Query):
            continue
        columns = list(condition.find_all(exp.Column))
        if len({column.table for column in columns}) > 1:
            found[_written(condition, labels, dialect)] = None
    return list(found)


def _written(condition: Any, labels: dict[str, str], dialect: str) -> str:
    shown = condition.copy()
    for column in shown.find_all(exp.Column):
        label = labels.get(column.table, column.table)
        column.set("table", exp.to_identifier(label, quoted=" " in label))
        column.set("this", exp.to_identifier(column.name))
    return str(shown.sql(dialect=dialect))
