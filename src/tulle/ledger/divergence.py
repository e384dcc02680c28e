"""What a debit costs in the terms in which debits are added up: divergences and rho."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from tulle.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Disjoint,
    Event,
    Gaussian,
    Pure,
)
from tulle.core.validate import round_down

DIGITS = 30
"""Divergences are rounded up to so many digits after the point."""


def divergence(event: Event, order: Fraction) -> tuple[Fraction, Fraction]:
    """Return an event's Rényi divergence of this order, rounded up, and the delta that it spends.

    For a pure epsilon it is that of randomised response,
    ln((exp(a·epsilon) + exp((1 - a)·epsilon)) / (1 + exp(epsilon))) / (a - 1): every pair of laws
    that is epsilon-private is a function of it (Kairouz, Oh & Viswanath 2015).

    Example:
        >>> [float(found) for found in divergence(Gaussian(Fraction(1, 2)), Fraction(3))]
        [1.5, 0.0]
        >>> round(float(divergence(Pure(Fraction(1)), Fraction(2))[0]), 4)
        0.7353
    """
    if isinstance(event, Composed):
        found = [divergence(part, order) for part in event.events]
        return sum((f[0] for f in found), Fraction(0)), sum((f[1] for f in found), Fraction(0))
    if isinstance(event, Disjoint):
        found = [divergence(part, order) for part in event.events]
        return max(f[0] for f in found), max(f[1] for f in found)
    if isinstance(event, Gaussian):
        return _up(order * event.rho), Fraction(0)
    if isinstance(event, BoundedRange):
        return min(_of_pure(event.epsilon, order), _up(order * event.epsilon**2 / 8)), Fraction(0)
    if isinstance(event, Pure):
        return _of_pure(event.epsilon, order), Fraction(0)
    assert isinstance(event, Approximate)
    return _of_pure(event.epsilon, order), event.delta


def concentration(event: Event) -> Fraction | None:
    """Return the rho of an event, or None when it spends a delta and so has none.

    Example:
        >>> concentration(Composed((Gaussian(Fraction(1, 2)), Pure(Fraction(1)))))
        Fraction(1, 1)
    """
    if isinstance(event, Composed | Disjoint):
        found = [concentration(part) for part in event.events]
        known = [rho for rho in found if rho is not None]
        if len(known) < len(found):
            return None
        return sum(known, Fraction(0)) if isinstance(event, Composed) else max(known)
    if isinstance(event, Gaussian):
        return event.rho
    if isinstance(event, BoundedRange):
        return event.epsilon**2 / 8
    return event.epsilon**2 / 2 if isinstance(event, Pure) else None


def added(event: Event) -> Fraction | None:
    """Return what an event's epsilons add up to, or None with Gaussian noise, which has none.

    Example:
        >>> added(Composed((Pure(Fraction(1)), BoundedRange(Fraction(1, 2)))))
        Fraction(3, 2)
    """
    if isinstance(event, Composed | Disjoint):
        found = [added(part) for part in event.events]
        known = [epsilon for epsilon in found if epsilon is not None]
        if len(known) < len(found):
            return None
        return sum(known, Fraction(0)) if isinstance(event, Composed) else max(known)
    return event.epsilon if isinstance(event, Pure | Approximate) else None


@lru_cache(1024)
def _of_pure(epsilon: Fraction, order: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 60
        e, a = _decimal(epsilon), _decimal(order)
        # exp(a·e) is taken out of the sum; the powers that are left are of negative numbers.
        value = a * e + (1 + ((1 - 2 * a) * e).exp()).ln() - e - (1 + (-e).exp()).ln()
        value = value / (a - 1)
        value += (abs(value) + (a * e + 1) / (a - 1)) * Decimal("1e-50")
    # It is below epsilon, however the digits fall.
    return min(_up(Fraction(value)), epsilon)


def conversion(order: Fraction, delta: Fraction) -> Fraction:
    """Return c(order) at this delta, rounded up: divergence + c is an epsilon."""
    with localcontext() as context:
        context.prec = 60
        a, d = _decimal(order), _decimal(delta)
        value = (1 - 1 / a).ln() - (a.ln() + d.ln()) / (a - 1)
        value += (abs(value) + 1 + 1 / (a - 1)) * Decimal("1e-45")
    return _up(Fraction(value))


def best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the order at which most small prices fit: the largest (epsilon - c(a)) / a.

    Any order would do; the search only decides how much fits.
    """
    e, log_delta = float(epsilon), math.log(delta.numerator) - math.log(delta.denominator)

    def room(exponent: float) -> float:
        a = 1 + math.exp(exponent)
        return (e - math.log1p(-1 / a) + (math.log(a) + log_delta) / (a - 1)) / a

    low, high = -20.0, 40.0
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if room(left) > room(right):
            high = right
        else:
            low = left
    return 1 + Fraction(f"{math.exp((low + high) / 2):.6g}")


def largest_pure(left: Fraction, order: Fraction) -> Fraction:
    """Return an epsilon, nearly the largest, whose divergence fits in what is left."""
    if left <= 0:
        return Fraction(0)
    low, high = -120.0, 14.0
    for _ in range(60):
        middle = (low + high) / 2
        if _of_pure(Fraction(2.0**middle), order) <= left:
            low = middle
        else:
            high = middle
    found = Fraction(round_down(Fraction(2.0**low)))
    return found if _of_pure(found, order) <= left else Fraction(0)


def _up(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * 10**DIGITS), 10**DIGITS)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
