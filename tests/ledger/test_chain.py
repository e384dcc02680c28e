"""Whatever is done to the rows behind the store's back, verification finds it and says where."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.ledger.ledger_toy import long_ledger

from tulle.core.errors import LedgerError
from tulle.ledger import store as store_module
from tulle.ledger import store_file
from tulle.ledger.chain import Head, Problem, canonical, compute_digest
from tulle.ledger.store import Store
from tulle.ledger.store import verify as verify_file
from tulle.ledger.totals import Totals

# Each example writes a file and syncs it; on a busy disk that takes what it takes.
patient = settings(deadline=None)

COUNT = 7
NAMES = ("friends", "shop")
TEXTS = ("kind", "account", "time", "body", "previous", "digest")
TRIGGERS = [sql for sql in store_file.SCHEMA if sql.startswith("CREATE TRIGGER")]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Store(tmp_path_factory.mktemp("sound") / "study.ledger")
    for step in range(COUNT):
        made.append("debit", NAMES[step % 2], {"epsilon": "0.1", "step": step})
    return made.path


def tampered(sound: Path, *changes: tuple[str, tuple[Any, ...]]) -> Path:
    """Return a copy that was changed by someone who takes the triggers off and puts them back."""
    copy = sound.with_name("copy.ledger")
    copy.write_bytes(sound.read_bytes())
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for name in ("stay", "remain", "follow"):
            connection.execute(f"DROP TRIGGER entries_{name}")
        for sql, values in changes:
            connection.execute(sql, values)
        for sql in TRIGGERS:
            connection.execute(sql)
    return copy


def found(path: Path) -> list[Problem]:
    """Return the problems; nothing that reads the whole ledger may go on with them."""
    problems = verify_file(path)
    if problems:
        with pytest.raises(LedgerError, match="fails its checks"):
            Store(path).entries()
    return problems


def test_taking_off_the_triggers_alone_changes_nothing(sound: Path) -> None:
    assert found(tampered(sound)) == []
    assert Store(tampered(sound)).append("debit", "shop", {}).number == COUNT + 1


value = st.text() | st.integers(-(2**63), 2**63 - 1) | st.binary() | st.floats(allow_nan=False)


@patient
@given(number=st.integers(0, COUNT), column=st.sampled_from(TEXTS), value=value)
@example(number=3, column="body", value='{"epsilon":"0.0","step":2}')
@example(number=3, column="body", value='{"epsilon": "0.1", "step": 2}')
@example(number=3, column="body", value=b'{"epsilon":"0.1","step":2}')
@example(number=3, column="account", value="Friends")
@example(number=3, column="account", value="shop")
@example(number=0, column="previous", value="0" * 64)
@example(number=0, column="kind", value="debit")
@example(number=COUNT, column="body", value="{}")
def test_any_changed_column_of_any_row_is_found(
    sound: Path, number: int, column: str, value: Any
) -> None:
    with closing(sqlite3.connect(sound)) as connection:
        query = f"SELECT {column} FROM entries WHERE number = ?"
        (before,) = connection.execute(query, (number,)).fetchone()
    if before == value:
        return
    change = f"UPDATE entries SET {column} = ? WHERE number = ?"
    problems = found(tampered(sound, (change, (value, number))))
    assert number in {problem.number for problem in problems}


@patient
@given(number=st.integers(0, COUNT), other=st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 12))
def test_any_changed_number_is_found(sound: Path, number: int, other: int) -> None:
    if 0 <= other <= COUNT:
        return  # taken; exchanges are tested below
    problems = found(
        tampered(sound, ("UPDATE entries SET number = ? WHERE number = ?", (other, number)))
    )
    assert {number, other} & {problem.number for problem in problems}


@pytest.mark.parametrize("number", range(COUNT + 1))
def test_any_deleted_row_is_found(sound: Path, number: int) -> None:
    problems = found(tampered(sound, ("DELETE FROM entries WHERE number = ?", (number,))))
    assert problems[0].number == number


def test_deleted_last_rows_are_found(sound: Path) -> None:
    for first in range(COUNT + 1):
        problems = found(tampered(sound, ("DELETE FROM entries WHERE number >= ?", (first,))))
        assert problems[0].number == first


def test_a_deleted_row_with_the_rest_renumbered_is_found(sound: Path) -> None:
    problems = found(
        tampered(
            sound,
            ("DELETE FROM entries WHERE number = 3", ()),
            ("UPDATE entries SET number = number - 1 WHERE number > 3", ()),
            (f"UPDATE head SET count = {COUNT - 1}", ()),
        )
    )
    assert problems[0].number == 3


@patient
@given(st.lists(st.integers(1, COUNT), min_size=2, max_size=2, unique=True), st.booleans())
def test_any_two_rows_exchanged_are_found(sound: Path, pair: list[int], contents: bool) -> None:
    one, other = pair
    if contents:  # also the digests move: each row is as it was, in another place
        columns = ", ".join(TEXTS)
        move = "INSERT INTO entries SELECT ?, " + columns + " FROM entries WHERE number = ?"
        remove = "DELETE FROM entries WHERE number = ?"
        changes = [
            (move, (-1, one)),
            (remove, (one,)),
            (move, (one, other)),
            (remove, (other,)),
            (move, (other, -1)),
            (remove, (-1,)),
        ]
    else:
        move = "UPDATE entries SET number = ? WHERE number = ?"
        changes = [(move, (-1, one)), (move, (one, other)), (move, (other, -1))]
    problems = found(tampered(sound, *changes))
    assert set(pair) <= {problem.number for problem in problems}


@patient
@given(number=st.integers(1, COUNT + 1), copied=st.integers(0, COUNT))
def test_any_inserted_row_is_found(sound: Path, number: int, copied: int) -> None:
    with closing(sqlite3.connect(sound)) as connection:
        query = "SELECT digest FROM entries WHERE number = ?"
        (previous,) = connection.execute(query, (number - 1,)).fetchone()
    row = (number, "debit", "shop", "2030-01-01", canonical({"step": copied}), previous)
    problems = found(
        tampered(
            sound,
            ("UPDATE entries SET number = -number WHERE number >= ?", (number,)),
            ("UPDATE entries SET number = 1 - number WHERE number < 0", ()),
            (store_file.INSERT, (*row, compute_digest(*row))),
        )
    )
    assert problems


def forge(sound: Path, number: int, upto: int) -> Path:
    """Change one body, then recompute every digest from there to ``upto``."""
    with closing(sqlite3.connect(sound)) as connection:
        rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
    changes: list[tuple[str, tuple[Any, ...]]] = []
    previous = rows[number][5]
    for row in rows[number : upto + 1]:
        body = row[4]
        if row[0] == number:
            body = canonical({**json.loads(body), "epsilon": "0"})
        digest = compute_digest(*row[:4], body, previous)
        changes.append(
            (
                "UPDATE entries SET body = ?, previous = ?, digest = ? WHERE number = ?",
                (body, previous, digest, row[0]),
            )
        )
        previous = digest
    return tampered(sound, *changes)


@patient
@given(st.integers(1, COUNT), st.integers(0, COUNT))
def test_a_forged_digest_is_found_at_the_next_link(sound: Path, number: int, more: int) -> None:
    last = min(number + more, COUNT)
    problems = found(forge(sound, number, last))
    assert last + 1 in {problem.number for problem in problems}


def test_a_wholly_forged_file_is_found_by_what_is_outside(sound: Path) -> None:
    """The chain has no key: a complete forgery is sound in itself, and only the world knows."""
    noted = Store(sound).head()
    released = [entry.digest for entry in Store(sound).entries()]
    copy = forge(sound, 2, COUNT)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(
            "UPDATE head SET digest = (SELECT digest FROM entries WHERE number = ?)", (COUNT,)
        )
        connection.execute("UPDATE witness SET digest = (SELECT digest FROM head)")
        connection.execute(
            "UPDATE accounts SET digest = (SELECT digest FROM entries WHERE entries.account ="
            " accounts.account ORDER BY number DESC LIMIT 1)"
        )
    assert verify_file(copy) == []
    assert [problem.number for problem in verify_file(copy, expected_head=noted)] == [COUNT]
    problems = verify_file(copy, expected_digests=released)
    assert len(problems) == COUNT - 1
    assert released[1] in " ".join(problem.what for problem in problems)


def test_an_old_copy_put_back_is_found_by_what_is_outside(sound: Path) -> None:
    copy = tampered(sound)
    old = copy.read_bytes()
    store = Store(copy)
    newer = store.append("debit", "shop", {})
    noted = store.head()
    assert store.verify(expected_head=noted, expected_digests=[newer.digest]) == []
    copy.write_bytes(old)
    assert verify_file(copy) == []
    (problem,) = verify_file(copy, expected_head=noted)
    assert problem.number == COUNT + 1
    assert "older copy" in str(problem)
    (problem,) = verify_file(copy, expected_digests=[newer.digest])
    assert newer.digest in str(problem)


def test_earlier_heads_stay_in_the_ledger(sound: Path) -> None:
    store = Store(tampered(sound))
    heads = [store.head()]
    for _ in range(3):
        store.append("debit", "shop", {})
        heads.append(store.head())
    assert all(store.verify(expected_head=head) == [] for head in heads)
    assert store.verify(expected_head=Head(heads[0].count, heads[1].digest))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE head SET count = count - 1",
        "UPDATE head SET digest = 'x'",
        "UPDATE head SET digest = CAST(digest AS BLOB)",
        "DELETE FROM head",
        "UPDATE accounts SET count = count - 1 WHERE account = 'shop'",
        "UPDATE witness SET count = count - 1",
        "UPDATE witness SET digest = 'x'",
        "DELETE FROM witness",
        "INSERT INTO answers VALUES ('x', 3)",
        "UPDATE accounts SET account = 'other' WHERE account = 'shop'",
        "UPDATE accounts SET digest = 'x' WHERE account = 'shop'",
        "DELETE FROM accounts WHERE account = 'shop'",
        "INSERT INTO accounts VALUES ('new', 0, '')",
    ],
)
def test_changed_summaries_are_found(sound: Path, change: str) -> None:
    assert found(tampered(sound, (change, ())))


def test_opening_notices_that_the_accounts_do_not_add_up(sound: Path) -> None:
    """With its summary gone, and its index damaged too, an account would look like a new one."""
    copy = tampered(sound, ("DELETE FROM accounts WHERE account = 'shop'", ()))
    with pytest.raises(LedgerError, match="add up"):
        Store(copy)


def test_damaged_text_is_found_where_it_is(sound: Path) -> None:
    """Bytes that are no text must not hide which entry they are in."""
    copy = tampered(sound)
    content = copy.read_bytes()
    place = content.index(b'{"epsilon":"0.1","step":3,')
    copy.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
    assert [problem.number for problem in found(copy)] == [4]
    with pytest.raises(LedgerError, match="entry 4"):
        Store(copy).entries("shop")


@pytest.mark.parametrize(("place", "value"), [(32, [0, 0, 0, 2, 0, 0, 0, 1]), (52, [0, 0, 0, 6])])
def test_a_header_that_lets_live_pages_be_overwritten_is_refused(
    sound: Path, place: int, value: list[int]
) -> None:
    """A list of free pages that names a live one; a map of pages where there is none."""
    copy = tampered(sound)
    content = copy.read_bytes()
    copy.write_bytes(content[:place] + bytes(value) + content[place + len(value) :])
    with pytest.raises(LedgerError, match=r"tables|free pages"):
        Store(copy).append("debit", "shop", {})
    assert verify_file(copy)


def with_a_free_page(path: Path) -> Store:
    """Make a ledger of many accounts, as its store does it, until a page of an index is free."""
    for seed in range(100):
        random, names = Random(seed), list[str]()
        path.unlink(missing_ok=True)
        store = Store(path)
        with closing(store_file.connect(path, 0.0)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            totals: dict[str, Totals] = {}
            for _ in range(1200):
                if not names or random.random() < 0.4:
                    names.append("".join(random.choices("abcdefghij", k=random.randint(3, 30))))
                name = names[-1] if names[-1] not in totals else random.choice(names)
                body = {"step": "x" * random.choice([10, 300])}
                before = totals.get(name, Totals())
                store_module._write(connection, "debit", name, body, before)
                totals[name] = before.after("debit", body)
                if store_file.pragma(connection, "freelist_count"):
                    connection.execute(
                        "UPDATE witness SET (count, digest) = (SELECT count, digest FROM head)"
                    )
                    connection.execute("COMMIT")
                    return store
    raise AssertionError("no page became free")


def test_a_ledger_of_many_accounts_may_have_a_free_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = with_a_free_page(tmp_path / "many.ledger")
    assert store.verify() == []
    looked = []
    honest = store_file.pragma
    monkeypatch.setattr(
        store_file, "pragma", lambda c, name: (looked.append(name), honest(c, name))[1]
    )
    for step in range(8):  # the next entries take the page
        store.append("debit", "shop", {"step": step, "long": "x" * 4000})
    looked.clear()
    store.append("debit", "shop", {})
    assert "quick_check(1)" not in looked
    assert store.verify() == []


def test_a_ledger_that_never_has_a_free_page_would_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version takes any free page for damage."""
    store = with_a_free_page(tmp_path / "many.ledger")
    monkeypatch.setattr(
        store_file,
        "wrong_free_pages",
        lambda c: "is damaged" if store_file.pragma(c, "freelist_count") else None,
    )
    with pytest.raises(LedgerError, match="fails its checks"):
        store.append("debit", "shop", {})


