"""Expressions of noisy numbers: a good estimate, a certain range, and the error to expect.

A sum of noisy numbers is a noisy sum; a product and a quotient are not. What the noise of the
leaves does to them on average is known to second order, and taken out here:

* a product whose sides share a leaf x with noise of variance v is too large by v per x²: for
  Laplace noise, by twice the squared scale;
* a quotient l / r of noisy numbers has no mean at all, because r may fall on zero. It is replaced
  by l·r / (r² + v), v the variance of r: never larger than l / (2·sqrt(v)) in size, and without
  the second-order bias of l / r, which is +v/r², because the floor's own is -v/r².
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.query import Tree, enclose
from tulle.core.validate import rational

Range = tuple[float, float]
Slopes = dict[str, Any]

_PIECES = 64
"""How many boxes a range is looked for in, where an expression is not monotone in a leaf."""

_LEVELS = (0.02, 0.05, *(0.1 * k for k in range(1, 10)), 0.95, 0.98, 0.99, 0.995, 0.999)

_POINTS = 2048
"""How many errors of the leaves are tried when an expression's error is predicted."""

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)


class Quotient(NamedTuple):
    """What was done to keep one quotient finite, and what that costs. Public: made of releases."""

    denominator: float
    """The released denominator."""
    floor: float
    """The quotient acts as if the denominator were never below this: two standard deviations."""
    relative_bias: float
    """About how far the quotient is off on average, at most, as a share of itself."""


def estimate(tree: Tree, values: Mapping[str, Any], variances: Mapping[str, float]) -> Any:
    """Return an expression's value at noisy leaves, second-order bias taken out.

    ``values`` may be numbers or arrays of equal length. Without variances it is the plain value.

    Example:
        >>> estimate(["*", "x", "x"], {"x": 5.0}, {"x": 2.0})
        23.0
    """
    value = _estimate(tree, values, variances, [])[0]
    return value if getattr(value, "ndim", 0) else float(value)


def quotients(
    tree: Tree, values: Mapping[str, float], variances: Mapping[str, float]
) -> list[Quotient]:
    """Return what was done to each quotient of an expression, from the innermost left one on."""
    found: list[Quotient] = []
    _estimate(tree, values, variances, found)
    return found


def slopes(tree: Tree, values: Mapping[str, float]) -> dict[str, float]:
    """Return the derivative of an expression in each leaf."""
    return {name: float(slope) for name, slope in _estimate(tree, values, {}, [])[1].items()}


def slopes_nearby(tree: Tree, values: Mapping[str, float]) -> dict[str, float]:
    """Return the typical size of each derivative when the values are known up to half again.

    Where a derivative happens to vanish at the stand-in it hardly ever does on the data; the
    median over values up to a factor of 1.5 away tells more.
    """
    import numpy as np

    count = np.arange(1, 257)
    fractions = even_fractions(count)
    near = {name: value * 1.5 ** (2 * next(fractions) - 1) for name, value in values.items()}
    found = _estimate(tree, near, {}, [])[1]
    return {
        name: float(np.median(np.abs(np.broadcast_to(slope, count.shape))))
        for name, slope in found.items()
    }


def _estimate(
    tree: Tree, values: Mapping[str, Any], variances: Mapping[str, float], found: list[Quotient]
) -> tuple[Any, Slopes]:
    import numpy as np

    # Whether numbers without measure run over follows from the answers: it is no matter for a log.
    with np.errstate(over="ignore", invalid="ignore"):
        return _worked_out(tree, values, variances, found)


