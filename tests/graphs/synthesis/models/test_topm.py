"""The model topm: as many edges as there are, true ones exp(epsilon) times as likely."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tulle.graphs.synthesis.models.topm import coins_for, is_private, keep_limits, safe_rates

EVERY_EPSILON = [
    "9e-10",
    "1e-9",
    "1e-8",
    "3e-7",
    "1e-4",
    "0.01",
    "1",
    "30",
    "95",
    "97",
    "200",
    "9e3",
    "1e4",
]


def sizes():
    """Yield numbers of nodes and of edges, noisy ones too: none, few, half, all, absurd ones."""
    for nodes in (2, 3, 4, 10, 100, 4000, 10**6):
        pairs = nodes * (nodes - 1) // 2
        for edges in {-(10**12), 0, 1, 2, nodes, pairs // 3, pairs // 2, pairs // 2 + 1, pairs - 1}:
            yield nodes, edges
        yield nodes, pairs
        yield nodes, 10**15


def overspent(rates, epsilon):
    """Return the largest of a coin's four log-ratios relative to epsilon, less one."""
    # mpmath's rounding at 400 digits is far below the last of the 192 binary digits of a chance.
    with mpmath.workdps(400):
        absent = mpmath.exp(-mpmath.mpf(rates.skip.denominator) / rates.skip.numerator)
        keep = mpmath.mpf(rates.keep.numerator) / rates.keep.denominator
        pairs = (1 - absent, keep), (absent, 1 - keep)
        worst = max(abs(mpmath.log(p) - mpmath.log(q)) for p, q in pairs)
        return worst * epsilon.denominator / epsilon.numerator - 1


@pytest.mark.parametrize("epsilon", EVERY_EPSILON)
def test_coins_keep_all_four_inequalities(epsilon):
    spent = Fraction(epsilon)
    for nodes, edges in sizes():
        rates = coins_for(nodes, edges, spent)
        assert 0 < rates.keep < 1
        assert overspent(rates, spent) <= 0
        assert is_private(rates, spent)


@given(
    st.fractions(Fraction(1, 10**9), Fraction(1, 10**5)) | st.fractions(Fraction(1, 10**9), 10**4),
    st.floats(0, 1),
    st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_coins_are_private_whatever_they_aim_at(epsilon, invent, keep):
    assert overspent(safe_rates(invent, keep, epsilon), epsilon) <= 0


def float_coins(nodes, edges, epsilon):
    """A broken version: chances as floats, of which only two ratios are held to the price."""
    rates = coins_for(nodes, edges, epsilon)
    pairs = nodes * (nodes - 1) // 2
    invent = edges / (pairs + edges * math.expm1(float(epsilon)))
    high = keep_limits(rates.skip, epsilon)[1]
    keep = min(Fraction(invent * math.exp(float(epsilon))), high)
    return rates._replace(keep=Fraction(math.floor(keep * 2**60), 2**60))


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-8", "1e-7"])
def test_the_checks_of_coins_catch_chances_as_floats(epsilon):
    spent = Fraction(epsilon)
    caught = 0
    for nodes, edges in ((100, 60), (4000, 9), (10**6, 1), (10**6, 10**7)):
        broken = float_coins(nodes, edges, spent)
        assert is_private(broken, spent) == (overspent(broken, spent) <= 0)
        caught += not is_private(broken, spent)
    assert caught


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-7", "1e-3", "0.1"])
def test_the_checks_of_coins_catch_chances_that_are_off(epsilon):
    spent = Fraction(epsilon)
    rates = coins_for(1000, 3000, spent)
    for factor in (1 + 3 * spent, 1 / (1 + 3 * spent)):
        for broken in (
            rates._replace(keep=rates.keep * factor),
            rates._replace(skip=rates.skip * factor),
        ):
            assert is_private(broken, spent) == (overspent(broken, spent) <= 0)
        assert not is_private(rates._replace(keep=rates.keep * factor**2), spent)


def test_coins_give_the_right_number():
    nodes, edges = 400, 3000
    pairs = nodes * (nodes - 1) // 2
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(9)):
        rates = coins_for(nodes, edges, epsilon)
        expected = edges * float(rates.keep) + (pairs - edges) * rates.invent
        assert expected == pytest.approx(edges, rel=0.01)
