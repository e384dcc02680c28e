"""The audit's view of the models that are made from degrees, in closed form."""

from __future__ import annotations

from fractions import Fraction

from tulle.audit.kind import Description
from tulle.audit.laws import LaplaceVector
from tulle.audit.synthesis_case import SynthesisCase
from tulle.core.exact import rational
from tulle.core.mechanism import Parameters, Terms
from tulle.graphs.data import Graph
from tulle.graphs.isotonic import sorted_sequence
from tulle.graphs.synthesis.degrees import FORMS
from tulle.graphs.synthesis.query import synthetic


def describe_one_k(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every entry of the sorted sequence."""
    centre = tuple(sorted_sequence(FORMS[settings["form"]], graph).tolist())
    scale = rational(settings["scale"])
    law = LaplaceVector(centre, (scale,) * len(centre), Fraction(settings["sensitivity"]))
    return Description((("degrees", law),))


DEGREE_CASES: dict[str, SynthesisCase] = {
    "synthetic_1k": SynthesisCase(
        (synthetic("1k"), synthetic("1k", form="sequence")), synthetic("1k"), describe_one_k
    ),
}
"""The cases of this family, by the name of the mechanism."""
