"""Randomized response against Laplace-and-round and against a trusted custodian, equal epsilon.

Run it with ``python -m benchmarks surveys``. Tables remake figures 17 to 22 of Wang, Wu & Hu 2014
(chapter 7) on a synthetic cholesterol table of the same shape and, with TULLE_DATA set, on three
networks. With TULLE_FIGURES set to a folder, pictures are drawn as well.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from baselines.laplace_and_round import laplace_and_round

import tulle
from benchmarks.common import find_data, print_table
from tulle import noise
from tulle.surveys import (
    Collection,
    LinkForm,
    LinkReports,
    RandomizedResponse,
    Survey,
    perturb,
    perturb_links,
)

EPSILONS = (0.5, 1.0, 2.0, 5.0, 8.0)
LINK_EPSILONS = (1.0, 2.0, 5.0, 8.0)
RUNS = 200
COVERAGE_RUNS = 3000
FEWER = 1
"""Responses are timed on so many times fewer."""
NETWORKS = {"polbooks": 20, "email-Eu-core": 5, "facebook_combined": 2}
RESPONDENTS = 248
SURVEY = Survey({"LDL": 6, "TC": 3}, name="cholesterol")
DESIGNS = {"RR": "randomized response", "LM": "laplace and round"}

Table = dict[str, Any]


def cholesterol() -> dict[str, Any]:
    """Make 248 people with an LDL level of six and a total cholesterol level of three."""
    generator = np.random.default_rng(248)
    ldl = generator.normal(118, 32, RESPONDENTS)
    total = 75 + ldl + generator.normal(12, 18, RESPONDENTS)
    return {
        "LDL": np.digitize(ldl, [70, 100, 130, 160, 190]),
        "TC": np.digitize(total, [200, 240]),
    }


# --- the table of people ------------------------------------------------------------------------


def collected(people: Table, design: str, epsilon: dict[str, float]) -> Collection:
    """Return what a collector sees when everyone perturbs with this design."""
    survey = Survey({name: SURVEY[name].size for name in epsilon})
    form = survey.form(epsilon=epsilon, designs=dict.fromkeys(epsilon, design))
    collection = Collection(form)
    collection.add(perturb(form, {name: people[name] for name in epsilon}))
    return collection


def central_counts(counts: Any, epsilon: float) -> Any:
    """Return a custodian's histogram: one replaced person moves two counts by one each."""
    return counts + noise.discrete_laplace(scale=2 / epsilon, size=counts.shape)


def on_simplex(counts: Any) -> Any:
    inside = np.maximum(counts, 0.25)
    return inside / inside.sum()


def entropy(shares: Any) -> float:
    used = shares[shares > 0]
    return float(-(used * np.log2(used)).sum())


def chi_square(shares: Any, n: int) -> float:
    product = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    used = product > 0
    return float(n * ((shares[used] ** 2 / product[used]).sum() - 1))


def figure_17(people: Table) -> list[Table]:
    """The estimated distribution of the LDL levels at epsilon = 5, with standard errors."""
    truth = np.bincount(people["LDL"], minlength=6) / RESPONDENTS
    made = {
        label: collected(people, name, {"LDL": 5.0}).proportions("LDL", target="population")
        for label, name in DESIGNS.items()
    }
    rows = []
    for level in range(6):
        row: Table = {"level": level + 1, "truth": float(truth[level])}
        for label, release in made.items():
            row[label] = float(release.value[level])
            row[f"{label} error"] = float(release.error.sigmas[level])  # type: ignore[union-attr]
        rows.append(row)
    return rows


