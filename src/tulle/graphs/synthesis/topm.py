"""The model topm: as many edges as there are, true ones exp(epsilon) times as likely."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.errors import QueryError
from tulle.core.exact import rational, text
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.response import pair_places, pairs_of
from tulle.graphs.synthesis.model import Edges, Model, Statistics
from tulle.noise import Random, bernoulli, discrete_laplace, geometric
from tulle.noise.charge import KeptCharge, LaplaceCharge, charge
from tulle.noise.exponent import exp_bounds

Wholes = npt.NDArray[np.int64]

COUNT_SHARE = Fraction(1, 10)
"""Part of epsilon that the number of edges gets."""

_DIGITS = 96
_STEPS = 2**40


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


@registry.register("mechanism", "graph", "synthetic_topm")
class TopM(Model):
    """Keep each edge and invent others, so that about as many come out as there are.

    The Top-m-Filter adds Laplace noise to every cell of the adjacency matrix and keeps those above
    a threshold that about m cells pass. Which cells pass is a coin for each pair, so the coins
    are drawn directly: invented edges by the gaps between them, which takes time in proportion to
    the edges and not to the pairs.

    Guarantee:
        Pure epsilon per edge. A tenth buys the number of edges, with Laplace noise. Given that
        number, each pair has a coin of its own: an edge is kept at most exp(epsilon') times as
        often as a pair without one is invented, and such a pair is left out at most
        exp(epsilon') times as often as an edge is lost. Both are checked on certified bounds.
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

    name: ClassVar[str] = "synthetic_topm"
    model: ClassVar[str] = "topm"
    title: ClassVar[str] = "a coin for every pair, set for the right number of edges"
    keeps_identities: ClassVar[bool] = True
    reference: ClassVar[str] = "Nguyen, Imine & Rusinowitch, ASONAM 2015, corrected"
    options: ClassVar[tuple[str, ...]] = ("edges",)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> Parameters:
        if comb(nodes, 2) > _STEPS:
            raise QueryError(
                f"{nodes:,} nodes have {comb(nodes, 2):,} pairs; at most {_STEPS:,} are handled."
            )
        if (edges := options.get("edges")) is None:
            spent = terms.epsilon * COUNT_SHARE
            return {"count": text(spent), "coins": text(terms.epsilon - spent)}
        # The number of edges is declared public: all of epsilon goes to the coins.
        public = validate.whole(edges=edges, at_least=0)
        return {"edges": public, "coins": text(terms.epsilon)}

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        seen: dict[str, Any] = {}
        if "edges" not in settings:
            with charge(LaplaceCharge(1)):
                noise = discrete_laplace(scale=1 / rational(settings["count"]), source=source)
            seen["edges"] = graph.edge_count + noise
        rates = self.rates(settings, int(seen["edges"] if "edges" in seen else settings["edges"]))
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
        return coins_for(int(settings["nodes"]), edges, rational(settings["coins"]))

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Edges:
        return np.column_stack(pairs_of(int(settings["nodes"]), statistics["chosen"]))


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
    """Return coins near these chances that keep the two inequalities of the guarantee."""
    invent = min(max(invent, 2.0**-45), 0.5)
    skip = Fraction(-1 / math.log1p(-invent)).limit_denominator(2**20)
    skip = max(skip, Fraction(1, 2**20))
    whole = 1 << _DIGITS
    shrink = Fraction(exp_bounds(epsilon, _DIGITS)[1], whole)
    absent = Fraction(exp_bounds(1 / skip, _DIGITS)[1], whole)
    # keep <= e^epsilon·(1 - absent) and absent <= e^epsilon·(1 - keep), each rounded down.
    limit = min((1 - absent) / shrink, 1 - absent * shrink)
    chosen = min(Fraction(min(max(keep, 0.0), 1.0)), limit, Fraction(1))
    # Rounded down to a short fraction, which coins are drawn from faster.
    return Rates(skip, Fraction(math.floor(chosen * 2**60), 2**60))


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
