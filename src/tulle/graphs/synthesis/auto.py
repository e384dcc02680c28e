"""The model auto: degrees, triangles, clustering and blocks, as far as the budget carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.errors import InputError, QueryError
from tulle.core.exact import rational, text
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.isotonic import sorted_sequence
from tulle.graphs.ladder import SMOOTHING_SHARE, draw_ladder, ladder_widths
from tulle.graphs.queries import DegreeDistribution, Degrees, triangles
from tulle.graphs.sensitivity import cap
from tulle.graphs.settings import public_length
from tulle.graphs.synthesis.affinity import Frame
from tulle.graphs.synthesis.auto_degrees import estimate_degrees
from tulle.graphs.synthesis.auto_fit import Target, Targets, fit_graph
from tulle.graphs.synthesis.auto_parts import (
    closed_picks,
    member_counts,
    mixing_sensitivity,
    mixing_sum,
    order_counts,
    pair_counts,
    range_of,
)
from tulle.graphs.synthesis.blocks import (
    chance_modularity,
    find_blocks,
    refine,
    shrunken_degrees,
    square_of,
)
from tulle.graphs.synthesis.model import Edges, Model, Statistics
from tulle.noise import Random, discrete_laplace

Wholes = npt.NDArray[np.int64]

AMPLE = Fraction(3)
"""From this epsilon on, degrees get more of it: the rest is good enough by then."""


def _percent(**shares: int) -> Mapping[str, Fraction]:
    return {name: Fraction(share, 100) for name, share in shares.items()}


SHARES: Mapping[str, Mapping[str, Mapping[str, Fraction]]] = {
    "scarce": {
        "first": _percent(edges=5, order=9),
        "blocks": _percent(
            reached=10, sequence=8, triangles=12, closure=10, mixing=8, members=30, pairs=8
        ),
        "plain": _percent(reached=22, sequence=14, triangles=20, closure=17, mixing=13),
    },
    "ample": {
        "first": _percent(edges=6, order=5),
        "blocks": _percent(
            reached=22, sequence=18, triangles=8, closure=8, mixing=7, members=22, pairs=4
        ),
        "plain": _percent(reached=30, sequence=24, triangles=13, closure=12, mixing=10),
    },
}
"""What each part spends of epsilon: the first two, then one schedule or the other."""

FIRST = ("edges", "order")
PARTS = ("edges", "order", "reached", "sequence", "triangles", "closure", "mixing")

TELLING = 0.2
"""How much more modularity than chance shows the public order must have to be used."""

TRUST = 0.8
"""How sure a node is of the block that its place in the order gives it."""

_FEWEST_IN_ORDER = 4
_MOST_RANGES = 64
_LARGEST_SCALE = 2**40


@registry.register("mechanism", "graph", "synthetic_auto")
class Auto(Model):
    """A graph with private degrees, triangles, clustering and, where they show, blocks.

    First the number of edges and the number between ranges of the nodes' public order: numbers
    of nodes are public under edge privacy, and they often follow how a network grew or was
    collected. If these counts show more structure than noise would, blocks are read from them
    and refined with each node's noisy number of neighbours in each block; if not, that budget
    goes to the rest: degrees along both axes of their curve, triangles, picked pairs that are
    joined (clustering) and products of degrees across edges (assortativity). The generator turns
    three knobs until a graph with these degrees and blocks shows the private counts.

    Guarantee:
        Pure epsilon per edge. The parts add up to epsilon; each adds noise to a count that one
        edge moves by at most: edges, order and pairs 1; reached, sequence and members 2; closure
        its limit + 2; mixing limit² + 2·limit·(limit - 1); triangles are drawn from a ladder
        (see ``steep``). Which schedule is used, the blocks and the limits follow from public
        facts and from parts released before, and both schedules spend the same, so the parts
        compose.

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

    name: ClassVar[str] = "synthetic_auto"
    model: ClassVar[str] = "auto"
    title: ClassVar[str] = "degrees, triangles, clustering and blocks that survive the noise"
    reference: ClassVar[str] = "ours; see the docstring"
    options: ClassVar[tuple[str, ...]] = ("blocks", "parts")

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> Parameters:
        blocks = options.get("blocks", "auto")
        if blocks not in ("auto", "yes", "no"):
            raise InputError(f"blocks must be auto, yes or no; got {blocks!r}.")
        parts = _parts(options.get("parts", "all"))
        if nodes < _FEWEST_IN_ORDER or blocks == "no" or "order" not in parts:
            blocks, parts = "no", [part for part in parts if part != "order"]
        table = SHARES["ample" if terms.epsilon >= AMPLE else "scarce"]
        budgets = {name: _divided(table, name, parts) for name in ("blocks", "plain")}
        if blocks == "no":
            budgets.pop("blocks")
        smallest = min(share for budget in budgets.values() for share in budget.values())
        if nodes * nodes * 4 / (terms.epsilon * smallest) > _LARGEST_SCALE:
            raise QueryError(
                f"epsilon = {float(terms.epsilon):.3g} is too small to make a graph of "
                f"{nodes:,} nodes: noise would exceed every count beyond measure. Spend more, or "
                "ask for edges() alone."
            )
        return {
            "blocks": blocks,
            "parts": ",".join(parts),
            "budgets": {
                schedule: {name: text(terms.epsilon * share) for name, share in budget.items()}
                for schedule, budget in budgets.items()
            },
        }

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        seen: dict[str, Any] = {}

        def noisy(name: str, truth: Any, sensitivity: int) -> None:
            scale = sensitivity / budget(settings, seen, name)
            if isinstance(truth, int):
                seen[name] = truth + discrete_laplace(scale=scale, source=source)
            else:
                noise = discrete_laplace(scale=scale, size=truth.shape, source=source)
                seen[name] = truth + noise

        parts = settings["parts"].split(",")
        noisy("edges", graph.edge_count, 1)
        if "order" in parts:
            noisy("order", order_counts(graph, ranges_of(seen, settings)), 1)
        if "reached" in parts:
            noisy("reached", sorted_sequence(DegreeDistribution(), graph), 2)
        if "sequence" in parts:
            noisy("sequence", sorted_sequence(Degrees(), graph), 2)
        if "triangles" in parts:
            seen["triangles"] = draw_triangles(graph, budget(settings, seen, "triangles"), source)
        if "closure" in parts:
            limit = closure_limit(seen, settings)
            noisy("closure", closed_picks(graph, limit), limit + 2)
        if "mixing" in parts:
            limit = mixing_limit(seen, settings)
            noisy("mixing", mixing_sum(graph, limit), mixing_sensitivity(limit))
        if schedule_of(seen, settings) == "blocks":
            start, counts = first_blocks(seen, settings)
            noisy("members", member_counts(graph, start, len(counts)), 2)
            final = last_blocks(seen, settings)
            noisy("pairs", pair_counts(graph, final, len(counts)), 1)
        return seen

    def generate(self, statistics: Statistics, settings: Parameters, random: Random) -> Edges:
        nodes = int(settings["nodes"])
        degrees = degrees_of(statistics, settings)
        edges = int(degrees.sum()) // 2
        if edges == 0:
            return np.empty((0, 2), dtype=np.int64)
        if "pairs" in statistics:
            blocks = last_blocks(statistics, settings)
            scale = float(2 / budget(settings, statistics, "members"))
            kinds = len(first_blocks(statistics, settings)[1])
            members = statistics["members"].reshape(nodes, kinds)
            key = shrunken_degrees(members, blocks, scale)
            counts = np.maximum(square_of(statistics["pairs"], kinds), 0.0)
        else:
            blocks = np.zeros(nodes, dtype=np.int64)
            key = np.zeros(nodes)
            counts = np.array([[float(edges)]])
        of_node = np.empty(nodes, dtype=np.int64)
        of_node[np.lexsort((random.random(nodes), -key))] = degrees
        frame = Frame(of_node, blocks, counts)
        return fit_graph(frame, targets_of(statistics, settings, degrees), random)


