"""Noise on a lattice: the coarsest that does, and steps that are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.noise.noise_helpers import SIGNIFICANCE, chi_square

from tulle import noise
from tulle.core.errors import InputError
from tulle.noise import Lattice, SeededSource


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
