"""Counts within and between the parts of a partition of the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.errors import InputError, QueryError, raise_alone
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Shape
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.facts import EdgeFacts, GraphFacts
from tulle.graphs.queries.counts import GraphQuery, ProfiledCount
from tulle.graphs.sensitivity import counts as sensitivity
from tulle.graphs.sensitivity.counts import LocalSensitivity, Profile


@dataclass(frozen=True)
class EdgesWithin(GraphQuery):
    """How many edges have both ends in the same part of a public partition."""

    partition: tuple[int, ...]
    name: ClassVar[str] = "edges_within"
    words: ClassVar[str] = "How many links stay inside one part of the public partition?"
    quantity: ClassVar[str] = "links"

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition", checked_partition(self.partition))

    def truth(self, dataset: Graph) -> int:
        first, second = labels_on(self.partition, dataset)[dataset.edges()].T
        return int((first == second).sum())

    def edge_sensitivity(self, nodes: int) -> int:
        return 1

    def maximum(self, nodes: int) -> int:
        return nodes * max(nodes - 1, 0) // 2

    def objection(self, dataset: Any) -> str | None:
        return wrong_length(dataset, self.partition)

    def __str__(self) -> str:
        return f"{self.name}({shown(self.partition)})"


@dataclass(frozen=True)
class Mixing(GraphQuery):
    """How many edges join each two groups of nodes: the upper half of the mixing matrix.

    The groups are public; whose nodes are in them follows from the public partition or from an
    attribute of the nodes. Edges of nodes in no listed group are not counted.
    """

    groups: tuple[Any, ...]
    by: str = ""
    partition: tuple[int, ...] = ()
    """The place of each node's group in ``groups``; empty when an attribute says it."""
    name: ClassVar[str] = "mixing"
    words: ClassVar[str] = "How many links are there within and between the groups?"
    quantity: ClassVar[str] = "links"
    shape: ClassVar[Shape] = "vector"

    def truth(self, dataset: Graph) -> Wholes:
        count = len(self.groups)
        low, high = np.sort(self._places(dataset)[dataset.edges()], axis=1).T
        counted = low >= 0
        cell = low[counted] * count + high[counted]
        whole = np.bincount(cell, minlength=count * count).reshape(count, count)
        return whole[np.triu_indices(count)].astype(np.int64)

    def _places(self, graph: Graph) -> Wholes:
        """Return each node's group as a place in the list, -1 for none."""
        if not self.by:
            return labels_on(self.partition, graph)
        column = getattr(graph, "node_attributes", {}).get(self.by)
        if column is None:
            raise QueryError(self._lacking(graph._kinds()))
        found = np.full(graph.node_count, -1, dtype=np.int64)
        for place, group in enumerate(self.groups):
            found[column == group] = place
        return found

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 1: an edge is in one place of the matrix or in none."""
        return 1

    def maximum(self, nodes: int) -> int:
        return nodes * max(nodes - 1, 0) // 2

    def entries(self, nodes: int) -> int:
        return len(self.groups) * (len(self.groups) + 1) // 2

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        name = self.by or "group"
        return (Axis(name, list(self.groups), paired=f"other {name}"),)

    def objection(self, dataset: Any) -> str | None:
        if not self.by:
            return wrong_length(dataset, self.partition)
        if not isinstance(dataset, GraphFacts):
            return None
        kind = dataset.kinds.get("node", {}).get(self.by)
        if kind is None:
            return self._lacking(dataset.kinds)
        if any(_kind_of(group) != kind for group in self.groups):
            return f"The attribute {self.by!r} is of kind {kind}; list its groups as such."
        return None

    def _lacking(self, kinds: Any) -> str:
        known = ", ".join(sorted(kinds.get("node", {}))) or "none"
        return (
            f"The nodes of this graph have no attribute {self.by!r} (known: {known}). Give "
            f"attributes with graph.with_attributes(nodes={{{self.by!r}: values}})."
        )

    def __str__(self) -> str:
        if self.by:
            return f"{self.name}(by={self.by!r}, groups={list(self.groups)!r})"
        return f"{self.name}({shown(self.partition)})"


@dataclass(frozen=True)
class DegreeSquares(ProfiledCount):
    """The sum over the parts of a public partition of their degrees together, squared."""

    partition: tuple[int, ...] = ()
    name: ClassVar[str] = "degree_squares"
    words: ClassVar[str] = (
        "What is the sum, over the parts of the public partition, of their degrees squared?"
    )
    quantity: ClassVar[str] = "squared links"

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition", checked_partition(self.partition))

    def part_degrees(self, dataset: Graph) -> Wholes:
        """Return the degrees of each part together. Custodian side."""
        labels = labels_on(self.partition, dataset)
        sums: Wholes = np.bincount(labels, weights=np.diff(dataset.csr()[0])).astype(np.int64)
        return sums

    def truth(self, dataset: Graph) -> int:
        return sum(int(part) ** 2 for part in self.part_degrees(dataset).tolist())

    def edge_sensitivity(self, nodes: int) -> int:
        """Return 4D + 4, D the degrees of a part before it gains an edge: at most n(n-1) - 2."""
        return 4 * max(nodes * (nodes - 1) - 2, 0) + 4

    def maximum(self, nodes: int) -> int:
        return (nodes * max(nodes - 1, 0)) ** 2

    def objection(self, dataset: Any) -> str | None:
        return wrong_length(dataset, self.partition) if self.partition else None

    def __str__(self) -> str:
        return f"{self.name}({shown(self.partition)})"

    def local_sensitivity(self, graph: Graph, length: int) -> LocalSensitivity:
        return sensitivity.degree_squares(self.part_degrees(graph), length)

    def envelope(self, spread: int) -> int:
        return 8 * spread + 4

    def fastest_growth(self, spread: int, length: int) -> Profile | None:
        return None

    def largest_spread(self, nodes: int) -> int:
        return nodes * max(nodes - 1, 0) // 2

    def law_key(self) -> tuple[str, int]:
        return self.name, 0


def _kind_of(group: Any) -> str:
    """Return the kind of attribute that can hold a value."""
    if isinstance(group, bool):
        return "truth value"
    return "text" if isinstance(group, str) else "number"


def labels_on(partition: tuple[int, ...], graph: Graph) -> Wholes:
    """Return the parts of a graph's nodes; on a stand-in of another size, repeated or cut."""
    if not partition:
        return np.zeros(graph.node_count, dtype=np.int64)
    return np.resize(np.array(partition, dtype=np.int64), graph.node_count)


