"""Made-up networks for demonstrations, tests and predicted errors.

They hold no private data and draw ordinary pseudo-random numbers, the same ones for the same
seed. Nothing here may be used to protect anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Array
from tulle.core.dataset import Facts
from tulle.core.errors import InputError
from tulle.core.unit import Unit
from tulle.core.validate import counted
from tulle.graphs.data import Graph

_LARGEST_STAND_IN = 5_000
"""Above this many nodes a smaller network stands in: errors follow its densest places."""


@registry.register("stand-in", "graph", "social network")
def stand_in(unit: Unit, facts: Facts) -> tuple[Graph, str] | None:
    """Return a network to predict errors on where none was declared, and what to call it."""
    nodes = int(facts.get("nodes", 1_000))
    if nodes < 10:
        return None
    size = min(nodes, _LARGEST_STAND_IN)
    return _network(
        size
    ), f"a generated social network of {counted(size, 'node')}; pass like= for your own"


@lru_cache(maxsize=8)
def _network(nodes: int) -> Graph:
    return social_network(nodes, mean_degree=min(16.0, (nodes - 1) / 2), seed=2)


def social_network(
    nodes: int,
    *,
    communities: int | None = None,
    mean_degree: float = 16.0,
    seed: int,
) -> Graph:
    """Return a made-up network with communities, some hubs and many triangles.

    People have a heavy-tailed sociability and belong to one community each. Most ties come from
    small circles inside a community where nearly everybody knows each other, the rest from chance
    meetings, mostly inside the community. A ring of acquaintances holds it all together. The mean
    degree comes out near ``mean_degree``. Holds no private data; ordinary pseudo-random numbers.

    ``communities`` is about one per 80 nodes when left out.

    Example:
        >>> social_network(300, seed=1).node_count
        300
    """
    count = validate.whole(at_least=1, nodes=nodes)
    if communities is None:
        communities = max(1, round(count / 80))
    groups = min(validate.whole(at_least=1, communities=communities), count)
    wanted = float(validate.positive(mean_degree=mean_degree))
    if wanted > count - 1:
        raise InputError(
            f"mean_degree={mean_degree!r} is more than nodes={nodes} allow; the most is nodes - 1."
        )
    random = _generator(seed)
    community = np.sort(random.integers(0, groups, size=count))
    sociability = np.minimum(random.pareto(2.2, size=count) + 0.4, math.sqrt(count) / 2 + 1)
    target = wanted * count / 2
    ring = np.arange(count, dtype=np.int64)
    parts = [np.column_stack([ring, np.roll(ring, -1)])[: max(count - 1, 0)]]
    parts.append(_circles(random, community, sociability, 0.65 * target))
    parts.append(_meetings(random, community, sociability, max(0.35 * target - count, 0.0)))
    return _without_repeats(np.concatenate(parts), count)


def erdos_renyi(nodes: int, probability: float, *, seed: int) -> Graph:
    """Return a graph in which each pair is joined with the same probability.

    Holds no private data; ordinary pseudo-random numbers.

    Example:
        >>> erdos_renyi(4, 1.0, seed=1).edge_count
        6
    """
    count = validate.whole(at_least=0, nodes=nodes)
    chance = float(validate.non_negative(probability=probability))
    if chance > 1:
        raise InputError(f"probability must be at most 1; got {probability!r}.")
    random = _generator(seed)
    pairs = count * (count - 1) // 2
    if chance >= 0.25 or pairs < 10_000:
        picked = np.flatnonzero(random.random(pairs) < chance)
    else:
        picked = _skip_ahead(random, pairs, chance)
    return _from_pair_numbers(picked, count)


def watts_strogatz(nodes: int, degree: int, rewiring: float, *, seed: int) -> Graph:
    """Return a ring in which each node knows its ``degree`` nearest, with some edges rewired.

    Each edge moves one end to a random node with probability ``rewiring``; an edge that falls on
    another is lost. Holds no private data; ordinary pseudo-random numbers.

    Example:
        >>> watts_strogatz(10, 4, 0.0, seed=1).edge_count
        20
    """
    count = validate.whole(at_least=1, nodes=nodes)
    half = validate.whole(at_least=0, degree=degree) // 2
    if 2 * half >= count:
        raise InputError(f"degree must be below nodes={nodes}; got {degree!r}.")
    chance = float(validate.non_negative(rewiring=rewiring))
    if chance > 1:
        raise InputError(f"rewiring must be at most 1; got {rewiring!r}.")
    random = _generator(seed)
    first = np.tile(np.arange(count, dtype=np.int64), half)
    second = (first + np.repeat(np.arange(1, half + 1), count)) % count
    moved = random.random(len(first)) < chance
    second[moved] = random.integers(0, count, size=int(moved.sum()))
    return _without_repeats(np.column_stack([first, second]), count)


def barabasi_albert(nodes: int, links: int, *, seed: int) -> Graph:
    """Return a graph grown by preferential attachment, ``links`` edges per new node.

    Each new node picks the ends of earlier edges, so that well connected nodes are picked more
    often. Picks that coincide count once. Holds no private data; ordinary pseudo-random numbers.

    Example:
        >>> barabasi_albert(50, 2, seed=1).node_count
        50
    """
    count = validate.whole(at_least=1, nodes=nodes)
    each = validate.whole(at_least=1, links=links)
    if each >= count:
        raise InputError(f"links must be below nodes={nodes}; got {links!r}.")
    random = _generator(seed)
    # ends[2i] is the new node of edge i, ends[2i + 1] the node it picked. Picking the end of a
    # random earlier edge is picking a node with a chance in proportion to its degree.
    new = np.repeat(np.arange(each, count, dtype=np.int64), each)
    edges = len(new)
    choice = (random.random(edges) * 2 * (np.arange(edges) // each * each)).astype(np.int64)
    picked = np.full(edges, -1, dtype=np.int64)
    picked[:each] = np.arange(each)
    # An even choice names a new node; an odd one copies an earlier pick, so follow those chains.
    source = choice // 2
    known = np.arange(edges) < each
    direct = ~known & (choice % 2 == 0)
    picked[direct] = new[source[direct]]
    known |= direct
    while not known.all():
        ready = ~known & known[source]
        picked[ready] = picked[source[ready]]
        known |= ready
    return _without_repeats(np.column_stack([new, picked]), count)


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(validate.whole(at_least=0, at_most=None, seed=seed)))


def _without_repeats(edges: Array, count: int) -> Graph:
    keys = np.minimum(edges[:, 0], edges[:, 1]) * count + np.maximum(edges[:, 0], edges[:, 1])
    keys = np.unique(keys[edges[:, 0] != edges[:, 1]])
    return Graph._from_sorted(count, keys // max(count, 1), keys % max(count, 1))


def _skip_ahead(random: np.random.Generator, pairs: int, chance: float) -> Array:
    """Return the pair numbers that are joined, by drawing the gaps between them."""
    if chance == 0:
        return np.empty(0, dtype=np.int64)
    found: list[Array] = []
    last = -1
    while last < pairs:
        expected = int((pairs - last) * chance * 1.1) + 100
        steps = last + np.cumsum(random.geometric(chance, size=expected))
        found.append(steps)
        last = int(steps[-1])
    numbers = np.concatenate(found)
    return numbers[numbers < pairs]


def _from_pair_numbers(numbers: Array, count: int) -> Graph:
    """Return the graph of the pairs with these numbers in lexicographic order."""
    starts = np.arange(count, dtype=np.int64)
    starts = starts * (2 * count - starts - 1) // 2
    low = np.searchsorted(starts, numbers, side="right") - 1
    # Rows without pairs share their start with the next one; the last row is always empty.
    low = np.minimum(low, max(count - 2, 0))
    high = numbers - starts[low] + low + 1 if count else numbers
    return Graph._from_sorted(count, low, high)


def _circles(
    random: np.random.Generator, community: Array, sociability: Array, wanted: float
) -> Array:
    """Return the edges of circles of friends, each inside one community."""
    sizes = 3 + random.geometric(0.22, size=max(1, int(wanted / 14.0)))
    sizes = np.minimum(sizes, 20)
    ends = np.searchsorted(community, np.arange(int(community[-1]) + 2))
    weight = np.concatenate([[0.0], np.cumsum(sociability)])
    # Circles fall on communities by the sociability in them, members likewise inside.
    anchor = np.searchsorted(weight, random.random(len(sizes)) * weight[-1], side="right") - 1
    home = community[np.minimum(anchor, len(community) - 1)]
    circle = np.repeat(np.arange(len(sizes)), sizes)
    low, high = weight[ends[home]][circle], weight[ends[home + 1]][circle]
    member = np.searchsorted(weight, low + random.random(len(circle)) * (high - low), "right") - 1
    member = np.minimum(member, len(community) - 1)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # All pairs of places inside each circle.
    place = np.arange(len(circle)) - starts[circle]
    first = np.repeat(np.arange(len(circle)), place)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(place) - place, place)
    second = starts[circle[first]] + offset
    kept = random.random(len(first)) < 0.85
    return np.column_stack([member[first[kept]], member[second[kept]]])


def _meetings(
    random: np.random.Generator, community: Array, sociability: Array, wanted: float
) -> Array:
    """Return edges between people who met by chance, three in four inside a community."""
    number = int(wanted)
    weight = np.concatenate([[0.0], np.cumsum(sociability)])
    ends = np.searchsorted(community, np.arange(int(community[-1]) + 2))
    last = len(community) - 1
    first = np.minimum(
        np.searchsorted(weight, random.random(number) * weight[-1], "right") - 1, last
    )
    inside = random.random(number) < 0.75
    low = np.where(inside, weight[ends[community[first]]], 0.0)
    high = np.where(inside, weight[ends[community[first] + 1]], weight[-1])
    second = np.searchsorted(weight, low + random.random(number) * (high - low), "right") - 1
    return np.column_stack([first, np.minimum(second, last)]).astype(np.int64)


def all_graphs(nodes: int) -> Iterator[Graph]:
    """Yield every labelled graph on ``nodes`` nodes, 2^(n(n-1)/2) of them. Holds no private data.

    Raises:
        InputError: for more than 7 nodes, where there are too many.

    Example:
        >>> sum(1 for _ in all_graphs(4))
        64
    """
    count = validate.whole(at_least=0, nodes=nodes)
    if count > 7:
        raise InputError(f"All graphs are listed for at most 7 nodes; got nodes={nodes}.")
    return _every_graph(count)


def _every_graph(count: int) -> Iterator[Graph]:
    pairs = list(combinations(range(count), 2))
    for subset in range(2 ** len(pairs)):
        yield Graph._from_pairs(
            count, {pair for bit, pair in enumerate(pairs) if subset >> bit & 1}
        )
