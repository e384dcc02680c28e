"""How far released coefficients are from the minimum without noise, from public numbers alone.

Let F be the loss with its penalty, t its minimum, and w the minimum of F tilted by b. Then the
gradient of F at w is -b. The logistic loss has a third derivative of at most its second times the
length of a row (Bach, Self-concordant analysis for logistic regression, EJS 2010): with rows of
length sqrt(R) at most, penalty L, and curvature of the losses at w of at least C in all directions,

    |b| >= C·(1 - exp(-sqrt(R)·r)) / sqrt(R) + L·r,   r = |w - t|,

whatever the data. The right side grows with r without end, so a bound on |b|, whose law is public,
bounds r. C is zero, or a lower bound that a share of epsilon bought.

With K the least curvature of F between t and w, b·(t - w) >= K·|w - t|²: w - t lies in the ball of
which 0 and -b/K are opposite ends, and no further than (|z·b| + |z|·|b|) / 2K along any z.

From the released coefficients alone nothing much narrower can be said. Where everybody has values
in the middle of their ranges, t is zero and w is -b/L: whatever covers in 95 of 100 cases for every
data set must reach from w to zero for 95 of 100 tilts.

To first order, w - t is b seen through the curvature at w. That is not published; what is said here
of the first order is through that of a public stand-in, through a number that was bought for some
coefficients (:func:`noise_reach`), or through the penalty alone, which makes it as wide as any
curvature could (:func:`noise_interval`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats
from tulle.core.error_law import ErrorLaw, check_level, law_from_json
from tulle.core.errors import InputError, NoIntervalError
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.validate import widen_up
from tulle.models.data import Table
from tulle.models.design import MOST_BITS, whole_rows
from tulle.models.fitting import chances, logistic_curvature
from tulle.models.model import frame_again
from tulle.models.moments import NOISE_LAW, CoefficientLaw

_LATTICES = 1 + 2.0**-20
"""Covers that noise is on a lattice of 2^-45 of its scale, and rounding in floating point."""


@public()
def noise_interval(
    release: Release, level: float = 0.95, like: Table | None = None
) -> tuple[Floats, Floats]:
    """Return where the coefficients would be if the same loss of the same people had no noise.

    For a linear model that is the interval of the release: least squares is the loss. For a
    logistic model by ``functional`` or ``adassp`` it is about the loss that they minimise, the
    logistic one to second order: its coefficients have the same signs, as a rule, and are smaller
    than those of the logistic loss itself, the more so the stronger the model. That difference is
    not noise, no epsilon makes it vanish, and this interval leaves it out; a plan on a public
    stand-in (``like=``) predicts both together. As every interval here it is about the people in
    the table, not about those who might have been in it.

    For objective perturbation it is about the minimum of its loss and penalty, as the interval of
    the release, which is wider: that one holds for every data set. Noise reaches the coefficients
    through the curvature of the loss, which is not published. ``like``, a public table of the same
    columns, lends its own: the interval is as good as the two tables are alike, and costs nothing.
    Without it the penalty alone stands for the curvature, which no data could make wider; but for
    coefficients that were named in the release (``curvature=0.5, coefficients=["age"]``), for
    which a share of epsilon bought how far noise moves them.

    Error:
        To first order in the noise, all coefficients at once; those that were named in the release
        hold at once by themselves. Where noise drowned a direction nothing is known, and the ends
        are beyond any number of use.

    Raises:
        InputError: when the release is not one of a regression, or ``like`` has no use for it.
        NoIntervalError: for a release that was stored without the law of its noise.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table(
        ...     {"age": list(range(20, 80)) * 50, "ill": [0] * 1500 + [1] * 1500},
        ...     bounds={"age": (18, 90)}, classes={"ill": [0, 1]})
        >>> r = tulle.release(people, tulle.models.logistic("ill"), unit="row", epsilon=5.0,
        ...                   mechanism="functional")
        >>> low, high = noise_interval(r)
        >>> bool((low < r.value).all() and (r.value < high).all())
        True
    """
    if "model" not in release.parameters:
        raise InputError(f"This release of {release.query} is not a regression model.")
    law = release.error or law_from_json(release.parameters.get(NOISE_LAW))
    if law is None:
        raise NoIntervalError(
            f"This release by mechanism {release.mechanism!r} was stored without the law of its "
            "noise. Release it anew with this version."
        )
    value = np.asarray(release.value)
    if isinstance(law, MinimumLaw):
        widths = law.first_order(level, None if like is None else _shape(release, law, like))
        return value - widths, value + widths
    if like is not None:
        raise InputError(
            f"The interval of mechanism {release.mechanism!r} is through its own released matrix "
            "and needs no stand-in: leave like= out."
        )
    low, high = law.interval(value, level)
    return np.asarray(low), np.asarray(high)


def _shape(release: Release, law: MinimumLaw, like: Table) -> Floats:
    """Return what takes the tilt to the coefficients, through the curvature of a public table."""
    frame = frame_again(release.parameters["model"])
    if not {*frame.features, frame.target} <= set(like.facts("row")["bounds"]):
        raise InputError("like= must be a table with the columns of the model.")
    features, _ = whole_rows(frame, like, MOST_BITS)
    features /= float(1 << MOST_BITS)
    scaled = np.linalg.lstsq(frame.transform(), np.asarray(release.value), rcond=None)[0]
    people = frame.rows or like.rows()
    curvature = logistic_curvature(features, chances(features @ scaled)) * people / like.rows()
    curvature[np.diag_indices(frame.size)] += law.penalty
    return np.asarray(frame.transform() @ np.linalg.inv(curvature))


@registry.register("law", "table", "minimum")
@dataclass(frozen=True)
class MinimumLaw(ErrorLaw):
    """Released coefficients against the minimum of the same loss and penalty without noise.

    The ends hold for all coefficients at once. All fields are public.
    """

    noise: str
    scale: float
    """Of the tilt; ``output`` that of the noise on the minimum."""
    output: float
    penalty: float
    tolerance: float
    """How long a gradient may be where the minimum was taken for found."""
    row: float
    """The longest row, its intercept included."""
    lengths: tuple[float, ...]
    """How far each coefficient moves, in its own units, for a move of length one; ``sums`` for one
    of largest entry one."""
    sums: tuple[float, ...]
    curvature: float = 0.0
    """A noisy least curvature of the losses, and the scale of its Laplace noise."""
    curvature_scale: float = 0.0
    named: tuple[int, ...] = ()
    """Coefficients of which the log of a :func:`noise_reach` was bought instead, with noise:
    ``curvature`` is it."""
    name: ClassVar[str] = "minimum"

    def __post_init__(self) -> None:
        for name in ("lengths", "sums", "named"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def leaves_out(self) -> str:
        return (
            "The interval is about the coefficients of the same fit without noise, its penalty of "
            f"{self.penalty:.3g} included, and not about a fit without a penalty. It holds for "
            "every data set; tulle.models.noise_interval is narrower, to first order in the noise."
        )

    def widths(self, level: float) -> Floats:
        """Return how far each coefficient may be off, all at once with this probability."""
        alpha = 1 - check_level(level)
        count = len(self.lengths)
        known = 0.0
        if self.curvature_scale > 0 and not self.named:
            known = self.curvature - self.curvature_scale * math.log(2 / alpha)
        length = tilt_length(self.noise, self.scale, count, alpha / 4)
        largest = tilt_entry(self.noise, self.scale, count, alpha / 4)
        entry = self.output * (output_reach(self.noise, count, alpha / 4) + 2.0**-10)
        near = self.tolerance * _LATTICES / self.penalty
        away = near + math.sqrt(count) * entry
        least = max(known, 0.0) * math.exp(-self.row * away)
        reach = radius(length, self.penalty, least, self.row)
        steepness = self.penalty + least * -math.expm1(-self.row * reach) / (self.row * reach)
        lengths, sums = np.array(self.lengths), np.array(self.sums)
        ball = (lengths * length + sums * largest) / (2 * steepness)
        found = np.minimum(lengths * reach, ball) + lengths * near + sums * entry
        return np.array([widen_up(width) for width in found.tolist()])

    def first_order(self, level: float, shape: Floats | None) -> Floats:
        """Return how far each coefficient may be off, to first order in the noise.

        ``shape`` takes the tilt to the coefficients in their own units; without one it is that of
        a loss with no curvature but its penalty, or what was bought for those that are named.
        """
        lengths = np.array(self.lengths)
        through = lengths / self.penalty if shape is None else np.linalg.norm(shape, axis=1)
        widths = self._seen(through, lengths, level)
        if shape is None and self.named:
            # Two fifths of what may fail are for the bought number.
            alpha, places = 1 - check_level(level), list(self.named)
            most = self.curvature + self.curvature_scale * math.log(1 / (0.8 * alpha))
            reach = min(math.exp(min(most, 700.0)), 1 / self.penalty)
            widths[places] = self._seen(reach * lengths[places], lengths[places], 1 - 0.6 * alpha)
        return widths

    def _seen(self, through: Floats, lengths: Floats, level: float) -> Floats:
        """Return widths of some coefficients at once, which the tilt and the output noise reach."""
        tilt = tilt_deviation(self.noise, self.scale, len(self.lengths))
        output = output_deviation(self.noise, self.output)
        deviations = np.hypot(tilt * through, output * lengths)
        law = CoefficientLaw(self.noise, tuple(deviations.tolist()), (0.0,) * len(deviations))
        return law.widths(level)

    def half_width(self, level: float) -> float:
        """Return that of the coefficient that may be off most."""
        return float(self.widths(level).max())

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends for each coefficient."""
        widths = self.widths(level)
        return value - widths, value + widths


