"""Damage, full disks and missing permissions: a clear refusal, and nothing drawn for nothing.

Whatever happens to the file, what is left of a budget is never shown larger than it is.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy  # noqa: F401 - warm before forking: a release names its version
import pytest
from tests.ledger.ledger_toy import Jar, Marbles, Shaker

from tulle.core import registry
from tulle.core.errors import LedgerError, UnkeptAnswerWarning
from tulle.core.mechanism import Outcome
from tulle.core.source import Source
from tulle.ledger import store as store_module
from tulle.ledger import store_file
from tulle.ledger.ledger import Ledger
from tulle.ledger.session import Session
from tulle.ledger.store import verify as verify_file

# Newer Pythons warn of every fork in a process with threads; the children here use none.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

PRICE, BOOKED = Fraction(1, 100), 12
LEFT = 1 - PRICE * BOOKED


class Shake(Shaker):
    def run(self, terms: Any, settings: Any, dataset: Any, source: Source | None) -> Outcome:
        assert source is not None
        return Outcome(int.from_bytes(source.read(4), "big"), None)


@pytest.fixture(scope="module", autouse=True)
def shake() -> Iterator[None]:
    """Register the mechanism for these tests only: others look at all that are registered."""
    registry.register("mechanism", Jar.kind, Shake.name)(Shake)
    yield
    del registry._items["mechanism", Jar.kind]


class Counted(Source):
    """Counts how often it was read."""

    secure: ClassVar[bool] = True

    def __init__(self) -> None:
        self.reads = 0

    def read(self, count: int) -> bytes:
        self.reads += 1
        return os.urandom(count)


def open_account(path: Path) -> Session:
    return Ledger(path).open("jar", Jar(), unit="participant", epsilon=1)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a ledger with some debits and two accounts."""
    path = tmp_path_factory.mktemp("sound") / "study.ledger"
    study = open_account(path)
    other = Ledger(path).open("other", Jar(), unit="participant", epsilon=1)
    for colour in range(BOOKED):
        study.ask(Marbles(colour), epsilon=PRICE, source=Counted())
        other.ask(Marbles(colour), epsilon=PRICE, source=Counted())
    return path.read_bytes()


def examine(path: Path) -> str:
    """Use a damaged ledger; fail if it shows more budget than there is, or draws unpaid."""
    source = Counted()
    try:
        study = open_account(path)
        left = study.remaining.epsilon
        assert left <= LEFT, "the budget grew"
        study.ask(Marbles(77), epsilon=PRICE, source=source)
    except UnkeptAnswerWarning:  # booked and drawn, and only keeping the answer failed
        return "not kept"
    except LedgerError as error:
        assert not source.reads
        return "not writable" if "cannot be written" in str(error) else "refused"
    try:
        after = Ledger(path, create=False).remaining("jar").epsilon
    except LedgerError:
        return "refused after asking"
    assert after <= left - PRICE, "a debit was lost"
    return "used"


def damage(path: Path, content: bytes, changes: Mapping[int, int]) -> str:
    """Change these bytes by exclusive or, and return how the ledger took it."""
    damaged = bytearray(content)
    for place, mask in changes.items():
        damaged[place] ^= mask
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    path.write_bytes(damaged)
    noticed = bool(verify_file(path))
    outcome = examine(path)
    # What verification passes must be usable, so that its word can be relied on. (One byte of
    # the header tells SQLite that the file may only be read; what is in it is sound.)
    assert noticed or outcome in ("used", "not writable"), outcome
    # A question reads the last entry, and is not stopped by damage to the others.
    return "found by verification" if noticed and outcome == "used" else outcome


def test_the_undamaged_ledger_is_used(sound: bytes, tmp_path: Path) -> None:
    assert damage(tmp_path / "study.ledger", sound, {}) == "used"


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_byte_of_the_header(sound: bytes, tmp_path: Path, mask: int) -> None:
    outcomes = Counter(
        damage(tmp_path / "study.ledger", sound, {place: mask}) for place in range(100)
    )
    assert outcomes["refused"] > 25
    assert sum(outcomes.values()) == 100


def test_single_bytes_flipped_anywhere(sound: bytes, tmp_path: Path) -> None:
    chance = random.Random(11)
    outcomes = Counter(
        damage(
            tmp_path / "study.ledger",
            sound,
            {chance.randrange(len(sound)): chance.randrange(1, 256)},
        )
        for _ in range(500)
    )
    print(f"{len(sound)} bytes: {dict(outcomes)}")
    assert outcomes["refused"] + outcomes["found by verification"] > 100


