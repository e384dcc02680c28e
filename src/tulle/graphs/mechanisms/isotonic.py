"""Degrees with noise, made consistent: decreasing, whole, and those of some graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import graph_query, node_count
from tulle.graphs.queries.degrees import DegreeDistribution, Degrees
from tulle.noise import SeededSource, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge


@dataclass(frozen=True, eq=False)
class IsotonicSettings(Settings):
    """The public settings of one run."""

    nodes: int
    sensitivity: int
    scale: Fraction

    def law(self, query: Query, slack: float) -> LaplaceLaw:
        """Return the law of all entries, which rounding moves by ``slack`` at most."""
        # An entry of the distribution is the difference of two entries of the sequence.
        factor = 2 if isinstance(query, DegreeDistribution) else 1
        return LaplaceLaw(self.scale, count=self.nodes, factor=factor, slack=factor * slack)


@registry.mechanism("graph", "isotonic", answers=(Degrees, DegreeDistribution), units=("edge",))
class Isotonic(Mechanism):
    """Add noise to a decreasing sequence of degrees, then pull it back to a consistent one.

    For ``degrees()`` the sequence is the sorted degrees. For ``degree_distribution()`` it is how
    many nodes have degree at least 1, 2, ... n - 1, from which the distribution follows.

    Guarantee:
        Pure epsilon per edge. One edge moves two degrees by one each: both sequences move by at
        most 2 in L1, and each entry gets independent discrete Laplace noise of scale 2/epsilon.
        All that follows (isotonic regression, rounding, making the sequence graphical) reads the
        noisy sequence only.

    Error:
        Isotonic regression never moves a sequence further, in its largest entry, from any
        decreasing one, so the law of the largest noise bounds all entries at once; on graphs
        with many equal degrees the true error is far smaller.

    Reference:
        Hay, Li, Miklau & Jensen, Accurate estimation of the degree distribution of private
        networks, ICDM 2009.

    Example:
        >>> import tulle
        >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], nodes=4)
        >>> r = tulle.release(
        ...     star, tulle.degrees(), unit="edge", epsilon=5.0, mechanism="isotonic")
        >>> bool((np.diff(r.value) <= 0).all()), int(r.value.sum()) % 2
        (True, 0)
    """

    title: ClassVar[str] = "noise on a sorted sequence, made consistent"
    reference: ClassVar[str] = "Hay et al., ICDM 2009"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return IsotonicSettings(node_count(terms), 2, 2 / terms.epsilon)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = IsotonicSettings.read(settings)
        law = chosen.law(graph_query(terms), slack=1.0)
        if not isinstance(like, Graph):
            return Prediction(law, law)
        # The stand-in is public, so one seeded run on it may be looked at.
        public = replace(chosen, nodes=like.node_count)
        drawn = self.run(terms, public, like, SeededSource(1)).value
        mean = float(np.abs(drawn - graph_query(terms).truth(like)).mean())
        return Prediction(law, law, mean)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query, chosen = graph_query(terms), IsotonicSettings.read(settings)
        nodes = chosen.nodes
        sequence = sorted_sequence(query, dataset)
        with charge(LaplaceCharge(chosen.sensitivity)):
            noise = discrete_laplace(scale=chosen.scale, size=sequence.shape, source=source)
        most = nodes - 1 if isinstance(query, Degrees) else nodes
        smoothed = np.clip(decreasing(sequence + noise), 0, most)
        if isinstance(query, Degrees):
            final = graphical(np.rint(smoothed).astype(np.int64))
            value = final
        else:
            final = np.rint(smoothed).astype(np.int64)
            value = -np.diff(np.concatenate([[nodes], final, [0]]))
        slack = float(np.abs(final - smoothed).max(initial=0.0))
        return Outcome(value, chosen.law(query, slack), {"range": [0, query.maximum(nodes)]})


def sorted_sequence(query: Query, graph: Graph) -> Wholes:
    """Return the decreasing sequence that gets the noise. Custodian side."""
    degrees = Degrees().truth(graph)
    if isinstance(query, Degrees):
        return degrees
    below = np.cumsum(np.bincount(degrees, minlength=graph.node_count))
    return (graph.node_count - below[:-1]).astype(np.int64)


def decreasing(values: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the decreasing sequence nearest to the values in least squares."""
    from scipy.optimize import isotonic_regression

    fitted: npt.NDArray[np.float64] = isotonic_regression(values, increasing=False).x
    return fitted


def graphical(degrees: Wholes) -> Wholes:
    """Return a nearby decreasing sequence that is the degree sequence of some simple graph.

    While a sum of the largest degrees is more than the others can take up (Erdős & Gallai), the
    largest are cut by the excess; an odd total loses one from the smallest positive degree. Each
    step lowers the total, so it ends.

    Example:
        >>> graphical(np.array([3, 3, 1, 0])).tolist()
        [2, 1, 1, 0]
    """
    degrees = degrees.copy()
    while True:
        excess, place = _largest_excess(degrees)
        if excess > 0:
            _cut(degrees, place, excess)
        elif int(degrees.sum()) % 2:
            degrees[np.flatnonzero(degrees)[-1]] -= 1
        else:
            return degrees


def _largest_excess(degrees: Wholes) -> tuple[int, int]:
    """Return the largest violation of the Erdős-Gallai inequalities and how many it is of."""
    count = len(degrees)
    if not count:
        return 0, 0
    k = np.arange(1, count + 1)
    sums = np.concatenate([[0], np.cumsum(degrees)])
    # Entries after the first k that exceed k count as k each: those before place `first`.
    first = np.maximum(np.searchsorted(-degrees, -k, side="left"), k)
    room = k * (k - 1) + k * (first - k) + sums[count] - sums[first]
    excess = sums[1:] - room
    worst = int(np.argmax(excess))
    return int(excess[worst]), worst + 1


def _cut(degrees: Wholes, among: int, excess: int) -> None:
    """Lower the largest of the first entries to a common level, by this much in all."""
    top = degrees[:among]
    # Lowering the first i entries to the level of entry i costs i·level less; find the last i.
    cost = np.cumsum(top) - np.arange(1, among + 1) * top
    used = int(np.searchsorted(cost, excess, side="right"))
    left = excess - int(cost[used - 1])
    level, extra = divmod(left, used)
    top[:used] = top[used - 1] - level
    # The odd ones are taken from the end of the level, so that the order stays.
    if extra:
        top[used - extra : used] -= 1
    np.maximum(top, 0, out=top)
