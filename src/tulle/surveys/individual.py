"""What a report says about the one person who sent it (the first question of the reference)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.validate import counted
from tulle.surveys import operators
from tulle.surveys.designs import MatrixDesign


@public()
@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Guesses of single answers from single reports, and how often they are right."""

    posterior: Floats
    """posterior[report, answer]: how likely an answer is once the report is known."""
    guess: npt.NDArray[np.int64]
    """The most likely answer for each report."""
    accuracy: float
    """How often that guess is right."""
    accuracy_by_answer: Floats
    """How often it is right for people with each answer."""
    sampled_accuracy: Floats
    """The same when the guess is drawn from the posterior (equations 46 and 55)."""
    prior_accuracy: float
    """How often the most frequent answer is right, without any report."""
    bound: float
    """The most that any design with this epsilon lets anyone reach on average."""

    @property
    def error(self) -> float:
        """How often the guess is wrong."""
        return 1 - self.accuracy


@public()
def reconstruct(design: MatrixDesign, prior: Any) -> Reconstruction:
    """Return the best guess of each answer from its report, and its error.

    ``prior`` are the shares of the answers, for example the most likely ones of a collection.
    Any posterior odds are at most exp(epsilon) times the prior odds, hence the bound.

    Raises:
        InputError: when the prior is no distribution over the design's categories.

    Example:
        >>> from tulle.surveys.designs import RandomizedResponse
        >>> found = reconstruct(RandomizedResponse.of(2, epsilon=1), [0.5, 0.5])
        >>> round(found.accuracy, 4), round(found.bound, 4)
        (0.7311, 0.7311)

    Reference:
        Wang, Wu & Hu 2014, sections 7.3.1 and 7.4.1, question Q1.
    """
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != (design.categories,) or not np.isfinite(shares).all():
        raise InputError(
            f"prior holds {counted(design.categories, 'share')}, one for each category."
        )
    if shares.min() < 0 or abs(shares.sum() - 1) > 1e-9:
        raise InputError(
            "prior must be shares: not negative, with sum 1. Take an estimate with "
            "method='likelihood'."
        )
    matrix = operators.matrix_of(design)
    joint = matrix * shares
    posterior = joint / joint.sum(axis=1, keepdims=True)
    guess = joint.argmax(axis=1)
    right = np.zeros(design.categories)
    np.add.at(right, guess, matrix[np.arange(len(guess)), guess])
    top = float(shares.max())
    gain = exp(min(float(design.epsilon), 700.0))
    return Reconstruction(
        posterior=posterior,
        guess=guess,
        accuracy=float(joint.max(axis=1).sum()),
        accuracy_by_answer=right,
        sampled_accuracy=np.sum(matrix * posterior, axis=0),
        prior_accuracy=top,
        bound=min(1.0, gain * top / (1 + (gain - 1) * top)),
    )
