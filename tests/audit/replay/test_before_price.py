"""Before the price is booked nothing reads a record: not a plan, a refusal, a cost or an error.

What nobody reads cannot show, in words or in how long it takes. Every question of every kind of
data is planned, refused and asked while all reads of the data's own attributes are noted, and all
statements of which its engine runs the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.replay import worlds
from tests.audit.replay.engine import Case

import tulle
from tulle.core.dataset import Dataset
from tulle.core.errors import TulleError
from tulle.ledger.ledger import Ledger
from tulle.matrices.binary.data import BinaryMatrix

CONTENT: dict[tuple[str, str], set[str]] = {
    ("graph", "edge"): {"_declared", "_labels", "node_kinds", "edge_kinds"},
    ("graph", "node"): {"_declared", "node_kinds", "edge_kinds"},
    ("matrix", "row"): {"_shape"},
    ("matrix", "cell"): {"_shape"},
    ("contributions", "participant"): {"_declared", "_rows", "_columns", "_support"},
    ("table", "row"): {"_bounds", "_classes", "_rows"},
    ("table", "participant"): {"_bounds", "_classes", "_about"},
    ("genotypes", "row"): {"_snps", "_complete", "_assumed", "_cases"},
    ("genotypes", "participant"): {"_snps", "_complete", "_assumed"},
    ("database", "participant"): {"_schema", "_engine"},
    ("relation", "participant"): set(),
    ("series", "participant"): {"_names", "_calendar", "_first", "_steps", "_bound"},
}
"""The attributes that are public, by kind and unit: they were declared, or are public facts."""

OUTLINES = {
    ("graph", "edge"): {"_indptr"},
    ("genotypes", "row"): {"_cells"},
    ("genotypes", "participant"): {"_cases"},
}
"""Arrays of which it is public how long they are, or that there are any, and nothing else."""


class Outline:
    """An array of records before it is paid for: its shape, and an error for all else."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.shape = array.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Records were read before the price was booked.")


ENGINE = ("read", "fetch", "workspace")
"""What of an engine reads rows; the rest reads its catalogue, or resolves names and types."""


class Watch:
    """Notes what is read of one dataset, and of what was made of it, before a price is booked."""

    def __init__(self, dataset: Dataset, unit: str) -> None:
        self.origin = dataset.origin
        self.content = CONTENT[dataset.kind, unit]
        self.outlines = OUTLINES.get((dataset.kind, unit), set())
        self.paid = False
        self.found: set[str] = set()

    def note(self, item: Any, name: str, value: Any) -> Any:
        if self.paid or own(item) is not self.origin or name in self.content:
            return value
        if name in self.outlines:
            return Outline(value) if isinstance(value, np.ndarray) else value
        if name != "_origin":
            self.found.add(name)
        return value


def own(item: Any) -> object:
    held = object.__getattribute__(item, "__dict__")
    return held.get("_engine", held.get("_origin"))


