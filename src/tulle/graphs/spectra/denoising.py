"""The leading eigenvectors of a public, noisy matrix. All of it is post-processing.

Vectors of real networks are concentrated on parts of the nodes. Two things make use of that: the
search begins among the nodes of largest (noisy) degree, where fewer entries mean less noise, and
entries that the noise alone could explain are set to zero between multiplications.

Where the first vector is spread over all nodes, or drowns, the degrees alone are nearer to it: the
all-ones vector of a graph without hubs, say, which no noise touches. Such *candidates* are made
without a look at the matrix, so its quotient x'Mx is an unbiased estimate of the true x'Ax, off by
sqrt(2)·s at most in its deviation; the best of them and of what was found is taken.

How much of the true matrix a vector found in the noisy one has is modelled; where its quotient
x'Ax was measured (:mod:`tulle.graphs.spectra.quotients`), that is taken in place of the model.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.graphs.spectra.queries import Spectrum, leading, oriented, public_signs, shrink

LARGEST_HELD = 6_000
"""Up to this many nodes a matrix, or a part of one, is held as floats."""

_PLAIN, _INSIDE, _SPARSE, _LAST = 8, 10, 5, 5
"""Rounds: plain ones of a block Krylov search; cleaned ones inside a core, with columns to spare;
then on all nodes with columns to spare; then with those that are asked for.

An eigenvalue just above half the bulk hardly stands out at first; once entries are cleaned it
does, so columns must not be dropped before.
"""


@dataclass(frozen=True)
class Tuning:
    """How eigenvectors are looked for in a noisy matrix.

    Chosen on generated networks (preferential attachment, small world, power-law configuration,
    blocks, cliques), facebook_combined, ca-GrQc and wiki-Vote.
    """

    threshold: float = 2.0
    settled: float = 1 - 1e-12
    """Columns whose cosine with those of the round before exceeds this will not change any more."""
    smallest_core: int = 32
    solved: int = 300
    """Up to this many nodes a part is decomposed whole."""
    growth: float = 1.6
    margin: float = 3.0
    """By how many of its own fluctuations an eigenvalue must leave the bulk to count."""
    cuts: tuple[float, ...] = (2.0, 5.0)
    """At how many scales of their noise degrees are cut for candidates.

    Not chosen on any data: few deviations, and about the largest noise of a thousand nodes."""
    shown: float = 4.0
    """By how many deviations a candidate's quotient must exceed zero to count as a value."""
    measured: float = 3.0
    """And one that was measured. Not chosen on any data: noise alone exceeds it once in 70."""
    loss: float = 0.01
    """By what part of their squared distance a matrix of low rank may be further away than zeros,
    in the mean, at the worst true value. Not chosen on any data."""
    doubt: float = 0.25
    """By what part of what it expects a vector to fit the noise by the model is off.

    Seen on polblogs, email-Eu-core, ca-GrQc, facebook_combined and netscience: a fifth at most but
    for two of 24 vectors."""
    doubt_cleaned: float = 1.25
    """The same after cleaning, which chooses entries by the noise."""


_TUNING = Tuning()


class NoisyMatrix(ABC):
    """An unbiased estimate of an adjacency matrix, with independent noise on each pair. Public."""

    nodes: int
    noise: float
    """The standard deviation of the noise on an entry."""

    @abstractmethod
    def __matmul__(self, columns: Floats) -> Floats:
        """Return the product with some columns."""

    @abstractmethod
    def part(self, places: npt.NDArray[np.int64]) -> NoisyMatrix:
        """Return the rows and columns at these places, held as floats."""


class HeldMatrix(NoisyMatrix):
    """A noisy matrix that is small enough to be held as floats."""

    def __init__(self, entries: npt.NDArray[np.float32], noise: float) -> None:
        self.entries = entries
        self.nodes = len(entries)
        self.noise = noise

    def __matmul__(self, columns: Floats) -> Floats:
        return np.asarray(self.entries @ columns.astype(np.float32), dtype=np.float64)

    def part(self, places: npt.NDArray[np.int64]) -> HeldMatrix:
        return HeldMatrix(self.entries[np.ix_(places, places)], self.noise)


