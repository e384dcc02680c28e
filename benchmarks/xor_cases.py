"""The case studies of the XOR paper at an honest epsilon: an image, two classifications, graphs.

Run it with ``python -m benchmarks.xor_cases``; votes and graphs are read from ``TULLE_DATA``, the
cancer records come with scikit-learn and are left out when that is not installed.

Reference: Ji et al., *An XOR Mechanism*, PVLDB 14(5), 2021, sections 5.3, 7 and 8.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from baselines.xor_columns import paper_xor
from scipy.optimize import minimize

import baselines
import tulle
from benchmarks.common import find_data, print_table
from benchmarks.statistics import rounded
from tulle.graphs.topology import estimates as topology_estimates
from tulle.matrices.binary.estimates import debias
from tulle.noise.xor.general import Couplings
from tulle.noise.xor.limits import most_kept
from tulle.noise.xor.patterns import flip_probability

Array = Any
Fit = Callable[[Array, Array], Array]

REPEATS = 20
FAMILIES = {"optimal": tulle.xor(), "paper": paper_xor()}
EPSILONS = (0.1, 0.3, 0.5, 0.7, 1.0, 3.0, 10.0)
RESULTS = Path(__file__).parents[1] / "docs" / "results" / "xor-rows.json"
"""Where the numbers of figure 2 are kept."""
PUBLISHED_EDGES = {
    "facebook_combined": {1.0: 1.13e5, 0.6: 1.48e5, 0.2: 2.73e5},
    "email-Eu-core": {1.0: 1.572e4, 0.6: 1.679e4, 0.2: 3.911e4},
}
"""Edges of the released graphs in table 2 of the paper, by epsilon."""


# --- the image ----------------------------------------------------------------------------------


def letter(size: int = 28) -> Array:
    """Return a "C" as a square of zeros and ones."""
    across = np.linspace(-1, 1, size)
    x, y = np.meshgrid(across, across)
    radius, angle = np.hypot(x, y), np.abs(np.arctan2(y, x))
    return ((radius > 0.5) & (radius < 0.85) & (angle > 0.7)).astype(np.uint8)


def image() -> list[dict[str, Any]]:
    """Release the image per cell and per row; the share of wrong pixels, and what was published."""
    cells = letter()
    matrix = tulle.BinaryMatrix(cells)
    rows = []
    for epsilon in (0.3, 0.5, 0.7, 3.0):
        for unit in ("cell", "row"):
            for family, query in FAMILIES.items():
                r = tulle.release(matrix, query, unit=unit, epsilon=epsilon)
                rows.append(
                    {
                        "epsilon": epsilon,
                        "unit": unit,
                        "family": family,
                        "wrong pixels": float(np.mean(r.value != cells)),
                        "expected": r.parameters["flip"],
                        "least possible per cell": flip_probability(epsilon),
                    }
                )
    return rows


# --- classification -----------------------------------------------------------------------------


def votes() -> tuple[Array, Array] | None:
    """Return 435 x 16 votes and parties; everything but a yes counts as no, as in the paper."""
    folder = os.environ.get("TULLE_DATA")
    path = Path(folder or "", "house-votes-84", "house-votes-84.csv")
    if not folder or not path.exists():
        return None
    with path.open(newline="") as file:
        listed = list(csv.reader(file))[1:]
    features = np.array([[cell == "y" for cell in row[1:]] for row in listed], dtype=np.uint8)
    return features, np.array([row[0] == "republican" for row in listed], dtype=np.uint8)


def cancer() -> tuple[Array, Array] | None:
    """Return 569 x 30 features, each 1 above its median, and diagnoses."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        return None
    data = load_breast_cancer()
    features = (data.data > np.median(data.data, axis=0)).astype(np.uint8)
    return features, data.target.astype(np.uint8)


def logistic(
    features: Array, labels: Array, ridge: float = 1e-3, tilt: Array = 0.0, scale: float = 1.0
) -> Array:
    """Return the weights of a logistic regression, the last one for the constant.

    Rows are divided by ``scale`` for the fit; the weights are for rows as they are.
    """
    wide = np.column_stack([features, np.ones(len(features))]) / scale
    signs = 2.0 * labels - 1.0

    def loss(weights: Array) -> tuple[float, Array]:
        margin = signs * (wide @ weights)
        value = np.logaddexp(0, -margin).mean() + ridge / 2 * weights @ weights
        slope = -(wide.T @ (signs / (1 + np.exp(margin)))) / len(wide) + ridge * weights
        return value + tilt @ weights if np.ndim(tilt) else value, slope + tilt

    found = minimize(loss, np.zeros(wide.shape[1]), jac=True, method="L-BFGS-B")
    return found.x / scale


