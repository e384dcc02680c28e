"""Discrete Laplace and Gaussian noise from OpenDP, for those who trust its samplers more."""

from __future__ import annotations

import sys

import pytest

from tulle import noise
from tulle.core.errors import InputError, MissingExtraError
from tulle.noise import (
    SeededSource,
    opendp_backend,
)
from tulle.noise.source import drawn_elsewhere


def test_opendp_backend(monkeypatch):
    with noise.backend("opendp"):
        assert type(noise.discrete_laplace(scale=3)) is int
        assert noise.discrete_gaussian(variance=3, size=(2, 2)).shape == (2, 2)
        assert noise.discrete_laplace(scale=3, size=0).shape == (0,)
        with pytest.raises(InputError, match="source"):
            noise.discrete_laplace(scale=3, source=SeededSource(1))
        with noise.backend("tulle"):
            noise.discrete_laplace(scale=3, source=SeededSource(1))
    assert not drawn_elsewhere()
    with pytest.raises(InputError), noise.backend("other"):
        pass
    opendp_backend._library.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtraError, match=r"tulle\[opendp\]"), noise.backend("opendp"):
        pass
