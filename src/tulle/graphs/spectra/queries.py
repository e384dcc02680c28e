"""Questions about the spectrum of a graph's adjacency matrix, and what is released for them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import codec, registry, validate
from tulle.core.arrays import Floats
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis, Labels
from tulle.core.mechanism import Terms
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.facts import node_axis
from tulle.noise import SeededSource

if TYPE_CHECKING:
    import scipy.sparse


LARGEST_DENSE = 10_000
"""Up to this many nodes all eigenvalues are computed, by a method that cannot miss one."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The k leading eigenvalues and their vectors, as released: public.

    ``values`` has k numbers, the leading first; ``vectors`` is an n × k matrix with orthonormal
    columns, in the same order. A vector is as good as its negative: in each column the entry of
    largest size is positive. ``noise`` is the size from which an eigenvalue begins to show in its
    vector; zero for true ones.
    """

    values: Floats
    vectors: Floats
    noise: float = 0.0

    @property
    def informative(self) -> int:
        """How many of the values exceed the noise: the vectors of the others say nothing.

        Example:
            >>> Spectrum(np.array([9.0, 4.0]), np.eye(2), 5.0).informative
            1
        """
        return int(np.sum(np.abs(self.values) > self.noise))

    def matrix(self) -> Floats:
        """Return the n × n matrix that these values and vectors make.

        Example:
            >>> Spectrum(np.array([2.0]), np.array([[1.0], [0.0]])).matrix().tolist()
            [[2.0, 0.0], [0.0, 0.0]]
        """
        made: Floats = (self.vectors * self.values) @ self.vectors.T
        return made

    def communities(self, count: int | None = None) -> npt.NDArray[np.int64]:
        """Return the community of each node, or -1: see ``find_communities``. Costs nothing."""
        from tulle.graphs.spectra.communities import find_communities

        return find_communities(self, count)

    def columns(self, labels: Labels) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a row for each vector and node, and the names of the keys."""
        nodes, count = self.vectors.shape
        names = next(iter(labels.axes), Axis("node")).columns(nodes)["node"]
        listed = np.tile(names, count) if isinstance(names, np.ndarray) else names * count
        return {
            "vector": np.repeat(np.arange(1, count + 1), nodes),
            "eigenvalue": np.repeat(self.values, nodes),
            "node": listed,
            "coordinate": self.vectors.T.ravel(),
        }, ("vector", "node")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spectrum):
            return NotImplemented
        return (
            np.array_equal(self.values, other.values)
            and np.array_equal(self.vectors, other.vectors)
            and self.noise == other.noise
        )

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.vectors.tobytes(), self.noise))

    def __str__(self) -> str:
        shown = np.array2string(self.values, threshold=8, edgeitems=3, precision=5)
        return f"eigenvalues {shown} with vectors over {counted(len(self.vectors), 'node')}"


@registry.register("value", "spectrum", "spectrum")
class SpectrumCodec:
    """A released spectrum as JSON."""

    type: ClassVar[type] = Spectrum

    @staticmethod
    def encode(value: Spectrum) -> dict[str, Any]:
        """Return both arrays, exactly."""
        return {
            "values": codec.encode(value.values),
            "vectors": codec.encode(value.vectors),
            "noise": float(value.noise),
        }

    @staticmethod
    def decode(data: Any) -> Spectrum:
        """Read what :meth:`encode` wrote."""
        values, vectors = codec.decode(data["values"]), codec.decode(data["vectors"])
        if np.ndim(values) != 1 or np.shape(vectors)[1:] != np.shape(values):
            raise InputError("This spectrum does not have one vector for each value.")
        return Spectrum(values, vectors, float(data.get("noise", 0.0)))


@dataclass(frozen=True)
class SpectralQuery(Query):
    """A question for k eigenvalues."""

    k: int
    kind: ClassVar[str] = "graph"
    integral: ClassVar[bool] = False
    by_size: ClassVar[bool] = False
    """Whether the k are the largest in size, whatever their sign."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validate.whole(k=self.k, at_least=1))


@dataclass(frozen=True)
class Eigenvalues(SpectralQuery):
    """The k largest eigenvalues of the adjacency matrix, the largest first."""

    name: ClassVar[str] = "eigenvalues"
    words: ClassVar[str] = "What are the {k} largest eigenvalues of the network's adjacency matrix?"
    quantity: ClassVar[str] = "eigenvalue"
    shape: ClassVar[Shape] = "vector"

    def truth(self, dataset: Graph) -> Floats:
        check_rank(self, dataset.node_count)
        return decompose(dataset, self.k).values

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return (Axis("rank", first=1),)


@dataclass(frozen=True)
class VectorQuery(SpectralQuery):
    """A question for eigenvectors."""

    shape: ClassVar[Shape] = "object"

    def truth(self, dataset: Graph) -> Spectrum:
        check_rank(self, dataset.node_count)
        return decompose(dataset, self.k, by_size=self.by_size)

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return node_axis(public)


@dataclass(frozen=True)
class LargestSpectrum(VectorQuery):
    """The k largest eigenvalues of the adjacency matrix, and their vectors."""

    name: ClassVar[str] = "spectrum"
    words: ClassVar[str] = (
        "What are the {k} largest eigenvalues of the network's adjacency matrix, and their vectors?"
    )
    quantity: ClassVar[str] = "eigenvalue"


@dataclass(frozen=True)
class LowRank(VectorQuery):
    """The matrix of rank k nearest to the adjacency matrix, as its values and vectors."""

    name: ClassVar[str] = "low_rank"
    words: ClassVar[str] = "Which matrix of rank {k} is nearest to the network's adjacency matrix?"
    quantity: ClassVar[str] = "eigenvalue"
    by_size: ClassVar[bool] = True


@public("Describe a graph")
@registry.register("query", "graph", "eigenvalues")
@registry.offered("ask", "eigenvalues(5)", "Spectrum", "the five leading eigenvalues")
def eigenvalues(k: int) -> Eigenvalues:
    """Ask for the ``k`` largest eigenvalues of the adjacency matrix.

    Example:
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=3)
        >>> eigenvalues(2).truth(triangle).round(6).tolist()
        [2.0, -1.0]
    """
    return Eigenvalues(k)


@public("Describe a graph")
@registry.register("query", "graph", "spectrum")
def spectrum(k: int) -> LargestSpectrum:
    """Ask for the ``k`` largest eigenvalues of the adjacency matrix and their vectors.

    The answer is a :class:`Spectrum`: an embedding of the nodes in k dimensions.

    Example:
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=3)
        >>> spectrum(1).truth(triangle).vectors.round(3).ravel().tolist()
        [0.577, 0.577, 0.577]
    """
    return LargestSpectrum(k)


@public("Describe a graph")
@registry.register("query", "graph", "low_rank")
def low_rank(k: int) -> LowRank:
    """Ask for the matrix of rank ``k`` that is nearest to the adjacency matrix.

    The answer is a :class:`Spectrum` of the k eigenvalues that are largest in size, of either
    sign: ``release.value.matrix()`` is the matrix, ``.values`` and ``.vectors`` its factors.

    Example:
        >>> pair = Graph.from_edges([(0, 1)], nodes=3)
        >>> low_rank(2).truth(pair).matrix().round(6).tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return LowRank(k)


