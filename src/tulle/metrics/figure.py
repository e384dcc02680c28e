"""The picture of a comparison: four overlays, the true graph in grey, the synthetic in blue."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.custody import custodian_file
from tulle.core.errors import MissingExtraError, raise_alone
from tulle.metrics.portrait import Portrait

# A grey and a dark blue (Okabe and Ito's): told apart by every reader, and in print.
_TRUE = "#8a8a8a"
_MADE = "#0072B2"
_INK = "#2b2b2b"


def draw(path: str | PathLike[str], truth: Portrait, synthetic: Portrait, title: str) -> None:
    """Write the picture.

    Raises:
        MissingExtraError: when matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise_alone(MissingExtraError("matplotlib", "plot", "Drawing the comparison"))

    figure = Figure(figsize=(11, 7.4), dpi=140, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2)
    figure.subplots_adjust(left=0.075, right=0.98, top=0.86, bottom=0.08, hspace=0.42, wspace=0.22)
    _degrees(axes[0, 0], truth, synthetic)
    _clustering(axes[0, 1], truth, synthetic)
    _distances(axes[1, 0], truth, synthetic)
    _spectrum(axes[1, 1], truth, synthetic)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=_INK, labelsize=9)
    figure.text(
        0.075, 0.945, title or "A synthetic graph beside the true one", fontsize=14, color=_INK
    )
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="upper right", bbox_to_anchor=(0.985, 0.985), ncols=2, frameon=False
    )
    figure.savefig(custodian_file(path))


def _name(axis: Any, title: str, across: str, upwards: str) -> None:
    axis.set_title(title, loc="left", fontsize=11, color=_INK)
    axis.set_xlabel(across, fontsize=9, color=_INK)
    axis.set_ylabel(upwards, fontsize=9, color=_INK)


def _pairs(truth: Portrait, synthetic: Portrait) -> list[tuple[Portrait, dict[str, Any]]]:
    return [
        (truth, {"color": _TRUE, "label": "true", "linewidth": 3.2}),
        (synthetic, {"color": _MADE, "label": "synthetic", "linewidth": 1.5}),
    ]


def _degrees(axis: Any, truth: Portrait, synthetic: Portrait) -> None:
    for portrait, style in _pairs(truth, synthetic):
        values, counts = np.unique(portrait.degree[portrait.degree > 0], return_counts=True)
        above = counts[::-1].cumsum()[::-1] / max(portrait.nodes, 1)
        axis.step(values, above, where="pre", **style)
    axis.set_xscale("log")
    axis.set_yscale("log")
    _name(axis, "Degrees", "degree k", "share of nodes with degree ≥ k")


def _clustering(axis: Any, truth: Portrait, synthetic: Portrait) -> None:
    largest = max(int(p.degree.max(initial=2)) for p in (truth, synthetic))
    edges = np.unique(np.geomspace(2, max(largest, 3) + 1, 24).astype(int))
    for portrait, style in _pairs(truth, synthetic):
        middle, mean = _binned(portrait, edges)
        axis.plot(middle, mean, marker="o", markersize=3, **style)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    _name(axis, "Clustering", "degree k", "mean clustering of nodes of degree k")


def _binned(portrait: Portrait, edges: Any) -> tuple[Floats, Floats]:
    known = portrait.degree >= 2
    place = np.digitize(portrait.degree[known], edges)
    count = np.bincount(place, minlength=len(edges) + 1)
    total = np.bincount(place, weights=portrait.clustering[known], minlength=len(edges) + 1)
    sums = np.bincount(place, weights=portrait.degree[known], minlength=len(edges) + 1)
    held = count > 0
    return sums[held] / count[held], total[held] / count[held]


def _distances(axis: Any, truth: Portrait, synthetic: Portrait) -> None:
    for portrait, style in _pairs(truth, synthetic):
        counts = portrait.distances.counts
        steps = np.arange(1, len(counts) + 1)
        axis.plot(steps, counts / max(int(counts.sum()), 1), marker="o", markersize=4, **style)
    axis.set_ylim(bottom=0)
    axis.xaxis.get_major_locator().set_params(integer=True)
    _name(axis, "Distances", "steps", "share of the pairs that have a path")


def _spectrum(axis: Any, truth: Portrait, synthetic: Portrait) -> None:
    for portrait, style in _pairs(truth, synthetic):
        axis.plot(np.arange(1, len(portrait.spectrum) + 1), portrait.spectrum, **style)
    _name(axis, "Spectrum", "rank", "eigenvalue of the adjacency matrix")
