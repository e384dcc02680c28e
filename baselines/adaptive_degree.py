"""Adaptive weighting of keys: weight far above the threshold goes back to whoever gave it.

Everyone of n keys, n at most ``degree``, first gives 1/n to each of them. What a key has beyond
``enough`` goes back to its givers in proportion, and each of them gives what they got back, divided
by ``degree``, to every key of theirs. Then everyone adds 1/sqrt(n) - 1/n to each key. Whoever has
more than ``degree`` keys gives 1/sqrt(n) to each.

A reconstruction of Max Adaptive Degree (Chen, Cohen-Addad, Epasto & Zadimoghaddam, *Scalable
private partition selection via adaptive weighting*, ICML 2025, arXiv 2502.08878), whose full text
was not at hand: its details may differ. Noise is drawn as if one person moved the sums by one in
L2. For the weights as they are here that is too little (``tests/baselines``), so the comparison is
in its favour, and it is not offered.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]


def adaptive_sums(person: Wholes, key: Wholes, degree: int, enough: float) -> Floats:
    """Return the sum of weights of each key; pairs of person and key occur once.

    Example:
        >>> adaptive_sums(np.array([0, 0, 1]), np.array([0, 1, 1]), 2, 100.0).round(3).tolist()
        [0.707, 1.707]
    """
    size = int(key.max()) + 1 if len(key) else 0
    keys = np.bincount(person)[person].astype(np.float64) if len(person) else np.zeros(0)
    adaptive = keys <= degree
    given = np.where(adaptive, 1 / keys, 0.0)
    first = np.bincount(key, weights=given, minlength=size)
    beyond = np.maximum(first - enough, 0) / np.where(first > 0, first, 1)
    back = np.bincount(person, weights=given * beyond[key])[person]
    last = np.where(adaptive, 1 / np.sqrt(keys) - 1 / keys + back / degree, 1 / np.sqrt(keys))
    return first - beyond * first + np.bincount(key, weights=last, minlength=size)
