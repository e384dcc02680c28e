from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tulle.core import validate
from tulle.core.errors import InputError, UnitError
from tulle.core.guarantee import Guarantee, display, epsilon_of_rho
from tulle.core.unit import Unit
from tulle.ledger.accounting import compose_tightly

small = st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(20))


def oracle_epsilon(rho: Fraction, delta: Fraction, digits: int = 50) -> mpmath.mpf:
    """The least epsilon over a dense search of orders, with fifty digits or more."""
    with mpmath.workdps(digits):
        r, d = (mpmath.mpf(x.numerator) / x.denominator for x in (rho, delta))

        def at(log_order: mpmath.mpf) -> mpmath.mpf:
            a = 1 + mpmath.e**log_order
            return r * a - mpmath.log(a * d) / (a - 1) + mpmath.log(1 - 1 / a)

        centre = mpmath.log(mpmath.sqrt(-mpmath.log(d) / r))
        best = min(at(centre + x / mpmath.mpf(50)) for x in range(-200, 201))
        return max(best, mpmath.mpf(0))


@given(small, st.integers(2, 12))
@settings(max_examples=40, deadline=None)
def test_concentrated_to_approximate_is_above_the_formula_and_near_its_least(
    rho: Fraction, digits: int
) -> None:
    delta = Fraction(1, 10**digits)
    found = epsilon_of_rho(rho, delta)
    best = oracle_epsilon(rho, delta)
    exact = mpmath.mpf(found.numerator) / found.denominator
    # The oracle searches a coarse grid of orders: at a finer one ours may only be slightly less.
    assert exact >= best * (1 - mpmath.mpf("1e-2")) - mpmath.mpf("1e-12")
    assert exact <= best * (1 + mpmath.mpf("1e-3")) + mpmath.mpf("1e-9")


LARGE = [1 / Fraction(10) ** 400, 1 / Fraction(10) ** 40, Fraction(10**16), Fraction(2) ** 1000]
NEAR = [1 / Fraction(10) ** 3000, Fraction(5e-324), Fraction(1, 2), validate.MOST_DELTA]


@pytest.mark.parametrize("delta", [*NEAR, 1 - Fraction(1, 2**53), 1 - Fraction(1, 10**300)])
@pytest.mark.parametrize("rho", LARGE)
def test_concentrated_to_approximate_is_above_the_formula_at_the_extremes(
    rho: Fraction, delta: Fraction
) -> None:
    found, best = epsilon_of_rho(rho, delta), oracle_epsilon(rho, delta, digits=700)
    with mpmath.workdps(700):
        exact = mpmath.mpf(found.numerator) / found.denominator
        assert exact >= best * (1 - mpmath.mpf("1e-2"))
        assert exact <= best * 2 + mpmath.mpf("1e-9") or not float(rho)


@pytest.mark.parametrize("delta", [0, *NEAR])
@pytest.mark.parametrize("size", [*LARGE, 1, "1e-9", 10_000])
def test_whatever_is_guaranteed_can_be_told_converted_and_read_back(
    size: Fraction | int | str, delta: Fraction | int
) -> None:
    made = [Guarantee.of("participant-day", rho=size)]
    made.append(Guarantee.of("participant-day", epsilon=size, delta=delta))
    for one in made:
        assert Guarantee.from_json(one.to_json()) == one
        assert one.over_time
        for count in (1, 10**6, 2**53):
            group = one.of_group(count)
            assert group is None or group.delta < 1
        for wanted in NEAR:
            with suppress(InputError):  # the delta of the guarantee may be above it
                assert one.to_approximate(wanted).delta in (wanted, one.delta)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_group_has_members(count: float) -> None:
    with pytest.raises(InputError, match="count"):
        Guarantee.of("edge", epsilon=1).of_group(count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "written",
    [{"epsilon": "-1"}, {"delta": "-1/10"}, {"rho": "1"}, {"epsilon": None}, {"delta": None}],
)
def test_no_guarantee_is_read_that_cannot_be_one(written: dict[str, str | None]) -> None:
    honest = Guarantee.of("edge", epsilon=1).to_json()
    with pytest.raises(ValueError, match="none of them below zero"):
        Guarantee.from_json({**honest, **written})
    assert not Guarantee.from_json({**honest, "holds": "no"}).holds


def test_concentrated_to_approximate_never_beats_the_true_gaussian_curve() -> None:
    """The Gaussian mechanism with rho = 1/(2 sigma²) has a known exact delta; ours lies above."""
    for rho in (Fraction(1, 100), Fraction(1, 2), Fraction(4)):
        with mpmath.workdps(40):
            sigma = 1 / mpmath.sqrt(2 * mpmath.mpf(rho.numerator) / rho.denominator)
            epsilon = epsilon_of_rho(rho, Fraction(1, 10**6))
            e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            true_delta = mpmath.ncdf(1 / (2 * sigma) - e * sigma) - mpmath.exp(e) * mpmath.ncdf(
                -1 / (2 * sigma) - e * sigma
            )
        assert true_delta <= mpmath.mpf("1e-6")


