"""Filters hold against whoever chooses the next price in view of all answers so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tulle
from tulle.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    Pure,
    event_to_json,
    price,
)
from tulle.core.guarantee import Guarantee, epsilon_of_rho
from tulle.core.period import Calendar
from tulle.core.unit import Unit
from tulle.ledger.account import Account, is_payable
from tulle.ledger.accounting import compose_tightly
from tulle.ledger.divergence import (
    added,
    best_order,
    concentration,
    conversion,
    divergence,
    largest_pure,
)
from tulle.ledger.filters import Filter
from tulle.ledger.renewal import Renewal
from tulle.ledger.totals import Totals, Version

mpmath = pytest.importorskip("mpmath")

EPSILONS = [Fraction(1, 10**9), Fraction(1, 100), Fraction(1, 3), Fraction(2), Fraction(300)]
ORDERS = [Fraction("1.000001"), Fraction(3, 2), Fraction(7), Fraction(4000), Fraction(10**12)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("order", ORDERS)
def test_divergence_of_a_pure_price_is_that_of_randomised_response(
    epsilon: Fraction, order: Fraction
) -> None:
    with mpmath.workdps(120):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        a = mpmath.mpf(order.numerator) / order.denominator
        p, q = mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e))
        exact = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
        found, delta = divergence(Pure(epsilon), order)
        ours = mpmath.mpf(found.numerator) / found.denominator
        assert exact <= ours <= exact + mpmath.mpf("1e-28")
    assert delta == 0


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(4), Fraction(40)])
def test_divergence_of_a_pure_price_bounds_every_private_pair(order: Fraction) -> None:
    rng, epsilon, a = np.random.default_rng(1), 0.8, float(order)
    bound = float(divergence(Pure(Fraction(4, 5)), order)[0])
    for _ in range(2000):
        q = rng.dirichlet(np.ones(4))
        # Any law whose ratio to q stays within a factor exp(epsilon): spread out, then scaled.
        ratio = np.exp(rng.uniform(-epsilon / 2, epsilon / 2, 4))
        p = q * ratio / (q @ ratio)
        if np.abs(np.log(p / q)).max() <= epsilon:
            assert math.log(np.sum(p**a * q ** (1 - a))) / (a - 1) <= bound + 1e-12


def test_conversion_and_divergence_agree_with_another_library() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp")
    accounting = pytest.importorskip("dp_accounting")
    delta, order = Fraction(1, 10**6), Fraction(12)
    accountant = rdp.RdpAccountant(orders=[12.0])
    accountant.compose(accounting.GaussianDpEvent(20.0), 30)
    theirs = accountant.get_epsilon(1e-6)
    rho = 30 * Fraction(1, 2 * 400)
    ours = divergence(Gaussian(rho), order)[0] + conversion(order, delta)
    assert float(ours) == pytest.approx(theirs, rel=1e-9)


@given(
    st.fractions(Fraction(1, 50), 20, max_denominator=1000),
    st.integers(2, 12).map(lambda digits: Fraction(1, 10**digits)),
)
def test_order_is_nearly_the_best(epsilon: Fraction, delta: Fraction) -> None:
    found = best_order(epsilon, delta)

    def room(order: Fraction) -> Fraction:
        return (epsilon - conversion(order, delta)) / order

    assert found > 1
    assert room(found) > 0
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert room(1 + (found - 1) * factor) <= room(found) * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(25)])
def test_largest_pure_fits_and_hardly_more_does(order: Fraction) -> None:
    for room in (Fraction(1, 10**6), Fraction(1, 3), Fraction(20)):
        found = largest_pure(room, order)
        assert divergence(Pure(found), order)[0] <= room
        assert divergence(Pure(found * Fraction("1.00001")), order)[0] > room
    assert largest_pure(Fraction(0), order) == 0


# Whoever asks chooses the next price in view of the answers. The most that they can gain is
# computed exactly: all strategies, all answers of randomised response and of leaks.


@dataclass(frozen=True)
class Step:
    """One price on offer: randomised response with epsilon, and a leak with probability delta."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @property
    def body(self) -> dict[str, Any]:
        price = Guarantee.of("edge", epsilon=self.epsilon, delta=self.delta)
        return {"guarantee": price.to_json()}


