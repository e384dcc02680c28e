"""The packing LP and the deletion decisions on triangles of real graphs, next to plain HiGHS.

Run with ``python -m benchmarks.packing [graph ...]`` and TULLE_DATA naming the folder of real data
sets; ``--growth`` gives only the table of how time grows (made-up networks where there is no data).

*Growth.* The whole recursive mechanism under node privacy, from the graph to the release with the
default settings, over graphs of growing size; its two LP parts, choosing the threshold and
truncating, next to plain HiGHS on the LPs as written, without reductions: the deletion LP at the
threshold found, and the packing LP at that threshold (where it is at its hardest). HiGHS has a time
limit; where it runs into it the ratio is a lower bound, marked ">", and where the LP is too large
to try it is "-".

*Trees.* The whole release of a total over and/or trees, each a conjunction of clauses of three
participants, by the number of clauses: as they are written, and with the numbers of their
disjunctive normal form (the default). ``--trees`` gives only this table.

*Thresholds.* Every threshold tau = 2^k up to the largest load is solved to an absolute gap of
tau / 100, and again at some thresholds by HiGHS (simplex, presolve on, the LP as written, no
reductions) in the same run. The deletion rows are the whole search for the least j with
D(e^(j beta) / 2) <= j + eta, beta = 0.1. All kernels are compiled beforehand.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network
from tulle.graphs.truncation.relation import relation_of
from tulle.lp import DeletionOracle, PackingProblem, solve
from tulle.relations.annotations import Participant, either, together
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.queries import total
from tulle.relations.truncation.totals import least_level, truncate

GRAPHS = ("netscience", "ca-HepTh", "ca-GrQc", "facebook_combined", "ca-HepPh")
GAP = 100
BETA = 0.1
ETA = "0.3183"
HIGHS_LIMIT = 20.0
HIGHS_TUPLES = 100_000
"""HiGHS is not tried beyond this: building the model alone would take longer than the limit."""
LARGE = 1_000_000
CLAUSES = (2, 3, 4, 5, 6, 8, 12, 16, 24, 32)
TREES, PEOPLE = 1_000, 300
"""Tuples and participants of the and/or trees."""


def triangles(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and the edges of every triangle, one row each."""
    nodes = int(edges.max()) + 1
    degree = np.bincount(edges.ravel(), minlength=nodes)
    rank = np.argsort(np.argsort(degree, kind="stable"), kind="stable")
    ordered = np.sort(rank[edges], axis=1)
    order = np.lexsort((ordered[:, 1], ordered[:, 0]))
    ordered = ordered[order]
    keys = ordered[:, 0] * nodes + ordered[:, 1]
    starts = np.searchsorted(ordered[:, 0], np.arange(nodes + 1))
    later = np.diff(starts)
    found_nodes, found_edges = [], []
    # For every edge (u, v), all later neighbours w of v, kept if (u, w) is an edge.
    for part in np.array_split(np.arange(len(ordered)), 1 + len(ordered) // 20_000):
        first, second = ordered[part, 0], ordered[part, 1]
        sizes = later[second]
        base = np.repeat(np.arange(len(part)), sizes)
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        far = starts[second][base] + within
        third = ordered[far, 1]
        wanted = first[base] * nodes + third
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        kept = keys[place] == wanted
        base, far, place, third = base[kept], far[kept], place[kept], third[kept]
        found_nodes.append(np.stack([first[base], second[base], third], axis=1))
        found_edges.append(np.stack([part[base], far, place], axis=1))
    return np.concatenate(found_nodes), np.concatenate(found_edges)


def relation(members: np.ndarray) -> PackingProblem:
    return PackingProblem(
        3 * np.arange(len(members) + 1),
        members.ravel(),
        np.ones(len(members)),
        int(members.max()) + 1,
    )


def relations(name: str) -> dict[str, PackingProblem]:
    path = find_data(name)
    if path is None:
        return {}
    by_node, by_edge = triangles(np.loadtxt(path, dtype=np.int64, comments="#"))
    return {"node": relation(by_node), "edge": relation(by_edge)}


def highs_seconds(problem: PackingProblem, tau: float) -> tuple[float, bool]:
    """Return the time plain HiGHS takes, and whether it came to its own end."""
    begun = time.perf_counter()
    count, tuples = problem.count, problem.tuple_count
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = tuples, count
    model.col_cost_ = np.full(tuples, -1.0)
    model.col_lower_, model.col_upper_ = np.zeros(tuples), problem.weights
    model.row_lower_ = np.full(count, -highspy.kHighsInf)
    model.row_upper_ = np.full(count, tau)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = problem.offsets.astype(np.int32)
    model.a_matrix_.index_ = problem.participants
    model.a_matrix_.value_ = np.ones(len(problem.participants))
    return solve_by_highs(model, begun)


def solve_by_highs(model: highspy.HighsLp, begun: float) -> tuple[float, bool]:
    """Solve the model as it is; return the time since ``begun``, and whether it was solved."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", HIGHS_LIMIT)
    solver.passModel(model)
    solver.run()
    ended = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return time.perf_counter() - begun, ended


def run(names: tuple[str, ...] = GRAPHS) -> list[dict[str, Any]]:
    warm_up()
    rows = []
    for name in names:
        for unit, problem in relations(name).items():
            top = math.floor(math.log2(problem.loads.max()))
            step = 1 if problem.tuple_count < LARGE else 2
            for power in range(top % step, top + 1, step):
                rows.append(measure(name, unit, problem, 2.0**power, power % 3 == 2))
            rows.append(measure_search(name, unit, problem))
    return rows


def measure(
    name: str, unit: str, problem: PackingProblem, tau: float, compare: bool
) -> dict[str, Any]:
    begun = time.perf_counter()
    bracket = solve(problem, tau, gap=tau / GAP)
    ours = time.perf_counter() - begun
    ratio = "-"
    if compare and problem.tuple_count <= HIGHS_TUPLES:
        theirs, ended = highs_seconds(problem, tau)
        ratio = f"{'' if ended else '>'}{theirs / ours:.1f}"
    return {
        "graph": name,
        "unit": unit,
        "tuples": problem.tuple_count,
        "what": f"X(2^{int(math.log2(tau))})",
        "value": bracket.middle,
        "relative gap": (bracket.upper - bracket.lower) / bracket.upper,
        "seconds": ours,
        "HiGHS / ours": ratio,
        "peak GB": peak(),
    }


def measure_search(name: str, unit: str, problem: PackingProblem) -> dict[str, Any]:
    oracle = DeletionOracle(problem, eta=ETA)
    last = math.ceil(math.log(2.0 * problem.loads.max()) / BETA)
    begun = time.perf_counter()
    found = oracle.least([math.exp(BETA * j) / 2.0 for j in range(last + 1)])
    ours = time.perf_counter() - begun
    return {
        "graph": name,
        "unit": unit,
        "tuples": problem.tuple_count,
        "what": "least j",
        "value": found,
        "relative gap": 0.0,
        "seconds": ours,
        "HiGHS / ours": "-",
        "peak GB": peak(),
    }


def warm_up() -> None:
    random = np.random.default_rng(0)
    problem = relation(np.sort(random.integers(0, 30, (300, 3)), axis=1))
    solve(problem, 3.0, gap=0.001)
    DeletionOracle(problem, eta=ETA).least([1.0 + j for j in range(30)])


def peak() -> float:
    """Return the largest memory of this process so far, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the seconds of all thresholds and of the search, for each relation."""
    sums: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        entry = sums.setdefault((row["graph"], row["unit"], row["tuples"]), [0.0, 0.0, 0.0])
        if row["what"] == "least j":
            entry[2] += row["seconds"]
        else:
            entry[0] += row["seconds"]
            entry[1] = max(entry[1], row["seconds"])
    return [
        {
            "graph": name,
            "unit": unit,
            "tuples": tuples,
            "all thresholds": whole,
            "slowest": slowest,
            "search": search,
            "microseconds per tuple": (whole + search) / tuples * 1e6,
        }
        for (name, unit, tuples), (whole, slowest, search) in sums.items()
    ]


def deletion_by_highs(problem: PackingProblem, tau: float) -> tuple[float, bool]:
    """Return the time plain HiGHS takes for the deletion LP, and whether it came to its end."""
    begun = time.perf_counter()
    count, tuples = problem.count, problem.tuple_count
    owner = np.repeat(np.arange(tuples), np.diff(problem.offsets))
    by_participant = np.argsort(problem.participants, kind="stable")
    named = np.bincount(problem.participants, minlength=count)
    # Variables: deletions, then remainders. Rows: the loads, then the covers.
    ends = problem.offsets[1:]
    remainder_rows = np.insert(problem.participants, ends, count + np.arange(tuples))
    remainder_values = np.insert(problem.weights[owner], ends, 1.0)
    starts = np.concatenate([[0], np.cumsum(named), named.sum() + np.cumsum(np.diff(
        problem.offsets) + 1)])  # fmt: skip
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = count + tuples, count + tuples
    model.col_cost_ = np.repeat([1.0, 0.0], [count, tuples])
    model.col_lower_, model.col_upper_ = np.zeros(count + tuples), np.ones(count + tuples)
    model.row_lower_ = np.repeat([-highspy.kHighsInf, 1.0], [count, tuples])
    model.row_upper_ = np.repeat([tau, highspy.kHighsInf], [count, tuples])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = np.concatenate([count + owner[by_participant], remainder_rows])
    model.a_matrix_.value_ = np.concatenate([np.ones(len(owner)), remainder_values])
    return solve_by_highs(model, begun)


def grow(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Measure the whole mechanism and its LP parts on graphs of growing size."""
    warm_up()
    graphs = [(name, Graph.read(path)) for name in names if (path := find_data(name))]
    if not graphs:
        graphs = [
            (f"made-up {nodes}", social_network(nodes, mean_degree=20, seed=1))
            for nodes in (250, 1_000, 4_000, 16_000)
        ]
    query = tulle.triangles()
    tulle.release(social_network(200, seed=1), query, unit="node", epsilon=1.0)
    rows = []
    for name, graph in graphs:
        begun = time.perf_counter()
        release = tulle.release(graph, query, unit="node", epsilon=1.0, mechanism="recursive")
        whole = time.perf_counter() - begun
        thresholds = RecursiveSettings.read(release.parameters).thresholds
        truncation = truncate(relation_of(query, graph, "node"))
        begun = time.perf_counter()
        tau = thresholds.at(least_level(truncation, thresholds))
        choosing = time.perf_counter() - begun
        problem = relation_problem(graph)
        begun = time.perf_counter()
        solve(problem, tau, gap=tau / GAP)
        truncating = time.perf_counter() - begun
        rows.append(
            {
                "graph": name,
                "tuples": problem.tuple_count,
                "whole s": whole,
                "choosing s": choosing,
                "HiGHS deletion LP": ratio(deletion_by_highs, problem, tau, choosing),
                "truncating s": truncating,
                "HiGHS packing LP": ratio(highs_seconds, problem, tau, truncating),
                "microseconds per tuple": whole / max(problem.tuple_count, 1) * 1e6,
                "peak GB": peak(),
            }
        )
    return rows


def relation_problem(graph: Graph) -> PackingProblem:
    found = relation_of(tulle.triangles(), graph, "node")
    return PackingProblem(found.offsets, found.participants, found.weights, found.count)


def ratio(
    theirs: Callable[[PackingProblem, float], tuple[float, bool]],
    problem: PackingProblem,
    tau: float,
    ours: float,
) -> str:
    if problem.tuple_count > HIGHS_TUPLES:
        return "-"
    seconds, ended = theirs(problem, tau)
    return f"{'' if ended else '>'}{seconds / ours:.1f} x"


def trees() -> list[dict[str, Any]]:
    """Measure the release of a total over trees of growing length."""
    rows = []
    tuples, people = TREES, PEOPLE
    for clauses in CLAUSES:
        random = np.random.default_rng(clauses)
        drawn = random.random((tuples, clauses, people)).argpartition(3, axis=2)[:, :, :3]
        notes = [
            (together(*(either(*map(Participant, clause)) for clause in note)), 1.0)
            for note in drawn.tolist()
        ]
        row: dict[str, Any] = {
            "tuples": tuples,
            "clauses": clauses,
            "combinations": 3**clauses,
        }
        for name, normalise in (("as written s", False), ("normal form s", True)):
            begun = time.perf_counter()
            held = Relation.from_annotations(notes, normalise=normalise)
            tulle.release(held, total(), unit="participant", epsilon=1.0, mechanism="recursive")
            row[name] = time.perf_counter() - begun
        rows.append(row)
    # The first has paid for compiling.
    return rows[1:]


def exponent(rows: list[dict[str, Any]]) -> float:
    """Return the power of the number of tuples that the whole time grows with, by least squares."""
    tuples = np.log([row["tuples"] for row in rows])
    seconds = np.log([row["whole s"] for row in rows])
    return float(np.polyfit(tuples, seconds, 1)[0])


MINUTE: dict[str, Any] = {
    "GRAPHS": ("netscience",),
    "CLAUSES": (2, 3),
    "TREES": 50,
    "PEOPLE": 30,
}
"""What is smaller in the minute's version."""


def main() -> None:
    if "--trees" in sys.argv:
        print_table("Recursive mechanism, totals over and/or trees", trees())
        return
    names = tuple(name for name in sys.argv[1:] if not name.startswith("-")) or GRAPHS
    growth = sorted(grow(names), key=lambda row: row["tuples"])
    print_table("Recursive mechanism, triangles per node: growth with the number of tuples", growth)
    if len(growth) > 2:
        print(f"The whole time grows like tuples^{exponent(growth):.2f}.")
    if "--growth" in sys.argv:
        return
    print_table("Recursive mechanism, totals over and/or trees", trees())
    rows = run(names)
    print_table("Packing LP, one thread", rows)
    print_table("Time against the number of tuples", totals(rows))


if __name__ == "__main__":
    main()
