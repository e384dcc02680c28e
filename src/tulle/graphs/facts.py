"""What is public about a graph: a type for each unit, so that no other unit can get at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.labels import Axis

Kinds = Mapping[str, Mapping[str, str]]
"""Kinds of attributes by owner ("node", "edge") and name."""


class GraphFacts(dict[str, Any]):
    """Public facts of a graph under some unit; the kinds of its attributes are public under all."""

    def __init__(self, facts: Mapping[str, Any], kinds: Kinds) -> None:
        super().__init__(facts)
        self.kinds = kinds


class EdgeFacts(GraphFacts):
    """Under edge privacy: the set of nodes, so how many there are and what they are called."""

    def __init__(self, nodes: int, labels: npt.NDArray[Any] | None, kinds: Kinds) -> None:
        super().__init__({"nodes": nodes}, kinds)
        self._labels = labels

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self["nodes"])

    def axis(self) -> Axis:
        """Return the nodes by name as a side of an answer, in the order of their numbers."""
        return Axis("node", None if self._labels is None else self._labels.tolist())

    def find(self, node: int | str) -> int | None:
        """Return the number of the node with this label, or None."""
        return find(self._labels, self.nodes, node)


class NodeFacts(GraphFacts):
    """Under node privacy: nothing about how many nodes there are, or who they are."""

    def __init__(self, kinds: Kinds) -> None:
        super().__init__({}, kinds)


def node_axis(public: Any) -> tuple[Axis, ...]:
    """Return the nodes as a side of an answer: by name where the set of nodes is public."""
    return (public.axis(),) if isinstance(public, EdgeFacts) else ()


def find(labels: npt.NDArray[Any] | None, count: int, node: int | str) -> int | None:
    """Return the place of a label among the labels of so many nodes, or None."""
    if labels is None:
        return int(node) if isinstance(node, int) and 0 <= node < count else None
    if labels.dtype != object and not (isinstance(node, int) and -(2**63) <= node < 2**63):
        return None
    places = np.flatnonzero(labels == node)
    return int(places[0]) if len(places) else None
