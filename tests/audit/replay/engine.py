"""Replay: a whole path, run on a dataset and on its neighbours with the same noise.

A path is everything between the records and whoever looks on: reader or database, question, plan,
ledger, release, report, command line, studio. What an onlooker sees of it is written down: what
acts give and raise (with the causes that an exception keeps), warnings, log records, what is
printed, exit codes, entries of the ledger, pages. Neighbours must show the very same.

Only what a mechanism draws may differ. So a tape stands between the mechanisms and the rest: it
keeps what the first dataset's mechanisms gave. A neighbour's mechanisms run as well, from the same
source; the *form* of what they give (types, shapes, keys, public settings) is compared, and the
first dataset's numbers are handed on. Nothing behind the mechanisms needs to be masked: it is the
same byte for byte, or it is a finding.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tulle.audit.engine.kind import is_audited, kind_of
from tulle.core import codec, registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome
from tulle.core.query import Query
from tulle.core.release import Release
from tulle.ledger.ledger import Ledger
from tulle.noise import SeededSource

SEED = 20
"""Every mechanism of every variant draws from a source of this seed."""

QUIET = ("py4j", "asyncio", "numba", "matplotlib")
"""Loggers that count calls or threads below the level of a warning: two equal runs differ."""

_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Ledgers write through to the disk at every step; in memory that takes no time."""

Opener = Callable[[Path], Any]
"""Makes one variant of the data in a folder and opens it, or returns what a path needs of it."""


@dataclass(frozen=True)
class Seen:
    """One thing that an onlooker sees: where, and what."""

    place: str
    text: str


@dataclass
class Onlooker:
    """Writes down all that acts show. ``hidden`` holds texts that differ between any two runs."""

    seen: list[Seen] = field(default_factory=list)
    hidden: dict[str, str] = field(default_factory=dict)

    def note(self, place: str, text: Any) -> None:
        """Write down a text."""
        self.seen.append(Seen(place, str(text)))

    def hide(self, text: Any, name: str) -> None:
        """Say that a text tells of the run and not of the data: a folder, a time, a digest."""
        if text:
            self.hidden[str(text)] = f"<{name}>"

    def see(self, place: str, act: Callable[[], Any], *, show: Callable[[Any], Any] = repr) -> Any:
        """Perform an act and write down what it gives or raises, says, logs and prints.

        Returns:
            What the act gives, or None when it fails.
        """
        logged = _Logged()
        result, said = None, "nothing"
        with (
            warnings.catch_warnings(record=True) as warned,
            _listening(logged),
            _printed() as printed,
        ):
            warnings.simplefilter("always")
            try:
                result = act()
                said = f"gives {show(result)}"
            except Exception as error:  # noqa: BLE001 - any error at all must be the same
                said = f"raises {' <- '.join(causes_of(error))}"
                result = None
        self.note(place, said)
        for warning in warned:
            self.note(f"{place}: warning", f"{warning.category.__name__}: {warning.message}")
        for line in logged.lines:
            self.note(f"{place}: log", line)
        for name, text in printed.items():
            if text:
                self.note(f"{place}: {name}", text)
        return result

    def told(self) -> list[Seen]:
        """Return all that was seen, with the hidden texts replaced by their names."""
        longest_first = sorted(self.hidden.items(), key=lambda pair: -len(pair[0]))
        found = []
        for one in self.seen:
            text = one.text
            for hidden, name in longest_first:
                text = text.replace(hidden, name)
            found.append(Seen(one.place, text))
        return found


