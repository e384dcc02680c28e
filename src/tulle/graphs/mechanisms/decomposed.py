"""Vectors per node put together from noisy counts: divide and conquer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, LaplaceLaw
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.private_bound import (
    PrivateBound,
    PrivateBoundSettings,
    usable_units,
)
from tulle.graphs.mechanisms.statistic_ladder import StatisticLadder
from tulle.graphs.queries.counts import node_count
from tulle.graphs.queries.local_counts import TrianglesPerNode, TriplesPerNode
from tulle.graphs.queries.statistics import AverageClustering, Clustering
from tulle.noise import SeededSource, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into where nobody says otherwise.

    The two shares alone are used where there is no stand-in; which data chose them is not on
    record. With one, and plans make one up, the best of those listed on it is taken.
    """

    degree_share: Fraction = Fraction(1, 5)
    average_share: Fraction = Fraction(1, 2)
    average_shares: tuple[Fraction, ...] = tuple(Fraction(k, 20) for k in (1, 4, 10, 16, 18))
    """Of the average; they are tried first."""
    degree_shares: tuple[Fraction, ...] = tuple(Fraction(k, 20) for k in (1, 2, 4, 6, 10))
    """Of the degrees, in the rest."""
    trials: int = 3
    """How many draws on the stand-in each is judged by; not chosen on data."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class DecomposedSettings(Settings):
    """The public settings of one run; all but the first three where triangles are needed."""

    nodes: int
    sensitivity: int
    scale: Fraction
    """Of the noise on degrees."""
    units: int | None = None
    epsilon_bound: Fraction | None = None
    epsilon_answer: Fraction | None = None
    shift: int | None = None
    average: Any = None
    """Settings of the ladder that releases the average."""

    def bounding(self) -> PrivateBoundSettings:
        """Return the settings for the triangles; without a delta their bound is public."""
        assert self.units is not None
        assert self.epsilon_bound is not None
        assert self.epsilon_answer is not None
        return PrivateBoundSettings(
            self.nodes, self.units, self.epsilon_bound, self.epsilon_answer, self.shift or 0
        )

    def law(self) -> TriplesLaw:
        """Return the law of the error of triples."""
        return TriplesLaw(self.scale, self.nodes)

    def triples(self, noisy: Wholes) -> Wholes:
        """Return d(d - 1)/2 from noisy degrees: their noise adds its variance to d².

        It is taken off. Discrete Laplace noise of scale s has variance 2q/(1 - q)², about 2·s².
        """
        variance = LaplaceLaw(self.scale).variance()
        most = TriplesPerNode().maximum(self.nodes)
        unbiased = (noisy * (noisy - 1) - variance) / 2
        return np.clip(np.rint(unbiased), 0, most).astype(np.int64)

    def clustering(
        self, noisy: Wholes, triangles: Wholes, variance: float, average: float
    ) -> Floats:
        """Return the coefficients from noisy degrees and triangles; see :class:`Decomposed`."""
        triples = self.triples(noisy).astype(np.float64)
        triangles = np.asarray(triangles, dtype=np.float64)
        squares = max(float((triples * triples).sum()), 1.0)
        # Nodes with fewer than two neighbours have coefficient 0 and lower the average; where
        # degrees are hardly noisy these are known, and the others' average is higher.
        known = self.scale <= Fraction(1, 2)
        wide = int((noisy >= 2).sum()) if known else self.nodes
        mean = min(max(average * self.nodes / max(wide, 1), 0.0), 1.0)
        spread = float(((triangles - mean * triples) ** 2).sum()) - self.nodes * variance
        # A share between 0 and 1 around this mean varies by at most mean·(1 - mean).
        prior = min(max(spread / squares, 1e-3), max(mean * (1 - mean), 1e-3))
        floor = variance / prior
        pulled = (triangles * triples + floor * mean) / (triples * triples + floor)
        return np.where(known & (noisy < 2), 0.0, np.clip(pulled, 0.0, 1.0))


@registry.mechanism("graph", "decomposed", answers=(TriplesPerNode, Clustering), units=("edge",))
class Decomposed(Mechanism):
    """Release degrees, and triangles per node where needed, and compute the answer from them.

    Triples follow from degrees alone: d(d - 1)/2, the square corrected by the variance of the
    noise. A clustering coefficient is triangles over triples. That quotient of noisy numbers is
    pulled towards the average coefficient, which a part of epsilon buys and which is known far
    better than any entry: with triples T, triangles N and noise of variance v on N it is
    (N·T + floor·mean) / (T² + floor), the floor being v over the variance of the coefficients.
    Nodes of low degree, whose quotient would be noise, get about the mean; the bias, a share
    floor/(T² + floor) of the distance to the mean, is what it costs. The smaller the budget, the
    more of it goes to the average; a stand-in tells how much.

    Guarantee:
        One edge moves two degrees by one each: discrete Laplace noise of scale 2/epsilon_degrees.
        The triangles, where needed, are released as
        :class:`tulle.graphs.mechanisms.private_bound.PrivateBound` does, with a delta, or without
        one with noise on their global sensitivity 3(n - 2); the average as
        :class:`tulle.graphs.mechanisms.statistic_ladder.StatisticLadder` does. These compose; the
        rest is post-processing.

    Error:
        For triples about 2·degree/epsilon. The coefficients have no interval of their own.

    Reference:
        Wang, Wu, Zhu & Xiang, Divide and conquer, with the corrections of the square and of the
        quotient's bias.

    Example:
        >>> import tulle
        >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], nodes=4)
        >>> r = tulle.release(star, tulle.triples_per_node(), unit="edge", epsilon=1.0)
        >>> len(r.value)
        4
    """

    title: ClassVar[str] = "computed from noisy degrees and triangles per node"
    reference: ClassVar[str] = "after Wang et al., Transactions on Data Privacy 2013"
    options: ClassVar[tuple[str, ...]] = ("average_share", "degree_share", "bound_share", "units")

    def guarantee(self, terms: Terms, settings: Parameters) -> Any:
        """Return what a run guarantees; a delta is spent only where triangles need one."""
        found = super().guarantee(terms, settings)
        if _needs_triangles(terms.query) and terms.delta > 0:
            return type(found)(terms.unit, terms.epsilon, terms.delta)
        return found

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        share = validate.share(degree_share=options.get("degree_share", _TUNING.degree_share))
        if not _needs_triangles(terms.query):
            return DecomposedSettings(nodes, 2, 2 / terms.epsilon)
        part = validate.share(average_share=options.get("average_share", _TUNING.average_share))
        average = replace(
            terms,
            query=AverageClustering(),
            epsilon=terms.epsilon * part,
            delta=Fraction(0),
        )
        left = terms.epsilon - average.epsilon
        spent = left * share
        rest = replace(terms, query=TrianglesPerNode(), epsilon=left - spent)
        grid = {name: options[name] for name in ("units",) if name in options}
        chosen = {name: options[name] for name in ("bound_share",) if name in options}
        mean = dict(StatisticLadder().settings(average, {"spread_share": 0, **grid}))
        if terms.delta > 0:
            triangles = PrivateBoundSettings.read(PrivateBound().settings(rest, chosen)).typed()
        else:
            # Without a delta the bound is the public one, and all that is left buys the noise.
            whole = usable_units(TrianglesPerNode(), nodes, rest.epsilon, 1)
            triangles = {
                "nodes": nodes,
                "units": whole,
                "epsilon_bound": Fraction(0),
                "epsilon_answer": rest.epsilon,
            }
        return DecomposedSettings(sensitivity=2, scale=2 / spent, average=mean, **triangles)

    def tune(self, terms: Terms, options: Parameters, like: Dataset) -> Parameters:
        """Choose the parts of epsilon by the error of seeded runs on the stand-in."""
        if not _needs_triangles(terms.query) or not isinstance(like, Graph) or like.node_count < 2:
            return options
        rest = replace(terms, query=TrianglesPerNode())
        if terms.delta > 0:
            options = PrivateBound().tune(rest, options, like)
        for name in ("average_share", "degree_share"):
            shares = _TUNING.average_shares if name == "average_share" else _TUNING.degree_shares
            if name not in options:
                tried = [{**options, name: share} for share in shares]
                options = min(
                    tried, key=lambda one: self._error_on(terms, self.settings(terms, one), like)
                )
        return options

    def _error_on(self, terms: Terms, settings: Parameters, like: Graph) -> float:
        """Return the mean error of a few seeded runs on a public stand-in."""
        public = {**settings, "nodes": like.node_count}
        truth = terms.query.truth(like)
        runs = (
            self.run(terms, public, like, SeededSource(seed)).value
            for seed in range(1, _TUNING.trials + 1)
        )
        return float(np.mean([np.abs(drawn - truth).mean() for drawn in runs]))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = None if _needs_triangles(terms.query) else DecomposedSettings.read(settings).law()
        if not isinstance(like, Graph) or like.node_count < 2:
            return Prediction(law, law)
        return Prediction(law, law, self._error_on(terms, settings, like))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        exact = degrees(dataset).astype(np.int64)
        chosen = DecomposedSettings.read(settings)
        with charge(LaplaceCharge(chosen.sensitivity)):
            noisy = exact + discrete_laplace(scale=chosen.scale, size=exact.shape, source=source)
        most = TriplesPerNode().maximum(chosen.nodes)
        if not _needs_triangles(terms.query):
            return Outcome(chosen.triples(noisy), chosen.law(), {"range": [0, most]})
        corners = TrianglesPerNode().truth(dataset)
        bound, bounding = TrianglesPerNode().largest_spread(chosen.nodes), chosen.bounding()
        if bounding.epsilon_bound > 0:
            bound = bounding.draw_bound(TrianglesPerNode(), dataset, source)
        law = bounding.law(TrianglesPerNode(), bound)
        moved = TrianglesPerNode().edge_sensitivity_at(bound, chosen.nodes, 1)
        with charge(LaplaceCharge(moved)):
            corners = corners + discrete_laplace(scale=law.scale(), size=exact.shape, source=source)
        average = replace(terms, query=AverageClustering())
        mean = float(StatisticLadder().run(average, chosen.average, dataset, source).value)
        value = chosen.clustering(noisy, corners, law.noise().variance(), mean)
        return Outcome(value, None, {"range": [0, 1]})


def _needs_triangles(query: Query) -> bool:
    return not isinstance(query, TriplesPerNode)


@registry.register("law", "graph", "triples")
@dataclass(frozen=True)
class TriplesLaw(ErrorLaw):
    """The error of d(d - 1)/2 when all degrees are known up to Laplace noise of this scale."""

    scale: Fraction
    nodes: int
    name: ClassVar[str] = "triples"

    def half_width(self, level: float) -> float:
        """Return the half-width at the largest degree that so many nodes allow."""
        reach = self._reach(level)
        return reach * self.nodes + self._variance() / 2 + 1

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return d(d - 1)/2 over the degrees that are within reach of the one released."""
        reach = self._reach(level)
        known = np.asarray(value, dtype=np.float64)
        low = np.where(known > 0, self._degree(known - 0.5) - reach, 0.0)
        # A released zero may have been any degree that the correction takes to zero or below.
        high = np.minimum(self._degree(known + 0.5) + reach, max(self.nodes - 1, 0))
        low = np.maximum(low, 0.0)
        return np.where(low > 1, low * (low - 1) / 2, 0.0), high * np.maximum(high - 1, 0) / 2

    def _variance(self) -> float:
        return LaplaceLaw(self.scale).variance()

    def _degree(self, triples: Floats) -> Floats:
        """Return the noisy degree from which a released number of triples was computed."""
        inner = 1 + 4 * np.maximum(2 * triples + self._variance(), 0.0)
        return np.asarray((1 + np.sqrt(inner)) / 2, dtype=np.float64)

    def _reach(self, level: float) -> float:
        return LaplaceLaw(self.scale, count=max(self.nodes, 1)).half_width(level) + math.ulp(1.0)
