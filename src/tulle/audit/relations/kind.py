"""The audit's view of relations: many tiny ones, and each mechanism's run in closed form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tulle.audit.engine.broken import name_of
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.laws import Law
from tulle.audit.engine.world import World
from tulle.audit.relations.tiny import (
    conjunctive,
    relation_key,
    tiny_world,
    words,
)
from tulle.audit.relations.truncated import (
    Difference,
    FirstFit,
    Grid,
    Lanes,
    Truncated,
    TruncatedSide,
    place,
)
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.relations.data import Relation
from tulle.relations.mechanisms.race import Lane, RaceSettings
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.mechanisms.sparse_vector import SparseVectorSettings
from tulle.relations.queries import Total, total
from tulle.relations.truncation.mechanism import TruncationMechanism
from tulle.relations.truncation.totals import GAP, Truncation, least_level

HEAVIEST = 128.0
"""Above what any one participant is in, in any tiny relation of the audit."""

FAR = 40
"""How far beyond the first threshold above every load one more level is looked at."""

SEARCHED = 5
"""How many more places of a search are looked at: it may go on where nobody sticks out."""

_KEPT = 40_000
"""How many measurements are remembered."""


class Measured(NamedTuple):
    """What is measured of one side of a relation, whatever the budget."""

    values: tuple[float | Fraction, ...]
    """The truncated value at each threshold."""
    found: Any
    """What the search for a threshold goes by."""
    truth: float


_memory: dict[Hashable, Measured] = {}

Parts = Callable[[], list[tuple[int, Truncation]]]


def measured(
    mechanism: TruncationMechanism,
    query: Query,
    relation: Relation,
    parts: Parts,
    taus: tuple[float, ...],
    search: Hashable = None,
    look: Callable[[Truncation], Any] = lambda _: None,
) -> list[Measured]:
    """Return the numbers of each side of a made-up relation; each is computed once.

    ``look`` returns what a search goes by, and follows from ``search``.
    """
    sides = relation.parts() if mechanism.signed(query) else relation.parts()[:1]
    # Unless a mechanism has its own way with them, the sides alone decide.
    real = TruncationMechanism
    made = type(mechanism).parts, type(mechanism).truncations
    honest = made == (real.parts, real.truncations)
    found = []
    for index, side in enumerate(sides):
        content = relation_key(side) if honest else (index, query, relation_key(relation))
        # Solvers use their gap, so that the order of things might matter: it is in the key.
        key = made, content, taus, search
        if key not in _memory:
            if len(_memory) >= _KEPT:
                _memory.clear()
            _, truncation = parts()[index]
            values = tuple(truncation.value(tau, GAP * tau) for tau in taus)
            _memory[key] = Measured(values, look(truncation), side.total)
        found.append(_memory[key])
    return found


def law_of_total(
    mechanism: TruncationMechanism,
    query: Query,
    settings: Parameters,
    relation: Relation,
    parts: Parts,
) -> Law:
    """Return the law of a released total: of the recursive mechanism, a search, or the race.

    The recursive mechanism draws a level with noise, and a value with the noise that fits its
    threshold; the search by sparse vector a level for each threshold until one is enough, and then
    the same; the race a value with noise at every threshold.
    """
    sides: list[TruncatedSide] = []
    name = name_of(mechanism)
    if name == "recursive":
        chosen = RecursiveSettings.read(settings)
        grid, levels = level_grid(chosen), chosen.thresholds
        for side in measured(
            mechanism, query, relation, parts, grid.taus, levels, lambda t: least_level(t, levels)
        ):
            sides.append(
                Truncated(
                    grid,
                    *_snapped(grid, side),
                    side.found,
                    chosen.epsilon_select,
                    integral=query.integral,
                )
            )
    elif name == "sparse_vector":
        searched = SparseVectorSettings.read(settings)
        grid, looked = place_grid(searched)
        for side in measured(
            mechanism, query, relation, parts, grid.taus, looked, lambda t: needed(t, looked)
        ):
            sides.append(
                FirstFit(
                    grid,
                    *_snapped(grid, side),
                    side.found,
                    searched.stopping,
                    searched.epsilon_limit,
                    searched.epsilon_stop,
                    integral=query.integral,
                )
            )
    else:
        raced = RaceSettings.read(settings)
        grid = _lane_grid(raced.thresholds, raced.epsilon)
        for side in measured(mechanism, query, relation, parts, grid.taus):
            sides.append(Lanes(grid, *_snapped(grid, side), integral=query.integral))
    return sides[0] if len(sides) == 1 else Difference(*sides)


def _snapped(grid: Grid, side: Measured) -> tuple[tuple[int, ...], float]:
    listed = list(zip(grid.taus, grid.lattices, side.values, strict=True))
    above = max((value - side.truth) / (GAP * tau) for tau, _, value in listed)
    return tuple(lattice.snap(value) for _, lattice, value in listed), above


@lru_cache(maxsize=256)
def level_grid(chosen: RecursiveSettings) -> Grid:
    """Return the levels of the recursive mechanism, up to one that cuts nobody and one beyond."""
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
def place_grid(chosen: SparseVectorSettings) -> tuple[Grid, tuple[float, ...]]:
    """Return the places of a search, up to some that cut nobody and one beyond.

    With it come the thresholds that are looked at, up to the first that nobody sticks out of.
    """
    last = 0
    while min(chosen.searched(last), chosen.threshold(last)) < HEAVIEST:
        last += 1
    places = (*range(last + SEARCHED), last + FAR)
    taus = tuple(chosen.threshold(at) for at in places)
    noises = [chosen.noise(tau) for tau in taus]
    above = tuple(noise.scale / noise.lattice.step for noise in noises)
    ratio = chosen.epsilon_above / chosen.epsilon_below
    grid = Grid(
        places,
        taus,
        tuple(noise.lattice for noise in noises),
        above,
        tuple(scale * chosen.epsilon_above for scale in above),
        tuple(-chosen.shift(tau, noise) for tau, noise in zip(taus, noises, strict=True)),
        tuple(scale * ratio for scale in above),
    )
    return grid, tuple(chosen.searched(at) for at in places[: last + 1])


def needed(truncation: Truncation, looked: Sequence[float]) -> tuple[int, ...]:
    """Return the least level that allows for the deletion at each threshold; none is below zero."""
    found, level = [], 0
    # From the largest threshold down the deletion grows.
    for tau in reversed(looked):
        while not truncation.decide(tau, level):
            level += 1
        found.append(level)
    return tuple(reversed(found))


@lru_cache(maxsize=256)
def _lane_grid(count: int, epsilon: Fraction) -> Grid:
    lanes = [Lane(index, count, epsilon) for index in range(1, count + 1)]
    scales = tuple(lane.scale / lane.lattice.step for lane in lanes)
    return Grid(
        tuple(range(1, count + 1)),
        tuple(lane.tau for lane in lanes),
        tuple(lane.lattice for lane in lanes),
        scales,
        tuple(scale * epsilon / count for scale in scales),
        tuple(lane.penalty for lane in lanes),
    )


OPTIONS: dict[str, tuple[Parameters, ...]] = {
    # With the least threshold that is usual, tiny relations are never cut: it is examined, and so
    # are thresholds among their loads.
    "recursive": ({"theta": "0.5", "beta": "0.35", "reach": "1"}, {}),
    "sparse_vector": ({"start": "0.5", "step": "3", "reach": "1", "stopping": 3}, {}),
    "race": ({"bound": "8"}, {"bound": "1"}, {"bound": "100"}),
}


class Remembered:
    """A truncation whose programs are solved once: thousands of runs ask for the same few."""

    def __init__(self, truncation: Truncation) -> None:
        self.decide = lru_cache(maxsize=None)(truncation.decide)
        self.estimate = lru_cache(maxsize=None)(truncation.estimate)
        self.ceiling = lru_cache(maxsize=None)(truncation.ceiling)
        self.value = lru_cache(maxsize=None)(truncation.value)


def draw_totals(
    mechanism: TruncationMechanism, terms: Terms, settings: Parameters, dataset: Dataset
) -> Callable[..., Outcome]:
    """Return how runs are drawn: a new run each time, on programs that are solved once."""
    if type(mechanism).run is not TruncationMechanism.run:
        return lambda source=None: mechanism.run(terms, settings, dataset, source)
    parts: Any = [(sign, Remembered(side)) for sign, side in mechanism.parts(terms, dataset)]
    return lambda source=None: mechanism.run_parts(terms.query, settings, parts, source)


def seen_total(outcome: Outcome) -> Hashable:
    """Return the thresholds that a released total shows, and its bin."""
    shown = tuple(outcome.details.get("thresholds", ()))
    if "threshold" in outcome.details:
        shown = (outcome.details["threshold"],)
    return shown, int(place(shown, np.array([outcome.value]))[0])


@registry.register("audit", "relation", "view")
class AuditedRelations(AuditView):
    """Relations under participant privacy: conjunctions, other annotations, signed weights."""

    name: ClassVar[str] = "relation"
    private: ClassVar[tuple[str, ...]] = ("error", "threshold", "thresholds")
    examined_with: ClassVar[Mapping[str, Sequence[Parameters]]] = OPTIONS

    def world(self, size: int) -> World:
        return tiny_world(size)

    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        if not isinstance(mechanism, TruncationMechanism):
            return ()
        unit = Unit.of("participant")
        return [q for q in (total(), total(signed=True)) if mechanism.supports(q, unit)]

    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        assert isinstance(mechanism, TruncationMechanism)
        relation = mechanism.relation(terms, dataset)
        law = law_of_total(
            mechanism, terms.query, settings, relation, lambda: mechanism.parts(terms, dataset)
        )
        return Description((("answer", law),))

    def draw(self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Any) -> Any:
        assert isinstance(mechanism, TruncationMechanism)
        return draw_totals(mechanism, terms, settings, dataset)

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        # The laws bin what leaves, as observe does.
        return lambda parts: parts[0]

    def observe(self, outcome: Outcome) -> Hashable:
        return seen_total(outcome)

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
