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
