"""Eigenvectors by noisy subspace iteration: the matrix is only ever multiplied by public rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.events import Event, Gaussian
from tulle.core.gaussian import rho_for
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.core.validate import text
from tulle.graphs.data import Graph
from tulle.graphs.queries.counts import node_count
from tulle.graphs.spectra.denoising import risky
from tulle.graphs.spectra.queries import (
    Spectrum,
    VectorQuery,
    adjacency,
    leading,
    oriented,
    public_signs,
    public_spectrum,
    rank_of,
    shrink,
    typical_sine,
)
from tulle.noise import discrete_gaussian, discrete_laplace
from tulle.noise.charge import GaussianCharge, LaplaceCharge, charge

LEVELS = 2**12
"""How finely an iterate is rounded: its longest rows have this length."""

_LEAST_REACH = Fraction(1, 10**6)
"""A row over the length where it is cut is then far from the limits of floating point: one that is
no number would move a product by more than the noise covers."""

_LARGE = 20_000
_MOST_LEVELS = 2**20
_MOST_ITERATIONS = 1000
_LARGEST_SCALE = 2**46


def whole_rows(rows: Floats, longest: float, levels: int, order: int) -> Wholes:
    """Return rows as whole numbers, none longer than ``levels`` in the norm of this order.

    Rows longer than ``longest`` are cut to it, and ``longest`` becomes ``levels``. Rounding may
    make a row too long: it is shortened while it is, by whole numbers, so floats decide nothing.

    Example:
        >>> whole_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0, 10, 2).tolist()
        [[6, 8], [3, 4]]
    """
    with np.errstate(all="ignore"):
        length = np.linalg.norm(rows, ord=order, axis=1)
        factor = levels / np.maximum(length, longest)
        # What is no number would become the least of all whole numbers.
        scaled = np.nan_to_num(np.rint(rows * factor[:, None]))
    made: Wholes = np.clip(scaled, -levels, levels).astype(np.int64)
    while True:
        sizes = np.abs(made)
        long = (sizes if order == 1 else sizes**2).sum(axis=1) > levels**order
        if not long.any():
            return made
        made[long] -= np.sign(made[long])


@dataclass(frozen=True)
class Tuning:
    """Iterations, reach and threshold, as text.

    Found on the public networks of ``benchmarks/spectra.py``; which of them is not on record.
    """

    single: tuple[int, str, str] = (4, "0.5", "2")
    """One vector, epsilon below 2."""
    single_of_many: tuple[int, str, str] = (5, "0.15", "3")
    """The same among more than 20,000 nodes."""
    single_clear: tuple[int, str, str] = (5, "0.8", "2.5")
    """One vector, epsilon of 2 and above."""
    several: tuple[str, str] = ("0.15", "0.7")
    several_clear: tuple[str, str] = ("0.25", "0.7")
    """Reach and threshold for several vectors, in the same order."""
    certain: float = 4.0
    """For a matrix of low rank, values of fewer deviations of their noise are taken for zero. Not
    chosen on data: noise alone exceeds it once in 16,000."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class PowerSettings(Settings):
    """The public settings of one run."""

    nodes: int
    k: int
    iterations: int
    reach: Fraction
    """Where rows are cut, as a part of the longest."""
    threshold: Fraction
    levels: int
    """To how many steps a row is rounded."""
    variance: Fraction | None = None
    """Of Gaussian noise."""
    scale: Fraction | None = None
    """Of Laplace noise."""


