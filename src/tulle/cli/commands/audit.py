"""``tulle audit``: check every mechanism against its promise, by machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tulle.cli import options
from tulle.cli.common import CHECK_FAILED, command, print_json, printer, waiting
from tulle.core.validate import counted

if TYPE_CHECKING:
    from tulle.audit import AuditTable


@command
def audit(
    everything: Annotated[
        bool, typer.Option("--all", help="More and larger cases: takes an hour or more.")
    ] = False,
    mechanism: Annotated[
        list[str] | None,
        typer.Option("--mechanism", help="Only this one; may be repeated."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check every mechanism against its promise; broken versions of them must be caught."""
    from tulle.audit import run_audit

    with waiting("auditing") as tell:
        table = run_audit(slow=everything, mechanisms=mechanism or None, progress=tell)
    if as_json:
        print_json(table.to_json())
    else:
        _show(table)
    if not table.passed:
        raise typer.Exit(CHECK_FAILED)


def _show(table: AuditTable) -> None:
    from rich.text import Text

    from tulle.cli.output import simple

    drawn = simple()
    drawn.add_column("data", overflow="fold")
    drawn.add_column("mechanism", overflow="fold")
    drawn.add_column("question", overflow="fold")
    drawn.add_column("check", overflow="fold")
    drawn.add_column("cases", justify="right", no_wrap=True)
    drawn.add_column("worst seen", overflow="fold")
    drawn.add_column("verdict", no_wrap=True)
    for line in table.lines:
        verdict = Text(line.verdict, style="green" if line.good else "bold red")
        cases = f"{line.cases:,}"
        about = (line.kind, line.mechanism, line.query, line.check)
        drawn.add_row(*about, cases, line.figure, verdict)
    out = printer()
    out.print(drawn)
    passed = sum(line.verdict == "passed" for line in table.lines)
    caught = sum(line.verdict == "caught" for line in table.lines)
    bad = len(table.lines) - passed - caught
    out.print(f"{counted(passed, 'check')} passed, {counted(caught, 'broken version')} caught.")
    if bad:
        out.print(f"{bad} not as they should be: see FAILED and MISSED above.", style="bold red")
