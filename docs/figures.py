"""The guide's figures of benchmark results: ``python docs/figures.py`` draws them anew.

They are kept in ``pictures/``, as the results are in ``results/``: benchmarks need real data, which
is not part of the repository, and pages should be readable without building them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gallery._style import INSIDE, OUTSIDE, SOFT, panels, save

import tulle
from tulle.noise import SeededSource

HERE = Path(__file__).parent
NAMES = {
    "transitivity": ("transitivity", OUTSIDE, "o"),
    "clustering": ("coefficient of the hub", INSIDE, "s"),
    "assortativity": ("assortativity", SOFT, "D"),
}


def draw_statistics(path: Path) -> None:
    """Draw what the chosen split gains, and what one budget buys against one for each node."""
    results = json.loads((HERE / "results" / "statistics.json").read_text(encoding="utf-8"))
    figure, (left, right) = panels(2, width=9.5, height=4.6)
    _splits(left, results["splits"])
    _vectors(right, results["vectors"])
    save(figure, path)


def _splits(panel: Any, rows: list[dict[str, Any]]) -> None:
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    panel.axvline(1, color="#c9ced1", linewidth=1)
    for name, (words, colour, marker) in NAMES.items():
        found = [row for row in rows if row["statistic"] == name]
        panel.scatter(
            [row["equal / chosen"] for row in found],
            [graphs.index(row["graph"]) for row in found],
            color=colour,
            marker=marker,
            s=22,
            label=words,
        )
    panel.set_yticks(range(len(graphs)), graphs)
    panel.invert_yaxis()
    ticks = (1, 2, 5, 10, 20, 50, 100)
    panel.set_xscale("log")
    panel.set_xticks(ticks, map(str, ticks))
    panel.minorticks_off()
    panel.set(xlabel="error with equal shares / with chosen ones", title="the split of the budget")
    panel.legend(frameon=False, loc="lower right", fontsize=9)


def _vectors(panel: Any, rows: list[dict[str, Any]]) -> None:
    found = [row for row in rows if row["epsilon"] == 1.0]
    lines = (
        ("one budget: decomposed", "epsilon = 1 for all nodes together", OUTSIDE, "o"),
        ("n budgets: decomposed", "epsilon = 1 for each node", INSIDE, "s"),
        ("printed parts", "as printed, for each node", SOFT, "D"),
    )
    smallest = 1e-6
    for key, words, colour, marker in lines:
        panel.scatter(
            [max(row[key], smallest) for row in found],
            range(len(found)),
            color=colour,
            marker=marker,
            s=26,
            label=words,
        )
    panel.scatter(
        [row["constant guess"] for row in found],
        range(len(found)),
        color="#1d2326",
        marker="|",
        s=160,
        label="guess the mean for everyone",
    )
    panel.set_yticks(range(len(found)), [row["graph"] for row in found])
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.set_xticks([smallest, 1e-4, 1e-2, 1], ["<= 0.000001", "0.0001", "0.01", "1"], fontsize=9)
    panel.minorticks_off()
    panel.set(xlabel="mean error per node", title="all clustering coefficients")
    panel.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2)


def draw_synthetic(path: Path) -> None:
    """Draw the facebook network beside a graph of `auto`, when ``TULLE_DATA`` holds it."""
    name = "facebook_combined"
    files = sorted(Path(os.environ.get("TULLE_DATA", ""), name).glob(f"{name}.edges.txt*"))
    if not files:
        print(f"{path.name} stays as it is: {name} is not below TULLE_DATA.")
        return
    truth = tulle.Graph.read(files[0])
    # The network is public: a seed gives the same picture again, and no guarantee is needed.
    release = tulle.release(
        truth, tulle.synthetic(), unit="edge", epsilon=1.0, source=SeededSource(1)
    )
    found = tulle.compare(truth, release.value)
    found.figure(path, title=f"{name}, and a graph of auto at epsilon = 1")


def main() -> None:
    """Draw all figures."""
    draw_statistics(HERE / "pictures" / "statistics.svg")
    draw_synthetic(HERE / "pictures" / "synthetic-facebook.png")


if __name__ == "__main__":
    main()
