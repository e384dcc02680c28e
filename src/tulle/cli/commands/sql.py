"""``tulle sql``: aggregates over joins, per participant, from a database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from tulle.cli import answering, options
from tulle.cli.commands import plan
from tulle.cli.common import command, print_json, printer
from tulle.core.errors import InputError, QueryError, raise_alone
from tulle.core.reading import reading
from tulle.core.validate import whole_number
from tulle.sql.dialect import DEFAULT

if TYPE_CHECKING:
    from rich.table import Table

    from tulle.sql.compile.outline import Outline
    from tulle.sql.data import Database
    from tulle.sql.keys.question import DiscoveredTable
    from tulle.sql.queries import SqlQuery
    from tulle.sql.schema.schema import Schema
    from tulle.sql.tables.question import SqlTable
    from tulle.sql.unranged import UnrangedTable

    Asked = SqlQuery | SqlTable | DiscoveredTable | UnrangedTable

app = typer.Typer(
    help="Ask a database for aggregates; everything that one participant owns is protected.",
    no_args_is_help=True,
)

PRIVATE = "private"
"""What --ranges is where bounds are bought."""

_CONNECTING = "Connecting without a TOML file"

Statement = Annotated[
    str,
    typer.Argument(
        metavar="QUESTION",
        help="One SELECT of aggregates, or @FILE that holds it.",
        show_default=False,
    ),
]
UnitName = Annotated[
    str,
    typer.Option(
        "--unit",
        help="Who is protected: participant; with --times also participant-day, -week, -month, "
        "-year.",
        show_default=False,
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--groups",
        metavar="COLUMN=A,B,...",
        help='The public values of a GROUP BY column, also as a list: \'city=["a, b", "c"]\'.',
    ),
]
_FINDING = "Keys of GROUP BY that nobody listed"
Dialect = Annotated[
    str, typer.Option("--dialect", help="The SQL of the question: duckdb, postgres or spark.")
]
Like = Annotated[
    Path | None,
    typer.Option("--like", help="The TOML file of a similar, public database."),
]
_ASSUMED = "What errors are predicted on"


@dataclass(frozen=True)
class Assumed:
    """What is assumed about the data, for predicted errors alone."""

    people: Annotated[
        list[str] | None,
        typer.Option(
            "--people",
            metavar="NUMBER | KIND=NUMBER",
            help="How many people to assume; repeated, for each kind of participants.",
            rich_help_panel=_ASSUMED,
        ),
    ] = None
    rows_per_person: Annotated[
        list[str] | None,
        typer.Option(
            "--rows-per-person",
            metavar="NUMBER | TABLE=MEAN[,MOST]",
            help="In how many rows of a table each is on average, and the most of anybody; "
            "may be repeated.",
            rich_help_panel=_ASSUMED,
        ),
    ] = None
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--values",
            metavar="TABLE.COLUMN=...",
            help="What a column holds: a number of different values, a list A,B,..., or "
            "'= FORMULA' of other columns of its row; may be repeated.",
            rich_help_panel=_ASSUMED,
        ),
    ] = None

    def read(self) -> dict[str, Any]:
        """Return what is assumed, as ``tulle.plan`` wants it."""
        from tulle.sql.schema.declarations import read_pairs

        pairs = read_pairs(self.values or [], "--values TABLE.COLUMN=A,B,...")
        return {
            "people": _one_or_many(self.people, "--people NUMBER or KIND=NUMBER"),
            "rows_per_person": _one_or_many(
                self.rows_per_person, "--rows-per-person NUMBER or TABLE=NUMBER"
            ),
            "values": dict(pairs) or None,
        }


def _one_or_many(given: list[str] | None, form: str) -> Any:
    from tulle.sql.schema.declarations import read_pairs

    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return dict(read_pairs(given, form))


@dataclass(frozen=True)
class QuestionOptions:
    """How the text of a question is to be understood."""

    groups: Groups = None
    dialect: Dialect = DEFAULT
    functions: Annotated[
        list[str] | None,
        typer.Option("--functions", help="A function of your own to allow; may be repeated."),
    ] = None
    keys_per_person: Annotated[
        str | None,
        typer.Option(
            "--keys-per-person",
            metavar="N|private",
            help="For how many keys one person counts at most; private chooses it with a part of "
            "epsilon.",
            rich_help_panel=_FINDING,
        ),
    ] = None
    minimum: Annotated[
        int | None,
        typer.Option(
            "--minimum", help="A key of fewer people is never shown.", rich_help_panel=_FINDING
        ),
    ] = None
    other: Annotated[
        str | None,
        typer.Option(
            "--other",
            metavar="NAME",
            help="Add a row for all other keys.",
            rich_help_panel=_FINDING,
        ),
    ] = None
    top: Annotated[
        int | None,
        typer.Option("--top", help="Show the keys with the most people.", rich_help_panel=_FINDING),
    ] = None

    def parse(self, text: str, as_json: bool, ranges: str | None = None) -> Asked:
        """Return the question; an error points at its place, unless it goes into JSON."""
        from tulle.sql.queries import sql
        from tulle.sql.schema.declarations import read_groups

        if text.startswith("@"):
            with reading(text[1:], "it is not text"):
                text = Path(text[1:]).read_text(encoding="utf-8")
        public = read_groups(self.groups or [], "--groups COLUMN=A,B,...")
        try:
            return sql(
                text,
                groups=public,
                dialect=self.dialect,
                functions=self.functions or (),
                keys_per_person=_count(self.keys_per_person),
                minimum=self.minimum,
                other=self.other,
                top=self.top,
                ranges=ranges,
            )
        except QueryError as error:
            raise_alone(QueryError(str(error) + _pointer(text, str(error), as_json)))


@dataclass(frozen=True)
class Connection:
    """Where the database is, and whose its rows are."""

    database: Annotated[
        str,
        typer.Argument(
            metavar="DATABASE",
            help="A TOML file with url and owners, or a URL: duckdb:///file, duckdb://, "
            "postgresql://..., local[2], spark://...",
            show_default=False,
        ),
    ]
    owners: Annotated[
        list[str] | None,
        typer.Option(
            "--owners",
            metavar="TABLE=OWNER",
            help="Whose a table's rows are; repeated for a table, a row belongs to all of them.",
            rich_help_panel=_CONNECTING,
        ),
    ] = None
    public: Annotated[
        list[str] | None,
        typer.Option(
            "--public",
            metavar="TABLE",
            help="A table that belongs to nobody; may be repeated.",
            rich_help_panel=_CONNECTING,
        ),
    ] = None
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--ranges",
            metavar="TABLE.COLUMN=LOW,HIGH",
            help="Between which numbers or days values lie, such as line.price=0,inf or "
            "visit.day=2020-01-01,2029-12-31; may be repeated. "
            "'private' buys bounds of whatever has none.",
            rich_help_panel=_CONNECTING,
        ),
    ] = None
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--tables",
            metavar="NAME=FILE",
            help="A CSV or Parquet file as a table, with duckdb:// or Spark; may be repeated.",
            rich_help_panel=_CONNECTING,
        ),
    ] = None
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--types",
            metavar="TABLE.COLUMN=TYPE",
            help="The type of a CSV column, such as line.price=DOUBLE; others are text; "
            "may be repeated.",
            rich_help_panel=_CONNECTING,
        ),
    ] = None
    times: Annotated[
        list[str] | None,
        typer.Option(
            "--times",
            metavar="TABLE=COLUMN",
            help="Which column is the time of a table's rows, for units with a period; may be "
            "repeated.",
            rich_help_panel=_CONNECTING,
        ),
    ] = None
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys",
            metavar="TABLE=COLUMN",
            help="By which column, or columns with commas, a row is one of a kind, where the "
            "database does not say: less noise where nobody has two rows; may be repeated.",
            rich_help_panel=_CONNECTING,
        ),
    ] = None

    @property
    def private(self) -> str | None:
        """What the ranges of the question are: bought, or as they are declared."""
        return PRIVATE if PRIVATE in (self.ranges or []) else None

    def open(self) -> Database:
        """Connect.

        Raises:
            InputError: when nothing says whose the rows are, or two places do.
        """
        from tulle.sql.data import Database
        from tulle.sql.schema.declarations import read_owners, read_pairs

        declared = [one for one in self.ranges or [] if one != PRIVATE]
        if self.database.endswith(".toml"):
            said = (self.owners, self.public, declared, self.tables, self.types, self.times)
            if any((*said, self.keys)):
                raise InputError(
                    "--owners, --public, --ranges, --tables, --types, --times and --keys go with a "
                    "URL; a TOML file says them itself."
                )
            return Database.from_toml(self.database)
        if not self.owners:
            raise InputError(
                "Say whose the rows are: --owners TABLE=OWNER for each table, or a TOML file with "
                "url and owners. Nothing can be protected for nobody."
            )
        return Database.connect(
            self.database,
            owners=read_owners(self.owners, "--owners TABLE=OWNER"),
            public=self.public or (),
            ranges=dict(read_pairs(declared, "--ranges TABLE.COLUMN=LOW,HIGH")),
            tables=dict(read_pairs(self.tables or [], "--tables NAME=FILE")),
            types=dict(read_pairs(self.types or [], "--types TABLE.COLUMN=TYPE")),
            times=dict(read_pairs(self.times or [], "--times TABLE=COLUMN")),
            keys=dict(read_pairs(self.keys or [], "--keys TABLE=COLUMN")),
        )

    def name(self) -> str:
        """Return what the account is called unless the user says: never user or password."""
        from tulle.sql.engines.connector import place_of

        place = self.database
        path = urlsplit(place_of(place)).path if "://" in place else place
        return Path(path).name or "database"


@app.command("show")
@command
def show(
    connection: Connection,
    reading: QuestionOptions,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUESTION]", help="Also print the statement that the engine would run."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what is public: tables, columns, owners; for a question, what the engine would run."""
    asked = None if question is None else reading.parse(question, as_json, connection.private)
    opened = connection.open()
    statement = None if asked is None else _statements(_bind(asked, opened, as_json), opened)
    if as_json:
        facts = opened.facts(opened.check_unit("participant"))
        print_json({**facts, **({} if statement is None else {"statement": statement})})
        return
    out = printer()
    out.print(_schema_table(opened.schema))
    if statement is not None:
        out.print(statement, soft_wrap=True)


