"""What block Laplace and block Gaussian noise share."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core.arrays import Floats, Wholes
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.source import Source
from tulle.core.validate import counted, text
from tulle.matrices.contributions.blocks import BlockLaw, BlockLimits, cell_bounds, frame_of
from tulle.matrices.contributions.clipping import LARGEST, Limits, clip, step_exponent
from tulle.matrices.contributions.data import Contributions
from tulle.matrices.contributions.labels import pack_labels, unpack_labels
from tulle.matrices.contributions.partition import price, scales
from tulle.matrices.contributions.queries import Weights
from tulle.matrices.contributions.reference import QUANTILES
from tulle.noise.charge import WeightedCharge, charge

_CHOSEN: dict[Any, float] = {}
"""Quantiles of references that were chosen for a question and a budget; slow to find."""


@dataclass(frozen=True, eq=False)
class BlockSettings(Settings):
    """The public settings of one run; limits and scales are in steps of two to the exponent."""

    rows: int
    columns: int
    blocks: int
    sizes: tuple[int, ...]
    labels: Any
    exponent: int
    totals: tuple[int, ...]
    total: int
    squares: tuple[int, ...] | None
    square: int | None
    scales: tuple[Fraction, ...]
    price: Fraction | None = None
    """What an answer by itself costs, and the most that one individual moves in all of it."""
    moved: int | None = None
    quantile: Any = None
    """Of the reference, where it was chosen here."""

    def law(self, noise: str) -> BlockLaw:
        """Return the law of the noise."""
        return BlockLaw(
            noise,
            self.exponent,
            tuple(text(scale) for scale in self.scales),
            self.sizes,
            self.labels,
            self.rows,
            self.columns,
        )


class BlockMechanism(Mechanism):
    """Clip every individual, add everything up, add independent noise to every cell."""

    kind: ClassVar[str] = "contributions"
    noise: ClassVar[str]
    power: ClassVar[Fraction]
    squared: ClassVar[bool]
    """Whether sums of squares are what one individual moves, and variances what is stored."""

    @abstractmethod
    def budget(self, terms: Terms) -> Fraction:
        """Return what the sum of mass / scale (or mass / variance) over blocks may be at most."""

    def single_budget(
        self, terms: Terms, budget: Fraction, least: Fraction, moved: int
    ) -> Fraction:
        """Return the budget of one answer by itself, given the least scale at the budget of one
        among others and the most that one individual moves in all; both in steps.
        """
        return budget

    @abstractmethod
    def draw(self, scale: Fraction, count: int, source: Source | None) -> Wholes:
        """Draw the noise of one block, one number for each of its cells."""

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        reference = weights_query(terms).reference
        if reference is None or not reference.choices:
            return self._settings(terms)
        query = weights_query(terms)
        key = (
            *(self.name, terms.epsilon, terms.delta, terms.facts["support"]),
            json.dumps(query.canonical(), sort_keys=True),
        )
        if key not in _CHOSEN:
            if len(_CHOSEN) >= 64:
                _CHOSEN.clear()
            errors = {}
            for quantile in QUANTILES:
                chosen = at_quantile(terms, quantile)
                errors[quantile] = self.predict(
                    chosen, self._settings(chosen), reference.people
                ).rank()
            _CHOSEN[key] = min(QUANTILES, key=errors.__getitem__)
        taken = _CHOSEN[key]
        return replace(self._settings(at_quantile(terms, taken)), quantile=taken)

    def _settings(self, terms: Terms) -> BlockSettings:
        query = weights_query(terms)
        frame = frame_of(query, terms.facts, self.power)
        budget = self.budget(terms)
        if query.step is None:
            rough = self._scales(frame, budget)
            lowest = min(float(frame.cells[frame.labels >= 0].min()), frame.total)
            exponent = step_exponent(rough, np.array([lowest, *frame.totals, frame.total]))
        else:
            exponent = round(math.log2(query.step))
        limits = limits_of(frame, exponent, declared_lengths(query))
        exact = self._exact_scales(frame, limits, budget)
        paid, moved = None, None
        if self.squared and not terms.composed:
            caps, moved = masses(frame, limits, self.squared)
            exact = self._exact_scales(
                frame, limits, self.single_budget(terms, budget, min(exact), moved)
            )
            paid = price(caps, moved, [1 / scale for scale in exact])
        return BlockSettings(
            frame.labels.shape[0],
            frame.labels.shape[1],
            len(frame.sizes),
            tuple(int(size) for size in frame.sizes),
            pack_labels(frame.labels),
            exponent,
            limits.totals,
            limits.total,
            limits.squares,
            limits.square,
            tuple(exact),
            paid,
            moved,
        )

    def _scales(self, frame: BlockLimits, budget: Fraction) -> Floats:
        caps, total = (frame.squares, frame.square) if self.squared else (frame.totals, frame.total)
        amount = math.sqrt(budget) if self.squared else float(budget)
        return scales(frame.sizes, caps, total, self.power, amount)[0]

    def _exact_scales(self, frame: BlockLimits, limits: Limits, budget: Fraction) -> list[Fraction]:
        """Return scales (or variances) in steps whose exact price is within the budget."""
        caps, total = masses(frame, limits, self.squared)
        figures = replace(
            frame,
            totals=np.array(caps, dtype=np.float64),
            total=float(total),
            squares=np.array(caps, dtype=np.float64),
            square=float(total),
        )
        found = self._scales(figures, budget)
        exact = [_round_up(float(s) ** 2 if self.squared else float(s)) for s in found]
        while price(caps, total, [1 / s for s in exact]) > budget:
            exact = [s * (1 + Fraction(1, 2**29)) for s in exact]
        if max(exact) > (2**94 if self.squared else 2**47):
            raise InputError(
                "The noise has too many steps to be drawn. Give a coarser step=, smaller bounds "
                "or a larger epsilon."
            )
        return exact

    def guarantee(self, terms: Terms, settings: Parameters) -> Guarantee:
        found = super().guarantee(terms, settings)
        if weights_query(terms).reference is None:
            return found
        return replace(found, assumptions=("the reference is public, or of other people",))

    def law(self, settings: Parameters) -> BlockLaw:
        """Return the law of the noise."""
        return BlockSettings.read(settings).law(self.noise)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        law, query = self.law(settings), weights_query(terms)
        if like is None and query.reference is not None:
            # It is public, and of people who are to be like those of the data.
            like = query.reference.people
        if like is None:
            return Prediction(law, law, law.mean_error())
        assert isinstance(like, Contributions)
        limits = limits_from(terms, settings)
        if like.shape != limits.labels.shape:
            raise InputError("like= must be public contributions on a grid of the same shape.")
        totals, people = like.totals(), max(like.individuals(), 1)
        lost = np.ldexp(clip(like, limits).astype(np.float64), limits.exponent) - totals
        share = float(np.abs(lost).sum() / max(np.abs(totals).sum(), 1e-300))
        mean = _mean_with(law, limits, np.abs(lost) * ((query.about or people) / people))
        return Prediction(law, law, mean, () if query.about else (_of_clipping(share, people),))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        assert isinstance(dataset, Contributions)
        found = BlockSettings.read(settings)
        limits = limits_from(terms, found)
        noisy = self.clipped(dataset, limits)

        def worst(rates: Sequence[Fraction]) -> Fraction:
            chosen = at_quantile(terms, found.quantile)
            frame = frame_of(weights_query(chosen), terms.facts, self.power)
            return price(*masses(frame, limits, self.squared), rates)

        with charge(WeightedCharge(worst)):
            for block, scale in enumerate(found.scales):
                where = limits.labels == block
                noisy[where] += self.draw(scale, int(where.sum()), source)
        value = np.ldexp(noisy.astype(np.float64), limits.exponent)
        return Outcome(value, self.law(settings))

    def clipped(self, dataset: Contributions, limits: Limits) -> Wholes:
        """Return the totals that noise is added to, in steps."""
        return clip(dataset, limits)


def weights_query(terms: Terms) -> Weights:
    """Return the question as one for totals."""
    assert isinstance(terms.query, Weights)
    return terms.query


def at_quantile(terms: Terms, quantile: Any) -> Terms:
    """Return the terms with what the reference says at the quantile that was chosen, if any."""
    query = weights_query(terms)
    if quantile is None or query.reference is None:
        return terms
    chosen = query.reference.choices[QUANTILES.index(quantile)]
    return replace(terms, query=replace(query, reference=chosen))


def declared_lengths(query: Weights) -> bool:
    """Say whether anything bounds sums of squares by itself."""
    return query.length is not None or query.block_length is not None or query.reference is not None


def limits_of(frame: BlockLimits, exponent: int, lengths: bool) -> Limits:
    """Return the limits in whole steps, rounded down.

    Raises:
        QueryError: when a limit is below one step, or has too many.
    """

    def steps(value: float, times: int = 1) -> int:
        exact = Fraction(value) / Fraction(2) ** (times * exponent)
        if exact > LARGEST**times:
            raise QueryError("The bounds have too many steps: give a coarser step=.")
        return max(int(exact), 1)

    if Fraction(frame.total) < Fraction(2) ** exponent:
        raise QueryError("The bounds are below one step: give a finer step=.")
    totals = tuple(steps(value) for value in frame.totals.tolist())
    total = min(steps(frame.total), sum(totals))
    cells = cell_limits(frame.cells, exponent, total)
    if not cells.any():
        raise QueryError("The bounds are below one step: give a finer step=.")
    return Limits(
        exponent,
        frame.labels,
        cells,
        totals,
        total,
        tuple(steps(value, 2) for value in frame.squares.tolist()) if lengths else None,
        steps(frame.square, 2) if lengths else None,
    )


def cell_limits(cells: Floats, exponent: int, total: int) -> Floats:
    """Return the most in each cell, in whole steps."""
    return np.asarray(np.floor(np.minimum(np.ldexp(cells, -exponent), float(total))))


def limits_from(terms: Terms, settings: Parameters) -> Limits:
    """Return the limits that settings describe."""
    query = weights_query(terms)
    found = BlockSettings.read(settings)
    return Limits(
        found.exponent,
        unpack_labels(found.labels, (found.rows, found.columns)),
        cell_limits(cell_bounds(query, terms.facts), found.exponent, found.total),
        found.totals,
        found.total,
        found.squares,
        found.square,
    )


def masses(frame: BlockLimits, limits: Limits, squared: bool) -> tuple[list[int], int]:
    """Return the most that one individual moves each block, and all blocks together; in steps.

    Squares of whole numbers that add up to D and are at most b each add up to at most b·D.
    """
    if not squared:
        return list(limits.totals), limits.total
    cells = np.minimum(limits.cells, float(limits.total))
    caps = []
    for block, total in enumerate(limits.totals):
        highest = min(max(int(cells[frame.labels == block].max()), 1), total)
        cap = highest * total
        caps.append(cap if limits.squares is None else min(cap, limits.squares[block]))
    joint = min(sum(caps), min(max(int(cells.max()), 1), limits.total) * limits.total)
    return caps, joint if limits.square is None else min(joint, limits.square)


def _round_up(value: float) -> Fraction:
    """Round up to thirty binary digits: short numbers, and a part in a billion more noise."""
    mantissa, exponent = math.frexp(value)
    return Fraction(math.ceil(math.ldexp(mantissa, 30))) * Fraction(2) ** (exponent - 30)


def _of_clipping(share: float, people: int) -> str:
    """Say what clipping takes away, as a share: its amount grows with the number of people."""
    crowd = counted(people, "person", "people")
    return (
        f"Clipping takes away {share:.0%} of what the stand-in's {crowd} contribute. "
        "The error is predicted for as many; with ten times as many people that part "
        "of it is ten times as large. Give about=, a public guess of their number."
    )


def _mean_with(law: BlockLaw, limits: Limits, lost: Floats) -> float:
    """Return the mean of E|noise - lost| over the cells with noise."""
    labels = limits.labels
    inside = labels >= 0
    spread, off = law.spreads()[labels[inside]], lost[inside]
    if law.noise == "laplace":
        return float(np.mean(off + spread * np.exp(-off / spread)))
    from scipy.special import erf

    bulge = spread * math.sqrt(2 / math.pi) * np.exp(-(off**2) / (2 * spread**2))
    return float(np.mean(bulge + off * erf(off / (spread * math.sqrt(2)))))
