"""Which block each node belongs to, from noisy numbers of its neighbours in each block.

A node of degree d in block s has about d·shares[s, r] neighbours in block r. Neither its degree
nor the shares are known, and the numbers are noisy: a mixture of blocks and degrees is fitted
(expectation and maximisation). Everything here reads released numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled


@dataclass(frozen=True)
class Tuning:
    """How blocks are fitted to flipped pairs.

    Which networks chose these numbers is not on record.
    """

    rounds: int = 10
    grades: int = 12
    """So many degrees are told apart, each the same factor above the one before."""
    first_trust: float = 0.7
    outside: float = 1e-12
    spread: float = 1e-2
    """So much of a node is added to each grade of a block, so that none is ruled out for good."""
    sharpest: float = 0.1
    """Noise of a smaller scale than this counts as so much: a number of neighbours is a whole one,
    and one more of them where none is expected is unlikely, not impossible."""


_TUNING = Tuning()


_MOST_FITTED = 8_000
"""With more nodes than this, shares are fitted to some of them, evenly picked, and used for all."""

_AT_ONCE = 512
"""So many nodes are weighed at once: few enough for the numbers about them to stay in a cache."""


class MixtureTable(NamedTuple):
    """Noisy numbers about each node, a row for each."""

    counts: Floats
    scales: Floats
    """The scale of the noise in each column."""


class Placed(NamedTuple):
    """What is most likely, for each node."""

    blocks: Wholes
    weights: Floats
    """Its expected degree."""


def place_nodes(
    tables: Sequence[MixtureTable],
    start: Wholes,
    groups: Wholes,
    kinds: int,
    degrees: MixtureTable | None = None,
) -> Placed:
    """Return the most likely block and degree of each node.

    ``tables`` hold noisy numbers of neighbours of some kind. ``start`` is a first guess of the
    blocks, from which the fit begins. ``groups`` are nodes that have something in common, like
    their place in the order: how often a node of a group belongs to a block is fitted as well.
    ``degrees`` has one column, noisy degrees; if they are not known, the first table must hold
    all neighbours of a node.

    Example:
        >>> rows = np.array([[30.0, 1.0], [2.0, 25.0], [1.0, 40.0], [28.0, 2.0]])
        >>> alike = np.zeros(4, dtype=np.int64)
        >>> guess = np.array([0, 1, 1, 1])
        >>> place_nodes([MixtureTable(rows, np.ones(2))], guess, alike, 2).blocks.tolist()
        [0, 1, 1, 0]
    """
    if degrees is None:
        whole = tables[0]
        # Noise adds up over the columns.
        scale = np.sqrt((whole.scales**2).sum(keepdims=True))
        first = expected_degrees(MixtureTable(whole.counts.sum(axis=1, keepdims=True), scale))
    else:
        tables, first = [degrees, *tables], expected_degrees(degrees)
    # The columns that show, together, all of a node's degree.
    whole_columns = tables[0].counts.shape[1]
    counts = np.concatenate([table.counts for table in tables], axis=1).astype(np.float64)
    scales = np.maximum(np.concatenate([table.scales for table in tables]), _TUNING.sharpest)
    step = max(-(-len(counts) // _MOST_FITTED), 1)
    grades = np.geomspace(1.0, max(float(first.max(initial=1.0)), 10.0), _TUNING.grades)
    fitted = slice(None, None, step)
    seen = _Seen(counts[fitted], scales, grades, groups[fitted])
    mixture = _fit(seen, start[fitted], first[fitted], kinds, whole_columns)
    if step == 1:
        belongs, weighed = mixture.belongs, mixture.weighed
    else:
        belongs, weighed, _ = _expect(_Seen(counts, scales, grades, groups), mixture)
    return Placed(np.argmax(belongs, axis=1).astype(np.int64), weighed.sum(axis=1))


def expected_degrees(degrees: MixtureTable) -> Floats:
    """Return the noisy degrees drawn to their mean, as far as noise explains how they differ."""
    noisy = degrees.counts[:, 0]
    mean = float(noisy.mean()) if len(noisy) else 0.0
    spread = float(noisy.var()) if len(noisy) else 0.0
    kept = max(1 - 2 * float(degrees.scales[0]) ** 2 / max(spread, 1e-9), 0.0)
    return np.maximum(mean + kept * (noisy - mean), 1.0)


class _Seen(NamedTuple):
    counts: Floats
    scales: Floats
    grades: Floats
    """The degrees that are told apart."""
    groups: Wholes


class _Mixture(NamedTuple):
    shares: Floats
    """How much of a node's degree each column shows, for each block."""
    of_group: Floats
    """How often a node of each group belongs to each block."""
    of_grade: Floats
    """How often a node of each block has each grade of degree."""
    belongs: Floats
    weighed: Floats
    """How likely each block is for each node, and the same times the degree."""


