"""``tulle report``: publish a report on what was released."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tulle.cli import answering, options
from tulle.cli.common import command, print_json, printer, warn
from tulle.core.validate import counted

if TYPE_CHECKING:
    from tulle.core.dataset import Dataset
    from tulle.ledger.ledger import Ledger

INSIDE = "This page shows the truth. It must stay with the custodian."


@command
def report(
    ledger: answering.LedgerArgument,
    account: answering.OneAccount = None,
    out: Annotated[Path, typer.Option("--out", help="The page to write.")] = Path("report.html"),
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            help="For the custodian's own eyes: the account's network, or its database's TOML "
            "file. The page then sets the truth beside each answer.",
        ),
    ] = None,
    nodes: options.Nodes = None,
    header: options.Header = None,
    as_json: options.Json = False,
) -> None:
    """Publish a report: one page with all releases of an account; no truth, unless --truth."""
    from tulle.core.custody import custodian_file
    from tulle.reports.report import public_report
    from tulle.streams.stream import kept_streams

    book, known = answering.one_account(ledger, account)
    chosen = known.name
    releases = book.releases(chosen)
    series = [kept.releases(book) for kept in kept_streams(book, chosen)]
    if truth is None:
        page = public_report(releases, series=series, title=f"Released: {chosen}")
    else:
        page = _inside(book, chosen, _read(truth, nodes, header))
    (out if truth is None else custodian_file(out)).write_text(page, encoding="utf-8")
    if truth is not None:
        warn(INSIDE)
    if as_json:
        more = {"series": len(series)} if series else {}
        print_json({"account": chosen, "releases": len(releases), **more, "file": str(out)})
        return
    also = f" and {len(series)} series" if series else ""
    printer().print(f"Reported in {out}: {counted(len(releases), 'release')}{also} of {chosen!r}.")


def _read(path: Path, nodes: str | None, header: bool | None) -> Dataset:
    if path.suffix == ".toml":
        from tulle.sql.data import Database

        return Database.from_toml(path)
    return options.Network(path, nodes, header=header).read()


def _inside(book: Ledger, account: str, dataset: Dataset) -> str:
    return book.open(account, dataset, unit=book.account(account).unit).report()
