"""Options that go together are one dataclass; the command line still sees each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def flatten(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function whose parameters that are dataclasses are replaced by their fields.

    So that several commands share options by naming one group: a field is an option, annotated as
    a parameter would be, and the function gets the group made of what the user said.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Place:
        ...     street: str
        ...     number: int = 1
        >>> @flatten
        ... def visit(name: str, place: Place) -> None:
        ...     print(name, place)
        >>> list(inspect.signature(visit).parameters)
        ['name', 'street', 'number']
        >>> visit(name="Ann", street="Mill Lane")
        Ann Place(street='Mill Lane', number=1)
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(_keyword(name, kind, parameter.default))
            continue
        groups[name] = kind
        own = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = parameter.empty if field.default is MISSING else field.default
            parameters.append(_keyword(field.name, own[field.name], default))

    def gathered(**given: Any) -> None:
        for name, kind in groups.items():
            own = {field.name for field in fields(kind)}
            made = kind(**{key: given.pop(key) for key in own & given.keys()})
            given[name] = made
        function(**given)

    gathered.__name__, gathered.__doc__ = function.__name__, function.__doc__
    gathered.__module__ = function.__module__
    gathered.__annotations__ = {item.name: item.annotation for item in parameters}
    gathered.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return gathered


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
