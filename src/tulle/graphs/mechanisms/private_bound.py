"""A vector with Laplace noise on a bound of its local sensitivity that is itself private."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, LaplaceLaw
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.sparse import expected_error, keep_large, kept_interval
from tulle.graphs.queries.counts import node_count
from tulle.graphs.queries.local_counts import BoundedVector
from tulle.noise import discrete_laplace
from tulle.noise.charge import BoundCharge, LaplaceCharge, charge

UNITS = 2**40
_LARGEST_SCALE = 2**47


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into where nobody says otherwise.

    Which data chose the one share is not on record; triangles per node on polbooks, netscience,
    ca-GrQc, email-Eu-core, polblogs and lastfm-asia (epsilon = 1, delta = 10^-6) err alike, to a
    thousandth, with all shares from 1/32 to 1/2.
    """

    bound_share: Fraction = Fraction(1, 3)
    """Part of epsilon that buys the bound, where there is no stand-in."""
    bound_shares: tuple[Fraction, ...] = tuple(Fraction(k, 20) for k in (1, 2, 3, 4, 5, 6, 8, 10))
    """Those of which the best on a stand-in is taken."""


_TUNING = Tuning()


def usable_units(query: BoundedVector, nodes: int, epsilon: Fraction, units: int) -> int:
    """Return the units, halved until noise on the widest bound can be drawn in bulk.

    It depends on public numbers only, so that no graph fails where its neighbour does not.

    Raises:
        QueryError: when even whole numbers are too fine.
    """
    widest = query.largest_spread(nodes)
    while units >= 1:
        reach = query.edge_sensitivity_at(widest, nodes, units)
        if reach / epsilon <= _LARGEST_SCALE:
            return units
        units //= 2
    raise QueryError(
        f"epsilon is too small for {query} on {counted(nodes, 'node')}: the noise could be larger "
        "than any answer. Ask for a single number, such as tulle.average_clustering(), or spend "
        "more."
    )


def safe_shift(rate: Fraction, delta: Fraction) -> int:
    """Return the least w such that noise of scale 1/rate is below -w with chance at most delta.

    P(noise < -w) = q^(w+1) / (1 + q) with q = exp(-rate); one step more than computed covers
    rounding.

    Example:
        >>> safe_shift(Fraction(1), Fraction(1, 10**6))
        15
    """
    step = float(rate)
    with localcontext() as context:
        context.prec = 30
        wanted = -float((Decimal(delta.numerator) / Decimal(delta.denominator)).ln())
    return max(math.ceil((wanted - math.log1p(math.exp(-step))) / step), 0) + 1


@dataclass(frozen=True, eq=False)
class PrivateBoundSettings(Settings):
    """The public settings of one run."""

    nodes: int
    units: int
    """Into how many units one is divided, where answers are fractions."""
    epsilon_bound: Fraction
    epsilon_answer: Fraction
    shift: int
    """What is added to the noisy bound, so that it is below the true one with delta only."""

    def draw_bound(self, query: BoundedVector, graph: Graph, source: Source | None) -> int:
        """Return a private number that is below the graph's spread with probability delta only."""
        with charge(BoundCharge(self.shift)):
            noise = discrete_laplace(scale=1 / self.epsilon_bound, source=source)
        drawn = query.spread(graph) + noise + self.shift
        return min(max(drawn, 1), query.largest_spread(self.nodes))

    def law(self, query: BoundedVector, bound: int) -> PrivateBoundLaw:
        """Return the law of the noise that follows a private bound."""
        return PrivateBoundLaw(
            bound,
            query.edge_sensitivity_at(bound, self.nodes, self.units),
            self.epsilon_answer,
            self.nodes,
            1 if query.integral else self.units,
        )


