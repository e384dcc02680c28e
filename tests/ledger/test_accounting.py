"""Tight sums of prices are never below the truth, which is summed up outcome by outcome."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tulle.core.guarantee import Guarantee
from tulle.ledger import accounting
from tulle.ledger.accounting import compose_tightly

mpmath = pytest.importorskip("mpmath")

Price = tuple[Fraction, Fraction]
"""An epsilon and a delta."""

TINY = Fraction(1, 10**18)
RELEASES: list[list[Price]] = [
    [(Fraction(1), Fraction(0))],
    [(Fraction(1, 20), Fraction(0))] * 100,
    [(Fraction(1, 100), Fraction(0))] * 400,
    [(Fraction(1, 10**9), Fraction(0))] * 40,
    [(Fraction(10**4), Fraction(0))] * 3,
    [(Fraction(1, 10), TINY)] * 60,
    [(Fraction(1, 3), Fraction(0))] * 9 + [(Fraction(1, 50), Fraction(1, 10**4))] * 30,
    [(Fraction(2), TINY), (Fraction(1, 7), TINY), (Fraction(1, 7), Fraction(0))] * 5,
]
DELTAS = [
    Fraction(1, 2),
    Fraction(1, 10**2),
    Fraction(1, 10**9),
    Fraction(2, 10**15),
    TINY / 10**90,
]


def of_worst(prices: list[Price], epsilon: Any) -> Any:
    """Return the delta at an epsilon of the worst mechanisms with these prices, all together."""
    laws, told = [], mpmath.mpf(1)
    for (e, d), times in Counter(prices).items():
        one = mpmath.mpf(e.numerator) / e.denominator
        right = 1 / (1 + mpmath.exp(-one))
        law = []
        for k in range(times + 1):
            mass = mpmath.binomial(times, k) * right**k * (1 - right) ** (times - k)
            law.append(((2 * k - times) * one, mass))
        laws.append(law)
        told *= (1 - mpmath.mpf(d.numerator) / d.denominator) ** times
    gained = mpmath.mpf(0)
    for outcome in product(*laws):
        loss = mpmath.fsum(one for one, _ in outcome)
        if loss > epsilon:
            gained += mpmath.fprod(mass for _, mass in outcome) * -mpmath.expm1(epsilon - loss)
    return 1 - told + told * gained


def largest_excess() -> float:
    """Return the true delta over the one that was asked for, in the worst case tried."""
    worst = 0.0
    with mpmath.workdps(60):
        for prices, delta in product(RELEASES, DELTAS):
            if sum(d for _, d in prices) > delta:
                continue
            items = [Guarantee.of("edge", epsilon=e, delta=d) for e, d in prices]
            found = compose_tightly(items, delta=delta)
            assert found.epsilon is not None
            assert found.epsilon <= sum(e for e, _ in prices)
            epsilon = mpmath.mpf(found.epsilon.numerator) / found.epsilon.denominator
            wanted = mpmath.mpf(delta.numerator) / delta.denominator
            worst = max(worst, float(of_worst(prices, epsilon) / wanted))
    return worst


def test_no_delta_is_larger_than_it_says() -> None:
    assert 0.99 < largest_excess() <= 1


def by_transform(lowest: int, masses: Any, places: Any, each: Any) -> tuple[int, Any]:
    """The law of the sum by a Fourier transform, as libraries have it."""
    other = np.zeros(int(places[-1] - places[0]) + 1)
    np.add.at(other, places - places[0], each)
    size = len(masses) + len(other) - 1
    made = np.fft.irfft(np.fft.rfft(masses, size) * np.fft.rfft(other, size), size)
    return lowest + int(places[0]), np.maximum(made, 0.0)


RESPONSE = accounting._response


def rounded_down(*given: Any) -> tuple[Any, Any]:
    places, masses = RESPONSE(*given)
    return places - 1, masses


def forgetful(epsilon: float, times: int, step: float, dropped: float) -> tuple[Any, Any]:
    """As if what is left out were as unlikely as before, while it is as likely as delta."""
    return RESPONSE(epsilon, times, step, 1e12 * dropped)


@pytest.mark.parametrize(
    ("name", "broken"),
    [("_added", by_transform), ("_response", rounded_down), ("_response", forgetful)],
)
def test_a_broken_sum_is_caught(monkeypatch: pytest.MonkeyPatch, name: str, broken: Any) -> None:
    monkeypatch.setattr(accounting, name, broken)
    assert largest_excess() > 1


def test_many_small_prices_cost_about_the_root_of_their_number() -> None:
    items = [Guarantee.of("edge", epsilon=Fraction(1, 10**6))] * 10**5
    found = compose_tightly(items, delta=Fraction(1, 10**9)).epsilon
    assert found is not None
    # Nearly normal noise, which a deviation of 10^-6·sqrt(10^5) moves.
    assert 0.001 < found < 0.002
