"""Exact noise per second on one core, next to OpenDP's, in one run.

Run it with ``python -m benchmarks.noise``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tulle import noise

COUNT = 1_000_000
LAPLACE_SCALES = (0.5, 10, 1000, 1_000_000)
GAUSSIAN_SIGMAS = (0.5, 10, 1000, 1_000_000)


def best_of(action: Callable[[], Any], rounds: int) -> float:
    """Return the least time of some rounds, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(
    name: str, parameter: float, draw: Callable[[int], Any], peer_count: int
) -> dict[str, Any]:
    """Time one sampler with a prepared table, and OpenDP on ``peer_count`` values."""
    draw(1000)  # compile, and prepare the table
    ours = best_of(lambda: draw(COUNT), 5)
    with noise.backend("opendp"):
        draw(1000)
        theirs = best_of(lambda: draw(peer_count), 1)
    return {
        "sampler": name,
        "parameter": parameter,
        "draws": COUNT,
        "seconds": ours,
        "per_second": COUNT / ours,
        "opendp_draws": peer_count,
        "opendp_per_second": peer_count / theirs,
        "ratio": (COUNT / ours) / (peer_count / theirs),
    }


def run() -> list[dict[str, Any]]:
    """Measure every sampler at every scale."""
    rows = [
        measure(
            "discrete_laplace", s, lambda n, s=s: noise.discrete_laplace(scale=s, size=n), COUNT
        )
        for s in LAPLACE_SCALES
    ]
    rows += [
        measure(
            "discrete_gaussian",
            s,
            lambda n, s=s: noise.discrete_gaussian(sigma=s, size=n),
            COUNT // 10,
        )
        for s in GAUSSIAN_SIGMAS
    ]
    return rows


MINUTE: dict[str, Any] = {
    "COUNT": 10_000,
    "LAPLACE_SCALES": (10,),
    "GAUSSIAN_SIGMAS": (10,),
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the table, and say whether the bars are met."""
    rows = run()
    print(f"{'sampler':<18} {'scale':>9} {'million/s':>10} {'OpenDP':>8} {'ratio':>7}")
    for row in rows:
        print(
            f"{row['sampler']:<18} {row['parameter']:>9g} {row['per_second'] / 1e6:>10.1f} "
            f"{row['opendp_per_second'] / 1e6:>8.3f} {row['ratio']:>7.0f}"
        )
    laplace = [row for row in rows if row["sampler"] == "discrete_laplace"]
    met = all(row["per_second"] >= 3e6 and row["ratio"] >= 20 for row in laplace)
    print(f"bars (3 million/s and 20 x OpenDP for discrete Laplace): {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
