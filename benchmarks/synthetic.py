"""Synthetic graphs: `auto` against corrected peers, on the fifteen queries of PGB.

One table for each graph and epsilon: the mean score of each model, who is best, and the time; then
the queries on which `auto` is not best, who is, and by how much. `auto` has two columns: with the
nodes numbered as the data set has them, whose order it may use, and with the same graph shuffled,
where the order says nothing. Peers do not look at the order.

Environment: SYNTHETIC_GRAPHS, SYNTHETIC_EPSILONS, SYNTHETIC_MODELS (comma-separated) and
SYNTHETIC_REPEATS choose a part. SYNTHETIC_JSON names a file that keeps the scores of every graph
drawn: a run that was stopped goes on from there, and more repeats add to it. SYNTHETIC_FRESH names
models whose kept scores are not used, such as `auto,shuffled` after a change.
"""

from __future__ import annotations

import json
import math
import os
import time
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.graphs.kernels.counts import degrees, triangles_per_node
from tulle.metrics import PGB, Portrait, compare, louvain, measure_distances, modularity
from tulle.metrics.portrait import assortativity, leading_eigenpair
from tulle.noise import SeededSource, discrete_laplace
from tulle.noise.post_processing import post_processing

GRAPHS = (
    "facebook_combined",
    "ca-HepPh",
    "wiki-Vote",
    "p2p-Gnutella25",
    "lastfm-asia",
    "polblogs",
)
EPSILONS = (0.5, 1.0, 2.0, 5.0)
OURS = ("auto", "shuffled")
PEERS = ("topm", "response", "communities", "kronecker", "dgg", "1k", "2k", "2.5k")
REPEATS = 10
MOST_PAIRS = 10**8
"""The model `response` draws a coin for every pair: beyond this many it is left out."""

BARS = {
    1.0: {
        "edges": 0.01,
        "triangles": 0.10,
        "degree distribution": 0.20,
        "average clustering": 0.20,
        "modularity": 0.25,
        "communities": 0.30,
    },
    2.0: {
        "edges": 0.01,
        "triangles": 0.05,
        "degree distribution": 0.10,
        "average clustering": 0.15,
        "modularity": 0.20,
        "communities": 0.45,
    },
}
"""What `auto` was asked to reach on facebook_combined."""


