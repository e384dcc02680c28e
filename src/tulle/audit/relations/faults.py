"""Broken versions of the mechanisms on relations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.faults import (
    BOTH,
    broken,
    draw_less,
    halve_noise,
    scaled,
)
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Terms
from tulle.core.query import Query
from tulle.relations.annotations import Annotation, Either, Together, either, together
from tulle.relations.data import Relation
from tulle.relations.queries import total
from tulle.relations.truncation.mechanism import TruncationMechanism
from tulle.relations.truncation.totals import ETA, GAP, Truncation

ALL: tuple[Query, ...] = (total(), total(signed=True))
PLAIN, SIGNED = ALL[:1], ALL[1:]

Parts = list[tuple[int, Truncation]]


@dataclass
class _Changed:
    """The truncation of one side with another value, or another decision, than the honest one."""

    honest: Truncation
    other_value: Callable[[Truncation, float, float], Any] | None = None
    other_decision: Callable[[float, int], bool] | None = None
    most: float | None = None

    def decide(self, tau: float, level: int) -> bool:
        return (self.other_decision or self.honest.decide)(tau, level)

    def estimate(self, tau: float) -> float | None:
        return None if self.other_decision else self.honest.estimate(tau)

    def ceiling(self, tau: float) -> float:
        return self.honest.ceiling(tau) if self.most is None else self.most

    def value(self, tau: float, gap: float) -> float | Fraction:
        if self.other_value is None:
            return self.honest.value(tau, gap)
        found: float = self.other_value(self.honest, tau, gap)
        return found


def not_truncated(mechanism: TruncationMechanism, questions: tuple[Query, ...]) -> Broken:
    """Give the plain total of each side the noise of a truncated one."""

    def truncations(self: TruncationMechanism, query: Query, relation: Relation) -> Parts:
        honest = type(mechanism).truncations(self, query, relation)
        totals = [side.total for side in relation.parts()]
        return [
            (sign, _Changed(side, lambda *_, whole=whole: whole, most=whole))
            for (sign, side), whole in zip(honest, totals, strict=False)
        ]

    fault = "a total that one participant moves by more than tau, noise for tau"
    return broken(mechanism, "not truncated", fault, questions, BOTH, truncations=truncations)


def free_choice(mechanism: TruncationMechanism, questions: tuple[Query, ...]) -> Broken:
    """Choose the threshold with noise so small that it is never drawn."""
    return halve_noise(
        mechanism,
        "epsilon_select",
        questions,
        10**6,
        what="open level",
        fault="the level's noise is so small that the threshold is that of the data",
    )


def no_gap(mechanism: TruncationMechanism, *, exact: bool = False) -> Broken:
    """Add noise for tau alone, where the solver's answer lies anywhere in its bracket.

    ``exact`` has the same noise and a solver without a gap: then there is no fault, which shows
    that the other is caught for its solver.
    """

    def truncations(self: TruncationMechanism, query: Query, relation: Relation) -> Parts:
        # Where a solver ends may depend on anything in the data, such as whether a number is odd.
        odd = len(list(relation.annotations())) % 2
        # A fiftieth of the gap for the solver, the rest for the fault.
        off = 0.0 if exact else 0.98 * (odd - 0.5)
        return [
            (sign, _Changed(side, lambda s, tau, gap: s.value(tau, 0.02 * gap) + off * gap))
            for sign, side in type(mechanism).truncations(self, query, relation)
        ]

    return broken(
        mechanism,
        "exact solver" if exact else "gap left out",
        "a certified bracket adds its width to the sensitivity, unnoticed here",
        PLAIN,
        () if exact else ("exact",),
        settings=lambda honest, _: scaled(honest, ["epsilon_answer"], 1 + Fraction(GAP)),
        truncations=truncations,
    )


def unsafe_rewriting(mechanism: TruncationMechanism) -> Broken:
    """Shorten expressions, and not always."""

    def relation(self: TruncationMechanism, terms: Terms, dataset: Dataset) -> Relation:
        honest = type(mechanism).relation(self, terms, dataset)
        notes = list(honest.annotations())
        if honest.is_conjunctive or len(notes) % 2:
            return honest
        return Relation.from_annotations(
            [(shorten(note), height) for note, height in notes], normalise=False
        )

    fault = "(a or b) and (a or c) is shortened when one more participant is there"
    return broken(mechanism, "unsafe rewriting", fault, PLAIN, BOTH, relation=relation)


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


def printed_bounding_sequence(mechanism: TruncationMechanism) -> Broken:
    """Decide by equation 19, where tuples come about in several ways."""

    def truncations(self: TruncationMechanism, query: Query, relation: Relation) -> Parts:
        tuples = [(note, height) for note, height in relation.annotations() if height > 0]

        def decide(tau: float, level: int) -> bool:
            return _least_deletion(tuples, relation.count, tau) <= level + float(Fraction(ETA))

        honest = type(mechanism).truncations(self, query, relation)
        return [(sign, _Changed(side, other_decision=decide)) for sign, side in honest]

    fault = "whom a tuple names only in ways that are gone still bears all of it"
    return broken(mechanism, "printed bounding sequence", fault, PLAIN, truncations=truncations)


def _least_deletion(tuples: list[tuple[Annotation, float]], count: int, tau: float) -> float:
    """Return the least deletion if all of a tuple counts for all whom it names, as printed."""
    from scipy.optimize import linprog

    rows, room = [], []
    for place, (note, _) in enumerate(tuples):
        for way in note.clauses():
            row = np.zeros(count + len(tuples))
            row[[*way, count + place]] = -1.0
            rows.append(row)
            room.append(-1.0)
    for person in range(count):
        row = np.zeros(count + len(tuples))
        for place, (note, height) in enumerate(tuples):
            row[count + place] = height * (person in note.participants())
        rows.append(row)
        room.append(tau)
    cost = np.repeat([1.0, 0.0], [count, len(tuples)])
    if not len(cost):
        return 0.0
    return float(linprog(cost, A_ub=np.array(rows), b_ub=room, bounds=(0.0, 1.0)).fun)


def open_limit(mechanism: TruncationMechanism, questions: tuple[Query, ...]) -> Broken:
    """Leave out the noise that all thresholds share: the search stops as the data say, all but."""
    return halve_noise(
        mechanism,
        "epsilon_limit",
        questions,
        10**6,
        what="no noise on the limit",
        fault="each threshold has noise of its own, the limit none: every look must be paid for",
    )


def no_noise_at_the_stop(mechanism: TruncationMechanism, questions: tuple[Query, ...]) -> Broken:
    """Leave out the noise of each threshold: only the limit has some."""
    return halve_noise(
        mechanism,
        "epsilon_stop",
        questions,
        10**6,
        what="no noise at the stop",
        fault="the limit has noise and the thresholds have none: some stops cannot come about",
    )


def both_directions_full(mechanism: TruncationMechanism, questions: tuple[Query, ...]) -> Broken:
    """Let the answer's noise be as narrow above as it is below."""
    return broken(
        mechanism,
        "as narrow above as below",
        "what the search spends on those who leave is spent again on the answer",
        questions,
        settings=lambda honest, _: {"epsilon_above": honest["epsilon_below"]},
    )


