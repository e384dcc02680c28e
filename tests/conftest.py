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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

# Before numpy is imported. The matrices here are small and several processes test at once: threads
# that wait for each other in a loop took ten times as long as the work.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ.get("OPENBLAS_NUM_THREADS", "1")
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")

from tulle.noise import SeededSource, SystemSource

FRESH = "TULLE_FRESH_NOISE" in os.environ

hypothesis.settings.register_profile("fresh", deadline=None)
hypothesis.settings.register_profile("replayed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("fresh" if FRESH else "replayed")

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


def pytest_collection_finish(session):
    """What was imported stays to the end: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


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
