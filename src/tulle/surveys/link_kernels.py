"""Compiled counting on adjacency matrices of single bits. Imported only when it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tulle.core.arrays import Array


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _ones(word: Any) -> Any:
    """Count the set bits of a 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def common_counts(words: Array, degrees: Array, chance: float) -> tuple[Array, Array]:
    """Visit all pairs; return twice the triangles at each node, and sums of squares.

    The second result adds up, over the pairs of each node, the square of the sum of
    (y_ik - chance)·(y_jk - chance) over the other nodes k.
    """
    nodes = words.shape[0]
    doubled = np.zeros(nodes, dtype=np.int64)
    squares = np.zeros(nodes, dtype=np.float64)
    for i in range(nodes):
        for j in range(i + 1, nodes):
            common = np.int64(0)
            for w in range(words.shape[1]):
                common += np.int64(_ones(words[i, w] & words[j, w]))
            linked = np.int64((words[i, j >> 6] >> np.uint64(j & 63)) & np.uint64(1))
            if linked:
                doubled[i] += common
                doubled[j] += common
            centred = (
                common
                - chance * (degrees[i] + degrees[j] - 2 * linked)
                + chance * chance * (nodes - 2)
            )
            squares[i] += centred * centred
            squares[j] += centred * centred
    return doubled, squares
