"""Versions, renewing budgets and units with a period from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tulle.cli.main import app
from tulle.ledger.ledger import Ledger


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    file = tmp_path / "friends.csv"
    file.write_text("0,1\n1,2\n2,0\n2,3\n")
    return file


def ask(edges: Path, *more: Any) -> Any:
    return run(
        "ask", edges, "edges()", "--unit", "edge", "--epsilon", "0.4", "--nodes", "5",
        "--ledger", edges.parent / "study.ledger", "--json", *more,
    )  # fmt: skip


def test_a_week_is_opened_asked_and_shown(edges: Path) -> None:
    ledger = edges.parent / "study.ledger"
    terms = ("--budget", "1", "--every", "week", "--zone", "Europe/Zurich")
    missing = ask(edges, *terms)
    assert missing.exit_code != 0
    assert "--version 2026-W46 --date 2026-11-09" in missing.output
    assert not ledger.exists()
    first = ask(edges, *terms, "--version", "2026-W44", "--date", "2026-10-26")
    assert first.exit_code == 0, first.output
    value = json.loads(first.stdout)["release"]["value"]
    # The same question of the same version is free; of the next week it is paid from its budget.
    again = json.loads(ask(edges, "--version", "2026-W44").stdout)
    assert (again["asked_before"], again["release"]["value"]) == (True, value)
    unknown = ask(edges, "--version", "2026-W45")
    assert unknown.exit_code != 0
    assert "give its day with --date" in unknown.output
    second = json.loads(ask(edges, "--version", "2026-W45", "--date", "2026-11-02").stdout)
    assert second["release"]["version"] == "2026-W45"
    assert (second["asked_before"], second["remaining"]["epsilon"]) == (False, "0.6")
    # Kept answers of an earlier week are still there, and nothing new can be asked of it.
    earlier = json.loads(ask(edges, "--version", "2026-W44").stdout)
    assert earlier["release"]["value"] == value
    assert ask(edges, "--version", "2026-W44", "--again").exit_code != 0
    backwards = ask(edges, "--version", "x", "--date", "2026-10-01")
    assert "do not go backwards" in backwards.output
    shown = run("ledger", "calendar", ledger)
    assert shown.exit_code == 0
    assert "2026-W44" in shown.output
    assert "54" in shown.output  # what it adds up to in a year
    listed = json.loads(run("ledger", "calendar", ledger, "--json").stdout)["accounts"][0]
    assert [period["label"] for period in listed["periods"]] == ["2026-W44", "2026-W45"]
    assert Ledger(ledger).verify() == []


def test_a_version_is_declared(edges: Path) -> None:
    ledger = edges.parent / "study.ledger"
    assert ask(edges, "--budget", "1").exit_code == 0
    declared = run("ledger", "version", ledger, "2026-W45", "--date", "2026-11-02")
    assert declared.exit_code == 0, declared.output
    assert "2026-W45" in declared.output
    found = json.loads(ask(edges).stdout)
    assert (found["release"]["version"], found["asked_before"]) == ("2026-W45", False)
    assert "version 2026-W45 of 2026-11-02" in run("ledger", "show", ledger).output
    for bad in (("2026-W46",), ("W", "--date", "soon"), ("W", "--date", "2026-01-01")):
        assert run("ledger", "version", ledger, *bad).exit_code != 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--date", "2026-11-02"), "--date goes with --version"),
        (("--carry",), "go with --every"),
        (("--every", "week"), "--every goes with --budget"),
        (("--every", "hour", "--budget", "1", "--version", "a", "--date", "2026-11-02"), "one of"),
    ],
)
def test_options_that_do_not_go_together(edges: Path, options: tuple[str, ...], words: str) -> None:
    result = ask(edges, *options)
    assert result.exit_code != 0
    assert words in result.output


def test_a_question_per_week(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    file = tmp_path / "trips.csv"
    file.write_text("rider,day\n1,2026-01-05\n1,2026-01-12\n2,2026-01-05\n")
    words = (
        "sql", "ask", "duckdb://", "SELECT COUNT(*) FROM trips", "--tables", f"trips={file}",
        "--types", "trips.rider=INTEGER", "--types", "trips.day=DATE", "--owners", "trips=rider",
        "--epsilon", "1", "--no-ledger", "--json", "--unit", "participant-week",
    )  # fmt: skip
    found = run(*words, "--times", "trips=day")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["release"]["guarantee"]["unit"] == "participant-week"
    refused = run(*words)
    assert refused.exit_code != 0
    assert "times" in refused.output