def tilt_length(noise: str, scale: float, count: int, alpha: float) -> float:
    """Return what the Euclidean length of the tilt exceeds with this probability at most.

    Example:
        >>> tilt_length("knorm", 1.0, 12, 0.05) < tilt_length("laplace", 12.0, 12, 0.05)
        True
    """
    from scipy.special import gammainccinv

    if noise == "gaussian":
        found = math.sqrt(2 * float(gammainccinv(count / 2, alpha)))
    elif noise == "knorm":
        found = _cube_length(count, alpha)
    else:
        largest = math.sqrt(count) * math.log(count / alpha)
        found = min(largest, float(gammainccinv(count, alpha)))
    return scale * found * _LATTICES


def tilt_entry(noise: str, scale: float, count: int, alpha: float) -> float:
    """Return what no entry of the tilt exceeds, but with this probability."""
    from scipy.special import gammainccinv

    if noise != "knorm":
        return scale * output_reach(noise, count, alpha) * _LATTICES
    return scale * float(gammainccinv(count, alpha)) * _LATTICES


@lru_cache(maxsize=64)
def _cube_length(count: int, alpha: float) -> float:
    """Return the same for K-norm noise of scale one: a gamma variable times a point of the cube.

    Squares of the point's entries are rounded up to a grid, on which their sum has an exact law.
    """
    from scipy.special import gammaincc

    grid = 512 if count <= 200 else 64
    ends = np.sqrt(np.arange(grid + 1) / grid)
    size = 1 << (count * grid).bit_length()
    one = np.zeros(size)
    one[1 : grid + 1] = np.diff(ends)
    law = np.maximum(np.fft.irfft(np.fft.rfft(one) ** count, size), 0.0)[: count * grid + 1]
    places = np.flatnonzero(law > 1e-18)
    lengths, chances = np.sqrt(places / grid), law[places]
    low, high = 0.0, 4.0 * count + 1000.0 + 4 * math.log(1 / alpha) * count
    for _ in range(60):
        middle = (low + high) / 2
        # Rounding of the transform is far below 1e-12.
        if float(chances @ gammaincc(count + 1, middle / lengths)) + 1e-12 > alpha:
            low = middle
        else:
            high = middle
    return high


