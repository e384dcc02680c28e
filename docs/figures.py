"""The guide's figures of benchmark results: ``python docs/figures.py`` draws them anew.

They are kept in ``pictures/``, as the results are in ``results/``: benchmarks need real data, which
is not part of the repository, and pages should be readable without building them.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from gallery._style import INSIDE, OUTSIDE, SOFT, panels, save

import tulle
from tulle.noise import SeededSource
from tulle.noise.xor.limits import most_kept

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


PEERS = {
    "xor": ("xor, as it can be had", INSIDE, "o"),
    "auto": ("auto", OUTSIDE, "s"),
    "pygmalion": ("Pygmalion", "#8b9499", "^"),
    "pbcn": ("PBCN", "#a55a4a", "v"),
    "ldpgen": ("LDPGen", "#5a6fa5", "D"),
    "approx_deg": ("ApproxDeg", "#7a5a8f", "x"),
    "dpcd": ("DPCD", "#7a5a8f", "x"),
}
NETWORKS = {"facebook_combined": "Facebook", "email-Eu-core": "e-mail"}
PRINTED_F1 = {"facebook_combined": 0.53, "email-Eu-core": 0.504}
"""What the paper prints for the network without noise, to which it comes close from 0.7 on."""


def _results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "results" / name).read_text(encoding="utf-8"))
    return found


def draw_xor_rows(path: Path) -> None:
    """Draw figure 2 of the XOR paper: accuracy, and wrong cells with the limit."""
    results = _results("xor-rows.json")
    figure, drawn = panels(3, width=10.5, height=3.4)
    for panel, (name, size) in zip(drawn, (("votes", 16), ("cancer", 30)), strict=False):
        rows = [row for row in results[name] if row["epsilon"] <= 1]
        places = [row["epsilon"] for row in rows]
        for key, words, colour, style in (
            ("non-private", "without noise", "#1d2326", "--"),
            ("optimal, plain", "xor, as it can be had", INSIDE, "o-"),
            ("paper, plain", "xor, published family", SOFT, "D-"),
            ("PPLR done right", "objective perturbation", "#5a6fa5", "^-"),
            ("regression room, label private", "logistic model, label private", OUTSIDE, "s-"),
        ):
            panel.plot(places, [row[key] for row in rows], style, color=colour, ms=4, label=words)
        panel.set(xlabel="epsilon", ylim=(0.35, 1), title=f"{name}: rows of {size}")
    drawn[0].set_ylabel("accuracy")
    drawn[1].legend(frameon=False, fontsize=7.5, loc="lower right")
    last = drawn[2]
    finely = [place / 50 for place in range(1, 51)]
    last.plot(
        finely,
        [1 / (1 + math.exp(epsilon)) for epsilon in finely],
        color="#1d2326",
        label="least for a single bit",
    )
    for name, size, style in (("votes", 16, "o-"), ("cancer", 30, "s-")):
        rows = [row for row in results[name] if row["epsilon"] <= 1]
        wrong = [row["wrong cells"] for row in rows]
        words = f"least for rows of {size}"
        last.plot([row["epsilon"] for row in rows], wrong, style, color=INSIDE, ms=4, label=words)
    last.scatter([0.5], [0.04], color="#a55a4a", marker="*", s=70, zorder=3, label="published")
    last.set(xlabel="epsilon", ylim=(0, 0.52), title="share of wrong cells")
    last.legend(frameon=False, fontsize=7.5, loc="center left")
    save(figure, path)


def draw_xor_limit(path: Path) -> None:
    """Draw table 2 of the XOR paper: released edges, and how many of the true ones can be kept."""
    results = _results("xor-paper.json")
    figure, drawn = panels(2, width=9.5, height=3.6)
    for panel, (name, words) in zip(drawn, NETWORKS.items(), strict=True):
        found = results["networks"][name]
        pairs, edges = math.comb(found["nodes"], 2), found["true"]["edges"]
        for place, (epsilon, colour) in enumerate(
            zip(results["table"], (OUTSIDE, INSIDE, SOFT), strict=True)
        ):
            sizes = [edges / 2 * (2 * pairs / edges) ** (step / 60) for step in range(61)]

            def limit(size: float, known: Any = (pairs, edges, epsilon)) -> float:
                return most_kept(released=size, pairs=known[0], edges=known[1], epsilon=known[2])

            panel.plot(
                sizes, [limit(size) for size in sizes], color=colour, label=f"limit at {epsilon:g}"
            )
            claimed = results["published"][name]["xor"][place][0]
            panel.scatter([claimed], [limit(claimed)], color=colour, marker="*", s=80, zorder=3)
            for mechanism, marker in (("xor", "o"), ("auto", "s")):
                made = _mean(found["rows"], epsilon, mechanism, "edges")
                panel.scatter([made], [limit(made)], color=colour, marker=marker, s=26, zorder=3)
        panel.axvline(edges, color="#c9ced1", linewidth=1)
        panel.set(xscale="log", yscale="log", xlabel="edges of the release", title=words)
    drawn[0].set_ylabel("true edges among them, at most")
    for marker, words in (("*", "published"), ("o", "xor"), ("s", "auto")):
        drawn[0].scatter([], [], color="#1d2326", marker=marker, label=words)
    drawn[0].legend(frameon=False, fontsize=8, loc="lower right")
    save(figure, path)


def _mean(rows: list[dict[str, Any]], epsilon: float, mechanism: str, key: str) -> float:
    found = [row[key] for row in rows if (row["epsilon"], row["mechanism"]) == (epsilon, mechanism)]
    return float(sum(found) / len(found))


def draw_xor_degrees(path: Path) -> None:
    """Draw figure 3 of the XOR paper: degree distributions of releases of Facebook."""
    degrees = _results("xor-paper.json")["networks"]["facebook_combined"]["degrees"]
    figure, drawn = panels(2, width=9.5, height=3.4)
    for panel, mechanism in zip(drawn, ("xor", "auto"), strict=True):
        panel.plot(*zip(*degrees["true"], strict=True), color="#1d2326", linewidth=1, label="true")
        for epsilon, colour in (("0.8", OUTSIDE), ("0.3", INSIDE), ("0.01", SOFT)):
            shown = degrees[f"{mechanism} {epsilon}"]
            label = f"epsilon = {epsilon}"
            panel.plot(*zip(*shown, strict=True), ".", color=colour, ms=4, label=label)
        panel.set(xscale="log", yscale="log", xlabel="degree", title=PEERS[mechanism][0])
    drawn[0].set_ylabel("share of nodes, per degree")
    drawn[0].legend(frameon=False, fontsize=8, loc="lower left")
    save(figure, path)


def draw_xor_curves(path: Path, key: str, what: str) -> None:
    """Draw figure 4 or 5 of the XOR paper: means over the runs, and the least and the most."""
    results = _results("xor-paper.json")
    figure, drawn = panels(2, width=9.5, height=3.6)
    for panel, (name, words) in zip(drawn, NETWORKS.items(), strict=True):
        found = results["networks"][name]
        for mechanism, (label, colour, marker) in PEERS.items():
            rows = [r for r in found["rows"] if r["mechanism"] == mechanism and key in r]
            places = sorted({row["epsilon"] for row in rows})
            if not places:
                continue
            each = [[row[key] for row in rows if row["epsilon"] == place] for place in places]
            means = [sum(values) / len(values) for values in each]
            panel.fill_between(
                places, list(map(min, each)), list(map(max, each)), color=colour, alpha=0.15, lw=0
            )
            panel.plot(places, means, f"{marker}-", color=colour, ms=4, label=label)
        if key == "f1":
            panel.axhline(
                found["true"]["f1"], color="#1d2326", linestyle="--", label="without noise"
            )
            panel.axhline(
                PRINTED_F1[name], color="#a55a4a", linestyle=":", label="printed, without noise"
            )
            auto = [r for r in found["rows"] if r["mechanism"] == "auto"]
            mixed = [r["f1, nodes mixed"] for r in auto]
            level = sum(mixed) / len(mixed)
            panel.axhline(level, color="#c9ced1", label="auto's groups, nodes mixed")
        panel.set(xlabel="epsilon", title=words, ylim=(0, None))
    drawn[0].set_ylabel(what)
    handles, labels = drawn[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=5)
    save(figure, path)


def main() -> None:
    """Draw all figures."""
    draw_statistics(HERE / "pictures" / "statistics.svg")
    draw_xor_rows(HERE / "pictures" / "xor-rows.svg")
    draw_xor_limit(HERE / "pictures" / "xor-limit.svg")
    draw_xor_degrees(HERE / "pictures" / "xor-degrees.svg")
    what = "divergence of the degrees"
    draw_xor_curves(HERE / "pictures" / "xor-divergence.svg", "divergence", what)
    draw_xor_curves(HERE / "pictures" / "xor-communities.svg", "f1", "average F1 of communities")
    draw_synthetic(HERE / "pictures" / "synthetic-facebook.png")


if __name__ == "__main__":
    main()
