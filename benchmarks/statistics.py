"""Statistics by divide and conquer: routes, splits of the budget, and what a budget means.

Every error is a mean absolute error under one edge-private budget unless a column says otherwise:
for quotients of parts over the exact laws of their noise on that graph, laid out evenly; for the
others over many draws, from seeded noise. Writes what ``docs/statistics.md`` shows; after it,
``python docs/figures.py`` draws the picture.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.core.expression_error import predict_error
from tulle.core.plan import Plan
from tulle.core.registry import mechanisms
from tulle.core.validate import rational
from tulle.graphs.generators import erdos_renyi, watts_strogatz
from tulle.graphs.mechanisms.ladder import draw_ladder
from tulle.graphs.mechanisms.projection import on_grid
from tulle.graphs.mechanisms.smooth import smooth_bound
from tulle.graphs.mechanisms.statistic_ladder import measure_widths
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource, discrete_laplace

RUNS = 100
VECTOR_RUNS = 3
CORNER_RUNS = 40
EPSILON = 1.0
DELTA = 0.01
"""The dissertation's delta, for comparison with its tables."""
RESULTS = Path(__file__).parents[1] / "docs" / "results" / "statistics.json"


def attachment(nodes: int, start: int, links: int, seed: int) -> tulle.Graph:
    """Return a graph grown from a clique of ``start`` nodes by preferential attachment."""
    random = np.random.Generator(np.random.PCG64(seed))
    pairs = list(combinations(range(start), 2))
    ends = [end for pair in pairs for end in pair]
    for node in range(start, nodes):
        picked: set[int] = set()
        while len(picked) < links:
            picked.add(ends[int(random.integers(len(ends)))])
        pairs += [(other, node) for other in picked]
        ends += [end for other in picked for end in (other, node)]
    return tulle.Graph.from_edges(np.array(pairs), nodes=nodes)


Maker = Callable[[int], tulle.Graph]

MODELS: dict[str, Maker] = {
    "ER1": lambda seed: erdos_renyi(1000, 0.05, seed=seed),
    "ER2": lambda seed: erdos_renyi(1000, 0.1, seed=seed),
    "ER3": lambda seed: erdos_renyi(1000, 0.5, seed=seed),
    "WS1": lambda seed: watts_strogatz(1000, 50, 0.7, seed=seed),
    "WS2": lambda seed: watts_strogatz(1000, 50, 0.5, seed=seed),
    "WS3": lambda seed: watts_strogatz(1000, 50, 0.2, seed=seed),
    "WS4": lambda seed: watts_strogatz(1000, 100, 0.2, seed=seed),
    "WS5": lambda seed: watts_strogatz(1000, 500, 0.2, seed=seed),
    "BA1": lambda seed: attachment(1000, 50, 25, seed),
    "BA2": lambda seed: attachment(1000, 100, 50, seed),
    "BA3": lambda seed: attachment(1000, 500, 250, seed),
    "BA4": lambda seed: attachment(1000, 10, 5, seed),
    "BA5": lambda seed: attachment(1000, 50, 5, seed),
    "BA6": lambda seed: attachment(1000, 100, 5, seed),
    "BA7": lambda seed: attachment(1000, 500, 5, seed),
}
"""The generated graphs of the dissertation's Table 4."""

REAL = ("ca-GrQc", "polbooks", "polblogs")

# Tables 6 and 7 of the dissertation at its epsilon = 1 and delta = 0.01, which is n as a budget:
# direct, and divide and conquer with degrees.
PRINTED = {
    "ca-GrQc": (0.0118, 0.0145),
    "polbooks": (0.1492, 0.0438),
    "polblogs": (0.1392, 0.0336),
    "ER1": (0.0438, 4.08e-5),
    "WS3": (0.0424, 1.55e-4),
    "BA1": (0.0754, 4.26e-4),
    "BA4": (0.0094, 5.51e-4),
}


def graphs() -> Iterator[tuple[str, tulle.Graph, tulle.Graph | None]]:
    """Yield each graph with a public one of its kind; real graphs have none."""
    for name in REAL:
        graph = read(name)
        if graph is not None:
            yield name, graph, None
    for name, make in MODELS.items():
        yield name, make(1), make(2)


