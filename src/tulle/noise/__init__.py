"""The only package that draws randomness: exact samplers on integers and lattices."""

from tulle.core.public import exports

# These have the names of their modules, which would stand for them once imported.
from tulle.noise.bernoulli import bernoulli as bernoulli
from tulle.noise.post_processing import post_processing as post_processing

__getattr__, __dir__ = exports(__name__)