class _Iteration(Mechanism):
    """What both versions share: they differ in the norm of rows and in the noise."""

    kind: ClassVar[str] = "graph"
    reference: ClassVar[str] = "Hardt & Roth, STOC 2013"
    options: ClassVar[tuple[str, ...]] = ("iterations", "reach", "threshold", "levels")
    order: ClassVar[int]

    many: ClassVar[int]
    """How many rounds for several vectors, of which all but one start from nothing."""

    def defaults(self, nodes: int, k: int, epsilon: Fraction) -> tuple[int, str, str]:
        """Return iterations, reach and threshold, from public facts.

        More noise, by epsilon or by size, asks for harder clipping; a single vector starts well
        (from all ones) and can be cleaned of more.
        """
        if k == 1 and epsilon < 2:
            return _TUNING.single if nodes <= _LARGE else _TUNING.single_of_many
        if k == 1:
            return _TUNING.single_clear
        return self.many, *(_TUNING.several if epsilon < 2 else _TUNING.several_clear)

    @abstractmethod
    def noise_parameter(self, terms: Terms, iterations: int, levels: int) -> tuple[str, Fraction]:
        """Return the name and value of the noise's parameter."""

    @abstractmethod
    def deviation(self, settings: Parameters) -> float:
        """Return the standard deviation of the noise on a whole entry."""

    @abstractmethod
    def draw(self, settings: Parameters, size: tuple[int, int], source: Source | None) -> Wholes:
        """Draw the noise of one round."""

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        nodes, k = node_count(terms), rank_of(terms)
        iterations, reach, threshold = self.defaults(nodes, k, terms.epsilon)
        iterations = validate.whole(
            iterations=options.get("iterations", iterations), at_least=1, at_most=_MOST_ITERATIONS
        )
        share = validate.positive(reach=options.get("reach", reach))
        if not _LEAST_REACH <= share <= 1:
            raise InputError(
                f"reach must be at least {float(_LEAST_REACH):g} and at most 1; got {text(share)}."
            )
        cut = validate.non_negative(threshold=options.get("threshold", threshold))
        levels = validate.whole(
            levels=options.get("levels", LEVELS), at_least=1, at_most=_MOST_LEVELS
        )
        name, value = self.noise_parameter(terms, iterations, levels)
        # At a tiny epsilon the noise is so large that fine rounding would only lengthen numbers.
        while levels > 1 and value > _LARGEST_SCALE**self.order:
            levels //= 2
            name, value = self.noise_parameter(terms, iterations, levels)
        return PowerSettings(nodes, k, iterations, share, cut, levels, **{name: value})

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = PowerSettings.read(settings)
        if not isinstance(like, Graph):
            return Prediction(None, None, 1.0)
        known = public_spectrum(like, chosen.k)
        lengths = np.linalg.norm(known.vectors, ord=self.order, axis=1)
        unit = float(lengths.max()) * float(chosen.reach) / chosen.levels
        noise = self.deviation(settings) * unit * math.sqrt(chosen.nodes)
        # Of k vectors all but the first start from random signs and are found late, if at all.
        noise *= chosen.k
        return Prediction(None, None, typical_sine(noise, known.values))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        chosen = PowerSettings.read(settings)
        assert isinstance(dataset, Graph)
        matrix = adjacency(dataset)
        iterate = start(chosen.nodes, chosen.k)
        iterations = chosen.iterations
        for turn in range(1, iterations + 1):
            rows, unit = self.rows(iterate, settings)
            noisy = matrix @ rows + self.draw(settings, rows.shape, source)
            if turn == 1:
                squares = self.squares(rows, noisy, settings)
            if turn == iterations:
                return Outcome(self.conclude(terms, rows, noisy, settings, squares), None)
            iterate = self.improve(noisy, unit, settings)
        raise AssertionError("there is at least one round")

    def squares(self, rows: Wholes, noisy: Wholes, settings: Parameters) -> float:
        """Return what the squares of all eigenvalues add up to, a deviation below what it seems.

        They add up to the degrees, and those are what the first round shows of its column of ones.
        """
        nodes, one = rows.shape[0], abs(int(rows[0, 0])) or 1
        off = self.deviation(settings) * math.sqrt(nodes)
        return max((float(noisy[:, 0].sum()) - off) / one, 1.0)

    def rows(self, iterate: Floats, settings: Parameters) -> tuple[Wholes, float]:
        """Return the clipped whole rows that the matrix is applied to, and what one step means.

        The length at which rows are clipped follows the iterate, which is public by then.
        """
        chosen = PowerSettings.read(settings)
        lengths = np.linalg.norm(iterate, ord=self.order, axis=1)
        longest = float(lengths.max()) * float(chosen.reach)
        levels = chosen.levels
        return whole_rows(iterate, longest, levels, self.order), longest / levels

    def improve(self, noisy: Wholes, unit: float, settings: Parameters) -> Floats:
        """Return the next iterate: what stands out of the noise, orthonormal."""
        left, size, _ = np.linalg.svd(noisy * unit, full_matrices=False)
        clean = self.clean(left * size, self.deviation(settings) * unit, settings)
        return np.asarray(np.linalg.svd(clean, full_matrices=False)[0], dtype=np.float64)

    def clean(self, columns: Floats, noise: float | Floats, settings: Parameters) -> Floats:
        """Return the columns with what the noise alone could be taken off, where that helps.

        It helps vectors on parts of the nodes, and hurts those that are spread over all: by Stein's
        estimate of the squared error, which is n·v² as it is, with v the noise, and less by
        2v² for each entry set to zero, more by the squares of what is taken off.
        """
        chosen = PowerSettings.read(settings)
        cut = float(chosen.threshold) * noise
        kept = shrink(columns, cut)
        zeroed = (np.abs(columns) <= cut).sum(axis=0)
        helps = np.minimum(columns**2, cut**2).sum(axis=0) < 2 * noise**2 * zeroed
        # Of several vectors all but the first are on parts of the nodes.
        helps |= columns.shape[1] > 1
        # A column that drowns altogether is better than none.
        return np.where(kept.any(axis=0) & helps, kept, columns)

    def conclude(
        self, terms: Terms, rows: Wholes, noisy: Wholes, settings: Parameters, squares: float
    ) -> Spectrum:
        """Return the spectrum that the last round shows, from its public rows and noisy product."""
        chosen = PowerSettings.read(settings)
        basis, mixed = np.linalg.qr(rows.astype(np.float64))
        unmix = np.linalg.pinv(mixed)
        image = noisy @ unmix
        within = basis.T @ image
        values, turn = np.linalg.eigh((within + within.T) / 2)
        assert isinstance(terms.query, VectorQuery)
        order = leading(values, terms.query.by_size)
        values, turn = values[order], turn[:, order]
        # The noise on a column has this size after it is mixed and turned.
        noise = self.deviation(settings) * np.linalg.norm(unmix @ turn, axis=0)
        vectors, _ = np.linalg.qr(self.clean(image @ turn, noise, settings))
        if terms.query.by_size:
            # Noise alone would take the matrix further away than zeros are; of several values the
            # largest has about the noise of all of them.
            all_noise = noise * math.sqrt(chosen.k)
            least = np.maximum(_TUNING.certain * noise, risky(all_noise, squares / chosen.k))
            values = np.where(np.abs(values) > least, values, 0.0)
        most = chosen.nodes - 1
        level = float(noise.mean()) * math.sqrt(chosen.nodes)
        return Spectrum(np.clip(values, -most, most), oriented(vectors), level)