@dataclass(frozen=True, eq=False)
class Found:
    """Vectors that a noisy matrix shows, and what is known of how true they are. Public."""

    shown: Floats
    """The quotients x'Mx of the noisy matrix, the leading first."""
    vectors: Floats
    modelled: Floats
    """The sizes of x'Ax that a model expects: zero where a vector drowns."""
    certain: npt.NDArray[np.bool_]
    level: float
    """From where on an eigenvalue shows in its vector."""
    noise: float
    """The standard deviation of the noise on an entry."""
    nodes: int
    """Of the noisy matrix; vectors may have more rows, of nodes outside of it."""
    by_size: bool
    mean_degree: float
    cleaned: bool = False
    """Whether small entries were set to zero, in view of the noise."""
    held: float = 1.0
    """What part of all edges, about, is between nodes of the core that was searched."""
    squares: float = math.inf
    """What the squares of all true eigenvalues add up to at least, as far as is known."""
    candidate: Floats | None = None
    reached: float = 0.0
    """A vector made without the matrix that may be nearer than the first, its quotient x'Mx."""

    @property
    def columns(self) -> Floats:
        """The vectors of length one whose quotients tell the values: few, if most drown."""
        kept = self.vectors[:, self._measured]
        if self.candidate is None:
            return kept
        return np.column_stack([self.candidate, kept])

    @property
    def _measured(self) -> npt.NDArray[np.int64]:
        first = 1 if self.candidate is None else 0
        return np.flatnonzero(self.certain | (np.arange(len(self.shown)) < first))

    def spectrum(
        self,
        measured: Floats | None = None,
        deviations: Any = 0.0,
        square: tuple[float, float] | None = None,
    ) -> Spectrum:
        """Return values and vectors, by the model, or by measured quotients of the columns.

        ``square`` is a measured square of the first value, and its deviation.
        """
        sizes, certain = np.abs(self.shown), self.certain
        quotients = np.sign(self.shown) * self.modelled
        reached, deviation = self.reached, math.sqrt(2) * self.noise
        needed = _TUNING.shown * deviation
        if measured is None and self.candidate is not None and reached < self.modelled[0]:
            return replace(self, candidate=None).spectrum(square=square)
        if measured is not None:
            if self.candidate is not None:
                # Coins had no part in the candidate: both estimates are unbiased.
                own = float(deviations[0])
                reached = _weighed(reached, deviation, float(measured[0]), own)
                both_off = _weighed_deviation(deviation, own)
                needed = max(_TUNING.measured * float(both_off), float(self._risky(both_off)))
                measured, deviations = measured[1:], deviations[1:]
            quotients, certain, places = quotients.copy(), certain.copy(), self._measured
            signs = np.sign(self.shown[places])
            # Of what drowns the model knows nothing.
            doubt = _TUNING.doubt_cleaned if self.cleaned else _TUNING.doubt
            model = (sizes - self.modelled)[places] * np.where(certain[places], doubt, 1e9) + 1e-9
            both = _weighed(quotients[places], model, measured, deviations)
            quotients[places] = signs * np.clip(signs * both, 0.0, sizes[places])
            # A matrix of noise is further away than zeros; for a value noise does little harm.
            least = np.where(certain[places], 1.0, _TUNING.measured)
            off = _weighed_deviation(model, deviations)
            holds = signs * both > least * off
            if self.by_size:
                certain[places] = holds & (signs * both > self._risky(off))
            else:
                certain[places] = holds | certain[places]
            # What was looked for in the noise looks better than it is.
            if self.candidate is not None and self.certain[0] and abs(both[0]) - off[0] > reached:
                return replace(self, candidate=None).spectrum(measured, deviations, square)
        values = _estimated(self.shown, quotients, certain, self.level, self.by_size)
        if not self.by_size and self.mean_degree > 0:
            values = _guessed(values, certain, self.level, self.mean_degree, self.nodes)
        vectors = self.vectors
        if self.candidate is not None:
            values, vectors, certain = self._with_candidate(values, certain, reached, needed)
        if square is not None and not self.by_size:
            held = [float(quotients[0])] + ([] if self.candidate is None else [reached])
            values = self._with_square(values, certain, max(held), square)
        order = leading(values, self.by_size)
        most = float(self.nodes) - 1 if self.candidate is None else float(len(vectors)) - 1
        return Spectrum(
            np.clip(values[order], -most, most), oriented(vectors[:, order]), self.level
        )

    def _with_candidate(
        self, values: Floats, certain: npt.NDArray[np.bool_], reached: float, needed: float
    ) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """Return values and vectors with the candidate in place of what is most like it."""
        column, k = self.candidate, len(values)
        assert column is not None
        drowns = not self.modelled[0] > 0
        # What drowned is like nothing.
        alike = 0 if drowns else int(np.argmax(np.abs(column @ self.vectors)))
        others = np.delete(np.arange(k), alike)
        turned = np.linalg.qr(np.column_stack([column, self.vectors[:, others]]))[0]
        turned[:, 0] = column
        made = values[[0, *others]].copy()
        if self.by_size:
            made[0] = reached if reached > needed else 0.0
        elif reached > needed:
            # No quotient exceeds the largest eigenvalue; what shows or is guessed may be nearer.
            known = bool(certain[alike]) or drowns
            made[0] = max(reached, float(values[alike])) if known else reached
            if drowns:
                # Squares add up: the i-th is at most the root of an i-th of all.
                made = np.minimum(made, made[0] / np.sqrt(np.arange(1, k + 1)))
        return made, turned, certain[[alike, *others]]

    def _with_square(
        self,
        values: Floats,
        certain: npt.NDArray[np.bool_],
        held: float,
        square: tuple[float, float],
    ) -> Floats:
        """Return values with the first weighed with its measured square, others no larger.

        One that shows may be off by all that its vector fits the noise by; of a candidate half may
        be missing; one that drowns is anywhere between the mean degree, or what vectors hold of the
        matrix, and what would show. Of the others those that drown are taken to fall as 1/sqrt(i):
        squares of eigenvalues add up, so that none falls more slowly all the way. Where any shows,
        the geometric mean with the level from which on others do is off by the least factor, or
        what was guessed without the square, if that is less: both are too large on polblogs.
        """
        order = leading(values, by_size=False)
        own, first = float(values[order[0]]), order[0]
        if certain[first]:
            deviation = own / 2 if self.candidate is not None else float(self.shown[0]) - held
        else:
            deviation = (self._most() - max(self.mean_degree, held)) / math.sqrt(12)
            deviation = max(deviation, own / 2)
        deviation = max(deviation, self.noise, 1e-9)
        both = _weighed(own**2, 2 * max(own, deviation) * deviation, *square)
        made, largest = values.copy(), math.sqrt(max(both, self.mean_degree**2))
        for rank, place in enumerate(order):
            guess = min(largest / math.sqrt(rank + 1), self._most())
            if certain.any():
                inside = min(math.sqrt(guess * min(guess, self.level)), float(values[place]))
                guess = max(inside, 0.0) ** self.held * guess ** (1 - self.held)
            made[place] = min(values[place], largest) if certain[place] else guess
        made[first] = largest
        return made

    def _risky(self, deviation: Any) -> Any:
        """Return up to where a value that is shown may lose more than it may gain."""
        return risky(deviation, self.squares / self.columns.shape[1])

    def _most(self) -> float:
        """What an eigenvalue is at most if none shows: it would show among all nodes."""
        return min(self.noise, math.sqrt(self.mean_degree)) * math.sqrt(self.nodes)


