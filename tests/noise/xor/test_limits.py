"""How far off released bits are, what no private release of bits can beat, and what it tells."""

import decimal
from math import comb

import numpy as np
import pytest

from tulle.core.errors import InputError
from tulle.noise.xor.limits import FlipEstimate, FlipLaw, Limit, leakage, most_kept
from tulle.noise.xor.patterns import (
    flip_probability,
)


def test_limits():
    flip = flip_probability(1)
    best = Limit(1 - flip, flip, 1.0)
    assert best.possible
    assert best.ones == pytest.approx(1, abs=1e-12)
    # What was published at epsilon = 0.5: errors near 2 % on each bit.
    assert not Limit(keep=0.98, invent=0.02, epsilon=0.5).possible
    assert Limit(1.0, 0.0, 3.0).ones == np.inf
    assert Limit(1.0, 0.5, 3.0).zeros == np.inf
    facebook = most_kept(released=1.13e5, pairs=8_154_741, edges=88_234, epsilon=1)
    assert facebook == pytest.approx(0.037, abs=5e-4)
    email = most_kept(released=2.4e5, pairs=comb(986, 2), edges=16_064, epsilon=1)
    assert 0 < email <= 1


def test_leakage_is_a_bound_on_every_posterior():
    for epsilon in (0.1, 1.0, 4.0):
        flip = flip_probability(epsilon)
        for prior in (0.01, 0.3, 0.5, 0.9):
            bound = leakage(prior=prior, epsilon=epsilon)
            for keep_one, keep_zero in ((1 - flip, 1 - flip), (1 - flip / 2, 1 - flip)):
                if not Limit(keep_one, 1 - keep_zero, epsilon).possible:
                    continue
                for seen in (0, 1):
                    one = prior * (keep_one if seen else 1 - keep_one)
                    zero = (1 - prior) * (1 - keep_zero if seen else keep_zero)
                    assert max(one, zero) / (one + zero) <= bound
    decimal.getcontext().prec = 50
    growth = decimal.Decimal(1).exp()
    assert leakage(prior=0.5, epsilon=1) >= growth / (growth + 1)
    with pytest.raises(InputError):
        leakage(prior=0, epsilon=1)


def test_flip_law_and_estimate():
    assert FlipLaw(0.3, 10).half_width(0.9) == 1
    assert FlipLaw(1e-9, 10).half_width(0.9) == 0
    low, high = FlipEstimate(np.array([1.0, 2.0]), 0.5).interval(0.9)
    assert ((low < [1, 2]) & (high > [1, 2])).all()
