"""Questions about genotypes: allele counts, tests of association, the strongest SNPs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from tulle.core import registry, validate
from tulle.core.arrays import Floats, Wholes
from tulle.core.errors import QueryError
from tulle.core.labels import Axis
from tulle.core.mechanism import Terms
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.validate import Number, rational, text
from tulle.genomes.data import Genotypes
from tulle.genomes.scores import difference_weights, group_sums, true_chi_squares, true_differences

Score = Literal["chi_square", "difference"]


@dataclass(frozen=True)
class SnpQuery(Query):
    """A question about some SNPs, or about all of them."""

    snps: tuple[int, ...] | None
    kind: ClassVar[str] = "genotypes"
    shape: ClassVar[Shape] = "vector"

    def chosen(self, count: int) -> Any:
        """Return the columns asked about, of so many.

        Raises:
            QueryError: when a column does not exist; how many there are is public.
        """
        if self.snps is None:
            return np.arange(count)
        beyond = [place for place in self.snps if place >= count]
        if beyond:
            raise QueryError(f"{self.name} asks about SNP {beyond[0]}; there are {count} from 0.")
        return np.array(self.snps, dtype=np.int64)

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return (Axis("snp", parameters.get("snps")),)

    def __str__(self) -> str:
        return f"{self.name}({'' if self.snps is None else list(self.snps)})"


@dataclass(frozen=True)
class AlleleCounts(SnpQuery):
    """For each group and SNP: the sum of (genotype - 1), and how many genotypes are known."""

    name: ClassVar[str] = "allele_counts"
    words: ClassVar[str] = "How common is the counted allele of each SNP in each group?"
    quantity: ClassVar[str] = "people"

    def truth(self, dataset: Genotypes) -> Wholes:
        return group_sums(dataset)[:, self.chosen(len(dataset.snps))]

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        groups = ["everyone"] if parameters.get("groups") == 1 else ["cases", "controls"]
        return (
            Axis("group", groups),
            *super().axes(public, parameters),
            Axis("number", ["copies of the allele beyond one each", "people with a genotype"]),
        )


@dataclass(frozen=True)
class ChiSquares(SnpQuery):
    """Pearson's statistic of the alleles of cases and controls, for each SNP."""

    name: ClassVar[str] = "chi_squares"
    words: ClassVar[str] = (
        "How strongly is each SNP associated with the trait (chi-square statistic)?"
    )
    quantity: ClassVar[str] = "chi-square"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Genotypes) -> Floats:
        found: Floats = true_chi_squares(dataset)[self.chosen(len(dataset.snps))]
        return found


@dataclass(frozen=True)
class PValues(SnpQuery):
    """The p-values of those statistics, with one degree of freedom."""

    name: ClassVar[str] = "p_values"
    words: ClassVar[str] = (
        "How likely would chance alone make each SNP look so strongly associated (p-value)?"
    )
    quantity: ClassVar[str] = "p-value"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Genotypes) -> Floats:
        from scipy.stats import chi2

        found = true_chi_squares(dataset)[self.chosen(len(dataset.snps))]
        return np.asarray(chi2.sf(found, 1), dtype=np.float64)


@dataclass(frozen=True)
class TopSnps(Query):
    """The SNPs with the largest scores, and their scores if asked for."""

    count: int
    by: Score
    scores: bool
    ratio: str | None = None
    """Cases for each control as exact text, where the sizes of the groups are not public."""
    name: ClassVar[str] = "top_snps"
    words: ClassVar[str] = "Which {count} SNPs are most strongly associated with the trait?"
    quantity: ClassVar[str] = "score"
    kind: ClassVar[str] = "genotypes"
    shape: ClassVar[Shape] = "object"

    def weights(self, groups: Sequence[int] | None) -> tuple[int, int]:
        """Return the weights of cases and controls in a difference.

        Raises:
            QueryError: when neither the sizes of the groups nor a ratio are public.
        """
        if self.ratio is None and groups is not None:
            return difference_weights(groups[0], groups[1])
        if self.ratio is None:
            raise QueryError(
                "top_snps by difference needs ratio=, the number of cases for each control, where "
                "the sizes of the groups are not public."
            )
        known = rational(self.ratio)
        return known.denominator, known.numerator

    def truth(self, dataset: Genotypes) -> dict[str, list[Any]]:
        found: Any
        if self.by == "chi_square":
            found = true_chi_squares(dataset)
        else:
            found = true_differences(dataset, self.weights(dataset.group_sizes()))
        order = np.argsort(-found, kind="stable")[: self.count]
        return {
            "places": order.tolist(),
            "snps": [dataset.snps[place] for place in order],
            "scores": found[order].astype(float).tolist(),
        }

    def __str__(self) -> str:
        extra = "" if self.ratio is None else f", ratio={self.ratio!r}"
        return f"top_snps({self.count}, by={self.by!r}, scores={self.scores}{extra})"


