"""The question for a synthetic graph per node: put together from what can be released per node."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.query import Composite, Query, Shape
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import edges, triangles
from tulle.graphs.queries.degrees import degree_distribution, max_degree
from tulle.graphs.queries.subgraphs import subgraphs
from tulle.graphs.synthesis.auto.from_releases import graph_from_releases
from tulle.noise import SeededSource

SPREADS = {"degrees": 4.0, "edges": 1.0, "triangles": 2.0, "largest": 0.25, "within": 1.0}
"""What matters how much for the shares of the budget; not chosen on any data."""


@dataclass(frozen=True)
class SyntheticPerNode(Composite):
    """A synthetic graph from the degree distribution and counts, each released by itself."""

    group: str = ""
    groups: int = 1
    name: ClassVar[str] = "synthetic_per_node"
    words: ClassVar[str] = "A synthetic network with numbers that are like those of the real one."
    quantity: ClassVar[str] = "links"
    kind: ClassVar[str] = "graph"
    shape: ClassVar[Shape] = "object"
    weighed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", validate.whole(groups=self.groups, at_least=1))
        if bool(self.group) != (self.groups > 1):
            raise InputError(
                "group names an attribute of nodes, and groups says how many values of it there "
                "are, two or more: give both or none."
            )

    def asked(self) -> dict[str, Query]:
        """Return the questions that are asked of the data, by what they are for."""
        found: dict[str, Query] = {
            "degrees": degree_distribution(),
            "edges": edges(),
            "triangles": triangles(),
            "largest": max_degree(),
        }
        if self.group:
            found["within"] = subgraphs("a-b", where=f"a.{self.group} = b.{self.group}")
        return found

    def parts(self) -> tuple[Query, ...]:
        return tuple(self.asked().values())

    def truth(self, dataset: Graph) -> Graph:
        """Return the graph itself: what a synthetic graph should look like. Custodian side."""
        return dataset

    def objection(self, dataset: Any) -> str | None:
        found = (part.objection(dataset) for part in self.parts())
        return next((reason for reason in found if reason is not None), None)

    def spreads(
        self, values: Mapping[str, Any] | None, deviations: Mapping[str, float] | None
    ) -> list[float]:
        """Return fixed weights: no error of the whole is predicted."""
        return [SPREADS[name] for name in self.asked()]

    def predict(
        self, values: Mapping[str, Any] | None, laws: Mapping[str, Any]
    ) -> tuple[tuple[str, Any], ...]:
        """Return nothing: a graph is no number."""
        return ()

    def assemble(self, parts: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return a graph made up from the parts' releases, and with random bits that follow them.

        The same releases give the same graph; ``graph_from_releases`` makes others of them.
        """
        found = {name: parts[str(query)] for name, query in self.asked().items()}
        shown = [
            np.asarray(release.value, dtype=np.float64).tobytes() for release in found.values()
        ]
        seed = int.from_bytes(hashlib.sha256(b"".join(shown)).digest()[:8], "big")
        made = graph_from_releases(**found, groups=self.groups, source=SeededSource(seed))
        return made, {}

    def __str__(self) -> str:
        said = f"{self.group!r}, {self.groups}" if self.group else ""
        return f"{self.name}({said})"


@public("Publish a graph")
@registry.register("query", "graph", "synthetic_per_node")
@registry.offered(
    "synthetic",
    "per_node",
    "From counts",
    "keeps how many links people have, links and triangles in all",
)
def synthetic_per_node(group: str = "", groups: int = 1) -> SyntheticPerNode:
    """Ask for a synthetic graph made of what can be released per node.

    That is the degree distribution, the numbers of edges and of triangles and the largest degree;
    the budget is divided among them, and their releases are in ``release.parts``. With ``group``,
    an attribute of nodes, and ``groups``, how many values of it there are (you declare that
    public), it keeps how many edges join nodes of one group as well; groups are made equally
    large. Per edge ``synthetic()`` keeps far more.

    Example:
        >>> import tulle
        >>> pairs = [(i, (i + s) % 60) for i in range(60) for s in (1, 2)]
        >>> ring = tulle.Graph.from_edges(pairs, nodes=60)
        >>> r = tulle.release(ring, synthetic_per_node(), unit="node", epsilon=40.0)
        >>> 60 < r.value.edge_count < 180, len(r.parts)
        (True, 4)
    """
    return SyntheticPerNode(group, groups)
