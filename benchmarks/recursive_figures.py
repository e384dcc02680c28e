"""Figures 4 to 9 of the recursive mechanism's paper (Chen & Zhou, SIGMOD 2013), made again.

Run with ``python -m benchmarks.recursive_figures --out FOLDER [--full]``, and TULLE_DATA naming the
folder of real data sets. Each figure is printed as a table and drawn as a PNG into the folder. By
default graphs and relations are smaller and runs fewer than with ``--full``, for some minutes of
time.

As in the paper epsilon = 0.5, and the measure is the median of |answer - truth| / truth. Random
graphs have each edge with the same chance. Beside the recursive mechanism, per node and per edge,
stand race-to-the-top (its bound: what one unit could contribute in a graph of so many nodes),
smooth sensitivity (pure epsilon, where there is one), ladders and plain Laplace noise. The paper's
own parameters are shown as "the paper's settings".
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.core.mechanism import Mechanism, Terms
from tulle.core.query import Query
from tulle.core.registry import mechanisms
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.generators import erdos_renyi
from tulle.relations.annotations import Annotation, Participant, either, together
from tulle.relations.data import Relation
from tulle.relations.queries import total
from tulle.relations.truncation.mechanism import TruncationMechanism
from tulle.relations.truncation.totals import Truncation

EPSILON = 0.5
QUERIES: dict[str, Query] = {
    "triangles": tulle.triangles(),
    "2-stars": tulle.stars(2),
    "2-triangles": tulle.k_triangles(2),
}
REAL = ("netscience", "power", "1138_bus", "bcspwr10", "gemat12", "ca-GrQc", "ca-HepTh")
PAPER_SECONDS = {
    "netscience": (8.924, 19.188),
    "power": (0.468, 0.374),
    "1138_bus": (0.078, 0.063),
    "bcspwr10": (0.655, 0.406),
    "gemat12": (0.640, 0.483),
    "ca-GrQc": (3940.552, 54236.462),
    "ca-HepTh": (788.160, 2104.818),
}


class Scale:
    """How large everything is."""

    def __init__(self, full: bool) -> None:
        self.runs = 200 if full else 25
        self.graphs = 5 if full else 1
        self.nodes = (50, 100, 200, 400, 700, 1000) if full else (50, 100, 200)
        self.degrees = (2, 5, 10, 20, 40) if full else (5, 10, 20)
        self.fixed_nodes = 400 if full else 100
        self.clauses = (1, 2, 3, 4, 5) if full else (1, 2, 3)
        self.tuples = (250, 500, 1000, 2000) if full else (50, 100, 200)
        self.fixed_tuples = 1000 if full else 100


class Least(Scale):
    """As small as can be."""

    def __init__(self, full: bool) -> None:
        super().__init__(full)
        self.runs, self.nodes, self.degrees, self.fixed_nodes = 2, (30,), (5,), 30
        self.clauses, self.tuples, self.fixed_tuples = (2,), (20,), 20


def largest_contribution(query: Query, nodes: int, unit: str) -> int:
    """Return what one unit could contribute at most in any graph of so many nodes."""
    others = nodes - 1
    if unit == "node":
        return {
            "triangles": comb(others, 2),
            "stars": comb(others, 2) + others * (others - 1),
            "k_triangles": comb(others, 2) * nodes + others * comb(others, 2),
        }[query.name]
    return {
        "triangles": nodes - 2,
        "stars": 2 * (nodes - 2),
        "k_triangles": comb(nodes - 2, 2) + 2 * (nodes - 2) * (nodes - 3),
    }[query.name]


def paper_settings(reach: float) -> dict[str, Any]:
    return {"theta": 1.0, "beta": EPSILON / 5, "reach": reach, "selection_share": "1/2"}


def contestants(query: Query, nodes: int) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield (label, mechanism, unit, options)."""
    for unit in ("node", "edge"):
        yield f"recursive, {unit}", "recursive", unit, {}
        reach = float(np.exp(1.0 if unit == "node" else 0.5))
        yield f"the paper's settings, {unit}", "recursive", unit, paper_settings(reach)
        bound = {"bound": max(largest_contribution(query, nodes, unit), 2)}
        yield f"race, {unit}", "race", unit, bound
    for name in ("smooth_pure", "smoothed_ladder", "ladder", "laplace"):
        mechanism = mechanisms("graph").get(name)
        if mechanism is not None and mechanism.supports(query, Unit.of("edge")):
            yield f"{name}, edge", name, "edge", {}


