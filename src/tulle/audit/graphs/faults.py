"""Broken versions of the mechanisms on graphs: counts, degrees per node, whole topologies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import Law, RungChoice
from tulle.audit.faults import (
    BOTH,
    HALF,
    ChangeLaw,
    broken,
    cut_at_data,
    forget_delta,
    leave_open,
    read_support_from_data,
    skip_first_entry,
)
from tulle.audit.graphs.measured import measured
from tulle.audit.graphs.projection import PER_NODE, chosen_counts
from tulle.audit.graphs.spectra import spectra_faults
from tulle.audit.graphs.statistics import half_built, statistics_faults, stiff_middle
from tulle.audit.graphs.synthesis_faults import synthesis_faults
from tulle.audit.graphs.threshold import threshold_faults
from tulle.audit.graphs.truncation import truncation_faults
from tulle.core import registry
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query
from tulle.core.validate import rational, text
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees as degrees_of
from tulle.graphs.mechanisms.projection import ProjectionSettings, candidates
from tulle.graphs.mechanisms.smooth import Smooth, smooth_bound
from tulle.graphs.queries.counts import (
    GraphQuery,
    cliques,
    k_triangles,
    node_count,
    profiled_count,
    stars,
    triangles,
)
from tulle.graphs.queries.degrees import degree_distribution, degrees
from tulle.graphs.queries.local_counts import chains, triangles_at
from tulle.graphs.queries.partitions import degree_squares
from tulle.graphs.sensitivity.counts import LocalSensitivity
from tulle.graphs.topology.response import topology

_COUNTS: tuple[Query, ...] = (triangles(), stars(2), stars(3), k_triangles(2))
_DELETIONS: tuple[Query, ...] = (
    triangles(),
    k_triangles(2),
    cliques(4),
    chains(),
    triangles_at(0),
    degree_squares(),
    degree_squares([0, 1]),
)

Widths = Callable[[GraphQuery, Graph, LocalSensitivity], Sequence[int]]


def reshape_profile(
    mechanism: Mechanism,
    what: str,
    fault: str,
    widths: Widths,
    questions: Sequence[Query] = _COUNTS,
) -> Broken:
    """Use another profile of local sensitivities than the real one."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        query = profiled_count(terms)
        _, found = measured(query, graph, int(settings["length"]))
        most = query.cap(node_count(terms))
        wrong = [min(max(width, 1), most) for width in widths(query, graph, found)]
        honest = laws["answer"]
        if isinstance(honest, RungChoice):
            return {"answer": replace(honest, widths=tuple(wrong))}
        return {"answer": replace(honest, bound=smooth_bound(wrong, most, honest.beta))}

    return broken(mechanism, what, fault, questions, BOTH, law=law)


def deletions_only(query: GraphQuery, graph: Graph, found: LocalSensitivity) -> list[int]:
    """Return the profile with a local sensitivity over removed edges only, as papers print it."""
    pairs = {(int(u), int(v)) for u, v in graph.edges()}
    here = int(query.truth(graph))
    changes = [
        here - int(query.truth(Graph.from_edges(sorted(pairs - {pair}), nodes=graph.node_count)))
        for pair in pairs
    ]
    gap = found.profile[0] - max(changes, default=0)
    return [width - gap for width in found.profile]


