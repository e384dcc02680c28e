"""The door: each way in that must stay shut is tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.studio.studio_helpers import write_network

from tulle.studio.app import build
from tulle.studio.security import Door
from tulle.studio.state import StudioState

PORT = 8123
HOME = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioState]:
    folder = tmp_path_factory.mktemp("door")
    write_network(folder / "friends.csv", people=40)
    opened = StudioState([str(folder / "friends.csv")], folder / "study.ledger")
    yield opened
    opened.close()


@pytest.fixture
def door(state: StudioState) -> Door:
    return Door(build(state), port=PORT)


@pytest.fixture
def client(door: Door) -> TestClient:
    return TestClient(door, base_url=HOME, follow_redirects=False)


@pytest.fixture
def inside(door: Door, client: TestClient) -> TestClient:
    answer = client.get(door.link())
    assert answer.status_code == 303
    assert client.get("/data").status_code == 200
    return client


PAGES = ("/", "/data", "/ledger", "/audit", "/static/studio.js", "/plotly.js", "/nowhere")


@pytest.mark.parametrize("place", PAGES)
def test_without_the_cookie_nothing_is_served(client: TestClient, place: str) -> None:
    answer = client.get(place)
    assert answer.status_code == 403
    assert "friends" not in answer.text


@pytest.mark.parametrize("token", ["", "x", "0" * 43])
def test_a_wrong_token_opens_nothing(client: TestClient, door: Door, token: str) -> None:
    door.link()
    assert client.get("/", params={"token": token}).status_code == 403
    assert not client.cookies


@pytest.mark.parametrize("given", ["é", "日本", "\x00", "a" * 10_000, "%", "\ud800"])
def test_whatever_stands_for_a_key_is_refused_and_breaks_nothing(
    door: Door, client: TestClient, given: str
) -> None:
    door.link()
    written = given.encode("utf-8", "surrogatepass")
    assert client.get("/?token=" + quote(written)).status_code == 403
    cookie = f"tulle_studio_{PORT}=".encode() + written
    assert client.get("/data", headers={b"cookie": cookie}).status_code == 403


def test_the_link_works_once(door: Door, client: TestClient) -> None:
    link = door.link()
    assert client.get(link).status_code == 303
    other = TestClient(door, base_url=HOME, follow_redirects=False)
    assert other.get(link).status_code == 403


def test_the_cookie_is_for_the_browser_and_this_site_only(door: Door, client: TestClient) -> None:
    said = client.get(door.link()).headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert str(PORT) in said


@pytest.mark.parametrize(
    "host",
    # What a browser takes for localhost may be another user's server, on ::1.
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1:1",
        "",
        f"localhost:{PORT}",
        f"[::1]:{PORT}",
    ],
)
def test_a_rebound_name_is_refused(inside: TestClient, host: str) -> None:
    assert inside.get("/data", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": HOME, "sec-fetch-site": "cross-site"},
    ],
)
def test_forms_of_other_pages_are_refused(inside: TestClient, headers: dict[str, str]) -> None:
    answer = inside.post("/begin", data={"place": "/etc/passwd"}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_cannot_load_ours(inside: TestClient, site: str) -> None:
    assert inside.get("/ledger", headers={"sec-fetch-site": site}).status_code == 403
    # Browsers that do not say the site still say the origin of what a script asks for.
    assert inside.get("/ledger", headers={"origin": "http://evil.example"}).status_code == 403
    assert inside.get("/ledger", headers={"origin": "null"}).status_code == 403


def test_no_other_origin_may_read_frame_or_keep_answers(inside: TestClient) -> None:
    answer = inside.get("/data", headers={"origin": HOME})
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert inside.options("/data", headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "../../etc/passwd", "/proc/self/environ", "/etc/shadow"]
)
def test_no_path_outside_the_folders_is_opened(inside: TestClient, place: str) -> None:
    answer = inside.post("/begin", data={"place": place}, headers={"origin": HOME})
    assert answer.status_code == 422
    assert "outside the folders" in answer.text
    answer = inside.post("/begin", data={"place": f"duckdb:///{place}"}, headers={"origin": HOME})
    assert answer.status_code == 422
    assert "when you start the studio" in answer.text


@pytest.mark.parametrize(
    "place", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"]
)
def test_static_files_are_only_static(inside: TestClient, place: str) -> None:
    answer = inside.get(place)
    assert answer.status_code in (403, 404)
    assert "FastAPI" not in answer.text


@pytest.mark.parametrize(
    ("referer", "place"),
    [
        (f"{HOME}/data?kind=graph", "/data?kind=graph"),
        ("http://evil.example/ledger", "/ledger"),
        ("http://evil.example//evil.example", "/evil.example"),
        ("http://evil.example/\\\\evil.example", "/evil.example"),
        ("javascript:alert(1)", None),
        ("//[", None),
    ],
)
def test_a_refusal_leads_back_to_pages_of_the_studio_alone(
    inside: TestClient, referer: str, place: str | None
) -> None:
    sent = {"origin": HOME, "referer": referer}
    answer = inside.post("/begin", data={"place": "none"}, headers=sent, follow_redirects=False)
    assert answer.headers.get("location") == place
    assert answer.status_code == (422 if place is None else 303)


def test_work_that_was_begun_or_stopped_leads_to_pages_of_the_studio_alone(
    inside: TestClient, state: StudioState
) -> None:
    study = state.begin(state.sources[0])
    study.read({"kind": "graph", "path": study.place})
    study.open("led elsewhere", "edge", "1", "0")
    sent = {"origin": HOME, "referer": "http://evil.example/ledger"}
    fields = {"asked": '{"kind": "graph", "text": "edges"}', "epsilon": "2"}
    answer = inside.post(f"/study/{study.identifier}/ask", data=fields, headers=sent)
    assert answer.headers["location"] == "/ledger"
    answer = inside.post(f"/jobs/{study.last}/cancel", headers=sent)
    assert answer.headers["location"] == "/ledger"
    page = inside.get(f"/study/{state.begin(study.place).identifier}").text
    assert "is open already, with the account “led elsewhere”" in page
    state.close_study(study)


def test_nothing_describes_the_interface(inside: TestClient) -> None:
    for place in ("/docs", "/redoc", "/openapi.json"):
        assert inside.get(place).status_code == 404


def test_an_unknown_study_or_job_is_explained(inside: TestClient) -> None:
    assert "no such study" in inside.get("/study/none").text
    assert inside.get("/jobs/none.json").json()["error"].startswith("There is no such work")


def test_a_fault_tells_its_kind_and_no_more(
    inside: TestClient, state: StudioState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KeyError("a record: alice, 42")

    monkeypatch.setattr(state.ledger, "accounts", fail)
    quiet = TestClient(inside.app, base_url=HOME, raise_server_exceptions=False)
    quiet.cookies = inside.cookies
    answer = quiet.get("/ledger")
    assert answer.status_code == 500
    assert "alice" not in answer.text
    assert "KeyError" in answer.text


def test_names_in_the_data_are_shown_as_text(inside: TestClient, state: StudioState) -> None:
    from pathlib import PurePath

    folder = PurePath(state.sources[0]).parent
    name = "<script>alert(1)<script>.csv"
    Path(folder, name).write_text("a,b\n1,2\n")
    answer = inside.post("/begin", data={"place": f"{folder}/{name}"}, headers={"origin": HOME})
    page = inside.get(answer.headers["location"]).text
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_name_that_no_file_can_have_is_refused(inside: TestClient) -> None:
    answer = inside.post("/begin", data={"place": "friends\0.csv"}, headers={"origin": HOME})
    assert answer.status_code == 422
    assert "There is no such file" in answer.text
