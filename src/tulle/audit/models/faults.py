"""Broken twins of the mechanisms on tables of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.faults import Twin
from tulle.audit.engine.kind import Description
from tulle.audit.models.kind import (
    CHANGE,
    ODDS,
    ONE,
    QUESTIONS,
    REAL,
    TWO,
    describe_moments,
    describe_run,
)
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.exact import rational, text
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.models.data import Table
from tulle.models.moments import MomentMechanism, Places, frame_for
from tulle.models.queries import linear
from tulle.models.sensitivity import Weights, functional_sensitivity, monomials


class ModelTwin(Twin):
    """A twin that hands everything to the real mechanism, but for its fault."""

    kind: ClassVar[str] = "table"
    title: ClassVar[str] = "a broken version"
    reference: ClassVar[str] = "none"
    mimics: ClassVar[str] = "functional"
    caught_by: ClassVar[tuple[str, ...]] = ("exact",)
    questions: ClassVar[Sequence[Query]] = QUESTIONS["functional"]
    factor: ClassVar[Fraction] = Fraction(1)
    """Noise is multiplied by this (of Gaussian noise on sums, the variance)."""
    scaled: ClassVar[tuple[str, ...]] = ("scale",)
    """The settings that the factor applies to."""

    @property
    def original(self) -> Mechanism:
        """The real mechanism."""
        return REAL[self.mimics]

    def supports(self, query: Query, unit: Unit) -> bool:
        return self.original.supports(query, unit)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(self.original.settings(terms, options))
        for name in self.scaled:
            honest[name] = text(rational(honest[name]) * self.factor)
        return honest

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        return self.original.predict(terms, settings, like)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        return self.original.run(terms, settings, dataset, source)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        return describe_run(self.original, terms, settings, dataset)


class HalfFunctional(ModelTwin):
    """Half the noise on every coefficient."""

    name: ClassVar[str] = "functional, half the noise"
    questions: ClassVar[Sequence[Query]] = (ONE, CHANGE)
    fault: ClassVar[str] = "half of the noise that the guarantee needs"
    factor: ClassVar[Fraction] = Fraction(1, 2)


class PrintedCount(ModelTwin):
    """Sensitive monomials counted as printed, 2k + k·d, and noise for that count."""

    name: ClassVar[str] = "functional, monomials counted as printed"
    fault: ClassVar[str] = "products of a sensitive with a later feature are not paid for"
    questions: ClassVar[Sequence[Query]] = (
        linear("y", ["a", "b"], sensitive=["a"], gamma="0.5", intercept=False, bits=0),
        linear("y", ["a", "b"], sensitive=["a"], intercept=False, bits=0),
    )

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        frame = frame_for(terms)
        d, k = frame.count, sum(frame.sensitive)
        every, hidden = monomials(frame)
        counted = every - hidden + frame.gamma * (2 * k + k * d)
        printed = Weights.of(frame).square * counted
        honest["scale"] = text(printed / terms.epsilon * 4 ** honest["bits"])
        return honest


class BoundsFromData(ModelTwin):
    """Columns scaled by the smallest and largest value that occur."""

    name: ClassVar[str] = "functional, bounds read off the data"
    fault: ClassVar[str] = "whoever is largest moves everyone else's scaled value"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    questions: ClassVar[Sequence[Query]] = (ONE, TWO)

    def centre(self, terms: Terms, settings: Parameters, dataset: Table) -> list[int]:
        """Return the sums that this twin adds noise to."""
        frame = frame_for(terms)
        columns = [dataset.column(name) for name in (*frame.features, frame.target)]
        grid = 2 ** settings["bits"]
        scaled = [np.rint(_stretch(values) * grid) for values in columns]
        features = np.column_stack(scaled[:-1])
        packed = Places.of(frame).pack(features.T @ features, features.T @ scaled[-1])
        return [int(entry) for entry in packed]

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Table)
        real = self.original
        assert isinstance(real, MomentMechanism)
        spreads = real.spreads(terms, settings).each()
        drawn = [int(real.draw(spread, 1, source)[0]) for spread in spreads]
        noisy = np.array(self.centre(terms, settings, dataset)) + np.array(drawn)
        return real.finish(terms, settings, frame_for(terms), noisy)

    def describe(self, terms: Terms, settings: Parameters, dataset: Any) -> Description:
        real = self.original
        assert isinstance(real, MomentMechanism)
        return describe_moments(real, terms, settings, self.centre(terms, settings, dataset))


class NotClipped(BoundsFromData):
    """Values beyond the declared bounds are taken as they are."""

    name: ClassVar[str] = "functional, not clipped"
    fault: ClassVar[str] = "a value beyond its bounds moves the sums by more than they allow"

    def centre(self, terms: Terms, settings: Parameters, dataset: Table) -> list[int]:
        frame = frame_for(terms)
        grid = 2 ** settings["bits"]
        scaled = []
        for name, low, high in (
            *zip(frame.features, frame.lows, frame.highs, strict=True),
            (frame.target, frame.target_low, frame.target_high),
        ):
            middle, half = (low + high) / 2, (high - low) / 2
            scaled.append(np.rint((dataset.column(name) - middle) / half * grid))
        features = np.column_stack(scaled[:-1])
        packed = Places.of(frame).pack(features.T @ features, features.T @ scaled[-1])
        return [int(entry) for entry in packed]


class HalfAdaSSP(ModelTwin):
    """Half the standard deviation everywhere."""

    name: ClassVar[str] = "adassp, half the noise"
    mimics: ClassVar[str] = "adassp"
    fault: ClassVar[str] = "half of the noise that the guarantee needs"
    needs_delta: ClassVar[bool] = True
    factor: ClassVar[Fraction] = Fraction(1, 4)
    scaled: ClassVar[tuple[str, ...]] = ("matrix_variance", "vector_variance")
    questions: ClassVar[Sequence[Query]] = QUESTIONS["adassp"]


class TwiceRho(HalfAdaSSP):
    """All of rho for the matrix, and all of it again for the vector."""

    name: ClassVar[str] = "adassp, all of rho for either part"
    fault: ClassVar[str] = "one person is in the matrix and in the vector, and both cost"
    factor: ClassVar[Fraction] = Fraction(1, 2)


class HalfObjectiveLaplace(ModelTwin):
    """Half the noise on the slope."""

    name: ClassVar[str] = "objective_laplace, half the noise"
    mimics: ClassVar[str] = "objective_laplace"
    fault: ClassVar[str] = "half of the noise that the guarantee needs"
    factor: ClassVar[Fraction] = Fraction(1, 2)
    scaled: ClassVar[tuple[str, ...]] = ("spread",)
    questions: ClassVar[Sequence[Query]] = QUESTIONS["objective_laplace"]


class HalfObjectiveGaussian(HalfObjectiveLaplace):
    """Half the noise on the slope, Gaussian."""

    name: ClassVar[str] = "objective_gaussian, half the noise"
    questions: ClassVar[Sequence[Query]] = (ODDS,)
    mimics: ClassVar[str] = "objective_gaussian"
    needs_delta: ClassVar[bool] = True


class NoVolume(HalfObjectiveLaplace):
    """Hardly any penalty: the change of volume is forgotten."""

    name: ClassVar[str] = "objective_laplace, change of volume forgotten"
    fault: ClassVar[str] = "with little penalty one person changes the curvature many times over"
    caught_by: ClassVar[tuple[str, ...]] = ("claims", "exact")
    factor: ClassVar[Fraction] = Fraction(1, 1000)
    scaled: ClassVar[tuple[str, ...]] = ("penalty",)
    questions: ClassVar[Sequence[Query]] = (ODDS,)


class OneRowOnly(ModelTwin):
    """The length of one row's coefficients as the sensitivity of a change."""

    name: ClassVar[str] = "functional, one row's length for a change of it"
    fault: ClassVar[str] = "a changed row takes its old values away and brings new ones"
    questions: ClassVar[Sequence[Query]] = (CHANGE,)

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        honest = dict(super().settings(terms, options))
        coming = functional_sensitivity(replace(frame_for(terms), unit="participant"))
        honest["scale"] = text(coming / terms.epsilon * 4 ** honest["bits"])
        return honest


def _stretch(values: Any) -> Any:
    """Scale to [-1, 1] by the smallest and largest value; all equal gives zero."""
    if not len(values) or values.min() == values.max():
        return np.zeros(len(values))
    return (values - values.min()) / (values.max() - values.min()) * 2 - 1


@registry.register("audit", "table", "faults")
def model_twins() -> list[Twin]:
    """Return all twins of mechanisms on tables."""
    return [
        HalfFunctional(),
        PrintedCount(),
        BoundsFromData(),
        NotClipped(),
        OneRowOnly(),
        HalfAdaSSP(),
        TwiceRho(),
        HalfObjectiveLaplace(),
        HalfObjectiveGaussian(),
        NoVolume(),
    ]
