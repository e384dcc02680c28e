"""The audit's view of synthetic graphs: their private statistics, in closed form.

The graph that leaves is made from the statistics by ordinary random numbers, so the statistics
are all that depends on the data. A case describes each statistic, in the order in which the model
measures them, as one independent law. Some parts depend on parts released before: how finely the
order is cut, which blocks there are. Their proof is about one part given all earlier ones, so each
is described for fixed earlier values: two blocks, in turn, and limits as small graphs have them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, NamedTuple

import numpy as np

from tulle.audit.engine.bits import exact_coins, kept_coins, response_coins
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Claim, LaplaceVector, Law, RungChoice, laplace_vector
from tulle.audit.graphs.joint import DRAWN_JOINT, JOINT, JOINT_DESCRIBERS, finish_joint, is_joint
from tulle.audit.graphs.measured import measured, once, steepened
from tulle.core import codec
from tulle.core.arrays import Floats, Truths
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.isotonic import sorted_sequence
from tulle.graphs.queries.counts import ProfiledCount, Triangles, triangles
from tulle.graphs.queries.degrees import DegreeDistribution, Degrees
from tulle.graphs.spectra.response import induced
from tulle.graphs.synthesis.auto.budget import Known, guess_known
from tulle.graphs.synthesis.auto.core import AGAIN, INWARDS, OUTWARDS
from tulle.graphs.synthesis.auto.model import (
    LADDERS,
    STEP,
    correlation_moves,
    mixing_classes,
    mixing_moves,
)
from tulle.graphs.synthesis.auto.schedule import AutoSettings, spending
from tulle.graphs.synthesis.edge_counts import (
    closed_picks,
    large_degrees,
    member_counts,
    order_counts,
    pair_counts,
    side_counts,
)
from tulle.graphs.synthesis.joint_degrees.queries import SoftJointDegreeQuery
from tulle.graphs.synthesis.joint_degrees.scores import DegreeScores, degree_scores
from tulle.graphs.synthesis.ladder_counts import ladder_settings
from tulle.graphs.synthesis.model import ModelSettings, SynthesisModel
from tulle.graphs.synthesis.models.communities import CommunitySettings, inner_degrees
from tulle.graphs.synthesis.models.kronecker import KroneckerSettings
from tulle.graphs.synthesis.models.one_k import FORMS, DegreeSettings
from tulle.graphs.synthesis.models.topm import TopSettings, coins_for
from tulle.graphs.synthesis.models.two_five_k import (
    ClusteredSettings,
    class_triangles,
    class_widths,
    triangle_widths,
)
from tulle.graphs.synthesis.models.two_k import JointSettings, classes_of
from tulle.graphs.synthesis.query import Synthetic, synthetic
from tulle.graphs.topology.response import topology

COARSE = "class_triangles"
"""A release with this statistic has too many of them: it is counted in coarse steps."""


def coarse(value: Any) -> int:
    """Return which of a few steps a noisy number is on."""
    return max(-3, min(3, int(value) // 2))


@dataclass(frozen=True)
class Coarse(Law):
    """A law whose drawn values are looked at in coarse steps; its claims are those of the law.

    The joint distribution of many statistics has too many values to list one by one. That a
    coarser look is taken affects the comparison with real runs only.
    """

    law: Law

    def claims(self, other: Coarse) -> Iterator[Claim]:
        return self.law.claims(other.law)

    def loss(self, other: Coarse) -> float:
        return self.law.loss(other.law)

    def losses(self, other: Coarse) -> tuple[Floats, Floats]:
        return self.law.losses(other.law)

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        steps: dict[Any, float] = defaultdict(float)
        values, masses = self.law.points(left_out)
        for value, mass in zip(values, masses.tolist(), strict=True):
            seen = tuple(map(coarse, value)) if isinstance(value, tuple) else coarse(value)
            steps[seen] += mass
        return list(steps), np.array(list(steps.values()))


class SynthesisCase(NamedTuple):
    """One model's case."""

    questions: tuple[Query, ...]
    """The questions on which all claims and output distributions are examined."""

    drawn: Query
    """The question on which runs are drawn; one of the questions."""

    describe: Callable[[Terms, Parameters, Graph], Description]
    """The closed form of the private part: one law for each statistic, in order."""

    small: tuple[Graph, Graph] | None = None
    """Two tiny neighbours to draw on; None for a path of three nodes and one edge of it."""

    finish: Callable[[Terms, Parameters], Callable[[tuple[Any, ...]], Hashable]] | None = None
    """How drawn parts become the flat tuple of statistics; None when they just stand in a row."""


