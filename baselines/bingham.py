"""Eigenvectors by the exponential mechanism: each an exact Bingham draw, orthogonal to the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from baselines import baseline
from baselines.bingham_draws import (
    ASSUMED_ERROR,
    LARGEST_CONDITION,
    bingham,
    gaussians,
    is_verified,
)
from tulle.core import validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Event, Pure
from tulle.core.guarantee import Guarantee, display
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.queries import (
    LargestSpectrum,
    Spectrum,
    adjacency,
    oriented,
    public_spectrum,
    rank_of,
)
from tulle.noise import discrete_laplace
from tulle.noise.charge import Draw, LaplaceCharge, PricedCharge, charge

LARGEST_NODES = 6_000
"""The whole matrix is factored, in floats: 288 megabytes each for the matrix and its factor."""

VALUE_SHARE = Fraction(1, 10)
"""Part of epsilon for the eigenvalues; the vectors share the rest evenly."""

LEVELS = 64
"""Steps to 1 of the rounded entries, which are about as large as normal numbers."""

ASSUMPTION = "floating point moves no entry of a drawn vector by more than 2^-34"

_VALUE_LEVELS = 2**20
"""How finely released vectors are rounded before they are multiplied, in whole numbers."""


class Deflation:
    """The sphere of directions orthogonal to released ones, and a form restricted to it.

    Each released direction is turned to the first axis by a reflection, and that axis is dropped.
    """

    def __init__(self, form: Floats) -> None:
        self.form = form
        self._mirrors: list[Floats] = []

    def leave_out(self, vector: Floats) -> None:
        """Drop the direction of this vector, given in all coordinates, from the sphere."""
        inside = self._reduce(vector)
        length = float(np.linalg.norm(inside))
        mirror = inside.copy()
        # A vector with nothing left inside is as good as any other: the first axis is dropped.
        mirror[0] += math.copysign(length, mirror[0]) if length else 1.0
        mirror /= np.linalg.norm(mirror)
        image = self.form @ mirror
        image -= float(mirror @ image) * mirror
        turned = self.form - 2 * np.outer(mirror, image) - 2 * np.outer(image, mirror)
        self.form = np.ascontiguousarray(turned[1:, 1:])
        self._mirrors.append(mirror)

    def _reduce(self, vector: Floats) -> Floats:
        for mirror in self._mirrors:
            vector = (vector - 2 * float(mirror @ vector) * mirror)[1:]
        return vector

    def lift(self, inside: Floats, outside: Floats) -> Floats:
        """Return a vector in all coordinates from its part inside and its dropped coordinates."""
        for mirror, dropped in zip(self._mirrors[::-1], outside[::-1], strict=True):
            inside = np.concatenate([[dropped], inside])
            inside = inside - 2 * float(mirror @ inside) * mirror
        return inside


@baseline("graph", "bingham", answers=(LargestSpectrum,), units=("edge",))
class Bingham(Mechanism):
    """Draw each vector with weight exp(strength·u'Au) among those orthogonal to earlier ones.

    Guarantee:
        Pure epsilon per edge, on the assumption named in the release. An edge between i and j
        moves u'Au by 2·u_i·u_j, at most u_i² + u_j² <= 1 for a unit vector u; so it is for u in
        any subspace, such as the one orthogonal to vectors that are released already. A draw with
        weight exp(e·u'Au / 2) costs e: e/2 for the weight, e/2 for what all weights add up to. The
        values are u'Au for the released vectors, with Laplace noise by what one edge can move
        them, which the released vectors tell.

        A draw by rejection has the law itself, not one that a chain may come near; but it is
        computed in floating point. It is released rounded to 1/64 of a normal deviation. If
        floating point moves entries by at most 2^-34, a rounded vector is at most
        exp(16·n·2^-28) times as likely as it should be, and near zero the weight varies by a
        further factor; both are taken off epsilon first.

    Error:
        The price of pure epsilon by the exponential mechanism is a strength of epsilon/2 against
        n dimensions: a vector begins to show when epsilon·eigenvalue exceeds about n. On networks
        of thousands of nodes that is an epsilon in the tens; every other mechanism does better.

    Raises:
        QueryError: beyond 6,000 nodes, at an epsilon below what rounding costs, or at one above
            what floating point is verified for.

    Reference:
        Chaudhuri, Sarwate & Sinha, A near-optimal algorithm for differentially-private principal
        components, JMLR 2013. Kent, Ganeiber & Mardia, J. Comput. Graph. Statist. 2018. The
        dissertation's SBMF with an exact draw and a correct price.

    Example:
        >>> import tulle
        >>> clique = Graph.from_edges([(u, v) for u in range(9) for v in range(u)], nodes=9)
        >>> r = tulle.release(clique, tulle.spectrum(1), unit="edge", epsilon=900.0,
        ...                   mechanism="bingham")
        >>> bool(abs(r.value.values[0] - 8) < 1), r.guarantee.assumptions[0]
        (True, 'floating point moves no entry of a drawn vector by more than 2^-34')
    """

    title: ClassVar[str] = "vectors by the exponential mechanism"
    reference: ClassVar[str] = "Chaudhuri et al., JMLR 2013; Kent et al., JCGS 2018"
    options: ClassVar[tuple[str, ...]] = ("levels",)

    def offers(self, query: Query, unit: Unit) -> bool:
        # Always worse than a coin for every pair, and slower.
        return False

    def guarantee(self, terms: Terms, settings: Parameters) -> Guarantee:
        return replace(super().guarantee(terms, settings), assumptions=(ASSUMPTION,))

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        if nodes > LARGEST_NODES:
            raise QueryError(
                f"bingham factors the whole matrix and is for at most {LARGEST_NODES:,} nodes; the "
                f"graph has {nodes:,}. Use power, power_pure or spectral_response."
            )
        levels = validate.whole(levels=options.get("levels", LEVELS), at_least=1)
        if levels > LEVELS:
            raise InputError(f"levels must be at most {LEVELS}; got {levels}.")
        strength = self.strength(terms, nodes, k)
        if not is_verified(nodes, strength * largest_spread(nodes), k):
            raise QueryError(
                "bingham draws in floating point, which is verified up to epsilon = "
                f"{float(largest_epsilon(nodes, k)):.3g} for {terms.query} on {nodes:,} nodes; "
                f"asked was {display(terms.epsilon)}. Use a smaller epsilon, or power, power_pure "
                "or spectral_response."
            )
        return {
            "nodes": nodes,
            "k": k,
            "levels": levels,
            "epsilon_values": text(terms.epsilon * VALUE_SHARE),
            "strength": text(strength),
        }

    def strength(self, terms: Terms, nodes: int, k: int) -> Fraction:
        """Return the factor of u'Au: half of a vector's epsilon, less what rounding may cost."""
        each = terms.epsilon * (1 - VALUE_SHARE) / k
        cells, centre = rounding_costs(nodes)
        if each <= 2 * cells:
            least = 2 * cells * k / (1 - VALUE_SHARE)
            raise QueryError(
                f"bingham needs an epsilon above {display(least)} for {terms.query} on {nodes:,} "
                "nodes: with less, rounding could not be told from the draw."
            )
        return (each - cells) / (2 * (1 + centre))

    def priced(self, settings: Parameters, size: float) -> Callable[[Sequence[Draw]], Event]:
        """Return the price of a vector drawn by the form of a matrix of this norm."""

        def price(draws: Sequence[Draw]) -> Event:
            stated = rational(settings["strength"])
            # Leaving out directions only shrinks the norm, which is strength times that of A.
            form = float(np.linalg.norm(draws[0].parameters["form"]))
            used = Fraction(form / size) if size else stated
            cells, centre = rounding_costs(int(settings["nodes"]))
            strength = stated if used <= stated * (1 + Fraction(1, 2**40)) else used
            return Pure(2 * strength * (1 + centre) + cells)

        return price

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        if not isinstance(like, Graph):
            return Prediction(None, None, 1.0)
        known = public_spectrum(like, int(settings["k"]))
        # With s = 2·strength·eigenvalue, 1 - n/s is what is left of a vector's squared cosine.
        s = 2 * float(rational(settings["strength"])) * np.maximum(known.values, 1e-9)
        shown = np.maximum(1 - int(settings["nodes"]) / s, 0.0)
        return Prediction(None, None, float(np.mean(np.sqrt(1 - shown))))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        strength = float(rational(settings["strength"]))
        matrix = dense_adjacency(dataset)
        size = float(np.linalg.norm(matrix))
        sphere = Deflation(matrix * strength)
        drawn: list[Wholes] = []
        for place in range(int(settings["k"])):
            with charge(PricedCharge(self.priced(settings, size), ("bingham", "gaussian"))):
                inside = bingham(sphere.form, source)
                # Dropped coordinates get noise of their own: all entries can be rounded.
                whole = sphere.lift(inside, gaussians(place, source) if place else np.zeros(0))
            drawn.append(np.rint(whole * int(settings["levels"])).astype(np.int64))
            if place + 1 < int(settings["k"]):
                sphere.leave_out(drawn[-1].astype(np.float64))
        rows = whole_basis(np.column_stack(drawn))
        index = snapped(dataset, rows, settings)
        scale = most_moved(rows, settings) / rational(settings["epsilon_values"])
        with charge(LaplaceCharge(most_moved(rows, settings))):
            noisy = index + discrete_laplace(scale=scale, size=len(index), source=source)
        return Outcome(conclude(rows, noisy, settings), None)


def rounding_costs(nodes: int) -> tuple[Fraction, Fraction]:
    """Return what rounding adds to the price of a vector, and the factor that it adds."""
    blur = ASSUMED_ERROR * LEVELS
    return 16 * nodes * blur, 8 * nodes * (math.isqrt(nodes) + 1) * blur


def largest_spread(nodes: int) -> Fraction:
    """Return a bound on how far apart two eigenvalues of an adjacency matrix can be.

    The squares of all eigenvalues add up to twice the number of edges, hence those of the largest
    and the least to at most n², and the two differ by at most sqrt(2)·n.
    """
    return Fraction(3, 2) * nodes


def largest_epsilon(nodes: int, k: int) -> Fraction:
    """Return about the largest epsilon at which floating point is verified, rounded down."""
    spread = (Fraction(LARGEST_CONDITION, math.isqrt(nodes) + 1 + k) - 1) / 2
    return max(spread, Fraction(0)) / largest_spread(nodes) * 2 * k / (1 - VALUE_SHARE)


def dense_adjacency(graph: Graph) -> Floats:
    """Return the adjacency matrix as floats. Custodian side."""
    return np.asarray(adjacency(graph).toarray(), dtype=np.float64)


def whole_basis(drawn: Wholes) -> Wholes:
    """Return the directions of drawn vectors, made orthogonal in order, in whole numbers."""
    basis, _ = np.linalg.qr(drawn.astype(np.float64))
    return np.asarray(np.rint(basis * _VALUE_LEVELS), dtype=np.int64)


def snapped(graph: Graph, rows: Wholes, settings: Parameters) -> Wholes:
    """Return v'Av for each column v, in lattice steps. Custodian side."""
    # A column has squares of 2^40 in sum and n is below 2^13: no product overflows.
    exact = (rows * (adjacency(graph) @ rows)).sum(axis=0)
    steps, one = int(settings["levels"]) ** 2, _VALUE_LEVELS**2
    return np.array([(int(e) * steps * 2 + one) // (2 * one) for e in exact], dtype=np.int64)


def most_moved(rows: Wholes, settings: Parameters) -> Fraction:
    """Return a bound on what one edge moves all snapped products by, in L1.

    An edge between i and j moves the products by 2·|row i|·|row j| together, at most, by
    Cauchy-Schwarz; snapping adds a step for each.

    Example:
        >>> most_moved(np.array([[2**20], [2**20], [5]]), {"levels": 1})
        Fraction(3298534883329, 1099511627776)
    """
    lengths = np.sort((rows**2).sum(axis=1))
    bound = math.isqrt(4 * int(lengths[-1]) * int(lengths[-2])) + 1
    return Fraction(bound * int(settings["levels"]) ** 2, _VALUE_LEVELS**2) + int(rows.shape[1])


def conclude(rows: Wholes, noisy: Wholes, settings: Parameters) -> Spectrum:
    """Return the spectrum from public vectors and their noisy products."""
    most = float(settings["nodes"]) - 1
    values = np.clip(noisy / float(int(settings["levels"]) ** 2), -most, most)
    order = np.argsort(-values, kind="stable")
    vectors, _ = np.linalg.qr(rows[:, order].astype(np.float64))
    level = float(settings["nodes"] / (2 * rational(settings["strength"])))
    return Spectrum(values[order], oriented(vectors), level)
