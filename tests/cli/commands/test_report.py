"""``tulle report``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.cli_helpers import SECRET, Run
from typer.testing import CliRunner

import tulle
from tulle.cli.main import app
from tulle.graphs.generators import social_network


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "study.ledger"
    graph = social_network(60, seed=1)
    for name in ("one", "two"):
        study = tulle.Ledger(path).open(name, graph, unit="edge", epsilon=2)
        study.ask(tulle.edges(), epsilon=1)
    return path


def test_a_page_is_written(ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(
        app, ["report", str(ledger), "--account", "one", "--out", str(out), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"account": "one", "releases": 1, "file": str(out)}
    assert "Released: one" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [((), 2, "one, two"), (("--account", "three"), 4, "There is no account")],
)
def test_the_account_must_be_named_and_exist(
    ledger: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(ledger), *arguments, "--out", str(out)])
    assert done.exit_code == code
    assert words in " ".join(done.output.split())
    assert not out.exists()


def test_a_missing_ledger_is_not_made(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path / "none.ledger")])
    assert done.exit_code == 4
    assert not (tmp_path / "none.ledger").exists()


def test_the_custodians_page_sets_the_truth_beside_each_answer(
    run: Run, friends: Path, tmp_path: Path
) -> None:
    asked = ("--unit", "edge", "--epsilon", "1", "--ledger", "study.ledger", "--budget", "2")
    assert run("ask", friends, "edges", *asked).code == 0
    ran = run("report", "study.ledger", "--truth", friends, "--out", "inside.html")
    assert ran.code == 0
    assert "must stay with the custodian" in ran.err
    page = (tmp_path / "inside.html").read_text()
    assert "<td>90</td>" in page, "the ring has ninety links"
    assert SECRET not in page
    # Another network is not the account's: nothing is written about it.
    (tmp_path / "other.csv").write_text("0,1\n1,2\n")
    other = run("report", "study.ledger", "--truth", "other.csv", "--out", "other.html")
    assert other.code == 4
    assert not (tmp_path / "other.html").exists()