Admits = Callable[[Totals, Totals, float], bool]
"""Whether totals may follow totals, at this loss so far (which a sound filter ignores)."""


def most_gained(opened: Totals, epsilon: float, steps: list[Step], admits: Admits) -> float:
    """Return the largest delta, at this epsilon, over all ways to ask one step after another."""
    unit = math.gcd(*(step.epsilon.numerator for step in steps))
    scale = math.lcm(*(step.epsilon.denominator for step in steps))

    @cache
    def value(losses: int, totals: Totals) -> float:
        loss = losses * unit / scale
        best = max(0.0, -math.expm1(epsilon - loss))
        for step in steps:
            after = totals.after("debit", step.body)
            if not admits(totals, after, loss):
                continue
            e, d = float(step.epsilon), float(step.delta)
            size = int(step.epsilon * scale / unit)
            up = 1 / (1 + math.exp(-e))
            # A leak tells which of two neighbours it is: all of its probability is gained.
            gained = d + (1 - d) * (
                up * value(losses + size, after) + (1 - up) * value(losses - size, after)
            )
            best = max(best, gained)
        return best

    return value(0, opened)


def opened(found: Filter) -> Totals:
    order = None if found.order is None else str(found.order)
    return Totals().after("open", {"composition": {"order": order}})


def tight(epsilon: Fraction, delta: Fraction, part: Fraction) -> Filter:
    return Filter(epsilon, delta, part, best_order(epsilon, part))


ACCOUNTS = [
    (Fraction(2), Fraction(1, 5), Fraction(1, 5), [Step(Fraction(1, 2))]),
    (Fraction(2), Fraction(1, 5), Fraction(1, 10), [Step(Fraction(1, 2)), Step(Fraction(1))]),
    (
        Fraction(1),
        Fraction(1, 4),
        Fraction(1, 8),
        [Step(Fraction(1, 4)), Step(Fraction(1, 4), Fraction(1, 16)), Step(Fraction(1))],
    ),
    (
        Fraction(1, 2),
        Fraction(1, 3),
        Fraction(1, 6),
        [Step(Fraction(1, 4)), Step(Fraction(1, 8), Fraction(1, 12)), Step(Fraction(1, 2))],
    ),
]


@pytest.mark.parametrize(("epsilon", "delta", "part", "steps"), ACCOUNTS)
def test_no_way_of_asking_gains_more_than_the_account_says(
    epsilon: Fraction, delta: Fraction, part: Fraction, steps: list[Step]
) -> None:
    found = tight(epsilon, delta, part)

    def admits(before: Totals, after: Totals, loss: float) -> bool:
        return found.admits(after)

    gained = most_gained(opened(found), float(epsilon), steps, admits)
    assert gained <= float(delta) + 1e-12
    # The account is worth having: more fits than by addition.
    totals, count = opened(found), 0
    while found.admits(totals := totals.after("debit", steps[0].body)):
        count += 1
    assert count > epsilon / steps[0].epsilon


def test_an_odometer_used_as_a_filter_is_caught() -> None:
    """What was lost by luck so far is no price: going on while it is small gains too much."""
    epsilon, delta = Fraction(2), Fraction(1, 20)
    found = tight(epsilon, delta, delta)

    def admits(before: Totals, after: Totals, loss: float) -> bool:
        return loss < float(epsilon) and after.debits <= 40

    gained = most_gained(opened(found), float(epsilon), [Step(Fraction(3, 4))], admits)
    assert gained > 1.5 * float(delta)


