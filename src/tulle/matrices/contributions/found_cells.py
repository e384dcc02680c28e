"""Cells that nobody listed: which of them many people contribute to, and how much."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Wholes
from tulle.core.dataset import Dataset
from tulle.core.error_law import GaussianLaw, LaplaceLaw
from tulle.core.errors import InputError, QueryError
from tulle.core.gaussian import largest_rho_alone
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.source import Source
from tulle.core.table import LabelledTable
from tulle.matrices.contributions.clipping import LARGEST, step_exponent
from tulle.matrices.contributions.data import Contributions
from tulle.noise import discrete_gaussian, discrete_laplace
from tulle.noise.charge import Charge, GaussianCharge, LaplaceCharge, charge
from tulle.noise.partition_law import PeopleLaw
from tulle.noise.partition_selection import Rule, best_rule, rule_from_json, selection_options

LEVEL = 0.95
"""At which level the intervals of a table hold, those of one column all at once."""

MOST_CELLS = 10**6


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into.

    Not chosen on any data: with halves neither part has more than twice the noise that the whole
    epsilon would leave it, and no other division promises that.
    """

    share: Fraction = Fraction(1, 2)
    """Finds the cells; the rest is for their totals."""


_TUNING = Tuning()


@dataclass(frozen=True)
class FoundCells(Query):
    """Cells that many people contribute to, found by how many they are; nobody lists them."""

    cells_per_person: int
    bound: float | None = None
    """The most that one person counts for in one cell; None where totals are not asked for."""
    minimum: int = 1
    top: int | None = None
    other: str | None = None
    name: ClassVar[str] = "found_cells"
    words: ClassVar[str] = (
        "Which cells do many people contribute to, how many are they, and how much do they "
        "contribute, everyone counted for at most {cells_per_person} of their cells?"
    )
    quantity: ClassVar[str] = "total"
    kind: ClassVar[str] = "contributions"
    shape: ClassVar[Shape] = "object"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Contributions) -> LabelledTable:
        """Return all cells with their people and totals, nobody bounded. Custodian side."""
        rows, columns, people, totals = dataset.cell_sums()
        listed: dict[str, Any] = {"row": rows, "column": columns, "people": people}
        if self.bound is not None:
            listed["total"] = totals
        return LabelledTable(listed, keys=("row", "column"))

    def __str__(self) -> str:
        said = [
            f"{f.name}={v!r}" for f in fields(self) if (v := getattr(self, f.name)) != f.default
        ]
        return f"{self.name}({', '.join(said)})"


@public("Publish a matrix")
@registry.register("query", "contributions", "found_cells")
def found_cells(
    *,
    cells_per_person: int,
    bound: float | None = None,
    minimum: int | None = None,
    top: int | None = None,
    other: str | bool | None = None,
) -> FoundCells:
    """Ask for the cells that many people contribute to, where nobody lists them beforehand.

    A cell is shown when its number of people, with noise, is above a threshold, which needs a
    delta. The answer is a table: row, column, people, total, each number with an interval. The
    records need no grid: leave ``rows`` and ``columns`` of :class:`tulle.Contributions` out.

    Everyone counts for at most ``cells_per_person`` of their cells, chosen evenly, and for at most
    ``bound`` in each; without ``bound`` there are no totals, and all of epsilon finds cells. A cell
    of fewer than ``minimum`` people is never shown, ``top`` keeps the cells with the most people,
    and ``other`` adds a row of that name for the total of all cells that are not shown.

    Raises:
        InputError: naming the argument that does not fit.

    Example:
        >>> str(found_cells(cells_per_person=2, bound=5, minimum=10))
        'found_cells(cells_per_person=2, bound=5.0, minimum=10)'
    """
    most = validate.whole(cells_per_person=cells_per_person, at_least=1, at_most=MOST_CELLS)
    least, rest, best = selection_options(minimum, other, top)
    held = None
    if bound is not None:
        held = float(validate.positive(bound=bound))
        if not 2.0**-200 < held < 2.0**200:
            raise InputError(f"bound must lie between 2**-200 and 2**200; got {bound!r}.")
    elif rest is not None:
        raise InputError("other= is a total: say with bound= how much one person counts for.")
    return FoundCells(most, held, least, best, rest)


