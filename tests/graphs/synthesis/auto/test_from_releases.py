"""Synthetic graphs from released numbers: what they keep, and that they look at nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError
from tulle.graphs.generators import social_network
from tulle.noise import SeededSource


@pytest.fixture(scope="module")
def released():
    """Releases per node at a budget at which there is hardly any noise."""
    graph = social_network(200, seed=1)
    asked = {"unit": "node", "epsilon": 400.0}
    return graph, {
        "degrees": tulle.release(
            graph, tulle.degree_distribution(), mechanism="projection", largest=60, **asked
        ),
        "edges": tulle.release(graph, tulle.edges(), **asked),
        "triangles": tulle.release(graph, tulle.triangles(), **asked),
        "largest": tulle.release(graph, tulle.max_degree(), **asked),
    }


def test_counts_are_kept(released):
    graph, found = released
    made = tulle.graph_from_releases(**found, source=SeededSource(1))
    assert made.edge_count == pytest.approx(graph.edge_count, rel=0.1)
    triangles = tulle.triangles()
    assert triangles.truth(made) == pytest.approx(found["triangles"].value, rel=0.15)
    # The same releases and the same random bits, the same graph: there is nothing else to look at.
    again = tulle.graph_from_releases(**found, source=SeededSource(1))
    assert np.array_equal(made.edges(), again.edges())


def test_edges_inside_groups_are_kept(released):
    _, found = released
    plain = {name: found[name] for name in ("degrees", "edges")}
    for share in (0.2, 0.8):
        # A count of edges inside groups, as subgraphs(..., where="a.group = b.group") releases it.
        within = tulle.Release(
            **{**vars(found["edges"]), "value": share * found["edges"].value, "query": "subgraphs"}
        )
        made = tulle.graph_from_releases(**plain, within=within, groups=4, source=SeededSource(2))
        inside = np.mean(made.edges()[:, 0] % 4 == made.edges()[:, 1] % 4)
        assert inside == pytest.approx(share, abs=0.12)


def test_other_releases_are_refused(released):
    _, found = released
    with pytest.raises(InputError, match="degree_distribution"):
        tulle.graph_from_releases(found["edges"])
    with pytest.raises(InputError, match="triangles"):
        tulle.graph_from_releases(found["degrees"], triangles=found["edges"])
