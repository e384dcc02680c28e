"""From whatever a user calls a list of pairs to checked node numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError, raise_alone

Numbers = npt.NDArray[np.int64]

# Above this a float no longer tells whole numbers apart.
_LARGEST_EXACT_FLOAT = 2**53


@dataclass(frozen=True, repr=False)
class FactorisedPairs:
    """Node numbers of both ends of each pair, the number of nodes, and the labels if any."""

    nodes: int
    first: Numbers
    second: Numbers
    labels: npt.NDArray[Any] | None = None


def factorise(edges: Any, nodes: int | None) -> FactorisedPairs:
    """Return checked node numbers for pairs given as an array or a list.

    With ``nodes`` the pairs must hold whole numbers below it; without, labels are numbered in
    sorted order.

    Raises:
        InputError: when the pairs are not usable; it names a row, never a value.
    """
    if not hasattr(edges, "__array__"):
        edges = list(_iterate(edges))
        _check_rows(edges)
    try:
        table = np.asarray(edges)
    except (ValueError, TypeError, OverflowError):
        table = _object_table(edges)
    if isinstance(edges, list) and table.ndim > 2:
        table = _object_table(edges)  # the labels are themselves sequences
    if table.shape in ((0,), (0, 0), (0, 2)):
        table = np.empty((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InputError(_shape_advice(table.shape))
    if table.dtype.kind in "iuf":
        return _number_integers(_whole_numbers(table), nodes)
    if table.dtype.kind == "b":
        raise InputError(
            "The pairs hold true/false values, not nodes. An adjacency matrix goes through "
            "Graph.from_scipy."
        )
    if table.dtype.kind not in "OUST":
        raise InputError(f"Pairs of type {table.dtype} are not nodes; use integers or strings.")
    if table.dtype.kind in "US" and isinstance(edges, list):
        # numpy turned everything into strings, which would merge 1 and "1".
        table = _object_table(edges)
    if nodes is not None:
        raise InputError(
            f"With nodes={nodes} the pairs must hold whole numbers from 0 to nodes - 1; got other "
            "labels. Leave nodes out to have labels numbered, or number them yourself."
        )
    return _number_labels(table)


def number_ids(first: Numbers, second: Numbers, nodes: int | None) -> FactorisedPairs:
    """Return checked node numbers for whole-number ids that were parsed from a file."""
    return _number_integers(np.stack([first, second], axis=1), nodes)


def number_names(first: list[Any], second: list[Any]) -> FactorisedPairs:
    """Return node numbers for labels, sorted where they can be sorted."""
    names = dict.fromkeys(first)
    names.update(dict.fromkeys(second))
    try:
        ordered = sorted(names)
    except TypeError:
        ordered = list(names)  # labels of mixed types keep the order in which they appear
    place = {name: number for number, name in enumerate(ordered)}
    labels = np.empty(len(ordered), dtype=object)
    labels[:] = ordered
    return FactorisedPairs(
        len(ordered),
        np.fromiter((place[name] for name in first), dtype=np.int64, count=len(first)),
        np.fromiter((place[name] for name in second), dtype=np.int64, count=len(second)),
        labels,
    )


def _iterate(edges: Any) -> Any:
    if isinstance(edges, (str, bytes, dict)):
        raise InputError(
            f"edges is a {type(edges).__name__}; pass an array with two columns or a list of "
            "pairs. A file is read with Graph.read."
        )
    try:
        return iter(edges)
    except TypeError:
        raise_alone(
            InputError(
                f"edges is a {type(edges).__name__}; pass an array with two columns or a list of "
                "pairs. Graphs of other libraries go through Graph.from_networkx, "
                "Graph.from_igraph or Graph.from_scipy."
            )
        )


def _check_rows(rows: list[Any]) -> None:
    for number, row in enumerate(rows):
        length = -1 if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") else len(row)
        if length != 2:
            what = "is not a pair" if length < 0 else f"has {length} entries"
            raise InputError(
                f"Row {number} of edges {what}; each row must be a pair of nodes. Weights and "
                "other columns have to be left out: a graph here has none."
            )


def _object_table(rows: Any) -> npt.NDArray[Any]:
    table = np.empty((len(rows), 2), dtype=object)
    for number, (first, second) in enumerate(rows):
        table[number, 0], table[number, 1] = first, second
    return table


def _shape_advice(shape: tuple[int, ...]) -> str:
    text = f"edges has shape {shape}; it must have two columns, one row per edge."
    if len(shape) == 2 and shape[0] == shape[1]:
        return text + " An adjacency matrix goes through Graph.from_scipy."
    if len(shape) == 2 and shape[0] == 2:
        return text + " Transpose it."
    if len(shape) == 2 and shape[1] > 2:
        return text + " Leave weights and other columns out, for example with edges[:, :2]."
    return text


def _whole_numbers(table: npt.NDArray[Any]) -> Numbers:
    if table.dtype.kind == "f":
        if not bool(np.isfinite(table).all()):
            raise InputError("edges holds missing or infinite values (NaN); drop those rows.")
        if bool((table != np.floor(table)).any()):
            raise InputError("edges holds numbers with a fractional part; nodes are whole numbers.")
        if bool((np.abs(table) > _LARGEST_EXACT_FLOAT).any()):
            raise InputError("edges holds floats too large to be exact; pass integers.")
    elif table.dtype.kind == "u" and table.size and int(table.max()) >= 2**63:
        raise InputError("edges holds ids of 2^63 or more; pass them as strings.")
    return table.astype(np.int64)


def _number_integers(table: Numbers, nodes: int | None) -> FactorisedPairs:
    if len(table) == 0:
        return FactorisedPairs(nodes or 0, table[:, 0], table[:, 1])
    if int(table.min()) < 0:
        row = int(np.argmax((table < 0).any(axis=1)))
        raise InputError(f"Row {row} of edges holds a negative id; ids start at 0.")
    largest = int(table.max())
    if nodes is not None:
        if largest >= nodes:
            row = int(np.argmax((table >= nodes).any(axis=1)))
            raise InputError(
                f"Row {row} of edges holds an id outside 0 to nodes - 1 (nodes={nodes})."
            )
        return FactorisedPairs(nodes, table[:, 0], table[:, 1])
    if largest < 4 * table.size + 1000:
        # Dense ids: a table of places is faster than sorting.
        present = np.zeros(largest + 1, dtype=bool)
        present[table.ravel()] = True
        labels = np.flatnonzero(present)
        if len(labels) == largest + 1:
            return FactorisedPairs(len(labels), table[:, 0], table[:, 1])
        place = np.cumsum(present) - 1
        return FactorisedPairs(len(labels), place[table[:, 0]], place[table[:, 1]], labels)
    labels, places = np.unique(table, return_inverse=True)
    places = places.reshape(table.shape).astype(np.int64)
    return FactorisedPairs(len(labels), places[:, 0], places[:, 1], labels)


def _number_labels(table: npt.NDArray[Any]) -> FactorisedPairs:
    values = table.tolist()
    try:
        whole = all(_is_whole(first) and _is_whole(second) for first, second in values)
        for row, (first, second) in enumerate(values):
            _check_label(first, row)
            _check_label(second, row)
        if whole and values:
            return _number_integers(np.array(values, dtype=np.int64), None)
        return number_names([row[0] for row in values], [row[1] for row in values])
    except TypeError:
        raise_alone(InputError("Labels must be hashable, for example strings or numbers."))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _check_label(value: Any, row: int) -> None:
    if value is None or value != value:
        raise InputError(f"Row {row} of edges has a missing node; drop it.")
    if isinstance(value, float) and not value.is_integer():
        raise InputError(
            f"Row {row} of edges holds a number with a fractional part; nodes are whole numbers."
        )
