"""Broken twins of the models that count, flip or group edges; most were published so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.bits import Coins
from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import LaplaceVector
from tulle.audit.graphs.synthesis_core_faults import EagerCoreAuto, TrueCoreAuto
from tulle.audit.graphs.synthesis_models import (
    auto_laws,
    describe_communities,
    describe_kronecker,
    describe_response_model,
    fixed_known,
    laplace,
    true_bits,
)
from tulle.core.exact import rational, text
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.auto.model import (
    STEP,
    Auto,
    mixing_classes,
)
from tulle.graphs.synthesis.auto.schedule import spending
from tulle.graphs.synthesis.edge_counts import order_counts, pair_counts
from tulle.graphs.synthesis.joint_degrees.classes import SoftClasses
from tulle.graphs.synthesis.model import Statistics
from tulle.graphs.synthesis.models.communities import Communities
from tulle.graphs.synthesis.models.kronecker import Kronecker
from tulle.graphs.synthesis.models.response import ResponseModel
from tulle.graphs.synthesis.models.topm import TopM
from tulle.graphs.synthesis.query import synthetic
from tulle.graphs.topology.response import pair_places
from tulle.noise import bernoulli, uniform_below

_BOTH: tuple[str, ...] = ("claims", "exact")


class FullCellsAuto(Twin, Auto):
    """Noise on the cells of the order that hold an edge; the others are released as zero."""

    name: ClassVar[str] = "synthetic_auto, full cells only"
    mimics: ClassVar[str] = "synthetic_auto"
    fault: ClassVar[str] = "a zero without noise says that no edge is there"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (synthetic(),)

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        seen = dict(super().measure(terms, settings, graph, source))
        ranges = math.isqrt(2 * len(seen["order"]))
        seen["order"] = np.where(order_counts(graph, ranges) > 0, seen["order"], 0)
        return seen

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        laws = auto_laws(settings, dataset)
        honest = laws["order"]
        assert isinstance(honest, LaplaceVector)
        pairs = zip(honest.centre, honest.scales, strict=True)
        scales = tuple(scale if centre else Fraction(0) for centre, scale in pairs)
        return Description(tuple({**laws, "order": replace(honest, scales=scales)}.items()))


class OneEndAuto(Twin, Auto):
    """Neighbours per block are charged once, although both ends of an edge count each other."""

    name: ClassVar[str] = "synthetic_auto, one end"
    mimics: ClassVar[str] = "synthetic_auto"
    fault: ClassVar[str] = "an edge moves two rows of the table and is charged for one"
    caught_by: ClassVar[tuple[str, ...]] = _BOTH
    questions: ClassVar[Sequence[Query]] = (synthetic(),)

    member_moves: ClassVar[int] = 1

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        laws = auto_laws(settings, dataset)
        honest = laws["members"]
        assert isinstance(honest, LaplaceVector)
        halved = tuple(scale / 2 for scale in honest.scales)
        charged = replace(honest, scales=halved, sensitivity=Fraction(1))
        return Description(tuple({**laws, "members": charged}.items()))


class HardClassesAuto(Twin, Auto):
    """Edges between classes of degrees, each node in one class, charged as if they were soft."""

    name: ClassVar[str] = "synthetic_auto, hard classes"
    mimics: ClassVar[str] = "synthetic_auto"
    fault: ClassVar[str] = "a node that steps into the next class takes all of its edges along"
    caught_by: ClassVar[tuple[str, ...]] = _BOTH
    questions: ClassVar[Sequence[Query]] = (synthetic(),)

    def count_mixing(self, graph: Graph, classes: SoftClasses) -> tuple[Any, Fraction]:
        return hard_classes(graph, classes) * int(1 / STEP), _HARD / STEP

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        laws = auto_laws(settings, dataset)
        truth = hard_classes(dataset, mixing_classes(dataset.node_count))
        spent = spending(settings, "blocks", fixed_known(settings))["mixing"]
        return Description(tuple({**laws, "mixing": laplace(truth, spent, _HARD)}.items()))


_HARD = 2
"""What the twin thinks that one edge moves: its own cell, and one more for good measure."""


def hard_classes(graph: Graph, classes: SoftClasses) -> Any:
    """Return how many edges join each two classes, with each node in the lower of its two."""
    degree = np.diff(graph.csr()[0])
    labels = np.minimum(classes.lower[np.maximum(degree, 1) - 1], classes.count - 1)
    return pair_counts(graph, labels, classes.count)


class SwappedTopM(Twin, TopM):
    """The two threshold formulas in each other's place, and a fill up to exactly m edges."""

    name: ClassVar[str] = "synthetic_topm, swapped branches"
    mimics: ClassVar[str] = "synthetic_topm"
    fault: ClassVar[str] = "true edges pass a threshold that hardly any other pair would"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (synthetic("topm", edges=1),)

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        pairs, wanted = comb(graph.node_count, 2), int(settings["edges"])
        _, keep = swapped_rates(pairs, wanted, float(rational(settings["coins"])))
        true = np.sort(pair_places(graph.node_count, graph.edges()))
        chosen = set(true[bernoulli(Fraction(keep), size=len(true), source=source)].tolist())
        free = [place for place in range(pairs) if place not in chosen]
        while len(chosen) < wanted and free:
            chosen.add(free.pop(uniform_below(len(free), source=source)))
        return {"chosen": np.array(sorted(chosen), dtype=np.int64)}

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        pairs, wanted = comb(dataset.node_count, 2), int(settings["edges"])
        rates = swapped_rates(pairs, wanted, float(rational(settings["coins"])))
        return Description((("chosen", Coins(true_bits(dataset), rates)),))


