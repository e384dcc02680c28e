"""The closed form of Gaussian noise that the audit of spectra uses."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tulle.audit.engine.laws import excess
from tulle.audit.graphs.spectra import GaussianVector, worst_iterates
from tulle.graphs.spectra.power import whole_rows


@pytest.mark.parametrize("moves", [(1,), (2, 3), (1, 0, 2)])
def test_losses_are_those_of_listed_outcomes(moves):
    variance = Fraction(9, 4)
    one = GaussianVector((0,) * len(moves), variance, Fraction(1))
    other = GaussianVector(moves, variance, Fraction(1))
    values, masses = one.points(1e-14)
    assert masses.sum() == pytest.approx(1)
    listed = np.array(values, dtype=float)
    distance = ((listed - moves) ** 2).sum(axis=1) - (listed**2).sum(axis=1)
    direct = excess(masses, distance / (2 * float(variance)), 0.5)
    assert excess(*one.losses(other), 0.5) == pytest.approx(direct, rel=1e-9)
    assert one.loss(other) == math.inf
    assert one.loss(one) == 0
    (claim,) = one.claims(other)
    assert claim.observed == sum(move**2 for move in moves)


def test_the_described_iterates_are_as_long_as_clipping_allows():
    for iterate in worst_iterates(nodes=4, k=2, iterations=3)[1:]:
        rows = whole_rows(iterate, float(np.abs(iterate).sum(axis=1).min()), 5, 1)
        assert (np.abs(rows).sum(axis=1) == 5).all()
