"""What a model of synthetic graphs tells the audit about its private part."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from tulle.audit.kind import Description
from tulle.core.mechanism import Parameters, Terms
from tulle.core.query import Query
from tulle.graphs.data import Graph


class SynthesisCase(NamedTuple):
    """One model's case."""

    questions: tuple[Query, ...]
    """The questions on which all claims and output distributions are examined."""

    drawn: Query
    """The question on which runs are drawn; one of the questions."""

    describe: Callable[[Terms, Parameters, Graph], Description]
    """The closed form of the private part: one law for each statistic, in order."""

    small: tuple[Graph, Graph] | None = None
    """Two tiny neighbours to draw on; None for a path of three nodes and one edge of it."""

    finish: Callable[[Terms, Parameters], Callable[[tuple[Any, ...]], Hashable]] | None = None
    """How drawn parts become the flat tuple of statistics; None when they just stand in a row."""
