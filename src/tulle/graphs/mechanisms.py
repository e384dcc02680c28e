"""All mechanisms on graphs; importing this registers them."""

from tulle.graphs.isotonic import Isotonic
from tulle.graphs.ladder import Ladder, Steep
from tulle.graphs.laplace import Laplace
from tulle.graphs.recursive import GraphRace, GraphRecursive
from tulle.graphs.response import Response
from tulle.graphs.smooth import Smooth, SmoothPure

__all__ = [
    "GraphRace",
    "GraphRecursive",
    "Isotonic",
    "Ladder",
    "Laplace",
    "Response",
    "Smooth",
    "SmoothPure",
    "Steep",
]