def read(name: str) -> tulle.Graph | None:
    """Return a real graph, isolated nodes left out as in the dissertation."""
    path = find_data(name)
    if path is None:
        print(f"{name} is not below TULLE_DATA", file=sys.stderr)
        return None
    return tulle.Graph.from_edges(np.loadtxt(path, dtype=np.int64))


def hub(graph: tulle.Graph) -> int:
    """Return the label of the node with the most neighbours."""
    return int(graph.labels[int(np.argmax(np.diff(graph.csr()[0])))])


def error_of_parts(query: Any, plan: Plan, graph: tulle.Graph) -> float:
    """Return the mean error of a statistic put together from its parts, by their exact laws."""
    leaves = {str(part.query): part for part in plan.parts}
    values = {name: float(part.query.truth(graph)) for name, part in leaves.items()}
    laws = {}
    for name, part in leaves.items():
        offer = part.chosen
        law = mechanisms("graph")[offer.mechanism].predict(offer.terms, offer.settings, graph)
        assert law.typical is not None
        laws[name] = law.typical
    tree = query.decomposition().tree()
    return float(np.mean(predict_error(tree, values, laws, query.limits()).sizes))


def error_of_direct(query: Any, graph: tulle.Graph, like: Any, epsilon: float) -> float:
    """Return the mean error of a statistic released as a whole."""
    plan = plan_for(
        graph, query, unit="edge", epsilon=epsilon, mechanism="statistic_ladder", like=like or graph
    )
    settings = plan.chosen.settings
    units, decay = int(settings["units"]), rational(settings["decay"])
    widths, _ = measure_widths(query, graph, settings)
    source, middle = SeededSource(1), rational(settings["middle"])
    ladder = widths, query.cap(units), decay, source, middle
    noise = np.array([float(draw_ladder(*ladder)) for _ in range(RUNS)])
    low, high = query.limits()
    drawn = np.clip((query.position(graph, units) + noise) / units, low, high)
    return float(np.abs(drawn - query.truth(graph)).mean())


def equal_plan(query: Any, graph: tulle.Graph, epsilon: float, like: Any) -> Any:
    """Return a plan's parts at equal shares of the budget."""
    leaves = query.decomposition().parts()
    share = Fraction(repr(epsilon)) / len(leaves)
    plan = plan_for(graph, query, unit="edge", epsilon=epsilon, mechanism="decomposed", like=like)
    parts = tuple(plan_for(graph, leaf, unit="edge", epsilon=share, like=like) for leaf in leaves)
    return replace(plan, parts=parts)


def splits(epsilon: float) -> list[dict[str, Any]]:
    """Compare the chosen division of the budget with the equal one."""
    rows = []
    for name, graph, kin in graphs():
        for query in (tulle.transitivity(), tulle.clustering(hub(graph)), tulle.assortativity()):
            asked = {"unit": "edge", "epsilon": epsilon, "mechanism": "decomposed"}
            chosen = plan_for(graph, query, like=kin, **asked)
            equal = equal_plan(query, graph, epsilon, kin)
            before = error_of_parts(query, equal, graph)
            after = error_of_parts(query, chosen, graph)
            own = error_of_parts(query, plan_for(graph, query, like=graph, **asked), graph)
            shares = chosen.chosen.plan.shares if chosen.chosen.plan else ()
            rows.append(
                {
                    "graph": name,
                    "statistic": query.name,
                    "shares": " ".join(f"{float(share):.2f}" for share in shares),
                    "equal": before,
                    "chosen": after,
                    "equal / chosen": before / max(after, 1e-12),
                    "equal / best known": before / max(own, 1e-12),
                }
            )
    return rows


