"""The degree distribution per node: degrees cut to a private bound, sums of "at most k"."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, log, sqrt
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Array, Wholes
from tulle.core.compiled import compiled
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.queries.degrees import DegreeDistribution
from tulle.noise import SeededSource, discrete_laplace, exponential
from tulle.noise.charge import ExponentialCharge, LaplaceCharge, charge

LARGEST = 1000
"""The largest degree that is told apart, unless the user says otherwise."""


@dataclass(frozen=True)
class Tuning:
    """How the bound on degrees is chosen, and what is counted together.

    Chosen on ca-GrQc, ca-HepTh, netscience, power, lastfm-asia, email-Eu-core, polblogs and
    p2p-Gnutella08, by the median of 201 runs at epsilon 0.5, 1, 2, 5 and 20. ``growth`` was lowered
    from 0.07, the best for these, after a look at p2p-Gnutella25.
    """

    bound_share: Fraction = Fraction(1, 4)
    """Part of epsilon that chooses the bound; the rest is for the answer."""
    failure: Fraction = Fraction(1, 10)
    """How often the choice may be further off than what is aimed above it. Not chosen on data."""
    growth: float = 0.05
    """Blocks grow by this part of their first degree, times the root of the noise's scale."""
    count_part: int = 16
    """The number of nodes is measured with this part of the bound as its weight, rounded down."""


_TUNING = Tuning()


def projected_degrees(graph: Graph, bound: int) -> Wholes:
    """Return the degrees of a subgraph in which none exceeds the bound. Custodian side.

    Edges are looked at in the order of their ends, and kept when both ends have room. The order
    of the edges that two neighbouring graphs share is the same in both: nodes are in the order of
    their labels (``tulle.graphs.io.labels``), whichever way the graph arrived.

    Example:
        >>> projected_degrees(Graph.from_edges([(0, 1), (0, 2), (0, 3)]), 2).tolist()
        [2, 1, 1, 0]
    """
    indptr, indices = graph.csr()
    kept: Wholes = _project(indptr, indices, bound)
    return kept


@compiled
def _project(indptr: Array, indices: Array, bound: int) -> Array:
    count = len(indptr) - 1
    kept = np.zeros(count, np.int64)
    for node in range(count):
        for place in range(indptr[node], indptr[node + 1]):
            other = indices[place]
            if other > node and kept[node] < bound and kept[other] < bound:
                kept[node] += 1
                kept[other] += 1
    return kept


