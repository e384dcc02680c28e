"""Releases of networks in the form of the XOR paper: table 2, figures 3 to 5, with the limit.

Run with ``TULLE_DATA=<folder> python -m benchmarks xor_peers``; what it finds is kept in
``docs/results/xor-paper.json``, from which ``docs/figures.py`` draws the figures. The comparators
are those that the paper names, in the corrected form of ``baselines/network_peers.py``; "printed"
is what the paper prints, and "kept, at most" what share of the true edges any release of so many
edges can hold at that epsilon. ``xor`` is the sound mechanism: a coin for each pair.

Reference: Ji et al., *Differentially private binary- and matrix-valued data query: an XOR
mechanism*, PVLDB 14(5), 2021, section 8.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from baselines.bigclam import bigclam
from baselines.network_peers import approx_deg, degrees_of, dpcd, ldpgen, pbcn, pygmalion
from baselines.rhms import GUARANTEE, rhms

import tulle
from benchmarks.common import find_data, print_table
from benchmarks.spectra import truth_of_email, truth_of_facebook
from benchmarks.statistics import rounded
from tulle.metrics.communities import average_f1, cover_of
from tulle.metrics.distances import measure_distances
from tulle.noise.xor.limits import most_kept

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "xor-paper.json"
EPSILONS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Those of figures 4 and 5; ``TABLE`` those of table 2, and ``DEGREES`` those of figure 3."""
TABLE = (1.0, 0.6, 0.2)
DEGREES = (0.8, 0.3, 0.01)
RUNS = 3
NETWORKS: dict[str, tuple[int, Callable[[tulle.Graph], Any]]] = {
    "facebook_combined": (10, truth_of_facebook),
    "email-Eu-core": (42, truth_of_email),
}
"""How many communities are known, and how they are read."""

PUBLISHED: dict[str, dict[str, list[tuple[Any, ...]]]] = {
    "facebook_combined": {
        "xor": [(1.13e5, 5, 0.014, 2.70), (1.48e5, 4, 0.018, 2.44), (2.73e5, 4, 0.034, 2.12)],
        "pygmalion": [
            (1.64e5, 4, 0.020, 2.34),
            (2.18e5, 4, 0.027, 2.28),
            (3.91e5, 3, 0.048, 2.04),
        ],
        "pbcn": [
            (0.88e5, None, 0.011, None),
            (0.89e5, None, 0.012, None),
            (0.90e5, None, 0.013, None),
        ],
        "ldpgen": [(1.22e5, 5, 0.015, 2.61), (1.74e5, 4, 0.021, 2.34), (2.87e5, 3, 0.035, 1.99)],
    },
    "email-Eu-core": {
        "xor": [
            (1.572e4, 5, 0.0329, 2.565),
            (1.679e4, 3, 0.0348, 2.421),
            (3.911e4, 2, 0.0814, 1.922),
        ],
        "pygmalion": [
            (3.677e4, 3, 0.076, 1.922),
            (4.554e4, 3, 0.094, 1.877),
            (7.008e4, 2, 0.194, 1.803),
        ],
        "pbcn": [
            (1.633e4, None, 0.0337, None),
            (1.647e4, None, 0.0334, None),
            (1.693e4, None, 0.0347, None),
        ],
        "ldpgen": [
            (3.167e4, 3, 0.065, 2.058),
            (4.720e4, 3, 0.097, 1.930),
            (12.642e4, 2, 0.261, 1.738),
        ],
    },
}
"""Edges, diameter, density and mean path that the paper prints in table 2, by ``TABLE``."""

LARGEST_DEGREE = 100
"""Where Pygmalion cuts degrees: a public number, chosen without a look at these networks."""

SOURCES = 200
"""From how many nodes distances are measured."""

COUNTED = ("ca-GrQc",)


