"""The audit's view of the models that are made from degrees, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tulle.audit.kind import Description
from tulle.audit.laws import LaplaceVector
from tulle.audit.synthesis_case import SynthesisCase
from tulle.core.exact import rational
from tulle.core.mechanism import Parameters, Terms
from tulle.graphs.data import Graph
from tulle.graphs.isotonic import sorted_sequence
from tulle.graphs.queries import DegreeDistribution
from tulle.graphs.synthesis.degrees import FORMS
from tulle.graphs.synthesis.joint import classes_of
from tulle.graphs.synthesis.query import synthetic


def describe_one_k(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on every entry of the sorted sequence."""
    centre = tuple(sorted_sequence(FORMS[settings["form"]], graph).tolist())
    scale = rational(settings["scale"])
    law = LaplaceVector(centre, (scale,) * len(centre), Fraction(settings["sensitivity"]))
    return Description((("degrees", law),))


def describe_two_k(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe Laplace noise on the counts of nodes by degree and on every soft class cell."""
    counts = tuple(sorted_sequence(DegreeDistribution(), graph).tolist())
    cells = classes_of(settings).measure(graph, rational(settings["step"])).tolist()
    moved = rational(settings["joint_sensitivity"])
    return Description(
        (
            ("degrees", laplace(counts, rational(settings["scale"]), Fraction(2))),
            ("joint", laplace(cells, rational(settings["joint_scale"]), moved)),
        )
    )


def laplace(centre: Sequence[int], scale: Fraction, sensitivity: Fraction) -> LaplaceVector:
    """Return independent noise of one scale on every entry."""
    return LaplaceVector(tuple(centre), (scale,) * len(centre), sensitivity)


PAIR = Graph.from_edges([(0, 1)], nodes=2), Graph.from_edges([], nodes=2)
"""Two nodes, joined and not."""

DEGREE_CASES: dict[str, SynthesisCase] = {
    "synthetic_1k": SynthesisCase(
        (synthetic("1k"), synthetic("1k", form="sequence")), synthetic("1k"), describe_one_k
    ),
    "synthetic_2k": SynthesisCase(
        (
            synthetic("2k"),
            synthetic("2k", ratio=2, step="1/4"),
            synthetic("2k", step=1, joint_share="1/2"),
        ),
        synthetic("2k", step=1, joint_share="1/2"),
        describe_two_k,
        PAIR,
    ),
}
"""The cases of this family, by the name of the mechanism."""
