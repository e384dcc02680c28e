"""``tulle survey``: make a form, answer it where the answer is known, estimate from reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli import options
from tulle.cli.common import command, print_json, printer
from tulle.core.errors import InputError, raise_alone
from tulle.core.reading import reading
from tulle.core.validate import whole_number

if TYPE_CHECKING:
    from tulle.core.release import Release
    from tulle.surveys.form import Form

app = typer.Typer(
    help="Ask people so that their answers are private before they are sent.",
    no_args_is_help=True,
)

_MOST_LISTED = 40

FormFile = Annotated[Path, typer.Argument(metavar="FORM", help="The form, as JSON.")]


@app.command("form")
@command
def make(
    output: Annotated[Path, typer.Argument(metavar="FORM", help="Where to write the form.")],
    ask: Annotated[
        list[str],
        typer.Option(
            "--ask", metavar="NAME=A,B,...", help="A question and its categories, or their number."
        ),
    ],
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="What one client spends on the whole form.")
    ],
    name: Annotated[str, typer.Option("--name", help="What the survey is called.")] = "survey",
    as_json: options.Json = False,
) -> None:
    """Write the form that clients fill in, with the best design for every question."""
    from tulle.surveys import Survey

    form = Survey(dict(_question(item) for item in ask), name=name).form(epsilon=epsilon)
    text = json.dumps(form.to_json(), indent=2, ensure_ascii=False)
    output.write_text(text + "\n", encoding="utf-8")
    if as_json:
        print_json({"form": str(output), "guarantee": form.guarantee().to_json()})
        return
    out = printer()
    out.print(str(form))
    out.print(str(form.guarantee()), style="bold")


@app.command()
@command
def respond(
    form: FormFile,
    answer: Annotated[
        list[str], typer.Option("--answer", metavar="NAME=ANSWER", help="One for each question.")
    ],
    account: Annotated[Path, typer.Option("--account", help="The client's own account, a file.")],
    budget: Annotated[
        str,
        typer.Option("--budget", help="What this client may spend in all through that account."),
    ],
    wave: Annotated[str, typer.Option("--wave", help="A new wave is a new question.")] = "",
) -> None:
    """Answer a form on the client's own machine; prints the report that may be sent."""
    from tulle.surveys import ClientAccount
    from tulle.surveys import respond as answer_form

    read = _read_form(form)
    answers = {}
    for item in answer:
        name, mark, given = item.partition("=")
        if not mark:
            # The item may be an answer: it must not reach a log.
            raise InputError("--answer is written NAME=ANSWER.")
        answers[name] = _category(read, name, given)
    with ClientAccount(epsilon=budget, unit="client", path=account) as book:
        sent = answer_form(read, answers, account=book, wave=wave)
    typer.echo(json.dumps(sent, ensure_ascii=False))


@app.command()
@command
def estimate(
    form: FormFile,
    reports: Annotated[
        Path, typer.Argument(metavar="REPORTS", help="What clients sent: one JSON object a line.")
    ],
    of: Annotated[
        list[str] | None, typer.Option("--of", metavar="NAME", help="A question; else all.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    as_json: options.Json = False,
) -> None:
    """Estimate the shares of the answers from the reports of all clients."""
    from tulle.surveys import Collection

    read = _read_form(form)
    names = of or list(read.survey.names)
    collection = Collection(read)
    for number, report in _lines(reports):
        try:
            collection.add(report)
        except InputError as error:
            raise_alone(InputError(f"{reports.name}, line {number}: {error}"))
    found = {name: collection.proportions(name) for name in names}
    if as_json:
        print_json({name: item.to_json() for name, item in found.items()})
        return
    _show(read, found, level)


def _show(form: Form, found: dict[str, Release], level: float) -> None:
    from tulle.cli.output import simple

    out = printer()
    for name, release in found.items():
        drawn = simple()
        for title in (name, "share", f"{100 * level:g} % interval"):
            drawn.add_column(title)
        low, high = release.interval(level)
        for place, category in enumerate(form.survey.categories(name)):
            interval = f"{low[place]:.4f} to {high[place]:.4f}"
            drawn.add_row(str(category), f"{release.value[place]:.4f}", interval)
        out.print(drawn)
    out.print(str(form.guarantee()), style="dim")


def _question(written: str) -> tuple[str, Any]:
    name, mark, categories = written.partition("=")
    if not mark or not name:
        raise InputError(f"--ask is written NAME=A,B,... or NAME=NUMBER; got {written!r}.")
    if (number := whole_number(categories)) is not None:
        return name, number
    return name, [category.strip() for category in categories.split(",")]


def _category(form: Form, name: str, given: str) -> Any:
    """Return a category as the survey has it: a text, or a whole number."""
    categories = form.survey[name].categories
    if isinstance(categories, range):
        number = whole_number(given)
        read = given if number is None else number
    else:
        read = next((category for category in categories if str(category) == given), given)
    if read not in categories and len(categories) <= _MOST_LISTED:
        # The categories are public; the answer is not.
        raise InputError(
            f"The answer to {name!r} is not one of: {', '.join(map(str, categories))}."
        )
    return read


def _read_form(path: Path) -> Form:
    from tulle.surveys import Form

    with reading(path.name, "it is not a form written by tulle"):
        return Form.from_json(json.loads(path.read_text(encoding="utf-8")))


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                report = json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError):
                report = None
            if not isinstance(report, dict):
                raise InputError(f"{path.name}, line {number}: not one JSON object.")
            yield number, report
