"""A question costs the same work however long the ledger's history is; old files stay usable."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.ledger_toy import Jar, Marbles, Shaker, long_ledger

from tulle.core import registry
from tulle.core.errors import BudgetError, LedgerError
from tulle.core.mechanism import Outcome
from tulle.core.release import Release
from tulle.ledger import store as store_module
from tulle.ledger import store_file
from tulle.ledger.ledger import Ledger
from tulle.ledger.session import Session
from tulle.ledger.store import Store
from tulle.ledger.store import verify as verify_file
from tulle.ledger.totals import LONGEST, Totals

OLD = Path(__file__).parent / "data" / "format-0.1.ledger"
"""Written by tulle 0.1: three accounts, ten debits on "jar", one of them without an answer."""

OLD_HEAD = "30:6ddacffad626109b6bcce9ab49c351cb3aabb739744cc9acee22c8d2fe3f8068"


class Shake(Shaker):
    def run(self, terms: Any, settings: Any, dataset: Any, source: Any) -> Outcome:
        return Outcome(1000 + terms.query.colour, None)


@pytest.fixture(scope="module", autouse=True)
def shake() -> Iterator[None]:
    """Register the mechanism for these tests only: others look at all that are registered."""
    registry.register("mechanism", Jar.kind, Shake.name)(Shake)
    yield
    del registry._items["mechanism", Jar.kind]


def steps(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> int:
    """Return how many steps SQLite's machine makes; each row that is read takes some."""
    made = 0
    honest = store_file.connect

    def count() -> int:
        nonlocal made
        made += 1
        return 0

    def connect(path: Path, timeout: float) -> sqlite3.Connection:
        connection = honest(path, timeout)
        connection.set_progress_handler(count, 1)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(store_file, "connect", connect)
        act()
    return made


def grown(path: Path, entries: int) -> Session:
    """Return an account with so many more entries; its budget is large."""
    study = Ledger(path).open("jar", Jar(), unit="participant", epsilon=10**4)
    study.ask(Marbles(0), epsilon=PRICE)
    long_ledger(path, entries, price="0.001")
    return study


PRICE = Fraction(1, 10)


def work(study: Session, monkeypatch: pytest.MonkeyPatch, colour: int) -> list[int]:
    """Return the steps of asking anew, asking again, looking, and being refused."""

    def refused() -> None:
        with pytest.raises(BudgetError):
            study.ask(Marbles(999), epsilon=10**4)

    return [
        steps(monkeypatch, act)
        for act in (
            lambda: study.ask(Marbles(colour), epsilon=PRICE),
            lambda: study.ask(Marbles(0), epsilon=PRICE),
            lambda: study.remaining,
            refused,
            lambda: Ledger(study._ledger.path).open(
                "jar", Jar(), unit="participant", epsilon=10**4
            ),
        )
    ]


def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int) -> Session:
    short = grown(tmp_path / "short.ledger", 100)
    study = grown(tmp_path / "long.ledger", entries)
    few, many = work(short, monkeypatch, 1), work(study, monkeypatch, 1)
    print(f"steps with 100 entries {few}, with {entries} {many}")
    assert all(more <= less + 20 for less, more in zip(few, many, strict=True))
    assert max(many) < 5000
    spent = Fraction(entries, 2000) + 2 * PRICE  # half of the entries, and those asked above
    assert study.remaining.epsilon == 10**4 - spent
    return study


def test_a_question_does_not_read_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(tmp_path, monkeypatch, 100_000)


@pytest.mark.slow
def test_a_question_after_a_million_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = compare(tmp_path, monkeypatch, 1_000_000)
    start = time.process_time()
    for colour in range(10, 20):
        study.ask(Marbles(colour), epsilon=PRICE)
    assert (time.process_time() - start) / 10 < 0.2
    assert study._ledger.verify() == []


