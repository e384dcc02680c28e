"""Exact laws of samplers from all bit tapes, true laws to 90 digits, and fixed-level tests."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from tulle.noise import TapeExhausted, TapeSource

SIGNIFICANCE = 1e-6
"""A right sampler fails one statistical test in a million runs."""

_CONTEXT = decimal.Context(prec=90)
PRECISION = Fraction(1, 10**80)


def exp(x: Fraction) -> Fraction:
    """exp(x) to 80 digits, by a library that the samplers do not use."""
    quotient = _CONTEXT.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))
    return Fraction(_CONTEXT.exp(quotient))


def tape_law(
    sampler: Callable[[TapeSource], Hashable], length: int
) -> tuple[dict[Any, Fraction], Fraction]:
    """Drive a sampler with every bit tape up to ``length`` bits.

    Returns the probability of each outcome among the tapes that decide it, and the probability
    of the tapes that leave it open.
    """
    masses: dict[Any, Fraction] = {}
    undecided = Fraction(0)
    tapes: list[str] = [""]
    while tapes:
        tape = tapes.pop()
        source = TapeSource(tape)
        try:
            outcome = sampler(source)
        except TapeExhausted:
            if len(tape) == length:
                undecided += Fraction(1, 2**length)
            else:
                tapes += [tape + "0", tape + "1"]
            continue
        assert source.used == len(tape)
        masses[outcome] = masses.get(outcome, Fraction(0)) + Fraction(1, 2 ** len(tape))
    assert sum(masses.values()) + undecided == 1
    return masses, undecided


def check_tape_law(
    sampler: Callable[[TapeSource], Hashable],
    truth: Callable[[Any], Fraction],
    length: int,
    at_most_open: float,
) -> None:
    """Assert mass <= truth <= mass + undecided for each outcome, with little undecided."""
    masses, undecided = tape_law(sampler, length)
    assert undecided <= at_most_open, float(undecided)
    for outcome, mass in masses.items():
        true = truth(outcome)
        assert mass <= true + PRECISION, (outcome, float(mass), float(true))
        assert true <= mass + undecided + PRECISION, (outcome, float(mass), float(true))


def geometric_mass(k: int, scale: Fraction) -> Fraction:
    ratio = exp(-1 / scale)
    return (1 - ratio) * exp(-k / scale) if k >= 0 else Fraction(0)


def laplace_mass(x: int, scale: Fraction) -> Fraction:
    ratio = exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * exp(-abs(x) / scale)


def rounded_laplace_mass(x: int, scale: Fraction) -> Fraction:
    """The continuous Laplace mass of [x - 1/2, x + 1/2]."""
    if x == 0:
        return 1 - exp(-1 / (2 * scale))
    near, far = abs(x) - Fraction(1, 2), abs(x) + Fraction(1, 2)
    return (exp(-near / scale) - exp(-far / scale)) / 2


def gaussian_mass(x: int, variance: Fraction) -> Fraction:
    return exp(Fraction(-x * x) / (2 * variance)) / _gaussian_total(variance)


@lru_cache
def _gaussian_total(variance: Fraction) -> Fraction:
    reach = 30 * int(variance**0.5 + 1)
    return 1 + 2 * sum(exp(Fraction(-k * k) / (2 * variance)) for k in range(1, reach))


def chi_square(draws: np.ndarray, mass: Mapping[int, float]) -> float:
    """Return the p-value of draws under a law; outcomes expected under 25 times are pooled."""
    values, counts = np.unique(np.asarray(draws), return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    size = int(counts.sum())
    large = [k for k, p in mass.items() if p * size >= 25]
    observed = [seen.get(k, 0) for k in large]
    expected = [mass[k] * size for k in large]
    rest = size - sum(expected)
    observed_rest = size - sum(observed)
    if rest >= 5:
        observed.append(observed_rest)
        expected.append(rest)
    else:
        # Too few are expected elsewhere for the approximation: fold them into the last cell.
        observed[-1] += observed_rest
        expected[-1] += rest
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def same_law(first: np.ndarray, second: np.ndarray, cells: int = 60) -> float:
    """Return the p-value of two samples being from one law, over cells of equal size."""
    both = np.concatenate([first, second])
    edges = np.unique(np.quantile(both, np.linspace(0, 1, cells + 1)[1:-1]))
    table = np.array(
        [
            np.bincount(np.searchsorted(edges, s, side="right"), minlength=len(edges) + 1)
            for s in (first, second)
        ]
    )
    table = table[:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(table).pvalue)


def scale_p_value(draws: np.ndarray, scale: float) -> float:
    """Two-sided test of the mean magnitude of discrete Laplace draws.

    With 20,000 draws at scale 1 or more, noise that is 30 % too small or too large is 25 standard
    errors or more away: the power at the level 1e-6 is above 1 - 1e-9.
    """
    ratio = np.exp(-1 / scale)
    mean = 2 * ratio / (1 - ratio**2)
    second = 2 * ratio / (1 - ratio) ** 2
    error = np.sqrt((second - mean**2) / len(draws))
    return float(2 * stats.norm.sf(abs(np.abs(draws).mean() - mean) / error))


def counted(draws: Counter[Any], truth: Mapping[Any, float]) -> float:
    """Return the chi-square p-value of counted outcomes."""
    size = sum(draws.values())
    keys = list(truth)
    assert set(draws) <= set(keys)
    expected = [truth[k] * size for k in keys]
    return float(stats.chisquare([draws[k] for k in keys], expected).pvalue)
