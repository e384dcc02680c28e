"""Broken twins of the mechanisms for spectra, two of them as a dissertation prints them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import LaplaceVector
from tulle.audit.graphs.spectra import (
    SPECTRA_DESCRIBERS,
    GaussianVector,
    gaussian_rounds,
    laplace_rounds,
    worst_iterates,
)
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.exact import rational, text
from tulle.core.guarantee import largest_rho
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.spectra.eigenvalues_gaussian import EigenGauss
from tulle.graphs.spectra.eigenvalues_laplace import EigenLaplace, finish, snapped
from tulle.graphs.spectra.power import Power, PowerPure
from tulle.graphs.spectra.queries import (
    Spectrum,
    adjacency,
    decompose,
    eigenvalues,
    oriented,
    spectrum,
)
from tulle.graphs.spectra.response import SpectralResponse
from tulle.noise import SeededSource, discrete_gaussian, discrete_laplace
from tulle.noise.xor.patterns import flip_probability


class _Described(Twin):
    """A twin whose fault is in its settings: the description follows them."""

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return SPECTRA_DESCRIBERS[self.mimics](terms, settings, dataset)


class _HalfNoise(_Described):
    fault: ClassVar[str] = "half the noise that the guarantee needs"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    setting: ClassVar[str]
    factor: ClassVar[Fraction] = Fraction(1, 2)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))  # type: ignore[safe-super]
        honest[self.setting] = text(rational(honest[self.setting]) * self.factor)
        return honest


class HalfPower(_HalfNoise, Power):
    """Gaussian noise of half the deviation."""

    name: ClassVar[str] = "power, half the noise"
    mimics: ClassVar[str] = "power"
    questions: ClassVar[Sequence[Query]] = (spectrum(1),)
    setting: ClassVar[str] = "variance"
    factor: ClassVar[Fraction] = Fraction(1, 4)


class HalfPowerPure(_HalfNoise, PowerPure):
    """Laplace noise of half the scale."""

    name: ClassVar[str] = "power_pure, half the noise"
    mimics: ClassVar[str] = "power_pure"
    questions: ClassVar[Sequence[Query]] = (spectrum(1), spectrum(2))
    setting: ClassVar[str] = "scale"


class HalfEigenLaplace(_HalfNoise, EigenLaplace):
    """Laplace noise of half the scale."""

    name: ClassVar[str] = "eigen_laplace, half the noise"
    mimics: ClassVar[str] = "eigen_laplace"
    questions: ClassVar[Sequence[Query]] = (eigenvalues(1),)
    setting: ClassVar[str] = "scale"


class HalfEigenGauss(_HalfNoise, EigenGauss):
    """Gaussian noise of half the deviation."""

    name: ClassVar[str] = "eigen_gauss, half the noise"
    mimics: ClassVar[str] = "eigen_gauss"
    questions: ClassVar[Sequence[Query]] = (eigenvalues(1),)
    setting: ClassVar[str] = "variance"
    factor: ClassVar[Fraction] = Fraction(1, 4)


class WeylForAll(_Described, EigenGauss):
    """Noise for a movement of 1, which is what a single eigenvalue moves by."""

    name: ClassVar[str] = "eigen_gauss, as if for one"
    mimics: ClassVar[str] = "eigen_gauss"
    fault: ClassVar[str] = "two eigenvalues move by sqrt(2) together, not by 1"
    caught_by: ClassVar[tuple[str, ...]] = ("claims",)
    questions: ClassVar[Sequence[Query]] = (eigenvalues(2),)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = super().settings(terms, options)
        moved = 1 / rational(honest["step"])
        variance = moved**2 / (2 * largest_rho(terms.epsilon, terms.delta))
        return {**honest, "sensitivity": text(moved), "variance": text(variance)}


def _unclipped(rows: Floats, levels: int, order: int) -> Wholes:
    """Return whole rows whose typical length is ``levels``; single ones are longer."""
    length = float(np.median(np.linalg.norm(rows, ord=order, axis=1)))
    return np.rint(rows * (levels / max(length, 1e-300))).astype(np.int64)


class _Unclipped(Twin):
    fault: ClassVar[str] = "rows are not clipped: the noise follows a typical row, not the longest"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (spectrum(1),)
    order: ClassVar[int]

    def rows(self, iterate: Floats, settings: Parameters) -> tuple[Wholes, float]:
        """Return the rows as they are, scaled by their typical length."""
        levels = int(settings["levels"])
        lengths = np.linalg.norm(iterate, ord=self.order, axis=1)
        return _unclipped(iterate, levels, self.order), float(np.median(lengths)) / levels

    def centre(self, settings: Parameters, graph: Graph) -> tuple[int, ...]:
        """Return all rounds' products with unclipped rows."""
        levels = int(settings["levels"])
        made = [
            adjacency(graph) @ _unclipped(iterate, levels, self.order)
            for iterate in worst_iterates(settings)
        ]
        return tuple(int(entry) for product in made for entry in product.ravel())


