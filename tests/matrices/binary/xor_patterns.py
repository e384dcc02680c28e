"""Laws of whole noise patterns by listing all of them, written without the library's samplers.

A pattern of a matrix with N rows and P columns is a number below 2^(N·P); cell (i, j) is its bit
i·P + j.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np

SHAPES = [(n, p) for n in range(1, 13) for p in range(1, 13) if n * p <= 12]
"""All shapes of at most twelve cells."""


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
