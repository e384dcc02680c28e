"""The laws of flip counts and independent flips, against oracles that share no code with them."""

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.noise import noise_helpers as helpers

from tulle.core.errors import InputError
from tulle.core.source import Source
from tulle.noise import SeededSource
from tulle.noise.source import logistic_floor
from tulle.noise.xor.laws import Coupled, TwoLevelPatterns
from tulle.noise.xor.patterns import (
    draw_law,
    exchangeable_bits,
    flip_probability,
    response_bits,
    uniform_subsets,
)

EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(20)]


def true_two_level(law):
    weights = [
        comb(law.length, k) * (helpers.exp(law.epsilon) if k <= law.cut else 1)
        for k in range(law.length + 1)
    ]
    total = sum(weights)
    return [weight / total for weight in weights]


def true_coupled(law):
    weights = [
        comb(law.length, k) * helpers.exp(law.field * k + law.coupling * k * (k - 1))
        for k in range(law.length + 1)
    ]
    total = sum(weights)
    return [weight / total for weight in weights]


LAWS = [
    *(
        TwoLevelPatterns(e, length, cut)
        for e in EPSILONS
        for length, cut in [(1, 0), (5, 1), (16, 6)]
    ),
    TwoLevelPatterns.best(Fraction(1), 200),
    Coupled(Fraction(-1), Fraction(0), 7),
    Coupled(Fraction(-1), Fraction(1, 10), 12),
    Coupled(Fraction(-2), Fraction(3, 10), 12),  # two humps
    Coupled(Fraction(1, 2), Fraction(-1, 5), 9),
    Coupled(Fraction(-3, 5), Fraction(3, 10), 3),  # mirrored: one cumulative is exactly a half
    Coupled(Fraction(-1, 2), Fraction(1, 2), 2),
    Coupled(Fraction(-1), Fraction(1, 200), 150),
    Coupled(Fraction(-30), Fraction(0), 4),
    Coupled(Fraction(-1, 3), Fraction(0), 1),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_thresholds_are_certain(law):
    truth = true_two_level(law) if isinstance(law, TwoLevelPatterns) else true_coupled(law)
    for bits in (31, 62, 200):
        floors = law.floors(bits)
        assert len(floors) == law.length + 1
        for k, floor in enumerate(floors[:-1]):
            exact = 2**bits * sum(truth[: k + 1])
            if exact.denominator != 1 and abs(exact - round(exact)) > Fraction(1, 10**10):
                assert floor == exact.__floor__(), (k, bits)
        assert floors[-1] == 2**bits
    assert np.allclose(law.masses(), [float(p) for p in truth], rtol=0, atol=1e-15)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_moments(law):
    flip, covariance = law.moments()
    truth = true_two_level(law) if isinstance(law, TwoLevelPatterns) else true_coupled(law)
    mean = sum(k * p for k, p in enumerate(truth))
    assert flip == pytest.approx(float(mean / law.length), abs=1e-14)
    if law.length > 1:
        pairs = sum(k * (k - 1) * p for k, p in enumerate(truth))
        exact = pairs / (law.length * (law.length - 1)) - (mean / law.length) ** 2
        assert covariance == pytest.approx(float(exact), abs=1e-13)


def test_no_private_noise_flips_fewer_bits_than_the_best_cut():
    """The linear program over all noise patterns, with no assumption on their shape."""
    for length in range(1, 6):
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3)):
            count = 2**length
            weight = np.array([bin(pattern).count("1") for pattern in range(count)])
            pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
            bounds = np.zeros((len(pairs), count))
            for line, (a, b) in enumerate(pairs):
                bounds[line, a], bounds[line, b] = 1, -np.exp(float(epsilon))
            found = linprog(
                weight, A_ub=bounds, b_ub=np.zeros(len(pairs)), A_eq=[[1] * count], b_eq=[1]
            )
            ours = TwoLevelPatterns.best(epsilon, length).moments().flip * length
            assert ours == pytest.approx(found.fun, rel=1e-7), (length, epsilon)


def test_the_best_cut_is_the_best_of_all_cuts():
    for length in (1, 2, 3, 7, 16, 40):
        for epsilon in EPSILONS:
            best = TwoLevelPatterns.best(epsilon, length).moments().flip
            every = [TwoLevelPatterns(epsilon, length, cut).moments().flip for cut in range(length)]
            assert best == pytest.approx(min(every), abs=1e-14)


def test_long_lines_are_enclosed_as_well(monkeypatch):
    """Numbers of patterns that are enclosed give the same thresholds as those written out."""
    from tulle.noise.xor import laws as xor_laws

    written = TwoLevelPatterns(Fraction(7, 5), 60, 22).floors(100)
    monkeypatch.setattr(xor_laws, "_LONG", 10)
    xor_laws._patterns.cache_clear()
    enclosed = TwoLevelPatterns(Fraction(14, 10), 60, 22)
    assert list(xor_laws._shares(*_ends(enclosed), 100))[-1] == (1 << 100, 1 << 100)
    from tulle.noise.tables import _certain_floors

    found = next(f for guard in (64, 128, 256) if (f := _certain_floors(enclosed, 100, guard)))
    xor_laws._patterns.cache_clear()
    assert found == written


def _ends(law):
    from tulle.noise.xor.laws import _patterns

    return [list(ends) for ends in zip(*_patterns(law.length, 200), strict=True)]


