"""The law of drawn quantiles: exact on all small tables, and what the sampler really draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tulle.audit.sql.quantiles import (
    BROKEN,
    BROKEN_ENDS,
    GROUPS,
    POINTS,
    check_quantiles,
    law_of,
    neighbours,
    quantile_findings,
    table,
)
from tulle.noise import SeededSource
from tulle.sql.tables import rank_choice
from tulle.sql.tables.rank_choice import (
    COARSE,
    UNIT,
    Points,
    RankRule,
    draw_places,
    options_by_group,
    options_of,
    weights_of,
)

FEW = list(neighbours(few=True))


def test_losses_are_what_is_paid_on_all_small_tables() -> None:
    found = check_quantiles()
    assert found.passed, (found.figure, found.witness)
    # The bound is reached up to a little: it is not merely loose.
    assert found.worst > 0.7


def test_twins_are_caught() -> None:
    findings = {finding.query: finding for finding in quantile_findings()}
    for name in (*BROKEN, *BROKEN_ENDS):
        assert findings[f"broken: {name}"].passed, name
    assert findings["ends beside quantiles"].passed, findings["ends beside quantiles"].witness
    assert check_quantiles(pairs=FEW).passed


def brute_force(rows: list[tuple[int, int, int]], rule: RankRule, group: int) -> list[float]:
    """Return the probability of each point, straight from the module's text."""
    loads: dict[int, int] = {}
    for who, _, _ in rows:
        loads[who] = loads.get(who, 0) + 1
    weight = {who: min(UNIT, rule.most // load) for who, load in loads.items()}
    here = [(point, weight[who]) for who, where, point in rows if where == group]
    total = sum(w for _, w in here)
    scale = 2 * rule.at.denominator
    least = max(-(-8 * rule.most * rule.epsilon.denominator // rule.epsilon.numerator), UNIT // 2)
    far = 2 * (np.log(rule.points.count) + 3) * rule.most / float(rule.epsilon)
    inside = min(max(total // 32, least), max(int(np.ceil(far)), least))
    target = Fraction(scale) * rule.at * total
    target = max(target, min(scale * inside, Fraction(scale * total, 2)))
    target = min(target, max(scale * (total - inside), Fraction(scale * total, 2)))
    moves = scale * rule.most / (2 if rule.at == Fraction(1, 2) else 1)
    weights = []
    for point in range(rule.points.count):
        below = scale * sum(w for p, w in here if p < point)
        upto = scale * sum(w for p, w in here if p <= point)
        badness = max(0, below - target, target - upto)
        weights.append(np.exp(-float(rule.epsilon) * float(badness) / (2 * moves)))
    return (np.array(weights) / np.sum(weights)).tolist()


@pytest.mark.parametrize("at", ["0", "0.3", "0.5", "0.9", "1"])
def test_the_law_is_the_one_in_the_text(at: str) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        people = tuple(
            tuple((int(g), int(p)) for g, p in random.integers((0, 0), (GROUPS, 4), (size, 2)))
            for size in random.integers(1, 5, 3)
        )
        tau, epsilon = random.choice([0.5, 1.0, 1.75, 4.0]), random.choice([1, 2, 30])
        rule = RankRule(Fraction(at), int(UNIT * tau), Fraction(int(epsilon)), POINTS)
        law = law_of(table(people), rule)
        rows = [(who, *row) for who, person in enumerate(people) for row in person]
        for group in range(GROUPS):
            expected = brute_force(rows, rule, group)
            assert np.exp(law[group]) == pytest.approx(expected, abs=1e-12)


def drawn_shares(rule: RankRule, people: object, count: int) -> list[list[float]]:
    values = table(people)  # type: ignore[arg-type]
    weights = weights_of(values, rule.most) * values.copies
    places = POINTS.places(values.values)
    options = [
        options_of(places[values.groups == g], weights[values.groups == g], rule)
        for g in range(GROUPS)
    ]
    source = SeededSource(11)
    found = np.array([rank_choice.draw_places(options, rule, source) for _ in range(count)])
    return [(np.bincount(found[:, g], minlength=4) / count).tolist() for g in range(GROUPS)]


PEOPLE = (((0, 0), (0, 2), (1, 3)), ((0, 2),), ((1, 1), (0, 3)))


def test_what_is_drawn_follows_the_law() -> None:
    rule = RankRule(Fraction(1, 4), UNIT * 2, Fraction(6), POINTS)
    law = law_of(table(PEOPLE), rule)
    shares = drawn_shares(rule, PEOPLE, 6000)
    for group in range(GROUPS):
        # Six standard deviations of a share from 6,000 draws.
        assert shares[group] == pytest.approx(np.exp(law[group]).tolist(), abs=0.04)


def test_a_sampler_that_is_off_by_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(options, rule, source):  # type: ignore[no-untyped-def]
        return [(place + 1) % POINTS.count for place in draw_places(options, rule, source)]

    monkeypatch.setattr(rank_choice, "draw_places", shifted)
    with pytest.raises(AssertionError):
        test_what_is_drawn_follows_the_law()


def test_targets_rise_with_weight_and_by_no_more_than_it() -> None:
    for at in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1)):
        for most, epsilon in ((UNIT, Fraction(1)), (3 * UNIT, Fraction(50)), (7, Fraction(1, 9))):
            rule = RankRule(at, most, epsilon, POINTS)
            weights = [*range(4000), *range(4000, 2_000_000, 7919)]
            targets = [rule.target(weight) for weight in weights]
            for (w, r), (x, q) in pairwise(zip(weights, targets, strict=True)):
                assert 0 <= q - r <= rule.scale * (x - w)
                assert at != Fraction(1, 2) or 2 * (q - r) == rule.scale * (x - w)


def test_groups_at_once_are_groups_one_by_one() -> None:
    """The arrays of all groups hold what a plain loop over points finds in each."""
    random = np.random.default_rng(8)
    for at, size, rows in ((Fraction(1, 4), 4, 40), (Fraction(1), 3, 5), (Fraction(1, 2), 2, 0)):
        rule = RankRule(at, UNIT * 2, Fraction(3), Points(0.0, 1.0, 9))
        groups, places = random.integers(0, size, rows), random.integers(0, 9, rows)
        weights = random.integers(1, UNIT, rows)
        # One group has nothing.
        groups[groups == 1] = 0
        found = options_by_group(groups, places, weights, size, rule)
        for group, one in enumerate(found):
            here, mine = places[groups == group], weights[groups == group]
            target, scale = rule.target(int(mine.sum())), rule.scale
            expected = [
                max(
                    scale * int(mine[here < point].sum()) - target,
                    target - scale * int(mine[here <= point].sum()),
                    0,
                )
                for point in range(9)
            ]
            assert (
                np.repeat(one.badness, one.counts).tolist()
                == np.minimum(expected, rule.cap).tolist()
            )
            assert one.starts.tolist() == np.append(0, np.cumsum(one.counts))[:-1].tolist()


def test_lattices_of_ends_are_coarse_and_hold_the_range() -> None:
    for low, high, whole in ((0.0, 1e9, True), (-1e300, 1e300, False), (0.0, 120.0, True)):
        points = Points.coarse(low, high, whole=whole)
        assert points.count <= COARSE + 2
        for value in np.linspace(low, high, 7):
            place = int(points.places(np.array([value]))[0])
            assert abs(points.value(place) - value) <= points.step / 2


def test_lattices_hold_the_range() -> None:
    for low, high in ((0.0, 1.0), (-3.5, 1e9), (0.1, 0.1000001), (-1e300, 1e300), (5.0, 5.0)):
        points = Points.over(low, high, whole=False)
        ends = points.places(np.array([low, high]))
        assert ends[0] == 0
        assert ends[1] <= points.count - 1
        near = [points.value(int(end)) for end in ends]
        assert near == pytest.approx([low, high], abs=(high - low) * 2.0**-39, rel=1e-9)
    whole = Points.over(-2.5, 7.0, whole=True)
    assert (whole.first, whole.step, whole.count) == (-2.0, 1.0, 10)
