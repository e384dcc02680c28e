"""Broken versions of joint degrees and of models of synthetic graphs; most were published so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from tulle.audit.engine.bits import Coins
from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import Law, RungChoice
from tulle.audit.faults import (
    BOTH,
    HALF,
    TWICE,
    broken,
    cut_at_data,
    halve_noise,
    read_support_from_data,
    scaled,
)
from tulle.audit.graphs.synthesis import (
    Coarse,
    core_laws,
    fixed_core,
    fixed_known,
    fixed_scores,
    laplace,
    true_bits,
)
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import rational
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees, edge_triangles
from tulle.graphs.mechanisms.smooth import smooth_bound
from tulle.graphs.spectra.response import core_of
from tulle.graphs.synthesis.auto.core import Ranks
from tulle.graphs.synthesis.auto.model import STEP, Auto, mixing_classes
from tulle.graphs.synthesis.auto.schedule import spending
from tulle.graphs.synthesis.edge_counts import order_counts, pair_counts
from tulle.graphs.synthesis.estimates.block_mixture import Placed
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses, soft_classes
from tulle.graphs.synthesis.joint_degrees.mechanisms import JointSmoothSettings
from tulle.graphs.synthesis.joint_degrees.queries import JointDegreeQuery, joint_degrees
from tulle.graphs.synthesis.joint_degrees.scores import DegreeScores
from tulle.graphs.synthesis.model import Statistics
from tulle.graphs.synthesis.models.topm import TopSettings
from tulle.graphs.synthesis.models.two_five_k import classes_of_triangles
from tulle.graphs.synthesis.models.two_k import JointSettings, classes_of
from tulle.graphs.synthesis.query import synthetic

Laws = Mapping[str, Any]

_ONE_END = "an edge moves two degrees and is charged for one"
_NO_EDGE = "a zero without noise says that no edge is there"
_STEPS = "a node that steps into the next class takes all its edges along"


# --- joint degrees ----------------------------------------------------------------------------


def printed_joint(
    laws: Laws, terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return DP-2K as printed: the bound 2·(d_i + d_j) - 3 + 2s, which holds for deletions."""
    assert isinstance(terms.query, JointDegreeQuery)
    chosen = JointSmoothSettings.read(settings)
    most = terms.query.edge_sensitivity(chosen.nodes)
    profile = [min(max(2 * _top(graph) - 3 + 2 * s, 1), most) for s in range(2 * most)]
    bound = smooth_bound(profile, most, chosen.beta)
    return {"answer": replace(laws["answer"], bound=bound)}


def local_joint(laws: Laws, terms: Terms, settings: Parameters, graph: Graph) -> Mapping[str, Law]:
    """Let noise follow the local bound of the graph at hand, which neighbours do not share."""
    return {"answer": replace(laws["answer"], bound=Fraction(2 * _top(graph) + 1))}


def _top(graph: Graph) -> int:
    """Return the sum of the two largest degrees."""
    return int(np.sort(degrees(graph))[-2:].sum())


def _grid_end(graph: Graph) -> int:
    largest = max(int(degrees(graph).max(initial=1)), 1)
    return largest * (largest + 1) // 2


def joint_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return broken versions of joint degrees."""
    asked = (joint_degrees(),)
    return [
        read_support_from_data(real["joint_laplace"], asked),
        cut_at_data(real["joint_laplace"], asked, _grid_end),
        broken(
            real["joint_smooth"],
            "as printed",
            "joining two nodes that are not joined moves 2·(d_i + d_j) + 1 (chapter 3, claim 2)",
            asked,
            ("claims",),
            law=printed_joint,
        ),
        broken(
            real["joint_smooth"],
            "local",
            "the scale of the noise tells neighbours apart",
            asked,
            BOTH,
            law=local_joint,
        ),
        halve_noise(
            real["joint_soft"],
            ("sensitivity", "scale"),
            (joint_degrees(ratio=2),),
            what="one end",
            fault="both ends of an edge move between classes, and one is charged",
            caught_by=BOTH,
        ),
    ]


# --- models made from degrees -------------------------------------------------------------------


def cut_one_k(laws: Laws, terms: Terms, settings: Parameters, graph: Graph) -> Mapping[str, Law]:
    """Return DP-1K as published: a histogram that ends at the largest degree."""
    return {"degrees": laplace(np.bincount(degrees(graph)), terms.epsilon, 4)}


def hard_two_k(laws: Laws, terms: Terms, settings: Parameters, graph: Graph) -> Mapping[str, Law]:
    """Return hard classes with the sensitivity of soft ones."""
    soft = classes_of(settings)
    hard = replace(soft, upper=np.where(2 * soft.upper >= soft.unit, soft.unit, 0))
    cells = hard.measure(graph, JointSettings.read(settings).step).tolist()
    return {"joint": replace(laws["joint"], centre=tuple(cells))}


def deletions_two_five_k(
    laws: Laws, terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Return class counts with the common neighbours of joined pairs only."""
    name = list(laws)[-1]
    law = laws[name].law
    assert isinstance(law, RungChoice)
    common = int(edge_triangles(graph).max(initial=0))
    # All else is as it should be: only pairs that are not joined are left out.
    factor = 3 + classes_of_triangles(settings).entry_change()
    widths = tuple(
        min(math.ceil(factor * (common + t)) + 1, law.most) for t in range(len(law.widths))
    )
    return {name: Coarse(replace(law, widths=widths))}


