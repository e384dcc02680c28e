"""Contributions that stay in a database: the engine adds up and clips, only totals come back."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError
from tulle.core.events import Pure
from tulle.core.source import Source
from tulle.matrices.contributions.data import Contributions, KeptCells
from tulle.matrices.contributions.reading import Names, number_values
from tulle.noise import uniform_below
from tulle.noise.charge import PricedCharge, charge

if TYPE_CHECKING:
    from tulle.matrices.contributions.clipping import Limits


class OwnedRows(Protocol):
    """What a database offers for the rows of a SELECT, each with its one owner."""

    def place(self, rows: Sequence[Any], columns: Sequence[Any]) -> None:
        """Say what the rows and columns of the grid are called."""

    def entries(self) -> tuple[Any, Wholes, Floats]:
        """Return owner, cell and weight, sorted, each pair of owner and cell once."""

    def records(self) -> tuple[Any, Any, Any, Any]:
        """Return owner, row, column and weight of every row, in an order of its own."""

    def totals(self, size: int) -> Floats:
        """Return the true total of each cell."""

    def clipped(self, limits: Any) -> Wholes:
        """Return the totals of all owners, each cut down to the limits, in steps."""

    def name_cells(self) -> None:
        """Say that there is no grid: cells are told by the texts of their rows and columns."""

    def kept(self, most: int, exponent: int, bound: int, salt: str) -> Any:
        """Return rows, columns, people and steps of cells, everyone keeping at most so many."""


@registry.register("data", "contributions", "query")
class QueryContributions(Contributions):
    """Contributions whose records are the rows of a SELECT; see ``Contributions.from_query``."""

    def __init__(
        self,
        source: OwnedRows,
        *,
        rows: Names | None = None,
        columns: Names | None = None,
        support: Any = None,
        outside: Literal["drop"] = "drop",
    ) -> None:
        if outside != "drop":
            raise InputError(
                f"Rows of a SELECT that lie outside the grid are left out: outside='drop'; got "
                f"{outside!r}. A refusal would tell whether there is such a row."
            )
        self._source = source
        self._held: tuple[Wholes, Wholes, Floats] | None = None
        if self._declare(rows, columns, support):
            source.place(self._rows, self._columns)
        else:
            source.name_cells()

    @property
    def _individual(self) -> Wholes:  # type: ignore[override]
        return self.entries()[0]

    @property
    def _cell(self) -> Wholes:  # type: ignore[override]
        return self.entries()[1]

    @property
    def _weight(self) -> Floats:  # type: ignore[override]
        return self.entries()[2]

    def entries(self) -> tuple[Wholes, Wholes, Floats]:
        """Return individual, cell and weight of each entry, fetched once. Custodian side."""
        if self._held is None and not self._declared:
            held = Contributions(*self._source.records(), outside="drop")
            self._labels, self._held = held._labels, held.entries()
        if self._held is None:
            owner, cell, weight = self._source.entries()
            self._held = number_values(owner), cell, weight
        return self._held

    def keep(self, most: int, exponent: int, bound: int, source: Source | None) -> KeptCells:
        """Let the engine keep at most so many cells of everyone, and add them up. Custodian side.

        Who has more keeps those with the least digests of a random salt, the owner and the cell,
        which follows from their own records and the salt.
        """
        if self._declared:
            return super().keep(most, exponent, bound, source)
        with charge(PricedCharge(lambda draws: Pure(Fraction(0)), ("uniform",))):
            salt = f"{uniform_below(2**128, source=source):032x}"
        rows, columns, people, steps = self._source.kept(most, exponent, bound, salt)
        return KeptCells(
            people,
            steps,
            lambda chosen: (rows.take(chosen).to_pylist(), columns.take(chosen).to_pylist()),
        )

    def totals(self) -> Floats:
        """Return the true totals, added up by the engine. Custodian side."""
        return self._source.totals(self.shape[0] * self.shape[1]).reshape(self.shape)

    def clipped(self, limits: Limits) -> Wholes:
        """Let the engine clip. Custodian side."""
        return self._source.clipped(limits).reshape(self.shape)
