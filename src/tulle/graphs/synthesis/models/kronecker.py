"""The model kronecker: a stochastic Kronecker graph with private moments, for any n."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.isotonic import sorted_sequence
from tulle.graphs.queries.counts import triangles
from tulle.graphs.queries.degrees import Degrees
from tulle.graphs.synthesis.ladder_counts import draw_count
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.models.one_k import DegreeSettings, check_noise, consistent_degrees
from tulle.graphs.synthesis.query import Synthetic
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.post_processing import Random

_GRID = 9
_ZOOMS = 9


@dataclass(frozen=True)
class Tuning:
    """Not chosen on any data: three numbers are fitted (edges, stars, triangles), of which the
    degrees give two."""

    triangles_share: Fraction = Fraction(1, 3)
    """Part of epsilon that the number of triangles gets."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False, kw_only=True)
class KroneckerSettings(DegreeSettings):
    """The public settings of one run."""

    triangles: Fraction
    """The part of epsilon for the number of triangles; none where zero."""


@registry.offered("synthetic", "kronecker", "Kronecker", "four numbers, any size")
@registry.mechanism("graph", "synthetic_kronecker", answers=(Synthetic,), units=("edge",))
class Kronecker(SynthesisModel):
    """A stochastic Kronecker graph whose expected counts match private ones.

    Its three parameters are fitted to the numbers of edges, of stars with two and with three
    leaves, and of triangles. A Kronecker graph has 2^k nodes; for other n it is made on the next
    power of two and n of its nodes are taken at random, which the fit allows for: a count on j
    nodes survives with chance (n choose j) / (2^k choose j).

    Guarantee:
        Pure epsilon per edge. The sorted degrees move by at most 2 in L1 and get discrete Laplace
        noise; edges and stars are computed from them. Triangles are drawn from a ladder
        (see ``smoothed_ladder``).

    Error:
        Three numbers describe the graph: scale and skew are right, clustering and communities are
        not, since Kronecker graphs have few triangles.

    Reference:
        Mir & Wright, A differentially private estimator for the stochastic Kronecker graph model,
        PAIS 2012 (theirs needs delta); moments of Gleich & Owen, Internet Mathematics 8, 2012.

    Example:
        >>> import tulle
        >>> ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
        >>> r = tulle.release(ring, tulle.synthetic("kronecker"), unit="edge", epsilon=90.0)
        >>> r.value.node_count
        9
    """

    model: ClassVar[str] = "kronecker"
    title: ClassVar[str] = "a stochastic Kronecker graph with private moments"
    reference: ClassVar[str] = "Mir & Wright, PAIS 2012, pure; Gleich & Owen 2012"
    anonymous: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("triangles",)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        asked = options.get("triangles", "yes")
        if asked not in ("yes", "no"):
            raise InputError(f"triangles must be yes or no; got {asked!r}.")
        share = _TUNING.triangles_share if asked == "yes" else Fraction(0)
        check_noise(nodes, terms.epsilon * (1 - share), terms.epsilon)
        return KroneckerSettings(
            nodes=nodes,
            form="sequence",
            sensitivity=2,
            scale=2 / (terms.epsilon * (1 - share)),
            triangles=terms.epsilon * share,
        )

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        chosen = KroneckerSettings.read(settings)
        sequence = sorted_sequence(Degrees(), graph)
        with charge(LaplaceCharge(chosen.sensitivity)):
            noise = discrete_laplace(scale=chosen.scale, size=sequence.shape, source=source)
        seen: dict[str, Any] = {"degrees": sequence + noise}
        if epsilon := chosen.triangles:
            seen["triangles"] = draw_count(triangles(), graph, epsilon, source)
        return seen

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        nodes = KroneckerSettings.read(settings).nodes
        degrees = consistent_degrees(statistics["degrees"], settings).astype(np.float64)
        edges = int(degrees.sum()) // 2
        if edges == 0:
            return np.empty((0, 2), dtype=np.int64)
        wanted = np.array(
            [
                edges,
                float((degrees * (degrees - 1) / 2).sum()),
                float((degrees * (degrees - 1) * (degrees - 2) / 6).sum()),
                max(float(statistics.get("triangles", 0)), 0.0),
            ]
        )
        parameters = fit_parameters(wanted, nodes, "triangles" in statistics)
        return drop_edges(parameters, nodes, edges, random)


