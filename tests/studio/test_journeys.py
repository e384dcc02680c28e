"""Every journey through the studio, walked by a real browser."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.studio.studio_helpers import (
    PATIENCE,
    RunningStudio,
    write_network,
    write_shop,
    write_trips,
    write_votes,
)

pytestmark = pytest.mark.xdist_group("studio")

LONG = PATIENCE * 1000
"""Milliseconds: generous, since machines that run tests are busy."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("studio")
    write_network(place / "friends.csv")
    write_votes(place / "votes.csv")
    write_trips(place / "trips.csv")
    write_shop(place / "shop.duckdb")
    return place


@pytest.fixture(scope="module")
def page(browser: Any, folder: Path) -> Iterator[Any]:
    names = ("friends.csv", "votes.csv", "trips.csv", "shop.duckdb")
    studio = RunningStudio(*(folder / name for name in names), ledger=folder / "study.ledger")
    context = browser.new_context(viewport={"width": 1400, "height": 950}, accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(LONG)
    opened.faults = []
    opened.on("pageerror", lambda error: opened.faults.append(str(error)))
    opened.on(
        "console",
        lambda said: opened.faults.append(said.text) if said.type == "error" else None,
    )
    opened.goto(studio.link)
    opened.address = studio.address
    yield opened
    context.close()
    studio.close()
    assert "Traceback" not in "".join(studio.printed)


@pytest.fixture
def look(
    page: Any, pictures: Path | None, request: pytest.FixtureRequest
) -> Iterator[Callable[..., None]]:
    def take(name: str = "") -> None:
        if pictures is not None:
            page.screenshot(path=pictures / f"{request.node.name}{name}.png", full_page=True)

    yield take
    # A refused request is an answer, not a fault of the page.
    faults = [fault for fault in page.faults if "status of 422" not in fault]
    page.faults.clear()
    assert faults == []


def open_source(page: Any, name: str) -> None:
    page.goto(page.address + "/data")
    page.click(f"button.card:has-text('{name}')")
    page.wait_for_selector("button:has-text('Open the study')")


def open_study(page: Any, unit: str, epsilon: str, delta: str = "") -> None:
    page.click(f"label.choice:has-text('{unit}')")
    if delta:
        page.locator("details:has(#total-delta)").evaluate_all(
            "found => found.forEach((one) => { one.open = true; })"
        )
        page.fill("#total-delta", delta)
    page.click(f"button[data-value='{epsilon}']")
    page.click("button:has-text('Open the study')")
    page.wait_for_selector("#ask")


def open_friends(page: Any) -> None:
    """Go to the network's page, whichever journeys came before."""
    page.goto(page.address + "/data")
    if page.locator("nav a:has-text('friends')").count():
        page.click("nav a:has-text('friends')")
        page.wait_for_selector("#ask")
    else:
        open_source(page, "friends.csv")
        open_study(page, "Hide any one link", "10")


def pay(page: Any) -> None:
    page.wait_for_selector("#pay:not([disabled])")
    earlier = page.locator(".job").get_attribute("data-job") if page.locator(".job").count() else ""
    page.click("#pay")
    ended = ", ".join(f".job.{end}:not([data-job='{earlier}'])" for end in ("done", "failed"))
    page.wait_for_selector(ended)
    assert page.locator(".job.failed").all_inner_texts() == []


def test_a_network_is_asked_for_its_triangles(page: Any, look: Any, folder: Path) -> None:
    open_source(page, "friends.csv")
    look("-opening")
    open_friends(page)
    page.click("button.card:has-text('Triangles')")
    page.click("[data-epsilon='1']")
    page.wait_for_selector("#curve .main-svg")
    page.wait_for_selector("#pay:not([disabled])")
    assert "factor of 2.7" in page.inner_text("#meaning")
    assert "left afterwards" in page.inner_text("#left-after")
    assert "smoothed_ladder" in page.inner_text("#plan")
    assert "laplace" in page.inner_text("#plan")
    look("-plan")
    pay(page)
    released = page.inner_text(".basket li.new .value")
    page.click("text=See the answer")
    page.wait_for_selector("#answer-figure .main-svg")
    assert page.inner_text(".release .big") == released
    page.click("#reveal")
    page.wait_for_selector("#truth .main-svg")
    assert "This stays inside" in page.inner_text("#truth")
    look("-answer")
    with page.expect_download() as download:
        page.click(".release .files a:has-text('JSON')")
    kept = json.loads(Path(download.value.path()).read_text())
    assert kept["query"] == "triangles()"
    assert kept["guarantee"]["epsilon"] == "1"
    with page.expect_download() as download:
        page.click(".release .files a:has-text('report')")
    report = Path(download.value.path()).read_text()
    assert "What epsilon means here" in report
    assert len(report) < 1_000_000
    with page.expect_download() as download:
        page.click("button[data-image='svg']")
    assert "<svg" in Path(download.value.path()).read_text()[:200]


def test_the_error_moves_while_the_price_is_dragged(page: Any, look: Any) -> None:
    open_friends(page)
    page.click("button.card:has-text('Links')")
    page.fill("#epsilon", "0.5")
    page.wait_for_selector("#pay:not([disabled])")
    before = page.inner_text("#plan td.number")
    page.focus("#epsilon-range")
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert float(page.input_value("#epsilon")) > 0.5
    assert page.is_disabled("#pay") or page.inner_text("#plan td.number") != before
    page.wait_for_function(
        "before => document.querySelector('#plan td.number').textContent !== before", arg=before
    )
    assert page.inner_text("#plan td.number") != before
    page.fill("#epsilon", "50")
    page.wait_for_selector("text=Not enough budget is left")
    assert page.is_disabled("#pay")
    look()


def test_a_question_that_cannot_be_asked_says_why(page: Any, look: Any) -> None:
    open_friends(page)
    page.fill("#text", "triangle_count")
    page.fill("#epsilon", "0.5")
    page.wait_for_selector("#plan .problem")
    assert "triangles" in page.inner_text("#plan .problem")
    assert page.is_disabled("#pay")
    look()


def test_the_identical_question_is_free(page: Any, look: Any) -> None:
    open_friends(page)
    spent = []
    for _ in range(2):
        page.click("button.card:has-text('Cliques of four')")
        page.click("[data-epsilon='0.1']")
        pay(page)
        spent.append(page.inner_text(".price .row.small span"))
    assert spent[0] == spent[1]
    look()


def test_a_synthetic_network_is_made_and_compared(page: Any, look: Any) -> None:
    open_friends(page)
    page.click("text=Make a synthetic network")
    page.click("button.card:has-text('Degrees')")
    page.click("[data-epsilon='1']")
    pay(page)
    page.click("text=See the answer")
    page.wait_for_selector("#answer-figure .main-svg")
    assert "nobody in it exists" in page.inner_text(".release")
    page.click("#compare")
    page.wait_for_selector("#compared .main-svg")
    assert "transitivity" in page.inner_text("#compared").lower()
    look()
    with page.expect_download() as download:
        page.click("text=edge list")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == "source,target"
    assert len(lines) > 100


def test_an_attack_stays_below_the_bound(page: Any, look: Any) -> None:
    open_friends(page)
    page.click("button.card:has-text('Links')")
    page.click("[data-epsilon='0.5']")
    pay(page)
    page.click("text=See the answer")
    page.fill("#one", "1")
    page.fill("#other", "2")
    page.click("button:has-text('Attack')")
    page.wait_for_selector("#attacked .main-svg")
    shown = page.locator("#attacked dd").all_inner_texts()
    after = float(shown[1].split()[0])
    low, high = (float(part.split()[0]) for part in shown[2].split(" to "))
    assert low <= after <= high
    assert high == pytest.approx(62.2, abs=0.1)
    look()


def test_work_survives_a_reload_and_can_be_cancelled(page: Any, look: Any, folder: Path) -> None:
    open_friends(page)
    page.click("button.card:has-text('Shared contacts')")
    page.click("[data-epsilon='0.1']")
    page.wait_for_selector("#pay:not([disabled])")
    # Nobody can book while somebody else writes to the ledger: the work waits for that.
    other = sqlite3.connect(folder / "study.ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        page.click("#pay")
        page.wait_for_selector(".job.running")
        page.reload()
        page.wait_for_selector(".job.running progress")
        look("-running")
        page.click("button:has-text('Cancel')")
        page.wait_for_selector(".job.cancelled")
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert "nothing was spent" in page.inner_text(".job.cancelled")
    look("-cancelled")
    # A new process takes over where the killed one was.
    page.click("button.card:has-text('Shared contacts')")
    page.click("[data-epsilon='0.1']")
    pay(page)


def test_a_database_is_asked_in_sql(page: Any, look: Any) -> None:
    open_source(page, "shop.duckdb")
    assert page.locator(".schema rect").count() == 2
    page.fill("input[name='owner:customer']", "id")
    page.fill("input[name='owner:orders']", "customer_id")
    look("-owners")
    page.locator("details:has(#total-delta)").evaluate_all(
        "all => all.forEach((d) => d.open = true)"
    )
    page.fill("#total-delta", "0.000001")
    open_study(page, "Hide any one person", "5")
    page.fill("#sql", "SELECT count(*) FROM orders ASOF JOIN customer ON customer_id = customer.id")
    page.wait_for_selector("#sql-problem:not([hidden])")
    assert "ASOF" in page.inner_text("#sql-place mark").upper()
    look("-refused")
    page.fill(
        "#sql",
        "SELECT count(*) FROM orders JOIN customer ON customer_id = customer.id "
        "WHERE region = 'north'",
    )
    page.wait_for_selector("#sql-problem", state="hidden")
    page.click("[data-epsilon='1']")
    pay(page)
    page.click("text=See the answer")
    # The truth is 400; how near the answer comes is the mechanism's own matter.
    assert math.isfinite(float(page.inner_text(".release .big").replace(",", "")))
    assert "How to cite" in page.inner_text(".release")
    assert "a guarantee with delta = 0" in page.inner_text(".release")
    look("-answer")
    page.go_back()
    page.wait_for_selector("#sql")
    # A median needs a range; where nobody declared one it can be found.
    page.fill("#sql", "SELECT median(orders.id) AS middle FROM orders")
    page.wait_for_selector("#sql-problem:not([hidden])")
    assert "private" in page.inner_text("#sql-problem")
    page.select_option("#ranges", "private")
    page.wait_for_selector("#sql-problem", state="hidden")
    page.select_option("#ranges", "")
    # Groups that nobody listed: the same statement, with a delta and the options for it.
    page.click("#grouping summary")
    page.fill("#top", "none")
    page.fill("#sql", "SELECT region, count(*) AS n FROM customer GROUP BY region")
    page.wait_for_selector("#sql-problem:not([hidden])")
    assert "whole number" in page.inner_text("#sql-problem")
    page.fill("#top", "2")
    page.fill("#keys-per-person", "1")
    page.fill("#other", "elsewhere")
    page.wait_for_selector("#sql-problem", state="hidden")
    page.fill("#delta", "0.0000005")
    page.click("[data-epsilon='1']")
    look("-found-groups")
    pay(page)
    page.click("text=See the answer")
    assert "elsewhere" in page.inner_text(".release")
    look("-found-answer")


def test_a_yes_no_table_before_and_after(page: Any, look: Any) -> None:
    open_source(page, "votes.csv")
    open_study(page, "Hide any one answer", "5")
    page.wait_for_selector("[data-heat] .main-svg")
    page.click("[data-epsilon='1']")
    pay(page)
    page.wait_for_selector("[data-figure-from] .main-svg")
    look()


def test_movements_before_and_after(page: Any, look: Any) -> None:
    open_source(page, "trips.csv")
    page.select_option("#c-individual", "person")
    page.select_option("#c-row", "origin")
    page.select_option("#c-column", "destination")
    page.select_option("#c-weight", "trips")
    page.fill("#rows", "north, south, east, west")
    open_study(page, "Hide any one person", "5")
    page.wait_for_selector("[data-heat] .main-svg")
    page.fill("#bound", "3")
    page.fill("#sum", "10")
    page.click("[data-epsilon='2']")
    pay(page)
    page.wait_for_selector("[data-figure-from] .main-svg")
    look()


def test_movements_that_nobody_listed(page: Any, look: Any) -> None:
    open_source(page, "trips.csv")
    page.select_option("#c-individual", "person")
    page.select_option("#c-row", "origin")
    page.select_option("#c-column", "destination")
    open_study(page, "Hide any one person", "5", delta="0.000001")
    assert page.locator("[data-heat]").count() == 0
    page.fill("#cells-per-person", "2")
    page.fill("#bound", "3")
    page.fill("#other", "elsewhere")
    page.fill("#delta", "0.0000005")
    page.click("[data-epsilon='2']")
    page.wait_for_selector("text=A cell is seen with 95 % chance")
    look("-found-cells")
    pay(page)
    page.click("text=See the answer")
    assert "elsewhere" in page.inner_text(".release")


def test_the_ledger_shows_and_verifies_everything(page: Any, look: Any) -> None:
    open_friends(page)
    page.click("button.card:has-text('Links')")
    page.click("[data-epsilon='0.1']")
    pay(page)
    page.goto(page.address + "/ledger")
    assert "edges()" in page.inner_text("main")
    page.click("text=Verify the chain")
    assert "The ledger is intact" in page.inner_text(".notice")
    look()
    with page.expect_download() as download:
        page.click("text=Export as JSON")
    entries = json.loads(Path(download.value.path()).read_text())["entries"]
    assert {"open", "debit", "release"} <= {entry["kind"] for entry in entries}


def test_a_mechanism_is_audited(page: Any, look: Any) -> None:
    page.goto(page.address + "/audit")
    page.fill("#audited", "eigen_laplace")
    page.click("text=Run the fast audit")
    page.wait_for_selector("table.audit, .job.failed")
    assert page.locator(".job.failed").all_inner_texts() == []
    verdicts = set(page.locator("table.audit td:last-child").all_inner_texts())
    assert verdicts == {"passed", "caught"}
    look()


def test_narrow_and_dark(browser: Any, page: Any, look: Any, pictures: Path | None) -> None:
    open_friends(page)
    state = page.context.storage_state()
    narrow = browser.new_context(
        viewport={"width": 390, "height": 800}, color_scheme="dark", storage_state=state
    )
    try:
        small = narrow.new_page()
        small.set_default_timeout(LONG)
        small.goto(page.address + "/data")
        small.click("nav a:has-text('friends')")
        small.wait_for_selector("#ask")
        for place in ("/ledger", "/audit", "/data", small.url):
            small.goto(place if "://" in place else page.address + place)
            wide = small.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, f"{place} must not scroll sideways on a narrow window"
        background = small.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(21, 25, 27)"
        if pictures is not None:
            small.screenshot(path=pictures / "narrow-and-dark.png", full_page=True)
    finally:
        narrow.close()


def test_keyboard_alone(page: Any, look: Any) -> None:
    open_friends(page)
    page.wait_for_selector("#ask")
    page.evaluate("document.activeElement.blur()")
    seen = []
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
        if seen[-1].startswith("Triangles"):
            break
    assert seen[-1].startswith("Triangles")
    page.keyboard.press("Enter")
    assert page.get_attribute("button.card:has-text('Triangles')", "aria-pressed") == "true"


def test_six_clicks_to_a_private_triangle_count(
    browser: Any, tmp_path: Path, folder: Path, look: Any
) -> None:
    studio = RunningStudio(folder / "friends.csv", ledger=tmp_path / "new.ledger")
    context = browser.new_context()
    try:
        fresh = context.new_page()
        fresh.set_default_timeout(LONG)
        fresh.goto(studio.link)
        clicks = (
            "label.choice:has-text('Hide any one link')",
            "button[data-value='3']",
            "button:has-text('Open the study')",
            "button.card:has-text('Triangles')",
            "[data-epsilon='1']",
            "#pay:not([disabled])",
        )
        for place in clicks:
            fresh.click(place)
        fresh.wait_for_selector(".basket li.new .value")
        assert len(clicks) <= 6
    finally:
        context.close()
        studio.close()
