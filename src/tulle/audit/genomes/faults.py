"""Broken versions of the mechanisms on genotypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import Law
from tulle.audit.faults import BOTH, broken, forget_delta, halve_noise, scaled
from tulle.audit.genomes.kind import QUESTIONS
from tulle.core import registry
from tulle.core.mechanism import Parameters, Terms
from tulle.core.validate import rational, text
from tulle.genomes.data import Genotypes
from tulle.genomes.laplace import Numbers
from tulle.genomes.queries import AlleleCounts, ChiSquares
from tulle.genomes.scores import true_chi_squares
from tulle.noise import Lattice

_COUNTS = [asked for asked in QUESTIONS["laplace"] if isinstance(asked.query, AlleleCounts)]
_TWO_SNPS = [asked for asked in QUESTIONS["laplace"] if asked.snps == 2]
_CHI_SQUARES = [asked for asked in QUESTIONS["laplace"] if isinstance(asked.query, ChiSquares)]


def genotype_sensitivity(honest: Parameters, terms: Terms) -> Parameters:
    """Return settings with the sensitivity 4n/(n + 2) of the genotype test.

    The published bound is for tables of three genotypes by two equal groups with positive
    margins. The allelic table of the same people holds twice as many alleles and moves twice as
    far, and unequal groups move further still.
    """
    people = sum(terms.facts["groups"])
    printed = Fraction(4 * people, people + 2)
    scale = (printed / rational(honest["step"]) + 1) / terms.epsilon
    return {"sensitivity": text(printed), "scale": text(scale)}


def called_only(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, data: Genotypes
) -> Mapping[str, Law]:
    """Return the law around the chi-squares of the called genotypes alone."""
    cells, labels = data.to_numpy(), data.labels
    called = (cells >= 0).all(axis=1)
    assert labels is not None
    kept = Genotypes(cells[called], cases=labels[called])
    found = true_chi_squares(kept) if min(kept.group_sizes()) else np.zeros(cells.shape[1])
    centre = np.asarray(Lattice(Numbers.read(settings).step).snap(found), dtype=np.int64)
    return {"numbers": replace(laws["numbers"], centre=tuple(centre.tolist()))}


@registry.register("audit", "genotypes", "faults")
def genome_faults() -> list[Broken]:
    """Return all broken versions."""
    real = registry.mechanisms("genotypes")
    laplace, one_shot = real["laplace"], real["one_shot"]
    return [
        halve_noise(
            laplace,
            "scale",
            _COUNTS,
            what="one allele moves",
            fault="one person carries two alleles; the noise is for one",
            caught_by=BOTH,
        ),
        broken(
            laplace,
            "noise for one SNP",
            "a person has a genotype at every SNP, and all of them may change",
            _TWO_SNPS,
            BOTH,
            settings=lambda honest, terms: scaled(
                honest, ["scale"], Fraction(1, int(terms.facts["snps"]))
            ),
        ),
        broken(
            laplace,
            "chi-square moves 4n/(n + 2)",
            "the printed bound is for another table, and for positive margins",
            _CHI_SQUARES,
            BOTH,
            settings=genotype_sensitivity,
        ),
        broken(
            laplace,
            "missing genotypes dropped",
            "dropping missing genotypes makes the margins depend on the data",
            _CHI_SQUARES,
            BOTH,
            law=called_only,
        ),
        halve_noise(
            real["knorm"],
            "scale",
            QUESTIONS["knorm"],
            what="half the radius",
            fault="all numbers have half the noise that the largest move needs",
            caught_by=BOTH,
        ),
        broken(
            real["knorm"],
            "a change as a join",
            "who changes moves the copies of either allele by two, and not by one",
            [asked for asked in QUESTIONS["knorm"] if asked.unit == "row" and asked in _COUNTS],
            BOTH,
            settings=lambda honest, _: scaled(honest, ["scale", "sensitivity"], Fraction(1, 2)),
        ),
        broken(
            laplace,
            "people who are counted for nothing",
            "who joins a complete table is one more person, besides what they carry",
            [asked for asked in _COUNTS if asked.complete and asked.unit == "participant"],
            BOTH,
            settings=lambda honest, terms: scaled(
                honest,
                ["scale"],
                Fraction(int(terms.facts["snps"]), int(terms.facts["snps"]) + 1),
            ),
        ),
        forget_delta(real["gaussian"], QUESTIONS["gaussian"]),
        broken(
            real["peeling"],
            "every round at full price",
            "the rounds add up, and each spends the whole budget",
            QUESTIONS["peeling"],
            # One round with the noise of half a round shows on a choice of one as well.
            settings=lambda honest, _: scaled(
                honest, ["selection_scale"], Fraction(1, 2 * int(honest["count"]))
            ),
        ),
        halve_noise(
            real["exponential"],
            "selection_scale",
            QUESTIONS["exponential"],
            Fraction(1, 4),
            what="a quarter of the scale",
            fault="the rounds add up to more than epsilon and delta",
        ),
        halve_noise(
            one_shot,
            "score_scale",
            QUESTIONS["one_shot"][-1:],
            Fraction(1, 10),
            what="scores with a tenth of the noise",
            fault="the scores are read a second time and must be paid for again",
        ),
    ]