def test_a_ledger_that_reads_the_history_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin adds up all entries of the account, as tulle 0.1 did."""

    def add_up(self: store_file.View) -> Totals:
        totals = Totals()
        for entry in store_file.read_account(self._path, self._connection, self._account):
            totals = totals.after(entry.kind, entry.body)
        return totals

    monkeypatch.setattr(store_file.View, "_last_totals", add_up)
    with pytest.raises(AssertionError):
        compare(tmp_path, monkeypatch, 2000)


prices = st.fractions(0, 3, max_denominator=10**6)


@given(st.lists(st.tuples(prices, prices), max_size=30))
def test_totals_are_the_exact_sums(debits: list[tuple[Fraction, Fraction]]) -> None:
    totals = Totals()
    for epsilon, delta in debits:
        body = {"guarantee": {"epsilon": str(epsilon), "delta": str(delta)}}
        totals = totals.after("debit", body).after("release", {})
        assert Totals.from_json(totals.to_json()) == totals
    assert totals.debits == len(debits)
    assert totals.entries == 2 * len(debits)
    assert totals.epsilon == sum(epsilon for epsilon, _ in debits)
    assert totals.delta == sum(delta for _, delta in debits)


def test_totals_of_unlike_fractions_stay_short_and_are_rounded_up() -> None:
    totals, exact = Totals(), Fraction(0)
    for number in range(1, 2000):
        price = Fraction(1, 10**9 + 2 * number + 1)
        exact += price
        guarantee = {"epsilon": str(price), "delta": "0"}
        totals = totals.after("debit", {"guarantee": guarantee})
        if number % 100 == 0 or number < 60:
            assert exact <= totals.epsilon <= exact + Fraction(number, 2**1000)
    assert exact.denominator.bit_length() > 10 * LONGEST
    assert totals.epsilon.denominator.bit_length() <= LONGEST
    assert len(totals.to_json()["epsilon"]) < 1000


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "old.ledger"))


def open_old(path: Path) -> Session:
    return Ledger(path).open("jar", Jar(), unit="participant", epsilon=1, delta=Fraction(1, 1000))


def test_an_old_ledger_is_read_as_it_is(old: Path) -> None:
    content = old.read_bytes()
    study = open_old(old)
    ledger = study._ledger
    assert str(ledger.head()) == OLD_HEAD
    assert ledger.verify(head=ledger.head(), releases=ledger.releases("jar")) == []
    assert [account.name for account in ledger.accounts()] == ["jar", "other", "unused"]
    assert ledger.remaining("jar").epsilon == Fraction(17, 30)
    assert ledger.remaining("jar").delta == Fraction(1, 1000)
    assert ledger.remaining("other").epsilon == Fraction(8, 5)
    assert ledger.remaining("unused").epsilon == 3
    assert len(ledger.debits("jar")) == 10
    assert study.ask(Marbles(1), epsilon=Fraction(1, 30)).value == 101  # kept, not drawn
    assert old.read_bytes() == content


def test_an_old_ledger_goes_on_with_every_promise(old: Path) -> None:
    study = open_old(old)
    ledger, noted = study._ledger, study._ledger.head()
    published = ledger.releases("jar") + ledger.releases("other")
    assert study.ask(Marbles(50), epsilon=Fraction(1, 10)).value == 1050
    assert ledger.verify(head=noted, releases=published) == []
    assert study.ask(Marbles(3), epsilon=Fraction(1, 30)).value == 103
    assert ledger.remaining("jar").epsilon == Fraction(7, 15)
    assert ledger.remaining("other").epsilon == Fraction(8, 5)
    assert [entry.account for entry in ledger.entries() if entry.kind == "balance"] == [
        "jar", "other", "unused",
    ]  # fmt: skip
    with pytest.raises(BudgetError, match=r"0\.46"):
        study.ask(Marbles(51), epsilon=Fraction(1, 2))
    while ledger.remaining("jar").epsilon > 0:
        study.ask(Marbles(60), epsilon=Fraction(1, 30), again=True)
    with pytest.raises(BudgetError, match="used up"):
        study.ask(Marbles(61), epsilon=Fraction(1, 1000))
    assert ledger.verify() == []


def test_an_old_ledger_that_was_changed_is_refused_and_not_carried_forward(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute(
            "UPDATE entries SET body = replace(body, '\"0.1\"', '\"0.0\"')"
            " WHERE kind = 'debit' AND account = 'other'"
        )
        connection.execute(store_file.SCHEMA[4])
    content = old.read_bytes()
    assert verify_file(old)
    with pytest.raises(LedgerError, match="fails its checks"):
        open_old(old).ask(Marbles(50), epsilon=Fraction(1, 10))
    with pytest.raises(LedgerError, match="fails its checks"):
        Ledger(old).remaining("other")
    assert old.read_bytes() == content


def test_an_old_ledger_is_carried_forward_wholly_or_not(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, honest, written = old.read_bytes(), store_module._write, 0

    for stop in range(1, 5):
        written = 0

        def write(*arguments: Any, stop: int = stop) -> Any:
            nonlocal written
            written += 1
            if written == stop:
                raise LedgerError("stopped")
            return honest(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(store_module, "_write", write)
            with pytest.raises(LedgerError, match="stopped"):
                Store(old).append("debit", "jar", {})
        assert old.read_bytes() == content


def test_an_old_copy_of_an_old_ledger_is_found_by_what_is_outside(old: Path) -> None:
    content = old.read_bytes()
    study = open_old(old)
    released: Release = study.ask(Marbles(50), epsilon=Fraction(1, 10))
    noted = study._ledger.head()
    old.write_bytes(content)
    with pytest.raises(LedgerError, match="older copy"):
        study.ask(Marbles(51), epsilon=Fraction(1, 10))
    assert Ledger(old).verify() == []
    assert Ledger(old).verify(head=noted)
    assert Ledger(old).verify(releases=[released])
