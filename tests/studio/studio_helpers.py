"""A real studio in a process of its own, and made-up data for it."""

from __future__ import annotations

import csv
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tulle.core.errors import InputError
from tulle.studio.data_worker import DataWorker

PATIENCE = 300
"""Seconds to wait for what comes at once on an idle machine."""


class RunningStudio:
    """``tulle studio`` as a user starts it; its link is read off what it prints."""

    def __init__(self, *sources: str | Path, ledger: Path) -> None:
        command = [sys.executable, "-m", "tulle.cli.main", "studio", *map(str, sources)]
        self._process = subprocess.Popen(
            [*command, "--ledger", str(ledger), "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.printed: list[str] = []
        self.link = self._read_link()
        self.address = self.link.partition("/?")[0]
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def _read_link(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.printed.append(line)
            found = re.search(r"http://\S+", line)
            if found:
                return found[0]
        raise AssertionError(f"The studio did not start: {''.join(self.printed)}")

    def _drain(self) -> None:
        assert self._process.stdout is not None
        self.printed.extend(self._process.stdout)

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def write_network(path: Path, people: int = 300) -> Path:
    from tulle.graphs.generators import social_network

    social_network(people, seed=5).write(path)
    return path


def write_votes(path: Path) -> Path:
    draw = random.Random(3)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"q{i}" for i in range(6)])
        writer.writerows([[draw.randrange(2) for _ in range(6)] for _ in range(40)])
    return path


def write_trips(path: Path) -> Path:
    draw = random.Random(4)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "origin", "destination", "trips"])
        for person in range(60):
            for _ in range(draw.randrange(1, 6)):
                a, b = draw.sample(["north", "south", "east", "west"], 2)
                writer.writerow([person, a, b, draw.randrange(1, 4)])
    return path


def write_shop(path: Path) -> Path:
    import duckdb

    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, region VARCHAR)")
    connection.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(id), "
        "amount DOUBLE)"
    )
    connection.execute(
        "INSERT INTO customer SELECT i, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END "
        "FROM range(200) t(i)"
    )
    connection.execute("INSERT INTO orders SELECT i, i % 200, i % 50 FROM range(800) t(i)")
    connection.close()
    return path


# A process finds these by the name of their module, so they stand in one that it can import.


class Stalling(DataWorker):
    """Pays like the real one, then draws for ever."""

    def ask(self, **arguments: Any) -> str:
        import tulle.ledger.session as session

        def stall(*_: Any, **__: Any) -> Any:
            self.report(0.5, "stalled")
            time.sleep(600)

        session.draw = stall  # type: ignore[assignment]
        return super().ask(**arguments)


class Servant:
    """A worker's far end for tests."""

    report = staticmethod(lambda fraction, label: None)

    def __init__(self) -> None:
        self.kept = 0

    def keep(self, value: int) -> None:
        self.kept = value

    def give(self) -> int:
        return self.kept

    def quote(self) -> None:
        raise ValueError("a record: alice, 42")

    def refuse(self) -> None:
        raise InputError("Not so.")

    def stall(self) -> None:
        time.sleep(600)
