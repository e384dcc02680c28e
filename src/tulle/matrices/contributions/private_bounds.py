"""Bounds chosen privately: how much most people contribute to each block."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.source import Source
from tulle.core.validate import Number, rational, text
from tulle.matrices.contributions.data import Contributions, check_grid
from tulle.matrices.contributions.labels import PublicArray, read_labels
from tulle.noise import exponential
from tulle.noise.charge import ExponentialCharge, charge


@dataclass(frozen=True)
class Tuning:
    """What is likely before any data; as in :mod:`tulle.noise.keys_per_person`. Which data chose it
    here is not on record."""

    steepness: int = 2
    """With a quantile a candidate is exp of this times as likely as the next larger one."""


_TUNING = Tuning()


@dataclass(frozen=True)
class BlockBounds(Query):
    """For each block, a sum that a share or a number of those in the block do not exceed."""

    quantile: str | None
    candidates: PublicArray
    labels: PublicArray | None = None
    squares: bool = False
    error_at: str | None = None
    """Instead of a quantile: the epsilon of the noise for which the error is to be least."""
    name: ClassVar[str] = "block_bounds"
    words: ClassVar[str] = (
        "How much does one person contribute to each block, so that a share {quantile} "
        "contributes no more?"
    )
    quantity: ClassVar[str] = "bound"
    kind: ClassVar[str] = "contributions"
    shape: ClassVar[Shape] = "object"
    integral: ClassVar[bool] = False

    def canonical(self) -> dict[str, Any]:
        return {
            "query": self.name,
            "quantile": self.quantile,
            "candidates": self.candidates.values.tolist(),
            "labels": None if self.labels is None else self.labels.digest,
            "squares": self.squares,
            **({} if self.error_at is None else {"error_at": self.error_at}),
        }

    def __str__(self) -> str:
        kind = "lengths" if self.squares else "totals"
        blocks = "" if self.labels is None else f", labels={self.labels}"
        at = self.quantile if self.error_at is None else f"error_at={self.error_at}"
        return f"block_bounds({at}, {kind}, candidates={self.candidates}{blocks})"

    def truth(self, dataset: Contributions) -> Floats:
        """Return the candidate with the best score in each block."""
        best: Floats = self.candidates.values[np.argmax(self.scores(dataset), axis=1)]
        return best

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return (Axis("block"),)

    def blocks(self) -> int:
        """Return how many bounds are asked for."""
        return 1 if self.labels is None else int(self.labels.values.max()) + 1

    def share(self) -> Fraction:
        """Return the quantile as an exact number."""
        assert self.quantile is not None
        return rational(self.quantile)

    def sensitivity(self) -> Fraction:
        """Return the most that one person moves a score."""
        return Fraction(1) if self.quantile is None else max(self.share(), 1 - self.share())

    def bound_to(self, facts: Mapping[str, Any]) -> Query:
        check_grid(facts)
        return self

    def handicaps(self) -> list[Fraction]:
        """Return how much less likely than the first each candidate is before any data.

        As exponents. For the error it is as much less likely as it is larger: then none of the
        candidates that the data cannot tell apart adds more noise on average than another.
        """
        if self.error_at is None:
            return [
                Fraction(_TUNING.steepness * place) for place in range(len(self.candidates.values))
            ]
        first, *_ = values = self.candidates.values.tolist()
        return [Fraction(math.log(value) - math.log(first)) for value in values]  # no overflow

    def slack(self, epsilon: Fraction) -> int:
        """Return how many people more than wanted should be above, at this epsilon for one block.

        The choice is off by about 2·ln(candidates)/epsilon people. Where fewer are wanted above, it
        could not tell the right bound from a far larger one, whose noise has no end; a bound that
        so many people exceed costs little more than the best.
        """
        if self.error_at is None:
            return 0
        return math.ceil(2 * math.log(len(self.candidates.values)) / float(epsilon))

    def above(self, shape: tuple[int, int]) -> list[Fraction]:
        """Return how many people of each block should have more than its bound.

        Noise of scale c/e in each of n cells is n·c/e in all, and whoever has more than c loses
        the rest. Where c is a little larger there is n/e more noise, and each person above loses
        so much less: the sum is least where n/e people are above. The blocks share epsilon evenly.
        """
        assert self.error_at is not None
        if self.labels is None:
            sizes = [shape[0] * shape[1]]
        else:
            inside = self.labels.values[self.labels.values >= 0].astype(np.int64)
            sizes = np.bincount(inside, minlength=self.blocks()).tolist()
        return [size * self.blocks() / rational(self.error_at) for size in sizes]

    def counts(self, dataset: Contributions) -> Wholes:
        """Return, for each block and candidate, how many people of the block are within it.

        A last column has all people of the block.
        """
        individual, cell, weight = dataset.entries()
        count = self.blocks()
        labels = np.zeros(dataset.shape) if self.labels is None else self.labels.values
        label = labels.reshape(-1)[cell].astype(np.int64)
        sizes = np.nan_to_num(np.abs(weight), nan=0.0, posinf=1e300)
        used = (label >= 0) & (sizes > 0)
        with np.errstate(over="ignore"):
            powers = sizes[used] ** (2 if self.squares else 1)
            sums = np.bincount(individual[used] * count + label[used], weights=powers)
        found = np.zeros((count, len(self.candidates.values) + 1), dtype=np.int64)
        limits = self.candidates.values ** (2 if self.squares else 1)
        for block in range(count):
            held = np.sort(sums[block::count])
            held = held[held > 0]
            found[block, :-1] = np.searchsorted(held, limits, side="right")
            found[block, -1] = len(held)
        return found

    def scores(self, dataset: Contributions, slack: int = 0) -> npt.NDArray[np.object_]:
        """Return the exact score of each candidate: minus its distance from what is asked for.

        That is in people. For the error it is how many must come or go until the candidate is the
        first that no more than are wanted exceed.
        """
        exact = self.counts(dataset).astype(object)
        within, above = exact[:, :-1], exact[:, -1:] - exact[:, :-1]
        if self.error_at is not None:
            wanted = np.array(self.above(dataset.shape), dtype=object)[:, None] + slack
            short = wanted - above
            # The right candidate is the first that fewer exceed: more exceed the one before it.
            distances: npt.NDArray[np.object_] = np.maximum(-short, 0)
            distances[:, 1:] = np.maximum(distances[:, 1:], short[:, :-1])
        else:
            share = self.share()
            distances = abs((1 - share) * within - share * above)
        found: npt.NDArray[np.object_] = -distances
        return found


@public("Publish a matrix")
@registry.register("query", "contributions", "block_bounds")
def block_bounds(
    quantile: Number | None,
    candidates: Any,
    *,
    labels: Any = None,
    lengths: bool = False,
    error_at: Number | None = None,
) -> BlockBounds:
    """Ask how much one person contributes to each block: bounds for ``weights``.

    ``quantile`` is the share of people whose sum is within the bound. Which share is best depends
    on the grid and on epsilon: give None instead, and with ``error_at`` the epsilon at which
    ``weights`` will be asked. The bound is then chosen so that noise and clipping together are
    least.

    ``candidates`` are the public answers to choose from, such as 1, 2, 4, ..., 1024. ``labels``
    numbers the block of each cell (-1: outside); without it all cells are one block. With
    ``lengths`` it is the Euclidean length and not the sum that is bounded.

    Raises:
        InputError: when the quantile is not between 0 and 1, or candidates are not increasing.
        QueryError: when neither a quantile nor ``error_at`` is given, or both are.

    Example:
        >>> block_bounds(0.95, [1, 2, 4]).blocks()
        1
    """
    if (quantile is None) == (error_at is None):
        raise QueryError("Give either a quantile, or None and error_at=; not both.")
    if error_at is not None and lengths:
        raise QueryError("error_at= is about sums: it does not go with lengths=True.")
    share = None if quantile is None else text(validate.probability(quantile=quantile))
    target = None if error_at is None else text(validate.positive(error_at=error_at))
    array = PublicArray.read(candidates, "candidates must be a list of numbers.")
    values = array.values
    good = values.ndim == 1 and values.size > 0 and bool(np.isfinite(values).all())
    if not good or values[0] <= 0 or bool((np.diff(values) <= 0).any()) or values[-1] > 2.0**200:
        raise InputError("candidates must be a list of increasing numbers above zero.")
    known = None if labels is None else PublicArray(read_labels(labels))
    return BlockBounds(share, array, known, bool(lengths), target)


@dataclass(frozen=True, eq=False)
class BoundSettings(Settings):
    """The public settings of one run; epsilon is that of one block."""

    blocks: int
    epsilon: Fraction
    sensitivity: Fraction
    slack: int

    def loss_scale(self) -> Fraction:
        """Return by what a score is divided in the exponent."""
        return 2 * self.sensitivity / self.epsilon


@registry.mechanism(
    "contributions", "block_quantiles", answers=(BlockBounds,), units=("participant",)
)
class BlockQuantiles(Mechanism):
    """Choose the bound of each block with the exponential mechanism.

    Guarantee:
        Pure epsilon per participant, epsilon / K for each of K blocks. A candidate c has the
        score -|(1 - q)·within - q·above|, counting the people of the block whose sum is within c
        or above. One participant more or less changes one of the counts by one, hence the score
        by at most max(q, 1 - q). With ``error_at`` it is minus the distance of what is wanted, a
        public number, from the numbers of people above c and above the candidate before it, and
        changes by at most one; a few people more than would be best are wanted above, as many as
        the choice cannot tell. Whatever the data, each candidate starts out exp(2) times
        as likely as the next larger one with a quantile, else as much less likely as it is larger:
        where none of them cuts anybody, the smallest is wanted.

    Error:
        With probability 1 - beta the chosen bound is off the quantile by at most
        2·K·ln(K·candidates / beta) / epsilon people in every block.

    Reference:
        McSherry & Talwar, FOCS 2007; Smith, Privacy-preserving statistical estimation, STOC 2011.

    Example:
        >>> import tulle
        >>> people = list(range(500))
        >>> visits = tulle.Contributions(
        ...     people, [0] * 500, [0] * 500, [1.0] * 400 + [50.0] * 100, rows=1, columns=1)
        >>> query = tulle.block_bounds(0.5, [1, 100])
        >>> tulle.release(visits, query, unit="participant", epsilon=5.0).value.tolist()
        [1.0]
    """

    title: ClassVar[str] = "a bound for each block by the exponential mechanism"
    reference: ClassVar[str] = "Smith, STOC 2011"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query = terms.query
        assert isinstance(query, BlockBounds)
        shape = int(terms.facts["rows"]), int(terms.facts["columns"])
        if query.labels is not None and query.labels.values.shape != shape:
            raise QueryError(
                f"labels have shape {query.labels.values.shape}; the grid is "
                f"{shape[0]} x {shape[1]}."
            )
        epsilon = terms.epsilon / query.blocks()
        return BoundSettings(query.blocks(), epsilon, query.sensitivity(), query.slack(epsilon))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        none: ErrorLaw | None = None
        return Prediction(none, none)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(terms.query, BlockBounds)
        assert isinstance(dataset, Contributions)
        found = BoundSettings.read(settings)
        later = np.array(terms.query.handicaps(), dtype=object) * found.loss_scale()
        chosen = []
        for row in terms.query.scores(dataset, found.slack):
            scores = (row - later).tolist()
            with charge(ExponentialCharge(found.sensitivity)):
                chosen.append(
                    exponential(
                        scores,
                        epsilon=found.epsilon,
                        sensitivity=found.sensitivity,
                        source=source,
                    )
                )
        return Outcome(terms.query.candidates.values[chosen], None)
