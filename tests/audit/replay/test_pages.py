"""The studio over HTTP, replayed on neighbours: the same status, headers, pages and JSON."""

from __future__ import annotations

import importlib
import json
import re
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio's extra is not installed")

from fastapi import Request
from starlette.testclient import TestClient
from tests.audit.replay import worlds
from tests.audit.replay.engine import replay_pages
from tests.audit.replay.test_engine import LINES, STAFF

from tulle.core.errors import TulleError
from tulle.studio import app as studio_app
from tulle.studio import state, study
from tulle.studio.process import FAULT, Worker
from tulle.studio.security import Door

HOME = "http://127.0.0.1:8124"


class InProcess(Worker):
    """Does every job at once, in this process, where the replay stands beside the mechanisms."""

    def __init__(self, make: Any) -> None:
        self._servant = make()
        self._servant.report = lambda fraction, label: None
        self.first: list[tuple[str, dict[str, Any]]] = []

    def submit(self, job: Any) -> Any:
        try:
            job.finish("done", result=getattr(self._servant, job.verb)(**job.arguments))
        except TulleError as error:
            job.finish("failed", problem=str(error))
        except Exception as error:  # noqa: BLE001 - as the process does
            job.finish("failed", problem=FAULT.format(type(error).__name__))
        return job

    def cancel(self, job: Any, explain: Any = lambda: "Cancelled.") -> None:
        job.finish("cancelled", problem=explain())

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def in_process(monkeypatch):
    monkeypatch.setattr(state, "Worker", InProcess)
    monkeypatch.setattr(study, "Worker", InProcess)


@contextmanager
def connect(file, folder, onlooker, change=None):
    """Start a studio over one file; what is visited may name {study}, {answer} and {job}."""
    studio = state.StudioState([str(file)], folder / "studio.ledger")
    built = studio_app.build(studio)
    if change is not None:
        change(built, studio)
    door = Door(built, port=8124)
    client = TestClient(door, base_url=HOME, follow_redirects=False, raise_server_exceptions=False)
    client.get(door.link())
    (opened,) = studio.studies.values()
    onlooker.hide(opened.identifier, "study")

    def releases():
        return [] if opened.account is None else opened.releases()

    def visit(method, address, fields):
        named = address.format(
            study=opened.identifier,
            answer=next((kept["debit"] for kept in releases()), "none"),
            job=next(reversed(studio.jobs), "none"),
        )
        if method == "GET":
            found = client.get(named, params=fields)
        else:
            found = client.post(named, data=fields, headers={"origin": HOME})
        for job in studio.jobs:
            onlooker.hide(job, "job")
        headers = {n: v for n, v in found.headers.items() if n not in ("date", "content-length")}
        # How long work took, and what time it is, tells of the machine.
        body = re.sub(r'"seconds": ?[0-9.]+', '"seconds":0', found.text)
        body = re.sub(r'"exported": ?"[^"]+"', '"exported":0', body)
        # What was read is for the custodian, who holds the data: one line, marked as such.
        body = re.sub(r'<p class="inside"><small>Read [^<]*</small></p>', "", body)
        return f"{found.status_code} {headers} {body}"

    try:
        yield visit
    finally:
        studio.close()


