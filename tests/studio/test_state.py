"""The state of a studio and its processes, without a browser."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.studio.studio_helpers import PATIENCE, Servant, Stalling, write_network

from tulle.core.errors import InputError, TulleError
from tulle.studio import state as state_module
from tulle.studio.jobs import Job
from tulle.studio.process import Worker
from tulle.studio.state import StudioState

TRIANGLES = {"kind": "graph", "text": "triangles"}


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(Servant)
    yield made
    made.close()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StudioState]:
    write_network(tmp_path / "friends.csv", people=60)
    opened = StudioState([str(tmp_path / "friends.csv")], tmp_path / "study.ledger")
    yield opened
    opened.close()


def test_a_process_keeps_its_state_between_jobs(worker: Worker) -> None:
    worker.call("keep", value=7)
    assert worker.call("give") == 7


def test_what_goes_wrong_is_told_without_the_record(worker: Worker) -> None:
    with pytest.raises(TulleError, match="Not so"):
        worker.call("refuse")
    with pytest.raises(TulleError) as caught:
        worker.call("quote")
    assert "alice" not in str(caught.value)
    assert "ValueError" in str(caught.value)


def test_a_killed_process_is_replaced_and_brought_where_it_was(worker: Worker) -> None:
    worker.first = [("keep", {"value": 5})]
    stuck = worker.submit(Job("stall", {}, "stall"))
    waiting = worker.submit(Job("give", {}, "give"))
    skipped = worker.submit(Job("give", {}, "give"))
    worker.cancel(skipped)
    while stuck.state != "running":
        time.sleep(0.01)
    worker.cancel(stuck, lambda: "stopped")
    assert stuck.state == "cancelled"
    assert stuck.problem == "stopped"
    assert waiting.wait(PATIENCE)
    assert waiting.result == 5
    assert skipped.state == "cancelled"


def test_what_was_cancelled_before_it_was_sent_is_not_done(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while its process is made ready: whoever cancels is told that nothing was spent."""
    ready = Worker._ready

    def cancel_meanwhile(self: Worker) -> None:
        if self._current is late:
            self.cancel(late)
        ready(self)

    late = Job("keep", {"value": 7}, "keep")
    monkeypatch.setattr(Worker, "_ready", cancel_meanwhile)
    worker.submit(late)
    assert late.wait(PATIENCE)
    assert late.state == "cancelled"
    assert worker.call("give") == 0


