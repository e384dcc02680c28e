"""The largest eigenvalue as far as it is spread, with Laplace noise on a scale of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, LaplaceLaw, check_level
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.queries import Eigenvalues, public_spectrum, rank_of
from tulle.graphs.spectra.spread import (
    CAP,
    STEPS,
    TOLERANCE,
    rounded_place,
    scale_sensitivity,
    scaled,
    spread_value,
    unscaled,
)
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

_MOST_STEPS = 2**10


@dataclass(frozen=True)
class Tuning:
    """Where products are cut off, by epsilon; which data chose it is not on record."""

    small: float = 0.05
    large: float = 1e3
    """From which epsilon on less is cut off, and up to which."""
    power: float = 1 / 3
    """What is cut off is halved, roughly, while noise doubles."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenSpreadSettings(Settings):
    """The public settings of one run."""

    nodes: int
    k: int
    steps: int
    """Into how many parts one of the scale is divided."""
    cap: Fraction
    """Where products are cut off, in parts of one over the eigenvalue."""
    sensitivity: int
    scale: Fraction


@registry.register("law", "graph", "spread eigenvalue")
@dataclass(frozen=True)
class SpreadValueLaw(ErrorLaw):
    """Laplace noise on the scale of what is spread, which is at most the eigenvalue."""

    scale: Fraction
    steps: int
    cap: Fraction
    name: ClassVar[str] = "spread eigenvalue"

    @property
    def leaves_out(self) -> str:
        """What two linked nodes hold of the eigenvalue beyond what is spread."""
        return "What few links between hubs add to the eigenvalue beyond all others is left out."

    def half_width(self, level: float) -> float:
        """Return infinity: what is left out has no public bound."""
        check_level(level)
        return math.inf

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the lower end and infinity."""
        # Noise misses half as often on one side as on both; and what is computed is rounded.
        both = max(2 * check_level(level) - 1, level / 2)
        width = LaplaceLaw(self.scale, Fraction(1, self.steps)).half_width(both)
        width += 1 / self.steps + float(TOLERANCE)
        places = [scaled(float(one), self.cap) - width for one in np.ravel(value)]
        low = np.array([unscaled(place, self.cap) for place in places])
        return low, np.full_like(low, math.inf)


@registry.mechanism("graph", "eigen_spread", answers=(Eigenvalues,), units=("edge",))
class EigenSpread(Mechanism):
    """Release the largest eigenvalue, alone, as far as no two linked nodes hold too much of it.

    Guarantee:
        Pure epsilon per edge, on graphs of any size: one edge moves the spread value by at most 1
        on its scale (:mod:`tulle.graphs.spectra.spread`), what is computed of it by a 32nd more,
        and rounding by one part. Where it is cut, c, follows from epsilon alone.

    Error:
        Noise of min(1, 2c/v)/epsilon, for an eigenvalue v, where noise on the eigenvalue itself is
        1/epsilon; c is 3.4 at epsilon = 1. And what is cut off, where two linked nodes have entries
        of the vector whose product exceeds .8·c/v: nothing in cliques and stars, little elsewhere.
        Intervals have a lower end only.

    Reference:
        Our own. Frank & Wolfe 1956 for the search, Collatz 1942 and Wielandt 1950 for its proof.

    Example:
        >>> import tulle
        >>> clique = Graph.from_edges([(u, v) for u in range(9) for v in range(u)], nodes=9)
        >>> r = tulle.release(clique, tulle.eigenvalues(1), unit="edge", epsilon=1000.0,
        ...                   mechanism="eigen_spread")
        >>> r.value.round(1).tolist(), r.interval(0.9)[1].tolist()
        ([8.0], [inf])
    """

    title: ClassVar[str] = "noise on what is spread of the eigenvalue"
    reference: ClassVar[str] = "ours; see the docstring"
    options: ClassVar[tuple[str, ...]] = ("steps",)

    def supports(self, query: Query, unit: Unit) -> bool:
        """Say whether one eigenvalue is asked for."""
        return super().supports(query, unit) and isinstance(query, Eigenvalues) and query.k == 1

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        steps = options.get("steps", STEPS)
        steps = validate.whole(steps=steps, at_least=1, at_most=_MOST_STEPS)
        cap = cap_for(terms.epsilon)
        moved = scale_sensitivity(steps)
        return EigenSpreadSettings(
            nodes=nodes,
            k=k,
            steps=steps,
            cap=cap,
            sensitivity=moved,
            scale=moved / terms.epsilon,
        )

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law = _law(settings)
        if not isinstance(like, Graph):
            return Prediction(law, law)
        chosen = EigenSpreadSettings.read(settings)
        found = spread_value(like.node_count, like.edges(), chosen.cap)
        lost = max(float(public_spectrum(like, 1).values[0]) - found, 0.0)
        noise = float(chosen.scale) / chosen.steps
        middle = scaled(found, chosen.cap)
        ends = (unscaled(middle + side * noise, chosen.cap) for side in (1, -1))
        return Prediction(law, law, lost + abs(next(ends) - next(ends)) / 2)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        chosen = EigenSpreadSettings.read(settings)
        assert isinstance(dataset, Graph)
        exact = rounded_place(dataset, chosen.steps, chosen.cap)
        with charge(LaplaceCharge(chosen.sensitivity)):
            noise = discrete_laplace(scale=chosen.scale, source=source)
        return Outcome(finish(exact + int(noise), settings), _law(settings))


def cap_for(epsilon: Fraction) -> Fraction:
    """Return where to cut: what is lost so should not outweigh the noise, which grows with it.

    Example:
        >>> [str(cap_for(Fraction(epsilon))) for epsilon in ("0.01", "1", "10")]
        ['5/4', '27/8', '29/4']
    """
    wider = (min(float(epsilon), _TUNING.large) / _TUNING.small) ** _TUNING.power
    return max(Fraction(round(8 * wider * float(CAP)), 8), CAP)


def finish(place: int, settings: Parameters) -> Floats:
    """Return the value at a noisy place of the scale, within what so many nodes allow."""
    chosen = EigenSpreadSettings.read(settings)
    value = unscaled(place / chosen.steps, chosen.cap)
    return np.array([min(value, chosen.nodes - 1.0)])


def _law(settings: Parameters) -> SpreadValueLaw:
    chosen = EigenSpreadSettings.read(settings)
    return SpreadValueLaw(chosen.scale, chosen.steps, chosen.cap)