class UnclippedPower(_Unclipped, Power):
    """Subspace iteration without clipping."""

    name: ClassVar[str] = "power, not clipped"
    mimics: ClassVar[str] = "power"
    order: ClassVar[int] = 2

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return gaussian_rounds(self.centre(settings, dataset), settings)


class UnclippedPowerPure(_Unclipped, PowerPure):
    """Subspace iteration without clipping, with Laplace noise."""

    name: ClassVar[str] = "power_pure, not clipped"
    mimics: ClassVar[str] = "power_pure"
    order: ClassVar[int] = 1

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return laplace_rounds(self.centre(settings, dataset), settings)


class EigengapNoise(Twin, PowerPure):
    """LNPP as printed: Laplace noise on eigenvectors, by the eigengap of the graph at hand."""

    name: ClassVar[str] = "LNPP as printed"
    mimics: ClassVar[str] = "power_pure"
    fault: ClassVar[str] = (
        "sqrt(n) / eigengap is a local, first-order bound, which neighbours do not share "
        "(chapter 4, result 6)"
    )
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (spectrum(1),)

    def _law(self, terms: Terms, settings: Parameters, graph: Graph) -> LaplaceVector:
        levels = int(settings["levels"])
        found = decompose(graph, 2)
        gap = Fraction(max(float(found.values[0] - found.values[1]), 2.0**-20))
        bound = Fraction(math.sqrt(graph.node_count)) / gap * levels
        centre = tuple(np.rint(found.vectors[:, 0] * levels).astype(np.int64).tolist())
        return LaplaceVector(centre, (bound / terms.epsilon,) * len(centre), bound)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return Description((("answer", self._law(terms, settings, dataset)),))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        law = self._law(terms, settings, dataset)
        noise = discrete_laplace(scale=law.scales[0], size=len(law.centre), source=source)
        noisy = (np.array(law.centre) + noise).astype(np.float64)[:, None]
        vector = noisy / max(float(np.linalg.norm(noisy)), 1e-300)
        return Outcome(Spectrum(decompose(dataset, 1).values, oriented(vector)), None)


class GaussianCalledPure(Twin, EigenLaplace):
    """SBMF's eigenvalues as printed: Gaussian noise sigma is said to be 2·sigma·GS-private."""

    name: ClassVar[str] = "SBMF as printed"
    mimics: ClassVar[str] = "eigen_laplace"
    fault: ClassVar[str] = (
        "Gaussian noise has no pure epsilon, and more of it cannot cost more (chapter 4, claim 4)"
    )
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (eigenvalues(1),)

    def _variance(self, terms: Terms, settings: Parameters) -> Fraction:
        return (terms.epsilon / 2 / rational(settings["step"])) ** 2

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        centre = tuple(snapped(dataset, settings).tolist())
        moved = rational(settings["sensitivity"]) ** 2
        law = GaussianVector(centre, self._variance(terms, settings), moved)
        return Description((("answer", law),))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Graph)
        index = snapped(dataset, settings)
        variance = self._variance(terms, settings)
        noise = discrete_gaussian(variance=variance, size=len(index), source=source)
        return Outcome(finish(index + noise, settings), None)


class TwiceEpsilon(_Described, SpectralResponse):
    """Coins for twice the epsilon, as if the two halves of a matrix had one each."""

    name: ClassVar[str] = "spectral_response, twice the epsilon"
    mimics: ClassVar[str] = "spectral_response"
    fault: ClassVar[str] = "a pair is flipped less often than its epsilon demands"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = (spectrum(1),)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = super().settings(terms, options)
        flip = flip_probability(2 * rational(honest["epsilon_pairs"]))
        return {**honest, "flip": flip, "keep": 1 - flip, "invent": flip}


class _Seeded(_Described):
    fault: ClassVar[str] = "noise from a seeded source: who knows the seed can undo it"
    caught_by: ClassVar[tuple[str, ...]] = ("fresh noise", "sampler")
    questions: ClassVar[Sequence[Query]] = (spectrum(1),)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(self, Mechanism)
        return super().run(terms, settings, dataset, SeededSource(7))  # type: ignore[safe-super]


class SeededPower(_Seeded, Power):
    """The noise is the same every time."""

    name: ClassVar[str] = "power, seeded"
    mimics: ClassVar[str] = "power"


class SeededSpectralResponse(_Seeded, SpectralResponse):
    """The coins are the same every time."""

    name: ClassVar[str] = "spectral_response, seeded"
    mimics: ClassVar[str] = "spectral_response"


def spectra_twins() -> list[Twin]:
    """Return one of each twin."""
    return [
        HalfPower(),
        HalfPowerPure(),
        HalfEigenLaplace(),
        HalfEigenGauss(),
        WeylForAll(),
        UnclippedPower(),
        UnclippedPowerPure(),
        EigengapNoise(),
        GaussianCalledPure(),
        TwiceEpsilon(),
        SeededPower(),
        SeededSpectralResponse(),
    ]