def _fit(seen: _Seen, start: Wholes, first: Floats, kinds: int, whole: int) -> _Mixture:
    nodes = len(seen.counts)
    belongs = np.full((nodes, kinds), (1 - _TUNING.first_trust) / kinds)
    belongs[np.arange(nodes), start] += _TUNING.first_trust
    weighed = belongs * first[:, None]
    squares = (belongs * first[:, None] ** 2).sum(axis=0)
    of_grade = np.full((kinds, len(seen.grades)), 1.0 / len(seen.grades))
    count = int(seen.groups.max(initial=0)) + 1
    mixture = _Mixture(np.empty(0), np.empty(0), of_grade, belongs, weighed)
    for _ in range(_TUNING.rounds):
        shares = np.maximum(weighed.T @ seen.counts / np.maximum(squares, 1e-9)[:, None], 0.0)
        shares[:, :whole] /= np.maximum(shares[:, :whole].sum(axis=1, keepdims=True), 1e-9)
        of_group = np.zeros((count, kinds))
        np.add.at(of_group, seen.groups, belongs)
        of_group += belongs.mean(axis=0)
        of_group /= of_group.sum(axis=1, keepdims=True)
        mixture = _Mixture(shares, of_group, of_grade, belongs, weighed)
        belongs, weighed, found = _expect(seen, mixture)
        squares = (found * seen.grades**2).sum(axis=1)
        of_grade = (found + _TUNING.spread) / (found + _TUNING.spread).sum(axis=1, keepdims=True)
    return mixture._replace(belongs=belongs, weighed=weighed)


def _expect(seen: _Seen, mixture: _Mixture) -> tuple[Floats, Floats, Floats]:
    """Return how likely each block is for each node, the same times degree, and each grade."""
    means = mixture.shares[:, None, :] * seen.grades[:, None]
    # Counts scatter around their mean by chance as well as by noise.
    sharp = 1 / np.sqrt(seen.scales**2 + means / 2)
    known = np.log(mixture.of_grade + _TUNING.outside) + np.log(sharp).sum(axis=2)
    of_group = np.log(mixture.of_group + _TUNING.outside)
    belongs = np.empty((len(seen.counts), len(mixture.shares)))
    weighed = np.empty_like(belongs)
    found = np.zeros_like(mixture.of_grade)
    for start in range(0, len(belongs), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        likely = known + of_group[seen.groups[rows], :, None]
        _take_distances(likely, np.ascontiguousarray(seen.counts[rows]), means, sharp)
        likely -= likely.max(axis=(1, 2), keepdims=True)
        np.exp(likely, out=likely)
        likely /= likely.sum(axis=(1, 2), keepdims=True)
        belongs[rows], weighed[rows] = likely.sum(axis=2), likely @ seen.grades
        found += likely.sum(axis=0)
    return belongs, weighed, found


@compiled
def _take_distances(likely: Any, counts: Any, means: Any, sharp: Any) -> None:
    """Take from each entry how far the counts of its node are from what they should be."""
    nodes, kinds, grades = likely.shape
    for node in range(nodes):
        for kind in range(kinds):
            for grade in range(grades):
                apart = 0.0
                for column in range(counts.shape[1]):
                    apart += (
                        abs(counts[node, column] - means[kind, grade, column])
                        * sharp[kind, grade, column]
                    )
                likely[node, kind, grade] -= apart
