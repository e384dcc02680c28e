"""Closed forms of noise on blocks of cells, and of a choice among candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tulle.audit.engine.laws import Claim, Law, ratio
from tulle.core.arrays import Floats


@dataclass(frozen=True)
class BlockVector(Law):
    """Independent noise in each cell, of one scale (Gaussian: variance) for each block."""

    noise: str
    centre: tuple[int, ...]
    labels: tuple[int, ...]
    scales: tuple[Fraction, ...]
    """One for each cell; 0 where there is no noise."""
    caps: tuple[int | Fraction, ...]
    """The most that one participant moves each block (Gaussian: sums of squares), as claimed."""
    total: int | Fraction
    """The same for all blocks together."""

    def claims(self, other: BlockVector) -> Iterator[Claim]:
        power = 1 if self.noise == "laplace" else 2
        moves = [abs(a - b) ** power for a, b in zip(self.centre, other.centre, strict=True)]
        for block, cap in enumerate(self.caps):
            moved = sum(m for m, label in zip(moves, self.labels, strict=True) if label == block)
            yield Claim(
                f"L{power} move of block {block}",
                ratio(float(moved), float(cap)),
                f"{moved} of {cap}",
            )
        moved = sum(moves)
        yield Claim(
            f"L{power} move of all",
            ratio(float(moved), float(self.total)),
            f"{moved} of {self.total}",
        )

    def _pairs(self, other: BlockVector) -> list[tuple[int, Fraction]] | None:
        """Return the moved cells' distances and scales, or None where no ratio is finite."""
        found = []
        for a, b, s, t in zip(self.centre, other.centre, self.scales, other.scales, strict=True):
            if s != t or (s == 0 and a != b):
                return None
            if a != b:
                found.append((a - b, s))
        return found

    def loss(self, other: BlockVector) -> float:
        pairs = self._pairs(other)
        if pairs is None or (pairs and self.noise != "laplace"):
            return math.inf
        return float(sum((abs(d) / s for d, s in pairs), Fraction(0)))

    def losses(self, other: BlockVector) -> tuple[Floats, Floats]:
        pairs = self._pairs(other)
        if pairs is None:
            return np.array([1.0]), np.array([math.inf])
        # Noise is symmetric and cells are alike: signs and order of the moves do not matter.
        return _joint(self.noise, tuple(sorted((abs(d), s) for d, s in pairs)))

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        vectors: list[tuple[int, ...]] = [()]
        masses = np.array([1.0])
        share = left_out / max(len(self.centre), 1)
        for centre, scale in zip(self.centre, self.scales, strict=True):
            values, entry = _masses(self.noise, scale, share)
            vectors = [(*vector, centre + int(value)) for vector in vectors for value in values]
            masses = np.multiply.outer(masses, entry).ravel()
        return list(vectors), masses


def _masses(noise: str, scale: Fraction, left_out: float) -> tuple[Any, Floats]:
    """Return whole numbers and their probabilities."""
    if scale == 0:
        return np.array([0]), np.array([1.0])
    reach_in = math.log(4 / left_out)
    if noise == "laplace":
        values = np.arange(-(r := math.ceil(float(scale) * reach_in) + 1), r + 1)
        logs = -np.abs(values) / float(scale)
    else:
        values = np.arange(-(r := math.ceil(math.sqrt(2 * float(scale) * reach_in)) + 1), r + 1)
        logs = -(values.astype(np.float64) ** 2) / (2 * float(scale))
    masses = np.exp(logs)
    return values, masses / masses.sum()


@lru_cache(maxsize=4096)
def _joint(noise: str, pairs: tuple[tuple[int, Fraction], ...]) -> tuple[Floats, Floats]:
    masses, losses = np.array([1.0]), np.array([0.0])
    for distance, scale in pairs:
        values, entry = _masses(noise, scale, 1e-15)
        if noise == "laplace":
            ratios = (np.abs(values + distance) - np.abs(values)) / float(scale)
        else:
            ratios = (2 * distance * values + distance**2) / (2 * float(scale))
        masses = np.multiply.outer(masses, entry).ravel()
        losses = np.add.outer(losses, ratios).ravel()
    return masses, losses


@dataclass(frozen=True)
class OneDraw(BlockVector):
    """The same draw in all cells of a block: differences of its cells are published as they are.

    Its points stay those of independent draws, so that the sampler check sees the fault in runs.
    """

    def loss(self, other: BlockVector) -> float:
        total = Fraction(0)
        for block in set(self.labels):
            moves = {
                (a - b, s)
                for a, b, s, label in zip(
                    self.centre, other.centre, self.scales, self.labels, strict=True
                )
                if label == block
            }
            if len(moves) > 1:
                return math.inf
            ((distance, scale),) = moves
            total += abs(distance) / scale
        return float(total)

    def losses(self, other: BlockVector) -> tuple[Floats, Floats]:
        return np.array([1.0]), np.array([self.loss(other)])


@dataclass(frozen=True)
class ChoiceLaw(Law):
    """A candidate, chosen with weight exp(score / scale - handicap)."""

    scores: tuple[Fraction, ...]
    scale: Fraction
    sensitivity: Fraction
    handicaps: tuple[Fraction, ...]

    def claims(self, other: ChoiceLaw) -> Iterator[Claim]:
        moved = max(abs(a - b) for a, b in zip(self.scores, other.scores, strict=True))
        yield Claim("score", ratio(float(moved), float(self.sensitivity)), f"moves {moved}")

    def _logs(self) -> Floats:
        exact = [s / self.scale - h for s, h in zip(self.scores, self.handicaps, strict=True)]
        logs = np.array([float(e - max(exact)) for e in exact])
        return np.asarray(logs - math.log(math.fsum(np.exp(logs).tolist())))

    def loss(self, other: ChoiceLaw) -> float:
        return float(np.max(self._logs() - other._logs()))

    def losses(self, other: ChoiceLaw) -> tuple[Floats, Floats]:
        logs = self._logs()
        return np.exp(logs), logs - other._logs()

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        return list(range(len(self.scores))), np.exp(self._logs())
