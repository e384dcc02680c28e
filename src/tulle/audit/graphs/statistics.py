"""The audit's view of statistics: ladders on a grid, bounded vectors, what they are made of; and
broken versions, the printed bounds among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Claim, LaplaceVector, Law, RungChoice, laplace_vector, ratio
from tulle.audit.faults import BOTH, ChangeLaw, broken, leave_open
from tulle.audit.graphs.measured import once
from tulle.core.arrays import Floats
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.decomposed import DecomposedSettings, TriplesLaw
from tulle.graphs.mechanisms.private_bound import (
    PrivateBoundLaw,
    PrivateBoundSettings,
)
from tulle.graphs.mechanisms.sparse import keep_large
from tulle.graphs.mechanisms.statistic_ladder import (
    StatisticLadderLaw,
    StatisticLadderSettings,
    raise_widths,
)
from tulle.graphs.queries.counts import GraphQuery, node_count
from tulle.graphs.queries.local_counts import (
    BoundedVector,
    TrianglesPerNode,
    TriplesPerNode,
    chains,
    degree_of,
    triangles_at,
    triangles_per_node,
    triples_per_node,
)
from tulle.graphs.queries.partitions import degree_squares, edges_within, mixing
from tulle.graphs.queries.statistics import (
    AverageClustering,
    Clustering,
    Statistic,
    assortativity,
    average_clustering,
    clustering,
    modularity,
    transitivity,
)
from tulle.graphs.sensitivity.counts import SpreadSettings

COUNTS: tuple[GraphQuery, ...] = (
    chains(),
    triangles_at(0),
    triangles_per_node(),
    triples_per_node(),
    degree_of(0),
    edges_within([0, 1]),
    mixing([0, 1]),
    degree_squares(),
    degree_squares([0, 1]),
)
"""Counts that statistics are made of; older mechanisms answer them too."""

STATISTICS: tuple[Query, ...] = (
    transitivity(),
    average_clustering(),
    clustering(0),
    assortativity(),
    modularity([0, 1]),
    clustering(),
)

DRAWN_STATISTICS: tuple[Query, ...] = (
    transitivity(),
    triangles_per_node(),
    triples_per_node(),
)

# Tiny grids: a ladder's whole law is listed, number by number.
OPTIONS: dict[str, tuple[Parameters, ...]] = {
    "statistic_ladder": ({"units": 8},),
    "private_bound": ({"units": 4},),
    "decomposed": ({"units": 4},),
}


LEFT_OUT: tuple[tuple[str, Query], ...] = (("decomposed", clustering()),)
"""Compositions of parts that are examined by themselves: too many pairs for every day."""


def _numbers(values: Any) -> tuple[int, ...]:
    return tuple(int(entry) for entry in np.atleast_1d(values))


@dataclass(frozen=True)
class BoundThenVector(Law):
    """A private bound, and Laplace noise on every entry that follows it.

    The two are one part: the noise depends on the bound that was drawn.
    """

    centre: tuple[int, ...]
    spread: int
    rate: Fraction
    shift: int
    reaches: tuple[int, ...]
    """What one edge can move the vector by, for each bound from 1 on, as claimed."""
    epsilon: Fraction

    def claims(self, other: BoundThenVector) -> Iterator[Claim]:
        step = abs(self.spread - other.spread)
        yield Claim("spread moves by one", float(step), f"moves {step}")
        moved = sum(abs(a - b) for a, b in zip(self.centre, other.centre, strict=True))
        place = min(max(self.spread, 1), len(self.reaches)) - 1
        yield Claim(
            "spread bounds the move",
            ratio(moved, self.reaches[place]),
            f"moves {moved} of {self.reaches[place]}",
        )

    def loss(self, other: BoundThenVector) -> float:
        return math.inf

    def bounds(self) -> Floats:
        """Return the probability of each bound from 1 on, the last for all above."""
        return _bound_chances(float(self.rate), self.spread + self.shift, len(self.reaches))

    def _vector(self, bound: int) -> LaplaceVector:
        scale = Fraction(max(self.reaches[bound - 1], 1)) / self.epsilon
        return LaplaceVector(self.centre, (scale,) * len(self.centre), Fraction(1))

    def _losses(self, bound: int, other: BoundThenVector) -> tuple[Floats, Floats]:
        """Return masses and log-ratios of the vector; with one scale they are few, and add up."""
        rate = float(self.epsilon) / max(self.reaches[bound - 1], 1)
        moves = (abs(a - b) for a, b in zip(self.centre, other.centre, strict=True))
        return _move_losses(tuple(sorted(move for move in moves if move)), rate)

    def losses(self, other: BoundThenVector) -> tuple[Floats, Floats]:
        masses, losses = [], []
        for bound, (ours, theirs) in enumerate(
            zip(self.bounds(), other.bounds(), strict=True), start=1
        ):
            if ours <= 0:
                continue
            mass, loss = self._losses(bound, other)
            masses.append(ours * mass)
            losses.append(loss + (math.log(ours / theirs) if theirs > 0 else math.inf))
        return np.concatenate(masses), np.concatenate(losses)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        values: list[Any] = []
        masses = []
        for bound, chance in enumerate(self.bounds().tolist(), start=1):
            if chance > left_out / (2 * len(self.reaches)):
                listed, mass = self._vector(bound).points(left_out / 2)
                values.extend((bound, vector) for vector in listed)
                masses.append(chance * mass)
        return values, np.concatenate(masses)


@lru_cache(maxsize=4096)
def _bound_chances(rate: float, centre: int, count: int) -> Floats:
    q = math.exp(-rate)

    def below(x: int) -> float:
        """Return P(noise <= x)."""
        return q ** (-x) / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)

    cumulative = np.array([below(bound - centre) for bound in range(1, count)] + [1.0])
    return np.diff(np.concatenate([[0.0], cumulative]))


@lru_cache(maxsize=4096)
def _move_losses(moves: tuple[int, ...], rate: float) -> tuple[Floats, Floats]:
    """Return masses and log-ratios of Laplace noise on entries that move by so much each."""
    masses = np.array([1.0])
    for move in moves:
        entry = np.exp(-np.arange(move + 1) * rate) * math.tanh(rate / 2)
        # All values beyond either end have the ratio of that end.
        entry[[0, -1]] /= -math.expm1(-rate)
        steps = np.zeros(2 * move + 1)
        steps[::2] = entry[::-1]
        masses = np.convolve(masses, steps)
    reach = sum(moves)
    return np.asarray(masses, dtype=np.float64), np.arange(-reach, reach + 1.0) * rate


def describe_direct(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe a draw from the statistic's ladder, and the private level of its widths."""
    assert isinstance(terms.query, Statistic)
    ladder, level = _ladder(terms.query, settings, graph)
    budget = SpreadSettings.read(settings).budget
    if budget.spread == 0:
        return Description((("answer", ladder),))
    noise = laplace_vector((level,), 1 / budget.spread, 1)
    return Description((("answer", ladder), ("spread", noise)))