def made_by(name: str, graph: tulle.Graph, epsilon: float) -> tulle.Graph:
    """Return a released graph."""
    if name == "xor":
        released = tulle.release(graph, tulle.topology(), unit="edge", epsilon=epsilon)
        return released.value.to_graph()
    if name == "auto":
        asked = tulle.synthetic("auto")
        found: tulle.Graph = tulle.release(graph, asked, unit="edge", epsilon=epsilon).value
        return found
    if name == "ldpgen":
        return ldpgen(graph, epsilon)
    if name == "pbcn":
        return pbcn(graph, epsilon)
    return pygmalion(graph, epsilon, LARGEST_DEGREE)


MECHANISMS = ("xor", "auto", "pygmalion", "pbcn", "ldpgen")


def divergence(made: Any, true: Any) -> float:
    """Return the Kullback-Leibler divergence from the true degrees; no bin is empty."""
    size = max(len(true), len(made))
    one, other = (np.pad(np.asarray(part, float), (0, size - len(part))) for part in (made, true))
    one, other = (one + 1 / size) / (one.sum() + 1), (other + 1 / size) / (other.sum() + 1)
    return float((one * np.log(one / other)).sum())


def shares(graph: tulle.Graph) -> Any:
    found = np.bincount(degrees_of(graph))
    return found / found.sum()


def binned(graph: tulle.Graph) -> list[list[float]]:
    """Return degrees and how likely each is, in bins that grow with the degree."""
    degrees = degrees_of(graph)
    ends = np.unique(np.round(np.geomspace(1, 5000, 90)))
    counts, _ = np.histogram(degrees, ends)
    widths = np.diff(ends)
    return [
        [float(low + (width - 1) / 2), float(count / width / len(degrees))]
        for low, width, count in zip(ends, widths, counts, strict=False)
        if count
    ]


def measure(name: str) -> dict[str, Any] | None:
    """Return what is measured on one network: statistics, divergences, scores, degrees."""
    path = find_data(name)
    if path is None:
        return None
    graph = tulle.Graph.read(path, ignore=["direction"])
    count, truth = NETWORKS[name]
    known = truth(graph)
    known = known if isinstance(known, list) else cover_of(known)
    order = np.random.default_rng(2).permutation(graph.node_count)
    rows = []
    for epsilon in EPSILONS:
        for _ in range(RUNS):
            for mechanism in MECHANISMS:
                made = made_by(mechanism, graph, epsilon)
                groups = bigclam(made, count)
                # Groups of the same sizes that know nothing: large ones agree a little with any.
                rows.append(
                    {
                        "epsilon": epsilon,
                        "mechanism": mechanism,
                        **statistics(made),
                        "divergence": divergence(shares(made), shares(graph)),
                        "f1": average_f1(groups, known),
                        "f1, nodes mixed": average_f1([order[group] for group in groups], known),
                    }
                )
            only = divergence(approx_deg(graph, epsilon), shares(graph))
            rows.append({"epsilon": epsilon, "mechanism": "approx_deg", "divergence": only})
            groups = cover_of(dpcd(graph, epsilon, count))
            mixed = average_f1([order[group] for group in groups], known)
            score = {"f1": average_f1(groups, known), "f1, nodes mixed": mixed}
            rows.append({"epsilon": epsilon, "mechanism": "dpcd", **score})
    degrees = {"true": binned(graph)} | {
        f"{mechanism} {epsilon:g}": binned(made_by(mechanism, graph, epsilon))
        for mechanism in ("xor", "auto")
        for epsilon in DEGREES
    }
    return {
        "nodes": graph.node_count,
        "true": {**statistics(graph), "f1": average_f1(bigclam(graph, count), known)},
        "degrees": degrees,
        "rows": rows,
    }


def mean(rows: list[dict[str, Any]], epsilon: float, mechanism: str, key: str) -> float | None:
    """Return the mean over runs, or None where it was not measured."""
    found = [
        row[key]
        for row in rows
        if row["epsilon"] == epsilon and row["mechanism"] == mechanism and key in row
    ]
    return float(np.mean(found)) if found else None


