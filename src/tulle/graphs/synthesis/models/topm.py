"""The model topm: as many edges as there are, true ones exp(epsilon) times as likely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Wholes
from tulle.core.errors import QueryError
from tulle.core.guarantee import display
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.query import Synthetic
from tulle.graphs.topology.response import pair_places, pairs_of
from tulle.noise import bernoulli, discrete_laplace, geometric
from tulle.noise.charge import KeptCharge, LaplaceCharge, charge
from tulle.noise.post_processing import Random
from tulle.noise.source import exp_bounds

_DIGITS = 192
"""Binary digits of chances and of the bounds that they are compared with."""

_STEPS = 2**40

_LARGEST_MADE = 2**27
"""More edges than this are not made up: each takes some tens of bytes."""

_REACH = 40
"""Noise beyond so many times its scale is not reckoned with: its chance is below 10^-17."""


@dataclass(frozen=True)
class Tuning:
    """Not chosen on any data: the coins' epsilon is lowered by a tenth, and the number of edges is
    off by ten over epsilon or so, little beside any network's."""

    count_share: Fraction = Fraction(1, 10)
    """Part of epsilon that the number of edges gets."""


_TUNING = Tuning()


class Rates(NamedTuple):
    """How often a pair of nodes is in the released graph."""

    skip: Fraction
    """A pair without an edge is invented with chance 1 - exp(-1/skip), exactly."""
    keep: Fraction
    """An edge is kept with this chance, exactly."""

    @property
    def invent(self) -> float:
        """The chance of an invented edge, as a float."""
        return -math.expm1(-1 / float(self.skip))


@dataclass(frozen=True, eq=False, kw_only=True)
class TopSettings(ModelSettings):
    """The public settings of one run."""

    coins: Fraction
    """The part of epsilon for the coins."""
    count: Fraction | None = None
    """The part for the number of edges, where that is not public."""
    edges: int | None = None
    """How many edges there are, where that is public."""


@registry.offered(
    "synthetic", "topm", "Top-m filter", "keeps the most likely links of a noisy matrix"
)
@registry.mechanism("graph", "synthetic_topm", answers=(Synthetic,), units=("edge",))
class TopM(SynthesisModel):
    """Keep each edge and invent others, so that about as many come out as there are.

    The Top-m-Filter adds Laplace noise to every cell of the adjacency matrix and keeps those above
    a threshold that about m cells pass. Which cells pass is a coin for each pair, so the coins
    are drawn directly: invented edges by the gaps between them, which takes time in proportion to
    the edges and not to the pairs.

    Guarantee:
        Pure epsilon per edge. A tenth buys the number of edges, with Laplace noise. Given that
        number, each pair has a coin of its own, and neither of its sides is more than
        exp(epsilon') times as likely with an edge as without one, nor the other way round: four
        inequalities, kept by construction (:func:`safe_rates`) on certified bounds.
        The number of invented edges is left to the coins (a binomial); topping up to exactly m,
        as is often done, would show how many true edges were kept.

    Error:
        At small epsilon hardly any true edge is kept (the share is at most
        exp(epsilon)·m divided by the number of pairs), so what comes out is a random graph with
        the right number of edges.

    Reference:
        Nguyen, Imine & Rusinowitch, Differentially private publication of social graphs at
        linear cost, ASONAM 2015; the two threshold formulas are printed in each other's place.

    Example:
        >>> import tulle
        >>> path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
        >>> r = tulle.release(path, tulle.synthetic("topm"), unit="edge", epsilon=200.0)
        >>> r.value.edges().tolist()
        [[0, 1], [1, 2]]
    """

    model: ClassVar[str] = "topm"
    title: ClassVar[str] = "a coin for every pair, set for the right number of edges"
    keeps_identities: ClassVar[bool] = True
    reference: ClassVar[str] = "Nguyen, Imine & Rusinowitch, ASONAM 2015, corrected"
    options: ClassVar[tuple[str, ...]] = ("edges",)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        if comb(nodes, 2) > _STEPS:
            raise QueryError(
                f"{counted(nodes, 'node')} have {counted(comb(nodes, 2), 'pair')}; at most "
                f"{_STEPS:,} are handled."
            )
        if (edges := options.get("edges")) is None:
            spent = terms.epsilon * _TUNING.count_share
            if min(_REACH / spent, Fraction(comb(nodes, 2))) > _LARGEST_MADE:
                least = _REACH / (_TUNING.count_share * _LARGEST_MADE)
                raise QueryError(
                    f"At epsilon = {display(terms.epsilon)} noise alone could make more than "
                    f"{_LARGEST_MADE:,} edges on {counted(nodes, 'node')}. Use an epsilon of at "
                    f"least {float(least):.2g}, or say how many edges there are (edges=) if that "
                    "is public."
                )
            return TopSettings(nodes=nodes, count=spent, coins=terms.epsilon - spent)
        # The number of edges is declared public: all of epsilon goes to the coins.
        public = validate.whole(edges=edges, at_least=0)
        if min(public, comb(nodes, 2)) > _LARGEST_MADE:
            raise QueryError(
                f"At most {_LARGEST_MADE:,} edges are made up; edges= says {public:,}."
            )
        return TopSettings(nodes=nodes, edges=public, coins=terms.epsilon)

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        seen: dict[str, Any] = {}
        chosen = TopSettings.read(settings)
        edges = chosen.edges
        if edges is None:
            assert chosen.count is not None
            with charge(LaplaceCharge(1)):
                noise = discrete_laplace(scale=1 / chosen.count, source=source)
            seen["edges"] = edges = graph.edge_count + noise
        rates = self.rates(settings, edges)
        pairs = comb(graph.node_count, 2)
        true = np.sort(pair_places(graph.node_count, graph.edges()))
        with charge(KeptCharge()):
            invented = invented_places(pairs, rates.skip, source)
            kept = true[bernoulli(rates.keep, size=len(true), source=source)]
        # Where there is an edge, its own coin decides.
        seen["chosen"] = np.sort(np.append(np.setdiff1d(invented, true), kept))
        return seen

    def rates(self, settings: Parameters, edges: int) -> Rates:
        """Return the coins for about so many edges."""
        chosen = TopSettings.read(settings)
        return coins_for(chosen.nodes, edges, chosen.coins)

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        return np.column_stack(pairs_of(TopSettings.read(settings).nodes, statistics["chosen"]))