def routes(epsilon: float) -> list[dict[str, Any]]:
    """Compare noise on a statistic with noise on its parts."""
    rows = []
    for name, graph, kin in graphs():
        partition = [place % 2 for place in range(graph.node_count)]
        for query in (
            tulle.transitivity(),
            tulle.average_clustering(),
            tulle.clustering(hub(graph)),
            tulle.assortativity(),
            tulle.modularity(partition),
        ):
            direct = error_of_direct(query, graph, kin, epsilon)
            parts: float | None = None
            if query.decomposition() is not None:
                plan = plan_for(
                    graph,
                    query,
                    unit="edge",
                    epsilon=epsilon,
                    mechanism="decomposed",
                    like=kin or graph,
                )
                parts = error_of_parts(query, plan, graph)
            rows.append(
                {
                    "graph": name,
                    "statistic": query.name,
                    "truth": query.truth(graph),
                    "direct": direct,
                    "decomposed": parts,
                }
            )
    return rows


def nodes() -> list[dict[str, Any]]:
    """Compare the routes to one node's coefficient, for nodes with many and with few neighbours.

    Beside them heavy-tailed noise on a smooth bound of the same local sensitivities: its whole
    budget goes to the noise, where ``statistic_ladder`` spends a sixth on its interval.
    """
    rows = []
    for name in (*REAL, "facebook_combined", "netscience"):
        graph = read(name)
        if graph is None:
            continue
        degrees = np.diff(graph.csr()[0])
        order = np.argsort(-degrees)
        for place in (order[0], order[len(order) // 50], order[len(order) // 10]):
            query = tulle.clustering(int(graph.labels[place]))
            for epsilon in (1.0, 10.0):
                asked = {"unit": "edge", "epsilon": epsilon}
                parts = plan_for(graph, query, mechanism="decomposed", like=graph, **asked)
                rows.append(
                    {
                        "graph": name,
                        "degree": int(degrees[place]),
                        "truth": query.truth(graph),
                        "epsilon": epsilon,
                        "direct": error_of_direct(query, graph, None, epsilon),
                        "decomposed": error_of_parts(query, parts, graph),
                        "smooth": error_of_smooth(query, graph, Fraction(epsilon)),
                        "the plan takes": plan_for(graph, query, **asked).mechanism,
                    }
                )
    return rows


def error_of_smooth(query: Any, graph: tulle.Graph, epsilon: Fraction) -> float:
    """Return the mean error of heavy-tailed noise on the smooth sensitivity of a statistic."""
    alpha, beta = mechanisms("graph")["smooth_pure"].rates(epsilon, Fraction(0))
    units = 2**40
    length = math.ceil(40 / float(beta))
    bound = smooth_bound(query.profile(graph, units, length), query.cap(units), beta)
    # The mean of |z| under the density 1/(1 + z^4) is 1/sqrt(2).
    return float(bound / alpha) / math.sqrt(2) / units


def corners() -> list[dict[str, Any]]:
    """Measure triangles of each node, before and after what noise alone could make is dropped."""
    rows = []
    for name in (*REAL, "facebook_combined", "netscience"):
        graph = read(name)
        if graph is None:
            continue
        query = tulle.triangles_per_node()
        truth = query.truth(graph)
        bound = mechanisms("graph")["private_bound"]
        for epsilon in (0.5, 2.0, 10.0):
            asked: dict[str, Any] = {"unit": "edge", "epsilon": epsilon, "delta": 1e-6}
            plan = plan_for(graph, query, mechanism="private_bound", **asked)
            source, kept, noisy = SeededSource(1), [], []
            for _ in range(CORNER_RUNS):
                found = bound.run(plan.chosen.terms, plan.chosen.settings, graph, source)
                kept.append(np.abs(found.value - truth).mean())
                noise = discrete_laplace(scale=found.error.scale(), size=truth.shape, source=source)
                noisy.append(np.abs(np.maximum(truth + noise, 0) - truth).mean())
            rows.append(
                {
                    "graph": name,
                    "epsilon": epsilon,
                    "all zeros": float(truth.mean()),
                    "noise": float(np.mean(noisy)),
                    "released": float(np.mean(kept)),
                }
            )
    return rows


def vectors() -> list[dict[str, Any]]:
    """Show the coefficients of all nodes under one budget, and under n times as much.

    The dissertation's tables call epsilon what is a budget of n·epsilon: every entry gets one.
    """
    rows = []
    for name, graph, kin in graphs():
        if name not in PRINTED:
            continue
        truth = tulle.clustering().truth(graph)
        constant = float(np.abs(truth - truth.mean()).mean())
        for epsilon in (0.01, 0.1, 1.0):
            row: dict[str, Any] = {"graph": name, "epsilon": epsilon}
            for label, budget in (
                ("one budget", epsilon),
                ("n budgets", epsilon * graph.node_count),
            ):
                for route in ("private_bound", "decomposed"):
                    row[f"{label}: {route}"] = _vector_error(graph, route, budget, kin, truth)
            printed = PRINTED[name] if epsilon == 1.0 else ("", "")
            row |= {
                "constant guess": constant,
                "printed direct": printed[0],
                "printed parts": printed[1],
            }
            rows.append(row)
    return rows


def _vector_error(
    graph: tulle.Graph, route: str, epsilon: float, like: Any, truth: np.ndarray
) -> float:
    asked: dict[str, Any] = {"unit": "edge", "epsilon": epsilon, "delta": DELTA, "like": like}
    plan = plan_for(graph, tulle.clustering(), mechanism=route, **asked)
    offer, one = plan.chosen, mechanisms("graph")[route]
    source = SeededSource(1)
    drawn = [one.run(offer.terms, offer.settings, graph, source).value for _ in range(VECTOR_RUNS)]
    return float(np.mean([np.abs(value - truth).mean() for value in drawn]))


def per_node() -> list[dict[str, Any]]:
    """Measure degree distributions that protect whole nodes."""
    rows = []
    for name in (*REAL, "facebook_combined"):
        graph = read(name)
        if graph is None:
            continue
        truth = on_grid(graph, 1000)
        for epsilon in (0.5, 1.0, 2.0):
            distances, bounds = [], []
            for seed in range(10):
                answer = tulle.release(
                    graph,
                    tulle.degree_distribution(),
                    unit="node",
                    epsilon=epsilon,
                    source=SeededSource(seed),
                )
                share = answer.value / max(int(answer.value.sum()), 1)
                gap = np.abs(np.cumsum(share) - np.cumsum(truth) / truth.sum())
                distances.append(float(gap.max()))
                bounds.append(int(answer.parameters["bound"]))
            rows.append(
                {
                    "graph": name,
                    "epsilon": epsilon,
                    "bound (median)": int(np.median(bounds)),
                    "largest degree": int(np.flatnonzero(truth)[-1]),
                    "Kolmogorov-Smirnov distance": float(np.mean(distances)),
                }
            )
    return rows


SECTIONS: dict[str, tuple[str, Callable[[], list[dict[str, Any]]]]] = {
    "splits": ("Split of the budget, mean absolute error", lambda: splits(EPSILON)),
    "routes": ("Routes, mean absolute error", lambda: routes(EPSILON)),
    "nodes": ("One node's coefficient, mean absolute error", nodes),
    "corners": ("Triangles of each node, delta = 1e-6, error per node", corners),
    "vectors": (f"All clustering coefficients, delta = {DELTA}, error per node", vectors),
    "per_node": ("Degree distribution per node", per_node),
}


MINUTE: dict[str, Any] = {
    "RUNS": 3,
    "VECTOR_RUNS": 1,
    "CORNER_RUNS": 1,
    "MODELS": {"ER1": lambda seed: erdos_renyi(60, 0.1, seed=seed)},
    "REAL": ("polbooks",),
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Measure the sections, print them, and write each down when it is done.

    All of them, unless ``STATISTICS_SECTIONS`` names some; the others are kept as they were.
    """
    results: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "runs": RUNS}
    if RESULTS.exists():
        results = {**json.loads(RESULTS.read_text(encoding="utf-8")), **results}
    for name in os.environ.get("STATISTICS_SECTIONS", ",".join(SECTIONS)).split(","):
        title, measure = SECTIONS[name]
        results[name] = measure()
        print_table(f"{title}, epsilon = {EPSILON}", results[name])
        RESULTS.write_text(json.dumps(rounded(results), indent=1) + "\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """Return results with numbers to four digits: more would only be noise."""
    if isinstance(value, dict):
        return {name: rounded(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
