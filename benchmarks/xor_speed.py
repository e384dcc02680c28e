"""Exact XOR noise per second on one core.

Run it with ``python -m benchmarks.xor_speed``. The peer is NumPy's ordinary generator drawing as
many independent coins: neither exact nor secure, but what a quick script would use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from baselines.xor_columns import paper_xor

import baselines
import tulle
from benchmarks.common import print_table

NODES = 4039
TALL = 100_000
BARS = {"columns (paper), 4039 x 4039, cell": 3.0, "two_level, 100000 x 100, row": 1.0}
"""Seconds that a whole release may take, from the question to the released matrix."""


def timed(action: Callable[[], Any], rounds: int = 3) -> float:
    """Return the least time of some rounds after one that compiles."""
    action()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def cases() -> list[tuple[str, Any, Any, str]]:
    """Return (name, data, question, unit)."""
    generator = np.random.default_rng(1)

    def matrix(rows: int, columns: int) -> tulle.BinaryMatrix:
        return tulle.BinaryMatrix(generator.integers(0, 2, (rows, columns), dtype=np.uint8))

    square, tall, taller = matrix(NODES, NODES), matrix(TALL, 16), matrix(TALL, 100)
    small = matrix(TALL // 100, 100)
    theta = np.full((16, 16), 0.05) - np.eye(16)
    size = TALL
    chain = scipy.sparse.diags_array(
        [[0.1] * (size - 1), [-1.0] * size, [0.1] * (size - 1)], offsets=[-1, 0, 1]
    )
    graph = tulle.Graph.from_edges(generator.integers(0, NODES, (90_000, 2)), nodes=NODES)
    return [
        ("cells, 4039 x 4039, cell", square, tulle.xor(), "cell"),
        ("columns (paper), 4039 x 4039, cell", square, paper_xor(), "cell"),
        ("columns (paper), 4039 x 4039, row", square, paper_xor(), "row"),
        ("two_level, 4039 x 4039, row", square, tulle.xor(), "row"),
        ("two_level, 100000 x 16, row", tall, tulle.xor(), "row"),
        ("two_level, 100000 x 100, row", taller, tulle.xor(), "row"),
        ("coupled, 16 bits listed, 100000 rows", tall, tulle.xor("general", pi=theta), "row"),
        ("coupled from the past, 100000 cells", small, tulle.xor("general", pi=chain), "cell"),
        ("topology of 4039 nodes, edge", graph, tulle.topology(), "edge"),
    ]


def run() -> list[dict[str, Any]]:
    """Time every family at epsilon = 1."""
    generator = np.random.default_rng(2)
    rows = []
    for name, data, query, unit in cases():
        seconds = timed(
            lambda d=data, q=query, u=unit: tulle.release(d, q, unit=u, epsilon=1.0)  # type: ignore[misc]
        )
        cells = (
            data.shape[0] * data.shape[1] if hasattr(data, "shape") else NODES * (NODES - 1) // 2
        )
        peer = timed(lambda n=cells: generator.random(n, dtype=np.float32) < 0.27)  # type: ignore[misc]
        rows.append(
            {
                "release": name,
                "seconds": seconds,
                "million cells/s": cells / seconds / 1e6,
                "NumPy coins, seconds": peer,
                "bar, seconds": BARS.get(name, "-"),
            }
        )
    return rows


MINUTE: dict[str, Any] = {
    "NODES": 40,
    "TALL": 1_000,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the table, and say whether the bars are met."""
    baselines.register()
    rows = run()
    print_table("Whole releases, epsilon = 1", rows)
    met = all(row["seconds"] <= BARS[row["release"]] for row in rows if row["release"] in BARS)
    print(f"bars: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