def risky(deviation: Any, squares: float) -> Any:
    """Return up to where a value of a matrix of low rank may lose more than :attr:`Tuning.loss`.

    Let y be r and Laplace noise of scale s, shown as c = y where it exceeds t. The squared distance
    from the true matrix grows by c² - 2cr: in the mean by exp(-(t - r)/s)/2 times
    t² + 2ts + 2s² - 2r(t + s), for r at most t. With u = (t + s)/s that is largest where r is
    s·(u/2 + 1/(2u) - 1), and there s²·u·exp(1/(2u) - u/2), which falls with t. The squared distance
    of zeros is the sum of all ``squares`` of eigenvalues. Where noise is small beside it nothing is
    risky; where it is large, only what exceeds it by far is told.
    """
    scale = np.asarray(deviation, dtype=np.float64) / math.sqrt(2) + 1e-12
    allowed = _TUNING.loss * squares / scale**2
    reach = np.ones_like(scale)
    for _ in range(60):
        reach = np.maximum(2 * np.log(reach / np.minimum(allowed, 1.0)) + 1 / reach, 1.0)
    return (reach - 1) * scale


def _weighed(one: Any, deviation: Any, other: Any, its_deviation: Any) -> Any:
    """Return the mean of two estimates, weighed by the inverse squares of their deviations."""
    share = deviation**2 / (deviation**2 + its_deviation**2)
    return one + share * (other - one)


def _weighed_deviation(one: Any, other: Any) -> Any:
    """Return the deviation of such a mean."""
    return one * other / np.sqrt(one**2 + other**2)


