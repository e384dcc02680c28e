"""All mechanisms on binary matrices and on contributions; importing this registers them."""

from tulle.matrices.block_gaussian import BlockGaussian
from tulle.matrices.block_laplace import BlockLaplace
from tulle.matrices.block_quantiles import BlockQuantiles
from tulle.matrices.cells import Cells
from tulle.matrices.columns import Columns
from tulle.matrices.coupled import CoupledNoise
from tulle.matrices.two_level import TwoLevel

__all__ = [
    "BlockGaussian",
    "BlockLaplace",
    "BlockQuantiles",
    "Cells",
    "Columns",
    "CoupledNoise",
    "TwoLevel",
]
