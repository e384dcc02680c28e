"""``tulle report``: one page about what was released, for people who were not there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tulle.cli import options
from tulle.cli.common import command, print_json, printer
from tulle.core.errors import InputError


@command
def report(
    ledger: Annotated[
        Path, typer.Argument(metavar="LEDGER", help="The account book.", show_default=False)
    ],
    account: Annotated[
        str | None, typer.Option("--account", help="Whose releases; needed if there are several.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The page to write.")] = Path("report.html"),
    as_json: options.Json = False,
) -> None:
    """Write one self-contained page with all releases of an account: no truth is in it."""
    from tulle.core.ledger import Ledger
    from tulle.core.report import outside_report

    book = Ledger(ledger, create=False)
    names = [known.name for known in book.accounts()]
    if account is None and len(names) != 1:
        listed = ", ".join(names) or "none"
        raise InputError(f"Say which account with --account. The ledger has: {listed}.")
    chosen = account or names[0]
    book.account(chosen)
    releases = book.releases(chosen)
    page = outside_report(releases, title=f"Released: {chosen}")
    out.write_text(page, encoding="utf-8")
    if as_json:
        print_json({"account": chosen, "releases": len(releases), "file": str(out)})
        return
    printer().print(f"{len(releases)} releases of {chosen!r} are reported in {out}.")