@dataclass(frozen=True, eq=False)
class FoundCellsSettings(Settings):
    """The public settings of one run: how cells are found, and the noise on totals, if any."""

    cells_per_person: int
    minimum: int
    top: int | None
    other: str | None
    epsilon_cells: Fraction
    delta_cells: Fraction
    epsilon_totals: Fraction
    delta_totals: Fraction
    rule: str
    threshold: int
    seen_from: int
    scale: Fraction | None = None
    variance: Fraction | None = None
    delta_noise: Fraction | None = None
    exponent: int | None = None
    """Totals are in steps of two to this power."""
    steps: int | None = None
    """How many steps one person counts for in one cell."""
    noise: str | None = None
    total_scale: Fraction | None = None
    """The scale of Laplace noise in steps, or the variance of Gaussian noise."""

    def selection(self) -> Rule:
        """Return the rule by which cells are shown."""
        return rule_from_json(self, self.cells_per_person, self.minimum)

    def half_width(self, level: float) -> float:
        """Return within how much of its sum a total is, by the law of the noise."""
        assert self.total_scale is not None
        assert self.exponent is not None
        gaussian = self.noise == "gaussian"
        scale = Fraction(math.sqrt(self.total_scale)) if gaussian else self.total_scale
        law = GaussianLaw(scale) if gaussian else LaplaceLaw(scale)
        return math.ldexp(law.half_width(level), self.exponent)


