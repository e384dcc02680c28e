"""The interval of a statistic released as a whole: never too narrow, and not much too wide."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tulle
from tulle.core.validate import rational
from tulle.graphs.generators import social_network
from tulle.graphs.mechanisms.ladder import rung_counts
from tulle.graphs.mechanisms.statistic_ladder import (
    KnownStatisticLadderLaw,
    StatisticLadder,
    StatisticLadderLaw,
    measure_widths,
    raise_widths,
)
from tulle.graphs.sensitivity.counts import SpreadSettings
from tulle.ledger.answer import plan_for

QUERY = tulle.transitivity()


def chance_beyond(widths, largest, decay, middle, distance):
    """Return the exact probability that an answer is further off than this."""
    one = 2 * middle.denominator
    counts = [count / one for count in rung_counts(widths, largest, middle)]
    farthest = len(counts) + math.ceil(60 / decay)
    counts = [*counts, *[counts[-1]] * (farthest - len(counts))]
    weights = [count * math.exp(-decay * rung) for rung, count in enumerate(counts)]
    # The truth is half a number on either side.
    beyond, reached = 0.0, 0.0
    for weight, count in zip(weights, counts, strict=True):
        further = reached + count / 2 - max(distance + 0.5, reached)
        beyond += weight * min(max(further, 0.0), count / 2) / (count / 2)
        reached += count / 2
    return beyond / math.fsum(weights)


def law_for(level, scale, found, units):
    return StatisticLadderLaw(
        *rates(found), units, QUERY.cap(units), level, scale, middle_of(found)
    )


def rates(found):
    return tuple(rational(found[name]) for name in ("decay", "smoothing", "slope"))


def middle_of(found):
    return rational(found["middle"])


def ladder_of(widths, found, query=QUERY):
    """Return the ladder that is drawn from: widths, the widest one, decay, the middle's share."""
    return widths, query.cap(found["units"]), float(rational(found["decay"])), middle_of(found)


def chance_missed(row, found, units, level):
    """Return the exact probability that the interval misses, over both draws."""
    widths, true_level = raise_widths(QUERY, row, found)
    scale = 1 / SpreadSettings.read(found).epsilon_spread
    q = math.exp(-1 / float(scale))
    missed = 0.0
    farthest = math.ceil(15 * float(scale))
    for noise in range(-farthest, farthest + 1):
        law = law_for(true_level + noise, scale, found, units)
        distance = math.floor(law.half_width(level) * units)
        chance = (1 - q) / (1 + q) * q ** abs(noise)
        # Answers are cut to the range.
        if distance < QUERY.cap(units):
            missed += chance * chance_beyond(*ladder_of(widths, found), distance)
    return missed


@settings(max_examples=15)
@given(
    first=st.integers(1, 200),
    steps=st.lists(st.integers(0, 400), min_size=1, max_size=12),
    epsilon=st.sampled_from(["2", "9"]),
    shares=st.sampled_from([("1/8", "1/8"), ("1/4", "1/32"), ("1/16", "1/16"), ("2/5", "2/5")]),
    level=st.sampled_from([0.5, 0.9, 0.99]),
)
def test_no_ladder_escapes_its_interval_more_often_than_it_says(
    first, steps, epsilon, shares, level
):
    units = 4096
    found = settings_for(epsilon, units, shares)
    row = padded(np.cumsum([first, *steps]).tolist(), found)
    assert chance_missed(row, found, units, level) <= 1 - level


def padded(row, found):
    """Return a profile of the length that settings say: it stays at its last value."""
    length = max(found["length"], found["level_length"])
    row = [min(width, found["units"]) for width in row]
    return row + [row[-1]] * (length - len(row))


def settings_for(epsilon, units, shares):
    graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=12)
    unit = graph.check_unit("edge")
    from tulle.core.mechanism import Terms

    terms = Terms(QUERY, unit, Fraction(epsilon), Fraction(0), graph.facts(unit))
    smoothing, level = map(Fraction, shares)
    return StatisticLadder().settings(
        terms, {"units": units, "smoothing_share": smoothing, "level_share": level}
    )


