"""Formats of networks: what a file's schema says is refused by the schema alone."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tulle import Graph
from tulle.core.errors import InputError


def test_a_type_that_names_no_nodes_is_refused_whatever_the_rows_are(tmp_path):
    """By the schema, before a row is read: a missing or impossible value changes no word of it."""
    kinds = {
        "list": ([[1], [2]], [[1], None], pyarrow.list_(pyarrow.int64())),
        "day": ([1, 2], [1, None], pyarrow.date32()),
        "truth": ([True, False], [True, None], pyarrow.bool_()),
    }
    for first, second, kind in kinds.values():
        said = set()
        for values in (first, second):
            table = pyarrow.table({"a": pyarrow.array(values, kind), "b": [1, 2]})
            pyarrow.parquet.write_table(table, tmp_path / "edges.parquet")
            with pytest.raises(InputError) as caught:
                Graph.read(tmp_path / "edges.parquet")
            said.add(str(caught.value))
        assert len(said) == 1
        assert "is of type" in said.pop()


def test_large_unsigned_numbers_are_labels_and_change_no_other(tmp_path):
    """Beside signed numbers numpy makes doubles of them, which cannot tell large ones apart."""
    largest = 2**64 - 1
    for more, labels in (([], [1, 2, 2**53, 2**53 + 1]), ([largest], [0, 1, 2, 2**53, 2**53 + 1])):
        first = pyarrow.array([1, 2**53, 2**53 + 1, *more], pyarrow.uint64())
        second = pyarrow.array([2, 1, 1, *[0] * len(more)], pyarrow.int64())
        pyarrow.parquet.write_table(
            pyarrow.table({"a": first, "b": second}), tmp_path / "edges.parquet"
        )
        graph = Graph.read(tmp_path / "edges.parquet")
        assert graph.labels.tolist() == [*labels, *more]
        floats = pyarrow.array([2.0, 1.0, 1.0, *[0.0] * len(more)])
        pyarrow.parquet.write_table(
            pyarrow.table({"a": first, "b": floats}), tmp_path / "mixed.parquet"
        )
        assert Graph.read(tmp_path / "mixed.parquet").labels.tolist() == [*labels, *more]
        pairs = np.column_stack([np.asarray(first), np.asarray(second).astype(np.uint64)])
        assert Graph.from_edges(pairs).labels.tolist() == [*labels, *more]


def test_no_two_labels_become_one_by_rounding():
    """As a float 2^53 + 1 is 2^53: whoever has one of the two would be both."""
    for largest in (2.0**53, 2.0**60):
        with pytest.raises(InputError, match="too large to be exact"):
            Graph.from_edges(np.array([[largest, 1.0], [2.0, 3.0]]))
    assert Graph.from_edges(np.array([[2.0**53 - 1, 1.0]])).labels.tolist() == [1, 2**53 - 1]
