"""Private spectra of real networks: how near, how fast, and what communities they show.

Run with ``TULLE_DATA=<folder> python -m benchmarks spectra``.
"""

from __future__ import annotations

import csv
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.graphs.generators import barabasi_albert, erdos_renyi, watts_strogatz
from tulle.graphs.spectra.queries import LARGEST_DENSE
from tulle.metrics.communities import average_f1, cover_of, mutual_information

DELTA = 1e-6

CASES: list[tuple[str, int, float, str | None]] = [
    ("facebook_combined", 1, 1.0, None),
    ("facebook_combined", 5, 1.0, None),
    ("facebook_combined", 5, 2.0, None),
    ("facebook_combined", 1, 1.0, "power"),
    ("facebook_combined", 1, 1.0, "power_pure"),
    ("facebook_combined", 5, 2.0, "power"),
    ("facebook_combined", 1, 1.0, "gauss"),
    ("facebook_combined", 1, 1.0, "bingham"),
    ("facebook_combined", 1, 30.0, "bingham"),
    ("ca-GrQc", 1, 5.0, None),
    ("ca-GrQc", 1, 5.0, "power"),
    ("ca-GrQc", 1, 1.0, None),
    ("ca-GrQc", 1, 1.0, "power"),
    ("ca-GrQc", 5, 2.0, None),
    ("wiki-Vote", 1, 1.0, None),
    ("ca-HepTh", 1, 1.0, None),
    ("ca-HepPh", 5, 1.0, None),
    ("ca-AstroPh", 5, 1.0, None),
    ("email-Enron", 5, 1.0, None),
    ("ego-Twitter", 1, 1.0, None),
    ("ego-Twitter", 5, 1.0, None),
]


def cosines(one: Any, other: Any) -> Any:
    """Return the cosines of the principal angles between two sets of orthonormal vectors."""
    return np.clip(np.linalg.svd(one.T @ other, compute_uv=False), 0, 1)


def compare() -> None:
    rows: list[dict[str, Any]] = []
    graphs: dict[str, Any] = {}
    for name, k, epsilon, mechanism in CASES:
        path = find_data(name)
        if path is None:
            continue
        if name not in graphs:
            graph = tulle.Graph.read(path, ignore=["direction"])
            graphs[name] = graph, tulle.spectrum(5).truth(graph)
        graph, true = graphs[name]
        reached, seconds = [], []
        for _ in range(1 if name == "ego-Twitter" else 3):
            start = time.perf_counter()
            r = tulle.release(
                graph,
                tulle.spectrum(k),
                unit="edge",
                epsilon=epsilon,
                delta=DELTA,
                mechanism=mechanism,
            )
            seconds.append(time.perf_counter() - start)
            reached.append(cosines(true.vectors[:, :k], r.value.vectors))
        rows.append(
            {
                "graph": name,
                "k": k,
                "epsilon": epsilon,
                "mechanism": r.mechanism + ("" if mechanism else " (default)"),
                "guarantee": r.guarantee.measure,
                "mean cosine": float(np.mean(reached)),
                "least of the runs": float(np.min(np.mean(reached, axis=1))),
                "seconds": float(np.median(seconds)),
            }
        )
    print_table("spectrum(k): cosines of principal angles with the true vectors", rows)


def truth_of_email(graph: tulle.Graph) -> Any:
    """Return the department of each node of email-Eu-core."""
    with _beside("email-Eu-core", "email-Eu-core.labels.csv").open(encoding="utf-8") as lines:
        department = {row[0]: int(row[1]) for row in csv.reader(lines) if row[1].isdigit()}
    return np.array([department[str(label)] for label in graph.labels])


def truth_of_facebook(graph: tulle.Graph) -> list[Any]:
    """Return the members of each of the ten ego networks that facebook_combined is made of."""
    place = {str(label): index for index, label in enumerate(graph.labels)}
    egos: dict[str, list[int]] = {}
    path = _beside("facebook_combined", "facebook.ego_membership.csv")
    with path.open(encoding="utf-8") as lines:
        for node, ego in list(csv.reader(lines))[1:]:
            egos.setdefault(ego, []).append(place[node])
    return list(egos.values())


