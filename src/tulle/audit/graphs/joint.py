"""The audit's view of joint degrees: noise on every cell, by three kinds of bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.signal import fftconvolve

from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Claim, Law, laplace_vector, log_ratio, ratio
from tulle.audit.engine.rounded import RoundedLaplace
from tulle.core.arrays import Floats
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.joint_degrees.mechanisms import (
    JointLaplaceSettings,
    JointSmoothSettings,
    SoftSettings,
    joint_bound,
    soft_cells,
)
from tulle.graphs.synthesis.joint_degrees.queries import (
    JointDegreeQuery,
    SoftJointDegreeQuery,
    joint_degrees,
)

JOINT: tuple[Query, ...] = (
    joint_degrees(),
    joint_degrees(1),
    joint_degrees(2),
    joint_degrees(ratio=2),
    joint_degrees(ratio=4),
)
"""The questions of the audit about joint degrees."""

DRAWN_JOINT: tuple[Query, ...] = (joint_degrees(), joint_degrees(ratio=4))

JOINT_OPTIONS: dict[str, tuple[Parameters, ...]] = {"joint_soft": ({"step": "1"}, {})}
"""A coarse lattice has few values to list; the usual one is examined as well."""

_GRID = 1 / 512
"""Log-ratios are rounded up to this grid before they are added up."""

_FAR = 120.0
"""A log-ratio of one entry beyond this is as good as infinite at every budget examined."""


@dataclass(frozen=True)
class SmoothVector(Law):
    """Rounded Laplace noise of scale bound / alpha on each entry, the bound following the data."""

    centre: tuple[int, ...]
    bound: Fraction
    alpha: Fraction
    beta: Fraction

    def claims(self, other: SmoothVector) -> Iterator[Claim]:
        moved = sum(abs(a - b) for a, b in zip(self.centre, other.centre, strict=True))
        figure = f"moves {moved}, S = {float(self.bound):.6g}"
        yield Claim("bound covers", ratio(moved, float(self.bound)), figure)
        yield Claim(
            "bound is smooth",
            log_ratio(other.bound, self.bound, self.beta),
            f"S' / S = {float(other.bound / self.bound):.6g}, beta = {float(self.beta):.4g}",
        )

    def _entry(self, centre: int) -> RoundedLaplace:
        return RoundedLaplace(centre, self.bound, self.alpha, self.beta)

    def loss(self, other: SmoothVector) -> float:
        # Entries are independent, so the worst ratios add up.
        pairs = zip(self.centre, other.centre, strict=True)
        return math.fsum(self._entry(a).loss(other._entry(b)) for a, b in pairs)

    def losses(self, other: SmoothVector) -> tuple[Floats, Floats]:
        """Return the distribution of the sum of all entries' log-ratios, each rounded up."""
        masses, start = np.array([1.0]), 0
        for a, b in zip(self.centre, other.centre, strict=True):
            entry, logs = self._entry(a).losses(other._entry(b))
            steps = np.ceil(np.clip(logs, -_FAR, _FAR) / _GRID - 1e-9).astype(np.int64)
            low = int(steps.min())
            masses = fftconvolve(masses, np.bincount(steps - low, weights=entry))
            start += low
        losses: Floats = ((start + np.arange(len(masses))) * _GRID).astype(np.float64)
        return np.maximum(masses, 0.0), losses

    def points(self, left_out: float) -> tuple[list[Any], Floats]:
        # Below zero everything is released as zero, so those values are one.
        vectors: list[tuple[int, ...]] = [()]
        masses = np.array([1.0])
        for centre in self.centre:
            values, entry = self._entry(centre).points(left_out / len(self.centre))
            kept = np.bincount(np.maximum(values, 0), weights=entry)
            vectors = [(*vector, value) for vector in vectors for value in range(len(kept))]
            masses = np.multiply.outer(masses, kept).ravel()
        return vectors, masses


def describe_joint_laplace(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every pair of degrees."""
    return _laplace_cells(terms.query.truth(graph), JointLaplaceSettings.read(settings))


def describe_joint_soft(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every pair of soft classes."""
    cells = soft_cells(terms.query, settings, graph)
    return _laplace_cells(cells, SoftSettings.read(settings))


def _laplace_cells(cells: Any, chosen: JointLaplaceSettings | SoftSettings) -> Description:
    law = laplace_vector(cells, chosen.scale, chosen.sensitivity)
    return Description((("answer", law),))


def describe_joint_smooth(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe rounded Laplace noise by the smooth bound on every pair of degrees."""
    assert isinstance(terms.query, JointDegreeQuery)
    bound = joint_bound(terms.query, settings, graph)
    return Description((("answer", smooth_vector(terms, settings, graph, bound)),))


def smooth_vector(
    terms: Terms, settings: Parameters, graph: Graph, bound: Fraction
) -> SmoothVector:
    """Return the law of noise by this bound."""
    centre = tuple(terms.query.truth(graph).tolist())
    chosen = JointSmoothSettings.read(settings)
    return SmoothVector(centre, bound, chosen.alpha, chosen.beta)


JOINT_DESCRIBERS: dict[str, Callable[[Terms, Parameters, Graph], Description]] = {
    "joint_laplace": describe_joint_laplace,
    "joint_smooth": describe_joint_smooth,
    "joint_soft": describe_joint_soft,
}
"""The closed form of each mechanism's run, by name."""


def is_joint(query: Query) -> bool:
    """Say whether a question is for joint degrees."""
    return isinstance(query, JointDegreeQuery | SoftJointDegreeQuery)


def finish_joint(terms: Terms, settings: Parameters) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return the post-processing: soft cells in edges, other cells at least zero."""
    if isinstance(terms.query, SoftJointDegreeQuery):
        step = float(SoftSettings.read(settings).step)
        return lambda parts: tuple(entry * step for entry in parts[0])
    return lambda parts: (tuple(max(entry, 0) for entry in parts[0]), None)
