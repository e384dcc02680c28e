"""The sealed table of who contributed how much to which cell, on a public grid or without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tulle.core import cells, registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.cells import read_table
from tulle.core.dataset import Dataset, Facts
from tulle.core.errors import InputError, QueryError, raise_alone
from tulle.core.events import Pure
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.matrices.contributions.labels import pack_labels
from tulle.matrices.contributions.reading import (
    LongTable,
    Names,
    encode,
    read_matrix,
    read_names,
)
from tulle.noise import uniform_below
from tulle.noise.charge import PricedCharge, charge

if TYPE_CHECKING:
    from tulle.matrices.contributions.clipping import Limits

Outside = Literal["refuse", "drop"]

MOST_CELLS = 2**26
"""Of a grid. Sums over one individual's cells are rounded outwards for so many of them."""


class KeptCells(NamedTuple):
    """Cells that anybody keeps, in the order of their names. Custodian side."""

    people: Wholes
    """How many people keep each of them."""
    steps: Wholes
    """What they contribute to it, everyone cut to the bound; in steps."""
    names: Callable[[Wholes], tuple[list[Any], list[Any]]]
    """Gives the rows and the columns of those at some places."""


@public("Hold data")
class Contributions(Dataset):
    """Sealed records (individual, row, column, weight) on a grid that is declared public.

    ``rows`` and ``columns`` name the grid: a list of names, or a number n for the names 0 to
    n - 1. They are never read off the records: who never went anywhere would show. Without both,
    :func:`found_cells` alone can be asked, which finds cells privately. ``support`` is
    a public yes/no matrix of the cells that anyone may contribute to at all (roads that exist,
    say); without it all cells are. Without ``weight`` each record counts 1. Records of one
    individual in one cell are added up.

    Under ``participant`` one individual with all their records may come or go. The grid and the
    support are public, the number of individuals is not.

    Records that lie outside the grid, have no individual or no finite weight are refused, or left
    out with ``outside="drop"``, which no record makes fail. Records outside the support are kept
    and count as nothing in every release. Individuals, rows and columns are told apart by what
    they read as: the number 7, 7.0 and the text "7" are one.

    Raises:
        InputError: when lengths differ, a name is missing or twice, or a record is refused. The
            message names the place of the record and quotes nothing of it: reading is the
            custodian's side.

    Example:
        >>> trips = Contributions(
        ...     individual=["ann", "ann", "bob"], row=["home", "work", "home"],
        ...     column=["work", "home", "work"], rows=["home", "work"], columns=["home", "work"])
        >>> trips
        <Contributions: sealed>
        >>> trips.totals().tolist()
        [[0.0, 2.0], [1.0, 0.0]]
    """

    kind: ClassVar[str] = "contributions"
    units: ClassVar[tuple[str, ...]] = ("participant",)
    _rows: Sequence[Any]
    _columns: Sequence[Any]
    _labels: tuple[Sequence[Any], Sequence[Any]]
    """By which cells are numbered: the grid, or else names in the records, which are not public."""

    def __init__(
        self,
        individual: Any,
        row: Any,
        column: Any,
        weight: Any = None,
        *,
        rows: Names | None = None,
        columns: Names | None = None,
        support: Any = None,
        outside: Outside = "refuse",
    ) -> None:
        if outside not in ("refuse", "drop"):
            raise InputError(f"outside must be 'refuse' or 'drop'; got {outside!r}.")
        if not self._declare(rows, columns, support):
            # In the order of their texts, so that of two cells the order follows from them alone.
            self._labels = _distinct(row, "row"), _distinct(column, "column")
        given = LongTable(individual, row, column, weight)
        self._keep(*encode(given, *self._labels, outside == "drop"))

    def _declare(self, rows: Names | None, columns: Names | None, support: Any) -> bool:
        """Read the grid, and say whether there is one.

        Raises:
            InputError: when one side is there and the other is not.
        """
        if (rows is None) != (columns is None):
            raise InputError(
                "Give both rows= and columns=, or neither: then cells are found with found_cells()."
            )
        self._declared = rows is not None
        if rows is None or columns is None:
            if support is not None:
                raise InputError("support= needs a grid: give rows= and columns= as well.")
            self._rows, self._columns, self._support = (), (), None
            return False
        self._rows, self._columns = read_names(rows, "rows"), read_names(columns, "columns")
        count = len(self._rows) * len(self._columns)
        if count > MOST_CELLS:
            raise InputError(
                f"A grid has at most {MOST_CELLS:,} cells; this one has {count:,}. Without rows= "
                "and columns= cells are found with found_cells()."
            )
        self._support = read_support(support, self.shape)
        self._labels = self._rows, self._columns
        return True

    def _keep(self, individual: Wholes, cell: Wholes, weight: Floats) -> None:
        """Store the records sorted by individual and cell, one for each pair of them."""
        # Not as one number: individuals times cells may be more than an integer holds.
        rises = np.diff(individual) > 0
        more = (np.diff(individual) == 0) & (np.diff(cell) > 0)
        if not bool((rises | more).all()):
            # Stable, so that the rounding of a sum depends on that individual's records alone.
            order = np.lexsort((cell, individual))
            individual, cell, weight = individual[order], cell[order], weight[order]
            fresh = (np.diff(individual) != 0) | (np.diff(cell) != 0)
            starts = np.flatnonzero(np.concatenate(([True], fresh)))
            individual, cell = individual[starts], cell[starts]
            with np.errstate(over="ignore", invalid="ignore"):
                weight = np.add.reduceat(weight, starts)
        self._individual, self._cell, self._weight = individual, cell, weight

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        individual: str,
        row: str,
        column: str,
        weight: str | None = None,
        rows: Names | None = None,
        columns: Names | None = None,
        support: Any = None,
        outside: Outside = "refuse",
    ) -> Contributions:
        """Build from the named columns of a pandas or polars frame, Arrow table or dictionary.

        Example:
            >>> trips = {"who": [1, 1, 2], "from": [0, 1, 0], "to": [1, 0, 1]}
            >>> Contributions.from_table(
            ...     trips, individual="who", row="from", column="to", rows=2, columns=2)
            <Contributions: sealed>
        """
        picked = []
        for name in (individual, row, column, weight):
            try:
                picked.append(None if name is None else table[name])
            except (KeyError, IndexError, TypeError):
                raise_alone(InputError(f"The table has no column {name!r}."))
        return cls(*picked, rows=rows, columns=columns, support=support, outside=outside)

    @classmethod
    def from_matrix(
        cls, matrix: Any, *, protect: Literal["edge", "row", "column"], support: Any = None
    ) -> Contributions:
        """Take a matrix of weights, dense or sparse, as contributions of its edges or rows.

        ``protect`` says who the individual is. ``"edge"``: every cell is an individual of its own,
        and ``weights(bound=b)`` is how much one weight may change; of an undirected graph give the
        upper triangle, or an edge would pay twice. ``"row"`` (or ``"column"``): all of a row
        belongs to one individual, bounded by ``total=`` or ``length=``.

        Protecting a node with its row *and* its column is not of this kind, because an edge then
        needs both its ends: ask a Graph per node, or a Database with two owners for each edge.

        Raises:
            InputError: when it is not a matrix of finite numbers.

        Example:
            >>> calls = Contributions.from_matrix([[0, 3], [1, 0]], protect="row")
            >>> calls.totals().tolist(), calls.individuals()
            ([[0.0, 3.0], [1.0, 0.0]], 2)
        """
        row, column, weight, shape = read_matrix(matrix)
        owners = {"edge": row * shape[1] + column, "row": row, "column": column}
        if protect not in owners:
            raise InputError(
                f"protect must be 'edge', 'row' or 'column'; got {protect!r}. For nodes ask a "
                "Graph with unit='node'."
            )
        return cls(
            owners[protect], row, column, weight, rows=shape[0], columns=shape[1], support=support
        )

    @classmethod
    def read(cls, path: str | Path, **arguments: Any) -> Contributions:
        """Read a CSV file (also .gz) or a Parquet file; the arguments are those of from_table.

        A CSV file has commas between cells and the names of the columns in its first line. Each
        cell is read by itself: what a column holds is never guessed from the records. With
        ``outside="drop"`` lines that are no record are left out as well.
        """
        drop = arguments.get("outside") == "drop"
        return cls.from_table(read_table(path, drop=drop), **arguments)

    @classmethod
    def from_query(
        cls,
        database: Any,
        text: str,
        *,
        rows: Names | None = None,
        columns: Names | None = None,
        support: Any = None,
        outside: Literal["drop"] = "drop",
    ) -> Contributions:
        """Take the rows of ``SELECT row, column, weight`` from a :class:`tulle.Database`.

        The individual is the owner of each row, as the database declares it; rows without an owner
        are left out. Without a weight each row counts 1. Records stay where they are: the engine
        adds up and clips, and only the clipped totals are fetched.

        Without ``rows`` and ``columns`` there is no grid, and cells are found privately
        (:func:`found_cells`): the engine counts people and adds up by cell.

        Rows outside the grid or without a finite weight are always left out. What a SELECT gives
        depends on its conditions, so a refusal would answer any question about a record for free.

        Raises:
            InputError: as the class does, and when names of the grid do not fit the columns.
            QueryError: when rows do not have one owner each, or the SELECT is not supported.

        Example:
            >>> import duckdb, tulle
            >>> connection = duckdb.connect()
            >>> _ = connection.execute(
            ...     "CREATE TABLE trip AS SELECT * FROM (VALUES (1, 'a', 'b'), (1, 'b', 'a'), "
            ...     "(2, 'a', 'b')) t(rider, origin, goal)")
            >>> trips = tulle.Contributions.from_query(
            ...     tulle.Database.connect(connection, owners={"trip": "rider"}),
            ...     "SELECT origin, goal FROM trip", rows=["a", "b"], columns=["a", "b"])
            >>> trips.totals().tolist()
            [[0.0, 2.0], [1.0, 0.0]]
        """
        if not hasattr(database, "engine_totals"):
            raise InputError(
                "from_query reads from a tulle.Database, which knows whose the rows are; for "
                "tables in memory use from_table."
            )
        source = database.engine_totals(text)
        held: Contributions = registry.find("data", "contributions")["query"](
            source, rows=rows, columns=columns, support=support, outside=outside
        )
        held._origin = database.origin
        return held

    # --- custodian side ---------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns of the grid. Public.

        Raises:
            InputError: when no grid is declared: how many there are is not public then.
        """
        if not self._declared:
            raise InputError("These contributions have no grid: give rows= and columns=.")
        return len(self._rows), len(self._columns)

    @property
    def declared(self) -> bool:
        """Whether there is a public grid. Public."""
        return self._declared

    @property
    def row_names(self) -> Sequence[Any]:
        """The declared names of the rows. Public."""
        return self._rows

    @property
    def column_names(self) -> Sequence[Any]:
        """The declared names of the columns. Public."""
        return self._columns

    @property
    def support(self) -> npt.NDArray[np.bool_] | None:
        """The declared cells that anyone may contribute to, or None for all. Public."""
        return self._support

    def totals(self) -> Floats:
        """Return the true totals, row by column, nobody clipped. Custodian side."""
        return self.sum_up(self._weight)

    def individuals(self) -> int:
        """Return how many individuals have a record. Custodian side."""
        return len(np.unique(self._individual))

    def entries(self) -> tuple[Wholes, Wholes, Floats]:
        """Return individual, cell (row by row) and weight of each entry. Custodian side.

        Entries are sorted by individual and cell; each pair of them occurs once.
        """
        return self._individual, self._cell, self._weight

    def clipped(self, limits: Limits) -> Wholes | None:
        """Return totals that were clipped where the records lie; None when they lie here."""
        return None

    def cell_sums(self) -> tuple[list[Any], list[Any], Wholes, Floats]:
        """Return row, column, people and total of every cell that anybody has. Custodian side."""
        _, cell, weight = self.entries()
        found, places = np.unique(cell, return_inverse=True)
        totals = np.bincount(places, weights=weight, minlength=len(found)).astype(np.float64)
        people = np.bincount(places, minlength=len(found)).astype(np.int64)
        rows, columns = self._named(found)
        return rows, columns, people, totals

    def keep(self, most: int, exponent: int, bound: int, source: Source | None) -> KeptCells:
        """Keep at most so many cells of everyone, and add them up. Custodian side.

        Who has more keeps as many of them, chosen evenly: those with the least of random numbers
        that are drawn for each, of equal ones the first cell. So what is kept of one individual
        follows from their own records and coins. Weights are cut to ``bound`` steps of two to the
        power ``exponent``.
        """
        individual, cell, weight = self.entries()
        counts = np.bincount(individual)
        many = np.flatnonzero(counts[individual] > most) if len(individual) else individual
        if len(many):
            with charge(PricedCharge(lambda draws: Pure(Fraction(0)), ("uniform",))):
                coins = uniform_below(2**62, size=len(many), source=source)
            order = np.lexsort((cell[many], coins, individual[many]))
            sorted_by = individual[many][order]
            starts = np.flatnonzero(np.concatenate(([True], sorted_by[1:] != sorted_by[:-1])))
            sizes = np.diff(np.append(starts, len(order)))
            rank = np.arange(len(order)) - np.repeat(starts, sizes)
            dropped = many[order[rank >= most]]
            left = np.delete(np.arange(len(cell)), dropped)
            cell, weight = cell[left], weight[left]
        found, places = np.unique(cell, return_inverse=True)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            steps = np.rint(np.clip(np.ldexp(weight, -exponent), -bound, bound))
        # A sum of huge weights of both signs may be no number; it counts as nothing.
        steps[np.isnan(steps)] = 0.0
        sums = np.zeros(len(found), dtype=np.int64)
        np.add.at(sums, places, steps.astype(np.int64))
        people = np.bincount(places, minlength=len(found)).astype(np.int64)
        return KeptCells(people, sums, lambda chosen: self._named(found[chosen]))

    def _named(self, cell: Wholes) -> tuple[list[Any], list[Any]]:
        """Return the names of the rows and columns of cells. Custodian side."""
        rows, columns = self._labels
        wide = max(len(columns), 1)
        return [rows[at] for at in (cell // wide).tolist()], [
            columns[at] for at in (cell % wide).tolist()
        ]

    def sum_up(self, weight: Floats) -> Floats:
        """Add up one number for each entry into a matrix. Custodian side."""
        size = self.shape[0] * self.shape[1]
        summed = np.bincount(self._cell, weights=weight, minlength=size).astype(np.float64)
        return summed.reshape(self.shape)

    def part(self, chosen: npt.NDArray[np.bool_]) -> Contributions:
        """Return the entries that are chosen, on the same grid. Custodian side."""
        made = Contributions.__new__(Contributions)
        made._rows, made._columns, made._support = self._rows, self._columns, self._support
        made._declared, made._labels = self._declared, self._labels
        made._keep(self._individual[chosen], self._cell[chosen], self._weight[chosen])
        return made

    # --- what privacy needs -----------------------------------------------------------------

    def facts(self, unit: str | Unit) -> Facts:
        """Return what is public: the shape of the grid and the support, if one is declared."""
        self.check_unit(unit)
        if not self._declared:
            return {"rows": None, "columns": None, "support": None}
        rows, columns = self.shape
        packed = None if self._support is None else pack_labels(self._support.astype(np.int64) - 1)
        return {"rows": rows, "columns": columns, "support": packed}

    def neighbours(self, unit: str | Unit) -> Iterator[Contributions]:
        """Yield the table without each individual in turn.

        The other neighbours, with one individual more, are the same pairs the other way round.
        """
        self.check_unit(unit)
        return (self.part(self._individual != one) for one in np.unique(self._individual))


def _distinct(values: Any, what: str) -> Sequence[Any]:
    """Return the different names in a column, in order. Custodian side."""
    return sorted(cells.texts(values, what).drop_null().unique().to_pylist())


def check_grid(facts: Mapping[str, Any]) -> None:
    """Refuse a question about all cells of a grid where there is none.

    Raises:
        QueryError: saying what to do.
    """
    if facts["rows"] is None:
        raise QueryError(
            "These contributions have no grid. Declare which rows and columns there are with rows= "
            "and columns= (--rows, --columns), or ask for found_cells(cells_per_person=...), which "
            "finds cells privately and needs a delta."
        )


def read_support(support: Any, shape: tuple[int, int]) -> npt.NDArray[np.bool_] | None:
    """Check the public matrix of cells that anyone may contribute to.

    Raises:
        InputError: when it is not a matrix of yes and no of the grid's shape.
    """
    if support is None:
        return None
    try:
        given = np.asarray(support)
    except (TypeError, ValueError, OverflowError):
        raise_alone(InputError("support must be a matrix of yes and no."))
    if given.shape != shape:
        raise InputError(f"support has shape {given.shape}; the grid is {shape[0]} x {shape[1]}.")
    if given.dtype != np.bool_ and not np.isin(given, (0, 1)).all():
        raise InputError("support must hold only 0 and 1, or False and True.")
    mask = given.astype(np.bool_)
    if not mask.any():
        raise InputError("support must have at least one cell.")
    mask.flags.writeable = False
    return mask
