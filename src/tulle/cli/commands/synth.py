"""``tulle synth``: a whole synthetic graph, with its release beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle import _index
from tulle.cli import answering, options
from tulle.cli.asking import Asking
from tulle.cli.common import command, printer
from tulle.core.errors import InputError
from tulle.core.validate import whole_number

if TYPE_CHECKING:
    from tulle.core.query import Query
    from tulle.core.release import Release

_MODELS = [name for name, _, _ in _index.OFFERED["synthetic"] if name != "per_node"]

ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        help=f"What the graph is made from: {', '.join(_MODELS)}.",
    ),
]
Names = Annotated[
    bool,
    typer.Option(
        "--names",
        help="Give nodes the names of the file: with topm, response or communities only.",
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition",
        metavar="COLUMN",
        help="A column of --attributes that is public and is kept: with communities only.",
    ),
]
ModelOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A setting of the model; may be repeated."),
]
GraphFile = Annotated[
    Path,
    typer.Option(
        "--out",
        help="Where the synthetic graph goes, by its ending .csv, .tsv, .txt, .mtx, .graphml or "
        ".parquet; its release is put beside it as FILE.release.json.",
        show_default=False,
    ),
]


@command
def synth(
    network: options.Network,
    unit: options.UnitName,
    epsilon: options.Epsilon,
    out: GraphFile,
    booking: answering.Booking,
    model: ModelName = "auto",
    option: ModelOptions = None,
    delta: options.Delta = "0",
    names: Names = False,
    partition: Partition = None,
    as_json: options.Json = False,
) -> None:
    """Make a synthetic graph and record its price. Nodes have numbers, unless --names is given.

    Per node it is made of the degree distribution and a few counts: synthetic_per_node().
    """
    from tulle.graphs.synthesis.query import synthetic

    price = options.Price.of(unit, epsilon, delta, options.GRAPH_UNITS)
    asked = options.parse_options(option) | ({"names": True} if names else {})
    query: Query = synthetic(model, **asked)
    if price.unit.base == "node":
        query = _per_node(model, asked, partition)
    ledger_account = booking.ledger_account(network.name)
    _check_ending(out)
    beside = out.with_name(out.name + ".release.json")
    for file in (out, beside):
        answering.check_out(file)
    graph = network.read()
    if partition is not None:
        columns = getattr(graph, "node_attributes", {})
        if partition not in columns:
            known = ", ".join(sorted(columns)) or "none; give a table with --attributes"
            raise InputError(f"There is no column {partition!r} of nodes. Columns: {known}.")
        query = synthetic(model, **asked, partition=columns[partition].tolist())

    def write(release: Release) -> Release:
        release.value.write(out)
        return release

    asking = Asking(query, price, None, None, {})
    answering.answer(
        graph,
        asking,
        ledger_account,
        network.public(price),
        again=booking.again,
        out=beside,
        as_json=as_json,
        after=write,
    )
    if not as_json:
        printer().print(f"The network itself is in {out}.", style="green")


def _per_node(model: str, asked: dict[str, Any], partition: str | None) -> Query:
    """Return the question for a graph per node, which no model answers."""
    from tulle.graphs.synthesis.auto.per_node import synthetic_per_node

    if model != "auto" or asked.keys() - {"group", "groups"} or partition is not None:
        raise InputError(
            "Per node there are no models and no names: leave out --model, --names and "
            "--partition. --option group=COLUMN --option groups=NUMBER keeps how many edges are "
            "inside groups."
        )
    groups = whole_number(str(asked.get("groups", "")))
    return synthetic_per_node(**asked | ({} if groups is None else {"groups": groups}))


def _check_ending(out: Path) -> None:
    """Refuse a file that names no format, before anything is paid."""
    endings = [suffix.lower() for suffix in out.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    known = (".csv", ".tsv", ".txt", ".edges", ".mtx", ".graphml", ".parquet")
    if not endings or endings[-1] not in known:
        raise InputError(f"--out {out} must end in {', '.join(known)}; most also with .gz.")
