"""A kill at any step of a release loses budget at worst, never privacy.

A parent that has everything imported forks a child per kill point. The child opens a ledger and
asks; it tells the parent through a pipe *before* it hands out random bits and as soon as it holds
a value. Then the parent looks at what the dead child left behind.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import numpy  # noqa: F401 - warm before forking: a release names its version
import pytest
from tests.ledger.ledger_toy import Jar, Marbles, Shaker

import tulle.core
import tulle.ledger
from tulle.core import registry
from tulle.core.errors import BudgetError, LedgerError
from tulle.core.mechanism import Outcome
from tulle.core.query import Query
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.ledger import totals
from tulle.ledger.answer import draw
from tulle.ledger.chain import canonical
from tulle.ledger.ledger import Ledger
from tulle.ledger.session import Session
from tulle.ledger.store import verify as verify_file

# Newer Pythons warn of every fork in a process with threads; the children here use none.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

SOURCES = tuple(str(Path(room.__file__).parent) for room in (tulle.core, tulle.ledger))
PRICE, TOTAL = Fraction(1, 10), Fraction(3, 10)
ASKS = (0, 1, 1, 2)  # the third is the second once more and must be free


class Shake(Shaker):
    """Add a few random bits: no privacy, but randomness that can be watched."""

    def run(self, terms: Any, settings: Any, dataset: Any, source: Source | None) -> Outcome:
        assert source is not None
        first = int.from_bytes(source.read(2), "big")
        second = int.from_bytes(source.read(2), "big")
        total = terms.query.truth(dataset)
        total += first
        total -= second
        return Outcome(total, None)


@pytest.fixture(scope="module", autouse=True)
def shake() -> Iterator[None]:
    """Register the mechanism for these tests only: others look at all that are registered."""
    registry.register("mechanism", Jar.kind, Shake.name)(Shake)
    yield
    del registry._items["mechanism", Jar.kind]


class Watched(Source):
    """Tells the pipe which question draws, before it hands out anything."""

    secure: ClassVar[bool] = True

    def __init__(self, pipe: int, ask: int) -> None:
        self.pipe, self.ask = pipe, ask

    def read(self, count: int) -> bytes:
        os.write(self.pipe, f"draw {self.ask} 0\n".encode())
        return os.urandom(count)


def live(path: Path, pipe: int) -> None:
    """Do what a user does: open, ask, ask the same again, ask until all is spent."""
    totals.rational.cache_clear()  # which lines are run must not depend on what ran before
    totals.text.cache_clear()
    study = Ledger(path).open("jar", Jar(), unit="participant", epsilon=TOTAL)
    for colour in ASKS:
        answer = study.ask(Marbles(colour), epsilon=PRICE, source=Watched(pipe, colour))
        os.write(pipe, f"value {colour} {answer.value}\n".encode())


def fork(work: Callable[[int], None], delay: float | None = None) -> tuple[bool, str]:
    """Run ``work`` in a child; return whether it lived to the end, and what it told the pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reading)
            work(writing)
            code = 0
        except Exception:  # noqa: BLE001 - the parent shows it
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writing)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading) as told:
        text = told.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL), f"the child failed by itself: {text}"
    return ended == 0, text


class Lines:
    """A trace function that counts the lines of tulle and the mechanism, and kills at one."""

    def __init__(self, last: int | None = None) -> None:
        self.seen, self.last = 0, last

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not (code.co_filename.startswith(SOURCES) or code is Shake.run.__code__):
            return None
        if event == "line":
            self.seen += 1
            if self.seen == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def total_lines(tmp_path: Path) -> int:
    """Return how many lines one whole run has."""

    def work(pipe: int) -> None:
        lines = Lines()
        sys.settrace(lines)
        live(tmp_path / "count.ledger", pipe)
        sys.settrace(None)
        os.write(pipe, f"lines {lines.seen} 0\n".encode())

    # A look as after a kill fills the caches that children inherit: fewer lines run from then on.
    path = tmp_path / "first.ledger"
    assert inspect(path, fork(lambda pipe: live(path, pipe))[1]) == []
    _, told = fork(work)
    return int(told.splitlines()[-1].split()[1])


def inspect(path: Path, told: str) -> list[str]:
    """Return every way in which what the dead child left behind breaks the promise."""
    words = [line.split() for line in told.splitlines()]
    drew = {int(ask) for act, ask, _ in words if act == "draw"}
    values = {int(ask): int(value) for act, ask, value in words if act == "value"}
    if not path.exists():
        return ["drew without a ledger"] if drew or values else []
    wrongs = [str(problem) for problem in verify_file(path)]
    ledger = Ledger(path)
    booked = []
    if "jar" in [account.name for account in ledger.accounts()]:
        booked = [entry.body["question"] for entry in ledger.debits("jar")]
        left = ledger.remaining("jar").epsilon
        if left != TOTAL - PRICE * len(booked):
            wrongs.append(f"{len(booked)} booked but {left} left")
    if len(booked) != len(set(booked)):
        wrongs.append("a question was booked twice")
    for ask in sorted(drew | values.keys()):
        if str(Marbles(ask)) not in booked:
            wrongs.append(f"question {ask} drew bits but is not booked")
    return wrongs + resume(ledger, values, len(booked))


