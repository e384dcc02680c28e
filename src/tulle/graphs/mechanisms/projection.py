"""The degree distribution per node: degrees cut to a private bound, counts of "at most k"."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
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
    """How the bound on degrees is chosen.

    Looked at on polbooks, netscience, ca-GrQc, email-Eu-core, polblogs and lastfm-asia at
    epsilon = 1: it errs at most 1.24 times as much as with the best share from 1/32 to 1/2 for that
    network (1/8 at most 1.22 times).
    """

    bound_share: Fraction = Fraction(1, 4)
    """Part of epsilon that chooses the bound; the rest is for the answer."""
    failure: Fraction = Fraction(1, 10)
    """How often the choice may be further off than what is aimed above it. Not chosen on data."""


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


def at_most(kept: Wholes, bound: int) -> Wholes:
    """Return how many nodes have degree at most 0, 1, ... bound."""
    counts: Wholes = np.cumsum(np.bincount(kept, minlength=bound + 1)).astype(np.int64)
    return counts


def candidates(largest: int) -> list[int]:
    """Return the bounds that are tried: the powers of two up to the largest, and the largest."""
    powers = [1 << step for step in range(largest.bit_length())]
    return sorted({*(power for power in powers if power <= largest), largest})


def standing(sums: list[int], bounds: list[int], settings: Parameters) -> list[Fraction]:
    """Return a score for each bound that one node moves by at most one.

    Bound b keeps ``sums`` degrees in all, which one node moves by at most 2b, and its noise costs
    (b + 1)²/epsilon over all places. With q = kept - cost and a margin t·2b, each bound is
    compared with each other by the difference of these over 2b + 2b'; its score is the worst.
    """
    chosen = ProjectionSettings.read(settings)
    q = [
        kept - (bound + 1) ** 2 / chosen.epsilon_answer - chosen.margin * 2 * bound
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

    Edges are kept in a fixed order while both ends have fewer than ``bound`` edges. How many
    nodes have degree at most 0, 1, ... bound in what is left gets noise, is made increasing
    again, and its differences are the distribution on 0 to ``largest``, which is public.

    Guarantee:
        Pure epsilon per node. A node that joins brings at most d <= bound kept edges; each starts
        a path of kept edges that go and come in turn, so at most d other nodes change degree, by
        one. That moves d of the counts by one, and the node itself adds one to bound + 1 - d of
        them: bound + 1 in all (theorem 3 of the paper), and each count gets discrete Laplace
        noise of scale (bound + 1)/epsilon_answer. The bound is drawn by the exponential mechanism
        on scores that one node moves by at most one, a quarter of epsilon.

    Error:
        (bound + 1)/epsilon per count, and what the projection cuts off; there is no interval.

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

    title: ClassVar[str] = "degrees cut to a private bound, noise on counts of at most k"
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
        exact = at_most(kept[place], bound)
        scale = (bound + 1) / chosen.epsilon_answer
        with charge(LaplaceCharge(bound + 1)):
            noisy = exact + discrete_laplace(scale=scale, size=exact.shape, source=source)
        return Outcome(finish_counts(noisy, chosen.largest), None, {"bound": bound})


def finish_counts(noisy: Wholes, largest: int) -> Wholes:
    """Return the distribution on 0 to largest from noisy counts of nodes with degree at most k."""
    from scipy.optimize import isotonic_regression

    fitted = np.rint(np.maximum(isotonic_regression(noisy, increasing=True).x, 0))
    steps = np.diff(np.concatenate([[0.0], fitted]))
    value = np.zeros(largest + 1, dtype=np.int64)
    value[: len(steps)] = steps.astype(np.int64)
    return value


def on_grid(graph: Graph, largest: int) -> Wholes:
    """Return how many nodes have each degree up to the largest, which counts all above too."""
    from tulle.graphs.kernels.counts import degrees

    counts: Wholes = np.bincount(np.minimum(degrees(graph), largest), minlength=largest + 1)
    return counts