def figure_18(people: Table) -> list[Table]:
    """Mean squared error of the six shares against epsilon."""
    counts = np.bincount(people["LDL"], minlength=6)
    truth = counts / RESPONDENTS
    rows = []
    for epsilon in EPSILONS:
        row: Table = {"epsilon": epsilon}
        for label, name in DESIGNS.items():
            errors = [
                collected(people, name, {"LDL": epsilon}).proportions("LDL").value - truth
                for _ in range(RUNS)
            ]
            row[label] = float(np.mean(np.square(errors)))
        likely = [
            collected(people, DESIGNS["RR"], {"LDL": epsilon})
            .proportions("LDL", method="likelihood")
            .value
            - truth
            for _ in range(RUNS)
        ]
        row["RR likelihood"] = float(np.mean(np.square(likely)))
        central = [central_counts(counts, epsilon) / RESPONDENTS - truth for _ in range(RUNS)]
        row["custodian"] = float(np.mean(np.square(central)))
        row["LM / RR"] = row["LM"] / row["RR"]
        rows.append(row)
    return rows


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.4g} ± {np.std(values):.2g}"


def figure_19(people: Table) -> list[Table]:
    """The estimated entropy of LDL against epsilon: mean and standard deviation."""
    counts = np.bincount(people["LDL"], minlength=6)
    rows = []
    for epsilon in EPSILONS:
        row: Table = {"epsilon": epsilon, "truth": entropy(counts / RESPONDENTS)}
        for label, name in DESIGNS.items():
            row[label] = spread(
                [
                    collected(people, name, {"LDL": epsilon}).entropy("LDL").value
                    for _ in range(RUNS)
                ]
            )
        row["custodian"] = spread(
            [entropy(on_simplex(central_counts(counts, epsilon))) for _ in range(RUNS)]
        )
        rows.append(row)
    return rows


