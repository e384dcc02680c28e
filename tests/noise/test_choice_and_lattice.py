"""Selection, bulk coins at their ties, heavy tails and lattices."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from tests.noise.noise_helpers import SIGNIFICANCE, chi_square, counted

from tulle import noise
from tulle.core.errors import InputError
from tulle.noise import Lattice, SeededSource, TapeExhausted, TapeSource
from tulle.noise.source import exp_bounds


def test_exponential_law():
    scores = [0, 1, Fraction(5, 2), 0.75]
    weights = np.exp([0.4 * float(s) for s in scores])
    draws = noise.exponential(scores, epsilon="0.8", sensitivity=1, size=20_000)
    assert chi_square(draws, dict(enumerate((weights / weights.sum()).tolist()))) > SIGNIFICANCE
    half = noise.exponential(scores, epsilon="0.4", sensitivity=1, size=20_000)
    assert chi_square(half, dict(enumerate((weights / weights.sum()).tolist()))) < SIGNIFICANCE


def test_permute_and_flip_beats_exponential():
    """Its mean score is at least as good; here by far more than the test's error."""
    scores = [0] * 9 + [4]
    source = SeededSource(6)
    flips = [
        noise.permute_and_flip(scores, epsilon=1, sensitivity=1, source=source) for _ in range(4000)
    ]
    others = noise.exponential(scores, epsilon=1, sensitivity=1, size=4000, source=source)
    assert flips.count(9) > (others == 9).sum() + 200


def test_selection_of_extremes():
    assert noise.exponential([10**400, 0], epsilon=1, sensitivity=1) == 0
    assert noise.exponential([7.5], epsilon=1e-9, sensitivity=1) == 0
    assert noise.choose_log_weights([10**6, 0], multiplicities=[1, 0]) == 0
    # 2**3000 options at a cost that just outweighs them.
    cost = 3000 * math.log(2) - math.log(3)
    picks = Counter(
        noise.choose_log_weights([0, cost], multiplicities=[1, 2**3000], size=2000).tolist()
    )
    assert counted(picks, {0: 0.25, 1: 0.75}) > SIGNIFICANCE
    assert noise.exponential(np.arange(3) * 5000, epsilon=1, sensitivity=1) == 2


def test_bulk_bernoulli_exactly():
    """All tapes up to two bytes: True on floor(p * 2**16) of 2**16, and one left open."""
    for p in (Fraction(1, 3), Fraction(1, 10), Fraction(3, 4)):
        masses = {True: Fraction(0), False: Fraction(0)}
        tapes = [b""]
        undecided = 0
        while tapes:
            tape = tapes.pop()
            try:
                outcome = noise.bernoulli(p, size=1, source=TapeSource(tape))
            except TapeExhausted:
                if len(tape) == 2:
                    undecided += 1
                else:
                    tapes += [tape + bytes([digit]) for digit in range(256)]
                continue
            masses[bool(outcome[0])] += Fraction(1, 256 ** len(tape))
        assert undecided == (p.denominator != 4)
        assert masses[True] == Fraction(int(p * 2**16), 2**16)


def test_bulk_bernoulli_exp_at_a_tie():
    x = Fraction(3, 7)
    floor = exp_bounds(x, 64)[0]
    finer = exp_bounds(x, 128)[0] - (floor << 64)
    for extension, outcome in ((finer - 1, True), (finer + 1, False)):
        tape = floor.to_bytes(8, "little") + extension.to_bytes(8, "big")
        drawn = noise.bernoulli_exp(np.array([3]), denominator=7, source=TapeSource(tape))
        assert drawn.tolist() == [outcome]
    # Just outside the tie, no further bits are read.
    for word, outcome in ((floor - 2**30, True), (floor + 2**30, False)):
        tape = TapeSource(word.to_bytes(8, "little"))
        assert noise.bernoulli_exp(x, size=1, source=tape).tolist() == [outcome]


