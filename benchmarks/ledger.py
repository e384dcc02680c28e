"""How long a question waits for its ledger, after 10^3 to 10^6 entries; the disk's part apart."""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import tulle
from benchmarks.common import print_table
from tulle.core.guarantee import Guarantee
from tulle.core.release import Release
from tulle.ledger import store_file
from tulle.ledger.chain import answer_name, canonical, compute_digest
from tulle.ledger.ledger import Ledger

SIZES = (10**3, 10**4, 10**5, 10**6)
ASKS = 11


MINUTE: dict[str, Any] = {
    "SIZES": (100,),
    "ASKS": 2,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the median time of booking and keeping, of a kept answer and of what is left."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    rows = []
    for size in SIZES:
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            rows.append(measure(Path(folder) / "study.ledger", size))
    print_table("A ledger in memory: milliseconds by number of entries", rows)


def measure(path: Path, size: int) -> dict[str, Any]:
    """Return the times with so many entries in one account."""
    ledger = Ledger(path)
    pair = tulle.Graph.from_edges([(0, 1)], nodes=2)
    ledger.open("friends", pair, unit="edge", epsilon=10_000)
    fill(path, size)
    price = Guarantee.of("edge", epsilon=Fraction(1, 1000))
    answer = Release(1, "edges", "none", price, None)
    booking, finding, looking = [], [], []
    for step in range(ASKS):
        key = {"question": step}
        start = time.perf_counter()
        debit, _ = ledger.book("friends", "edges", key, price)
        ledger.keep("friends", debit, key, answer)
        booking.append(time.perf_counter() - start)
        start = time.perf_counter()
        ledger.book("friends", "edges", key, price)
        finding.append(time.perf_counter() - start)
        start = time.perf_counter()
        ledger.remaining("friends")
        looking.append(time.perf_counter() - start)
    return {
        "entries": f"{size:,}",
        "book and keep": 1000 * statistics.median(booking),
        "a kept answer": 1000 * statistics.median(finding),
        "what is left": 1000 * statistics.median(looking),
    }


def fill(path: Path, count: int) -> None:
    """Append debits and answers as a ledger writes them, in one transaction."""
    ledger = Ledger(path)
    (name,) = (account.name for account in ledger.accounts())
    head, totals = ledger.head(), ledger._store.read(name, lambda view: view.totals)
    previous, number = head.digest, head.count
    guarantee = {"epsilon": "0.001", "delta": "0"}
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in range(head.count + 1, head.count + count + 1):
            kind, key = ("debit", "release")[number % 2], f"question {number // 2}"
            body = {"key": key, "question": key, "guarantee": guarantee}
            totals = totals.after(kind, body)
            text = canonical({**body, "totals": totals.to_json()})
            row = (number, kind, name, "2030-01-01T00:00:00", text, previous)
            previous = compute_digest(*row)
            connection.execute(store_file.INSERT, (*row, previous))
            if kind == "release":
                noted = (answer_name(name, key), number)
                connection.execute("INSERT INTO answers VALUES (?, ?)", noted)
        connection.execute("UPDATE head SET count = ?, digest = ?", (number, previous))
        connection.execute("UPDATE accounts SET count = ?, digest = ?", (totals.entries, previous))


if __name__ == "__main__":
    main()