def chosen(name: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a choice from the environment."""
    asked = os.environ.get(f"SYNTHETIC_{name}")
    if not asked:
        return default
    return tuple(type(default[0])(word) for word in asked.split(","))


def draw_dgg(graph: tulle.Graph, epsilon: float, seed: int) -> tulle.Graph:
    """Return a graph of DGG (Qin et al., CCS 2017, as in PGB), with noise of scale 2/epsilon.

    Published code uses 1/epsilon, although an edge moves two degrees. Nodes are sorted by noisy
    degree, cut into communities one larger than their least degree, joined inside with a density
    that grows with the degree, and by expected degrees (Chung & Lu) across.
    """
    random = post_processing(SeededSource(seed))
    nodes = graph.node_count
    true = np.bincount(graph.edges().ravel(), minlength=nodes)
    noisy = np.maximum(true + discrete_laplace(scale=2 / epsilon, size=nodes), 0)
    order = np.argsort(noisy, kind="stable")
    most = np.log(float(noisy.max()) + 1) or 1.0
    parts = []
    first = 0
    while first < nodes:
        members = order[first : first + int(noisy[order[first]]) + 1]
        one, two = np.triu_indices(len(members), 1)
        kept = random.random(len(one)) < np.log(len(members) + 1) / most
        parts.append(np.column_stack([members[one[kept]], members[two[kept]]]))
        first += len(members)
    inside = np.concatenate(parts)
    left = np.maximum(noisy - np.bincount(inside.ravel(), minlength=nodes), 0)
    ends = np.repeat(np.arange(nodes), left)
    half = len(ends) // 2
    across = np.column_stack([random.choice(ends, half), random.choice(ends, half)])
    edges = np.concatenate([inside, across])
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return tulle.Graph.from_edges(edges, nodes=nodes)


def shuffled(graph: tulle.Graph, seed: int) -> tulle.Graph:
    """Return the same graph with its nodes renumbered at random."""
    order = post_processing(SeededSource(seed)).permutation(graph.node_count)
    return tulle.Graph.from_edges(order[graph.edges()], nodes=graph.node_count)


def look(graph: tulle.Graph) -> Portrait:
    """Return all that the fifteen queries ask of a graph, and no more."""
    communities = louvain(graph)
    values, vector = leading_eigenpair(graph, 2)
    return Portrait(
        graph.node_count,
        graph.edge_count,
        degrees(graph),
        triangles_per_node(graph),
        measure_distances(graph),
        communities,
        modularity(graph, communities),
        vector,
        values,
        np.zeros(graph.node_count),
        assortativity(graph),
    )


class Bench:
    """One graph, looked at once, and once more with its nodes shuffled."""

    def __init__(self, graph: tulle.Graph) -> None:
        self.plain, self.mixed = graph, shuffled(graph, 1)
        self.truth = {False: look(graph), True: look(self.mixed)}

    def draw(self, model: str, epsilon: float, seed: int) -> dict[str, float]:
        """Return the scores of one graph of a model, from the system's randomness, and its time."""
        mixed = model == "shuffled"
        graph = self.mixed if mixed else self.plain
        start = time.perf_counter()
        if model == "dgg":
            made = draw_dgg(graph, epsilon, seed)
        else:
            question = tulle.synthetic("auto" if mixed else model)
            made = tulle.release(graph, question, unit="edge", epsilon=epsilon).value
        seconds = time.perf_counter() - start
        found = compare(self.truth[mixed], look(made)).scores()
        return {"seconds": seconds, **{query: found[query] for query in PGB}}


class Kept:
    """Scores by graph, epsilon, model and repeat, in a file if one is named."""

    def __init__(self, path: str | None, fresh: tuple[str, ...]) -> None:
        self.path = Path(path) if path else None
        known = json.loads(self.path.read_text()) if self.path and self.path.exists() else {}
        self.scores = {key: v for key, v in known.items() if key.split("|")[2] not in fresh}

    def all_of(self, name: str, epsilon: float, model: str, repeats: int) -> list[dict[str, float]]:
        """Return what is known of one cell, at most so many repeats."""
        keys = (f"{name}|{epsilon:g}|{model}|{repeat}" for repeat in range(repeats))
        return [self.scores[key] for key in keys if key in self.scores]

    def add(self, name: str, epsilon: float, model: str, repeat: int, found: Any) -> None:
        """Keep one graph's scores, in the file at once."""
        self.scores[f"{name}|{epsilon:g}|{model}|{repeat}"] = found
        if self.path:
            partial = self.path.with_suffix(".partial")
            partial.write_text(json.dumps(self.scores, indent=0), encoding="utf-8")
            partial.replace(self.path)


def compare_models(
    name: str, epsilon: float, models: tuple[str, ...], repeats: int, kept: Kept
) -> dict[str, dict[str, float]] | None:
    """Return the mean scores and the middle time of all models on one graph, at one epsilon."""
    bench: Bench | None = None
    found = {}
    path = find_data(name)
    for model in (*OURS, *models):
        for repeat in range(len(kept.all_of(name, epsilon, model, repeats)), repeats):
            if path is None:
                break
            bench = bench or Bench(tulle.Graph.read(path))
            if model == "response" and comb(bench.plain.node_count, 2) > MOST_PAIRS:
                break
            kept.add(name, epsilon, model, repeat, bench.draw(model, epsilon, repeat))
        if scores := kept.all_of(name, epsilon, model, repeats):
            found[model] = {query: float(np.mean([s[query] for s in scores])) for query in PGB}
            found[model]["seconds"] = float(np.median([s["seconds"] for s in scores]))
    return found or None


def better(one: float, other: float, query: str) -> bool:
    """Say whether a score is at least as good as another; communities: higher is better."""
    return one >= other - 1e-12 if query == "communities" else one <= other + 1e-12


def lost_by(found: dict[str, dict[str, float]], ours: str) -> dict[str, str]:
    """Return the queries on which a column of ours is not best: who is, and by what factor."""
    rivals = [model for model in found if model not in OURS]
    lost = {}
    for query in PGB:
        mine = found[ours][query]
        ahead = {m: found[m][query] for m in rivals if not better(mine, found[m][query], query)}
        if ahead:
            higher = query == "communities"
            best = (max if higher else min)(ahead, key=lambda m: ahead[m])
            large, small = (ahead[best], mine) if higher else (mine, ahead[best])
            factor = large / small if small else math.inf
            lost[query] = f"{best} {ahead[best]:.3g} < {mine:.3g} (x{factor:.1f})"
    return lost


def rows_of(found: dict[str, dict[str, float]], lost: dict[str, str]) -> list[dict[str, Any]]:
    """Return the table of one cell."""
    return [
        {
            "query": query,
            **{model: f"{scores[query]:.3g}" for model, scores in found.items()},
            "best": "auto" if query in PGB and query not in lost else "",
        }
        for query in (*PGB, "seconds")
    ]


MINUTE: dict[str, Any] = {
    "GRAPHS": GRAPHS[:1],
    "EPSILONS": (1.0,),
    "PEERS": ("1k", "dgg"),
    "REPEATS": 1,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print all tables, and last how often `auto` is best."""
    repeats = int(os.environ.get("SYNTHETIC_REPEATS", REPEATS))
    kept = Kept(os.environ.get("SYNTHETIC_JSON"), chosen("FRESH", ("",)))
    summary, losses = [], []
    for name in chosen("GRAPHS", GRAPHS):
        for epsilon in chosen("EPSILONS", EPSILONS):
            found = compare_models(name, epsilon, chosen("MODELS", PEERS), repeats, kept)
            if found is None:
                continue
            lost = {ours: lost_by(found, ours) for ours in OURS}
            wins = {ours: len(PGB) - len(lost[ours]) for ours in OURS}
            title = f"{name}, epsilon = {epsilon}, mean of {repeats}: best on {wins['auto']}"
            print_table(title, rows_of(found, lost["auto"]))
            losses += [
                {"graph": name, "epsilon": epsilon, "query": query, "better": rival}
                for query, rival in lost["auto"].items()
            ]
            missed = [
                query
                for query, bar in BARS.get(epsilon, {}).items()
                if name == GRAPHS[0] and not better(found["auto"][query], bar, query)
            ]
            summary.append(
                {
                    "graph": name,
                    "epsilon": epsilon,
                    "best of 15": wins["auto"],
                    "best of 15, shuffled": wins["shuffled"],
                    "bars missed": ", ".join(missed) or "none",
                    "seconds": found["auto"]["seconds"],
                }
            )
    print_table("Where a peer is better than auto", losses)
    print_table("How often auto is at least as good as every corrected peer", summary)


if __name__ == "__main__":
    main()