def test_the_bytes_that_organise_pages(sound: bytes, tmp_path: Path) -> None:
    """The start of each page says which rows are on it: here rows vanish most easily."""
    chance = random.Random(12)
    outcomes = Counter(
        damage(tmp_path / "study.ledger", sound, {page + place: chance.randrange(1, 256)})
        for page in range(0, len(sound), 4096)
        for place in range(0, 40, 2)
    )
    print(dict(outcomes))
    assert outcomes["refused"] > 20


def test_runs_of_random_bytes(sound: bytes, tmp_path: Path) -> None:
    chance = random.Random(13)
    for length in (2, 16, 128, 512, 4096):
        for _ in range(20):
            start = chance.randrange(len(sound) - length)
            changes = {start + step: chance.randrange(256) for step in range(length)}
            damage(tmp_path / "study.ledger", sound, changes)


def test_pages_of_zeros_and_exchanged_pages(sound: bytes, tmp_path: Path) -> None:
    pages = [sound[start : start + 4096] for start in range(0, len(sound), 4096)]
    (tmp_path / "tables").write_bytes(sound)
    with closing(sqlite3.connect(tmp_path / "tables")) as connection:
        root = dict(connection.execute("SELECT name, rootpage - 1 FROM sqlite_master").fetchall())
    for one in range(len(pages)):
        for other in range(len(pages)):
            changed = list(pages)
            if (one, other) == (root["witness"], root["head"]):
                continue  # that the last entry is confirmed is nothing but true
            if one == other:
                changed[one] = bytes(4096)
            else:
                changed[one] = pages[other]
            assert damage(tmp_path / "study.ledger", b"".join(changed), {}) != "used"


def test_truncation_at_many_lengths(sound: bytes, tmp_path: Path) -> None:
    lengths = {*range(0, 110), *range(0, len(sound), 1111), *range(0, len(sound), 4096)}
    for length in sorted(lengths | {len(sound) - 1}):
        assert damage(tmp_path / "study.ledger", sound[:length], {}) == "refused"


def test_a_store_that_trusts_what_it_reads_is_caught(
    sound: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin takes the rows as they are, and shows a larger budget."""
    for reader in (store_module, store_file):
        monkeypatch.setattr(reader, "altered", lambda row: None)
    total = b'"epsilon":"0.12"'
    places = [
        place + len(total) - 3
        for place in range(len(sound))
        if sound[place : place + len(total)] == total
    ]
    assert len(places) >= 2
    caught = 0
    for place in places:
        try:
            damage(tmp_path / "study.ledger", sound, {place: 0x01})  # a total of 0.02
        except AssertionError as error:
            caught += "the budget grew" in str(error)
    assert caught == 1  # the last entry of the account


def in_child(work: Callable[[], None], before: Callable[[], None] | None = None) -> None:
    """Run ``work`` in a forked child, whose limits and rights may be changed for good."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            if before is not None:
                before()
            work()
        except BaseException:  # noqa: BLE001 - the parent shows it
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    assert not told, told


def refuse(study: Session, colour: int, *words: str) -> None:
    """Ask, and expect a refusal that drew nothing, spent nothing and says so."""
    source, before = Counted(), study._ledger.head()
    with pytest.raises(LedgerError) as error:
        study.ask(Marbles(colour), epsilon=PRICE, source=source)
    text = str(error.value)
    assert source.reads == 0
    assert "Nothing was spent" in text
    assert "\n" not in text
    assert any(word in text for word in words), text
    assert study._ledger.head() == before


def fill(study: Session) -> tuple[int, int]:
    """Ask until a debit is refused; return how many questions drew, and the one refused."""
    drew = 0
    for colour in range(100, 199):
        source = Counted()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                study.ask(Marbles(colour), epsilon=Fraction(1, 1000), source=source)
        except LedgerError:
            if not source.reads:
                return drew, colour
        drew += source.reads
    raise AssertionError("nothing was refused")


def check_after_full_disk(study: Session, drew: int, refused: int) -> None:
    """What drew was booked, what was refused was not, and with space all goes on."""
    ledger = study._ledger
    assert len(ledger.debits("jar")) == BOOKED + drew
    assert study.remaining.epsilon == LEFT - Fraction(drew, 1000)
    assert ledger.verify() == []
    study.ask(Marbles(refused), epsilon=PRICE, source=Counted())
    assert study.remaining.epsilon == LEFT - Fraction(drew, 1000) - PRICE


@pytest.mark.parametrize("room", [0, 4096, 8192, 20000])
def test_a_disk_that_refuses_to_let_the_file_grow(sound: bytes, tmp_path: Path, room: int) -> None:
    path = tmp_path / "study.ledger"
    path.write_bytes(sound)

    def work() -> None:
        study = open_account(path)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(sound) + room, most))
        drew, refused = fill(study)
        refuse(study, refused, "disk")
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        check_after_full_disk(study, drew, refused)

    in_child(work)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let no file have more than so many pages from now on."""
    honest = store_file.connect

    def limit(pages: int) -> None:
        def connect(path: Path, timeout: float) -> sqlite3.Connection:
            connection = honest(path, timeout)
            connection.execute(f"PRAGMA max_page_count = {pages}")
            return connection

        monkeypatch.setattr(store_file, "connect", connect)

    return limit


@pytest.mark.parametrize("room", range(5))
def test_no_more_pages(
    sound: bytes, tmp_path: Path, full: Callable[[int], None], room: int
) -> None:
    path = tmp_path / "study.ledger"
    path.write_bytes(sound)
    study = open_account(path)
    full(len(sound) // 4096 + room)
    drew, refused = fill(study)
    refuse(study, refused, "the disk is full")
    full(10**6)
    check_after_full_disk(study, drew, refused)


def test_an_answer_that_could_not_be_kept_is_not_called_unspent(
    sound: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up between the debit and the answer: the price is paid by then."""
    path = tmp_path / "study.ledger"
    path.write_bytes(sound)
    study = open_account(path)
    source = Counted()

    def fail(*arguments: object, **named: object) -> None:
        raise LedgerError("The disk is full. Nothing was spent.")

    honest = store_module.Store.append
    monkeypatch.setattr(
        store_module.Store,
        "append",
        lambda self, kind, *a, **k: (fail if kind == "release" else honest)(self, kind, *a, **k),
    )
    said = ""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            study.ask(Marbles(1000), epsilon=PRICE, source=source)
            said = " ".join(str(warning.message) for warning in caught)
    except LedgerError as error:
        said = str(error)
    assert source.reads == 1
    assert study.remaining.epsilon == LEFT - PRICE
    assert said
    assert "Nothing was spent" not in said


