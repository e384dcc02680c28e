"""The question about a relation: what do its tuples add up to?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tulle.core import registry
from tulle.core.query import Query
from tulle.relations.data import Relation


@dataclass(frozen=True)
class Total(Query):
    """The sum of all weights; with ``signed`` the weights may be negative."""

    signed: bool = False
    name: ClassVar[str] = "total"
    words: ClassVar[str] = "What do all tuples add up to?"
    quantity: ClassVar[str] = "total"
    kind: ClassVar[str] = "relation"
    integral: ClassVar[bool] = False

    def truth(self, dataset: Any) -> float:
        assert isinstance(dataset, Relation)
        return dataset.total if self.signed else dataset.parts()[0].total


@registry.register("query", "relation", "total")
def total(*, signed: bool = False) -> Total:
    """Ask for the sum of all weights; tuples of negative weight count only when ``signed``.

    Example:
        >>> total().truth(Relation.conjunctive([0, 1, 2], [0, 1], [2.0, 3.0]))
        5.0
    """
    return Total(signed)
