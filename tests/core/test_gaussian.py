"""Gaussian noise priced by itself: never below the truth for noise on whole numbers."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import tulle
from tulle.core import gaussian
from tulle.core.events import Composed, Gaussian, event_from_json, event_to_json, price
from tulle.core.gaussian import (
    continuous_delta,
    delta_of_gaussian,
    epsilon_of_gaussian,
    largest_rho_alone,
)
from tulle.core.guarantee import epsilon_of_rho, largest_rho

MOVES = [
    tuple(move)
    for count in (1, 2, 3, 4)
    for move in itertools.combinations_with_replacement((1, 2, 3), count)
    if sum(one**2 for one in move) <= 9
]
"""All moves of whole numbers by at most 3 in L2, up to order and sign."""

VARIANCES = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(5, 3), Fraction(4), Fraction(20)]
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3), Fraction(8)]


def true_delta(moves: tuple[int, ...], variance: Fraction, epsilon: Fraction) -> float:
    """Return the delta of discrete Gaussian noise from all outcomes: the sum of p - e^epsilon·q.

    The ratio of p and q depends on the sum of move·noise alone, a whole number.
    """
    sigma = math.sqrt(variance)
    reach = math.ceil(14 * sigma) + max(moves)
    values = np.arange(-reach, reach + 1)
    masses = np.exp(-(values**2) / (2 * float(variance)))
    masses /= masses.sum()
    total = np.array([1.0])
    for move in moves:
        stretched = np.zeros(move * (len(masses) - 1) + 1)
        stretched[::move] = masses
        total = np.convolve(total, stretched)
    inner = np.arange(len(total)) - len(total) // 2
    squares = sum(move**2 for move in moves)
    loss = (squares - 2 * inner) / (2 * float(variance))
    found = total * -np.expm1(np.minimum(float(epsilon) - loss, 0.0))
    return float(found[loss > float(epsilon)].sum())


def short(bound: object) -> list[tuple[object, ...]]:
    """Return all small cases in which a bound on delta is below the truth."""
    missed = []
    for moves, variance, epsilon in itertools.product(MOVES, VARIANCES, EPSILONS):
        squared = Fraction(sum(move**2 for move in moves))
        said = float(bound(((squared / (2 * variance), squared, variance),), epsilon))  # type: ignore[operator]
        if true_delta(moves, variance, epsilon) > said * (1 + 1e-9) + 1e-15:
            missed.append((moves, variance, epsilon))
    return missed


def test_the_bound_is_never_below_the_delta_of_all_outcomes() -> None:
    assert len(MOVES) > 10
    assert short(delta_of_gaussian) == []


def test_the_same_check_catches_the_formula_of_continuous_noise() -> None:
    def continuous(noise: gaussian.Noise, epsilon: Fraction) -> Decimal:
        with localcontext() as context:
            context.prec = 60
            return continuous_delta(gaussian._decimal(2 * noise[0][0]), gaussian._decimal(epsilon))

    missed = short(continuous)
    assert len(missed) > 20
    # Not for tiny variances alone: also where one deviation is more than one step.
    assert any(variance > 1 for _, variance, _ in missed)


def test_the_same_check_catches_rounding_that_costs_no_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Next to no variance goes into rounding, as if nothing moved by it."""
    monkeypatch.setattr(gaussian, "_share", lambda *_: Fraction(1, 10**9))

    def free(noise: gaussian.Noise, epsilon: Fraction) -> Fraction:
        return delta_of_gaussian(tuple((rho, Fraction(0), v) for rho, _, v in noise), epsilon)

    assert len(short(free)) > 20


@pytest.mark.parametrize("variance", [1.0, 3.0])
@pytest.mark.parametrize("c", [0.2, 0.4, 0.7])
def test_rounded_normal_noise_is_nearly_the_discrete_gaussian(variance: float, c: float) -> None:
    """The ratio of the two laws, by integration, lies within what the proof says."""
    q = math.exp(-2 * math.pi**2 * c)
    h = 2 * q / (1 - q)
    whole = sum(math.exp(-(n**2) / (2 * variance)) for n in range(-60, 61))
    ratios = []
    for n in range(6):

        def weight(y: float, n: int = n) -> float:
            norm = sum(math.exp(-((m - y) ** 2) / (2 * c)) for m in range(-40, 41))
            density = math.exp(-(y**2) / (2 * (variance - c)))
            return density * math.exp(-((n - y) ** 2) / (2 * c)) / norm

        grid = np.linspace(-12, 12, 2401)
        rounded = sum(map(weight, grid.tolist())) * 0.01
        rounded /= math.sqrt(2 * math.pi * (variance - c))
        ratios.append(math.exp(-(n**2) / (2 * variance)) / whole / rounded)
    t = whole / math.sqrt(2 * math.pi * variance)
    assert (1 - h) / t * (1 - 1e-9) <= min(ratios) <= max(ratios) <= (1 + h) / t * (1 + 1e-9)


@pytest.mark.parametrize("mu", ["1e-6", "0.01", "0.3", "1", "2.5", "6", "40", "150"])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", "0.1", "1", "5", "30", "10000"])
def test_continuous_delta_is_that_of_an_oracle_rounded_up(mu: str, epsilon: str) -> None:
    with localcontext() as context:
        context.prec = 60
        found = continuous_delta(Decimal(mu) ** 2, Decimal(epsilon))
    with mpmath.workdps(200):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        a, b = e / m - m / 2, e / m + m / 2
        if a > 100:
            assert mpmath.exp(-a * a / 2) < mpmath.mpf(str(found)) == mpmath.mpf(10) ** -2000
            return
        root = mpmath.sqrt(2)
        true = (mpmath.erfc(a / root) - mpmath.exp(e) * mpmath.erfc(b / root)) / 2
        said = mpmath.mpf(str(found))
        assert said >= true
        assert said <= true * (1 + mpmath.mpf(10) ** -25) + mpmath.mpf(10) ** -35


