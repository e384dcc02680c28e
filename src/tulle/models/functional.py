"""The functional mechanism: Laplace noise on the coefficients of the objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.mechanism import Parameters, Terms
from tulle.core.source import Source
from tulle.models.moments import (
    MomentMechanism,
    MomentSettings,
    Places,
    Scales,
    choose_bits,
    frame_for,
)
from tulle.models.queries import Linear, Logistic, Regression
from tulle.models.sensitivity import (
    attribute_sensitivity,
    functional_sensitivity,
    kind_weights,
    pair_kinds,
    target_kinds,
)
from tulle.noise import discrete_laplace

_LARGEST_SCALE = 2**45


@dataclass(frozen=True, eq=False)
class FunctionalSettings(MomentSettings):
    """The public settings of one run."""

    sensitivity: Fraction
    scale: Fraction
    attribute_epsilon: Fraction | None = None
    """What a change of sensitive columns alone costs, where there are some."""


@registry.mechanism("table", "functional", answers=(Linear, Logistic), units=("participant", "row"))
class Functional(MomentMechanism):
    """Add Laplace noise to the coefficients of the objective, then minimise what they define.

    The squared error is a polynomial of the model's parameters; the logistic loss is one to second
    order around zero: the sum of (z·w)²/8 - (y·z·w)/2 with y = -1 or 1. Monomials with a sensitive
    feature get 1/gamma times the noise of the others.

    Guarantee:
        Pure epsilon per row or per participant. Rows are whole numbers of steps, and one person
        moves the weighted coefficients by at most D in all (:mod:`tulle.models.sensitivity`).
        Coefficient k gets discrete Laplace noise of scale D / (w_k·epsilon), so that no
        probability changes by more than exp(sum w_k·|change|·epsilon / D) <= exp(epsilon). A
        change of one person's *sensitive* features alone moves only the monomials that contain
        one: its loss is at most the ``attribute_epsilon`` among the release's parameters. The rest
        (penalty, trimmed spectrum, solving) sees noisy numbers only, as does the interval.

    Error:
        In proportion to D / (n·epsilon), where D grows as d²: about (d + 1)² per row. The interval
        of a linear model is through the released matrix (:class:`CoefficientLaw`). A logistic
        model carries the error of its second-order loss besides: :func:`noise_interval` is about
        the noise alone, and a plan on a public stand-in predicts both.

    Reference:
        Zhang, Zhang, Xiao, Yang & Winslett, Functional mechanism, VLDB 2012; sensitive features:
        Wang, Si & Wu, 2015, with monomials counted in full and tighter bounds.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table(
        ...     {"age": [30, 40, 50], "pay": [2, 3, 4]}, bounds={"age": (18, 70), "pay": (0, 9)})
        >>> r = tulle.release(people, tulle.models.linear("pay"), unit="row", epsilon=1.0)
        >>> r.mechanism, len(r.value)
        ('functional', 2)
    """

    title: ClassVar[str] = "Laplace noise on the objective's coefficients"
    reference: ClassVar[str] = "Zhang et al., VLDB 2012"
    noise: ClassVar[str] = "laplace"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        assert isinstance(terms.query, Regression)
        frame = frame_for(terms)
        moved = functional_sensitivity(frame)
        unit_scale = moved / terms.epsilon
        # Of all monomials a square weighs least, a sensitive one if there is one.
        smallest = kind_weights(frame)[3 * any(frame.sensitive)]
        bits = choose_bits(terms.query, unit_scale / smallest, _LARGEST_SCALE)
        found = FunctionalSettings(bits, moved, unit_scale * 4**bits)
        if not any(frame.sensitive):
            return found
        attribute = min(attribute_sensitivity(frame), moved) / unit_scale
        return replace(found, attribute_epsilon=Fraction(ceil(attribute * 10**6), 10**6))

    def scales(self, terms: Terms, settings: Parameters) -> Scales:
        frame, scale = frame_for(terms), FunctionalSettings.read(settings).scale
        kinds = Places.of(frame).pack(pair_kinds(frame), target_kinds(frame))
        return Scales(tuple(scale / weight for weight in kind_weights(frame)), kinds)

    def draw(self, scale: Fraction, count: int, source: Source | None) -> npt.NDArray[np.int64]:
        return discrete_laplace(scale=scale, size=count, source=source)

    def worst(
        self, terms: Terms, settings: Parameters, kinds: Sequence[int], rates: Sequence[Fraction]
    ) -> Fraction:
        frame = frame_for(terms)
        weights = kind_weights(frame)
        dearest = max(rate / weights[kind] for kind, rate in zip(kinds, rates, strict=True))
        steps: int = 4 ** MomentSettings.read(settings).bits
        return functional_sensitivity(frame) * steps * dearest

    def variance(self, scale: Fraction, bits: int) -> float:
        return 2 * float(scale / 4**bits) ** 2
