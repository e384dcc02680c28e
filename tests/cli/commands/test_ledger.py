"""``tulle ledger``."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.cli.cli_helpers import Run

from tulle.core.release import Release

EDGE = ("--unit", "edge", "--epsilon")


@pytest.fixture
def book(run: Run, friends: Path, tmp_path: Path) -> Path:
    """A ledger with two accounts and three answers."""
    file = tmp_path / "study.ledger"
    asked = ("--ledger", file, "--budget", "2")
    assert run("ask", friends, "edges", *EDGE, "1", *asked, "--out", "edges.json").code == 0
    assert run("ask", friends, "degrees", *EDGE, "0.5", *asked).code == 0
    assert run("ask", friends, "edges", *EDGE, "0.25", *asked, "--account", "other").code == 0
    return file


def test_show(run: Run, book: Path) -> None:
    ran = run("ledger", "show", book)
    assert ran.code == 0
    for word in ("friends", "other", "edges()", "degrees()", "30 numbers", "epsilon = 0.5"):
        assert word in ran.out
    alone = run("ledger", "show", book, "--account", "other")
    assert "degrees()" not in alone.out
    assert run("ledger", "show", book, "--account", "nobody").code == 4


def test_show_json(run: Run, book: Path) -> None:
    accounts = run("ledger", "show", book, "--json").json()["accounts"]
    first = accounts[0]
    assert first["account"] == "friends"
    assert first["facts"] == {"nodes": 30}
    assert first["remaining"] == {"epsilon": "0.5", "delta": "0"}
    assert first["spent"]["epsilon"] == "1.5"
    assert [debit["question"] for debit in first["debits"]] == ["edges()", "degrees()"]
    assert all(debit["answer_kept"] for debit in first["debits"])


def test_accounts(run: Run, book: Path) -> None:
    assert "other" in run("ledger", "accounts", book).out
    listed = run("ledger", "accounts", book, "--json").json()["accounts"]
    assert [item["account"] for item in listed] == ["friends", "other"]


def test_a_ledger_without_accounts(run: Run, tmp_path: Path) -> None:
    from tulle.ledger.ledger import Ledger

    Ledger(tmp_path / "new.ledger")
    assert "no accounts yet" in run("ledger", "show", "new.ledger").out
    assert "no accounts yet" in run("ledger", "accounts", "new.ledger").out
    assert run("ledger", "show", "new.ledger", "--json").json() == {"accounts": []}


def test_export_brings_releases_that_read_back(run: Run, book: Path) -> None:
    exported = run("ledger", "export", book).json()
    kept = [Release.from_json(item) for item in exported["accounts"][0]["releases"]]
    assert [item.query for item in kept] == ["edges()", "degrees()"]
    assert run("ledger", "export", book, "--out", "export.json").code == 0
    assert json.loads(Path("export.json").read_text()) == exported
    assert run("ledger", "export", book, "--out", "nowhere/export.json").code == 2
    assert len(run("ledger", "export", book, "--account", "other").json()["accounts"]) == 1


def test_verify_a_sound_ledger(run: Run, book: Path) -> None:
    head = run("ledger", "head", book).out.strip()
    assert run("ledger", "head", book, "--json").json()["head"] == head
    ran = run("ledger", "verify", book, "--head", head, "--release", "edges.json")
    assert ran.code == 0
    assert "is intact" in ran.out
    plain = run("ledger", "verify", book, "--json").json()
    assert plain == {"sound": True, "problems": [], "head": head}


def test_verify_finds_an_old_copy(run: Run, friends: Path, book: Path) -> None:
    shutil.copy(book, "old.ledger")
    asked = ("ask", friends, "triangles", *EDGE, "0.5", "--ledger", book, "--out", "new.json")
    assert run(*asked).code == 0
    head = run("ledger", "head", book).out.strip()
    assert run("ledger", "verify", "old.ledger").code == 0
    assert run("ledger", "verify", "old.ledger", "--head", head).code == 1
    ran = run("ledger", "verify", "old.ledger", "--release", "new.json", "--json")
    assert ran.code == 1
    assert not ran.json()["sound"]
    assert "older copy" in ran.json()["problems"][0]["what"]


def test_verify_finds_a_changed_entry(run: Run, book: Path) -> None:
    with sqlite3.connect(book) as connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute("UPDATE entries SET body = replace(body, '0.5', '0.1') WHERE number = 4")
    connection.close()
    ran = run("ledger", "verify", book)
    assert ran.code == 1
    assert "is damaged" in ran.out
    assert "entry 4" in ran.out
    assert run("ledger", "show", book).code == 4


def test_verify_with_bad_arguments(run: Run, friends: Path, book: Path) -> None:
    assert run("ledger", "verify", book, "--head", "nonsense").code == 2
    assert run("ledger", "verify", book, "--release", "missing.json").code == 2
    assert run("ledger", "verify", book, "--release", friends).code == 2
    assert run("ledger", "verify", book, "--release", book).code == 2
    assert run("ledger", "verify", "missing.ledger").code == 4
    alone = ("ask", friends, "edges", *EDGE, "1", "--no-ledger", "--out", "alone.json")
    assert run(*alone).code == 0
    outside = run("ledger", "verify", book, "--release", "alone.json")
    assert outside.code == 2
    assert "outside a ledger" in outside.err


def test_an_interrupted_answer_says_what_was_booked(
    run: Run, friends: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tulle.ledger.session.draw", interrupt)
    file = tmp_path / "study.ledger"
    asked = ("ask", friends, "edges", *EDGE, "0.25", "--ledger", file, "--budget", "1")
    ran = run(*asked)
    assert ran.code == 130
    assert "epsilon = 0.25" in ran.err
    assert "stays spent" in ran.err
    assert "epsilon = 0.75 is left" in ran.err
    assert run(*asked, "--json").json()["error"]["kind"] == "interrupted"


def test_a_ledger_with_two_names_is_refused(run: Run, book: Path, tmp_path: Path) -> None:
    (tmp_path / "second.ledger").hardlink_to(book)
    ran = run("ledger", "show", book)
    assert ran.code == 4
    assert "2 names (hard links)" in ran.err
    assert run("ledger", "verify", book).code == 1
