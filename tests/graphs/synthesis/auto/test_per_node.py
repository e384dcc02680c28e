"""A synthetic graph per node: put together from its parts, and from nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.core.query import parse
from tulle.core.registry import find
from tulle.graphs.generators import social_network


def test_counts_are_kept_and_the_price_is_that_of_the_parts() -> None:
    graph = social_network(200, seed=1)
    made = tulle.release(graph, tulle.synthetic_per_node(), unit="node", epsilon=200.0)
    assert made.value.edge_count == pytest.approx(graph.edge_count, rel=0.1)
    assert tulle.triangles().truth(made.value) == pytest.approx(
        tulle.triangles().truth(graph), rel=0.3
    )
    assert made.guarantee.epsilon == sum(part.guarantee.epsilon for part in made.parts.values())
    assert made.guarantee.unit.base == "node"
    # The same releases, the same graph: there is nothing else to look at.
    again, _ = tulle.synthetic_per_node().assemble(made.parts)
    assert np.array_equal(again.edges(), made.value.edges())


def test_edges_inside_groups_are_kept() -> None:
    pairs = [(4 * i + a, 4 * j + a) for i in range(20) for j in range(i) for a in range(4)]
    graph = tulle.Graph.from_edges(pairs, nodes=80).with_attributes(
        nodes={"team": [node % 4 for node in range(80)]}, kinds={"team": "number"}
    )
    question = tulle.synthetic_per_node("team", 4)
    made = tulle.release(graph, question, unit="node", epsilon=400.0)
    ends = made.value.edges() % 4
    assert np.mean(ends[:, 0] == ends[:, 1]) > 0.8
    plain = tulle.release(graph, tulle.synthetic_per_node(), unit="node", epsilon=400.0)
    ends = plain.value.edges() % 4
    assert np.mean(ends[:, 0] == ends[:, 1]) < 0.5


def test_questions_are_written_as_they_are_read() -> None:
    for question in (tulle.synthetic_per_node(), tulle.synthetic_per_node("team", 4)):
        assert parse(str(question), find("query", "graph")) == question
    with pytest.raises(InputError, match="both or none"):
        tulle.synthetic_per_node("team")
    graph = tulle.Graph.from_edges([(0, 1)], nodes=2)
    with pytest.raises(QueryError, match="team"):
        tulle.plan(graph, tulle.synthetic_per_node("team", 4), unit="node", epsilon=1.0)


def test_there_is_a_graph_also_where_the_noisy_counts_say_nobody() -> None:
    """On graphs of up to three nodes many draws failed after the price, and without nodes all."""
    nobody = tulle.Graph.from_edges(np.empty((0, 2), dtype=np.int64), nodes=0)
    made = tulle.release(nobody, tulle.synthetic_per_node(), unit="node", epsilon=100.0)
    assert made.value.edge_count == 0