def coins_for(nodes: int, edges: int, epsilon: Fraction) -> Rates:
    """Return coins that let about ``edges`` pairs pass and are epsilon-private.

    Laplace noise of scale 1/epsilon lets m of N cells pass above theta, where

    * theta >= 1, if epsilon <= ln(N/m - 1): an edge passes exp(epsilon) times as often as another
      pair, so that pair's chance is m / (N + m·(exp(epsilon) - 1));
    * theta < 1 otherwise: theta = 1/2 + ln(N/m - 1) / (2·epsilon).

    Example:
        >>> rates = coins_for(100, 200, Fraction(1))
        >>> round(200 * float(rates.keep) + (4950 - 200) * rates.invent)
        200
    """
    pairs = comb(nodes, 2)
    wanted = min(max(edges, 1), max(pairs - 1, 1))
    power = float(epsilon)
    odds = pairs / wanted - 1
    if power <= math.log(max(odds, 1e-300)):
        invent = wanted / (pairs + wanted * math.expm1(power))
        keep = invent * math.exp(power)
    else:
        theta = min(max(0.5 + math.log(max(odds, 1e-9)) / (2 * power), 0.0), 1.0)
        invent = 0.5 * math.exp(-theta * power)
        keep = 1 - 0.5 * math.exp(-(1 - theta) * power)
    return safe_rates(invent, keep, epsilon)


def safe_rates(invent: float, keep: float, epsilon: Fraction) -> Rates:
    """Return coins near these chances that keep the four inequalities of the guarantee.

    Floats only say what is aimed at. The chance of an invented edge is fixed first; what an edge
    may then be kept with lies between two certified limits, and the aim is moved between them.
    Since an edge is invented with at least 2^-45, the limits are at least 2^-45·epsilon apart,
    which is far more than the last of :data:`_DIGITS` digits.

    Example:
        >>> rates = safe_rates(0.1, 0.9, Fraction(1, 10**9))
        >>> is_private(rates, Fraction(1, 10**9)), is_private(rates, Fraction(1, 10**10))
        (True, False)
    """
    invent = min(max(invent, 2.0**-45), 0.5)
    skip = Fraction(-1 / math.log1p(-invent)).limit_denominator(2**20)
    low, high = keep_limits(skip, epsilon)
    # Zero and one are among what may be aimed at, and are short.
    aim = min(max(Fraction(min(max(keep, 0.0), 1.0)), low), high)
    short = Fraction(math.floor(aim * 2**_DIGITS), 2**_DIGITS)
    rates = Rates(skip, short if short >= low else short + Fraction(1, 2**_DIGITS))
    if not is_private(rates, epsilon):
        raise AssertionError("The coins of topm must be private by construction.")
    return rates


def keep_limits(skip: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Return the least and the largest chance to keep an edge, rounded inwards.

    With p the chance of an invented edge, a chance to keep is epsilon-private exactly if it is
    between max(p / e, 1 - (1 - p)·e) and min(p·e, 1 - (1 - p) / e), where e = exp(epsilon).

    Example:
        >>> low, high = keep_limits(Fraction(1), Fraction(1, 10))
        >>> round(float(low), 4), round(float(high), 4)
        (0.5934, 0.6671)
    """
    whole = 1 << _DIGITS
    # exp(-epsilon) from above, and 1 - p = exp(-1 / skip) from both sides.
    shrink = Fraction(exp_bounds(epsilon, _DIGITS)[1], whole)
    absent_low, absent = (Fraction(end, whole) for end in exp_bounds(1 / skip, _DIGITS))
    low = max((1 - absent_low) * shrink, 1 - absent_low / shrink)
    high = min((1 - absent) / shrink, 1 - absent * shrink)
    return low, high


def is_private(rates: Rates, epsilon: Fraction) -> bool:
    """Say whether coins are epsilon-private: none of four chances is too many times another."""
    low, high = keep_limits(rates.skip, epsilon)
    return low <= rates.keep <= high


def invented_places(pairs: int, skip: Fraction, source: Source | None) -> Wholes:
    """Return the places, of so many, that pass a coin of 1 - exp(-1/skip), in order."""
    found: list[Wholes] = []
    last = -1
    expected = pairs * -math.expm1(-1 / float(skip))
    while last < pairs - 1:
        size = int((pairs - 1 - last) / pairs * expected * 1.05) + 20
        gaps = np.minimum(geometric(scale=skip, size=size, source=source), pairs)
        steps = last + np.cumsum(gaps + 1)
        found.append(steps)
        last = int(steps[-1])
    places = np.concatenate([np.empty(0, dtype=np.int64), *found])
    return places[places < pairs]