def swapped_rates(pairs: int, edges: int, epsilon: float) -> tuple[float, float]:
    """Return how often a pair is invented, and an edge kept, as published."""
    odds = max(pairs / max(edges, 1) - 1, 1e-9)
    if epsilon < math.log(odds):
        theta = math.log(odds) / (2 * epsilon)
    else:
        theta = math.log((odds + 1) / 2 + math.expm1(epsilon) / 2) / epsilon
    above = theta - 1
    keep = 0.5 * math.exp(-above * epsilon) if above > 0 else 1 - 0.5 * math.exp(above * epsilon)
    # The rest, on average, is spread over all other pairs.
    return max(edges * (1 - keep), 0.0) / max(pairs - edges, 1), keep


class BothHalvesResponse(Twin, ResponseModel):
    """Both halves of the adjacency matrix are drawn, and one is charged."""

    name: ClassVar[str] = "synthetic_response, both halves"
    mimics: ClassVar[str] = "synthetic_response"
    fault: ClassVar[str] = "each pair is shown twice, which spends epsilon twice"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (synthetic("response"),)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> Parameters:
        return super().prepare(replace(terms, epsilon=2 * terms.epsilon), nodes, options)

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        twice = replace(terms, epsilon=2 * terms.epsilon)
        return super().measure(twice, settings, graph, source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_response_model(terms, settings, dataset)


class OneEndKronecker(Twin, Kronecker):
    """Degrees with noise of scale 1/epsilon, as if an edge had one end."""

    name: ClassVar[str] = "synthetic_kronecker, one end"
    mimics: ClassVar[str] = "synthetic_kronecker"
    fault: ClassVar[str] = "an edge moves two degrees and is charged for one"
    caught_by: ClassVar[tuple[str, ...]] = _BOTH
    questions: ClassVar[Sequence[Query]] = (synthetic("kronecker", triangles="no"),)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> Parameters:
        honest = dict(super().prepare(terms, nodes, options))
        return {**honest, "sensitivity": 1, "scale": text(rational(honest["scale"]) / 2)}

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_kronecker(terms, settings, dataset)


class HalvedCommunities(Twin, Communities):
    """Degrees inside communities with half of the noise: the fault of DGG as published."""

    name: ClassVar[str] = "synthetic_communities, halved degrees"
    mimics: ClassVar[str] = "synthetic_communities"
    fault: ClassVar[str] = "an edge inside moves two degrees; with scale 1/epsilon it pays twice"
    caught_by: ClassVar[tuple[str, ...]] = _BOTH
    questions: ClassVar[Sequence[Query]] = (synthetic("communities"),)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> Parameters:
        honest = dict(super().prepare(terms, nodes, options))
        return {**honest, "inner": text(2 * rational(honest["inner"]))}

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        (name, law), *_ = describe_communities(terms, settings, dataset).parts
        assert isinstance(law, LaplaceVector)
        return Description(((name, replace(law, sensitivity=Fraction(1))),))


def model_twins() -> list[Twin]:
    """Return one of each twin."""
    return [
        FullCellsAuto(),
        OneEndAuto(),
        EagerCoreAuto(),
        TrueCoreAuto(),
        HardClassesAuto(),
        SwappedTopM(),
        BothHalvesResponse(),
        OneEndKronecker(),
        HalvedCommunities(),
    ]
