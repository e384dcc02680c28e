"""Communities of nodes from a released spectrum. Costs no privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import InputError

if TYPE_CHECKING:
    from tulle.graphs.spectra.queries import Spectrum


UNPLACED = -1
"""The label of nodes about which the released vectors say nothing."""

_ROUNDS = 60
_STEP = 1 << 22


def find_communities(spectrum: Spectrum, count: int | None = None) -> Wholes:
    """Return the community of each node: 0, 1, ... by size, or -1 where nothing is known.

    Nodes are points, one coordinate for each vector whose eigenvalue exceeds the noise; the
    others' vectors are noise and would only blur. Points are brought to length 1, so that
    direction, not degree, decides, and grouped by k-means from a spread-out start. Everything is
    fixed: the same release gives the same communities. ``count`` is the number of communities; if
    not given, one for each informative vector.

    Raises:
        InputError: when the count is not a whole number between 1 and the number of nodes.

    Example:
        >>> from tulle.graphs.spectra.queries import Spectrum
        >>> two = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> found = Spectrum(np.array([2.0, 1.0]), two / np.linalg.norm(two, axis=0))
        >>> find_communities(found).tolist()
        [0, 0, 0, 1, 1]
    """
    nodes = len(spectrum.vectors)
    kept = np.abs(spectrum.values) > spectrum.noise
    wanted = max(int(kept.sum()), 1)
    if count is not None:
        wanted = validate.whole(count=count, at_least=1)
        if wanted > nodes:
            raise InputError(f"count must be at most {nodes:,}, the number of nodes; got {count}.")
    # Entries weigh as much as their eigenvalue; a long row is sure of its direction.
    rows = spectrum.vectors[:, kept] * np.sqrt(np.abs(spectrum.values[kept]))
    lengths = np.linalg.norm(rows, axis=1) if rows.shape[1] else np.zeros(nodes)
    placed = lengths > 1e-3 * lengths.max(initial=0.0)
    labels = np.full(nodes, UNPLACED, dtype=np.int64)
    if placed.any():
        points = rows[placed] / lengths[placed, None]
        sure = lengths[placed] >= np.median(lengths[placed])
        labels[placed] = _by_size(_k_means(points, sure, min(wanted, int(placed.sum()))))
    return labels


def _k_means(points: Floats, sure: npt.NDArray[np.bool_], count: int) -> Wholes:
    """Return the nearest centre of each point, centres begun far apart among the sure points."""
    start = points[sure] if int(sure.sum()) >= count else points
    mean = start.mean(axis=0)
    centres = start[[int(np.argmax(np.linalg.norm(start - mean, axis=1)))]]
    gaps = _squares(start, centres)[:, 0]
    while len(centres) < count:
        centres = np.concatenate([centres, start[[int(np.argmax(gaps))]]])
        gaps = np.minimum(gaps, _squares(start, centres[-1:])[:, 0])
    nearest = np.full(len(points), -1, dtype=np.int64)
    for _ in range(_ROUNDS):
        moved = _nearest(points, centres)
        if np.array_equal(moved, nearest):
            break
        nearest = moved
        sizes = np.bincount(nearest, minlength=count)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        # A centre that lost all its points stays where it is.
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    return nearest


def _nearest(points: Floats, centres: Floats) -> Wholes:
    step = max(1, _STEP // len(centres))
    parts = [
        np.argmin(_squares(points[first : first + step], centres), axis=1)
        for first in range(0, len(points), step)
    ]
    return np.concatenate(parts).astype(np.int64)


def _squares(points: Floats, centres: Floats) -> Floats:
    """Return squared distances of unit points from centres, up to a constant for each point."""
    found: Floats = (centres**2).sum(axis=1) - 2 * (points @ centres.T)
    return found


def _by_size(labels: Wholes) -> Wholes:
    """Return labels numbered anew, the largest group first, without gaps."""
    sizes = np.bincount(labels)
    order = np.argsort(-sizes, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return np.asarray(place[labels], dtype=np.int64)
