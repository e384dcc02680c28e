"""The audit's view of synthetic graphs: their private statistics, in closed form.

The graph that leaves is made from the statistics by ordinary random numbers, so the statistics
are all that depends on the data. A case describes each statistic, in the order in which the model
measures them, as one independent law. Models of one family keep their cases in a file of their
own, and this file gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from tulle.audit.engine.kind import Description
from tulle.audit.graphs.joint import DRAWN_JOINT, JOINT, JOINT_DESCRIBERS, finish_joint, is_joint
from tulle.audit.graphs.synthesis_case import COARSE, SynthesisCase, coarse
from tulle.audit.graphs.synthesis_degrees import DEGREE_CASES, PAIR
from tulle.audit.graphs.synthesis_models import MODEL_CASES
from tulle.core import codec
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.joint_degrees.queries import SoftJointDegreeQuery
from tulle.graphs.synthesis.model import Model
from tulle.graphs.synthesis.query import Synthetic

CASES: dict[str, SynthesisCase] = {**DEGREE_CASES, **MODEL_CASES}
"""The case of each model, by the name of its mechanism."""

UNLABELLED_MODELS = (*DEGREE_CASES, "synthetic_kronecker")
"""Models whose statistics do not depend on the numbers of the nodes."""

SYNTHESIS: tuple[Query, ...] = (*JOINT, *(q for case in CASES.values() for q in case.questions))
"""The questions of the audit about synthetic graphs and joint degrees."""

DRAWN_SYNTHESIS: tuple[Query, ...] = (*DRAWN_JOINT, *(case.drawn for case in CASES.values()))

SYNTHESIS_DESCRIBERS: dict[str, Callable[[Terms, Parameters, Graph], Description]] = {
    **JOINT_DESCRIBERS,
    **{name: case.describe for name, case in CASES.items()},
}


def is_synthesis(query: Query) -> bool:
    """Say whether a question is for a synthetic graph, or for joint degrees."""
    return isinstance(query, Synthetic) or is_joint(query)


def small_for(query: Query) -> tuple[Graph, Graph]:
    """Return two tiny neighbours on which a model's statistics take few values."""
    if isinstance(query, SoftJointDegreeQuery):
        return PAIR
    for case in CASES.values():
        if query in case.questions and case.small is not None:
            return case.small
    return Graph.from_edges([(0, 1), (1, 2)], nodes=3), Graph.from_edges([(0, 1)], nodes=3)


def see_statistics(outcome: Outcome) -> Hashable:
    """Return the private statistics of a run as one flat tuple, in order."""
    statistics = codec.decode(outcome.details["statistics"])
    seen = tuple(_flat(statistics))
    return tuple(map(coarse, seen)) if COARSE in statistics else seen


def draw_statistics(
    model: Model, terms: Terms, settings: Parameters, graph: Graph
) -> Callable[..., Outcome]:
    """Return how runs are drawn: what is measured, without the graph that is made of it alone."""

    def run(source: Source | None = None) -> Outcome:
        measured = dict(model.measure(terms, settings, graph, source))
        return Outcome(None, None, {"statistics": codec.encode(measured)})

    return run


def finish_statistics(
    name: str, mechanism: Mechanism, terms: Terms, settings: Parameters
) -> Callable[[tuple[Any, ...]], Hashable]:
    """Return how drawn parts become the flat tuple: side by side, unless the case says else."""
    if is_joint(terms.query):
        return finish_joint(terms, settings)
    own = CASES[name].finish
    if own is not None:
        return own(terms, settings)
    return lambda parts: tuple(_flat(list(parts)))


def _flat(value: Any) -> Iterator[Hashable]:
    if isinstance(value, dict):
        value = list(value.values())
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _flat(entry)
    else:
        yield value