def _ladder(query: Statistic, settings: Parameters, graph: Graph) -> tuple[RungChoice, int]:
    # No two graphs are further apart than this; a shorter profile is the start of a longer one.
    farthest = graph.node_count * (graph.node_count - 1) // 2 + 1
    units = StatisticLadderSettings.read(settings).units
    centre, row = once(
        graph,
        (query, units),
        lambda: (query.position(graph, units), query.profile(graph, units, farthest)),
    )
    widths, level = raise_widths(query, row, settings)
    return RungChoice.of(centre, widths, query.cap(units), settings), level


def describe_bounded(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe a private bound and the noise that follows it."""
    return Description((("answer", bounded_vector(terms.query, settings, graph)),))


def bounded_vector(query: Query, settings: Parameters, graph: Graph) -> BoundThenVector:
    """Return the law of a bound and a vector."""
    assert isinstance(query, BoundedVector)
    chosen = PrivateBoundSettings.read(settings)
    nodes, units = chosen.nodes, chosen.units
    reached = range(1, query.largest_spread(nodes) + 1)
    return BoundThenVector(
        _numbers(query.in_units(graph, units)),
        query.spread(graph),
        chosen.epsilon_bound,
        chosen.shift,
        tuple(query.edge_sensitivity_at(bound, nodes, units) for bound in reached),
        chosen.epsilon_answer,
    )


def describe_decomposed(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe the noise on degrees, triangles and the average that the answer is made of."""
    chosen = DecomposedSettings.read(settings)
    noisy = laplace_vector(_numbers(degrees(graph)), chosen.scale, 2)
    if isinstance(terms.query, TriplesPerNode):
        return Description((("answer", noisy),))
    triangles = bounded_vector(TrianglesPerNode(), settings, graph)
    average, _ = _ladder(AverageClustering(), chosen.average, graph)
    return Description((("answer", triangles), ("degrees", noisy), ("average", average)))


STATISTICS_DESCRIBERS: dict[str, Callable[[Terms, Parameters, Graph], Description]] = {
    "statistic_ladder": describe_direct,
    "private_bound": describe_bounded,
    "decomposed": describe_decomposed,
}


def is_statistical(name: str) -> bool:
    """Say whether a mechanism is one of those described here."""
    return name in STATISTICS_DESCRIBERS


def finish(name: str, terms: Terms, settings: Parameters) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return the post-processing of one of these mechanisms."""
    nodes = node_count(terms)

    def finish_ladder(parts: tuple[Any, ...]) -> Hashable:
        assert isinstance(terms.query, Statistic)
        low, high = terms.query.limits()
        value = min(max(parts[0] / StatisticLadderSettings.read(settings).units, low), high)
        return value, parts[1][0] if len(parts) > 1 else None

    def finish_private_bound(parts: tuple[Any, ...]) -> Hashable:
        bound, vector = parts[0]
        if isinstance(terms.query, Clustering):
            units = PrivateBoundSettings.read(settings).units
            return tuple(min(max(entry / units, 0.0), 1.0) for entry in vector), bound
        largest = TrianglesPerNode().maximum(nodes)
        scale = PrivateBoundSettings.read(settings).law(TrianglesPerNode(), bound).scale()
        kept, _ = keep_large(np.array(vector), float(scale))
        return _numbers(np.clip(kept, 0, largest)), bound

    def finish_decomposed(parts: tuple[Any, ...]) -> Hashable:
        chosen = DecomposedSettings.read(settings)
        if isinstance(terms.query, TriplesPerNode):
            return _numbers(chosen.triples(np.array(parts[0]))), None
        bound, vector = parts[0]
        variance = chosen.bounding().law(TrianglesPerNode(), bound).noise().variance()
        average = min(max(parts[2] / int(chosen.average["units"]), 0.0), 1.0)
        corners, noisy = np.array(vector), np.array(parts[1])
        value = chosen.clustering(noisy, corners, variance, average)
        return tuple(value.tolist()), None

    found = {
        "statistic_ladder": finish_ladder,
        "private_bound": finish_private_bound,
        "decomposed": finish_decomposed,
    }
    return found[name]


def see(outcome: Outcome) -> Hashable | None:
    """Return what an outcome of one of these mechanisms shows, or None when it is of another."""
    if isinstance(outcome.error, StatisticLadderLaw):
        return outcome.value, outcome.error.spread
    if isinstance(outcome.error, PrivateBoundLaw):
        return tuple(np.asarray(outcome.value).tolist()), outcome.error.spread
    if isinstance(outcome.error, TriplesLaw):
        return _numbers(outcome.value), None
    return None


_SCALARS: tuple[Query, ...] = (
    transitivity(),
    average_clustering(),
    clustering(0),
    assortativity(),
    modularity([0, 1]),
)
_VECTORS: tuple[Query, ...] = (triangles_per_node(), clustering())


def wrong_widths(
    mechanism: Mechanism,
    what: str,
    fault: str,
    questions: Sequence[Query],
    widths: Callable[[Statistic, Graph, int, int], Sequence[int]],
) -> Broken:
    """Draw from a ladder of other widths: ``widths(question, graph, units, length)``."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        assert isinstance(terms.query, Statistic)
        known = StatisticLadderSettings.read(settings)
        units = known.units
        rows = widths(terms.query, graph, units, known.length)
        wrong = tuple(min(max(row, 1), terms.query.cap(units)) for row in rows)
        return {"answer": replace(laws["answer"], widths=wrong)}

    return broken(mechanism, what, fault, questions, BOTH, law=law)


def printed_clustering(query: Statistic, graph: Graph, units: int, length: int) -> list[int]:
    """Return the dissertation's bound for the vector of clustering coefficients."""
    count = graph.node_count
    largest, half = int(degrees(graph).max(initial=0)), half_built(graph)
    return [
        -(-min(largest + (t + min(t, half)) // 2, count - 1) * units // count)
        for t in range(length)
    ]


def half_built(graph: Graph) -> int:
    """Return the most nodes that are adjacent to exactly one of two nodes, as printed."""
    count = graph.node_count
    adjacency = np.zeros((count, count), dtype=np.int64)
    for u, v in graph.edges().tolist():
        adjacency[u, v] = adjacency[v, u] = 1
    return max(
        (int(np.sum(adjacency[i] ^ adjacency[j])) for i, j in combinations(range(count), 2)),
        default=0,
    )


def removed_edges(query: Statistic, graph: Graph, units: int, length: int) -> list[int]:
    """Return the largest change over removed edges, on this graph, for every distance."""
    pairs = {(int(u), int(v)) for u, v in graph.edges()}
    here = query.position(graph, units)

    def moved(pair: tuple[int, int]) -> int:
        less = Graph.from_edges(sorted(pairs - {pair}), nodes=graph.node_count)
        return abs(here - query.position(less, units))

    changes = [moved(pair) for pair in pairs if len(pairs) > 1]
    return [max(changes, default=1)] * length


@dataclass(frozen=True)
class StiffMiddle(RungChoice):
    """A ladder with rungs of the widths themselves after the middle of the graph at hand."""

    def _reaches(self) -> Floats:
        widths = np.array([*self.widths, self.most], dtype=np.float64)
        middle = max(float(self.middle) * float(widths[0]) - 0.5, 0.0)
        return np.asarray(np.cumsum([middle, *widths[:-1]]), dtype=np.float64)


def stiff_middle(
    mechanism: Mechanism, questions: Sequence[Query], caught_by: tuple[str, ...] = BOTH
) -> Broken:
    """Put the rungs of a ladder around a middle that a neighbour may have wider.

    Widths are smoothed by an eighth of the budget, an option of the real mechanism: by less, those
    of neighbours on few nodes are too much alike.
    """

    def looser(honest: Parameters, terms: Terms) -> dict[str, Any]:
        budget = rational(honest["smoothing"]) + rational(honest["decay"])
        return {"smoothing": text(budget / 8), "decay": text(budget * 7 / 8)}

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        return {"answer": StiffMiddle(**vars(laws["answer"]))}

    fault = "a middle that grows on a neighbour, and rungs that do not make room for it"
    return broken(mechanism, "stiff middle", fault, questions, caught_by, settings=looser, law=law)


def printed_coefficients(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Bound the vector of coefficients by the largest degree, as printed."""
    units = PrivateBoundSettings.read(settings).units
    largest = int(degrees(graph).max(initial=0))
    reaches = tuple(units * bound for bound in range(1, graph.node_count + 1))
    return {"answer": replace(laws["answer"], spread=largest, reaches=reaches)}


def capped(reach: Callable[[int, int], int]) -> ChangeLaw:
    """Return noise on the vector for moves of at most ``reach(nodes, units)``."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        most = reach(graph.node_count, PrivateBoundSettings.read(settings).units)
        honest = laws["answer"]
        return {"answer": replace(honest, reaches=tuple(min(r, most) for r in honest.reaches))}

    return law


def printed_triples(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Let noise follow the printed local sensitivity of triples per node."""
    printed = max(2 * int(degrees(graph).max(initial=0)) - 2, 1)
    centre = laws["answer"].centre
    return {"answer": laplace_vector(centre, Fraction(printed) / terms.epsilon, printed)}


def statistics_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return all broken versions."""
    ladder, bound = real["statistic_ladder"], real["private_bound"]
    return [
        wrong_widths(
            ladder,
            "printed clustering",
            "d_max + half-built triangles: K3 moves by 3 (chapter 2, result 3)",
            (average_clustering(),),
            printed_clustering,
        ),
        wrong_widths(
            ladder,
            "deletions only",
            "local sensitivity over deletions only, as printed in a dissertation",
            _SCALARS,
            removed_edges,
        ),
        stiff_middle(ladder, _SCALARS),
        leave_open(
            ladder,
            "spread",
            (transitivity(), average_clustering()),
            "the level of the widths without noise",
        ),
        broken(
            bound,
            "not raised",
            "nothing makes it unlikely that the bound is too low",
            _VECTORS,
            settings=lambda *_: {"shift": 0},
        ),
        broken(
            bound,
            "printed coefficients",
            "d_max for the coefficients: K3 moves by 3 (chapter 2, table 2)",
            (clustering(),),
            ("claims",),
            law=printed_coefficients,
        ),
        broken(
            bound,
            "printed global bound",
            "n - 1 for all coefficients, which move by n - 2 + 4/(n - 1) (chapter 2)",
            (clustering(),),
            ("claims",),
            settings=lambda *_: {"units": 12},
            law=capped(lambda nodes, units: (nodes - 1) * units),
        ),
        broken(
            bound,
            "epsilon for each entry",
            "each of n entries is paid for as if it were the only one (tables 5 to 7)",
            (clustering(),),
            BOTH,
            law=capped(lambda nodes, units: units),
        ),
        broken(
            real["laplace"],
            "printed triples",
            "2·d_max - 2, of the graph at hand and of removed edges (result 4)",
            (triples_per_node(),),
            BOTH,
            law=printed_triples,
        ),
    ]
