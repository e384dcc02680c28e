"""Many processes race for one account; together they never spend more than it holds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy  # noqa: F401 - warm before forking: a release names its version
import pytest
from tests.ledger.ledger_toy import Jar, Marbles, Shaker

from tulle.core import registry
from tulle.core.errors import BudgetError, LedgerError
from tulle.core.mechanism import Outcome
from tulle.ledger.chain import Entry
from tulle.ledger.ledger import Ledger
from tulle.ledger.session import Session
from tulle.ledger.store import Store
from tulle.ledger.store_file import View

# Newer Pythons warn of every fork in a process with threads; the children here use none.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

PROCESSES, AFFORDED = 64, 40
PRICE = Fraction(1, 40)


class Shake(Shaker):
    def run(self, terms: Any, settings: Any, dataset: Any, source: Any) -> Outcome:
        return Outcome(int.from_bytes(os.urandom(4), "big"), None)


@pytest.fixture(scope="module", autouse=True)
def shake() -> Iterator[None]:
    """Register the mechanism for these tests only: others look at all that are registered."""
    registry.register("mechanism", Jar.kind, Shake.name)(Shake)
    yield
    del registry._items["mechanism", Jar.kind]


def open_account(path: Path) -> Session:
    return Ledger(path).open("jar", Jar(), unit="participant", epsilon=1)


def ask_once(path: Path, colour: int) -> str:
    try:
        value = open_account(path).ask(Marbles(colour), epsilon=PRICE).value
    except BudgetError:
        return "refused"
    except Exception:  # noqa: BLE001 - the parent shows it
        return traceback.format_exc()
    return f"value {value}"


def race(work: Callable[[int], str], processes: int = PROCESSES) -> list[str]:
    """Fork the processes, let all of them start at once, and return what each has to say."""
    ready, start = os.pipe()
    told = []
    children = []
    for number in range(processes):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(start)
                os.read(ready, 1)  # returns when the parent closes the other end
                os.write(writing, work(number).encode())
            finally:
                os._exit(0)
        os.close(writing)
        told.append(reading)
        children.append(child)
    os.close(start)
    os.close(ready)
    texts = []
    for reading in told:
        with os.fdopen(reading) as pipe:
            texts.append(pipe.read())
    for child in children:
        os.waitpid(child, 0)
    return texts


@pytest.mark.small_process
def test_sixty_four_processes_spend_exactly_the_budget(tmp_path: Path) -> None:
    """None of them finds a ledger: they race for creating it and for opening the account too."""
    path = tmp_path / "study.ledger"
    start = time.perf_counter()
    texts = race(lambda number: ask_once(path, number))
    print(f"{PROCESSES} processes, {time.perf_counter() - start:.1f} s")
    counts = Counter(text.split()[0] if text.startswith("value") else text for text in texts)
    assert counts == {"value": AFFORDED, "refused": PROCESSES - AFFORDED}
    ledger = Ledger(path)
    assert ledger.verify(releases=ledger.releases("jar")) == []
    assert ledger.remaining("jar").epsilon == 0
    assert len(ledger.debits("jar")) == AFFORDED
    assert [account.name for account in ledger.accounts()] == ["jar"]
    assert sorted(str(release.value) for release in ledger.releases("jar")) == sorted(
        text.split()[1] for text in texts if text.startswith("value")
    )


def test_programs_that_share_nothing_spend_exactly_the_budget(tmp_path: Path) -> None:
    """Processes started afresh, not forked: only the file is common to them."""
    path = tmp_path / "study.ledger"
    program = (
        "import sys\n"
        "from tulle.core.errors import BudgetError\n"
        "from tulle.ledger.store import Store\n"
        "def guard(account):\n"
        "    if account.totals.debits >= 20: raise BudgetError\n"
        "store, booked = Store(sys.argv[1]), 0\n"
        "for _ in range(8):\n"
        "    try: store.append('debit', 'jar', {}, guard=guard); booked += 1\n"
        "    except BudgetError: pass\n"
        "print(booked)\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    booked = [int(process.communicate(timeout=600)[0]) for process in running]
    assert sum(booked) == 20
    assert Store(path).verify() == []


def test_one_question_asked_by_all_is_paid_at_most_once_each(tmp_path: Path) -> None:
    """Who asks while another draws pays too; who asks later gets the kept answer for nothing."""
    path = tmp_path / "study.ledger"
    open_account(path)
    texts = race(lambda number: ask_once(path, 0), 16)
    assert all(text.startswith("value") for text in texts)
    ledger = Ledger(path)
    paid = len(ledger.debits("jar"))
    assert ledger.remaining("jar").epsilon == 1 - paid * PRICE
    assert len(set(texts)) == paid == len(ledger.releases("jar"))
    kept = open_account(path).ask(Marbles(0), epsilon=PRICE).value
    assert f"value {kept}" in texts
    assert len(ledger.debits("jar")) == paid
    assert ledger.verify() == []


def test_accounts_do_not_take_from_each_other(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"

    def work(number: int) -> str:
        study = Ledger(path).open(f"jar {number % 4}", Jar(), unit="participant", epsilon=1)
        asked = 0
        try:
            for colour in range(6):
                study.ask(Marbles(100 * number + colour), epsilon=Fraction(1, 10))
                asked += 1
        except BudgetError:
            pass
        return str(asked)

    texts = race(work, 8)
    ledger = Ledger(path)
    for place in range(4):
        assert int(texts[place]) + int(texts[place + 4]) == 10
        assert ledger.remaining(f"jar {place}").epsilon == 0
    assert ledger.verify() == []


def test_periods_that_are_declared_while_others_ask_spend_their_budgets_once(
    tmp_path: Path,
) -> None:
    """A third of the processes declare versions, some in one period; the others ask."""
    path = tmp_path / "study.ledger"
    terms = {"epsilon": 4 * PRICE, "every": "week", "version": "v0", "date": "2026-01-05"}
    Ledger(path).open("jar", Jar(), unit="participant", **terms)  # type: ignore[arg-type]

    def work(number: int) -> str:
        if number % 3 == 0:
            day = f"2026-01-{5 + number % 24:02}"
            try:
                Ledger(path).declare("jar", f"v{number % 24}", date=day)
            except LedgerError as error:
                return "backwards" if "backwards" in str(error) else str(error)
            return f"declared {number % 24}"
        try:
            study = Ledger(path).open("jar", Jar(), unit="participant")
            answer = study.ask(Marbles(number), epsilon=PRICE)
        except BudgetError:
            return "refused"
        except LedgerError as error:
            return "moved on" if "present version" in str(error) else str(error)
        return f"value {answer.value} {answer.version}"

    texts = race(work, 48)
    kinds = {text.split()[0] for text in texts}
    assert kinds <= {"value", "refused", "declared", "backwards", "moved"}, texts
    ledger = Ledger(path)
    weeks = ledger.calendar("jar")
    dates = [version.date for week in weeks for version in week.versions]
    assert dates == sorted(dates)
    assert len({week.label for week in weeks}) == len(weeks)
    assert all(week.spent.epsilon <= 4 * PRICE for week in weeks)
    assert sum(week.debits for week in weeks) == sum(text.startswith("value") for text in texts)
    kept = {f"value {item.value} {item.version}" for item in ledger.releases("jar")}
    assert kept == {text for text in texts if text.startswith("value")}
    assert ledger.verify(releases=ledger.releases("jar")) == []


@pytest.mark.small_process
def test_a_ledger_that_checks_outside_the_transaction_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin reads, decides, and writes; another process decides in between."""
    honest = Store.append

    def append(
        self: Store,
        kind: str,
        account: str,
        body: Mapping[str, Any],
        *,
        guard: Callable[[View], None] | None = None,
        reuse: Callable[[View], Entry | None] | None = None,
        day: str | None = None,
    ) -> Entry:
        if guard is not None:
            self.read(account, guard)
            time.sleep(0.02)  # so that others look at the same entries, also on one processor
        return honest(self, kind, account, body, reuse=reuse, day=day)

    monkeypatch.setattr(Store, "append", append)
    for attempt in range(20):  # chance decides how often; once is enough
        path = tmp_path / f"{attempt}.ledger"
        open_account(path)
        texts = race(lambda number, path=path: ask_once(path, number))  # type: ignore[misc]
        if sum(text.startswith("value") for text in texts) > AFFORDED:
            return
    pytest.fail("the race did not catch the broken twin")