@public()
@registry.register("query", "genotypes", "allele_counts")
def allele_counts(snps: Sequence[int] | None = None) -> AlleleCounts:
    """Ask for the alleles of each group: what frequencies and odds ratios are computed from.

    The answer has a row for cases and one for controls (or one for everyone), a column for each
    SNP, and two numbers: the sum of (genotype - 1), and how many people's genotype is known. The
    functions :func:`~tulle.genomes.allele_frequencies`, :func:`~tulle.genomes.odds_ratios` and
    :func:`~tulle.genomes.association_tests` read it.

    Example:
        >>> str(allele_counts([3, 7]))
        'allele_counts([3, 7])'
    """
    return AlleleCounts(_places(snps))


@public()
@registry.register("query", "genotypes", "chi_squares")
def chi_squares(snps: Sequence[int] | None = None) -> ChiSquares:
    """Ask for the chi-square statistic of each SNP; a missing genotype counts as one copy."""
    return ChiSquares(_places(snps))


@public()
@registry.register("query", "genotypes", "p_values")
def p_values(snps: Sequence[int] | None = None) -> PValues:
    """Ask for the p-value of each SNP's association.

    One person can move a p-value by nearly all of its range. Ask for :func:`chi_squares` and
    convert the answer with :func:`~tulle.genomes.significance` instead: that is more accurate.
    """
    return PValues(_places(snps))


@public()
@registry.register("query", "genotypes", "top_snps")
def top_snps(
    count: int, *, by: Score = "difference", scores: bool = False, ratio: Number | None = None
) -> TopSnps:
    """Ask which SNPs are associated most strongly with being a case.

    ``by`` is the score: ``chi_square``, or ``difference`` of the allele frequencies, which one
    person moves less. With ``scores`` the scores of the chosen are released as well, for half of
    the budget. ``ratio`` is the number of cases for each control that the study was designed for;
    it must be given where the sizes of the groups are not public.

    Raises:
        QueryError: when the score is not known.

    Example:
        >>> str(top_snps(10))
        "top_snps(10, by='difference', scores=False)"
    """
    if by not in get_args(Score):
        raise QueryError(f"There is no score {by!r}. Known: {', '.join(get_args(Score))}.")
    written = None
    if ratio is not None:
        if by != "difference":
            raise QueryError("ratio= belongs to by='difference'.")
        exact = validate.positive(ratio=ratio)
        if max(exact.numerator, exact.denominator) > 10**6:
            exact = max(exact.limit_denominator(1000), Fraction(1, 1000))
        written = text(exact)
    return TopSnps(validate.whole(count=count, at_least=1), by, bool(scores), written)


def groups_of(terms: Terms) -> tuple[int, int] | None:
    """Return the public numbers of cases and controls, or None where they are not public.

    Raises:
        QueryError: when nobody is labelled, or one of the groups is known to be empty.
    """
    if not terms.facts["labelled"]:
        raise QueryError(f"{terms.query} compares cases with controls; nobody is labelled as such.")
    if "groups" not in terms.facts:
        return None
    cases, controls = terms.facts["groups"]
    if not cases or not controls:
        raise QueryError(f"{terms.query} needs at least one case and one control.")
    return int(cases), int(controls)


def _places(snps: Sequence[int] | None) -> tuple[int, ...] | None:
    if snps is None:
        return None
    places = tuple(validate.whole(snps=place, at_least=0) for place in snps)
    if not places:
        raise QueryError("snps must name at least one SNP, by its column; see Genotypes.places.")
    if len(set(places)) != len(places):
        raise QueryError("snps must name each SNP once.")
    return places
