"""The whole topology of a graph: every pair of nodes flipped by its own coin."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.arrays import Bytes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis, Labels
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.facts import node_axis
from tulle.graphs.queries.counts import node_count
from tulle.noise.charge import ResponseCharge, charge
from tulle.noise.watch import disjoint, part
from tulle.noise.xor.limits import FlipLaw
from tulle.noise.xor.patterns import flip_probability, response_bits

if TYPE_CHECKING:
    import scipy.sparse


LARGEST_PAIRS = 2**32
"""A released topology has a bit for every pair of nodes; more than this is 512 megabytes."""

_CHUNK = 1 << 22

_ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Topology:
    """A released graph: public, with as many invented edges as epsilon demands.

    One bit for each pair of nodes: (0, 1), (0, 2), ..., (0, n - 1), (1, 2), ... eight to a byte.
    """

    nodes: int
    packed: Bytes

    @property
    def pairs(self) -> int:
        """How many pairs of nodes there are."""
        return comb(self.nodes, 2)

    @property
    def edge_count(self) -> int:
        """How many edges the released graph has; not an estimate of the true number."""
        return int(_ONES[self.packed].sum())

    def bits(self) -> Bytes:
        """Return the bits, one in each byte."""
        return np.unpackbits(self.packed, count=self.pairs)

    def edges(self) -> npt.NDArray[np.int64]:
        """Return the released edges as rows (u, v) with u < v, sorted."""
        return np.column_stack(pairs_of(self.nodes, np.flatnonzero(self.bits())))

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the released adjacency matrix, symmetric, with entries of type int64."""
        import scipy.sparse

        first, second = self.edges().T
        ones = np.ones(2 * len(first), dtype=np.int64)
        places = np.concatenate([first, second]), np.concatenate([second, first])
        return scipy.sparse.coo_array((ones, places), shape=(self.nodes, self.nodes)).tocsr()

    def to_graph(self) -> Graph:
        """Return the released edges as a Graph, for functions that want one. It is public."""
        return Graph.from_edges(self.edges(), nodes=self.nodes)

    def columns(self, labels: Labels) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a row for each released edge, and the names of the keys."""
        names = next(iter(labels.axes), Axis("node")).columns(self.nodes)["node"]
        one, other = self.edges().T
        held = np.asarray(names, dtype=object if isinstance(names, list) else None)
        return {"source": held[one], "target": held[other]}, ("source", "target")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return self.nodes == other.nodes and np.array_equal(self.packed, other.packed)

    def __hash__(self) -> int:
        return hash((self.nodes, self.packed.tobytes()))

    def __str__(self) -> str:
        return f"a topology of {counted(self.nodes, 'node')} and {self.edge_count:,} released edges"


@registry.register("value", "topology", "topology")
class TopologyCodec:
    """A released topology as JSON."""

    type: ClassVar[type] = Topology

    @staticmethod
    def encode(value: Topology) -> dict[str, Any]:
        """Return the bits, compressed: a sparse topology takes little room."""
        packed = zlib.compress(value.packed.tobytes(), 6)
        return {"nodes": value.nodes, "packed": base64.b64encode(packed).decode("ascii")}

    @staticmethod
    def decode(data: Any) -> Topology:
        """Read what :meth:`encode` wrote."""
        nodes = int(data["nodes"])
        packed = np.frombuffer(zlib.decompress(base64.b64decode(data["packed"])), np.uint8)
        if len(packed) != -(-comb(nodes, 2) // 8):
            raise InputError("This topology does not have one bit for each pair of nodes.")
        return Topology(nodes, packed.copy())


@dataclass(frozen=True)
class WholeTopology(Query):
    """Which pairs of nodes are joined: all of it, each pair possibly flipped."""

    name: ClassVar[str] = "topology"
    words: ClassVar[str] = "Which nodes are linked? Each pair may have been flipped by chance."
    quantity: ClassVar[str] = "links"
    kind: ClassVar[str] = "graph"
    shape: ClassVar[Shape] = "object"

    def truth(self, dataset: Graph) -> Topology:
        return Topology(dataset.node_count, np.packbits(_true_bits(dataset)))

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return node_axis(public)


@public("Publish a graph")
@registry.register("query", "graph", "topology")
def topology() -> WholeTopology:
    """Ask for the whole graph, with every pair of nodes flipped as often as epsilon demands.

    Example:
        >>> topology().truth(Graph.from_edges([(0, 1), (1, 2)], nodes=3)).edges().tolist()
        [[0, 1], [1, 2]]
    """
    return WholeTopology()


@dataclass(frozen=True, eq=False)
class ResponseSettings(Settings):
    """The public settings of one run."""

    nodes: int
    epsilon: Fraction
    flip: float
    """The chance that a pair is told wrongly; the same whether there is an edge or not."""
    keep: float
    invent: float


@registry.mechanism("graph", "response", answers=(WholeTopology,), units=("edge",))
class Response(Mechanism):
    """Flip each pair of nodes, once, with probability 1 / (1 + exp(epsilon)).

    Guarantee:
        Pure epsilon per edge: an edge is one bit, the bit of its pair, and each bit has its own
        coin. Both halves of an adjacency matrix would say the same bit twice: that would cost
        twice as much, so only the upper half is drawn.

    Error:
        The least possible. For any epsilon-private topology an edge is kept at most exp(epsilon)
        times as often as one is invented, and a pair is left apart at most exp(epsilon) times as
        often as an edge is lost; here both are equalities. At epsilon = 1, 27 % of all pairs are
        wrong, so a sparse graph drowns in invented edges: single edges of the release mean little,
        while :mod:`tulle.graphs.topology.estimates` gives unbiased counts from it.

    Reference:
        Warner, Randomized response, JASA 1965. Ji et al., An XOR Mechanism, PVLDB 14(5), 2021,
        algorithm 3, draws both halves and pays for one.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(path, topology(), unit="edge", epsilon=40.0)
        >>> r.value.edges().tolist()
        [[0, 1], [1, 2]]
    """

    title: ClassVar[str] = "a coin for every pair of nodes"
    reference: ClassVar[str] = "Warner, JASA 1965"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        if comb(nodes, 2) > LARGEST_PAIRS:
            raise QueryError(
                f"A released topology has one bit for each pair of nodes; {counted(nodes, 'node')} "
                f"have {counted(comb(nodes, 2), 'pair')}, and at most {LARGEST_PAIRS:,} are "
                "handled. Ask for counts instead, or release a part of the graph."
            )
        flip = flip_probability(terms.epsilon)
        return ResponseSettings(nodes, terms.epsilon, flip, 1 - flip, flip)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = ResponseSettings.read(settings)
        law = FlipLaw(chosen.flip, comb(chosen.nodes, 2))
        return Prediction(law, law, chosen.flip)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        nodes = dataset.node_count
        count = comb(nodes, 2)
        present = pair_places(nodes, dataset.edges())
        packed = np.empty(-(-count // 8), dtype=np.uint8)
        # Piece by piece, so that only one byte for every eight pairs is held at a time.
        cuts = np.searchsorted(present, np.arange(0, count + _CHUNK, _CHUNK))
        with disjoint():
            for piece, start in enumerate(range(0, count, _CHUNK)):
                size = min(_CHUNK, count - start)
                # The pieces hold separate pairs, so that they cost no more than one of them.
                with part(str(piece)), charge(ResponseCharge()):
                    bits = response_bits(terms.epsilon, size, source)
                bits[present[cuts[piece] : cuts[piece + 1]] - start] ^= 1
                packed[start // 8 : start // 8 + -(-len(bits) // 8)] = np.packbits(bits)
        return Outcome(Topology(nodes, packed), None)


def pair_places(nodes: int, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the place of each pair (u, v), u < v, in the order of :class:`Topology`."""
    first, second = edges[:, 0], edges[:, 1]
    return first * (2 * nodes - first - 1) // 2 + second - first - 1


def pairs_of(
    nodes: int, places: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the two nodes of each place in the upper triangle."""
    rows = np.arange(nodes, dtype=np.int64)
    starts = rows * (2 * nodes - rows - 1) // 2
    first = np.searchsorted(starts[: max(nodes - 1, 1)], places, side="right") - 1
    return first, places - starts[first] + first + 1


def _true_bits(graph: Graph) -> Bytes:
    bits = np.zeros(comb(graph.node_count, 2), dtype=np.uint8)
    bits[pair_places(graph.node_count, graph.edges())] = 1
    return bits
