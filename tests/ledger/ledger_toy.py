"""The least dataset, question and mechanism that a ledger can be tried with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Prediction
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.ledger import store_file
from tulle.ledger.chain import answer_name, canonical, compute_digest
from tulle.ledger.store import Store


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


def long_ledger(
    path: Path, count: int, *, accounts: int = 1, price: str = "0.1"
) -> tuple[Store, str]:
    """Make a ledger with so many more entries: debits and their answers in turn, account by turn.

    It is written as :class:`Store` writes, without a transaction for each; return the last digest.
    """
    store = Store(path)
    guarantee = {"epsilon": price, "delta": "0"}
    head = store.head()
    previous = head.digest
    names = store.accounts() or [f"a{place}" for place in range(accounts)]
    totals = [store.read(name, lambda view: view.totals) for name in names]
    last = dict.fromkeys(names, "")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        for number in range(head.count + 1, head.count + count + 1):
            place = (number // 2) % len(names)
            kind, key = ("debit", "release")[number % 2], f"question {number // 2}"
            body: dict[str, Any] = {"key": key}
            if kind == "debit":
                body |= {"question": key, "guarantee": guarantee}
            totals[place] = totals[place].after(kind, body)
            text = canonical({**body, "totals": totals[place].to_json()})
            row = (number, kind, names[place], "2030-01-01T00:00:00", text, previous)
            previous = last[names[place]] = compute_digest(*row)
            connection.execute(store_file.INSERT, (*row, previous))
            if kind == "release":
                name = answer_name(names[place], key)
                connection.execute("INSERT INTO answers VALUES (?, ?)", (name, number))
        connection.execute("UPDATE head SET count = ?, digest = ?", (number, previous))
        for name, total in zip(names, totals, strict=True):
            noted = (name, total.entries, last[name])
            connection.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?)", noted)
    return store, previous
