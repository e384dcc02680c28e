"""A public graph to predict typical errors on, when the user declares none."""

from __future__ import annotations

from functools import lru_cache

from tulle.core import registry
from tulle.core.dataset import Facts
from tulle.core.unit import Unit
from tulle.graphs.data import Graph
from tulle.graphs.generators import social_network

_LARGEST = 5_000
"""Above this many nodes a smaller network stands in: errors follow its densest places."""


@registry.register("stand-in", "graph", "social network")
def stand_in(unit: Unit, facts: Facts) -> tuple[Graph, str] | None:
    """Return a generated social network of about the public size, and what to call it."""
    nodes = int(facts.get("nodes", 1_000))
    if nodes < 10:
        return None
    size = min(nodes, _LARGEST)
    return _network(size), f"a generated social network of {size:,} nodes; pass like= for your own"


@lru_cache(maxsize=8)
def _network(nodes: int) -> Graph:
    return social_network(nodes, mean_degree=min(16.0, (nodes - 1) / 2), seed=2)
