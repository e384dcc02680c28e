"""``tulle matrix``: totals on a grid from a table of contributions, or a matrix of yes and no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli import answering, options
from tulle.cli.commands import plan
from tulle.cli.common import command
from tulle.core.errors import InputError
from tulle.core.reading import reading
from tulle.core.unit import Unit
from tulle.core.validate import whole_number

if TYPE_CHECKING:
    from tulle.core.dataset import Dataset
    from tulle.core.query import Query
    from tulle.core.release import Release

app = typer.Typer(
    help="Release a matrix: totals of contributions (unit participant), or yes and no (row, cell).",
    no_args_is_help=True,
)

_TABLE = "Reading contributions: --unit participant"
_MATRIX = "Reading a matrix of yes and no: --unit row or cell"
_AFTER = "After the release, at no cost"

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Contributions: a .csv (also .gz) or .parquet table, or a database's .toml. Yes and "
        "no: .csv, .npy, .npz, .mtx.",
        show_default=False,
    ),
]
Question = Annotated[
    str,
    typer.Argument(
        metavar="QUESTION",
        help="What to ask: 'weights(bound=5, total=12)', 'block_bounds(0.95, [1, 2, 4])', "
        "'found_cells(cells_per_person=3, bound=5)', xor.",
        show_default=False,
    ),
]
UnitName = Annotated[
    str,
    typer.Option("--unit", help="Who is protected: participant, row or cell.", show_default=False),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="SELECT",
        help="With a database's TOML file: 'SELECT row, column, weight FROM ...'; the individual "
        "is the owner of the rows.",
        rich_help_panel=_TABLE,
    ),
]
Individual = Annotated[
    str | None,
    typer.Option("--individual", help="The column that says who.", rich_help_panel=_TABLE),
]
Row = Annotated[
    str | None, typer.Option("--row", help="The column of rows.", rich_help_panel=_TABLE)
]
Column = Annotated[
    str | None, typer.Option("--column", help="The column of columns.", rich_help_panel=_TABLE)
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", help="The column of weights; else 1.", rich_help_panel=_TABLE),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        metavar="N|A,B,...|@FILE",
        help="The public rows of the grid: how many (0 to N-1), their names, or a file of them. "
        "Without it there is no grid, and 'found_cells(...)' finds cells privately.",
        rich_help_panel=_TABLE,
    ),
]
GridColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="N|A,B,...|@FILE",
        help="The public columns, in the same way; else the same as --rows.",
        rich_help_panel=_TABLE,
    ),
]
Outside = Annotated[
    str | None,
    typer.Option(
        "--outside",
        help="Records outside the grid: refuse or drop. Else a file with any is refused, and rows "
        "of a database are dropped.",
        rich_help_panel=_TABLE,
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        help="A public table of other people, read in the same way: gives weights its bounds.",
        rich_help_panel=_TABLE,
    ),
]
Like = Annotated[
    Path | None,
    typer.Option("--like", help="A similar file that is public: errors are predicted on it."),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        "--threshold", help="A cell is 1 where it is at least this.", rich_help_panel=_MATRIX
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header", help="The .csv has no line of names on top.", rich_help_panel=_MATRIX
    ),
]
LowRank = Annotated[
    str | None,
    typer.Option(
        "--low-rank", metavar="K|auto", help="Keep the largest K parts.", rich_help_panel=_AFTER
    ),
]
Positive = Annotated[
    bool, typer.Option("--positive", help="Raise negative totals to 0.", rich_help_panel=_AFTER)
]
Whole = Annotated[
    bool, typer.Option("--whole", help="Round to whole numbers.", rich_help_panel=_AFTER)
]
Save = Annotated[
    Path | None,
    typer.Option("--save", help="Write the released matrix: .csv or .npy.", rich_help_panel=_AFTER),
]


@dataclass(frozen=True)
class ColumnOptions:
    """Where a table says who, where and how much: its columns, or a statement."""

    select: Select = None
    individual: Individual = None
    row: Row = None
    column: Column = None
    weight: Weight = None


@dataclass(frozen=True)
class GridOptions:
    """How a file is read: which grid there is at all, or when a cell says yes."""

    rows: Rows = None
    columns: GridColumns = None
    outside: Outside = None
    reference: Reference = None
    threshold: Threshold = None
    no_header: NoHeader = False

    def reader(self, price: options.Price, named: ColumnOptions) -> Callable[[Path], Dataset]:
        """Return how files are read: the same way for the data and for public ones.

        Raises:
            InputError: when options do not go with the unit.
        """
        if price.unit.name == "participant":
            if self.threshold is not None or self.no_header:
                raise InputError("--threshold and --no-header belong to --unit row or cell.")
            grid: dict[str, Any] = {} if self.outside is None else {"outside": self.outside}
            if self.rows is not None:
                columns = self.rows if self.columns is None else self.columns
                grid["rows"] = _names(self.rows, "--rows")
                grid["columns"] = _names(columns, "--columns")
            elif self.columns is not None:
                raise InputError("--columns goes with --rows, which names the rows of the grid.")
            return partial(_read_table, named=named, grid=grid)
        if any(item is not None for item in (*astuple(named), self.rows, self.columns)):
            raise InputError("--individual, --row, --rows and so on belong to --unit participant.")
        return partial(_read_bits, threshold=self.threshold, no_header=self.no_header)

    def parse(self, text: str, price: options.Price, reader: Callable[[Path], Dataset]) -> Query:
        """Return the question that the text asks about such data."""
        from tulle.core import registry
        from tulle.core.query import parse

        kind = "contributions" if price.unit.name == "participant" else "matrix"
        names = dict(registry.find("query", kind))
        if self.reference is not None:
            if kind == "matrix":
                raise InputError("--reference belongs to --unit participant.")
            names["weights"] = partial(names["weights"], reference=reader(self.reference))
        return parse(text, names)


@dataclass(frozen=True)
class Finish:
    """What is done with the released matrix, at no cost."""

    low_rank: LowRank = None
    positive: Positive = False
    whole: Whole = False
    save: Save = None

    def steps(self, query: Query, dataset: Dataset) -> Callable[[Release], Release]:
        """Return what is done with the release, checked before anything is paid."""
        if (self.low_rank or self.positive or self.whole) and query.name != "weights":
            raise InputError("--low-rank, --positive and --whole are for totals: 'weights(...)'.")
        if self.low_rank not in (None, "auto"):
            rank, shape = whole_number(str(self.low_rank)), dataset.facts(Unit.of("participant"))
            most = min(shape["rows"] or 0, shape["columns"] or 0)
            if rank is None or (most and rank > most):
                upto = f" up to {most}, the shorter side," if most else ""
                raise InputError(
                    f"--low-rank is a whole number{upto} or auto; got {self.low_rank!r}."
                )
        if self.save is not None:
            if self.save.suffix not in (".csv", ".npy"):
                raise InputError(f"--save writes .csv or .npy; got {self.save}.")
            answering.check_out(self.save)
        return self._take

    def _take(self, release: Release) -> Release:
        from tulle.matrices.contributions import low_rank as steps

        if self.low_rank is not None:
            rank = self.low_rank
            release = steps.then_low_rank(release, "auto" if rank == "auto" else int(rank))
        if self.positive:
            release = steps.then_positive(release)
        if self.whole:
            release = steps.then_whole(release)
        if self.save is not None:
            _write(self.save, release.value)
        return release


@app.command("plan")
@command
def plan_matrix(
    file: File,
    question: Question,
    unit: UnitName,
    epsilon: options.Epsilon,
    answer_options: options.AnswerOptions,
    named: ColumnOptions,
    reading: GridOptions,
    like: Like = None,
    as_json: options.Json = False,
) -> None:
    """Show the mechanisms, their price and predicted error. Spends nothing."""
    price = answer_options.price(unit, epsilon, ("participant", "row", "cell"))
    for name, public in (("--like", like), ("--reference", reading.reference)):
        options.check_public(name, public, file)
    reader = reading.reader(price, named)
    query = reading.parse(question, price, reader)
    asking = answer_options.asking(query, price, None if like is None else reader(like))
    plan.present(reader(file), asking, _public(price), as_json=as_json)


@app.command("ask")
@command
def ask(
    file: File,
    question: Question,
    unit: UnitName,
    epsilon: options.Epsilon,
    booking: answering.Booking,
    answer_options: options.AnswerOptions,
    named: ColumnOptions,
    reading: GridOptions,
    finish: Finish,
    like: Like = None,
    out: answering.Out = None,
    as_json: options.Json = False,
) -> None:
    """Answer a question and record its price. The identical question again is free."""
    price = answer_options.price(unit, epsilon, ("participant", "row", "cell"))
    for name, public in (("--like", like), ("--reference", reading.reference)):
        options.check_public(name, public, file)
    reader = reading.reader(price, named)
    query = reading.parse(question, price, reader)
    ledger_account = booking.ledger_account(file.name)
    answering.check_out(out)
    dataset = reader(file)
    after = finish.steps(query, dataset)
    asking = answer_options.asking(query, price, None if like is None else reader(like))
    answering.answer(
        dataset,
        asking,
        ledger_account,
        _public(price),
        again=booking.again,
        out=out,
        as_json=as_json,
        after=after,
    )


def _read_table(path: Path, *, named: ColumnOptions, grid: dict[str, Any]) -> Dataset:
    from tulle.matrices.contributions.data import Contributions

    given = asdict(named)
    select = given.pop("select")
    if path.suffix == ".toml":
        if select is None or any(value is not None for value in given.values()):
            raise InputError(
                "From a database say --select 'SELECT row, column, weight FROM ...', and leave out "
                "--individual, --row, --column and --weight."
            )
        from tulle.sql.data import Database

        return Contributions.from_query(Database.from_toml(path), select, **grid)
    missing = [f"--{name}" for name in ("individual", "row", "column") if given[name] is None]
    if missing or select is not None:
        raise InputError(
            f"A table's columns are named with --individual, --row and --column (and --weight); "
            f"missing: {', '.join(missing) or 'none'}. --select is for databases."
        )
    return Contributions.read(path, **given, **grid)


def _names(text: str, what: str) -> int | list[Any]:
    if text.startswith("@"):
        with reading(text[1:], "it is not text"):
            listed = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    elif (number := whole_number(text)) is not None:
        return number
    else:
        listed = [name.strip() for name in text.split(",")]
    listed = [name for name in listed if name]
    if not listed:
        raise InputError(f"{what} names nothing.")
    numbers = [whole_number(name) for name in listed]
    return listed if None in numbers else numbers


def _read_bits(path: Path, *, threshold: str | None, no_header: bool) -> Dataset:
    from tulle.matrices.binary.data import BinaryMatrix

    return BinaryMatrix.read(path, threshold=threshold, header=not no_header)


def _write(path: Path, value: Any) -> None:
    import numpy as np

    from tulle.matrices.binary.data import BinaryMatrix

    held = np.asarray(value.to_numpy() if isinstance(value, BinaryMatrix) else value)
    if path.suffix == ".npy":
        np.save(path, held, allow_pickle=False)
    else:
        np.savetxt(path, np.atleast_2d(held), delimiter=",", fmt="%.17g")


def _public(price: options.Price) -> str:
    if price.unit.name == "participant":
        return "Public: the rows and columns of the grid; not who contributed, nor how many did."
    return "Public: how many rows and columns the matrix has."
