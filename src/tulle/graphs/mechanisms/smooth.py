"""Smooth sensitivity: noise that follows the graph at hand, as fast as privacy allows."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar, Literal

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.core.validate import widen_up
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import ProfiledCount, node_count, profiled_count
from tulle.graphs.sensitivity.counts import (
    Profile,
    SpreadBudget,
    SpreadLaw,
    SpreadSettings,
    printed_note,
    public_length,
)
from tulle.noise import heavy_tailed, heavy_tailed_quantile, rounded_laplace
from tulle.noise.charge import Charge, HeavyCharge, SmoothCharge, charge

_ROUNDING = Fraction(1, 10**12)
"""Part of beta that pays for rounding the smooth bound up; see :func:`smooth_bound`."""

POWER: Literal[4] = 4
"""The pure version's noise has density proportional to 1 / (1 + z^4)."""

SLIDE = Fraction(22796, 10000)
"""An upper bound on how fast the log-density changes: max |4z³/(1 + z⁴)| = 3^(3/4) = 2.27950..."""

STRETCH = POWER - 1
"""An upper bound on the change of the log-density per unit of log-scale."""


def smooth_bound(profile: Profile, most: int, beta: Fraction) -> Fraction:
    """Return S = max over t of exp(-beta·t)·I_t, rounded up, such that S is beta-smooth.

    As I_t(G') <= I_{t+1}(G), S(G') <= exp(beta)·S(G). The value is computed with a slightly
    smaller beta and rounded up by less than that leaves, so what is returned is at least
    I_0 and changes by at most exp(beta) between neighbours, exactly.
    """
    with localcontext() as context:
        context.prec = 40
        context.rounding = ROUND_CEILING
        slower = _decimal(beta * (1 - _ROUNDING))
        decay = (-slower).exp()
        best = Decimal(0)
        weight = Decimal(1)
        for value in (*profile, most):
            best = max(best, weight * value)
            weight *= decay
        # Forty digits, each step rounded up: the excess is far below beta/10^12.
        return Fraction(best * (1 + Decimal("1e-30")))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def largest_smoothness(room: Fraction, delta: Fraction) -> Fraction:
    """Return nearly the largest beta with room + beta >= ln(1/delta)·(exp(beta) - 1), exactly.

    It is at most ``room`` as well: towards the wider of two scales the log-ratio can grow by beta.

    Example:
        >>> 0.0255 < largest_smoothness(Fraction(1, 3), Fraction(1, 10**6)) < 0.0257
        True
    """
    with localcontext() as context:
        context.prec = 30
        context.rounding = ROUND_CEILING
        # The library rounds its functions to nearest; the margins round them outwards.
        logarithm = (1 / _decimal(delta)).ln() * (1 + Decimal("1e-20"))

        def holds(beta: Decimal) -> bool:
            growth = beta.exp() * (1 + Decimal("1e-20")) - 1
            return _decimal(room) * (1 - Decimal("1e-20")) + beta >= logarithm * growth

        low, high = Decimal(0), Decimal(1)
        while holds(high):
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
    return min(Fraction(low), room)


@dataclass(frozen=True, eq=False)
class SmoothSettings(SpreadSettings):
    """The public settings of one run: noise of S/alpha, on a bound S that is beta-smooth."""

    alpha: Fraction
    beta: Fraction
    length: int


