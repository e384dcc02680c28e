"""The audit's view of the largest degree per node: where a search by sparse vector stops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Claim, Law, ratio
from tulle.audit.faults import BOTH, broken
from tulle.audit.graphs.truncation import Per
from tulle.core.arrays import Floats
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.degree_threshold import BOUNDS, DegreeThresholdSettings
from tulle.graphs.queries.degrees import max_degree
from tulle.graphs.sensitivity.degrees import sticking_out

LARGEST_DEGREE = Per(max_degree(), "node")
"""The question of the audit."""


@dataclass(frozen=True)
class Stopped(Law):
    """The first place whose noisy level is enough; if none before is, the last."""

    needed: tuple[int, ...]
    stopping: int
    limit: Fraction
    stop: Fraction

    def claims(self, other: Stopped) -> Iterator[Claim]:
        moved = np.array([0, *self.needed]) - np.array([0, *other.needed])
        spread = int(moved.max() - moved.min())
        yield Claim("numbers move one way by one", ratio(spread, 1), f"{spread} apart")

    def logs(self) -> Floats:
        """Return the log-probability of each place, summed over the noise that all share."""
        shared, each = float(self.limit), float(self.stop)
        drawn = np.arange(self.stopping + math.ceil(60 / shared) + 1)
        before = math.log(-math.expm1(-shared)) - shared * drawn
        logs = []
        for needed in self.needed[:-1]:
            short = np.maximum(needed - self.stopping + drawn, 0)
            logs.append(float(np.logaddexp.reduce(before - each * short)))
            with np.errstate(divide="ignore"):
                before = before + np.log(-np.expm1(-each * short))
        return np.array([*logs, float(np.logaddexp.reduce(before))])

    def loss(self, other: Stopped) -> float:
        return float(np.max(self.logs() - other.logs()))

    def losses(self, other: Stopped) -> tuple[Floats, Floats]:
        logs = self.logs()
        return np.exp(logs), logs - other.logs()

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        return [(bound,) for bound in BOUNDS], np.exp(self.logs())


def describe_threshold(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe where the search stops."""
    known = DegreeThresholdSettings.read(settings)
    needed = tuple(sticking_out(graph, BOUNDS))
    law = Stopped(needed, known.stopping, known.epsilon_limit, known.epsilon_stop)
    return Description((("answer", law),))


def threshold_faults(search: Mechanism) -> list[Broken]:
    """Return broken versions of the search for the largest degree."""

    def plainly_above(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        above = tuple(int((degrees(graph) > bound).sum()) for bound in BOUNDS)
        return {"answer": replace(laws["answer"], needed=above)}

    fault = "how many nodes have more links than the bound: who joins raises all neighbours"
    return [broken(search, "plainly above", fault, (LARGEST_DEGREE,), BOTH, law=plainly_above)]