def figure_20(people: Table) -> list[Table]:
    """The estimated chi-square statistic of LDL and TC; epsilon is the total for both."""
    counts = np.zeros((6, 3), dtype=np.int64)
    np.add.at(counts, (people["LDL"], people["TC"]), 1)
    rows = []
    for epsilon in EPSILONS:
        half = {"LDL": epsilon / 2, "TC": epsilon / 2}
        row: Table = {"epsilon": epsilon, "truth": chi_square(counts / RESPONDENTS, RESPONDENTS)}
        for label, name in DESIGNS.items():
            row[label] = spread(
                [
                    collected(people, name, half).chi_square("LDL", "TC").value
                    for _ in range(RUNS // 10)
                ]
            )
        row["custodian"] = spread(
            [
                chi_square(on_simplex(central_counts(counts, epsilon)), RESPONDENTS)
                for _ in range(RUNS)
            ]
        )
        rows.append(row)
    return rows


# --- networks -----------------------------------------------------------------------------------


def triangles_by_node(nodes: int, edges: Any) -> Any:
    ones = np.ones(len(edges), dtype=np.int64)
    upper = scipy.sparse.csr_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
    matrix = upper + upper.T
    return np.asarray((matrix @ matrix).multiply(matrix).sum(axis=1)).ravel() // 2


def laplace_links(nodes: int, epsilon: float) -> LinkForm:
    """Return the form whose flips are those of Laplace-and-round on one bit."""
    rounded = laplace_and_round(2, epsilon=epsilon)
    flip = rounded.probability(1, 0)
    return LinkForm(nodes, RandomizedResponse(2, flip, Fraction(epsilon)))


def entrywise(estimate: Any, truth: Any) -> float:
    return float(np.mean(np.abs(estimate - truth)))


def measure_links(name: str, runs: int) -> tuple[list[Table], list[Table]] | None:
    """Figures 21 and 22: mean error of an entry of the degree and of the triangle sequence."""
    path = find_data(name)
    if path is None:
        return None
    graph = tulle.Graph.read(path)
    nodes, edges = graph.node_count, np.asarray(graph.edges())
    degrees = np.bincount(edges.ravel(), minlength=nodes)
    triangles = triangles_by_node(nodes, edges)
    ordered = np.sort(degrees)[::-1]
    first, second = [], []
    for epsilon in LINK_EPSILONS:
        forms = {"RR": LinkForm.of(nodes, epsilon=epsilon), "LM": laplace_links(nodes, epsilon)}
        found: dict[str, list[tuple[float, float]]] = {}
        for label, form in forms.items():
            for _ in range(runs):
                reports: LinkReports = perturb_links(form, edges)
                rebuilt = reports.graph().value
                found.setdefault(f"{label} graph", []).append(
                    (
                        entrywise(np.bincount(rebuilt.ravel(), minlength=nodes), degrees),
                        entrywise(triangles_by_node(nodes, rebuilt), triangles),
                    )
                )
                found.setdefault(f"{label} unbiased", []).append(
                    (
                        entrywise(reports.degrees().value, degrees),
                        entrywise(reports.triangles_by_node().value, triangles),
                    )
                )
        columns = {label: np.mean(pairs, axis=0) for label, pairs in found.items()}
        row: Table = {"network": name, "epsilon": epsilon}
        flat = noise.discrete_laplace(scale=2 / epsilon, size=nodes)
        best = tulle.release(graph, tulle.degrees(), unit="edge", epsilon=epsilon).value
        first.append(
            row
            | {label: float(pair[0]) for label, pair in columns.items()}
            | {
                "LM-global": entrywise(flat, 0),
                # The custodian's release is the sorted sequence: who has which degree is not in it.
                "custodian, sorted": entrywise(best, ordered),
            }
        )
        # One edge is in at most n - 2 triangles, each of which counts at three nodes.
        wide = noise.discrete_laplace(scale=3 * (nodes - 2) / epsilon, size=nodes)
        second.append(
            row
            | {label: float(pair[1]) for label, pair in columns.items()}
            | {"LM-global": entrywise(wide, 0), "mean entry": float(np.mean(triangles))}
        )
    return first, second


def measure_totals(name: str) -> list[Table]:
    """One number, the triangles of the network: reports against a custodian."""
    path = find_data(name)
    if path is None:
        return []
    graph = tulle.Graph.read(path)
    nodes, edges = graph.node_count, np.asarray(graph.edges())
    truth = int(triangles_by_node(nodes, edges).sum()) // 3
    rows = []
    for epsilon in LINK_EPSILONS:
        made = perturb_links(LinkForm.of(nodes, epsilon=epsilon), edges).triangles()
        best = tulle.release(graph, tulle.triangles(), unit="edge", epsilon=epsilon)
        sigma = made.error.sigmas[0]  # type: ignore[union-attr]
        rows.append(
            {
                "network": name,
                "epsilon": epsilon,
                "triangles": truth,
                "RR unbiased": f"{made.value:.0f} ± {sigma:.2g}",
                "custodian": best.value,
                "RR error %": 100 * abs(made.value - truth) / truth,
                "custodian error %": 100 * abs(best.value - truth) / truth,
            }
        )
    return rows


def shapes() -> dict[str, tuple[int, Any]]:
    """Return numbers of nodes and edges of graphs on which intervals are hard to get."""
    generator = np.random.default_rng(1)
    hubs = [(hub, node) for hub in (0, 1) for node in range(2, 120)]
    return {
        "no links": (60, np.empty((0, 2), dtype=np.int64)),
        "30 couples": (60, np.arange(60).reshape(-1, 2)),
        "star of 60": (60, np.array([(0, node) for node in range(1, 60)])),
        "two hubs of 118": (120, np.array(hubs)),
        "clique of 30": (30, np.argwhere(np.triu(np.ones((30, 30)), 1))),
        "half of all pairs": (100, np.argwhere(np.triu(generator.random((100, 100)) < 0.5, 1))),
    }


def measure_coverage(runs: int) -> list[Table]:
    """How often 95 % intervals of two-stars and triangles of reported links hold the truth."""
    rows = []
    cases = shapes()
    if (path := find_data("polbooks")) is not None:
        graph = tulle.Graph.read(path)
        cases["polbooks"] = graph.node_count, np.asarray(graph.edges())
    for name, (nodes, edges) in cases.items():
        degrees = np.bincount(edges.ravel(), minlength=nodes)
        truth = {
            "two_stars": int((degrees * (degrees - 1) // 2).sum()),
            "triangles": int(triangles_by_node(nodes, edges).sum()) // 3,
        }
        for epsilon in EPSILONS:
            form, held = LinkForm.of(nodes, epsilon=epsilon), dict.fromkeys(truth, 0)
            for _ in range(runs):
                reports = perturb_links(form, edges)
                for count, true in truth.items():
                    low, high = getattr(reports, count)().interval(0.95)
                    held[count] += low <= true <= high
            shares = {count: hits / runs for count, hits in held.items()}
            rows.append({"links": name, "epsilon": epsilon, **shares})
    return rows


# --- speed --------------------------------------------------------------------------------------


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def speed() -> list[Table]:
    """Seconds to perturb and estimate on one core; 10**8 responses come in portions of 10**6."""
    generator = np.random.default_rng(1)
    cases: list[tuple[str, int, int, dict[str, str]]] = [
        ("randomized response, streamed", 6, 10**8, {}),
        ("randomized response", 6, 10**7, {}),
        ("laplace and round", 6, 10**7, {"a": "laplace and round"}),
        ("local hashing", 10**5, 10**7, {"a": "local hashing"}),
        ("unary encoding", 100, 10**6, {"a": "unary encoding"}),
    ]
    rows = []
    for label, size, many, designs in cases:
        responses = many // FEWER
        form = Survey({"a": size}).form(epsilon=1, designs=designs)
        portion = min(responses, 10**6 if responses > 10**7 else responses)
        codes = {"a": generator.integers(0, size, portion)}
        perturb(form, {"a": codes["a"][:1000]})  # compile, and prepare the tables
        collection = Collection(form)

        def work(
            form: Any = form, codes: Any = codes, kept: Collection = collection, n: int = responses
        ) -> None:
            while kept.responses < n:
                kept.add(perturb(form, codes))
            kept.proportions("a")

        seconds = timed(work)
        rows.append(
            {
                "design": label,
                "categories": size,
                "responses": f"{responses:,}",
                "seconds": seconds,
                "million/s": responses / seconds / 1e6,
                "peak memory MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    return rows


def draw(title: str, rows: list[Table]) -> None:
    """Save a picture of all numeric columns against epsilon, if a folder was named."""
    folder = os.environ.get("TULLE_FIGURES")
    if not folder or not rows or "epsilon" not in rows[0]:
        return
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(figsize=(6, 4))
    x = [row["epsilon"] for row in rows]
    for name, value in rows[0].items():
        if name != "epsilon" and isinstance(value, float):
            axes.plot(x, [row[name] for row in rows], marker="o", label=name)
    axes.set(xlabel="epsilon", yscale="log", title=title)
    axes.legend()
    Path(folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(folder, title.split(":")[0].replace(" ", "_") + ".png"), dpi=150)
    plt.close(figure)


def show(title: str, rows: list[Table]) -> None:
    print_table(title, rows)
    draw(title, rows)


MINUTE: dict[str, Any] = {
    "EPSILONS": (1.0,),
    "LINK_EPSILONS": (1.0,),
    "RUNS": 10,
    "COVERAGE_RUNS": 3,
    "NETWORKS": {"polbooks": 1},
    "FEWER": 10**4,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print all tables, and say whether the bars are met."""
    # First: the peak of memory is that of the whole process so far.
    rows = speed()
    show("speed on one core", rows)
    met = rows[1]["seconds"] <= 5
    print(f"bar (10^7 responses perturbed and estimated in 5 s): {'met' if met else 'MISSED'}")
    people = cholesterol()
    show("figure 17: shares of LDL levels at epsilon = 5", figure_17(people))
    show("figure 18: mean squared error of the shares", figure_18(people))
    show("figure 19: entropy of LDL", figure_19(people))
    show("figure 20: chi-square of LDL and TC, epsilon split in two", figure_20(people))
    print_table("coverage of 95 % intervals of counts of links", measure_coverage(COVERAGE_RUNS))
    for name, runs in NETWORKS.items():
        found = measure_links(name, runs)
        if found is None:
            print(f"{name}: not measured (set TULLE_DATA to the folder of networks)")
            continue
        show(f"figure 21 {name}: mean error of a degree", found[0])
        show(f"figure 22 {name}: mean error of a node's triangles", found[1])
        show(f"total {name}: triangles", measure_totals(name))


if __name__ == "__main__":
    main()
