"""All mechanisms on genotypes; importing this registers them."""

from tulle.genomes.exponential import Exponential
from tulle.genomes.laplace import Laplace
from tulle.genomes.laplace_top import LaplaceTop
from tulle.genomes.one_shot import OneShot
from tulle.genomes.peeling import Peeling

__all__ = ["Exponential", "Laplace", "LaplaceTop", "OneShot", "Peeling"]
