"""How alike two divisions of the same nodes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.compiled import compiled
from tulle.core.errors import InputError
from tulle.core.validate import counted

_ROUNDING = 1e-9
"""Less than this, of the entropy, is a rounding error."""


def mutual_information(one: Wholes, other: Wholes) -> float:
    """Return the normalised mutual information of two partitions, from 0 to 1.

    Normalised by the mean of the two entropies; two partitions without any division agree.

    Raises:
        InputError: when they are not of the same nodes.

    Example:
        >>> mutual_information(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
        1.0
    """
    shared, entropy, _ = _have_in_common(one, other)
    return min(max(shared / entropy, 0.0), 1.0) if entropy > 0 else 1.0


def information_beyond_chance(one: Wholes, other: Wholes) -> float:
    """Return the mutual information of two partitions beyond what chance alone would give.

    1 for the same partition; 0, in the mean, for one whose labels were dealt to the nodes at
    random, so it may be below 0. The plain mutual information of such a partition is larger the
    more communities there are: for one community of each node it is always large, and says
    nothing. What random labels have is computed exactly.

    Raises:
        InputError: when they are not of the same nodes.

    Example:
        >>> halves, each = np.array([0, 0, 0, 1, 1, 1]), np.arange(6)
        >>> round(mutual_information(halves, each), 2)
        0.56
        >>> abs(information_beyond_chance(halves, each)) < 1e-9
        True

    Reference:
        Vinh, Epps & Bailey, Information theoretic measures for clusterings comparison, JMLR 2010.
    """
    shared, entropy, sizes = _have_in_common(one, other)
    chance = 0.0
    if len(one):
        logarithms = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, len(one) + 1)))])
        mine, theirs = (np.unique(found, return_counts=True) for found in sizes)
        chance = _expected(*mine, *theirs, logarithms)
    room = entropy - chance
    # None at all when both have one community of all nodes, or both one of each.
    return (shared - chance) / room if room > _ROUNDING * entropy else 1.0


def _have_in_common(one: Wholes, other: Wholes) -> tuple[float, float, tuple[Wholes, Wholes]]:
    """Return the mutual information, the mean of the entropies, and the sizes of communities."""
    if len(one) != len(other):
        raise InputError(
            f"The partitions have {len(one):,} and {counted(len(other), 'node')}; they must be of "
            "the same nodes."
        )
    left, right = (np.unique(labels, return_inverse=True)[1].reshape(-1) for labels in (one, other))
    sizes = np.bincount(left), np.bincount(right)
    if not len(one):
        return 0.0, 0.0, sizes
    width = len(sizes[1])
    joint = np.unique(left * width + right, return_counts=True)
    mine, theirs = (found / len(one) for found in sizes)
    shares = joint[1] / len(one)
    first, second = np.divmod(joint[0], width)
    shared = float(shares @ np.log(shares / (mine[first] * theirs[second])))
    entropies = float(-(mine @ np.log(mine)) - (theirs @ np.log(theirs)))
    return shared, entropies / 2, sizes


@compiled
def _expected(mine: Any, often: Any, theirs: Any, as_often: Any, logarithms: Any) -> Any:
    """Return the mutual information expected when labels are dealt to the nodes at random.

    Two communities of a and b among n nodes then share k with the hypergeometric probability.
    Communities of the same size count together. ``logarithms`` are those of 0!, 1!, ..., n!.
    """
    nodes = len(logarithms) - 1
    total = 0.0
    for i in range(len(mine)):
        for j in range(len(theirs)):
            a, b = mine[i], theirs[j]
            fixed = logarithms[a] + logarithms[b] + logarithms[nodes - a] + logarithms[nodes - b]
            fixed -= logarithms[nodes]
            for k in range(max(1, a + b - nodes), min(a, b) + 1):
                likely = fixed - logarithms[k] - logarithms[a - k] - logarithms[b - k]
                likely -= logarithms[nodes - a - b + k]
                told = k / nodes * np.log(k / a * nodes / b)
                total += often[i] * as_often[j] * told * np.exp(likely)
    return total


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


def cover_of(labels: Wholes) -> list[Wholes]:
    """Return a partition as a list of communities, those of one node left out.

    Example:
        >>> [group.tolist() for group in cover_of(np.array([0, 1, 0, 2]))]
        [[0, 2]]
    """
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return [group for group in np.split(order, cuts) if len(group) > 1]
