"""Fixtures for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from tests.cli.cli_helpers import SECRET, Ran, Run
from typer.testing import CliRunner

from tulle.cli.main import app


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in an empty folder, and see that it ends well-mannered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TULLE_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")  # test runners set their own, in which sentences break
    runner = CliRunner()

    def call(*arguments: object) -> Ran:
        result = runner.invoke(app, [str(item) for item in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        ran = Ran(result.exit_code, result.stdout, result.stderr)
        for text in (ran.out, ran.err):
            assert "Traceback" not in text
            assert SECRET not in text
        return ran

    return call


@pytest.fixture
def friends(tmp_path: Path) -> Path:
    """A ring of thirty with chords, under labels that must stay inside."""
    pairs = [(i, (i + step) % 30) for i in range(30) for step in (1, 2, 5)]
    ends = zip(*((f"{SECRET}-{a}", f"{SECRET}-{b}") for a, b in pairs), strict=True)
    file = tmp_path / "friends.parquet"  # names without the question whether there is a header
    parquet.write_table(pyarrow.table(dict(zip(("ego", "alter"), ends, strict=True))), file)
    return file
