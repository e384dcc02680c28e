"""Partition selection: the exact law of what is shown, on all small tables and their neighbours.

A table is who has which keys, everyone bounded already; what is shown is, for each key, nothing or
a noisy number (for rules that weigh people, a noisy sum of weights). Laws of neighbours are
compared as a whole, keys together: the largest probability by which an event can exceed
exp(epsilon) times its probability on the other side must be at most delta. That
the statement which bounds people is a function of one person's rows is examined on a real engine:
whoever leaves takes at most so many people along, one for each of their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.noise.keys_per_person import MOVED, key_scores
from tulle.noise.partition_selection import (
    Rule,
    ThresholdedGaussian,
    TruncatedGeometric,
    WeightedGaussian,
    weight_levels,
)
from tulle.noise.truncated_laplace import gaussian_tail
from tulle.sql.keys.question import DiscoveredTable, KeyOptions
from tulle.sql.keys.statements import DIGEST, KEY, PEOPLE

Kept = tuple[int, ...]
"""The keys that one person counts for."""
People = tuple[Kept, ...]
Law = dict[Any, float]
"""What is shown of a key (None for nothing), with its probability."""
KeyLaw = Callable[[Rule, int], Law]
"""From a rule and a number of people to what is shown."""
Order = Callable[[People], Any]

KEYS = 3
CROWD = 8
"""So many people that at the larger budgets their keys are shown: then order matters."""
BUDGETS = (
    (Fraction(2), Fraction(1, 20)),
    (Fraction(1, 2), Fraction(1, 8)),
    (Fraction(5), Fraction(1, 1000)),
)
LITTLE = (Fraction(1, 10), Fraction(1, 100))
"""A budget at which noise is large beside one person's weight."""
MANY = (4, 9)
"""Numbers of keys for tables of one person."""
STEPS = 3
"""Weights in whole thirds, so that a law has few values: they round down by more than in use."""
CHECK = "exact, keys shown"
_TINY = 1e-15


@cache
def noise_law(rule: Rule) -> dict[int, float]:
    """Return the probability of each value of the noise, by the rule's own parameters."""
    if isinstance(rule, TruncatedGeometric):
        values = range(-rule.threshold, rule.threshold + 1)
        weights = {x: float(np.exp(-abs(x) / float(rule.scale))) for x in values}
    else:
        assert isinstance(rule, ThresholdedGaussian)
        spread = float(rule.variance)
        end = int(12 * spread**0.5) + rule.threshold + 2
        weights = {x: float(np.exp(-x * x / (2 * spread))) for x in range(-end, end + 1)}
    whole = sum(weights.values())
    return {x: weight / whole for x, weight in weights.items()}


@cache
def key_law(rule: Rule, people: int) -> Law:
    """Return what is shown of a key of so many people, with probabilities."""
    counted = max(people - (rule.minimum - 1), 0)
    if counted == 0:
        return {None: 1.0}
    law: Law = {None: 0.0}
    for x, chance in noise_law(rule).items():
        if counted + x > rule.threshold:
            law[counted + x + rule.minimum - 1] = chance
        else:
            law[None] += chance
    return law


@dataclass(frozen=True)
class KeySelection:
    """How keys are shown; broken versions change one of these."""

    law: KeyLaw = key_law
    rule: Callable[[Rule], Rule] = lambda rule: rule
    """Changes the rule; its weights are changed with it."""
    more: int = 0
    """How many keys more than the rule allows one person counts for."""
    order: Order = lambda people: None
    """What the order of what is shown tells."""


HONEST = KeySelection()


Budgets = tuple[tuple[Fraction, Fraction], ...]


@cache
def rules(keys: int, budgets: Budgets = BUDGETS) -> tuple[tuple[Rule, Fraction, Fraction], ...]:
    """Return the rules for several budgets, with the budgets."""
    return tuple(_rules(keys, budgets))


def _rules(keys: int, budgets: Budgets) -> Iterator[tuple[Rule, Fraction, Fraction]]:
    for (epsilon, delta), minimum in product(budgets, (1, 2)):
        yield TruncatedGeometric.at(epsilon, delta, keys, minimum), epsilon, delta
        yield ThresholdedGaussian.at(epsilon, delta, keys, minimum), epsilon, delta
    for epsilon, delta in budgets:
        yield WeightedGaussian.at(epsilon, delta, keys, steps=STEPS), epsilon, delta


