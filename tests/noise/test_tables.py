"""The bulk sampler: its thresholds, its ties, its digits, its kernels."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.noise.noise_helpers import PRECISION, exp, gaussian_mass, geometric_mass, laplace_mass

from tulle.core.errors import InputError
from tulle.noise import SeededSource, TapeExhausted, TapeSource
from tulle.noise.additive import gaussian_table
from tulle.noise.source import Bits, exp_bounds
from tulle.noise.tables import (
    WORD_BITS,
    BoundedGeometric,
    FoldedGaussian,
    FoldedLaplace,
    Geometric,
    geometric_table,
    laplace_table,
    settle,
)

SCALES = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(10), Fraction(1000, 7)]


@given(
    st.fractions(min_value=0, max_value=200, max_denominator=10**6),
    st.integers(min_value=1, max_value=200),
)
def test_exp_bounds_enclose_tightly(x, precision):
    low, high = exp_bounds(x, precision)
    # The independent value is right to 80 digits, beyond all precisions here.
    true = exp(-x) * 2**precision
    slack = 2**precision * PRECISION
    assert low <= true + slack
    assert true <= high + slack
    assert high - low <= 1
    assert (low == high) == (x == 0)


def test_exp_bounds_of_the_absurd():
    assert exp_bounds(Fraction(10**300), 64) == (0, 1)
    low, high = exp_bounds(Fraction(1, 10**300), 64)
    assert (low, high) == (2**64 - 1, 2**64)


def closed_form(law):
    """P(X <= k) from the decimal library."""
    if isinstance(law, Geometric):
        return lambda k: 1 - exp(-(k + 1) / law.scale)
    if isinstance(law, BoundedGeometric):
        whole = 1 - exp(-law.count / law.scale)
        return lambda k: (1 - exp(-(k + 1) / law.scale)) / whole
    assert isinstance(law, FoldedLaplace)
    ratio = exp(-1 / law.scale)
    return lambda k: 1 - 2 * exp(-(k + 1) / law.scale) / (1 + ratio)


def check_thresholds(floors, bits, cumulative):
    """Assert that each threshold is the floor of the true cumulative probability."""
    for k, floor in enumerate(floors[:-1]):
        assert floor == int(cumulative(k) * 2**bits), k


@pytest.mark.parametrize("bits", [31, 128])
@pytest.mark.parametrize("scale", SCALES)
def test_thresholds_equal_high_precision_values(scale, bits):
    for law in (Geometric(scale), FoldedLaplace(scale), BoundedGeometric(7 * scale, 16)):
        # The last floor closes the list and is checked below; 600 keep the test short.
        check_thresholds(law.floors(bits)[:600], bits, closed_form(law))
    assert Geometric(scale).floors(bits)[-1] == 2**bits - 1
    assert BoundedGeometric(scale, 16).floors(bits)[-1] == 2**bits


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(2), Fraction(101, 3)])
def test_gaussian_thresholds(variance):
    masses = [gaussian_mass(k, variance) for k in range(90)]
    floors = FoldedGaussian(variance).floors(128)
    running = masses[0]
    for k, floor in enumerate(floors[:90]):
        assert floor == min(int(running * 2**128), 2**128 - 1)
        running += 2 * masses[k + 1] if k < 89 else 0


def test_a_wrong_threshold_is_caught():
    law = Geometric(Fraction(10))
    floors = list(law.floors(31))
    floors[7] += 1
    with pytest.raises(AssertionError):
        check_thresholds(floors, 31, closed_form(law))


def mass(law, k, bits=128):
    floors = law.floors(bits)
    at = [floors[i] if i < len(floors) else 2**bits for i in (k, k - 1)]
    return Fraction(at[0] - (at[1] if k else 0), 2**bits)


def check_digits(table, truth, values):
    """Assert that the digits' masses multiply to the closed form, within 2**-60."""
    for value in values:
        product = Fraction(1)
        rest = value
        for law, width in reversed(list(zip(table.laws[1:], table.widths[1:], strict=True))):
            product *= mass(law, rest % (1 << width))
            rest >>= width
        product *= mass(table.laws[0], rest)
        assert abs(product - truth(value)) <= Fraction(1, 2**60), value


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1000), Fraction(10**6), Fraction(10**9)])
def test_digits_multiply_to_the_law(scale):
    table = geometric_table(scale)
    spread = int(scale)
    values = [*range(40), *range(spread, spread + 9), 3 * spread + 1, 7 * spread, 20 * spread]
    check_digits(table, lambda k: geometric_mass(k, scale), values)
    shorter = replace(table, laws=(Geometric(table.laws[0].scale / 2), *table.laws[1:]))
    with pytest.raises(AssertionError):
        check_digits(shorter, lambda k: geometric_mass(k, scale), values)


