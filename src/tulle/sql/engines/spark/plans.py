"""What stands behind a name of Spark: rows that are stored, a SELECT, or something that computes.

A frame that is registered as a view is a plan, and its expressions are evaluated whenever it is
read: a cast in it may stop a question at one person's row. So the plan is gone through, and only
what is listed here counts as stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tulle.sql.schema.catalogue import Definition

NOT_STORED = (
    "is a view that computes something when it is read, and Spark may fail at a row of it. Declare "
    "the tables that it reads and ask about those; or make it rows first: "
    "frame.localCheckpoint().createOrReplaceTempView(...), or CREATE TABLE ... AS SELECT * FROM it."
)

_ABOVE = {"SubqueryAlias", "View", "Repartition", "Project"}
"""Nodes of a plan that pass rows on."""

_VALUES = {"AttributeReference", "Alias", "Literal"}
"""Expressions that cannot fail."""

_FORMATS = {"parquet", "orc", "delta", "avro"}
"""Files in which the types of the columns are written down."""

_TEXTS = {"csv", "json", "text"}
"""Files of text; what does not fit a type is NULL, unless an option says otherwise."""

_OPTIONS = {
    *("path", "paths", "header", "sep", "delimiter", "quote", "escape", "nullvalue", "emptyvalue"),
    *("inferschema", "multiline", "comment", "mode", "serialization.format", "mergeschema"),
    *("recursivefilelookup", "basepath"),
}
"""Options of files of text with which no row makes reading fail; of mode, not FAILFAST."""

_SERDES = ("parquet", "orc", "lazysimpleserde")
_CONNECTORS = ("org.apache.iceberg.", "io.delta.", "org.apache.spark.sql.delta.")


@dataclass(frozen=True)
class PlanContent:
    """What a plan turned out to be; stored rows when both are empty."""

    definition: Definition | None = None
    program: bool = False
    """Whether the rows come from a program, so that nobody can know whether reading them fails."""


def read_plan(frame: Any, columns: Mapping[str, str], place: tuple[str, str]) -> PlanContent:
    """Return what a table or view of the catalogue is; nothing of it is run."""
    if not hasattr(frame, "_jdf"):
        # Spark Connect shows no plans.
        return PlanContent(Definition(reason=NOT_STORED))
    plan = frame._jdf.queryExecution().analyzed()
    while _kind(plan) == "SubqueryAlias":
        plan = _list(plan.children())[0]
    if _kind(plan) == "View":
        text = plan.desc().viewText()
        if text.isDefined():
            there = [part.lower() for part in _list(plan.desc().viewCatalogAndNamespace())]
            if there and there != [part.lower() for part in place]:
                return PlanContent(Definition(reason=NOT_STORED))
            return PlanContent(Definition(text.get(), tuple(columns)))
    nodes = list(_nodes(plan))
    if not all(_is_stored(node) for node in nodes):
        return PlanContent(Definition(reason=NOT_STORED))
    return PlanContent(program=any(_is_program(node) for node in nodes))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _list(plan.children()):
        yield from _nodes(child)


def _is_stored(node: Any) -> bool:
    kind = _kind(node)
    if kind in _ABOVE:
        return kind != "Project" or all(_is_total(e) for e in _list(node.expressions()))
    if kind in {"LocalRelation", "LogicalRDD", "Range", "OneRowRelation", "InMemoryRelation"}:
        return True
    if kind == "LogicalRelation":
        return _is_file(node.relation())
    if kind == "HiveTableRelation":
        serde = node.tableMeta().storage().serde()
        return bool(serde.isDefined()) and any(s in serde.get().lower() for s in _SERDES)
    if kind == "DataSourceV2Relation":
        return str(node.table().getClass().getName()).startswith(_CONNECTORS)
    return False


def _is_program(node: Any) -> bool:
    return _kind(node) == "LogicalRDD" and not node.rdd().isCheckpointed()


def _is_total(expression: Any) -> bool:
    kind = _kind(expression)
    if kind == "Cast" and expression.evalMode().toString() != "TRY":
        return False
    if kind == "StaticInvoke" and expression.functionName() != "readSidePadding":
        return False
    known = kind in {*_VALUES, "Cast", "StaticInvoke"}
    return known and all(_is_total(child) for child in _list(expression.children()))


def _is_file(relation: Any) -> bool:
    if _kind(relation) != "HadoopFsRelation":
        return False
    kind = relation.fileFormat().toString().lower()
    if kind in _FORMATS:
        return True
    options = relation.options().toSeq()
    given = {str(pair._1()).lower(): str(pair._2()).upper() for pair in _list(options)}
    return kind in _TEXTS and set(given) <= _OPTIONS and given.get("mode") != "FAILFAST"


def _kind(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def _list(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