def test_the_check_would_notice_an_interval_that_is_a_third_too_narrow():
    units, level = 4096, 0.9
    found = settings_for("2", units, ("1/32", "1/32"))
    row = padded([40], found)
    assert chance_missed(row, found, units, level) <= 1 - level
    widths, exact = raise_widths(QUERY, row, found)
    scale = 1 / SpreadSettings.read(found).epsilon_spread
    narrow = law_for(exact, scale, found, units).half_width(level) * units * 2 / 3
    assert chance_beyond(*ladder_of(widths, found), math.floor(narrow)) > 1 - level


@pytest.mark.parametrize(
    "query",
    [tulle.transitivity(), tulle.average_clustering(), tulle.assortativity()],
    ids=str,
)
def test_an_interval_is_at_most_three_times_that_of_known_widths(query):
    graph = social_network(1000, seed=1)
    found = plan_for(
        graph, query, unit="edge", epsilon=1.0, mechanism="statistic_ladder"
    ).chosen.settings
    widths, level = measure_widths(query, graph, found)
    largest = query.cap(found["units"])
    known = KnownStatisticLadderLaw(
        rational(found["decay"]),
        found["units"],
        largest,
        tuple(widths[: found["length"]]),
        middle_of(found),
    )
    scale = 1 / SpreadSettings.read(found).epsilon_spread
    law = StatisticLadderLaw(*rates(found), found["units"], largest, level, scale, middle_of(found))
    for confidence in (0.5, 0.9, 0.95):
        assert law.half_width(confidence) <= 3 * known.half_width(confidence)
    # A level that came out ever higher says ever more, up to the whole range.
    high = replace(law, spread=10**9)
    assert high.half_width(0.9) == pytest.approx(largest / found["units"])


@pytest.mark.parametrize(
    ("epsilon", "options"),
    [("1e-6", {}), ("1e4", {}), ("1", {"smoothing_share": 0.7}), ("1", {"spread_share": "1e-4"})],
)
def test_unusual_budgets_have_an_interval_within_the_range(epsilon, options):
    graph = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=5)
    answer = tulle.release(
        graph, QUERY, unit="edge", epsilon=epsilon, mechanism="statistic_ladder", **options
    )
    for level in (0.01, 0.5, 0.999999):
        low, high = answer.interval(level)
        assert 0 <= low <= answer.value <= high <= 1
        assert answer.error.half_width(level) <= 1 + 1e-12
    if "smoothing_share" in options:
        # Widths that may grow as fast as the weights fall bound nothing.
        assert answer.error.half_width(0.5) == pytest.approx(1)


def test_noise_falls_with_epsilon_inside_a_rung():
    """A rung of one weight would leave half its width of error at any budget."""
    graph = social_network(300, seed=2)
    errors = {}
    for epsilon in (2.0, 20.0):
        plan = plan_for(
            graph, QUERY, unit="edge", epsilon=epsilon, mechanism="statistic_ladder", like=graph
        )
        found = plan.chosen.settings
        widths, _ = measure_widths(QUERY, graph, found)
        law = KnownStatisticLadderLaw(
            rational(found["decay"]),
            found["units"],
            QUERY.cap(found["units"]),
            tuple(widths),
            middle_of(found),
        )
        errors[epsilon] = law.half_width(0.5)
        drawn = [
            abs(
                StatisticLadder().run(plan.chosen.terms, found, graph, None).value
                - QUERY.truth(graph)
            )
            for _ in range(200)
        ]
        # The median of 200 draws is between the quantiles at .35 and .65.
        assert law.half_width(0.34) <= np.median(drawn) <= law.half_width(0.66)
    assert errors[20.0] < errors[2.0] / 8