@registry.mechanism(
    "contributions", "cell_selection", answers=(FoundCells,), units=("participant",)
)
class CellSelection(Mechanism):
    """Cells are found by how many people have them; then their totals get noise.

    Everyone keeps at most ``cells_per_person`` of their cells, chosen evenly: by coins of their
    own, or where the records lie in a database by digests of their cells with a random salt.
    A cell is shown when its number of people, with noise, is above a threshold. Then the totals of
    the cells that are shown, everyone cut to ``bound`` in each of the cells that they keep, get
    Laplace or Gaussian noise, whichever is less.

    Guarantee:
        (epsilon, delta) per participant. Given everybody's coins, or the salt, what somebody keeps
        follows from their own records, so that finding cells is
        (epsilon_cells, delta_cells)-private as :mod:`tulle.noise.partition_selection` argues. Given
        the cells that are shown, one participant moves their totals, in whole steps,
        by at most the bound in each of at most ``cells_per_person`` places: by the product in L1,
        by the bound times the root of their number in L2. All cells that are not shown are one
        number more, which has what is left of the product in L1; with it only Laplace noise is
        used. The two parts compose.

    Error:
        From how many people on a cell is seen is said by the plan. Numbers of people are within the
        threshold; totals are those of everyone within the bounds, with the noise that is stated.

    Reference:
        Desfontaines, Voss, Gipson & Mandayam, Differentially private partition selection, PETS
        2022.

    Example:
        >>> import tulle
        >>> trips = tulle.Contributions(
        ...     range(201), ["home"] * 200 + ["hide-out"], ["work"] * 150 + ["sea"] * 51)
        >>> asked = tulle.found_cells(cells_per_person=1, bound=1)
        >>> r = tulle.release(trips, asked, unit="participant", epsilon=2.0, delta=1e-6)
        >>> r.value["row"], r.value["column"]
        (('home', 'home'), ('sea', 'work'))
    """

    title: ClassVar[str] = "partition selection of cells"
    reference: ClassVar[str] = "Desfontaines et al., PETS 2022"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query = terms.query
        assert isinstance(query, FoundCells)
        if not terms.delta:
            raise QueryError(
                "Cells that nobody listed need a delta above zero: with none, a cell that one "
                "person has could not be kept back. Give delta= (--delta), such as 1e-6, well "
                "below one over the number of people; or declare the grid that everyone may know "
                "with rows= and columns= (--rows, --columns) and ask for weights(bound=...)"
            )
        made: dict[str, Any] = {
            "cells_per_person": query.cells_per_person,
            "minimum": query.minimum,
            "top": query.top,
            "other": query.other,
        }
        epsilon, delta = terms.epsilon, terms.delta
        if query.bound is not None:
            epsilon = terms.epsilon * _TUNING.share
            made |= self._noise(query, terms.epsilon - epsilon, terms.delta / 2)
            if made["noise"] == "gaussian":
                delta = terms.delta / 2
        rule = best_rule(epsilon, delta, query.cells_per_person, query.minimum)
        made |= {
            "epsilon_cells": epsilon,
            "delta_cells": delta,
            "epsilon_totals": terms.epsilon - epsilon,
            "delta_totals": terms.delta - delta,
            "seen_from": rule.seen_from(),
        }
        return FoundCellsSettings.read(made | rule.to_json())

    def _noise(self, query: FoundCells, epsilon: Fraction, delta: Fraction) -> dict[str, Any]:
        """Return the noise on totals: Laplace, or Gaussian where it is less."""
        assert query.bound is not None
        most, bound = query.cells_per_person, query.bound
        laplace = Fraction(most) / epsilon
        if laplace > 2**40:
            raise InputError("epsilon is too small: the noise on totals could not be drawn.")
        exponent = step_exponent(np.array([bound * float(laplace)]), np.array([bound]))
        steps = min(int(Fraction(bound) / Fraction(2) ** exponent), LARGEST)
        found = {"exponent": exponent, "steps": steps, "noise": "laplace"}
        squared = Fraction(most) * steps**2
        if query.other is None and most > 1:
            variance = squared / (2 * largest_rho_alone(epsilon, delta, squared))
            variance = Fraction(math.ceil(variance)) if variance > 2**20 else variance
            if variance < 2 * (laplace * steps) ** 2:
                return {**found, "noise": "gaussian", "total_scale": variance}
        return {**found, "total_scale": laplace * steps}

    def guarantee(self, terms: Terms, settings: Parameters) -> Guarantee:
        """Return all of epsilon and delta."""
        return Guarantee(terms.unit, terms.epsilon, terms.delta)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        known = FoundCellsSettings.read(settings)
        notes = [known.selection().in_words("cell", float(known.delta_cells))]
        if known.noise is not None:
            width = known.half_width(LEVEL)
            notes.append(
                f"The total of a cell that is shown is within {width:,.4g} of that of everyone "
                "within the bounds, with 95 % chance."
            )
        return Prediction(None, None, notes=tuple(notes))

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query, known = terms.query, FoundCellsSettings.read(settings)
        rule = known.selection()
        assert isinstance(query, FoundCells)
        assert isinstance(dataset, Contributions)
        kept = dataset.keep(rule.keys, known.exponent or 0, known.steps or 0, source)
        shown, noisy = rule.show(kept.people, source)
        # Cells are in the order of their names, which follows from those alone.
        places = np.flatnonzero(shown)
        if query.top is not None and query.top < len(places):
            # The most people first; of equal numbers, the first in the order of cells.
            places = np.sort(places[np.argsort(-noisy[places], kind="stable")[: query.top]])
        rows, columns = kept.names(places)
        rest = query.other is not None
        columns_of = {
            "row": [*rows, *([query.other] if rest else [])],
            "column": [*columns, *([None] if rest else [])],
            **_people(noisy[places], PeopleLaw(rule.threshold, 0.0, whole=False), rest),
        }
        if query.bound is not None:
            sums = kept.steps[places]
            if rest:
                sums = np.append(sums, kept.steps.sum() - sums.sum())
            columns_of |= self._totals(known, sums, source)
        return Outcome(LabelledTable(columns_of, keys=("row", "column")), None, {"level": LEVEL})

    def _totals(
        self, known: FoundCellsSettings, sums: Wholes, source: Source | None
    ) -> dict[str, Any]:
        """Return the totals with noise, and intervals that hold for all of them at once."""
        most, steps, scale = known.cells_per_person, known.steps, known.total_scale
        assert steps is not None
        assert scale is not None
        assert known.exponent is not None
        gaussian = known.noise == "gaussian"
        noise: Wholes = np.zeros(0, dtype=np.int64)
        if len(sums):
            paid: Charge = LaplaceCharge(most * steps)
            if gaussian:
                paid = GaussianCharge(most * steps**2, known.delta_totals)
            with charge(paid):
                noise = (
                    discrete_gaussian(variance=scale, size=len(sums), source=source)
                    if gaussian
                    else discrete_laplace(scale=scale, size=len(sums), source=source)
                )
        totals = np.ldexp((sums + noise).astype(np.float64), known.exponent)
        width = known.half_width(1 - (1 - LEVEL) / max(len(sums), 1))
        return {"total": totals, "total_low": totals - width, "total_high": totals + width}


def _people(people: Wholes, law: PeopleLaw, rest: bool) -> dict[str, Any]:
    """Return the numbers of people and their intervals; of the rest nobody is counted."""
    last: list[Any] = [None] if rest else []
    low = np.asarray(law.interval(people, LEVEL)[0])
    return {
        "people": [*people.tolist(), *last],
        "people_low": [*low.tolist(), *last],
        "people_high": [None] * (len(people) + len(last)),
    }