@pytest.mark.parametrize("length", [2_000, 30_000])
def test_very_long_lines(length):
    law = TwoLevelPatterns.best(Fraction(1), length)
    flip, _ = law.moments()
    assert 0.49 < flip < 0.5
    drawn = exchangeable_bits(law, 40)
    off = (drawn.sum(axis=1) / length - flip) * np.sqrt(4 * length)
    assert np.abs(off).max() < 6


def test_price_of_coupled_is_the_worst_step():
    for law in LAWS:
        if isinstance(law, Coupled):
            steps = [abs(law.field + 2 * law.coupling * k) for k in range(law.length)]
            assert law.price() == max(steps)


@pytest.mark.parametrize("x", [Fraction(0), *EPSILONS, *(-e for e in EPSILONS)])
@pytest.mark.parametrize("bits", [1, 8, 64, 150])
def test_logistic_floor(x, bits):
    exact = 2**bits / (1 + helpers.exp(x))
    assert logistic_floor(x, bits) == exact.__floor__()


def test_response_bits_on_every_tape():
    for epsilon in (Fraction(1), Fraction(7)):
        flip = 1 / (1 + helpers.exp(epsilon))
        helpers.check_tape_law(
            lambda source, e=epsilon: int(response_bits(e, 1, source)[0]),
            lambda bit, p=flip: p if bit else 1 - p,
            length=16,
            at_most_open=1e-4,
        )


def test_response_bits_in_bulk_and_that_a_wrong_scale_is_noticed():
    count = 300_000
    for epsilon in (0.3, 1.0, 4.0):
        ones = int(response_bits(epsilon, count).sum())
        for factor, right in ((1.0, True), (0.7, False), (1.3, False)):
            p = flip_probability(epsilon * factor)
            off = abs(ones - count * p) / np.sqrt(count * p * (1 - p))
            assert (off < 5) == right, (epsilon, factor, off)


def test_bits_are_independent_of_their_neighbours():
    drawn = response_bits(1, 400_000, SeededSource(5)).astype(float)
    for lag in (1, 2, 7, 8, 256):
        correlation = np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(len(drawn))


def test_response_bits_refuses():
    for epsilon in (0, -1, "x", float("nan")):
        with pytest.raises(InputError):
            response_bits(epsilon, 3)
    with pytest.raises(InputError):
        response_bits(1, -1)


@pytest.mark.parametrize("law", [law for law in LAWS if law.moments().flip > 1e-3], ids=str)
def test_draw_law_statistically(law):
    drawn = draw_law(law, 60_000)
    truth = {k: float(p) for k, p in enumerate(law.masses())}
    assert helpers.chi_square(drawn, truth) > helpers.SIGNIFICANCE


class Scripted(Source):
    """Says what it is told, then the bits of a generator."""

    def __init__(self, first):
        self.first = first
        self.rest = SeededSource(1)

    def read(self, count):
        taken, self.first = self.first[:count], self.first[count:]
        return taken + self.rest.read(count - len(taken))


def test_a_draw_that_ties_with_a_threshold_takes_more_bits():
    law = TwoLevelPatterns(Fraction(1), 6, 2)
    floors = law.floors(62)
    drawn = set()
    for more in (b"\x00" * 16, b"\xff" * 16):
        word = (floors[2] << 2).to_bytes(8, "little")
        drawn.add(int(draw_law(law, 1, Scripted(word + more))[0]))
    assert drawn == {2, 3}
    below = ((floors[2] - 1) << 2).to_bytes(8, "little")
    assert int(draw_law(law, 1, Scripted(below))[0]) == 2


@pytest.mark.parametrize(
    ("length", "size"), [(1, 0), (1, 1), (5, 0), (5, 1), (5, 3), (6, 5), (7, 7)]
)
def test_every_subset_is_equally_likely(length, size):
    drawn = uniform_subsets(np.full(40_000, size), length)
    assert (drawn.sum(axis=1) == size).all()
    counted = Counter(map(tuple, drawn.tolist()))
    sets = list(combinations(range(length), size))
    truth = {tuple(int(i in s) for i in range(length)): 1 / len(sets) for s in sets}
    if len(sets) > 1:
        assert helpers.counted(counted, truth) > helpers.SIGNIFICANCE


def test_sizes_are_kept_for_long_and_many_lines():
    sizes = np.array([0, 1, 5000, 9999, 10_000, 17] * 30)
    assert (uniform_subsets(sizes, 10_000).sum(axis=1) == sizes).all()
    many = draw_law(TwoLevelPatterns.best(Fraction(1), 16), 50_000)
    assert (uniform_subsets(many, 16).sum(axis=1) == many).all()


def test_lines_have_the_law_of_the_patterns():
    law = TwoLevelPatterns(Fraction(3, 2), 4, 1)
    drawn = exchangeable_bits(law, 60_000)
    counted = Counter(map(tuple, drawn.tolist()))
    masses = law.masses()
    truth = {
        pattern: masses[sum(pattern)] / comb(4, sum(pattern))
        for pattern in [tuple(int(c) for c in f"{k:04b}") for k in range(16)]
    }
    assert helpers.counted(counted, truth) > helpers.SIGNIFICANCE
    wrong = TwoLevelPatterns(Fraction(3, 2) * Fraction(7, 10), 4, 1).masses()
    broken = {p: wrong[sum(p)] / comb(4, sum(p)) for p in truth}
    assert helpers.counted(counted, broken) < helpers.SIGNIFICANCE
