"""Named columns, and releases of every shape as such."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tulle.core import codec
from tulle.core.error_law import LaplaceLaw
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.core.labels import Axis, Labels
from tulle.core.release import Release
from tulle.core.table import LabelledTable
from tulle.core.unit import Unit
from tulle.relations.truncation.mechanism import TruncationLaw

TABLE = LabelledTable(
    {
        "city": ["Aarhus", None, "Bern, north"],
        "trips": np.array([3, 1, 2], dtype=np.int64),
        "share": [0.5, None, math.inf],
        "when": [datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 1, 3), None],
        "odd": [("a", 1), uuid.UUID(int=7), decimal.Decimal("1.10")],
        "raw": [b"\x00\xff", datetime.time(3, 4), math.nan],
    },
    keys=["city"],
)


def test_json_round_trip_is_exact() -> None:
    written = json.dumps(codec.encode(TABLE), allow_nan=False)
    back = codec.decode(json.loads(written))
    assert back == TABLE
    assert back.keys == ("city",)
    assert back["trips"].dtype == np.int64


@pytest.mark.parametrize(
    "other",
    [
        LabelledTable({"a": [1, 2]}),
        LabelledTable({"a": np.array([1, 2])}, keys=["a"]),
        LabelledTable({"a": np.array([1, 3])}),
        LabelledTable({"a": np.array([1.0, 2.0])}),
        LabelledTable({"b": np.array([1, 2])}),
        LabelledTable({"a": np.array([1, 2]), "b": [1, 2]}),
    ],
)
def test_tables_that_differ_are_not_equal(other: LabelledTable) -> None:
    assert LabelledTable({"a": np.array([1, 2])}) != other


def test_it_cannot_be_changed() -> None:
    given = np.array([1, 2])
    table = LabelledTable({"a": given})
    given[0] = 9
    assert table["a"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        table["a"][0] = 5
    with pytest.raises(AttributeError):
        table.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("columns", "keys", "said"),
    [
        ({"a": [1], "b": [1, 2]}, (), "equally many rows"),
        ({"a": [1]}, ("b",), "'b' is no column"),
        ({"a": "text"}, (), "a list or an array"),
        ({"a": np.zeros((2, 2))}, (), "one value for each row"),
    ],
)
def test_what_is_no_table_is_refused(columns: Any, keys: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LabelledTable(columns, keys=keys)


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(InputError, match=r"no column 'trip'\. It has: city, trips"):
        TABLE["trip"]


def test_other_libraries_get_the_same_cells() -> None:
    table = LabelledTable(
        {"city": ["a", None], "low": [1.5, None], "n": np.array([1, 2])}, keys=["city"]
    )
    cells = {"city": ["a", None], "low": [1.5, None], "n": [1, 2]}
    assert table.to_dict() == cells
    assert table.to_arrow().to_pydict() == cells
    assert pa.table(table).to_pydict() == cells
    assert table.to_polars().to_dict(as_series=False) == cells
    frame = table.to_pandas()
    assert frame["n"].tolist() == [1, 2]
    assert frame["n"].dtype == np.int64
    assert frame["low"].isna().tolist() == [False, True]
    # Columns of several types have no type in Arrow, so they are texts there.
    assert TABLE.to_arrow().num_rows == 3
    assert TABLE.to_polars().height == 3


def test_csv_has_names_and_quotes_commas() -> None:
    text = LabelledTable({"city": ["a,b", None], "n": [1, 2.5]}).to_csv()
    assert text == 'city,n\n"a,b",1\n,2.5\n'
    assert LabelledTable({"city": [None]}).to_csv() == 'city\n""\n'


def test_a_long_table_shows_both_ends_and_says_how_long() -> None:
    shown = repr(LabelledTable({"n": np.arange(1000)}))
    assert shown.splitlines()[1].strip() == "0"
    assert "999" in shown
    assert "(1,000 rows)" in shown
    assert len(shown.splitlines()) == 23


def test_html_is_escaped() -> None:
    shown = LabelledTable({"<b>": ["<script>"]})._repr_html_()
    assert "<script>" not in shown
    assert "&lt;b&gt;" in shown


# --- releases -------------------------------------------------------------------------------------


def a_release(value: Any, error: Any = None, **more: Any) -> Release:
    return Release(value, "q()", "laplace", Guarantee(Unit.of("edge"), Fraction(1)), error, **more)


def test_a_number_is_one_row() -> None:
    table = a_release(7, LaplaceLaw(Fraction(1))).table()
    assert table.names == ("value", "low", "high")
    [(value, low, high)] = table.rows()
    assert low < value < high
    assert (
        table
        == Release.from_json(json.dumps(a_release(7, LaplaceLaw(Fraction(1))).to_json())).table()
    )


def test_a_side_without_an_end_is_none() -> None:
    one = a_release(7, TruncationLaw(Fraction(1), 0.5)).table().to_dict()
    assert one["high"] == [None]
    assert one["low"][0] is not None
    several = a_release(np.array([7, 90]), TruncationLaw(Fraction(1), 0.5))
    assert several.interval(0.95)[1].tolist() == [math.inf, math.inf]
    assert several.table().to_dict()["high"] == [None, None]


def test_no_interval_leaves_both_ends_open() -> None:
    assert a_release(np.array([1.0])).table().to_dict() == {
        "place": [0],
        "value": [1.0],
        "low": [None],
        "high": [None],
    }


def test_labels_stand_beside_their_cells_and_survive_json() -> None:
    labels = Labels(
        "How many?", "trips", (Axis("from", ["a", "b"]), Axis("to", first=1), Axis("kind", ["x"]))
    )
    value = np.arange(6).reshape(2, 3, 1)
    release = a_release(value, labels=labels, date="2024-02-29", dataset="school")
    table = release.table()
    assert table.keys == ("from", "to", "kind")
    assert list(table.rows()) == [
        (row, column, "x", value[i, j, 0], None, None)
        for i, row in enumerate(("a", "b"))
        for j, column in enumerate((1, 2, 3))
    ]
    back = Release.from_json(json.dumps(release.to_json()))
    assert back.table() == table
    assert (back.date, back.dataset, back.labels.question) == ("2024-02-29", "school", "How many?")


def test_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="node has 1 label for 2 places"):
        a_release(np.zeros(2), labels=Labels(axes=(Axis("node", ["a"]),))).table()


def test_a_released_table_gets_the_ends_of_its_columns() -> None:
    class Law(LaplaceLaw):
        def interval(self, value: Any, level: float) -> Any:
            width = self.half_width(level)
            return {"n": value["n"] - width}, {"n": np.full(len(value), math.inf)}

    value = LabelledTable({"city": ["a", "b"], "n": np.array([5, 6])}, keys=["city"])
    table = a_release(value, Law(Fraction(1))).table()
    assert table.names == ("city", "n", "n low", "n high")
    assert table.keys == ("city",)
    assert table.to_dict()["n high"] == [None, None]


def test_a_record_of_lists_is_columns() -> None:
    assert a_release({"snps": ["a", "b"], "places": [1, 2]}).table().names == ("snps", "places")
    assert a_release({"kind": "x", "sizes": [1, 2]}).table().to_dict()["name"] == ["kind", "sizes"]