def test_epsilon_of_rho_falls_with_delta_and_rises_with_rho() -> None:
    deltas = [Fraction(1, 10**k) for k in range(1, 40)]
    for rho in (Fraction(1, 100), Fraction(1, 8), Fraction(4)):
        found = [epsilon_of_rho(rho, delta) for delta in deltas]
        assert found == sorted(set(found))
        assert all(epsilon_of_rho(2 * rho, d) > one for d, one in zip(deltas, found, strict=True))


@given(st.lists(small, min_size=1, max_size=8), st.lists(small, min_size=1, max_size=8))
def test_composition_is_an_exact_sum(first: list[Fraction], second: list[Fraction]) -> None:
    items = [Guarantee.of("edge", epsilon=e) for e in (*first, *second)]
    assert Guarantee.compose(items).epsilon == sum((*first, *second), Fraction(0))
    concentrated = Guarantee.compose([*items, Guarantee.of("edge", rho=1)])
    assert concentrated.rho == 1 + sum((e**2 / 2 for e in (*first, *second)), Fraction(0))


def test_what_cannot_be_added_is_refused() -> None:
    edge = Guarantee.of("edge", epsilon=1, delta=1e-6)
    with pytest.raises(InputError, match="different units"):
        Guarantee.compose([edge, Guarantee.of("node", epsilon=1)])
    with pytest.raises(InputError, match="to_approximate"):
        Guarantee.compose([edge, Guarantee.of("edge", rho=1)])
    with pytest.raises(InputError, match="nothing to compose"):
        Guarantee.compose([])
    with pytest.raises(InputError, match="no zero-concentrated form"):
        edge.to_concentrated()
    with pytest.raises(InputError, match="either"):
        Guarantee.of("edge", epsilon=1, rho=1)
    with pytest.raises(InputError, match="either"):
        Guarantee(Unit.of("edge"), None)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "x", None, True])
def test_epsilon_must_be_a_positive_finite_number(epsilon: object) -> None:
    with pytest.raises(InputError, match="epsilon"):
        Guarantee.of("edge", epsilon=epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, float("nan"), True, None, 1 - Fraction(1, 10**20)])
def test_delta_must_be_a_probability_below_one(delta: Any) -> None:
    for size in ("epsilon", "rho"):
        with pytest.raises(InputError, match="delta"):
            Guarantee.of("edge", **{size: 1}, delta=delta)


def test_unknown_unit_lists_the_known_ones() -> None:
    with pytest.raises(UnitError, match="edge, node"):
        Guarantee.of("person", epsilon=1)


def test_json_keeps_every_digit_and_the_lack_of_a_guarantee() -> None:
    for item in (
        Guarantee.of("edge", epsilon="1/3", delta="1e-7", assumptions=("nodes are public",)),
        Guarantee.of("node", rho="1/7"),
        Guarantee.of("edge", epsilon=1).void(),
    ):
        assert Guarantee.from_json(item.to_json()) == item
    void = Guarantee.of("edge", epsilon=1).void()
    assert "no guarantee" in str(void)
    assert not Guarantee.compose([void, Guarantee.of("edge", epsilon=1)]).holds
    assert not Guarantee.of("edge", rho=1).void().to_approximate(1e-6).holds


def test_small_deltas_are_shown_as_they_are_and_long_ones_rounded_up() -> None:
    assert "1e-06" in str(Guarantee.of("edge", epsilon=1, delta=1e-6))
    assert Fraction(display(Fraction(1, 3))) >= Fraction(1, 3)


def test_tight_composition_is_tighter_than_the_sum_and_above_the_truth() -> None:
    hundred = [Guarantee.of("edge", epsilon=0.05)] * 100
    tight = compose_tightly(hundred, delta=1e-6)
    assert tight.epsilon is not None
    assert tight.epsilon < 5
    # The worst mechanism is randomized response; its exact curve after 100 uses, by summation.
    with mpmath.workdps(40):
        e, n = mpmath.mpf("0.05"), 100
        p = mpmath.exp(e) / (1 + mpmath.exp(e))
        bound = mpmath.mpf(tight.epsilon.numerator) / tight.epsilon.denominator
        delta = mpmath.mpf(0)
        for k in range(n + 1):
            loss = (2 * k - n) * e
            if loss > bound:
                mass = mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k)
                delta += mass * (1 - mpmath.exp(bound - loss))
    assert delta <= mpmath.mpf("1e-6")
    assert compose_tightly(hundred[:1], delta=1e-6).epsilon <= Fraction(1, 20)  # type: ignore[operator]
    with pytest.raises(InputError, match="above"):
        compose_tightly([Guarantee.of("edge", epsilon=1, delta=1e-3)], delta=1e-6)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_group_is_promised_what_its_members_add_up_to(count: int) -> None:
    epsilon, delta = Fraction(1, 4), Fraction(1, 10**6)
    whole = Guarantee.of("edge", epsilon=epsilon, delta=delta).of_group(count)
    assert whole is not None
    assert whole.epsilon == epsilon * count
    # From one to the next: delta·(1 + e^epsilon + ... + e^((count - 1)·epsilon)).
    chain = sum(float(delta) * math.exp(step * float(epsilon)) for step in range(count))
    assert chain <= float(whole.delta) <= 1.01 * chain * math.exp((count - 1) * float(epsilon))
    several = Guarantee.of("edge", rho=epsilon).of_group(count)
    assert several is not None
    assert several.rho == epsilon * count**2
