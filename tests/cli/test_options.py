"""The options that commands share."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.cli_helpers import Run

from tulle.cli.options import Network


def test_a_network_comes_from_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    piped = SimpleNamespace(buffer=io.BytesIO(b"0,1\n1,2\n"), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", piped)
    graph = Network(Path("-")).read()
    assert (graph.node_count, graph.edge_count) == (3, 2)
    assert Network(Path("-")).name == "standard-input"
