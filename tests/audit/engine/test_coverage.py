"""Predicted intervals cover the truth at least as often as they say."""

import copy
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from tulle.audit.graphs.kind import DESCRIBERS, QUESTIONS
from tulle.core import registry
from tulle.core.mechanism import Terms
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.graphs.generators import social_network

UNIT = Unit.of("edge")
LEVEL = 0.9
SIGNIFICANCE = 1e-6
CASES = [
    (mechanism.name, query)
    for mechanism in registry.mechanisms("graph").values()
    for query in QUESTIONS
    if mechanism.name in DESCRIBERS and mechanism.supports(query, UNIT)
]


@pytest.fixture(autouse=True)
def measured_once(monkeypatch):
    """Let questions compute their truth and their bounds once a graph: the draws are anew."""
    for kind in {type(query) for query in QUESTIONS}:
        for method in ("truth", "measure", "in_units", "spread"):
            if hasattr(kind, method):
                monkeypatch.setattr(kind, method, remembered(getattr(kind, method)))


def remembered(method):
    known = {}

    def once(self, graph, *more):
        key = self, id(graph), more
        if key not in known:
            # The graph is kept as well, so that nobody else gets its number.
            known[key] = graph, method(self, graph, *more)
        return copy.deepcopy(known[key][1])

    return once


def covered(name, query, graph, epsilon, runs):
    """Return how many of the runs have the truth inside their interval."""
    mechanism = registry.mechanisms("graph")[name]
    terms = Terms(query, UNIT, Fraction(epsilon), Fraction(1, 10**6), graph.facts(UNIT))
    settings = mechanism.settings(terms, {})
    guarantee = mechanism.guarantee(terms, settings)
    truth = query.truth(graph)
    hits = 0
    for _ in range(runs):
        outcome = mechanism.run(terms, settings, graph, None)
        answer = Release(
            value=outcome.value,
            query=str(query),
            mechanism=name,
            guarantee=guarantee,
            error=outcome.error,
            parameters={**settings, **outcome.details},
        )
        low, high = answer.interval(LEVEL)
        hits += bool(np.all((low <= truth) & (truth <= high)))
    return hits


@pytest.mark.parametrize(("name", "query"), CASES, ids=str)
def test_intervals_cover_on_a_small_network(name, query):
    runs = 60
    hits = covered(name, query, social_network(60, seed=5), "1", runs)
    assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, f"{hits} of {runs}"


LARGER = list(product(CASES, (300, 1000), ("0.2", "2")))
PARTS = 8


@pytest.mark.slow
@pytest.mark.timed(2)
@pytest.mark.parametrize("part", range(PARTS))
def test_intervals_cover(part, drawn):
    runs = 400
    for (name, query), nodes, epsilon in drawn.shuffled(LARGER[part::PARTS]):
        hits = covered(name, query, social_network(nodes, seed=nodes), epsilon, runs)
        said = f"{name}, {query}, {nodes} nodes, epsilon {epsilon}: {hits} of {runs}"
        assert binom.cdf(hits, runs, LEVEL) >= SIGNIFICANCE, said
