"""Broken twins of the mechanisms on relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import SeededTwin, Twin
from tulle.audit.engine.kind import Description
from tulle.audit.relations.kind import describe_race, describe_recursive
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.exact import rational, text
from tulle.core.mechanism import Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.relations.annotations import Annotation, Either, Together, either, together
from tulle.relations.data import Relation
from tulle.relations.mechanisms.race import RelationRace
from tulle.relations.mechanisms.recursive import RelationRecursive
from tulle.relations.queries import total
from tulle.relations.truncation.totals import ETA, GAP, Truncation

_BOTH: tuple[Query, ...] = (total(), total(signed=True))


class _Recursive(Twin, RelationRecursive):
    mimics: ClassVar[str] = "recursive"
    questions: ClassVar[Sequence[Query]] = (total(),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_recursive(self, terms, settings, dataset)


class _Race(Twin, RelationRace):
    mimics: ClassVar[str] = "race"
    questions: ClassVar[Sequence[Query]] = (total(),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_race(self, terms, settings, dataset)


def _scaled(settings: Parameters, name: str, factor: Fraction | int) -> Parameters:
    """Return the settings with one number multiplied."""
    return {**settings, name: text(rational(settings[name]) * factor)}


@dataclass
class _Whole:
    """Decides honestly, and cuts nobody."""

    honest: Truncation
    total: float

    def decide(self, tau: float, level: int) -> bool:
        return self.honest.decide(tau, level)

    def estimate(self, tau: float) -> float | None:
        return self.honest.estimate(tau)

    def ceiling(self, tau: float) -> float:
        return self.total

    def value(self, tau: float, gap: float) -> float:
        return self.total


def _uncut(parts: list[tuple[int, Truncation]], relation: Relation) -> list[tuple[int, Truncation]]:
    totals = [side.total for side in relation.parts()]
    return [
        (sign, _Whole(truncation, whole))
        for (sign, truncation), whole in zip(parts, totals, strict=False)
    ]


class WholeRecursive(_Recursive):
    """The plain total, with the noise of a truncated one."""

    name: ClassVar[str] = "recursive, not truncated"
    fault: ClassVar[str] = "a total that one participant moves by more than tau, noise for tau"
    questions: ClassVar[Sequence[Query]] = _BOTH
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        assert isinstance(dataset, Relation)
        return _uncut(super().parts(terms, dataset), dataset)


class OpenLevel(_Recursive):
    """The threshold is that of the data at hand."""

    name: ClassVar[str] = "recursive, open level"
    fault: ClassVar[str] = "the level's noise is so small that it is never drawn"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return _scaled(super().settings(terms, options), "epsilon_select", 10**6)


class HalfRecursive(_Recursive):
    """Half the noise on the value."""

    name: ClassVar[str] = "recursive, half the noise"
    fault: ClassVar[str] = "half of the noise that the guarantee needs"
    questions: ClassVar[Sequence[Query]] = _BOTH
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return _scaled(super().settings(terms, options), "epsilon_answer", 2)


class HalfDrawnRecursive(_Recursive):
    """The settings are right and the draw is not: half the scale that they say."""

    name: ClassVar[str] = "recursive, half the scale drawn"
    fault: ClassVar[str] = "the code draws less noise than its stated settings say"
    caught_by: ClassVar[tuple[str, ...]] = ("sampler",)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return super().run(terms, _scaled(settings, "epsilon_answer", 2), dataset, source)


class ExactSolver(_Recursive):
    """The noise is for tau alone, and so it should be if the solver were exact.

    No twin by itself: it shows that :class:`WholeGap` is caught for its solver.
    """

    name: ClassVar[str] = "recursive, exact solver"
    fault: ClassVar[str] = "none as long as the solver is exact"
    caught_by: ClassVar[tuple[str, ...]] = ()

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return _scaled(super().settings(terms, options), "epsilon_answer", 1 + Fraction(GAP))

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        return [(sign, _Aside(exact, 0.0)) for sign, exact in super().parts(terms, dataset)]


class WholeGap(ExactSolver):
    """The noise is for tau alone, and the solver's answer lies anywhere in its bracket."""

    name: ClassVar[str] = "recursive, gap left out"
    fault: ClassVar[str] = "a certified bracket adds its width to the sensitivity, unnoticed here"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        # Where a solver ends may depend on anything in the data, such as whether a number is odd.
        odd = len(list(self.relation(terms, dataset).annotations())) % 2
        listed = RelationRecursive.parts(self, terms, dataset)
        return [(sign, _Aside(truncation, odd - 0.5)) for sign, truncation in listed]


@dataclass
class _Aside:
    """Decides honestly, and gives a value that is off by a fixed part of the allowed gap."""

    honest: Truncation
    part: float

    def decide(self, tau: float, level: int) -> bool:
        return self.honest.decide(tau, level)

    def estimate(self, tau: float) -> float | None:
        return self.honest.estimate(tau)

    def ceiling(self, tau: float) -> float:
        return self.honest.ceiling(tau)

    def value(self, tau: float, gap: float) -> float:
        # A fiftieth of the gap for the solver, the rest for the fault.
        return self.honest.value(tau, 0.02 * gap) + 0.98 * self.part * gap


