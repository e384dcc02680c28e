"""Counts and estimates for unary encoding and local hashing: how often a category is supported."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats, Wholes
from tulle.surveys.error_law import NormalLaw
from tulle.surveys.frequencies import Target
from tulle.surveys.large import LocalHashing, SupportDesign, UnaryEncoding

_CHUNK_BITS = 1 << 24


def support_counts(design: SupportDesign, column: npt.NDArray[Any], counts: Wholes) -> None:
    """Add a column of reports to the counts: set bits, or pairs of hash function and bucket."""
    if isinstance(design, UnaryEncoding):
        step = max(1, _CHUNK_BITS // design.categories)
        for start in range(0, len(column), step):
            part = column[start : start + step]
            bits = np.unpackbits(part, axis=1, count=design.categories)
            counts += bits.sum(axis=0, dtype=np.int64)
        return
    count_places(column, counts)


def count_places(places: npt.NDArray[Any], counts: Wholes) -> None:
    """Add to the counts how often each place occurs."""
    if len(places) < len(counts):
        # Few reports must not cost a pass over a large table.
        np.add.at(counts, places, 1)
    else:
        counts += np.bincount(places, minlength=len(counts))


def supports(design: SupportDesign, counts: Wholes) -> Wholes:
    """Return how many reports support each category."""
    if isinstance(design, UnaryEncoding):
        return counts
    assert isinstance(design, LocalHashing)
    return _hashed_supports(design, counts)


def _hashed_supports(design: LocalHashing, counts: Wholes) -> Wholes:
    """Evaluate all hash functions on all categories, digit by digit.

    A report (a, c) supports the categories x with a·x = c modulo g. One digit at a time,
    T[..., x_i, ..., c] = sum over a_i of T[..., a_i, ..., c + a_i·x_i]; after all digits the
    entries at c = 0 are the supports. It takes digits·g·g^(digits + 1) additions in place of
    one hash for each report and category.
    """
    g, digits = design.buckets, design.digits
    table = counts.reshape((design.rows, g))
    for digit in range(digits):
        step = g**digit  # the row number's lowest digit comes first
        parts = table.reshape(design.rows // (step * g), g, step, g)
        result = np.zeros_like(parts)
        for x in range(g):
            for a in range(g):
                result[:, x] += np.roll(parts[:, a], -(a * x) % g, axis=-1)
        table = result.reshape(design.rows, g)
    return np.ascontiguousarray(table[: design.categories, 0])


def support_estimate(
    design: SupportDesign, counts: Wholes, responses: int, target: Target
) -> tuple[Floats, NormalLaw]:
    """Return unbiased shares and the law of their errors.

    A category of share s is supported by a report with probability q + s·(p - q). Given the
    answers the support count is a sum of independent coins, s·n of them with p and the rest
    with q; over the population, n coins with the mixed probability.
    """
    true, other = design.support_true, design.support_other
    gap = float(true - other)
    observed = supports(design, counts) / responses
    shares = (observed - float(other)) / gap
    if target == "population":
        variances = observed * (1 - observed) / max(responses - 1, 1) / gap**2
    else:
        inside = np.clip(shares, 0.0, 1.0)
        coins = inside * float(true * (1 - true)) + (1 - inside) * float(other * (1 - other))
        variances = coins / responses / gap**2
    return shares, NormalLaw.of(np.sqrt(variances), 1 / (responses * gap))