def test_a_conversion_at_the_order_that_suits_afterwards_is_caught() -> None:
    """The limit of one order with the divergences of another admits too much."""
    epsilon, delta = Fraction(2), Fraction(1, 20)
    found = tight(epsilon, delta, delta)
    broken = Filter(epsilon, delta, delta, found.order)
    assert found.order is not None
    cheap = Fraction(101, 100)

    def admits(before: Totals, after: Totals, loss: float) -> bool:
        pure = divergence(Pure(Fraction(1, 2)), cheap)[0]
        return after.debits * pure <= broken.limit

    gained = most_gained(opened(found), float(epsilon), [Step(Fraction(1, 2))], admits)
    assert gained > float(delta)


def test_a_delta_that_pays_twice_is_caught() -> None:
    """The delta that is left when epsilons no longer add up must not serve for composition.

    Each of the two filters is right by itself here, the second one exactly.
    """
    epsilon, delta = Fraction(1), Fraction(1, 10)
    small, leaking = Step(Fraction(1, 4)), Step(Fraction(1, 4), delta)
    start = Totals()

    def gained(steps: list[Step], count: int, *, adding: bool) -> float:
        def admits(before: Totals, after: Totals, loss: float) -> bool:
            added = after.epsilon <= epsilon and after.delta <= delta
            return (adding and added) or (after.debits <= count and after.delta == 0)

        return most_gained(start, float(epsilon), steps, admits)

    count = max(n for n in range(40) if gained([small], n, adding=False) <= delta)
    assert count > 4
    assert gained([small, leaking], 0, adding=True) <= float(delta) + 1e-12
    assert gained([small, leaking], count, adding=True) > float(delta) * 1.05


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_a_full_account_is_within_its_terms_by_numerical_composition(epsilon: Fraction) -> None:
    delta, price = Fraction(1, 10**5), epsilon / 40
    found = tight(epsilon, delta, delta)
    totals, step = opened(found), Step(price)
    while found.admits(after := totals.after("debit", step.body)):
        totals = after
    assert totals.debits > 1.9 * 40
    all_of_it = [Guarantee.of("edge", epsilon=price)] * totals.debits
    assert compose_tightly(all_of_it, delta=delta).epsilon <= epsilon


def test_gaussian_noise_spends_no_delta_and_ends_addition() -> None:
    found = tight(Fraction(1), Fraction(1, 10**6), Fraction(1, 2 * 10**6))
    start = opened(found)

    def after(event: Event, totals: Totals) -> Totals:
        body = Step(Fraction(1, 10), Fraction(1, 10**7)).body | {"event": event_to_json(event)}
        return totals.after("debit", body)

    paid = after(Gaussian(Fraction(1, 1000)), start)
    assert paid.delta == 0
    assert not paid.addable
    assert found.admits(paid)
    assert not found.admits(after(Gaussian(Fraction(1)), start))
    # Addition alone would still admit this one.
    whole = Step(Fraction(9, 10)).body
    assert not found.admits(paid.after("debit", whole))
    assert Totals.from_json(paid.to_json()) == paid


# The same with noise of every kind, composed in one debit or one by one: exact laws of losses.

GRID = 16
"""Losses are multiples of 1/16, as those of discrete Gaussian noise of variance 8 are."""
REACH = 2000
"""In such steps, the largest loss that is followed."""

Law = dict[int, float]
"""How probable each loss is, in steps of the grid."""


def flipped(epsilon: Fraction) -> list[Law]:
    """Randomised response."""
    up = 1 / (1 + math.exp(-float(epsilon)))
    return [{int(epsilon * GRID): up, -int(epsilon * GRID): 1 - up}]


def chosen(epsilon: Fraction) -> list[Law]:
    """A choice of two whose log-ratios are t and t - epsilon, for each t on the grid."""
    e, steps, laws = float(epsilon), int(epsilon * GRID), []
    for step in range(1, steps):
        up = -math.expm1(step / GRID - e) / -math.expm1(-e)
        laws.append({step: up, step - steps: 1 - up})
    return laws


def rounded_gaussian() -> list[Law]:
    """Discrete Gaussian noise of variance 8 on a number that moves by one; its tails left out."""
    weight = {k: math.exp(-(k**2) / 16) for k in range(-16, 17)}
    whole = sum(math.exp(-(k**2) / 16) for k in range(-60, 61))
    # ln of the density at k over that at k shifted by one
    return [{1 - 2 * k: mass / whole for k, mass in weight.items()}]


