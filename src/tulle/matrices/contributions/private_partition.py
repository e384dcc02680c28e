"""Blocks chosen privately: which cells most people are in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.public import public
from tulle.core.source import Source
from tulle.matrices.contributions.data import Contributions
from tulle.matrices.contributions.labels import unpack_labels
from tulle.matrices.contributions.queries import GridQuery
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge

PIECES = 2**16
"""In how many pieces each person's one vote is divided."""

_MARGIN = 1 - 2.0**-26
"""Covers the rounding of a sum over up to 2**26 cells and of a few operations."""


@dataclass(frozen=True)
class Tuning:
    """Where blocks begin; which data chose it is not on record."""

    apart: int = 4
    """Each further block begins at so many times the threshold of the one before."""


_TUNING = Tuning()


@dataclass(frozen=True)
class BlockPartition(GridQuery):
    """For each cell the block it is in, by how many people's worth it has."""

    blocks: int = 2
    pieces: int = PIECES
    name: ClassVar[str] = "block_partition"
    words: ClassVar[str] = (
        "Which cells hold so much of what people contribute that they stand out, and by how much?"
    )
    quantity: ClassVar[str] = "block"
    integral: ClassVar[bool] = True

    def truth(self, dataset: Contributions) -> Wholes:
        """Return the blocks without noise, where the first threshold is one person."""
        facts = dataset.facts("participant")
        return labelled(votes(dataset, self.pieces), facts, self, Fraction(self.pieces))


@public("Publish a matrix")
@registry.register("query", "contributions", "block_partition")
def block_partition(blocks: int = 2, *, pieces: int = PIECES) -> BlockPartition:
    """Ask which cells stand out, as ``labels`` for ``block_bounds`` and ``weights``.

    Cells in which many people have much are few; with a block of their own they have their own
    bound and noise, and all others nearly none. Each person has one vote, divided among cells as
    the person's contributions are; a cell is in block 1 if its votes exceed what noise alone shows
    in one cell of the grid, in block 2 at four times as many, and so on, and else in block 0.
    ``pieces`` says how finely a vote is divided.

    Raises:
        InputError: when ``blocks`` or ``pieces`` is not a whole number from 2 to 16, or 1 to 2**30.

    Example:
        >>> str(block_partition(3))
        'block_partition(3, 65536)'
    """
    count = validate.whole(blocks=blocks, at_least=2, at_most=16)
    return BlockPartition(count, validate.whole(pieces=pieces, at_least=1, at_most=2**30))


def votes(dataset: Contributions, pieces: int) -> Wholes:
    """Return the votes of all people, each divided into whole pieces. Custodian side.

    One person has ``pieces`` in all cells together, at most: shares are rounded down, and whole
    numbers are checked once more. Only the person's own records matter.
    """
    individual, cell, weight = dataset.entries()
    size = dataset.shape[0] * dataset.shape[1]
    if not len(cell):
        return np.zeros(dataset.shape, dtype=np.int64)
    sizes = np.nan_to_num(np.abs(weight), nan=0.0, posinf=1e300)
    largest = np.zeros(int(individual.max()) + 1)
    np.maximum.at(largest, individual, sizes)
    # Relative to the largest, nothing is too large or too small to be added up.
    with np.errstate(under="ignore"):
        shares = np.divide(sizes, largest[individual], out=np.zeros(len(sizes)), where=sizes > 0)
        whole = np.bincount(individual, weights=shares)
        fine = shares * (pieces * _MARGIN)
        given = np.divide(fine, whole[individual], out=np.zeros(len(sizes)), where=sizes > 0)
    counted = np.floor(given).astype(np.int64)
    # One cell alone has the whole vote.
    counted[(shares > 0) & (shares == whole[individual])] = pieces
    sums = np.zeros(len(largest), dtype=np.int64)
    np.add.at(sums, individual, counted)
    counted[sums[individual] > pieces] = 0
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, cell, counted)
    return found.reshape(dataset.shape)