class _Smooth(Mechanism):
    """What the two versions share."""

    kind: ClassVar[str] = "graph"
    reference: ClassVar[str] = "Nissim, Raskhodnikova & Smith, STOC 2007"
    options: ClassVar[tuple[str, ...]] = ("spread_share",)
    law: ClassVar[type[SmoothLaw]]
    """The law of the noise in releases."""

    @abstractmethod
    def rates(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Return alpha, the noise is S/alpha, and beta, the smoothness of S."""

    @abstractmethod
    def noise(self, scale: Fraction, source: Source | None) -> int:
        """Draw the noise of that scale, rounded to a whole number."""

    @abstractmethod
    def charge(self, terms: Terms, settings: SmoothSettings, bound: Fraction) -> Charge:
        """Return what noise on this smooth bound is charged for."""

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes = node_count(terms)
        budget = SpreadBudget.of(terms.epsilon, options)
        alpha, beta = self.rates(budget.answer, terms.delta)
        length = public_length(profiled_count(terms), nodes, beta)
        return SmoothSettings(nodes, budget.answer, budget.spread, alpha, beta, length)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query = profiled_count(terms)
        chosen = SmoothSettings.read(settings)
        worst = self._law(query, chosen, query.largest_spread(chosen.nodes), Fraction(0))
        if not isinstance(like, Graph):
            return Prediction(worst, None)
        measured = query.measure(like, 1)
        known = self._law(query, chosen, measured.spread, Fraction(0))
        if not chosen.epsilon_spread:
            return Prediction(worst, known)
        printed = self._law(query, chosen, measured.spread, 1 / chosen.epsilon_spread)
        return Prediction(worst, known, notes=printed_note(printed, known))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        query = profiled_count(terms)
        chosen = SmoothSettings.read(settings)
        measured = query.measure(dataset, chosen.length)
        bound = smooth_bound(measured.profile, query.cap(chosen.nodes), chosen.beta)
        with charge(self.charge(terms, chosen, bound)):
            noise = self.noise(bound / chosen.alpha, source)
        most = query.maximum(chosen.nodes)
        value = min(max(query.truth(dataset) + noise, 0), most)
        private = chosen.budget.draw(measured.spread, source)
        law = None if private is None else self._law(query, chosen, *private)
        return Outcome(value, law, {"range": [0, most]})

    def _law(
        self, query: ProfiledCount, settings: SmoothSettings, spread: int, spread_scale: Fraction
    ) -> SmoothLaw:
        rates = settings.alpha, settings.beta
        return self.law(*query.law_key(), settings.nodes, spread, spread_scale, *rates)


@registry.mechanism("graph", "smooth", answers=(ProfiledCount,), units=("edge",))
class Smooth(_Smooth):
    """Add Laplace noise on a smooth bound of the local sensitivity.

    Guarantee:
        (epsilon, delta) per edge. S is a beta-smooth upper bound of the local sensitivity, and
        the answer gets Laplace noise of scale S/alpha. Between neighbours the centre moves by at
        most S and the scale stretches by exp(l), l <= beta. With E the noise over its scale, an
        exponential variable in size, the log-ratio of the densities is at most
        alpha + E·(exp(l) - 1) - l, so it exceeds epsilon with probability at most
        exp(-(epsilon - alpha + beta)/(exp(beta) - 1)), which the choice of beta makes delta; and
        towards the wider scale it is at most alpha + beta, which is kept below epsilon. (The
        rates of the paper, alpha = epsilon/2 and beta = epsilon/(2·ln(2/delta)), take
        exp(beta) - 1 for beta: for large epsilon they exceed delta.) The continuous noise is
        rounded exactly to whole numbers, which is post-processing. A tenth of epsilon, unless
        ``spread_share`` says otherwise, buys a private spread for the interval.

    Error:
        1.5·S/epsilon on average. The law in the release bounds S by the private spread.

    Reference:
        Nissim, Raskhodnikova & Smith, Smooth sensitivity and sampling, STOC 2007.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(
        ...     path, tulle.stars(2), unit="edge", epsilon=1.0, delta=1e-6, mechanism="smooth"
        ... )
        >>> print(r.guarantee)
        epsilon = 1, delta = 1e-06, per edge (add-remove)
    """

    title: ClassVar[str] = "Laplace noise on the smooth sensitivity"
    needs_delta: ClassVar[bool] = True

    def rates(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Spend two thirds of epsilon on the place; the rest gives the largest smoothness."""
        alpha = epsilon * Fraction(2, 3)
        return alpha, largest_smoothness(epsilon - alpha, delta)

    def noise(self, scale: Fraction, source: Source | None) -> int:
        """Draw continuous Laplace noise, rounded exactly to the nearest whole number."""
        return rounded_laplace(scale=scale, source=source)

    def charge(self, terms: Terms, settings: SmoothSettings, bound: Fraction) -> Charge:
        return SmoothCharge(bound, settings.beta, terms.delta)


@registry.mechanism("graph", "smooth_pure", answers=(ProfiledCount,), units=("edge",))
class SmoothPure(_Smooth):
    """Add heavy-tailed noise on a smooth bound of the local sensitivity, without a delta.

    Guarantee:
        Pure epsilon per edge. The noise Z has density proportional to 1/(1 + z⁴). Its
        log-density changes by at most 3^(3/4) per unit of place, and by at most 3 per unit of
        log-scale; with noise S·Z/alpha and S beta-smooth the loss is at most
        3^(3/4)·alpha + 3·beta, which the rates make epsilon. Rounding to whole numbers is exact
        post-processing. A tenth of epsilon, unless ``spread_share`` says otherwise, buys a
        private spread for the interval.

    Error:
        Tails fall as the cube: 95 % lie within about 6·S/epsilon.

    Reference:
        Nissim, Raskhodnikova & Smith, Smooth sensitivity and sampling, STOC 2007, lemma 2.7.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(
        ...     path, tulle.stars(2), unit="edge", epsilon=1.0, mechanism="smooth_pure"
        ... )
        >>> r.guarantee.measure
        'pure'
    """

    title: ClassVar[str] = "heavy-tailed noise on the smooth sensitivity"

    def rates(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Spend two thirds of epsilon on the place and one third on the scale."""
        return epsilon * Fraction(2, 3) / SLIDE, epsilon * Fraction(1, 3) / STRETCH

    def noise(self, scale: Fraction, source: Source | None) -> int:
        """Draw heavy-tailed noise, rounded exactly to the nearest whole number."""
        return heavy_tailed(scale=scale, power=POWER, source=source)

    def charge(self, terms: Terms, settings: SmoothSettings, bound: Fraction) -> Charge:
        return HeavyCharge(bound, settings.beta, Fraction(SLIDE), Fraction(STRETCH))


@dataclass(frozen=True)
class SmoothLaw(SpreadLaw):
    """The error when the smooth bound is itself bounded through the private spread."""

    alpha: Fraction
    beta: Fraction

    def width_at(self, spread: int, failure: float) -> float:
        """Return the noise's quantile times the largest scale that the spread allows."""
        query = self.question()
        length = public_length(query, self.nodes, self.beta)
        widths = query.envelope_profiles(self.nodes, spread, length)[0]
        bound = smooth_bound(widths, query.cap(self.nodes), self.beta)
        scale = float(bound / self.alpha)
        # Rounding to a whole number moves the noise by at most one half.
        return math.ceil(widen_up(scale * self.quantile(1 - failure) + 0.5))

    @abstractmethod
    def quantile(self, level: float) -> float:
        """Return the two-sided quantile of the noise at scale one."""


@registry.register("law", "graph", "smooth")
@dataclass(frozen=True)
class SmoothLaplaceLaw(SmoothLaw):
    """The error of Laplace noise on a smooth bound."""

    name: ClassVar[str] = "smooth"

    def quantile(self, level: float) -> float:
        """Return ln(1 / (1 - level))."""
        return -math.log1p(-level)


@registry.register("law", "graph", "smooth_pure")
@dataclass(frozen=True)
class SmoothHeavyLaw(SmoothLaw):
    """The error of heavy-tailed noise on a smooth bound."""

    name: ClassVar[str] = "smooth_pure"

    def quantile(self, level: float) -> float:
        """Return an upper bound on the quantile of density 1/(1 + z⁴)."""
        return heavy_tailed_quantile(level, POWER)


Smooth.law = SmoothLaplaceLaw
SmoothPure.law = SmoothHeavyLaw