def laws_of(event: Event) -> list[Law]:
    """Return the laws of the losses that an event may have, without its leaks."""
    if isinstance(event, Composed):
        laws: list[Law] = [{0: 1.0}]
        for part in event.events:
            laws = [_together(one, two) for one in laws for two in laws_of(part)]
        return laws
    if isinstance(event, BoundedRange):
        return chosen(event.epsilon)
    if isinstance(event, Gaussian):
        assert event.rho == Fraction(1, 16)
        return rounded_gaussian()
    assert isinstance(event, Pure | Approximate)
    return flipped(event.epsilon)


def _together(one: Law, two: Law) -> Law:
    found: Law = {}
    for (a, p), (b, q) in product(one.items(), two.items()):
        found[a + b] = found.get(a + b, 0.0) + p * q
    return found


def leak_of(event: Event) -> float:
    """Return the probability that an event tells which of two neighbours it was."""
    if isinstance(event, Composed):
        return 1 - math.prod(1 - leak_of(part) for part in event.events)
    return float(event.delta) if isinstance(event, Approximate) else 0.0


@dataclass(frozen=True)
class Asked:
    """A question with what it does, and the guarantee that it states beside."""

    event: Event
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @property
    def body(self) -> dict[str, Any]:
        price = Guarantee.of("edge", epsilon=self.epsilon, delta=self.delta)
        return {"guarantee": price.to_json(), "event": event_to_json(self.event)}


NOISE = Gaussian(Fraction(1, 16))
NOISY = Asked(NOISE, Fraction(1, 100), Fraction(3, 20))
"""Hardly any epsilon, and a delta that accounts do not count: they count rho."""
BATCH = Asked(Composed((NOISE,) * 3), Fraction(3, 100), Fraction(9, 20))
MIXED = Asked(Composed((NOISE, Pure(Fraction(1, 4)))), Fraction(13, 50), Fraction(3, 20))
FLIPS = Asked(Composed((Pure(Fraction(1, 8)),) * 4), Fraction(1, 2))
CHOICE = Asked(BoundedRange(Fraction(1, 2)), Fraction(1, 2))
LEAKS = Asked(
    Composed((Approximate(Fraction(1, 16), Fraction(1, 16)),) * 3), Fraction(3, 16), Fraction(3, 16)
)
CHOICES = Composed((BoundedRange(Fraction(1, 2)),) * 3)
AT_ONCE = Asked(CHOICES, price(CHOICES, Fraction(1, 4))[0], Fraction(1, 4))
"""Less epsilon than the choices add up to, at a delta that no event spends."""
LEAK = Asked(Approximate(Fraction(1, 8), Fraction(1, 16)), Fraction(1, 8), Fraction(1, 16))


Ways = Callable[[Any], Iterable[tuple[Event | None, Any]]]
"""What may follow a state of an account: an event, or none where only time passes."""


def most_lost(start: Any, epsilon: float, ways: Ways) -> float:
    """Return the largest delta, at this epsilon, over all ways to go on."""
    losses = np.arange(-REACH, REACH + 1) / GRID

    @cache
    def value(state: Any) -> Any:
        best = np.maximum(0.0, -np.expm1(epsilon - losses))
        for event, after in ways(state):
            later = value(after)
            if event is None:
                best = np.maximum(best, later)
                continue
            leak = leak_of(event)
            for law in laws_of(event):
                moved = sum(mass * np.roll(later, -step) for step, mass in law.items())
                width = max(map(abs, law))
                moved[:width], moved[len(moved) - width :] = 0.0, best[len(moved) - width :]
                best = np.maximum(best, leak + (1 - leak) * moved)
        return best

    return float(value(start)[REACH])


def paid_by(found: Filter, asked: list[Asked]) -> Ways:
    """Return what an account admits."""

    def ways(totals: Totals) -> Iterator[tuple[Event, Totals]]:
        for one in asked:
            if found.admits_debit(totals, one.body):
                yield one.event, totals.after("debit", one.body)

    return ways


