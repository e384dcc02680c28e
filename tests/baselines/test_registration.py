"""Baselines are known where they were registered, and the product does not know of them."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import baselines
import tulle
from baselines import _known
from tulle import _index
from tulle.core import registry
from tulle.graphs.data import Graph
from tulle.ledger.answer import plan_for
from tulle.surveys import Survey


def test_mechanisms_are_found_by_name_after_registration():
    assert len(_known) == 4
    for item in _known:
        assert isinstance(registry.make_mechanism(item.kind, item.name), item)
        assert item.name not in _index.REGISTERED["mechanism", item.kind]
    form = Survey({"a": 3}).form(epsilon=1, designs={"a": "laplace and round"})
    assert form.epsilon <= 1


def test_plans_offer_none_of_them():
    graph = Graph.from_edges([(0, 1), (1, 2)], nodes=12)
    plan = plan_for(graph, tulle.spectrum(1), unit="edge", epsilon=1)
    assert not {offer.mechanism for offer in plan.offers} & {item.name for item in _known}


@pytest.mark.parametrize("name", ["gauss", "bingham"])
def test_the_product_alone_knows_no_baseline(name):
    script = (
        "import tulle\n"
        "g = tulle.Graph.from_edges([(0, 1)], nodes=3)\n"
        "try:\n"
        f"    tulle.release(g, tulle.spectrum(1), unit='edge', epsilon=1, mechanism={name!r})\n"
        "except tulle.TulleError as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.strip() in {"QueryError", "InputError"}


@pytest.mark.parametrize("name", [found.name for found in pkgutil.iter_modules(baselines.__path__)])
def test_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(f"baselines.{name}"))
    assert failed == 0
