"""Made-up studies and people, drawn from published numbers. They hold no private data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tulle.core import validate
from tulle.core.errors import InputError
from tulle.genomes.catalogue import Association
from tulle.genomes.data import MISSING, Genotypes

Profiles = npt.NDArray[np.int8]


def made_up_study(
    associations: Sequence[Association],
    *,
    cases: int,
    controls: int,
    seed: int,
    missing: float = 0.0,
) -> Genotypes:
    """Return a study of one trait whose allele frequencies are the published ones.

    Example:
        >>> published = [Association("Mumps", "rs1", "A", 0.2, 4.0)]
        >>> made_up_study(published, cases=5, controls=7, seed=1).group_sizes()
        (5, 7)
    """
    if not 0 <= missing < 1:
        raise InputError(f"missing must be at least 0 and below 1; got {missing!r}.")
    generator = np.random.default_rng(seed)
    sizes = [validate.whole(cases=cases, at_least=0), validate.whole(controls=controls, at_least=0)]
    frequencies = [
        [item.case_frequency for item in associations],
        [item.frequency for item in associations],
    ]
    cells = np.vstack(
        [
            generator.binomial(2, row, size=(size, len(associations)))
            for row, size in zip(frequencies, sizes, strict=True)
        ]
    )
    cells[generator.random(cells.shape) < missing] = MISSING
    return Genotypes(
        cells,
        cases=np.arange(sum(sizes)) < sizes[0],
        snps=[item.snp for item in associations],
        counted=[item.allele for item in associations],
    )
