"""Counts of subgraphs per node, or per edge, through the relation of their copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.graphs.queries.counts import Edges, ProfiledCount, SubgraphCount, Triangles
from tulle.graphs.truncation.relation import OnCopies, has_bundles
from tulle.relations.mechanisms.race import Race
from tulle.relations.mechanisms.recursive import Recursive, Tuning


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
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> terms = {"unit": "node", "epsilon": 1.0, "mechanism": "recursive"}
        >>> tulle.release(square, tulle.triangles(), **terms).mechanism
        'recursive'
    """

    # A node has as many edges as its degree, and of all else a power of it: so the largest are less
    # far above the threshold found.
    tuned: ClassVar[Mapping[type[Query], Tuning]] = {Edges: Tuning(reach=4.0, theta=3.0)}


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
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
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
