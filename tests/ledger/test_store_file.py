"""Many threads and processes use one store; a crash while creating it leaves nothing half-made."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest

from tulle.core.errors import BudgetError, LedgerError
from tulle.ledger import store as module
from tulle.ledger import store_file, store_place
from tulle.ledger.chain import Entry
from tulle.ledger.store import Store
from tulle.ledger.store import verify as verify_file
from tulle.ledger.store_file import View

# Newer Pythons warn of every fork in a process with threads; the children here use none.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

LIMIT = 20
SOURCES = (module.__file__, store_file.__file__, store_place.__file__)


def allow(account: View) -> None:
    if account.totals.debits >= LIMIT:
        raise BudgetError("used up")


def fork(work: Callable[[], int]) -> int:
    """Run ``work`` in a forked child that ends with the code it returns; 99 for an exception."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        code = work()
    finally:
        os._exit(code)


def wait(children: Sequence[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def race(path: Path, asks: int) -> tuple[int, int]:
    store = Store(path)
    booked = refused = 0
    for _ in range(asks):
        try:
            store.append("debit", "shop", {"process": os.getpid()}, guard=allow)
            booked += 1
        except BudgetError:
            refused += 1
    return booked, refused


def test_threads_share_one_store(tmp_path: Path) -> None:
    store, results = Store(tmp_path / "study.ledger"), []
    threads = [
        threading.Thread(target=lambda: results.append(race(store.path, 5))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(booked for booked, _ in results) == LIMIT
    assert sum(refused for _, refused in results) == 40 - LIMIT
    assert store.verify() == []


def test_processes_create_and_fill_one_ledger_at_once(tmp_path: Path) -> None:
    """No process creates it beforehand: all of them race for that too."""
    path = tmp_path / "study.ledger"
    reading, writing = os.pipe()
    children = []
    for _ in range(16):
        # Each child waits for the end of the pipe, so that all start together.
        children.append(fork(lambda: (os.close(writing), os.read(reading, 1), race(path, 3))[2][0]))
    os.close(writing)
    os.close(reading)
    booked = wait(children)
    assert sum(booked) == LIMIT
    assert max(booked) <= 3
    assert Store(path).head().count == LIMIT
    assert verify_file(path) == []
    assert os.listdir(tmp_path) == ["study.ledger"]


def test_a_store_can_be_used_on_both_sides_of_a_fork(tmp_path: Path) -> None:
    store = Store(tmp_path / "study.ledger")

    def work() -> int:
        store.append("debit", "shop", {})
        return 0

    children = [fork(work) for _ in range(4)]
    work()
    assert wait(children) == [0] * 4
    assert store.head().count == 5
    assert store.verify() == []


def test_a_fork_waits_for_the_operation_of_another_thread(tmp_path: Path) -> None:
    """Else the child would believe that it holds the lock which the thread holds."""
    store = Store(tmp_path / "study.ledger")
    inside = threading.Event()

    def linger(account: View) -> None:
        inside.set()
        time.sleep(0.2)

    thread = threading.Thread(target=lambda: store.append("debit", "a", {}, guard=linger))
    thread.start()
    inside.wait(10)

    def work() -> int:
        return store.append("debit", "b", {}).number

    child = fork(work)
    assert wait([child]) == [2]  # the thread's entry came first, whole
    thread.join()
    assert store.verify() == []


def test_a_fork_within_a_guard_does_not_write_twice(tmp_path: Path) -> None:
    store = Store(tmp_path / "study.ledger")
    children: list[int] = []

    def split(account: View) -> None:
        children.append(os.fork())

    try:
        store.append("debit", "a", {}, guard=split)
    except LedgerError as error:
        os._exit(7 if "forked" in str(error) and children == [0] else 8)
    if children == [0]:
        os._exit(9)
    assert wait(children) == [7]
    assert store.head().count == 1
    assert store.verify() == []


def kill_at(step: int) -> Any:
    """Return a trace function that kills the process at the given line of the store."""
    left = step

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in SOURCES:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


@pytest.mark.small_process
def test_a_kill_at_every_step_of_creation_leaves_nothing_half_made(tmp_path: Path) -> None:
    step, completed = 0, False
    while not completed:
        path = tmp_path / f"{step}.ledger"

        def work(path: Path = path, step: int = step) -> int:
            sys.settrace(kill_at(step))
            Store(path)
            return 0

        completed = wait([fork(work)]) == [0]
        assert completed or not path.exists() or verify_file(path) == []
        store = Store(path)
        store.append("debit", "shop", {}, guard=allow)
        assert store.verify() == []
        step += 1
    assert step > 80


@pytest.mark.small_process
def test_a_kill_at_any_moment_of_creation(tmp_path: Path) -> None:
    for attempt in range(40):
        path = tmp_path / f"{attempt}.ledger"

        def work(path: Path = path) -> int:
            Store(path)
            return 0

        child = fork(work)
        time.sleep(attempt * 0.0002)
        os.kill(child, signal.SIGKILL)
        wait([child])
        store = Store(path)
        assert store.head().count == 0
        assert store.verify() == []


def test_readers_do_not_stop_a_writer(tmp_path: Path) -> None:
    store = Store(tmp_path / "study.ledger")
    stop = tmp_path / "stop"

    def work() -> int:
        mine = Store(store.path)
        while not stop.exists():
            if mine.verify() or len(mine.entries("shop")) > 30:
                return 1
        return 0

    children = [fork(work) for _ in range(3)]
    for _ in range(30):
        store.append("debit", "shop", {})
    stop.touch()
    assert wait(children) == [0] * 3


def test_the_race_catches_a_store_that_checks_outside_the_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: the guard sees the entries of a moment ago."""
    honest, processes = Store.append, LIMIT + 4
    looked = tmp_path / "looked"
    looked.mkdir()

    def append(self: Store, kind: str, account: str, body: Any, *, guard: Any) -> Entry:
        self.read(account, guard)
        (looked / str(os.getpid())).touch()
        deadline = time.monotonic() + 60
        while len(os.listdir(looked)) < processes and time.monotonic() < deadline:
            time.sleep(0.01)
        return honest(self, kind, account, body)

    monkeypatch.setattr(Store, "append", append)
    path = tmp_path / "study.ledger"
    Store(path)
    booked = wait([fork(lambda: race(path, 1)[0]) for _ in range(processes)])
    assert sum(booked) == processes


def test_a_journal_left_by_a_crash_is_rolled_back(tmp_path: Path) -> None:
    """A kill between SQLite's writing of the pages and the deletion of its journal."""
    store = Store(tmp_path / "study.ledger")
    for _ in range(3):
        store.append("debit", "shop", {})

    def work() -> NoReturn:
        connection = sqlite3.connect(store.path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")  # so that pages reach the file early
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute("UPDATE entries SET body = hex(zeroblob(20000))")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    assert wait([fork(work)]) == [-signal.SIGKILL]
    assert sorted(os.listdir(tmp_path)) == ["study.ledger", "study.ledger-journal"]
    assert store.head().count == 3
    assert store.verify() == []
    assert os.listdir(tmp_path) == ["study.ledger"]
