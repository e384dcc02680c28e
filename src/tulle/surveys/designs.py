"""Design matrices: how one categorical answer is perturbed, with rational probabilities.

exp(epsilon) is irrational, so the optimal probabilities are too. They are rounded here to
fractions, always towards less difference between any two answers: the guarantee holds exactly,
at a cost below one part in 2**60. The client then needs nothing but whole numbers drawn uniformly
below a bound; the collector inverts the very fractions that were used, so that estimates are
unbiased for the real law. Plain Python: this runs on the client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import lcm
from typing import Any, ClassVar

from tulle.core import validate
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.validate import Number, rational, text
from tulle.surveys.exact import (
    checked_epsilon,
    epsilon_of_ratio,
    exp_of_minus,
    ratio_is_within,
    round_up_to,
)

Report = int | str | tuple[int, int]
"""What a client sends for one attribute; its form depends on the design."""

Draw = Callable[[int], int]
"""A source of whole numbers, uniform from 0 up to and excluding the bound."""

PRECISION = 64
"""Significant bits of the rounded probabilities."""

MOST_MATRIX_CATEGORIES = 512
_PRIME = 2**127 - 1


@public()
class Design(ABC):
    """How one answer, a category numbered from 0, becomes a report."""

    name: ClassVar[str]
    categories: int
    epsilon: Fraction

    @abstractmethod
    def sample(self, category: int, draw: Draw) -> Report:
        """Return a report for this answer, using nothing but ``draw``."""

    @abstractmethod
    def law(self, category: int) -> Mapping[Report, Fraction]:
        """Return the exact probability of every report. Small designs only."""

    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """Return the largest ratio of one report's probabilities under two answers, exactly."""

    @abstractmethod
    def variance(self) -> float:
        """Return n times the variance of a category's estimated share that privacy costs."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """How many bits a report takes."""

    @abstractmethod
    def check_report(self, report: Any) -> Report:
        """Return a received report if it is one that this design can give.

        Raises:
            InputError: when it is not.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form; :func:`tulle.surveys.form.design_from_json` reads it."""

    def _check_ratio(self) -> None:
        if not ratio_is_within(self.worst_ratio(), self.epsilon):
            raise InputError(
                f"These probabilities are not private at epsilon = {text(self.epsilon)}; the "
                f"least that holds is {text(epsilon_of_ratio(self.worst_ratio()))}."
            )

    def _check_category(self, category: int) -> None:
        # The number is the client's own answer: it stays out of the message.
        if not 0 <= category < self.categories:
            raise InputError(f"A category is a number from 0 to {self.categories - 1}.")


def other_json(design: Design, other: Fraction) -> dict[str, Any]:
    """Return the form of a design that one probability, that of another answer, describes."""
    return {
        "design": design.name,
        "categories": design.categories,
        "other": fraction_text(other),
        "epsilon": text(design.epsilon),
    }


class MatrixDesign(Design):
    """A design whose reports are categories again: a square matrix P[report, answer]."""

    @abstractmethod
    def probability(self, report: int, answer: int) -> Fraction:
        """Return P(report | answer)."""

    def law(self, category: int) -> Mapping[Report, Fraction]:
        self._check_category(category)
        return {u: self.probability(u, category) for u in range(self.categories)}

    @property
    def report_bits(self) -> int:
        return (self.categories - 1).bit_length()

    def check_report(self, report: Any) -> int:
        number = validate.whole(report=report, at_least=0, at_most=None)
        if number >= self.categories:
            raise InputError(f"report must be below {self.categories}; got {number}.")
        return number


@public()
@dataclass(frozen=True)
class RandomizedResponse(MatrixDesign):
    """Report the answer with probability 1 - (k - 1)·other, any other category with ``other``.

    Guarantee:
        Pure epsilon per client and attribute: two answers give a report with probabilities that
        differ by the factor (1 - (k - 1)·other) / other at most, checked in whole numbers to be
        at most exp(epsilon). With ``other`` = 1 / (exp(epsilon) + k - 1), rounded up, the sum of
        the diagonal is the largest possible (Results 9 and 11).

    Error:
        An estimated share of a rare category has variance
        (exp(epsilon) + k - 2) / (n·(exp(epsilon) - 1)²).

    Raises:
        InputError: when there are fewer than two categories, or the probabilities are not
            private at epsilon.

    Example:
        >>> yes_no = RandomizedResponse.of(2, epsilon=1)
        >>> round(float(yes_no.probability(1, 1)), 4)
        0.7311

    Reference:
        Warner, JASA 1965; Wang, Wu & Hu, Using randomized response for differential privacy
        preserving data collection, 2014, results 9 and 11.
    """

    name: ClassVar[str] = "randomized response"
    categories: int
    other: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        whole = validate.whole(categories=self.categories, at_least=2)
        object.__setattr__(self, "categories", whole)
        if not 0 < self.other * self.categories < 1:
            raise InputError(
                "The probability of another category must be above 0 and below "
                f"1/{self.categories}, or the reports say nothing about the answers."
            )
        self._check_ratio()

    @classmethod
    def of(cls, categories: int, *, epsilon: Number) -> RandomizedResponse:
        """Return the best design for so many categories at this epsilon."""
        categories = validate.whole(categories=categories, at_least=2)
        exact = checked_epsilon(epsilon)
        ratio = exp_of_minus(exact, PRECISION + 8)
        # 1 / (exp(epsilon) + k - 1), which rises with exp(-epsilon): an upper bound of it.
        other = round_up_to(ratio / (1 + (categories - 1) * ratio), PRECISION)
        return cls(categories, other, exact)

    @property
    def same(self) -> Fraction:
        """The probability that the report is the answer."""
        return 1 - (self.categories - 1) * self.other

    def probability(self, report: int, answer: int) -> Fraction:
        return self.same if report == answer else self.other

    def sample(self, category: int, draw: Draw) -> int:
        self._check_category(category)
        # Answer at random, the true category included, with probability k·other; else the truth.
        chance = self.categories * self.other
        if draw(chance.denominator) < chance.numerator:
            return draw(self.categories)
        return category

    def worst_ratio(self) -> Fraction:
        return self.same / self.other

    def variance(self) -> float:
        # As q(1 - q) / (p - q)²: every other category is reported with probability q.
        return float(self.other * (1 - self.other) / (self.same - self.other) ** 2)

    def to_json(self) -> dict[str, Any]:
        return other_json(self, self.other)


@public()
@dataclass(frozen=True)
class DesignMatrix(MatrixDesign):
    """A matrix given by the user: ``columns[answer][report]`` are exact probabilities.

    Guarantee:
        Pure epsilon per client and attribute, with epsilon the logarithm of the largest ratio
        within a row, computed from the fractions and rounded up.

    Raises:
        InputError: when a column does not sum to one, an entry is negative, some report is
            possible for one answer and impossible for another, or the matrix is singular.

    Example:
        >>> skewed = DesignMatrix.of([["4/5", "2/5"], ["1/5", "3/5"]])
        >>> round(float(skewed.epsilon), 4)
        1.0986
    """

    name: ClassVar[str] = "design matrix"
    columns: tuple[tuple[Fraction, ...], ...]
    epsilon: Fraction
    label: str = "design matrix"
    """What made the matrix, for reports."""
    _thresholds: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size = len(self.columns)
        if size < 2 or any(len(column) != size for column in self.columns):
            raise InputError(
                "A design matrix is square with at least two rows: rows are reports, columns "
                "are answers."
            )
        if size > MOST_MATRIX_CATEGORIES:
            raise InputError(
                f"A design matrix may have at most {MOST_MATRIX_CATEGORIES} categories; "
                f"got {size}. Use local hashing for large domains."
            )
        for place, column in enumerate(self.columns):
            if any(entry < 0 for entry in column):
                raise InputError(f"Column {place} of the design matrix has a negative entry.")
            if sum(column) != 1:
                raise InputError(
                    f"Column {place} of the design matrix sums to {text(sum(column, Fraction()))}, "
                    "not to 1. Give probabilities as fractions ('1/3') where decimals are inexact."
                )
        if _determinant_modulo(self.columns) == 0:
            raise InputError(
                "The design matrix is singular: different populations give the same reports, so "
                "that nothing can be estimated. Make its columns linearly independent."
            )
        self._check_ratio()
        object.__setattr__(self, "_thresholds", tuple(_thresholds(c) for c in self.columns))

    @classmethod
    def of(cls, rows: Sequence[Sequence[Number]], *, epsilon: Number | None = None) -> DesignMatrix:
        """Return the design of a matrix P[report][answer]; its least epsilon unless one is given.

        Floats count as the decimals that they print. An epsilon that is given is checked.
        """
        try:
            exact = [[rational(entry) for entry in row] for row in rows]
        except (ValueError, TypeError) as error:
            raise_alone(InputError(f"A design matrix holds finite numbers ({error})."))
        if any(len(row) != len(exact) for row in exact):
            raise InputError("A design matrix is square: rows are reports, columns are answers.")
        columns = tuple(zip(*exact, strict=True))
        least = epsilon_of_ratio(row_ratio(columns))
        if epsilon is None and least == 0:
            raise InputError(
                "The design matrix is singular: its reports do not depend on the answers."
            )
        return cls(columns, least if epsilon is None else checked_epsilon(epsilon))

    @property
    def categories(self) -> int:  # type: ignore[override]
        """The number of categories."""
        return len(self.columns)

    def probability(self, report: int, answer: int) -> Fraction:
        return self.columns[answer][report]

    def sample(self, category: int, draw: Draw) -> int:
        self._check_category(category)
        thresholds = self._thresholds[category]
        return bisect_right(thresholds, draw(thresholds[-1]))

    def worst_ratio(self) -> Fraction:
        return row_ratio(self.columns)

    def variance(self) -> float:
        import numpy as np  # the planner's figure, not needed by a client

        matrix = np.array([[float(p) for p in column] for column in self.columns]).T
        inverse = np.linalg.inv(matrix)
        # All answers are taken as equally frequent, and the categories' variances averaged.
        spread = (inverse**2) @ matrix.mean(axis=1) - 1 / self.categories
        return float(np.mean(spread))

    def to_json(self) -> dict[str, Any]:
        return {
            "design": self.name,
            "label": self.label,
            "columns": [[fraction_text(p) for p in column] for column in self.columns],
            "epsilon": text(self.epsilon),
        }


def row_ratio(columns: Sequence[Sequence[Fraction]]) -> Fraction:
    """Return the largest ratio of two entries in one row.

    Raises:
        InputError: when it is infinite.
    """
    worst = Fraction(1)
    for place, row in enumerate(zip(*columns, strict=True)):
        if max(row) == 0:
            raise InputError(
                f"The design matrix is singular: report {place} is impossible for every answer."
            )
        if min(row) == 0:
            raise InputError(
                f"Report {place} is impossible for some answers and possible for others: no "
                "epsilon holds. Give every entry of that row a positive probability."
            )
        worst = max(worst, max(row) / min(row))
    return worst


def _thresholds(column: Sequence[Fraction]) -> tuple[int, ...]:
    bottom = lcm(*(entry.denominator for entry in column))
    return tuple(accumulate(int(entry * bottom) for entry in column))


def _determinant_modulo(columns: Sequence[Sequence[Fraction]]) -> int:
    """Return the determinant modulo a prime of 127 bits, up to a factor that is not zero.

    Not zero proves that the matrix is regular. Zero for a regular matrix would be a coincidence
    of chance 2**-120, and would only refuse it.
    """
    rows = []
    for column in columns:
        bottom = lcm(*(entry.denominator for entry in column))
        rows.append([int(entry * bottom) % _PRIME for entry in column])
    product = 1
    for place in range(len(rows)):
        pivot = next((i for i in range(place, len(rows)) if rows[i][place]), None)
        if pivot is None:
            return 0
        rows[place], rows[pivot] = rows[pivot], rows[place]
        head = rows[place]
        product = product * head[place] % _PRIME
        inverse = pow(head[place], -1, _PRIME)
        for row in rows[place + 1 :]:
            factor = row[place] * inverse % _PRIME
            if factor:
                row[place:] = [
                    (a - factor * b) % _PRIME
                    for a, b in zip(row[place:], head[place:], strict=True)
                ]
    return product


def fraction_text(value: Fraction) -> str:
    """Write numerator/denominator, never a decimal: a port has to read one form only."""
    return f"{value.numerator}/{value.denominator}"