def tilt_deviation(noise: str, scale: float, count: int) -> float:
    """Return the standard deviation of one entry of the tilt."""
    if noise == "knorm":
        return scale * math.sqrt((count + 1) * (count + 2) / 3)
    return output_deviation(noise, scale)


def output_deviation(noise: str, scale: float) -> float:
    """Return the standard deviation of one entry of the noise on the minimum."""
    return scale if noise == "gaussian" else math.sqrt(2) * scale


def output_reach(noise: str, count: int, alpha: float) -> float:
    """Return what no entry of the noise on the minimum exceeds, in scales, but so often."""
    if noise == "gaussian":
        return -NormalDist().inv_cdf(alpha / (2 * count))
    return math.log(count / alpha)


def radius(tilt: float, penalty: float, least: float, row: float) -> float:
    """Return the r at which least·(1 - exp(-row·r))/row + penalty·r is ``tilt``, rounded up.

    Example:
        >>> radius(10.0, 2.0, 0.0, 1.0), round(radius(1.0, 0.001, 1000.0, 1.0), 4)
        (5.0, 0.001)
    """
    low, high = 0.0, tilt / penalty
    if least <= 0:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        if least * -math.expm1(-row * middle) / row + penalty * middle < tilt:
            low = middle
        else:
            high = middle
    return high * (1 + 2.0**-40)