@app.command("plan")
@command
def plan_question(
    connection: Connection,
    question: Statement,
    unit: UnitName,
    epsilon: options.Epsilon,
    answer_options: options.AnswerOptions,
    reading: QuestionOptions,
    assumed: Assumed,
    like: Like = None,
    as_json: options.Json = False,
) -> None:
    """Show mechanisms, price, predicted error, and who is needed for a row. Spends nothing."""
    price = answer_options.price(unit, epsilon, UNITS)
    asked = reading.parse(question, as_json, connection.private)
    opened = connection.open()
    bound = _bind(asked, opened, as_json)
    asking = replace(
        answer_options.asking(bound, price, _read_like(like, connection.database)),
        assumed=assumed.read(),
    )
    outline = _outline(bound, opened)
    if not as_json:
        _show_outline(outline)
    plan.present(opened, asking, _PUBLIC, as_json=as_json, relation=outline.to_json())


@app.command("ask")
@command
def ask(
    connection: Connection,
    question: Statement,
    unit: UnitName,
    epsilon: options.Epsilon,
    booking: answering.Booking,
    answer_options: options.AnswerOptions,
    reading: QuestionOptions,
    like: Like = None,
    out: answering.Out = None,
    as_json: options.Json = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the answer as CSV, with names and keys.")
    ] = False,
) -> None:
    """Answer a question and record its price. The identical question again is free."""
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other; choose one.")
    price = answer_options.price(unit, epsilon, UNITS)
    asked = reading.parse(question, as_json, connection.private)
    ledger_account = booking.ledger_account(connection.name())
    answering.check_out(out)
    opened = connection.open()
    bound = _bind(asked, opened, as_json)
    asking = answer_options.asking(bound, price, _read_like(like, connection.database))
    answering.answer(
        opened,
        asking,
        ledger_account,
        _PUBLIC,
        again=booking.again,
        out=out,
        as_json=as_json,
        as_csv=as_csv,
    )


