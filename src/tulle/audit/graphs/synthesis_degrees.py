"""The audit's view of the models that are made from degrees, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tulle.audit.engine.kind import Description
from tulle.audit.engine.laws import Ladder, LaplaceVector
from tulle.audit.graphs.synthesis_case import Coarse, SynthesisCase
from tulle.core.mechanism import Parameters, Terms
from tulle.core.validate import rational
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.isotonic import sorted_sequence
from tulle.graphs.queries.counts import Triangles
from tulle.graphs.queries.degrees import DegreeDistribution
from tulle.graphs.synthesis.models.one_k import FORMS
from tulle.graphs.synthesis.models.two_five_k import class_triangles, class_widths, triangle_widths
from tulle.graphs.synthesis.models.two_k import classes_of
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


def describe_two_five_k(terms: Terms, settings: Parameters, graph: Graph) -> Description:
    """Describe the statistics of ``2k`` and a ladder for each count of triangles."""
    widths, most = class_widths(settings, graph)
    triangles = ladder_law(
        Triangles().truth(graph),
        triangle_widths(settings, graph),
        Triangles().cap(graph.node_count),
        settings,
    )
    rates = rational(settings["class_decay"]), rational(settings["class_smoothing"])
    classes = [
        (f"class {place}", Ladder(int(count), tuple(widths), most, *rates))
        for place, count in enumerate(class_triangles(settings, graph).tolist())
    ]
    parts = (*describe_two_k(terms, settings, graph).parts, ("triangles", triangles), *classes)
    return Description(tuple((name, Coarse(law)) for name, law in parts))


def ladder_law(truth: int, widths: Sequence[int], most: int, settings: Parameters) -> Ladder:
    """Return a ladder with the rates that the settings say."""
    rates = rational(settings["decay"]), rational(settings["smoothing"])
    return Ladder(int(truth), tuple(widths), most, *rates)


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
    "synthetic_2.5k": SynthesisCase(
        (synthetic("2.5k"), synthetic("2.5k", step=1, ratio=2, class_ratio=2)),
        synthetic("2.5k", step=1, ratio=2, class_ratio=2),
        describe_two_five_k,
        PAIR,
    ),
}
"""The cases of this family, by the name of the mechanism."""
