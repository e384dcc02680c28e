from __future__ import annotations

import pytest

from tulle.audit.graphs.truncation import check_leaving, without_one_owner


@pytest.mark.parametrize("unit", ["node", "edge"])
def test_who_leaves_a_graph_leaves_its_relation_and_no_more(unit: str) -> None:
    finding = check_leaving("recursive", unit, 4)
    assert finding.passed, finding
    assert finding.cases > 900


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["node", "edge"])
def test_on_five_nodes_too(unit: str) -> None:
    assert check_leaving("recursive", unit, 5).passed


@pytest.mark.parametrize("unit", ["node", "edge"])
def test_a_relation_that_forgets_an_owner_is_caught(unit: str) -> None:
    assert not check_leaving("recursive", unit, 3, without_one_owner).passed
