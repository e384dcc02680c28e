"""Eigenvectors of a released topology: every pair of nodes flipped by its own coin."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.denoising import (
    LARGEST_HELD,
    Found,
    HeldMatrix,
    NoisyMatrix,
    candidates_of,
    search_noisy,
)
from tulle.graphs.spectra.queries import VectorQuery, public_spectrum, rank_of, typical_sine
from tulle.graphs.spectra.quotients import measured_quotients
from tulle.graphs.spectra.spread import measured_square
from tulle.graphs.topology.response import Response, Topology
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.xor.patterns import flip_probability

LARGEST_CORE = 20_000
"""At most so many nodes have a coin for every pair: more would take too much memory and time."""

_PIECE = 512


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into.

    Chosen on facebook_combined, ca-GrQc and generated networks (preferential attachment, small
    world, power-law configuration, blocks, cliques), the first also on wiki-Vote.
    """

    degree_share: Fraction = Fraction(3, 20)
    """For the degrees, unless the user says otherwise."""
    spread_share: Fraction = Fraction(1, 20)
    """For the first value."""
    quotient_share: Fraction = Fraction(1, 40)
    """For how true the vectors are: an edge moves the quotients of found vectors by a twentieth or
    so."""


_TUNING = Tuning()


class FlippedMatrix(NoisyMatrix):
    """A released topology as an unbiased estimate of the adjacency matrix. Public.

    An entry of the released matrix has mean p + (1 - 2p)·a, for a true entry a: taking p off and
    dividing makes it a + noise, of standard deviation sqrt(p(1 - p)) / (1 - 2p). Up to 6,000 nodes
    it is held as floats; beyond, its bits are unpacked in pieces.
    """

    def __init__(self, topology: Topology, flip: float) -> None:
        self.nodes = topology.nodes
        self.flip = flip
        self.noise = entry_noise(flip)
        self._rows = _upper_rows(topology)
        self._held: HeldMatrix | None = None
        if self.nodes <= LARGEST_HELD:
            self._held = self.part(np.arange(self.nodes))

    def __matmul__(self, columns: Floats) -> Floats:
        if self._held is not None:
            return self._held @ columns
        small = columns.astype(np.float32)
        total = np.zeros_like(small)
        for first in range(0, self.nodes, _PIECE):
            piece = np.unpackbits(self._rows[first : first + _PIECE], axis=1, count=self.nodes)
            floats = piece.astype(np.float32)
            total[first : first + _PIECE] += floats @ small
            total += floats.T @ small[first : first + _PIECE]
        away = self.flip * (columns.sum(axis=0) - columns)
        result: Floats = (total.astype(np.float64) - away) / (1 - 2 * self.flip)
        return result

    def part(self, places: Wholes) -> HeldMatrix:
        if self._held is not None:
            return self._held.part(places)
        entries = np.empty((len(places),) * 2, dtype=np.float32)
        for first in range(0, len(places), _PIECE):
            rows = self._rows[places[first : first + _PIECE]]
            bits = np.unpackbits(rows, axis=1, count=self.nodes)
            entries[first : first + _PIECE] = bits[:, places]
        # Each pair is in one half only.
        entries += entries.T.copy()
        entries -= np.float32(self.flip)
        entries /= np.float32(1 - 2 * self.flip)
        np.fill_diagonal(entries, 0)
        return HeldMatrix(entries, self.noise)


