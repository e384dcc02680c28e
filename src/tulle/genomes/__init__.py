"""Genotypes: allele frequencies, tests of association, the strongest SNPs, and public catalogues.

A room like the others. Besides sealed :class:`~tulle.genomes.data.Genotypes` it reads what others
have published: a catalogue of associations, and the two-layer network of traits and SNPs made of
it, which attacks use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tulle.core.lazy import lazy

if TYPE_CHECKING:
    from tulle.genomes.catalogue import Association, Catalogue
    from tulle.genomes.data import Genotypes
    from tulle.genomes.estimates import (
        SnpEstimates,
        allele_frequencies,
        association_tests,
        odds_ratios,
        score_intervals,
        significance,
    )
    from tulle.genomes.network import TraitNetwork
    from tulle.genomes.queries import allele_counts, chi_squares, p_values, top_snps

_HOMES = {
    "catalogue": ("Association", "Catalogue"),
    "data": ("Genotypes",),
    "estimates": (
        "SnpEstimates",
        "allele_frequencies",
        "association_tests",
        "odds_ratios",
        "score_intervals",
        "significance",
    ),
    "network": ("TraitNetwork",),
    "queries": ("allele_counts", "chi_squares", "p_values", "top_snps"),
}

__all__ = [
    "Association",
    "Catalogue",
    "Genotypes",
    "SnpEstimates",
    "TraitNetwork",
    "allele_counts",
    "allele_frequencies",
    "association_tests",
    "chi_squares",
    "odds_ratios",
    "p_values",
    "score_intervals",
    "significance",
    "top_snps",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
