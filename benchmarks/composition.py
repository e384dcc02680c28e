"""Many counts on one account: their error when prices are added up tightly, and by addition."""

from __future__ import annotations

import math
import statistics
import tempfile
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

import tulle
from benchmarks.common import print_table
from tulle.core.gaussian import largest_rho_alone
from tulle.core.guarantee import largest_rho
from tulle.ledger.divergence import best_order, largest_pure
from tulle.ledger.filters import Filter

COUNTS = (1, 10, 100, 1000, 5200)
EPSILON, DELTA = 1, 1e-6
RUNS = 3


MINUTE: dict[str, Any] = {
    "COUNTS": (1, 10),
    "RUNS": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the root mean square error of so many counts on one account of (1, 1e-6)."""
    rows = [row(count) for count in COUNTS]
    print_table(f"Counts on one account of ({EPSILON}, {DELTA}): error of each, by addition", rows)
    print_table("One Gaussian answer by itself: deviation, beside what its rho asks for", alone())


def alone() -> list[dict[str, Any]]:
    """Return deviations of Gaussian noise on whole numbers; no runs, these are its parameters.

    ``squared`` is what one unit moves all numbers by in L2, squared; the last one stands for a
    fine lattice. The continuous ones are Balle & Wang's, by an independent search.
    """
    rows = []
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(4)):
        for delta in (Fraction(1, 1000), Fraction(1, 10**6)):
            for squared in (1, 10, 1000, 10**9):
                found = largest_rho_alone(epsilon, delta, Fraction(squared))
                before = largest_rho(epsilon, delta)
                rows.append(
                    {
                        "epsilon": float(epsilon),
                        "delta": float(delta),
                        "squared": squared,
                        "by rho": math.sqrt(squared / (2 * before)),
                        "by itself": math.sqrt(squared / (2 * found)),
                        "ratio": math.sqrt(before / found),
                        "continuous / by rho": continuous(float(epsilon), float(delta))
                        * math.sqrt(2 * before),
                    }
                )
    return rows


def continuous(epsilon: float, delta: float) -> float:
    """Return the least deviation of continuous Gaussian noise at a sensitivity of one."""
    low, high = 0.01, 1e4
    for _ in range(100):
        sigma = (low * high) ** 0.5
        a, b = epsilon * sigma - 0.5 / sigma, epsilon * sigma + 0.5 / sigma
        fits = NormalDist().cdf(-a) - math.exp(epsilon) * NormalDist().cdf(-b) <= delta
        low, high = (low, sigma) if fits else (sigma, high)
    return high


def row(count: int) -> dict[str, Any]:
    """Return what one count's error is in theory, and what a batch of them had."""
    half = Fraction(str(DELTA)) / 2
    order = best_order(Fraction(EPSILON), half)
    limit = Filter(Fraction(EPSILON), 2 * half, half, order).limit
    each = max(float(largest_pure(limit / count, order)), EPSILON / count)
    deviation = float(order * count / (2 * limit)) ** 0.5
    added = 2**0.5 * count / EPSILON
    measured = "" if count > 100 else f"{measure(count):.3g}"
    return {
        "counts": count,
        "added up": added,
        "tight, Laplace": 2**0.5 / each,
        "measured": measured,
        "tight, Gauss": deviation,
        "Laplace / added": 2**0.5 / each / added,
        "Gauss / added": deviation / added,
    }


def measure(count: int) -> float:
    """Return the root mean square error of a batch; medians over runs."""
    # Far from zero, where answers are cut.
    ring = tulle.Graph.from_edges(np.array([(i, (i + 1) % 9999) for i in range(9999)]), nodes=9999)
    errors = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            ledger = tulle.Ledger(Path(folder) / "study.ledger")
            study = ledger.open("ring", ring, unit="edge", epsilon=EPSILON, delta=DELTA)
            answers = study.ask_all([tulle.edges()] * count, share=1)
            errors.append(np.sqrt(np.mean([(a.value - 9999) ** 2 for a in answers])))
    return statistics.median(errors)
