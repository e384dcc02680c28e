"""What all tests share: where real data lies, and noise that is replayed.

The everyday suite has one outcome: each test, and each fixture that several tests share, draws
its noise from a stream of its own, the same in every run, and hypothesis repeats its examples. So
a failure tells of a change, and no statistical test fails by bad luck. With TULLE_FRESH_NOISE
set, as in ``make test-slow``, all of it is drawn anew. Child processes always draw anew.
"""

import gc
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

# Before numpy is imported. The matrices here are small and several processes test at once: threads
# that wait for each other in a loop took ten times as long as the work.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ.get("OPENBLAS_NUM_THREADS", "1")
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")

from tests import drawn

from tulle.noise import SeededSource, SystemSource

FRESH = "TULLE_FRESH_NOISE" in os.environ

hypothesis.settings.register_profile("fresh", deadline=None)
hypothesis.settings.register_profile("replayed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("fresh" if FRESH else "replayed")

BEGAN: pytest.StashKey[float] = pytest.StashKey()
SHARE: pytest.StashKey[float] = pytest.StashKey()
LEAST_WEIGHTS = 20
"""A timed test that is run alone gets no more than this part of the suite's time."""

read_system = SystemSource.read
owner = os.getpid()
streams: list[SeededSource] = []
lock = threading.Lock()


def read(self: SystemSource, count: int) -> bytes:
    """Return bytes of the stream of the test that runs; fresh ones in a child of it."""
    if os.getpid() != owner or not streams:
        return read_system(self, count)
    with lock:
        return streams[-1].read(count)


if not FRESH:
    SystemSource.read = read  # type: ignore[method-assign]


@contextmanager
def stream(name: str) -> Iterator[None]:
    """Draw noise from a stream of this name, until the end of the block."""
    digest = hashlib.sha256(name.encode()).digest()
    streams.append(SeededSource(int.from_bytes(digest[:8], "big")))
    try:
        yield
    finally:
        streams.pop()


def pytest_configure(config):
    drawn.choose_seed()
    config.stash[BEGAN] = time.monotonic()


def pytest_terminal_summary(terminalreporter, config):
    if FRESH:
        line = f"Random cases were those of {drawn.SEED}={os.environ[drawn.SEED]}."
        terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Give every timed test its share, and let slow suites begin anywhere.

    What a slow suite does not reach in its time is then another part each time.
    """
    timed = [item for item in items if item.get_closest_marker("timed") is not None]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    weights = [item.get_closest_marker("timed").args[0] for item in timed]
    for item, weight in zip(timed, weights, strict=True):
        whole = drawn.seconds_of(drawn.MINUTES) * workers
        item.stash[SHARE] = whole * weight / max(sum(weights), LEAST_WEIGHTS)
    if FRESH and all(item.get_closest_marker("slow") is not None for item in items):
        files = list(dict.fromkeys(item.path for item in items))
        start = int(os.environ[drawn.SEED]) % max(len(files), 1)
        order = {path: place for place, path in enumerate(files[start:] + files[:start])}
        items.sort(key=lambda item: order[item.path])


def pytest_runtest_setup(item):
    limit = drawn.seconds_of(drawn.LIMIT)
    is_late = time.monotonic() - item.config.stash[BEGAN] > limit
    if is_late and item.get_closest_marker("slow") is not None:
        pytest.skip(f"not reached in {limit / 60:g} minutes")


@pytest.fixture(name="drawn")
def drawn_cases(request):
    """Random cases for this test's share of the suite's time."""
    # Not the node's id, to which workers add its group.
    name = f"{request.path.name} {request.node.name}"
    return drawn.Drawn(name, request.node.stash[SHARE])


def pytest_collection_finish(session):
    """What was imported stays to the end: the collector need not look at it again and again.

    Parsed statements are in cycles by the thousand: to look for garbage after every 700 new objects
    took a sixth of the time of the tests of SQL.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 10)


def pytest_sessionfinish(session):
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with stream(item.nodeid):
        return (yield)


SMALL = "TULLE_TEST_IN_SMALL_PROCESS"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is marked ``small_process`` in an interpreter that imports its file alone.

    The suite's own process holds gigabytes, which each fork has to copy the tables of.
    """
    if pyfuncitem.get_closest_marker("small_process") is None or SMALL in os.environ:
        return None
    folder = pyfuncitem._request.getfixturevalue("tmp_path_factory").mktemp("small")
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = ["-q", "-p", "no:cacheprovider", "--basetemp", str(folder / "own")]
    options += ["-m", "slow or not slow"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, pyfuncitem.nodeid],
        cwd=pyfuncitem.config.rootpath,
        env={**own, SMALL: "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "1 passed" in told, told
    return True


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    if fixturedef.scope == "function":
        return (yield)
    with stream(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')}"):
        return (yield)


@pytest.fixture
def system_noise(monkeypatch):
    """Noise of the operating system's source itself, for tests of that source."""
    monkeypatch.setattr(SystemSource, "read", read_system)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, or a skip: they are not part of the repository."""
    named = os.environ.get("TULLE_DATA")
    if not named:
        pytest.skip("set TULLE_DATA to the folder of real data sets to run this test")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"TULLE_DATA={named} is not a folder")
    return folder
