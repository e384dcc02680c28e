"""Only units that exist can be made."""

from __future__ import annotations

import pytest

from tulle.core.errors import UnitError
from tulle.core.unit import UNITS, Unit


def test_only_units_that_exist_can_be_made() -> None:
    for name, unit in UNITS.items():
        assert Unit(unit.name, unit.relation, unit.meaning) == Unit.of(name)
        other = "replace" if unit.relation == "add-remove" else "add-remove"
        with pytest.raises(UnitError, match="proved for those that exist"):
            Unit(name, other, unit.meaning)  # type: ignore[arg-type]
        with pytest.raises(UnitError):
            Unit(name, unit.relation, "something else")
    with pytest.raises(UnitError):
        Unit("household", "add-remove", "all edges of a household")


class Claimed(Unit):
    """A unit that is not looked at when it is made."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", "edge")
        object.__setattr__(self, "period", None)


def test_a_unit_that_was_not_looked_at_is_refused_where_it_is_used() -> None:
    """The noise would be that of an edge that comes or goes, and the guarantee says otherwise."""
    edge = UNITS["edge"]
    changed = Unit("edge", edge.relation, edge.meaning)
    object.__setattr__(changed, "relation", "replace")
    for unit in (Claimed("edge", "replace", "any one edge"), changed):
        with pytest.raises(UnitError, match="made by hand"):
            Unit.of(unit)
