"""The model auto: degrees, triangles, clustering and blocks, as far as the budget carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Wholes
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import counted, text
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.isotonic import sorted_sequence
from tulle.graphs.queries.counts import ProfiledCount, stars, triangles
from tulle.graphs.queries.degrees import DegreeDistribution, Degrees
from tulle.graphs.synthesis.auto.blocks import divide, first_blocks, last_blocks
from tulle.graphs.synthesis.auto.budget import LEAST, first_shares, rungs_of
from tulle.graphs.synthesis.auto.core import Ranks, measure_core
from tulle.graphs.synthesis.auto.degrees import Climbed, Noisy, estimate_degrees
from tulle.graphs.synthesis.auto.fit import fit_graph
from tulle.graphs.synthesis.auto.likely import with_likely
from tulle.graphs.synthesis.auto.schedule import (
    CORE_SEARCH,
    PARTS,
    AutoSettings,
    budget,
    budgets_of,
    grade_of,
    known_of,
    placeable_degree,
    ranges_of,
    ranks_of,
    schedule_of,
    scores_of,
    size_of_core,
    smoothing_of,
)
from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.edge_counts import (
    closed_picks,
    large_degrees,
    member_counts,
    order_counts,
    pair_counts,
)
from tulle.graphs.synthesis.estimates.block_mixture import Placed
from tulle.graphs.synthesis.generators.affinity import FixedParts
from tulle.graphs.synthesis.generators.mixing import MixingCounts
from tulle.graphs.synthesis.generators.tuning import Target, TriangleTargets
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses, soft_classes, unpack
from tulle.graphs.synthesis.joint_degrees.scores import DegreeScores, ScoredEdges
from tulle.graphs.synthesis.ladder_counts import draw_count
from tulle.graphs.synthesis.model import ModelSettings, Statistics, SynthesisModel
from tulle.graphs.synthesis.query import Synthetic
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.noise.post_processing import Random

STEP = Fraction(1, 1024)
"""The lattice of edges between classes of degrees, and of products of scores."""

LADDERS: Mapping[str, ProfiledCount] = {
    "triangles": triangles(),
    "recount": triangles(),
    "stars": stars(2),
}
"""Parts that are drawn from a ladder, and what they count."""

_LARGEST_SCALE = 2**40


@registry.offered(
    "synthetic", "auto", "Automatic", "chooses and combines what survives at this price"
)
@registry.mechanism("graph", "synthetic_auto", answers=(Synthetic,), units=("edge",))
class Auto(SynthesisModel):
    """A graph with private degrees, triangles, clustering and, where they show, blocks.

    First the number of edges and the number between ranges of the nodes' public order, that of
    their labels (``tulle.graphs.io.labels``), which no edge changes: numbers of nodes are public
    under edge privacy, and they often follow how a network grew or was collected. If these counts
    show more structure than noise would, blocks are read from them and refined with each node's
    noisy number of neighbours in each block. If not, triangles and noisy degrees tell whether
    communities of a core of nodes would rise out of the noise, and whether most other nodes could
    be placed; if so, blocks are found there (:mod:`tulle.graphs.synthesis.auto.core`). Budget that
    is not spent so goes to the rest: degrees along both axes of their curve, triangles, pairs of
    edges that meet (variance of degrees), picked pairs that are joined (clustering), how alike the
    degrees of joined nodes are and edges between classes of degrees (assortativity). The generator
    turns knobs until a graph with these degrees and blocks shows the private counts.

    Guarantee:
        Pure epsilon per edge. The parts add up to epsilon; each adds noise to a count that one
        edge moves by at most: edges, order and pairs 1; placeable, ranks, reached, sequence and
        members 2; closure its limit + 2; mixing and correlation what ``mixing_moves`` and
        ``correlation_moves`` say; triangles and stars are drawn from ladders (see
        ``smoothed_ladder``). The part core releases three things, about
        pairs within, across and outside a core: an edge is in one of them, and each has all of
        its budget.
        Which schedule is used, the core, the blocks and the limits follow from public facts and
        from parts released before, and what a part spends does not depend on later ones, so the
        parts compose.

    Error:
        No law: see ``tulle.compare`` and benchmarks/synthetic.py. What drowns in noise is left
        to chance: single edges always are.

    Reference:
        Our own. Degrees after Hay et al., ICDM 2009; triangles after Zhang et al., SIGMOD 2015;
        groups of nodes after Seshadhri, Kolda & Pinar, Physical Review E 85, 2012.

    Example:
        >>> import tulle
        >>> ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], nodes=9)
        >>> r = tulle.release(ring, tulle.synthetic(), unit="edge", epsilon=1000.0)
        >>> r.value
        <SyntheticGraph: 9 nodes, 9 edges>
    """

    model: ClassVar[str] = "auto"
    title: ClassVar[str] = "degrees, triangles, clustering and blocks that survive the noise"
    reference: ClassVar[str] = "ours; see the docstring"
    options: ClassVar[tuple[str, ...]] = ("blocks", "parts")
    member_moves: ClassVar[int] = 2
    """How many of the nodes' neighbour counts one edge moves."""

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> ModelSettings:
        blocks = options.get("blocks", "auto")
        if blocks not in ("auto", "yes", "core", "no"):
            raise InputError(f"blocks must be auto, yes, core or no; got {blocks!r}.")
        parts = _parts(options.get("parts", "all"))
        whole = parts == list(PARTS)
        if blocks == "core" or nodes < TUNING.model.fewest_in_order or "order" not in parts:
            parts = [part for part in parts if part != "order"]
            blocks = blocks if blocks == "core" else "no"
        elif blocks == "no":
            parts = [part for part in parts if part != "order"]
        # The noise of the edges between classes, which move most, with the smallest share.
        largest = mixing_moves(mixing_classes(nodes)) / LEAST
        if largest / (terms.epsilon * TUNING.model.shared) > _LARGEST_SCALE:
            raise QueryError(
                f"epsilon = {float(terms.epsilon):.3g} is too small to make a graph of "
                f"{counted(nodes, 'node')}: noise would exceed every count beyond measure. Spend "
                "more, or ask for edges() alone."
            )
        first = first_shares(nodes, terms.epsilon, parts)
        searching = blocks == "core" or (
            blocks == "auto" and whole and nodes >= TUNING.schedule.fewest_searched
        )
        if parts == ["edges"] and not searching:
            # Nothing follows.
            first = {"edges": Fraction(1)}
        return AutoSettings(
            nodes=nodes,
            blocks=blocks,
            parts=",".join(parts),
            epsilon=terms.epsilon,
            shares={name: text(share) for name, share in first.items()},
            core_search={
                name: text(share)
                for name, share in CORE_SEARCH[grade_of(terms.epsilon)].items()
                if searching and (name in parts or name not in PARTS)
            },
        )

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        seen: dict[str, Any] = {}

        def noisy(name: str, truth: Any, sensitivity: int | Fraction) -> None:
            scale = sensitivity / budget(settings, seen, name)
            size = None if isinstance(truth, int) else truth.shape
            with charge(LaplaceCharge(sensitivity)):
                seen[name] = truth + discrete_laplace(scale=scale, size=size, source=source)

        def climb(name: str) -> None:
            spent, smoothing = budget(settings, seen, name), smoothing_of(settings, seen, name)
            seen[name] = draw_count(LADDERS[name], graph, spent, source, smoothing)

        noisy("edges", graph.edge_count, 1)
        if "order" in AutoSettings.read(settings).shares:
            noisy("order", order_counts(graph, ranges_of(seen, settings)), 1)
        if "triangles" in AutoSettings.read(settings).shares:
            climb("triangles")
        if AutoSettings.read(settings).core_search and schedule_of(seen, settings) != "blocks":
            if schedule_of(seen, settings) == "core":
                noisy("placeable", large_degrees(graph, placeable_degree(settings)), 2)
            if schedule_of(seen, settings) == "core":
                noisy("ranks", degrees(graph), 2)
            if schedule_of(seen, settings) == "core":
                spent, size = budget(settings, seen, "core"), size_of_core(seen, settings)
                placed = self.find_core(terms, graph, ranks_of(seen, settings), size, spent, source)
                seen["home"] = placed.blocks
                seen["weights"] = np.rint(placed.weights).astype(np.int64)
                kinds = int(placed.blocks.max()) + 1
                noisy("pairs", pair_counts(graph, placed.blocks, kinds), 1)
        parts = budgets_of(seen, settings)
        if "reached" in parts:
            noisy("reached", sorted_sequence(DegreeDistribution(), graph), 2)
        if "sequence" in parts:
            noisy("sequence", sorted_sequence(Degrees(), graph), 2)
        # What the rest may spend follows from all of these.
        parts = budgets_of(seen, settings)
        for name in LADDERS:
            if name in parts and name not in seen:
                climb(name)
        if "closure" in parts:
            limit = closure_limit(seen, settings)
            noisy("closure", closed_picks(graph, limit), limit + 2)
        if "correlation" in parts:
            noisy("correlation", *self.count_correlation(graph, scores_of(seen, settings)))
        if "mixing" in parts:
            classes = mixing_classes(graph.node_count)
            noisy("mixing", *self.count_mixing(graph, classes))
        if "members" in parts:
            start = first_blocks(seen, settings)
            kinds = int(start.max()) + 1
            noisy("members", member_counts(graph, start, kinds), self.member_moves)
            noisy("pairs", pair_counts(graph, last_blocks(seen, settings).blocks, kinds), 1)
        return seen

    def count_mixing(self, graph: Graph, classes: SoftClasses) -> tuple[Wholes, Fraction]:
        """Return the edges between classes of degrees, and how far one edge moves them."""
        return classes.measure(graph, STEP), mixing_moves(classes)

    def count_correlation(self, graph: Graph, scores: DegreeScores) -> tuple[int, Fraction]:
        """Return the sum, over edges, of products of scores, and how far one edge moves it."""
        return scores.measure(graph, STEP), correlation_moves(scores)

    def find_core(
        self,
        terms: Terms,
        graph: Graph,
        ranks: Ranks,
        size: int,
        epsilon: Fraction,
        source: Source | None,
    ) -> Placed:
        """Return the block and the expected degree of each node, at the price of this epsilon."""
        return measure_core(terms, graph, ranks, size, epsilon, source)

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Wholes:
        nodes = AutoSettings.read(settings).nodes
        degrees = degrees_of(statistics, settings)
        edges = int(degrees.sum()) // 2
        if edges == 0:
            return np.empty((0, 2), dtype=np.int64)
        division = divide(statistics, settings, edges)
        of_node = np.empty(nodes, dtype=np.int64)
        of_node[np.lexsort((random.random(nodes), -division.weights))] = degrees
        frame = FixedParts(of_node, division.blocks, division.counts)
        targets = with_likely(targets_of(statistics, settings), degrees, random)
        return fit_graph(frame, targets, random)


