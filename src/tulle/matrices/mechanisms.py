"""All mechanisms on binary matrices; importing this registers them."""

from tulle.matrices.cells import Cells
from tulle.matrices.columns import Columns
from tulle.matrices.coupled import CoupledNoise
from tulle.matrices.two_level import TwoLevel

__all__ = ["Cells", "Columns", "CoupledNoise", "TwoLevel"]
