"""Counts of subgraphs per node, or per edge, through the relation of their copies."""

from __future__ import annotations

from typing import ClassVar

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import Edges, ProfiledCount, SubgraphCount, Triangles
from tulle.graphs.queries.subgraphs import PatternQuery
from tulle.graphs.truncation.relation import has_bundles, relation_of
from tulle.relations.data import Relation
from tulle.relations.mechanisms.race import Race
from tulle.relations.mechanisms.recursive import Recursive, TruncationMechanism
from tulle.relations.truncation.totals import Truncation

EDGE_REACH = 4.0
EDGE_THETA = 3.0
"""How far above the threshold found to truncate counts of edges, and where thresholds set out."""


class OnCopies(TruncationMechanism):
    """A mechanism on the relation whose tuples are the copies of a subgraph."""

    kind: ClassVar[str] = "graph"

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        """Predict on a stand-in; not for patterns at large, of which it may have millions."""
        if isinstance(terms.query, PatternQuery):
            return Prediction(None, None)
        return super().predict(terms, settings, like)  # type: ignore[safe-super]

    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        assert isinstance(dataset, Graph)
        return relation_of(terms.query, dataset, terms.unit)

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        """Return the copies' truncation; for stars and k-triangles per node, the compact one."""
        if terms.unit.name == "node" and has_bundles(terms.query):
            from tulle.graphs.truncation.bundle_packing import BundleTruncation

            assert isinstance(dataset, Graph)
            return [(1, BundleTruncation(terms.query, dataset))]
        return super().parts(terms, dataset)


# Per edge, ladders and plain noise are more accurate and faster wherever they apply; per node, a
# search by sparse vector is more accurate for edges, and for triangles where there are many hubs.
@registry.mechanism(
    "graph",
    "recursive",
    answers=(SubgraphCount,),
    units=("node", "edge"),
    named_only={"edge": (Edges, ProfiledCount), "node": (Edges, Triangles)},
)
class GraphRecursive(OnCopies, Recursive):
    """The recursive mechanism on the copies of a subgraph.

    Guarantee:
        Pure epsilon per node or per edge, as
        :class:`tulle.relations.mechanisms.recursive.Recursive`: when a node (an edge) leaves the
        graph, exactly the copies that contain it leave the relation.

    Error:
        Noise about as large as the largest contribution of a node (an edge) over epsilon; the
        answer falls short by what the few largest contribute beyond the threshold.

    Reference:
        Chen & Zhou, Recursive mechanism, SIGMOD 2013.

    Example:
        >>> import tulle
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> terms = {"unit": "node", "epsilon": 1.0, "mechanism": "recursive"}
        >>> tulle.release(square, tulle.triangles(), **terms).mechanism
        'recursive'
    """

    def usual_reach(self, query: Query) -> float:
        """Return less for edges: a node has as many as its degree, and of all else a power of it.

        So the largest are less far above the threshold found.
        """
        return EDGE_REACH if isinstance(query, Edges) else super().usual_reach(query)

    def usual_theta(self, query: Query) -> float:
        """Return less for edges, for the same reason."""
        return EDGE_THETA if isinstance(query, Edges) else super().usual_theta(query)


# Per edge, ladders and plain noise are more accurate and faster wherever they apply.
@registry.mechanism(
    "graph",
    "race",
    answers=(SubgraphCount,),
    units=("node", "edge"),
    named_only={"edge": (Edges, ProfiledCount)},
)
class GraphRace(OnCopies, Race):
    """The race to the top on the copies of a subgraph; the bound on contributions is the user's.

    Guarantee:
        Pure epsilon per node or per edge, as :class:`tulle.relations.mechanisms.race.Race`.

    Error:
        As :class:`tulle.relations.mechanisms.race.Race`.

    Reference:
        Dong et al., R2T, SIGMOD 2022.

    Example:
        >>> import tulle
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> r = tulle.release(
        ...     square, tulle.triangles(), unit="node", epsilon=1.0, mechanism="race", bound=16
        ... )
        >>> r.value >= 0
        True
    """

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        """Predict on a stand-in; not for stars and k_triangles.

        Their small thresholds, which most nodes of a stand-in are above, take long to solve.
        """
        if has_bundles(terms.query):
            return Prediction(None, None)
        return super().predict(terms, settings, like)
