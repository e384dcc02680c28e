"""What stands behind a name of Spark: rows that are stored, a SELECT, or something that computes.

A frame that is registered as a view is a plan, and its expressions are evaluated whenever it is
read: a cast in it may stop a question at one person's row. So the plan is gone through, and only
what is listed here counts as stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tulle.sql.schema.catalogue import Definition

NOT_STORED = (
    "is a view that computes something when it is read, and Spark may fail at a row of it. Declare "
    "the tables that it reads and ask about those; or make it rows first: "
    "frame.localCheckpoint().createOrReplaceTempView(...), or CREATE TABLE ... AS SELECT * FROM it."
)

GUESSED = (
    "is a frame over files whose columns or types Spark chose by looking at rows or folders, so "
    "one row may change them. Say them: of CSV with spark.read.schema(...) and without "
    "inferSchema, of folders with a path in tables= of Database.connect. Or make it a table with "
    "CREATE TABLE ... USING; JSON needs that in any case, since nothing "
    "tells whether its types were said."
)

SWALLOWED = (
    "is a frame over files in which a record may go on over several lines (multiLine), or of which "
    "Spark reads no more after what it cannot read (ignoreCorruptFiles), so that one record may "
    "swallow those after it. Read the files without that option."
)

NAMES_ONLY = "partitioncolumntypeinference"
"""The option with which this library marks that folders were read as texts: its value is false."""

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

_PLAIN = re.compile("boolean|tinyint|smallint|int|bigint|float|double|string|binary|date")
"""Types of which whatever lies in a file is a value; for others Spark computes, and may fail."""

_OUTSIDE = {"LogicalRelation", "HiveTableRelation", "DataSourceV2Relation"}
"""Nodes of a plan whose rows lie in files."""

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
        plan = listed(plan.children())[0]
    if _kind(plan) == "View":
        text = plan.desc().viewText()
        if text.isDefined():
            there = [part.lower() for part in listed(plan.desc().viewCatalogAndNamespace())]
            if there and there != [part.lower() for part in place]:
                return PlanContent(Definition(reason=NOT_STORED))
            return PlanContent(Definition(text.get(), tuple(columns)))
    nodes = list(_nodes(plan))
    if not all(_is_stored(node) for node in nodes):
        return PlanContent(Definition(reason=NOT_STORED))
    if any(_swallows(node) for node in nodes):
        return PlanContent(Definition(reason=SWALLOWED))
    if any(_is_guessed(node) for node in nodes):
        return PlanContent(Definition(reason=GUESSED))
    return PlanContent(program=any(_is_program(node) for node in nodes))


def columns_to_read(frame: Any) -> list[str]:
    """Return the columns of a table in files in which a value may be none that Spark can read.

    Of files of text all of them: a line may have more columns than Spark reads.
    """
    nodes = list(_nodes(frame._jdf.queryExecution().analyzed()))
    if not any(_kind(node) in _OUTSIDE for node in nodes):
        return []
    text = any(
        _kind(node) == "LogicalRelation" and _format(node.relation()) in _TEXTS for node in nodes
    )
    fields = frame.schema.fields
    return [f.name for f in fields if text or _PLAIN.fullmatch(f.dataType.simpleString()) is None]


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in listed(plan.children()):
        yield from _nodes(child)


def _is_stored(node: Any) -> bool:
    kind = _kind(node)
    if kind in _ABOVE:
        return kind != "Project" or all(_is_total(e) for e in listed(node.expressions()))
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
    return known and all(_is_total(child) for child in listed(expression.children()))


def _is_file(relation: Any) -> bool:
    if _kind(relation) != "HadoopFsRelation":
        return False
    kind = _format(relation)
    given = _options(relation)
    if kind in _FORMATS:
        # How days of another calendar are read: this says that they are not.
        return "EXCEPTION" not in given.values()
    return kind in _TEXTS and set(given) <= _OPTIONS and given.get("mode") != "FAILFAST"


def _swallows(node: Any) -> bool:
    """Say whether what is in one record of a file may change how others are read."""
    if _kind(node) != "LogicalRelation":
        return False
    given = _options(node.relation())
    return "TRUE" in (given.get("multiline"), given.get("ignorecorruptfiles"))


def _is_guessed(node: Any) -> bool:
    """Say whether Spark may have chosen columns or types of files by what lies in them."""
    if _kind(node) != "LogicalRelation" or node.catalogTable().isDefined():
        # A table's types are written down when it is made.
        return False
    relation = node.relation()
    kind, given = _format(relation), _options(relation)
    if kind == "csv":
        names = relation.dataSchema().fieldNames()
        if given.get("inferschema") == "TRUE" or any(re.fullmatch(r"_c\d+", n) for n in names):
            return True
    folders = len(relation.partitionSchema().fieldNames())
    return kind == "json" or (kind != "delta" and folders > 0 and given.get(NAMES_ONLY) != "FALSE")


def _format(relation: Any) -> str:
    return str(relation.fileFormat().toString().lower())


def _options(relation: Any) -> dict[str, str]:
    options = listed(relation.options().toSeq())
    return {str(pair._1()).lower(): str(pair._2()).upper() for pair in options}


def _kind(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def listed(sequence: Any) -> list[Any]:
    """Return the members of a sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.size())]