def _beside(name: str, file: str) -> Path:
    return Path(os.environ["TULLE_DATA"], name, file)


def judged(found: Any, known: Any) -> dict[str, float]:
    """Return how alike found communities are to a partition or a cover; -1 counts as a group."""
    cover = _placed(found)
    if isinstance(known, list):
        return {"average F1": average_f1(cover, known)}
    return {
        "nmi": mutual_information(found, known),
        "average F1": average_f1(cover, cover_of(known)),
    }


def _placed(found: Any) -> list[Any]:
    return [group for group in cover_of(found) if found[group[0]] >= 0]


EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


def community_rows() -> dict[str, list[dict[str, Any]]]:
    """Cluster released embeddings, and compare with departments and ego networks."""
    cases = [
        ("email-Eu-core", 20, 42, truth_of_email),
        ("facebook_combined", 10, 10, truth_of_facebook),
    ]
    found: dict[str, list[dict[str, Any]]] = {}
    for name, k, count, truth in cases:
        path = find_data(name)
        if path is None:
            continue
        graph = tulle.Graph.read(path, ignore=["direction"])
        known = truth(graph)
        rows: list[dict[str, Any]] = []
        for epsilon in EPSILONS:
            scores = []
            for _ in range(3):
                r = tulle.release(
                    graph, tulle.spectrum(k), unit="edge", epsilon=epsilon, delta=DELTA
                )
                scores.append(judged(r.value.communities(count), known))
            rows.append(
                {
                    "epsilon": epsilon,
                    "informative": r.value.informative,
                    "placed": int(np.sum(r.value.communities(count) >= 0)),
                    **{way: float(np.mean([s[way] for s in scores])) for way in scores[0]},
                }
            )
        true = tulle.spectrum(k).truth(graph)
        rows.append(_line("true vectors", k, judged(true.communities(count), known)))
        chance = np.random.default_rng(1).integers(0, count, graph.node_count)
        rows.append(_line("chance", 0, judged(chance, known)))
        found[f"communities of {name} from spectrum({k}), {count} asked for"] = rows
    return found


def communities() -> None:
    """Print how near communities from released embeddings are to the known ones."""
    for title, rows in community_rows().items():
        print_table(title, rows)


