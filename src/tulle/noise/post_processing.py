"""Ordinary random numbers for what is made from released numbers alone.

A synthetic graph is drawn from statistics that are private already: nothing needs protection any
more, only variety. The generator is seeded from a source, so a test can replay it.
"""

from __future__ import annotations

import numpy as np

from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise.source import resolve
from tulle.noise.watch import free_of_charge

Random = np.random.Generator
"""A fast generator of ordinary random numbers. It protects nothing."""


@public()
def post_processing(source: Source | None = None) -> Random:
    """Return a fast generator for post-processing, seeded with 256 bits of ``source``.

    Guarantee:
        None: noise that protects records is drawn by the exact samplers only.

    Example:
        >>> from tulle.noise import SeededSource
        >>> int(post_processing(SeededSource(1)).integers(10)) == int(
        ...     post_processing(SeededSource(1)).integers(10)
        ... )
        True
    """
    with free_of_charge(source):
        seed = int.from_bytes(resolve(source).read(32), "big")
    return np.random.Generator(np.random.PCG64(seed))