def gained_by(found: Filter, asked: list[Asked]) -> float:
    """Return the largest delta, at the account's epsilon, over all ways to ask."""
    return most_lost(opened(found), float(found.epsilon), paid_by(found, asked))


MIXES = {
    "Gaussian noise": [NOISY],
    "batches of it": [BATCH],
    "with flips": [MIXED, Asked(Pure(Fraction(1, 4)), Fraction(1, 4))],
    "flips at once": [FLIPS, NOISY],
    "choices": [CHOICE],
    "choices at once": [AT_ONCE, LEAK],
    "leaks at once": [LEAKS, NOISY],
    "leaks and batches": [LEAK, BATCH, FLIPS],
}
TERMS = tight(Fraction(1, 2), Fraction(3, 8), Fraction(3, 16))


def test_the_guarantees_beside_the_events_are_true() -> None:
    for one in (NOISY, BATCH, MIXED, CHOICE, LEAKS, LEAK):
        for law in laws_of(one.event):
            lost = sum(
                mass * max(0.0, -math.expm1(float(one.epsilon) - step / GRID))
                for step, mass in law.items()
            )
            leak = leak_of(one.event)
            assert leak + (1 - leak) * lost <= float(one.delta) + 1e-12


@pytest.mark.parametrize("mix", MIXES)
def test_no_mix_of_noise_gains_more_than_the_account_says(mix: str) -> None:
    gained = gained_by(TERMS, MIXES[mix])
    assert 0.02 < gained <= float(TERMS.delta)


def forgetful_of_parts(event: Event) -> Fraction | None:
    return Fraction(0) if isinstance(event, Composed) else added(event)


def broken_sum(event: Event, order: Fraction) -> tuple[Fraction, Fraction]:
    if isinstance(event, Composed):
        return divergence(event.events[0], order)
    return divergence(event, order)


def broken_leaks(event: Event, order: Fraction) -> tuple[Fraction, Fraction]:
    cost, delta = divergence(event, order)
    return cost, Fraction(1, 16) if delta else delta


def rho_alone(event: Event, order: Fraction) -> tuple[Fraction, Fraction]:
    cost, delta = divergence(event, order)
    return (event.rho, delta) if isinstance(event, Gaussian) else (cost, delta)


@pytest.mark.parametrize(
    ("name", "broken", "mix"),
    [
        ("added", forgetful_of_parts, "batches of it"),
        ("added", forgetful_of_parts, "choices at once"),
        ("divergence", broken_leaks, "leaks at once"),
    ],
)
def test_events_that_are_added_up_wrongly_are_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: Any, mix: str
) -> None:
    monkeypatch.setattr(f"tulle.ledger.totals.{name}", broken)
    assert gained_by(TERMS, MIXES[mix]) > float(TERMS.delta) * 1.05


ORDERS_TRIED = [Fraction(9, 8), Fraction(2), Fraction(9), Fraction(65)]
EVENTS = [NOISE, BATCH.event, MIXED.event, FLIPS.event, CHOICE.event, Pure(Fraction(4))]


def moment(event: Event, order: Fraction) -> float:
    """Return the largest Rényi divergence of an event's laws, exactly.

    Every way to ask has at most the product of the moments, whatever it looks at.
    """
    a = float(order) - 1
    means = (sum(m * math.exp(a * s / GRID) for s, m in law.items()) for law in laws_of(event))
    return math.log(max(means)) / a


@pytest.mark.parametrize("order", ORDERS_TRIED)
@pytest.mark.parametrize("event", EVENTS)
def test_divergence_and_rho_bound_the_exact_moments(event: Event, order: Fraction) -> None:
    rho, exact = concentration(event), moment(event, order)
    assert rho is not None
    assert exact <= float(divergence(event, order)[0]) + 1e-9
    assert exact <= float(order * rho) + 1e-9


def half_range(event: Event, order: Fraction) -> tuple[Fraction, Fraction]:
    cost, delta = divergence(event, order)
    return cost / 2 if isinstance(event, BoundedRange) else cost, delta