class Remembered:
    """A truncation that answers the same question but once: what it answers is not random."""

    def __init__(self, honest: Truncation) -> None:
        self.honest = honest
        self.estimate, self.decide = honest.estimate, cache(honest.decide)
        self.value, self.ceiling = cache(honest.value), cache(honest.ceiling)


def repeat(
    mechanism: Mechanism,
    dataset: Any,
    query: Query,
    unit: str,
    options: dict[str, Any],
    runs: int,
    epsilon: float = EPSILON,
) -> tuple[list[float], float]:
    """Return the answers of many releases, and the seconds that the first took.

    Mechanisms on relations keep their relation and what they have certified between runs; noise is
    fresh every time.
    """
    begun = time.perf_counter()
    first = tulle.release(
        dataset, query, unit=unit, epsilon=epsilon, mechanism=mechanism.name, **options
    )
    seconds = time.perf_counter() - begun
    answers = [float(first.value)]
    if not isinstance(mechanism, TruncationMechanism):
        for _ in range(runs - 1):
            released = tulle.release(
                dataset, query, unit=unit, epsilon=epsilon, mechanism=mechanism.name, **options
            )
            answers.append(float(released.value))
        return answers, seconds
    who = dataset.check_unit(unit)
    terms = Terms(query, who, Fraction(epsilon), Fraction(0), dataset.facts(who))
    parts = [(sign, Remembered(part)) for sign, part in mechanism.parts(terms, dataset)]
    for _ in range(runs - 1):
        answers.append(float(mechanism.run_parts(query, first.parameters, parts, None).value))
    return answers, seconds


def error(answers: list[float], truth: float) -> float:
    return float(np.median(np.abs(np.array(answers) - truth)) / max(truth, 1.0))


def compare(
    query: Query, make: Callable[[int], Graph], scale: Scale, fixed: dict[str, Any]
) -> list[dict[str, Any]]:
    """Measure every contestant on several graphs."""
    found: dict[str, list[tuple[float, float]]] = {}
    truths = []
    for seed in range(scale.graphs):
        graph = make(seed)
        truth = float(query.truth(graph))
        truths.append(truth)
        for label, name, unit, options in contestants(query, graph.node_count):
            mechanism = mechanisms("graph")[name]
            answers, seconds = repeat(mechanism, graph, query, unit, options, scale.runs)
            found.setdefault(label, []).append((error(answers, truth), seconds))
    return [
        {
            **fixed,
            "truth": float(np.median(truths)),
            "mechanism": label,
            "median relative error": float(np.median([e for e, _ in cells])),
            "seconds": float(np.median([s for _, s in cells])),
        }
        for label, cells in found.items()
    ]


def random_graphs(scale: Scale) -> list[dict[str, Any]]:
    """Figures 4 and 5: random graphs, by their size and by their average degree."""
    rows = []
    for word, query in QUERIES.items():
        for nodes in scale.nodes:
            rows += compare(
                query,
                lambda seed, nodes=nodes: erdos_renyi(nodes, min(10 / (nodes - 1), 1.0), seed=seed),
                scale,
                {"question": word, "vary": "nodes", "at": nodes},
            )
        for degree in scale.degrees:
            nodes = scale.fixed_nodes
            rows += compare(
                query,
                lambda seed, nodes=nodes, degree=degree: erdos_renyi(
                    nodes, degree / (nodes - 1), seed=seed
                ),
                scale,
                {"question": word, "vary": "average degree", "at": degree},
            )
    return rows


def real_graphs(scale: Scale) -> list[dict[str, Any]]:
    """Figures 6 and 7: triangles of real graphs."""
    rows = []
    for name in REAL:
        path = find_data(name)
        if path is None:
            continue
        graph = Graph.read(path)
        one = Scale(False)
        one.graphs, one.runs = 1, scale.runs
        for row in compare(
            QUERIES["triangles"], lambda seed, graph=graph: graph, one, {"graph": name}
        ):
            unit = row["mechanism"].rsplit(" ", 1)[-1]
            then = PAPER_SECONDS[name][unit == "edge"]
            row["the paper, seconds"] = then if row["mechanism"].startswith("recursive") else "-"
            rows.append(row)
    return rows


def expression(generator: np.random.Generator, people: int, clauses: int, form: str) -> Annotation:
    """Return a random expression of clauses of three: a disjunction or conjunction of them."""
    inner, outer = (together, either) if form == "3-DNF" else (either, together)
    parts = []
    for _ in range(clauses):
        chosen = generator.choice(people, 3, replace=False)
        parts.append(inner(*(Participant(int(person)) for person in chosen)))
    return outer(*parts)


