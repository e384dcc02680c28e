"""The audit's view of degree distributions per node: all small graphs, nodes that come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Claim, LaplaceVector, Law, ratio
from tulle.audit.engine.world import World
from tulle.core.arrays import Floats
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Outcome, Parameters, Terms
from tulle.graphs.data import Graph
from tulle.graphs.generators import all_graphs
from tulle.graphs.mechanisms.projection import (
    ProjectionSettings,
    block_counts,
    candidates,
    finish_counts,
    moved,
    projected_degrees,
    standing,
)
from tulle.graphs.queries.degrees import DegreeDistribution


@dataclass(frozen=True)
class PerNode(DegreeDistribution):
    """The degree distribution, asked with nodes as the units."""


PER_NODE = PerNode()
OPTIONS: dict[str, tuple[Parameters, ...]] = {
    "projection": ({"largest": 2}, {"largest": 5, "bound_share": "1/2"}),
}


@lru_cache(maxsize=4)
def node_world(size: int, key: Callable[[Dataset], Hashable]) -> World:
    """Return all graphs with at most so many nodes, neighbours by one node."""
    graphs = [graph for nodes in range(size + 1) for graph in all_graphs(nodes)]
    return World.of(f"all graphs on at most {size} nodes", "node", graphs, key)


@dataclass(frozen=True)
class ChosenCounts(Law):
    """A bound chosen by its score, then Laplace noise on the counts for that bound."""

    centres: tuple[tuple[int, ...], ...]
    scores: tuple[Fraction, ...]
    rate: Fraction
    sensitivities: tuple[int, ...]
    epsilon: Fraction
    bounds: tuple[int, ...]

    def claims(self, other: ChosenCounts) -> Iterator[Claim]:
        moved = max(abs(a - b) for a, b in zip(self.scores, other.scores, strict=True))
        yield Claim("scores move by one", float(moved), f"moves {float(moved):.4g}")
        for ours, theirs, allowed in zip(
            self.centres, other.centres, self.sensitivities, strict=True
        ):
            step = sum(abs(a - b) for a, b in zip(ours, theirs, strict=True))
            yield Claim("L1 sensitivity", ratio(step, allowed), f"moves {step} of {allowed}")

    def logs(self) -> Floats:
        """Return the log-probability of each bound."""
        logs = np.array([float(score * self.rate / 2) for score in self.scores])
        return np.asarray(logs - np.logaddexp.reduce(logs), dtype=np.float64)

    def _vector(self, place: int) -> LaplaceVector:
        scale = Fraction(self.sensitivities[place]) / self.epsilon
        centre = self.centres[place]
        return LaplaceVector(centre, (scale,) * len(centre), Fraction(self.sensitivities[place]))

    def loss(self, other: ChosenCounts) -> float:
        chosen = self.logs() - other.logs()
        return max(
            float(extra) + self._vector(place).loss(other._vector(place))
            for place, extra in enumerate(chosen)
        )

    def losses(self, other: ChosenCounts) -> tuple[Floats, Floats]:
        masses, losses = [], []
        for place, (ours, theirs) in enumerate(zip(self.logs(), other.logs(), strict=True)):
            mass, loss = self._vector(place).losses(other._vector(place))
            masses.append(math.exp(ours) * mass)
            losses.append(loss + ours - theirs)
        return np.concatenate(masses), np.concatenate(losses)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        values: list[Any] = []
        masses = []
        for place, chance in enumerate(np.exp(self.logs()).tolist()):
            listed, mass = self._vector(place).points(left_out)
            values.extend((self.bounds[place], *counts) for counts in listed)
            masses.append(chance * mass)
        return values, np.concatenate(masses)


def describe_projection(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe the choice of the bound and the noise on the counts."""
    bounds = candidates(ProjectionSettings.read(settings).largest)
    kept = [projected_degrees(graph, bound) for bound in bounds]
    return Description((("answer", chosen_counts(bounds, kept, settings)),))


def chosen_counts(bounds: Sequence[int], kept: Sequence[Any], settings: Parameters) -> ChosenCounts:
    """Return the law for degrees that were projected to each bound."""
    known = ProjectionSettings.read(settings)
    return ChosenCounts(
        tuple(
            tuple(block_counts(np.minimum(row, bound), bound, known.epsilon_answer).tolist())
            for row, bound in zip(kept, bounds, strict=True)
        ),
        tuple(standing([int(row.sum()) for row in kept], list(bounds), settings)),
        known.epsilon_bound,
        tuple(moved(bound) for bound in bounds),
        known.epsilon_answer,
        tuple(bounds),
    )


def finish(settings: Parameters) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return the post-processing of noisy counts."""
    known = ProjectionSettings.read(settings)

    def finish_one(parts: tuple[Any, ...]) -> Hashable:
        bound, *counts = parts[0]
        return tuple(finish_counts(np.array(counts, np.int64), bound, known).tolist()), bound

    return finish_one


def see(outcome: Outcome) -> Hashable | None:
    """Return what a release per node shows, or None when it is something else."""
    if set(outcome.details) != {"bound"}:
        return None
    return tuple(outcome.value.tolist()), int(outcome.details["bound"])


def small_graphs() -> tuple[Graph, Graph]:
    """Return two graphs that differ in one node."""
    path = Graph.from_edges([(0, 1), (1, 2)], nodes=3)
    return path, Graph.from_edges([(0, 1)], nodes=2)
