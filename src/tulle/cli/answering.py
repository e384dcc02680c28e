"""What every command that answers shares: where it is booked, and how the answer is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli.asking import Asking, DataVersion, LedgerAccount
from tulle.cli.common import BAD_INPUT, print_json, printer, showing_progress, warn
from tulle.core.errors import InputError, TulleError
from tulle.core.validate import visible

if TYPE_CHECKING:
    from tulle.core.dataset import Dataset
    from tulle.core.release import Release
    from tulle.ledger.account import Account, Budget
    from tulle.ledger.ledger import Ledger

NO_LEDGER = (
    "This answer is recorded nowhere. Each further answer about the same people adds to what is "
    "given away, and nobody adds it up; use --ledger if there will be more than one."
)

LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="The ledger's file; made if it is not there.")
]
LedgerArgument = Annotated[
    Path, typer.Argument(metavar="LEDGER", help="The ledger's file.", show_default=False)
]
OneAccount = Annotated[
    str | None, typer.Option("--account", help="The account; needed if there are several.")
]
NoLedger = Annotated[bool, typer.Option("--no-ledger", help="Answer once, recorded nowhere.")]
AccountName = Annotated[
    str | None, typer.Option("--account", help="The account; else named like the file.")
]
TotalBudget = Annotated[
    str | None,
    typer.Option("--budget", help="The account's total epsilon; needed the first time."),
]
TotalDelta = Annotated[
    str | None, typer.Option("--budget-delta", help="The account's total delta.")
]
CompositionDelta = Annotated[
    str | None,
    typer.Option(
        "--composition-delta",
        help="The part of --budget-delta that lets many answers cost less than their sum; "
        "half of it unless said, 0 to add epsilons up.",
    ),
]
VersionName = Annotated[
    str | None,
    typer.Option(
        "--version",
        help="Which version of the data this is, such as 2026-W46; of an earlier one, answers "
        "that were kept are shown.",
    ),
]
VersionDate = Annotated[
    str | None,
    typer.Option("--date", help="The day of a version that is new, such as 2026-11-09."),
]
Every = Annotated[
    str | None,
    typer.Option(
        "--every", help="The budget of a new account is for each day, week, month or year."
    ),
]
Carry = Annotated[
    bool, typer.Option("--carry", help="With --every: what is left is added to the next period.")
]
Zone = Annotated[str, typer.Option("--zone", help="With --every: in which zone a day begins.")]
Again = Annotated[
    bool, typer.Option("--again", help="Pay for a fresh answer to a question asked before.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Write the release here: all of it as .json, its numbers with names as .csv."
    ),
]


@dataclass(frozen=True)
class Booking:
    """Where an answer is booked, as the user said it."""

    ledger: LedgerFile = None
    no_ledger: NoLedger = False
    account: AccountName = None
    budget: TotalBudget = None
    budget_delta: TotalDelta = None
    composition_delta: CompositionDelta = None
    every: Every = None
    carry: Carry = False
    zone: Zone = "UTC"
    version: VersionName = None
    date: VersionDate = None
    again: Again = False

    def ledger_account(self, named: str) -> LedgerAccount | None:
        """Return where the answer is booked, or None with --no-ledger.

        Raises:
            InputError: when neither or both are said, or options do not go together.
        """
        if self.ledger is not None and not self.no_ledger:
            return LedgerAccount.of(
                self.ledger,
                self.account,
                named,
                self.budget,
                self.budget_delta,
                self.composition_delta,
                DataVersion.of(self.version, self.date, self.every, self.zone, carry=self.carry),
            )
        if self.ledger is not None:
            raise InputError("--ledger and --no-ledger exclude each other; choose one.")
        if not self.no_ledger:
            raise InputError(
                "Say where the price is recorded: --ledger FILE, or --no-ledger for a single "
                "answer that is recorded nowhere."
            )
        said = (self.account, self.budget, self.budget_delta, self.composition_delta)
        timed = (self.version, self.date, self.every)
        if self.again or any(item is not None for item in said + timed):
            raise InputError(
                "--account, --budget, --budget-delta, --every, --version, --date and --again "
                "belong to --ledger."
            )
        return None


def answer(
    dataset: Dataset,
    asking: Asking,
    ledger_account: LedgerAccount | None,
    public: str,
    *,
    again: bool,
    out: Path | None,
    as_json: bool,
    as_csv: bool = False,
    after: Callable[[Release], Release] | None = None,
) -> None:
    """Book the question, draw the answer, print and save it; ``after`` is post-processing."""
    if ledger_account is None:
        with showing_progress("asking"):
            release = asking.release(dataset)
        warn(NO_LEDGER)
        left, kept = None, False
    else:
        with showing_progress("asking"):
            book, session = ledger_account.open(dataset, asking)
            before = book.head()
            release = asking.ask(session, again=again, version=ledger_account.earlier(book))
            booked = {entry.digest for entry in book.since(before)}
        left, kept = session.remaining, release.debit not in booked
    failure = None
    if after is not None:
        # By now it is paid for: whatever goes wrong, the answer itself is shown.
        try:
            release = after(release)
        except Exception as error:  # noqa: BLE001
            failure = _unwritten("What was made of the release", error)
    failure = save(release, out) or failure
    if as_csv:
        table = release.table().to_csv()
        typer.echo(visible(table) if sys.stdout.isatty() else table, nl=False)
    elif as_json:
        print_json(_to_json(release, ledger_account, kept, left))
    else:
        _show(release, ledger_account, kept, left, out if failure is None else None)
        printer().print(public, style="dim")
    if failure is not None:
        warn(failure)
        raise typer.Exit(BAD_INPUT)


def one_account(file: Path, name: str | None) -> tuple[Ledger, Account]:
    """Open a ledger that exists and return the account of this name, or the only one."""
    from tulle.ledger.ledger import Ledger

    book = Ledger(file, create=False)
    known = book.accounts() if name is None else [book.account(name)]
    if len(known) != 1:
        listed = ", ".join(account.name for account in known) or "none"
        raise InputError(f"Say which account: --account NAME. Accounts: {listed}.")
    return book, known[0]


def check_out(out: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is paid."""
    if out is None:
        return
    if out.is_dir() or not out.parent.is_dir():
        raise InputError(f"--out {out} must name a file in a folder that exists.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(f"--out {out} cannot be written; check its permissions.")


def save(release: Release, out: Path | None) -> str | None:
    """Write the release; return what went wrong, for by now it is paid and must be shown."""
    if out is None:
        return None
    try:
        if out.suffix == ".csv":
            release.table().to_csv(out)
        else:
            release.save(out)
    except Exception as error:  # noqa: BLE001
        return _unwritten("The release", error)
    return None


def _unwritten(what: str, error: Exception) -> str:
    why = getattr(error, "strerror", None) or (
        str(error).removesuffix(".") if isinstance(error, TulleError) else type(error).__name__
    )
    return (
        f"{what} could not be written ({why}). The release is paid for and shown above; "
        "a ledger keeps it as well."
    )


def _show(
    release: Release,
    ledger_account: LedgerAccount | None,
    kept: bool,
    left: Budget | None,
    out: Path | None,
) -> None:
    from dataclasses import replace

    from tulle.cli.output import present
    from tulle.core.wording import kept_words

    console = printer()
    further = {}
    if ledger_account is not None:
        further = {
            "account": f"{ledger_account.account} in {ledger_account.file}",
            "left": str(left),
        }
    present(release, further)
    if kept:
        console.print(kept_words(replace(release, kept=True)), style="green")
    if out is not None:
        console.print(f"Written to {out}.", style="green")


def _to_json(
    release: Release, ledger_account: LedgerAccount | None, kept: bool, left: Budget | None
) -> dict[str, Any]:
    from tulle.cli.output import interval_json
    from tulle.core.table import LabelledTable
    from tulle.core.validate import text
    from tulle.core.wording import allowance, leaves_out

    table = release.value if isinstance(release.value, LabelledTable) else None
    remaining = None if left is None else {"epsilon": text(left.epsilon), "delta": text(left.delta)}
    return {
        "release": release.to_json(),
        **({} if table is None else {"table": table.to_dict()}),
        "interval": interval_json(release),
        "interval_wider": allowance(release) or None,
        "not_in_the_interval": leaves_out(release) or None,
        "account": None if ledger_account is None else ledger_account.account,
        "asked_before": kept,
        "date": release.date,
        "remaining": remaining,
    }
