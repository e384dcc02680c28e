"""What the studio's form declares is read by the same grammar as everywhere."""

from __future__ import annotations

import pytest

from tulle.core.errors import InputError
from tulle.sql.schema.owners import parse_owners

pytest.importorskip("fastapi", reason="the extra tulle[studio] is not installed")

from tulle.studio.pages.opening import _owners
from tulle.studio.study import parse_groups


def test_owners_and_ranges_of_the_form() -> None:
    form = {
        "table:edge": "owned",
        "owner:edge": "a and b",
        "table:city": "public",
        "table:secret": "",
        "ranges": "edge.weight = 0, 10\n\nedge.length = 0, inf\n",
    }
    found = _owners(form)
    assert parse_owners(found["owners"]) == parse_owners({"edge": ["a", "b"]})
    assert found["public"] == ["city"]
    assert found["ranges"] == {"edge.weight": "0, 10", "edge.length": "0, inf"}
    with pytest.raises(InputError, match=r"ranges as TABLE\.COLUMN"):
        _owners({"ranges": "edge.weight"})
    with pytest.raises(InputError, match="Say whose the rows of edge are"):
        _owners({"table:edge": "owned", "owner:edge": " "})


def test_groups_are_lines_or_json() -> None:
    expected = {"region": ["north", "south"], "year": [2020, 2021]}
    for text in (
        "region = north, south\nyear = 2020, 2021",
        '{"region": ["north", "south"], "year": [2020, 2021]}',
    ):
        assert parse_groups(text) == expected
    assert parse_groups("  ") is None
    with pytest.raises(InputError, match="groups as COLUMN"):
        parse_groups("region north")
