"""The audit's view of the models that count, flip or group edges, in closed form.

Some parts depend on parts released before: how finely the order is cut, which blocks there are.
Their proof is about one part given all earlier ones, so each is described for fixed earlier
values: two blocks, in turn, and limits as small graphs have them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from tulle.audit.engine.bits import exact_coins, kept_coins, response_coins
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Ladder, LaplaceVector, Law
from tulle.audit.graphs.synthesis_case import SynthesisCase
from tulle.core.arrays import Truths
from tulle.core.mechanism import Parameters, Terms
from tulle.core.validate import rational
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.mechanisms.isotonic import sorted_sequence
from tulle.graphs.mechanisms.ladder import ladder_widths
from tulle.graphs.queries.counts import ProfiledCount, triangles
from tulle.graphs.queries.degrees import DegreeDistribution, Degrees
from tulle.graphs.spectra.response import induced
from tulle.graphs.synthesis.auto.budget import Known, guess_known
from tulle.graphs.synthesis.auto.core import AGAIN, INWARDS, OUTWARDS
from tulle.graphs.synthesis.auto.model import LADDERS, STEP, mixing_classes, mixing_moves
from tulle.graphs.synthesis.auto.schedule import spending
from tulle.graphs.synthesis.edge_counts import (
    closed_picks,
    large_degrees,
    member_counts,
    order_counts,
    pair_counts,
    side_counts,
)
from tulle.graphs.synthesis.ladder_counts import ladder_settings
from tulle.graphs.synthesis.models.communities import inner_degrees
from tulle.graphs.synthesis.models.topm import coins_for
from tulle.graphs.synthesis.query import synthetic
from tulle.graphs.topology.response import topology

FIXED_LIMIT = 2
"""How often a pair may be picked, in the descriptions."""

FIXED_EDGES = 3
"""How many edges were released before, in the descriptions."""


def fixed_known(settings: Parameters) -> Known:
    """Return what was known when budgets were divided, in the descriptions."""
    return guess_known(int(settings["nodes"]), FIXED_EDGES)


def laplace(truth: Any, epsilon: Fraction, sensitivity: int | Fraction) -> LaplaceVector:
    """Return Laplace noise of scale sensitivity / epsilon on a count or a vector of them."""
    centre = tuple(int(entry) for entry in np.atleast_1d(truth))
    return LaplaceVector(centre, (sensitivity / epsilon,) * len(centre), Fraction(sensitivity))


def ladder_law(query: ProfiledCount, graph: Graph, epsilon: Fraction) -> Ladder:
    """Return the ladder that a count is drawn from."""
    settings = ladder_settings(query, graph.node_count, epsilon)
    widths = ladder_widths(query, graph, settings)
    return Ladder(
        int(query.truth(graph)),
        tuple(widths.profile),
        query.cap(graph.node_count),
        rational(settings["decay"]),
        rational(settings["smoothing"]),
    )


def fixed_labels(graph: Graph) -> Any:
    """Return two blocks, in turn."""
    return np.arange(graph.node_count) % 2


def describe_auto(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe every part, with what it follows from earlier parts held fixed."""
    return Description(tuple(auto_laws(settings, graph).items()))