@pytest.mark.parametrize("power", [2, 4])
@pytest.mark.parametrize("level", ["0.001", "0.3", "0.5", "0.95", "0.999", "0.99999999"])
def test_heavy_tailed_quantile_is_an_upper_bound(power, level):
    bound = noise.heavy_tailed_quantile(level, power)
    total = integrate.quad(lambda z: 1 / (1 + z**power), 0, np.inf)[0]
    # The part outside, with z = 1/t: the integral of t**(power - 2) / (1 + t**power).
    outside = integrate.quad(lambda t: t ** (power - 2) / (1 + t**power), 0, 1 / bound)[0] / total
    target = float(1 - Fraction(level))
    assert outside <= target * (1 + 1e-9)
    assert outside >= target * (1 - 1e-6)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-60, 60))
def test_snap_is_nearest_and_exact(value, exponent):
    lattice = Lattice(Fraction(2) ** exponent)
    index = lattice.snap(value)
    assert abs(index * lattice.step - Fraction(value)) <= lattice.step / 2
    clamped = max(-(2**62), min(2**62, index))
    assert lattice.snap(np.array([value])).tolist() == [clamped]
    if abs(index) < 2**53:
        assert Fraction(lattice.value(index)) == index * lattice.step
        assert lattice.value(np.array([index]))[0] == lattice.value(index)


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=5),
    st.integers(-20, 20),
)
def test_snapping_adds_at_most_one_step_per_coordinate(pairs, exponent):
    lattice = Lattice(Fraction(2) ** exponent)
    before = sum(abs(Fraction(a) - Fraction(b)) for a, b in pairs)
    after = sum(abs(lattice.snap(a) - lattice.snap(b)) for a, b in pairs) * lattice.step
    assert after <= before + len(pairs) * lattice.step


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_for_scale_is_the_coarsest(scale):
    step = Lattice.for_scale(scale).step
    assert step <= scale / 1024 < 2 * step


def test_lattice_arguments():
    assert Lattice(2.0**-60).step == Fraction(1, 2**60)
    assert Lattice("1/4") == Lattice(0.25)
    for step in (0, -1, 3, 0.1, float("inf"), float("nan"), "x"):
        with pytest.raises(InputError, match="step"):
            Lattice(step)
    for value in (float("nan"), float("inf"), "x", [1.0, float("nan")]):
        with pytest.raises(InputError, match="values must be finite"):
            Lattice(1).snap(value)
    assert Lattice(1).value(10**400) == math.inf
    assert Lattice(1).snap(np.array([1e300, -1e300])).tolist() == [2**62, -(2**62)]


def test_laplace_on_lattice():
    """The noise has the promised scale, also on both sides of it."""
    lattice = Lattice(0.25)
    source = SeededSource(12)
    draws = [
        noise.laplace_on_lattice(10.1, sensitivity=2, epsilon=0.5, lattice=lattice, source=source)
        for _ in range(4000)
    ]
    steps = np.array(draws) * 4
    assert (steps == np.rint(steps)).all()
    # Snapped to 10.0; the scale is (2 / 0.25 + 1) / 0.5 = 18 steps.
    scale = 18
    ratio = math.exp(-1 / scale)
    below = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-200, 201)}
    assert chi_square((steps - 40).astype(int), below) > SIGNIFICANCE


def test_laplace_on_lattice_of_a_vector():
    values = np.linspace(-5, 5, 50_000)
    for changed, scale in ((None, 1 + 50_000 / 2**26), (2, 1 + 2 / 2**11)):
        out = noise.laplace_on_lattice(values, sensitivity=1, epsilon=1, changed=changed)
        error = np.abs(out - values).mean()
        assert abs(error / scale - 1) < 6 / math.sqrt(50_000)
    whole = noise.laplace_on_lattice([1.0, 2.0], sensitivity=1, epsilon=10**6)
    assert np.abs(whole - [1, 2]).max() < 0.01
    with pytest.raises(InputError):
        noise.laplace_on_lattice(1.0, sensitivity=0, epsilon=1)
    with pytest.raises(InputError):
        noise.laplace_on_lattice(1.0, sensitivity=1, epsilon=0)
