"""Differentially private release of linked data: graphs, joins, matrices.

Everything is imported when it is first used, so that ``import tulle`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tulle.core.registry import announce

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tulle import attacks, genomes, models, noise, surveys
    from tulle.core.errors import (
        BudgetError,
        InputError,
        LedgerError,
        QueryError,
        TulleError,
        UnitError,
    )
    from tulle.core.guarantee import Guarantee
    from tulle.core.ledger import Ledger
    from tulle.core.plan import Plan
    from tulle.core.progress import watching
    from tulle.core.release import Release
    from tulle.core.session import Session, release
    from tulle.core.unit import Unit
    from tulle.genomes.data import Genotypes
    from tulle.graphs.data import Graph
    from tulle.graphs.queries import (
        cliques,
        degree_distribution,
        degrees,
        edges,
        k_triangles,
        stars,
        triangles,
    )
    from tulle.graphs.response import topology
    from tulle.graphs.spectra import eigenvalues, low_rank, spectrum
    from tulle.graphs.statistics import (
        assortativity,
        average_clustering,
        clustering,
        modularity,
        transitivity,
    )
    from tulle.graphs.statistics_counts import (
        chains,
        degree_of,
        degree_squares,
        edges_within,
        triangles_at,
        triangles_per_node,
        triples_per_node,
    )
    from tulle.graphs.subgraph_queries import cycles, paths, subgraphs
    from tulle.graphs.synthesis.joint_query import joint_degrees
    from tulle.graphs.synthesis.query import synthetic
    from tulle.matrices.block_quantiles import block_bounds
    from tulle.matrices.contributions import Contributions
    from tulle.matrices.data import BinaryMatrix
    from tulle.matrices.queries import xor
    from tulle.matrices.weights import weights
    from tulle.metrics.comparison import compare
    from tulle.sql.data import Database
    from tulle.sql.queries import sql
    from tulle.surveys.data import Survey

_HOMES = {
    "tulle.core.errors": (
        "BudgetError",
        "InputError",
        "LedgerError",
        "QueryError",
        "TulleError",
        "UnitError",
    ),
    "tulle.core.guarantee": ("Guarantee",),
    "tulle.core.ledger": ("Ledger",),
    "tulle.core.plan": ("Plan",),
    "tulle.core.progress": ("watching",),
    "tulle.core.release": ("Release",),
    "tulle.core.session": ("Session", "release"),
    "tulle.core.unit": ("Unit",),
    "tulle.genomes.data": ("Genotypes",),
    "tulle.graphs.data": ("Graph",),
    "tulle.graphs.queries": (
        "cliques",
        "degree_distribution",
        "degrees",
        "edges",
        "k_triangles",
        "stars",
        "triangles",
    ),
    "tulle.graphs.response": ("topology",),
    "tulle.graphs.spectra": ("eigenvalues", "low_rank", "spectrum"),
    "tulle.graphs.statistics": (
        "assortativity",
        "average_clustering",
        "clustering",
        "modularity",
        "transitivity",
    ),
    "tulle.graphs.statistics_counts": (
        "chains",
        "degree_of",
        "degree_squares",
        "edges_within",
        "triangles_at",
        "triangles_per_node",
        "triples_per_node",
    ),
    "tulle.graphs.subgraph_queries": ("cycles", "paths", "subgraphs"),
    "tulle.graphs.synthesis.joint_query": ("joint_degrees",),
    "tulle.graphs.synthesis.query": ("synthetic",),
    "tulle.matrices.block_quantiles": ("block_bounds",),
    "tulle.matrices.contributions": ("Contributions",),
    "tulle.matrices.data": ("BinaryMatrix",),
    "tulle.matrices.queries": ("xor",),
    "tulle.matrices.weights": ("weights",),
    "tulle.metrics.comparison": ("compare",),
    "tulle.sql.data": ("Database",),
    "tulle.surveys.data": ("Survey",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

# Which room provides what; core looks here and imports nothing by itself.
announce("query", "graph", "tulle.graphs.queries")
announce("query", "graph", "tulle.graphs.response")
announce("query", "graph", "tulle.graphs.spectra")
announce("query", "graph", "tulle.graphs.statistics")
announce("query", "graph", "tulle.graphs.subgraph_queries")
announce("query", "graph", "tulle.graphs.synthesis.joint_query")
announce("query", "graph", "tulle.graphs.synthesis.query")
announce("query", "database", "tulle.sql.queries")
announce("mechanism", "database", "tulle.sql.mechanisms")
announce("mechanism", "graph", "tulle.graphs.mechanisms")
announce("mechanism", "graph", "tulle.graphs.synthesis.models")
announce("stand-in", "graph", "tulle.graphs.stand_in")
announce("law", "graph", "tulle.graphs.mechanisms")
announce("query", "relation", "tulle.relations.queries")
announce("mechanism", "relation", "tulle.relations.mechanisms")
announce("law", "relation", "tulle.relations.laws")
announce("value", "topology", "tulle.graphs.response")
announce("value", "spectrum", "tulle.graphs.spectra")
announce("value", "synthetic", "tulle.graphs.synthesis.graph")
announce("query", "matrix", "tulle.matrices.queries")
announce("mechanism", "matrix", "tulle.matrices.mechanisms")
announce("query", "contributions", "tulle.matrices.weights")
announce("query", "contributions", "tulle.matrices.block_quantiles")
announce("mechanism", "contributions", "tulle.matrices.mechanisms")
announce("law", "contributions", "tulle.matrices.blocks")
announce("law", "survey", "tulle.surveys.error_law")
announce("query", "genotypes", "tulle.genomes.queries")
announce("mechanism", "genotypes", "tulle.genomes.mechanisms")
announce("law", "genotypes", "tulle.genomes.top")
announce("query", "table", "tulle.models.queries")
announce("mechanism", "table", "tulle.models.mechanisms")
announce("law", "table", "tulle.models.error_law")

__all__ = [
    "BinaryMatrix",
    "BudgetError",
    "Contributions",
    "Database",
    "Genotypes",
    "Graph",
    "Guarantee",
    "InputError",
    "Ledger",
    "LedgerError",
    "Plan",
    "QueryError",
    "Release",
    "Session",
    "Survey",
    "TulleError",
    "Unit",
    "UnitError",
    "assortativity",
    "attacks",
    "average_clustering",
    "block_bounds",
    "chains",
    "cliques",
    "clustering",
    "compare",
    "cycles",
    "degree_distribution",
    "degree_of",
    "degree_squares",
    "degrees",
    "edges",
    "edges_within",
    "eigenvalues",
    "genomes",
    "joint_degrees",
    "k_triangles",
    "low_rank",
    "models",
    "modularity",
    "noise",
    "paths",
    "release",
    "spectrum",
    "sql",
    "stars",
    "subgraphs",
    "surveys",
    "synthetic",
    "topology",
    "transitivity",
    "triangles",
    "triangles_at",
    "triangles_per_node",
    "triples_per_node",
    "watching",
    "weights",
    "xor",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in __all__:
        return importlib.import_module(f"tulle.{name}")
    raise AttributeError(f"module 'tulle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
