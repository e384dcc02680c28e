"""One grammar for what is declared: owners, public groups, ranges and types.

The same texts are understood in Python, in TOML, on the command line and in the studio:

- owners: ``orders = customer_id``; several owners of one row are joined by ``and``;
- groups: ``region = north, south``, or a list, ``region = ["north", "a, b"]``;
- ranges: ``orders.price = 0, 100``, ``orders.day = 2024-01-01, 2024-12-31``; an end that is left
  out, or ``inf``, is open;
- types: ``orders.price = DOUBLE``.

Where a mapping is given instead of a text, its values may be texts of this kind or lists.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from tulle.core.errors import InputError, raise_alone

_LINE = re.compile(r'\s*((?:"(?:[^"]|"")+"|[^="])+?)\s*=\s*(.+?)\s*', re.DOTALL)
_AND = re.compile(r'"(?:[^"]|"")*"|\band\b|;', re.IGNORECASE)
_PIECE = re.compile(r"\s*(?:\"((?:[^\"]|\"\")*)\"|'((?:[^']|'')*)'|([^,\s'\"][^,]*?|))\s*(?:,|$)")


def read_pairs(given: Iterable[str] | str, form: str) -> list[tuple[str, str]]:
    """Read ``NAME = VALUE``: each text is one, and a text with several lines is several.

    Raises:
        InputError: showing what could not be read and the form that is understood.

    Example:
        >>> read_pairs("orders.price = 0, 100", "--ranges")
        [('orders.price', '0, 100')]
    """
    texts = given.splitlines() if isinstance(given, str) else given
    found = []
    for text in texts:
        if not text.strip():
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise InputError(f"Write {form}; got {text!r}.")
        found.append((match[1], match[2]))
    return found


def flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is declared for columns by "table.column", also where it is nested by table."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{column}": inner for column, inner in value.items()}
        else:
            found[name] = value
    return found


_END = (str, int, float, date)
_TEXTS = (str, [str])
_BY_COLUMN = (str, [_END])
TOML_FORMS: dict[str, Any] = {
    "url": str,
    "memory": str,
    "public": _TEXTS,
    "owners": {str: _TEXTS},
    "keys": {str: _TEXTS},
    "times": {str: str},
    "tables": {str: str},
    "types": {str: (str, {str: str})},
    "ranges": {str: (*_BY_COLUMN, {str: _BY_COLUMN})},
}
"""What a TOML file may declare, in the form of :func:`is_of_form`."""


def is_of_form(value: Any, form: Any) -> bool:
    """Say whether a value is of a form: a type, one of several, a list or a table of one.

    Example:
        >>> is_of_form({"a": ["b"]}, {str: [str]}), is_of_form({"a": ["b", 1]}, {str: [str]})
        (True, False)
    """
    if isinstance(form, tuple):
        return any(is_of_form(value, one) for one in form)
    if isinstance(form, list):
        return isinstance(value, list) and all(is_of_form(one, form[0]) for one in value)
    if isinstance(form, dict):
        inner = form[str]
        return isinstance(value, dict) and all(is_of_form(v, inner) for v in value.values())
    return isinstance(value, form) and not isinstance(value, bool)


def split_owners(text: str) -> list[str]:
    """Return the owners of one row, which a text joins by ``and``.

    Example:
        >>> split_owners('sender and "and" -> person')
        ['sender', '"and" -> person']
    """
    parts, start = [], 0
    for found in _AND.finditer(text):
        if not found[0].startswith('"'):
            parts.append(text[start : found.start()])
            start = found.end()
    return [part.strip() for part in [*parts, text[start:]]]


def read_owners(lines: Iterable[str] | str, form: str) -> dict[str, list[str]]:
    """Read ``TABLE = OWNER``; a table that is named again has all of these owners.

    Raises:
        InputError: when a line cannot be read.
    """
    owners: dict[str, list[str]] = {}
    for table, owner in read_pairs(lines, form):
        owners.setdefault(table, []).append(owner)
    return owners


def read_values(given: Any, what: str) -> list[Any]:
    """Return listed values: a list as it is, or a text such as ``a, b, 3`` or ``["a", "b"]``.

    Numbers are numbers, NULL is None, and what is in quotes is text.

    Raises:
        InputError: when a text cannot be read as a list.

    Example:
        >>> read_values("north, 'a, b', 3, NULL", "region")
        ['north', 'a, b', 3, None]
    """
    if not isinstance(given, str):
        return list(given)
    text = given.strip()
    if text.startswith("["):
        try:
            return list(tomllib.loads(f"values = {text}")["values"])
        except tomllib.TOMLDecodeError as error:
            raise_alone(InputError(f"{what}: the list cannot be read: {error}."))
    values: list[Any] = []
    place = 0
    while place < len(text) or not values:
        match = _PIECE.match(text, place)
        if match is None or (match.end() == place and place < len(text)):
            raise InputError(
                f'{what}: the list {text!r} cannot be read. Write a, b, \'c, d\', or ["a", "b"].'
            )
        double, single, bare = match.groups()
        if bare is not None:
            values.append(_bare(bare))
        else:
            values.append(
                double.replace('""', '"') if double is not None else single.replace("''", "'")
            )
        place = match.end()
    return values


def read_groups(given: str | Iterable[str], form: str) -> dict[str, list[Any]] | None:
    """Read the public groups of a GROUP BY: ``COLUMN = A, B`` on each line, or a JSON object.

    Raises:
        InputError: when it is neither.
    """
    if isinstance(given, str) and given.strip().startswith("{"):
        try:
            found = json.loads(given)
        except json.JSONDecodeError as error:
            raise_alone(
                InputError(f"Write {form}: {error.msg} at character {error.pos + 1} of the text.")
            )
        if not all(isinstance(values, list) for values in found.values()):
            raise InputError(f"Write {form}: each column has a list of values.")
        return dict(found)
    pairs = read_pairs(given, form)
    return {name: read_values(listed, name) for name, listed in pairs} or None


def read_ends(given: Any, number: Callable[[Any], float] = float) -> tuple[float, float] | None:
    """Return the two ends of a range, or None when it is not one; ``number`` reads an end.

    Example:
        >>> read_ends("0, inf"), read_ends([None, 3])
        ((0.0, inf), (-inf, 3.0))
    """
    try:
        ends: Sequence[Any] = given.split(",") if isinstance(given, str) else list(given)
        if len(ends) != 2:
            return None
        low, high = (_end(end, sign, number) for end, sign in zip(ends, (-1, 1), strict=True))
    except (TypeError, ValueError):
        return None
    return None if not low <= high or low == math.inf or high == -math.inf else (low, high)


def _end(given: Any, sign: int, number: Callable[[Any], float]) -> float:
    if given is None or (isinstance(given, str) and not given.strip()):
        return sign * math.inf
    if isinstance(given, float) and given == sign * math.inf:
        return given
    return number(given)


def _bare(text: str) -> Any:
    if text.upper() == "NULL":
        return None
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
