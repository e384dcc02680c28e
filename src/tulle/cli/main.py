"""The ``tulle`` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tulle.cli.commands import (
    ask,
    attack,
    audit,
    compare,
    demo,
    ledger,
    matrix,
    plan,
    report,
    sql,
    stream,
    studio,
    survey,
    synth,
)
from tulle.cli.common import BAD_INPUT, EXIT_CODES, hold_streams, print_json

app = typer.Typer(
    name="tulle",
    help="Publish from networks, databases, matrices and surveys with differential privacy.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    # A traceback may quote records; commands print their own errors.
    pretty_exceptions_enable=False,
    add_completion=True,
)
app.command()(plan.plan)
app.command()(ask.ask)
app.command()(synth.synth)
app.command()(compare.compare)
app.add_typer(sql.app, name="sql")
app.add_typer(stream.app, name="stream")
app.add_typer(matrix.app, name="matrix")
app.add_typer(ledger.app, name="ledger")
app.add_typer(survey.app, name="survey")
app.add_typer(attack.app, name="attack")
app.command()(audit.audit)
app.command()(report.report)
app.command()(studio.studio)
app.command()(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tulle import __version__

        typer.echo(f"tulle {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    With ``--json`` bad usage, too, is one JSON document on standard output.
    """
    hold_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--json" not in given:
        app(given, prog_name="tulle")
        return
    try:
        code = app(given, prog_name="tulle", standalone_mode=False)
    except typer.Abort:
        sys.exit(1)
    except Exception as error:
        # Usage errors are click's, which some versions of typer bring under another name.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        print_json({"error": {"kind": "UsageError", "message": message()}})
        sys.exit(BAD_INPUT)
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