def test_a_free_page_that_is_named_in_place_of_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.ledger"
    with_a_free_page(path)
    content = path.read_bytes()
    free = int.from_bytes(content[32:36], "big")
    pages = len(content) // 4096
    for page in {2, 3, pages // 2, pages - 1, pages} - {free}:
        path.write_bytes(content[:32] + page.to_bytes(4, "big") + content[36:])
        with pytest.raises(LedgerError):
            Store(path).append("debit", "shop", {"long": "x" * 9000})
        assert verify_file(path)


def test_an_account_is_not_read_short(sound: Path) -> None:
    """A row that was taken from the middle of an account is missed by who reads all of it.

    Who asks reads the last row, whose totals still count what was taken away.
    """
    copy = tampered(sound, ("UPDATE entries SET account = 'other' WHERE number = 2", ()))
    store = Store(copy)  # first and last entry, head and totals are all in order
    with pytest.raises(LedgerError, match="shop"):
        store.entries("shop")
    assert store.append("debit", "shop", {}).body["totals"]["debits"] == COUNT // 2 + 1


LAST = {"friends": COUNT, "shop": COUNT - 1}


@pytest.mark.parametrize("account", NAMES)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET account = 'other' WHERE number = ?",
        "UPDATE entries SET body = replace(body, 'delta', 'DELTA') WHERE number = ?",
        "UPDATE entries SET body = replace(body, 'epsilon', 'delta') WHERE number = ?",
        "UPDATE entries SET body = '{}' WHERE number = ?",
        "UPDATE entries SET body = CAST(body AS BLOB) WHERE number = ?",
        "UPDATE entries SET body = 7 WHERE number = ?",
        "UPDATE entries SET digest = 'x' WHERE number = ?",
        "UPDATE entries SET number = 1000 + number WHERE number = ?",
        "DELETE FROM entries WHERE number = ?",
        "UPDATE accounts SET count = count - 1 WHERE account ="
        " (SELECT account FROM entries WHERE number = ?)",
        "UPDATE accounts SET digest = (SELECT digest FROM entries WHERE number < 3 AND account ="
        " accounts.account) WHERE account = (SELECT account FROM entries WHERE number = ?)",
        "DELETE FROM accounts WHERE account = (SELECT account FROM entries WHERE number = ?)",
    ],
)
def test_a_question_notices_at_once_what_its_budget_rests_on(
    sound: Path, account: str, change: str
) -> None:
    """The last row of the account, what notes it, and what names it: no history is read."""
    copy = tampered(sound, (change, (LAST[account],)))
    for act in (
        lambda: Store(copy).append("debit", account, {}),
        lambda: Store(copy).read(account, lambda view: view.totals),
    ):
        with pytest.raises(LedgerError, match="fails its checks"):
            act()