class _Logged(logging.Handler):
    """Keeps every record of every logger."""

    def __init__(self) -> None:
        super().__init__(level=logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record with its message and the errors that it carries."""
        if record.name.split(".")[0] in QUIET and record.levelno < logging.WARNING:
            return
        carried = record.exc_info[1] if record.exc_info else None
        causes = causes_of(carried) if isinstance(carried, Exception) else []
        self.lines.append(f"{record.name} {record.levelname}: {record.getMessage()} {causes}")


@contextmanager
def _listening(handler: logging.Handler) -> Iterator[None]:
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


@contextmanager
def _printed() -> Iterator[dict[str, str]]:
    """Catch what is written to the process's own output and errors, by libraries in C too."""
    found: dict[str, str] = {}
    before = {"stdout": (sys.stdout, 1), "stderr": (sys.stderr, 2)}
    files: dict[str, tuple[Any, int]] = {}
    try:
        for name, (stream, number) in before.items():
            stream.flush()
            file = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
            files[name] = file, os.dup(number)
            os.dup2(file.fileno(), number)
            # Python's own stream may be somewhere else, as it is in a test or a notebook.
            setattr(sys, name, io.TextIOWrapper(file, encoding="utf-8", write_through=True))
        yield found
    finally:
        for name, (file, kept) in files.items():
            stream, number = before[name]
            wrapped = getattr(sys, name)
            wrapped.flush()
            wrapped.detach()  # or it would close the file
            setattr(sys, name, stream)
            os.dup2(kept, number)
            os.close(kept)
            file.seek(0)
            found[name] = file.read().decode("utf-8", "replace")
            file.close()


def causes_of(error: BaseException | None) -> list[str]:
    """Return an error's type and text, and those of all that it keeps as cause or context."""
    found: list[str] = []
    known: set[int] = set()
    while error is not None and id(error) not in known:
        known.add(id(error))
        notes = getattr(error, "__notes__", [])
        found.append(" ".join([f"{type(error).__name__}: {error}", *notes]))
        error = error.__cause__ or error.__context__
    return found


# --- the tape -----------------------------------------------------------------------------------


@dataclass
class Tape:
    """Keeps what the mechanisms of the first variant gave, and hands it on for the others."""

    kept: list[Any] = field(default_factory=list)
    place: int = 0
    first: bool = True

    def rewind(self) -> None:
        """Start over for a neighbour."""
        self.first, self.place = False, 0

    def pass_on(self, given: Any) -> Any:
        """Return what the first variant gave at this place of the path."""
        self.place += 1
        if self.first:
            self.kept.append(given)
            return given
        return self.kept[self.place - 1] if self.place <= len(self.kept) else given

    @contextmanager
    def playing(self, onlooker: Onlooker) -> Iterator[None]:
        """Stand between the registered mechanisms and whoever runs them."""
        known = registry.make_mechanism
        running = False

        def tapped(item: Mechanism) -> Mechanism:
            run = item.run

            def replayed(terms: Any, settings: Any, dataset: Any, source: Any) -> Outcome:
                nonlocal running
                if running:  # a mechanism inside another: a part of its run
                    return run(terms, settings, dataset, source)
                running = True
                try:
                    outcome = run(terms, settings, dataset, SeededSource(SEED))
                finally:
                    running = False
                private = private_names(item.kind, item.name)
                onlooker.note(f"form of what {item.name} gives", form_of(outcome, private))
                passed: Outcome = self.pass_on(outcome)
                return passed

            item.run = replayed  # type: ignore[method-assign]
            return item

        def make_mechanism(kind: str, name: str) -> Mechanism:
            return tapped(known(kind, name))

        registry.make_mechanism = make_mechanism
        try:
            yield
        finally:
            registry.make_mechanism = known


def form_of(outcome: Outcome, names: Iterable[str]) -> str:
    """Return all of an outcome but its private numbers: types, shapes, keys, public settings."""
    private = set(names)
    law = None if outcome.error is None else outcome.error.to_json()
    details = _public(dict(outcome.details), private)
    if "error" in private:
        # Which threshold won, and whether any did, is drawn: with it come a law and its entries.
        law = None
        details = {name: shape for name, shape in details.items() if name not in private}
    error = None if law is None else _public(law, private)
    return repr({"value": shape_of(outcome.value), "error": error, "details": details})


def private_names(kind: str, mechanism: str) -> tuple[str, ...]:
    """Return the entries of an outcome that are part of the private answer, beside its value.

    They are the ones that the audit's view of the kind declares; mechanisms of relations serve
    graphs and databases too.
    """
    found = kind_of(kind).private if is_audited(kind) else ()
    if mechanism in registry.find("mechanism", "relation"):
        found += kind_of("relation").private
    return found


def _public(data: Mapping[str, Any], private: set[str]) -> dict[str, Any]:
    return {name: shape_of(value) if name in private else value for name, value in data.items()}


def shape_of(value: Any) -> Any:
    """Return the form of a released value without its numbers.

    Example:
        >>> shape_of({"a": [1.5, 2.5]})
        {'a': ['float', 'float']}
    """
    import numpy as np

    if isinstance(value, np.ndarray):
        return f"array of {value.dtype}, {value.shape}"
    if isinstance(value, Mapping):
        return {str(name): shape_of(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [shape_of(item) for item in value]
    if isinstance(value, Dataset) or not isinstance(value, bool | int | float | str | None):
        # What has a codec of its own is made of noise: only its public frame is told.
        written = codec.encode(value)
        body = written.get("value") if isinstance(written, dict) else None
        keys = sorted(body) if isinstance(body, dict) else []
        nodes = body.get("nodes") if isinstance(body, dict) else None
        labels = getattr(value, "_labels", None)
        return [type(value).__name__, keys, nodes, None if labels is None else list(labels)]
    return type(value).__name__


# --- paths --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One question put to a dataset and its neighbours: the first opener, then the others."""

    name: str
    unit: str
    variants: Sequence[Opener]
    query: Query
    epsilon: str = "1"
    delta: str = "0"
    mechanism: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        how = "" if self.mechanism is None else f" by {self.mechanism}"
        return f"{self.name}: {self.query} per {self.unit}{how}"


PathOf = Callable[[Onlooker, Tape, Opener, Path], None]
"""What is done with one variant, in a folder of its own, under the eyes of an onlooker."""


@dataclass(frozen=True)
class Replayed:
    """What a replay found, and what the first variant showed."""

    findings: tuple[str, ...]
    """What tells a neighbour from the first variant: where, and what each of them shows."""
    shown: tuple[Seen, ...]

    def gives(self, place: str) -> bool:
        """Say whether an act of the first variant gave something, and did not fail."""
        return any(one.place == place and one.text.startswith("gives") for one in self.shown)


def replay(variants: Sequence[Opener], path: PathOf) -> Replayed:
    """Run a path on every variant and find what an onlooker could tell them apart by."""
    tape = Tape()
    told: list[list[Seen]] = []
    for opener in variants:
        onlooker = Onlooker()
        with tempfile.TemporaryDirectory(prefix="replay", dir=_MEMORY) as folder:
            onlooker.hide(folder, "folder")
            with tape.playing(onlooker):
                path(onlooker, tape, opener, Path(folder))
        told.append(onlooker.told())
        tape.rewind()
    findings = (
        f"variant {number}: {finding}"
        for number, other in enumerate(told[1:], start=1)
        for finding in _differences(told[0], other)
    )
    return Replayed(tuple(findings), tuple(told[0]))


def _differences(base: Sequence[Seen], other: Sequence[Seen]) -> list[str]:
    found = []
    for one, two in zip(base, other, strict=False):
        if one.place != two.place:
            found.append(f"after that the paths part: {one} but {two}")
            break
        if one.text != two.text:
            found.append(f"{one.place}: {_apart(one.text, two.text)}")
    if len(base) != len(other) and not found:
        longer = max(base, other, key=len)[min(len(base), len(other))]
        found.append(f"only one of the two shows {longer.place}: {longer.text[:300]!r}")
    return found


def _apart(one: str, two: str) -> str:
    """Show two texts from where they part."""
    start = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
    begin = max(start - 60, 0)
    return f"{one[begin : begin + 300]!r} but {two[begin : begin + 300]!r}"


def replay_case(case: Case) -> Replayed:
    """Replay the path of Python: open, plan, ask, ask again, keep, report."""

    def path(onlooker: Onlooker, tape: Tape, opener: Opener, folder: Path) -> None:
        dataset = onlooker.see("open", lambda: opener(folder))
        if dataset is not None:
            try:
                look_at(onlooker, case, dataset)
                ask(onlooker, case, dataset, folder)
            finally:
                close = getattr(dataset, "close", None)
                if close is not None:
                    close()

    return replay(case.variants, path)


def look_at(onlooker: Onlooker, case: Case, dataset: Dataset) -> None:
    """Look at a sealed dataset from outside, and at what a question says about it."""
    onlooker.see("repr", lambda: repr(dataset))
    onlooker.see("str", lambda: f"{dataset} {dataset:>40}")
    onlooker.see("pickle", lambda: pickle.dumps(dataset))
    onlooker.see("copy", lambda: copy.copy(dataset))
    onlooker.see("deepcopy", lambda: copy.deepcopy(dataset))
    onlooker.see("facts", lambda: dict(dataset.facts(dataset.check_unit(case.unit))))
    onlooker.see("objection", lambda: case.query.objection(dataset))


def ask(onlooker: Onlooker, case: Case, dataset: Dataset, folder: Path) -> None:
    """Open an account, plan, ask, ask again and ask too much; look at all that this leaves."""
    ledger = Ledger(folder / "study.ledger")
    terms: dict[str, Any] = {
        "epsilon": case.epsilon,
        "delta": case.delta,
        "mechanism": case.mechanism,
        **case.options,
    }
    session = onlooker.see(
        "account",
        lambda: ledger.open("study", dataset, unit=case.unit, epsilon="100", delta="0.5"),
    )
    if session is None:
        return
    onlooker.see("plan", lambda: session.plan(case.query, **terms), show=_whole_plan)
    answer = onlooker.see("ask", lambda: session.ask(case.query, **terms), show=_whole_release)
    onlooker.see("ask again", lambda: session.ask(case.query, **terms), show=_whole_release)
    onlooker.see("ask too much", lambda: session.ask(case.query, **{**terms, "epsilon": "101"}))
    onlooker.see("what is left", lambda: session.remaining)
    onlooker.see("session", lambda: f"{session!r} {ledger._repr_html_()}")
    if isinstance(answer, Release):
        for place, act in after(answer, folder).items():
            onlooker.see(place, act)
    entries(onlooker, ledger)


def entries(onlooker: Onlooker, ledger: Ledger) -> None:
    """Write down what the ledger holds, entry by entry; digests tell of the run."""
    for entry in ledger.entries():
        for digest in (entry.digest, entry.previous):
            for length in (12, 16, None):
                onlooker.hide(digest[:length], "digest")
        when = f"{entry.number} {entry.kind} {entry.time}"
        onlooker.note("entry", f"{when} {entry.account} {entry.body}")


def after(answer: Release, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what is done with a release: it is saved, read, reported, and its error looked at."""
    file, page = folder / "release.json", folder / "release.html"

    def save() -> str:
        answer.save(file)
        return file.read_text(encoding="utf-8")

    return {
        "save": save,
        "load": lambda: Release.load(file),
        "report": lambda: (answer.report(page), page.read_text(encoding="utf-8")),
        "interval": lambda: answer.interval(0.95),
        "quotients": lambda: answer.quotients(),
        "html": lambda: answer._repr_html_(),
    }


def _whole_plan(plan: Any) -> str:
    return f"{plan!r} {plan._repr_html_()} {plan.to_json()} {plan.canonical()}"


def _whole_release(release: Release) -> str:
    return f"{release!r} {json.dumps(release.to_json(), default=str)}"


def replay_commands(
    run: Callable[[Sequence[str]], str],
    variants: Sequence[Opener],
    commands: Sequence[Sequence[str]],
    files: Sequence[str] = (),
) -> Replayed:
    """Replay command lines: openers write files; output, errors, exit codes and files are seen.

    ``run`` runs one line in this process and returns its exit code and all that it wrote.
    ``{folder}`` in a line stands for the variant's folder; ``files`` are read afterwards.
    """

    def path(onlooker: Onlooker, tape: Tape, opener: Opener, folder: Path) -> None:
        opener(folder)
        for command in commands:
            line = [part.replace("{folder}", str(folder)) for part in command]
            onlooker.see(f"tulle {' '.join(command)}", partial(run, line), show=str)
        for ledger in sorted(folder.glob("*.ledger")):
            entries(onlooker, Ledger(ledger, create=False))
        for name in files:
            text = (folder / name).read_bytes() if (folder / name).exists() else "no file"
            onlooker.note(name, text)

    return replay(variants, path)


def replay_studio(
    make: Callable[[], Any],
    variants: Sequence[Opener],
    spec: Mapping[str, Any],
    asked: Mapping[str, Any],
    unit: str,
    epsilon: str = "1",
    delta: str = "0",
) -> Replayed:
    """Replay what the studio's inside process, which ``make`` makes, does: read, open, ask.

    Openers write a file and return its path. What only the custodian is shown is left out.
    """

    def path(onlooker: Onlooker, tape: Tape, opener: Opener, folder: Path) -> None:
        place = str(opener(folder))
        inside = make()
        ledger = str(folder / "studio.ledger")
        onlooker.see("read", lambda: inside.read({**spec, "path": place}))
        onlooker.see("open", lambda: inside.open(ledger, "study", unit, "100", "0.5"))
        onlooker.see("ask", lambda: inside.ask(asked, epsilon, delta))
        if Path(ledger).exists():
            entries(onlooker, Ledger(ledger, create=False))

    return replay(variants, path)


Visit = tuple[str, str, Mapping[str, str]]
"""A request: the method, the address and the fields of its form or its question mark."""


def replay_pages(
    connect: Callable[[Path, Path, Onlooker], AbstractContextManager[Callable[..., str]]],
    variants: Sequence[Opener],
    visits: Sequence[Visit],
) -> Replayed:
    """Replay pages over HTTP: openers write a file and return its path.

    ``connect(file, folder, onlooker)`` starts the pages in this process. It gives a function that
    sends one request and returns status, headers and body, and hides from the onlooker what tells
    of the run, such as the random names in addresses.
    """

    def path(onlooker: Onlooker, tape: Tape, opener: Opener, folder: Path) -> None:
        with connect(Path(opener(folder)), folder, onlooker) as visit:
            for method, address, fields in visits:
                sent = partial(visit, method, address, fields)
                onlooker.see(f"{method} {address}", sent, show=str)
        for ledger in sorted(folder.glob("*.ledger")):
            entries(onlooker, Ledger(ledger, create=False))

    return replay(variants, path)
