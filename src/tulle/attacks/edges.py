"""Edge inference: is this pair of nodes joined? From a released topology, or from a count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.attacks.intervals import rate_interval
from tulle.attacks.limits import (
    BELIEF_REASON,
    SUCCESS_REASON,
    advantage_limit,
    belief_limits,
    success_limit,
)
from tulle.attacks.report import CERTAIN, AttackReport, released
from tulle.core import registry, validate
from tulle.core.error_law import LaplaceLaw
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.query import parse
from tulle.core.release import Release
from tulle.core.validate import Number, counted
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import GraphQuery
from tulle.graphs.topology.estimates import estimate_density
from tulle.graphs.topology.response import Topology

Pair = tuple[int, int]

LEVEL = 0.95


@public()
def edge_inference(
    release: Release,
    *,
    pair: Sequence[int] | None = None,
    prior: Number | None = None,
    truth: Graph | None = None,
) -> AttackReport:
    """Infer edges from a released topology.

    With ``pair`` the figure is the belief that these two nodes are joined. Without, it is the rate
    at which the likelier answer is right, over all pairs; with ``truth`` (the caller's own graph)
    that rate is counted, without it is the adversary's own expectation. The ``prior`` is that any
    pair is joined; left out, the adversary estimates the density from the release itself.

    Error:
        The belief is exact given the prior: pairs are flipped by independent coins, so the other
        pairs tell nothing about this one, even to someone who knows them all.

    Raises:
        InputError: when this is not a released topology, or the pair is not one of its pairs.

    Reference:
        Ji et al., An XOR Mechanism, PVLDB 14(5), 2021, theorem 4: the limit on the belief.

    Example:
        >>> import tulle
        >>> graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=40)
        >>> r = tulle.release(graph, tulle.topology(), unit="edge", epsilon=2.0)
        >>> found = edge_inference(r, pair=(0, 1), prior=0.01)
        >>> found.within, found.before
        (True, 0.01)
    """
    known = released(release, "a release of tulle.topology()")
    if not isinstance(known.value, Topology):
        raise InputError("Edge inference needs a release of tulle.topology().")
    flip = float(known.parameters["flip"])
    chance, knows = _prior(known, prior)
    if pair is not None:
        bit = _released_bit(known.value, _pair(pair, known.value.nodes))
        return _belief(known, pair, chance, flip, bit, knows)
    return _success(known, chance, flip, knows, truth)


@public()
def count_inference(
    release: Release,
    *,
    pair: Sequence[int],
    known: Graph,
    prior: Number = "0.5",
) -> AttackReport:
    """Infer one edge from a released count, or vector of counts, knowing all other edges.

    This is the adversary that differential privacy is defined against: ``known`` is every edge of
    the graph but the one in question (whether it holds that one does not matter). They compute
    the answer with and without it, and weigh both by the public law of the noise.

    Raises:
        InputError: when the release is not a count with Laplace noise on a graph of that size.

    Reference:
        Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity, TCC 2006; Ji et al.,
        PVLDB 14(5), 2021, theorem 4.

    Example:
        >>> import tulle
        >>> graph = tulle.Graph.from_edges([(0, 1), (1, 2), (0, 2)], nodes=4)
        >>> r = tulle.release(graph, tulle.edges(), unit="edge", epsilon=1.0)
        >>> found = count_inference(r, pair=(0, 1), known=graph)
        >>> found.before, found.within, found.after <= 0.7311
        (0.5, True, True)
    """
    attacked = released(release, "a release of a count such as tulle.edges()")
    chance = float(validate.probability(prior=prior))
    query, law = _counted(attacked, known)
    ends = _pair(pair, known.node_count)
    without, joined = (np.atleast_1d(query.truth(world)) for world in _worlds(known, ends))
    scale = float(law.scale)
    value = np.atleast_1d(np.asarray(attacked.value))
    low, high = attacked.parameters.get("range", (-math.inf, math.inf))
    evidence = _log_odds(value, joined, without, scale, low, high)
    after = _tilt(chance, evidence)
    return AttackReport(
        attack="count",
        secret=f"{ends} is an edge",
        knows=("every other edge", f"that it is joined with probability {chance:g}"),
        measure="belief",
        before=chance,
        after=after,
        interval=(after, after),
        level=1.0,
        limits=belief_limits(chance, attacked.guarantee),
        reason=BELIEF_REASON,
        guarantee=attacked.guarantee,
        details={
            "question": attacked.query,
            "moves_the_answer_by": int(np.abs(joined - without).sum()),
            "average_success": _average_success(joined - without, scale, chance),
            "most_success": success_limit(max(chance, 1 - chance), attacked.guarantee, values=2),
        },
    )


# --- a topology -------------------------------------------------------------------------------


def _prior(known: Release, prior: Number | None) -> tuple[float, tuple[str, ...]]:
    knows = (f"how often a pair is flipped: {float(known.parameters['flip']):.4g}",)
    if prior is not None:
        chance = float(validate.probability(prior=prior))
        return chance, (*knows, f"that a pair is joined with probability {chance:g}")
    pairs = known.value.pairs
    if not pairs:
        raise InputError("A topology of fewer than two nodes has no pair to guess.")
    # At least one pair and at most all but one: a prior of 0 or 1 would settle the matter.
    chance = min(max(float(estimate_density(known).value), 1 / pairs), 1 - 1 / pairs)
    return min(max(chance, 1e-12), 1 - 1e-12), (*knows, "the density that the release suggests")


def _belief(
    known: Release,
    pair: Sequence[int],
    chance: float,
    flip: float,
    bit: int,
    knows: tuple[str, ...],
) -> AttackReport:
    evidence = math.log1p(-flip) - math.log(flip) if flip else math.inf
    after = _tilt(chance, evidence if bit else -evidence)
    return AttackReport(
        attack="edge",
        secret=f"({int(pair[0])}, {int(pair[1])}) is an edge",
        knows=knows,
        measure="belief",
        before=chance,
        after=after,
        interval=(after, after),
        level=1.0,
        limits=belief_limits(chance, known.guarantee),
        reason=BELIEF_REASON,
        guarantee=known.guarantee,
        details={"released": bool(bit)},
    )


def _success(
    known: Release, chance: float, flip: float, knows: tuple[str, ...], truth: Graph | None
) -> AttackReport:
    topology: Topology = known.value
    # A released edge is believed when its odds exceed one, a released gap likewise.
    says_yes = chance * (1 - flip) > (1 - chance) * flip
    says_no = (1 - chance) * (1 - flip) >= chance * flip
    before = max(chance, 1 - chance)
    guessed_ones = chance * (1 - flip) if says_yes else (1 - chance) * flip
    guessed_zeros = (1 - chance) * (1 - flip) if says_no else chance * flip
    after, interval, wide = guessed_ones + guessed_zeros, None, None
    if truth is not None:
        if not isinstance(truth, Graph) or truth.node_count != topology.nodes:
            raise InputError(f"truth must be a Graph of {counted(topology.nodes, 'node')}.")
        kept, ones = _agreement(topology, truth)
        edges, pairs = truth.edge_count, topology.pairs
        before = max(edges, pairs - edges) / pairs
        invented = ones - kept
        yes = kept if says_yes else invented
        no = (pairs - edges - invented) if says_no else (edges - kept)
        after, interval = (yes + no) / pairs, rate_interval(yes + no, pairs, LEVEL)
        wide = rate_interval(yes + no, pairs, CERTAIN)
    precision = _tilt(chance, math.log1p(-flip) - math.log(flip)) if flip else 1.0
    return AttackReport(
        attack="edge",
        secret="which pairs are edges",
        knows=knows,
        measure="success",
        before=before,
        after=after,
        interval=interval or (after, after),
        level=LEVEL if interval else 1.0,
        limits=(0.0, success_limit(before, known.guarantee, values=2)),
        reason=SUCCESS_REASON,
        guarantee=known.guarantee,
        trials=topology.pairs,
        wide=wide,
        details={
            "believes_released_edges": bool(says_yes),
            "chance_that_a_released_edge_is_real": precision,
            "advantage": 1 - 2 * flip,
            "most_advantage": advantage_limit(known.guarantee),
        },
    )


def _agreement(topology: Topology, truth: Graph) -> tuple[int, int]:
    """Return how many true edges were released, and how many edges were released at all."""
    found, real = topology.edges(), truth.edges()
    codes = [pairs[:, 0] * topology.nodes + pairs[:, 1] for pairs in (found, real)]
    kept = np.intersect1d(codes[0], codes[1], assume_unique=True)
    return len(kept), len(found)


def _released_bit(topology: Topology, pair: Pair) -> int:
    first, second = pair
    place = first * (2 * topology.nodes - first - 1) // 2 + second - first - 1
    return int(topology.packed[place // 8] >> (7 - place % 8) & 1)


def _pair(pair: Sequence[int], nodes: int) -> Pair:
    try:
        first, second = sorted(validate.whole(pair=node, at_least=0) for node in pair)
    except (TypeError, ValueError, OverflowError):
        raise_alone(InputError(f"pair must be two node numbers; got {pair!r}."))
    if first == second or second >= nodes:
        raise InputError(f"pair must be two different nodes below {nodes}; got {pair!r}.")
    return first, second


# --- a count ----------------------------------------------------------------------------------


def _counted(release: Release, known: Graph) -> tuple[GraphQuery, LaplaceLaw]:
    law = release.error
    plain = isinstance(law, LaplaceLaw) and law.step == 1 and law.factor == 1 and not law.slack
    if not plain or release.mechanism != "laplace" or release.guarantee.unit.name != "edge":
        raise InputError(
            "Count inference needs a count of a graph released per edge with mechanism='laplace'; "
            f"this is {release.query} by {release.mechanism!r}."
        )
    query = parse(release.query, registry.find("query", "graph"))
    if not isinstance(known, Graph) or known.node_count != int(release.parameters["nodes"]):
        raise InputError(
            f"known must be a Graph of as many nodes as the release: {release.parameters['nodes']}."
        )
    assert isinstance(query, GraphQuery)
    assert isinstance(law, LaplaceLaw)
    return query, law


def _worlds(known: Graph, pair: Pair) -> tuple[Graph, Graph]:
    """Return the known graph without and with an edge between the pair."""
    rows = known.edges()
    others = rows[(rows[:, 0] != pair[0]) | (rows[:, 1] != pair[1])]
    return tuple(  # type: ignore[return-value]
        Graph.from_edges(edges, nodes=known.node_count)
        for edges in (others, np.vstack([others, [pair]]))
    )


def _log_odds(
    value: npt.NDArray[Any],
    joined: npt.NDArray[Any],
    without: npt.NDArray[Any],
    scale: float,
    low: float,
    high: float,
) -> float:
    """Return ln P(value | joined) - ln P(value | without), for noise that was clamped to a range.

    A clamped end stands for all values beyond it. Both centres lie inside the range, so the two
    tails there have the same ratio as the end itself.
    """
    inside = np.clip(value, low, high)
    moved = np.abs(inside - without) - np.abs(inside - joined)
    return float(moved.sum()) / scale


def _average_success(moved: npt.NDArray[Any], scale: float, chance: float) -> float:
    """Return how often the likelier world is the right one, over the noise; exactly for one entry.

    For several entries the log-odds are a sum; the law of that sum is convolved entry by entry.
    """
    q = math.exp(-1 / scale)
    law = {0: 1.0}
    for distance in np.abs(moved[moved != 0]).astype(np.int64).tolist():
        # In units of 1/scale, the evidence for 'joined' when 'joined' is true.
        cells: dict[int, float] = {}
        middle = (1 - q) / (1 + q)
        for place in range(-distance, 1):
            # place is where the value falls between the centres, the ends taking all beyond.
            mass = middle * q ** abs(place)
            if place in (-distance, 0):
                mass = q ** abs(place) / (1 + q)
            cells[distance + 2 * place] = cells.get(distance + 2 * place, 0.0) + mass
        law = _convolve(law, cells)
    log_odds = math.log(chance) - math.log1p(-chance)
    right_joined = sum(m for e, m in law.items() if log_odds + e / scale > 0)
    right_without = sum(m for e, m in law.items() if log_odds - e / scale <= 0)
    return min(1.0, chance * right_joined + (1 - chance) * right_without)


def _convolve(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    both: dict[int, float] = {}
    for a, p in one.items():
        for b, q in other.items():
            both[a + b] = both.get(a + b, 0.0) + p * q
    return both


def _tilt(chance: float, evidence: float) -> float:
    """Return the probability after evidence in favour, given as a log-ratio of likelihoods."""
    if evidence >= 0:
        return chance / (chance + (1 - chance) * math.exp(-evidence))
    return 1 - (1 - chance) / ((1 - chance) + chance * math.exp(evidence))
