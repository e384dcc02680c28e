"""How far one number, or one distribution, is from another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats

SMOOTHING = float(np.finfo(np.float64).eps)
"""Added to both probabilities of a divergence, 2.2e-16: an empty place costs about 36 nats."""


def relative_error(true: float, made: float) -> float:
    """Return the distance in units of the true number; for a true zero it is 0 or infinity.

    Example:
        >>> relative_error(4, 5), relative_error(0, 0), relative_error(0, 1)
        (0.25, 0.0, inf)
    """
    if true == made:
        return 0.0
    return abs(true - made) / abs(true) if true else math.inf


def divergence(true: npt.NDArray[Any], made: npt.NDArray[Any]) -> float:
    """Return the Kullback-Leibler divergence of two histograms, true to made, in nats.

    The shorter one is padded with zeros; 2.2e-16 is added to every probability.

    Example:
        >>> round(divergence(np.array([1, 1]), np.array([1, 3])), 4)
        0.1438
    """
    length = max(len(true), len(made))
    p, q = (_probabilities(counts, length) for counts in (true, made))
    return max(float(np.sum(p * np.log((p + SMOOTHING) / (q + SMOOTHING)))), 0.0)


def _probabilities(counts: npt.NDArray[Any], length: int) -> Floats:
    padded = np.zeros(length)
    padded[: len(counts)] = counts
    total = padded.sum()
    shares: Floats = padded / total if total else padded
    return shares


def top_error(true: Floats, made: Floats, share: float = 0.01) -> float:
    """Return the mean absolute error of the largest values: the top share, at least one.

    The largest of one are compared with the largest of the other, whoever they belong to.

    Example:
        >>> top_error(np.array([0.1, 0.9]), np.array([0.5, 0.2]), share=0.5)
        0.4
    """
    count = max(int(share * len(true)), 1)
    one, other = (np.sort(values)[::-1][:count] for values in (true, made))
    padded = np.zeros(count)
    padded[: len(other)] = other
    if not len(one):
        return 0.0
    return float(np.mean(np.abs(one - padded[: len(one)])))
