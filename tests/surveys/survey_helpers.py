"""Exact output laws, the audit's own, and statistics of draws from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from tulle.audit.surveys.kind import Exact

SIGNIFICANCE = 1e-6
"""A right sampler or interval fails one test in a million runs."""


def chi_square_p(counts: Mapping[Any, int], law: Exact) -> float:
    """Return the p-value of observed counts under an exact law; a report outside it gives 0."""
    if set(counts) - {report for report, chance in law.items() if chance}:
        return 0.0
    runs = sum(counts.values())
    expected = np.array([float(p) * runs for p in law.values() if p])
    seen = np.array([counts.get(report, 0) for report, p in law.items() if p])
    assert expected.min() >= 5
    return float(stats.chisquare(seen, expected).pvalue)


COVERAGE_RUNS = 1000
LEAST_COVERED = 915
"""Of 1000 intervals at 95 %. A right one passes but for 2e-6; one that covers at most 88 % is
rejected with probability 0.9997 or more (see test_the_coverage_test_has_its_stated_power)."""


def covers(hits: int) -> bool:
    """Tell whether a 95 % interval has shown its coverage in COVERAGE_RUNS runs."""
    return hits >= LEAST_COVERED


def draw_reports(
    generator: np.random.Generator, matrices: Sequence[Any], answers: Any
) -> np.ndarray[Any, Any]:
    """Draw counts of reports for counts of answers; the Kronecker product is formed, for tests."""
    full = np.array([[1.0]])
    for matrix in matrices:
        full = np.kron(full, matrix)
    flat = np.asarray(answers).ravel()
    parts = [generator.multinomial(count, full[:, v]) for v, count in enumerate(flat) if count]
    return np.sum(parts, axis=0).reshape(np.shape(answers))
