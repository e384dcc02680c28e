"""Settings and pieces that several graph mechanisms share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.error_law import ErrorLaw, secret_size
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

    A quarter of the failure probability is kept for the spread being underestimated.
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

    @property
    def wider(self) -> float:
        """How much of the interval is there because the spread is known with noise only."""
        if self.spread_scale == 0:
            return 1.0
        likely = replace(self, spread=max(self.spread, 0), spread_scale=Fraction(0))
        known = likely.half_width(0.95)
        return self.half_width(0.95) / known if known > 0 else math.inf

    def bounded(self, level: float) -> tuple[int, float]:
        """Return an upper bound on the spread and the failure probability that is left."""
        alpha = 1 - level
        if self.spread_scale == 0:
            return self.upper(self.spread), alpha
        known = upper_spread(self.spread, float(self.spread_scale), alpha / 4)
        return self.upper(known), 3 * alpha / 4

    def upper(self, spread: int) -> int:
        """Return the spread cut at what so many nodes allow."""
        return min(spread, self.question().largest_spread(self.nodes))
