from __future__ import annotations

import pytest

from tulle.audit.relations.removal_check import check_leaving, forget_one, goes_through_a_relation
from tulle.core import registry


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
    assert not check_leaving("recursive", unit, 3, forget_one).passed


def test_only_mechanisms_on_relations_of_other_data_are_excused() -> None:
    excused = {(m.kind, m.name) for m in registry.every_mechanism() if goes_through_a_relation(m)}
    assert excused == {
        (kind, name) for kind in ("graph", "database") for name in ("recursive", "race")
    }
