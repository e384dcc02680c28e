"""Broken twins of the mechanisms on contributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from tulle.audit.contributions.kind import (
    APART,
    ONE_BLOCK,
    QUESTIONS,
    TWO_BLOCKS,
    describe,
    describe_choice,
    describe_run,
    people_of,
)
from tulle.audit.contributions.laws import BlockVector, OneDraw
from tulle.audit.engine.faults import FaithfulTwin, Twin
from tulle.audit.engine.kind import Description
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.exact import rational, text
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.matrices.contributions.block_mechanism import (
    BlockMechanism,
    limits_from,
    masses,
    weights_query,
)
from tulle.matrices.contributions.blocks import frame_of
from tulle.matrices.contributions.clipping import clip
from tulle.matrices.contributions.data import Contributions
from tulle.matrices.contributions.gaussian import BlockGaussian
from tulle.matrices.contributions.laplace import BlockLaplace
from tulle.matrices.contributions.partition import GAUSSIAN
from tulle.matrices.contributions.private_bounds import BlockQuantiles


class BlockTwin(FaithfulTwin):
    """A twin that hands everything to the real mechanism, but for its fault."""

    kind: ClassVar[str] = "contributions"
    original: ClassVar[type[BlockMechanism]] = BlockLaplace
    mimics: ClassVar[str] = "block_laplace"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = QUESTIONS["block_laplace"]

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_run(self.mimics, terms, settings, dataset)

    def law(self, terms: Terms, settings: Parameters, dataset: Any) -> BlockVector:
        """Return the law of the real mechanism with these settings."""
        (_, found) = describe_run(self.mimics, terms, settings, dataset).parts[0]
        assert isinstance(found, BlockVector)
        return found


class HalfLaplace(BlockTwin):
    """Half the noise in every block."""

    name: ClassVar[str] = "block_laplace, half the noise"
    fault: ClassVar[str] = "half of the noise that the guarantee needs"
    factor: ClassVar[Fraction] = Fraction(1, 2)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        honest["scales"] = [text(rational(s) * self.factor) for s in honest["scales"]]
        return honest


class HalfGaussian(HalfLaplace):
    """Half the standard deviation in every block."""

    name: ClassVar[str] = "block_gaussian, half the noise"
    mimics: ClassVar[str] = "block_gaussian"
    original: ClassVar[type[BlockMechanism]] = BlockGaussian
    needs_delta: ClassVar[bool] = True
    questions: ClassVar[Sequence[Query]] = QUESTIONS["block_gaussian"]
    factor: ClassVar[Fraction] = Fraction(1, 4)


class OneDrawPerBlock(BlockTwin):
    """One draw for all cells of a block, as printed in the pseudo-code."""

    name: ClassVar[str] = "block_laplace, one draw per block"
    fault: ClassVar[str] = "cells of a block share one draw: their differences are exact"
    caught_by: ClassVar[tuple[str, ...]] = ("exact", "sampler")
    questions: ClassVar[Sequence[Query]] = (ONE_BLOCK,)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Contributions)
        limits = limits_from(terms, settings)
        centre = clip(dataset, limits)
        for block, scale in enumerate(settings["scales"]):
            drawn = self.original().draw(rational(scale), 1, source)
            centre[limits.labels == block] += drawn
        return Outcome(centre.astype(np.float64), None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        honest = self.law(terms, settings, dataset)
        return Description((("totals", OneDraw(**vars(honest))),))


class SupportFromData(BlockTwin):
    """Noise only where somebody contributed."""

    name: ClassVar[str] = "block_laplace, support read off the data"
    fault: ClassVar[str] = "exact zeros show which cells nobody contributed to"
    questions: ClassVar[Sequence[Query]] = (TWO_BLOCKS, APART)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Contributions)
        honest = super().run(terms, settings, dataset, source)
        visited = clip(dataset, limits_from(terms, settings)) != 0
        return Outcome(np.where(visited, honest.value, 0.0), None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        honest = self.law(terms, settings, dataset)
        scales = tuple(
            s if c else Fraction(0) for s, c in zip(honest.scales, honest.centre, strict=True)
        )
        return Description((("totals", replace(honest, scales=scales)),))


class Unclipped(BlockTwin):
    """Individuals as they are."""

    name: ClassVar[str] = "block_laplace, not clipped"
    fault: ClassVar[str] = "a participant beyond the bounds moves the totals by more than them"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Contributions)
        honest = super().run(terms, settings, dataset, source)
        lost = dataset.totals() - clip(dataset, limits_from(terms, settings))
        return Outcome(honest.value + lost, None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        law = describe("laplace", terms, settings, dataset.totals())
        return Description((("totals", law),))


class UnclippedGaussian(Unclipped):
    """Individuals as they are, with Gaussian noise."""

    name: ClassVar[str] = "block_gaussian, not clipped"
    mimics: ClassVar[str] = "block_gaussian"
    original: ClassVar[type[BlockMechanism]] = BlockGaussian
    needs_delta: ClassVar[bool] = True
    questions: ClassVar[Sequence[Query]] = QUESTIONS["block_gaussian"]

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        law = describe("gaussian", terms, settings, dataset.totals())
        return Description((("totals", law),))


class ReplacedByAnother(BlockTwin):
    """Whoever is beyond the bounds is replaced by somebody who is within, as printed (I_0)."""

    name: ClassVar[str] = "block_laplace, replaced by another's records"
    fault: ClassVar[str] = "one participant's records are released once for each who is replaced"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (ONE_BLOCK,)

    def _centre(self, terms: Terms, settings: Parameters, dataset: Contributions) -> Any:
        most = limits_from(terms, settings).total
        people = people_of(dataset)
        within = [person for person in people if sum(map(abs, person)) <= most]
        model = within[0] if within else (0, 0)
        kept = [person if sum(map(abs, person)) <= most else model for person in people]
        return np.array(kept).reshape(-1, 2).sum(axis=0, keepdims=True)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Contributions)
        honest = super().run(terms, settings, dataset, source)
        moved = self._centre(terms, settings, dataset) - clip(dataset, limits_from(terms, settings))
        return Outcome(honest.value + moved, None)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        law = describe("laplace", terms, settings, self._centre(terms, settings, dataset))
        return Description((("totals", law),))


class TwiceDelta(HalfGaussian):
    """Each of K blocks calibrated to delta_k = 2·delta / K, exactly (Balle & Wang 2018)."""

    name: ClassVar[str] = "block_gaussian, delta_k = 2·delta/K"
    fault: ClassVar[str] = "the blocks' deltas add up to twice the delta"
    questions: ClassVar[Sequence[Query]] = (ONE_BLOCK,)

    def deviation(self, length: float, epsilon: float, delta: float) -> float:
        """Return the standard deviation for a move of this length."""

        def excess(mu: float) -> float:
            tail = math.exp(epsilon + norm.logcdf(-epsilon / mu - mu / 2))
            return float(norm.cdf(-epsilon / mu + mu / 2) - tail - delta)

        return length / float(brentq(excess, 1e-3, 100.0, xtol=1e-12))

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(self.original().settings(terms, options))
        frame = frame_of(weights_query(terms), terms.facts, GAUSSIAN)
        caps, _ = masses(frame, limits_from(terms, honest), True)
        count = len(caps)
        parts = [math.sqrt(math.sqrt(c) * n) for c, n in zip(caps, honest["sizes"], strict=True)]
        delta = min(2 * float(terms.delta) / count, 0.99)
        found = []
        for cap, part in zip(caps, parts, strict=True):
            share = float(terms.epsilon) * part / sum(parts)
            found.append(self.deviation(math.sqrt(cap), share, delta))
        honest["scales"] = [text(Fraction(sigma**2)) for sigma in found]
        return honest


class Printed(TwiceDelta):
    """The printed deviation, sqrt(2 ln(1.25 / delta_k)) / epsilon_k, at any epsilon."""

    name: ClassVar[str] = "block_gaussian, the printed deviation"
    fault: ClassVar[str] = "the printed deviation holds for epsilon < 1 only"
    questions: ClassVar[Sequence[Query]] = (ONE_BLOCK, TWO_BLOCKS, APART)

    def deviation(self, length: float, epsilon: float, delta: float) -> float:
        return length * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


class FullBudgetEach(Twin):
    """Every block's bound is chosen with all of epsilon."""

    name: ClassVar[str] = "block_quantiles, all of epsilon for each block"
    kind: ClassVar[str] = "contributions"
    title: ClassVar[str] = "a broken version"
    reference: ClassVar[str] = "none"
    mimics: ClassVar[str] = "block_quantiles"
    fault: ClassVar[str] = "one participant is in every block, and each choice costs epsilon"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (QUESTIONS["block_quantiles"][1],)

    def supports(self, query: Query, unit: Unit) -> bool:
        return BlockQuantiles().supports(query, unit)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        return {**BlockQuantiles().settings(terms, options), "epsilon": text(terms.epsilon)}

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        return BlockQuantiles().predict(terms, settings, like)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return BlockQuantiles().run(terms, settings, dataset, source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_choice(terms, settings, dataset)


@registry.register("audit", "contributions", "faults")
def contribution_twins() -> list[Twin]:
    """Return all twins of mechanisms on contributions."""
    kinds: tuple[type[Mechanism], ...] = (
        HalfLaplace,
        HalfGaussian,
        OneDrawPerBlock,
        SupportFromData,
        Unclipped,
        UnclippedGaussian,
        ReplacedByAnother,
        TwiceDelta,
        Printed,
        FullBudgetEach,
    )
    return [twin for kind in kinds if isinstance(twin := kind(), Twin)]