UNITS = ("participant", *(f"participant-{name}" for name in ("day", "week", "month", "year")))
_PUBLIC = "Public: names and types of tables and columns, owners, ranges; no row, and not how many."


def _outline(query: Asked, database: Database) -> Outline:
    """Return whose the rows of a question are; those of a table are all the same."""
    from tulle.sql.compile.outline import outline_of
    from tulle.sql.queries import SqlQuery

    rows = query if isinstance(query, SqlQuery) else query.counted().bind(database, {})
    assert isinstance(rows, SqlQuery)
    return outline_of(rows, database.schema)


def _statements(query: Asked, database: Database) -> str:
    """Return what the engine would run, for a table one statement for each thing that is bought."""
    listed: list[Any] = list(query.parts())
    return ";\n\n".join(database.rewritten(part) for part in listed)


def _bind(query: Asked, database: Database, as_json: bool) -> Asked:
    """Bind a question to its database; an error shows the place that it is about."""
    try:
        return query.bind(database)
    except QueryError as error:
        raise_alone(QueryError(str(error) + _pointer(query.text, str(error), as_json)))


def _pointer(text: str, message: str, as_json: bool) -> str:
    """Return the line of the question that an error is about, with the place marked."""
    if as_json:
        return ""
    from tulle.sql.question.error_position import find_place

    place = find_place(text, message)
    if place is None:
        return ""
    line, start, end = place
    shown = text.splitlines()[line].rstrip()
    return f"\n  {shown}\n  {' ' * start}{'^' * (end - start)}"


