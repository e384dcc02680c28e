"""Real values on a grid whose step is a power of two, so that noise can be exact integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np

from tulle.core import validate
from tulle.core.arrays import Array
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import Number
from tulle.noise.additive import discrete_laplace

_INT_LIMIT = 2**62


@public()
@dataclass(frozen=True, init=False)
class Lattice:
    """The multiples of a step that is a power of two.

    Snapping moves each value by at most step/2. Two values at distance D are therefore at most
    D + step apart after it: the sensitivity grows by at most one step per coordinate.

    Raises:
        InputError: when the step is not a power of two in [2**-1000, 2**1000].

    Example:
        >>> Lattice(0.25).snap(0.4), Lattice(0.25).value(2)
        (2, 0.5)
    """

    step: Fraction

    def __init__(self, step: Number) -> None:
        # 2.0**-60 means the power of two, not the decimal that it prints.
        exact = Fraction(step) if isinstance(step, float) and math.isfinite(step) else None
        if exact is None:
            exact = validate.positive(at_most=None, step=step)
        parts = (exact.numerator, exact.denominator)
        if exact <= 0 or any(part.bit_count() != 1 for part in parts) or max(parts) > 2**1000:
            raise InputError(f"step must be a power of two in [2**-1000, 2**1000]; got {step!r}.")
        object.__setattr__(self, "step", exact)

    @classmethod
    def for_scale(cls, scale: Number, fraction: Number = Fraction(1, 1024)) -> Lattice:
        """Return the coarsest lattice whose step is at most ``scale * fraction``.

        Example:
            >>> Lattice.for_scale(3, fraction=1).step
            Fraction(2, 1)
        """
        bound = validate.positive(at_most=None, scale=scale) * validate.positive(
            at_most=None, fraction=fraction
        )
        exponent = bound.numerator.bit_length() - bound.denominator.bit_length()
        step = Fraction(2) ** exponent
        return cls(step if step <= bound else step / 2)

    @property
    def exponent(self) -> int:
        """The step is two to this power."""
        return self.step.numerator.bit_length() - self.step.denominator.bit_length()

    @overload
    def snap(self, values: Array | list[Any]) -> Array: ...  # type: ignore[overload-overlap]
    @overload
    def snap(self, values: Number) -> int: ...
    def snap(self, values: Any) -> int | Array:
        """Return the index of the nearest lattice point, of the even one in the middle; exactly.

        A single value may be a float (taken as it is in binary), int or fraction, and its index
        has any length. An array gives int64, and values beyond 2**62 steps go to 2**62 steps:
        clamping moves no two values apart, hence fails on no data and costs no privacy.

        Raises:
            InputError: when a value is not a finite number.
        """
        if isinstance(values, np.ndarray | list):
            array = np.asarray(values, dtype=np.float64)
            if not np.isfinite(array).all():
                raise InputError("values must be finite numbers.")
            # Scaling by a power of two is exact; what overflows is clamped, what underflows is
            # far below half a step.
            with np.errstate(over="ignore", under="ignore"):
                scaled = np.ldexp(array, -self.exponent)
            snapped: Array = np.rint(np.clip(scaled, -_INT_LIMIT, _INT_LIMIT)).astype(np.int64)
            return snapped
        if isinstance(values, float):
            if not math.isfinite(values):
                raise InputError("values must be finite numbers.")
            return round(Fraction(values) / self.step)
        try:
            return round(validate.number(at_most=None, values=values) / self.step)
        except InputError:
            raise_alone(InputError("values must be finite numbers."))

    @overload
    def value(self, index: Array) -> Array: ...
    @overload
    def value(self, index: int) -> float: ...
    def value(self, index: Any) -> float | Array:
        """Return the lattice point of that index, as the nearest float when it is not one."""
        if isinstance(index, np.ndarray):
            return np.ldexp(index.astype(np.float64), self.exponent)
        try:
            return float(index * self.step)
        except OverflowError:
            return math.inf if index > 0 else -math.inf


@overload
def laplace_on_lattice(  # type: ignore[overload-overlap]
    value: Array | list[Any],
    *,
    sensitivity: Number,
    epsilon: Number,
    lattice: Lattice | None = None,
    changed: int | None = None,
    source: Source | None = None,
) -> Array: ...
@overload
def laplace_on_lattice(
    value: Number,
    *,
    sensitivity: Number,
    epsilon: Number,
    lattice: Lattice | None = None,
    source: Source | None = None,
) -> float: ...
@public()
def laplace_on_lattice(
    value: Any,
    *,
    sensitivity: Number,
    epsilon: Number,
    lattice: Lattice | None = None,
    changed: int | None = None,
    source: Source | None = None,
) -> float | Array:
    """Release a real value, or an array of them, with exact Laplace noise on a lattice.

    ``sensitivity`` is the L1 sensitivity of all entries together. ``changed`` is how many entries
    one unit can change (all, when left out). The lattice is chosen from the public numbers alone
    when left out: its steps together are at most 1/1024 of the sensitivity.

    *Guarantee.* epsilon-DP: snapped, one unit moves the entries by at most sensitivity/step +
    changed steps in total, and the noise is discrete Laplace of that scale over epsilon.

    *Error.* Discrete Laplace of scale (sensitivity + changed * step) / epsilon, plus at most
    step/2 from snapping.

    Raises:
        InputError: when sensitivity or epsilon is not above zero, or a value is not finite.

    Example:
        >>> abs(laplace_on_lattice(2.5, sensitivity=1, epsilon=1000) - 2.5) < 1
        True

    Reference: Mironov, *On significance of the least significant bits for differential privacy*,
    CCS 2012, for why noise must not be added to floats.
    """
    exact = validate.positive(at_most=None, sensitivity=sensitivity)
    budget = validate.positive(at_most=None, epsilon=epsilon)
    whole = isinstance(value, np.ndarray | list)
    entries = np.asarray(value).size if whole else 1
    steps = entries if changed is None else validate.whole(changed=changed, at_least=1)
    steps = max(1, min(steps, entries))
    if lattice is None:
        lattice = Lattice.for_scale(exact / steps)
    scale = (exact / lattice.step + steps) / budget
    if whole:
        index: Array = lattice.snap(value)
        noise = discrete_laplace(scale=scale, size=index.shape, source=source)
        return lattice.value(index + noise)
    point: int = lattice.snap(value)
    return lattice.value(point + discrete_laplace(scale=scale, source=source))
