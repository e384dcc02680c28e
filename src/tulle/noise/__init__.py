"""The only room that draws randomness: exact samplers on integers and lattices."""

from tulle.noise.afterwards import Random, afterwards
from tulle.noise.bernoulli import bernoulli, bernoulli_exp
from tulle.noise.gaussian import discrete_gaussian
from tulle.noise.geometric import geometric
from tulle.noise.heavy import heavy_tailed, heavy_tailed_quantile
from tulle.noise.laplace import discrete_laplace, rounded_laplace
from tulle.noise.lattice import Lattice, laplace_on_lattice
from tulle.noise.opendp_backend import backend
from tulle.noise.select import choose_log_weights, exponential, permute_and_flip
from tulle.noise.source import SeededSource, SystemSource, TapeExhausted, TapeSource, system
from tulle.noise.uniform import permutation, shuffle, uniform_below

__all__ = [
    "Lattice",
    "Random",
    "SeededSource",
    "SystemSource",
    "TapeExhausted",
    "TapeSource",
    "afterwards",
    "backend",
    "bernoulli",
    "bernoulli_exp",
    "choose_log_weights",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "geometric",
    "heavy_tailed",
    "heavy_tailed_quantile",
    "laplace_on_lattice",
    "permutation",
    "permute_and_flip",
    "rounded_laplace",
    "shuffle",
    "system",
    "uniform_below",
]
