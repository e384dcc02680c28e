"""Laws of whole noise patterns by listing all of them, written without the library's samplers.

A pattern of a matrix with N rows and P columns is a number below 2^(N·P); cell (i, j) is its bit
i·P + j.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy import stats

import tulle
from tulle.core.mechanism import Terms
from tulle.core.registry import mechanisms
from tulle.core.unit import Unit
from tulle.matrices.binary.data import all_matrices

SHAPES = [(n, p) for n in range(1, 13) for p in range(1, 13) if n * p <= 12]
"""All shapes of at most twelve cells."""
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(5)]


def cells_of(rows, columns):
    """Return all patterns as an array (pattern, row, column)."""
    places = np.arange(2 ** (rows * columns))
    bits = places[:, None] >> np.arange(rows * columns) & 1
    return bits.reshape(-1, rows, columns)


def normalise(logs):
    logs = np.asarray(logs, dtype=np.float64)
    return logs - logs.max() - np.log(np.exp(logs - logs.max()).sum())


def response(rows, columns, epsilon):
    """Independent flips: exponent -epsilon for each."""
    return normalise(-float(epsilon) * cells_of(rows, columns).sum(axis=(1, 2)))


def two_level(rows, columns, epsilon, cut):
    """Each row independently: more than ``cut`` flips cost epsilon."""
    heavy = cells_of(rows, columns).sum(axis=2) > cut
    return normalise(-float(epsilon) * heavy.sum(axis=1))


def algorithm_one(rows, columns, theta, coupling):
    """Theta = theta·I and Lambda = coupling·I, straight from definition 4 of the paper."""
    patterns = cells_of(rows, columns)
    single = patterns.sum(axis=(1, 2))
    gram = np.einsum("bip,bjp->bij", patterns, patterns)
    pairs = gram.sum(axis=(1, 2)) - np.einsum("bii->b", gram)
    return normalise(float(theta) * single + float(coupling) * pairs)


def quadratic(matrix):
    """Exponent b'Πb for a matrix Π over all cells."""
    size = len(matrix)
    patterns = np.arange(2**size)[:, None] >> np.arange(size) & 1
    return normalise(np.einsum("bi,ij,bj->b", patterns, matrix, patterns))


def worst_loss(logs, rows, columns, unit):
    """Return the largest log-ratio of two patterns that differ within one unit."""
    lines = (rows, columns) if unit == "row" else (rows * columns, 1)
    worst = 0.0
    for line in range(lines[0]):
        cube = logs.reshape(-1, 2 ** lines[1], 2 ** (line * lines[1]))
        worst = max(worst, float((cube.max(axis=1) - cube.min(axis=1)).max()))
    return worst


def flips(logs, rows, columns):
    """Return the expected share of flipped cells."""
    return float(np.exp(logs) @ cells_of(rows, columns).sum(axis=(1, 2))) / (rows * columns)


def logistic(x):
    return 1 / (1 + exp(-float(x)))


def law_of(mechanism, settings, epsilon):
    """Return the log-law of a registered mechanism's patterns from its public settings."""
    rows, columns = settings["rows"], settings["columns"]
    if mechanism == "cells":
        return response(rows, columns, epsilon)
    if mechanism == "two_level":
        return two_level(rows, columns, epsilon, settings["cut"])
    if mechanism == "columns":
        numbers = Fraction(settings["theta"]), Fraction(settings["coupling"])
        return algorithm_one(rows, columns, *numbers)
    raise ValueError(mechanism)


def settings_of(name, query, unit, rows, columns, epsilon):
    """Return the terms, the mechanism of that name and its public settings."""
    terms = Terms(query, Unit.of(unit), epsilon, Fraction(0), {"rows": rows, "columns": columns})
    mechanism = mechanisms("matrix")[name]
    assert mechanism.supports(query, Unit.of(unit))
    return terms, mechanism, mechanism.settings(terms, {})


def check_worst_ratio(name, query, unit, rows, columns):
    """The worst ratio of all patterns is epsilon: never above, and nothing is wasted either."""
    for epsilon in EPSILONS:
        _, _, settings = settings_of(name, query, unit, rows, columns, epsilon)
        logs = law_of(name, settings, epsilon)
        worst = worst_loss(logs, rows, columns, unit)
        assert worst == pytest.approx(float(epsilon), rel=1e-12)
        assert settings["flip"] == pytest.approx(flips(logs, rows, columns), abs=1e-12)
        assert settings["flip"] >= settings["least_flip"] - 1e-15


def check_all_neighbours(name, query, unit, rows, columns):
    """The whole way: dataset, its own list of neighbours, probabilities of each release."""
    epsilon = Fraction(3, 2)
    _, _, settings = settings_of(name, query, unit, rows, columns, epsilon)
    noise = law_of(name, settings, epsilon)
    weights = 1 << np.arange(rows * columns)
    releases = np.arange(len(noise))
    worst, pairs = 0.0, 0
    for matrix in all_matrices(rows, columns):
        here = int(matrix.to_numpy().ravel() @ weights)
        for neighbour in matrix.neighbours(unit):
            there = int(neighbour.to_numpy().ravel() @ weights)
            ratios = noise[releases ^ here] - noise[releases ^ there]
            worst = max(worst, float(ratios.max()))
            pairs += 1
    each = rows * columns if unit == "cell" else rows * (2**columns - 1)
    assert pairs == 2 ** (rows * columns) * each
    assert worst == pytest.approx(1.5, rel=1e-12)


def check_runs(terms, mechanism, settings, logs):
    """Real runs have the listed law, on a matrix of 2 x 2."""
    matrix = tulle.BinaryMatrix([[1, 0], [1, 1]])
    truth = 0b1101
    runs = 4000
    seen = Counter(
        int(mechanism.run(terms, settings, matrix, None).value.ravel() @ (1 << np.arange(4)))
        for _ in range(runs)
    )
    expected = np.exp(logs)[np.arange(16) ^ truth] * runs
    observed = np.array([seen[k] for k in range(16)])
    frequent = expected >= 5
    rest = [[x[~frequent].sum()] if (~frequent).any() else [] for x in (observed, expected)]
    observed, expected = (
        np.concatenate([x[frequent], r]) for x, r in zip((observed, expected), rest, strict=True)
    )
    expected = np.maximum(expected, 1e-3)
    assert stats.chisquare(observed, expected * runs / expected.sum()).pvalue > 1e-6
