"""The audit's view of contributions: all tiny tables on a grid of two cells."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, ClassVar

import numpy as np

from tulle.audit.contributions.found_cells import cell_findings
from tulle.audit.contributions.laws import BlockVector, ChoiceLaw
from tulle.audit.engine.broken import name_of
from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.laws import laplace_vector
from tulle.audit.engine.world import World
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.matrices.contributions.block_mechanism import (
    BlockSettings,
    limits_from,
    masses,
    weights_query,
)
from tulle.matrices.contributions.blocks import frame_of
from tulle.matrices.contributions.clipping import clip
from tulle.matrices.contributions.data import Contributions
from tulle.matrices.contributions.found_cells import found_cells
from tulle.matrices.contributions.participants import (
    Participants,
    ParticipantsSettings,
    participants,
)
from tulle.matrices.contributions.partition import GAUSSIAN, LAPLACE
from tulle.matrices.contributions.private_bounds import (
    BlockBounds,
    BoundSettings,
    block_bounds,
)
from tulle.matrices.contributions.private_partition import (
    BlockPartition,
    VoteSettings,
    block_partition,
    labelled,
    votes,
)
from tulle.matrices.contributions.queries import weights

ONE_BLOCK = weights(bound=2, total=2, blocks=1, step=1)
TWO_BLOCKS = weights(bound=2, labels=[[0, 1]], block_total=[1, 2], total=2, step=1)
APART = weights(bound=[[1, 2]], blocks=2, step=1)
LENGTHS = weights(bound=3, labels=[[0, 1]], block_length=[1, 2], length=2, step=1)
HALF = weights(bound=[[2, 0]], total=2, step=1)

QUESTIONS: dict[str, tuple[Query, ...]] = {
    "block_laplace": (ONE_BLOCK, TWO_BLOCKS, APART, HALF),
    "block_gaussian": (ONE_BLOCK, TWO_BLOCKS, APART, LENGTHS, HALF),
    "block_quantiles": (
        block_bounds("0.5", [1, 2, 4]),
        block_bounds("0.5", [1, 2], labels=[[0, 1]]),
        block_bounds("0.3", [1, 2, 3], lengths=True),
        block_bounds(None, [1, 2, 3], error_at=2),
    ),
    "vote_partition": (block_partition(pieces=4), block_partition(3, pieces=1)),
    "participants_laplace": (participants(),),
}
"""The questions on which each mechanism is examined."""

PRICED = (
    found_cells(cells_per_person=1),
    found_cells(cells_per_person=1, bound=2, minimum=2, other=True),
    found_cells(cells_per_person=30, bound=1, top=1),
)
"""Cells that are to be found, at many budgets."""

_WEIGHTS = (0, 1, 3, -2)


def table(people: Sequence[tuple[int, ...]]) -> Contributions:
    """Return the made-up table in which each person has these weights in the two cells."""
    entries = [(i, c, w) for i, person in enumerate(people) for c, w in enumerate(person) if w]
    found = np.array(entries, dtype=np.int64).reshape(-1, 3)
    return Contributions(
        found[:, 0], found[:, 0] * 0, found[:, 1], found[:, 2].astype(float), rows=1, columns=2
    )


def people_of(dataset: Dataset) -> tuple[tuple[int, int], ...]:
    """Return the people of a made-up table, in order of their weights."""
    assert isinstance(dataset, Contributions)
    found: dict[int, list[int]] = {}
    for individual, cell, weight in zip(*(a.tolist() for a in dataset.entries()), strict=True):
        found.setdefault(individual, [0, 0])[cell] = int(weight)
    return tuple(sorted((a, b) for a, b in found.values()))


def describe(noise: str, terms: Terms, settings: Parameters, centre: Any) -> BlockVector:
    """Return the law of block noise around these totals."""
    limits = limits_from(terms, settings)
    squared = noise == "gaussian"
    frame = frame_of(weights_query(terms), terms.facts, GAUSSIAN if squared else LAPLACE)
    caps, total = masses(frame, limits, squared)
    labels = tuple(limits.labels.reshape(-1).tolist())
    scales = BlockSettings.read(settings).scales
    per_cell = tuple(scales[label] if label >= 0 else Fraction(0) for label in labels)
    whole = tuple(int(entry) for entry in np.reshape(centre, -1))
    return BlockVector(noise, whole, labels, per_cell, tuple(caps), total)


def describe_run(name: str, terms: Terms, settings: Parameters, dataset: Any) -> Description:
    """Return the closed form of a run of a registered mechanism."""
    if name == "block_quantiles":
        return describe_choice(terms, settings, dataset)
    if name == "vote_partition":
        return describe_votes(settings, dataset)
    if name == "participants_laplace":
        scale = ParticipantsSettings.read(settings).scale
        return Description((("answer", laplace_vector([len(people_of(dataset))], scale, 1)),))
    centre = clip(dataset, limits_from(terms, settings))
    law = describe(name.removeprefix("block_"), terms, settings, centre)
    return Description((("totals", law),))


def describe_choice(terms: Terms, settings: Parameters, dataset: Any) -> Description:
    """Return one choice for each block."""
    assert isinstance(terms.query, BlockBounds)
    found = BoundSettings.read(settings)
    scale, moved = found.loss_scale(), found.sensitivity
    later = tuple(terms.query.handicaps())
    return Description(
        tuple(
            (f"block {place}", ChoiceLaw(tuple(map(Fraction, row)), scale, moved, later))
            for place, row in enumerate(terms.query.scores(dataset, found.slack))
        )
    )


def describe_votes(settings: Parameters, dataset: Any) -> Description:
    """Return the noise on all votes, of one scale."""
    found = VoteSettings.read(settings)
    parts, scale = found.pieces, found.scale
    centre = tuple(int(vote) for vote in votes(dataset, parts).reshape(-1))
    every = len(centre)
    law = BlockVector("laplace", centre, (0,) * every, (scale,) * every, (parts,), parts)
    return Description((("votes", law),))


@registry.register("audit", "contributions", "view")
class AuditedContributions(AuditView):
    """One to three people with weights 0, 1, 3 or -2 in each of two cells."""

    name: ClassVar[str] = "contributions"
    own_checks: ClassVar[Mapping[str, Callable[[], list[Finding]]]] = {
        "cell_selection": cell_findings
    }

    def priced(self, mechanism: Mechanism) -> Iterator[tuple[Query, Dataset]]:
        if mechanism.name == "cell_selection":
            tables = table([(1, 0), (3, 1)] * 9), Contributions([], [], [])
            yield from product(PRICED, tables)

    def world(self, size: int) -> World:
        return _world(max(size // 2, 1))

    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        return QUESTIONS.get(mechanism.name, ())

    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        return describe_run(name_of(mechanism), terms, settings, dataset)

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        if isinstance(terms.query, BlockBounds):
            candidates = terms.query.candidates.values
            return lambda parts: tuple(float(candidates[place]) for place in parts)
        if isinstance(terms.query, Participants):
            return lambda parts: (max(parts[0][0], 0),)
        if isinstance(terms.query, BlockPartition):
            asked, scale = terms.query, VoteSettings.read(settings).scale
            return lambda parts: tuple(
                labelled(np.array([parts[0]]), terms.facts, asked, scale).reshape(-1).tolist()
            )
        return lambda parts: tuple(float(entry) for entry in parts[0])

    def observe(self, outcome: Outcome) -> Hashable:
        return tuple(np.asarray(outcome.value).reshape(-1).tolist())

    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        return table([(1, 0), (3, 1)]), table([(1, 0)])

    def show(self, dataset: Dataset) -> str:
        return " ".join(f"{a},{b}" for a, b in people_of(dataset)) or "nobody"

    def odd_questions(self) -> Sequence[Query]:
        return [
            ONE_BLOCK,
            LENGTHS,
            weights(bound=1e-30),
            weights(total=1e30),
            weights(bound=1, step=2.0**40),
            weights(bound=[[1, 2, 3]]),
            weights(bound=1, blocks=9),
            block_bounds("0.5", [1e-9, 1e9]),
            block_bounds("0.5", [1], labels=[[0], [1]]),
            found_cells(cells_per_person=2, bound=1e-30),
            found_cells(cells_per_person=10**6, bound=1e30, other=True, minimum=2**40),
            block_partition(16, pieces=2**30),
        ]


@lru_cache(maxsize=8)
def _world(people: int) -> World:
    kinds = [pair for pair in product(_WEIGHTS, repeat=2) if any(pair)]
    made = [
        table(chosen)
        for count in range(people + 1)
        for chosen in combinations_with_replacement(kinds, count)
    ]
    name = f"all tables of up to {people} people on two cells"
    return World.of(name, "participant", made, people_of, removals_only=True)
