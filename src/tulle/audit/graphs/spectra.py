"""The audit's view of private spectra, and broken versions, three as a dissertation prints them.

An iteration is adaptive: what a round multiplies depends on the noise of earlier rounds. Its
proof is about one round given all earlier ones, so each round is described for a fixed iterate
with rows as long as clipping allows, which is the worst there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tulle.audit.engine.bits import response_coins
from tulle.audit.engine.broken import Broken
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Claim, LaplaceVector, Law, laplace_vector, ratio
from tulle.audit.faults import BOTH, broken
from tulle.core.arrays import Floats
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.spectra.eigenvalues_gaussian import EigenGaussSettings
from tulle.graphs.spectra.eigenvalues_laplace import (
    EigenLaplaceSettings,
    EigenvalueSettings,
    snapped,
)
from tulle.graphs.spectra.eigenvalues_laplace import finish as finish_values
from tulle.graphs.spectra.eigenvalues_spread import EigenSpreadSettings
from tulle.graphs.spectra.eigenvalues_spread import finish as finish_place
from tulle.graphs.spectra.power import Power, PowerPure, PowerSettings, start, whole_rows
from tulle.graphs.spectra.queries import (
    SpectralQuery,
    Spectrum,
    adjacency,
    decompose,
    eigenvalues,
    public_signs,
    spectrum,
)
from tulle.graphs.spectra.quotients import (
    exact_quotients,
    quotient_sensitivity,
    whole_columns,
)
from tulle.graphs.spectra.response import SpectralResponse, SpectralResponseSettings, mean_of
from tulle.graphs.spectra.spread import STEPS, rounded_place, scale_sensitivity, spread_value
from tulle.graphs.topology.response import Topology, topology
from tulle.noise.xor.patterns import flip_probability

SPECTRA: tuple[Query, ...] = (eigenvalues(1), eigenvalues(2), spectrum(1), spectrum(2))
"""The questions of the audit about spectra; low_rank(k) draws as spectrum(k) does."""

DRAWN_SPECTRA: tuple[Query, ...] = (eigenvalues(1), spectrum(1))

OPTIONS: dict[str, tuple[Parameters, ...]] = {
    "eigen_laplace": ({"step": "1/4"}, {}),
    "eigen_gauss": ({"step": "1/4"},),
    "eigen_spread": ({"steps": 4}, {}),
    "power": (
        {"iterations": 1, "levels": 1, "threshold": 0},
        {"iterations": 2, "levels": 3, "reach": 1},
    ),
    "power_pure": (
        {"iterations": 1, "levels": 1, "threshold": 0},
        {"iterations": 2, "levels": 3, "reach": 1},
        {},
    ),
    "spectral_response": (
        {"degree_share": "4/5", "quotient_share": 0, "spread_share": 0},
        {"quotient_share": "1/40", "spread_share": 0},
        {},
    ),
}
"""Coarse lattices and few rounds for the draws, so that every outcome can be listed."""


@dataclass(frozen=True)
class GaussianVector(Law):
    """Independent discrete Gaussian noise of one variance on each entry."""

    centre: tuple[int, ...]
    variance: Fraction
    sensitivity: Fraction
    """The square of the most that one unit moves the centre in L2, as claimed."""

    def claims(self, other: GaussianVector) -> Iterator[Claim]:
        moved = sum((a - b) ** 2 for a, b in zip(self.centre, other.centre, strict=True))
        yield Claim(
            "squared L2 sensitivity",
            ratio(moved, float(self.sensitivity)),
            f"moves {moved} of {self.sensitivity}",
        )

    def loss(self, other: GaussianVector) -> float:
        """Return infinity where the centres differ: Gaussian noise is never pure."""
        return 0.0 if self.centre == other.centre else math.inf

    def losses(self, other: GaussianVector) -> tuple[Floats, Floats]:
        pairs = zip(self.centre, other.centre, strict=True)
        return _gaussian_losses(
            tuple(sorted(abs(a - b) for a, b in pairs if a != b)), self.variance
        )

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        masses = _gaussian_masses(self.variance, left_out / len(self.centre))
        reach = len(masses) // 2
        vectors: list[tuple[int, ...]] = [()]
        total = np.array([1.0])
        for centre in self.centre:
            values = range(centre - reach, centre + reach + 1)
            vectors = [(*vector, value) for vector in vectors for value in values]
            total = np.multiply.outer(total, masses).ravel()
        return list(vectors), total


def _gaussian_masses(variance: Fraction, left_out: float) -> Floats:
    sigma = math.sqrt(variance)
    reach = math.ceil(sigma * math.sqrt(2 * math.log(4 / left_out))) + 1
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * float(variance)))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@lru_cache(maxsize=1024)
def _gaussian_losses(moves: tuple[int, ...], variance: Fraction) -> tuple[Floats, Floats]:
    """Return masses and log-ratios: (|d|² - 2·d·y) / (2·variance), y the noise, d the moves.

    d·y is a whole number, so its distribution is a convolution of stretched ones.
    """
    total = np.array([1.0])
    masses = _gaussian_masses(variance, 1e-17)
    for move in moves:
        stretched = np.zeros(move * (len(masses) - 1) + 1)
        stretched[::move] = masses
        total = np.convolve(total, stretched)
    reach = len(total) // 2
    inner = np.arange(-reach, reach + 1)
    squares = sum(move**2 for move in moves)
    return total, (squares - 2 * inner) / (2 * float(variance))


def describe_values(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on the snapped eigenvalues."""
    chosen = EigenLaplaceSettings.read(settings)
    moved = chosen.sensitivity
    law = laplace_vector(snapped(graph, settings), chosen.scale, moved)
    return Description((("answer", law),))