def _worked_out(
    tree: Tree, values: Mapping[str, Any], variances: Mapping[str, float], found: list[Quotient]
) -> tuple[Any, Slopes]:
    import numpy as np

    if isinstance(tree, str):
        return np.asarray(values[tree], dtype=np.float64), {tree: 1.0}
    if isinstance(tree, Mapping):
        return np.float64(float(rational(tree["number"]))), {}
    operator, left_tree, right_tree = tree
    left, left_slopes = _worked_out(left_tree, values, variances, found)
    right, right_slopes = _worked_out(right_tree, values, variances, found)
    if operator in "+-":
        sign = 1 if operator == "+" else -1
        return left + sign * right, _mix(left_slopes, 1.0, right_slopes, sign)
    shared = sum(
        left_slopes[name] * right_slopes[name] * variances.get(name, 0.0)
        for name in left_slopes.keys() & right_slopes.keys()
    )
    if operator == "*":
        return left * right - shared, _mix(left_slopes, right, right_slopes, left)
    variance = sum(slope * slope * variances.get(name, 0.0) for name, slope in right_slopes.items())
    square = right * right + variance
    nothing = square == 0
    inverse = np.where(nothing, 0.0, right / np.where(nothing, 1.0, square))
    value = np.where(nothing, 0.0, (left * right + shared) / np.where(nothing, 1.0, square))
    if np.ndim(square) == 0 and right_slopes:
        share = 1.0 if nothing else float(variance / square)
        found.append(Quotient(float(right), 2 * float(np.sqrt(variance)), share))
    return value, _mix(left_slopes, inverse, right_slopes, -value * inverse)


def _mix(first: Slopes, by: Any, second: Slopes, and_by: Any) -> Slopes:
    mixed = {name: slope * by for name, slope in first.items()}
    for name, slope in second.items():
        mixed[name] = mixed.get(name, 0.0) + slope * and_by
    return mixed


# --- ranges ---------------------------------------------------------------------------------------


def image(tree: Tree, ranges: Mapping[str, Range]) -> Range:
    """Return the ends of an expression's values when each leaf lies anywhere in its own range.

    Plain interval arithmetic forgets that a leaf that occurs twice has one value. Here the slope
    in each leaf is enclosed as well: where its sign is certain, the ends are at the leaf's own
    ends; where it is not, the box is cut in two and both halves are looked at.

    Example:
        >>> image(["-", "x", "x"], {"x": (1.0, 2.0)})
        (0.0, 0.0)
    """
    low, high = float("inf"), -float("inf")
    boxes: list[dict[str, Range]] = [dict(ranges)]
    looked_at = 0
    while boxes:
        box = boxes.pop()
        looked_at += 1
        natural, rising = _dual(tree, box)
        unsure = {
            name: (box[name][1] - box[name][0]) * max(-slope[0], slope[1])
            for name, slope in rising.items()
            if slope[0] < 0 < slope[1] and box[name][0] < box[name][1]
        }
        if unsure and looked_at + len(boxes) < _PIECES and _finite(natural):
            name = max(unsure, key=lambda name: unsure[name])
            middle = (box[name][0] + box[name][1]) / 2
            boxes += [box | {name: (box[name][0], middle)}, box | {name: (middle, box[name][1])}]
            continue
        least, most = (enclose(tree, _pinned(box, rising, end)) for end in (0, 1))
        low = min(low, max(natural[0], least[0]))
        high = max(high, min(natural[1], most[1]))
    return low, high


def _finite(ends: Range) -> bool:
    return ends[0] > -float("inf") and ends[1] < float("inf")


def _pinned(box: Mapping[str, Range], rising: Mapping[str, Range], end: int) -> dict[str, Range]:
    """Return the box with each leaf of certain slope at the end that makes the value extreme."""
    pinned = dict(box)
    for name, (least, most) in rising.items():
        if least >= 0 or most <= 0:
            at = box[name][end] if least >= 0 else box[name][1 - end]
            pinned[name] = (at, at)
    return pinned


