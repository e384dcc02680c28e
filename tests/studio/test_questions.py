"""Questions as pages write them."""

import pytest

from tulle.core.errors import QueryError
from tulle.studio.questions import build


def test_cells_that_nobody_listed_are_asked_for():
    asked = {"kind": "contributions", "question": "found_cells"}
    given = {"cells_per_person": 2, "bound": 3, "minimum": 5, "other": "elsewhere", "top": 4}
    assert str(build({**asked, "arguments": given})) == (
        "found_cells(cells_per_person=2, bound=3.0, minimum=5, top=4, other='elsewhere')"
    )
    with pytest.raises(QueryError, match="for how many of their cells"):
        build({**asked, "arguments": {"bound": 3}})
    assert str(build({"kind": "contributions", "arguments": {"bound": 3}})).startswith("weights(")
