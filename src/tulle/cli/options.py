"""The options that several commands share, and the values behind them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli.asking import Asking
from tulle.cli.common import progress, show_custodian
from tulle.core.errors import InputError, UnitError
from tulle.core.validate import counted, whole_number

if TYPE_CHECKING:
    from tulle.core.dataset import Dataset
    from tulle.core.query import Query
    from tulle.core.unit import Unit
    from tulle.graphs.data import Graph

_READING = "Reading the network"

_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "\\t": "\t"}

GRAPH_UNITS = ("edge", "node", "edge-day", "edge-week", "edge-month", "edge-year")
"""Who can be protected in a network."""

Edges = Annotated[
    Path,
    typer.Argument(
        metavar="EDGES",
        help="The network: an edge list (.csv, .tsv, .txt), .parquet, .mtx or .graphml, also .gz.",
        show_default=False,
    ),
]
Question = Annotated[
    str,
    typer.Argument(
        metavar="QUESTION",
        help="What to ask: triangles, stars(2), '3 * triangles / stars(2)'.",
        show_default=False,
    ),
]
UnitName = Annotated[
    str,
    typer.Option(
        "--unit",
        help="Who is protected: edge or node; with --time also edge-day, -week, -month, -year.",
        show_default=False,
    ),
]
# Budgets stay text, so that 0.1 is one tenth and 1/3 can be written.
Epsilon = Annotated[
    str,
    typer.Option(
        "--epsilon",
        help="What the answer may cost, such as 0.5: less protects more, and the error grows.",
        show_default=False,
    ),
]
Delta = Annotated[str, typer.Option("--delta", help="Allows mechanisms that need a delta.")]
MechanismName = Annotated[
    str | None, typer.Option("--mechanism", help="Use this one, not the one predicted best.")
]
MechanismOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="A setting of the mechanism that --mechanism names; may be repeated.",
    ),
]
Like = Annotated[
    Path | None,
    typer.Option("--like", help="A similar network that is public: errors are predicted on it."),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="N|FILE",
        help="Who is in the network, edges or not: a number N for the ids 0 to N-1, or a file of "
        "names (.txt: one per line; .csv, .tsv, .parquet: the first column, under a header).",
        rich_help_panel=_READING,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B",
        help="The two columns of an edge list, by name or from 0.",
        rich_help_panel=_READING,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row names the columns; needed where it is not said by usual names "
        "such as source,target and ids are not numbers.",
        rich_help_panel=_READING,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="What separates the columns: comma, semicolon, tab, space or a character.",
        rich_help_panel=_READING,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        help="What to leave out: weights, direction; may be repeated.",
        rich_help_panel=_READING,
    ),
]
BadRecords = Annotated[
    str,
    typer.Option(
        "--bad-records",
        help="What to do with lines of an edge list that are not two nodes: refuse or drop.",
        rich_help_panel=_READING,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="edges, parquet, mtx or graphml, if the name does not say.",
        rich_help_panel=_READING,
    ),
]
Attributes = Annotated[
    Path | None,
    typer.Option(
        "--attributes",
        metavar="FILE",
        help="What is known of the nodes (.csv, .tsv, .parquet): the first column names them, each "
        "other one is an attribute for conditions, as in subgraphs('a-b', where='a.x = b.x').",
        rich_help_panel=_READING,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="The column that says of which day an edge is, for --unit edge-week and the like; "
        "with --columns, and names in the first row.",
        rich_help_panel=_READING,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@dataclass(frozen=True)
class Price:
    """Who is protected and what an answer may cost, checked."""

    unit: Unit
    epsilon: str
    delta: str

    @classmethod
    def of(cls, unit: str, epsilon: str, delta: str, units: Sequence[str]) -> Price:
        """Check all before any data is read; ``units`` are those that such data can have."""
        from tulle.core import validate
        from tulle.core.unit import Unit

        if unit not in units:
            raise UnitError(
                f"--unit {unit!r} is not one that such data has.{validate.meant(unit, units)} Say "
                f"who is protected with one of: {', '.join(units)}."
            )
        known = Unit.of(unit)
        validate.positive(epsilon=epsilon)
        validate.delta(delta=delta)
        return cls(known, epsilon, delta)


@dataclass(frozen=True)
class AnswerOptions:
    """How a question is to be answered: what the user leaves open, the plan chooses."""

    delta: Delta = "0"
    mechanism: MechanismName = None
    option: MechanismOptions = None

    def price(self, unit: str, epsilon: str, units: Sequence[str] = GRAPH_UNITS) -> Price:
        """Return what the answer may cost; all is checked before any data is read."""
        parse_options(self.option)
        return Price.of(unit, epsilon, self.delta, units)

    def asking(self, query: Query, price: Price, like: Dataset | None) -> Asking:
        """Return the question with all that was said about how to answer it."""
        return Asking(query, price, self.mechanism, like, parse_options(self.option))


@dataclass(frozen=True)
class Network:
    """Where the network lies and how to read it."""

    path: Edges
    nodes: Nodes = None
    columns: Columns = None
    header: Header = None
    delimiter: Delimiter = None
    ignore: Ignore = None
    format: Format = None
    attributes: Attributes = None
    time: Time = None
    bad_records: BadRecords = "refuse"

    @property
    def name(self) -> str:
        """What the network is called: like its file."""
        return "standard-input" if self.piped else self.path.name

    @property
    def piped(self) -> bool:
        """Whether the network comes from standard input."""
        return str(self.path) == "-"

    def read(self) -> Graph:
        """Read it, with a progress bar if it takes long."""
        if not self.piped:
            return self._read(self.path)
        with tempfile.TemporaryDirectory(prefix="tulle-") as folder:
            held = Path(folder) / "standard-input.csv"
            with held.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            return self._read(held)

    def _read(self, path: Path) -> Graph:
        from tulle.graphs.data import Graph

        with progress() as report:
            graph = Graph.read(
                path,
                format=self.format,
                nodes=self.declared(),
                columns=_columns(self.columns),
                header=self.header,
                delimiter=_DELIMITERS.get(self.delimiter or "", self.delimiter),
                bad_records=self.bad_records,
                ignore=tuple(self.ignore or ()),
                time=self.time,
                progress=report,
            )
        if graph.dropped.outside:
            left_out = counted(graph.dropped.outside, "edge")
            show_custodian(f"Left out: {left_out} of nodes that --nodes lacks.")
        show_custodian(graph.what_was_read())
        if self.attributes is not None:
            return graph.with_attributes(nodes=str(self.attributes))
        return graph

    def declared(self) -> int | str | None:
        """Return the declared nodes: a number, or the name of a file."""
        given = self.nodes
        number = None if given is None else whole_number(given.removeprefix("-"))
        if given is None or number is None:
            return given
        return -number if given.startswith("-") else number

    def public(self, price: Price) -> str:
        """Say what everybody may know about the network under the unit."""
        if price.unit.base != "edge":
            return "Public: nothing about the network."
        if isinstance(nodes := self.declared(), int):
            return f"Public: that there are {counted(nodes, 'node')}, as declared with --nodes."
        if nodes is not None:
            return "Public: the set of nodes, as declared with --nodes."
        return (
            "Public: the set of nodes, read off the file. If whether somebody has an edge at all "
            "must be hidden, declare it with --nodes."
        )


def check_public(name: str, path: Path | None, data: Path) -> None:
    """Refuse the file of the data itself where a public one is due; neither is read.

    Raises:
        InputError: when it is the same file, by whichever name.
    """
    # A database may be a URL, longer than any name of a file.
    there = path is not None and os.path.exists(path) and os.path.exists(data)
    if there and os.path.samefile(str(path), data):
        raise InputError(
            f"{name} names the data itself: what is planned on it would be read off its records, "
            "and no epsilon covers that. Name other data that is public, or leave it out."
        )


def read_like(path: Path | None, network: Network) -> Graph | None:
    """Read the public stand-in, if one was named, in the way that the network is read."""
    if path is None:
        return None
    check_public("--like", path, network.path)
    return replace(network, path=path, nodes=None, format=None, attributes=None).read()


def parse_question(text: str) -> Query:
    """Return the question that the text asks about a graph."""
    from tulle.core import registry
    from tulle.core.query import parse

    return parse(text, registry.find("query", "graph"))


def parse_options(named: list[str] | None) -> dict[str, Any]:
    """Read NAME=VALUE pairs; values stay text, which every setting understands."""
    options: dict[str, Any] = {}
    for pair in named or ():
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise InputError(f"--option is written NAME=VALUE; got {pair!r}.")
        options[name] = value
    return options


def _columns(text: str | None) -> list[int | str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    numbers = [whole_number(name) for name in names]
    return list(names) if None in numbers else [number for number in numbers if number is not None]
