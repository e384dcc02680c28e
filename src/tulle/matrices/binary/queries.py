"""The question about a matrix of zeros and ones: release all of it, noisy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt

from tulle.core import registry
from tulle.core.errors import QueryError
from tulle.core.labels import Axis
from tulle.core.public import public
from tulle.core.query import Query, Shape
from tulle.matrices.binary.data import BinaryMatrix
from tulle.matrices.binary.families import Family, read_entries

Entries = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True)
class Xor(Query):
    """The whole matrix, each cell of which may be flipped by noise of the family named."""

    family: str
    entries: Entries | None = None
    """For ``general``: the entries (i, j, value as exact text) of Π with i <= j."""
    size: int | None = None
    """For ``general``: how many rows Π has."""
    name: ClassVar[str] = "xor"
    words: ClassVar[str] = (
        "The whole matrix of zeros and ones; each cell may have been flipped by chance."
    )
    quantity: ClassVar[str] = "cell"
    kind: ClassVar[str] = "matrix"
    shape: ClassVar[Shape] = "object"

    def truth(self, dataset: BinaryMatrix) -> npt.NDArray[np.uint8]:
        return dataset.to_numpy()

    def axes(self, public: Any, parameters: Mapping[str, Any]) -> tuple[Axis, ...]:
        return Axis("row"), Axis("column")

    def asked_of(self, kind: str) -> Query:
        """Return the question for a graph: one bit for each pair of nodes, flipped once.

        Raises:
            QueryError: for a family that has no form for a graph.
        """
        if kind != "graph":
            return self
        if self.family != "optimal":
            raise QueryError(
                f"{self} is for a matrix of rows and columns. Of a graph ask tulle.xor(), which "
                "flips each pair of nodes once and is the best there is."
            )
        whole: Query = registry.find("query", "graph")["topology"]()
        return whole

    def canonical(self) -> dict[str, Any]:
        found: dict[str, Any] = {"query": self.name, "family": self.family}
        if self.entries is not None:
            found |= {"size": self.size, "entries": [list(entry) for entry in self.entries]}
        return found

    def __str__(self) -> str:
        if self.entries is not None:
            # The matrix may be long; its digest still tells two questions apart.
            digest = hashlib.sha256(json.dumps(self.canonical()).encode()).hexdigest()[:12]
            return f"xor({self.family}, pi={self.size}x{self.size}:{digest})"
        return f"xor({self.family})"


@public("Publish a matrix")
@registry.register("query", "matrix", "xor")
def xor(family: Family = "optimal", *, pi: Any = None) -> Xor:
    """Ask for the whole matrix, with noise XORed onto its cells.

    ``optimal`` flips the fewest cells that the guarantee allows. ``general`` draws the noise b with
    weight exp(b'Πb) for a public symmetric matrix ``pi``: one row and column of it for each cell of
    a row (then rows get independent noise) or for each cell of the matrix, row by row. Only the
    shape of ``pi`` counts: it is scaled so that the budget asked for is used up.

    Asked of a graph, per edge, ``optimal`` flips each pair of nodes once, as ``topology`` does.

    Raises:
        QueryError: when the family is not known, or ``pi`` and ``general`` do not come together.
        InputError: when ``pi`` is not a symmetric matrix of finite numbers.

    Example:
        >>> str(xor())
        'xor(optimal)'
    """
    if family not in get_args(Family):
        known = ", ".join(get_args(Family))
        raise QueryError(f"There is no noise family {family!r}. Known: {known}.")
    if (pi is not None) != (family == "general"):
        raise QueryError("The family 'general' needs pi=, and no other family takes it.")
    if family == "general":
        size, entries = read_entries(pi)
        return Xor(family, entries=entries, size=size)
    return Xor(family)
