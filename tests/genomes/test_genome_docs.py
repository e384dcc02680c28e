"""The examples in the docstrings run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import tulle.attacks
import tulle.genomes

MODULES = [
    f"{room.__name__}.{module.name}"
    for room in (tulle.genomes, tulle.attacks)
    for module in pkgutil.iter_modules(room.__path__)
    # Optional libraries of other rooms have tests of their own.
    if module.name != "model_inversion"
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