def visits(kind, unit, asked, **form):
    """What a custodian does from the opening on, mistakes and a second question included."""
    question = json.dumps({"kind": kind, **asked})
    terms = {"asked": question, "epsilon": "1", "delta": "1e-6"}
    opening = {
        "kind": kind,
        "unit": unit,
        "epsilon": "3",
        "delta": "1e-3",
        "account": "held",
        **form,
    }
    page = "/study/{study}"
    return [
        ("POST", f"{page}/open", {**opening, "epsilon": ""}),
        ("POST", f"{page}/open", opening),
        ("GET", page, {}),
        ("GET", f"{page}/plan.json", terms),
        ("GET", f"{page}/plan.json", {**terms, "epsilon": "-1"}),
        ("GET", f"{page}/plan.json", {**terms, "mechanism": "nothing"}),
        ("GET", f"{page}/curve.json", {"asked": question, "delta": "1e-6"}),
        ("POST", f"{page}/ask", terms),
        ("GET", "/jobs/{job}.json", {}),
        ("GET", page, {}),
        ("GET", f"{page}/answers/{{answer}}", {}),
        ("GET", f"{page}/answers/{{answer}}/figure.json", {}),
        ("GET", f"{page}/answers/{{answer}}/download/json", {}),
        ("GET", f"{page}/answers/{{answer}}/download/html", {}),
        ("GET", f"{page}/answers/{{answer}}/download/csv", {}),
        ("GET", f"{page}/answers/{{answer}}/download/exe", {}),
        ("GET", f"{page}/answers/none", {}),
        ("GET", f"{page}/synthetic", {}),
        ("GET", f"{page}/matrix", {}),
        ("GET", f"{page}/sql", {}),
        ("GET", f"{page}/check.json", {"text": "SELECT 1"}),
        ("POST", f"{page}/streams/none/step", {}),
        ("POST", "/jobs/{job}/cancel", {}),
        ("POST", f"{page}/ask", {**terms, "epsilon": "50", "again": "true"}),
        ("GET", "/jobs/{job}.json", {}),
        ("POST", f"{page}/ask", {**terms, "asked": "nothing"}),
        ("GET", "/data", {}),
        ("GET", "/ledger", {}),
        ("POST", "/ledger/verify", {}),
        ("GET", "/ledger/export", {}),
        ("GET", "/audit", {}),
        ("POST", "/audit", {"mechanism": " "}),
        ("GET", "/no/such/page", {}),
        ("POST", "/begin", {"place": "/etc/hostname"}),
        ("GET", "/", {}),
        ("POST", f"{page}/close", {}),
        ("GET", page, {}),
    ]


INSIDE = {
    "/study/{identifier}/answers/{debit}/truth.json": "the truth beside an answer",
    "/study/{identifier}/answers/{debit}/compare": "an answer measured against the data",
    "/study/{identifier}/compared/{job}.json": "an answer measured against the data",
    "/study/{identifier}/answers/{debit}/attack.json": "an attacker who knows all other records",
    "/study/{identifier}/heat.json": "the true matrix",
    "/upload": "the data itself",
}
"""What shows records or numbers computed from them to the custodian, who holds them."""


def all_routes():
    """Return the routes of every room of pages."""
    return [
        route
        for room in ("answers", "ask", "audit", "home", "jobs", "ledger", "opening", "sql")
        for route in importlib.import_module(f"tulle.studio.pages.{room}").router.routes
    ]


def test_every_page_is_replayed_or_inside():
    """A new page is visited by the replay, or it is said that it shows what is inside."""
    routes = {(method, route.path) for route in all_routes() for method in route.methods}
    visited = {(method, address) for _, asked in CASES.values() for method, address, _ in asked}

    def seen(method, path):
        pattern = re.escape(path)
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", pattern)
        return any(m == method and re.fullmatch(pattern, address) for m, address in visited)

    left = {(method, path) for method, path in routes if not seen(method, path)}
    assert {path for _, path in left} == set(INSIDE)


@pytest.mark.parametrize("number", ["9" * 5000, "²", "١", "-1", "1e3", "0x1", " ", "9" * 18])
def test_odd_numbers_in_forms_are_refused_in_words(number):
    variants, asked = CASES["graph"]
    fields = [
        {**asked[1][2], "nodes": number},
        {**asked[1][2], "end_one": number, "end_other": "1"},
        {"kind": "contributions", **asked[1][2], "rows": number},
    ]
    visited = [("POST", "/study/{study}/open", one) for one in fields]
    visited.append(("GET", "/study/{study}/check.json", {"text": "SELECT 1", "top": number}))
    seen = replay_pages(connect, variants[:1], visited)
    assert not [one for one in seen.shown if "gives 500" in one.text]


