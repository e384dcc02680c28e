"""The audit's view of genotypes: all tiny tables of cases and controls on two or three SNPs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, ClassVar

import numpy as np

from tulle.audit.contributions.laws import BlockVector
from tulle.audit.engine.broken import name_of
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.laws import laplace_vector
from tulle.audit.engine.world import World
from tulle.audit.genomes.laws import ChosenScores, KNormVector, Selection
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.genomes.data import MISSING, Genotypes
from tulle.genomes.gaussian import GaussianSettings
from tulle.genomes.knorm import KNormSettings, is_halved
from tulle.genomes.laplace import Laplace, LaplaceSettings, Numbers
from tulle.genomes.queries import (
    AlleleCounts,
    TopSnps,
    allele_counts,
    chi_squares,
    p_values,
    top_snps,
)
from tulle.genomes.top import TopScoresSettings, whole_scores


@dataclass(frozen=True)
class AskedGenotypes(Query):
    """A question of the audit: the question proper, per whom, on how many SNPs."""

    query: Query
    unit: str
    snps: int = 1
    complete: bool = False
    name: ClassVar[str] = "asked"
    kind: ClassVar[str] = "genotypes"

    def truth(self, dataset: Genotypes) -> Any:
        return self.query.truth(dataset)

    def __str__(self) -> str:
        declared = " of a complete table" if self.complete else ""
        return f"{self.query}{declared} per {self.unit}"


_COUNTS = tuple(
    AskedGenotypes(allele_counts(), unit, snps, complete)
    for complete in (False, True)
    for unit in ("row", "participant")
    for snps in (1, 2)
)
_TOP = (
    AskedGenotypes(top_snps(1), "row", 2),
    AskedGenotypes(top_snps(2), "row", 3),
    AskedGenotypes(top_snps(1, by="chi_square"), "row", 2),
    AskedGenotypes(top_snps(1, ratio="1/2"), "participant", 2),
)
_SCORED = (AskedGenotypes(top_snps(1, scores=True), "row", 2),)

_TESTS = (AskedGenotypes(chi_squares(), "row"), AskedGenotypes(p_values(), "row"))

QUESTIONS: dict[str, tuple[AskedGenotypes, ...]] = {
    "laplace": (*_COUNTS, *_TESTS),
    "knorm": (*_COUNTS, *_TESTS),
    # Joint laws of Gaussian noise are summed over few numbers only.
    "gaussian": (*(asked for asked in _COUNTS if asked.snps == 1), *_TESTS),
    "one_shot": (*_TOP, *_SCORED),
    "peeling": (*_TOP, *_SCORED),
    "exponential": (*_TOP, *_SCORED),
}
"""The questions on which each mechanism is examined."""


def describe(name: str, terms: Terms, settings: Parameters, dataset: Genotypes) -> Description:
    """Return the closed form of a run of a registered mechanism."""
    if name == "laplace":
        return describe_noise(terms, settings, _centre(terms, settings, dataset))
    if name == "knorm":
        return describe_knorm(terms, settings, _centre(terms, settings, dataset))
    if name == "gaussian":
        return describe_gaussian(settings, _centre(terms, settings, dataset))
    return describe_choice(name, terms, settings, dataset)


def _centre(terms: Terms, settings: Parameters, dataset: Genotypes) -> Any:
    return Laplace().centre(terms, Numbers.read(settings), dataset)


def describe_noise(terms: Terms, settings: Parameters, centre: Any) -> Description:
    """Return noise on every entry; the sensitivity claimed is that of all entries together."""
    scale = LaplaceSettings.read(settings).scale
    law = laplace_vector(np.ravel(centre), scale, scale * terms.epsilon)
    return Description((("numbers", law),))


def describe_knorm(terms: Terms, settings: Parameters, centre: Any) -> Description:
    """Return noise with one radius for the numbers of each group."""
    chosen = KNormSettings.read(settings)
    step, scale = chosen.step, chosen.scale
    moved = scale * terms.epsilon
    if chosen.range is not None:
        law = KNormVector(tuple(centre.tolist()), scale, moved, 1, False)
        return Description((("numbers", law),))
    halved = is_halved(terms, chosen)
    parts = []
    for place, sums in enumerate(centre * int(1 / step)):
        if halved:
            d, m = sums[:, 0], sums[:, 1]
            sums = np.stack((d + m, m - d), axis=-1)
        flat = tuple(sums.reshape(-1).tolist())
        parts.append((f"group {place}", KNormVector(flat, scale, moved, int(1 / step), halved)))
    return Description(tuple(parts))


def describe_gaussian(settings: Parameters, centre: Any) -> Description:
    """Return Gaussian noise on every entry."""
    flat = tuple(np.asarray(centre).reshape(-1).tolist())
    chosen = GaussianSettings.read(settings)
    variance, squared = chosen.variance, chosen.squared
    labels, noise = (0,) * len(flat), (variance,) * len(flat)
    law = BlockVector("gaussian", flat, labels, noise, (squared,), squared)
    return Description((("numbers", law),))


def describe_choice(
    way: Any, terms: Terms, settings: Parameters, dataset: Genotypes
) -> Description:
    """Return the choice and, where they are released, the noise on the chosen scores."""
    assert isinstance(terms.query, TopSnps)
    chosen = TopScoresSettings.read(settings)
    scores = tuple(whole_scores(terms.query, chosen, dataset).tolist())
    count, moved = chosen.count, chosen.sensitivity
    law = Selection(way, scores, count, chosen.selection_scale, moved)
    parts: tuple[tuple[str, Any], ...] = (("choice", law),)
    if chosen.score_scale is not None:
        noise = ChosenScores(scores, count, chosen.score_scale, moved)
        parts = (*parts, ("scores", noise))
    return Description(parts)


def table(people: Sequence[tuple[int, ...]], snps: int, complete: bool = False) -> Genotypes:
    """Return the made-up table in which each person is (label, genotypes...)."""
    rows = np.array(people, dtype=np.int64).reshape(len(people), snps + 1)
    return Genotypes(rows[:, 1:], cases=rows[:, 0], complete=complete)


def key(dataset: Dataset) -> Hashable:
    """Return what tells tables apart: their records. For made-up tables only."""
    assert isinstance(dataset, Genotypes)
    return len(dataset.snps), dataset.records()


@registry.register("audit", "genotypes", "view")
class AuditedGenotypes(AuditView):
    """Up to four people, cases and controls, with every genotype on one or two SNPs."""

    name: ClassVar[str] = "genotypes"

    def world(self, size: int) -> World:
        return _world(max(2, min(size - 1, 3)), 1, "row")

    def world_for(self, size: int, query: Query) -> World:
        assert isinstance(query, AskedGenotypes)
        people = 2 if query.snps > 1 else max(2, min(size, 4))
        return _world(people, query.snps, query.unit, query.complete)

    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        return QUESTIONS.get(mechanism.name, ())

    def drawn_of(self, asked: Sequence[Query], name: str) -> Sequence[Query]:
        # Draws over whole lattices and over many entries at once are too thin to be compared.
        return [
            query
            for query in asked
            if isinstance(query, AskedGenotypes) and query not in _SCORED and _is_countable(query)
        ]

    def proper(self, query: Query, dataset: Dataset, unit: Unit) -> tuple[Query, Unit]:
        assert isinstance(query, AskedGenotypes)
        return query.query, Unit.of(query.unit)

    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        assert isinstance(dataset, Genotypes)
        return describe(name_of(mechanism), terms, settings, dataset)

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        def flat(parts: tuple[Any, ...]) -> Hashable:
            numbers = [number for group in parts for number in group]
            if "sizes" in settings:
                released = Numbers.read(settings)
                assert released.groups is not None
                sums = np.array(numbers).reshape(released.groups, -1)
                numbers = released.counts(sums).ravel().tolist()
            return tuple(numbers)

        return flat if name_of(mechanism) == "knorm" else lambda parts: flat(parts[:1])

    def observe(self, outcome: Outcome) -> Hashable:
        if isinstance(outcome.value, dict):
            return tuple(outcome.value["places"])
        return tuple(np.asarray(outcome.value).reshape(-1).tolist())

    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        assert isinstance(query, AskedGenotypes)
        people = [(1, *(2,) * query.snps), (0, *(0, 1, 2)[: query.snps])]
        changed = [(1, *(0, 2, 0)[: query.snps]), people[1]]
        if query.unit == "participant":
            changed = people[1:]
        made = [table(rows, query.snps, query.complete) for rows in (people, changed)]
        return made[0], made[1]

    def show(self, dataset: Dataset) -> str:
        assert isinstance(dataset, Genotypes)
        words = {MISSING: "?", 0: "0", 1: "1", 2: "2"}
        people = [
            ("case " if person[0] else "control ") + "".join(words[int(g)] for g in person[1:])
            for person in dataset.records()
        ]
        return ", ".join(people) or "nobody"

    def odd_questions(self) -> Sequence[Query]:
        return [
            allele_counts(),
            allele_counts([7]),
            chi_squares([0]),
            p_values(),
            top_snps(1),
            top_snps(9),
            top_snps(1, ratio="1e-30"),
            top_snps(1, by="chi_square", scores=True),
        ]


def _is_countable(asked: AskedGenotypes) -> bool:
    return isinstance(asked.query, TopSnps) or (
        isinstance(asked.query, AlleleCounts) and asked.snps == 1
    )


@lru_cache(maxsize=16)
def _world(people: int, snps: int, unit: str, complete: bool = False) -> World:
    """Return all tables of so many people; under ``participant``, of at most so many."""
    # On three SNPs the two extremes are enough: they are what moves scores furthest.
    known = (0, 1, 2) if complete else (MISSING, 0, 1, 2)
    records = list(product(known if snps < 3 else (0, 2), repeat=snps))
    made = []
    for count in range(people + 1) if unit == "participant" else (people,):
        for cases in range(count + 1):
            for chosen in combinations_with_replacement(records, cases):
                for others in combinations_with_replacement(records, count - cases):
                    listed = [(1, *r) for r in chosen] + [(0, *r) for r in others]
                    # A question that compares the groups needs somebody in both.
                    if unit == "participant" or 0 < cases < count:
                        made.append(table(listed, snps, complete))
    many = f"at most {people}" if unit == "participant" else f"{people}"
    return World.of(f"all tables of {many} people, {snps} SNPs, per {unit}", unit, made, key)
