"""Laws of noise that is rounded to cells."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from tulle.audit.engine.rounded import RoundedHeavy

HALF = Fraction(1, 2)


@pytest.mark.parametrize("distance", [0, 1, 2, 5, 40, 3000])
def test_cells_of_the_heavy_tail_against_numerical_integration(distance):
    law = RoundedHeavy(0, Fraction(3), Fraction(2), HALF)
    scale = law.scale
    density = lambda z: math.sqrt(2) / math.pi / (1 + z**4)  # noqa: E731
    low, high = (distance - 0.5) / scale, (distance + 0.5) / scale
    expected = quad(density, low, high, epsabs=0, epsrel=1e-12)[0]
    assert math.exp(law.logs(np.array([distance]))[0]) == pytest.approx(expected, rel=1e-10)