def test_a_real_full_disk(sound: bytes, tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here: the full disk is simulated only")
    try:
        path = place / "study.ledger"
        path.write_bytes(sound)
        study = open_account(path)
        filler = place / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                pass
        refuse(study, 1000, "the disk is full", "disk refused")
        with pytest.raises(LedgerError, match=r"No space|full|disk"):
            Ledger(place / "another.ledger")
        filler.unlink()
        assert sorted(os.listdir(place)) == ["study.ledger"]
        study.ask(Marbles(1000), epsilon=PRICE, source=Counted())
        assert study.remaining.epsilon == LEFT - PRICE
        assert study._ledger.verify() == []
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users may enter; the usual one for tests is closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.chmod(folder, 0o755)


def become_nobody() -> None:
    """Give up the rights of the superuser, for whom permission bits do not count."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o755), (0o444, 0o555), (0o666, 0o555)])
def test_a_ledger_that_may_only_be_read(sound: bytes, shared: Path, file: int, folder: int) -> None:
    """It can be looked at, and asking is refused."""
    path = shared / "study.ledger"
    path.write_bytes(sound)
    os.chmod(path, file)
    os.chmod(shared, folder)

    def work() -> None:
        ledger = Ledger(path)
        assert ledger.remaining("jar").epsilon == LEFT
        assert ledger.verify() == []
        refuse(
            ledger_session(ledger), 1000, "cannot be written", "cannot be opened", "disk refused"
        )

    in_child(work, become_nobody)
    assert path.read_bytes() == sound


def ledger_session(ledger: Ledger) -> Session:
    return ledger.open("jar", Jar(), unit="participant", epsilon=1)


def test_a_ledger_that_may_not_be_read(sound: bytes, shared: Path) -> None:
    path = shared / "study.ledger"
    path.write_bytes(sound)
    os.chmod(path, 0o000)

    def work() -> None:
        with pytest.raises(LedgerError, match="cannot be opened"):
            Ledger(path)
        with pytest.raises(LedgerError, match="Permission denied"):
            Ledger(path.with_name("another.ledger"))

    def work_outside() -> None:
        for create in (True, False):
            with pytest.raises(LedgerError, match="Nothing was spent"):
                Ledger(path, create=create)

    os.chmod(shared, 0o555)
    in_child(work, become_nobody)
    os.chmod(shared, 0o000)
    in_child(work_outside, become_nobody)
