"""The store keeps what it is given, refuses what it cannot keep, and says why."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sqlite3
import stat
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tulle.core.errors import BudgetError, InputError, LedgerError
from tulle.ledger.chain import VERSION, Head, canonical, compute_digest
from tulle.ledger.store import Store
from tulle.ledger.store import verify as verify_file
from tulle.ledger.store_file import APPLICATION, View

NAMES = ("friends", "shop", "genes")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "study.ledger")
    for step in range(6):
        made.append("debit", NAMES[step % 3], {"epsilon": "0.1", "step": step})
    return made


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_entries_come_back_in_order_and_by_account_and_kind(store: Store) -> None:
    note = store.append("note", "shop", {"text": "é\u2028\n", "list": [1, None, True, {"a": "b"}]})
    assert [entry.number for entry in store.entries()] == list(range(1, 8))
    assert [entry.body["step"] for entry in store.entries("shop", ["debit"])] == [1, 4]
    assert store.entries(kinds=["note"]) == [note]
    assert store.entries("nobody") == []
    assert store.accounts() == sorted(NAMES)
    assert store.verify() == []


def test_a_new_object_reads_what_another_wrote(store: Store) -> None:
    again = Store(store.path, create=False)
    assert again.entries() == store.entries()
    assert again.head() == store.head()
    assert again.identity == store.identity


def test_the_chain_is_what_the_documentation_says(store: Store) -> None:
    entries = store.entries()
    for before, after in itertools.pairwise(entries):
        assert after.previous == before.digest
    last = entries[-1]
    text = json.dumps(
        [
            "tulle ledger",
            1,
            6,
            "debit",
            "genes",
            last.time,
            '{"epsilon":"0.1","step":5,'
            '"totals":{"debits":2,"delta":"0","entries":2,"epsilon":"0"}}',
            last.previous,
        ],
        separators=(",", ":"),
    )
    assert last.digest == hashlib.sha256(text.encode()).hexdigest()
    assert store.head() == Head(6, last.digest)


def test_an_empty_ledger_is_sound_and_has_its_own_beginning(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    assert first.entries() == []
    assert first.head().count == 0
    assert first.verify(expected_head=first.head()) == []
    assert first.head().digest != second.head().digest
    assert first.identity != second.identity


def test_guard_sees_only_its_account_and_can_refuse(store: Store) -> None:
    seen: list[tuple[int, int]] = []

    def refuse(account: View) -> None:
        first = account.first()
        assert first is not None
        seen.append((first.number, account.totals.debits))
        raise BudgetError("too much")

    before = store.head()
    with pytest.raises(BudgetError, match="too much"):
        store.append("debit", "shop", {}, guard=refuse)
    assert seen == [(2, 2)]
    assert store.head() == before
    assert store.verify() == []
    store.append("debit", "shop", {})  # the lock is free again


def test_reuse_comes_before_guard_and_writes_nothing(store: Store) -> None:
    def refuse(account: View) -> None:
        raise BudgetError("used up")

    before = store.head()
    found = store.append("debit", "shop", {}, guard=refuse, reuse=View.first)
    assert found.number == 2
    assert store.head() == before
    added = store.append("debit", "shop", {}, reuse=lambda account: None)
    assert added.number == 7


def test_answers_are_found_by_account_and_question_and_the_newest_counts(store: Store) -> None:
    for account in ("shop", "genes"):
        for key in ("a", "b", "a"):
            store.append("release", account, {"key": key})
    assert [
        store.read(account, lambda view: view.kept(key))  # noqa: B023 - called at once
        and store.read(account, lambda view: view.kept(key)).number  # noqa: B023
        for account in ("shop", "genes", "friends")
        for key in ("a", "b", "c")
    ] == [9, 8, None, 12, 11, None, None, None, None]
    assert store.verify() == []


def test_an_entry_cannot_bring_its_own_totals(store: Store) -> None:
    with pytest.raises(InputError, match="totals"):
        store.append("debit", "shop", {"totals": {"epsilon": "0"}})


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
).filter(lambda value: "inf" not in str(value))


@settings(deadline=None)
@given(st.dictionaries(st.text(), plain))
def test_canonical_text_does_not_depend_on_order_and_reads_back(body: dict[str, object]) -> None:
    text = canonical(body)
    assert text.isascii()
    assert json.loads(text) == body
    assert canonical(dict(reversed(body.items()))) == text


row = st.tuples(st.integers(0), st.text(), st.text(), st.text(), st.text(), st.text())


@settings(deadline=None)
@given(row, row)
def test_digests_differ_when_entries_do(
    one: tuple[int, str, str, str, str, str], other: tuple[int, str, str, str, str, str]
) -> None:
    assert (compute_digest(*one) == compute_digest(*other)) == (one == other)


def test_digests_do_not_confuse_where_one_part_ends() -> None:
    assert compute_digest(1, "ab", "c", "", "", "") != compute_digest(1, "a", "bc", "", "", "")
    assert compute_digest(1, 'a","b', "", "", "", "") != compute_digest(1, "a", "b", "", "", "")


@pytest.mark.parametrize(
    "body",
    [
        {"a": float("nan")},
        {"a": float("inf")},
        {1: "a"},
        {"a": {None: 1}},
        {"a": [{2: 3}]},
        {"a": b"bytes"},
        {"a": {1, 2}},
        {"a": object()},
    ],
)
def test_a_body_that_is_not_plain_json_is_refused(store: Store, body: dict[str, object]) -> None:
    with pytest.raises(InputError, match="plain JSON"):
        store.append("debit", "shop", body)
    assert store.head().count == 6


@pytest.mark.parametrize(
    ("kind", "account"),
    [("", "a"), ("debit", ""), ("genesis", "a"), ("debit", "a\nb"), ("debit", "\ud800")],
)
def test_a_bad_name_is_refused(store: Store, kind: str, account: str) -> None:
    with pytest.raises(InputError, match="cannot name"):
        store.append(kind, account, {})


def test_a_head_can_be_written_down(store: Store) -> None:
    head = store.head()
    assert Head.parse(f" {head}\n") == head
    for text in ("", "3", "x:" + "a" * 64, "3:" + "g" * 64, "-1:" + "a" * 64, "3:" + "A" * 64):
        with pytest.raises(InputError, match="count:digest"):
            Head.parse(text)


def test_the_file_is_private_and_alone(store: Store) -> None:
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert os.listdir(store.path.parent) == ["study.ledger"]


def test_the_commit_is_the_durable_kind(store: Store) -> None:
    with store._transaction("BEGIN") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}' WHERE number = 2",
        "DELETE FROM entries WHERE number = 6",
        "INSERT OR REPLACE INTO entries SELECT 2, kind, account, time, '{}', previous, digest"
        " FROM entries WHERE number = 2",
        "INSERT INTO entries SELECT 9, kind, account, time, body, previous, digest"
        " FROM entries WHERE number = 2",
    ],
)
def test_triggers_refuse_changes(store: Store, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="ledger entries"):
        edit(store.path, statement)
    assert store.verify() == []


def test_another_version_is_named_beside_ours(store: Store) -> None:
    edit(store.path, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(LedgerError, match=f"version {VERSION + 1}, .* version {VERSION}"):
        Store(store.path)
    assert "version" in verify_file(store.path)[0].what


def test_other_sqlite_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    edit(path, "CREATE TABLE mine (a)")
    content = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger of tulle"):
        Store(path)
    edit(path, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
    with pytest.raises(LedgerError, match="tables"):
        Store(path)
    assert len(path.read_bytes()) == len(content)


def test_a_dropped_trigger_is_noticed(store: Store) -> None:
    edit(store.path, "DROP TRIGGER entries_stay")
    with pytest.raises(LedgerError, match="tables or triggers"):
        store.append("debit", "shop", {})
    assert [problem.number for problem in store.verify()] == [None]


def test_a_ledger_turned_to_another_journal_is_turned_back(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    store.append("debit", "shop", {})
    assert os.listdir(store.path.parent) == ["study.ledger"]
    assert store.verify() == []


def refused(error: pytest.ExceptionInfo[LedgerError]) -> str:
    """Check the form of a message: one paragraph, and nothing was spent."""
    text = str(error.value)
    assert "Nothing was spent" in text
    assert "\n" not in text
    assert not isinstance(error.value, sqlite3.Error)
    return text


def test_paths_that_cannot_be_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="folder") as error:
        Store(tmp_path)
    refused(error)
    with pytest.raises(LedgerError, match="does not exist") as error:
        Store(tmp_path / "absent", create=False)
    refused(error)
    with pytest.raises(LedgerError, match="No such file") as error:
        Store(tmp_path / "absent" / "study.ledger")
    refused(error)
    (tmp_path / "file").write_text("x")
    with pytest.raises(LedgerError) as error:
        Store(tmp_path / "file" / "study.ledger")
    refused(error)
    with pytest.raises(LedgerError, match="too long") as error:
        Store(tmp_path / ("x" * 300))
    refused(error)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LedgerError, match="regular") as error:
        Store(tmp_path / "pipe")
    refused(error)
    for path in ("", "a\0b"):
        with pytest.raises(InputError, match="name a file"):
            Store(path)
    with pytest.raises(InputError, match="timeout"):
        Store(tmp_path / "a", timeout=float("nan"))
    assert sorted(os.listdir(tmp_path)) == ["file", "pipe"]


@pytest.mark.parametrize("content", [b"", b"x", b"a,b\n1,2\n" * 1000, bytes(8192)])
def test_files_that_are_not_ledgers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a ledger") as error:
        Store(path)
    refused(error)
    assert path.read_bytes() == content


def test_a_link_leads_to_the_one_file(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(store.path)
    assert Store(tmp_path / "link").path == store.path


def test_strange_file_names_are_only_names(tmp_path: Path) -> None:
    for name in ("a?mode=memory", "50% #1", "é ü", ":memory:"):
        Store(tmp_path / name).append("debit", "a", {})
        assert Store(tmp_path / name, create=False).head().count == 1
    assert len(os.listdir(tmp_path)) == 4


def test_a_timeout_may_be_endless(store: Store) -> None:
    assert Store(store.path, timeout=float("inf")).append("debit", "shop", {}).number == 7


def test_a_ledger_that_stays_locked(store: Store) -> None:
    patient = Store(store.path, timeout=0.05)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        start = time.monotonic()
        with pytest.raises(LedgerError, match=r"locked for 0\.05 s") as error:
            patient.append("debit", "shop", {})
        refused(error)
        assert time.monotonic() - start < 5
        with pytest.raises(LedgerError, match="locked"):
            patient.verify()
    assert patient.append("debit", "shop", {}).number == 7


def test_a_reader_that_blocks_the_commit(store: Store) -> None:
    """The lock comes in two steps; the second can fail after all was prepared."""
    patient = Store(store.path, timeout=0.05)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM entries").fetchall()
        with pytest.raises(LedgerError, match="locked") as error:
            patient.append("debit", "shop", {})
        refused(error)
    assert patient.head().count == 6
    assert patient.append("debit", "shop", {}).number == 7


def test_a_thread_that_holds_the_store_too_long(store: Store) -> None:
    patient = Store(store.path, timeout=0.05)
    inside, leave = threading.Event(), threading.Event()

    def linger(entries: object) -> None:
        inside.set()
        leave.wait(10)

    thread = threading.Thread(target=lambda: store.append("debit", "a", {}, guard=linger))
    thread.start()
    inside.wait(10)
    with pytest.raises(LedgerError, match="thread") as error:
        patient.head()
    refused(error)
    leave.set()
    thread.join()
    assert patient.head().count == 7


def test_a_journal_without_its_ledger_is_not_applied_to_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "study.ledger-journal").write_bytes(b"left over")
    with pytest.raises(LedgerError, match="journal") as error:
        Store(tmp_path / "study.ledger")
    refused(error)
    assert os.listdir(tmp_path) == ["study.ledger-journal"]


def test_a_deleted_ledger_is_not_begun_anew_by_an_open_store(store: Store) -> None:
    store.path.unlink()
    with pytest.raises(LedgerError, match="does not exist") as error:
        store.append("debit", "shop", {})
    refused(error)
    assert not store.path.exists()


def test_an_old_copy_put_back_under_an_open_store(store: Store) -> None:
    old = store.path.read_bytes()
    store.append("debit", "shop", {})
    store.path.write_bytes(old)
    with pytest.raises(LedgerError, match="older copy"):
        store.append("debit", "shop", {})


def test_another_ledger_put_under_an_open_store(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    for _ in range(9):
        other.append("debit", "shop", {})
    os.replace(other.path, store.path)
    with pytest.raises(LedgerError, match="another ledger"):
        store.entries("shop")


def test_a_commit_that_was_not_confirmed_is_not_called_unspent(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only the last sync fails, the entry is there, and the message must not deny it."""

    class Unconfirmed(sqlite3.Connection):
        def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:  # type: ignore[override]
            cursor = super().execute(sql, *arguments)  # type: ignore[arg-type]
            if sql == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return cursor

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Unconfirmed, **k))
    with pytest.raises(LedgerError, match="stays booked"):
        store.append("debit", "shop", {})
    monkeypatch.undo()
    assert store.head().count == 7


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 5, None, object()])
def test_what_names_no_file_is_refused(name: Any) -> None:
    for act in (lambda: Store(name), lambda: Store(name, create=False), lambda: verify_file(name)):
        with pytest.raises(InputError, match="must name a file"):
            act()
