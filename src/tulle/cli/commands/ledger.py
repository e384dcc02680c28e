"""``tulle ledger``: what was spent, what is left, and whether it is intact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli import answering, options
from tulle.cli.common import CHECK_FAILED, command, print_json, printer
from tulle.core.errors import InputError, raise_alone
from tulle.core.validate import counted

if TYPE_CHECKING:
    from tulle.core.release import Release
    from tulle.ledger.account import Account
    from tulle.ledger.ledger import Ledger

app = typer.Typer(
    help="Look into a ledger: what was asked, what is left, whether it is intact.",
    no_args_is_help=True,
)

AccountName = Annotated[
    str | None, typer.Option("--account", help="Only this account; else all of them.")
]


@app.command()
@command
def show(
    file: answering.LedgerArgument, account: AccountName = None, as_json: options.Json = False
) -> None:
    """Show every debit, what is spent and what is left."""
    ledger = _open(file)
    chosen = _accounts(ledger, account)
    if as_json:
        print_json({"accounts": [_account_json(ledger, item) for item in chosen]})
        return
    out = printer()
    if not chosen:
        out.print("This ledger has no accounts yet.")
    for item in chosen:
        _show_account(ledger, item)


@app.command()
@command
def accounts(file: answering.LedgerArgument, as_json: options.Json = False) -> None:
    """List the accounts with their terms and what is left."""
    ledger = _open(file)
    known = ledger.accounts()
    if as_json:
        listed = [_account_json(ledger, item) for item in known]
        for row in listed:
            del row["debits"]
        print_json({"accounts": listed})
        return
    from tulle.cli.output import simple

    drawn = simple()
    for title in ("account", "data", "total", "left"):
        drawn.add_column(title, overflow="fold")
    for item in known:
        drawn.add_row(item.name, item.kind, item.words, str(ledger.remaining(item.name)))
    printer().print(drawn if known else "This ledger has no accounts yet.")


@app.command()
@command
def calendar(
    file: answering.LedgerArgument, account: AccountName = None, as_json: options.Json = False
) -> None:
    """Show the periods of the accounts: their versions of the data, and what each cost."""
    ledger = _open(file)
    chosen = _accounts(ledger, account)
    periods = {item.name: ledger.calendar(item.name) for item in chosen}
    if as_json:
        listed = [
            {
                "account": item.name,
                "budget": item.words,
                "periods": [period.to_json() for period in periods[item.name]],
            }
            for item in chosen
        ]
        print_json({"accounts": listed})
        return
    from tulle.cli.output import simple

    out = printer()
    for item in chosen:
        out.print(item.name, style="bold")
        drawn = simple()
        for title in ("period", "days", "versions of the data", "debits", "spent"):
            drawn.add_column(title, overflow="fold")
        for period in periods[item.name]:
            versions = ", ".join(f"{found.name} ({found.date})" for found in period.versions)
            days = f"{period.first_day} to {period.last_day}" if period.first_day else ""
            drawn.add_row(period.label, days, versions or "none", str(period.debits), period.price)
        out.print(drawn)
        out.print(item.words, style="dim")
        out.print(f"Left now: {ledger.remaining(item.name)}")
        out.print()


@app.command()
@command
def version(
    file: answering.LedgerArgument,
    name: Annotated[
        str, typer.Argument(metavar="VERSION", help="What the new data is called, as 2026-W46.")
    ],
    date: Annotated[str, typer.Option("--date", help="The day of the data, such as 2026-11-09.")],
    account: answering.OneAccount = None,
    as_json: options.Json = False,
) -> None:
    """Declare that an account's data is new. Its public facts stay as they are."""
    ledger, known = answering.one_account(file, account)
    declared = ledger.declare(known.name, name, date=date)
    left = ledger.remaining(known.name)
    if as_json:
        print_json({"account": known.name, "version": declared.to_json(), "left": str(left)})
    else:
        printer().print(
            f"The data of {known.name!r} is now version {declared.name} of {declared.date}. "
            f"Left: {left}."
        )