def test_how_many_digits():
    assert [len(geometric_table(Fraction(s)).laws) for s in (1, 1000, 10**6, 10**9, 2**48)] == [
        1,
        2,
        2,
        3,
        5,
    ]
    assert laplace_table(Fraction(100))[1] == "folded"
    assert laplace_table(Fraction(1000))[1] == "signed"
    with pytest.raises(InputError, match="2\\*\\*48"):
        geometric_table(Fraction(2**48 + 1))


def tape(words, extension=""):
    """Words as the bulk sampler reads them, then single bits for ties."""
    raw = b"".join(word.to_bytes(4, "little") for word in words)
    bits = "".join(f"{byte:08b}" for byte in raw)
    return TapeSource(bits + extension)


@pytest.mark.parametrize("k", [0, 1, 5, 40])
@pytest.mark.parametrize("sign", [0, 1])
def test_ties_go_to_the_right_side(k, sign):
    """31 bits that equal a threshold's are extended; below it is k, above it is k + 1."""
    scale = Fraction(10)
    table, mode = laplace_table(scale)
    law = table.laws[0]
    word = law.floors(WORD_BITS)[k] << 1 | sign
    exact = law.floors(128)[k]
    more = 128 - WORD_BITS
    rest = exact - (law.floors(WORD_BITS)[k] << more)
    sides = {rest - 1: k, rest + 1: k + 1}
    for extension, magnitude in sides.items():
        source = tape([word], f"{extension:0{more}b}")
        assert table.draw(1, mode, source).tolist() == [-magnitude if sign else magnitude]
        assert source.used == 32 + more
    # All 128 bits equal: then 128 more decide.
    next_rest = law.floors(256)[k] - (exact << 128)
    for extension, magnitude in ((next_rest - 1, k), (next_rest + 1, k + 1)):
        source = tape([word], f"{rest:0{more}b}{extension:0128b}")
        assert table.draw(1, mode, source).tolist() == [-magnitude if sign else magnitude]
    with pytest.raises(TapeExhausted):
        table.draw(1, mode, tape([word]))


def test_the_far_tail_is_open_ended():
    """The last 31-bit cell holds infinitely many values; the extension picks among them."""
    table, mode = laplace_table(Fraction(10))
    law = table.laws[0]
    more = 128 - WORD_BITS
    edge = ((1 << WORD_BITS) - 1) << 1
    far = 600
    inside = (law.floors(128)[far] + law.floors(128)[far - 1]) // 2
    source = tape([edge], f"{inside % 2**more:0{more}b}")
    assert table.draw(1, mode, source).tolist() == [far]


def test_ties_in_any_digit():
    scale = Fraction(1000)
    table, mode = laplace_table(scale)
    assert mode == "signed"
    top, low = table.laws
    more = 128 - WORD_BITS
    for sign in (0, 1):
        words = [5 << 1 | sign, low.floors(31)[3] << 1]
        rest = low.floors(128)[3] % 2**more
        for extension, digit in ((rest - 1, 3), (rest + 1, 4)):
            source = tape(words, f"{extension:0{more}b}")
            assert table.draw(1, mode, source).tolist() == [-digit if sign else digit]
    words = [top.floors(31)[2] << 1, 0]
    rest = top.floors(128)[2] % 2**more
    for extension, digit in ((rest - 1, 2), (rest + 1, 3)):
        source = tape(words, f"{extension:0{more}b}")
        assert table.draw(1, mode, source).tolist() == [digit << table.widths[1]]