def all_classes_at_once(honest: Parameters, terms: Terms) -> Parameters:
    """Charge class counts as if they were one."""
    count = soft_classes(int(honest["nodes"]), rational(honest["class_ratio"])).count
    return scaled(honest, ["class_decay", "class_smoothing"], count)


def degree_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return broken versions of the models that are made from degrees."""
    two_k, two_five_k = real["synthetic_2k"], real["synthetic_2.5k"]
    quarter = (synthetic("2k", step="1/4"),)
    return [
        broken(
            real["synthetic_1k"],
            "cut at the largest degree",
            "the length of the histogram shows the true maximum degree",
            (synthetic("1k"),),
            BOTH,
            law=cut_one_k,
        ),
        one_end(real["synthetic_1k"], "1k"),
        broken(two_k, "hard classes", _STEPS, quarter, BOTH, law=hard_two_k),
        read_support_from_data(two_k, quarter, "joint"),
        broken(
            two_five_k,
            "deletions only",
            "an edge between two nodes that are not joined moves more",
            (synthetic("2.5k"),),
            BOTH,
            law=deletions_two_five_k,
        ),
        broken(
            two_five_k,
            "classes at once",
            "a triangle is counted in up to three classes and paid for in one",
            (synthetic("2.5k", class_ratio="3/2"),),
            settings=all_classes_at_once,
        ),
    ]


def one_end(mechanism: Mechanism, model: str, **options: Any) -> Broken:
    """Add noise of half the scale to degrees, as if an edge had one end."""
    return broken(
        mechanism,
        "one end",
        _ONE_END,
        (synthetic(model, **options),),
        BOTH,
        settings=lambda honest, _: {"sensitivity": 1, **scaled(honest, ["scale"], HALF)},
    )


# --- models that count, flip or group edges -----------------------------------------------------


def full_cells(auto: Mechanism) -> Broken:
    """Add noise to the cells of the order that hold an edge; release the others as zero."""

    def measure(
        self: Auto, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        seen = dict(Auto.measure(self, terms, settings, graph, source))
        ranges = math.isqrt(2 * len(seen["order"]))
        seen["order"] = np.where(order_counts(graph, ranges) > 0, seen["order"], 0)
        return seen

    def law(laws: Laws, *_: Any) -> Mapping[str, Law]:
        honest = laws["order"]
        pairs = zip(honest.centre, honest.scales, strict=True)
        scales = tuple(scale if centre else Fraction(0) for centre, scale in pairs)
        return {"order": replace(honest, scales=scales)}

    return broken(auto, "full cells only", _NO_EDGE, (synthetic(),), law=law, measure=measure)


def one_end_of_auto(auto: Mechanism) -> Broken:
    """Charge neighbours per block once, although both ends of an edge count each other."""

    def law(laws: Laws, *_: Any) -> Mapping[str, Law]:
        honest = laws["members"]
        halved = tuple(scale / 2 for scale in honest.scales)
        return {"members": replace(honest, scales=halved, sensitivity=Fraction(1))}

    fault = "an edge moves two rows of the table and is charged for one"
    # Without parts that on few nodes never move as far as on many.
    alone = (synthetic("auto", parts="order"),)
    return broken(auto, "one end", fault, alone, BOTH, law=law, member_moves=1)


_HARD = 2
"""What hard classes are thought to move by: an edge's own cell, and one more for good measure."""


def hard_classes(auto: Mechanism) -> Broken:
    """Count edges between classes of degrees, each node in one class, charged as if soft."""

    def count(graph: Graph, classes: SoftClasses) -> Any:
        degree = np.diff(graph.csr()[0])
        labels = np.minimum(classes.lower[np.maximum(degree, 1) - 1], classes.count - 1)
        return pair_counts(graph, labels, classes.count)

    def law(laws: Laws, terms: Terms, settings: Parameters, graph: Graph) -> Mapping[str, Law]:
        spent = spending(settings, "blocks", fixed_known(settings))["mixing"]
        return {"mixing": laplace(count(graph, mixing_classes(graph.node_count)), spent, _HARD)}

    def count_mixing(self: Auto, graph: Graph, classes: SoftClasses) -> tuple[Any, Fraction]:
        return count(graph, classes) * int(1 / STEP), _HARD / STEP

    return broken(
        auto, "hard classes", _STEPS, (synthetic(),), BOTH, law=law, count_mixing=count_mixing
    )


