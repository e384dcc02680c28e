"""Intervals for rates and averages that an attack was measured to have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tulle.core import validate
from tulle.core.error_law import check_level
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.validate import counted


@public()
def rate_interval(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return an interval for a rate from counts of independent trials (Clopper & Pearson).

    *Error.* Covers with at least this probability for every rate.

    Raises:
        InputError: when there are no trials, or more successes than trials.

    Example:
        >>> low, high = rate_interval(8, 10)
        >>> round(low, 3), round(high, 3)
        (0.444, 0.975)
    """
    from scipy.stats import beta

    trials = validate.whole(trials=trials, at_least=1)
    successes = validate.whole(successes=successes, at_least=0)
    if successes > trials:
        raise InputError(
            f"There are {counted(successes, 'success', 'successes')} in {counted(trials, 'trial')}."
        )
    tail = (1 - check_level(level)) / 2
    low = beta.ppf(tail, successes, trials - successes + 1) if successes else 0.0
    high = beta.isf(tail, successes + 1, trials - successes) if successes < trials else 1.0
    return float(low), float(high)


@public()
def mean_interval(values: Any, level: float = 0.95) -> tuple[float, float]:
    """Return an interval for the mean of independent values from 0 to 1.

    *Error.* The empirical Bernstein bound: covers with at least this probability for every
    distribution on [0, 1], at the price of some width.

    Raises:
        InputError: when there are fewer than two values, or one lies outside [0, 1].

    Reference: Maurer & Pontil, *Empirical Bernstein bounds*, COLT 2009, theorem 4, for both sides.

    Example:
        >>> low, high = mean_interval([0.2] * 1000)
        >>> low < 0.2 < high < 0.23
        True
    """
    drawn = np.asarray(values, dtype=np.float64).ravel()
    if len(drawn) < 2:
        raise InputError("An interval for a mean needs at least two values.")
    if not bool(((drawn >= 0) & (drawn <= 1)).all()):
        raise InputError("The values of a success lie between 0 and 1.")
    # Each side gets half of the failure probability: ln(2 / tail) with tail = (1 - level) / 2.
    log = math.log(4 / (1 - check_level(level)))
    mean, variance = float(drawn.mean()), float(drawn.var(ddof=1))
    width = math.sqrt(2 * variance * log / len(drawn)) + 7 * log / (3 * (len(drawn) - 1))
    return max(0.0, mean - width), min(1.0, mean + width)