def test_minus_zero_is_drawn_again():
    table, mode = laplace_table(Fraction(1000))
    source = tape([1, 0, 2 << 1, 0])
    assert table.draw(1, mode, source).tolist() == [0]
    assert source.used == 128


def test_minus_zero_after_a_tie_is_drawn_again():
    table, mode = laplace_table(Fraction(1000))
    low = table.laws[1]
    word = low.floors(WORD_BITS)[0] << 1
    # The extension 0 puts the low digit below its threshold: minus zero; then plus zero.
    source = tape([5 << 1 | 1, word], "0" * 97 + f"{5 << 1:032b}" + "0" * 32)
    assert table.draw(1, mode, source).tolist() == [0]
    assert source.used == 64 + 97 + 64


@pytest.mark.parametrize(("mode", "expected"), [("magnitude", 3), ("mirrored", -4)])
def test_ties_in_other_modes(mode, expected):
    table = geometric_table(Fraction(10))
    word = table.laws[0].floors(WORD_BITS)[3] << 1 | 1
    assert table.draw(1, mode, tape([word], "0" * 97)).tolist() == [expected]


@pytest.mark.parametrize("mode", ["magnitude", "folded", "mirrored"])
@pytest.mark.parametrize(
    "table",
    [
        laplace_table(Fraction(1, 2))[0],
        laplace_table(Fraction(150))[0],
        gaussian_table(Fraction(9)),
    ],
    ids=["half", "150", "gaussian"],
)
def test_kernel_agrees_with_plain_search(table, mode):
    """On both sides of every threshold, and on random words, for both signs."""
    law = table.laws[0]
    floors = np.array(law.floors(WORD_BITS))
    edges = np.concatenate([floors - 1, floors + 1, np.array([0, 1, 2**31 - 2])])
    uniform = np.concatenate([edges, np.frombuffer(SeededSource(1).read(40000), "<u4") >> 1])
    uniform = uniform[(uniform >= 0) & ~np.isin(uniform, floors) & (uniform < 2**31)]
    words = np.concatenate([uniform << 1, uniform << 1 | 1]).astype("<u4")
    expected = np.searchsorted(floors, uniform, side="right")
    other = {"magnitude": expected, "folded": -expected, "mirrored": ~expected}[mode]
    drawn = table.draw(len(words), mode, TapeSource(words.tobytes()))
    assert drawn.tolist() == [*expected.tolist(), *other.tolist()]


def test_digit_kernel_agrees_with_plain_search():
    table, _ = laplace_table(Fraction(10**9))
    words = np.frombuffer(SeededSource(2).read(4 * 3 * 20000), "<u4")
    drawn = table.draw(20000, "mirrored", SeededSource(2))
    value = np.zeros(20000, dtype=np.int64)
    for place, (law, width) in enumerate(zip(table.laws, table.widths, strict=True)):
        digit = np.searchsorted(law.floors(WORD_BITS), words[place::3] >> 1, side="right")
        value = (value << width) + digit
    expected = np.where(words[::3] & 1, ~value, value)
    # One draw in a thousand at most may tie; those are settled with later bits.
    assert (drawn != expected).mean() < 1e-3


def test_settle_takes_no_bits_when_none_are_needed():
    assert settle(Geometric(Fraction(1)), 0, 31, Bits(TapeSource(""))) == 0


def test_laws_of_tiny_scale():
    """exp(-1/scale) far below 2**-128 keeps its place: nonzero values stay possible."""
    for scale in (Fraction(1, 100), Fraction(1, 10**300)):
        assert FoldedLaplace(scale).floors(31) == [2**31 - 1]
        assert float(laplace_mass(0, Fraction(1, 100))) == 1
