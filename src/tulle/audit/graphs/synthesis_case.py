"""What a model of synthetic graphs tells the audit about its private part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Claim, Floats, Law
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.graphs.data import Graph

COARSE = "class_triangles"
"""A release with this statistic has too many of them: it is counted in coarse steps."""


def coarse(value: Any) -> int:
    """Return which of a few steps a noisy number is on."""
    return max(-3, min(3, int(value) // 2))


@dataclass(frozen=True)
class Coarse(Law):
    """A law whose drawn values are looked at in coarse steps; its claims are those of the law.

    The joint distribution of many statistics has too many values to list one by one. That a
    coarser look is taken affects the comparison with real runs only.
    """

    law: Law

    def claims(self, other: Coarse) -> Iterator[Claim]:
        return self.law.claims(other.law)

    def loss(self, other: Coarse) -> float:
        return self.law.loss(other.law)

    def losses(self, other: Coarse) -> tuple[Floats, Floats]:
        return self.law.losses(other.law)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        steps: dict[Any, float] = defaultdict(float)
        values, masses = self.law.points(left_out)
        for value, mass in zip(values, masses.tolist(), strict=True):
            seen = tuple(map(coarse, value)) if isinstance(value, tuple) else coarse(value)
            steps[seen] += mass
        return list(steps), np.array(list(steps.values()))


class SynthesisCase(NamedTuple):
    """One model's case."""

    questions: tuple[Query, ...]
    """The questions on which all claims and output distributions are examined."""

    drawn: Query
    """The question on which runs are drawn; one of the questions."""

    describe: Callable[[Terms, Parameters, Graph], Description]
    """The closed form of the private part: one law for each statistic, in order."""

    small: tuple[Graph, Graph] | None = None
    """Two tiny neighbours to draw on; None for a path of three nodes and one edge of it."""

    finish: Callable[[Terms, Parameters], Callable[[tuple[Any, ...]], Hashable]] | None = None
    """How drawn parts become the flat tuple of statistics; None when they just stand in a row."""