def describe_spread(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on the rounded place of the spread value on its scale."""
    chosen = EigenSpreadSettings.read(settings)
    centre = [rounded_place(graph, chosen.steps, chosen.cap)]
    return Description((("answer", laplace_vector(centre, chosen.scale, chosen.sensitivity)),))


def describe_values_gauss(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Gaussian noise on the snapped eigenvalues."""
    chosen = EigenGaussSettings.read(settings)
    centre = tuple(snapped(graph, settings).tolist())
    claimed = chosen.sensitivity**2
    return Description((("answer", GaussianVector(centre, chosen.variance, claimed)),))


def worst_iterates(nodes: int, k: int, iterations: int) -> list[Floats]:
    """Return an iterate for each round: the real start, then full rows along one axis or more."""
    iterates = [start(nodes, k)]
    for turn in range(1, iterations):
        axis = np.zeros((nodes, k))
        axis[:, turn % k] = public_signs(nodes, 2)[:, 1]
        # The first row is longer than the others: clipping has something to do.
        axis[0] *= 3
        iterates.append(axis)
    return iterates


def products(graph: Graph, settings: Parameters, order: int) -> tuple[int, ...]:
    """Return all rounds' products of the matrix and clipped rows, one after the other."""
    chosen = PowerSettings.read(settings)
    levels = chosen.levels
    # Dense, since thousands of tiny graphs are described.
    matrix = np.zeros((graph.node_count,) * 2, dtype=np.int64)
    first, second = graph.edges().T
    matrix[first, second] = matrix[second, first] = 1
    key = chosen.nodes, chosen.k, chosen.iterations
    made = (matrix @ rows for rows in _clipped_rows(*key, levels, order))
    return tuple(entry for product in made for entry in product.ravel().tolist())


@lru_cache(maxsize=64)
def _clipped_rows(nodes: int, k: int, iterations: int, levels: int, order: int) -> list[Any]:
    iterates = worst_iterates(nodes, k, iterations)
    return [whole_rows(each, _shortest(each, order), levels, order) for each in iterates]


def _shortest(iterate: Floats, order: int) -> float:
    return float(np.linalg.norm(iterate, ord=order, axis=1).min())


def describe_power(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Gaussian noise on every round's product."""
    return gaussian_rounds(products(graph, settings, Power.order), settings)


def gaussian_rounds(centre: tuple[int, ...], settings: Parameters) -> Description:
    """Return Gaussian noise on products that one edge moves by sqrt(2)·levels in each round."""
    chosen = PowerSettings.read(settings)
    assert chosen.variance is not None
    claimed = 2 * chosen.levels**2 * chosen.iterations
    law = GaussianVector(centre, chosen.variance, Fraction(claimed))
    return Description((("answer", law),))


def describe_power_pure(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every round's product."""
    centre = products(graph, settings, PowerPure.order)
    return laplace_rounds(centre, settings)


def laplace_rounds(centre: tuple[int, ...], settings: Parameters) -> Description:
    """Return Laplace noise on products that one edge moves by 2·levels in each round."""
    chosen = PowerSettings.read(settings)
    assert chosen.scale is not None
    claimed = 2 * chosen.levels * chosen.iterations
    law = laplace_vector(centre, chosen.scale, claimed)
    return Description((("answer", law),))


def describe_spectral_response(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe a coin for each pair of nodes, and Laplace noise on the degrees."""
    chosen = SpectralResponseSettings.read(settings)
    bits = tuple(int(bit) for bit in topology().truth(graph).bits())
    degrees = np.bincount(graph.edges().ravel(), minlength=graph.node_count)
    scales = (chosen.degree_scale,) * len(degrees)
    law = LaplaceVector(tuple(int(degree) for degree in degrees), scales, Fraction(2))
    coins = response_coins(bits, {**settings, "epsilon": text(chosen.epsilon_pairs)})
    parts: list[tuple[str, Law]] = [("answer", coins), ("degrees", law)]
    if epsilon := chosen.epsilon_quotients:
        columns = whole_columns(worst_columns(chosen.nodes, chosen.k), epsilon)
        moved = quotient_sensitivity(columns)
        centre = exact_quotients(graph, columns)
        parts.append(("quotients", laplace_vector(centre, moved / epsilon, moved)))
    if epsilon := chosen.epsilon_spread:
        most = scale_sensitivity()
        parts.append(("spread", laplace_vector([rounded_place(graph)], most / epsilon, most)))
    # Which vector is the first is decided by coins and degrees together.
    return Description(tuple(parts), joint=True)


def worst_columns(nodes: int, k: int) -> Floats:
    """Return columns of which some edge moves the quotients as much as any can.

    Which vectors are measured depends on coins and degrees; the proof is about any that are public.
    """
    columns = np.full((nodes, k), 1 / 8)
    columns[:2] = 1 / math.sqrt(2 * k)
    return columns


Describer = Callable[[Terms, Parameters, Graph], Description]

SPECTRA_DESCRIBERS: dict[str, Describer] = {
    "eigen_gauss": describe_values_gauss,
    "eigen_spread": describe_spread,
    "power": describe_power,
    "power_pure": describe_power_pure,
    "spectral_response": describe_spectral_response,
    "eigen_laplace": describe_values,
}
"""The closed form of each mechanism's run, by name."""


def is_spectral(query: Query) -> bool:
    """Say whether a question is about the spectrum."""
    return isinstance(query, SpectralQuery)


def small_graphs() -> tuple[Graph, Graph]:
    """Return a path of three nodes, and the path without one edge."""
    return Graph.from_edges([(0, 1), (1, 2)], nodes=3), Graph.from_edges([(0, 1)], nodes=3)


def see(value: Any) -> Hashable:
    """Return a released spectrum, or eigenvalues, as something to be counted."""
    if isinstance(value, Spectrum):
        shown = np.concatenate([value.values, value.vectors.ravel(), [value.noise]])
        return tuple((shown * 2**20).round())
    return tuple(value.tolist())


def finish(
    name: str, mechanism: Mechanism, terms: Terms, settings: Parameters
) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return the post-processing of one round, of flipped bits or of eigenvalues."""
    nodes, k = int(settings["nodes"]), int(settings["k"])

    @lru_cache(maxsize=4096)
    def finish_response(bits: int, degrees: tuple[int, ...], mean: int) -> Hashable:
        listed = [bits >> place & 1 for place in range(nodes * (nodes - 1) // 2)]
        drawn = Topology(nodes, np.packbits(np.array(listed, dtype=np.uint8)))
        real = SpectralResponse()
        ranks = np.array(degrees, dtype=np.int64)
        return see(real.search(terms, drawn, ranks, mean, settings).spectrum())

    def finish_one(parts: tuple[Any, ...]) -> Hashable:
        answer = parts[0]
        if name == "eigen_spread":
            return see(finish_place(int(answer[0]), settings))
        if name in ("eigen_laplace", "eigen_gauss"):
            return see(finish_values(np.array(answer, dtype=np.int64), settings))
        if name == "spectral_response":
            # Degrees that no graph has are cut: that leaves few to be told apart.
            cut = tuple(min(max(d, 0), nodes - 1) for d in parts[1])
            return finish_response(answer, cut, mean_of(np.array(parts[1])))
        real = Power() if name == "power" else PowerPure()
        noisy = np.array(answer, dtype=np.int64).reshape(nodes, k)
        rows, _ = real.rows(start(nodes, k), settings)
        squares = real.squares(rows, noisy, settings)
        return see(real.conclude(terms, rows, noisy, settings, squares))

    return finish_one


_VECTOR = (spectrum(1),)
_VALUE = (eigenvalues(1),)


def weyl_for_all(honest: Parameters, terms: Terms) -> Parameters:
    """Add noise for a movement of 1, which is what a single eigenvalue moves by."""
    moved = 1 / rational(honest["step"])
    variance = moved**2 / (2 * largest_rho(terms.epsilon, terms.delta))
    return {"sensitivity": text(moved), "variance": text(variance)}


def not_clipped(mechanism: Mechanism, order: int) -> Broken:
    """Leave rows as they are: their typical length is ``levels``, single ones are longer."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        made, chosen = [], PowerSettings.read(settings)
        for iterate in worst_iterates(chosen.nodes, chosen.k, chosen.iterations):
            length = float(np.median(np.linalg.norm(iterate, ord=order, axis=1)))
            rows = np.rint(iterate * (chosen.levels / max(length, 1e-300)))
            made.append(adjacency(graph) @ rows.astype(np.int64))
        centre = tuple(int(entry) for product in made for entry in product.ravel())
        return {"answer": replace(laws["answer"], centre=centre)}

    fault = "rows are not clipped: the noise follows a typical row, not the longest"
    return broken(mechanism, "not clipped", fault, _VECTOR, BOTH, law=law)


def eigengap_noise(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return LNPP: Laplace noise on an eigenvector, by the eigengap of the graph at hand."""
    chosen = PowerSettings.read(settings)
    levels = chosen.levels
    found = decompose(graph, 2)
    gap = Fraction(max(float(found.values[0] - found.values[1]), 2.0**-20))
    bound = Fraction(math.sqrt(graph.node_count)) / gap * levels
    centre = np.rint(found.vectors[:, 0] * levels)
    return {"answer": laplace_vector(centre, bound / terms.epsilon, bound)}


def gaussian_called_pure(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return SBMF's eigenvalues: Gaussian noise sigma is said to be 2·sigma·GS-private."""
    chosen = EigenvalueSettings.read(settings)
    variance = (terms.epsilon / 2 / chosen.step) ** 2
    moved = chosen.sensitivity**2
    return {"answer": GaussianVector(laws["answer"].centre, variance, moved)}


def twice_the_epsilon(honest: Parameters, terms: Terms) -> Parameters:
    """Flip coins for twice the epsilon, as if the two halves of a matrix had one each."""
    flip = flip_probability(2 * rational(honest["epsilon_pairs"]))
    return {"flip": flip, "keep": 1 - flip, "invent": flip}


def typical_entries(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return noise on quotients for an edge between two nodes of a typical row, not the longest."""
    chosen = SpectralResponseSettings.read(settings)
    if "quotients" not in laws:
        return {}
    rows = whole_columns(worst_columns(chosen.nodes, chosen.k), chosen.epsilon_quotients)
    moved = 2 * int(np.median((rows**2).sum(axis=1)))
    law = laplace_vector(laws["quotients"].centre, moved / chosen.epsilon_quotients, moved)
    return {"quotients": law}


def square_of_value(graph: Graph, steps: int, epsilon: Fraction) -> Law:
    """Return noise on the square of the spread value for what the value itself moves by."""
    square = spread_value(graph.node_count, graph.edges()) ** 2
    return laplace_vector([round(square * steps)], steps / epsilon, steps)


def square_as_value(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return such noise in place of that on the scale, for eigenvalues."""
    steps = EigenSpreadSettings.read(settings).steps
    return {"answer": square_of_value(graph, steps, terms.epsilon)}


def first_square_as_value(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return such noise for the first value of a spectrum."""
    chosen = SpectralResponseSettings.read(settings)
    if "spread" not in laws:
        return {}
    return {"spread": square_of_value(graph, STEPS, chosen.epsilon_spread)}


def spectra_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return all broken versions."""
    power, pure, eigen = real["power"], real["power_pure"], real["eigen_laplace"]
    eigen_gauss, response = real["eigen_gauss"], real["spectral_response"]
    return [
        broken(
            eigen_gauss,
            "as if for one",
            "two eigenvalues move by sqrt(2) together, not by 1",
            (eigenvalues(2),),
            ("claims",),
            settings=weyl_for_all,
        ),
        not_clipped(power, 2),
        not_clipped(pure, 1),
        broken(
            pure,
            "LNPP as printed",
            "sqrt(n) / eigengap is a local, first-order bound, which neighbours do not share "
            "(chapter 4, result 6)",
            _VECTOR,
            BOTH,
            law=eigengap_noise,
        ),
        broken(
            eigen,
            "SBMF as printed",
            "Gaussian noise has no pure epsilon, and more of it cannot cost more "
            "(chapter 4, claim 4)",
            _VALUE,
            law=gaussian_called_pure,
        ),
        broken(
            response,
            "twice the epsilon",
            "a pair is flipped less often than its epsilon demands",
            _VECTOR,
            settings=twice_the_epsilon,
        ),
        broken(
            response,
            "typical entries",
            "an edge between the two longest rows moves quotients by more than a typical one",
            _VECTOR,
            BOTH,
            law=typical_entries,
        ),
        broken(
            real["eigen_spread"],
            "as if for the value",
            "an edge moves the largest eigenvalue by one, and its square by more",
            _VALUE,
            BOTH,
            law=square_as_value,
        ),
        broken(
            response,
            "as if for the value",
            "an edge moves the largest eigenvalue by one, and its square by more",
            _VECTOR,
            BOTH,
            law=first_square_as_value,
        ),
    ]