def _parts(asked: Any) -> list[str]:
    if asked == "all":
        return list(PARTS)
    chosen = [part.strip() for part in str(asked).split(",")]
    for part in chosen:
        if part not in PARTS:
            raise InputError(f"There is no part {part!r}. Parts: {', '.join(PARTS)}.")
    return [part for part in PARTS if part in chosen or part == "edges"]


def closure_limit(seen: Statistics, settings: Parameters) -> int:
    """Return how often one pair may be picked: more where noise is small beside joined pairs."""
    known = known_of(seen, settings)
    spent = float(budget(settings, seen, "closure"))
    joined = known.clustering() * AutoSettings.read(settings).nodes
    return int(min(max(TUNING.model.noisy_picks * spent * joined - 2, 2), 64))


def mixing_classes(nodes: int) -> SoftClasses:
    """Return the classes of degrees."""
    return soft_classes(max(nodes, 2), TUNING.model.ratio)


def mixing_moves(classes: SoftClasses) -> Fraction:
    """Return the most that one edge moves the rounded counts of edges between classes."""
    return classes.sensitivity() / STEP + classes.cells


def correlation_moves(scores: DegreeScores) -> Fraction:
    """Return the most that one edge moves the rounded sum of products of scores."""
    return scores.sensitivity() / STEP + 1


