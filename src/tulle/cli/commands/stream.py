"""``tulle stream``: running totals of a question in SQL, paid for once, released step by step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli import answering, options
from tulle.cli.asking import Asking, DataVersion, LedgerAccount
from tulle.cli.commands import sql
from tulle.cli.common import BAD_INPUT, command, print_json, printer, showing_progress, warn
from tulle.core.validate import counted
from tulle.sql.dialect import DEFAULT

if TYPE_CHECKING:
    from tulle.core.dataset import Dataset
    from tulle.core.release import Release
    from tulle.ledger.ledger import Ledger
    from tulle.streams.stream import KeptStream, Stream

app = typer.Typer(
    help="Release a running total again and again: paid for once, a step at a time.",
    no_args_is_help=True,
)

LedgerPath = Annotated[Path, typer.Option("--ledger", help="The ledger's file.")]
Which = Annotated[
    str, typer.Option("--stream", help="Which of the account's streams: 1 is the first opened.")
]


@dataclass(frozen=True)
class Steps:
    """The calendar of a stream, and what one person adds at most."""

    step: Annotated[
        str, typer.Option("--step", help="How long a step is: day, week, month or year.")
    ]
    first: Annotated[
        str, typer.Option("--first", help="A day of the first step, such as 2026-01-05.")
    ]
    steps: Annotated[int, typer.Option("--steps", help="How many steps there are in all.")]
    bound: Annotated[
        str,
        typer.Option(
            "--bound", help="The most that one person adds in a step, in all groups together."
        ),
    ]
    periods: Annotated[
        int | None,
        typer.Option(
            "--periods", help="Per participant: in how many steps one person counts at most."
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option("--time", help="Which time decides the step, such as trips.started_on."),
    ] = None

    def terms(self) -> dict[str, Any]:
        """Return how the stream is declared."""
        return {
            "every": self.step,
            "first": self.first,
            "steps": self.steps,
            "bound": self.bound,
            "periods": self.periods,
            "time": self.time,
        }


@dataclass(frozen=True)
class Opening:
    """Where a stream is booked, and what may be spent there."""

    ledger: LedgerPath
    account: answering.AccountName = None
    budget: answering.TotalBudget = None
    budget_delta: answering.TotalDelta = None
    composition_delta: answering.CompositionDelta = None
    version: answering.VersionName = None
    date: answering.VersionDate = None

    def account_of(self, named: str) -> LedgerAccount:
        """Return the account, as the user named it or like the database."""
        version = DataVersion.of(self.version, self.date, None, "UTC", carry=False)
        return LedgerAccount.of(
            self.ledger,
            self.account,
            named,
            self.budget,
            self.budget_delta,
            self.composition_delta,
            version,
        )


@dataclass(frozen=True)
class _Declaring(Asking):
    """A stream in place of one question, for an account that may have to be opened first."""

    def plan(self, dataset: Dataset, *, composed: bool = False) -> Any:
        """Return the price of all steps together; nothing is spent."""
        from tulle.streams.stream import named, plan_stream

        summed, terms = plan_stream(
            dataset,
            self.query,
            unit=self.price.unit,
            epsilon=self.price.epsilon,
            delta=self.price.delta,
            composed=composed,
            **self.settings,
        )
        return SimpleNamespace(
            guarantee=terms.guarantee,
            event=terms.event,
            unit=self.price.unit,
            query=named(summed.declaration),
        )


@app.command("open")
@command
def open_stream(
    connection: sql.Connection,
    question: sql.Statement,
    unit: sql.UnitName,
    epsilon: options.Epsilon,
    delta: Annotated[
        str, typer.Option("--delta", help="The delta of all steps.", show_default=False)
    ],
    opening: Opening,
    steps: Steps,
    groups: sql.Groups = None,
    dialect: sql.Dialect = DEFAULT,
    as_json: options.Json = False,
) -> None:
    """Open a stream: declare its steps and pay for all of them. Nothing is released yet."""
    from tulle.core import validate

    validate.delta(above_zero=True, delta=delta)
    price = options.Price.of(unit, epsilon, delta, sql.UNITS)
    asked: Any = sql.QuestionOptions(groups, dialect).parse(question, as_json)
    place = opening.account_of(connection.name())
    declaring = _Declaring(asked, price, None, None, steps.terms())
    with showing_progress("opening"):
        book, session = place.open(connection.open(), declaring)
        from tulle.streams.stream import Stream

        stream = Stream(session, asked, epsilon=epsilon, delta=delta, **steps.terms())
    left = book.remaining(session.name)
    _show_opened(book, session.name, stream, str(left), as_json=as_json)


@app.command()
@command
def step(
    connection: sql.Connection,
    ledger: LedgerPath,
    account: answering.OneAccount = None,
    stream: Which = "1",
    version: answering.VersionName = None,
    date: answering.VersionDate = None,
    out: answering.Out = None,
    as_json: options.Json = False,
) -> None:
    """Release the next step. It is paid for already; a step is released once."""
    from tulle.streams.stream import Stream

    answering.check_out(out)
    book, known = answering.one_account(ledger, account)
    timed = DataVersion.of(version, date, None, "UTC", carry=False)
    with showing_progress("releasing"):
        opened = connection.open()
        session = book.open(
            known.name, opened, unit=known.unit, version=timed.name, date=timed.date
        )
        found = Stream.again(session, stream)
        release = found.advance()
    failure = answering.save(release, out)
    if as_json:
        from tulle.cli.output import interval_json

        print_json({"release": release.to_json(), "interval": interval_json(release)})
    else:
        from tulle.cli.output import present

        present(release)
    if failure is not None:
        warn(failure)
        raise typer.Exit(BAD_INPUT)


@app.command()
@command
def show(
    file: answering.LedgerArgument,
    account: answering.OneAccount = None,
    stream: Annotated[
        str | None, typer.Option("--stream", help="Only this one; else all of the account.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the streams of an account: what was released so far, each total with its range."""
    from tulle.streams.stream import KeptStream, find_stream, kept_streams

    book, chosen = answering.one_account(file, account)
    name = chosen.name
    known = kept_streams(book, name)
    if stream is not None:
        known = [KeptStream.of(name, find_stream(book, name, stream))]
    if as_json:
        listed = [
            {
                "stream": kept.title,
                "debit": kept.debit,
                "guarantee": kept.terms.guarantee.to_json(),
                "steps": kept.declaration.steps,
                "releases": [release.to_json() for release in kept.releases(book)],
            }
            for kept in known
        ]
        print_json({"account": name, "streams": listed})
        return
    if not known:
        printer().print(f"Account {name!r} has no streams yet.")
    for kept in known:
        _show_series(kept, kept.releases(book))


