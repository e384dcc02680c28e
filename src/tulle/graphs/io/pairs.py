"""From whatever a user calls a list of pairs to checked node numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Wholes
from tulle.core.cells import plain
from tulle.core.errors import InputError, raise_alone
from tulle.core.validate import counted
from tulle.graphs.io.labels import as_array, canonical, ordered
from tulle.graphs.io.node_sets import Declared

Progress = Callable[[float, str], None]
"""Told how far reading is, and what is going on."""

# From here on a float no longer tells whole numbers apart: the next one is rounded to this.
_LARGEST_EXACT_FLOAT = 2**53


@dataclass(frozen=True, repr=False)
class FactorisedPairs:
    """Node numbers of both ends of each pair, the number of nodes, and the labels if any.

    ``outside`` counts the pairs that were dropped because an end is not among the declared nodes.
    ``declared`` says whether the nodes were declared, and not read off the pairs.
    """

    nodes: int
    first: Wholes
    second: Wholes
    labels: npt.NDArray[Any] | None = None
    outside: int = 0
    declared: bool = False
    mirrored: bool = False
    """Whether a pair and its reverse are meant as one edge, and no repeat of it."""
    bad: int = 0
    """How many lines were left out because they name no pair."""
    header: tuple[str, ...] = ()
    """The names of the two columns, where a header has them."""


def factorise(edges: Any, nodes: Declared) -> FactorisedPairs:
    """Return checked node numbers for pairs given as an array or a list.

    With a number for ``nodes`` the pairs must hold whole numbers below it. Otherwise the nodes
    are labels in their one order: those declared, or those that occur.

    Raises:
        InputError: when the pairs are not usable; it names a row, never a value.
    """
    edges = plain(edges)
    if np.ma.is_masked(edges):
        raise InputError("edges holds missing values (masked); drop those rows.")
    if not hasattr(edges, "__array__"):
        edges = list(_iterate(edges))
        _check_rows(edges)
    try:
        table = np.asarray(edges)
    except (ValueError, TypeError, OverflowError):
        table = _object_table(edges)
    if isinstance(edges, list) and edges and (table.ndim != 2 or table.dtype.kind != "i"):
        # numpy looked at all labels at once, and would even merge 1 and "1": each by itself.
        table = _object_table(edges)
    if table.shape in ((0,), (0, 0), (0, 2)):
        table = np.empty((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InputError(_shape_advice(table.shape))
    if table.dtype.kind == "u" and table.size and int(table.max()) >= 2**63:
        table = table.astype(object)  # the same labels, one by one
    if table.dtype.kind in "iuf":
        return number_ids(_whole_numbers(table), nodes)
    if table.dtype.kind == "b":
        raise InputError(
            "The pairs hold true/false values, not nodes. An adjacency matrix goes through "
            "Graph.from_scipy."
        )
    if table.dtype.kind not in "OUST":
        raise InputError(f"Pairs of type {table.dtype} are not nodes; use integers or strings.")
    names = [[_label(end, row) for end in pair] for row, pair in enumerate(table.tolist())]
    if not isinstance(nodes, int):
        return number_names([pair[0] for pair in names], [pair[1] for pair in names], nodes)
    if not all(type(end) is int and end < 2**63 for pair in names for end in pair):
        raise InputError(
            f"With nodes={nodes} the pairs must hold whole numbers from 0 to nodes - 1; got other "
            "labels. Leave nodes= out to have labels numbered, or number them yourself."
        )
    return number_ids(np.array(names, dtype=np.int64), nodes)


def number_ids(table: Wholes, nodes: Declared) -> FactorisedPairs:
    """Return checked node numbers for pairs of whole-number ids."""
    if len(table) and int(table.min()) < 0:
        row = int(np.argmax((table < 0).any(axis=1)))
        raise InputError(f"Row {row} of edges holds a negative id; ids start at 0.")
    if not isinstance(nodes, list):
        return _number_integers(table, nodes)
    small = [
        (label, place)
        for place, label in enumerate(nodes)
        if type(label) is int and -(2**63) <= label < 2**63
    ]
    known = np.array([label for label, _ in small], dtype=np.int64)
    places = np.array([place for _, place in small], dtype=np.int64)
    if not len(known):
        return _within(np.full(table.shape, -1, dtype=np.int64), nodes)
    found = np.minimum(np.searchsorted(known, table), len(known) - 1)
    return _within(np.where(known[found] == table, places[found], -1), nodes)


def number_names(first: list[Any], second: list[Any], nodes: list[Any] | None) -> FactorisedPairs:
    """Return node numbers for pairs of labels."""
    codes: dict[Any, int] = {}
    ends = np.empty((len(first), 2), dtype=np.int64)
    for column, names in enumerate((first, second)):
        ends[:, column] = np.fromiter(
            (codes.setdefault(name, len(codes)) for name in names), dtype=np.int64, count=len(names)
        )
    return number_places(list(codes), ends, nodes)


def number_places(labels: list[Any], ends: Wholes, nodes: list[Any] | None) -> FactorisedPairs:
    """Return node numbers for pairs of places in a list of labels, in whatever order it is.

    The nodes are those declared, or all in the list. Labels that are the same, such as 1 and 1.0,
    are one node.
    """
    names = [canonical(label) for label in labels]
    universe = ordered(names) if nodes is None else nodes
    place = {name: number for number, name in enumerate(universe)}
    places = np.fromiter((place.get(name, -1) for name in names), np.int64, count=len(names))
    return _within(places[ends], universe, declared=nodes is not None)


def _within(ends: Wholes, nodes: list[Any], *, declared: bool = True) -> FactorisedPairs:
    """Return the pairs whose ends are both among the nodes; -1 stands for one that is not."""
    inside = (ends >= 0).all(axis=1)
    outside = len(ends) - int(np.count_nonzero(inside))
    if outside:
        ends = ends[inside]
    return FactorisedPairs(
        len(nodes), ends[:, 0], ends[:, 1], as_array(nodes), outside, declared=declared
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
            what = "is not a pair" if length < 0 else f"has {counted(length, 'entry', 'entries')}"
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


def _whole_numbers(table: npt.NDArray[Any]) -> Wholes:
    if table.dtype.kind == "f":
        if not bool(np.isfinite(table).all()):
            raise InputError("edges holds missing or infinite values (NaN); drop those rows.")
        if bool((table != np.floor(table)).any()):
            raise InputError("edges holds numbers with a fractional part; nodes are whole numbers.")
        if bool((np.abs(table) >= _LARGEST_EXACT_FLOAT).any()):
            raise InputError("edges holds floats too large to be exact; pass integers.")
    return table.astype(np.int64)


def _number_integers(table: Wholes, nodes: int | None) -> FactorisedPairs:
    if len(table) == 0:
        return FactorisedPairs(
            nodes or 0, table[:, 0], table[:, 1], declared=isinstance(nodes, int)
        )
    largest = int(table.max())
    if nodes is not None:
        if largest >= nodes:
            row = int(np.argmax((table >= nodes).any(axis=1)))
            raise InputError(
                f"Row {row} of edges holds an id outside 0 to nodes - 1 (nodes={nodes})."
            )
        return FactorisedPairs(nodes, table[:, 0], table[:, 1], declared=True)
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


def _label(value: Any, row: int) -> Any:
    """Return a label in its one form, before any two are compared: what is equal may be no label.

    So whether 1 is read does not follow from whether another row says ``Decimal(1)``.
    """
    if type(value) is str:
        return value
    if value is None or (isinstance(value, float) and value != value):
        raise InputError(f"Row {row} of edges has a missing node; drop it.")
    label = canonical(value)
    if isinstance(label, int | float) and label < 0:
        raise InputError(f"Row {row} of edges holds a negative id; ids start at 0.")
    if isinstance(label, float):
        raise InputError(
            f"Row {row} of edges holds a number with a fractional part; nodes are whole numbers."
        )
    return label
