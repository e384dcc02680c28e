"""Broken twins of the models that are made from degrees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Ladder, LaplaceVector
from tulle.audit.graphs.synthesis_case import Coarse
from tulle.audit.graphs.synthesis_degrees import (
    describe_one_k,
    describe_two_five_k,
    describe_two_k,
    laplace,
)
from tulle.core.exact import rational, text
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees, edge_triangles
from tulle.graphs.synthesis.joint_degrees.classes import soft_classes
from tulle.graphs.synthesis.model import Statistics
from tulle.graphs.synthesis.models.one_k import OneK
from tulle.graphs.synthesis.models.two_five_k import TwoFiveK, classes_of_triangles
from tulle.graphs.synthesis.models.two_k import TwoK, classes_of
from tulle.graphs.synthesis.query import synthetic
from tulle.noise import discrete_laplace


class CutOneK(Twin, OneK):
    """DP-1K as published: a histogram that ends at the largest degree of the graph at hand."""

    name: ClassVar[str] = "synthetic_1k, cut at the largest degree"
    mimics: ClassVar[str] = "synthetic_1k"
    fault: ClassVar[str] = "the length of the histogram shows the true maximum degree"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (synthetic("1k"),)

    def measure(
        self, terms: Terms, settings: Parameters, graph: Graph, source: Source | None
    ) -> Statistics:
        histogram = np.bincount(degrees(graph)).astype(np.int64)
        scale = 4 / terms.epsilon
        return {"degrees": histogram + discrete_laplace(scale=scale, size=len(histogram))}

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        centre = tuple(np.bincount(degrees(dataset)).tolist())
        law = LaplaceVector(centre, (4 / terms.epsilon,) * len(centre), Fraction(4))
        return Description((("degrees", law),))


class HalfOneK(Twin, OneK):
    """Half of the noise, as if an edge had one end."""

    name: ClassVar[str] = "synthetic_1k, one end"
    mimics: ClassVar[str] = "synthetic_1k"
    fault: ClassVar[str] = "an edge moves two degrees and is charged for one"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (synthetic("1k"),)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> Parameters:
        honest = dict(super().prepare(terms, nodes, options))
        half = rational(honest["scale"]) / 2
        return {**honest, "sensitivity": 1, "scale": text(half)}

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_one_k(terms, settings, dataset)


class HardTwoK(Twin, TwoK):
    """Hard classes with the sensitivity of soft ones."""

    name: ClassVar[str] = "synthetic_2k, hard classes"
    mimics: ClassVar[str] = "synthetic_2k"
    fault: ClassVar[str] = "a node that steps into the next class takes all its edges along"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (synthetic("2k", step="1/4"),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        soft = classes_of(settings)
        hard = replace(soft, upper=np.where(2 * soft.upper >= soft.unit, soft.unit, 0))
        cells = hard.measure(dataset, rational(settings["step"])).tolist()
        scale, moved = rational(settings["joint_scale"]), rational(settings["joint_sensitivity"])
        honest = describe_two_k(terms, settings, dataset).parts[0]
        return Description((honest, ("joint", laplace(cells, scale, moved))))


class NonZeroTwoK(Twin, TwoK):
    """Noise on the cells that happen to hold an edge, zero elsewhere."""

    name: ClassVar[str] = "synthetic_2k, non-zero cells"
    mimics: ClassVar[str] = "synthetic_2k"
    fault: ClassVar[str] = "a zero without noise says that no edge is there (algorithm 3)"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (synthetic("2k", step="1/4"),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        degrees_part, (name, law) = describe_two_k(terms, settings, dataset).parts
        assert isinstance(law, LaplaceVector)
        scales = tuple(
            scale if cell else Fraction(0)
            for cell, scale in zip(law.centre, law.scales, strict=True)
        )
        return Description((degrees_part, (name, replace(law, scales=scales))))


class DeletionsTwoFiveK(Twin, TwoFiveK):
    """Class counts with the common neighbours of joined pairs only: what deletions move."""

    name: ClassVar[str] = "synthetic_2.5k, deletions only"
    mimics: ClassVar[str] = "synthetic_2.5k"
    fault: ClassVar[str] = "an edge between two nodes that are not joined moves more"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (synthetic("2.5k"),)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        *others, (name, last) = describe_two_five_k(terms, settings, dataset).parts
        assert isinstance(last, Coarse)
        law = last.law
        assert isinstance(law, Ladder)
        common = int(edge_triangles(dataset).max(initial=0))
        # All else is as it should be: only pairs that are not joined are left out.
        factor = 3 + classes_of_triangles(settings).entry_change()
        widths = tuple(
            min(math.ceil(factor * (common + t)) + 1, law.most) for t in range(len(law.widths))
        )
        return Description((*others, (name, Coarse(replace(law, widths=widths)))))


class HalfTwoFiveK(Twin, TwoFiveK):
    """Class counts that are charged as if they were one."""

    name: ClassVar[str] = "synthetic_2.5k, classes at once"
    mimics: ClassVar[str] = "synthetic_2.5k"
    fault: ClassVar[str] = "a triangle is counted in up to three classes and paid for in one"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (synthetic("2.5k", class_ratio="3/2"),)

    def prepare(self, terms: Terms, nodes: int, options: Parameters) -> Parameters:
        honest = dict(super().prepare(terms, nodes, options))
        count = soft_classes(nodes, rational(honest["class_ratio"])).count
        for rate in ("class_decay", "class_smoothing"):
            honest[rate] = text(rational(honest[rate]) * count)
        return honest

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_two_five_k(terms, settings, dataset)


def degree_twins() -> list[Twin]:
    """Return one of each twin."""
    return [CutOneK(), HalfOneK(), HardTwoK(), NonZeroTwoK(), DeletionsTwoFiveK(), HalfTwoFiveK()]
