"""All mechanisms on graphs; importing this registers them."""

from tulle.graphs.bounded import Bounded
from tulle.graphs.decomposed import Decomposed
from tulle.graphs.direct import Direct
from tulle.graphs.isotonic import Isotonic
from tulle.graphs.ladder import Ladder, Steep
from tulle.graphs.laplace import Laplace
from tulle.graphs.recursive import GraphRace, GraphRecursive
from tulle.graphs.response import Response
from tulle.graphs.smooth import Smooth, SmoothPure
from tulle.graphs.spectra_power import Power, PowerPure
from tulle.graphs.spectra_response import SpectralResponse
from tulle.graphs.spectra_values import EigenLaplace

__all__ = [
    "Bounded",
    "Decomposed",
    "Direct",
    "EigenLaplace",
    "GraphRace",
    "GraphRecursive",
    "Isotonic",
    "Ladder",
    "Laplace",
    "Power",
    "PowerPure",
    "Response",
    "Smooth",
    "SmoothPure",
    "SpectralResponse",
    "Steep",
]
