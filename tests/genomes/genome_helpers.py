"""Made-up studies for the tests."""

import numpy as np

import tulle


def study(cases=60, controls=80, snps=12, seed=1, missing=0.05, strong=(3, 7)):
    """Return a made-up study in which some SNPs are more frequent among cases."""
    generator = np.random.default_rng(seed)
    frequency = generator.uniform(0.2, 0.5, size=snps)
    shifted = frequency.copy()
    shifted[[place for place in strong if place < snps]] += 0.35
    cells = np.vstack(
        [
            generator.binomial(2, shifted, size=(cases, snps)),
            generator.binomial(2, frequency, size=(controls, snps)),
        ]
    )
    cells[generator.random(cells.shape) < missing] = -1
    labels = np.arange(cases + controls) < cases
    return tulle.Genotypes(cells, cases=labels)


HEADER = (
    "Disease/Trait",
    "Strongest SNP-Risk Allele",
    "SNPs",
    "Risk Allele Frequency",
    "p-Value",
    "OR or beta",
    "95% CI (text)",
    "Initial Sample Size",
)
"""The columns of a catalogue that are read."""
