"""Broken twins of the core of the model auto."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description
from tulle.audit.graphs.synthesis_models import auto_laws, core_laws, fixed_core, fixed_known
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.spectra.response import core_of
from tulle.graphs.synthesis.auto.core import Ranks
from tulle.graphs.synthesis.auto.model import Auto
from tulle.graphs.synthesis.auto.schedule import spending
from tulle.graphs.synthesis.estimates.block_mixture import Placed
from tulle.graphs.synthesis.query import synthetic


class EagerCoreAuto(Twin, Auto):
    """Each of three releases about the core spends epsilon twice."""

    name: ClassVar[str] = "synthetic_auto, an eager core"
    mimics: ClassVar[str] = "synthetic_auto"
    fault: ClassVar[str] = "pairs are flipped less often than their share of epsilon demands"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (synthetic("auto", blocks="core"),)

    def find_core(
        self,
        terms: Terms,
        graph: Graph,
        ranks: Ranks,
        size: int,
        epsilon: Fraction,
        source: Source | None,
    ) -> Placed:
        return super().find_core(terms, graph, ranks, size, 2 * epsilon, source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        spent = spending(settings, "core", fixed_known(settings))["core"]
        wrong = core_laws(dataset, 2 * spent, fixed_core(dataset))
        return Description(tuple({**auto_laws(settings, dataset), **wrong}.items()))


class TrueCoreAuto(Twin, Auto):
    """The core is made of the nodes of largest true degree."""

    name: ClassVar[str] = "synthetic_auto, the true core"
    mimics: ClassVar[str] = "synthetic_auto"
    fault: ClassVar[str] = "one edge moves a node into the core, and with it all of its pairs"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (synthetic("auto", blocks="core"),)

    def find_core(
        self,
        terms: Terms,
        graph: Graph,
        ranks: Ranks,
        size: int,
        epsilon: Fraction,
        source: Source | None,
    ) -> Placed:
        known = Ranks(degrees(graph), ranks.scale)
        return super().find_core(terms, graph, known, size, epsilon, source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        spent = spending(settings, "core", fixed_known(settings))["core"]
        inside = np.zeros(dataset.node_count, dtype=np.bool_)
        inside[core_of(degrees(dataset), int(fixed_core(dataset).sum()))] = True
        wrong = core_laws(dataset, spent, inside)
        return Description(tuple({**auto_laws(settings, dataset), **wrong}.items()))
