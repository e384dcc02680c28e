"""The audit's view of relations: many tiny ones, and each mechanism's run in closed form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description, Kind
from tulle.audit.engine.world import World
from tulle.audit.relations.tiny import (
    conjunctive,
    relation_key,
    tiny_world,
    words,
)
from tulle.audit.relations.truncated import Difference, Grid, Lanes, Side, Truncated, place
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.exact import rational
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.relations.data import Relation
from tulle.relations.mechanisms.race import Lane
from tulle.relations.mechanisms.recursive import RecursiveSettings, TruncationMechanism
from tulle.relations.queries import Total, total
from tulle.relations.truncation.totals import GAP, Thresholds, least_level

HEAVIEST = 128.0
"""Above what any one participant is in, in any tiny relation of the audit."""

FAR = 40
"""How far beyond the first threshold above every load one more level is looked at."""

_KEPT = 40_000
"""How many measurements are remembered."""


class Measured(NamedTuple):
    """What is measured of one side of a relation, whatever the budget."""

    values: tuple[float | Fraction, ...]
    """The truncated value at each threshold."""
    level: int
    truth: float


_memory: dict[Hashable, Measured] = {}


def measured(
    mechanism: TruncationMechanism,
    terms: Terms,
    dataset: Dataset,
    taus: tuple[float, ...],
    thresholds: Thresholds | None,
) -> list[Measured]:
    """Return the numbers of each side of a made-up dataset's relation; each is computed once."""
    whole = mechanism.relation(terms, dataset)
    sides = whole.parts() if mechanism.signed(terms.query) else whole.parts()[:1]
    # Unless a twin has its own way with them, the sides alone decide.
    made = type(mechanism).parts
    honest = made is TruncationMechanism.parts
    found = []
    for index, side in enumerate(sides):
        content = _content(side) if honest else (index, _content(whole))
        key = made, content, taus, thresholds
        if key not in _memory:
            if len(_memory) >= _KEPT:
                _memory.clear()
            _, truncation = mechanism.parts(terms, dataset)[index]
            values = tuple(truncation.value(tau, GAP * tau) for tau in taus)
            level = 0 if thresholds is None else least_level(truncation, thresholds)
            _memory[key] = Measured(values, level, side.total)
        found.append(_memory[key])
    return found


def _content(relation: Relation) -> Hashable:
    """Return what measurements are remembered by."""
    # Solvers use their gap, so that the order of things might matter.
    return relation_key(relation)


def describe_recursive(
    mechanism: TruncationMechanism, terms: Terms, settings: Parameters, dataset: Dataset
) -> Description:
    """Describe a level with noise, and a value with the noise that fits its threshold."""
    chosen = RecursiveSettings.read(settings)
    grid = _level_grid(chosen)
    found = measured(mechanism, terms, dataset, grid.taus, chosen.thresholds)
    return _described(
        [
            Truncated(grid, *_snapped(grid, side), side.level, chosen.epsilon_select)
            for side in found
        ]
    )


def describe_race(
    mechanism: TruncationMechanism, terms: Terms, settings: Parameters, dataset: Dataset
) -> Description:
    """Describe a value with noise at every threshold of the race."""
    grid = _lane_grid(int(settings["thresholds"]), str(settings["epsilon"]))
    found = measured(mechanism, terms, dataset, grid.taus, None)
    return _described([Lanes(grid, *_snapped(grid, side)) for side in found])


def _described(sides: Sequence[Side]) -> Description:
    return Description((("answer", sides[0] if len(sides) == 1 else Difference(*sides)),))


def _snapped(grid: Grid, side: Measured) -> tuple[tuple[int, ...], float]:
    listed = list(zip(grid.taus, grid.lattices, side.values, strict=True))
    above = max((value - side.truth) / (GAP * tau) for tau, _, value in listed)
    return tuple(lattice.snap(value) for _, lattice, value in listed), above


