"""All mechanisms on graphs; importing this registers them."""

from tulle.graphs.bounded import Bounded
from tulle.graphs.decomposed import Decomposed
from tulle.graphs.direct import Direct
from tulle.graphs.isotonic import Isotonic
from tulle.graphs.ladder import Ladder, Steep
from tulle.graphs.laplace import Laplace
from tulle.graphs.projection import Projection
from tulle.graphs.recursive import GraphRace, GraphRecursive
from tulle.graphs.response import Response
from tulle.graphs.smooth import Smooth, SmoothPure
from tulle.graphs.spectra_bingham import Bingham
from tulle.graphs.spectra_gauss import Gauss
from tulle.graphs.spectra_power import Power, PowerPure
from tulle.graphs.spectra_response import SpectralResponse
from tulle.graphs.spectra_values import EigenLaplace
from tulle.graphs.spectra_values_gauss import EigenGauss

__all__ = [
    "Bingham",
    "Bounded",
    "Decomposed",
    "Direct",
    "EigenGauss",
    "EigenLaplace",
    "Gauss",
    "GraphRace",
    "GraphRecursive",
    "Isotonic",
    "Ladder",
    "Laplace",
    "Power",
    "PowerPure",
    "Projection",
    "Response",
    "Smooth",
    "SmoothPure",
    "SpectralResponse",
    "Steep",
]
