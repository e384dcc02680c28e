"""Counts of subgraphs per node, truncated at a threshold found by sparse vector."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from tulle.core import registry
from tulle.core.query import Query
from tulle.graphs.queries.counts import Cliques, Edges, KTriangles, Stars, SubgraphCount, Triangles
from tulle.graphs.queries.subgraphs import PatternQuery
from tulle.graphs.truncation.relation import OnCopies
from tulle.relations.mechanisms.sparse_vector import SparseVector, Tuning


# Its constants were chosen for edges and triangles: of all else it is asked by name.
@registry.mechanism(
    "graph",
    "sparse_vector",
    answers=(SubgraphCount,),
    units=("node",),
    named_only={"node": (Stars, KTriangles, Cliques, PatternQuery)},
)
class GraphSparseVector(OnCopies, SparseVector):
    """The search by sparse vector on the copies of a subgraph.

    Guarantee:
        Pure epsilon per node, as
        :class:`tulle.relations.mechanisms.sparse_vector.SparseVector`: when a node leaves the
        graph, exactly the copies that contain it leave the relation.

    Error:
        In the geometric mean over twelve graphs twice that of somebody who picks the best threshold
        with the data at hand, and at worst 4.8 times; ``benchmarks/node_counts.py`` has the table.

    Reference:
        Chen & Zhou, Recursive mechanism, SIGMOD 2013; Dwork & Roth, section 3.6.

    Example:
        >>> import tulle
        >>> from tulle.graphs.data import Graph
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], nodes=4)
        >>> tulle.release(square, tulle.triangles(), unit="node", epsilon=1.0).mechanism
        'sparse_vector'
    """

    # A node has as many edges as its degree, and of all else a power of it: so the largest are less
    # far above the threshold found.
    # Triangles are often in a few dense groups: the search goes on a little longer.
    tuned: ClassVar[Mapping[type[Query], Tuning]] = {
        Edges: Tuning(reach=1.75),
        Triangles: Tuning(stopping=5, limit_share=Fraction(1, 4)),
    }
