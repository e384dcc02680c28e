"""``tulle compare``: how close a synthetic graph is to the true one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tulle.cli import options
from tulle.cli.common import command, print_json, printer

if TYPE_CHECKING:
    from tulle.graphs.data import Graph

Made = Annotated[
    Path,
    typer.Argument(metavar="SYNTHETIC", help="The synthetic graph.", show_default=False),
]
MadeHeader = Annotated[
    bool | None,
    typer.Option(
        "--made-header/--no-made-header",
        help="Whether the first row of the synthetic graph's file names its columns.",
    ),
]
Picture = Annotated[
    Path | None, typer.Option("--figure", help="Draw degrees, clustering, distances, spectrum.")
]


@command
def compare(
    network: options.Network,
    synthetic: Made,
    figure: Picture = None,
    made_header: MadeHeader = None,
    as_json: options.Json = False,
) -> None:
    """Compare a synthetic graph with the true one. What it prints is as private as the truth."""
    from tulle.cli.output import simple
    from tulle.metrics.comparison import compare as measure

    truth = network.read()
    # A synthetic graph has numbers for nodes, or the same names: a list of names would cut it.
    nodes = network.nodes if isinstance(network.declared(), int) else None
    made = options.Network(synthetic, nodes, header=made_header).read()
    found = measure(truth, aligned(made, truth))
    if figure is not None:
        found.figure(figure)
    if as_json:
        print_json(found.to_json())
        return
    drawn = simple()
    lines = found.table()
    for name in lines[0]:
        drawn.add_column(name, justify="left" if name in ("question", "measure") else "right")
    for line in lines:
        drawn.add_row(*line.values())
    console = printer()
    console.print(drawn)
    console.print(
        "These numbers are exact: they are for whoever holds the data, not for publication.",
        style="dim",
    )


def aligned(made: Graph, truth: Graph) -> Graph:
    """Return a graph with the numbering of the true one, where it can be matched.

    Synthetic graphs number their nodes by the true order, unless names were asked for. An edge
    list holds no nodes without edges; once matched, they are there again.
    """
    import numpy as np

    from tulle.graphs.data import Graph

    place = {name: number for number, name in enumerate(truth.labels.tolist())}
    names = made.labels.tolist()
    if all(type(name) is int and name < truth.node_count for name in names):
        return Graph.from_edges(made.labels[made.edges()], nodes=truth.node_count)
    if any(name not in place for name in names):
        return made
    numbers = np.array([place[name] for name in names], dtype=np.int64)
    return Graph.from_edges(numbers[made.edges()], nodes=truth.node_count)