def start(nodes: int, k: int) -> Floats:
    """Return the first iterate: fixed signs, the first column all ones."""
    return public_signs(nodes, k)


@registry.mechanism("graph", "power", answers=(VectorQuery,), units=("edge",))
class Power(_Iteration):
    """Multiply by the adjacency matrix a few times, with Gaussian noise after each time.

    The iterate's rows are clipped to a length that everyone knows (a share ``reach`` of its own
    longest row, itself released) and rounded to whole numbers. Between rounds it is made
    orthonormal and small entries are set to zero: all of that is post-processing.

    Guarantee:
        (epsilon, delta) per edge. An edge between u and v moves two rows of A·X: row u by X[v]
        and row v by X[u], each of Euclidean length at most L = ``levels`` after clipping, so
        sqrt(2)·L in all, however many columns there are. Discrete Gaussian noise of variance s²
        makes a round L²/s²-zCDP, given all earlier rounds; T rounds compose adaptively to
        T·L²/s², and s² is chosen so that this implies (epsilon, delta)
        (:mod:`tulle.core.gaussian`).

    Error:
        Depends on the graph: good where eigenvalues exceed the noise, that is about
        reach · (longest row) · sqrt(n·T/rho). The vectors found belong to eigenvalues that are
        large in size, whatever their sign. There is no interval.

    Reference:
        Hardt & Roth, Beyond worst-case analysis in private singular vector computation, STOC
        2013. Canonne, Kamath & Steinke, The discrete Gaussian, NeurIPS 2020.

    Example:
        >>> import tulle
        >>> clique = Graph.from_edges([(u, v) for u in range(9) for v in range(u)], nodes=9)
        >>> r = tulle.release(clique, tulle.spectrum(1), unit="edge", epsilon=500.0, delta=1e-6,
        ...                   mechanism="power")
        >>> bool(abs(r.value.values[0] - 8) < 1), r.value.vectors.shape
        (True, (9, 1))
    """

    title: ClassVar[str] = "noisy subspace iteration"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True
    order: ClassVar[int] = 2
    many: ClassVar[int] = 6

    def noise_parameter(self, terms: Terms, iterations: int, levels: int) -> tuple[str, Fraction]:
        squared = Fraction(2 * iterations * levels**2)
        return "variance", squared / (2 * rho_for(terms, squared))

    def event(self, terms: Terms, settings: Parameters) -> Event:
        chosen = PowerSettings.read(settings)
        squared = Fraction(2 * chosen.iterations * chosen.levels**2)
        assert chosen.variance is not None
        return Gaussian.of(squared, chosen.variance)

    def deviation(self, settings: Parameters) -> float:
        chosen = PowerSettings.read(settings)
        assert chosen.variance is not None
        return math.sqrt(chosen.variance)

    def draw(self, settings: Parameters, size: tuple[int, int], source: Source | None) -> Wholes:
        chosen = PowerSettings.read(settings)
        variance = chosen.variance
        assert variance is not None
        with charge(GaussianCharge(2 * chosen.levels**2)):
            return discrete_gaussian(variance=variance, size=size, source=source)


