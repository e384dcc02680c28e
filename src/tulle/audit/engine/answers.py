"""What a callable under test gave, as something to count: any value at all, or how it failed.

Two answers count as equal only if an onlooker could not tell them apart: 1 and 1.0 differ, 0.0 and
-0.0 differ, every nan is the same. Nothing that a callable returns makes this fail.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np

from tulle.core.release import Release
from tulle.graphs.data import Graph

LARGEST_WIDTH = 4096
"""Of longer answers only so many leading numbers are looked at one by one."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_VARYING = ("debit", "versions")
"""What differs between two releases without saying anything about the data."""


@dataclass(frozen=True)
class Failure:
    """A run that raised. An onlooker sees the type and the text, so both are the answer."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return what is seen of an exception."""
        try:
            text = str(error)
        except Exception:  # noqa: BLE001
            text = ""
        return cls(_name(type(error)), text)


@dataclass(frozen=True)
class Answer:
    """One answer: what tells it from others, of what sort it is, the numbers in it."""

    key: Hashable
    sort: str
    text: str
    numbers: tuple[float, ...]
    failed: bool


def attempt(answer: Callable[[Any], Any], dataset: Any) -> Any:
    """Return one answer, or the failure in its place."""
    try:
        return answer(dataset)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Failure.of(error)


def describe(value: Any) -> Answer:
    """Return a value as an answer.

    Example:
        >>> describe(float("nan")).key == describe(np.float64("nan")).key
        True
        >>> describe(0.0).key == describe(-0.0).key
        False
    """
    failed = isinstance(value, Failure)
    sort = f"raises {value.kind}" if failed else f"is of type {_name(type(value))}"
    try:
        key: Hashable = _key(value)
        hash(key)
    except Exception:  # noqa: BLE001
        # Nothing can be compared but the type: such answers say less, and never too much.
        key = (sort,)
    try:
        numbers = tuple(islice(_numbers(value), LARGEST_WIDTH))
    except Exception:  # noqa: BLE001
        numbers = (math.nan,)
    return Answer(key, sort, _shown(value), numbers, failed)


def _name(kind: type) -> str:
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def _shown(value: Any) -> str:
    if isinstance(value, Failure):
        return _short(f"raises {value.kind}: {value.text}")
    try:
        return _short(f"answer is {value}")
    except Exception:  # noqa: BLE001
        return f"answer is a {_name(type(value))}"


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


def _key(value: Any) -> Hashable:
    kind = _name(type(value))
    if value is None or isinstance(value, bool | int | str | bytes | Failure):
        return kind, value
    if isinstance(value, float):
        # Hexadecimal tells zeros of either sign apart, and writes every nan alike.
        return "float", value.hex()
    if isinstance(value, complex):
        return "complex", value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        plain = value.item()
        return (kind, repr(value)) if isinstance(plain, np.generic) else _key(plain)
    if isinstance(value, np.ma.MaskedArray):
        return kind, _key(np.ma.getmaskarray(value)), _key(np.asarray(value.filled()))
    if isinstance(value, np.ndarray):
        return kind, value.dtype.str, value.shape, tuple(map(_key, value.ravel().tolist()))
    if isinstance(value, Mapping):
        return kind, tuple((_key(name), _key(entry)) for name, entry in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(map(_key, value))
    if isinstance(value, set | frozenset):
        return kind, frozenset(map(_key, value))
    if isinstance(value, Graph):
        return kind, value.node_count, np.asarray(value.edges()).tobytes()
    if is_dataclass(value):
        return kind, tuple((name, _key(entry)) for name, entry in _entries(value))
    if isinstance(value, Hashable) and "__eq__" in _defined(type(value)):
        return kind, value
    return kind, pickle.dumps(value)


def _defined(kind: type) -> set[str]:
    """Return the names that a type or its ancestors define, other than object."""
    return {name for base in kind.__mro__[:-1] for name in vars(base)}


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    left_out = _VARYING if isinstance(value, Release) else ()
    for field in fields(value):
        if field.name not in left_out:
            yield field.name, getattr(value, field.name)


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers in an answer, nan in place of what is none."""
    if isinstance(value, Failure):
        yield from _numbers(value.text)
    elif isinstance(value, str):
        # A text that is never the same twice may still tell by the numbers in it.
        found = [float(number) for number in _NUMBER.findall(value)]
        yield from found or [math.nan]
    elif isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
        yield from _numbers(value.item())
    elif isinstance(value, complex):
        yield from (value.real, value.imag)
    elif isinstance(value, Real) or hasattr(value, "as_tuple"):
        try:
            yield float(value)
        except OverflowError:
            yield math.copysign(math.inf, value)
    elif isinstance(value, np.ndarray):
        for entry in value.ravel()[:LARGEST_WIDTH].tolist():
            yield from _numbers(entry)
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from _numbers(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _numbers(entry)
    elif isinstance(value, Graph):
        yield from (float(value.node_count), float(value.edge_count))
    elif isinstance(value, Release):
        yield from _numbers(value.value)
    elif is_dataclass(value):
        for _, entry in _entries(value):
            yield from _numbers(entry)
    else:
        yield math.nan
