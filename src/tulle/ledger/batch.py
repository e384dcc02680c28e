"""Many questions as one: a share of an account, divided for the least total error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tulle.core.errors import BudgetError
from tulle.core.events import Composed, Event, Pure, event_to_json
from tulle.core.guarantee import Guarantee, floor_to
from tulle.core.plan import Plan
from tulle.core.query import Composite, Query
from tulle.ledger.filters import Filter
from tulle.ledger.totals import Totals

Planner = Callable[[Query, Fraction], Plan]


def divide(
    questions: Sequence[Query],
    plan: Planner,
    found: Filter,
    empty: Totals,
    share: Fraction,
) -> list[Plan]:
    """Return plans for all questions that take this share of an account together.

    Where the errors are c_i / epsilon_i, their sum is least for epsilon_i proportional to the
    root of c_i if epsilons add up, and to its cube root if their squares do, as divergences and
    rho nearly do. What is found is compared with an even division, and the better one is kept.
    """
    even = _fill(questions, [1.0] * len(questions), plan, found, empty, share)
    errors = [predicted_error(item) for item in even]
    if len(questions) == 1 or not all(map(math.isfinite, errors)):
        return even
    power = 1 / 2 if found.order is None and found.rho is None else 1 / 3
    unit = [error * float(_epsilon(item)) for error, item in zip(errors, even, strict=True)]
    if not min(unit) > 0:
        return even
    weighted = _fill(questions, [c**power for c in unit], plan, found, empty, share)
    return min(even, weighted, key=lambda plans: sum(map(predicted_error, plans)))


def composed(plans: Sequence[Plan]) -> tuple[Guarantee, Event]:
    """Return the price of all plans together: as a guarantee by addition, and as an event."""
    return (
        Guarantee.compose(plan.guarantee for plan in plans),
        Composed(tuple(plan.event for plan in plans)),
    )


def _fill(
    questions: Sequence[Query],
    weights: Sequence[float],
    plan: Planner,
    found: Filter,
    empty: Totals,
    share: Fraction,
) -> list[Plan]:
    """Scale the weights until the plans take the share, and no more."""

    def used(prices: Sequence[Fraction], event: Event) -> Fraction:
        return found.used(empty, empty.after("debit", _body(sum(prices, Fraction(0)), event)))

    def priced(scale: float) -> list[Fraction]:
        return [floor_to(Fraction(scale * weight / max(weights)), 12) for weight in weights]

    # A first guess that needs no plans: all prices pure.
    low, high = -30.0, 14.0
    for _ in range(44):
        middle = (low + high) / 2
        prices = priced(2.0**middle)
        taken = used(prices, Composed(tuple(map(Pure, prices))))
        low, high = (middle, high) if taken <= share else (low, middle)
    scale = 2.0**low
    best: list[Plan] | None = None
    for _ in range(6):
        prices = priced(scale)
        plans = [plan(query, price) for query, price in zip(questions, prices, strict=True)]
        taken = used(prices, composed(plans)[1])
        if taken <= share:
            best = plans
            if taken >= share * Fraction(99, 100):
                break
        # Noise with a delta of its own takes less than a pure price; then more fits. Small prices
        # take about their squares, large ones no more than in proportion: down it goes by that.
        part = float(share / taken)
        scale *= (part if taken > share else math.sqrt(part)) * 0.999
    if best is None:
        raise BudgetError("The share is too small to divide among so many questions.")
    return best


def _body(epsilon: Fraction, event: Event) -> dict[str, object]:
    return {"guarantee": {"epsilon": epsilon, "delta": 0}, "event": event_to_json(event)}


def predicted_error(plan: Plan) -> float:
    """Return the root mean square of the error to expect, of an entry if there are several.

    Where only its median or mean size is known, that; infinite when nothing is.
    """
    plan = _answered(plan)
    law = plan.predicted
    if plan.offers:
        prediction = plan.chosen.prediction
        if prediction.mean_error is not None:
            return prediction.mean_error
        law = prediction.typical or prediction.bound
    return math.inf if law is None else math.sqrt(law.variance())


def _answered(plan: Plan) -> Plan:
    """Return the plan of the one question whose answer is shown as it is, or the plan itself."""
    query = plan.query
    if len(plan.parts) == 1 and isinstance(query, Composite) and query.single() is not None:
        return plan.parts[0]
    return plan


def order(plan: Plan) -> tuple[float, float]:
    """Return what plans for one question are compared by, where nothing is known of the error too.

    Then the noise is compared, in parts of what the data will show.
    """
    plan = _answered(plan)
    relative = plan.chosen.prediction.relative if plan.offers else math.inf
    return predicted_error(plan), relative


def _epsilon(plan: Plan) -> Fraction:
    assert plan.guarantee.epsilon is not None
    return plan.guarantee.epsilon