def test_a_closed_worker_begins_nothing_that_waited(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = worker.submit(Job("stall", {}, "stall"))
    waiting = worker.submit(Job("give", {}, "give"))
    while stuck.state != "running":
        time.sleep(0.01)
    worker.close()
    assert waiting.wait(PATIENCE)
    assert waiting.state == "failed"
    assert "nothing was spent" in (waiting.problem or "")
    assert worker.submit(Job("give", {}, "give")).state == "failed"


def _open(state: StudioState) -> Any:
    study = next(iter(state.studies.values()))
    study.read({"kind": "graph", "path": study.place})
    study.open("friends", "edge", "2", "0")
    return study


def test_a_cancelled_answer_stays_paid_and_says_so(state: StudioState) -> None:
    study = next(iter(state.studies.values()))
    study.worker.close()
    study.worker = Worker(Stalling)
    _open(state)
    job = state.track(study.ask(TRIANGLES, "0.5", "0", title="triangles"))
    while job.label != "stalled":
        assert not job.over, job.problem
        time.sleep(0.02)
    state.cancel(job)
    assert job.state == "cancelled"
    assert "is spent and stays spent" in (job.problem or "")
    assert float(state.ledger.remaining("friends")) == 1.5
    assert study.releases() == []


def test_what_waits_is_not_said_to_have_paid_what_another_did(state: StudioState) -> None:
    study = next(iter(state.studies.values()))
    study.worker.close()
    study.worker = Worker(Stalling)
    _open(state)
    one, two, three = (
        state.track(study.ask(TRIANGLES, "0.5", "0", title="triangles")) for _ in range(3)
    )
    while one.label != "stalled":
        assert not one.over, one.problem
        time.sleep(0.02)
    state.cancel(three)
    assert "nothing was spent" in (three.problem or "")
    state.cancel(one)
    assert "stays spent" in (one.problem or "")
    state.cancel(two)
    spent = 2 - float(state.ledger.remaining("friends"))
    assert ("stays spent" in (two.problem or "")) == (spent == 1.0)


def test_data_that_changed_under_a_study_is_asked_nothing(state: StudioState) -> None:
    """After a cancelling the file is read again: plans on show are those of the old one."""
    study = next(iter(state.studies.values()))
    study.worker.close()
    study.worker = Worker(Stalling)
    _open(state)
    job = state.track(study.ask(TRIANGLES, "0.5", "0", title="triangles"))
    while job.label != "stalled":
        assert not job.over, job.problem
        time.sleep(0.02)
    Path(study.place).write_text("1,2\n2,3\n")
    state.cancel(job)
    for _ in range(2):
        later = state.track(study.ask({"kind": "graph", "text": "edges"}, "0.5", "0", title="e"))
        assert later.wait(PATIENCE)
        assert later.state == "failed"
        assert "public facts" in (later.problem or "")
    assert len(study.debits()) == 1


def test_an_answer_is_paid_kept_and_found(state: StudioState) -> None:
    study = _open(state)
    job = state.track(study.ask(TRIANGLES, "0.5", "0", title="triangles"))
    assert job.wait(PATIENCE)
    assert job.state == "done", job.problem
    release = study.release(job.result)
    assert release["query"] == "triangles()"
    assert float(state.ledger.remaining("friends")) == 1.5
    with pytest.raises(InputError, match="no such release"):
        study.release("0" * 64)


def test_too_little_budget_is_refused_and_costs_nothing(state: StudioState) -> None:
    study = _open(state)
    job = study.ask(TRIANGLES, "5", "0", title="triangles")
    assert job.wait(PATIENCE)
    assert job.state == "failed"
    assert "Nothing was spent" in (job.problem or "")
    assert float(state.ledger.remaining("friends")) == 2


def test_files_outside_the_given_folders_stay_closed(state: StudioState, tmp_path: Path) -> None:
    for place in ("/etc/passwd", str(tmp_path / ".." / "elsewhere.csv"), "~/x.csv"):
        with pytest.raises(InputError, match="outside the folders"):
            state.begin(place)
    for place in ("duckdb:////etc/passwd", "file:///etc/passwd", str(tmp_path / "other.toml")):
        with pytest.raises(InputError, match="when you start the studio"):
            state.begin(place)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("a" * 300, "circle", "nul\0", "circle/x.csv"):
        with pytest.raises(InputError, match="no such file"):
            state.begin(str(tmp_path / name))
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="outside the folders"):
        state.begin(str(tmp_path / "link.csv"))


def test_uploads_are_limited_and_named_plainly(
    state: StudioState, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(state.upload("../../friends.csv", io.BytesIO(b"a,b\n1,2\n")))
    assert path.name == "friends.csv"
    assert ".." not in path.parts
    with pytest.raises(InputError, match="plain name"):
        state.upload("..", io.BytesIO(b""))
    with pytest.raises(InputError, match="plain name"):
        state.upload("é" * 200 + ".csv", io.BytesIO(b""))
    # A study may be open on it.
    with pytest.raises(InputError, match="another name"):
        state.upload("friends.csv", io.BytesIO(b"others"))
    assert path.read_bytes() == b"a,b\n1,2\n"
    monkeypatch.setattr(state_module, "LARGEST_UPLOAD", 10)
    with pytest.raises(InputError, match="limited"):
        state.upload("large.csv", io.BytesIO(b"x" * 11))
    assert not path.with_name("large.csv").exists()
    state.close()
    assert not path.exists()


def test_the_server_process_holds_no_data(state: StudioState) -> None:
    study = _open(state)
    assert not hasattr(study, "_dataset")
    held = {type(value).__name__ for value in vars(study).values()}
    assert "Graph" not in held
    assert set(study.facts) == {"nodes"}