def accuracy(weights: Array, features: Array, labels: Array) -> float:
    """Return the share of right answers on clean rows."""
    wide = np.column_stack([features, np.ones(len(features))])
    return float(np.mean((wide @ weights > 0) == labels))


def perturbed(features: Array, labels: Array, epsilon: float, generator: Any) -> Array:
    """Objective perturbation done right: rows of norm 1, a ridge, and its price in epsilon.

    Chaudhuri, Monteleoni & Sarwate, JMLR 12, 2011, algorithm 2 with c = 1/4. Its noise is drawn
    in floating point: for comparison only. It releases one classifier, not the rows.
    """
    count, size = len(features), features.shape[1] + 1
    ridge = 1e-2
    smooth = 1 / (4 * count * ridge)
    left = epsilon - math.log(1 + 2 * smooth + smooth**2)
    if left <= 0:
        ridge, left = 1 / (4 * count * (math.exp(epsilon / 4) - 1)), epsilon / 2
    noise = generator.normal(size=size)
    noise *= generator.gamma(size, 2 / left) / np.linalg.norm(noise)
    return logistic(features, labels, ridge, noise / count, math.sqrt(size))


def regression_room(features: Array, labels: Array, epsilon: float) -> Array:
    """Return the weights of a private logistic model: one classifier, the label private too."""
    names = [f"feature {place}" for place in range(features.shape[1])]
    table = tulle.models.Table(
        {**dict(zip(names, features.T.astype(float), strict=True)), "label": labels.tolist()},
        bounds=dict.fromkeys(names, (0, 1)),
        classes={"label": [0, 1]},
    )
    r = tulle.release(table, tulle.models.logistic("label"), unit="row", epsilon=epsilon)
    model = tulle.models.Model.of(r)
    corner = model.decision({name: [0.0] for name in names})[0]
    rest = np.eye(len(names))
    slopes = model.decision(dict(zip(names, rest, strict=True))) - corner
    return np.append(slopes, corner)


def linear_from_moments(release: tulle.Release, labels: Array | None) -> Array:
    """Return linear weights from unbiased first and second moments of the released rows.

    With ``labels`` None the label is the last bit of each row. Two cells of a row have correlated
    flips; their covariance is public, so the moment of their product can be mended as well.
    """
    cells = debias(release)
    known = release.parameters
    if labels is not None:
        cells = np.column_stack([cells, labels])
    count, size = cells.shape
    means = cells.mean(axis=0)
    moments = cells.T @ cells / count
    private = size if labels is None else size - 1
    extra = known["covariance"] / (1 - 2 * known["flip"]) ** 2 if known["lines"] == "rows" else 0.0
    block = slice(0, private)
    sums = means[block, None] + means[None, block]
    moments[block, block] = (moments[block, block] - extra * (1 - 2 * sums)) / (1 + 4 * extra)
    np.fill_diagonal(moments, means)
    covariance = moments - np.outer(means, means)
    inside, across = covariance[:-1, :-1], covariance[:-1, -1]
    flip = known["flip"]
    blur = flip * (1 - flip) / (1 - 2 * flip) ** 2 / math.sqrt(count)
    # Directions that the noise drowns are left alone: eigenvalues are raised to its level.
    values, vectors = np.linalg.eigh(inside)
    weights = vectors @ ((vectors.T @ across) / np.maximum(values, 0.02 + 2 * blur))
    # A mean whose error exceeds the spread of plausible means says little: it is drawn to 1/2.
    trust = (1 / 12) / (1 / 12 + blur / math.sqrt(count))
    centre = 0.5 + trust * (means[:-1] - 0.5)
    return np.append(weights, -weights @ centre)


def classification(name: str, data: tuple[Array, Array] | None, train: int) -> list[dict[str, Any]]:
    """Train on private rows, test on clean ones; medians over fresh splits and draws."""
    if data is None:
        return []
    features, labels = data
    generator = np.random.default_rng(7)
    rows = []
    for epsilon in EPSILONS:
        scores: dict[str, list[float]] = {}
        for _ in range(REPEATS):
            order = generator.permutation(len(features))
            inside, outside = order[:train], order[train:]
            test = features[outside], labels[outside]
            x, y = features[inside], labels[inside]

            def note(way: str, weights: Array, test: Any = test, scores: Any = scores) -> None:
                scores.setdefault(way, []).append(accuracy(weights, *test))

            note("non-private", logistic(x, y))
            note("PPLR done right", perturbed(x, y, epsilon, generator))
            note("regression room, label private", regression_room(x, y, epsilon))
            both = np.column_stack([x, y])
            for family, query in FAMILIES.items():
                r = tulle.release(tulle.BinaryMatrix(x), query, unit="row", epsilon=epsilon)
                if family == "optimal":
                    wrong = float(r.parameters["flip"])
                note(f"{family}, plain", logistic(r.value, y))
                note(f"{family}, de-biased", linear_from_moments(r, y))
            r = tulle.release(tulle.BinaryMatrix(both), tulle.xor(), unit="row", epsilon=epsilon)
            note("optimal, label private too, de-biased", linear_from_moments(r, None))
        rows.append(
            {
                "data": name,
                "epsilon": epsilon,
                "wrong cells": wrong,
                **{way: float(np.median(values)) for way, values in scores.items()},
            }
        )
    return rows