def picture(path: str, epsilon: float = 3.0) -> None:
    """Draw communities against epsilon, and those of one release against the ego networks."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for title, rows in community_rows().items():
        name = title.split()[2]
        colour = "tab:blue" if name.startswith("email") else "tab:orange"
        for way, style in (("nmi", "-"), ("average F1", "--")):
            if way in rows[0]:
                curve = [row[way] for row in rows[: len(EPSILONS)]]
                left.plot(EPSILONS, curve, style, marker="o", color=colour, label=f"{name}, {way}")
                left.axhline(rows[-2][way], color=colour, linestyle=style, alpha=0.35)
    left.set(xlabel="epsilon, per edge", ylabel="likeness to the known communities", ylim=(0, 1))
    left.set_title("pale lines: from the true vectors")
    left.legend(frameon=False)
    data = find_data("facebook_combined")
    assert data is not None
    graph = tulle.Graph.read(data)
    r = tulle.release(graph, tulle.spectrum(10), unit="edge", epsilon=epsilon)
    groups = _placed(r.value.communities(10))
    egos = sorted(truth_of_facebook(graph), key=len, reverse=True)
    share = np.array([[len(np.intersect1d(g, e)) / len(g) for e in egos] for g in groups])
    image = right.imshow(share, cmap="Blues", vmin=0, vmax=1)
    right.set_yticks(range(len(groups)), [f"{len(g):,}" for g in groups])
    right.set_xticks(range(len(egos)), [f"{len(e):,}" for e in egos], rotation=45)
    right.set(xlabel="ego networks, by size", ylabel="found communities, by size")
    right.set_title(f"facebook_combined at epsilon = {epsilon:g}")
    figure.colorbar(image, ax=right, label="share of a found community")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(name: str, informative: int, scores: dict[str, float]) -> dict[str, Any]:
    return {"epsilon": name, "informative": informative, "placed": "", **scores}


LARGEST = ("email-Eu-core", "netscience", "polblogs")
"""Networks whose largest eigenvalue is released."""


VALUED = (
    "ca-GrQc",
    "facebook_combined",
    "netscience",
    "email-Eu-core",
    "polblogs",
    "lastfm-asia",
    "p2p-Gnutella08",
    "as20000102",
    "polbooks",
)
"""Networks whose values are released."""


def value_rows(names: tuple[str, ...], runs: int = 3) -> list[dict[str, Any]]:
    """Return how far values are off, and by how much a matrix of low rank is nearer than zeros.

    The last is in parts of the squared distance of zeros, for what is released, in the mean and at
    worst, and for the best values that the released vectors could have.
    """
    rows: list[dict[str, Any]] = []
    for name in names:
        path = find_data(name)
        if path is None:
            continue
        graph = tulle.Graph.read(path, ignore=["direction"])
        matrix = graph.to_scipy().astype(float)
        for k, epsilon in product((1, 5), (0.5, 1.0, 2.0)):
            asked: dict[str, Any] = {"unit": "edge", "epsilon": epsilon}
            asked["mechanism"] = "spectral_response"
            true = tulle.spectrum(k).truth(graph).values
            off, nearer, best = [], [], []
            for _ in range(runs):
                found = tulle.release(graph, tulle.spectrum(k), **asked).value
                off.append(float(np.abs(found.values - true).mean()))
                low = tulle.release(graph, tulle.low_rank(k), **asked).value
                quotients = np.einsum("ik,ik->k", low.vectors, matrix @ low.vectors)
                nearer.append(gained(low, matrix, graph.edge_count))
                best.append((quotients**2).sum() / (2 * graph.edge_count))
            rows.append(
                {
                    "network": name,
                    "k": k,
                    "epsilon": epsilon,
                    "true mean": float(true.mean()),
                    "spectrum off by": float(np.mean(off)),
                    "low rank, nearer than zeros": float(np.mean(nearer)),
                    "at worst": min(nearer),
                    "with the best values": float(np.mean(best)),
                }
            )
    return rows


def gained(found: Any, matrix: Any, edges: int) -> float:
    """Return by how much a matrix is nearer than zeros, in parts of their squared distance."""
    quotients = np.einsum("ik,ik->k", found.vectors, matrix @ found.vectors)
    nearer = 2 * (found.values * quotients).sum() - (found.values**2).sum()
    return float(nearer / (2 * edges))


SMALL: dict[str, tulle.Graph | None] = {
    "polbooks": None,
    "enron-core-igraph": None,
    "preferential attachment": barabasi_albert(150, 3, seed=2),
    "random, dense": erdos_renyi(60, 0.5, seed=1),
}
"""Networks that noise soon drowns, by name or made."""


def small_rows(runs: int = 60) -> list[dict[str, Any]]:
    """Return by how much a matrix of rank four is nearer than zeros, where noise is large."""
    rows: list[dict[str, Any]] = []
    for name, given in SMALL.items():
        path = find_data(name)
        if given is None and path is None:
            continue
        graph = given or tulle.Graph.read(str(path), ignore=["direction"])
        matrix = graph.to_scipy().astype(float)
        for epsilon in (0.02, 0.1, 0.3, 1.0, 3.0):
            row: dict[str, Any] = {"network": name, "epsilon": epsilon}
            for mechanism in ("spectral_response", "power_pure", "power"):
                asked: dict[str, Any] = {"epsilon": epsilon, "mechanism": mechanism}
                asked |= {"unit": "edge", "delta": 1e-6 if mechanism == "power" else 0.0}
                drawn = [tulle.release(graph, tulle.low_rank(4), **asked) for _ in range(runs)]
                row[mechanism] = float(
                    np.mean([gained(one.value, matrix, graph.edge_count) for one in drawn])
                )
            rows.append(row)
    return rows


def largest_rows(names: tuple[str, ...], runs: int = 20) -> list[dict[str, Any]]:
    """Return how far the largest eigenvalue alone is off, by both mechanisms."""
    rows: list[dict[str, Any]] = []
    for name in names:
        path = find_data(name)
        if path is None:
            continue
        graph = tulle.Graph.read(path, ignore=["direction"])
        query = tulle.eigenvalues(1)
        true = float(query.truth(graph)[0])
        for epsilon in (0.1, 1.0, 10.0):
            row: dict[str, Any] = {"network": name, "epsilon": epsilon, "true": true}
            # Noise of eigen_laplace does not depend on the graph.
            row["eigen_laplace"] = 1 / epsilon
            asked: dict[str, Any] = {"unit": "edge", "epsilon": epsilon}
            drawn = [
                tulle.release(graph, query, **asked, mechanism="eigen_spread").value[0]
                for _ in range(runs)
            ]
            row["eigen_spread"] = float(np.mean(np.abs(np.array(drawn) - true)))
            rows.append(row)
    return rows


LARGE: tuple[str | int, ...] = ("as20000102", "wiki-Vote", "email-Enron", "ego-Twitter", 100_000)
"""Networks by name, or preferential attachment with ten links for each of so many nodes."""


def large_rows() -> list[dict[str, Any]]:
    """Return how long eigenvalues of large networks take, and how far they are off."""
    rows: list[dict[str, Any]] = []
    for name in LARGE:
        path = find_data(name) if isinstance(name, str) else None
        if path is None and isinstance(name, str):
            continue
        graph = (
            barabasi_albert(name, 10, seed=1)
            if isinstance(name, int)
            else tulle.Graph.read(path, ignore=["direction"])
        )
        for k in (1, 5):
            true = tulle.eigenvalues(k).truth(graph)
            clock, work = time.perf_counter(), time.process_time()
            delta = DELTA if graph.node_count > LARGEST_DENSE else 0.0
            found = tulle.release(
                graph, tulle.eigenvalues(k), unit="edge", epsilon=1.0, delta=delta
            )
            rows.append(
                {
                    "network": name,
                    "nodes": graph.node_count,
                    "edges": graph.edge_count,
                    "k": k,
                    "delta": delta,
                    "largest": float(true[0]),
                    "off by": float(np.abs(found.value - true).mean()),
                    "seconds": time.perf_counter() - clock,
                    "of work": time.process_time() - work,
                }
            )
    return rows


SPREAD: dict[str, tuple[int, int]] = {"random": (1000, 50), "ring": (1000, 50), "thin": (2000, 40)}
"""Networks without hubs or dense parts: how many nodes, of which degree."""


def spread_rows(runs: int = 3) -> list[dict[str, Any]]:
    """Return cosines with one vector that is spread evenly over all nodes."""
    rows: list[dict[str, Any]] = []
    for name, (nodes, degree) in SPREAD.items():
        graph = (
            watts_strogatz(nodes, degree, 0.2, seed=1)
            if name == "ring"
            else erdos_renyi(nodes, degree / nodes, seed=1)
        )
        true = tulle.spectrum(1).truth(graph).vectors
        row: dict[str, Any] = {"network": name, "nodes": nodes, "degree": degree}
        for mechanism in ("spectral_response", "power_pure"):
            asked: dict[str, Any] = {"unit": "edge", "epsilon": 1.0, "mechanism": mechanism}
            drawn = [tulle.release(graph, tulle.spectrum(1), **asked).value for _ in range(runs)]
            row[mechanism] = float(np.mean([cosines(true, found.vectors) for found in drawn]))
        rows.append(row)
    return rows


MINUTE: dict[str, Any] = {
    "SPREAD": {"ring": (60, 10)},
    "LARGE": (10_100,),
    "CASES": [("facebook_combined", 2, 1.0, None), ("facebook_combined", 1, 1.0, "bingham")],
    "EPSILONS": (3.0,),
    "LARGEST": (),
    "VALUED": (),
    "SMALL": {},
}
"""What is smaller in the minute's version."""


def main() -> None:
    compare()
    if rows := value_rows(VALUED):
        print_table("Values of spectrum and low_rank, spectral_response", rows)
    if rows := largest_rows(LARGEST):
        print_table("eigenvalues(1), mean distance from the truth", rows)
    print_table("low_rank(4) of small networks: how much nearer than zeros", small_rows())
    print_table("spectrum(1) of networks without hubs, epsilon = 1", spread_rows())
    print_table("eigenvalues(k) of large networks, epsilon = 1", large_rows())
    communities()


if __name__ == "__main__":
    main()
