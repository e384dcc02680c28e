"""Whatever is in the file, every operation answers, or refuses with a LedgerError and advice.

Two kinds of damage: to the bytes, as disks do it, and to the content, as by a program that writes
well-formed tables (and, for the worst cases, a sound chain) with any values in them.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.drawn import Drawn
from tests.ledger.ledger_toy import Jar, Marbles, Shaker
from typer.testing import CliRunner

from tulle.cli.main import app
from tulle.core import registry
from tulle.core.errors import BudgetError, LedgerError, UnkeptAnswerWarning
from tulle.core.mechanism import Outcome
from tulle.ledger import store as store_module
from tulle.ledger import store_file
from tulle.ledger.chain import Head, compute_digest
from tulle.ledger.ledger import Ledger
from tulle.ledger.store import verify as verify_file

PRICE, BOOKED = Fraction(1, 100), 6
LEFT = 1 - PRICE * BOOKED
MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None


class Shake(Shaker):
    def run(self, terms: Any, settings: Any, dataset: Any, source: Any) -> Outcome:
        return Outcome(terms.query.colour, None)


@pytest.fixture(scope="module", autouse=True)
def shake() -> Iterator[None]:
    """Register the mechanism for these tests only: others look at all that are registered."""
    registry.register("mechanism", Jar.kind, Shake.name)(Shake)
    yield
    del registry._items["mechanism", Jar.kind]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "study.ledger"
    for name in ("jar", "other"):
        study = Ledger(path).open(name, Jar(), unit="participant", epsilon=1)
        for colour in range(BOOKED):
            study.ask(Marbles(colour), epsilon=PRICE)
    week = Ledger(path).open(
        "weekly", Jar(), unit="participant", epsilon=PRICE, every="week", version="a",
        date="2026-01-05",
    )  # fmt: skip
    week.ask(Marbles(0), epsilon=PRICE)
    for name, day in (("b", "2026-01-07"), ("c", "2026-01-12"), ("d", "2026-01-13")):
        week = week.next_version(name, Jar(), date=day)
    week.ask(Marbles(0), epsilon=PRICE)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    found = (MEMORY or tmp_path) / f"fuzz-{os.getpid()}.ledger"
    yield found
    for name in (found, found.with_name(f"{found.name}-journal")):
        name.unlink(missing_ok=True)


def ask(path: Path) -> None:
    study = Ledger(path).open("jar", Jar(), unit="participant", epsilon=1)
    left = study.remaining.epsilon
    study.ask(Marbles(77), epsilon=PRICE)
    assert study.remaining.epsilon <= left - PRICE, "a debit was lost"


def old_answer(path: Path) -> None:
    study = Ledger(path).open("jar", Jar(), unit="participant", epsilon=1)
    study.ask(Marbles(1), epsilon=PRICE)


def next_week(path: Path) -> None:
    """The week of version "d" is used up: nothing may make room in it."""
    study = Ledger(path).open("weekly", Jar(), unit="participant")
    Ledger(path).declare("weekly", "e", date="2026-01-14")
    study = Ledger(path).open("weekly", Jar(), unit="participant")
    with pytest.raises(BudgetError):
        study.ask(Marbles(5), epsilon=PRICE)


READING: dict[str, Callable[[Path], Any]] = {
    "accounts": lambda path: Ledger(path).accounts(),
    "remaining": lambda path: Ledger(path).remaining("jar"),
    "debits": lambda path: Ledger(path).debits("jar"),
    "spent": lambda path: Ledger(path).spent("jar"),
    "releases": lambda path: Ledger(path).releases("jar"),
    "entries": lambda path: Ledger(path).entries(),
    "head": lambda path: Ledger(path).head(),
    "since": lambda path: Ledger(path).since(Head(2, "")),
    "calendar": lambda path: Ledger(path).calendar("weekly"),
    "weekly": lambda path: Ledger(path).remaining("weekly"),
    "page": lambda path: Ledger(path)._repr_html_(),
    "verify": lambda path: "\n".join(map(str, verify_file(path))).encode(),
}
ASKING: dict[str, Callable[[Path], Any]] = {"old answer": old_answer, "ask": ask}


def use(path: Path, *, sealed: bool = True) -> Counter[str]:
    """Do everything with a ledger; anything but a result or a LedgerError fails the test.

    Unless the chain was forged (``sealed`` is false), no budget may be shown larger than it is.
    """
    outcomes: Counter[str] = Counter()
    acts = READING | ASKING | ({"next week": next_week} if sealed else {})
    for name, act in acts.items():
        try:
            found = act(path)
        except UnkeptAnswerWarning:
            outcomes["not kept"] += 1
        except LedgerError as error:
            text = str(error)
            text.encode()
            assert text.isprintable()
            assert ". " in text  # what happened, and what to do
            assert "spent" in text or "no account" in text or "booked" in text
            outcomes["refused"] += 1
        else:
            outcomes["fine"] += 1
            if name == "remaining" and sealed:
                assert found.epsilon <= LEFT, "the budget grew"
            if name == "weekly" and sealed:
                assert found.epsilon == 0, "the week's budget grew"
    return outcomes


def write(path: Path, content: bytes) -> None:
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    path.write_bytes(content)


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return the content with one kind of damage."""
    made = bytearray(content)
    kind = chance.randrange(7)
    place = chance.randrange(len(made))
    if kind == 0:
        for _ in range(chance.choice((1, 1, 2, 5))):
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    elif kind == 1:
        made[place : place + chance.choice((1, 4, 64, 4096))] = b""
    elif kind == 2:
        page = 4096 * chance.randrange(len(made) // 4096)
        made[page : page + 4096] = chance.randbytes(4096)
    elif kind == 3:
        one, other = (4096 * chance.randrange(len(made) // 4096) for _ in range(2))
        made[one : one + 4096] = content[other : other + 4096]
    elif kind == 4:  # the head of a page, which says where its cells and children are
        page = 4096 * chance.randrange(len(made) // 4096)
        made[page + chance.randrange(12 if page else 112)] = chance.randrange(256)
    elif kind == 5:  # text becomes no text
        for _ in range(chance.choice((1, 3))):
            made[chance.randrange(len(made))] = chance.choice((0xFF, 0xC0, 0x80, 0x00))
    else:
        made[place : place + 8] = chance.choice((b"\xff", b"\x7f", b"\x00")) * 8
    return bytes(made)


def fuzz_bytes(sound: bytes, path: Path, cases: int, seed: int) -> None:
    outcomes: Counter[str] = Counter()
    for case in range(cases):
        write(path, damaged(sound, random.Random(1000 * seed + case)))
        try:
            outcomes += use(path)
        except Exception as error:
            raise AssertionError(f"case {case} of seed {seed}") from error
    print(dict(outcomes))
    assert outcomes["refused"] > cases
    assert outcomes["fine"] > cases


def test_damaged_bytes(sound: bytes, path: Path) -> None:
    fuzz_bytes(sound, path, 150, 1)


@pytest.mark.slow
@pytest.mark.timed(3)
def test_damaged_bytes_many_times(sound: bytes, path: Path, drawn: Drawn) -> None:
    for seed in drawn.seeds():
        fuzz_bytes(sound, path, 150, seed)


VALUES: list[Any] = [
    None, 0, -1, 2**63 - 1, -(2**63), 1.5, float("inf"), "", "x", "\ud800", "é\n", "{}", "[]",
    "null", "1e999", "[" * 10_000, '{"totals":' * 3000, b"", b"\xff\xfe", b"x" * 5000, "9" * 5000,
]  # fmt: skip
TABLES = {
    "entries": ("number", "kind", "account", "time", "body", "previous", "digest"),
    "head": ("one", "count", "digest"),
    "accounts": ("account", "count", "digest"),
    "witness": ("one", "count", "digest"),
    "answers": ("key", "number"),
}


def edit(path: Path, act: Callable[[sqlite3.Connection], None]) -> None:
    """Change the tables behind the store's back, whatever their rules say."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA writable_schema = ON")
        for name in ("stay", "remain", "follow"):
            connection.execute(f"DROP TRIGGER entries_{name}")
        # What SQLite does not take cannot be in a file.
        with suppress(sqlite3.Error, UnicodeEncodeError, OverflowError):
            act(connection)
        for sql in store_file.SCHEMA:
            if sql.startswith("CREATE TRIGGER"):
                connection.execute(sql)


def cell(chance: random.Random) -> Callable[[sqlite3.Connection], None]:
    table = chance.choice(list(TABLES))
    column, value = chance.choice(TABLES[table]), chance.choice(VALUES)
    some = chance.choice(("", " WHERE rowid = 9", " WHERE rowid = 24", " WHERE rowid < 3"))
    some = "" if table in ("answers", "accounts", "head", "witness") else some
    return lambda connection: connection.execute(f"UPDATE {table} SET {column} = ?{some}", (value,))


def test_any_value_in_any_column(sound: bytes, path: Path) -> None:
    for case in range(150):
        write(path, sound)
        edit(path, cell(random.Random(case)))
        try:
            use(path)
        except Exception as error:
            raise AssertionError(f"case {case}") from error


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("act", ["DROP TABLE {}", "DELETE FROM {}", "ALTER TABLE {} RENAME TO x"])
def test_missing_tables_and_rows(sound: bytes, path: Path, table: str, act: str) -> None:
    write(path, sound)
    with closing(sqlite3.connect(path)) as connection, connection:
        if "DELETE" in act and table == "entries":
            connection.execute("DROP TRIGGER entries_remain")
        connection.execute(act.format(table))
    assert use(path)["refused"] >= 1


def forged(chance: random.Random, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the chain with any JSON somewhere in a body, and every digest made anew."""
    target = chance.randrange(1, len(rows))
    made, previous = [], ""
    for row in rows:
        body = row[4]
        if row[0] == target:
            content = json.loads(body)
            holder: Any = content
            while True:  # walk down to any place
                name = chance.choice(list(holder))
                if isinstance(holder[name], dict) and holder[name] and chance.random() < 0.7:
                    holder = holder[name]
                    continue
                break
            values = (None, 0, -5, 1e300, "", "x", "-1", "1/0", "1e400", [], {}, [[]], True,
                      "\ud800", "9" * 5000, 10**400, {"a": {}}, "nan", "inf")  # fmt: skip
            if chance.random() < 0.2:
                del holder[name]
            else:
                holder[name] = chance.choice(values)
            body = json.dumps(content if chance.random() < 0.95 else chance.choice(values))
        row = (*row[:4], body, previous)
        previous = compute_digest(*row)
        made.append((*row, previous))
    return made


def put(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    for row in rows:
        connection.execute(
            "UPDATE entries SET body = ?, previous = ?, digest = ? WHERE number = ?",
            (*row[4:7], row[0]),
        )
        connection.execute("UPDATE accounts SET digest = ? WHERE account = ?", (row[6], row[2]))
    for table in ("head", "witness"):
        connection.execute(f"UPDATE {table} SET count = ?, digest = ?", (rows[-1][0], rows[-1][6]))


def test_any_content_under_a_sound_chain(sound: bytes, path: Path) -> None:
    """The digests are right and what they seal is no ledger's."""
    write(path, sound)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
    for case in range(150):
        write(path, sound)
        changed = forged(random.Random(case), rows)
        edit(path, lambda connection, changed=changed: put(connection, changed))  # type: ignore[misc]
        try:
            use(path, sealed=False)
        except Exception as error:
            raise AssertionError(f"case {case}") from error


COMMANDS = ("show", "accounts", "verify", "head", "export")


def test_commands_end_with_a_paragraph(sound: bytes, path: Path) -> None:
    write(path, sound)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
    runner = CliRunner()
    for case in range(24):
        chance = random.Random(case)
        write(path, damaged(sound, chance) if case % 3 == 0 else sound)
        if case % 3 == 1:
            edit(path, cell(chance))
        elif case % 3 == 2:
            changed = forged(chance, rows)
            edit(path, lambda connection, changed=changed: put(connection, changed))  # type: ignore[misc]
        for name in COMMANDS:
            for more in ([], ["--json"]):
                result = runner.invoke(app, ["ledger", name, str(path), *more])
                assert result.exit_code in (0, 1, 4), (case, name, result.output)
                assert "Traceback" not in result.output


def test_a_store_without_the_boundary_is_caught(
    sound: bytes, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin lets through what Python raises on content that is none."""

    def through(path: Path, error: Exception) -> Exception:
        return error

    monkeypatch.setattr(store_file, "unreadable", through)
    monkeypatch.setattr(store_module.store_file, "unreadable", through)
    monkeypatch.setattr("tulle.ledger.ledger.unreadable", through)
    with pytest.raises(AssertionError, match="case"):
        test_any_content_under_a_sound_chain(sound, path)