@registry.mechanism("graph", "power_pure", answers=(VectorQuery,), units=("edge",))
class PowerPure(_Iteration):
    """Multiply by the adjacency matrix a few times, with Laplace noise after each time.

    As ``power``, with rows clipped in L1.

    Guarantee:
        Pure epsilon per edge. An edge between u and v moves row u of A·X by X[v] and row v by
        X[u], each of L1 length at most L = ``levels``: 2L in all. Discrete Laplace noise of scale
        2·L·T/epsilon makes a round epsilon/T, given all earlier rounds, and T rounds add up.

    Error:
        As ``power``, with sqrt(8)·T/epsilon in place of sqrt(T/rho): best with few rounds.

    Reference:
        Hardt & Roth, STOC 2013. Dwork et al., TCC 2006.

    Example:
        >>> import tulle
        >>> clique = Graph.from_edges([(u, v) for u in range(9) for v in range(u)], nodes=9)
        >>> r = tulle.release(clique, tulle.spectrum(1), unit="edge", epsilon=500.0,
        ...                   mechanism="power_pure")
        >>> bool(abs(r.value.values[0] - 8) < 1)
        True
    """

    title: ClassVar[str] = "noisy subspace iteration, pure"
    order: ClassVar[int] = 1
    many: ClassVar[int] = 3

    def noise_parameter(self, terms: Terms, iterations: int, levels: int) -> tuple[str, Fraction]:
        return "scale", 2 * levels * iterations / terms.epsilon

    def deviation(self, settings: Parameters) -> float:
        # The variance of discrete Laplace noise is 2q / (1 - q)², q = exp(-1/scale).
        chosen = PowerSettings.read(settings)
        assert chosen.scale is not None
        scale = float(chosen.scale)
        return math.sqrt(0.5) / math.sinh(0.5 / scale) if scale > 1e-3 else 0.0

    def draw(self, settings: Parameters, size: tuple[int, int], source: Source | None) -> Wholes:
        chosen = PowerSettings.read(settings)
        scale = chosen.scale
        assert scale is not None
        with charge(LaplaceCharge(2 * chosen.levels)):
            return discrete_laplace(scale=scale, size=size, source=source)
