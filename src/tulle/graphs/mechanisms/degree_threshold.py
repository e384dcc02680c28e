"""The largest degree per node: the first bound that few enough stick out of, by sparse vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.events import Event, Pure
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.queries.degrees import MaxDegree
from tulle.graphs.sensitivity.degrees import sticking_out
from tulle.noise import geometric
from tulle.noise.charge import Draw, PricedCharge, charge


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into, and which bounds are looked at.

    Chosen by simulation at epsilon = 1 on ca-GrQc, ca-HepTh, netscience, power, lastfm-asia,
    email-Eu-core, polblogs and p2p-Gnutella08.
    """

    limit_share: Fraction = Fraction(3, 5)
    """For the noise that all bounds share; the rest is for the noise of each."""
    failure: float = 0.05
    """How often the largest degree may be below the last bound that was too low."""
    bounds: tuple[int, ...] = (0, *sorted({int(2 ** (place / 2)) for place in range(63)}))
    """Powers of the root of two, rounded down."""


_TUNING = Tuning()
BOUNDS = _TUNING.bounds


@dataclass(frozen=True, eq=False)
class DegreeThresholdSettings(Settings):
    """The public settings of one run."""

    stopping: int
    """About how many nodes stick out of the bound that is found."""
    epsilon_limit: Fraction
    epsilon_stop: Fraction


@registry.register("law", "graph", "degree threshold")
@dataclass(frozen=True)
class DegreeThresholdLaw(ErrorLaw):
    """The largest degree is above a bound, with this probability at least; nobody knows how far."""

    above: int
    sure: float
    name: ClassVar[str] = "degree threshold"

    @property
    def leaves_out(self) -> str:
        """What the few with the most links have beyond: no private release can bound it."""
        return (
            "About as many nodes as noise hides may have more links than the answer says, by any "
            "number."
        )

    def half_width(self, level: float) -> float:
        """Return infinity: one node may have any number of links."""
        check_level(level)
        return math.inf

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the lower end and infinity."""
        return (self.above + 1 if check_level(level) <= self.sure else 0), math.inf


@registry.mechanism("graph", "degree_threshold", answers=(MaxDegree,), units=("node",))
class DegreeThreshold(Mechanism):
    """Release the first of some bounds on degrees that few enough nodes stick out of.

    Bounds are looked at in turn, small ones first. With k_i the number of nodes that stick out of
    bound i (:func:`tulle.graphs.sensitivity.degrees.sticking_out`), the search stops at the first i
    with k_i <= K - rho + nu_i: K is public, rho and all nu_i are independent geometric noise, of
    rates a and b. If it has not stopped before, it stops at the last bound.

    Guarantee:
        Pure epsilon per node, a + b. One node moves all k_i the same way, by at most one, which is
        what the search of :mod:`tulle.relations.mechanisms.sparse_vector` needs: by its steps 1
        and 2, the probability of stopping at i changes by a factor of at most exp(a + b).

    Error:
        The answer is about as large as the degree that 5/epsilon nodes have; above it are those
        few. The largest degree is above the bound before the answer unless rho > K, which has
        probability exp(-a·(K + 1)), at most a twentieth: intervals have a lower end only.

    Reference:
        Dwork & Roth, Algorithmic foundations of differential privacy, section 3.6, for the search.

    Example:
        >>> import tulle
        >>> ring = Graph.from_edges([(i, (i + s) % 90) for i in range(90) for s in (1, 2, 3, 4)])
        >>> r = tulle.release(ring, tulle.max_degree(), unit="node", epsilon=4.0)
        >>> r.mechanism, r.interval(0.9)[1]
        ('degree_threshold', inf)
    """

    title: ClassVar[str] = "the first bound on degrees that few nodes stick out of"
    reference: ClassVar[str] = "Dwork & Roth, section 3.6"
    options: ClassVar[tuple[str, ...]] = ("stopping",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        limit = terms.epsilon * _TUNING.limit_share
        usual = math.ceil(-math.log(_TUNING.failure) / float(limit)) - 1
        stopping = validate.whole(stopping=options.get("stopping", max(usual, 0)), at_least=0)
        return DegreeThresholdSettings(stopping, limit, terms.epsilon - limit)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        if not isinstance(like, Graph):
            return Prediction(None, None)
        chosen = DegreeThresholdSettings.read(settings)
        place = first_place(sticking_out(like, BOUNDS), [chosen.stopping] * len(BOUNDS))
        return Prediction(None, None, float(abs(BOUNDS[place] - terms.query.truth(like))))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        chosen = DegreeThresholdSettings.read(settings)
        with charge(PricedCharge(_priced, ("geometric",))):
            limit = chosen.stopping - geometric(scale=1 / chosen.epsilon_limit, source=source)
            stops = [geometric(scale=1 / chosen.epsilon_stop, source=source) for _ in BOUNDS]
        place = first_place(sticking_out(dataset, BOUNDS), [limit + extra for extra in stops])
        sure = -math.expm1(-float(chosen.epsilon_limit) * (chosen.stopping + 1))
        law = DegreeThresholdLaw(BOUNDS[place - 1] if place else -1, sure)
        return Outcome(BOUNDS[place], law)


def first_place(needed: Sequence[int], levels: Sequence[int]) -> int:
    """Return the first place whose level is enough; else the last.

    Example:
        >>> first_place([3, 1, 0], [2, 1, 0]), first_place([3, 1, 1], [2, 0, 0])
        (1, 2)
    """
    enough = np.flatnonzero(np.array(needed[:-1]) <= np.array(levels[:-1]))
    return int(enough[0]) if len(enough) else len(needed) - 1


def _priced(draws: Sequence[Draw]) -> Event:
    limit, *stops = (1 / draw.exact("scale") for draw in draws)
    return Pure(limit + max(stops))
