"""What all commands share: where they print, how they fail, how they show progress.

Nothing here imports what reads data, so that ``tulle --help`` answers at once.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from tulle.cli.grouping import flatten
from tulle.core.errors import (
    BudgetError,
    InputError,
    InterruptedAnswer,
    LedgerError,
    TulleError,
    raise_alone,
)
from tulle.core.validate import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

CHECK_FAILED = 1
BAD_INPUT = 2
BUDGET_REFUSED = 3
LEDGER_PROBLEM = 4
UNEXPECTED = 70
"""What a program ends with, by custom, when the fault is its own."""

WRITTEN = frozenset({"out", "save", "figure", "output"})
"""Parameters that name a file which a command writes."""

INTERRUPTED = 130
"""What a program ends with, by custom, when it was interrupted from the keyboard."""

EXIT_CODES = """Exit codes: 0 fine, 1 a check failed, 2 bad usage or input, 3 refused by the \
budget, 4 a ledger problem, 70 a fault of tulle, 130 interrupted."""

_LAST_STREAM = 2
"""The numbers of the standard streams are 0 to 2."""

Report = Callable[[float, str], None]

_WIDTH_OF_A_PIPE = 100
_PATIENCE = 0.5
"""Seconds before a progress bar is worth showing."""

_KEYWORD = re.compile(
    r"(?<![\w/.\\-])(?<!--option )"
    r"(like|mechanism|unit|nodes|columns|ignore|format|epsilon|delta|owners|public"
    r"|ranges|groups|tables|threshold|delimiter|header|people|rows_per_person|values|bad_records)="
    r"(\([^()]*\)|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|[^\s.,;:)])?"
)
_CALL = re.compile(r"\b\w+\((?:[^()]|\([^()]*\))*\)")
"""A question, such as ``mixing(by='dept', groups=['art'])``: it is written alike everywhere."""

_ATTRIBUTE = re.compile(r"graph\.with_attributes\(nodes=\{'([^']*)': values\}\)")


def printer(*, quiet: bool = False) -> Console:
    """Return where results go: standard output, without any markup being read from the text."""
    return _console(quiet=quiet)


def _console(*, stderr: bool = False, quiet: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width; rich would take 80, in which tables of numbers break.
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_A_PIPE

    class Careful(Console):
        """It prints names that others chose: keys, columns, labels."""

        def render_str(self, text: str, *given: Any, **named: Any) -> Text:
            return super().render_str(visible(text), *given, **named)

    return Careful(
        stderr=stderr, quiet=quiet, width=width, markup=False, emoji=False, highlight=False
    )


def print_json(data: Any) -> None:
    """Print one JSON document; numbers that JSON cannot write become null."""
    from tulle.core.codec import finite

    held = finite(data)
    written = json.dumps(held, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        written.encode(sys.stdout.encoding or "utf-8")
    except UnicodeError:  # a terminal without such letters, or half a letter
        written = json.dumps(held, indent=2, allow_nan=False)
    typer.echo(visible(written))


def in_options(message: str) -> str:
    """Say ``--like`` where the library, which speaks to Python, says ``like=``.

    Example:
        >>> in_options("nodes=5 does not go with mixing(by='dept', groups=['art'])")
        "--nodes 5 does not go with mixing(by='dept', groups=['art'])"
        >>> in_options("--option groups=NUMBER")
        '--option groups=NUMBER'
    """
    message = message.replace("header=True", "--header").replace("header=False", "--no-header")
    message = _ATTRIBUTE.sub(r"--attributes FILE, a table with a column '\1'", message)
    calls = [found.span() for found in _CALL.finditer(message)]

    def translate(found: re.Match[str]) -> str:
        inside = any(start <= found.start() < end for start, end in calls)
        return found[0] if inside else _option(found)

    return _KEYWORD.sub(translate, message)


def _option(found: re.Match[str]) -> str:
    """Write a keyword argument as an option, its value as one types it in a shell.

    Example:
        >>> in_options('columns=(0, 1), or ignore=("weights",)')
        '--columns 0,1, or --ignore weights'
    """
    name, value = found[1].replace("_", "-"), found[2]
    if value is None:
        return f"--{name}"
    try:
        said = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return f"--{name} {value}"
    if isinstance(said, tuple | list):
        items = [str(item) for item in said]
        repeated = f" --{name} ".join(items) if name == "ignore" else ",".join(items)
        return f"--{name} {repeated}"
    return f"--{name} {value}"


def warn(message: str) -> None:
    """Print one line on standard error."""
    _say("warning:", "yellow", message)


def show_custodian(message: str) -> None:
    """Print one line about the data on the custodian's terminal, and nowhere else.

    It tells exact numbers: without a terminal, where it might be kept in a log, nothing is said.
    """
    if sys.stderr.isatty():
        _console(stderr=True).print(message, style="dim")


def _say(word: str, style: str, message: str) -> None:
    from rich.text import Text

    console = _console(stderr=True)
    text = Text.assemble((word, f"bold {style}"), " ", visible(in_options(message)))
    # Who reads a log wants one line; who reads a terminal wants whole words.
    console.print(text, soft_wrap=not sys.stderr.isatty())


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that it ends with one paragraph and an exit code, never a traceback.

    Parameters that are dataclasses become options, one for each field (:mod:`tulle.cli.grouping`).
    With ``--json`` the error is the one document on standard output:
    ``{"error": {"kind": ..., "message": ...}}``.
    """
    plain = flatten(function)

    @functools.wraps(plain)
    def wrapped(**given: Any) -> None:
        as_json = bool(given.get("as_json"))
        _print_every_letter()
        try:
            check_written(given)
            plain(**given)
        except TulleError as error:
            raise_alone(typer.Exit(_failed(type(error).__name__, str(error), error, as_json)))
        except InterruptedAnswer as error:
            raise_alone(typer.Exit(_failed("interrupted", str(error), error, as_json)))
        except BrokenPipeError:
            raise  # the reader of a pipe went away: typer ends quietly
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            message = f"{place}{error.strerror or type(error).__name__}."
            raise_alone(typer.Exit(_failed("InputError", message, error, as_json)))
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if os.environ.get("TULLE_DEBUG") == "1":
                raise
            # Its message is unknown and may quote a record.
            raise_alone(typer.Exit(_failed("fault", _fault(error), error, as_json)))

    return wrapped


