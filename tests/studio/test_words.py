"""What pages say: units, prices and questions in words that a non-specialist follows."""

from __future__ import annotations

import pytest

duckdb = pytest.importorskip("duckdb")
testing = pytest.importorskip("fastapi.testclient")

pytestmark = pytest.mark.xdist_group("studio")


def test_units_with_a_period_are_offered_where_times_can_be_declared() -> None:
    from tulle.studio import words

    assert "participant-week" in words.units("database", dated=True)
    assert list(words.units("database", dated=False)) == ["participant"]
    for _, unit in words.UNITS:
        assert words.meaning(1.0, unit)


def test_each_model_of_synthetic_graphs_has_a_card() -> None:
    from tulle.graphs.synthesis.query import MODELS
    from tulle.studio import words

    assert set(words.MODELS) == {*MODELS, "per_node"}
    assert next(iter(words.MODELS)) == "auto"


def test_each_card_asks_a_question_that_there_is() -> None:
    from tulle.core import registry
    from tulle.core.query import parse
    from tulle.studio import words

    names = dict(registry.find("query", "graph"))
    titles = [card.title for card in words.CARDS["graph"]]
    assert len(set(titles)) == len(titles)
    for card in words.CARDS["graph"]:
        parse(card.asked["text"], names)
