"""How to divide a budget among the leaves of an expression: by the error that it buys."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tulle.core.error_law import ErrorLaw

LEAST_SHARE = 0.01
"""No leaf gets less than this part of the budget: its error law is not known that far."""

_ROUNDS = 4
_GRID = 10_000


@dataclass(frozen=True)
class Split:
    """Each leaf's share of the budget, what was planned with it, and the error to expect."""

    shares: tuple[Fraction, ...]
    plans: tuple[Any, ...]
    error: float
    law: ErrorLaw | None = None


Planner = Callable[[Sequence[Fraction]], Split]
"""Plans all leaves at the given shares and predicts the expression's error from their laws."""

Deviations = Callable[[Split], Sequence[float]]
"""Returns the standard deviation that each leaf's noise causes in the expression's value."""


def even_shares(count: int) -> tuple[Fraction, ...]:
    """Return equal shares that add up to one."""
    return (Fraction(1, count),) * count


def choose_split(
    count: int, plan: Planner, deviations: Deviations, *, vague: bool = False
) -> Split:
    """Return the split with the least predicted error; never worse than equal shares.

    ``vague`` says that errors are predicted on something that need not be like the data. Then the
    shares are the mean of the best and of equal ones: no leaf has less than half of an equal
    share, so the error is at most twice that of equal shares, whatever the data.

    To first order the error is the root of the sum of s_i², where s_i is what the noise of leaf i
    does to the value. Near a split, s_i falls as a power p_i of the leaf's share: 1 for plain
    noise, less or more where a mechanism changes with its budget. The powers are measured between
    the splits that were planned so far, the best shares for these powers are computed, planned
    and measured again. The predicted error, from the whole laws, decides which was best.
    """
    equal = plan(even_shares(count))
    tried = [equal]
    if count == 1 or not _usable(deviations(equal)):
        return equal
    powers = [1.0] * count
    for _ in range(_ROUNDS):
        last = tried[-1]
        known = deviations(last)
        if not _usable(known):
            break
        found = best_shares([float(share) for share in last.shares], known, powers)
        shares = rounded(found)
        if any(shares == split.shares for split in tried):
            break
        tried.append(plan(shares))
        after = deviations(tried[-1])
        powers = [
            _power(last.shares[i], shares[i], known[i], after[i], before=powers[i])
            for i in range(count)
        ]
    if vague:
        return plan(rounded([(float(share) + 1 / count) / 2 for share in tried[-1].shares]))
    return min(tried, key=lambda split: split.error)


def _usable(deviations: Sequence[float]) -> bool:
    return all(math.isfinite(deviation) for deviation in deviations) and any(
        s > 0 for s in deviations
    )


def _power(
    share: Fraction, other: Fraction, deviation: float, other_deviation: float, *, before: float
) -> float:
    """Return how fast a leaf's deviation falls with its share, between two shares."""
    step = math.log(float(other) / float(share))
    if abs(step) < 0.05 or deviation <= 0 or other_deviation <= 0:
        return before
    return min(max(math.log(deviation / other_deviation) / step, 0.25), 4.0)


def best_shares(
    shares: Sequence[float], deviations: Sequence[float], powers: Sequence[float]
) -> list[float]:
    """Return the shares that minimise the sum of (s_i·(share_i/x_i)^p_i)² over x adding up to one.

    At the least, p_i·(s_i·share_i^p_i)² / x_i^(2·p_i + 1) is the same number for every i; the
    shares for that number are found, and the number by halving.

    Example:
        >>> [round(x, 3) for x in best_shares([0.5, 0.5], [8.0, 1.0], [1.0, 1.0])]
        [0.8, 0.2]
    """
    logs = [
        math.log(p) + 2 * (math.log(max(s, 1e-300)) + p * math.log(x))
        for x, s, p in zip(shares, deviations, powers, strict=True)
    ]

    def at(number: float) -> list[float]:
        return [
            min(max(math.exp(min((log - number) / (2 * p + 1), 50.0)), LEAST_SHARE), 1.0)
            for log, p in zip(logs, powers, strict=True)
        ]

    low, high = min(logs) - 2000.0, max(logs) + 2000.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) > 1 else (low, middle)
    found = at(high)
    total = sum(found)
    return [share / total for share in found]


def rounded(shares: Sequence[float]) -> tuple[Fraction, ...]:
    """Return nearby shares on a grid that add up to exactly one."""
    whole = [max(int(share * _GRID), 1) for share in shares]
    whole[whole.index(max(whole))] += _GRID - sum(whole)
    return tuple(Fraction(share, _GRID) for share in whole)


def deviations_of(
    slopes: Mapping[str, float], variances: Mapping[str, float], names: Sequence[str]
) -> list[float]:
    """Return what the noise of each leaf does to the value, to first order."""
    return [abs(slopes.get(name, 0.0)) * math.sqrt(variances[name]) for name in names]