def degrees_of(seen: Statistics, settings: Parameters) -> Wholes:
    """Return the degree sequence, descending, that the noisy curves say."""
    nodes = AutoSettings.read(settings).nodes
    edges = int(seen["edges"])
    if "reached" in seen:
        rows = {
            name: Noisy(seen[name], float(sensitivity / budget(settings, seen, name)))
            for name, sensitivity in (("edges", 1), ("reached", 2), ("sequence", 2))
            if name in seen
        }
        stars = None
        if "stars" in seen:
            spent, smoothing = (of(settings, seen, "stars") for of in (budget, smoothing_of))
            stars = Climbed(int(seen["stars"]), spent, smoothing)
        return estimate_degrees(nodes, **rows, stars=stars)
    edges = min(max(edges, 0), nodes * (nodes - 1) // 2)
    even, more = divmod(2 * edges, nodes)
    return even + (np.arange(nodes) < more).astype(np.int64)


def targets_of(seen: Statistics, settings: Parameters) -> TriangleTargets:
    """Return what the generated graph should show, with the noise in it."""
    tried = closed = mixing = correlation = None
    limit = 1
    if "triangles" in seen:
        tried = triangles_of(seen, settings)
    if "closure" in seen:
        limit = closure_limit(seen, settings)
        noise = math.sqrt(2) * (limit + 2) / float(budget(settings, seen, "closure"))
        closed = Target(float(seen["closure"]), noise)
    if "mixing" in seen:
        classes = mixing_classes(AutoSettings.read(settings).nodes)
        scale = float(mixing_moves(classes) * STEP / budget(settings, seen, "mixing"))
        wanted = unpack(seen["mixing"] * float(STEP), classes.count)
        mixing = MixingCounts(classes, wanted, math.sqrt(2) * scale)
    if "correlation" in seen:
        scores = scores_of(seen, settings)
        scale = float(correlation_moves(scores) * STEP / budget(settings, seen, "correlation"))
        value = float(seen["correlation"] * STEP)
        correlation = ScoredEdges(scores, value, math.sqrt(2) * scale)
    return TriangleTargets(tried, closed, limit, mixing, correlation)


def triangles_of(seen: Statistics, settings: Parameters) -> Target:
    """Return the number of triangles by both counts, weighed by their variances."""
    known = known_of(seen, settings)
    total = weights = 0.0
    for name in ("triangles", "recount"):
        if name in seen:
            spent, smoothing = (of(settings, seen, name) for of in (budget, smoothing_of))
            weight = 1 / rungs_of(known, name).scale(float(spent), float(smoothing)) ** 2
            total, weights = total + weight * float(seen[name]), weights + weight
    return Target(total / weights, math.sqrt(2 / weights))