@contextmanager
def watching(dataset: Dataset, unit: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watch = Watch(dataset, unit)

    def noting(item: Any, name: str) -> Any:
        value = object.__getattribute__(item, name)
        if name in object.__getattribute__(item, "__dict__"):
            return watch.note(item, name, value)
        return value

    def running(act: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(act)
        def run(engine: Any, *given: Any, **named: Any) -> Any:
            if engine is watch.origin and not watch.paid:
                watch.found.add(f"{act.__name__} of the engine")
            return act(engine, *given, **named)

        return run

    def booking(book: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(book)
        def booked(*given: Any, **named: Any) -> Any:
            found = book(*given, **named)
            watch.paid = True
            return found

        return booked

    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "__getattribute__", noting, raising=False)
        for name in ("book", "book_all", "book_stream"):
            patched.setattr(Ledger, name, booking(getattr(Ledger, name)))
        if hasattr(watch.origin, "fetch"):
            for name in ENGINE:
                act = getattr(type(watch.origin), name)
                patched.setattr(type(watch.origin), name, running(act))
        yield watch


def found_before_paying(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return what is read of a dataset while a question is planned, refused and asked."""
    dataset = case.variants[0](folder)
    terms: dict[str, Any] = {
        "epsilon": case.epsilon,
        "delta": case.delta,
        "mechanism": case.mechanism,
        **case.options,
    }
    try:
        with watching(dataset, case.unit, monkeypatch) as watch:
            ledger = Ledger(folder / "study.ledger")
            study = ledger.open("study", dataset, unit=case.unit, epsilon="100", delta="0.5")
            for act in (
                lambda: repr(study),
                lambda: study.plan(case.query, **terms),
                lambda: study.plan(case.query, **{**terms, "epsilon": "101"}),
                lambda: study.plan(case.query, **{**terms, "mechanism": "nothing"}),
                lambda: study.ask(case.query, **{**terms, "epsilon": "101"}),
                lambda: study.ask(case.query, **{**terms, "epsilon": "-1"}),
                lambda: study.ask(case.query, **{**terms, "unheard_of": 1}),
                lambda: study.ask(case.query, **terms),
            ):
                with suppress(TulleError):
                    act()
            watch.paid = False  # the kept answer is found without the data
            with suppress(TulleError):
                study.ask(case.query, **terms)
    finally:
        close = getattr(dataset, "close", None)
        if close is not None:
            close()
    return watch.found


def check(cases: Sequence[Case], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for number, case in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        if read := found_before_paying(case, place, monkeypatch):
            found[str(case)] = read
    assert cases
    assert not found


@pytest.mark.parametrize("kind", worlds.SETTINGS)
def test_nothing_is_read_before_the_price_is_booked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(list(worlds.cases(kind))[::9], tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("kind", worlds.SETTINGS)
def test_nothing_is_read_before_the_price_of_any_question_is_booked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(list(worlds.cases(kind, thorough=kind != "database")), tmp_path, monkeypatch)


def test_a_stream_is_opened_and_planned_without_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = tulle.Series(
        ["ann", "bob"], ["2026-01-05", "2026-01-12"], every="week", first="2026-01-05", steps=4,
        bound=1,
    )  # fmt: skip
    with watching(trips, "participant", monkeypatch) as watch:
        ledger = Ledger(tmp_path / "study.ledger")
        study = ledger.open("trips", trips, unit="participant", epsilon="2", delta="1e-6")
        for epsilon in ("3", "1"):
            with suppress(TulleError):
                tulle.Stream(study, epsilon=epsilon, delta="1e-7", periods=2)
        assert watch.paid
    assert watch.found == set()


class Counting(BinaryMatrix):
    """It counts ones to say what is assumed."""

    def assumptions(self, unit: Any) -> tuple[str, ...]:
        assert self.to_numpy().sum() >= 0
        return ()


def test_a_plan_that_reads_records_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = lambda folder: Counting([[0, 1], [1, 1]])  # noqa: E731
    case = Case("twin", "row", [held], tulle.xor())
    assert found_before_paying(case, tmp_path, monkeypatch)


def test_a_check_that_runs_a_statement_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tulle.sql.engines.base import Engine

    check = Engine.check

    def running(self: Any, statement: str) -> None:
        check(self, statement)
        self.fetch(statement)

    monkeypatch.setattr(Engine, "check", running)
    case = next(worlds.cases("database"))
    assert "fetch of the engine" in found_before_paying(case, tmp_path, monkeypatch)


def test_degrees_behind_the_number_of_nodes_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version looks for isolated nodes to say what is assumed."""
    monkeypatch.setattr(
        tulle.Graph, "assumptions", lambda self, unit: (str(np.diff(self._indptr)),)
    )
    case = next(case for case in worlds.cases("graph") if case.unit == "edge")
    with pytest.raises(TypeError):
        found_before_paying(case, tmp_path, monkeypatch)
