"""What is measured of made-up graphs, once: budgets and questions share it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tulle.core.dataset import Dataset
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.ladder import smooth_widths
from tulle.graphs.queries.counts import ProfiledCount
from tulle.graphs.sensitivity.counts import LocalSensitivity

_KEPT = 80_000
"""How many measurements are remembered: two questions on all graphs of six nodes."""

_memory: dict[Hashable, Any] = {}


def graph_key(graph: Dataset) -> Hashable:
    """Return what tells graphs apart: their records. For made-up graphs only."""
    assert isinstance(graph, Graph)
    indptr, indices = graph.csr()
    return indptr.tobytes(), indices.tobytes()


def once(graph: Graph, what: Hashable, measure: Callable[[], Any]) -> Any:
    """Return a measurement of a graph, from memory if there is one."""
    key = what, graph_key(graph)
    if key not in _memory:
        if len(_memory) >= _KEPT:
            _memory.clear()
        _memory[key] = measure()
    return _memory[key]


def measured(query: ProfiledCount, graph: Graph, length: int) -> tuple[int, LocalSensitivity]:
    """Return a graph's true count, profile and spread."""
    # No mechanism looks further than this; a shorter profile is the start of a longer one.
    truth, whole = once(
        graph,
        query,
        lambda: (int(query.truth(graph)), query.measure(graph, 2 * graph.node_count + 2)),
    )
    return truth, whole._replace(profile=whole.profile[:length])


@lru_cache(maxsize=4096)
def steepened(profile: tuple[int, ...], most: int, smoothing: Fraction) -> tuple[int, ...]:
    """Return the widths of a ladder that may grow no faster than this."""
    return tuple(smooth_widths(list(profile), most, smoothing))
