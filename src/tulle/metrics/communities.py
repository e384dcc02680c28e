"""How alike two divisions of the same nodes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError

Labels = npt.NDArray[np.int64]


def mutual_information(one: Labels, other: Labels) -> float:
    """Return the normalised mutual information of two partitions, from 0 to 1.

    Normalised by the mean of the two entropies; two partitions without any division agree.

    Raises:
        InputError: when they are not of the same nodes.

    Example:
        >>> mutual_information(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
        1.0
    """
    if len(one) != len(other):
        raise InputError(
            f"The partitions have {len(one):,} and {len(other):,} nodes; they must be of the same "
            "nodes."
        )
    if not len(one):
        return 1.0
    left, right = (np.unique(labels, return_inverse=True)[1].reshape(-1) for labels in (one, other))
    width = int(right.max()) + 1
    joint = np.unique(left * width + right, return_counts=True)
    mine, theirs = np.bincount(left) / len(one), np.bincount(right) / len(one)
    shares = joint[1] / len(one)
    first, second = np.divmod(joint[0], width)
    shared = float(shares @ np.log(shares / (mine[first] * theirs[second])))
    entropies = float(-(mine @ np.log(mine)) - (theirs @ np.log(theirs)))
    if entropies <= 0:
        return 1.0
    return min(max(2 * shared / entropies, 0.0), 1.0)


def average_f1(one: Sequence[Any], other: Sequence[Any]) -> float:
    """Return the average F1 score of two covers: lists of communities, which may overlap.

    Each community is matched with the best one of the other cover; the two directions are
    averaged.

    Example:
        >>> average_f1([[0, 1], [2, 3]], [[0, 1], [2, 3]]), average_f1([[0, 1]], [[1, 2]])
        (1.0, 0.5)

    Reference:
        Yang & Leskovec, Overlapping community detection at scale, WSDM 2013.
    """
    if not len(one) or not len(other):
        return float(len(one) == len(other))
    import scipy.sparse

    sets = [
        [np.unique(np.asarray(group, dtype=np.int64)) for group in cover] for cover in (one, other)
    ]
    nodes = max((int(group[-1]) + 1 for cover in sets for group in cover if len(group)), default=0)
    matrices = []
    for cover in sets:
        offsets = np.concatenate([[0], np.cumsum([len(group) for group in cover])])
        members = np.concatenate([*cover, np.empty(0, dtype=np.int64)])
        ones = np.ones(len(members), dtype=np.int64)
        matrices.append(scipy.sparse.csr_array((ones, members, offsets), shape=(len(cover), nodes)))
    common = (matrices[0] @ matrices[1].T).tocoo()
    sizes = [np.array([len(group) for group in cover]) for cover in sets]
    scores = 2 * common.data / (sizes[0][common.row] + sizes[1][common.col])
    best = [np.zeros(len(cover)) for cover in sets]
    np.maximum.at(best[0], common.row, scores)
    np.maximum.at(best[1], common.col, scores)
    return float((best[0].mean() + best[1].mean()) / 2)


def cover_of(labels: Labels) -> list[Labels]:
    """Return a partition as a list of communities, those of one node left out.

    Example:
        >>> [group.tolist() for group in cover_of(np.array([0, 1, 0, 2]))]
        [[0, 2]]
    """
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return [group for group in np.split(order, cuts) if len(group) > 1]