def least_curvature(features: Floats, at: Floats) -> float:
    """Return the least eigenvalue of the losses' curvature at some coefficients. Custodian side.

    At public coefficients a person adds chance·(1 - chance)·aa', at most R/4 in every direction; so
    one who comes or goes, or turns into another, moves it by at most R/4 (Weyl).
    """
    if not len(at):
        return 0.0
    curvature = logistic_curvature(features, chances(features @ at))
    return max(float(np.linalg.eigvalsh(curvature)[0]), 0.0)


def noise_reach(features: Floats, at: Floats, penalty: float, places: Sequence[int]) -> float:
    """Return how far a tilt of deviation one moves the named coefficients at most. Custodian side.

    That is the largest length of a row of A = (H + L)^-1, where H is the curvature of the losses.
    """
    curvature = logistic_curvature(features, chances(features @ at))
    curvature[np.diag_indices(len(curvature))] += penalty
    return float(np.linalg.norm(np.linalg.inv(curvature)[list(places)], axis=1).max())


def reach_moved(ratio: Fraction, *, changed: bool) -> Fraction:
    """Return how far one person moves the logarithm of :func:`noise_reach`, rounded up.

    ``ratio`` is c = R/(4L). Let K be the curvature of all others with the penalty, so that K >= L,
    and let the person add vv' with |v|² <= R/4. With u = K^-1·v and m = v·u, the length |K^-1·z| is
    turned into that of (I - uv'/(1 + m))·K^-1·z, and back by I + uv'. So it falls by a factor of
    1 + |u||v| <= 1 + c at most. It grows by the norm of I - uv'/(1 + m), which is at most
    1 + |u||v|, and more closely: since |u|² <= m/L, the part of u across v, times |v|, has a square
    of at most m·(c - m). In the plane of u and v the matrix has the columns
    (1/(1 + m), -b) and (0, 1), with b² <= m·(c - m)/(1 + m)², and the square k >= 1 of its norm
    solves (k - 1)·(k - 1/(1 + m)² - b²) = b². With 1 for k in the second factor,
    k - 1 <= (c - m)/(2 + 2m - c), largest at m = 0: k <= 2/(2 - c) where c < 1. A change takes one
    person out and another in.
    """
    falls = math.log1p(float(ratio))
    grows = falls if ratio >= 1 else min(falls, math.log(2 / (2 - float(ratio))) / 2)
    return Fraction(falls + grows if changed else falls) * (1 + Fraction(1, 2**40))