@pytest.mark.parametrize("broken", [broken_sum, rho_alone, half_range])
def test_divergences_that_are_too_small_are_caught(broken: Any) -> None:
    pairs = product(EVENTS, ORDERS_TRIED)
    assert any(moment(*pair) > float(broken(*pair)[0]) * 1.05 for pair in pairs)


def test_rho_is_no_larger_than_it_must_be() -> None:
    """Some order needs it: half of it would not do. So the sums above are not slack."""
    near = Fraction(1001, 1000)
    for event in (NOISE, BATCH.event, FLIPS.event, CHOICE.event):
        assert moment(event, near) > 0.9 * float(concentration(event) or 0), event


@pytest.mark.parametrize("count", [1, 2, 5])
def test_budgets_that_are_carried_over_pay_for_no_more_than_they_add_up_to(count: int) -> None:
    """After so many periods: the terms of one, so many times over, whatever was asked when."""
    each = tight(Fraction(1, 4), Fraction(1, 8), Fraction(1, 16))
    found = each.times(count)
    assert found.epsilon == each.epsilon * count
    assert found.delta <= each.delta * count
    assert gained_by(found, [NOISY, LEAK]) <= float(found.delta)


# Accounts of rho, budgets that renew, and prices of events by themselves: the same checks.


def highest_moment(start: Any, order: float, ways: Ways) -> float:
    """Return the largest Rényi divergence of this order over all ways to go on, exactly."""

    @cache
    def value(state: Any) -> float:
        best = 0.0
        for event, after in ways(state):
            own = 0.0 if event is None else moment(event, Fraction(order)) * (order - 1)
            best = max(best, own + value(after))
        return best

    return value(start) / (order - 1)


RHO = Fraction(5, 16)
OF_RHO = [NOISY, MIXED, CHOICE, LEAK, Asked(Pure(Fraction(1, 2)), Fraction(1, 2))]


def concentrated() -> Totals:
    return Totals().after("open", {"terms": {"rho": str(RHO)}})


def test_an_account_of_rho_is_concentrated_whatever_is_asked() -> None:
    found = Filter(rho=RHO)
    for order in (1.01, 2.0, 9.0, 65.0):
        assert highest_moment(concentrated(), order, paid_by(found, OF_RHO)) <= order * RHO + 1e-9
    for delta in (Fraction(1, 4), Fraction(1, 100), Fraction(1, 10**6)):
        epsilon = float(epsilon_of_rho(RHO, delta))
        assert most_lost(concentrated(), epsilon, paid_by(found, OF_RHO)) <= float(delta)


def half_choices(event: Event) -> Fraction | None:
    found = concentration(event)
    return found / 2 if isinstance(event, BoundedRange) and found else found


def first_alone(event: Event) -> Fraction | None:
    return concentration(event.events[0] if isinstance(event, Composed) else event)


def epsilon_alone(event: Event) -> Fraction | None:
    return event.epsilon**2 / 2 if isinstance(event, Approximate) else concentration(event)


@pytest.mark.parametrize("broken", [half_choices, first_alone])
def test_a_rho_that_is_too_small_is_caught(monkeypatch: pytest.MonkeyPatch, broken: Any) -> None:
    monkeypatch.setattr("tulle.ledger.totals.concentration", broken)
    found, order = Filter(rho=RHO), 1.01
    assert highest_moment(concentrated(), order, paid_by(found, OF_RHO)) > 1.05 * order * RHO


def test_a_delta_that_costs_no_rho_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tulle.ledger.totals.concentration", epsilon_alone)
    epsilon = float(epsilon_of_rho(RHO, Fraction(1, 4)))
    assert most_lost(concentrated(), epsilon, paid_by(Filter(rho=RHO), [LEAK])) > 1 / 4


DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
EACH = Account(
    "a",
    "graph",
    Unit.of("edge"),
    Guarantee.of("edge", epsilon=Fraction(1, 4), delta=Fraction(1, 8)),
    {},
    Fraction(1, 16),
    best_order(Fraction(1, 4), Fraction(1, 16)),
    version=Version("0", DAYS[0]),
)