def neighbours(keys: int) -> Iterator[tuple[People, People]]:
    """Yield tables of up to three people, with and without one of them."""
    sets = [kept for size in range(keys + 1) for kept in combinations(range(KEYS), size)]
    for size in (1, 2, 3):
        for people in combinations_with_replacement(sets, size):
            for gone in range(size):
                yield people, people[:gone] + people[gone + 1 :]
    if keys > 1:
        crowd = ((0, 1),) * CROWD
        yield ((1,), *crowd), crowd


Levels = tuple[tuple[int, int], ...]


def counts_of(people: People, levels: Levels) -> tuple[int, ...]:
    """Return how many people have each key, everyone counted by how many keys they have."""
    *first, (_, last) = levels
    weights = [next((w for n, w in first if len(kept) <= n), last) for kept in people]
    return tuple(
        sum(weight for kept, weight in zip(people, weights, strict=True) if key in kept)
        for key in range(KEYS)
    )


@cache
def _tables(keys: int, levels: Levels) -> list[tuple[People, People, tuple[Any, Any]]]:
    return [(a, b, (counts_of(a, levels), counts_of(b, levels))) for a, b in neighbours(keys)]


def excess(one: Sequence[Law], other: Sequence[Law], epsilon: Fraction) -> float:
    """Return the most by which an event on one side exceeds exp(epsilon) times the other."""
    first, second = [], []
    for mine, theirs in zip(one, other, strict=True):
        values = list(dict.fromkeys([*mine, *theirs]))
        left = np.array([mine.get(value, 0.0) for value in values])
        right = np.array([theirs.get(value, 0.0) for value in values])
        if np.array_equal(left, right):
            # What has the same law on both sides tells nothing.
            continue
        held = (left > _TINY) | (right > _TINY)
        first.append(left[held])
        second.append(right[held])
    if not first:
        return 0.0
    left, right = (reduce(np.multiply.outer, laws) for laws in (first, second))
    return float(np.maximum(left - np.exp(float(epsilon)) * right, 0).sum())


def alone(way: KeySelection) -> Iterator[tuple[float, str]]:
    """Yield of delta how much goes to a table of one person with many keys, by its exact law.

    Without that person nothing can be shown, so the loss is the probability that anything is.
    """
    for keys in MANY:
        for honest, _, delta in rules(keys, (*BUDGETS, LITTLE)):
            rule = way.rule(honest)
            for n in range(1, keys + way.more + 1):
                held = next((w for up_to, w in rule.levels if n <= up_to), rule.levels[-1][1])
                hidden = way.law(rule, held).get(None, 0.0) ** n
                yield (1 - hidden) / float(delta), f"one person of {n} keys, {rule.name}"


def check_selection(way: KeySelection = HONEST, most: Sequence[int] = (1, 2)) -> Finding:
    """Compare the exact loss with delta on all small tables."""
    cases, worst, witness = 0, 0.0, ""
    for keys in most:
        for honest, epsilon, delta in rules(keys):
            rule = way.rule(honest)
            known: dict[Any, float] = {}
            for people, others, sides in _tables(keys + way.more, rule.levels):
                reordered = way.order(people) != way.order(others)
                if sides not in known or reordered:
                    one, other = ([way.law(rule, count) for count in counts] for counts in sides)
                    known[sides] = max(excess(one, other, epsilon), excess(other, one, epsilon))
                found = known[sides]
                if reordered:
                    # Two keys that both sides show come in another order.
                    found = max(found, _both_shown(one, other))
                cases += 2
                if found / float(delta) > worst:
                    worst = found / float(delta)
                    witness = f"{people} and {others}, {rule.name}"
    for found, who in alone(way):
        cases += 1
        if found > worst:
            worst, witness = found, who
    return Finding(
        "partition_selection",
        "keys of three",
        CHECK,
        cases,
        worst,
        worst <= 1 + 1e-9,
        f"{worst:.6g} of delta",
        witness,
    )


def _both_shown(one: Sequence[Law], other: Sequence[Law]) -> float:
    """Return the least probability, on either side, that two keys are shown."""
    least = []
    for laws in (one, other):
        shown = sorted((1 - law.get(None, 0.0) for law in laws), reverse=True)
        least.append(shown[0] * shown[1])
    return min(least)


@cache
def without_threshold(rule: Rule, people: int) -> Law:
    """Show every key whose noisy number is above zero: a broken version."""
    if people == 0:
        return {None: 1.0}
    shown = {people + x: p for x, p in noise_law(rule).items() if people + x > 0}
    return {None: 1 - sum(shown.values()), **shown}