@pytest.mark.parametrize("delta", [Fraction(1, 10**30), Fraction(1, 10**6), Fraction(1, 10)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 3), Fraction(2), Fraction(50)])
@pytest.mark.parametrize("squared", [Fraction(1), Fraction(7, 2), Fraction(10**4), Fraction(2**70)])
def test_the_largest_rho_keeps_to_the_price_and_is_never_worse(
    epsilon: Fraction, delta: Fraction, squared: Fraction
) -> None:
    rho = largest_rho_alone(epsilon, delta, squared)
    assert rho >= largest_rho(epsilon, delta)
    noise = Gaussian.of(squared, squared / (2 * rho))
    spent, own = price(noise, delta)
    assert (spent, own) <= (epsilon, Fraction(0))
    assert spent > epsilon * Fraction(999, 1000)
    # Parts of it cost as much together, but for the digits.
    if squared >= 2:
        half = Gaussian(noise.rho / 2, noise.moved / 2, noise.variance)
        assert abs(price(Composed((half, half)), delta)[0] / spent - 1) < 1e-12


def test_wide_noise_is_as_small_as_continuous_noise_may_be() -> None:
    """Deviations of Balle & Wang's analytic mechanism, by an independent search."""
    for epsilon, delta, least in ((1.0, 1e-3, 0.03), (1.0, 1e-6, 0.03), (0.1, 1e-3, 0.1)):
        rho = largest_rho_alone(Fraction(str(epsilon)), Fraction(str(delta)), Fraction(10**8))
        low, high = 0.1, 1e4
        for _ in range(200):
            sigma = (low + high) / 2
            a, b = epsilon * sigma - 0.5 / sigma, epsilon * sigma + 0.5 / sigma
            tails = mpmath.ncdf(-a) - mpmath.exp(epsilon) * mpmath.ncdf(-b)
            low, high = (low, sigma) if tails <= delta else (sigma, high)
        assert high <= 1 / math.sqrt(2 * rho) <= high * 1.0001
        before = 1 / math.sqrt(2 * largest_rho(Fraction(str(epsilon)), Fraction(str(delta))))
        assert high < before * (1 - least)


def test_an_epsilon_is_found_again_and_is_never_above_that_of_rho() -> None:
    for rho, moved, variance in (
        (Fraction(1, 200), Fraction(1), Fraction(100)),
        (Fraction(3), Fraction(100), Fraction(50, 3)),
        (Fraction(40), Fraction(2), Fraction(1, 40)),
        (Fraction(1, 7), Fraction(5), Fraction(0)),
    ):
        delta = Fraction(1, 10**5)
        noise = ((rho, moved, variance),)
        found = epsilon_of_gaussian(noise, delta)
        assert found <= epsilon_of_rho(rho, delta)
        if found < epsilon_of_rho(rho, delta):
            assert delta_of_gaussian(noise, found) <= delta
            assert delta_of_gaussian(noise, found * Fraction(99, 100)) > delta


def test_an_event_is_read_back_and_one_without_a_variance_is_priced_by_rho() -> None:
    known = Gaussian(Fraction(1, 50), Fraction(3), Fraction(75))
    assert event_from_json(event_to_json(known)) == known
    old = event_from_json({"event": "Gaussian", "rho": "1/50"})
    assert old == Gaussian(Fraction(1, 50))
    delta = Fraction(1, 10**6)
    assert price(old, delta)[0] == epsilon_of_rho(Fraction(1, 50), delta) > price(known, delta)[0]
    # One part that is not described: the whole is priced by rho.
    mixed = Composed((known, old))
    assert price(mixed, delta)[0] == epsilon_of_rho(Fraction(1, 25), delta)


def test_accounts_that_add_rho_up_are_told_and_sized_by_rho(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """By itself an answer has less noise; what an account books is as it was."""
    ring = tulle.Graph.from_edges([(n, (n + 1) % 50) for n in range(50)], nodes=50)
    asked = {"epsilon": 1, "delta": Fraction(1, 1000), "mechanism": "gaussian"}
    alone = tulle.release(ring, tulle.degrees(), unit="edge", **asked)
    terms = {"unit": "edge", "epsilon": 10, "delta": Fraction(1, 100)}
    ledger = tulle.Ledger(tmp_path / "a.ledger")
    tight = ledger.open("tight", ring, **terms)
    added = ledger.open("added", ring, **terms, composition_delta=0)
    rho = largest_rho(Fraction(1), Fraction(1, 1000))
    plans = [study.plan(tulle.degrees(), **asked) for study in (tight, added)]
    events = [plan.event for plan in plans]
    assert all(isinstance(event, Gaussian) for event in events)
    assert events[0].rho == rho < events[1].rho  # type: ignore[attr-defined]
    assert plans[0].chosen.prediction.rank() > plans[1].chosen.prediction.rank()
    assert [plan.guarantee.epsilon for plan in plans] == [1, 1]
    assert alone.error.half_width(0.95) == plans[1].chosen.prediction.bound.half_width(0.95)  # type: ignore[union-attr]


def test_noise_that_delta_alone_covers_has_epsilon_zero() -> None:
    """The price of a run with so little of each part could not be told."""
    noise = ((Fraction(1, 10**5), Fraction(1), Fraction(10**5)),)
    assert epsilon_of_gaussian(noise, Fraction(1, 20)) == 0
