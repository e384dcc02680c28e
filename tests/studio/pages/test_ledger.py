"""The timeline page: a stream's series with its band, and its next step, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tulle
from tulle.studio.state import StudioState

duckdb = pytest.importorskip("duckdb")
testing = pytest.importorskip("fastapi.testclient")

pytestmark = pytest.mark.xdist_group("studio")

NAMED = "<b>north</b>"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    connection = duckdb.connect(str(tmp_path / "shop.duckdb"))
    connection.execute(
        "CREATE TABLE trips AS SELECT range % 9 AS rider, "
        "CAST(range % 21 AS INT) + DATE '2026-01-05' AS day, 'south' AS city FROM range(100)"
    )
    connection.close()
    file = tmp_path / "shop.toml"
    file.write_text(
        'url = "duckdb:///shop.duckdb"\n[owners]\ntrips = "rider"\n[times]\ntrips = "day"\n'
    )
    database = tulle.Database.from_toml(file)
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    study = ledger.open("shop", database, unit="participant-week", epsilon=1, delta=1e-6)
    question = tulle.sql(
        "SELECT city, COUNT(*) FROM trips GROUP BY city", groups={"city": [NAMED, "south"]}
    )
    tulle.Stream(
        study, question, every="week", first="2026-01-05", steps=2, bound=2,
        epsilon=Fraction(1, 2), delta=Fraction(1, 10**7),
    )  # fmt: skip
    database.close()
    return file


@pytest.fixture
def studio(shop: Path) -> Iterator[tuple[StudioState, Any]]:
    from tulle.studio.app import build

    state = StudioState([str(shop)], shop.parent / "study.ledger")
    with testing.TestClient(build(state)) as client:
        yield state, client
    state.close()


def test_the_timeline_shows_a_series_and_takes_a_step(studio: tuple[StudioState, Any]) -> None:
    state, client = studio
    text = client.get("/ledger").text
    assert "0 of 2 steps released" in text
    assert "Open a study of this account" in text
    assert "Release the next step" not in text
    (study,) = state.studies.values()
    opened = client.post(
        f"/study/{study.identifier}/open",
        data={"kind": "database", "account": "shop", "continue": "yes"},
    )
    assert opened.status_code == 200, opened.text
    assert study.unit == "participant-week"
    page = client.get(f"/study/{study.identifier}/sql").text.replace("&#39;", "'")
    assert "any one person's rows of any one week" in page
    debit = state.ledger.debits("shop")[0].digest
    assert f"/study/{study.identifier}/streams/{debit}/step" in client.get("/ledger").text
    for count in (1, 2):
        answer = client.post(f"/study/{study.identifier}/streams/{debit}/step")
        assert f"{count} of 2 steps released" in answer.text
        assert 'class="band"' in answer.text
        assert NAMED not in answer.text
    assert "Release the next step" not in answer.text
    assert "2026-W03" in answer.text
    ended = client.post(
        f"/study/{study.identifier}/streams/{debit}/step", headers={"referer": "/ledger"}
    )
    assert "All 2 steps were released" in ended.text
    assert len(state.ledger.steps("shop", debit)) == 2
    assert len(state.ledger.debits("shop")) == 1