def resume(ledger: Ledger, values: Mapping[int, int], booked: int) -> list[str]:
    """Go on after the crash: released answers are kept, and the budget cannot be passed."""
    wrongs = []
    study = ledger.open("jar", Jar(), unit="participant", epsilon=TOTAL)
    for ask, value in values.items():
        if study.ask(Marbles(ask), epsilon=PRICE, source=Watched(-1, ask)).value != value:
            wrongs.append(f"question {ask} has another answer after the crash")
    if len(ledger.debits("jar")) != booked:
        wrongs.append("an answer that was out had to be paid again")
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        for fresh in range(10, 20):
            study.ask(Marbles(fresh), epsilon=PRICE, source=Watched(sink, fresh))
    except BudgetError:
        pass
    finally:
        os.close(sink)
    if study.remaining.epsilon != 0 or len(ledger.debits("jar")) != TOTAL / PRICE:
        wrongs.append("the budget does not end at zero")
    return wrongs + [str(problem) for problem in ledger.verify()]


def kill_at_lines(tmp_path: Path, points: list[int]) -> dict[int, list[str]]:
    """Kill one child at each of these lines; return what was wrong, by line."""
    wrongs = {}
    for point in points:
        path = tmp_path / f"{point}.ledger"

        def work(pipe: int, path: Path = path, point: int = point) -> None:
            sys.settrace(Lines(point))
            live(path, pipe)

        lived, told = fork(work)
        assert not lived, f"line {point} was never reached"
        if found := inspect(path, told):
            wrongs[point] = found
    return wrongs


