"""Contributions that stay in a database: the engine adds up and clips, only totals come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError
from tulle.matrices.contributions.data import Contributions
from tulle.matrices.contributions.reading import Names, number_values

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

    def totals(self) -> Floats:
        """Return the true totals, added up by the engine. Custodian side."""
        return self._source.totals(self.shape[0] * self.shape[1]).reshape(self.shape)

    def clipped(self, limits: Limits) -> Wholes:
        """Let the engine clip. Custodian side."""
        return self._source.clipped(limits).reshape(self.shape)
