"""A graph that was made up from private statistics: public, and not sealed."""

from __future__ import annotations

import base64
import zlib
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.errors import InputError
from tulle.core.labels import Labels
from tulle.core.validate import counted
from tulle.graphs.data import Graph


class SyntheticGraph(Graph):
    """A synthetic graph: a :class:`tulle.Graph` that anyone may see, copy and store.

    A sealed graph has no JSON form; this one has, because it was made from released numbers only.

    Example:
        >>> SyntheticGraph.from_edges([(0, 1), (1, 2)], nodes=4)
        <SyntheticGraph: 4 nodes, 2 edges>
    """

    def __repr__(self) -> str:
        nodes, edges = counted(self.node_count, "node"), counted(self.edge_count, "edge")
        return f"<SyntheticGraph: {nodes}, {edges}>"

    def columns(self, labels: Labels) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a row for each edge, by the graph's own labels, and the names of the keys."""
        one, other = self.edges().T
        return {"source": self.labels[one], "target": self.labels[other]}, ("source", "target")

    def __reduce_ex__(self, protocol: Any) -> Any:
        labels = None if self._labels is None else self._labels.tolist()
        return _rebuild, (self.node_count, self.edges(), labels)


def _rebuild(nodes: int, edges: npt.NDArray[np.int64], labels: list[Any] | None = None) -> Graph:
    return SyntheticGraph.from_edges(edges, nodes=nodes, labels=labels)


@registry.register("value", "synthetic", "synthetic_graph")
class SyntheticGraphCodec:
    """A synthetic graph as JSON: the gaps between sorted edges, compressed."""

    type: ClassVar[type] = SyntheticGraph

    @staticmethod
    def encode(value: SyntheticGraph) -> dict[str, Any]:
        """Return the edges as gaps between the numbers u·n + v, the high bytes together."""
        first, second = value.edges().T
        gaps = np.diff(first * value.node_count + second, prepend=0).astype("<i8")
        planes = gaps.view(np.uint8).reshape(-1, 8).T.tobytes()
        packed = base64.b64encode(zlib.compress(planes, 6)).decode("ascii")
        written = {"nodes": value.node_count, "edges": value.edge_count, "packed": packed}
        if value._labels is not None:
            written["labels"] = [_written(label) for label in value.labels.tolist()]
        return written

    @staticmethod
    def decode(data: Any) -> Graph:
        """Read what :meth:`encode` wrote.

        Raises:
            InputError: when the edges are not as many as it says, or not between its nodes.
        """
        nodes, count = int(data["nodes"]), int(data["edges"])
        planes = np.frombuffer(zlib.decompress(base64.b64decode(data["packed"])), np.uint8)
        if len(planes) != 8 * count:
            raise InputError("This synthetic graph does not have the edges that it counts.")
        gaps = np.ascontiguousarray(planes.reshape(8, count).T).view("<i8").ravel()
        edges = np.column_stack(np.divmod(np.cumsum(gaps), max(nodes, 1)))
        return SyntheticGraph.from_edges(edges, nodes=nodes, labels=data.get("labels"))


def _written(label: Any) -> int | str:
    """Return a label as JSON can hold it: numbers as they are, anything else as text."""
    return label if type(label) is int else str(label)
