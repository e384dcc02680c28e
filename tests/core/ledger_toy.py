"""The least dataset, question and mechanism that a ledger can be tried with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Prediction
from tulle.core.query import Query
from tulle.core.unit import Unit


class Jar(Dataset):
    """A number of marbles."""

    kind = "jar"
    units = ("participant",)

    def facts(self, unit: Unit) -> Mapping[str, Any]:
        return {"most": 9}

    def neighbours(self, unit: Unit) -> Iterator[Dataset]:
        yield Jar()


@dataclass(frozen=True)
class Marbles(Query):
    colour: int = 0
    name: ClassVar[str] = "marbles"
    kind: ClassVar[str] = Jar.kind

    def truth(self, dataset: Any) -> int:
        return 4


class Shaker(Mechanism):
    """No privacy; each test file says how ``run`` draws, so that it can be watched."""

    name, kind, title, reference = "shake", Jar.kind, "adds bits", "none"

    def supports(self, query: Query, unit: Unit) -> bool:
        return True

    def settings(self, terms: Any, options: Any) -> dict[str, Any]:
        return {}

    def predict(self, terms: Any, settings: Any, like: Any) -> Prediction:
        return Prediction(None, None)