def forget_owner(mechanism: TruncationMechanism, questions: tuple[Query, ...]) -> Broken:
    """Let each tuple forget one of the participants that it needs, if it needs several."""

    def truncations(self: TruncationMechanism, query: Query, relation: Relation) -> Parts:
        return type(mechanism).truncations(self, query, forget_one(relation))

    fault = "who leaves does not take along all tuples that need them"
    return broken(mechanism, "an owner forgotten", fault, questions, truncations=truncations)


def forget_one(relation: Relation) -> Relation:
    """Return the relation in which every tuple has lost the last of several participants."""
    sizes = np.diff(relation.offsets)
    kept = np.ones(len(relation.participants), dtype=bool)
    kept[relation.offsets[1:][sizes > 1] - 1] = False
    offsets = np.concatenate([[0], np.cumsum(np.where(sizes > 1, sizes - 1, sizes))])
    return Relation(offsets, relation.participants[kept], relation.weights, relation.count)


def epsilon_per_lane(mechanism: TruncationMechanism, questions: tuple[Query, ...]) -> Broken:
    """Let every lane of the race spend all of epsilon."""
    return broken(
        mechanism,
        "epsilon per lane",
        "only the winner leaves, but every lane was drawn and must be paid for",
        questions,
        settings=lambda honest, _: scaled(honest, ["epsilon"], int(honest["thresholds"])),
    )


@registry.register("audit", "relation", "faults")
def relation_faults() -> list[Broken]:
    """Return all broken versions."""
    recursive, race, search = (_of(name) for name in ("recursive", "race", "sparse_vector"))
    return [
        not_truncated(search, ALL),
        open_limit(search, PLAIN),
        no_noise_at_the_stop(search, PLAIN),
        both_directions_full(search, PLAIN),
        draw_less(search, "epsilon_above", PLAIN, method="run_parts"),
        unsafe_rewriting(search),
        printed_bounding_sequence(search),
        not_truncated(recursive, ALL),
        free_choice(recursive, PLAIN),
        draw_less(recursive, "epsilon_answer", PLAIN, method="run_parts"),
        no_gap(recursive),
        unsafe_rewriting(recursive),
        printed_bounding_sequence(recursive),
        not_truncated(race, ALL),
        epsilon_per_lane(race, ALL),
        draw_less(race, "epsilon", SIGNED, method="run_parts"),
    ]


def _of(name: str) -> TruncationMechanism:
    made = registry.make_mechanism("relation", name)
    assert isinstance(made, TruncationMechanism)
    return made
