"""From a question and public facts to blocks, limits and the law of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.arrays import Floats, Wholes
from tulle.core.error_law import ErrorLaw, check_level
from tulle.core.errors import QueryError
from tulle.core.validate import rational, widen_up
from tulle.matrices.contributions.labels import unpack_labels
from tulle.matrices.contributions.partition import GAUSSIAN, cut, group
from tulle.matrices.contributions.queries import Weights


@dataclass(frozen=True, eq=False)
class BlockLimits:
    """Blocks of cells, and how much one individual may have in them; real numbers."""

    labels: Wholes
    cells: Floats
    """The most in each cell; 0 outside the support, infinite where only sums are bounded."""
    sizes: Floats
    totals: Floats
    total: float
    squares: Floats
    square: float


def cell_bounds(query: Weights, facts: Mapping[str, Any]) -> Floats:
    """Return the most that one individual may have in each cell.

    Raises:
        QueryError: when the question's matrices do not have the shape of the grid.
    """
    shape = int(facts["rows"]), int(facts["columns"])
    bounds = query.reference.bound if query.reference is not None else query.bound
    for name, given in (("bound", bounds), ("labels", query.labels)):
        if given is not None and given.values.ndim == 2 and given.values.shape != shape:
            raise QueryError(
                f"{name} has shape {given.values.shape}; the grid is {shape[0]} x {shape[1]}."
            )
    cells = np.full(shape, math.inf if bounds is None else 0.0)
    if bounds is not None:
        cells[:] = bounds.values
    if facts.get("support") is not None:
        cells[unpack_labels(facts["support"], shape) < 0] = 0.0
    if query.labels is not None:
        cells[query.labels.values < 0] = 0.0
    if not (cells > 0).any():
        raise QueryError("No cell of the public support has a bound above zero.")
    limit = min(query.total or math.inf, query.length or math.inf)
    bounded: Floats = np.minimum(cells, limit)
    return bounded


def frame_of(query: Weights, facts: Mapping[str, Any], power: Fraction) -> BlockLimits:
    """Return the blocks and all limits that follow from the question and public facts.

    Sums of squares follow from sums: in a block whose cells have at most b, the squares of
    numbers that add up to D add up to at most b·D.

    Raises:
        QueryError: when a block is left without cells, or has nothing that bounds its sum.
    """
    cells = cell_bounds(query, facts)
    labels = _labels(query, cells, power)
    inside = labels >= 0
    # The last blocks may have a limit and no cell.
    given = (query.block_total, query.block_length)
    count = max(int(labels.max()) + 1, *(0 if one is None else len(one.values) for one in given))
    sizes = np.bincount(labels[inside], minlength=count).astype(np.float64)
    if not sizes.all():
        raise QueryError("A block has no cell in the public support. Number the others 0, 1, ...")
    sums = np.bincount(labels[inside], weights=cells[inside], minlength=count)
    highest = np.zeros(count)
    np.maximum.at(highest, labels[inside], cells[inside])
    total = query.total or math.inf
    totals = np.minimum(sums, total)
    square = (query.length or math.inf) ** 2
    squares = np.full(count, square)
    if query.block_total is not None:
        totals = np.minimum(totals, query.block_total.values)
    if query.block_length is not None:
        squares = np.minimum(squares, query.block_length.values**2)
    if query.reference is not None:
        runs = _runs(query, labels, count)
        reach = np.array([[p.values[i, j] for i, j in runs] for p in query.reference[1:3]])
        totals, squares = np.minimum(totals, reach[0]), np.minimum(squares, reach[1])
        total = min(total, float(query.reference.totals.values[0, -1]))
        square = min(square, float(query.reference.squares.values[0, -1]))
        totals, squares = np.minimum(totals, total), np.minimum(squares, square)
    # Where only lengths are bounded: n numbers of length L add up to at most sqrt(n)·L.
    totals = np.minimum(totals, np.sqrt(sizes * squares))
    highest = np.minimum(highest, totals)
    squares = np.minimum(squares, highest * totals)
    total = min(total, float(totals.sum()))
    square = min(square, float(squares.sum()), float(highest.max()) * total)
    if not np.isfinite(totals).all():
        raise QueryError("A block has nothing that bounds its sum: give bound= or total=.")
    return BlockLimits(labels, cells, sizes, totals, total, squares, square)


def _labels(query: Weights, cells: Floats, power: Fraction) -> Wholes:
    if query.labels is not None:
        return np.where(cells > 0, query.labels.values, -1).astype(np.int64)
    labels = np.full(cells.shape, -1, dtype=np.int64)
    inside = cells > 0
    if not np.isfinite(cells[inside]).all():
        labels[inside] = 0
        return labels
    total = query.total or math.inf
    square = (query.length or math.inf) ** 2
    if query.reference is not None:
        total = min(total, float(query.reference.totals.values[0, -1]))
        square = min(square, float(query.reference.squares.values[0, -1]))

    def make_caps(places: Any, bounds: Floats, sizes: Floats) -> tuple[Floats, float]:
        count = len(bounds)
        ends = np.concatenate(([0.0], np.cumsum(sizes * bounds)))
        caps = np.minimum(np.maximum(ends[None, :] - ends[:, None], 0.0), total)
        at = np.arange(count)
        if query.reference is not None:
            levels = np.unique(query.reference.bound.values)
            at = np.searchsorted(levels, bounds).clip(0, len(levels) - 1)
        edges = np.concatenate((at, [at[-1] + 1]))
        upper = np.triu_indices(count + 1, 1)
        # Column j ends after class j - 1, which may not be next to class j among the levels.
        first, last = edges[upper[0]], at[upper[1] - 1] + 1
        if query.reference is not None:
            caps[upper] = np.minimum(caps[upper], query.reference.totals.values[first, last])
        if power != GAUSSIAN:
            return caps, total
        squares = np.zeros_like(caps)
        squares[upper] = np.minimum(caps[upper] * bounds[upper[1] - 1], square)
        if query.reference is not None:
            squares[upper] = np.minimum(squares[upper], query.reference.squares.values[first, last])
        return squares, min(square, total * float(bounds[-1]))

    classes, places = group(cells[inside], make_caps)
    cuts = cut(classes, query.blocks, power)
    labels[inside] = np.searchsorted(np.array(cuts), places, side="right") - 1
    return labels


def _runs(query: Weights, labels: Wholes, count: int) -> list[tuple[int, int]]:
    """Return which levels of the reference each block covers, from first to past the last."""
    assert query.reference is not None
    levels = np.unique(query.reference.bound.values)
    level = np.searchsorted(levels, query.reference.bound.values)
    found = []
    for block in range(count):
        held = level[labels == block]
        found.append((int(held.min()), int(held.max()) + 1))
    return found


# --- the error --------------------------------------------------------------------------------


@registry.register("law", "contributions", "blocks")
@dataclass(frozen=True)
class BlockLaw(ErrorLaw):
    """Independent noise in every cell, of a scale for each block; zero outside the blocks.

    It is the law of released minus *clipped* total: what clipping takes away is not in it.
    """

    noise: str
    exponent: int
    scales: tuple[str, ...]
    """Of Laplace noise the scales, of Gaussian noise the variances; in steps."""
    sizes: tuple[int, ...]
    labels: str
    rows: int
    columns: int
    slack: float = 0.0
    """What post-processing adds to the noise at most."""
    raised: bool = False
    """Whether negative totals were raised to zero: how far below a zero was is then not known."""
    name: ClassVar[str] = "blocks"

    @property
    def leaves_out(self) -> str:
        """What clipping took away."""
        return (
            "Whoever contributes more than the stated bounds was scaled down to them; what that "
            "took away comes on top of the noise, so that totals may be too low by any amount."
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", tuple(self.scales))
        object.__setattr__(self, "sizes", tuple(self.sizes))

    def spreads(self) -> Floats:
        """Return the scale or standard deviation of each block, in the units of the data."""
        found = [float(rational(scale)) for scale in self.scales]
        roots = found if self.noise == "laplace" else [math.sqrt(v) for v in found]
        spreads: Floats = np.ldexp(np.array(roots), self.exponent)
        return spreads

    def deviations(self) -> Floats:
        """Return the standard deviation of each cell's noise; 0 outside the blocks."""
        deviations = self.spreads() * (math.sqrt(2) if self.noise == "laplace" else 1.0)
        return self.spread_out(deviations)

    def mean_error(self) -> float:
        """Return the expected absolute error of a cell, averaged over all cells with noise."""
        sizes = np.array(self.sizes, dtype=np.float64)
        return float(sizes @ self.block_errors() / sizes.sum())

    def block_errors(self) -> Floats:
        """Return the expected absolute value of each block's noise."""
        step = math.ldexp(1.0, self.exponent)
        return np.array([_mean(self.noise, s / step) * step for s in self.spreads().tolist()])

    def widths(self, level: float) -> Floats:
        """Return, for each block, what the noise of no cell exceeds with this probability."""
        alpha = -math.expm1(math.log(check_level(level)) / sum(self.sizes))
        step = math.ldexp(1.0, self.exponent)
        if self.noise == "laplace":
            reach = self.spreads() * math.log(2 / alpha)
        else:
            # The tails of the discrete Gaussian are at most those of the continuous one.
            reach = self.spreads() * -NormalDist().inv_cdf(alpha / 2)
        return np.array([widen_up(r) + step + self.slack for r in reach.tolist()])

    def half_width(self, level: float) -> float:
        """Return the width of the noisiest block."""
        return float(self.widths(level).max())

    def interval(self, value: Any, level: float) -> tuple[Any, Any]:
        """Return the ends for each cell; all clipped totals are covered at once."""
        widths = self.cell_widths(level)
        low = value - widths
        if self.raised:
            low = np.where((np.asarray(value) <= 0) & (widths > 0), -np.inf, low)
        return low, value + widths

    def cell_widths(self, level: float) -> Floats:
        """Return the width of each cell's block, 0 outside the blocks."""
        return self.spread_out(self.widths(level))

    def spread_out(self, figures: Floats) -> Floats:
        """Return each cell's figure from one for each block; 0 outside the blocks."""
        labels = unpack_labels(self.labels, (self.rows, self.columns))
        return np.where(labels >= 0, figures[labels], 0.0)


def _mean(noise: str, spread: float) -> float:
    """Return E|X| in steps: 1 / sinh(1 / scale) for Laplace noise on whole numbers."""
    if noise == "laplace":
        return 0.0 if spread < 1e-3 else 1 / math.sinh(1 / spread)
    if spread > 50:
        return spread * math.sqrt(2 / math.pi)
    places = np.arange(1, 13 * math.ceil(spread) + 2)
    masses = np.exp(-(places**2) / (2 * spread**2))
    return float(2 * (places @ masses) / (1 + 2 * masses.sum()))
