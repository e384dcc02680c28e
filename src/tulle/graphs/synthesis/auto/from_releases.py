"""A synthetic graph from numbers that were released before: post-processing, at no price.

Per node no model can measure a whole graph: who joins may bring any number of edges. What can be
released is the degree distribution, the number of edges and of triangles, the largest degree, and
how many edges join nodes of one group. A graph that shows these is made up here.
"""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.core.validate import whole
from tulle.graphs.mechanisms.isotonic import graphical
from tulle.graphs.synthesis.auto.fit import fit_graph
from tulle.graphs.synthesis.generators.affinity import FixedParts
from tulle.graphs.synthesis.generators.tuning import Target, TriangleTargets
from tulle.graphs.synthesis.graph import SyntheticGraph
from tulle.noise.post_processing import Random, post_processing

MOST = 5_000_000
"""How many edges a made-up graph may have."""

MOST_NODES = 50_000_000


@public("Publish a graph")
def graph_from_releases(
    degrees: Release,
    *,
    edges: Release | None = None,
    triangles: Release | None = None,
    largest: Release | None = None,
    within: Release | None = None,
    groups: int = 1,
    source: Source | None = None,
) -> SyntheticGraph:
    """Make up a graph from releases: of ``degree_distribution()``, and others where you have them.

    ``edges`` and ``triangles`` are counts, ``largest`` is ``max_degree()``, and ``within`` counts
    the edges inside ``groups`` groups, a number that you declare public. Groups are made equally
    large. It looks at released values only, so the guarantee is that of the releases together and
    nothing more is spent. Asked per node, these are what a synthetic graph per node can keep.

    Raises:
        InputError: when a release is not of the question that it is passed for.

    Example:
        >>> import tulle
        >>> pairs = [(i, (i + s) % 60) for i in range(60) for s in (1, 2)]
        >>> ring = tulle.Graph.from_edges(pairs, nodes=60)
        >>> asked = {"unit": "node", "epsilon": 20.0}
        >>> spread = tulle.release(ring, tulle.degree_distribution(), largest=20, **asked,
        ...     mechanism="projection")
        >>> made = graph_from_releases(spread, edges=tulle.release(ring, tulle.edges(), **asked))
        >>> 80 < made.edge_count < 160
        True
    """
    _check("degrees", degrees, "degree_distribution")
    for name, release, question in (
        ("edges", edges, "edges"),
        ("triangles", triangles, "triangles"),
        ("largest", largest, "max_degree"),
    ):
        if release is not None:
            _check(name, release, question)
    groups = whole(groups=groups, at_least=1, at_most=1000)
    random = post_processing(source)
    counts = np.maximum(np.asarray(degrees.value, dtype=np.int64), 0)
    if int(counts.sum(dtype=np.float64)) > MOST_NODES:
        raise InputError(f"These releases ask for more than {MOST_NODES:,} nodes.")
    row = np.repeat(np.arange(len(counts)), counts)[::-1]
    top = None if largest is None else int(largest.value)
    wanted = None if edges is None else max(round(float(edges.value)), 0)
    row = graphical(with_edges(row, wanted, top, random))
    number = int(row.sum()) // 2
    if number > MOST:
        raise InputError(f"These releases ask for more than {MOST:,} edges.")
    if number == 0:
        return _made(np.empty((0, 2), dtype=np.int64), len(row))
    blocks = np.arange(len(row)) % groups
    inside = number / groups if within is None else float(np.clip(float(within.value), 0, number))
    between = np.full((groups, groups), 0.0)
    if groups > 1:
        between[:] = (number - inside) / (groups * (groups - 1) / 2)
    np.fill_diagonal(between, inside / groups)
    target = None if triangles is None else Target(max(float(triangles.value), 0.0), 1.0)
    frame = FixedParts(row, blocks, between)
    return _made(fit_graph(frame, TriangleTargets(target, None, 1, None), random), len(row))


def with_edges(row: Wholes, edges: int | None, top: int | None, random: Random) -> Wholes:
    """Return degrees, descending, that have about so many edges, and none above the top.

    Truncation cuts the largest degrees, so missing edges are given to them: those of at least half
    the largest grow by one factor. Where there are too many edges, all degrees shrink.

    Example:
        >>> row = np.array([4, 4, 1, 1, 1, 1, 1, 1])
        >>> with_edges(row, 10, None, np.random.default_rng(1)).tolist()
        [7, 7, 1, 1, 1, 1, 1, 1]
    """
    ends = int(row.sum())
    if edges is None or ends == 0:
        return row
    most = len(row) - 1 if top is None else min(max(top, int(row[0])), len(row) - 1)
    missing = 2 * edges - ends
    if missing <= 0:
        exact = row * (2 * edges / ends)
    else:
        hubs = row * 2 >= row[0]
        exact = np.where(hubs, row * (1 + missing / float(row[hubs].sum())), row)
    floor = np.floor(exact)
    rounded = floor + (random.random(len(row)) < exact - floor)
    return np.sort(np.minimum(rounded, most).astype(np.int64))[::-1]


def _check(name: str, release: Release, question: str) -> None:
    if not isinstance(release, Release) or not release.query.startswith(question):
        got = release.query if isinstance(release, Release) else type(release).__name__
        raise InputError(f"{name} must be a release of {question}(); got {got}.")


def _made(edges: Wholes, nodes: int) -> SyntheticGraph:
    made = SyntheticGraph.from_edges(edges, nodes=nodes)
    assert isinstance(made, SyntheticGraph)
    return made
