"""Compiled listing of the copies of a pattern.

All kernels run on a graph renumbered by descending degree, with sorted neighbours; ``edge_of``
gives for every arc the number of its edge in the order of ``Graph.edges``. They work in two
passes, one that counts and one that fills arrays of the size found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.compiled import compiled

Array = npt.NDArray[Any]


@compiled
def edges_of_arcs(indptr: Array, indices: Array) -> Array:
    """Return the number of the edge of each arc, in the order of ``Graph.edges``."""
    count = len(indptr) - 1
    edge_of = np.empty(len(indices), np.int32)
    cursor = indptr[:count].copy()
    fill = 0
    for node in range(count):
        for place in range(indptr[node], indptr[node + 1]):
            other = indices[place]
            if node < other:
                edge_of[place] = fill
                # Lower ends come in ascending order in every list: a cursor finds the twin arc.
                edge_of[cursor[other]] = fill
                cursor[other] += 1
                fill += 1
    return edge_of


@compiled
def renumber_edges(
    indptr: Array, indices: Array, edge_of: Array, order: Array, rank: Array
) -> tuple[Array, Array, Array]:
    """Return (offsets, sorted neighbours, edge of each arc) of the graph numbered by ``rank``."""
    count = len(indptr) - 1
    offsets = np.zeros(count + 1, np.int64)
    for mine in range(count):
        node = order[mine]
        offsets[mine + 1] = offsets[mine] + indptr[node + 1] - indptr[node]
    neighbours = np.empty(len(indices), np.int32)
    edges = np.empty(len(indices), np.int32)
    fill = offsets[:count].copy()
    for mine in range(count):
        node = order[mine]
        for place in range(indptr[node], indptr[node + 1]):
            other = rank[indices[place]]
            neighbours[fill[other]] = mine
            edges[fill[other]] = edge_of[place]
            fill[other] += 1
    return offsets, neighbours, edges


@compiled
def list_triangles(
    offsets: Array,
    neighbours: Array,
    edge_of: Array,
    order: Array,
    chunk: int,
    chunks: int,
    start: int,
    nodes: Array,
    edges: Array,
) -> int:
    """Count triangles, and write them from row ``start`` on to the arrays that are not empty."""
    count = len(offsets) - 1
    mark = np.full(count, -1, np.int64)
    wants_nodes, wants_edges = len(nodes) > 0, len(edges) > 0
    found = start
    for node in range(chunk, count, chunks):
        first = offsets[node]
        last = first
        # Neighbours of higher degree come first; there are at most sqrt(2 m) of them.
        while last < offsets[node + 1] and neighbours[last] < node:
            mark[neighbours[last]] = last
            last += 1
        for place in range(first, last):
            other = neighbours[place]
            for step in range(offsets[other], offsets[other + 1]):
                third = neighbours[step]
                if third >= other:
                    break
                if mark[third] < 0:
                    continue
                if wants_nodes:
                    nodes[found, 0] = order[node]
                    nodes[found, 1] = order[other]
                    nodes[found, 2] = order[third]
                if wants_edges:
                    edges[found, 0] = edge_of[place]
                    edges[found, 1] = edge_of[mark[third]]
                    edges[found, 2] = edge_of[step]
                found += 1
        for place in range(first, last):
            mark[neighbours[place]] = -1
    return found - start


@compiled
def list_stars(
    offsets: Array,
    neighbours: Array,
    edge_of: Array,
    order: Array,
    leaves: int,
    chunk: int,
    chunks: int,
    start: int,
    nodes: Array,
    edges: Array,
) -> int:
    """Write all stars, centre first, from row ``start`` on to the arrays that are not empty."""
    count = len(offsets) - 1
    wants_nodes, wants_edges = len(nodes) > 0, len(edges) > 0
    chosen = np.empty(leaves, np.int64)
    found = start
    for node in range(chunk, count, chunks):
        first, last = offsets[node], offsets[node + 1]
        if last - first < leaves:
            continue
        for leaf in range(leaves):
            chosen[leaf] = first + leaf
        while True:
            if wants_nodes:
                nodes[found, 0] = order[node]
                for leaf in range(leaves):
                    nodes[found, leaf + 1] = order[neighbours[chosen[leaf]]]
            if wants_edges:
                for leaf in range(leaves):
                    edges[found, leaf] = edge_of[chosen[leaf]]
            found += 1
            # The next choice of places in lexicographic order.
            leaf = leaves - 1
            while leaf >= 0 and chosen[leaf] == last - leaves + leaf:
                leaf -= 1
            if leaf < 0:
                break
            chosen[leaf] += 1
            for later in range(leaf + 1, leaves):
                chosen[later] = chosen[later - 1] + 1
    return found - start


@compiled
def count_squares(offsets: Array, neighbours: Array, chunk: int, chunks: int) -> int:
    """Count cycles through four nodes: the latest one, the one opposite, and two between them."""
    count = len(offsets) - 1
    between = np.zeros(count, np.int64)
    total = 0
    for node in range(chunk, count, chunks):
        for clearing in range(2):
            for place in range(offsets[node], offsets[node + 1]):
                other = neighbours[place]
                if other >= node:
                    break
                for step in range(offsets[other], offsets[other + 1]):
                    opposite = neighbours[step]
                    if opposite >= node:
                        break
                    if clearing:
                        between[opposite] = 0
                    else:
                        # The k-th node between them makes a square with each of the k - 1 before.
                        total += between[opposite]
                        between[opposite] += 1
    return total


@compiled
def _first_above(neighbours: Array, low: int, high: int, bound: int) -> int:
    """Return the first place in a sorted stretch whose entry exceeds ``bound``."""
    while low < high:
        middle = (low + high) >> 1
        if neighbours[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _holds(sign: int, left: int, right: int) -> bool:
    """Compare two codes; a code below zero is a missing value, with which nothing holds."""
    if left < 0 or right < 0:
        return False
    if sign == 0:
        return left == right
    if sign == 1:
        return left != right
    if sign == 2:
        return left < right
    if sign == 3:
        return left <= right
    if sign == 4:
        return left > right
    return left >= right


@compiled
def match(
    offsets: Array,
    neighbours: Array,
    edge_of: Array,
    order: Array,
    anchors: Array,
    bounds: Array,
    columns: Array,
    tests: Array,
    codes: Array,
    edge_codes: Array,
    alternatives: int,
    chunk: int,
    chunks: int,
    start: int,
    nodes: Array,
    edges: Array,
) -> int:
    """Count the copies of a pattern, and write them to the arrays that are not empty.

    Step i of the search places one node of the pattern. ``anchors[i, j]`` is the edge of the
    pattern between the nodes of steps i and j < i, or -1; ``bounds[i, j]`` is 1 when the node of
    step i must come after that of step j in the order of degrees, -1 when before, 0 when it does
    not matter (this finds each copy once); ``columns[i]`` is where the node goes in the output.
    A row of ``tests`` is one comparison of an alternative: (alternative, step by which it can be
    made, sign, left attribute, left place, right attribute, right place). A place is a step, or
    size + edge for an edge of the pattern, or -1 for a constant, whose code is the attribute then.
    """
    count = len(offsets) - 1
    size = len(columns)
    wants_nodes, wants_edges = len(nodes) > 0, len(edges) > 0
    here = np.zeros(size, np.int64)
    until = np.zeros(size, np.int64)
    placed = np.full(size, -1, np.int64)
    owner = np.full(size, -1, np.int64)
    arcs = np.full(anchors.max() + 1, -1, np.int64)
    alive = np.ones((size + 1, max(alternatives, 1)), np.uint8)
    found = start
    for root in range(chunk, count, chunks):
        placed[0] = root
        depth = 0
        # Depth 0 has one candidate, the root; a depth's candidates are here[depth]..until[depth].
        here[0], until[0] = 0, 1
        while depth >= 0:
            if here[depth] >= until[depth]:
                depth -= 1
                continue
            place = here[depth]
            here[depth] += 1
            if depth > 0:
                node = neighbours[place]
                fits = True
                for step in range(depth):
                    if placed[step] == node:
                        fits = False
                        break
                    edge = anchors[depth, step]
                    if edge < 0:
                        continue
                    if step == owner[depth]:
                        arcs[edge] = place
                        continue
                    other = placed[step]
                    at = _first_above(neighbours, offsets[other], offsets[other + 1], node - 1)
                    if at >= offsets[other + 1] or neighbours[at] != node:
                        fits = False
                        break
                    arcs[edge] = at
                if not fits:
                    continue
                placed[depth] = node
            if alternatives:
                left_alive = 0
                for alternative in range(alternatives):
                    alive[depth + 1, alternative] = alive[depth, alternative]
                for row in range(len(tests)):
                    if tests[row, 1] != depth or not alive[depth + 1, tests[row, 0]]:
                        continue
                    left = _code(
                        codes, edge_codes, edge_of, order, placed, arcs, size,
                        tests[row, 3], tests[row, 4],
                    )  # fmt: skip
                    right = _code(
                        codes, edge_codes, edge_of, order, placed, arcs, size,
                        tests[row, 5], tests[row, 6],
                    )  # fmt: skip
                    if not _holds(tests[row, 2], left, right):
                        alive[depth + 1, tests[row, 0]] = 0
                for alternative in range(alternatives):
                    left_alive += alive[depth + 1, alternative]
                if left_alive == 0:
                    continue
            if depth == size - 1:
                if wants_nodes:
                    for step in range(size):
                        nodes[found, columns[step]] = order[placed[step]]
                if wants_edges:
                    for edge in range(edges.shape[1]):
                        edges[found, edge] = edge_of[arcs[edge]]
                found += 1
                continue
            depth += 1
            # Walk the shortest list among the neighbours that are placed already.
            shortest = -1
            low, high = -1, count
            for step in range(depth):
                if anchors[depth, step] >= 0 and (shortest < 0 or placed[step] > placed[shortest]):
                    shortest = step
                if bounds[depth, step] > 0:
                    low = max(low, placed[step])
                elif bounds[depth, step] < 0:
                    high = min(high, placed[step])
            base = placed[shortest]
            owner[depth] = shortest
            here[depth], until[depth] = offsets[base], offsets[base + 1]
            if low >= 0:
                here[depth] = _first_above(neighbours, offsets[base], offsets[base + 1], low)
            if high < count:
                until[depth] = _first_above(neighbours, here[depth], offsets[base + 1], high - 1)
            if depth == size - 1 and not (wants_nodes or wants_edges or alternatives):
                lone = 0
                for step in range(depth):
                    lone += anchors[depth, step] >= 0
                if lone == 1:
                    # Only counting, and nothing left to check: all of the stretch that is unused.
                    found += until[depth] - here[depth]
                    for step in range(depth):
                        if step != shortest and here[depth] < until[depth]:
                            at = _first_above(
                                neighbours, here[depth], until[depth], placed[step] - 1
                            )
                            if at < until[depth] and neighbours[at] == placed[step]:
                                found -= 1
                    depth -= 1
    return found - start


@compiled
def _code(
    codes: Array,
    edge_codes: Array,
    edge_of: Array,
    order: Array,
    placed: Array,
    arcs: Array,
    size: int,
    attribute: int,
    place: int,
) -> int:
    if place < 0:
        return int(attribute)
    if place < size:
        return int(codes[attribute, order[placed[place]]])
    return int(edge_codes[attribute, edge_of[arcs[place - size]]])
