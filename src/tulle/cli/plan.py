"""``tulle plan``: which mechanisms could answer, their price and predicted error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tulle.cli import options
from tulle.cli.asking import Asking
from tulle.cli.common import command, in_options, print_json, printer, waiting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tulle.core.dataset import Dataset
    from tulle.core.plan import Plan


@command
def plan(
    edges: options.Edges,
    question: options.Question,
    unit: options.UnitName,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    mechanism: options.MechanismName = None,
    option: options.MechanismOptions = None,
    like: options.Like = None,
    nodes: options.Nodes = None,
    columns: options.Columns = None,
    ignore: options.Ignore = None,
    format: options.Format = None,
    as_json: options.Json = False,
) -> None:
    """Show the mechanisms for a question, their price and predicted error. Spends nothing."""
    price = options.Price.of(unit, epsilon, delta)
    query = options.parse_question(question)
    settings = options.parse_options(option)
    network = options.Network(edges, nodes, columns, tuple(ignore or ()), format)
    graph, public = network.read(), options.read_like(like)

    asking = Asking(query, price, mechanism, public, settings)
    present(graph, asking, network.public(price), as_json=as_json)


def present(dataset: Dataset, asking: Asking, public: str, *, as_json: bool, **more: Any) -> None:
    """Plan a question and print the plan; ``public`` says what everybody may know.

    ``more`` goes into the JSON document as it is.
    """
    with waiting("planning"):
        made = asking.plan(dataset)
    if as_json:
        print_json({**made.to_json(), "public": public, **more, "spent": "0"})
        return
    out = printer()
    out.print(f"Plan for {made.query}", style="bold")
    out.print(str(made.guarantee))
    show(out, made)
    for note in (*notes(made), public):
        out.print(note, style="dim")
    out.print("Nothing is spent.", style="green")


def show(out: Console, made: Plan) -> None:
    """Print the offers, one table for each question that is asked of the data."""
    for part in (*((made,) if made.offers else ()), *made.parts):
        if made.parts:
            out.print(f"  {part.query}", style="bold")
        out.print(table(part))


def table(leaf: Plan) -> Table:
    """Return the offers for one question as a table, the chosen one marked."""
    from tulle.cli.tables import simple

    drawn = simple()
    drawn.add_column("")
    drawn.add_column("mechanism")
    drawn.add_column("price")
    drawn.add_column("median error", justify="right")
    drawn.add_column("95 % within", justify="right")
    drawn.add_column("on any data", justify="right")
    for row in leaf.rows():
        shown = [content for name, content in row.items() if name != "query"]
        drawn.add_row(*shown, style="bold" if row["chosen"] else "dim")
    return drawn


def notes(made: Plan) -> list[str]:
    """Return what belongs below the table, in the words of the command line."""
    return [in_options(note) for note in made.notes()]
