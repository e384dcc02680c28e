"""The search by sparse vector: its law, its price on small graphs, and what it finds."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError
from tulle.core.events import Composed, price
from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network
from tulle.graphs.truncation.relation import relation_of
from tulle.noise import SeededSource
from tulle.noise.watch import watch
from tulle.relations.data import Relation
from tulle.relations.mechanisms.sparse_vector import (
    COUNT,
    RelationSparseVector,
    SparseVectorSettings,
    first_fit,
)
from tulle.relations.truncation.totals import LARGEST, truncate

CHOSEN = SparseVectorSettings(0.5, 2.0, 1.0, 2, 0.25, *(Fraction(n, 20) for n in (4, 4, 12, 16)))
"""As the settings at epsilon = 1, with thresholds among the loads of small graphs."""


class Known:
    """A decider whose deletions are given."""

    def __init__(self, chosen, needed):
        self.needed = {chosen.searched(at): number for at, number in enumerate(needed)}

    def decide(self, tau, level):
        return self.needed.get(tau, 0) <= level

    def estimate(self, tau):
        return None


def stops(needed, chosen):
    """Return the chance of stopping at each place, summed over both noises as they are defined."""
    shared = math.exp(-float(chosen.epsilon_limit))
    each = math.exp(-float(chosen.epsilon_stop))
    chances = np.zeros(COUNT)
    for drawn in range(600):
        left = (1 - shared) * shared**drawn
        for at in range(COUNT):
            short = max((needed[at] if at < len(needed) else 0) - chosen.stopping + drawn, 0)
            stop = each**short if at < COUNT - 1 else 1.0
            chances[at] += left * stop
            left *= 1 - stop
            if not left:
                break
    return chances


@pytest.mark.parametrize("needed", [(), (9, 5, 5, 2, 1), (4, 4, 4), (40, 20, 7, 3)])
def test_the_search_has_its_law(needed):
    truncation, source = Known(CHOSEN, needed), SeededSource(3)
    truncation.value = lambda tau, gap: 0.0
    runs = 2000
    found = [
        RelationSparseVector().release_side(truncation, CHOSEN, source).threshold
        for _ in range(runs)
    ]
    chances = stops(needed, CHOSEN)
    assert chances.sum() == pytest.approx(1.0, abs=1e-9)
    for at in range(12):
        seen = found.count(CHOSEN.threshold(at)) / runs
        spread = math.sqrt(chances[at] * (1 - chances[at]) / runs)
        assert abs(seen - chances[at]) <= 4.5 * spread + 1e-3, at


def test_the_bisection_finds_what_looking_in_turn_finds():
    generator = np.random.default_rng(1)
    for _ in range(300):
        needed = -np.sort(-generator.integers(0, 12, 20))
        levels = generator.integers(-3, 14, COUNT).tolist()
        in_turn = next((at for at in range(20) if needed[at] <= levels[at]), None)
        if in_turn is None:
            in_turn = next(at for at in range(20, COUNT) if levels[at] >= 0)
        assert first_fit(Known(CHOSEN, needed), CHOSEN, levels) == in_turn
    assert first_fit(Known(CHOSEN, []), CHOSEN, [-1] * COUNT) == COUNT - 1


def test_the_price_on_all_graphs_of_four_nodes():
    """Every graph, every node that leaves: thresholds and answers together keep epsilon = 1.

    Both directions are near what they may be, so that nothing is given away; and with a little
    less noise of any of the four kinds the price is broken.
    """
    pairs = list(itertools.combinations(range(4), 2))
    known = {}

    def law(edges):
        if edges not in known:
            relation = relation_of(tulle.edges(), Graph.from_edges(list(edges), nodes=4), "node")
            truncation = truncate(relation)
            needed = []
            for at in range(6):
                tau = CHOSEN.searched(at)
                needed.append(next(j for j in range(9) if truncation.decide(tau, j)))
            values = [truncation.value(float(tau), float(tau) / 5000) for tau in taus]
            known[edges] = needed, np.array(values, dtype=float)
        return known[edges]

    taus = np.array([CHOSEN.threshold(at) for at in range(10)])

    def worst(chosen):
        above, below = float(chosen.epsilon_above), float(chosen.epsilon_below)
        most = [0.0, 0.0]
        for size in range(len(pairs) + 1):
            for edges in itertools.combinations(pairs, size):
                for node in range(4):
                    less = tuple(edge for edge in edges if node not in edge)
                    (needed, values), (fewer, lower) = law(edges), law(less)
                    shift = (values - lower) / taus
                    assert (shift > -1e-3).all()
                    assert (shift < 1 + 1e-3).all()
                    moved = np.array(needed) - np.array(fewer)
                    assert set(moved.tolist()) <= {0, 1}
                    logs = np.log(stops_of(needed, chosen)[:10] / stops_of(fewer, chosen)[:10])
                    most[0] = max(most[0], float((logs + above * shift).max()))
                    most[1] = max(most[1], float((below * shift - logs).max()))
        return most

    table = {}

    def stops_of(needed, chosen):
        key = tuple(needed), chosen.epsilon_limit, chosen.epsilon_stop
        if key not in table:
            table[key] = stops(needed, chosen)
        return table[key]

    honest = worst(CHOSEN)
    assert 0.9 < honest[0] < 1.001
    assert 0.9 < honest[1] < 1.001
    for name in ("epsilon_limit", "epsilon_stop", "epsilon_above", "epsilon_below"):
        broken = replace(CHOSEN, **{name: 2 * getattr(CHOSEN, name)})
        assert max(worst(broken)) > 1.02, name


def test_draws_cost_epsilon():
    relation = Relation.conjunctive(range(0, 41, 2), list(range(40)))
    with watch() as events:
        RelationSparseVector().release_side(truncate(relation), CHOSEN, None)
    spent, _ = price(Composed(tuple(events)), Fraction(0))
    assert Fraction(99, 100) < spent <= 1


def test_thresholds_reach_the_largest_number():
    usual = replace(CHOSEN, start=1.0, step=2 ** (1 / 3), reach=2.15)
    taus = [usual.searched(at) for at in range(COUNT)]
    assert taus == sorted(taus)
    assert taus[-1] == LARGEST


def test_the_lower_end_covers():
    graph = social_network(300, mean_degree=8, seed=2)
    truth = tulle.edges().truth(graph)
    covered = []
    for seed in range(60):
        r = tulle.release(graph, tulle.edges(), unit="node", epsilon=1, source=SeededSource(seed))
        assert r.mechanism == "sparse_vector"
        low, high = r.interval(0.8)
        covered.append(low <= truth)
        assert high == math.inf
    assert np.mean(covered) > 0.8 - 3 * math.sqrt(0.16 / len(covered))


def test_where_a_few_have_most_it_is_nearer_than_counting_levels():
    generator = np.random.default_rng(3)
    degrees = np.minimum(2 * (1 - generator.random(6000)) ** (-1 / 1.05), 1500).astype(int)
    ends = generator.permutation(np.repeat(np.arange(6000), degrees))[: degrees.sum() // 2 * 2]
    rows = np.unique(np.sort(ends.reshape(-1, 2), axis=1), axis=0)
    graph = Graph.from_edges(rows[rows[:, 0] < rows[:, 1]], nodes=6000)
    truth = tulle.edges().truth(graph)

    def off(name):
        terms = {"unit": "node", "epsilon": 1, "mechanism": name}
        drawn = [
            tulle.release(graph, tulle.edges(), **terms, source=SeededSource(seed)).value
            for seed in range(9)
        ]
        return np.median(np.abs(np.array(drawn) - truth))

    assert off("sparse_vector") < 0.6 * off("recursive")


@pytest.mark.parametrize(
    "options", [{"step": 1.0}, {"step": 1000}, {"start": 1e-12}, {"reach": 1e9}, {"stopping": 1.5}]
)
def test_settings_out_of_range_are_refused(options):
    graph = social_network(50, mean_degree=4, seed=2)
    terms = {"unit": "node", "epsilon": 1, "mechanism": "sparse_vector"}
    with pytest.raises(InputError):
        tulle.plan(graph, tulle.edges(), **terms, **options)