def rank_of(terms: Terms) -> int:
    """Return how many eigenvalues are asked for; the number of nodes allows it.

    Raises:
        QueryError: when there are fewer nodes than that.
    """
    assert isinstance(terms.query, SpectralQuery)
    check_rank(terms.query, int(terms.facts["nodes"]))
    return terms.query.k


def check_rank(query: SpectralQuery, nodes: int) -> None:
    """Refuse a question for more eigenvalues than there are nodes."""
    if query.k > nodes:
        raise QueryError(
            f"{query} asks for {counted(query.k, 'eigenvalue')}, but a graph of "
            f"{counted(nodes, 'node')} has no more than {nodes:,}. Ask for at most {nodes:,}."
        )


def adjacency(graph: Graph) -> scipy.sparse.csr_array:
    """Return the adjacency matrix with entries of type int64. Custodian side."""
    return graph.to_scipy()


def decompose(graph: Graph, k: int, *, by_size: bool = False) -> Spectrum:
    """Return the true spectrum, the largest or the largest in size first. Custodian side.

    Small graphs are decomposed whole. Larger ones by Lanczos iteration, which is accurate but may
    miss one of several equal eigenvalues: no guarantee rests on it.
    """
    matrix = adjacency(graph).astype(np.float64)
    count = graph.node_count
    if not graph.edge_count:
        return Spectrum(np.zeros(k), np.eye(count, k))
    if count <= 1000 or k > count // 4:
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        from scipy.sparse.linalg import eigsh

        which = "LM" if by_size else "LA"
        values, vectors = eigsh(matrix, k=k, which=which, v0=public_signs(count, 2)[:, 1])
    order = leading(values, by_size)[:k]
    return Spectrum(values[order], oriented(vectors[:, order]))


def leading(values: Floats, by_size: bool) -> npt.NDArray[np.int64]:
    """Return the order of eigenvalues, the largest, or the largest in size, first.

    Example:
        >>> leading(np.array([1.0, -3.0, 2.0]), False).tolist()
        [2, 0, 1]
        >>> leading(np.array([1.0, -3.0, 2.0]), True).tolist()
        [1, 2, 0]
    """
    return np.argsort(-np.abs(values) if by_size else -values, kind="stable")


def oriented(vectors: Floats) -> Floats:
    """Return the vectors with the largest entry of each positive."""
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    turned: Floats = vectors * np.where(largest < 0, -1.0, 1.0)
    return turned


def public_signs(nodes: int, columns: int) -> Floats:
    """Return fixed signs, the first column all ones: a start that everyone knows."""
    count = nodes * columns
    bits = np.unpackbits(np.frombuffer(SeededSource(11).read(-(-count // 8)), np.uint8))[:count]
    signs: Floats = 1.0 - 2.0 * bits.reshape(nodes, columns).astype(np.float64)
    signs[:, 0] = 1.0
    return signs


def shrink(values: Floats, by: Any) -> Floats:
    """Return the values moved towards zero by this much; what is smaller becomes zero."""
    shrunk: Floats = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
    return shrunk


_known: list[tuple[weakref.ref[Graph], int, Spectrum]] = []


def public_spectrum(like: Graph, k: int) -> Spectrum:
    """Return the spectrum of a public stand-in; the last one is remembered."""
    for reference, known, found in _known:
        if reference() is like and known == k:
            return found
    found = decompose(like, min(k, like.node_count))
    _known[:] = [(weakref.ref(like), k, found)]
    return found


def typical_sine(noise: float, values: Floats) -> float:
    """Return the mean sine of the angles between the true and the released vectors.

    For noise of this norm on a unit vector and an eigenvalue v it is about noise / v; the curve
    used stays below one and ranks mechanisms even where all of them drown.
    """
    ratio = noise / np.maximum(values, 1e-9)
    return float(np.mean(ratio / np.sqrt(1 + ratio**2)))
