"""The largest degree per node: the first bound that few enough stick out of, by sparse vector."""

from __future__ import annotations

import math

import tulle
from tulle.graphs.generators import social_network
from tulle.graphs.mechanisms.degree_threshold import BOUNDS


def test_an_answer_has_a_lower_end_that_holds():
    graph = social_network(300, seed=4)
    truth = tulle.max_degree().truth(graph)
    missed = 0
    for _ in range(200):
        answer = tulle.release(graph, tulle.max_degree(), unit="node", epsilon=2.0)
        low, high = answer.interval(0.95)
        assert answer.value in BOUNDS
        assert 0 <= low <= answer.value
        assert high == math.inf
        missed += truth < low
    # At most a twentieth: 200 runs have more than 30 misses once in ten million.
    assert missed <= 30
