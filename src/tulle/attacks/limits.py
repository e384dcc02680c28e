"""The most that any adversary can gain from a private release, whatever else they know."""

from __future__ import annotations

import math
from fractions import Fraction

from tulle.core import validate
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.core.public import public
from tulle.core.validate import Number, widen_up

NO_LIMIT = public()((0.0, 1.0))
"""Limits of an attack on a secret that the unit does not protect."""

BELIEF_REASON = "the odds of one unit move by at most exp(epsilon)"
SUCCESS_REASON = "no test tells neighbours apart better than epsilon and delta allow"


def group_privacy(guarantee: Guarantee, units: int = 1) -> tuple[float, float]:
    """Return epsilon and delta for datasets that differ in so many units; rounded up.

    Epsilon grows to k·epsilon, delta to delta·(1 + exp(epsilon) + ... + exp((k-1)·epsilon)). A
    zero-concentrated guarantee is converted at delta = 1e-9 first. A guarantee that does not hold
    gives an infinite epsilon.
    """
    units = validate.whole(units=units, at_least=1, at_most=10**6)
    if not guarantee.holds:
        return math.inf, 1.0
    if guarantee.rho is not None:
        guarantee = guarantee.to_approximate(Fraction(1, 10**9))
    epsilon, delta = float(guarantee.epsilon or 0), float(guarantee.delta)
    if not delta:
        return widen_up(units * epsilon), 0.0
    try:
        grown = sum(math.exp(k * epsilon) for k in range(units))
    except OverflowError:
        grown = math.inf
    return widen_up(units * epsilon), min(1.0, widen_up(delta * grown, 8))


@public()
def belief_limits(before: Number, guarantee: Guarantee, *, units: int = 1) -> tuple[float, float]:
    """Return the least and the largest belief after a release, from the belief before it.

    *Guarantee.* For a pure guarantee the odds of any two values of a secret that differ in
    ``units`` units move by at most exp(units·epsilon), for every release and whatever the
    adversary knows. With a delta there are releases, of probability at most delta-like size, that
    may tell everything: then nothing is said about a single belief and (0, 1) is returned.

    Raises:
        InputError: when the belief before is not a probability.

    Example:
        >>> low, high = belief_limits(0.5, Guarantee.of("edge", epsilon=1))
        >>> round(low, 3), round(high, 3)
        (0.269, 0.731)

    Reference: Ji et al., *An XOR Mechanism*, PVLDB 14(5), 2021, theorem 4, as an upper bound.
    """
    chance = _chance(before)
    epsilon, delta = group_privacy(guarantee, units)
    if chance in (0.0, 1.0):
        return chance, chance
    if delta or math.isinf(epsilon):
        return NO_LIMIT
    high = min(1.0, widen_up(_shift(chance, epsilon), 8))
    low = max(0.0, 1 - widen_up(_shift(1 - chance, epsilon), 8))
    return low, high


@public()
def success_limit(
    before: Number, guarantee: Guarantee, *, units: int = 1, values: int | None = None
) -> float:
    """Return how often the best guess of a secret can be right at most, on average over releases.

    ``before`` is the probability m of the likeliest value of the secret. Any two of its values
    differ in ``units`` units; with ``values=2`` a sharper bound is used.

    *Guarantee.* Let q_a be how often value a of prior p_a is guessed when it is the truth, and
    r_a how often a is the truth's wrong guess. Then (1 - p_a)·q_a <= exp(epsilon)·r_a +
    delta·(1 - p_a), and the r_a add up to one minus the success. So the success is at most
    (m·exp(epsilon) + delta·(1 - m)) / (m·exp(epsilon) + 1 - m). With two values, the errors a and
    b of a test obey a + exp(epsilon)·b >= 1 - delta and exp(epsilon)·a + b >= 1 - delta (Kairouz,
    Oh & Viswanath 2015), and the weighted error is least at a corner of that region.

    Example:
        >>> edge = Guarantee.of("edge", epsilon=1)
        >>> round(success_limit(0.5, edge), 3), round(success_limit(0.9, edge), 3)
        (0.731, 0.961)
        >>> round(success_limit(0.9, edge, values=2), 3)
        0.9
        >>> round(success_limit(0.5, Guarantee.of("edge", epsilon=1, delta=0.01)), 3)
        0.734
    """
    chance = _chance(before)
    epsilon, delta = group_privacy(guarantee, units)
    count = None if values is None else validate.whole(values=values, at_least=2)
    if math.isinf(epsilon):
        return 1.0
    shrunk = (1 - chance) * math.exp(-epsilon)
    most = (chance + delta * shrunk) / (chance + shrunk) if chance else delta
    if count == 2:
        # The corners: never guess the rare value, guess both, never guess the likely one.
        inner = (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))
        most = min(most, 1 - min((1 - chance) * (1 - delta), inner, chance * (1 - delta)))
    return max(chance, min(1.0, widen_up(most, 8)))


def advantage_limit(guarantee: Guarantee, *, units: int = 1) -> float:
    """Return the largest true-positive rate minus false-positive rate of any test.

    Example:
        >>> round(advantage_limit(Guarantee.of("edge", epsilon=1)), 3)
        0.462
    """
    epsilon, delta = group_privacy(guarantee, units)
    if math.isinf(epsilon):
        return 1.0
    return min(1.0, widen_up(1 - 2 * (1 - delta) / (1 + math.exp(min(epsilon, 700.0))), 8))


def _chance(before: Number) -> float:
    chance = float(validate.number(before=before))
    if not 0 <= chance <= 1:
        raise InputError(f"before must be a probability from 0 to 1; got {before!r}.")
    return chance


def _shift(chance: float, epsilon: float) -> float:
    """Return the probability whose odds are exp(epsilon) times as large."""
    # Written with exp(-epsilon), which cannot overflow.
    return chance / (chance + (1 - chance) * math.exp(-epsilon))
