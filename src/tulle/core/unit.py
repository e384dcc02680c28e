"""Who is protected, and what a neighbouring dataset is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tulle.core.errors import UnitError, raise_alone
from tulle.core.public import public

if TYPE_CHECKING:
    from tulle.core.dataset import Dataset

Relation = Literal["add-remove", "replace"]


_EXISTING: dict[str, tuple[Relation, str]] = {
    "edge": ("add-remove", "any one edge; the set of nodes is public"),
    "node": ("add-remove", "any one node together with all its edges"),
    "row": ("replace", "all values in any one row"),
    "cell": ("replace", "any one value of the matrix"),
    "participant": ("add-remove", "any one participant with all their records"),
    "client": ("replace", "everything any one client reports"),
}

PERIODS = ("day", "week", "month", "year")
"""What participants' and edges' records can be divided into: those of one period each."""

_EXISTING |= {
    f"participant-{period}": (
        "add-remove",
        f"any one participant's records of any one {period}; records without a time are one more "
        f"{period}",
    )
    for period in PERIODS
}
_EXISTING |= {
    f"edge-{period}": (
        "add-remove",
        f"any one edge's records of any one {period}; records without a time are one more "
        f"{period}; the set of nodes is public",
    )
    for period in PERIODS
}


@public("Plan, pay, release")
@dataclass(frozen=True)
class Unit:
    """The thing whose presence a release hides.

    Two datasets are neighbours when one comes from the other by adding or removing one unit
    (``add-remove``) or by changing one unit's value (``replace``).

    Example:
        >>> Unit.of("edge").relation
        'add-remove'
    """

    name: str
    relation: Relation
    meaning: str
    base: str = field(init=False, repr=False, compare=False)
    """The unit whose records are divided into periods; of others, the name itself."""
    period: str | None = field(init=False, repr=False, compare=False)
    """The period of whose records a unit is; None when all records of a unit are protected."""

    def __post_init__(self) -> None:
        if _EXISTING.get(self.name) != (self.relation, self.meaning):
            raise UnitError(
                f"There is no unit {self.name!r} with this relation and meaning: mechanisms are "
                f"proved for those that exist. Name one of: {', '.join(_EXISTING)}."
            )
        base, _, period = self.name.partition("-")
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "period", period or None)

    @classmethod
    def of(cls, unit: str | Unit) -> Unit:
        """Return the unit of that name.

        Raises:
            UnitError: when no unit has that name.
        """
        if isinstance(unit, Unit):
            if type(unit) is not Unit or unit not in UNITS.values():
                raise UnitError(
                    "unit= is made by hand, and mechanisms are proved for those that exist. Name "
                    f"one of: {', '.join(UNITS)}."
                )
            return UNITS[unit.name]
        try:
            return UNITS[unit]
        except (KeyError, TypeError):
            known = ", ".join(UNITS)
            dated = ""
            if isinstance(unit, str) and unit.partition("-")[2] in PERIODS:
                dated = (
                    " Of these, participants of a database and edges of a graph have records "
                    "with times."
                )
            raise_alone(
                UnitError(
                    f"unit={unit!r} is not known. Say who is protected with one of: {known}.{dated}"
                )
            )

    def neighbours(self, dataset: Dataset) -> Iterator[Dataset]:
        """Yield every neighbour of a small dataset; the audit relies on this being complete."""
        return dataset.neighbours(self)

    def __str__(self) -> str:
        return self.name


UNITS: dict[str, Unit] = {
    name: Unit(name, relation, meaning) for name, (relation, meaning) in _EXISTING.items()
}
