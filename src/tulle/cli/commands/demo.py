"""``tulle demo``: a private answer about a network, end to end, in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli import options
from tulle.cli.common import command, print_json, printer
from tulle.core.errors import BudgetError, InputError, LedgerError, MissingExtraError
from tulle.core.validate import counted

if TYPE_CHECKING:
    from rich.console import Console

    from tulle.core.plan import Plan
    from tulle.core.release import Release
    from tulle.graphs.data import Graph
    from tulle.ledger.ledger import Ledger
    from tulle.ledger.session import Session

PEOPLE = 4_000
BUDGET = "3"
ACCOUNT = "made-up friends"
QUESTIONS = (
    ("edges", "0.2", "friendships"),
    ("triangles", "0.5", "trios of mutual friends"),
    ("stars(2)", "0.5", "times two people share a friend"),
    ("3 * triangles / stars(2)", "0.8", "how often those two are friends"),
    ("degree_distribution", "0.5", "degree distribution"),
)
TOO_MUCH = ("cliques(4)", "1")

_READABLE = 96
"""Paragraphs wider than this many characters are hard to read."""


@dataclass(frozen=True)
class DemoAnswer:
    """A release beside the truth, which only made-up data may be shown with."""

    words: str
    plan: Plan
    release: Release
    truth: Any
    predicted: float
    """Half-width of the predicted 95 % range; of a vector, the predicted mean error."""

    @property
    def off(self) -> float:
        """How wrong the answer is; of a vector, on average."""
        import numpy as np

        return float(np.abs(np.asarray(self.release.value) - np.asarray(self.truth)).mean())

    @property
    def single(self) -> bool:
        """Whether the answer is one number."""
        return self.plan.query.shape == "scalar"


@command
def demo(
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")] = Path("demo"),
    as_json: options.Json = False,
) -> None:
    """Show it all on a made-up network: plan, pay, ask, be refused, verify, look."""
    console = printer(quiet=as_json)
    console.width = min(console.width, _READABLE)
    files = _prepare(out)
    graph, like = _make_network(console, files["network"])
    _show_plan(console, graph, like)
    ledger, session = _open_account(console, files["ledger"], graph)
    answers = [_ask(session, graph, like, *question) for question in QUESTIONS]
    _show_answers(console, answers, session)
    _ask_again(console, session, like)
    refusal = _overspend(console, session, like)
    sound = _verify(console, ledger, answers, files["release"])
    drawn = _draw(console, answers, files["figure"])
    _say_goodbye(console, files, drawn)
    if as_json:
        print_json(
            {
                "files": {name: str(path) for name, path in files.items()},
                "answers": [_to_json(answer) for answer in answers],
                "refused": refusal,
                "sound": sound,
                "remaining": str(session.remaining.epsilon),
                "figure_drawn": drawn,
            }
        )


def _prepare(folder: Path) -> dict[str, Path]:
    """Make the folder and clear away the ledger of an earlier demonstration, and no other."""
    from tulle.ledger.ledger import Ledger

    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder} is a file; name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "network": folder / "made-up-network.csv",
        "ledger": folder / "demo.ledger",
        "release": folder / "triangles.release.json",
        "figure": folder / "demo.png",
    }
    old = files["ledger"]
    if old.exists():
        try:
            ours = [account.name for account in Ledger(old, create=False).accounts()] == [ACCOUNT]
        except LedgerError:
            ours = False
        if not ours:
            raise InputError(
                f"{old} is not the ledger of an earlier demonstration, so it is left alone. "
                "Name another folder with --out."
            )
        old.unlink()
    return files


def _make_network(console: Console, path: Path) -> tuple[Graph, Graph]:
    from tulle.graphs.data import Graph
    from tulle.graphs.generators import social_network

    social_network(PEOPLE, seed=20).write(path)
    graph = Graph.read(path, nodes=PEOPLE)
    _title(console, "A network")
    console.print(
        f"{PEOPLE:,} people and their friendships, in communities with a few very sociable "
        f"members. They are made up, and written to {path}.\n"
    )
    _pair(console, "Protected", "every single friendship (unit: edge)")
    _pair(console, "Public", f"that there are {PEOPLE:,} people")
    _pair(
        console,
        "Price",
        "epsilon: with one friendship more or less, the chance of any answer changes by a factor "
        "of e^epsilon at most",
    )
    return graph, social_network(PEOPLE, seed=2)


def _show_plan(console: Console, graph: Graph, like: Graph) -> None:
    from tulle.cli.commands.plan import table
    from tulle.ledger.answer import plan_for

    text, epsilon, _ = QUESTIONS[1]
    query = options.parse_question(text)
    plan = plan_for(graph, query, unit="edge", epsilon=epsilon, like=like)
    _title(console, "What would an answer cost, and how wrong would it be?")
    console.print(
        f"Before anything is spent, tulle compares the mechanisms that can answer {query} at "
        f"epsilon = {epsilon}. Typical errors come from another made-up network, declared public."
    )
    console.print(table(plan))
    console.print(f"The best is {plan.mechanism}. Nothing is spent yet.")


def _open_account(console: Console, path: Path, graph: Graph) -> tuple[Ledger, Session]:
    from tulle.ledger.ledger import Ledger

    ledger = Ledger(path)
    session = ledger.open(ACCOUNT, graph, unit="edge", epsilon=BUDGET)
    _title(console, "Asking")
    console.print(
        f"An account in {path} may spend epsilon = {BUDGET} in all. Each price is on disk before "
        "the first random bit is drawn."
    )
    return ledger, session


def _ask(
    session: Session, graph: Graph, like: Graph, text: str, epsilon: str, words: str
) -> DemoAnswer:
    query = options.parse_question(text)
    plan = session.plan(query, epsilon=epsilon, like=like)
    release = session.ask(query, epsilon=epsilon, like=like)
    return DemoAnswer(words, plan, release, query.truth(graph), _predicted(plan))


def _predicted(plan: Plan) -> float:
    """Return the predicted half-width of the 95 % range; of a vector, the mean error."""
    if plan.query.shape == "vector":
        return plan.chosen.prediction.rank()
    return plan.half_width(0.95) or 0.0


def _show_answers(console: Console, answers: list[DemoAnswer], session: Session) -> None:
    from tulle.cli.output import error_figure, figure, simple

    drawn = simple()
    drawn.add_column("question", overflow="fold")
    for title in ("epsilon", "released", "off by", "predicted"):
        drawn.add_column(title, justify="right", no_wrap=True)
    for answer, (_, epsilon, _) in zip(answers, QUESTIONS, strict=True):
        off, predicted = error_figure(answer.off), f"± {error_figure(answer.predicted)}"
        if not answer.single:
            off, predicted = f"{off} each", f"{error_figure(answer.predicted)} each"
        value = figure(answer.release.value, first=0)
        drawn.add_row(str(answer.plan.query), epsilon, value, off, predicted)
    console.print(drawn)
    console.print(
        "Predicted is what 19 of 20 errors stay within, known before the price was paid; for the "
        "distribution, the mean error of a number. How far they are off can be shown only because "
        "the network is made up: no release ever says it. "
        f"Left in the account: {session.remaining}."
    )


def _ask_again(console: Console, session: Session, like: Graph) -> None:
    from tulle.cli.output import figure

    text, epsilon, _ = QUESTIONS[1]
    before = session.remaining
    query = options.parse_question(text)
    release = session.ask(query, epsilon=epsilon, like=like)
    free = session.remaining == before
    _title(console, "Asking again")
    console.print(
        f"{query} a second time: {figure(release.value)} again, the kept answer"
        f"{', at no cost' if free else ''}. Two fresh answers would give away twice as much. What "
        "is computed from answers that are out, such as their ratio, is free as well."
    )


def _overspend(console: Console, session: Session, like: Graph) -> str:
    text, epsilon = TOO_MUCH
    query = options.parse_question(text)
    try:
        session.ask(query, epsilon=epsilon, like=like)
    except BudgetError as error:
        _title(console, "Asking too much")
        console.print(f"{query} at epsilon = {epsilon} is refused:\n")
        console.print(str(error), style="red")
        return str(error)
    raise LedgerError("The demonstration overspent its account, which must not be possible.")


def _verify(console: Console, ledger: Ledger, answers: list[DemoAnswer], path: Path) -> bool:
    from tulle.core.release import Release

    answers[1].release.save(path)
    problems = ledger.verify(head=ledger.head(), releases=[Release.load(path)])
    _title(console, "Is the ledger intact?")
    if problems:
        console.print("No: " + "; ".join(map(str, problems)), style="bold red")
    else:
        head = ledger.head()
        console.print(
            f"Yes: {counted(head.count, 'entry', 'entries')}, each sealed with the digest of the "
            f"one before, and the release in {path.name} is recorded in it."
        )
    return not problems


def _draw(console: Console, answers: list[DemoAnswer], path: Path) -> bool:
    from tulle.cli.figure import Bar, draw
    from tulle.cli.output import figure

    def per_cent(answer: DemoAnswer, value: float) -> float:
        return 100 * (value / float(answer.truth) - 1)

    bars = []
    for answer in answers:
        if answer.single:
            low, high = answer.release.interval(0.95)
            places = (per_cent(answer, end) for end in (answer.release.value, low, high))
            value = answer.release.value
            released = f"{value:.3f}" if isinstance(value, float) else figure(value)
            bars.append(Bar(answer.words, released, *places))
    distribution = next(answer for answer in answers if not answer.single)
    spent = sum(float(epsilon) for _, epsilon, _ in QUESTIONS)
    try:
        draw(
            path,
            title=f"The friendships of {PEOPLE:,} made-up people, seen from outside",
            subtitle=(
                "With any one friendship more or less, the chance of these answers changes by a "
                f"factor of e^{spent:g} ≈ {math.exp(spent):.0f} at most (epsilon = {spent:g})."
            ),
            inside=distribution.truth,
            outside=distribution.release.value,
            bars=bars,
        )
    except MissingExtraError as error:
        _title(console, "No picture")
        console.print(str(error), style="yellow", soft_wrap=True)  # a command to copy
        return False
    return True


def _say_goodbye(console: Console, files: dict[str, Path], drawn: bool) -> None:
    _title(console, "Look and try")
    if drawn:
        _pair(console, "Picture", str(files["figure"]))
    _pair(console, "Ledger", f"tulle ledger show {files['ledger']}")
    _pair(console, "Plan", f"tulle plan {files['network']} 'cliques(4)' --unit edge --epsilon 0.5")
    _pair(
        console,
        "Yours",
        "tulle ask friends.csv triangles --unit edge --epsilon 1 --ledger study.ledger --budget 3",
    )
    console.print()


def _title(console: Console, text: str) -> None:
    console.print(f"\n{text}", style="bold blue")


def _pair(console: Console, name: str, content: str) -> None:
    from rich.table import Table

    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="bold", width=9)
    drawn.add_column(overflow="fold")
    drawn.add_row(name, content)
    console.print(drawn)


def _to_json(answer: DemoAnswer) -> dict[str, Any]:
    return {
        "question": str(answer.plan.query),
        "release": answer.release.to_json(),
        "error": answer.off,
        "predicted_error": answer.predicted,
    }