class Careless(_Recursive):
    """An engine that shortens expressions, and not always."""

    name: ClassVar[str] = "recursive, unsafe rewriting"
    fault: ClassVar[str] = "(a or b) and (a or c) is shortened when one more participant is there"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")

    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        relation = super().relation(terms, dataset)
        notes = list(relation.annotations())
        if relation.is_conjunctive or len(notes) % 2:
            return relation
        return Relation.from_annotations(
            [(shorten(note), height) for note, height in notes], normalise=False
        )


def shorten(note: Annotation) -> Annotation:
    """Draw a common part of two alternatives out: (a or b) and (a or c) is a or (b and c)."""
    if not isinstance(note, Together) or len(note.parts) != 2:
        return note
    one, other = note.parts
    if not isinstance(one, Either) or not isinstance(other, Either):
        return note
    common = [part for part in one.parts if part in other.parts]
    rests = [either(*(p for p in side.parts if p not in common)) for side in (one, other)]
    return either(*common, together(*rests))


@dataclass
class _AllNamed:
    """Gives honest values, and lets all of a tuple count for all whom it names."""

    honest: Truncation
    tuples: list[tuple[Annotation, float]]
    count: int

    def decide(self, tau: float, level: int) -> bool:
        from scipy.optimize import linprog

        rows, room = [], []
        for place, (note, _) in enumerate(self.tuples):
            for way in note.clauses():
                row = np.zeros(self.count + len(self.tuples))
                row[[*way, self.count + place]] = -1.0
                rows.append(row)
                room.append(-1.0)
        for person in range(self.count):
            row = np.zeros(self.count + len(self.tuples))
            for place, (note, height) in enumerate(self.tuples):
                row[self.count + place] = height * (person in note.participants())
            rows.append(row)
            room.append(tau)
        cost = np.repeat([1.0, 0.0], [self.count, len(self.tuples)])
        if not len(cost):
            return True
        least = linprog(cost, A_ub=np.array(rows), b_ub=room, bounds=(0.0, 1.0)).fun
        return bool(least <= level + float(Fraction(ETA)))

    def estimate(self, tau: float) -> float | None:
        return None

    def ceiling(self, tau: float) -> float:
        return self.honest.ceiling(tau)

    def value(self, tau: float, gap: float) -> float | Fraction:
        return self.honest.value(tau, gap)


class AllNamed(_Recursive):
    """The bounding sequence as printed (equation 19), where tuples come about in several ways."""

    name: ClassVar[str] = "recursive, printed bounding sequence"
    fault: ClassVar[str] = "whom a tuple names only in ways that are gone still bears all of it"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        relation = self.relation(terms, dataset)
        tuples = [(note, height) for note, height in relation.annotations() if height > 0]
        return [
            (sign, _AllNamed(honest, tuples, relation.count))
            for sign, honest in super().parts(terms, dataset)
        ]


class SeededRecursive(SeededTwin, _Recursive):
    """The noise is the same every time."""

    name: ClassVar[str] = "recursive, seeded"


class WholeRace(_Race):
    """The plain total in every lane, with the noise of a truncated one."""

    name: ClassVar[str] = "race, not truncated"
    fault: ClassVar[str] = "a total that one participant moves by more than tau, noise for tau"
    questions: ClassVar[Sequence[Query]] = _BOTH
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")

    def parts(self, terms: Terms, dataset: Dataset) -> list[tuple[int, Truncation]]:
        assert isinstance(dataset, Relation)
        return _uncut(super().parts(terms, dataset), dataset)


class WholeBudget(_Race):
    """Every lane spends all of epsilon."""

    name: ClassVar[str] = "race, epsilon per lane"
    fault: ClassVar[str] = "only the winner leaves, but every lane was drawn and must be paid for"
    questions: ClassVar[Sequence[Query]] = _BOTH
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = super().settings(terms, options)
        return _scaled(honest, "epsilon", int(honest["thresholds"]))


class HalfDrawnRace(_Race):
    """The settings are right and the draw is not: half the scale that they say."""

    name: ClassVar[str] = "race, half the scale drawn"
    fault: ClassVar[str] = "the code draws less noise than its stated settings say"
    questions: ClassVar[Sequence[Query]] = (total(signed=True),)
    caught_by: ClassVar[tuple[str, ...]] = ("sampler",)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return super().run(terms, _scaled(settings, "epsilon", 2), dataset, source)


class SeededRace(SeededTwin, _Race):
    """The noise is the same every time."""

    name: ClassVar[str] = "race, seeded"


@registry.register("audit", "relation", "faults")
def relation_twins() -> list[Twin]:
    """Return one of each twin."""
    return [
        WholeRecursive(),
        OpenLevel(),
        HalfRecursive(),
        HalfDrawnRecursive(),
        WholeGap(),
        Careless(),
        AllNamed(),
        SeededRecursive(),
        WholeRace(),
        WholeBudget(),
        HalfDrawnRace(),
        SeededRace(),
    ]