def printed_stars(query: GraphQuery, graph: Graph, found: LocalSensitivity) -> list[int]:
    """Return the dissertation's bound for paths of length two, with its min and max put right."""
    second, first = np.sort(degrees_of(graph))[-2:].tolist()
    half = half_built(graph)
    return [first + second - 2 + (t + min(t, half)) // 2 for t in range(len(found.profile))]


def printed_rates(honest: Parameters, terms: Terms) -> Parameters:
    """Return alpha = epsilon/2 and beta = epsilon/(2·ln(2/delta))."""
    epsilon = rational(honest["epsilon_answer"])
    beta = epsilon / 2 / Fraction(math.log(2 / terms.delta))
    return {"alpha": text(epsilon / 2), "beta": text(beta)}


def local_noise(mechanism: Mechanism) -> Broken:
    """Let noise follow the local sensitivity itself."""

    def law(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        _, found = measured(profiled_count(terms), graph, 1)
        return {"answer": replace(laws["answer"], bound=Fraction(max(found.profile[0], 1)))}

    fault = "noise on the local sensitivity itself, which neighbours do not share"
    return broken(mechanism, "local", fault, _COUNTS, BOTH, law=law)


def count_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return broken versions of ladders, smooth and plain noise."""
    laplace, isotonic = real["laplace"], real["isotonic"]
    ladder, smoothed = real["ladder"], real["smoothed_ladder"]
    smooth, pure = real["smooth"], real["smooth_pure"]
    printed = "local sensitivity over deletions only, as printed in a dissertation"
    return [
        forget_delta(smooth, _COUNTS[:1]),
        *(
            leave_open(item, "spread", (triangles(), stars(2)), "the private spread without noise")
            for item in (ladder, smoothed, smooth, pure)
        ),
        reshape_profile(
            ladder,
            "constant widths",
            "the local sensitivity of the graph at hand on every rung",
            lambda query, graph, found: [found.profile[0]] * len(found.profile),
        ),
        reshape_profile(
            smoothed,
            "raw widths",
            "decay epsilon - smoothing on widths that may grow faster",
            lambda query, graph, found: found.profile,
        ),
        stiff_middle(smoothed, _COUNTS, ("claims",)),
        *(
            reshape_profile(item, "deletions only", printed, deletions_only, _DELETIONS)
            for item in (ladder, smoothed, smooth, pure)
        ),
        reshape_profile(
            smooth,
            "printed 2-stars",
            "d_max + d_second - 2 counts removed edges only (chapter 2, result 4)",
            printed_stars,
            (stars(2),),
        ),
        broken(
            smooth,
            "printed rates",
            "beta is taken for e^beta - 1, which exceeds delta at a large epsilon (Nissim et al.)",
            (degree_squares(),),
            settings=printed_rates,
        ),
        broken(
            smooth,
            "half the scale drawn",
            "the code draws less noise than its stated settings say",
            (triangles(),),
            ("sampler",),
            noise=lambda self, scale, source: Smooth.noise(self, scale * HALF, source),
        ),
        local_noise(smooth),
        local_noise(pure),
        cut_at_data(
            laplace,
            (degree_distribution(),),
            lambda graph: int(degrees_of(graph).max(initial=0)) + 1,
            ("exact",),
            what="cut histogram",
        ),
        read_support_from_data(laplace, (degree_distribution(),)),
        skip_first_entry(laplace, (degrees(),)),
        skip_first_entry(isotonic, (degrees(),)),
    ]


def projection_faults(projection: Mechanism) -> list[Broken]:
    """Return broken versions of degree distributions per node."""

    def clipped(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        bounds = candidates(ProjectionSettings.read(settings).largest)
        kept = [np.minimum(degrees_of(graph), bound).astype(np.int64) for bound in bounds]
        return {"answer": chosen_counts(bounds, kept, settings)}

    def own_bound(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        law = laws["answer"]
        own = int(degrees_of(graph).max(initial=1))
        place = min(range(len(law.bounds)), key=lambda at: abs(law.bounds[at] - own))
        scores = tuple(Fraction(10**6 if at == place else 0) for at in range(len(law.scores)))
        return {"answer": replace(law, scores=scores)}

    def nodes_for_nothing(
        laws: Mapping[str, Any], terms: Terms, settings: Parameters, graph: Graph
    ) -> Mapping[str, Law]:
        return {"answer": replace(laws["answer"], sensitivities=laws["answer"].bounds)}

    asked = (PER_NODE,)
    joins = "a node that joins raises every degree at once"
    tells = "the bound, and the length of the counts, tell the largest degree"
    nothing = "noise for the degrees alone: the number of nodes is told beside them"
    return [
        broken(projection, "clipped degrees", joins, asked, BOTH, law=clipped),
        broken(projection, "true largest degree", tells, asked, law=own_bound),
        broken(projection, "nodes for nothing", nothing, asked, BOTH, law=nodes_for_nothing),
    ]


def response_faults(response: Mechanism) -> list[Broken]:
    """Return broken versions of the release of a whole topology."""

    def coins(change: Callable[[Any, Any], tuple[Any, Any]]) -> ChangeLaw:
        return lambda laws, *_: {
            "answer": replace(laws["answer"], ones=change(*laws["answer"].ones))
        }

    asked = (topology(),)
    twice = "each pair is shown twice and charged once (algorithm 3 as printed)"
    certain = "a released edge is certainly true"
    return [
        broken(
            response,
            "both triangles",
            twice,
            asked,
            law=coins(lambda invent, keep: (invent**2, keep**2)),
        ),
        broken(
            response,
            "nothing invented",
            certain,
            asked,
            law=coins(lambda invent, keep: (0.0, keep)),
        ),
    ]


@registry.register("audit", "graph", "faults")
def graph_faults() -> list[Broken]:
    """Return all broken versions."""
    real = registry.mechanisms("graph")
    return [
        *response_faults(real["response"]),
        *spectra_faults(real),
        *statistics_faults(real),
        *projection_faults(real["projection"]),
        *threshold_faults(real["degree_threshold"]),
        *synthesis_faults(real),
        *count_faults(real),
        *truncation_faults(real),
    ]
