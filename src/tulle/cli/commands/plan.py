"""``tulle plan``: which mechanisms could answer, their price and predicted error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tulle.cli import options
from tulle.cli.common import command, in_options, print_json, printer, waiting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tulle.cli.asking import Asking
    from tulle.core.dataset import Dataset
    from tulle.core.plan import Plan


_NEEDS = re.compile(r"it needs (\w+)=")


@command
def plan(
    network: options.Network,
    question: options.Question,
    unit: options.UnitName,
    epsilon: options.Epsilon,
    answer_options: options.AnswerOptions,
    like: options.Like = None,
    as_json: options.Json = False,
) -> None:
    """Show the mechanisms for a question, their price and predicted error. Spends nothing."""
    price = answer_options.price(unit, epsilon)
    query = options.parse_question(question)
    graph, public = network.read(), options.read_like(like, network)
    present(
        graph, answer_options.asking(query, price, public), network.public(price), as_json=as_json
    )


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
    from tulle.cli.output import simple

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
    return [in_options(_NEEDS.sub(r"it needs --option \1=...", note)) for note in made.notes()]
