"""Plain formulations of the two LPs, and small relations to try them on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from tulle.lp import PackingProblem


def make(tuples, weights=None, count=None) -> PackingProblem:
    sizes = [len(members) for members in tuples]
    flat = [member for members in tuples for member in members]
    return PackingProblem(
        np.concatenate([[0], np.cumsum(sizes)]).astype(int),
        np.array(flat, dtype=int),
        np.ones(len(tuples)) if weights is None else weights,
        (max(flat, default=-1) + 1) if count is None else count,
    )


def members_of(problem: PackingProblem) -> list[list[int]]:
    return [
        problem.participants[start:end].tolist()
        for start, end in zip(problem.offsets[:-1], problem.offsets[1:], strict=True)
    ]


def incidence(problem: PackingProblem) -> np.ndarray:
    matrix = np.zeros((problem.count, problem.tuple_count))
    for item, members in enumerate(members_of(problem)):
        matrix[members, item] = 1.0
    return matrix


def packing_value(problem: PackingProblem, tau: float) -> float:
    if not problem.tuple_count:
        return 0.0
    result = linprog(
        -np.ones(problem.tuple_count),
        A_ub=incidence(problem) if problem.count else None,
        b_ub=np.full(problem.count, tau) if problem.count else None,
        bounds=[(0.0, weight) for weight in problem.weights],
        method="highs",
    )
    assert result.status == 0
    return -result.fun


def deletion_value(problem: PackingProblem, tau: float) -> float:
    """The LP as written: all participants, all tuples, g first and the remainders after."""
    count, tuples = problem.count, problem.tuple_count
    if not count or not tuples:
        return 0.0
    matrix = incidence(problem)
    loads = np.hstack([np.zeros((count, count)), matrix * problem.weights])
    covers = np.hstack([-matrix.T, -np.eye(tuples)])
    result = linprog(
        np.concatenate([np.ones(count), np.zeros(tuples)]),
        A_ub=np.vstack([loads, covers]),
        b_ub=np.concatenate(
            [
                np.full(count, tau),
                # A tuple without participants cannot be deleted and is in nobody's load.
                [-1.0 if members else 0.0 for members in members_of(problem)],
            ]
        ),
        bounds=[(0.0, 1.0)] * count + [(0.0, None)] * tuples,
        method="highs",
    )
    assert result.status == 0
    return float(result.fun)


def random_problem(random: np.random.Generator) -> PackingProblem:
    count = int(random.integers(1, 9))
    tuples = int(random.integers(0, 16))
    chosen = [
        random.choice(count, size=int(random.integers(0, min(4, count) + 1)), replace=False)
        for _ in range(tuples)
    ]
    kind = random.integers(3)
    if kind == 0:
        weights = np.ones(tuples)
    elif kind == 1:
        weights = random.integers(0, 4, tuples).astype(float)
    else:
        weights = random.exponential(1.0, tuples)
    return make([members.tolist() for members in chosen], weights, count)


def triangle_relations(nodes: int) -> Iterator[tuple[PackingProblem, PackingProblem]]:
    """Yield the triangles of every graph, with nodes and with edges as participants.

    Graphs with the same triangles give the same relations, so each set of triangles comes once.
    """
    pairs = list(combinations(range(nodes), 2))
    number = {pair: index for index, pair in enumerate(pairs)}
    seen = set()
    for code in range(2 ** len(pairs)):
        present = {pair for index, pair in enumerate(pairs) if code >> index & 1}
        found = tuple(
            corners
            for corners in combinations(range(nodes), 3)
            if all(pair in present for pair in combinations(corners, 2))
        )
        if found in seen:
            continue
        seen.add(found)
        by_edge = [[number[pair] for pair in combinations(corners, 2)] for corners in found]
        yield make(found, count=nodes), make(by_edge, count=len(pairs))