def _parts(asked: Any) -> list[str]:
    if asked == "all":
        return list(PARTS)
    chosen = [part.strip() for part in str(asked).split(",")]
    for part in chosen:
        if part not in PARTS:
            raise InputError(f"There is no part {part!r}. Parts: {', '.join(PARTS)}.")
    return [part for part in PARTS if part in chosen or part == "edges"]


def _divided(
    table: Mapping[str, Mapping[str, Fraction]], schedule: str, parts: list[str]
) -> dict[str, Fraction]:
    """Return the share of each part that is measured; they add up to one.

    The first parts come before a schedule is chosen, so their shares are the same in both.
    """
    first = {name: share for name, share in table["first"].items() if name in parts}
    later = {
        name: share
        for name, share in table[schedule].items()
        if name in parts or (name in ("members", "pairs") and "order" in parts)
    }
    if not later:
        whole = sum(first.values(), Fraction(0))
        return {name: share / whole for name, share in first.items()}
    left = (1 - sum(first.values(), Fraction(0))) / sum(later.values(), Fraction(0))
    return {**first, **{name: share * left for name, share in later.items()}}


def budget(settings: Parameters, seen: Statistics, name: str) -> Fraction:
    """Return what a part may spend, given the parts released before."""
    schedule = "plain" if settings["blocks"] == "no" else "blocks"
    if name not in FIRST:
        schedule = schedule_of(seen, settings)
    return rational(settings["budgets"][schedule][name])