def relations(scale: Scale) -> list[dict[str, Any]]:
    """Figures 8 and 9: random 3-DNF and 3-CNF relations, by length and by size."""
    rows = []
    cells = [("clauses", c, scale.fixed_tuples, c) for c in scale.clauses]
    cells += [("tuples", n, n, 3) for n in scale.tuples]
    for form in ("3-DNF", "3-CNF"):
        for vary, at, tuples, clauses in cells:
            generator = np.random.Generator(np.random.PCG64(tuples * 10 + clauses))
            notes = [expression(generator, tuples, clauses, form) for _ in range(tuples)]
            relation = Relation.from_annotations([(note, 1.0) for note in notes])
            shared = [0] * tuples
            for note in notes:
                for person in note.participants():
                    shared[int(person)] += 1
            fixed = {"form": form, "vary": vary, "at": at, "truth": float(tuples)}
            for label, name, options in (
                ("recursive", "recursive", {}),
                ("the paper's settings", "recursive", paper_settings(float(np.exp(0.5)))),
                ("race", "race", {"bound": tuples}),
            ):  # fmt: skip
                mechanism = mechanisms("relation")[name]
                answers, seconds = repeat(
                    mechanism, relation, total(), "participant", options, scale.runs
                )
                rows.append({**fixed, "mechanism": label, "seconds": seconds,
                             "median relative error": error(answers, tuples)})  # fmt: skip
            # The paper's dotted line: as much error as the most that one participant is in.
            rows.append({**fixed, "mechanism": "largest share / epsilon", "seconds": 0.0,
                         "median relative error": max(shared) / EPSILON / tuples})  # fmt: skip
    return rows


def draw(
    rows: list[dict[str, Any]], panel: list[str], along: str, value: str, path: Path, title: str
) -> None:
    """Draw one panel for each setting of the columns in ``panel``, one line per mechanism."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    settings = list(dict.fromkeys(tuple(row[name] for name in panel) for row in rows))
    across = min(len(settings), 3)
    down = -(-len(settings) // across)
    figure, axes = pyplot.subplots(
        down, across, figsize=(4.6 * across, 3.6 * down), squeeze=False, layout="constrained"
    )
    for axis, setting in zip(axes.flat, settings, strict=False):
        chosen = [row for row in rows if tuple(row[name] for name in panel) == setting]
        for label in dict.fromkeys(row["mechanism"] for row in chosen):
            line = [row for row in chosen if row["mechanism"] == label and row[value] > 0]
            if not line:
                continue
            style = "--" if label.endswith("edge") else ":" if "largest" in label else "-"
            axis.plot(
                [str(row[along]) for row in line],
                [row[value] for row in line],
                style,
                marker="o",
                markersize=4,
                label=label,
            )
        axis.set_yscale("log")
        axis.set_title(", ".join(map(str, setting)), fontsize=10)
        axis.set_ylabel(value)
        axis.tick_params(axis="x", rotation=30 if along == "graph" else 0)
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(settings) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


MINUTE: dict[str, Any] = {
    "Scale": Least,
    "QUERIES": {"triangles": tulle.triangles()},
    "REAL": ("netscience",),
}
"""What is smaller in the minute's version."""


def main() -> None:
    reader = argparse.ArgumentParser(description="The recursive mechanism's figures.")
    reader.add_argument("--out", type=Path, help="the folder for the PNG files")
    reader.add_argument("--full", action="store_true", help="everything, for some hours")
    asked, _ = reader.parse_known_args()
    scale = Scale(asked.full)
    small = erdos_renyi(30, 0.3, seed=1)
    for query in QUERIES.values():
        compare(query, lambda seed: small, Scale(False), {})
    parts = (
        ("figures 4 and 5, random graphs", random_graphs, ["question", "vary"], "at", "4", "5"),
        ("figures 7 and 6, real graphs", real_graphs, [], "graph", "7", "6"),
        ("figures 8 and 9, random relations", relations, ["form", "vary"], "at", "8_9", "8_9_time"),
    )
    for title, measure, panel, along, first, second in parts:
        rows = measure(scale)
        print_table(f"{title}, epsilon = {EPSILON}", rows)
        if asked.out is not None and rows:
            asked.out.mkdir(parents=True, exist_ok=True)
            for value, number in (("median relative error", first), ("seconds", second)):
                path = asked.out / f"recursive_figure_{number}.png"
                draw(rows, panel, along, value, path, f"{title}: {value}")
                print(f"Drawn: {path}")


if __name__ == "__main__":
    main()