def describe_one_k(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every entry of the sorted sequence."""
    centre = sorted_sequence(FORMS[DegreeSettings.read(settings).form], graph)
    law = laplace_vector(
        centre, DegreeSettings.read(settings).scale, DegreeSettings.read(settings).sensitivity
    )
    return Description((("degrees", law),))


def describe_two_k(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on the counts of nodes by degree and on every soft class cell."""
    counts = tuple(sorted_sequence(DegreeDistribution(), graph).tolist())
    cells = classes_of(settings).measure(graph, JointSettings.read(settings).step).tolist()
    moved = JointSettings.read(settings).joint_sensitivity
    return Description(
        (
            ("degrees", laplace_vector(counts, JointSettings.read(settings).scale, 2)),
            ("joint", laplace_vector(cells, JointSettings.read(settings).joint_scale, moved)),
        )
    )


def describe_two_five_k(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe the statistics of ``2k`` and a ladder for each count of triangles."""
    widths, most = class_widths(settings, graph)
    triangles = RungChoice.of(
        Triangles().truth(graph),
        triangle_widths(settings, graph),
        Triangles().cap(graph.node_count),
        settings,
    )
    rates = (
        ClusteredSettings.read(settings).class_decay,
        ClusteredSettings.read(settings).class_smoothing,
    )
    classes = [
        (f"class {place}", RungChoice(int(count), tuple(widths), most, *rates))
        for place, count in enumerate(class_triangles(settings, graph).tolist())
    ]
    parts = (*describe_two_k(terms, settings, graph).parts, ("triangles", triangles), *classes)
    return Description(tuple((name, Coarse(law)) for name, law in parts))


PAIR = Graph.from_edges([(0, 1)], nodes=2), Graph.from_edges([], nodes=2)
"""Two nodes, joined and not."""

DEGREE_CASES: dict[str, SynthesisCase] = {
    "synthetic_1k": SynthesisCase(
        (synthetic("1k"), synthetic("1k", form="sequence")), synthetic("1k"), describe_one_k
    ),
    "synthetic_2k": SynthesisCase(
        (
            synthetic("2k"),
            synthetic("2k", ratio=2, step="1/4"),
            synthetic("2k", step=1, joint_share="1/2"),
        ),
        synthetic("2k", step=1, joint_share="1/2"),
        describe_two_k,
        PAIR,
    ),
    "synthetic_2.5k": SynthesisCase(
        (synthetic("2.5k"), synthetic("2.5k", step=1, ratio=2, class_ratio=2)),
        synthetic("2.5k", step=1, ratio=2, class_ratio=2),
        describe_two_five_k,
        PAIR,
    ),
}
"""The cases of this family, by the name of the mechanism."""


FIXED_LIMIT = 2
"""How often a pair may be picked, in the descriptions."""

FIXED_EDGES = 3
"""How many edges were released before, in the descriptions."""


def fixed_known(settings: Parameters) -> Known:
    """Return what was known when budgets were divided, in the descriptions."""
    return guess_known(ModelSettings.read(settings).nodes, FIXED_EDGES)


def laplace(truth: Any, epsilon: Fraction, sensitivity: int | Fraction) -> LaplaceVector:
    """Return Laplace noise of scale sensitivity / epsilon on a count or a vector of them."""
    return laplace_vector(np.atleast_1d(truth), sensitivity / epsilon, sensitivity)


def ladder_law(query: ProfiledCount, graph: Graph, epsilon: Fraction) -> RungChoice:
    """Return the ladder that a count is drawn from."""
    settings = ladder_settings(query, graph.node_count, epsilon)
    truth, found = measured(query, graph, settings.length)
    most = query.cap(graph.node_count)
    widths = steepened(tuple(found.profile), most, settings.smoothing)
    return RungChoice.of(truth, widths, most, settings)


def fixed_labels(graph: Graph) -> Any:
    """Return two blocks, in turn."""
    return np.arange(graph.node_count) % 2


def fixed_scores(graph: Graph) -> DegreeScores:
    """Return scores that one more neighbour moves far."""
    return degree_scores(graph.node_count, 0.7, 0.7)


def describe_auto(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe every part, with what it follows from earlier parts held fixed."""
    return Description(tuple(auto_laws(settings, graph).items()))


def auto_laws(settings: Parameters, graph: Graph) -> dict[str, Law]:
    """Return the law of each part of auto."""
    if ModelSettings.read(settings).nodes < 2:
        return {}
    schedule = {"no": "plain", "core": "core"}.get(AutoSettings.read(settings).blocks, "blocks")
    epsilon = spending(settings, schedule, fixed_known(settings))
    classes = mixing_classes(graph.node_count)
    labels, scores = fixed_labels(graph), fixed_scores(graph)
    # A part is counted only if it is measured.
    counts: dict[str, Callable[[], tuple[Any, int | Fraction]]] = {
        "edges": lambda: (graph.edge_count, 1),
        "order": lambda: (order_counts(graph, 2), 1),
        "reached": lambda: (sorted_sequence(DegreeDistribution(), graph), 2),
        "sequence": lambda: (sorted_sequence(Degrees(), graph), 2),
        "closure": lambda: (closed_picks(graph, FIXED_LIMIT), FIXED_LIMIT + 2),
        "mixing": lambda: (classes.measure(graph, STEP), mixing_moves(classes)),
        "correlation": lambda: (scores.measure(graph, STEP), correlation_moves(scores)),
        "members": lambda: (member_counts(graph, labels, 2), 2),
        "pairs": lambda: (pair_counts(graph, labels, 2), 1),
        "placeable": lambda: (large_degrees(graph, FIXED_LIMIT), 2),
        "ranks": lambda: (degrees(graph), 2),
    }
    laws: dict[str, Law] = {}
    for name, spent in epsilon.items():
        if name in LADDERS:
            laws[name] = ladder_law(LADDERS[name], graph, spent)
        elif name == "core":
            laws.update(core_laws(graph, spent, fixed_core(graph)))
        else:
            truth, sensitivity = once(graph, ("auto", name), counts[name])
            laws[name] = laplace(truth, spent, sensitivity)
    return laws


def fixed_core(graph: Graph) -> Truths:
    """Return the first half of the nodes."""
    inside: Truths = np.arange(graph.node_count) < (graph.node_count + 1) // 2
    return inside


def core_laws(graph: Graph, epsilon: Fraction, inside: Truths) -> dict[str, Law]:
    """Return the laws of what is released about a core: coins within, tables across and outside.

    Two neighbours differ in one pair of nodes, which lies within, across or outside: their laws
    differ in one of the three.
    """
    labels, outside = fixed_labels(graph), ~inside

    def count() -> tuple[Any, ...]:
        sides = (outside, inside), (inside, outside), (outside, outside)
        counted = (side_counts(graph, labels, 2, *side).ravel() for side in sides)
        return true_bits(induced(graph, np.flatnonzero(inside))), *counted

    bits, asked, answer, beyond = once(graph, ("core", inside.tobytes()), count)
    return {
        "core, within": exact_coins(bits, epsilon),
        "core, asked": laplace(asked, OUTWARDS * epsilon, 1),
        "core, answered": laplace(answer, INWARDS * epsilon, 1),
        "core, asked again": laplace(asked, AGAIN * epsilon, 1),
        "core, outside": laplace(beyond, epsilon, 2),
    }


def describe_top_m(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe the noisy number of edges, and the coins that go with a fixed number."""
    if ModelSettings.read(settings).nodes < 2:
        return Description(())
    parts: list[tuple[str, Law]] = []
    chosen = TopSettings.read(settings)
    if chosen.edges is None:
        assert chosen.count is not None
        parts.append(("edges", laplace(graph.edge_count, chosen.count, 1)))
    edges = 1 if chosen.edges is None else chosen.edges
    rates = coins_for(graph.node_count, edges, chosen.coins)
    parts.append(("chosen", kept_coins(true_bits(graph), rates.skip, rates.keep)))
    return Description(tuple(parts))


def true_bits(graph: Graph) -> tuple[int, ...]:
    """Return the bit of each pair."""
    return tuple(int(bit) for bit in topology().truth(graph).bits())


def describe_response_model(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe a coin for each pair of nodes."""
    if ModelSettings.read(settings).nodes < 2:
        return Description(())
    coins = response_coins(true_bits(graph), settings)
    return Description((("packed", coins),))


def describe_kronecker(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe noise on the sorted degrees and the ladder of triangles."""
    if ModelSettings.read(settings).nodes < 2:
        return Description(())
    sequence = sorted_sequence(Degrees(), graph)
    sensitivity = KroneckerSettings.read(settings).sensitivity
    spent = sensitivity / KroneckerSettings.read(settings).scale
    parts: list[tuple[str, Law]] = [("degrees", laplace(sequence, spent, sensitivity))]
    if epsilon := KroneckerSettings.read(settings).triangles:
        parts.append(("triangles", ladder_law(triangles(), graph, epsilon)))
    return Description(tuple(parts))


def describe_communities(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe each step, with the communities of the steps before held fixed."""
    if ModelSettings.read(settings).nodes < 2:
        return Description(())
    chosen = CommunitySettings.read(settings)
    groups, inner = chosen.groups, chosen.inner
    if groups == 1:
        labels = np.zeros(graph.node_count, dtype=np.int64)
        return Description((("inner", laplace(inner_degrees(graph, labels), inner, 2)),))
    each = np.arange(graph.node_count) % groups
    labels = fixed_labels(graph)
    between = pair_counts(graph, labels, 2)[1:2]
    assert chosen.groups_epsilon is not None
    assert chosen.members is not None
    return Description(
        (
            ("groups", laplace(pair_counts(graph, each, groups), chosen.groups_epsilon, 1)),
            ("members", laplace(member_counts(graph, labels, 2), chosen.members, 2)),
            ("inner", laplace(inner_degrees(graph, labels), inner, 2)),
            ("between", laplace(between, inner, 1)),
        )
    )


def bits_of(number: int, pairs: int) -> list[int]:
    """Return the bits of a released pattern, the first pair first."""
    return [(number >> place) & 1 for place in range(pairs)]


def finish_chosen(terms: Terms, settings: Parameters) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return how coins become the places of the chosen pairs."""
    pairs = comb(ModelSettings.read(settings).nodes, 2)
    return lambda parts: tuple(np.flatnonzero(bits_of(int(parts[-1]), pairs)).tolist())


def finish_packed(terms: Terms, settings: Parameters) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return how coins become packed bits."""
    pairs = comb(ModelSettings.read(settings).nodes, 2)
    return lambda parts: tuple(
        np.packbits(np.array(bits_of(int(parts[-1]), pairs), dtype=np.uint8)).tolist()
    )


MODEL_CASES: dict[str, SynthesisCase] = {
    "synthetic_auto": SynthesisCase(
        (
            synthetic(),
            synthetic("auto", blocks="no"),
            synthetic("auto", blocks="core"),
            synthetic("auto", parts="edges"),
            synthetic("auto", parts="correlation"),
        ),
        synthetic("auto", parts="edges"),
        describe_auto,
    ),
    "synthetic_topm": SynthesisCase(
        (synthetic("topm"), synthetic("topm", edges=1), synthetic("topm", edges=3)),
        synthetic("topm", edges=1),
        describe_top_m,
        finish=finish_chosen,
    ),
    "synthetic_response": SynthesisCase(
        (synthetic("response"),),
        synthetic("response"),
        describe_response_model,
        finish=finish_packed,
    ),
    "synthetic_kronecker": SynthesisCase(
        (synthetic("kronecker"), synthetic("kronecker", triangles="no")),
        synthetic("kronecker", triangles="no"),
        describe_kronecker,
    ),
    "synthetic_communities": SynthesisCase(
        (synthetic("communities"), synthetic("communities", size=1)),
        synthetic("communities"),
        describe_communities,
    ),
}
"""The cases of this family, by the name of the mechanism."""


CASES: dict[str, SynthesisCase] = {**DEGREE_CASES, **MODEL_CASES}
"""The case of each model, by the name of its mechanism."""

UNLABELLED_MODELS = (*DEGREE_CASES, "synthetic_kronecker")
"""Models whose statistics do not depend on the numbers of the nodes."""

SYNTHESIS: tuple[Query, ...] = (*JOINT, *(q for case in CASES.values() for q in case.questions))
"""The questions of the audit about synthetic graphs and joint degrees."""

DRAWN_SYNTHESIS: tuple[Query, ...] = (*DRAWN_JOINT, *(case.drawn for case in CASES.values()))

SYNTHESIS_DESCRIBERS: dict[str, Callable[[Terms, Parameters, Graph], Description]] = {
    **JOINT_DESCRIBERS,
    **{name: case.describe for name, case in CASES.items()},
}


def is_synthesis(query: Query) -> bool:
    """Say whether a question is for a synthetic graph, or for joint degrees."""
    return isinstance(query, Synthetic) or is_joint(query)


def small_for(query: Query) -> tuple[Graph, Graph]:
    """Return two tiny neighbours on which a model's statistics take few values."""
    if isinstance(query, SoftJointDegreeQuery):
        return PAIR
    for case in CASES.values():
        if query in case.questions and case.small is not None:
            return case.small
    return Graph.from_edges([(0, 1), (1, 2)], nodes=3), Graph.from_edges([(0, 1)], nodes=3)


def see_statistics(outcome: Outcome) -> Hashable:
    """Return the private statistics of a run as one flat tuple, in order."""
    statistics = codec.decode(outcome.details["statistics"])
    seen = tuple(_flat(statistics))
    return tuple(map(coarse, seen)) if COARSE in statistics else seen


def draw_statistics(
    model: SynthesisModel, terms: Terms, settings: Parameters, graph: Graph
) -> Callable[..., Outcome]:
    """Return how runs are drawn: what is measured, without the graph that is made of it alone."""

    def run(source: Source | None = None) -> Outcome:
        measured = dict(model.measure(terms, settings, graph, source))
        return Outcome(None, None, {"statistics": codec.encode(measured)})

    return run


def finish_statistics(
    name: str, mechanism: Mechanism, terms: Terms, settings: Parameters
) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return how drawn parts become the flat tuple: side by side, unless the case says else."""
    if is_joint(terms.query):
        return finish_joint(terms, settings)
    own = CASES[name].finish
    if own is not None:
        return own(terms, settings)
    return lambda parts: tuple(_flat(list(parts)))


def _flat(value: Any) -> Iterator[Hashable]:
    if isinstance(value, dict):
        value = list(value.values())
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _flat(entry)
    else:
        yield value
