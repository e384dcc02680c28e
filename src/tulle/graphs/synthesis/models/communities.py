"""The model communities: private communities, degrees inside them and edges between them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.arrays import Wholes
from tulle.core.errors import QueryError
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.edge_counts import member_counts, pair_counts
from tulle.graphs.synthesis.estimates.blocks import find_blocks, square_of
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.models.one_k import check_noise
from tulle.graphs.synthesis.query import Synthetic, parts_of
from tulle.noise import SeededSource, discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.post_processing import Random, post_processing
from tulle.noise.watch import disjoint, part

_MOST_GROUPS = 2_000
_LARGEST_SCALE = 2**40


@dataclass(frozen=True)
class Tuning:
    """What holds unless the user says otherwise; which data chose it is not on record."""

    group_size: int = 20
    """How many nodes are thrown together before communities are looked for."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False, kw_only=True)
class CommunitySettings(ModelSettings):
    """The public settings of one run; parts of epsilon, of which some may not be needed."""

    groups: int
    inner: Fraction
    groups_epsilon: Fraction | None = None
    members: Fraction | None = None
    partition: Any = None
    """The community of each node, where that is public."""


@registry.offered(
    "synthetic", "communities", "Communities", "keeps groups and the links between them"
)
@registry.mechanism("graph", "synthetic_communities", answers=(Synthetic,), units=("edge",))
class Communities(SynthesisModel):
    """Find communities, then keep degrees inside them and numbers of edges between them.

    Nodes are thrown into public random groups; communities of groups are found from noisy counts
    between groups; each node then goes to the community where it has most noisy neighbours. Edges
    inside a community are drawn by the nodes' noisy inner degrees, edges between communities
    uniformly, as many as the noisy count says.

    Guarantee:
        Pure epsilon per edge, a third for each step. An edge lies between two groups: the counts
        move by 1. It is seen from both ends by the counts of neighbours per community: 2. Given
        the communities, which are released by then, an edge is either inside one, where it moves
        two inner degrees, or between two, where it moves one count: each of the two parts may
        spend the last third, since one edge touches only one of them. With a public ``partition``
        the first two steps fall away, and the last has all of epsilon.

    Error:
        Good where communities are large and dense; small ones drown, and triangles are not kept.

    Reference:
        Yuan et al., PrivGraph: differentially private graph data publication by exploiting
        community information, USENIX Security 2023.

    Example:
        >>> import tulle
        >>> ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
        >>> r = tulle.release(ring, tulle.synthetic("communities"), unit="edge", epsilon=90.0)
        >>> r.value.node_count
        9
    """

    model: ClassVar[str] = "communities"
    title: ClassVar[str] = "private communities, inner degrees and edges between"
    keeps_identities: ClassVar[bool] = True
    reference: ClassVar[str] = "Yuan et al., USENIX Security 2023, corrected"
    options: ClassVar[tuple[str, ...]] = ("size", "partition")

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        size = validate.whole(size=options.get("size", _TUNING.group_size), at_least=1)
        groups = min(-(-nodes // size), _MOST_GROUPS)
        if 6 / terms.epsilon > _LARGEST_SCALE:
            raise QueryError(
                f"epsilon = {float(terms.epsilon):.3g} is too small for a graph of "
                f"{counted(nodes, 'node')}: noise would exceed every count beyond measure. Spend "
                "more."
            )
        if "partition" in options:
            check_parts(parts_of(options["partition"]), nodes)
            check_noise(nodes, terms.epsilon, terms.epsilon)
            return CommunitySettings(
                nodes=nodes, groups=1, partition=options["partition"], inner=terms.epsilon
            )
        check_noise(nodes, terms.epsilon / 3, terms.epsilon)
        if groups < 2:
            # One group is one community: only the degrees are left to measure.
            return CommunitySettings(nodes=nodes, groups=1, inner=terms.epsilon)
        third = terms.epsilon / 3
        return CommunitySettings(
            nodes=nodes, groups=groups, groups_epsilon=third, members=third, inner=third
        )

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        seen: dict[str, Any] = {}

        def noisy(name: str, truth: Wholes, sensitivity: int, epsilon: Fraction) -> None:
            with charge(LaplaceCharge(sensitivity)):
                noise = discrete_laplace(
                    scale=sensitivity / epsilon, size=truth.shape, source=source
                )
            seen[name] = truth + noise

        chosen = CommunitySettings.read(settings)
        if chosen.groups > 1:
            assert chosen.groups_epsilon is not None
            assert chosen.members is not None
            labels = group_of(settings)
            counts = pair_counts(graph, labels, chosen.groups)
            noisy("groups", counts, 1, chosen.groups_epsilon)
            start = start_of(seen, settings)
            counts = member_counts(graph, start, int(start.max()) + 1)
            noisy("members", counts, 2, chosen.members)
        labels = communities_of(seen, settings)
        inner = chosen.inner
        kinds = int(labels.max()) + 1
        # An edge is within a community or between two, so that both have all of this budget.
        with disjoint():
            with part("inner"):
                noisy("inner", inner_degrees(graph, labels), 2, inner)
            if kinds > 1:
                outer = pair_counts(graph, labels, kinds)[_off_diagonal(kinds)]
                with part("between"):
                    noisy("between", outer, 1, inner)
        return seen

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        labels = communities_of(statistics, settings)
        kinds = int(labels.max()) + 1
        members = [np.flatnonzero(labels == kind) for kind in range(kinds)]
        parts = [np.empty((0, 2), dtype=np.int64)]
        for place in members:
            parts.append(_inside(place, _drawn_to_sum(statistics["inner"][place]), random))
        if kinds > 1:
            numbers = _drawn_to_sum(statistics["between"])
            one, two = np.triu_indices(kinds, 1)
            for r, s, number in zip(one, two, numbers.tolist(), strict=True):
                parts.append(_between(members[r], members[s], number, random))
        return np.concatenate(parts)


def check_parts(parts: tuple[int, ...], nodes: int) -> None:
    """Refuse a public partition that does not fit the graph.

    Raises:
        QueryError: when it has another length, or too many parts to count edges between each two.
    """
    if len(parts) != nodes:
        raise QueryError(
            f"The partition has {counted(len(parts), 'label')} and the graph "
            f"{counted(nodes, 'node')}. Pass one label for each node, in their order."
        )
    if sorted(set(parts)) != list(range(len(set(parts)))):
        raise QueryError("partition must number its parts from 0 on, without a gap.")
    if len(set(parts)) > _MOST_GROUPS:
        raise QueryError(
            f"The partition has {counted(len(set(parts)), 'part')}; at most {_MOST_GROUPS:,} can "
            "be kept. Put small ones together."
        )


def group_of(settings: Parameters) -> Wholes:
    """Return the public group of each node: the same for everyone, as good as random."""
    chosen = CommunitySettings.read(settings)
    nodes, groups = chosen.nodes, chosen.groups
    return post_processing(SeededSource(nodes)).permutation(nodes) % groups


def start_of(seen: Statistics, settings: Parameters) -> Wholes:
    """Return the first community of each node, that of its group."""
    groups = CommunitySettings.read(settings).groups
    found, _ = find_blocks(square_of(seen["groups"], groups))
    return found[group_of(settings)]


def communities_of(seen: Statistics, settings: Parameters) -> Wholes:
    """Return the community of each node: the public one, or where it has most noisy neighbours."""
    chosen = CommunitySettings.read(settings)
    nodes = chosen.nodes
    if chosen.partition is not None:
        return np.array(parts_of(chosen.partition), dtype=np.int64)
    if "members" not in seen:
        return np.zeros(nodes, dtype=np.int64)
    table = seen["members"].reshape(nodes, -1)
    _, labels = np.unique(np.argmax(table, axis=1), return_inverse=True)
    return labels.astype(np.int64)


def inner_degrees(graph: Graph, labels: Wholes) -> Wholes:
    """Return how many neighbours each node has in its own community. Custodian side."""
    edges = graph.edges().reshape(-1, 2)
    inside = edges[labels[edges[:, 0]] == labels[edges[:, 1]]]
    return np.bincount(inside.ravel(), minlength=graph.node_count).astype(np.int64)


def _off_diagonal(kinds: int) -> npt.NDArray[np.bool_]:
    row, column = np.triu_indices(kinds)
    return np.asarray(row != column)


def _drawn_to_sum(noisy: Wholes) -> Wholes:
    """Return whole numbers from 0 on whose sum is nearest to the noisy one, all lowered alike."""
    total = max(int(noisy.sum()), 0)
    low, high = 0, int(max(noisy.max(initial=0), 0)) + 1
    while low < high:
        middle = (low + high) // 2
        if int(np.maximum(noisy - middle, 0).sum()) > total:
            low = middle + 1
        else:
            high = middle
    return np.maximum(noisy - low, 0)


def _inside(nodes: Wholes, degrees: Wholes, random: Random) -> Wholes:
    """Return edges drawn with chances in proportion to both degrees."""
    degrees = np.minimum(degrees, len(nodes) - 1)
    ends = np.repeat(nodes, degrees)
    number = len(ends) // 2
    wanted = min(number, len(nodes) * (len(nodes) - 1) // 2)
    return _distinct(wanted, lambda size: (random.choice(ends, size), random.choice(ends, size)))


def _between(one: Wholes, two: Wholes, number: int, random: Random) -> Wholes:
    """Return so many edges between two communities, uniformly."""
    wanted = min(number, len(one) * len(two))
    return _distinct(wanted, lambda size: (random.choice(one, size), random.choice(two, size)))


def _distinct(wanted: int, draw: Any) -> Wholes:
    """Return so many distinct pairs, or nearly, from repeated draws of two ends."""
    found = np.empty((0, 2), dtype=np.int64)
    for _ in range(20):
        missing = wanted - len(found)
        if missing <= 0:
            break
        ends = np.sort(np.column_stack(draw(missing + 4)), axis=1)
        both = np.concatenate([found, ends[ends[:, 0] != ends[:, 1]]])
        _, first = np.unique(both, axis=0, return_index=True)
        found = both[np.sort(first)][:wanted]
    return found