def table_2(name: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return table 2 for one network: ours, and in brackets what the paper prints."""
    pairs, edges = math.comb(found["nodes"], 2), found["true"]["edges"]
    shown = ("edges", "diameter", "density", "mean path")
    true = {key: found["true"][key] for key in shown}
    rows = [{"network": name, "epsilon": "-", "mechanism": "true", **true}]
    for place, epsilon in enumerate(TABLE):
        for mechanism in MECHANISMS:
            row: dict[str, Any] = {"network": name, "epsilon": epsilon, "mechanism": mechanism}
            for key in shown:
                row[key] = mean(found["rows"], epsilon, mechanism, key)
            most = most_kept(released=row["edges"], pairs=pairs, edges=edges, epsilon=epsilon)
            row["kept, at most"] = most
            said = PUBLISHED[name].get(mechanism)
            if said is not None:
                row["printed edges"] = said[place][0]
                row["of them true, at most"] = most_kept(
                    released=said[place][0], pairs=pairs, edges=edges, epsilon=epsilon
                )
            rows.append(row)
    return rows


def figure(name: str, found: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a figure's numbers for one network, a row for each epsilon."""
    names = list(dict.fromkeys(row["mechanism"] for row in found["rows"] if key in row))
    return [
        {"network": name, "epsilon": epsilon}
        | {mechanism: mean(found["rows"], epsilon, mechanism, key) for mechanism in names}
        for epsilon in EPSILONS
    ]


def statistics(graph: tulle.Graph) -> dict[str, Any]:
    pairs = math.comb(graph.node_count, 2)
    found = measure_distances(graph, sources=min(SOURCES, graph.node_count))
    return {
        "edges": graph.edge_count,
        "diameter": found.diameter,
        "density": graph.edge_count / pairs,
        "mean path": found.mean,
    }


def rhms_rows(runs: int = 21) -> list[dict[str, Any]]:
    """Return median errors of counts by RHMS, which is not differentially private, and by ours."""
    rows = []
    asked = (("triangles", tulle.triangles(), 3, 3), ("2-stars", tulle.stars(2), 3, 2))
    for name in COUNTED:
        path = find_data(name)
        if path is None:
            continue
        graph = tulle.Graph.read(path, ignore=["direction"])
        for label, query, corners, links in asked:
            true = int(query.truth(graph))
            theirs = [rhms(true, graph.node_count, corners, links, 0.5) for _ in range(runs)]
            ours = [
                tulle.release(graph, query, unit="edge", epsilon=0.5).value for _ in range(runs)
            ]
            rows.append(
                {
                    "network": name,
                    "count": label,
                    "true": true,
                    f"rhms ({GUARANTEE})": float(np.median(np.abs(np.array(theirs) - true))),
                    "tulle, pure epsilon": float(np.median(np.abs(np.array(ours) - true))),
                }
            )
    return rows


MINUTE: dict[str, Any] = {"EPSILONS": (1.0,), "NETWORKS": {}, "COUNTED": ()}
"""What is smaller in the minute's version."""


def main() -> None:
    made = {name: found for name in NETWORKS if (found := measure(name)) is not None}
    titles = {
        "divergence": "Figure 4: divergence of degree distributions (less is better)",
        "f1": "Figure 5: average F1 of communities, judged by BIGCLAM",
        "f1, nodes mixed": "The same groups with nodes mixed: what knows nothing",
    }
    print_table(
        f"Table 2: statistics of released networks, means of {RUNS} runs",
        [row for name, found in made.items() for row in table_2(name, found)],
    )
    for key, title in titles.items():
        print_table(title, [row for name in made for row in figure(name, made[name], key)])
    print_table("Counts at epsilon = 0.5 per edge, median error", rhms_rows())
    if set(made) == set(PUBLISHED):
        found = {"runs": RUNS, "published": PUBLISHED, "table": TABLE, "networks": made}
        RESULTS.write_text(json.dumps(rounded(found), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