def hold_streams() -> None:
    """See that standard streams which were closed (``2>&-``) lead nowhere, and fail nothing.

    Else the next file that is opened, such as a ledger, would be where errors are written.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _LAST_STREAM:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _print_every_letter() -> None:
    """See that no letter of an answer, which is paid for, makes printing fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check_written(given: Mapping[str, Any]) -> None:
    """Refuse to write over what a command reads, or over any ledger or database.

    Raises:
        InputError: naming the option.
    """
    read = [value for name, value in given.items() if name not in WRITTEN]
    for place in (given[name] for name in WRITTEN & given.keys()):
        if place is None or not os.path.isfile(place):
            continue
        with open(place, "rb") as file:
            held = file.read(16)
        precious = held.startswith(b"SQLite format 3") or held[8:12] == b"DUCK"
        if precious or any(_is_file(value, place) for value in read):
            what = "a ledger or a database" if precious else "read by this command"
            raise InputError(f"{place} is {what} and would be written over. Choose another file.")


def _is_file(value: Any, place: Any) -> bool:
    """Say whether something that was given is a file, by whichever name."""
    if not isinstance(value, str | os.PathLike) or not os.path.isfile(value):
        return False
    return os.path.samefile(value, place)


def _failed(kind: str, message: str, error: BaseException, as_json: bool) -> int:
    try:
        if as_json:
            print_json({"error": {"kind": kind, "message": in_options(message)}})
    except OSError:
        as_json = False  # standard output may be what failed
    if not as_json:
        _say("error:", "red", message)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BudgetError):
        return BUDGET_REFUSED
    if isinstance(error, LedgerError):
        return LEDGER_PROBLEM
    return BAD_INPUT if isinstance(error, TulleError | OSError) else UNEXPECTED


def _fault(error: Exception) -> str:
    return (
        f"Something went wrong inside tulle ({type(error).__name__}). Its details are held back "
        "because they might quote your data. Set TULLE_DEBUG=1 and run the command again to see "
        "them; look before you pass them on."
    )


@contextmanager
def progress() -> Iterator[Report]:
    """Give a function to report (fraction done, step) to; on a terminal it draws a bar.

    The bar appears when the work has lasted a moment, and leaves nothing behind.
    """
    if not sys.stderr.isatty():
        yield lambda fraction, label: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=_console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=1.0)
    began = time.monotonic()

    def report(fraction: float, label: str) -> None:
        bar.update(task, completed=fraction, description=label)
        if fraction < 1 and time.monotonic() - began > _PATIENCE:
            bar.start()

    try:
        yield report
    finally:
        bar.stop()


@contextmanager
def waiting(label: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that work goes on which cannot say how far it is.

    The function it gives changes the words.
    """
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    with _console(stderr=True).status(label) as status:
        yield status.update


@contextmanager
def showing_progress(label: str) -> Iterator[None]:
    """Show on a terminal how far the solvers are, with the gap they have certified.

    These numbers are as private as the records: they go to the custodian's screen and nowhere
    else. Without a terminal, nothing is shown and nothing is computed for showing.
    """
    if not sys.stderr.isatty():
        yield
        return
    from tulle.core.progress import watching

    with waiting(label) as say, watching(lambda progress: say(f"{label} · {progress}")):
        yield