def _dual(tree: Tree, box: Mapping[str, Range]) -> tuple[Range, dict[str, Range]]:
    """Return an enclosure of the value and of the slope in each leaf."""
    if isinstance(tree, str):
        return box[tree], {tree: (1.0, 1.0)}
    if isinstance(tree, Mapping):
        number = float(rational(tree["number"]))
        return (number, number), {}
    operator, left_tree, right_tree = tree
    left, left_slopes = _dual(left_tree, box)
    right, right_slopes = _dual(right_tree, box)
    names = left_slopes.keys() | right_slopes.keys()
    zero = (0.0, 0.0)
    value = _join(operator, left, right)
    slopes: dict[str, Range] = {}
    for name in names:
        by_left, by_right = left_slopes.get(name, zero), right_slopes.get(name, zero)
        if operator in "+-":
            slopes[name] = _join(operator, by_left, by_right)
        elif operator == "*":
            slopes[name] = _join("+", _join("*", by_left, right), _join("*", left, by_right))
        elif right[0] <= 0 <= right[1]:
            slopes[name] = (-float("inf"), float("inf"))
        else:
            change = _join("-", by_left, _join("*", value, by_right))
            slopes[name] = _join("/", change, right)
    return value, slopes


def _join(operator: str, left: Range, right: Range) -> Range:
    low, high = enclose([operator, "left", "right"], {"left": left, "right": right})
    # Infinity times zero: nothing is known.
    return (-float("inf") if low != low else low, float("inf") if high != high else high)


# --- predictions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampledLaw(ErrorLaw):
    """The sizes of an expression's errors over many errors of its leaves, sorted.

    For predictions: releases of expressions carry the laws of their parts.
    """

    sizes: tuple[float, ...]
    name: ClassVar[str] = "sampled"

    def half_width(self, level: float) -> float:
        """Return the size that a share ``level`` of the errors do not exceed."""
        return self.sizes[min(int(check_level(level) * len(self.sizes)), len(self.sizes) - 1)]


@lru_cache(maxsize=512)
def _widths(law: ErrorLaw) -> tuple[float, ...]:
    return tuple(law.half_width(level) for level in _LEVELS)


@lru_cache(maxsize=512)
def variance_of(law: ErrorLaw) -> float:
    """Return a law's variance; a plan asks for the same one many times."""
    return law.variance()


def noisy_points(laws: Mapping[str, ErrorLaw]) -> dict[str, Any]:
    """Return errors of each leaf, laid out evenly over its law and independent of the others'."""
    import numpy as np

    spread = even_fractions(np.arange(1, _POINTS + 1))
    found = {}
    for name, law in laws.items():
        found[name] = signed_points(law, next(spread))
    return found


def signed_points(law: ErrorLaw, fractions: Any) -> Any:
    """Return errors that such parts of all are below, by a law that is the same on both sides."""
    import numpy as np

    sizes = np.interp(np.abs(2 * fractions - 1), (0.0, *_LEVELS), (0.0, *_widths(law)))
    return np.where(fractions < 0.5, -sizes, sizes)


def predict_error(
    tree: Tree,
    values: Mapping[str, float],
    laws: Mapping[str, ErrorLaw],
    reach: Range = (-float("inf"), float("inf")),
) -> SampledLaw:
    """Return the error of an expression whose leaves have these true values and error laws.

    Errors of the leaves are laid out evenly over their laws, not drawn. ``reach`` are public
    limits that the estimate is cut to.
    """
    import numpy as np

    count = np.arange(1, _POINTS + 1)
    noisy = {name: values[name] + errors for name, errors in noisy_points(laws).items()}
    variances = {name: variance_of(law) for name, law in laws.items()}
    truth = estimate(tree, values, {})
    answers = np.clip(estimate(tree, noisy, variances), *reach)
    errors = np.abs(np.broadcast_to(answers, count.shape) - truth)
    return SampledLaw(tuple(np.sort(np.nan_to_num(errors, nan=np.inf)).tolist()))


def even_fractions(count: Any) -> Iterator[Any]:
    """Yield sequences that fill the unit cube evenly: multiples of square roots of primes."""
    place = 0
    while True:
        root = _PRIMES[place % len(_PRIMES)] ** (0.5 + place // len(_PRIMES))
        yield (count * root) % 1.0
        place += 1