def decompose_noisy(
    matrix: NoisyMatrix,
    k: int,
    degrees: npt.NDArray[Any] | None,
    *,
    by_size: bool,
) -> Spectrum:
    """Return the k leading values and vectors that a noisy matrix shows, by the model alone."""
    return search_noisy(matrix, k, degrees, by_size=by_size).spectrum()


def search_noisy(
    matrix: NoisyMatrix,
    k: int,
    degrees: npt.NDArray[Any] | None,
    *,
    by_size: bool,
    mean_degree: float = 0.0,
    candidates: Floats | None = None,
) -> Found:
    """Return the k leading vectors that a noisy matrix shows.

    ``degrees`` rank the nodes; they too are public. The search takes cores of growing size, those
    of largest degree, and begins with the one where most is left of the eigenvalues after the
    noise. ``by_size`` looks for eigenvalues of either sign. ``mean_degree`` is that of all nodes,
    about: where nothing stands out of the noise, values are guessed from it. ``candidates`` are
    columns of length one for the first vector, made without the matrix; they may have more rows
    than it, which are outside of it, and the vectors returned then have as many.
    """
    nodes = matrix.nodes
    spare = min(5 * k + 5, 25)
    order = np.arange(nodes) if degrees is None else np.argsort(-degrees, kind="stable")
    best, core, inside, plain = (-1.0, 0.0), order, np.zeros((nodes, 0)), np.zeros(k)
    for size in _sizes(nodes, 2 * (k + spare), by_degree=degrees is not None):
        part = matrix if size == nodes else matrix.part(order[:size])
        values, vectors = _search(part, min(k + spare, size), by_size)
        left = _left(values[:k], part.noise, size, by_size)
        if left > best:
            best, core, inside = left, order[:size] if size < nodes else np.arange(nodes), vectors
            plain = values[:k]
    uncleaned = np.zeros((nodes, k))
    uncleaned[core] = inside[:, :k]
    if len(core) < nodes:
        part = matrix.part(core)
        inside = _ritz(part, _cleaned(part, inside, _INSIDE), by_size)[1]
        columns = np.zeros((nodes, inside.shape[1]))
        columns[core] = inside
        columns = _cleaned(matrix, columns, _SPARSE)
    else:
        columns = _cleaned(matrix, inside, _INSIDE + _SPARSE)
    certain = _outside(plain, matrix.noise, len(core), by_size) > _TUNING.margin
    # Those that drown would only blur the others.
    shown = int(certain.sum()) or k
    columns = _cleaned(matrix, _ritz(matrix, columns, by_size)[1][:, :shown], _LAST)
    values, vectors = _ritz(matrix, columns, by_size)
    # What is left of a core was chosen with a view to the noise: it fits more than so many nodes
    # chosen beforehand would, and less than the core.
    rows = max(int(vectors.any(axis=1).sum()), 1)
    chosen = math.isqrt(rows * len(core))
    # Cleaning helps vectors on parts of the nodes, and hurts those that are spread over all.
    cleaned = best[0] <= _left(values, matrix.noise, max(rows, chosen), by_size)[0]
    size = chosen if len(core) < nodes else rows
    if not cleaned:
        values, vectors, size = plain, uncleaned, len(core)
    elif shown < k:
        vectors = np.linalg.qr(np.column_stack([vectors, uncleaned]))[0][:, :k]
        values = np.einsum("ij,ij->j", vectors, matrix @ vectors)
    found = Found(
        shown=values,
        vectors=vectors,
        modelled=_modelled(values, matrix.noise, size, certain),
        certain=certain,
        level=matrix.noise * math.sqrt(len(core)),
        noise=matrix.noise,
        nodes=nodes,
        by_size=by_size,
        mean_degree=mean_degree,
        cleaned=cleaned,
        held=_held(matrix, core, mean_degree),
    )
    return found if candidates is None else _first(matrix, candidates, found)


def _held(matrix: NoisyMatrix, core: npt.NDArray[np.int64], mean_degree: float) -> float:
    """Return what part of all edges is between nodes of a core that was chosen without the matrix.

    The sum of its entries is that of the true ones but for noise. It is also the part of the sum of
    all squared eigenvalues that the core has.
    """
    size = len(core)
    if size == matrix.nodes or not mean_degree > 0:
        return 1.0
    inside = float((matrix.part(core) @ np.ones((size, 1))).sum())
    return min(max(inside / (mean_degree * matrix.nodes), 0.0), 1.0)


