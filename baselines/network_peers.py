"""Published ways to release a network per edge, built from their descriptions and made private.

Each *measures* a few whole numbers of a graph, adds Laplace noise for what one edge moves them by,
and makes the rest from the noisy numbers. What was changed, and why, stands beside each.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.source import Source
from tulle.core.validate import Number, rational
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.generators.realise import realise_degrees
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.post_processing import Random, post_processing

DEGREE_SENSITIVITY = 2
"""An edge is in the degrees of both its ends."""

HISTOGRAM_SENSITIVITY = 4
"""Both ends leave one bin and enter the next."""


def noisy(true: Wholes, sensitivity: int, epsilon: Fraction, source: Source | None) -> Wholes:
    """Return numbers that one edge moves by so much in L1, with Laplace noise."""
    with charge(LaplaceCharge(sensitivity)):
        noise = discrete_laplace(scale=sensitivity / epsilon, size=true.shape, source=source)
    return np.asarray(true + noise)


def degrees_of(graph: Graph) -> Wholes:
    """Return the degree of each node. Custodian side."""
    return np.bincount(graph.edges().ravel(), minlength=graph.node_count).astype(np.int64)


# --- ApproxDeg ----------------------------------------------------------------------------------


def approx_deg(graph: Graph, epsilon: Number, source: Source | None = None) -> Floats:
    """Return the share of nodes of each degree: a noisy histogram, cut at zero.

    As compared with in Ji et al. 2021: a histogram with bounded sensitivity and post-processing.
    Changed: published, the last degree is that of the data; here all n degrees have a bin.
    """
    found = noisy(histogram(graph), HISTOGRAM_SENSITIVITY, rational(epsilon), source)
    kept = np.maximum(found, 0).astype(np.float64)
    # What noise alone reaches in one of n bins is taken off.
    kept[kept <= HISTOGRAM_SENSITIVITY / float(rational(epsilon)) * np.log(len(kept))] = 0.0
    total = kept.sum()
    return kept / total if total else np.full(len(kept), 1 / len(kept))


def histogram(graph: Graph) -> Wholes:
    """Return how many nodes have each degree from 0 to n - 1. Custodian side."""
    return np.bincount(degrees_of(graph), minlength=graph.node_count).astype(np.int64)


# --- LDPGen -------------------------------------------------------------------------------------


def ldpgen(graph: Graph, epsilon: Number, groups: int = 10, source: Source | None = None) -> Graph:
    """Return a synthetic graph by LDPGen (Qin et al., CCS 2017).

    Half of epsilon: noisy degrees of each node into random groups of nodes, clustered by k-means.
    The other half: noisy degrees into the clusters found, from which a graph is drawn after
    Chung & Lu. Changed: published, each node's report has noise of scale 1/epsilon, so that a link,
    which is in two reports, loses twice what is stated; here it is 2/epsilon in each half.
    """
    half = rational(epsilon) / 2
    # Any groups that do not look at the graph will do.
    labels = np.random.default_rng(1).integers(0, groups, graph.node_count)
    first = noisy(into_groups(graph, labels, groups), DEGREE_SENSITIVITY, half, source)
    clusters = cluster(first.astype(np.float64), groups)
    second = noisy(into_groups(graph, clusters, groups), DEGREE_SENSITIVITY, half, source)
    return draw_by_groups(second, clusters, groups, source)


def into_groups(graph: Graph, labels: Wholes, groups: int) -> Wholes:
    """Return how many neighbours each node has in each group. Custodian side."""
    one, other = graph.edges().T
    found = np.zeros((graph.node_count, groups), dtype=np.int64)
    np.add.at(found, (one, labels[other]), 1)
    np.add.at(found, (other, labels[one]), 1)
    return found


def cluster(points: Floats, count: int, rounds: int = 30) -> Wholes:
    """Return the nearest of ``count`` centres for each point, by k-means from points far apart."""
    centres = points[[int(np.argmax(np.linalg.norm(points, axis=1)))]]
    gaps = ((points - centres[0]) ** 2).sum(axis=1)
    while len(centres) < min(count, len(points)):
        centres = np.concatenate([centres, points[[int(np.argmax(gaps))]]])
        gaps = np.minimum(gaps, ((points - centres[-1]) ** 2).sum(axis=1))
    nearest = np.zeros(len(points), dtype=np.int64)
    for _ in range(rounds):
        nearest = np.argmin(
            (centres**2).sum(axis=1)[None, :] - 2 * points @ centres.T, axis=1
        ).astype(np.int64)
        sizes = np.bincount(nearest, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    return nearest


def draw_by_groups(counts: Wholes, labels: Wholes, groups: int, source: Source | None) -> Graph:
    """Return a graph with about so many edges between groups, ends in proportion to degrees."""
    random = post_processing(source)
    nodes = len(labels)
    between = np.zeros((groups, groups))
    np.add.at(between, labels, counts.astype(np.float64))
    between = np.maximum((between + between.T) / 2, 0.0)
    weights = np.maximum(counts.sum(axis=1), 0.0) + 1e-9
    members = [np.flatnonzero(labels == group) for group in range(groups)]
    chances = [
        weights[held] / weights[held].sum() if len(held) else weights[:0] for held in members
    ]
    found = []
    for one in range(groups):
        for other in range(one, groups):
            wanted = between[one, other] / (2 if one == other else 1)
            most = len(members[one]) * len(members[other]) // (2 if one == other else 1)
            count = int(random.poisson(min(wanted, most)))
            if count and len(members[one]) and len(members[other]):
                ends = (
                    random.choice(members[one], count, p=chances[one]),
                    random.choice(members[other], count, p=chances[other]),
                )
                found.append(np.column_stack(ends))
    return _simple(np.concatenate(found) if found else np.zeros((0, 2), dtype=np.int64), nodes)


def _simple(pairs: Wholes, nodes: int) -> Graph:
    ordered = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return Graph.from_edges(np.unique(ordered, axis=0), nodes=nodes)


# --- PBCN ---------------------------------------------------------------------------------------


def pbcn(graph: Graph, epsilon: Number, source: Source | None = None) -> Graph:
    """Return a synthetic graph from clustered, noisy degrees (PBCN, Huang et al., TNSM 2020).

    Nodes of about equal noisy degree are put together and get the mean of their group; the graph
    is built by Havel & Hakimi's rule. Changed: published, groups are formed from true degrees, and
    their borders are not paid for; here from noisy ones.
    """
    degrees = noisy(degrees_of(graph), DEGREE_SENSITIVITY, rational(epsilon), source)
    return from_degrees(degrees, source)


def from_degrees(degrees: Wholes, source: Source | None) -> Graph:
    """Return a graph with about these degrees, those of like nodes made equal."""
    order = np.argsort(degrees, kind="stable")
    smoothed = degrees.astype(np.float64)
    for held in np.array_split(order, max(round(len(order) ** 0.5), 1)):
        smoothed[held] = degrees[held].mean()
    whole = np.clip(np.rint(smoothed), 0, len(degrees) - 1).astype(np.int64)
    whole[np.argmax(whole)] -= whole.sum() % 2
    return _simple(realise_degrees(whole, post_processing(source)), len(degrees))


# --- Pygmalion ----------------------------------------------------------------------------------


def pygmalion(graph: Graph, epsilon: Number, largest: int, source: Source | None = None) -> Graph:
    """Return a synthetic graph from a noisy dK-2 series (Pygmalion, Sala et al., IMC 2011).

    The series counts edges by the degrees of their ends; noise is Laplace, and pairs of degrees
    are put together until noise no longer decides. Changed: published, the noise follows the
    largest degree of the data, and neighbours have different ones; here degrees are cut at a
    public number, ``largest``, and the noise follows that number (:func:`joint_sensitivity`).
    """
    true = joint_degrees(graph, largest)
    found = noisy(true, joint_sensitivity(largest), rational(epsilon), source)
    return from_joint_degrees(found, largest, graph.node_count, source)


def from_joint_degrees(found: Wholes, largest: int, nodes: int, source: Source | None) -> Graph:
    """Return a graph with about so many edges for each pair of groups of degrees."""
    random = post_processing(source)
    groups = group_degrees(largest)
    # All pairs of degrees within two groups are one count: post-processing.
    count = int(groups.max()) + 1
    table = np.zeros((count, count))
    one, other = np.triu_indices(largest + 1)
    np.add.at(table, (groups[one], groups[other]), found)
    table = np.maximum(table, 0.0)
    ends = table.sum(axis=1) + table.sum(axis=0)
    middle = np.array([np.arange(largest + 1)[groups == g].mean() for g in range(count)])
    many = np.maximum(ends / np.maximum(middle, 1), 0.0)
    shares = many / many.sum() if many.sum() else np.full(count, 1 / count)
    # Which node has which degree is not in the series: the nodes of this graph are anybody.
    labels = random.choice(count, nodes, p=shares)
    return _draw_table(table, labels, count, random)


def joint_degrees(graph: Graph, largest: int) -> Wholes:
    """Return the number of edges for each pair of degrees, cut at ``largest``. Custodian side."""
    cut = np.minimum(degrees_of(graph), largest)
    ends = np.sort(cut[graph.edges()], axis=1)
    table = np.zeros((largest + 1, largest + 1), dtype=np.int64)
    np.add.at(table, (ends[:, 0], ends[:, 1]), 1)
    return table[np.triu_indices(largest + 1)]


def joint_sensitivity(largest: int) -> int:
    """Return how far one edge moves the counts in L1.

    Where an end had fewer than ``largest`` neighbours, each of its other edges leaves one count and
    enters another, two for each of ``largest - 1`` edges; and the edge itself is one more.
    """
    return 4 * largest - 3


def group_degrees(largest: int) -> Wholes:
    """Return the group of each degree: degrees that differ by a quarter or less are one group."""
    steps = np.log(np.maximum(np.arange(largest + 1), 1)) / np.log(1.25)
    return np.unique(np.floor(steps), return_inverse=True)[1].astype(np.int64)


def _draw_table(table: Floats, labels: Wholes, count: int, random: Random) -> Graph:
    found: list[Any] = [np.zeros((0, 2), dtype=np.int64)]
    members = [np.flatnonzero(labels == group) for group in range(count)]
    for one, other in zip(*np.triu_indices(count), strict=True):
        first, second = members[one], members[other]
        if len(first) and len(second) and table[one, other] >= 1:
            size = int(min(table[one, other], len(first) * len(second)))
            found.append(np.column_stack([random.choice(first, size), random.choice(second, size)]))
    return _simple(np.concatenate(found), len(labels))


# --- DPCD ---------------------------------------------------------------------------------------


def dpcd(graph: Graph, epsilon: Number, communities: int, source: Source | None = None) -> Wholes:
    """Return a community for each node, from a perturbed objective (DPCD, as in Ji et al. 2021).

    Changed: objective perturbation asks for a convex objective and its exact minimum, and that of
    communities is not convex. Its only term with data is the sum of A_ij times what i and j share;
    noise on that term is noise on every pair, once, after which any search is post-processing.
    """
    from tulle.graphs.spectra.denoising import HeldMatrix, decompose_noisy

    nodes = graph.node_count
    pairs = noisy(pair_bits(graph), 1, rational(epsilon), source)
    held = np.zeros((nodes, nodes), dtype=np.float32)
    held[np.triu_indices(nodes, 1)] = pairs
    held += held.T.copy()
    scale = 1 / float(rational(epsilon))
    deviation = np.sqrt(0.5) / np.sinh(0.5 / scale)
    found = decompose_noisy(HeldMatrix(held, float(deviation)), communities, None, by_size=False)
    return cluster(found.vectors, communities)


def pair_bits(graph: Graph) -> Wholes:
    """Return a one for each pair of nodes that is joined. Custodian side."""
    dense = np.zeros((graph.node_count,) * 2, dtype=np.int64)
    one, other = graph.edges().T
    dense[np.minimum(one, other), np.maximum(one, other)] = 1
    return dense[np.triu_indices(graph.node_count, 1)]