# --- graphs -------------------------------------------------------------------------------------


def graphs() -> list[dict[str, Any]]:
    """Release topologies; counts from them, and what the published numbers would imply."""
    rows = []
    for name, published in PUBLISHED_EDGES.items():
        path = find_data(name)
        if path is None:
            continue
        graph = tulle.Graph.read(path)
        pairs = math.comb(graph.node_count, 2)
        triangles = tulle.triangles().truth(graph)
        for epsilon in (0.2, 0.6, 1.0, 3.0):
            r = tulle.release(graph, tulle.topology(), unit="edge", epsilon=epsilon)
            edges = topology_estimates.estimate_edges(r)
            corners = topology_estimates.estimate_triangles(r)
            claimed = published.get(epsilon)
            rows.append(
                {
                    "graph": name,
                    "epsilon": epsilon,
                    "edges": graph.edge_count,
                    "released": r.value.edge_count,
                    "edges, de-biased": f"{edges.value:,.0f} ± {edges.error:,.0f}",
                    "triangles": triangles,
                    "triangles, de-biased": f"{corners.value:,.0f} ± {corners.error:,.0f}",
                    "density": f"{graph.edge_count / pairs:.4f}",
                    "density, de-biased": f"{edges.value / pairs:.4f}",
                    "keep / limit": f"{topology_estimates.limit(r).ones:.6f}",
                    "published edges": f"{claimed:,.0f}" if claimed else "-",
                    "of them true, at most": f"{_most(claimed, pairs, graph, epsilon)}",
                }
            )
    return rows


def _most(claimed: float | None, pairs: int, graph: tulle.Graph, epsilon: float) -> str:
    if claimed is None:
        return "-"
    share = most_kept(released=claimed, pairs=pairs, edges=graph.edge_count, epsilon=epsilon)
    return f"{share:.1%} of the edges"


def prices() -> list[dict[str, Any]]:
    """Return what a row costs with couplings to neighbours, by how it is found; no runs.

    ``plain`` counts every entry that touches the row in full.
    """
    rows = []
    for height, width in ((2, 8), (4, 5), (5, 5), (10, 8), (10, 20), (50, 40)):
        size = height * width
        pi = np.zeros((size, size))
        np.fill_diagonal(pi, -6.0)
        for cell in range(size):
            for other in (cell + 1 if (cell + 1) % width else size, cell + width):
                if other < size:
                    pi[cell, other] = pi[other, cell] = 1.0
        couplings = Couplings.of(
            size, [(i, j, Fraction(int(pi[i, j]))) for i in range(size) for j in range(i, size)]
        )
        price, exact = couplings.price_of_line(width)
        rows.append(
            {
                "grid": f"{height} x {width}",
                "plain bound": couplings.plain_price_of_line(width),
                "price": price,
                "found": "exact" if exact else "minimum cut, a bound",
                "plain / price": couplings.plain_price_of_line(width) / price,
            }
        )
    return rows


MINUTE: dict[str, Any] = {
    "REPEATS": 1,
    "EPSILONS": (3.0,),
    "PUBLISHED_EDGES": dict(list(PUBLISHED_EDGES.items())[:1]),
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print all tables."""
    baselines.register()
    print_table("Grids coupled to their four neighbours: the price of a row", prices())
    print_table('The image "C", 28 x 28', image())
    rows = {
        "votes": classification("votes", votes(), 240),
        "cancer": classification("cancer", cancer(), 426),
    }
    print_table("Votes, 240 rows of 16", rows["votes"])
    print_table("Cancer, 426 rows of 30", rows["cancer"])
    if all(rows.values()) and REPEATS > 1:
        RESULTS.write_text(json.dumps(rounded(rows), indent=1) + "\n", encoding="utf-8")
    found = graphs()
    shared = ("graph", "epsilon")
    counted = ("edges", "released", "edges, de-biased", "triangles", "triangles, de-biased")
    limits = ("density", "density, de-biased", "keep / limit", "published edges")
    limits += ("of them true, at most",)
    for title, names in (("Graphs, counts", counted), ("Graphs, limits", limits)):
        print_table(title, [{name: row[name] for name in (*shared, *names)} for row in found])


if __name__ == "__main__":
    main()
