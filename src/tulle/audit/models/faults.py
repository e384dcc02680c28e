"""Broken versions of the mechanisms on tables of people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.faults import BOTH, HALF, broken, forget_delta, halve_noise
from tulle.audit.models.kind import CHANGE, CHANGE_PAIR, CROWD, ODDS, ONE, PAIR, QUESTIONS, TWO
from tulle.core import registry
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.validate import text
from tulle.models.data import Table
from tulle.models.moments import MomentMechanism, MomentSettings, Places, frame_for
from tulle.models.queries import linear
from tulle.models.sensitivity import RowWeights, functional_sensitivity, monomials

_PRINTED = (
    linear("y", ["a", "b"], sensitive=["a"], gamma="0.5", intercept=False, bits=0),
    linear("y", ["a", "b"], sensitive=["a"], intercept=False, bits=0),
)


def printed_count(honest: Parameters, terms: Terms) -> Parameters:
    """Count sensitive monomials as printed, 2k + k·d, and add noise for that count."""
    frame = frame_for(terms)
    d, k = frame.count, sum(frame.sensitive)
    every, hidden = monomials(frame)
    counted = every - hidden + frame.gamma * (2 * k + k * d)
    printed = RowWeights.of(frame).square * counted
    return {"scale": text(printed / terms.epsilon * 4 ** honest["bits"])}


def one_row(honest: Parameters, terms: Terms) -> Parameters:
    """Take the length of one row's coefficients as the sensitivity of a change."""
    coming = functional_sensitivity(replace(frame_for(terms), unit="participant"))
    return {"scale": text(coming / terms.epsilon * 4 ** honest["bits"])}


def scaled_by(
    mechanism: Mechanism, what: str, fault: str, stretch: Callable[[Any, float, float], Any]
) -> Broken:
    """Scale columns in another way: ``stretch(values, low, high)`` should lie within [-1, 1]."""

    def centre(
        self: MomentMechanism, terms: Terms, settings: Parameters, table: Table
    ) -> list[int]:
        frame = frame_for(terms)
        bounds = (
            *zip(frame.features, frame.lows, frame.highs, strict=True),
            (frame.target, frame.target_low, frame.target_high),
        )
        grid = 2 ** MomentSettings.read(settings).bits
        columns = [
            np.rint(stretch(table.column(name), float(low), float(high)) * grid)
            for name, low, high in bounds
        ]
        features = np.column_stack(columns[:-1])
        packed = Places.of(frame).pack(features.T @ features, features.T @ columns[-1])
        return [int(entry) for entry in packed]

    return broken(mechanism, what, fault, (ONE, TWO), BOTH, centre=centre)


def by_own_range(values: Any, low: float, high: float) -> Any:
    """Scale by the smallest and largest value that occur; all equal gives zero."""
    if not len(values) or values.min() == values.max():
        return np.zeros(len(values))
    return (values - values.min()) / (values.max() - values.min()) * 2 - 1


def unclipped(values: Any, low: float, high: float) -> Any:
    """Scale by the declared bounds, and take values beyond them as they are."""
    return (values - (low + high) / 2) / ((high - low) / 2)


@registry.register("audit", "table", "faults")
def model_faults() -> list[Broken]:
    """Return all broken versions."""
    real = registry.mechanisms("table")
    functional, adassp = real["functional"], real["adassp"]
    laplace, knorm = real["objective_laplace"], real["objective_knorm"]
    variances = ("matrix_variance", "vector_variance")
    return [
        broken(
            functional,
            "monomials counted as printed",
            "products of a sensitive with a later feature are not paid for",
            _PRINTED,
            settings=printed_count,
        ),
        scaled_by(
            functional,
            "bounds read off the data",
            "whoever is largest moves everyone else's scaled value",
            by_own_range,
        ),
        scaled_by(
            functional,
            "not clipped",
            "a value beyond its bounds moves the sums by more than they allow",
            unclipped,
        ),
        broken(
            functional,
            "one row's length for a change of it",
            "a changed row takes its old values away and brings new ones",
            (CHANGE,),
            settings=one_row,
        ),
        halve_noise(
            adassp,
            variances,
            QUESTIONS["adassp"],
            HALF,
            what="all of rho for either part",
            fault="one person is in the matrix and in the vector, and both cost",
        ),
        forget_delta(adassp, QUESTIONS["adassp"]),
        halve_noise(
            knorm,
            "penalty",
            (CROWD,),
            what="half the penalty",
            fault="the change of volume costs nothing beside the tilt only while it is steep",
        ),
        broken(
            knorm,
            "noise of its own for each number",
            "the bound is for the largest move, and independent noise pays for their sum",
            (PAIR, CHANGE_PAIR),
            noise="laplace",
        ),
        halve_noise(
            laplace,
            "penalty",
            (ODDS,),
            Fraction(1, 1000),
            what="change of volume forgotten",
            fault="with little penalty one person changes the curvature many times over",
            caught_by=BOTH,
        ),
    ]
