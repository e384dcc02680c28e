"""``tulle demo`` and how things look."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.cli_helpers import Run

from tulle.cli import common
from tulle.ledger.ledger import Ledger


def test_the_demo_tells_its_story_and_draws(run: Run) -> None:
    ran = run("demo", "--out", "shown")
    assert ran.code == 0
    for word in (
        "made up",
        "smoothed_ladder",
        "at no cost",
        "cannot pay",
        "Nothing was spent",
        "Yes:",
    ):
        assert word in ran.out
    assert "\x1b" not in ran.out
    picture = Path("shown/demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000
    assert float(Ledger("shown/demo.ledger").remaining("made-up friends")) == 0.5


def test_the_demo_begins_anew_each_time(run: Run) -> None:
    first = run("demo", "--json")
    assert first.code == 0
    assert first.json()["sound"]
    assert first.json()["figure_drawn"]
    assert first.json()["remaining"] == "1/2"
    assert len(first.json()["answers"]) == 5
    second = run("demo", "--json").json()
    debits = [
        [item["release"]["debit"] for item in told["answers"]] for told in (first.json(), second)
    ]
    assert debits[0] != debits[1]
    assert run("ledger", "verify", "demo/demo.ledger").code == 0


def test_the_demo_leaves_other_ledgers_alone(run: Run, friends: Path) -> None:
    asked = ("ask", friends, "edges", "--unit", "edge", "--epsilon", "1", "--budget", "1")
    assert run(*asked, "--ledger", "demo.ledger").code == 0
    before = Path("demo.ledger").read_bytes()
    ran = run("demo", "--out", ".")
    assert ran.code == 2
    assert "left alone" in ran.err
    assert Path("demo.ledger").read_bytes() == before
    assert run("demo", "--out", friends).code == 2


def test_the_demo_goes_on_without_matplotlib(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ran = run("demo")
    assert ran.code == 0
    assert "pip install 'tulle[plot]'" in ran.out
    assert "Look and try" in ran.out
    assert not Path("demo/demo.png").exists()


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_lines_keep_to_the_width(run: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    longest = max(len(line) for line in run("demo").out.splitlines())
    assert longest <= min(int(width), 96)


def test_the_demo_as_a_real_process(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tulle.cli.main", "demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "demo" / "demo.png").is_file()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_on_a_terminal_when_work_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with common.progress() as report:
        report(0.5, "reading")
    assert screen.getvalue() == ""
    monkeypatch.setattr(common, "_PATIENCE", -1)
    with common.progress() as report:
        report(0.5, "reading")
    assert "reading" in screen.getvalue()
    with common.waiting("planning") as tell:
        tell("asking")
    assert "asking" in screen.getvalue() or "planning" in screen.getvalue()


def test_colour_follows_the_terminal_and_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for stream, plain in ((Terminal(), False), (io.StringIO(), True)):
        monkeypatch.setattr(sys, "stdout", stream)
        common.printer().print("answer", style="red")
        assert (stream.getvalue() == "answer\n") is plain
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    common.printer().print("answer", style="red")
    assert screen.getvalue() == "answer\n"
