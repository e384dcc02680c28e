"""``tulle stream``: opened once, a step each week, shown and reported without the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tulle.cli.main import app
from tulle.core.release import Release
from tulle.ledger.ledger import Ledger

duckdb = pytest.importorskip("duckdb")

QUESTION = "SELECT city, COUNT(*) FROM trips GROUP BY city"


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    connection = duckdb.connect(str(tmp_path / "shop.duckdb"))
    connection.execute(
        "CREATE TABLE trips AS SELECT range % 40 AS rider, "
        "CAST(range % 21 AS INT) + DATE '2026-01-05' AS day, "
        "CASE WHEN range % 3 = 0 THEN 'north' ELSE 'south' END AS city FROM range(2000)"
    )
    connection.close()
    file = tmp_path / "shop.toml"
    file.write_text(
        'url = "duckdb:///shop.duckdb"\n[owners]\ntrips = "rider"\n[times]\ntrips = "day"\n'
    )
    return file


def opened(shop: Path, *more: Any) -> Any:
    terms = {
        "--unit": "participant-week", "--epsilon": "0.5", "--delta": "1e-7", "--step": "week",
        "--first": "2026-01-05", "--steps": 2, "--bound": 3, "--groups": "city=north,south",
        "--budget": "1", "--budget-delta": "1e-6", "--ledger": shop.parent / "study.ledger",
    }  # fmt: skip
    terms |= dict(zip(more[::2], more[1::2], strict=True))
    words = [word for pair in terms.items() if pair[1] is not None for word in pair]
    return run("stream", "open", shop, QUESTION, *words)


def test_a_stream_is_opened_stepped_shown_and_reported(shop: Path) -> None:
    ledger = shop.parent / "study.ledger"
    first = opened(shop)
    assert first.exit_code == 0, first.output
    assert "0 of 2 steps" in first.output
    assert "deviation" in first.output
    # The same terms find the same stream.
    assert opened(shop, "--budget", None, "--budget-delta", None).exit_code == 0
    again = json.loads(run("stream", "show", ledger, "--json").stdout)
    assert [item["releases"] for item in again["streams"]] == [[]]
    values = []
    for week in ("2026-W02", "2026-W03"):
        found = run("stream", "step", shop, "--ledger", ledger, "--json")
        assert found.exit_code == 0, found.output
        release = json.loads(found.stdout)["release"]
        assert week in release["query"]
        values.append(release["value"])
    ended = run("stream", "step", shop, "--ledger", ledger)
    assert ended.exit_code != 0
    assert "All 2 steps were released" in ended.output
    # Neither the page nor the table needs the data.
    (shop.parent / "shop.duckdb").unlink()
    shown = run("stream", "show", ledger)
    assert shown.exit_code == 0, shown.output
    assert "2 of 2 steps" in shown.output
    assert "north" in shown.output
    kept = json.loads(run("stream", "show", ledger, "--stream", "1", "--json").stdout)
    assert [item["value"] for item in kept["streams"][0]["releases"]] == values
    page = shop.parent / "report.html"
    assert run("report", ledger, "--out", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert 'class="band"' in text
    assert "2026-W03" in text
    assert "north" in text
    exported = json.loads(run("ledger", "export", ledger).stdout)["accounts"][0]["streams"]
    assert [step["value"] for step in exported[0]] == values
    registered = run(
        "ledger", "deployment", ledger, "--name", "Trips", "--curator", "us", "--use", "planning",
        "--region", "CH", "--json",
    )  # fmt: skip
    assert registered.exit_code == 0, registered.output
    assert "running total of" in registered.stdout
    assert len(Ledger(ledger).debits("shop")) == 1
    assert Ledger(ledger).verify() == []


def test_a_step_that_fails_to_be_written_is_still_shown(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Release, path: Path) -> None:
        raise OSError(28, "No space left on device")

    assert opened(shop).exit_code == 0
    monkeypatch.setattr(Release, "save", full)
    where = ("--ledger", shop.parent / "study.ledger", "--out", shop.parent / "step.json")
    found = run("stream", "step", shop, *where, "--json")
    assert found.exit_code == 2
    assert json.loads(found.stdout)["release"]["value"]
    assert "No space left" in found.stderr


def test_what_cannot_be_opened_leaves_no_ledger(shop: Path) -> None:
    ledger = shop.parent / "study.ledger"
    for more, words in (
        (("--epsilon", "5"), "more than the whole budget"),
        (("--bound", "-1"), "bound"),
        (("--step", "hour"), "A period is one of"),
        (("--unit", "edge"), "Say who is protected"),
        (("--unit", "participant"), "give periods="),
        (("--delta", "0"), "delta"),
        (("--budget", None, "--budget-delta", None), "--budget EPSILON"),
    ):
        found = opened(shop, *more)
        assert found.exit_code != 0
        assert words in found.output.replace("\n", " "), found.output
        assert not ledger.exists()
    assert run("stream", "show", ledger).exit_code != 0
    assert opened(shop).exit_code == 0
    other = run("stream", "step", shop, "--ledger", ledger, "--stream", "2")
    assert other.exit_code != 0
    assert "has no stream 2" in other.output
    assert run("stream", "show", ledger, "--account", "shop").exit_code == 0
