"""``tulle audit``: check every mechanism against its promise, by machine."""

from __future__ import annotations

from typing import Annotated

import typer

from tulle.cli import options
from tulle.cli.common import CHECK_FAILED, command, print_json, printer, progress


@command
def audit(
    everything: Annotated[
        bool, typer.Option("--all", help="Also the checks that take minutes.")
    ] = False,
    mechanism: Annotated[
        list[str] | None,
        typer.Option("--mechanism", help="Only this one; may be repeated."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check the mechanisms against their promises; broken twins of them must be caught."""
    from tulle.audit import run_audit

    with progress() as report:
        table = run_audit(slow=everything, mechanisms=mechanism, progress=report)
    rows = table.rows()
    if as_json:
        print_json(table.to_json())
    else:
        from tulle.cli.tables import simple

        drawn = simple()
        for title in rows[0] if rows else ():
            drawn.add_column(title, overflow="fold")
        for row in rows:
            drawn.add_row(*map(str, row.values()))
        printer().print(drawn)
    if not table.passed:
        raise typer.Exit(CHECK_FAILED)