def checked_partition(labels: Any) -> tuple[int, ...]:
    """Return the parts numbered in the order in which they first occur."""
    numbers: dict[Any, int] = {}
    try:
        return tuple(numbers.setdefault(label, len(numbers)) for label in labels)
    except TypeError:
        raise_alone(InputError("partition must list one label for each node, numbers or strings."))


def wrong_length(facts: Any, partition: tuple[int, ...]) -> str | None:
    """Return why a partition does not fit the public number of nodes, or None."""
    if isinstance(facts, EdgeFacts) and len(partition) != facts.nodes:
        return (
            f"The partition has {counted(len(partition), 'label')} and the graph "
            f"{counted(facts.nodes, 'node')}. Pass one label for each node, in their order."
        )
    return None


def shown(partition: tuple[int, ...]) -> str:
    """Return a short text that differs between partitions."""
    digest = sha256(",".join(map(str, partition)).encode()).hexdigest()[:12]
    return f"{counted(len(set(partition)), 'part')}, {digest}"


@public("Count in a graph")
@registry.register("query", "graph", "edges_within")
def edges_within(partition: Any) -> EdgesWithin:
    """Ask how many edges stay inside the parts of a partition that you declare public.

    Example:
        >>> edges_within("aabb").truth(Graph.from_edges([(0, 1), (1, 2)], nodes=4))
        1
    """
    return EdgesWithin(tuple(listed(partition)))


@public("Count in a graph")
@registry.register("query", "graph", "mixing")
def mixing(
    partition: Any = (), *, by: str | None = None, groups: Sequence[Any] | None = None
) -> Mixing:
    """Ask how many edges there are within and between groups of nodes: the mixing matrix.

    Either ``partition`` has a public label for each node, or ``by`` names an attribute of the
    nodes and ``groups`` lists those of its values that everyone may know.

    Raises:
        InputError: when groups are missing, repeated, or said twice.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> mixing("aab").truth(path).tolist()  # a with a, a with b, b with b
        [1, 1, 0]
        >>> staff = path.with_attributes(nodes={"dept": ["law", "law", "art"]})
        >>> mixing(by="dept", groups=["art", "law"]).truth(staff).tolist()
        [0, 1, 1]
    """
    labels = listed(partition)
    if bool(labels) == (by is not None) or (groups is None) != (by is None):
        raise InputError(
            "mixing needs either a partition, one public label for each node, or the name of an "
            "attribute and those of its values that are public: mixing(by='dept', groups=['art', "
            "'law'])."
        )
    if by is None:
        return Mixing(tuple(dict.fromkeys(labels)), "", checked_partition(labels))
    public_groups = tuple(groups or ())
    proper = all(isinstance(group, str | bool | int | float) for group in public_groups)
    if not isinstance(by, str) or not proper or not public_groups:
        raise InputError("by= names an attribute; groups= lists numbers, texts or truth values.")
    if len(set(public_groups)) != len(public_groups) or any(g != g for g in public_groups):
        raise InputError("groups= must list every group once.")
    return Mixing(public_groups, by)


@public("Count in a graph")
@registry.register("query", "graph", "degree_squares")
def degree_squares(partition: Any = ()) -> DegreeSquares:
    """Ask for the sum over the parts of a public partition of their degrees together, squared.

    Without a partition all nodes are one part.

    Example:
        >>> degree_squares("aabb").truth(Graph.from_edges([(0, 1), (1, 2)], nodes=4))
        10
    """
    return DegreeSquares(tuple(listed(partition)))


def listed(partition: Any) -> list[Any]:
    """Return the labels of a partition as a list."""
    if not hasattr(partition, "__iter__"):
        raise InputError("partition must list one label for each node, numbers or strings.")
    return partition.tolist() if isinstance(partition, np.ndarray) else list(partition)