def schedule_of(seen: Statistics, settings: Parameters) -> str:
    """Return which schedule is followed: by choice, or by what the noisy order shows."""
    if settings["blocks"] == "no" or "order" not in seen:
        return "plain"
    counts = square_of(seen["order"], ranges_of(seen, settings))
    blocks, modularity = find_blocks(counts)
    if int(blocks.max()) == 0:
        return "plain"
    if settings["blocks"] == "yes":
        return "blocks"
    scale = float(1 / rational(settings["budgets"]["blocks"]["order"]))
    telling = modularity - chance_modularity(counts, scale) >= TELLING
    return "blocks" if telling else "plain"


def ranges_of(seen: Statistics, settings: Parameters) -> int:
    """Return into how many ranges the order is cut: so many that a cell outweighs its noise."""
    spent = float(rational(settings["budgets"]["blocks"]["order"]))
    most = math.isqrt(max(int(seen["edges"] * spent / 3), 0))
    return max(2, min(most, _MOST_RANGES, int(settings["nodes"]) // 2))


def closure_limit(seen: Statistics, settings: Parameters) -> int:
    """Return how often one pair may be picked: more where noise is small beside n."""
    spent = float(budget(settings, seen, "closure"))
    return int(min(max(spent * int(settings["nodes"]) / 100, 2), 64))


def mixing_limit(seen: Statistics, settings: Parameters) -> int:
    """Return where degrees are cut in the mixing sum: at one that few nodes exceed."""
    degrees = degrees_of(seen, settings)
    return max(int(degrees[len(degrees) // 50]), 1)


def degrees_of(seen: Statistics, settings: Parameters) -> Wholes:
    """Return the degree sequence, descending, that the noisy curves say."""
    nodes = int(settings["nodes"])
    edges = int(seen["edges"])
    if "reached" in seen and "sequence" in seen:
        scale = float(2 / budget(settings, seen, "reached"))
        other = float(2 / budget(settings, seen, "sequence"))
        return estimate_degrees(seen["reached"], seen["sequence"], edges, scale, nodes, other)
    edges = min(max(edges, 0), nodes * (nodes - 1) // 2)
    even, more = divmod(2 * edges, nodes)
    return even + (np.arange(nodes) < more).astype(np.int64)


def first_blocks(seen: Statistics, settings: Parameters) -> tuple[Wholes, npt.NDArray[Any]]:
    """Return the block of each node by its place in the order, and the counts between blocks."""
    ranges = ranges_of(seen, settings)
    counts = square_of(seen["order"], ranges)
    blocks, _ = find_blocks(counts)
    chosen = np.eye(int(blocks.max()) + 1)[blocks]
    doubled = chosen.T @ (counts + np.diag(np.diag(counts))) @ chosen
    doubled[np.diag_indices(len(doubled))] /= 2
    return blocks[range_of(int(settings["nodes"]), ranges)], doubled


def last_blocks(seen: Statistics, settings: Parameters) -> Wholes:
    """Return the block of each node after its neighbours were heard."""
    start, counts = first_blocks(seen, settings)
    scale = float(2 / budget(settings, seen, "members"))
    members = seen["members"].reshape(len(start), len(counts)).astype(np.float64)
    return refine(members, start, counts, scale, TRUST)


def targets_of(seen: Statistics, settings: Parameters, degrees: Wholes) -> Targets:
    """Return what the generated graph should show, with the noise in it."""
    found: dict[str, Target] = {}
    limits = {"closure": 1, "mixing": 1}
    if "triangles" in seen:
        # One edge closes no more triangles than the largest degree.
        noise = float(degrees[0] / budget(settings, seen, "triangles"))
        found["triangles"] = Target(max(float(seen["triangles"]), 0.0), noise)
    for name, limit_of, moved in (
        ("closure", closure_limit, lambda limit: limit + 2),
        ("mixing", mixing_limit, mixing_sensitivity),
    ):
        if name in seen:
            limits[name] = limit_of(seen, settings)
            noise = math.sqrt(2) * moved(limits[name]) / float(budget(settings, seen, name))
            found[name] = Target(max(float(seen[name]), 0.0), noise)
    return Targets(
        found.get("triangles"),
        found.get("closure"),
        limits["closure"],
        found.get("mixing"),
        limits["mixing"],
    )


def ladder_settings(nodes: int, epsilon: Fraction) -> Parameters:
    """Return the settings of the ladder that triangles are drawn from."""
    decay = epsilon * (1 - SMOOTHING_SHARE)
    return {
        "nodes": nodes,
        "decay": text(decay),
        "smoothing": text(epsilon * SMOOTHING_SHARE),
        "length": public_length(triangles(), nodes, decay),
    }


def draw_triangles(graph: Graph, epsilon: Fraction, source: Source | None) -> int:
    """Return the number of triangles, drawn from a steep ladder; it may come out negative."""
    nodes = graph.node_count
    ladder = ladder_settings(nodes, epsilon)
    widths = ladder_widths(triangles(), graph, ladder)
    noise = draw_ladder(widths.profile, cap(triangles(), nodes), rational(ladder["decay"]), source)
    return int(triangles().truth(graph)) + noise
