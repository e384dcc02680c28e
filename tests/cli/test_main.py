"""The command line starts fast and says what it can do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tulle

TULLE = (sys.executable, "-m", "tulle.cli.main")
HEAVY = ("numpy", "scipy", "numba", "pyarrow", "matplotlib", "tulle.graphs", "tulle.noise")


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TULLE, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_nothing_heavy_is_imported_at_start(option: str) -> None:
    script = (
        "import sys\n"
        "from tulle.cli.main import main\n"
        "try:\n"
        f"    main([{option!r}])\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"


def test_help_answers_at_once() -> None:
    def seconds() -> float:
        # The processor's time, not the clock's: a busy machine must not fail the test.
        before = os.times()
        assert call("--help").returncode == 0
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])

    assert min(seconds() for _ in range(3)) < 0.5


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full"])
@pytest.mark.parametrize("form", ["", "--json"])
def test_streams_that_are_closed_fail_nothing(tmp_path: Path, closed: str, form: str) -> None:
    """An answer that is paid for is shown, and no other file takes the place of a stream."""
    (tmp_path / "net.txt").write_text("0 1\n1 2\n")
    line = f"ask net.txt edges --unit edge --nodes 4 --epsilon 1 --ledger a.db --budget 1 {form}"
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *TULLE, *line.split()],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ("edges" in ran.stdout) == (not closed.startswith(">"))
    assert len(tulle.Ledger(tmp_path / "a.db").debits("net")) == 1


def test_a_full_disk_is_said_on_standard_error(tmp_path: Path) -> None:
    for form in ((), ("--json",)):
        with open("/dev/full", "w") as full:
            ran = subprocess.run(
                [*TULLE, "ledger", "show", str(tmp_path / "none.db"), *form],
                stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
        assert ran.returncode == 4
        assert ran.stderr.startswith("error: ")


def test_version() -> None:
    ran = call("--version")
    assert ran.returncode == 0
    assert ran.stdout.strip() == f"tulle {tulle.__version__}"


def test_help_names_every_command_and_the_exit_codes() -> None:
    text = call("--help").stdout
    for word in ("plan", "ask", "ledger", "audit", "demo", "Exit codes"):
        assert word in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "friends.csv", "triangles"),
        ("ask", "friends.csv", "triangles", "--unit", "edge"),
        ("ask", "friends.csv", "triangles", "--epsilon", "1"),
        ("nonsense",),
        ("plan", "--nonsense"),
        ("ledger", "nonsense"),
    ],
)
def test_bad_usage_ends_with_two(arguments: tuple[str, ...]) -> None:
    plain = call(*arguments)
    assert plain.returncode == 2
    assert plain.stdout == ""
    assert "Traceback" not in plain.stderr


def test_bad_usage_in_json_is_one_document() -> None:
    ran = call("plan", "friends.csv", "triangles", "--unit", "edge", "--json")
    assert ran.returncode == 2
    assert ran.stderr == ""
    error = json.loads(ran.stdout)["error"]
    assert error["kind"] == "UsageError"
    assert "--epsilon" in error["message"]


def test_json_passes_exit_codes_on(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.ledger")
    assert call("ledger", "show", missing, "--json").returncode == 4