def spread(total: int, count: int) -> list[int]:
    return sorted({1 + step * (total - 1) // (count - 1) for step in range(count)})


def test_a_run_that_is_not_killed_keeps_the_promise(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    lived, told = fork(lambda pipe: live(path, pipe))
    assert lived
    assert told.count("value") == 4
    assert told.count("draw") == 6  # two reads for each of the three that were drawn
    assert inspect(path, told) == []


@pytest.mark.small_process
def test_a_kill_at_any_line_loses_no_privacy(tmp_path: Path) -> None:
    total = total_lines(tmp_path)
    points = spread(total, 200)
    start = time.perf_counter()
    assert kill_at_lines(tmp_path, points) == {}
    print(f"{len(points)} of {total} lines, {time.perf_counter() - start:.1f} s")
    assert len(points) == 200


@pytest.mark.slow
@pytest.mark.small_process
def test_a_kill_at_every_line_loses_no_privacy(tmp_path: Path) -> None:
    total = total_lines(tmp_path)
    assert kill_at_lines(tmp_path, list(range(1, total + 1))) == {}


@pytest.mark.small_process
def test_a_kill_at_any_moment_loses_no_privacy(tmp_path: Path) -> None:
    """Kills by the clock also hit the inside of SQLite's own commit, where no line is run."""
    start = time.perf_counter()
    fork(lambda pipe: live(tmp_path / "clock.ledger", pipe))
    length = time.perf_counter() - start
    chance = random.Random(7)
    killed, journals = 0, 0
    for attempt in range(600):
        path = tmp_path / f"{attempt}.ledger"
        lived, told = fork(
            lambda pipe, path=path: live(path, pipe),  # type: ignore[misc]
            delay=chance.uniform(0, length),
        )
        length *= 0.95 if lived else 1.01  # follow a machine that gets faster or slower
        killed += not lived
        journals += path.with_name(f"{path.name}-journal").exists()
        assert inspect(path, told) == []
        if killed == 100:
            break
    print(f"{killed} killed, {journals} of them within a commit")
    assert killed == 100


def debit_after_drawing(
    self: Session, query: Query, *, epsilon: Any, source: Source | None = None
) -> Release:
    """The broken twin of :meth:`Session.ask`: it books the price when it has the answer."""
    plan = self.plan(query, epsilon=epsilon)
    key = {**plan.canonical(), "source": "secure"}
    for kept in self._ledger._store.entries(self.name, kinds=("release",)):
        if kept.body["key"] == canonical(key):
            return Release.from_json(kept.body["release"])
    answer = draw(plan, self._dataset, source, debit=None)
    debit, _ = self._ledger.book(self.name, str(query), key, plan.guarantee)
    self._ledger.keep(self.name, debit, key, answer)
    return answer


@pytest.mark.small_process
def test_a_ledger_that_debits_after_drawing_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "ask", debit_after_drawing)
    wrongs = kill_at_lines(tmp_path, spread(total_lines(tmp_path), 60))
    assert any("not booked" in wrong for found in wrongs.values() for wrong in found)


# --- versions and renewals ----------------------------------------------------------------------

WEEKS = (("2026-W01", "2026-01-01"), ("2026-W01b", "2026-01-04"), ("2026-W02", "2026-01-05"))


def live_weeks(path: Path, pipe: int) -> None:
    """Open a weekly account, ask, declare a version in the same week and one in the next, ask."""
    totals.rational.cache_clear()
    totals.text.cache_clear()
    terms = {"epsilon": 2 * PRICE, "every": "week"}
    for place, (name, day) in enumerate(WEEKS):
        study = Ledger(path).open(
            "jar", Jar(), unit="participant", version=name, date=day,
            **(terms if not place else {}),
        )  # fmt: skip
        answer = study.ask(Marbles(7), epsilon=PRICE, source=Watched(pipe, place))
        assert answer.version == name
        os.write(pipe, f"value {place} {answer.value}\n".encode())


def inspect_weeks(path: Path, told: str) -> list[str]:
    """Return every way in which what the dead child left behind breaks the promise."""
    words = [line.split() for line in told.splitlines()]
    drew = {int(place) for act, place, _ in words if act == "draw"}
    values = {int(place): int(value) for act, place, value in words if act == "value"}
    if not path.exists():
        return ["drew without a ledger"] if drew else []
    wrongs = [str(problem) for problem in verify_file(path)]
    ledger = Ledger(path)
    if "jar" not in [account.name for account in ledger.accounts()]:
        return wrongs + (["drew without an account"] if drew else [])
    booked = ["version" in str(e.body["key"]) for e in ledger.debits("jar")]
    weeks = ledger.calendar("jar")
    if any(week.spent.epsilon > 2 * PRICE for week in weeks):
        wrongs.append("a week has more than its budget")
    if len(drew) > len(booked):
        wrongs.append("something drew bits but is not booked")
    # Go on after the crash, as the custodian would: nothing that is out changes.
    done = [version.name for week in weeks for version in week.versions]
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        for place, (name, day) in enumerate(WEEKS):
            if name not in done[:-1]:
                study = ledger.open("jar", Jar(), unit="participant", version=name, date=day)
            else:
                study = ledger.open("jar", Jar(), unit="participant")
            try:
                answer = study.ask(
                    Marbles(7), epsilon=PRICE, source=Watched(sink, place), version=name
                )
                if values.get(place, answer.value) != answer.value:
                    wrongs.append(f"version {name} has another answer after the crash")
            except BudgetError:
                if place in values:
                    wrongs.append(f"the answer for {name} had to be paid again")
            except LedgerError:
                if place in values:
                    wrongs.append(f"the answer for {name} is lost")
    finally:
        os.close(sink)
    if any(week.spent.epsilon > 2 * PRICE for week in ledger.calendar("jar")):
        wrongs.append("a week has more than its budget after the crash")
    return wrongs + [str(problem) for problem in ledger.verify()]


def kill_in_weeks(
    folder: Path, attempts: int, seed: int, live: Callable[[Path, int], None] = live_weeks
) -> int:
    """Kill so many children at random moments; return how many died within a commit."""
    start = time.perf_counter()
    lived, told = fork(lambda pipe: live(folder / "whole.ledger", pipe))
    length = time.perf_counter() - start
    assert lived
    assert inspect_weeks(folder / "whole.ledger", told) == []
    chance, killed, journals = random.Random(seed), 0, 0
    for attempt in range(10 * attempts):
        path = folder / f"{attempt}.ledger"
        lived, told = fork(
            lambda pipe, path=path: live(path, pipe),  # type: ignore[misc]
            delay=chance.uniform(0, length),
        )
        length *= 0.95 if lived else 1.01
        killed += not lived
        journals += path.with_name(f"{path.name}-journal").exists()
        assert inspect_weeks(path, told) == []
        if killed == attempts:
            return journals
    raise AssertionError("too few were killed")


@pytest.mark.small_process
def test_a_kill_at_any_moment_gives_no_week_a_second_budget(tmp_path: Path) -> None:
    kill_in_weeks(tmp_path, 50, 11)


@pytest.mark.slow
@pytest.mark.small_process
def test_many_kills_give_no_week_a_second_budget(tmp_path: Path) -> None:
    assert kill_in_weeks(tmp_path, 600, 12) > 0


def test_weeks_whose_debits_follow_the_drawing_are_caught(tmp_path: Path) -> None:
    def book_late(self: Session, query: Query, **asked: Any) -> Release:
        plan = self.plan(query, epsilon=asked["epsilon"])
        answer = draw(plan, self._dataset, asked["source"], debit=None)
        time.sleep(0.005)
        key = {**plan.canonical(), "source": "secure"}
        debit, _ = self._ledger.book(
            self.name, str(query), key, plan.guarantee, version=self.version
        )
        self._ledger.keep(self.name, debit, key, self._signed(answer))
        return self._signed(answer)

    def live(path: Path, pipe: int) -> None:
        Session.ask = book_late  # type: ignore[method-assign]  # in the child alone
        live_weeks(path, pipe)

    with pytest.raises(AssertionError, match="not booked"):
        kill_in_weeks(tmp_path, 100, 13, live)
