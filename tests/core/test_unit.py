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
