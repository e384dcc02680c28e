"""What the tests of synthetic graphs share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import tulle
from tulle.core.mechanism import Terms
from tulle.core.unit import Unit
from tulle.graphs.generators import all_graphs

EDGE = Unit.of("edge")


def most_moved(nodes, count):
    """Return the most that one edge moves a count in L1, over all graphs and neighbours."""
    known = {}

    def at(graph):
        key = graph.edges().tobytes()
        if key not in known:
            known[key] = np.atleast_1d(count(graph))
        return known[key]

    return max(
        int(np.abs(at(graph) - at(other)).sum())
        for graph in all_graphs(nodes)
        for other in graph.neighbours("edge")
    )


def terms_for(graph, query, epsilon):
    return Terms(query, EDGE, Fraction(epsilon), Fraction(0), graph.facts(EDGE))


def release(graph, model, epsilon, **options):
    return tulle.release(graph, tulle.synthetic(model, **options), unit="edge", epsilon=epsilon)