def test_a_forged_total_is_found_by_adding_up(sound: Path) -> None:
    """Who makes the last row anew, with its digest and all that names it, is found by verify."""
    with closing(sqlite3.connect(sound)) as connection:
        (row,) = connection.execute("SELECT * FROM entries WHERE number = ?", (COUNT,))
    body = json.loads(row[4])
    for name, value in (("epsilon", "-1"), ("debits", 1), ("entries", 1), ("delta", "1")):
        forged = canonical({**body, "totals": {**body["totals"], name: value}})
        digest = compute_digest(*row[:4], forged, row[5])
        copy = tampered(
            sound,
            ("UPDATE entries SET body = ?, digest = ? WHERE number = ?", (forged, digest, COUNT)),
            ("UPDATE head SET digest = ?", (digest,)),
            ("UPDATE accounts SET digest = ? WHERE account = ?", (digest, row[2])),
            ("UPDATE witness SET digest = ?", (digest,)),
        )
        assert verify_file(copy)[0].number == COUNT
        assert "totals" in verify_file(copy)[0].what


@pytest.mark.parametrize("change", ["DELETE FROM answers", "UPDATE answers SET number = 2"])
def test_a_kept_answer_that_is_noted_wrongly_is_found(tmp_path: Path, change: str) -> None:
    store = Store(tmp_path / "study.ledger")
    for key in ("a", "b", "c"):
        store.append("release", "shop", {"key": key})
    assert store.verify() == []
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(change + " WHERE number = 3")
    assert store.verify()
    if change.startswith("UPDATE"):
        with pytest.raises(LedgerError, match="another question"):
            store.read("shop", lambda view: view.kept("c"))


def test_a_hundred_thousand_entries_verify_in_about_a_second(tmp_path: Path) -> None:
    count = 100_000
    store, previous = long_ledger(tmp_path / "long.ledger", count, accounts=100)
    start = time.process_time()  # verification waits for nothing; other programs do not count
    assert store.verify(expected_head=Head(count, previous)) == []
    verifying = time.process_time() - start
    start = time.process_time()  # nor does what the disk takes: that is the same for few
    store.append("debit", "a1", {})
    appending = time.process_time() - start
    print(f"verify {verifying:.2f} s, append {appending * 1000:.1f} ms")
    assert verifying < 10  # about 1 s when nothing else runs
    assert appending < 1
