"""Tables of report counts: unbiased shares, their dispersion, and the most likely shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from tulle.core.arrays import Floats
from tulle.core.errors import InputError
from tulle.core.validate import counted
from tulle.surveys import operators
from tulle.surveys.designs import MatrixDesign, RandomizedResponse
from tulle.surveys.error_law import NormalLaw
from tulle.surveys.likelihood import best_shares, most_likely

Target = Literal["respondents", "population"]

MOST_DENSE = 4096


def check_target(target: str) -> None:
    """Refuse other words than the two targets."""
    if target not in ("respondents", "population"):
        raise InputError(f"target is 'respondents' or 'population'; got {target!r}.")


@dataclass(frozen=True)
class Frequencies:
    """Report counts over one or several attributes, one axis each.

    Two targets: the shares among the *respondents* are fixed numbers, and only the perturbation
    is random; those of the *population* are covered when respondents are drawn from it
    independently, which adds sampling error.

    Example:
        >>> from tulle.surveys.designs import RandomizedResponse
        >>> table = Frequencies((RandomizedResponse.of(2, epsilon=1),), np.array([600, 400]))
        >>> table.unbiased().round(3)
        array([0.716, 0.284])
    """

    designs: tuple[MatrixDesign, ...]
    counts: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.counts.shape != tuple(design.categories for design in self.designs):
            raise InputError("The counts have one axis for each design, as long as its categories.")
        if self.responses == 0:
            raise InputError("There are no responses yet: add reports before estimating.")

    @cached_property
    def responses(self) -> int:
        """How many reports were counted."""
        return int(self.counts.sum())

    @cached_property
    def observed(self) -> Floats:
        """The shares among the reports."""
        return np.asarray(self.counts / self.responses, dtype=np.float64)

    def unbiased(self) -> Floats:
        """Return P⁻¹·observed, whose expectation is the truth; it may leave the simplex."""
        return operators.solve(self.designs, self.observed)

    def likelihood(self) -> Floats:
        """Return the shares on the simplex under which the reports are most likely.

        Where the unbiased shares lie on the simplex they are the most likely ones. Else: in
        closed form for one attribute with randomized response, by expectation maximisation for
        the rest, until the likelihood is certified within 1e-3 of its maximum (in logarithm,
        over all responses) or 20,000 steps are made.
        """
        shares = self.unbiased()
        if shares.min() >= 0:
            return shares
        if len(self.designs) == 1 and isinstance(self.designs[0], RandomizedResponse):
            design = self.designs[0]
            return best_shares(self.observed, float(design.same), float(design.other))
        return most_likely(self.designs, self.observed, shares, 1e-3 / self.responses)

    def variances(self, target: Target) -> Floats:
        """Return unbiased estimates of the variances of :meth:`unbiased`, entry by entry.

        Raises:
            InputError: for the population, when there is only one response.
        """
        check_target(target)
        shares = self.unbiased()
        squares = operators.solve_squared(self.designs, self.observed)
        if target == "population":
            return np.maximum(squares - shares**2, 0.0) / self._degrees()
        return np.maximum(squares - shares, 0.0) / self.responses

    def steps(self) -> Floats:
        """Return what one report moves each entry of :meth:`unbiased` by, at most."""
        return operators.solve_ranges(self.designs) / self.responses

    def law(self, target: Target) -> NormalLaw:
        """Return the law of the errors of :meth:`unbiased`."""
        return NormalLaw.of(np.sqrt(self.variances(target)), self.steps())

    def dispersion(self, target: Target) -> Floats:
        """Return an unbiased estimate of the covariance matrix of the flattened shares.

        For the population it is Lemma 14 of the reference; for the respondents the part that
        comes from sampling them is taken off.

        Raises:
            InputError: when the table has more than 4096 cells.
        """
        check_target(target)
        if self.counts.size > MOST_DENSE:
            raise InputError(
                f"A dispersion matrix of {counted(self.counts.size, 'cell')} is too large; use "
                "variances()."
            )
        return self._covariance(self.observed, self.unbiased(), target)

    def covariance_at(self, shares: Floats, target: Target) -> Floats:
        """Return the covariance matrix that :meth:`unbiased` has when these are the true shares."""
        return self._covariance(operators.apply(self.designs, shares), shares, target)

    def _covariance(self, observed: Floats, shares: Floats, target: Target) -> Floats:
        size = self.counts.size
        identity = np.eye(size).reshape(*self.counts.shape, size)
        inverse = operators.solve(self.designs, identity).reshape(size, size)
        spread = (inverse * observed.ravel()) @ inverse.T
        flat = shares.ravel()
        if target == "population":
            result: Floats = (spread - np.outer(flat, flat)) / self._degrees()
        else:
            result = (spread - np.diag(flat)) / self.responses
        return result

    def functional_variance(self, shares: Floats, gradient: Floats, target: Target) -> float:
        """Return the variance of sum(gradient·unbiased) when these are the true shares.

        No covariance matrix is formed: with u = P⁻ᵀ·gradient the sum is that of u over the
        reports.
        """
        expected = operators.apply(self.designs, shares)
        weights = operators.solve_transposed(self.designs, gradient)
        square = float(np.sum(expected * weights**2))
        if target == "population":
            return max(square - float(np.sum(expected * weights)) ** 2, 0.0) / self._degrees()
        return max(square - float(np.sum(shares * gradient**2)), 0.0) / self.responses

    def _degrees(self) -> int:
        if self.responses < 2:
            raise InputError("A population needs at least two responses to show its spread.")
        return self.responses - 1
