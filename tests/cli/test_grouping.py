"""Options that go together are one dataclass, and the command line sees each of them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest

from tulle.cli.grouping import flatten


@dataclass(frozen=True)
class Where:
    street: str
    number: int = 1


def visit(name: str, where: Where, late: bool = False) -> None:
    raise LookupError(name, where, late)


def test_a_group_is_replaced_by_its_fields_in_their_order() -> None:
    parameters = inspect.signature(flatten(visit)).parameters
    assert list(parameters) == ["name", "street", "number", "late"]
    assert parameters["street"].default is inspect.Parameter.empty
    assert parameters["number"].default == 1
    assert parameters["late"].default is False


def test_the_command_gets_the_group_made_of_what_was_said() -> None:
    with pytest.raises(LookupError) as found:
        flatten(visit)(name="Ann", street="Mill Lane", late=True)
    assert found.value.args == ("Ann", Where("Mill Lane"), True)
