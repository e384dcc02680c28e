"""A graph that was made up from private statistics: public, and not sealed."""

import json
import pickle

import pytest

from tulle.core import codec
from tulle.core.errors import InputError, SealedError
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.graph import SyntheticGraph


def test_a_synthetic_graph_is_public_and_a_sealed_one_is_not():
    made = SyntheticGraph.from_edges([(0, 1), (1, 2)], nodes=5)
    assert pickle.loads(pickle.dumps(made)) == made
    assert codec.decode(json.loads(json.dumps(codec.encode(made)))) == made
    assert "3 nodes" not in repr(made)
    assert "5 nodes, 2 edges" in repr(made)
    sealed = Graph.from_edges([(0, 1)], nodes=2)
    with pytest.raises(InputError, match="no JSON form"):
        codec.encode(sealed)
    with pytest.raises(SealedError):
        pickle.dumps(sealed)
    broken = codec.encode(made)
    broken["value"]["edges"] = 3
    with pytest.raises(InputError, match="edges that it counts"):
        codec.decode(broken)