@cache
def read_off(rule: Rule, people: int) -> Law:
    """Show every key that anybody has, with noise on its number: a broken version."""
    return {None: 1.0} if people == 0 else {people + x: p for x, p in noise_law(rule).items()}


@cache
def number_below(rule: Rule, people: int) -> Law:
    """Show the number of a key that was not above the threshold: a broken version."""
    if people == 0:
        return {None: 1.0}
    law: Law = {}
    for x, chance in noise_law(rule).items():
        above = people + x > rule.threshold
        law[people + x if above else ("below", people + x)] = chance
    return law


@cache
def half_noise(rule: Rule, people: int) -> Law:
    """Show by half the noise at the same threshold: a broken version."""
    if isinstance(rule, TruncatedGeometric):
        return key_law(replace(rule, scale=rule.scale / 2), people)
    assert isinstance(rule, ThresholdedGaussian)
    return key_law(replace(rule, variance=rule.variance / 4), people)


@cache
def minimum_of_noise(rule: Rule, people: int) -> Law:
    """Take the minimum off the threshold as well: a broken version where one is given."""
    return key_law(replace(rule, threshold=max(rule.threshold - rule.minimum, 0)), people)


def one_try(rule: Rule) -> Rule:
    """Take the threshold that a single new key may have: a broken version of weights."""
    if not isinstance(rule, WeightedGaussian):
        return rule
    alone = replace(rule, keys=1)
    while alone.threshold and _new_keys(replace(alone, threshold=alone.threshold - 1)):
        alone = replace(alone, threshold=alone.threshold - 1)
    return replace(rule, threshold=alone.threshold)


def _new_keys(rule: WeightedGaussian) -> bool:
    """Say whether half of delta pays for new keys at this rule's threshold."""
    return all(
        weight <= rule.threshold
        and n * gaussian_tail(rule.variance, rule.threshold + 1 - weight) <= rule.delta_noise
        for n, weight in rule.levels
    )


class Unweighted(WeightedGaussian):
    """Everyone counts for one in each key, however many they have: a broken version of weights."""

    @property
    def levels(self) -> Levels:
        return ((self.keys, self.steps),)


def unweighted(rule: Rule) -> Rule:
    """Return the rule that forgets to divide by the root of the number of keys."""
    return Unweighted(**vars(rule)) if isinstance(rule, WeightedGaussian) else rule


def first_come(people: People) -> Any:
    """Return keys in the order in which the data has them."""
    return tuple(dict.fromkeys(key for kept in people for key in kept))


BROKEN_SELECTION: dict[str, KeySelection] = {
    "a threshold without delta": KeySelection(law=without_threshold),
    "keys read off the data": KeySelection(law=read_off),
    "keys in the data's order": KeySelection(order=first_come),
    "one key too many per person": KeySelection(more=1),
    "a number shown although it was below": KeySelection(law=number_below),
    "half the noise": KeySelection(law=half_noise),
    "a lower threshold for a minimum": KeySelection(law=minimum_of_noise),
    "weights that are not divided": KeySelection(rule=unweighted),
    "the threshold of one new key": KeySelection(rule=one_try),
}


# --- the statement that bounds people -----------------------------------------------------------

ROWS = (("a", "b", "c"), ("b", "c"), ("c", None, "a", "b"), ("d",), ("a", "a"), (None,))
"""The keys of made-up people, rows in this order."""