def _read_like(file: Path | None, database: str) -> Database | None:
    from tulle.sql.data import Database

    if file is None:
        return None
    options.check_public("--like", file, Path(database))
    return Database.from_toml(file)


def _schema_table(schema: Schema) -> Table:
    from tulle.cli.output import simple

    drawn = simple()
    for title in ("table", "whose rows", "columns"):
        drawn.add_column(title, overflow="fold")
    for table, columns in schema.tables.items():
        owners = [str(owner) for owner in schema.owners.get(table, ())]
        ranges = schema.ranges.get(table, {})
        shown = [
            name if name not in ranges else f"{name} in {_ends(ranges[name])}" for name in columns
        ]
        drawn.add_row(table, " and ".join(owners) or "public", ", ".join(shown))
    return drawn


def _ends(found: Any) -> str:
    low, high = (
        f"{end:g}" if isinstance(written, float) or written is None else written
        for written, end in zip(found.to_json(), (found.low, found.high), strict=True)
    )
    return f"[{low}, {high}]"


def _show_outline(outline: Outline) -> None:
    from tulle.cli.output import simple

    drawn = simple()
    for title in ("rows of", "belong to"):
        drawn.add_column(title, overflow="fold")
    for source in outline.sources:
        drawn.add_row(source.name, " and ".join(source.owners) or "nobody (public)")
    out = printer()
    out.print(drawn)
    if outline.joins:
        out.print("joined on   " + " AND ".join(outline.joins))
    several = "; it stays as long as one of its ways does" if outline.alternatives else ""
    out.print(f"each needs  {outline.needs()}{several}")
    if outline.groups > 1:
        out.print(f"groups      {outline.groups:,}, each with an equal share of epsilon")
    if outline.signed:
        out.print(
            "signs       terms may be negative, so both signs are paid for; declare --ranges if "
            "they cannot"
        )
    out.print("")


def _count(text: str | None) -> int | str | None:
    """Return what is a whole number as one; what is not is refused with the question."""
    number = None if text is None else whole_number(text)
    return text if number is None else number