def thresholds(cells: int, blocks: int, scale: Fraction) -> list[float]:
    """Return what votes must exceed for each block but the first.

    Laplace noise of this scale s exceeds t in n·exp(-t/s)/2 of n cells: one, where t = s·ln(n/2).

    Example:
        >>> thresholds(2000, 3, Fraction(10))[1] == 4 * thresholds(2000, 3, Fraction(10))[0]
        True
    """
    first = float(scale) * max(math.log(cells / 2), 1.0)
    return [first * _TUNING.apart**place for place in range(blocks - 1)]


def labelled(
    counted: Wholes, facts: Mapping[str, Any], query: BlockPartition, scale: Fraction
) -> Wholes:
    """Return the block of each cell, numbered without gaps; -1 outside the public support."""
    inside = inside_of(facts)
    cuts = thresholds(int(inside.sum()), query.blocks, scale)
    rough = np.searchsorted(np.array(cuts), counted.astype(np.float64), side="left")
    found = np.full(counted.shape, -1, dtype=np.int64)
    found[inside] = np.unique(rough[inside], return_inverse=True)[1]
    return found


def inside_of(facts: Mapping[str, Any]) -> Any:
    """Return which cells are in the public support."""
    shape = int(facts["rows"]), int(facts["columns"])
    if facts.get("support") is None:
        return np.ones(shape, dtype=np.bool_)
    return unpack_labels(facts["support"], shape) >= 0


@dataclass(frozen=True, eq=False)
class VoteSettings(Settings):
    """The public settings of one run."""

    pieces: int
    """Into how many pieces a vote is divided."""
    scale: Fraction
    people: tuple[float, ...]
    """How many people's votes a cell must have to be in each block."""


@registry.mechanism(
    "contributions", "vote_partition", answers=(BlockPartition,), units=("participant",)
)
class VotePartition(Mechanism):
    """Give each person one vote over the cells, add Laplace noise, and compare with thresholds.

    Guarantee:
        Pure epsilon per participant. A participant's vote is ``pieces`` whole pieces in all cells
        together, at most, whatever the contributions are; one participant more or less moves the
        votes by no more in L1, and Laplace noise of scale pieces / epsilon in every cell of the
        public support hides that. Thresholds follow from public numbers; blocks are
        post-processing. Nobody's records but the participant's own decide how a vote is divided.

    Error:
        A cell that nobody is in is in block 0 but for one such cell in the whole grid; one with
        twice as many votes as the threshold, 2·ln(n/2)/epsilon people's worth, is in another
        block but for one of them in the grid.

    Reference:
        Brunet, Canard, Gambs & Olivier, Novel differentially private mechanisms for graphs, 2016,
        section IV, where blocks are read off the data; Dwork et al., TCC 2006.

    Example:
        >>> import tulle
        >>> trips = tulle.Contributions(range(900), [0] * 900, [0] * 900, rows=3, columns=3)
        >>> r = tulle.release(trips, tulle.block_partition(), unit="participant", epsilon=1.0)
        >>> int(r.value[0, 0])
        1
    """

    title: ClassVar[str] = "cells that stand out, by one vote of each person"
    reference: ClassVar[str] = "Brunet et al., 2016; Dwork et al., TCC 2006"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, BlockPartition)
        pieces = terms.query.pieces
        scale = pieces / terms.epsilon
        if scale > 2**46:
            raise InputError("The noise has too many pieces to be drawn: give a smaller pieces=.")
        cuts = thresholds(int(inside_of(terms.facts).sum()), terms.query.blocks, scale)
        return VoteSettings(pieces, scale, tuple(cut / pieces for cut in cuts))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        return Prediction(None, None)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(terms.query, BlockPartition)
        assert isinstance(dataset, Contributions)
        found = VoteSettings.read(settings)
        pieces, scale = found.pieces, found.scale
        inside = inside_of(terms.facts)
        counted = votes(dataset, pieces)
        with charge(LaplaceCharge(pieces)):
            noise = discrete_laplace(scale=scale, size=int(inside.sum()), source=source)
        counted[inside] += noise
        return Outcome(labelled(counted, terms.facts, terms.query, scale), None)
