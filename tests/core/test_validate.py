from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tulle.core.validate import rational, round_down, round_up, text

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_a_float_is_the_decimal_that_it_prints() -> None:
    assert rational(0.1) == Fraction(1, 10)
    assert sum(rational(0.1) for _ in range(10)) == 1
    assert rational(1e-6) == Fraction(1, 10**6)
    assert rational(np.float64(0.3)) == Fraction(3, 10)
    assert rational(np.int64(3)) == 3
    assert rational(Decimal("0.25")) == Fraction(1, 4)
    assert rational("1/3") == Fraction(1, 3)
    assert rational(" 2.5 ") == Fraction(5, 2)


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "one",
        "1/0",
        "",
        True,
        None,
        [1],
        Decimal("NaN"),
    ],
)
def test_what_is_not_a_finite_number_is_refused(bad: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        rational(bad)  # type: ignore[arg-type]


def test_exponents_of_absurd_size_are_refused() -> None:
    with pytest.raises(ValueError, match="out of range"):
        rational("1e999999999")


@given(st.fractions())
def test_text_reads_back_exactly(value: Fraction) -> None:
    assert rational(text(value)) == value


@given(finite)
def test_floats_read_back_to_the_same_float(value: float) -> None:
    assert float(rational(value)) == value


@given(st.fractions())
def test_rounding_is_outward_and_tight(value: Fraction) -> None:
    low, high = round_down(value), round_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert low == high or math.nextafter(low, math.inf) == high


def test_rounding_beyond_the_floats() -> None:
    huge = Fraction(10) ** 400
    assert round_up(huge) == math.inf
    assert Fraction(round_down(huge)) <= huge
    assert round_down(-huge) == -math.inf
    assert round_up(Fraction(1, 10**400)) > 0
