"""The question for joint degrees: how many edges join nodes of each two degrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tulle.core import registry, validate
from tulle.core.arrays import Wholes
from tulle.core.errors import InputError, QueryError
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.core.validate import Number, counted, text
from tulle.graphs.data import Graph
from tulle.graphs.facts import EdgeFacts
from tulle.graphs.kernels.counts import degrees

LARGEST_GRID = 1 << 25
"""Every cell gets noise and is released; more cells than this are 256 megabytes."""


@dataclass(frozen=True)
class JointDegreeQuery(Query):
    """How many edges join nodes of each two degrees, on a public grid: one number per cell.

    The cells are the upper half of a matrix over classes of degrees, row by row. The classes are
    1, 2, ... up to ``most`` and, unless no degree can be larger, one more for all above.
    """

    most: int | None = None
    name: ClassVar[str] = "joint_degrees"
    words: ClassVar[str] = "How many links join a node of one degree with a node of another?"
    quantity: ClassVar[str] = "links"
    kind: ClassVar[str] = "graph"
    shape: ClassVar[Shape] = "vector"

    def __post_init__(self) -> None:
        if self.most is not None:
            object.__setattr__(self, "most", validate.whole(most=self.most, at_least=1))

    def __str__(self) -> str:
        return f"{self.name}()" if self.most is None else f"{self.name}(most={self.most})"

    def classes(self, nodes: int) -> int:
        """Return how many classes of degrees there are on so many nodes.

        Raises:
            QueryError: when the grid would be too large.
        """
        largest = max(nodes - 1, 1)
        count = largest if self.most is None or self.most >= largest else self.most + 1
        if count * (count + 1) // 2 > LARGEST_GRID:
            raise QueryError(
                f"{self} on {counted(nodes, 'node')} has "
                f"{counted(count * (count + 1) // 2, 'cell')}, and each gets "
                f"noise; at most {LARGEST_GRID:,} are handled. Declare a degree above which all "
                "are one class, joint_degrees(most=100), or use a coarse grid, "
                "joint_degrees(ratio=4)."
            )
        return count

    def edge_sensitivity(self, nodes: int) -> int:
        """Return the most that one edge moves all cells together.

        Joining i and j, of degrees d_i and d_j before, moves each of their edges from one cell to
        another and adds one: 2·(d_i + d_j) + 1. Degrees are at most n - 2 before, and a node
        above ``most`` stays in its class.
        """
        most = nodes - 2 if self.most is None else min(self.most, nodes - 2)
        return 4 * max(most, 0) + 1

    def truth(self, dataset: Graph) -> Wholes:
        count = self.classes(dataset.node_count)
        ends = np.minimum(degrees(dataset)[dataset.edges()], count) - 1
        low, high = ends.min(axis=1), ends.max(axis=1)
        # Row a of the upper half starts after count + (count - 1) + ... cells.
        cell = low * (2 * count - low + 1) // 2 + high - low
        return np.bincount(cell, minlength=count * (count + 1) // 2).astype(np.int64)

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        if not isinstance(public, EdgeFacts):
            return ()
        count = self.classes(public.nodes)
        above = self.most is not None and self.most < max(public.nodes - 1, 1)
        last = f"{count} or more" if above else count
        return (Axis("degree", [*range(1, count), last], paired="other degree"),)


@dataclass(frozen=True)
class SoftJointDegreeQuery(Query):
    """Joint degrees on a coarse grid with soft classes; see ``joint_classes``."""

    ratio: str
    name: ClassVar[str] = "joint_degrees"
    words: ClassVar[str] = (
        "How many links join a node of about one degree with a node of about another?"
    )
    quantity: ClassVar[str] = "links"
    kind: ClassVar[str] = "graph"
    shape: ClassVar[Shape] = "vector"
    integral: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ratio = validate.positive(ratio=self.ratio)
        if ratio < Fraction(3, 2):
            raise InputError(f"ratio must be at least 1.5; got {text(ratio)}.")
        object.__setattr__(self, "ratio", text(ratio))

    def __str__(self) -> str:
        return f"{self.name}(ratio={self.ratio})"

    def truth(self, dataset: Graph) -> npt.NDArray[np.float64]:
        from tulle.graphs.synthesis.joint_degrees.classes import soft_classes

        step = Fraction(1, 2**20)
        classes = soft_classes(dataset.node_count, Fraction(self.ratio))
        return (classes.measure(dataset, step) * float(step)).astype(np.float64)

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        if not isinstance(public, EdgeFacts):
            return ()
        from tulle.graphs.synthesis.joint_degrees.classes import soft_classes

        # The degree that belongs most to a class stands for it.
        classes = soft_classes(public.nodes, Fraction(self.ratio))
        belongs = classes.memberships(np.arange(1, len(classes.lower) + 1))
        centres = [f"about {1 + int(place)}" for place in belongs.argmax(axis=0)]
        return (Axis("degree", centres, paired="other degree"),)


@public("Describe a graph")
@registry.register("query", "graph", "joint_degrees")
def joint_degrees(
    most: int | None = None, *, ratio: Number | None = None
) -> JointDegreeQuery | SoftJointDegreeQuery:
    """Ask how many edges join nodes of each two degrees: the 2K distribution.

    Without arguments every pair of degrees from 1 to n - 1 is a cell. ``most`` declares a degree
    above which all are one class. ``ratio`` makes the grid coarse: soft classes at 1 and n - 1
    and at least this ratio apart between, where one edge moves very little.

    The answer is the upper half of a symmetric matrix, row by row; :func:`matrix_of` unfolds it.

    Raises:
        InputError: when both are given, or one is out of range.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)], nodes=4)
        >>> matrix_of(joint_degrees(2).truth(path)).tolist()
        [[0, 2, 0], [2, 1, 0], [0, 0, 0]]
    """
    if ratio is None:
        return JointDegreeQuery(most)
    if most is not None:
        raise InputError("joint_degrees takes most= or ratio=, not both.")
    return SoftJointDegreeQuery(text(validate.positive(ratio=ratio)))


def matrix_of(cells: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return released joint degrees as a symmetric matrix; the diagonal counts edges once.

    Example:
        >>> matrix_of(np.array([1, 2, 3])).tolist()
        [[1, 2], [2, 3]]
    """
    count = (int(np.sqrt(8 * len(cells) + 1)) - 1) // 2
    matrix = np.zeros((count, count), dtype=cells.dtype)
    rows, columns = np.triu_indices(count)
    matrix[rows, columns] = cells
    matrix[columns, rows] = cells
    return matrix