def candidates_of(degrees: npt.NDArray[Any], mean: float, scale: float) -> Floats:
    """Return candidates for the first vector, from degrees with Laplace noise of this scale.

    All ones; degrees drawn towards their mean as far as their noise says (James & Stein); and what
    is left of degrees after a threshold, for graphs with hubs. ``degrees`` are cut to what a graph
    can have, ``mean`` is that of all of them before.

    Example:
        >>> candidates_of(np.array([4, 4, 4, 4]), 4, 1.0).round(3)[0].tolist()
        [0.5, 0.5, 0.5, 0.5]
    """
    nodes = len(degrees)
    wanted = degrees.astype(np.float64)
    spread = float(wanted.var())
    kept = max(1 - 2 * scale**2 / spread, 0.0) if spread else 0.0
    columns = [np.ones(nodes), mean + kept * (wanted - wanted.mean())]
    columns += [wanted - cut * scale for cut in _TUNING.cuts]
    made = np.clip(np.column_stack(columns), 0.0, nodes)
    lengths = np.linalg.norm(made, axis=0)
    usable: Floats = np.where(lengths > 0, made / np.maximum(lengths, 1e-300), made[:, :1])
    usable /= np.linalg.norm(usable, axis=0)
    return usable


def _first(matrix: NoisyMatrix, candidates: Floats, found: Found) -> Found:
    """Return what was found with the best candidate for the first vector, if it is better.

    Rows of candidates beyond the matrix's are of nodes outside of it; quotients are then too low.
    """
    nodes, k = found.vectors.shape
    inside = candidates[:nodes]
    quotients = np.einsum("ij,ij->j", inside, matrix @ inside)
    if len(candidates) > nodes:
        # All ones have the mean degree, which is known for all nodes.
        quotients[0] = max(float(quotients[0]), found.mean_degree)
    best = int(np.argmax(quotients))
    reached = float(quotients[best])
    padded = np.zeros((len(candidates), k))
    padded[:nodes] = found.vectors
    found = replace(found, vectors=padded)
    # After cleaning the model says little; which is nearer is then left to what is measured.
    doubt = _TUNING.doubt_cleaned * (abs(found.shown[0]) - found.modelled[0])
    least = found.modelled[0] - (2 * doubt if found.cleaned else -math.sqrt(2) * matrix.noise)
    if found.modelled[0] > 0 and reached < least:
        return found
    return replace(found, candidate=candidates[:, best], reached=reached)


def _modelled(values: Floats, noise: float, size: int, certain: npt.NDArray[np.bool_]) -> Floats:
    """Return what vectors found have of the true matrix: zero where they are not certain."""
    found = np.sqrt(np.maximum(values**2 - 4 * noise**2 * size, 0.0))
    return np.where(certain, found, 0.0)


def _search(part: NoisyMatrix, width: int, by_size: bool) -> tuple[Floats, Floats]:
    """Return the leading values and vectors of a part: whole, or by a block Krylov search."""
    size = part.nodes
    if size <= max(_TUNING.solved, _PLAIN * width):
        values, vectors = np.linalg.eigh(part @ np.eye(size))
        order = leading(values, by_size)[:width]
        return values[order], vectors[:, order]
    block, _ = np.linalg.qr(public_signs(size, width))
    basis, images = block, []
    for turn in range(_PLAIN):
        image = part @ block
        images.append(image)
        if turn < _PLAIN - 1:
            # Twice is enough: the block is then orthogonal to the basis up to rounding.
            for _ in range(2):
                image = image - basis @ (basis.T @ image)
            block, _ = np.linalg.qr(image)
            basis = np.concatenate([basis, block], axis=1)
    within = basis.T @ np.concatenate(images, axis=1)
    values, turned = np.linalg.eigh((within + within.T) / 2)
    order = leading(values, by_size)[:width]
    return values[order], basis @ turned[:, order]


def _sizes(nodes: int, least: int, *, by_degree: bool) -> list[int]:
    """Return sizes of cores to try, growing, and all nodes."""
    sizes: list[int] = []
    size = float(max(_TUNING.smallest_core, least))
    while by_degree and size < min(nodes, LARGEST_HELD + 1):
        sizes.append(int(size))
        size *= _TUNING.growth
    return [*sizes, nodes]


