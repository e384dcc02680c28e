"""Tighter sums for many releases, where a specialised library is installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from tulle.core import validate
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.guarantee import Guarantee
from tulle.core.validate import Number, round_up, widen_up

_GRID = 1e-4
"""Privacy losses are rounded up to multiples of this; finer is tighter and slower."""


def compose_tightly(guarantees: Iterable[Guarantee], *, delta: Number) -> Guarantee:
    """Return the least epsilon at this total delta for releases whose prices were fixed in advance.

    Each release is replaced by the worst mechanism with its guarantee, and those are composed
    numerically, rounding every loss up. The result is never above the plain sum.

    Guarantee:
        Holds when the prices (not the questions) were fixed before the first answer. For prices
        chosen along the way only :meth:`Guarantee.compose` holds; ledgers therefore use that.

    Raises:
        MissingExtraError: without ``dp-accounting``.
        InputError: when nothing is given, units differ, or a guarantee is concentrated.

    Example:
        >>> hundred = [Guarantee.of("edge", epsilon=0.05)] * 100
        >>> float(compose_tightly(hundred, delta=1e-6).epsilon) < 3
        True
    """
    items = list(guarantees)
    total = Guarantee.compose(items)
    wanted = validate.delta(above_zero=True, delta=delta)
    if total.epsilon is None:
        raise InputError("Convert concentrated guarantees first: guarantee.to_approximate(delta).")
    if total.delta > wanted:
        raise InputError(
            f"The releases have delta = {round_up(total.delta)} in all, above {round_up(wanted)}."
        )
    epsilon = min(_numerically(items, wanted), total.epsilon)
    return Guarantee(total.unit, epsilon, wanted, assumptions=total.assumptions, holds=total.holds)


def _numerically(items: list[Guarantee], delta: Fraction) -> Fraction:
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as losses
    except ImportError:
        raise_alone(MissingExtraError("dp-accounting", "accounting", "Tight composition"))
    composed = None
    for (epsilon, own_delta), times in Counter((i.epsilon, i.delta) for i in items).items():
        assert epsilon is not None
        one = losses.from_privacy_parameters(
            common.DifferentialPrivacyParameters(round_up(epsilon), round_up(own_delta)),
            value_discretization_interval=_GRID,
        )
        many = one.self_compose(times)
        composed = many if composed is None else composed.compose(many)
    assert composed is not None
    # The library computes with floats; a part in 10^9 is far above what it can lose.
    found = widen_up(float(composed.get_epsilon_for_delta(float(delta) * (1 - 1e-9)))) * (1 + 1e-9)
    return Fraction(found)
