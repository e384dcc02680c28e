"""``tulle studio``: publish without writing code, on a local web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tulle.cli.common import command, printer
from tulle.core.errors import MissingExtraError, raise_alone


@command
def studio(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="Files to open: networks, tables, DuckDB files; or a postgresql:// URL.",
            show_default=False,
        ),
    ] = None,
    ledger: Annotated[
        Path, typer.Option("--ledger", help="The ledger's file; made if it does not exist.")
    ] = Path("study.ledger"),
    port: Annotated[int, typer.Option("--port", help="A port of this machine; 0: any.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open the studio, a web page that only this machine can see."""
    try:
        from tulle.studio.server import serve
    except ImportError as error:
        raise_alone(MissingExtraError(error.name or "fastapi", "studio", "The studio"))

    def ready(link: str) -> None:
        out = printer()
        out.print("The studio is open. Its link works once, in one browser:", style="bold")
        out.print(link, soft_wrap=True, style="green")
        out.print("Ctrl-C closes it.", style="dim")
        if browser:
            import webbrowser

            webbrowser.open(link)

    serve(data or (), ledger, port=port, ready=ready)