@lru_cache(maxsize=256)
def _level_grid(chosen: RecursiveSettings) -> Grid:
    last = 0
    while chosen.threshold(last) < HEAVIEST:
        last += 1
    levels = (*range(last + 1), last + FAR)
    taus = tuple(chosen.threshold(level) for level in levels)
    noises = [chosen.noise(tau) for tau in taus]
    scales = tuple(noise.scale / noise.lattice.step for noise in noises)
    return Grid(
        levels,
        taus,
        tuple(noise.lattice for noise in noises),
        scales,
        tuple(scale * chosen.epsilon_answer for scale in scales),
    )


@lru_cache(maxsize=256)
def _lane_grid(count: int, epsilon: str) -> Grid:
    lanes = [Lane(index, count, rational(epsilon)) for index in range(1, count + 1)]
    scales = tuple(lane.scale / lane.lattice.step for lane in lanes)
    return Grid(
        tuple(range(1, count + 1)),
        tuple(lane.tau for lane in lanes),
        tuple(lane.lattice for lane in lanes),
        scales,
        tuple(scale * rational(epsilon) / count for scale in scales),
        tuple(lane.penalty for lane in lanes),
    )


Describer = Callable[[TruncationMechanism, Terms, Parameters, Dataset], Description]

DESCRIBERS: dict[str, Describer] = {"recursive": describe_recursive, "race": describe_race}
"""The closed form of each registered mechanism's run, by name."""

_OPTIONS: dict[str, tuple[Parameters, ...]] = {
    # With the least threshold that is usual, tiny relations are never cut: it is examined, and so
    # are thresholds among their loads.
    "recursive": ({"theta": "0.5", "beta": "0.35", "reach": "1"}, {}),
    "race": ({"bound": "8"}, {"bound": "1"}, {"bound": "100"}),
}


@registry.register("audit", "relation", "view")
class AuditedRelations(Kind):
    """Relations under participant privacy: conjunctions, other annotations, signed weights."""

    name: ClassVar[str] = "relation"
    private: ClassVar[tuple[str, ...]] = ("error", "threshold", "thresholds")

    def world(self, size: int) -> World:
        return tiny_world(size)

    def questions(self, mechanism: Mechanism) -> Sequence[Query]:
        if isinstance(mechanism, Twin):
            return mechanism.questions
        if mechanism.name not in DESCRIBERS:
            return ()
        unit = Unit.of("participant")
        return [q for q in (total(), total(signed=True)) if mechanism.supports(q, unit)]

    def drawn_questions(self, mechanism: Mechanism) -> Sequence[Query]:
        return self.questions(mechanism)

    def options(self, mechanism: Mechanism) -> Sequence[Parameters]:
        name = mechanism.mimics if isinstance(mechanism, Twin) else mechanism.name
        return _OPTIONS[name]

    def describe(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        if isinstance(mechanism, Twin):
            return mechanism.describe(terms, settings, dataset)
        assert isinstance(mechanism, TruncationMechanism)
        return DESCRIBERS[mechanism.name](mechanism, terms, settings, dataset)

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        # The laws bin what leaves, as observe does.
        return lambda parts: parts[0]

    def observe(self, outcome: Outcome) -> Hashable:
        shown = tuple(outcome.details.get("thresholds", ()))
        if "threshold" in outcome.details:
            shown = (outcome.details["threshold"],)
        return shown, int(place(shown, np.array([outcome.value]))[0])

    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        assert isinstance(query, Total)
        # One participant is in much, and enough others in a little, for any threshold to matter.
        tuples: list[tuple[tuple[int, ...], float]] = [((0, p), 1.0) for p in (1, 2, 3)]
        tuples += [((p,), 2.0) for p in range(1, 9)]
        tuples += [((p,), -3.0) for p in (0, 9, 10, 11, 12)]
        whole = conjunctive(tuples, 13)
        return whole, whole.without(0)

    def show(self, dataset: Dataset) -> str:
        assert isinstance(dataset, Relation)
        return words(dataset)

    def odd_questions(self) -> Sequence[Query]:
        return [total(), total(signed=True), 2 * total(), total(signed=True) / total()]