def node_weight(bound: int) -> int:
    """Return how often the number of nodes is counted, so that it gets less noise than a block."""
    return max(1, bound // _TUNING.count_part)


def moved(bound: int) -> int:
    """Return how far one node moves :func:`block_counts` in L1: this is what noise must hide."""
    return bound + node_weight(bound)


def block_starts(bound: int, epsilon: Fraction) -> list[int]:
    """Return where blocks of the degrees 0 to bound - 1 start, and the bound.

    Adding counts up costs nothing (see :class:`Projection`), and the mean of a block of w counts
    has a w-th of the noise. What is lost is how they differ: blocks grow with their degrees, where
    distributions are smooth, and with the noise; the less there is, the more degrees stand alone.

    Example:
        >>> block_starts(12, Fraction(1, 9)), block_starts(6, Fraction(10**6))
        ([0, 1, 2, 3, 4, 6, 9, 12], [0, 1, 2, 3, 4, 5, 6])
    """
    growth = min(_TUNING.growth * sqrt(moved(bound) / float(epsilon)), 1.0)
    starts = [0]
    while starts[-1] < bound:
        starts.append(min(starts[-1] + max(1, int(growth * starts[-1])), bound))
    return starts


def block_counts(kept: Wholes, bound: int, epsilon: Fraction) -> Wholes:
    """Return the sums over blocks of how many nodes have degree at most k, and weighted nodes.

    Example:
        >>> block_counts(np.array([0, 1, 1, 2]), 2, Fraction(1)).tolist()
        [1, 3, 4]
    """
    starts = block_starts(bound, epsilon)
    at_most = np.cumsum(np.bincount(kept, minlength=bound + 1)[:bound])
    counts: Wholes = np.append(
        np.add.reduceat(at_most, starts[:-1]), node_weight(bound) * len(kept)
    ).astype(np.int64)
    return counts


def candidates(largest: int) -> list[int]:
    """Return the bounds that are tried: powers of the root of two, rounded down, and the largest.

    Example:
        >>> candidates(12)
        [1, 2, 4, 5, 8, 11, 12]
    """
    powers = (isqrt(1 << step) for step in range(2 * largest.bit_length()))
    return sorted({*(power for power in powers if power <= largest), largest})


def standing(sums: list[int], bounds: list[int], settings: Parameters) -> list[Fraction]:
    """Return a score for each bound that one node moves by at most one.

    Bound b keeps ``sums`` degrees in all, which one node moves by at most 2b, and its noise costs
    moved(b)/epsilon in each block. With q = kept - cost and a margin t·2b, each bound is
    compared with each other by the difference of these over 2b + 2b'; its score is the worst.
    """
    chosen = ProjectionSettings.read(settings)
    epsilon = chosen.epsilon_answer
    q = [
        kept
        - (len(block_starts(bound, epsilon)) - 1) * moved(bound) / epsilon
        - chosen.margin * 2 * bound
        for kept, bound in zip(sums, bounds, strict=True)
    ]
    return [
        min((q[i] - q[j]) / (2 * bounds[i] + 2 * bounds[j]) for j in range(len(bounds)))
        for i in range(len(bounds))
    ]


@dataclass(frozen=True, eq=False)
class ProjectionSettings(Settings):
    """The public settings of one run: ``margin`` is that of the scores."""

    largest: int
    epsilon_bound: Fraction
    epsilon_answer: Fraction
    margin: Fraction


@registry.mechanism("graph", "projection", answers=(DegreeDistribution,), units=("node",))
class Projection(Mechanism):
    """Release the degree distribution of a subgraph with bounded degrees, the bound private.

    Edges are kept in a fixed order while both ends have fewer than ``bound`` edges. How many nodes
    have degree at most 0, 1, ... bound - 1 in what is left is added up in blocks of degrees, and
    gets noise, as does the number of all nodes. The means of the blocks are made increasing again
    and joined by a smooth curve, whose steps are the distribution on 0 to ``largest``, which is
    public.

    Guarantee:
        Pure epsilon per node. A node that joins brings at most d <= bound kept edges; each starts
        a path of kept edges that go and come in turn, so at most d other nodes change degree, by
        one. That moves d of the counts by one, and the node itself adds one to bound - d of them
        (theorem 3 of the paper): bound in all, and no more after adding up counts. The number of
        nodes moves by one and is counted ``node_weight(bound)`` times. Each sum gets discrete
        Laplace noise of scale moved(bound)/epsilon_answer. The bound is drawn by the exponential
        mechanism on scores that one node moves by at most one, a quarter of epsilon.

    Error:
        moved(bound)/epsilon for each sum, so over the number of its degrees for the mean of a
        block; what the projection cuts off, and how a block differs from the curve. There is no
        interval.

    Reference:
        Day, Li & Lyu, Publishing graph degree distribution with node differential privacy,
        SIGMOD 2016; the choice of the bound after Raskhodnikova & Smith, FOCS 2016.

    Example:
        >>> import tulle
        >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], nodes=4)
        >>> r = tulle.release(
        ...     star, tulle.degree_distribution(), unit="node", epsilon=1.0,
        ...     mechanism="projection", largest=5,
        ... )
        >>> len(r.value)
        6
    """

    title: ClassVar[str] = "degrees cut to a private bound, noise on sums of counts of at most k"
    reference: ClassVar[str] = "Day, Li & Lyu, SIGMOD 2016"
    options: ClassVar[tuple[str, ...]] = ("largest", "bound_share")

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        largest = validate.whole(largest=options.get("largest", LARGEST), at_least=1)
        if largest > 10**6:
            raise InputError(f"largest must be at most a million; got {largest!r}.")
        share = validate.share(bound_share=options.get("bound_share", _TUNING.bound_share))
        rate = terms.epsilon * share
        # The margin of the scores: a bound of larger sensitivity must be better by that much.
        steps = ceil(2 * log(len(candidates(largest)) / float(_TUNING.failure)))
        return ProjectionSettings(largest, rate, terms.epsilon - rate, steps / rate)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        if not isinstance(like, Graph):
            return Prediction(None, None)
        drawn = self.run(terms, settings, like, SeededSource(1)).value
        truth = on_grid(like, ProjectionSettings.read(settings).largest)
        return Prediction(None, None, float(np.abs(drawn - truth).mean()))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        chosen = ProjectionSettings.read(settings)
        bounds = candidates(chosen.largest)
        kept = [projected_degrees(dataset, bound) for bound in bounds]
        scores = standing([int(row.sum()) for row in kept], bounds, chosen)
        rate = chosen.epsilon_bound
        with charge(ExponentialCharge(1)):
            place = exponential(scores, epsilon=rate, sensitivity=1, source=source)
        bound = bounds[place]
        exact = block_counts(kept[place], bound, chosen.epsilon_answer)
        with charge(LaplaceCharge(moved(bound))):
            scale = moved(bound) / chosen.epsilon_answer
            noisy = exact + discrete_laplace(scale=scale, size=exact.shape, source=source)
        return Outcome(finish_counts(noisy, bound, chosen), None, {"bound": bound})


def finish_counts(noisy: Wholes, bound: int, settings: ProjectionSettings) -> Wholes:
    """Return the distribution on 0 to largest from noisy sums of blocks and the noisy nodes."""
    from scipy.interpolate import PchipInterpolator
    from scipy.optimize import isotonic_regression

    starts = np.array(block_starts(bound, settings.epsilon_answer))
    widths = np.diff(starts)
    nodes = max(noisy[-1] / node_weight(bound), 0.0)
    means = isotonic_regression(noisy[:-1] / widths, weights=widths.astype(float) ** 2).x
    means = np.clip(means, 0.0, nodes)
    # The mean of a block stands in its middle; on a scale of ratios distributions are smoother.
    middles = np.append((starts[:-1] + starts[1:] - 1) / 2, bound)
    curve = PchipInterpolator(np.log1p(middles), np.append(means, nodes))
    at_most = np.rint(np.clip(curve(np.log1p(np.arange(bound + 1))), 0.0, nodes))
    value = np.zeros(settings.largest + 1, dtype=np.int64)
    value[: bound + 1] = np.diff(np.maximum.accumulate(at_most), prepend=0.0)
    return value


def on_grid(graph: Graph, largest: int) -> Wholes:
    """Return how many nodes have each degree up to the largest, which counts all above too."""
    from tulle.graphs.kernels.counts import degrees

    counts: Wholes = np.bincount(np.minimum(degrees(graph), largest), minlength=largest + 1)
    return counts