def _left(values: Floats, noise: float, size: int, by_size: bool) -> tuple[float, float]:
    """Return what is left of true eigenvalues, and how far the first is out of the bulk.

    A true value v shows as v + s²n/v, outside the bulk 2s·sqrt(n) of the noise, and its vector
    with a cosine of sqrt(1 - s²n/v²) (Benaych-Georges & Nadakuditi 2011). The sum of v times the
    cosine is returned; where nothing is out for certain, the second figure decides.
    """
    seen = np.abs(values) if by_size else values
    bulk = 2 * noise * math.sqrt(size)
    out = _outside(values, noise, size, by_size)
    true = (seen + np.sqrt(np.maximum(seen**2 - bulk**2, 0.0))) / 2
    left = np.sqrt(np.maximum(true**2 - bulk**2 / 4, 0.0))
    return float(left[out > _TUNING.margin].sum()), float(out[0])


def _outside(values: Floats, noise: float, size: int, by_size: bool) -> Floats:
    """Return how far values are out of the bulk of the noise, in their own fluctuations."""
    seen = np.abs(values) if by_size else values
    # Without noise, at a huge epsilon, everything is out.
    return np.asarray(
        (seen - 2 * noise * math.sqrt(size)) / max(noise * size ** (-1 / 6), 1e-9),
        dtype=np.float64,
    )


def _estimated(
    shown: Floats,
    quotients: Floats,
    certain: npt.NDArray[np.bool_],
    level: float,
    by_size: bool,
) -> Floats:
    """Return estimates of true eigenvalues from those of a noisy matrix, which are too large.

    A true value v shows as w = v + s²n/v, since its vector was chosen to fit the noise too. Of the
    true matrix, the vector found has the quotient r = v·cosine² = v - s²n/v (Benaych-Georges &
    Nadakuditi 2011). So r² = w² - 4s²n, which is the model, and v = (w + r)/2. That v is in the
    middle holds beyond the model: the vector found is (v - A)^-1·N·u away from the true one u, for
    noise N, to first order, by which w is above v, and r below it, to second order alike. For
    eigenvalues it is v that is wanted. For the nearest matrix of low rank it is r: with vectors u_i
    and numbers c_i the squared distance from the true matrix is less than that of zeros by the sum
    of 2·c_i·r_i - c_i², which is largest at c_i = r_i. In the model n is the number of nodes on
    which a vector is not zero. Where nothing stood outside the bulk for certain before vectors were
    cleaned, what is left of them was chosen from the noise: r is then taken for zero, and v for no
    more than s·sqrt(n) for the core, from where on values show.
    """
    if by_size:
        return np.where(certain, quotients, 0.0)
    size = np.abs(shown)
    size = np.where(certain, size, np.minimum(size, 2 * level))
    middle = (size + np.where(certain, np.abs(quotients), 0.0)) / 2
    return np.asarray(np.sign(shown) * middle, dtype=np.float64)


def _guessed(
    estimated: Floats,
    certain: npt.NDArray[np.bool_],
    level: float,
    mean_degree: float,
    nodes: int,
) -> Floats:
    """Return eigenvalues, those that drowned guessed from what is known about them.

    The largest is the mean degree d at least; it is about the level at most, or it would show, and
    sqrt(d·n) at most, since all squares add up to that square. The geometric mean of both ends is
    off by the least factor at worst. The i-th is at most the square root of an i-th of what the
    first is at most. Where others show, one at the edge of the bulk is nearer to the level.
    """
    high = min(level, math.sqrt(mean_degree * nodes))
    first = math.sqrt(min(mean_degree, high) * high)
    guess = first / np.sqrt(np.arange(1, len(estimated) + 1))
    drowned = np.maximum(guess, estimated) if certain.any() else guess
    return np.asarray(np.minimum.accumulate(np.where(certain, estimated, drowned)))


def _cleaned(matrix: NoisyMatrix, columns: Floats, rounds: int) -> Floats:
    """Return columns after iterations that set to zero what the noise alone could explain."""
    for _ in range(rounds):
        image = matrix @ columns
        # Turned so that its columns are orthogonal, the strongest first; far cheaper than an SVD.
        image = image @ np.linalg.eigh(image.T @ image)[1][:, ::-1]
        kept = shrink(image, _TUNING.threshold * matrix.noise)
        before = columns
        columns, _ = np.linalg.qr(np.where(kept.any(axis=0), kept, image))
        if np.abs((before * columns).sum(axis=0)).min() > _TUNING.settled:
            break
    return columns


def _ritz(matrix: NoisyMatrix, columns: Floats, by_size: bool) -> tuple[Floats, Floats]:
    """Return the best values and vectors within the span of the columns, the leading first."""
    within = columns.T @ (matrix @ columns)
    values, turn = np.linalg.eigh((within + within.T) / 2)
    order = leading(values, by_size)
    return values[order], columns @ turn[:, order]
