"""What Gaussian noise on whole numbers costs by itself, more closely than its rho says.

A unit moves whole numbers, at most ``moved`` of them, and each number i gets independent discrete
Gaussian noise of variance v_i, all at least ``variance``; rho = sum move_i² / (2·v_i) for the worst
move. For continuous noise delta is known exactly (Balle & Wang, ICML 2018, theorem 8): with
mu² = 2·rho, a = epsilon/mu - mu/2 and b = epsilon/mu + mu/2,

    delta = Q(a) - exp(epsilon)·Q(b) = phi(a)·(M(a) - M(b)),

where Q is the upper tail of the normal law, phi its density, M = Q/phi, and the second form holds
since exp(epsilon)·phi(b) = phi(a). For noise on whole numbers this formula is *wrong* where the
variance is small: the true delta can be larger. What holds instead:

*Claim.* For every c < variance, with q = exp(-2·pi²·c) and h = 2q/(1 - q), the discrete noise is
(epsilon, delta)-private with epsilon = e + moved·ln((1 + h)/(1 - h)) and
delta = (1 + h)^moved · d, if continuous noise of variances v_i - c is (e, d)-private.

*Proof.* Let Y be normal around a whole number m with variance v - c, and W, given Y, be a whole
number n with probability in proportion to exp(-(n - Y)²/(2c)). The sum of these weights over all n
is sqrt(2·pi·c)·t(Y), and by Poisson summation t(y) = 1 + 2·sum_k exp(-2·pi²·c·k²)·cos(2·pi·k·y)
lies within 1 - h and 1 + h. Two normal laws convolve to one of variance v, so P(W = n) is its
density f(n - m) divided by something within 1 - h and 1 + h. The discrete Gaussian X has
P(X = n) = f(n - m)/t, with t = 1 + 2·sum_k exp(-2·pi²·v·k²) >= 1, the same for every whole m. So
P(X = n)/P(W = n) is within (1 - h)/t and (1 + h)/t. W is a function of Y and of coins, so it is
(e, d)-private where Y is. Numbers that do not move have the same law on both sides and drop out of
the ratio; of the others there are at most ``moved``, with X and W around the same points on either
side. Hence for every event S
P(X in S) <= ((1 + h)/t)^moved · P(W in S) <= ((1 + h)/t)^moved · (exp(e)·P(W' in S) + d)
<= ((1 + h)/(1 - h))^moved · exp(e) · P(X' in S) + (1 + h)^moved · d.  []

Draws that depend on earlier draws are covered: their ratios to W multiply in the same way, and
continuous Gaussian noise composes adaptively by adding mu² (Dong, Roth & Su 2022, corollary 3.3).
That whole numbers move is all that ``moved`` needs: what moves, moves by one at least, so it is at
most the sum of squared moves.

Logarithms, roots and tails are computed with sixty digits and rounded outwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tulle.core.guarantee import epsilon_of_rho, largest_rho

if TYPE_CHECKING:
    from tulle.core.mechanism import Terms

Noise = tuple[tuple[Fraction, Fraction, Fraction], ...]
"""Parts of Gaussian noise: of each its rho, the most numbers moved, the least variance."""

_DIGITS = 60
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_MARGIN = Decimal("1e-40")
"""Fewer than a thousand operations with sixty digits err by far less than this part."""
_FAR = 30
"""At so many deviations delta is one, as far as anybody cares."""
_DEPTH = 200
"""Steps of a continued fraction; even, so that it ends above the tail."""


def delta_of_gaussian(noise: Noise, epsilon: Fraction) -> Fraction:
    """Return a delta, rounded up, at which this noise is (epsilon, delta)-private; at most one.

    ``noise`` is made of parts, each with its rho, how many numbers move at most, and the least
    variance. Each part has a c of its own: proof and ratios are number by number.

    Example:
        >>> one = ((Fraction(1, 200), Fraction(1), Fraction(100)),)
        >>> f"{float(delta_of_gaussian(one, Fraction(1, 2))):.1e}"
        '7.4e-09'
    """
    whole = sum((rho for rho, _, _ in noise), Fraction(0))
    if whole == 0:
        return Fraction(0)
    with localcontext() as context:
        context.prec = _DIGITS
        left, stretched, mu_squared = _decimal(epsilon), Decimal(0), Fraction(0)
        for rho, moved, variance in noise:
            if rho == 0:
                continue
            spread = _share(epsilon * rho / whole, moved, variance)
            if spread >= variance:
                return Fraction(1)
            q = (-2 * _PI**2 * _decimal(spread)).exp() * (1 + _MARGIN)
            h = 2 * q / (1 - q)
            count = _decimal(moved)
            # ln((1 + h)/(1 - h)) = 2·artanh(h) <= 2h/(1 - h²), and (1 + h)^moved <= exp(h·moved).
            left -= count * 2 * h / (1 - h * h) * (1 + _MARGIN)
            stretched += count * h * (1 + _MARGIN)
            # v/(v - c) is largest at the least variance.
            mu_squared += 2 * rho * variance / (variance - spread)
        if left <= 0:
            return Fraction(1)
        found = continuous_delta(_decimal(mu_squared), left) * stretched.exp() * (1 + _MARGIN)
        return min(Fraction(found), Fraction(1))


def continuous_delta(mu_squared: Decimal, epsilon: Decimal) -> Decimal:
    """Return the delta of continuous Gaussian noise that one unit moves by mu deviations.

    Rounded up; to be called with a precision of sixty digits.
    """
    mu = mu_squared.sqrt() * (1 + _MARGIN)
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < -_FAR:
        return Decimal(1)
    if a > 100:
        # delta is at most Q(a), and that at most exp(-a²/2).
        return Decimal("1e-2000")
    density = (-a * a / 2).exp() / (2 * _PI).sqrt()
    above, below = _ratio(a, up=True), _ratio(b, up=False)
    return density * (above * (1 + _MARGIN) - below * (1 - _MARGIN))


def _ratio(x: Decimal, *, up: bool) -> Decimal:
    """Return the tail of the normal law above x over its density, a bound but for rounding."""
    if x >= 3:
        # Laplace's continued fraction, cut off: alternately above and below.
        term = x
        for step in range(_DEPTH if up else _DEPTH + 1, 0, -1):
            term = x + step / term
        return 1 / term
    density = (-x * x / 2).exp() / (2 * _PI).sqrt()
    if x <= -3:
        return (1 - density * _ratio(-x, up=not up)) / density
    # 1/2 - phi(x)·sum x^(2n+1)/(1·3·5···(2n+1)); what is left out is below 10^-70.
    term, total, odd = x, x, 1
    while abs(term) > Decimal("1e-72"):
        odd += 2
        term = term * x * x / odd
        total += term
    return Decimal("0.5") / density - total


def _share(epsilon: Fraction, moved: Fraction, variance: Fraction) -> Fraction:
    """Return how much of the variance goes into rounding to whole numbers: c of the claim.

    Any number would do; this one nearly minimises c/variance + 2·(loss of epsilon)/epsilon.
    """
    logarithm = math.log(160) + _log(max(moved, Fraction(1))) + _log(variance) - _log(epsilon)
    return Fraction(max(logarithm, 4.0) / 19.739)


@lru_cache(maxsize=256)
def epsilon_of_gaussian(noise: Noise, delta: Fraction) -> Fraction:
    """Return an epsilon, rounded up, at which this noise is (epsilon, delta)-private.

    It is never above what rho alone implies.

    Example:
        >>> rho, delta = Fraction(1, 200), Fraction(1, 10**6)
        >>> found = epsilon_of_gaussian(((rho, Fraction(1), Fraction(100)),), delta)
        >>> round(float(found / epsilon_of_rho(rho, delta)), 2)
        0.93
    """
    most = epsilon_of_rho(sum((rho for rho, _, _ in noise), Fraction(0)), delta)
    if not most or not all(variance for _, _, variance in noise):
        return most
    if delta_of_gaussian(noise, most) > delta:
        return most
    low, high = 0.0, float(most)
    for _ in range(60):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if delta_of_gaussian(noise, Fraction(middle)) <= delta:
            high = middle
        else:
            low = middle
    return min(Fraction(high), most)


@lru_cache(maxsize=256)
def largest_rho_alone(epsilon: Fraction, delta: Fraction, squared: Fraction) -> Fraction:
    """Return a rho such that noise of variance squared/(2·rho) by itself is (epsilon, delta).

    ``squared`` is what one unit moves all numbers by in L2, squared. Never below the rho that
    implies (epsilon, delta) whatever it is added to.

    Example:
        >>> one = Fraction(1), Fraction(1, 1000)
        >>> float(largest_rho_alone(*one, Fraction(10**4)) / largest_rho(*one)) > 1.1
        True
    """
    moved = Fraction(max(int(squared), 1))
    return largest_rho_where(epsilon, delta, lambda rho: ((rho, moved, squared / (2 * rho)),))


def rho_for(terms: Terms, squared: Fraction) -> Fraction:
    """Return the rho of noise that fits the terms: for accounts that add rho up, or by itself."""
    if terms.composed:
        return largest_rho(terms.epsilon, terms.delta)
    return largest_rho_alone(terms.epsilon, terms.delta, squared)


def largest_rho_where(
    epsilon: Fraction, delta: Fraction, noise: Callable[[Fraction], Noise]
) -> Fraction:
    """Return the same for noise of several parts, which a function makes from their rho in all."""
    least = largest_rho(epsilon, delta)
    # A little below epsilon, so that whoever looks for it again finds no more.
    inner = epsilon * (1 - Fraction(1, 2**40))

    def fits(rho: Fraction) -> bool:
        return delta_of_gaussian(noise(rho), inner) <= delta

    if not fits(least):
        return least
    low, high = 0.0, 4.0
    for _ in range(30):
        middle = (low + high) / 2
        if fits(least * Fraction(2.0**middle)):
            low = middle
        else:
            high = middle
    # As a float, so that the numbers that follow from it are short.
    found = Fraction(float(least * Fraction(2.0**low)) * (1 - 2.0**-50))
    return found if found > least and fits(found) else least


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