def check_bounding(
    most: int = 2, choose: Callable[[str], str] = lambda text: text, weighted: bool = False
) -> Finding:
    """Count people by key on a real engine with and without each person, at several salts.

    ``weighted`` sums weights instead, of which one person has squares that add up to one at most.
    ``choose`` changes the statement, for broken versions.
    """
    import duckdb

    from tulle.sql.data import Database

    query = DiscoveredTable(
        "SELECT k, COUNT(*) FROM visit GROUP BY k", "duckdb", (), KeyOptions(most)
    )
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE visit (person INTEGER, k VARCHAR)")
    bound = query.bind(Database.connect(connection, owners={"visit": "person"})).bound
    assert bound is not None
    levels = weight_levels(most) if weighted else ()
    cases, worst, witness = 0, 0.0, ""

    def counted(people: Sequence[tuple[int, Sequence[str | None]]], salt: str) -> dict[Any, int]:
        rows = [(who, key) for who, keys in people for key in keys]
        connection.execute("DELETE FROM visit")
        connection.executemany("INSERT INTO visit VALUES (?, ?)", rows)
        text = choose(bound.rows.counted(salt, most, levels))
        found = connection.sql(text).to_arrow_table().to_pydict()
        assert len(set(found[DIGEST])) == len(found[DIGEST])
        return dict(zip(found[f"{KEY}_0"], found[PEOPLE], strict=True))

    everyone = list(enumerate(ROWS))
    for salt in (f"{number:032x}" for number in range(4)):
        whole = counted(everyone, salt)
        if counted(everyone[::-1], salt) != whole:
            worst, witness = float("inf"), "the order of rows"
        for gone, _ in everyone:
            less = counted([pair for pair in everyone if pair[0] != gone], salt)
            moves = [whole.get(key, 0) - less.get(key, 0) for key in {*whole, *less}]
            if weighted:
                found = sum(move**2 for move in moves) / levels[0][1] ** 2
                found = float("inf") if min(moves) < 0 else found
            else:
                wrong = any(move not in (0, 1) for move in moves)
                found = float("inf") if wrong else sum(moves) / most
            cases += 1
            if found > worst:
                worst, witness = found, f"person {gone} of {ROWS}"
    connection.close()
    return Finding(
        "partition_selection",
        f"{most} keys per person{', weighted' if weighted else ''}",
        "keys of one person",
        cases,
        worst,
        worst <= 1,
        f"{worst:.6g} of what one person moves",
        witness,
    )


BROKEN_BOUNDING: dict[str, Callable[[str], str]] = {
    "one key more is kept": lambda text: text.replace("b.r <= 2", "b.r <= 3"),
    "the choice is of all people together": lambda text: text.replace("PARTITION BY d.i ", ""),
}
BROKEN_WEIGHTS: dict[str, Callable[[str], str]] = {
    "a weighted key more is kept": lambda text: text.replace("b.r <= 2", "b.r <= 3"),
    "weights by one key less": lambda text: text.replace("COUNT(*) OVER", "-1 + COUNT(*) OVER"),
}


# --- the number of keys per person --------------------------------------------------------------

BROKEN_CHOICE = "the number of keys by rows"
Scores = Callable[[dict[int, int], Fraction], Sequence[Fraction]]
NUMBERS = (1, 2, 3, 9, 70)
"""How many keys made-up people have."""


def by_rows(having: dict[int, int], epsilon: Fraction) -> Sequence[Fraction]:
    """Score by keys and not by people, so that who has many counts for many: a broken version."""
    return key_scores({keys: keys * people for keys, people in having.items()}, epsilon)


def check_choice(scores: Scores = key_scores) -> Finding:
    """Compare the exact loss of the choice with epsilon, for all small numbers of people."""
    cases, worst, witness = 0, 0.0, ""

    def law(people: Sequence[int], epsilon: Fraction) -> Any:
        found = scores({keys: people.count(keys) for keys in set(people)}, epsilon)
        logs = np.array([float(epsilon * score / (2 * MOVED)) for score in found])
        return logs - np.log(np.exp(logs).sum())

    for size, epsilon in product((1, 2, 3, 4), (Fraction(1, 10), Fraction(2))):
        for people in combinations_with_replacement(NUMBERS, size):
            for gone in range(size):
                left = people[:gone] + people[gone + 1 :]
                loss = float(np.abs(law(people, epsilon) - law(left, epsilon)).max()) / float(
                    epsilon
                )
                cases += 1
                if loss > worst:
                    worst, witness = loss, f"{people} keys, and {people[gone]} leaves"
    return Finding(
        "partition_selection",
        "number of keys",
        "exact, number of keys",
        cases,
        worst,
        worst <= 1 + 1e-9,
        f"{worst:.6g} of epsilon",
        witness,
    )


def selection_findings() -> list[Finding]:
    """Return what is found on small tables, and on broken versions that must be caught."""
    found = [check_selection(), check_bounding(), check_bounding(weighted=True), check_choice()]
    found.append(check_choice(by_rows).of_broken(BROKEN_CHOICE))
    found += [check_selection(way).of_broken(name) for name, way in BROKEN_SELECTION.items()]
    found += [
        check_bounding(choose=choose).of_broken(name) for name, choose in BROKEN_BOUNDING.items()
    ]
    found += [
        check_bounding(choose=choose, weighted=True).of_broken(name)
        for name, choose in BROKEN_WEIGHTS.items()
    ]
    return found