def auto_laws(settings: Parameters, graph: Graph) -> dict[str, Law]:
    """Return the law of each part of auto."""
    if int(settings["nodes"]) < 2:
        return {}
    schedule = {"no": "plain", "core": "core"}.get(settings["blocks"], "blocks")
    epsilon = spending(settings, schedule, fixed_known(settings))
    classes = mixing_classes(graph.node_count)
    labels = fixed_labels(graph)
    # A part is counted only if it is measured.
    counts: dict[str, Callable[[], tuple[Any, int | Fraction]]] = {
        "edges": lambda: (graph.edge_count, 1),
        "order": lambda: (order_counts(graph, 2), 1),
        "reached": lambda: (sorted_sequence(DegreeDistribution(), graph), 2),
        "sequence": lambda: (sorted_sequence(Degrees(), graph), 2),
        "closure": lambda: (closed_picks(graph, FIXED_LIMIT), FIXED_LIMIT + 2),
        "mixing": lambda: (classes.measure(graph, STEP), mixing_moves(classes)),
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
            truth, sensitivity = counts[name]()
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
    bits = true_bits(induced(graph, np.flatnonzero(inside)))
    asked = side_counts(graph, labels, 2, outside, inside).ravel()
    answer = side_counts(graph, labels, 2, inside, outside).ravel()
    beyond = side_counts(graph, labels, 2, outside, outside).ravel()
    return {
        "core, within": exact_coins(bits, epsilon),
        "core, asked": laplace(asked, OUTWARDS * epsilon, 1),
        "core, answered": laplace(answer, INWARDS * epsilon, 1),
        "core, asked again": laplace(asked, AGAIN * epsilon, 1),
        "core, outside": laplace(beyond, epsilon, 2),
    }


def describe_top_m(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe the noisy number of edges, and the coins that go with a fixed number."""
    if int(settings["nodes"]) < 2:
        return Description(())
    parts: list[tuple[str, Law]] = []
    if "edges" not in settings:
        parts.append(("edges", laplace(graph.edge_count, rational(settings["count"]), 1)))
    edges = int(settings.get("edges", 1))
    rates = coins_for(graph.node_count, edges, rational(settings["coins"]))
    parts.append(("chosen", kept_coins(true_bits(graph), rates.skip, rates.keep)))
    return Description(tuple(parts))


def true_bits(graph: Graph) -> tuple[int, ...]:
    """Return the bit of each pair."""
    return tuple(int(bit) for bit in topology().truth(graph).bits())


def describe_response_model(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe a coin for each pair of nodes."""
    if int(settings["nodes"]) < 2:
        return Description(())
    coins = response_coins(true_bits(graph), settings)
    return Description((("packed", coins),))


def describe_kronecker(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe noise on the sorted degrees and the ladder of triangles."""
    if int(settings["nodes"]) < 2:
        return Description(())
    sequence = sorted_sequence(Degrees(), graph)
    sensitivity = int(settings["sensitivity"])
    spent = sensitivity / rational(settings["scale"])
    parts: list[tuple[str, Law]] = [("degrees", laplace(sequence, spent, sensitivity))]
    if epsilon := rational(settings["triangles"]):
        parts.append(("triangles", ladder_law(triangles(), graph, epsilon)))
    return Description(tuple(parts))


def describe_communities(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe each step, with the communities of the steps before held fixed."""
    if int(settings["nodes"]) < 2:
        return Description(())
    groups = int(settings["groups"])
    inner = rational(settings["inner"])
    if groups == 1:
        labels = np.zeros(graph.node_count, dtype=np.int64)
        return Description((("inner", laplace(inner_degrees(graph, labels), inner, 2)),))
    each = np.arange(graph.node_count) % groups
    labels = fixed_labels(graph)
    between = pair_counts(graph, labels, 2)[1:2]
    return Description(
        (
            (
                "groups",
                laplace(pair_counts(graph, each, groups), rational(settings["groups_epsilon"]), 1),
            ),
            ("members", laplace(member_counts(graph, labels, 2), rational(settings["members"]), 2)),
            ("inner", laplace(inner_degrees(graph, labels), inner, 2)),
            ("between", laplace(between, inner, 1)),
        )
    )


def bits_of(number: int, pairs: int) -> list[int]:
    """Return the bits of a released pattern, the first pair first."""
    return [(number >> place) & 1 for place in range(pairs)]


def finish_chosen(terms: Terms, settings: Parameters) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return how coins become the places of the chosen pairs."""
    pairs = comb(int(settings["nodes"]), 2)
    return lambda parts: tuple(np.flatnonzero(bits_of(int(parts[-1]), pairs)).tolist())


def finish_packed(terms: Terms, settings: Parameters) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return how coins become packed bits."""
    pairs = comb(int(settings["nodes"]), 2)
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
