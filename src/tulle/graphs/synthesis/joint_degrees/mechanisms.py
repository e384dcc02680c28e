"""Noise on joint degrees: on the global bound, on the smooth bound, and on soft classes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.smooth import smooth_bound
from tulle.graphs.queries.counts import node_count
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes
from tulle.graphs.synthesis.joint_degrees.queries import JointDegreeQuery, SoftJointDegreeQuery
from tulle.noise import Lattice, discrete_laplace, rounded_laplace
from tulle.noise.charge import LaplaceCharge, SmoothVectorCharge, charge

STEP = Fraction(1, 1024)
"""The lattice of soft classes, in edges."""


@dataclass(frozen=True, eq=False)
class CellSettings(Settings):
    """What the settings of all three have."""

    nodes: int
    cells: int


@dataclass(frozen=True, eq=False)
class JointLaplaceSettings(CellSettings):
    """The public settings of one run."""

    sensitivity: int
    scale: Fraction

    def law(self) -> LaplaceLaw:
        """Return the law of the noise on all cells."""
        return LaplaceLaw(self.scale, count=self.cells)


@dataclass(frozen=True, eq=False)
class JointSmoothSettings(CellSettings):
    """The public settings of one run."""

    alpha: Fraction
    beta: Fraction


@dataclass(frozen=True, eq=False)
class SoftSettings(CellSettings):
    """The public settings of one run; sensitivity and scale are in steps."""

    step: Fraction
    sensitivity: Fraction
    scale: Fraction

    def law(self) -> LaplaceLaw:
        """Return the law of the noise on all cells."""
        return LaplaceLaw(self.scale, self.step, count=self.cells, slack=float(self.step / 2))


@registry.mechanism("graph", "joint_laplace", answers=(JointDegreeQuery,), units=("edge",))
class JointLaplace(Mechanism):
    """Add discrete Laplace noise to every cell of the public degree grid.

    Guarantee:
        Pure epsilon per edge. One edge moves all cells together by at most
        2·(d_i + d_j) + 1 <= 4·min(most, n - 2) + 1 in L1, additions and removals alike, and
        every cell, zero or not, gets noise of that scale.

    Error:
        The noise itself.

    Reference:
        Dwork et al., TCC 2006. Wang & Wu, TDP 2013, claim 2, has the same global bound, 4n - 7.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(path, tulle.joint_degrees(), unit="edge", epsilon=200.0)
        >>> r.value.tolist()
        [0, 2, 0]
    """

    title: ClassVar[str] = "noise on every pair of degrees, by the global bound"
    reference: ClassVar[str] = "Dwork et al., TCC 2006"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, JointDegreeQuery)
        nodes = node_count(terms)
        count = terms.query.classes(nodes)
        moved = terms.query.edge_sensitivity(nodes)
        cells = count * (count + 1) // 2
        return JointLaplaceSettings(nodes, cells, moved, moved / terms.epsilon)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = JointLaplaceSettings.read(settings).law()
        return Prediction(law, law, float(law.scale))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        truth, chosen = terms.query.truth(dataset), JointLaplaceSettings.read(settings)
        with charge(LaplaceCharge(chosen.sensitivity)):
            noise = discrete_laplace(scale=chosen.scale, size=len(truth), source=source)
        return Outcome(np.maximum(truth + noise, 0), chosen.law(), {"range": [0, None]})


@registry.mechanism("graph", "joint_smooth", answers=(JointDegreeQuery,), units=("edge",))
class JointSmooth(Mechanism):
    """Add Laplace noise to every cell, on a smooth bound of what one edge moves on this graph.

    Guarantee:
        (epsilon, delta) per edge, not pure. With e(i, j) the edges of i and j without the one
        between them, joining or parting i and j moves the cells by 2·e(i, j) + 1 at most. Another
        edge changes e(i, j) by at most one, the edge ij itself not at all: so 2·max e + 1 + 2t,
        cut at the global bound, bounds what one edge moves at distance t, and its maximum over t
        of exp(-beta·t) times it is beta-smooth. Noise of scale 2·S/epsilon with
        beta = epsilon / (4·(cells + ln(2/delta))), for epsilon up to 1 in beta.

    Error:
        On the whole grid beta is so small that S is the global bound: :class:`JointLaplace` is
        then better, and pure. The noise is data, so the release has no interval.

    Reference:
        Nissim, Raskhodnikova & Smith, STOC 2007, section 2.4. Wang & Wu, TDP 2013, algorithm 3,
        counts deletions only, adds noise to non-zero cells and calls it pure.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(
        ...     path, tulle.joint_degrees(), unit="edge", epsilon=2000.0, delta=1e-6,
        ...     mechanism="joint_smooth",
        ... )
        >>> r.value.tolist()
        [0, 2, 0]
    """

    title: ClassVar[str] = "noise on every pair of degrees, by the smooth bound"
    reference: ClassVar[str] = "Nissim et al., STOC 2007; Wang & Wu, TDP 2013"
    needs_delta: ClassVar[bool] = True

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, JointDegreeQuery)
        nodes = node_count(terms)
        count = terms.query.classes(nodes)
        cells = count * (count + 1) // 2
        beta = vector_smoothness(min(terms.epsilon, Fraction(1)), terms.delta, cells)
        return JointSmoothSettings(nodes, cells, terms.epsilon / 2, beta)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        assert isinstance(terms.query, JointDegreeQuery)
        chosen = JointSmoothSettings.read(settings)
        alpha = chosen.alpha
        most = terms.query.edge_sensitivity(chosen.nodes)
        worst = LaplaceLaw(most / alpha, count=chosen.cells)
        if not isinstance(like, Graph):
            return Prediction(worst, None, float(worst.scale))
        return Prediction(worst, None, float(joint_bound(terms.query, settings, like) / alpha))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        assert isinstance(terms.query, JointDegreeQuery)
        truth = terms.query.truth(dataset)
        chosen = JointSmoothSettings.read(settings)
        bound = joint_bound(terms.query, settings, dataset)
        with charge(SmoothVectorCharge(bound, chosen.beta, terms.delta, len(truth))):
            noise = rounded_laplace(scale=bound / chosen.alpha, size=len(truth), source=source)
        return Outcome(np.maximum(truth + noise, 0), None)


def joint_profile(query: JointDegreeQuery, graph: Graph) -> list[int]:
    """Return a bound on what one edge moves at distance 0, 1, ...; it ends at the global bound.

    Custodian side. It starts at 2·e + 1 with the largest e(i, j) = d_i + d_j - 2·[i and j joined]
    over all pairs, and rises by 2 for each edge of distance.
    """
    nodes = graph.node_count
    most = query.edge_sensitivity(nodes)
    largest = min(2 * _largest_ends(graph) + 1, most)
    return list(range(largest, most, 2))


def _largest_ends(graph: Graph) -> int:
    """Return the largest d_i + d_j - 2·[i and j joined] over all pairs."""
    degree = degrees(graph)
    if len(degree) < 2:
        return 0
    order = np.argsort(-degree, kind="stable")
    joined = graph.edges()
    best = int((degree[joined].sum(axis=1) - 2).max(initial=0))
    indptr, indices = graph.csr()
    for rank, node in enumerate(order):
        # Later pairs cannot do better than this node with itself.
        if 2 * int(degree[node]) <= best:
            break
        friends = set(indices[indptr[node] : indptr[node + 1]].tolist())
        for other in order[rank + 1 :]:
            if int(degree[node] + degree[other]) <= best:
                break
            if int(other) not in friends:
                best = int(degree[node] + degree[other])
                break
    return best


def joint_bound(query: JointDegreeQuery, settings: Parameters, graph: Graph) -> Fraction:
    """Return the smooth bound of a graph. Custodian side."""
    chosen = JointSmoothSettings.read(settings)
    most = query.edge_sensitivity(chosen.nodes)
    return smooth_bound(joint_profile(query, graph), most, chosen.beta)


def vector_smoothness(epsilon: Fraction, delta: Fraction, cells: int) -> Fraction:
    """Return epsilon / (4·(cells + ln(2/delta))), rounded down.

    Example:
        >>> round(float(vector_smoothness(Fraction(1), Fraction(1, 100), 3)), 5)
        0.03013
    """
    with localcontext() as context:
        context.prec = 30
        context.rounding = ROUND_CEILING
        logarithm = (2 / (Decimal(delta.numerator) / Decimal(delta.denominator))).ln()
        # The library rounds its functions to nearest; the margin rounds outwards.
        above = Fraction(logarithm * (1 + Decimal("1e-20")))
    return epsilon / (4 * (cells + above))


@registry.mechanism("graph", "joint_soft", answers=(SoftJointDegreeQuery,), units=("edge",))
class JointSoft(Mechanism):
    """Add discrete Laplace noise to every cell of a coarse grid with soft classes.

    Guarantee:
        Pure epsilon per edge; the argument is in ``joint_classes``. For a ratio of 4 one edge
        moves all cells together by less than 4 edges, however large the graph.

    Error:
        The noise, and half a lattice step.

    Reference:
        Our own; the noise is that of Dwork et al., TCC 2006.

    Example:
        >>> import tulle
        >>> ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
        >>> r = tulle.release(ring, tulle.joint_degrees(ratio=4), unit="edge", epsilon=500.0)
        >>> round(float(r.value.sum()))
        9
    """

    title: ClassVar[str] = "noise on soft classes of degrees"
    reference: ClassVar[str] = "Dwork et al., TCC 2006"
    options: ClassVar[tuple[str, ...]] = ("step",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, SoftJointDegreeQuery)
        nodes = node_count(terms)
        step = Lattice(validate.positive(step=options.get("step", STEP))).step
        classes = soft_classes(nodes, Fraction(terms.query.ratio))
        moved = classes.sensitivity() / step + classes.cells
        return SoftSettings(nodes, classes.cells, step, moved, moved / terms.epsilon)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = SoftSettings.read(settings).law()
        return Prediction(law, law, float(law.scale * law.step))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        cells, chosen = soft_cells(terms.query, settings, dataset), SoftSettings.read(settings)
        with charge(LaplaceCharge(chosen.sensitivity)):
            noise = discrete_laplace(scale=chosen.scale, size=len(cells), source=source)
        return Outcome(Lattice(chosen.step).value(cells + noise), chosen.law())


def soft_cells(
    query: Query, settings: Parameters, graph: Graph
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the true soft cells in lattice steps. Custodian side."""
    assert isinstance(query, SoftJointDegreeQuery)
    classes = soft_classes(graph.node_count, Fraction(query.ratio))
    return classes.measure(graph, SoftSettings.read(settings).step)
