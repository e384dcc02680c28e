"""Blocks of nodes from noisy counts of edges: found, and tested against chance.

Everything here reads released numbers only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats, Wholes
from tulle.core.compiled import compiled
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing

_SWEEPS = 50
_CHANCES = 8


class Chance(NamedTuple):
    """What tables without any structure show: mean and standard deviation."""

    mean: float
    deviation: float


def square_of(upper: npt.NDArray[Any], kinds: int) -> Floats:
    """Return the symmetric table of counts whose upper half is this row.

    Example:
        >>> square_of(np.array([1, 2, 3]), 2).tolist()
        [[1.0, 2.0], [2.0, 3.0]]
    """
    table = np.zeros((kinds, kinds))
    table[np.triu_indices(kinds)] = upper
    return table + np.triu(table, 1).T


def find_blocks(counts: Floats) -> tuple[Wholes, float]:
    """Return the block of each row of a noisy table of edge counts, and their modularity.

    Rows move between blocks while that raises modularity, blocks merge, and again (Louvain). The
    table may have negative entries: noise is not cut off, since that would bias it.

    Example:
        >>> blocks, modularity = find_blocks(np.array([[9.0, 1, 0], [1, 8, 0], [0, 0, 9]]))
        >>> blocks.tolist(), round(modularity, 2)
        ([0, 1, 2], 0.63)
    """
    gain = modularity_gain(counts)
    if gain is None:
        return np.zeros(len(counts), dtype=np.int64), 0.0
    blocks = np.arange(len(counts), dtype=np.int64)
    merged = gain
    while True:
        moved = move_rows(merged, np.arange(len(merged), dtype=np.int64), _SWEEPS)
        _, moved = np.unique(moved, return_inverse=True)
        if int(moved.max()) + 1 == len(merged):
            break
        blocks = moved[blocks]
        chosen = np.eye(int(moved.max()) + 1)[moved]
        merged = chosen.T @ merged @ chosen
    _, blocks = np.unique(move_rows(gain, blocks, _SWEEPS), return_inverse=True)
    return blocks.astype(np.int64), within(gain, blocks)


def modularity_gain(counts: Floats) -> Floats | None:
    """Return each pair's part in modularity, or None when there is no edge to speak of."""
    weights = counts + np.diag(np.diag(counts))
    strength = np.maximum(weights.sum(axis=1), 0.0)
    total = float(strength.sum())
    if total <= 0:
        return None
    return (weights - np.outer(strength, strength) / total) / total


def within(gain: Floats, blocks: Wholes) -> float:
    """Return the sum of the gains of pairs in one block."""
    return float(gain[blocks[:, None] == blocks[None, :]].sum())


def move_rows(gain: Floats, blocks: Wholes, sweeps: int) -> Wholes:
    """Move each row to the block that gains most, in turn, until none moves."""
    _move_rows(gain, blocks, sweeps, np.empty(len(gain)))
    return blocks


@compiled
def _move_rows(gain: Any, blocks: Any, sweeps: Any, sums: Any) -> None:
    count = len(gain)
    for _ in range(sweeps):
        moved = 0
        for row in range(count):
            for block in range(count):
                sums[block] = 0.0
            for other in range(count):
                if other != row:
                    sums[blocks[other]] += gain[row, other]
            best = blocks[row]
            for block in range(count):
                if sums[block] > sums[best] + 1e-12:
                    best = block
            if best != blocks[row]:
                blocks[row] = best
                moved += 1
        if moved == 0:
            break


def chance_modularity(counts: Floats, scale: float) -> Chance:
    """Return the modularity that noise alone would show in a table with the same row sums.

    Tables without any structure are drawn, with Poisson counts and noise of this scale, and
    searched as the real one was. The draws are fixed: the same table gives the same answer.
    """
    return _chance(counts.tobytes(), len(counts), scale)


@lru_cache(maxsize=16)
def _chance(table: bytes, kinds: int, scale: float) -> Chance:
    counts = np.frombuffer(table).reshape(kinds, kinds)
    random = post_processing(SeededSource(1))
    weights = counts + np.diag(np.diag(counts))
    strength = np.maximum(weights.sum(axis=1), 0.0)
    total = max(float(strength.sum()), 1.0)
    mean = np.triu(np.outer(strength, strength) / total)
    mean[np.diag_indices(len(mean))] /= 2
    found = []
    for _ in range(_CHANCES):
        drawn = random.poisson(mean) + np.triu(random.laplace(0.0, scale, mean.shape))
        found.append(find_blocks(drawn + np.triu(drawn, 1).T)[1])
    return Chance(float(np.mean(found)), float(np.std(found, ddof=1)))