ODD_QUESTIONS = (
    '{"kind": "graph", "text": 5, "partition": "x"}',
    '{"kind": "graph", "text": "\\ud800"}',
    '{"kind": "database", "text": "SELECT \\ud800"}',
    '{"kind": "graph", "text": null}',
    '{"kind": "graph", "text": {"a": 1}}',
    '{"kind": "graph", "model": [1]}',
    '{"kind": "graph", "model": "auto", "arguments": [1, 2]}',
    '{"kind": "graph", "model": "auto", "arguments": {"model": "1k"}}',
    '{"kind": "graph", "model": "auto", "arguments": {"nothing": 1}}',
    '{"kind": "graph", "text": "triangles", "partition": {"a": []}}',
    '{"kind": "graph", "model": "communities", "partition": "dept"}',
    '{"kind": "graph", "model": "auto", "partition": "nothing"}',
    '{"kind": "graph", "text": "degree_of(\'ann\')"}',
    '{"kind": "graph", "text": "subgraphs(\'a-b\', where=\'a.dept = b.dept\')"}',
    '{"kind": "matrix", "arguments": {"nothing": 1}}',
    '{"kind": "contributions", "arguments": {"bound": {}}}',
    '{"kind": "graph"}',
    '{"kind": "database"}',
    '{"kind": "nothing"}',
    "[" * 100_000,
)
ODD_FIELDS = ("", " ", "nul\0", "a" * 300, "é" * 200, "../..", "1e400", "-1", "{", "<b>", "nan")


def odd_visits(question):
    """Every field of every page, with odd things in it, once a study is open."""
    opening = {"account", "kind", "unit", "nodes", "attributes", "header"}
    for route in all_routes():
        path = route.path.replace("{identifier}", "{study}").replace("{debit}", "{answer}")
        path = path.replace("/jobs/{study}", "/jobs/{job}").replace("{form}", "csv")
        taken = [*route.dependant.query_params, *route.dependant.body_params]
        names = {field.name for field in taken} or (opening if "open" in path else set())
        usual = {"asked": question, "mechanism": "", "delta": "0"}
        plain = {name: usual.get(name, "1") for name in names}
        for method in route.methods if not path.endswith("/close") else ():
            yield method, path, plain
            for name in sorted(names):
                for odd in ODD_QUESTIONS if name == "asked" else ODD_FIELDS:
                    yield method, path, {**plain, name: odd}
                    if name == "asked":
                        yield "GET", "/study/{study}", {}
                        yield "GET", "/jobs/{job}.json", {}


def failures(name):
    """Return the requests that failed, and what the form of an open study says at last."""
    variants, asked = CASES[name]
    opening, question = asked[1], asked[3][2]["asked"]
    seen = replay_pages(connect, variants[:1], [opening, *odd_visits(question), opening])
    failed = [one for one in seen.shown if re.search("gives 5|Something went wrong", one.text)]
    again = [one.text for one in seen.shown if one.place == "POST /study/{study}/open"]
    return [f"{one.place}: {one.text[-300:]}" for one in failed], again[-1]


@pytest.mark.parametrize("name", ["graph", "matrix", "contributions", "database"])
def test_no_page_fails_whatever_its_fields_hold(name):
    failed, again = failures(name)
    assert failed == []
    # Another tab may still show the form.
    assert "is open already" in again


def apart(name, variants):
    """Return what tells neighbours apart, whatever fields hold; but for what is shown inside."""
    known, asked = CASES[name]
    opening, question = asked[1], asked[3][2]["asked"]
    inside = [re.sub(r"{\w+}", "[^ ]*", re.escape(path).replace("\\", "")) for path in INSIDE]
    seen = replay_pages(connect, known[:variants], [opening, *odd_visits(question)])
    told = [one for one in seen.findings if not any(re.search(f" {p}:", one) for p in inside)]
    said = " ".join(one.text for one in seen.shown)
    assert '"state":"done"' in said
    return told


def test_nothing_tells_people_apart_whatever_fields_hold():
    assert apart("people per node", 3) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["graph", "graph per node", "matrix", "contributions", "database"])
def test_nothing_tells_neighbours_apart_whatever_fields_hold(name):
    assert apart(name, 3) == []


def test_a_partition_of_people_who_are_hidden_is_caught(monkeypatch):
    """The broken version reads any column of nodes, whoever is protected."""
    from tulle.studio.data_worker import DataWorker

    monkeypatch.setattr(DataWorker, "_columns", lambda self: self._data.node_attributes)
    assert any("plan.json" in one for one in apart("people per node", 2))


