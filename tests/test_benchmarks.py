"""Every benchmark runs, in its minute's version: small, and on made-up records."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import benchmarks.continual
import pytest
from benchmarks import _minute
from benchmarks.__main__ import NAMES

import baselines

WITHOUT_THE_LIBRARY = {"graph_kernels": "networkit"}
"""Peers that the development environment may lack: it is the benchmarks' own extra."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    baselines.register()
    return tmp_path_factory.mktemp("minute")


@pytest.mark.slow  # ``make bench-minute`` runs them all beside the everyday suite
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name in WITHOUT_THE_LIBRARY:
        pytest.importorskip(WITHOUT_THE_LIBRARY[name])
    before = dict(os.environ)
    results = Path(__file__).parents[1] / "docs" / "results"
    written = {file: file.read_bytes() for file in results.glob("*.json")}
    _minute.run(name, folder)
    said = capsys.readouterr().out
    assert said.strip()
    assert "nothing to measure" not in said
    # Neither the guide nor the settings of whoever runs it are touched.
    assert {file: file.read_bytes() for file in results.glob("*.json")} == written
    assert dict(os.environ) == before


def test_a_benchmark_that_fails_is_seen(folder: Path) -> None:
    """The twin: a benchmark that raises, or names a size that it does not have."""
    broken: Any = ModuleType("benchmarks.broken")
    broken.MINUTE, broken.main = {}, lambda: 1 / 0
    with mock.patch.dict(sys.modules, {"benchmarks.broken": broken}):
        with pytest.raises(ZeroDivisionError):
            _minute.run("broken", folder)
        broken.MINUTE = {"RUNZ": 1}
        with pytest.raises(AttributeError):
            _minute.run("broken", folder)
        # A missing peer is left out; a missing part of this project is not.
        for missing, left_out in (("networkit", True), ("tulle.gone", False)):
            broken.MINUTE = {}
            broken.main = mock.Mock(side_effect=ModuleNotFoundError(name=missing))
            if left_out:
                _minute.run_all(["broken"], folder)
            else:
                with pytest.raises(ModuleNotFoundError):
                    _minute.run_all(["broken"], folder)


def test_the_sizes_are_put_back(folder: Path) -> None:
    before = benchmarks.continual.HORIZONS
    _minute.run("continual", folder)
    assert before == benchmarks.continual.HORIZONS


def test_the_command_takes_names_and_refuses_others() -> None:
    def run(*words: str) -> Any:
        command = [sys.executable, "-m", "benchmarks", *words]
        root = Path(__file__).parents[1]
        return subprocess.run(command, capture_output=True, text=True, cwd=root)

    done = run("--minute", "continual")
    assert done.returncode == 0, done.stderr
    assert "12" in done.stdout
    refused = run("--minute", "nothing")
    assert refused.returncode != 0
    assert "There is no benchmark nothing" in refused.stderr