def own_product(auto: Mechanism) -> Broken:
    """Charge the sum of products of scores for the new edge's product alone."""

    def count(graph: Graph, scores: DegreeScores) -> tuple[int, Fraction]:
        largest = int(np.abs(scores.parts).max())
        return scores.measure(graph, STEP), scores.product(largest, largest) / STEP + 1

    def law(laws: Laws, terms: Terms, settings: Parameters, graph: Graph) -> Mapping[str, Law]:
        spent = spending(settings, "plain", fixed_known(settings))["correlation"]
        truth, moves = count(graph, fixed_scores(graph))
        return {"correlation": laplace(truth, spent, moves)}

    def count_correlation(self: Auto, graph: Graph, scores: DegreeScores) -> tuple[int, Fraction]:
        return count(graph, scores)

    return broken(
        auto,
        "own product",
        "one more neighbour changes a node's score in the products of all its edges",
        (synthetic("auto", parts="correlation"),),
        BOTH,
        law=law,
        count_correlation=count_correlation,
    )


def eager_core(auto: Mechanism) -> Broken:
    """Let each of three releases about the core spend epsilon twice."""

    def find_core(
        self: Auto,
        terms: Terms,
        graph: Graph,
        ranks: Ranks,
        size: int,
        epsilon: Fraction,
        source: Source | None,
    ) -> Placed:
        return Auto.find_core(self, terms, graph, ranks, size, 2 * epsilon, source)

    def law(laws: Laws, terms: Terms, settings: Parameters, graph: Graph) -> Mapping[str, Law]:
        spent = spending(settings, "core", fixed_known(settings))["core"]
        return core_laws(graph, 2 * spent, fixed_core(graph))

    return broken(
        auto,
        "an eager core",
        "pairs are flipped less often than their share of epsilon demands",
        (synthetic("auto", blocks="core"),),
        law=law,
        find_core=find_core,
    )


def true_core(auto: Mechanism) -> Broken:
    """Make the core of the nodes of largest true degree."""

    def find_core(
        self: Auto,
        terms: Terms,
        graph: Graph,
        ranks: Ranks,
        size: int,
        epsilon: Fraction,
        source: Source | None,
    ) -> Placed:
        known = Ranks(degrees(graph), ranks.scale)
        return Auto.find_core(self, terms, graph, known, size, epsilon, source)

    def law(laws: Laws, terms: Terms, settings: Parameters, graph: Graph) -> Mapping[str, Law]:
        spent = spending(settings, "core", fixed_known(settings))["core"]
        inside = np.zeros(graph.node_count, dtype=np.bool_)
        inside[core_of(degrees(graph), int(fixed_core(graph).sum()))] = True
        return core_laws(graph, spent, inside)

    return broken(
        auto,
        "the true core",
        "one edge moves a node into the core, and with it all of its pairs",
        (synthetic("auto", blocks="core"),),
        BOTH,
        law=law,
        find_core=find_core,
    )


def swapped_branches(
    laws: Laws, terms: Terms, settings: Parameters, graph: Graph
) -> Mapping[str, Law]:
    """Put the two threshold formulas in each other's place, and fill up to exactly m edges."""
    chosen = TopSettings.read(settings)
    assert chosen.edges is not None
    pairs, edges, epsilon = comb(graph.node_count, 2), chosen.edges, float(chosen.coins)
    odds = max(pairs / max(edges, 1) - 1, 1e-9)
    if epsilon < math.log(odds):
        theta = math.log(odds) / (2 * epsilon)
    else:
        theta = math.log((odds + 1) / 2 + math.expm1(epsilon) / 2) / epsilon
    above = theta - 1
    keep = 0.5 * math.exp(-above * epsilon) if above > 0 else 1 - 0.5 * math.exp(above * epsilon)
    # The rest, on average, is spread over all other pairs.
    invent = max(edges * (1 - keep), 0.0) / max(pairs - edges, 1)
    return {"chosen": Coins(true_bits(graph), (invent, keep))}


def model_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return broken versions of the models that count, flip or group edges."""
    auto, response = real["synthetic_auto"], real["synthetic_response"]
    return [
        full_cells(auto),
        one_end_of_auto(auto),
        eager_core(auto),
        true_core(auto),
        hard_classes(auto),
        own_product(auto),
        broken(
            real["synthetic_topm"],
            "swapped branches",
            "true edges pass a threshold that hardly any other pair would",
            (synthetic("topm", edges=1),),
            law=swapped_branches,
        ),
        broken(
            response,
            "both halves",
            "each pair is shown twice, which spends epsilon twice",
            (synthetic("response"),),
            settings=lambda _, terms: response.settings(
                replace(terms, epsilon=2 * terms.epsilon), {}
            ),
        ),
        one_end(real["synthetic_kronecker"], "kronecker", triangles="no"),
        broken(
            real["synthetic_communities"],
            "halved degrees",
            "an edge inside moves two degrees; with scale 1/epsilon it pays twice (DGG)",
            (synthetic("communities"),),
            BOTH,
            settings=lambda honest, _: scaled(honest, ["inner"], TWICE),
            law=lambda laws, *_: {"inner": replace(laws["inner"], sensitivity=Fraction(1))},
        ),
    ]


def synthesis_faults(real: Mapping[str, Mechanism]) -> list[Broken]:
    """Return all broken versions."""
    return [*joint_faults(real), *degree_faults(real), *model_faults(real)]