def test_a_page_that_trusts_its_fields_is_caught(monkeypatch):
    monkeypatch.setattr("tulle.studio.pages.ask.asked_from", json.loads)
    assert failures("graph")[0]


def write_people(people, folder):
    """Write a network of people, each with one link to all before, and where they work."""
    names = list(people)
    links = [f"{a},{b}\n" for i, a in enumerate(names) for b in names[:i]]
    (folder / "friends.csv").write_text("a,b\n" + "".join(links))
    rows = [f"{name},{dept}\n" for name, dept in people.items()]
    (folder / "people.csv").write_text("name,dept\n" + "".join(rows))
    return folder / "friends.csv"


STAFFED = {"ann": "art", "bob": "law", "cy": "art", "dan": "law"}
PEOPLE = [
    partial(write_people, people)
    for people in (STAFFED, {**STAFFED, "dan": "war"}, {**STAFFED, "eve": "law"})
]

CASES = {
    "people per node": (
        PEOPLE,
        visits("graph", "node", {"text": "edges"}, header="yes", attributes="people.csv"),
    ),
    "graph": (
        LINES["graph per edge"][0],
        visits("graph", "edge", {"text": "triangles"}, nodes="6"),
    ),
    "graph per node": (
        LINES["graph per node"][0],
        visits("graph", "node", {"text": "edges"}, header="yes"),
    ),
    "matrix": (LINES["votes"][0], visits("matrix", "row", {}, header="on")),
    "contributions": (
        LINES["trips"][0],
        visits(
            "contributions",
            "participant",
            {"arguments": {"bound": 2, "total": 5}},
            **worlds.NAMED,
            rows="home,work",
        ),
    ),
    "contributions without a grid": (
        LINES["trips"][0],
        visits(
            "contributions",
            "participant",
            {"question": "found_cells", "arguments": {"cells_per_person": 2, "bound": 2}},
            **worlds.NAMED,
        ),
    ),
    "database": (
        STAFF,
        [
            *visits("database", "participant", {"text": "SELECT COUNT(*) FROM person"}),
            ("GET", "/study/{study}/check.json", {"text": "SELECT COUNT(*) FROM person"}),
            ("GET", "/study/{study}/check.json", {"text": "SELECT SUM(nothing) FROM person"}),
            ("GET", "/study/{study}/sql", {}),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_pages_of_neighbours_are_the_same(name):
    variants, asked = CASES[name]
    seen = replay_pages(connect, variants, asked)
    assert seen.findings == ()
    said = {one.place: one.text for one in seen.shown}
    # A replay of refusals alone would show nothing.
    assert said["GET /study/{study}/plan.json"].startswith("gives"), said
    assert '"state":"done"' in "".join(one.text for one in seen.shown), said
    assert "gives 200" in said["GET /study/{study}/answers/{answer}/download/json"], said


def quote_a_record(built, studio):
    """A page whose error quotes the data, as a handler without care would."""

    def leak(request: Request) -> str:
        with open(studio.sources[0], encoding="utf-8", errors="replace") as file:
            return file.read()

    built.add_api_route("/leak", leak)


def count_in_a_header(built, studio):
    """A header that tells how large the file is."""

    async def add(request: Request, call_next: Any) -> Any:
        answer = await call_next(request)
        with open(studio.sources[0], "rb") as file:
            answer.headers["x-length"] = str(len(file.read()))
        return answer

    built.middleware("http")(add)


def fail_on_some(built, studio):
    """A page that fails for some data only."""

    def fail(request: Request) -> str:
        with open(studio.sources[0], encoding="utf-8", errors="replace") as file:
            lines = len(file.readlines())
        if lines % 2:
            raise ValueError("odd")
        return "fine"

    built.add_api_route("/leak", fail)


@pytest.mark.parametrize("change", [quote_a_record, count_in_a_header, fail_on_some])
def test_a_page_that_tells_of_the_data_is_caught(change):
    variants, asked = CASES["graph"]
    some = [*asked[:3], ("GET", "/leak", {})]
    seen = replay_pages(partial(connect, change=change), variants, some)
    assert any("GET" in finding for finding in seen.findings), seen.findings
