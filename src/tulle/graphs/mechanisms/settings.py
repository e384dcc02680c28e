"""Settings and pieces that several graph mechanisms share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.error_law import ErrorLaw, check_level, secret_size
from tulle.core.errors import InputError, QueryError
from tulle.core.exact import counted, rational, text
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.graphs.queries.counts import GraphQuery, ProfiledCount
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

SPREAD_SHARE = Fraction(1, 10)
"""Part of epsilon that buys the interval, unless the user says otherwise."""


def node_count(terms: Terms) -> int:
    """Return the public number of nodes.

    Raises:
        QueryError: when there are fewer than two, since then there is no edge to protect.
    """
    nodes = int(terms.facts["nodes"])
    if nodes < 2:
        raise QueryError(
            f"A graph with {counted(nodes, 'node')} has no pair of nodes, so there "
            f"is no edge to protect and nothing to ask. {terms.query} needs at least two nodes."
        )
    return nodes


def graph_query(terms: Terms) -> GraphQuery:
    """Return the question as one that has a global sensitivity."""
    assert isinstance(terms.query, GraphQuery)
    return terms.query


def profiled_count(terms: Terms) -> ProfiledCount:
    """Return the question as one that has local sensitivities."""
    assert isinstance(terms.query, ProfiledCount)
    return terms.query


@dataclass(frozen=True)
class SpreadBudget:
    """How a mechanism divides epsilon: the answer, and the spread that its interval needs.

    A mechanism whose noise follows the data cannot publish the noise's scale: that is data. It
    spends a share of epsilon on a private spread instead, from which anyone can compute how wrong
    the answer may be.
    """

    answer: Fraction
    spread: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, options: Parameters) -> SpreadBudget:
        """Divide epsilon by the option ``spread_share`` (0: no interval)."""
        share = validate.non_negative(spread_share=options.get("spread_share", SPREAD_SHARE))
        if share > Fraction(9, 10):
            raise InputError(f"spread_share must be at most 0.9; got {text(share)}.")
        return cls(epsilon * (1 - share), epsilon * share)

    @classmethod
    def from_settings(cls, settings: Parameters) -> SpreadBudget:
        """Read the division back from a mechanism's settings."""
        return cls(rational(settings["epsilon_answer"]), rational(settings["epsilon_spread"]))

    def to_settings(self) -> dict[str, Any]:
        """Return the division as public settings."""
        return {"epsilon_answer": text(self.answer), "epsilon_spread": text(self.spread)}

    def draw(self, spread: int, source: Source | None) -> tuple[int, Fraction] | None:
        """Return a private spread and its noise scale, or None when no interval was bought."""
        if self.spread == 0:
            return None
        scale = 1 / self.spread
        with charge(LaplaceCharge(1)):
            return spread + discrete_laplace(scale=scale, source=source), scale


def printed_note(printed: ErrorLaw, known: ErrorLaw) -> tuple[str, ...]:
    """Say in a plan how wide the interval will be that is printed with the answer."""
    width, needed = printed.half_width(0.95), known.half_width(0.95)
    about = f"{float(f'{width:.3g}'):,.10g}"
    wider = secret_size(width / needed if needed > 0 else math.inf)
    return (f"With the answer comes an interval of about ± {about}, {wider}.",)


def public_length(query: ProfiledCount, nodes: int, decay: Fraction) -> int:
    """Return the public place from which a profile may be the global bound at no cost.

    At exp(-decay) per step the global bound weighs less than exp(-60) from there on. No profile
    grows any more after 2n steps.
    """
    enough = (math.log(query.cap(nodes)) + 60) / float(decay)
    return int(min(math.ceil(enough), 2 * nodes + 2))


def upper_spread(private: int, scale: float, failure: float) -> int:
    """Return a bound on the true spread that fails with at most this probability."""
    if scale <= 0:
        return max(private, 0)
    q = math.exp(-1 / scale)
    # P(noise <= -(w + 1)) = q^(w+1) / (1 + q) must be at most the failure probability.
    w = math.ceil(scale * math.log(1 / ((1 + q) * failure)) - 1 + 1e-9)
    return max(private + max(w, 0), 0)