@registry.mechanism("graph", "private_bound", answers=(BoundedVector,), units=("edge",))
class PrivateBound(Mechanism):
    """Release a vector with noise that follows a private bound of its local sensitivity.

    The graph's spread, which one edge moves by at most one, is released with noise and raised so
    far that it is below the truth with probability delta only; the noise on the vector follows
    that number. Smooth sensitivity cannot do this: with n entries its noise would have to grow by
    a factor of at most exp(epsilon/n) between neighbours.

    Guarantee:
        (epsilon, delta) per edge. Let ij be the edge in which G and G' differ. In both graphs the
        spread s bounds what ij moves: its common neighbours do not depend on ij. The private
        bound b is at least s but with probability delta. Whenever b is, noise of scale
        reach(b)/epsilon_answer hides the move up to exp(epsilon_answer), and b itself, as s
        differs by at most one, up to exp(epsilon_bound).

    Error:
        Laplace noise of a scale that the release states. Numbers of triangles that noise alone
        could have made are set to zero (:mod:`tulle.graphs.mechanisms.sparse`), so that all of
        them together are no worse than all zeros but for a hundredth of the noise of one entry,
        or a part in as many as there are if they are fewer.

    Reference:
        After Dwork & Lei, Differential privacy and robust statistics, STOC 2009.

    Example:
        >>> import tulle
        >>> kite = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
        >>> r = tulle.release(
        ...     kite, tulle.triangles_per_node(), unit="edge", epsilon=1.0, delta=1e-6,
        ...     mechanism="private_bound",
        ... )
        >>> len(r.value)
        4
    """

    title: ClassVar[str] = "noise on a private bound of the local sensitivity"
    reference: ClassVar[str] = "after Dwork & Lei, STOC 2009"
    needs_delta: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("bound_share", "units")

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        share = validate.share(bound_share=options.get("bound_share", _TUNING.bound_share))
        units = validate.whole(units=options.get("units", UNITS), at_least=1)
        if units > UNITS or units.bit_count() != 1:
            raise InputError(f"units must be a power of two up to 2^40; got {units!r}.")
        rate = terms.epsilon * share
        nodes = node_count(terms)
        left = terms.epsilon - rate
        usable = usable_units(_vector(terms), nodes, left, units)
        return PrivateBoundSettings(nodes, usable, rate, left, safe_shift(rate, terms.delta))

    def tune(self, terms: Terms, options: Parameters, like: Dataset) -> Parameters:
        """Choose the part of epsilon that goes to the bound by the noise on the stand-in."""
        if "bound_share" in options or not isinstance(like, Graph) or like.node_count < 2:
            return options
        spread = _vector(terms).spread(like)
        largest = _vector(terms).largest_spread(int(terms.facts["nodes"]))
        noise = {
            share: min(spread + safe_shift(terms.epsilon * share, terms.delta), largest)
            / (1 - float(share))
            for share in _TUNING.bound_shares
        }
        return {**options, "bound_share": min(noise, key=lambda share: noise[share])}

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = PrivateBoundSettings.read(settings)
        query = _vector(terms)
        largest = query.largest_spread(chosen.nodes)
        worst = chosen.law(query, largest)
        if not isinstance(like, Graph) or like.node_count < 2:
            return Prediction(worst, None, None)
        typical = chosen.law(query, min(query.spread(like) + chosen.shift, largest))
        mean = math.sqrt(typical.noise().variance() / 2)
        if query.sparse:
            mean = expected_error(query.in_units(like, 1), float(typical.scale()))
        # An entry that is cut to its range is never further off than the range is wide.
        return Prediction(worst, typical, mean if query.integral else min(mean, 1.0))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query = _vector(terms)
        chosen = PrivateBoundSettings.read(settings)
        bound = chosen.draw_bound(query, dataset, source)
        law = chosen.law(query, bound)
        exact = query.in_units(dataset, chosen.units)
        moved = query.edge_sensitivity_at(bound, chosen.nodes, chosen.units)
        with charge(LaplaceCharge(moved)):
            noisy = exact + discrete_laplace(scale=law.scale(), size=exact.shape, source=source)
        most = query.maximum(chosen.nodes)
        if query.sparse:
            noisy, threshold = keep_large(noisy, float(law.scale()))
            law = replace(law, threshold=threshold)
        value = noisy if query.integral else noisy / law.units
        return Outcome(np.clip(value, 0, most), law, {"range": [0, most]})


def _vector(terms: Terms) -> BoundedVector:
    assert isinstance(terms.query, BoundedVector)
    return terms.query


@registry.register("law", "graph", "bounded")
@dataclass(frozen=True)
class PrivateBoundLaw(ErrorLaw):
    """Laplace noise of a scale that follows a private bound; all entries at once."""

    spread: int
    slack: int
    """The most that one edge moves the vector by the bound, in units."""
    epsilon: Fraction
    nodes: int
    units: int
    threshold: int = 0
    """Entries up to this were set to zero."""
    name: ClassVar[str] = "bounded"

    def scale(self) -> Fraction:
        """Return the scale of the noise, in units."""
        return Fraction(max(self.slack, 1)) / self.epsilon

    def noise(self) -> LaplaceLaw:
        """Return the law of the noise on one entry."""
        return LaplaceLaw(self.scale(), step=Fraction(1, self.units))

    def half_width(self, level: float) -> float:
        """Return the half-width for all entries, rounding down to units included."""
        return self._width(level) + self.threshold

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends; an entry that is zero may have been as large as the threshold."""
        return kept_interval(value, self._width(level), self.threshold)

    def _width(self, level: float) -> float:
        whole = LaplaceLaw(self.scale(), step=Fraction(1, self.units), count=self.nodes)
        return whole.half_width(level) + (1 / self.units if self.units > 1 else 0.0)
