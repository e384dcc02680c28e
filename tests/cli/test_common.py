"""Messages in the syntax of the command line."""

from __future__ import annotations

import inspect
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.cli_helpers import Run

import tulle
from tulle.cli.common import WRITTEN, print_json
from tulle.cli.main import app


def test_messages_speak_of_options_but_leave_paths_alone() -> None:
    from tulle.cli.common import in_options

    assert in_options("unit='x' is not known.") == "--unit 'x' is not known."
    assert in_options("Name it with mechanism=.") == "Name it with --mechanism."
    assert in_options("say it with nodes=; or not") == "say it with --nodes; or not"
    assert in_options("/data/unit=3/x.csv is empty") == "/data/unit=3/x.csv is empty"


def test_a_question_in_an_error_is_left_as_it_is_written() -> None:
    from tulle.cli.common import in_options

    said = "Pass nodes=5, or ask mixing(by='dept', groups=['a', 'b']) with groups={'r': ['a']}."
    assert in_options(said) == (
        "Pass --nodes 5, or ask mixing(by='dept', groups=['a', 'b']) with --groups {'r': ['a']}."
    )


# --- files that commands write ------------------------------------------------------------------

READ = {
    "account",
    "attributes",
    "catalogue",
    "file",
    "form",
    "genotypes",
    "known",
    "ledger",
    "like",
    "members",
    "path",
    "people",
    "reference",
    "release",
    "reports",
    "synthetic",
    "truth",
}
"""Parameters that name a file which a command reads, or keeps its books in."""


def leaves(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, f"{name}{word} ")
        else:
            yield f"{name}{word}", command


def test_of_every_file_that_a_command_takes_it_is_known_whether_it_is_written() -> None:
    named = {
        parameter.name
        for _, command in leaves(typer.main.get_command(app))
        for parameter in inspect.signature(command.callback).parameters.values()
        if "Path" in str(parameter.annotation)
    }
    assert named == WRITTEN | READ, named ^ (WRITTEN | READ)
    assert not WRITTEN & READ


NETWORK = ("net.csv", "--unit", "edge", "--epsilon", "0.1")
BOOKED = ("--ledger", "s.ledger")


