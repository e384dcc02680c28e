"""Running totals over time: the square root of summing up, independent noise, the binary tree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.common import print_table
from tulle.core.guarantee import largest_rho
from tulle.streams import factor

HORIZONS = (12, 52, 365, 1024, 4096)
EPSILON, DELTA = 1, 1e-6


MINUTE: dict[str, Any] = {
    "HORIZONS": (12, 52),
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the root mean square error of all running totals, at one price for the stream."""
    rows = [row(steps) for steps in HORIZONS]
    print_table(
        f"Running totals at ({EPSILON}, {DELTA}), bound 1 a step: root mean square error", rows
    )


def row(steps: int) -> dict[str, Any]:
    """Return the errors over one horizon; all by the same Gaussian noise and rho."""
    from fractions import Fraction

    rho = float(largest_rho(Fraction(EPSILON), Fraction(str(DELTA))))
    alone = independent(steps) / (2 * rho)
    tree = binary_tree(steps) / (2 * rho)
    root = square_root(steps) / (2 * rho)
    return {
        "steps": steps,
        "independent": math.sqrt(alone),
        "binary tree": math.sqrt(tree),
        "square root": math.sqrt(root),
        "root / independent": math.sqrt(root / alone),
        "root / tree": math.sqrt(root / tree),
        "last total": math.sqrt(square_root(steps, last=True) / (2 * rho)),
    }


def independent(steps: int) -> float:
    """Return the mean squared error for 2·rho = 1 when each step has its own noise."""
    return (steps + 1) / 2


def binary_tree(steps: int) -> float:
    """Return it for the binary tree: one node for each dyadic interval, all on the way noised."""
    levels = math.floor(math.log2(steps)) + 1
    return levels * float(np.mean([step.bit_count() for step in range(1, steps + 1)]))


def square_root(steps: int, *, last: bool = False) -> float:
    """Return it for the factor that is used, with its coefficients as they are rounded."""
    variance = float(factor.squared_sensitivity(steps, 1, 1))
    if last:
        return factor.deviation(variance, steps - 1) ** 2
    column = np.array(factor._decoder(steps))
    # Entry t of B has the first t + 1 coefficients of the column.
    mean = float(np.mean(np.cumsum(column**2)))
    return variance * mean / factor.RESOLUTION**2


if __name__ == "__main__":
    main()
