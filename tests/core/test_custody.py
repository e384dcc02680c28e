"""Whatever is written and shows the truth can be read by its owner alone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tulle
from tulle.cli.main import app
from tulle.metrics import compare

SOURCE = Path(tulle.__file__).parent

PUBLIC = {
    "cli/answering.py": "a released table",
    "cli/commands/ledger.py": "an account of what was spent",
    "cli/commands/report.py": "a page of releases; with --truth through custodian_file",
    "cli/commands/survey.py": "a form",
    "cli/figure.py": "the demo's network, which is public",
    "core/release.py": "a release",
    "core/table.py": "a released table",
    "graphs/data.py": "an edge list in an example",
    "graphs/io/writing.py": "a synthetic graph",
    "ledger/session.py": "through custodian_file",
    "metrics/figure.py": "through custodian_file",
    "streams/stream.py": "a page of released steps",
    "studio/public_worker.py": "a released table",
}
"""Modules that write what a user names, and why others may read it."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files have no modes here")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def pages(folder: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yield what writes a page or a picture with the truth on it."""
    edges = [(0, 1), (1, 2), (2, 0), (2, 3)]
    friends = tulle.Graph.from_edges(edges, nodes=5)
    file = folder / "friends.txt"
    file.write_text("".join(f"{u} {v}\n" for u, v in edges))
    study = tulle.Ledger(folder / "study.ledger").open("friends", friends, unit="edge", epsilon=1)
    study.ask(tulle.edges(), epsilon=1)
    yield "a session's report", lambda path: study.report(path)
    asked = ["report", str(folder / "study.ledger"), "--truth", str(file), "--nodes", "5", "--out"]

    def ask(path: Path) -> None:
        said = CliRunner().invoke(app, [*asked, str(path)])
        assert said.exit_code == 0, said.output

    yield "tulle report --truth", ask
    yield "a comparison", compare(friends, friends).figure


def test_pages_with_the_truth_are_for_their_owner(tmp_path: Path) -> None:
    for number, (name, write) in enumerate(pages(tmp_path)):
        page = tmp_path / f"page{number}.png"
        write(page)
        assert mode(page) == 0o600, name
        page.chmod(0o644)  # written over, it is closed again
        write(page)
        assert mode(page) == 0o600, name
        assert page.stat().st_size, name


def test_the_ledger_is_for_its_owner(tmp_path: Path) -> None:
    assert mode(tulle.Ledger(tmp_path / "study.ledger").path) == 0o600


def test_a_plain_file_would_be_caught(tmp_path: Path) -> None:
    plain = tmp_path / "page.html"
    plain.write_text("the truth")
    assert mode(plain) != 0o600


WRITES = re.compile(r"\.write_(text|bytes)\(|savefig\(|to_csv\((?!self)|\.open\(\"[wxa]b?\"")


def test_every_module_that_writes_a_file_is_listed() -> None:
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if WRITES.search(file.read_text(encoding="utf-8"))
    }
    assert found - {"cli/options.py", "studio/state.py"} == set(PUBLIC)  # in folders of their own
