"""Discrete Laplace and Gaussian noise from OpenDP, for those who trust its samplers more.

Needs the extra ``tulle[opendp]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tulle.core.arrays import Array
from tulle.core.errors import InputError, MissingExtraError, raise_alone
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import round_up
from tulle.noise.source import BACKEND, Size, shape_of


@public()
@contextmanager
def backend(name: str) -> Iterator[None]:
    """Draw discrete Laplace and Gaussian noise with another library inside a ``with`` block.

    ``"tulle"`` is the default, ``"opendp"`` the other. OpenDP takes its scale as a float; the
    exact scale is rounded up to one, so that the noise is never smaller than asked for.

    Raises:
        InputError: when the name is not known.
        MissingExtraError: when the library is not installed.

    Example:
        >>> from tulle.noise import backend, discrete_laplace
        >>> with backend("opendp"):
        ...     discrete_laplace(scale=0.001)
        0
    """
    if name not in ("tulle", "opendp"):
        raise InputError(f"backend {name!r} is not known. Use 'tulle' or 'opendp'.")
    if name == "opendp":
        _library()
    token = BACKEND.set(name)
    try:
        yield
    finally:
        BACKEND.reset(token)


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        import opendp.prelude as library
    except ImportError:
        raise_alone(MissingExtraError("opendp", "opendp", "Drawing noise with OpenDP"))
    library.enable_features("contrib")
    return library


def laplace(scale: Fraction, size: Size | None, source: Source | None) -> int | Array:
    """Draw discrete Laplace noise with OpenDP."""
    return _draw(_laplace_measurement(round_up(scale)), size, source)


def gaussian(variance: Fraction, size: Size | None, source: Source | None) -> int | Array:
    """Draw discrete Gaussian noise with OpenDP."""
    sigma = round_up(Fraction(float(variance) ** 0.5))
    while Fraction(sigma) ** 2 < variance:
        sigma = float(np.nextafter(sigma, np.inf))
    return _draw(_gaussian_measurement(sigma), size, source)


@lru_cache(maxsize=64)
def _laplace_measurement(scale: float) -> Any:
    dp = _library()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


@lru_cache(maxsize=64)
def _gaussian_measurement(sigma: float) -> Any:
    dp = _library()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale=sigma)


def _draw(measurement: Any, size: Size | None, source: Source | None) -> int | Array:
    if source is not None:
        raise InputError("source must be None with the backend 'opendp': it has its own.")
    shape = () if size is None else shape_of(size)
    values = measurement([0] * prod(shape)) if prod(shape) else []
    if size is None:
        return int(values[0])
    return np.array(values, dtype=np.int64).reshape(shape)