def over_days(account: Account, asked: list[Asked]) -> Ways:
    """Return what an account admits whose budget renews every day, and that a day passes."""

    def ways(totals: Totals) -> Iterator[tuple[Event | None, Totals]]:
        for one in asked:
            if is_payable(account, totals, one.body):
                yield one.event, totals.after("debit", one.body)
        assert totals.version is not None
        if (place := DAYS.index(totals.version.date) + 1) < len(DAYS):
            version = Version(str(place), DAYS[place]).to_json()
            yield None, totals.after("version", {"version": version})

    return ways


def gained_over_days(carry: bool, asked: list[Asked]) -> float:
    account = replace(EACH, renewal=Renewal(Calendar("day"), carry=carry))
    start = Totals().after("open", account.to_json())
    return most_lost(start, float(EACH.filter.times(len(DAYS)).epsilon), over_days(account, asked))


@pytest.mark.parametrize("carry", [False, True])
def test_budgets_that_renew_add_up_to_what_they_say(carry: bool) -> None:
    most = EACH.filter.times(len(DAYS)).delta if carry else EACH.filter.delta * len(DAYS)
    asked = [NOISY, LEAK, Asked(Pure(Fraction(1, 4)), Fraction(1, 4))]
    assert 0.05 < gained_over_days(carry, asked) <= float(most)


def two_days_ahead(self: Renewal, each: Filter, totals: Totals) -> tuple[Filter, Totals]:
    assert totals.period is not None
    return each.times(totals.period.number - totals.period.first + 3), totals


def of_the_day(self: Renewal, each: Filter, totals: Totals) -> tuple[Filter, Totals]:
    """What is carried over is there again every day."""
    assert totals.period is not None
    return each.times(2), totals.period.spent


@pytest.mark.parametrize("broken", [two_days_ahead, of_the_day])
def test_budgets_that_renew_too_much_are_caught(
    monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    monkeypatch.setattr(Renewal, "allowed", broken)
    assert gained_over_days(True, [LEAK]) > 1.1 * float(EACH.filter.times(len(DAYS)).delta)


ONE_NOISE = Gaussian.of(Fraction(1), Fraction(8))
TOGETHER: list[tuple[Event, ...]] = [
    (ONE_NOISE,),
    (ONE_NOISE,) * 3,
    (ONE_NOISE, BoundedRange(Fraction(1, 2)), BoundedRange(Fraction(1, 2))),
    (BoundedRange(Fraction(1, 4)),) * 6,
    (ONE_NOISE, Pure(Fraction(1, 2)), Approximate(Fraction(1, 8), Fraction(1, 32))),
    (*(ONE_NOISE,) * 3, Approximate(Fraction(1, 16), Fraction(1, 32))),
    (
        BoundedRange(Fraction(1, 2)),
        Pure(Fraction(1, 4)),
        Approximate(Fraction(1, 8), Fraction(1, 32)),
    ),
]


def in_any_order(left: tuple[Event, ...]) -> Iterator[tuple[Event, tuple[Event, ...]]]:
    for place, event in enumerate(left):
        yield event, left[:place] + left[place + 1 :]


def underpriced(price: Callable[[Event, Fraction], tuple[Fraction, Fraction]]) -> list[Any]:
    """Return what can lose more than it costs, in whatever order it is asked."""
    found = []
    for events, delta in product(TOGETHER, (Fraction(1, 3), Fraction(1, 20), Fraction(1, 10**4))):
        if delta <= sum((e.delta for e in events if isinstance(e, Approximate)), Fraction(0)):
            continue
        epsilon, _ = price(Composed(events), delta)
        if most_lost(events, float(epsilon), in_any_order) > float(delta) + 1e-12:
            found.append((events, delta))
    return found


def test_no_order_of_asking_gains_more_than_the_price_says() -> None:
    assert underpriced(price) == []


def delta_again(event: Event, delta: Fraction) -> tuple[Fraction, Fraction]:
    """The delta of leaks pays for adding up as well."""
    assert isinstance(event, Composed)
    leaks = [one for one in event.events if isinstance(one, Approximate)]
    rest = tuple(one for one in event.events if one not in leaks)
    epsilon, _ = price(Composed(rest), delta)
    return epsilon + sum((leak.epsilon for leak in leaks), Fraction(0)), Fraction(0)


def without_choices(event: Event, delta: Fraction) -> tuple[Fraction, Fraction]:
    assert isinstance(event, Composed)
    rest = tuple(one for one in event.events if not isinstance(one, BoundedRange))
    return price(Composed(rest), delta)


def of_one(event: Event, delta: Fraction) -> tuple[Fraction, Fraction]:
    assert isinstance(event, Composed)
    return price(Composed(event.events[:1]), delta)


@pytest.mark.parametrize("broken", [delta_again, without_choices, of_one])
def test_prices_that_leave_something_out_are_caught(broken: Any) -> None:
    assert underpriced(broken)


@pytest.fixture
def friends() -> tulle.Graph:
    return tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=6)


