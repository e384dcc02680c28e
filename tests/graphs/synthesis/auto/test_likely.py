"""What a noisy count says beside what networks are like, and what small graphs do without."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.graphs.synthesis_reference import terms_for

import tulle
from tulle.core.registry import mechanisms
from tulle.graphs.generators import social_network
from tulle.graphs.synthesis.auto.budget import SCHEDULES, degree_budgets, guess_known, last_budgets
from tulle.graphs.synthesis.auto.likely import Span, likely_counts, with_likely
from tulle.graphs.synthesis.auto.schedule import schedule_of
from tulle.graphs.synthesis.generators.tuning import Target, TriangleTargets
from tulle.noise import SeededSource
from tulle.noise.post_processing import post_processing

SPANS = Span.of(100.0, 10_000.0), Span.of(10.0, 1_000.0)


@pytest.mark.parametrize(
    ("count", "picked"), [(0, 0), (40, 4), (100, 12), (150, 40), (2_500, 400), (9_900, 990)]
)
def test_clear_counts_stay_what_they_are(count, picked):
    triangles, picks = likely_counts(Target(count, 0.5), Target(picked, 0.1), SPANS)
    assert triangles.value == pytest.approx(count, abs=3)
    assert picks.value == pytest.approx(picked, abs=1)


@pytest.mark.parametrize("count", [-1e6, -3_000.0, 0.0, 500.0, 1e6])
@pytest.mark.parametrize("noise", [1e4, 1e6, 1e12])
def test_noise_asks_neither_for_nothing_nor_for_more_than_there_can_be(count, noise):
    found = likely_counts(Target(count, noise), Target(0.0, 1e18), SPANS)
    for one, span in zip(found, SPANS, strict=True):
        assert span.chance / 2 < one.value <= span.most
        assert one.noise <= span.most


def test_each_count_tells_of_the_other():
    unknown = Target(0.0, 1e18)
    few, many = (likely_counts(unknown, Target(n, 1.0), SPANS)[0].value for n in (20.0, 700.0))
    assert many > 10 * few
    few, many = (likely_counts(Target(n, 1.0), unknown, SPANS)[1].value for n in (150.0, 8_000.0))
    assert many > 10 * few


def test_empty_and_complete_graphs_have_a_span():
    for degrees in (np.zeros(5, dtype=np.int64), np.full(5, 4), np.array([1, 1, 0])):
        targets = TriangleTargets(Target(-7.0, 50.0), None, 1, None)
        found = with_likely(targets, degrees, post_processing(SeededSource(1)))
        for one in (found.triangles, found.closure):
            assert one is not None
            assert np.isfinite(one.value)


def test_a_small_graph_leaves_out_what_would_drown():
    names = tuple(name for name in SCHEDULES["blocks"] if name not in ("reached", "sequence"))
    tiny, large = guess_known(100, 400), guess_known(4_000, 90_000)
    kept = last_budgets(names, Fraction(1, 2), tiny, 8.0)
    assert not {"mixing", "members", "pairs"} & set(kept)
    assert sum(kept.values()) == Fraction(1, 2)
    assert {"mixing", "members", "pairs"} <= set(last_budgets(names, Fraction(1, 2), large, 8.0))
    # Noise of a hundred degrees on a hundred nodes tells nothing.
    plain, some = SCHEDULES["plain"], Fraction(1, 5)
    assert set(degree_budgets(plain, 100, some, some)) == {"reached"}
    assert set(degree_budgets(plain, 4_000, some, some)) == {"reached", "sequence"}


def test_a_small_graph_is_not_searched_for_a_core():
    auto = mechanisms("graph")["synthetic_auto"]
    graph = social_network(150, mean_degree=25, communities=2, seed=1)
    mixed = post_processing(SeededSource(5)).permutation(150)[graph.edges()]
    graph = tulle.Graph.from_edges(mixed, nodes=150)
    terms = terms_for(graph, tulle.synthetic(), "2")
    settings = auto.settings(terms, {})
    seen = auto.measure(terms, settings, graph, SeededSource(1))
    assert schedule_of(seen, settings) == "plain"
    assert not {"placeable", "ranks", "home"} & set(seen)
