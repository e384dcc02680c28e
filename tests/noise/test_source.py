"""Sources of bits, and arguments that are refused."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import warnings
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import tulle
from tulle import _index, noise
from tulle.core.errors import InputError
from tulle.noise import (
    SeededSource,
    SystemSource,
    TapeExhausted,
    TapeSource,
    system,
)
from tulle.noise.source import Bits


def test_only_the_system_source_is_secure():
    assert system().secure
    assert SystemSource.secure
    assert not SeededSource(1).secure
    assert not TapeSource("").secure
    assert system() is system()


def test_no_source_is_secure_by_inheritance_or_by_assignment():
    bits = SeededSource(2)

    class Recorded(SystemSource):
        def read(self, count: int) -> bytes:
            return bits.read(count)

    friends = tulle.Graph.from_edges([(0, 1)], nodes=3)
    recorded, seeded = Recorded(), SeededSource(1)
    assert not Recorded.secure
    seeded.secure = True
    for source in (recorded, seeded):
        drawn = tulle.release(friends, tulle.edges(), unit="edge", epsilon=1, source=source)
        assert not drawn.guarantee.holds
    Recorded.secure = True  # as if it were taken over
    drawn = tulle.release(friends, tulle.edges(), unit="edge", epsilon=1, source=recorded)
    assert drawn.guarantee.holds


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.usefixtures("system_noise")
def test_a_forked_child_does_not_replay():
    """The parent and its children draw after the same past, and must differ."""
    noise.discrete_laplace(scale=10, size=1000)
    readers = []
    for _ in range(3):
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            draws = [noise.uniform_below(2**128) for _ in range(4)]
            os.write(writer, repr(draws).encode())
            os._exit(0)
        os.close(writer)
        readers.append((child, reader))
    seen = {repr([noise.uniform_below(2**128) for _ in range(4)])}
    for child, reader in readers:
        seen.add(os.read(reader, 10_000).decode())
        os.close(reader)
        os.waitpid(child, 0)
    assert len(seen) == 4


@pytest.mark.usefixtures("system_noise")
def test_threads_do_not_share_bits():
    drawn: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: drawn.extend(noise.uniform_below(2**128) for _ in range(500))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 2000


@pytest.mark.usefixtures("system_noise")
def test_system_failure_is_not_papered_over(monkeypatch):
    def broken(count):
        raise NotImplementedError("no source")

    monkeypatch.setattr(os, "urandom", broken)
    with pytest.raises(NotImplementedError):
        noise.discrete_laplace(scale=1)
    with pytest.raises(NotImplementedError):
        noise.discrete_laplace(scale=1, size=1000)


def test_seeded_source_replays_and_does_not_depend_on_cuts():
    whole = SeededSource(9).read(1000)
    source = SeededSource(9)
    parts = b"".join(source.read(n) for n in (1, 7, 300, 0, 692))
    assert whole == parts
    assert whole != SeededSource(10).read(1000)
    first = noise.discrete_laplace(scale=10, size=1000, source=SeededSource(1))
    again = noise.discrete_laplace(scale=10, size=1000, source=SeededSource(1))
    assert (first == again).all()


def test_tape_source():
    tape = TapeSource(b"\x80\x01")
    assert [tape.bit(), tape.bit()] == [1, 0]
    with pytest.raises(TapeExhausted):
        tape.read(2)
    assert tape.used == 2
    assert TapeSource([1, 0, 1, 0, 1, 0, 1, 0]).read(1) == b"\xaa"
    with pytest.raises(InputError):
        TapeSource("012")


def test_bits_takes_all_widths():
    bits = Bits(SeededSource(1))
    for width in (0, 1, 7, 64, 65, 1000, 3):
        assert 0 <= bits.take(width) < 2**width
    ones = sum(Bits(SeededSource(1)).take(10_000).bit_count() for _ in range(1))
    assert 4700 < ones < 5300


def test_scalars_do_not_import_numba():
    code = (
        "import sys, tulle.noise as n\n"
        "n.discrete_laplace(scale=3); n.discrete_gaussian(sigma=2); n.permutation(9)\n"
        "n.bernoulli(0.5, size=9); n.discrete_laplace(scale=3, size=9)\n"
        "n.exponential([1, 2], epsilon=1, sensitivity=1); n.heavy_tailed(scale=1, power=4)\n"
        "assert 'numba' not in sys.modules and 'opendp' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


BAD_SCALES = [0, -1, float("nan"), float("inf"), "many", None, True]


@pytest.mark.parametrize("scale", BAD_SCALES)
@pytest.mark.parametrize("size", [None, 5])
def test_bad_scales(scale, size):
    for sampler in (noise.discrete_laplace, noise.geometric, noise.rounded_laplace):
        with pytest.raises(InputError, match="scale"):
            sampler(scale=scale, size=size)
    with pytest.raises(InputError, match="scale"):
        noise.heavy_tailed(scale=scale, power=2, size=size)
    if scale is not None:
        with pytest.raises(InputError, match="sigma"):
            noise.discrete_gaussian(sigma=scale, size=size)
        with pytest.raises(InputError, match="variance"):
            noise.discrete_gaussian(variance=scale, size=size)


def test_other_bad_arguments():
    refused = [
        lambda: noise.discrete_laplace(scale=2**49, size=3),
        lambda: noise.discrete_gaussian(sigma=2**48, size=3),
        lambda: noise.discrete_gaussian(),
        lambda: noise.discrete_gaussian(sigma=1, variance=1),
        lambda: noise.discrete_laplace(scale=1, size=-1),
        lambda: noise.discrete_laplace(scale=1, size=2.5),
        lambda: noise.discrete_laplace(scale=[1, 2], size=3),
        lambda: noise.discrete_laplace(scale=[1, 0]),
        lambda: noise.discrete_laplace(scale=1, source=7),
        lambda: noise.bernoulli(1.5),
        lambda: noise.bernoulli(-0.5, size=3),
        lambda: noise.bernoulli_exp(-1),
        lambda: noise.bernoulli_exp(np.array([1.0, np.nan])),
        lambda: noise.bernoulli_exp(np.array([1.0]), size=2),
        lambda: noise.bernoulli_exp(np.array([1]), denominator=0),
        lambda: noise.bernoulli_exp(np.array([1]), denominator=2**64),
        lambda: noise.uniform_below(0),
        lambda: noise.uniform_below(2**64, size=2),
        lambda: noise.heavy_tailed(scale=1, power=3),
        lambda: noise.heavy_tailed_quantile(1, 2),
        lambda: noise.exponential([], epsilon=1, sensitivity=1),
        lambda: noise.exponential([1, float("nan")], epsilon=1, sensitivity=1),
        lambda: noise.exponential([1], epsilon=0, sensitivity=1),
        lambda: noise.permute_and_flip([1], epsilon=1, sensitivity=0),
        lambda: noise.choose_log_weights([1, 2], multiplicities=[0, 0]),
        lambda: noise.choose_log_weights([1, 2], multiplicities=[1]),
        lambda: noise.choose_log_weights([1], multiplicities=[-1]),
        lambda: noise.SeededSource(-1),
    ]
    for call in refused:
        with pytest.raises(InputError):
            call()


def test_shapes():
    for size, shape in ((0, (0,)), (3, (3,)), ((2, 3), (2, 3)), ((20, 30), (20, 30)), ((), ())):
        for draws in (
            noise.discrete_laplace(scale=2, size=size),
            noise.discrete_gaussian(sigma=2, size=size),
            noise.geometric(scale=2, size=size),
            noise.rounded_laplace(scale=2, size=size),
            noise.uniform_below(5, size=size),
        ):
            assert draws.shape == shape
            assert draws.dtype == np.int64
        assert noise.bernoulli(0.5, size=size).dtype == np.bool_
        assert noise.exponential([1, 2], epsilon=1, sensitivity=1, size=size).shape == shape
    assert type(noise.discrete_laplace(scale=2)) is int
    assert noise.discrete_laplace(scale=np.zeros(0)).shape == (0,)


def test_scalars_of_any_size():
    huge = noise.discrete_laplace(scale=10**400 // 7)
    assert abs(huge) > 10**300
    assert noise.discrete_laplace(scale=Fraction(1, 10**300)) == 0
    assert abs(noise.discrete_gaussian(sigma=10**100)) < 10**103


def test_public_names_are_samplers_whatever_was_imported_before() -> None:
    """Some have the name of their module, which importing it would put in their place."""
    for module in set(_index.PUBLIC["tulle.noise"].values()):
        importlib.import_module(module)
    for name in dir(noise):
        assert not isinstance(getattr(noise, name), ModuleType), name
