"""Designs for many categories: unary encoding and local hashing. Plain Python, for the client.

With k categories randomized response has a variance that grows with k. Both designs here have
4·exp(epsilon) / (exp(epsilon) - 1)², whatever k is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

from tulle.core import validate
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.validate import Number, counted, text
from tulle.surveys.designs import PRECISION, Design, Draw, Report, fraction_text, other_json
from tulle.surveys.exact import checked_epsilon, exp_of_minus, round_up_to

_MOST_LISTED = 1 << 16
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)


class SupportDesign(Design):
    """A design whose report supports some categories: the true one more often than the others."""

    @property
    @abstractmethod
    def support_true(self) -> Fraction:
        """The probability that a report supports the true category."""

    @property
    @abstractmethod
    def support_other(self) -> Fraction:
        """The probability that it supports any one other category."""

    def variance(self) -> float:
        true, other = self.support_true, self.support_other
        return float(other * (1 - other) / (true - other) ** 2)


@public()
@dataclass(frozen=True)
class UnaryEncoding(SupportDesign):
    """Report one bit for each category: the true one's is set with chance 1/2, others with q.

    A report is a text of k characters 0 and 1.

    Guarantee:
        Pure epsilon per client and attribute. Two answers differ in two bits, and each report's
        probabilities by the factor (1/2·(1 - q)) / (q·1/2) = (1 - q)/q at most, which is checked
        in whole numbers: q is 1 / (exp(epsilon) + 1), rounded up.

    Error:
        A rare category's share has variance q(1 - q) / (n·(1/2 - q)²).

    Raises:
        InputError: when there are fewer than two categories, or q is not private at epsilon.

    Example:
        >>> UnaryEncoding.of(1000, epsilon=1).report_bits
        1000

    Reference:
        Wang, Blocki, Li & Jha, Locally differentially private protocols for frequency
        estimation, USENIX Security 2017, section 4.3 (optimized unary encoding).
    """

    name: ClassVar[str] = "unary encoding"
    categories: int
    other: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        whole = validate.whole(categories=self.categories, at_least=2)
        object.__setattr__(self, "categories", whole)
        if not 0 < self.other < Fraction(1, 2):
            raise InputError("The probability of another bit must be above 0 and below 1/2.")
        self._check_ratio()

    @classmethod
    def of(cls, categories: int, *, epsilon: Number) -> UnaryEncoding:
        """Return the best design for so many categories at this epsilon."""
        exact = checked_epsilon(epsilon)
        ratio = exp_of_minus(exact, PRECISION + 8)
        categories = validate.whole(categories=categories, at_least=2)
        return cls(categories, round_up_to(ratio / (1 + ratio), PRECISION), exact)

    @property
    def support_true(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def support_other(self) -> Fraction:
        return self.other

    @property
    def report_bits(self) -> int:
        return self.categories

    def sample(self, category: int, draw: Draw) -> str:
        self._check_category(category)
        bottom, top = self.other.denominator, self.other.numerator
        return "".join(
            "1" if (draw(2) == 0 if place == category else draw(bottom) < top) else "0"
            for place in range(self.categories)
        )

    def law(self, category: int) -> Mapping[Report, Fraction]:
        self._check_category(category)
        if 1 << self.categories > _MOST_LISTED:
            raise InputError("This design has too many reports to list.")
        found: dict[Report, Fraction] = {}
        for bits in product("01", repeat=self.categories):
            chance = Fraction(1)
            for place, bit in enumerate(bits):
                on = self.support_true if place == category else self.other
                chance *= on if bit == "1" else 1 - on
            found["".join(bits)] = chance
        return found

    def worst_ratio(self) -> Fraction:
        return (1 - self.other) / self.other

    def check_report(self, report: Any) -> str:
        if (
            not isinstance(report, str)
            or len(report) != self.categories
            or set(report) - {"0", "1"}
        ):
            raise InputError(
                f"report must be a text of {counted(self.categories, 'character')} 0 and 1."
            )
        return report

    def to_json(self) -> dict[str, Any]:
        return other_json(self, self.other)


@public()
@dataclass(frozen=True)
class LocalHashing(SupportDesign):
    """Hash the answer to a few buckets with a random public function, then randomize the bucket.

    The number of buckets g is a prime. A category is written with ``digits`` digits in base g;
    the hash of digits x is the sum of a_i·x_i modulo g, for digits a drawn uniformly. The report
    is (a as a number, randomized bucket). Two categories collide for exactly one a in g, so that
    estimates are unbiased without any assumption about the hash, and the collector can evaluate
    all hashes of all reports at once by a fast transform. With g = 2 it is Hadamard response.

    Guarantee:
        Pure epsilon per client and attribute: a does not depend on the answer, and given a the
        report is randomized response on g buckets, checked in whole numbers.

    Error:
        A rare category's share has variance 1/g·(1 - 1/g) / (n·(p - 1/g)²), p the chance that
        a bucket is reported as it is; at g near exp(epsilon) + 1 it is the least possible.

    Raises:
        InputError: when the number of buckets is not one of the known primes, or the
            probabilities are not private at epsilon.

    Example:
        >>> design = LocalHashing.of(10**6, epsilon=1)
        >>> design.buckets, design.report_bits
        (3, 23)

    Reference:
        Wang, Blocki, Li & Jha, USENIX Security 2017, section 4.4 (optimal local hashing);
        Carter & Wegman, Universal classes of hash functions, JCSS 1979.
    """

    name: ClassVar[str] = "local hashing"
    categories: int
    buckets: int
    other: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        whole = validate.whole(categories=self.categories, at_least=2)
        object.__setattr__(self, "categories", whole)
        buckets = validate.whole(buckets=self.buckets, at_least=2)
        object.__setattr__(self, "buckets", buckets)
        if buckets not in _PRIMES:
            raise InputError(f"buckets must be a prime up to {_PRIMES[-1]}; got {buckets}.")
        if not 0 < self.other * self.buckets < 1:
            raise InputError("The probability of another bucket must be above 0 and below 1/g.")
        self._check_ratio()

    @classmethod
    def of(cls, categories: int, *, epsilon: Number, buckets: int | None = None) -> LocalHashing:
        """Return the best design; the number of buckets is the prime of least variance."""
        exact = checked_epsilon(epsilon)
        ratio = exp_of_minus(exact, PRECISION + 8)
        choices = _PRIMES if buckets is None else (buckets,)
        designs = [
            cls(categories, g, round_up_to(ratio / (1 + (g - 1) * ratio), PRECISION), exact)
            for g in choices
        ]
        return min(designs, key=lambda design: design.variance())

    @property
    def digits(self) -> int:
        """How many digits in base g a category has."""
        count, reach = 1, self.buckets
        while reach < self.categories:
            count, reach = count + 1, reach * self.buckets
        return count

    @property
    def rows(self) -> int:
        """How many hash functions there are."""
        return int(self.buckets**self.digits)

    def bucket(self, row: int, category: int) -> int:
        """Return the hash of a category: the sum of products of digits, modulo g."""
        total = 0
        while category:
            total += (row % self.buckets) * (category % self.buckets)
            row //= self.buckets
            category //= self.buckets
        return total % self.buckets

    @property
    def support_true(self) -> Fraction:
        return 1 - (self.buckets - 1) * self.other

    @property
    def support_other(self) -> Fraction:
        return Fraction(1, self.buckets)

    @property
    def report_bits(self) -> int:
        return (self.rows * self.buckets - 1).bit_length()

    def sample(self, category: int, draw: Draw) -> tuple[int, int]:
        self._check_category(category)
        row = draw(self.rows)
        chance = self.buckets * self.other
        if draw(chance.denominator) < chance.numerator:
            return row, draw(self.buckets)
        return row, self.bucket(row, category)

    def law(self, category: int) -> Mapping[Report, Fraction]:
        self._check_category(category)
        if self.rows * self.buckets > _MOST_LISTED:
            raise InputError("This design has too many reports to list.")
        found: dict[Report, Fraction] = {}
        for row in range(self.rows):
            true = self.bucket(row, category)
            for value in range(self.buckets):
                chance = self.support_true if value == true else self.other
                found[row, value] = chance / self.rows
        return found

    def worst_ratio(self) -> Fraction:
        return self.support_true / self.other

    def check_report(self, report: Any) -> tuple[int, int]:
        try:
            row, value = report
        except (TypeError, ValueError, OverflowError):
            raise_alone(InputError("report must be a pair: hash function and bucket."))
        row = validate.whole(row=row, at_least=0, at_most=None)
        value = validate.whole(bucket=value, at_least=0)
        if row >= self.rows or value >= self.buckets:
            raise InputError(
                f"report must be below ({self.rows}, {self.buckets}); got ({row}, {value})."
            )
        return row, value

    def to_json(self) -> dict[str, Any]:
        return {
            "design": self.name,
            "categories": self.categories,
            "buckets": self.buckets,
            "other": fraction_text(self.other),
            "epsilon": text(self.epsilon),
        }
