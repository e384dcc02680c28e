"""How close a release is to the truth.

Everything here sees the true data: it is for the custodian who tries out what to publish, and for
benchmarks on public data.
"""

from tulle.metrics.betweenness import betweenness
from tulle.metrics.communities import (
    average_f1,
    cover_of,
    information_beyond_chance,
    mutual_information,
)
from tulle.metrics.comparison import PGB, Comparison, compare
from tulle.metrics.distances import Distances, measure_distances
from tulle.metrics.louvain import louvain, modularity
from tulle.metrics.portrait import Portrait, assortativity
from tulle.metrics.scores import divergence, relative_error, top_error

__all__ = [
    "PGB",
    "Comparison",
    "Distances",
    "Portrait",
    "assortativity",
    "average_f1",
    "betweenness",
    "compare",
    "cover_of",
    "divergence",
    "information_beyond_chance",
    "louvain",
    "measure_distances",
    "modularity",
    "mutual_information",
    "relative_error",
    "top_error",
]
