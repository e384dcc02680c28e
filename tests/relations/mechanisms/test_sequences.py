"""The sequences H and G of the recursive mechanism, on all small graphs and all their neighbours.

Both the general ones (by enumeration) and those of the efficient mechanism (as linear programs, the
paper's equations written out) must be recursive sequences: H_i with a participant more is at most
H_i without them, which is at most H_{i+1} with them; and G must bound H.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache

import networkx
import numpy as np
import pytest
from scipy.optimize import linprog
from tests.relations.enumeration import General

from tulle.relations.data import Relation
from tulle.relations.truncation.totals import truncate

TINY = 1e-7
Tuples = tuple[tuple[int, ...], ...]
Sequences = tuple[list[float], list[float]]


def triangles(graph: networkx.Graph, unit: str) -> tuple[int, Tuples]:
    """Return how many take part, and who is needed for each triangle."""
    nodes = sorted(graph)
    place = {pair: index for index, pair in enumerate(map(frozenset, graph.edges))}
    found = []
    for corners in itertools.combinations(nodes, 3):
        sides = [frozenset(pair) for pair in itertools.combinations(corners, 2)]
        if all(side in place for side in sides):
            chosen = (
                [place[side] for side in sides] if unit == "edge" else map(nodes.index, corners)
            )
            found.append(tuple(sorted(chosen)))
    return (len(place) if unit == "edge" else len(nodes)), tuple(sorted(found))


def neighbours(people: int, tuples: Tuples) -> Iterator[tuple[int, Tuples]]:
    """Yield what is left when one participant leaves, the others numbered anew."""
    for gone in range(people):
        left = [members for members in tuples if gone not in members]
        yield people - 1, tuple(tuple(m - (m > gone) for m in members) for members in left)


def relation_of(people: int, tuples: Tuples) -> Relation:
    members = np.array(tuples, dtype=np.int64).ravel()
    return Relation.conjunctive(3 * np.arange(len(tuples) + 1), members, count=people)


@cache
def general(people: int, tuples: Tuples) -> Sequences:
    found = General(relation_of(people, tuples))
    sizes = range(people + 1)
    return [found.sequence(i) for i in sizes], [found.bounding(i) for i in sizes]


@cache
def efficient(people: int, tuples: Tuples) -> Sequences:
    """Return H of equation 16 and G of equation 19, by linear programs over (f, z, largest)."""
    count = len(tuples)
    kept = np.zeros((count, people + count + 1))
    loads = np.zeros((people, people + count + 1))
    for place, members in enumerate(tuples):
        kept[place, list(members)] = 1.0
        kept[place, people + place] = -1.0
        loads[list(members), people + place] = 1.0
    loads[:, -1] = -1.0
    limits = np.concatenate([np.full(count, 2.0), np.zeros(people)])
    presence = np.concatenate([np.ones(people), np.zeros(count + 1)])[np.newaxis]
    bounds = [(0.0, 1.0)] * (people + count) + [(0.0, None)]

    def least(cost: np.ndarray, size: int) -> float:
        return linprog(
            cost,
            A_ub=np.vstack([kept, loads]) if people else None,
            b_ub=limits if people else None,
            A_eq=presence,
            b_eq=[size],
            bounds=bounds,
            method="highs",
        ).fun

    total = np.concatenate([np.zeros(people), np.ones(count), [0.0]])
    largest = np.concatenate([np.zeros(people + count), [1.0]])
    sizes = range(people + 1)
    return [least(total, i) for i in sizes], [2.0 * least(largest, i) for i in sizes]


def check_graph(
    graph: networkx.Graph, unit: str, sequences: Callable[..., Sequences], factor: int
) -> int:
    whole = triangles(graph, unit)
    people = whole[0]
    h, g = sequences(*whole)
    assert h[0] == pytest.approx(0.0, abs=TINY)
    assert h[-1] == pytest.approx(len(whole[1]), abs=TINY)
    for i, j in itertools.combinations_with_replacement(range(people + 1), 2):
        k = people - (people - j) // factor
        assert h[j] <= h[i] + (people - i) * g[k] + TINY
    compared = 0
    for fewer in neighbours(*whole):
        for more, less in zip((h, g), sequences(*fewer), strict=True):
            for i in range(people):
                assert more[i] - TINY <= less[i] <= more[i + 1] + TINY
        compared += 1
    return compared


def small_graphs(nodes: int) -> list[networkx.Graph]:
    """Return every graph of at most so many nodes, up to the names of its nodes."""
    return [g for g in networkx.graph_atlas_g() if g.number_of_nodes() <= nodes]


@pytest.mark.parametrize("sequences", [general, efficient], ids=["general", "efficient"])
@pytest.mark.parametrize(("unit", "nodes"), [("node", 5), ("edge", 4)])
def test_both_are_recursive_sequences_and_one_bounds_the_other(
    sequences: Callable[..., Sequences], unit: str, nodes: int
) -> None:
    # The efficient G bounds H with g = 2, for it holds a factor 2 in itself.
    factor = 1 if sequences is general else 2
    compared = sum(check_graph(g, unit, sequences, factor) for g in small_graphs(nodes))
    assert compared == (231 if unit == "node" else 40)


@pytest.mark.slow
@pytest.mark.parametrize("sequences", [general, efficient], ids=["general", "efficient"])
def test_recursive_sequences_of_the_edges_of_five_nodes(
    sequences: Callable[..., Sequences],
) -> None:
    factor = 1 if sequences is general else 2
    assert sum(check_graph(g, "edge", sequences, factor) for g in small_graphs(5)) == 210


@pytest.mark.parametrize("unit", ["node", "edge"])
def test_the_truncated_value_is_the_least_of_the_sequence_with_its_price(unit: str) -> None:
    """X of the packing LP against the paper's: over whole i larger, by at most tau."""
    for graph in small_graphs(4):
        people, tuples = triangles(graph, unit)
        h, _ = efficient(people, tuples)
        truncation = truncate(relation_of(people, tuples))
        for tau in (0.5, 1.0, 1.7):
            whole = min(value + (people - i) * tau for i, value in enumerate(h))
            found = truncation.value(tau, 1e-3 * tau)
            assert whole - tau - 1e-3 * tau <= found <= whole + 1e-3 * tau


def test_the_general_value_is_above_the_relaxed_one() -> None:
    for graph in small_graphs(5):
        people, tuples = triangles(graph, "node")
        relation = relation_of(people, tuples)
        oracle, packing = General(relation), truncate(relation)
        for tau in (0.5, 1.0, 2.0, 10.0):
            assert packing.value(tau, 1e-3 * tau) <= oracle.value(tau) + 1e-3 * tau
        assert packing.value(10.0, 0.01) == pytest.approx(len(tuples), abs=0.01)
        assert oracle.value(10.0) == len(tuples)