def _show_series(kept: KeptStream, releases: list[Release]) -> None:
    from itertools import product

    import numpy as np

    from tulle.cli.output import simple
    from tulle.core.wording import rounded

    out = printer()
    out.print(kept.title, style="bold")
    axes = [axis.labels or () for axis in kept.declaration.axes]
    groups = [", ".join(map(str, names)) for names in product(*axes)]
    drawn = simple()
    titles = ("up to", *(["group"] if axes else []), "total", "at least", "at most")
    for title in titles:
        drawn.add_column(title, justify="left" if title in ("up to", "group") else "right")
    for release in releases:
        low, high = (np.ravel(end) for end in release.interval(0.95))
        for place, value in enumerate(np.ravel(release.value)):
            named = [groups[place]] if axes else []
            width = float(high[place] - value)
            ends = (rounded(float(one), width) for one in (value, low[place], high[place]))
            drawn.add_row(str(release.parameters["label"]), *named, *ends)
    if releases:
        out.print(drawn)
    out.print(f"{len(releases)} of {counted(kept.declaration.steps, 'step')} were released.")
    out.print(str(kept.terms.guarantee), style="dim")
    out.print()


def _show_opened(book: Ledger, name: str, stream: Stream, left: str, *, as_json: bool) -> None:
    from tulle.streams.stream import kept_streams

    known = kept_streams(book, name)
    number = [kept.debit for kept in known].index(stream.debit) + 1
    kept = known[number - 1]
    last = kept.declaration.steps
    if as_json:
        print_json(
            {
                "account": name,
                "stream": number,
                "debit": stream.debit,
                "guarantee": kept.terms.guarantee.to_json(),
                "released": stream.released,
                "deviation": {"first": stream.deviation(1), "last": stream.deviation(last)},
                "remaining": left,
            }
        )
        return
    from tulle.cli.output import facing

    drawn = facing()
    drawn.add_row("stream", f"{number} of account {name}")
    drawn.add_row("price", str(kept.terms.guarantee))
    errors = (f"{stream.deviation(step):,.3g}" for step in (1, last))
    drawn.add_row("deviation", "{} at the first step, {} at the last".format(*errors))
    drawn.add_row("released", f"{stream.released} of {counted(last, 'step')}")
    drawn.add_row("left", left)
    out = printer()
    out.print(kept.title, style="bold")
    out.print(drawn)
