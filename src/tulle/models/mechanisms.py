"""All mechanisms on tables of people; importing this registers them."""

from tulle.models.adassp import AdaSSP
from tulle.models.functional import Functional
from tulle.models.objective_gaussian import ObjectiveGaussian
from tulle.models.objective_laplace import ObjectiveLaplace

__all__ = ["AdaSSP", "Functional", "ObjectiveGaussian", "ObjectiveLaplace"]
