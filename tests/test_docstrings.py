"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tulle

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(tulle.__path__, "tulle.")
    if not found.name.startswith("tulle.cli")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module)
    assert failed == 0