@app.command()
@command
def verify(
    file: answering.LedgerArgument,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="COUNT:DIGEST", help="A head that you noted earlier."),
    ] = None,
    release: Annotated[
        list[Path] | None,
        typer.Option("--release", help="A published release to look for; may be repeated."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check the whole ledger, also against a noted head and published releases."""
    from tulle.ledger.chain import Head
    from tulle.ledger.store import verify as check

    noted = None if head is None else Head.parse(head)
    digests = [_digest(path) for path in release or ()]
    problems = check(file, expected_head=noted, expected_digests=digests)
    now = None if problems else str(_open(file).head())
    if as_json:
        listed = [{"entry": problem.number, "what": problem.what} for problem in problems]
        print_json({"sound": not problems, "problems": listed, "head": now})
    elif problems:
        out = printer()
        out.print(f"{file} is damaged:", style="bold red")
        for problem in problems:
            out.print(f"  {problem}")
    else:
        out = printer()
        out.print(f"{file} is intact.", style="bold green")
        out.print(f"head {now}", soft_wrap=True)
        if noted is None:
            out.print(
                "An older copy put back would be intact too. Note the head elsewhere, and give it "
                "with --head the next time.",
                style="dim",
            )
    if problems:
        raise typer.Exit(CHECK_FAILED)


@app.command()
@command
def head(file: answering.LedgerArgument, as_json: options.Json = False) -> None:
    """Print the head, to be noted outside the file."""
    now = _open(file).head()
    if as_json:
        print_json({"head": str(now), "count": now.count, "digest": now.digest})
    else:
        typer.echo(str(now))


@app.command()
@command
def export(
    file: answering.LedgerArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write here; else to standard output.")
    ] = None,
    account: AccountName = None,
    as_json: options.Json = False,
) -> None:
    """Write all debits and releases as JSON; they are public, the data is not in them."""
    from tulle.streams.stream import kept_streams

    ledger = _open(file)
    data = {
        "head": str(ledger.head()),
        "accounts": [
            {
                **_account_json(ledger, item),
                "releases": [kept.to_json() for kept in ledger.releases(item.name)],
                "streams": [
                    [step.to_json() for step in kept.releases(ledger)]
                    for kept in kept_streams(ledger, item.name)
                ],
            }
            for item in _accounts(ledger, account)
        ],
    }
    if out is None:
        print_json(data)
        return
    out.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if as_json:
        print_json({"written": str(out)})
    else:
        printer().print(f"Written to {out}.", style="green")


@app.command()
@command
def deployment(
    file: answering.LedgerArgument,
    name: Annotated[str, typer.Option("--name", help="What the publication is called.")],
    curator: Annotated[
        list[str], typer.Option("--curator", help="Who publishes it; may be repeated.")
    ],
    use: Annotated[str, typer.Option("--use", help="What it is meant to be used for.")],
    region: Annotated[
        str, typer.Option("--region", help="Which region the data describes, or whose law applies.")
    ],
    account: answering.OneAccount = None,
    kind: Annotated[
        str, typer.Option("--type", help="The registry's type of data product.")
    ] = "Summary statistics",
    sector: Annotated[str | None, typer.Option("--sector", help="The registry's sector.")] = None,
    each: Annotated[
        bool, typer.Option("--each", help="A record for each release, not for the account.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write YAML here; with --each, into this folder.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write records for the public registry of differential privacy deployments."""
    from tulle.ledger.deployments import Deployment, account_record, release_record, to_yaml
    from tulle.streams.stream import kept_streams

    ledger, chosen = answering.one_account(file, account)
    about = Deployment(
        name, curator, use, region, data_product_type=kind, data_product_sector=sector
    )
    kept = ledger.releases(chosen.name)
    # All steps of a stream were paid for together: they are one release, of its latest step.
    series = (stream.releases(ledger)[-1:] for stream in kept_streams(ledger, chosen.name))
    kept += [last for steps in series for last in steps]
    if each:
        records = [release_record(item, about) for item in kept]
    else:
        records = [account_record(chosen, kept, about)]
    if as_json:
        print_json({"records": records})
    elif out is None:
        typer.echo("---\n".join(map(to_yaml, records)), nl=False)
    if out is not None:
        paths = [out]
        if each:
            out.mkdir(exist_ok=True)
            paths = [out / f"{number:03}.yaml" for number in range(1, len(records) + 1)]
        for path, record in zip(paths, records, strict=True):
            path.write_text(to_yaml(record), encoding="utf-8")
        if not as_json:
            printer().print(f"Written to {out}.", style="green")


def _open(file: Path) -> Ledger:
    from tulle.ledger.ledger import Ledger

    return Ledger(file, create=False)


def _accounts(ledger: Ledger, name: str | None) -> list[Account]:
    return ledger.accounts() if name is None else [ledger.account(name)]


def _digest(path: Path) -> str:
    """Return the debit that a release file names."""
    from tulle.core.release import Release

    try:
        read = Release.load(path)
    except UnicodeDecodeError:
        raise_alone(InputError(f"{path} is not a release written by tulle."))
    except InputError as error:
        raise_alone(InputError(f"{path}: {error}"))
    if read.debit is None:
        raise InputError(f"{path} is a release that was made outside a ledger.")
    return read.debit


def _answers(ledger: Ledger, name: str) -> dict[str, Release]:
    return {kept.debit: kept for kept in ledger.releases(name) if kept.debit is not None}


def _show_account(ledger: Ledger, account: Account) -> None:
    from tulle.cli import output as tables
    from tulle.core import wording
    from tulle.core.guarantee import Guarantee

    out = printer()
    out.print(account.name, style="bold")
    answers = _answers(ledger, account.name)
    drawn = tables.simple()
    drawn.add_column("entry", justify="right")
    drawn.add_column("day (UTC)", no_wrap=True)
    drawn.add_column("question", overflow="fold")
    drawn.add_column("price")
    drawn.add_column("answer", justify="right")
    for entry in ledger.debits(account.name):
        kept = answers.get(entry.digest)
        answer = "none kept" if kept is None else wording.answer(kept.value)
        if "stream" in entry.body:
            answer = counted(len(ledger.steps(account.name, entry.digest)), "step")
        drawn.add_row(
            str(entry.number),
            entry.time[:10],
            str(entry.body["question"]),
            str(Guarantee.from_json(entry.body["guarantee"])).rpartition(", ")[0],
            answer,
        )
    if drawn.row_count:
        out.print(drawn)
    spent = ledger.spent(account.name)
    summary = tables.facing()
    summary.add_row("total", account.words)
    if account.version is not None:
        summary.add_row("data", f"version {account.version.name} of {account.version.date}")
    summary.add_row("spent", "nothing" if spent is None else str(spent))
    summary.add_row("left", str(ledger.remaining(account.name)), style="bold")
    out.print(summary)
    out.print()


def _account_json(ledger: Ledger, account: Account) -> dict[str, Any]:
    from tulle.core.validate import text

    spent = ledger.spent(account.name)
    left = ledger.remaining(account.name)
    answers = _answers(ledger, account.name)
    return {
        "account": account.name,
        **account.to_json(),
        "spent": None if spent is None else spent.to_json(),
        "remaining": {"epsilon": text(left.epsilon), "delta": text(left.delta)},
        "debits": [
            {
                "entry": entry.number,
                "day": entry.time[:10],
                "question": entry.body["question"],
                "guarantee": entry.body["guarantee"],
                "digest": entry.digest,
                "answer_kept": entry.digest in answers,
            }
            for entry in ledger.debits(account.name)
        ],
    }
