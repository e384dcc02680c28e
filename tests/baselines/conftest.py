"""Baselines are known to these tests alone: the product's registry is as before afterwards."""

import pytest

import baselines
from tulle.core import registry
from tulle.surveys import planner


@pytest.fixture(autouse=True)
def registered():
    baselines.register()
    yield
    for item in baselines._known:
        del registry._items["mechanism", item.kind][item.name]
    del planner.MAKERS["laplace and round"]