def test_an_account_pays_for_many_small_questions(tmp_path: Path, friends: tulle.Graph) -> None:
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    study = ledger.open("friends", friends, unit="edge", epsilon=1, delta=1e-6)
    plain = ledger.open("plain", friends, unit="edge", epsilon=1, delta=1e-6, composition_delta=0)
    price = Guarantee.of("edge", epsilon=0.01)
    for count in range(120):
        ledger.book("friends", "edges()", {"count": count}, price)
    for count in range(100):
        ledger.book("plain", "edges()", {"count": count}, price)
    with pytest.raises(tulle.BudgetError):
        plain.ask(tulle.edges(), epsilon=0.01)
    study.ask(tulle.edges(), epsilon=0.01)
    assert ledger.verify() == []
    assert study.remaining.tight
    left = study.remaining.epsilon
    study.ask(tulle.edges(), epsilon=left, again=True)
    with pytest.raises(tulle.BudgetError, match="set aside"):
        study.ask(tulle.triangles(), epsilon=0.001, delta=1e-6, mechanism="smooth")


def test_an_account_is_opened_again_with_its_own_composition(
    tmp_path: Path, friends: tulle.Graph
) -> None:
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    ledger.open("a", friends, unit="edge", epsilon=1, delta=1e-6, composition_delta=2e-7)
    again = ledger.open("a", friends, unit="edge", epsilon=1, delta=1e-6)
    assert again.remaining.delta == Fraction(8, 10**7)
    assert ledger.open("a", friends, unit="edge").remaining == again.remaining
    with pytest.raises(tulle.LedgerError, match="composition_delta"):
        ledger.open("a", friends, unit="edge", epsilon=1, delta=1e-6, composition_delta=1e-7)
    with pytest.raises(tulle.InputError, match="a part of it"):
        ledger.open("b", friends, unit="edge", epsilon=1, delta=1e-6, composition_delta=1e-5)


def test_an_account_of_rho_adds_up_rho(tmp_path: Path, friends: tulle.Graph) -> None:
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    study = ledger.open("friends", friends, unit="edge", rho=0.02)
    study.ask(tulle.edges(), epsilon=0.1)
    assert study.remaining.rho == Fraction("0.015")
    study.ask(tulle.eigenvalues(1), epsilon=0.05, delta=1e-6, mechanism="eigen_gauss")
    assert study.remaining.rho is not None
    assert Fraction("0.0148") < study.remaining.rho < Fraction("0.015")
    with pytest.raises(tulle.BudgetError, match="mechanism without delta"):
        study.ask(tulle.triangles(), epsilon=0.05, delta=1e-6, mechanism="smooth")
    study.ask(tulle.edges(), epsilon=study.remaining.epsilon, again=True)
    assert study.remaining.rho < Fraction(1, 10**15)
    assert ledger.verify() == []
    with pytest.raises(tulle.InputError, match="or rho="):
        ledger.open("other", friends, unit="edge")
