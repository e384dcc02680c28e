"""Where the model `auto` looks for a core, and whether it is right to: planted communities.

Graphs with known communities and degrees that follow a power law, their nodes in random order, so
that only a core can show anything. For each, `auto` decides by itself, is told to find a core, and
is told not to. Two things are compared, both read from the private statistics, before a graph is
drawn: how much the blocks tell of the planted communities (adjusted mutual information: 0 is
chance), and the divergence of the degrees, which a core takes budget from.

Environment: PLANTED_NODES, PLANTED_EPSILONS (comma-separated) and PLANTED_REPEATS choose a part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import tulle
from benchmarks.common import print_table
from tulle.core.mechanism import Terms
from tulle.core.registry import mechanisms
from tulle.core.unit import Unit
from tulle.graphs.kernels.counts import degrees
from tulle.graphs.synthesis.auto.blocks import divide
from tulle.graphs.synthesis.auto.model import degrees_of
from tulle.metrics import divergence, information_beyond_chance
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing

NODES = (500, 2000, 5000)
COMMUNITIES = (2, 5, 20)
MEAN_DEGREES = (5, 20, 60)
MIXINGS = (0.1, 0.3, 0.5)
EPSILONS = ("1", "2", "5")
REPEATS = 1
CHOICES = ("auto", "core", "no")
TAIL = 2.5
"""The exponent of the degrees' power law."""
WORTHWHILE = 0.2
"""From this agreement on a core was worth its budget."""
EDGE = Unit.of("edge")


class Shape(NamedTuple):
    """What a planted graph is like."""

    nodes: int
    communities: int
    mean_degree: int
    mixing: float
    """The share of edges that go to any node, not to one of the same community."""


class Found(NamedTuple):
    """What the private statistics of one run tell."""

    core: bool
    agreement: float
    divergence: float


def plant(shape: Shape, seed: int) -> tuple[tulle.Graph, Any]:
    """Return a degree-corrected planted partition, nodes in random order, and its communities."""
    random = post_processing(SeededSource(seed))
    labels = random.permutation(np.arange(shape.nodes) % shape.communities)
    weights = np.minimum((1 - random.random(shape.nodes)) ** (-1 / (TAIL - 1)), 30.0)
    ends = weights / weights.sum()
    wanted = shape.nodes * shape.mean_degree // 2
    edges = np.empty((0, 2), dtype=np.int64)
    # Draws that hit a pair again are drawn anew; where communities are full, some are missing.
    for _ in range(20):
        more = wanted - len(edges)
        first = random.choice(shape.nodes, more, p=ends)
        second = random.choice(shape.nodes, more, p=ends)
        inside = random.random(more) >= shape.mixing
        for community in range(shape.communities):
            members = np.flatnonzero(labels == community)
            chosen = np.flatnonzero(inside & (labels[first] == community))
            share = weights[members] / weights[members].sum()
            second[chosen] = random.choice(members, len(chosen), p=share)
        drawn = np.column_stack([np.minimum(first, second), np.maximum(first, second)])
        edges = np.unique(np.concatenate([edges, drawn[first != second]]), axis=0)
    return tulle.Graph.from_edges(edges, nodes=shape.nodes), labels


def measure(graph: tulle.Graph, labels: Any, epsilon: str, blocks: str, seed: int) -> Found:
    """Return what one run finds out."""
    auto: Any = mechanisms("graph")["synthetic_auto"]
    query = tulle.synthetic(blocks=blocks)
    terms = Terms(query, EDGE, Fraction(epsilon), Fraction(0), graph.facts(EDGE))
    settings = auto.settings(terms, {})
    seen = auto.measure(terms, settings, graph, SeededSource(seed))
    made = degrees_of(seen, settings)
    division = divide(seen, settings, int(made.sum()) // 2)
    return Found(
        "home" in seen,
        information_beyond_chance(labels, division.blocks),
        divergence(np.bincount(degrees(graph)), np.bincount(made)),
    )


def chosen(name: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a choice from the environment."""
    asked = os.environ.get(f"PLANTED_{name}")
    return tuple(type(default[0])(word) for word in asked.split(",")) if asked else default


def shapes() -> Iterator[Shape]:
    """Yield all shapes whose communities have room for their edges."""
    for nodes in chosen("NODES", NODES):
        for communities in COMMUNITIES:
            for degree in MEAN_DEGREES:
                for mixing in MIXINGS:
                    if degree * communities <= nodes / 3:
                        yield Shape(nodes, communities, degree, mixing)


MINUTE: dict[str, Any] = {
    "NODES": (200,),
    "COMMUNITIES": (2,),
    "MEAN_DEGREES": (20,),
    "MIXINGS": (0.1,),
    "EPSILONS": ("2",),
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print what each choice gives, and last where `auto` chose badly."""
    rows: list[dict[str, Any]] = []
    repeats = int(os.environ.get("PLANTED_REPEATS", REPEATS))
    for shape in shapes():
        graphs = [plant(shape, seed) for seed in range(repeats)]
        for epsilon in chosen("EPSILONS", EPSILONS):
            row: dict[str, Any] = {**shape._asdict(), "epsilon": epsilon}
            for blocks in CHOICES:
                runs = [measure(*graphs[i], epsilon, blocks, i) for i in range(repeats)]
                if blocks == "auto":
                    row["core"] = float(np.mean([run.core for run in runs]))
                if blocks != "no":
                    row[f"{blocks}: agreement"] = float(np.mean([run.agreement for run in runs]))
                row[f"{blocks}: degrees"] = float(np.mean([run.divergence for run in runs]))
            rows.append(row)
    print_table("Planted communities: what auto, a core and no core find", rows)
    tried = [row for row in rows if row["core"] > 0.5]
    found = [row for row in tried if row["auto: agreement"] >= WORTHWHILE]
    missed = [row for row in rows if row not in tried and row["core: agreement"] >= WORTHWHILE]
    dearer = [row["auto: degrees"] / row["no: degrees"] for row in tried]
    summary = {
        "cases": len(rows),
        "a core was looked for": len(tried),
        "and found": len(found),
        "would have been found": len(missed),
        "mean agreement then": np.mean([row["auto: agreement"] for row in found]) if found else 0.0,
        "degrees with a core / without": np.median(dearer) if dearer else 1.0,
    }
    print_table(f"Agreement of {WORTHWHILE} and more counts as found", [summary])


if __name__ == "__main__":
    main()