@pytest.mark.parametrize(
    "words",
    [
        ("ask", *NETWORK, "edges", *BOOKED, "--out", "s.ledger"),
        ("ask", *NETWORK, "edges", *BOOKED, "--out", "net.csv"),
        ("ask", *NETWORK, "edges", *BOOKED, "--out", "soft.csv"),
        ("ask", *NETWORK, "edges", *BOOKED, "--out", "hard.csv"),
        ("ask", *NETWORK, "edges", "--no-ledger", "--out", "s.ledger"),
        ("ask", *NETWORK, "edges", *BOOKED, "--like", "like.csv", "--out", "like.csv"),
        ("synth", *NETWORK, *BOOKED, "--model", "topm", "--out", "net.csv"),
        ("report", "s.ledger", "--out", "s.ledger"),
        ("report", "s.ledger", "--truth", "net.csv", "--out", "net.csv"),
        ("compare", "net.csv", "like.csv", "--figure", "net.csv"),
        ("ledger", "export", "s.ledger", "--out", "s.ledger"),
        ("survey", "form", "s.ledger", "--ask", "a=2", "--epsilon", "1"),
        (
            *("sql", "ask", "d.toml", "SELECT COUNT(*) FROM p", "--unit", "participant"),
            *("--epsilon", "1", *BOOKED, "--out", "d.duckdb"),
        ),
    ],
)
def test_nothing_that_is_read_is_written_over(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    import duckdb

    for name in ("net.csv", "like.csv"):
        (tmp_path / name).write_text("source,target\n0,1\n1,2\n2,0\n")
    os.symlink("net.csv", tmp_path / "soft.csv")
    os.link(tmp_path / "net.csv", tmp_path / "hard.csv")
    friends = tulle.Graph.read(tmp_path / "net.csv")
    tulle.Ledger(tmp_path / "s.ledger").open("net", friends, unit="edge", epsilon=1)
    duckdb.connect(str(tmp_path / "d.duckdb")).close()
    (tmp_path / "d.toml").write_text('url = "duckdb:///d.duckdb"\n[owners]\np = "id"\n')
    kept = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    ran = run(*words)
    assert ran.code == 2
    assert "written over" in ran.err
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == kept


# --- what is paid for is shown ------------------------------------------------------------------


class Terminal(io.TextIOWrapper):
    """A terminal that has few letters."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    @property
    def shown(self) -> str:
        held: Any = self.buffer
        return str(held.getvalue().decode(self.encoding))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_no_letter_makes_printing_fail(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    said = {"name": "\u0141\u00f3d\u017a \ud800 \u03b5"}
    terminal = Terminal(encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    print_json(said)
    assert json.loads(terminal.shown) == said


def test_no_letter_makes_a_table_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("source,target\n0,1\n1,2\n")
    terminal = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(SystemExit) as ended:
        app(["plan", str(tmp_path / "net.csv"), "edges", "--unit", "edge", "--epsilon", "1"])
    assert ended.value.code == 0
    assert "\\u2192" in terminal.shown  # the arrow


@pytest.mark.parametrize("fault", [ZeroDivisionError("/0"), tulle.InputError("No such form.")])
@pytest.mark.parametrize("place", ["after", "save", "table"])
def test_whatever_goes_wrong_after_the_price_the_answer_is_shown(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, place: str
) -> None:
    def fail(*given: object, **named: object) -> None:
        raise fault

    (tmp_path / "net.csv").write_text("source,target\n0,1\n1,2\n")
    more: tuple[str, ...] = ("--out", "r.csv" if place == "table" else "r.json")
    asked = ("ask", *NETWORK, "edges")
    if place == "after":
        asked, more = ("synth", *NETWORK, "--model", "topm"), ("--out", "made.csv")
        monkeypatch.setattr("tulle.graphs.data.Graph.write", fail)
    else:
        monkeypatch.setattr(tulle.Release, place, fail)
    ran = run(*asked, "--no-ledger", *more, "--json")
    assert ran.code == 2
    assert ran.json()["release"]["mechanism"]
    assert "paid for and shown above" in ran.err
    assert ("No such form" in ran.err) == isinstance(fault, tulle.InputError)


# --- texts that are numbers ---------------------------------------------------------------------


def test_texts_are_read_as_whole_numbers_in_one_way() -> None:
    """``"²".isdigit()`` holds and int() refuses it, as it does more than 4,300 digits."""
    source = Path(tulle.__file__).parent
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if ".isdigit()" in path.read_text(encoding="utf-8")
    }
    # The second and third never call int().
    assert found == {
        "core/validate.py",
        "sql/expressions/patterns.py",
        "sql/question/spellings.py",
    }


@pytest.mark.parametrize("odd", ["²", "٣", "--5", "9" * 5000, "1_0", "1" * 19])
def test_odd_numbers_are_refused_and_nothing_is_paid(run: Run, tmp_path: Path, odd: str) -> None:
    (tmp_path / "trips.csv").write_text("who,from,to\nann,a,b\nbob,b,a\n")
    trips = ("matrix", "ask", "trips.csv", "weights(total=1)", "--unit", "participant")
    columns = ("--individual", "who", "--row", "from", "--column", "to", "--rows", "a,b")
    price = ("--epsilon", "1", "--no-ledger")
    assert run(*trips, *columns, *price).code == 0
    ran = run(*trips, *columns, *price, f"--low-rank={odd}")
    assert ran.code == 2
    assert ran.out == ""
    assert run("survey", "form", "f.json", "--ask", f"n={odd}", "--epsilon", "1").code == 2
    assert run("survey", "form", "f.json", "--ask", "n=9", "--epsilon", "1").code == 0
    answer = ("--account", "mine.db", "--budget", "3", f"--answer=n={odd}")
    ran = run("survey", "respond", "f.json", *answer)
    assert ran.code == 2
    assert not (tmp_path / "mine.db").exists()
    assert run("ledger", "verify", "none.ledger", "--head", f"{odd}:{'0' * 64}").code != 70


def test_a_rank_that_the_grid_does_not_have_is_refused_before_the_price(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "trips.csv").write_text("who,from,to\nann,a,b\nbob,b,a\n")
    trips = ("matrix", "ask", "trips.csv", "weights(total=1)", "--unit", "participant")
    columns = ("--individual", "who", "--row", "from", "--column", "to", "--rows", "a,b")
    price = ("--epsilon", "1", "--ledger", "s.ledger", "--budget", "9")
    ran = run(*trips, *columns, *price, "--low-rank=3")
    assert (ran.code, ran.out) == (2, "")
    assert "up to 2, the shorter side" in ran.err
    assert not (tmp_path / "s.ledger").exists()
    assert run(*trips, *columns, *price, "--low-rank=2").code == 0


@pytest.mark.parametrize("written", ["[" * 100_000, '{"format": ' + "9" * 5000 + "}", "7", "\xff"])
@pytest.mark.parametrize("command", ["respond", "estimate", "reports", "attack"])
def test_no_json_makes_a_command_fail_in_other_words(
    run: Run, tmp_path: Path, written: str, command: str
) -> None:
    assert run("survey", "form", "form.json", "--ask", "a=2", "--epsilon", "1").code == 0
    (tmp_path / "odd.json").write_bytes(written.encode("latin-1"))
    answer = ("--account", "mine.db", "--budget", "3", "--answer=a=1")
    words = {
        "respond": ("survey", "respond", "odd.json", *answer),
        "estimate": ("survey", "estimate", "odd.json", "odd.json"),
        "reports": ("survey", "estimate", "form.json", "odd.json"),
        "attack": ("attack", "edge", "odd.json"),
    }[command]
    ran = run(*words)
    assert ran.code == 2
    assert ran.out == ""
