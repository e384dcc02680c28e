"""The examples in the guide and in the docstrings run as they stand."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import tulle.surveys

GUIDE = Path(__file__).parents[2] / "docs" / "surveys.md"
MODULES = sorted(module.name for module in pkgutil.iter_modules(tulle.surveys.__path__))


def test_the_guide_runs() -> None:
    failed, tried = doctest.testfile(str(GUIDE), module_relative=False, encoding="utf-8")
    assert tried > 30
    assert failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    module = importlib.import_module(f"tulle.surveys.{name}")
    assert doctest.testmod(module).failed == 0