@dataclass(frozen=True)
class SpreadLaw(ErrorLaw):
    """An error law that holds whatever the graph, given its private spread.

    The released spread is s + Z, with the true one s and discrete Laplace noise Z. The half-width
    is that of a graph whose spread is larger than the released one by an allowance: the least d
    such that for every true spread the interval misses seldom enough,

        Σ_z P(Z = z)·P(error > w(max(s + z, 0) + d)) <= 1 - level,

    where w(s) is the half-width of one who knows the spread. Answer and spread have independent
    noise, so this is the probability of a miss; keeping a part of it for a spread that is too low
    would take wider intervals. Spreads are compared on a grid, up to where noise hardly matters.
    """

    query: str
    k: int
    nodes: int
    spread: int
    spread_scale: Fraction
    name: ClassVar[str]

    def question(self) -> ProfiledCount:
        """Return the question that the law is about."""
        factory = registry.find("query", "graph")[self.query]
        built: ProfiledCount = factory(self.k) if self.k else factory()
        return built

    def half_width(self, level: float) -> float:
        """Return the half-width at the level: that of a spread which is larger by the allowance."""
        failure = 1 - check_level(level)
        spread = max(self.spread, 0)
        if self.spread_scale:
            spread += _allowance(replace(self, spread=0), failure)
        return self.width_at(self.upper(spread), failure)

    @abstractmethod
    def width_at(self, spread: int, failure: float) -> float:
        """Return the half-width where the spread is known, that fails with this probability."""

    @property
    def wider(self) -> float:
        """How much of the interval is there because the spread is known with noise only."""
        known = self.width_at(self.upper(max(self.spread, 0)), 1 - 0.95)
        return self.half_width(0.95) / known if known > 0 else math.inf

    def variance(self) -> float:
        """Return about the mean squared error, were the spread the released one."""
        if self.spread_scale == 0:
            return super().variance()
        return replace(self, spread=max(self.spread, 0), spread_scale=Fraction(0)).variance()

    def upper(self, spread: int) -> int:
        """Return the spread cut at what so many nodes allow."""
        return min(spread, self.question().largest_spread(self.nodes))


_FARTHEST, _FINENESS = 8, 8
"""Spreads are compared up to so many scales of their noise, which is cut into such parts of one."""

_FAILURES = 16
"""At so many probabilities the error of a graph is told; between them its logarithm is a line."""


@lru_cache(maxsize=256)
def _allowance(law: SpreadLaw, failure: float) -> int:
    """Return how much larger than released a spread must be taken; see :class:`SpreadLaw`."""
    scale = float(law.spread_scale)
    rate = 1 / scale
    largest = upper_spread(0, scale, failure / 100)
    step = max(round(scale / 2), 1)
    farthest = math.ceil(_FARTHEST * scale)
    spreads = np.arange(0, farthest + step, step)
    noise = np.unique(np.round(np.arange(-farthest, farthest + 1, scale / _FINENESS)))
    # P(Z >= z); what lies below the first, or above the last, counts as these.
    above = np.exp(-rate * np.abs(np.where(noise > 0, noise, noise - 1))) / (1 + math.exp(-rate))
    above = np.where(noise > 0, above, 1 - above)
    above[0] = 1.0
    chances = above - np.append(above[1:], 0.0)
    failures = np.geomspace(0.8, failure / 30, _FAILURES)
    errors = [[law.width_at(law.upper(int(s)), f) for f in failures] for s in spreads]
    wide = np.arange(0, 2 * farthest + largest + 2 * step, step)
    widths = np.array([law.width_at(law.upper(int(s)), failure) for s in wide])

    def missed(more: int) -> float:
        worst = 0.0
        for spread, error in zip(spreads, errors, strict=True):
            reached = np.interp(np.maximum(spread + noise, 0) + more, wide, widths)
            logs = np.interp(reached, error, np.log(failures), left=0.0)
            worst = max(worst, float(chances @ np.exp(logs)))
        return worst

    low, high = -1, largest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(middle) > failure else (low, middle)
    return high