def _upper_rows(topology: Topology) -> npt.NDArray[np.uint8]:
    """Return the upper triangle, a packed row for each node."""
    nodes = topology.nodes
    packed = np.zeros((nodes, -(-nodes // 8)), dtype=np.uint8)
    place = 0
    for first in range(0, nodes, _PIECE):
        piece = np.zeros((min(_PIECE, nodes - first), nodes), dtype=np.uint8)
        pairs = sum(nodes - 1 - row for row in range(first, first + len(piece)))
        # Only the bytes of these rows are unpacked: all pairs at once would not fit.
        start, end = place // 8, -(-(place + pairs) // 8)
        bits = np.unpackbits(topology.packed[start:end])[place - 8 * start :]
        used = 0
        for row in range(len(piece)):
            width = nodes - 1 - first - row
            piece[row, nodes - width :] = bits[used : used + width]
            used += width
        packed[first : first + len(piece)] = np.packbits(piece, axis=1)
        place += pairs
    return packed


def entry_noise(flip: float) -> float:
    """Return the deviation of an unbiased entry: 0.96 at epsilon = 1.

    Example:
        >>> round(entry_noise(flip_probability(1)), 2)
        0.96
    """
    return math.sqrt(flip * (1 - flip)) / (1 - 2 * flip)


def noise_bulk(flip: float, nodes: int) -> float:
    """Return where the eigenvalues of the noise alone end; what lies above is informative."""
    return 2 * entry_noise(flip) * math.sqrt(nodes)


@dataclass(frozen=True, eq=False)
class SpectralResponseSettings(Settings):
    """The public settings of one run."""

    nodes: int
    k: int
    core: int
    """Among how many nodes pairs are drawn."""
    degree_scale: Fraction
    epsilon_pairs: Fraction
    epsilon_quotients: Fraction
    epsilon_spread: Fraction
    flip: float
    keep: float
    invent: float
    bulk: float
    """The largest eigenvalue of the noise."""


@registry.mechanism("graph", "spectral_response", answers=(VectorQuery,), units=("edge",))
class SpectralResponse(Mechanism):
    """Flip each pair of nodes by a coin, and decompose the unbiased estimate of the matrix.

    Three twentieths of epsilon buy noisy degrees. They tell where to look: among a few hundred
    nodes of large degree an eigenvalue stands out that drowns among all, and from there its vector
    is followed to the others (:mod:`tulle.graphs.spectra.denoising`). Where the first vector is
    spread over all nodes, or drowns, one made of the degrees alone is nearer; which of them it is
    the coins tell. Both releases are public, so any number of iterations on them is free. A
    twentieth of epsilon measures the first value on the graph itself, as far as it is spread
    (:mod:`tulle.graphs.spectra.spread`). A fortieth measures how true the vectors found are: since
    they are public by then, so is how little one edge can move their quotients.

    Guarantee:
        Pure epsilon per edge: an edge changes two degrees by one each, so Laplace noise of scale
        2 / e on them costs e, a share of epsilon; the bits are those of the mechanism
        ``response`` at the rest of epsilon, each pair once. Beyond 6,000 nodes only pairs of nodes
        within a core of 6,000 have coins; which nodes, the noisy degrees decide, and those are
        public by then. Quotients of the vectors that these show get Laplace noise for what one
        edge moves them by, whatever the graph
        (:func:`~tulle.graphs.spectra.quotients.quotient_sensitivity`), and the place of the spread
        value on its scale likewise (:func:`~tulle.graphs.spectra.spread.scale_sensitivity`). The
        rest reads nothing else.

    Error:
        An eigenvalue v is found when it exceeds about sqrt(c)·1.15 at epsilon = 1, for a core of c
        nodes that holds most of its vector; ``release.value.noise`` is that level for the core
        used, and ``release.value.informative`` says how many released values exceed it. Vectors
        are zero outside the core where only pairs within it have coins, but for a first one made
        of degrees. The first value v has noise of about 52/v at epsilon = 1. Others are in the
        middle of what the coins show and what was measured, which errs by about one; where a vector
        drowns its value is a guess. There is no interval.

    Reference:
        Warner, JASA 1965. Ma, Sparse principal component analysis and iterative thresholding,
        Annals of Statistics 2013.

    Example:
        >>> import tulle
        >>> clique = Graph.from_edges([(u, v) for u in range(9) for v in range(u)], nodes=9)
        >>> r = tulle.release(clique, tulle.spectrum(1), unit="edge", epsilon=40.0,
        ...                   mechanism="spectral_response")
        >>> r.value.values.round(3).tolist(), r.value.vectors.round(3)[:2].ravel().tolist()
        ([8.0], [0.333, 0.333])
    """

    title: ClassVar[str] = "a coin for every pair, then decompose"
    reference: ClassVar[str] = "Warner, JASA 1965; Ma, Ann. Statist. 2013"
    options: ClassVar[tuple[str, ...]] = ("core", "degree_share", "quotient_share", "spread_share")

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        most = min(nodes, LARGEST_CORE)
        if k > most:
            raise QueryError(
                f"spectral_response finds at most {counted(most, 'vector')}; {terms.query} asks "
                f"for {k:,}. Use power or power_pure."
            )
        core = max(min(nodes, LARGEST_HELD), k)
        core = validate.whole(core=options.get("core", core), at_least=max(k, 2))
        if core > most:
            raise InputError(f"core must be at most {most:,}; got {core:,}.")
        share = validate.share(degree_share=options.get("degree_share", _TUNING.degree_share))
        part, spread = (
            validate.share(or_none=True, **{name: options.get(name, usual)})
            for name, usual in usual_shares(terms).items()
        )
        if 1 - share - part - spread < validate.LEAST_SHARE:
            raise InputError(
                "degree_share, quotient_share and spread_share must leave a part for the coins."
            )
        pairs = terms.epsilon * (1 - share - part - spread)
        flip = flip_probability(pairs)
        return SpectralResponseSettings(
            nodes,
            k,
            core,
            degree_scale=2 / (terms.epsilon * share),
            epsilon_pairs=pairs,
            epsilon_quotients=terms.epsilon * part,
            epsilon_spread=terms.epsilon * spread,
            flip=flip,
            keep=1 - flip,
            invent=flip,
            bulk=noise_bulk(flip, core),
        )

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = SpectralResponseSettings.read(settings)
        if not isinstance(like, Graph):
            return Prediction(None, None, 1.0)
        known = public_spectrum(like, chosen.k)
        # Vectors of networks are found in cores of a quarter of the nodes or fewer.
        return Prediction(None, None, typical_sine(chosen.bulk / 4, known.values))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        chosen = SpectralResponseSettings.read(settings)
        assert isinstance(dataset, Graph)
        nodes = dataset.node_count
        true = np.bincount(dataset.edges().ravel(), minlength=nodes)
        scale = chosen.degree_scale
        with charge(LaplaceCharge(2)):
            degrees = true + discrete_laplace(scale=scale, size=nodes, source=source)
        core = core_of(degrees, chosen.core)
        part = dataset if len(core) == nodes else induced(dataset, core)
        pairs = replace(terms, epsilon=chosen.epsilon_pairs)
        drawn = Response().run(pairs, settings, part, source).value
        found = self.search(terms, drawn, degrees, mean_of(degrees), settings)
        quotients: tuple[Any, Any] = None, 0.0
        if chosen.epsilon_quotients:
            epsilon = chosen.epsilon_quotients
            quotients = measured_quotients(dataset, found.columns, epsilon, source)
        square = None
        if chosen.epsilon_spread:
            square = measured_square(dataset, chosen.epsilon_spread, source)
        return Outcome(found.spectrum(*quotients, square), None)

    def search(
        self, terms: Terms, drawn: Topology, degrees: Wholes, mean: int, settings: Parameters
    ) -> Found:
        """Return the vectors that noisy degrees, their mean and a topology of the core show."""
        chosen = SpectralResponseSettings.read(settings)
        assert isinstance(terms.query, VectorQuery)
        nodes = chosen.nodes
        core = core_of(degrees, chosen.core)
        # Nobody has fewer than no neighbours, or more than all.
        ranks = np.clip(degrees, 0, nodes - 1)
        order = np.concatenate([core, np.setdiff1d(np.arange(nodes), core)])
        found = search_noisy(
            FlippedMatrix(drawn, chosen.flip),
            chosen.k,
            ranks[core],
            by_size=terms.query.by_size,
            mean_degree=mean,
            candidates=candidates_of(ranks, mean, float(chosen.degree_scale))[order],
        )
        place = np.argsort(order)
        first = None if found.candidate is None else found.candidate[place]
        # Degrees add up to the squares of all eigenvalues; a deviation of their noise is taken off.
        off = math.sqrt(2 * nodes) * float(chosen.degree_scale)
        squares = max(float(degrees.sum()) - off, 1.0)
        return replace(found, vectors=found.vectors[place], candidate=first, squares=squares)


def usual_shares(terms: Terms) -> dict[str, Fraction]:
    """Return the parts of epsilon for quotients and for the first value.

    The nearest matrix needs no value: the quotients of its vectors bring it nearest.
    """
    assert isinstance(terms.query, VectorQuery)
    spread = Fraction(0) if terms.query.by_size else _TUNING.spread_share
    return {"quotient_share": _TUNING.quotient_share, "spread_share": spread}


def mean_of(degrees: Wholes) -> int:
    """Return the mean of noisy degrees as a whole number that a graph can have.

    Example:
        >>> mean_of(np.array([3, 9, -1, 3])), mean_of(np.array([-3, 1]))
        (3, 0)
    """
    return int(np.clip(np.rint(degrees.mean()), 0, len(degrees) - 1))


def core_of(degrees: Wholes, size: int) -> Wholes:
    """Return the places of the largest noisy degrees, in order of places.

    Example:
        >>> core_of(np.array([3, 9, -1, 9]), 2).tolist()
        [1, 3]
    """
    return np.sort(np.argsort(-degrees, kind="stable")[:size])


def induced(graph: Graph, core: Wholes) -> Graph:
    """Return the graph among the core's nodes, numbered anew. Custodian side."""
    place = np.full(graph.node_count, -1, dtype=np.int64)
    place[core] = np.arange(len(core))
    edges = place[graph.edges()]
    return Graph.from_edges(edges[(edges >= 0).all(axis=1)], nodes=len(core))