def expected_counts(parameters: Floats, power: int) -> Floats:
    """Return the expected edges, 2-stars, 3-stars and triangles on 2^power nodes.

    ``parameters`` holds a, b and c, each a number or an array of candidates.

    Example:
        >>> expected_counts(np.array([1.0, 1.0, 1.0]), 2).tolist()
        [6.0, 12.0, 4.0, 4.0]
    """
    a, b, c = parameters
    k = power
    # The 3-stars are derived anew: published coefficients (5 and 4 for 3 and 6) make them negative.
    edges = ((a + 2 * b + c) ** k - (a + c) ** k) / 2
    stars = (
        ((a + b) ** 2 + (b + c) ** 2) ** k
        - 2 * (a * (a + b) + c * (c + b)) ** k
        - (a**2 + 2 * b**2 + c**2) ** k
        + 2 * (a**2 + c**2) ** k
    ) / 2
    cubes = a**3 + c**3
    thirds = (
        ((a + b) ** 3 + (b + c) ** 3) ** k
        - 3 * (a * (a + b) ** 2 + c * (b + c) ** 2) ** k
        - 3 * (cubes + b * (a**2 + c**2) + b**2 * (a + c) + 2 * b**3) ** k
        + 2 * (cubes + 2 * b**3) ** k
        + 3 * (cubes + b**2 * (a + c)) ** k
        + 6 * (cubes + b * (a**2 + c**2)) ** k
        - 6 * cubes**k
    ) / 6
    triangles = (
        (cubes + 3 * b**2 * (a + c)) ** k
        - 3 * (a * (a**2 + b**2) + c * (b**2 + c**2)) ** k
        + 2 * cubes**k
    ) / 6
    return np.array([edges, stars, thirds, triangles])


def fit_parameters(wanted: Floats, nodes: int, use_triangles: bool) -> Floats:
    """Return a >= c and b in [0, 1] whose expected counts are nearest to the wanted ones.

    Nearest in squared relative error, as Gleich & Owen advise: a count that no Kronecker graph
    reaches, as a clustered graph's triangles, costs at most one and does not spoil the rest. A
    grid is laid over the cube and, again and again, over a smaller cube around its best point.
    """
    power = max((nodes - 1).bit_length(), 1)
    whole = 1 << power
    survive = np.array([comb(nodes, j) / max(comb(whole, j), 1) for j in (2, 3, 4, 3)])
    used = (wanted > 0) & (np.arange(4) < (4 if use_triangles else 3)) & (survive > 0)
    centre, reach = np.full(3, 0.5), 0.5
    for _ in range(_ZOOMS):
        axes = [
            np.clip(np.linspace(middle - reach, middle + reach, _GRID), 0.0, 1.0)
            for middle in centre
        ]
        candidates = np.array([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")])
        counts = expected_counts(candidates, power)[used] * survive[used, None]
        apart = counts / wanted[used, None] - 1
        centre = candidates[:, int(np.argmin((apart**2).sum(axis=0)))]
        reach *= 0.4
    a, b, c = centre
    return np.array([max(a, c), b, min(a, c)])


def drop_edges(parameters: Floats, nodes: int, edges: int, random: Random) -> Wholes:
    """Return a Kronecker graph's edges among n random nodes, dropped level by level."""
    power = max((nodes - 1).bit_length(), 1)
    whole = 1 << power
    a, b, c = parameters
    total = a + 2 * b + c
    if total <= 0:
        return np.empty((0, 2), dtype=np.int64)
    steps = np.cumsum([a, b, b, c]) / total
    place = np.full(whole, -1, dtype=np.int64)
    place[random.permutation(whole)[:nodes]] = random.permutation(nodes)
    goal = min(edges, nodes * (nodes - 1) // 2)
    keys = np.empty(0, dtype=np.int64)
    for _ in range(60):
        missing = goal - len(keys)
        if missing <= 0:
            break
        count = int(missing * (whole / nodes) ** 2 * 1.1) + 16
        first = np.zeros(count, dtype=np.int64)
        second = np.zeros(count, dtype=np.int64)
        for _ in range(power):
            quarter = np.searchsorted(steps, random.random(count), side="right")
            quarter = np.minimum(quarter, 3)
            first = 2 * first + quarter // 2
            second = 2 * second + quarter % 2
        u, v = place[first], place[second]
        good = (u >= 0) & (v >= 0) & (u != v)
        low, high = np.minimum(u, v)[good], np.maximum(u, v)[good]
        fresh = np.setdiff1d(low * nodes + high, keys)
        if len(fresh) > missing:
            fresh = fresh[random.permutation(len(fresh))[:missing]]
        keys = np.append(keys, fresh)
    return np.column_stack(np.divmod(keys, nodes))
