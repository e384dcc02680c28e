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
Picture = Annotated[
    Path | None, typer.Option("--figure", help="Draw degrees, clustering, distances, spectrum.")
]


@command
def compare(
    network: options.Network,
    synthetic: Made,
    figure: Picture = None,
    as_json: options.Json = False,
) -> None:
    """Compare a synthetic graph with the true one. What it prints is as private as the truth."""
    from tulle.cli.tables import simple
    from tulle.metrics.comparison import compare as measure

    truth = network.read()
    made = options.Network(synthetic, network.nodes).read()
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
    """Return a graph with the numbering of the true one, where all its names occur there.

    An edge list holds no nodes without edges; matched by name, they are there again.
    """
    import numpy as np

    from tulle.graphs.data import Graph

    place = {name: number for number, name in enumerate(truth.labels.tolist())}
    names = made.labels.tolist()
    if any(name not in place for name in names):
        return made
    numbers = np.array([place[name] for name in names], dtype=np.int64)
    return Graph.from_edges(numbers[made.edges()], nodes=truth.node_count)
