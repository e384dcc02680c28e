"""Rules of partition selection: their law, their optimality, what they cost."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tulle.audit.sql.partition_selection import counts_of, key_law, neighbours, noise_law
from tulle.core.errors import InputError
from tulle.core.events import Composed, price
from tulle.noise import SeededSource
from tulle.noise.partition_selection import (
    STEPS,
    Rule,
    ThresholdedGaussian,
    TruncatedGeometric,
    WeightedGaussian,
    best_rule,
    rule_from_json,
    weight_levels,
)
from tulle.noise.truncated_laplace import chance_of_end, gaussian_tail, truncated_laplace
from tulle.noise.watch import watch

BUDGETS = [
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 10), Fraction(1, 10**9)),
    (Fraction(8), Fraction(1, 20)),
]


def optimal(epsilon: float, delta: float, people: int) -> list[float]:
    """Return the largest chances that any private rule has, by the recursion of the paper."""
    chances = [0.0]
    for _ in range(people):
        last = chances[-1]
        chances.append(
            min(
                math.exp(epsilon) * last + delta,
                1 - math.exp(-epsilon) * (1 - last - delta),
                1.0,
            )
        )
    return chances


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_one_key_is_shown_as_often_as_any_rule_could_up_to_one_person_and_delta(
    epsilon: Fraction, delta: Fraction
) -> None:
    rule = TruncatedGeometric.at(epsilon, delta, 1)
    most = 2 * rule.threshold + 4
    best = optimal(float(epsilon), float(delta), most)
    mine = [rule.chance(people) for people in range(most + 2)]
    for people in range(1, most):
        assert mine[people] <= best[people] + 1e-12
        assert mine[people + 1] >= best[people] - float(delta)
    exact = TruncatedGeometric.at(epsilon, chance_of_end(rule.scale, rule.threshold), 1)
    assert exact.threshold == rule.threshold
    reached = optimal(float(epsilon), float(chance_of_end(rule.scale, rule.threshold)), most)
    assert np.allclose(mine[: most + 1], reached, atol=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("keys", [1, 3, 20])
def test_the_chance_is_that_of_the_law(epsilon: Fraction, delta: Fraction, keys: int) -> None:
    made = [
        make(epsilon, delta, keys, minimum)
        for make, minimum in product((TruncatedGeometric.at, ThresholdedGaussian.at), (1, 5))
    ]
    for rule in (*made, WeightedGaussian.at(epsilon, delta, keys, steps=20)):
        minimum = rule.minimum
        for people in (0, 1, minimum, rule.threshold // 2, rule.threshold, rule.enough()):
            shown = 1 - key_law(rule, people)[None]
            # The chance of Gaussian noise is a plan's figure, by the continuous law.
            assert rule.chance(people) == pytest.approx(shown, abs=2e-3)
        assert rule.chance(minimum - 1) == 0.0
        assert rule.chance(rule.enough()) >= 0.95 > rule.chance(rule.enough() - 1)
        for having in (1, keys):
            weight = next(weight for up_to, weight in rule.levels if having <= up_to)
            least = rule.seen_from(having=having)
            assert weight * least >= rule.enough() > weight * (least - 1)


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1), Fraction(50), Fraction(4000)])
def test_the_tail_is_bounded_from_above_and_nearly_met(variance: Fraction) -> None:
    end = int(40 * float(variance) ** 0.5) + 40
    weights = np.exp(-(np.arange(-end, end + 1) ** 2) / (2 * float(variance)))
    for start in (1, int(3 * float(variance) ** 0.5) + 1, int(6 * float(variance) ** 0.5) + 1):
        exact = weights[end + start :].sum() / weights.sum()
        assert exact <= float(gaussian_tail(variance, start)) * (1 + 1e-9)
    assert float(gaussian_tail(variance, start)) <= 1.2 * exact


def test_truncated_noise_has_its_law() -> None:
    rule = TruncatedGeometric(1, 1, 4, Fraction(3))
    drawn = truncated_laplace(scale=3, bound=4, size=200_000, source=SeededSource(1))
    law = noise_law(rule)
    assert set(drawn.tolist()) == set(law)
    for value, chance in law.items():
        seen = float((drawn == value).mean())
        assert abs(seen - chance) < 6 * (chance / 200_000) ** 0.5
    assert chance_of_end(Fraction(3), 4) == pytest.approx(law[4])


@pytest.mark.parametrize("steps", [1, 7, STEPS])
def test_weights_of_one_person_have_the_length_one(steps: int) -> None:
    for keys in (1, 2, 3, 64, 128, 129, 5000):
        levels = dict(weight_levels(keys, steps))
        assert max(levels) == keys
        for n in range(1, keys + 1):
            up_to = min(level for level in levels if n <= level)
            assert n * levels[up_to] ** 2 <= steps**2
            # Nothing that could be had is left out, but for the width of a range.
            assert (levels[up_to] + 1) ** 2 * n * (17 if n > 128 else 16) > steps**2 * 16


@pytest.mark.parametrize("keys", [1, 2, 3])
def test_sums_of_weights_move_by_one_at_most_on_all_small_tables(keys: int) -> None:
    rule = WeightedGaussian.at(Fraction(1), Fraction(1, 10), keys, steps=100)
    longest = 0
    for people, others in neighbours(keys):
        pair = (counts_of(table, rule.levels) for table in (people, others))
        moved = [a - b for a, b in zip(*pair, strict=True)]
        longest = max(longest, sum(move**2 for move in moved))
    assert 0.95 * 100**2 < longest <= 100**2


def weighted(*arguments: Any) -> Rule:
    """Return the rule of weights at few steps, so that its law has few values."""
    return WeightedGaussian.at(*arguments[:3], steps=3)


@pytest.mark.parametrize("make", [TruncatedGeometric.at, ThresholdedGaussian.at, weighted])
def test_what_is_shown_has_the_law(make: object) -> None:
    rule: Rule = make(Fraction(2), Fraction(1, 20), 2, 2)  # type: ignore[operator]
    for people in (1, 2, 4, 9):
        counts = np.full(100_000, people)
        shown, noisy = rule.show(counts, SeededSource(people))
        law = key_law(rule, people)
        assert not noisy[~shown].any()
        for value, chance in law.items():
            seen = float((~shown).mean() if value is None else (shown & (noisy == value)).mean())
            assert abs(seen - chance) < 6 * (max(chance, 1e-5) / 100_000) ** 0.5


def test_a_key_of_nobody_is_never_shown() -> None:
    for make in (TruncatedGeometric.at, ThresholdedGaussian.at, weighted):
        rule = make(Fraction(1), Fraction(1, 4), 3, 1)
        shown, noisy = rule.show(np.zeros(50_000), SeededSource(3))
        assert not shown.any()
        assert not noisy.any()
        assert not rule.show(np.zeros(0), None)[0].any()


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("keys", [1, 4, 50])
def test_the_price_is_paid_in_full_and_no_more(
    epsilon: Fraction, delta: Fraction, keys: int
) -> None:
    for make in (TruncatedGeometric.at, ThresholdedGaussian.at, WeightedGaussian.at):
        rule = make(epsilon, delta, keys)
        with watch() as events:
            rule.show(np.array([1, 5]), None)
        spent, missed = price(Composed(tuple(events)), delta)
        assert 0.99 * epsilon <= spent <= epsilon
        assert missed <= delta
        less = type(rule)(**{**vars(rule), "threshold": rule.threshold - 1})
        with watch() as events:
            less.show(np.array([1, 5]), None)
        assert price(Composed(tuple(events)), delta)[1] > delta


def test_many_keys_per_person_want_gaussian_noise() -> None:
    names = [best_rule(Fraction(1), Fraction(1, 10**6), keys).name for keys in (1, 2, 16, 256)]
    assert names[:2] == ["truncated geometric"] * 2
    assert names[2:] == ["gaussian"] * 2
    for keys in (1, 16):
        rule = best_rule(Fraction(1), Fraction(1, 10**6), keys, 7)
        assert rule_from_json(rule.to_json(), keys, 7) == rule
    rule = best_rule(Fraction(1), Fraction(1, 10**6), 64, numbers=False)
    assert rule.name == "weighted gaussian"
    assert rule_from_json(rule.to_json(), 64, 1) == rule
    # A number that is asked for, or a minimum, is of people and not of weights.
    assert best_rule(Fraction(1), Fraction(1, 10**6), 64, 2, numbers=False).name == "gaussian"


def test_at_every_budget_there_is_a_rule_or_a_refusal_that_depends_on_it_alone() -> None:
    """From the least to the largest: whatever is planned can be drawn, whoever has keys."""
    refused = 0
    for epsilon, delta in product(
        ("1e-300", "1e-20", "3.6e-15", "1e-14", "1e-6", "1", "750", "1e6", "1e300"),
        ("1e-300", "1e-99", "1e-9", "0.5"),
    ):
        for keys, minimum, numbers in ((1, 1, True), (4, 3, True), (10**6, 1, False)):
            budget = Fraction(epsilon), Fraction(delta)
            least = keys / Fraction(2**48), keys * Fraction(1, 10**100)
            if budget[0] < least[0] or budget[1] < least[1]:
                with pytest.raises(InputError, match="Keys cannot be found at so small"):
                    best_rule(*budget, keys, minimum, numbers=numbers)
                refused += 1
                continue
            rule = best_rule(*budget, keys, minimum, numbers=numbers)
            assert rule.seen_from() >= minimum
            shown, _ = rule.show(np.array([1, 2**41]), SeededSource(1))
            assert len(shown) == 2
            assert rule_from_json(rule.to_json(), keys, minimum) == rule
    assert 0 < refused < 80
