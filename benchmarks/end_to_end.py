"""A whole private triangle count: read the file, bound the sensitivity, draw, release."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.common import find_data, print_table

GRAPHS = ("ca-GrQc", "facebook_combined", "email-Enron", "ego-Twitter")


def run() -> list[dict[str, Any]]:
    """Measure each graph in a process of its own, so that memory is its own too."""
    rows = []
    for name in GRAPHS:
        path = find_data(name)
        if path is None:
            continue
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.end_to_end", str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        cold, warm, memory = done.stdout.split()[-3:]
        rows.append(
            {
                "graph": name,
                "first time, s": float(cold),
                "again, s": float(warm),
                "peak memory, MB": float(memory),
            }
        )
    return rows


def measure(path: str) -> None:
    import tulle

    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        graph = tulle.Graph.read(path)
        tulle.release(graph, tulle.triangles(), unit="edge", epsilon=1.0)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(*seconds, peak)


MINUTE: dict[str, Any] = {
    "GRAPHS": ("ca-GrQc",),
}
"""What is smaller in the minute's version."""


def main() -> None:
    print_table("Private triangle count, from file to release", run())


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
