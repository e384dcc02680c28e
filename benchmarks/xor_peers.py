"""Releases of networks in the form of the XOR paper: table 2, figures 4 and 5, with the limit.

Run with ``TULLE_DATA=<folder> python -m benchmarks xor_peers``. The comparators are those that the
paper names, in the corrected form of ``baselines/network_peers.py``; "published" is what the paper
prints for its own mechanism, and "kept, at most" what share of the true edges any release of so
many edges can hold at that epsilon. ``xor`` is the sound mechanism: a coin for each pair.

Reference: Ji et al., *Differentially private binary- and matrix-valued data query: an XOR
mechanism*, PVLDB 14(5), 2021, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from baselines.bigclam import bigclam
from baselines.network_peers import approx_deg, degrees_of, dpcd, ldpgen, pbcn, pygmalion
from baselines.rhms import GUARANTEE, rhms

import tulle
from benchmarks.common import find_data, print_table
from benchmarks.spectra import truth_of_email, truth_of_facebook
from tulle.metrics.communities import average_f1, cover_of
from tulle.metrics.distances import measure_distances
from tulle.noise.xor.limits import most_kept

EPSILONS = (1.0, 0.6, 0.2)
NETWORKS: dict[str, tuple[int, Callable[[tulle.Graph], Any]]] = {
    "facebook_combined": (10, truth_of_facebook),
    "email-Eu-core": (42, truth_of_email),
}
"""How many communities are known, and how they are read."""

PUBLISHED = {
    "facebook_combined": {1.0: 1.13e5, 0.6: 1.48e5, 0.2: 2.73e5},
    "email-Eu-core": {1.0: 1.572e4, 0.6: 1.679e4, 0.2: 3.911e4},
}
"""Edges that the paper prints for its mechanism in table 2."""

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


def divergence(true: Any, made: Any) -> float:
    """Return the Kullback-Leibler divergence of two degree distributions, one added to each bin."""
    size = max(len(true), len(made))
    one, other = (np.pad(np.asarray(part, float), (0, size - len(part))) for part in (true, made))
    one, other = (one + 1 / size) / (one.sum() + 1), (other + 1 / size) / (other.sum() + 1)
    return float((one * np.log(one / other)).sum())


def shares(graph: tulle.Graph) -> Any:
    found = np.bincount(degrees_of(graph))
    return found / found.sum()


def rows_of(name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of table 2, of figure 4 and of figure 5 for one network."""
    path = find_data(name)
    if path is None:
        return [], [], []
    graph = tulle.Graph.read(path, ignore=["direction"])
    count, truth = NETWORKS[name]
    known = truth(graph)
    known = known if isinstance(known, list) else cover_of(known)
    pairs = math.comb(graph.node_count, 2)
    whole = {"network": name, "epsilon": "-", "mechanism": "true", **statistics(graph, pairs)}
    table: list[dict[str, Any]] = [{**whole, "kept, at most": 1.0}]
    figure4: list[dict[str, Any]] = []
    figure5: list[dict[str, Any]] = []
    chance = np.random.default_rng(1).integers(0, count, graph.node_count)
    order = np.random.default_rng(2).permutation(graph.node_count)
    ends = {
        "true graph": average_f1(bigclam(graph, count), known),
        "chance": average_f1(cover_of(chance), known),
    }
    for epsilon in EPSILONS:
        claimed = PUBLISHED[name].get(epsilon)
        if claimed is not None:
            kept = most_kept(released=claimed, pairs=pairs, edges=graph.edge_count, epsilon=epsilon)
            said = {
                "edges": claimed,
                "diameter": "-",
                "density": claimed / pairs,
                "mean path": "-",
                "kept, at most": kept,
            }
            table.append({"network": name, "epsilon": epsilon, "mechanism": "published", **said})
        degrees: dict[str, Any] = {"network": name, "epsilon": epsilon}
        found: dict[str, Any] = {"network": name, "epsilon": f"{epsilon:g}"}
        mixed: dict[str, Any] = {"network": name, "epsilon": f"{epsilon:g}, nodes mixed"}

        def judged(
            mechanism: str, groups: list[Any], found: Any = found, mixed: Any = mixed
        ) -> None:
            found[mechanism] = average_f1(groups, known)
            # Groups of the same sizes that know nothing: large ones agree with anything a little.
            mixed[mechanism] = average_f1([order[group] for group in groups], known)

        for mechanism in MECHANISMS:
            made = made_by(mechanism, graph, epsilon)
            row: dict[str, Any] = {"network": name, "epsilon": epsilon, "mechanism": mechanism}
            limit = most_kept(
                released=made.edge_count, pairs=pairs, edges=graph.edge_count, epsilon=epsilon
            )
            table.append({**row, **statistics(made, pairs), "kept, at most": limit})
            degrees[mechanism] = divergence(shares(graph), shares(made))
            judged(mechanism, bigclam(made, count))
        degrees["approx_deg"] = divergence(shares(graph), approx_deg(graph, epsilon))
        judged("dpcd", cover_of(dpcd(graph, epsilon, count)))
        figure4.append(degrees)
        figure5 += [{**found, **ends}, {**mixed, **ends}]
    return table, figure4, figure5


def statistics(graph: tulle.Graph, pairs: int) -> dict[str, Any]:
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


MINUTE: dict[str, Any] = {"EPSILONS": (1.0,), "NETWORKS": {}}
"""What is smaller in the minute's version."""


def main() -> None:
    made = [rows_of(name) for name in NETWORKS]
    titles = (
        "Table 2: statistics of released networks",
        "Figure 4: divergence of degree distributions (less is better)",
        "Figure 5: average F1 of communities, judged by BIGCLAM",
    )
    for place, title in enumerate(titles):
        print_table(title, [row for rows in made for row in rows[place]])
    print_table("Counts at epsilon = 0.5 per edge, median error", rhms_rows())


if __name__ == "__main__":
    main()
