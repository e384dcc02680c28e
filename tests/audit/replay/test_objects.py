"""What is held in memory is read record by record, whatever library holds it.

Columns, pairs and tables of numbers are put into lists, arrays and frames of every type, with
values that nobody expects beside each other. Then all records but one are taken away by the
library's own means, which leaves types and lists of categories as they are. What is read of each
record must be the same by itself and among the others, and the whole is refused only if a record
of it is refused by itself, in the same words. Readers that let a library find one type for all
records are caught.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets

import tulle
from tulle.core import cells
from tulle.core.errors import InputError
from tulle.graphs.data import Graph
from tulle.graphs.io import pairs
from tulle.graphs.io.labels import canonical
from tulle.graphs.io.node_sets import declared_nodes
from tulle.models import Table
from tulle.sql.data import Database
from tulle.sql.engines import frames
from tulle.sql.queries import relations_of, sql


class Colour(str, Enum):  # noqa: UP042 - a text of another class
    RED = "x"


class Number(IntEnum):
    ONE = 1


class Folded(str):
    """A text that is equal to itself in capitals."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str(self).lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(str(self).lower())


LARGE = 2**53
ODD: list[Any] = [
    *(0, 1, 2, -1, 7, True, False, 1.0, 2.5, -0.0, -1.0, float("nan"), float("inf"), 1e300),
    *(LARGE, LARGE + 1, float(LARGE), 2**63, 2**64, 10**30),
    *("1", "01", "1.0", "x", "X", "", " 1", "\u00e9", "e\u0301", "\ud800", "a\0", "\ufeffa", "nan"),
    *("true", "ann", Folded("ANN"), Folded("ann"), b"1", b"x", b"\xff", np.str_("x")),
    *(None, pd.NA, pd.NaT, np.ma.masked, np.datetime64("NaT"), Decimal("NaN"), Decimal("sNaN")),
    *(np.int64(1), np.int64(-1), np.uint64(2**63 + 1), np.float32(0.1), np.float16(1)),
    *(np.bool_(True), np.longdouble(1), np.datetime64("2020-01-01"), np.timedelta64(1, "s")),
    *(Decimal(1), Decimal("1.0"), Decimal("1e400"), Fraction(1), Fraction(1, 3), 1 + 0j),
    *(date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), timedelta(1)),
    *(pd.Timestamp("2020-01-01"), pd.Period("2020-01"), pd.Timedelta(1, "s"), UUID(int=1)),
    *((1, 2), ("1",), (1.0, 2.0), (), frozenset([1]), [1], {}, Colour.RED, Number.ONE, object()),
    *(np.array(1), np.array([1])),
]
WHOLE = [0, 1, 2, LARGE, LARGE + 1, 2**62, -1, None]
FLOATS = [0.0, 1.0, 2.5, -0.0, float("nan"), float("inf"), 1e300, float(LARGE), None]
TEXTS = ["1", "01", "1.0", "x", "", " 1", "\u00e9", "nan", "true", "ann", None]
TRUTHS = [True, False, None]
MOMENTS = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01 10:00:00.000001"), pd.NaT]
SPANS = [pd.Timedelta(1, "D"), pd.Timedelta(90, "m"), pd.Timedelta(1, "us"), pd.NaT]
COUNTS = [0, 1, 2, 3, None]

Build = Callable[[Sequence[Any]], Any]
Form = tuple[list[Any], Build]


def objects(values: Sequence[Any]) -> Any:
    held = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        held[place] = value
    return held


def is_missing(value: Any) -> bool:
    return value is None or value is pd.NaT or (isinstance(value, float) and value != value)


def categories(pool: list[Any]) -> Form:
    """A column of pandas whose categories are all that might be there."""
    known = [value for value in pool if not is_missing(value)]

    def build(values: Sequence[Any]) -> Any:
        codes = [-1 if is_missing(value) else known.index(value) for value in values]
        return pd.Series(pd.Categorical.from_codes(codes, categories=known))

    return pool, build


def masked(pool: list[Any], kind: Any) -> Form:
    def build(values: Sequence[Any]) -> Any:
        filled = np.array([1 if value is None else value for value in values], dtype=kind)
        return np.ma.masked_array(filled, [value is None for value in values])

    return pool, build


def in_pandas(pool: list[Any], kind: Any) -> Form:
    return pool, lambda values: pd.Series(values, dtype=kind)


def in_polars(pool: list[Any], kind: Any) -> Form:
    return pool, lambda values: pl.Series(values, dtype=kind)


def in_arrow(pool: list[Any], kind: Any) -> Form:
    return pool, lambda values: pa.chunked_array([pa.array([value], kind) for value in values])


UNTYPED: dict[str, Form] = {
    "list": (ODD, list),
    "array": (ODD, objects),
    "pandas": (ODD, lambda values: pd.Series(objects(values), dtype=object)),
    "categories": (ODD, lambda values: pd.Series(pd.Categorical(objects(values)))),
    "polars": (ODD, lambda values: pl.Series(values, dtype=pl.Object)),
}
TYPED: dict[str, Form] = {
    **{
        f"categories {place}": categories(pool)
        for place, pool in enumerate((WHOLE, FLOATS, TEXTS, TRUTHS, MOMENTS, SPANS))
    },
    **{
        f"masked {kind}": masked(pool, kind)
        for pool, kind in ((WHOLE, "i8"), (COUNTS, "u1"), (TRUTHS, "?"), (["x", "1", None], "U4"))
    },
    "masked float": masked([0.0, 1.0, 2.5, None], "f8"),
    **{
        f"pandas {kind}": in_pandas(pool, kind)
        for pool, kind in (
            *((WHOLE, "Int64"), (COUNTS, "Int8"), (FLOATS, "Float64"), (TRUTHS, "boolean")),
            *((TEXTS, "string"), (TEXTS, "str"), (FLOATS, "float32"), (MOMENTS, "datetime64[ns]")),
            *((MOMENTS, "datetime64[us, UTC]"), (SPANS, "timedelta64[ns]")),
            *((FLOATS, "Sparse[float]"), ([0, 1, 2], "Sparse[int]")),
            (TEXTS, pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        )
    },
    **{
        f"polars {kind}": in_polars(pool, kind)
        for pool, kind in (
            *((TEXTS, pl.Categorical), (TEXTS, pl.Enum([text for text in TEXTS if text]))),
            *((WHOLE, pl.Int64), ([*WHOLE, 2**100], pl.Int128), (FLOATS, pl.Float64)),
            *((TRUTHS, pl.Boolean), ([b"x", b"\xff", None], pl.Binary), ([None], pl.Null)),
            *(([timedelta(1), timedelta(seconds=5), None], pl.Duration), ([[1], None], pl.List)),
        )
    },
    **{
        f"arrow {kind}": in_arrow(pool, kind)
        for pool, kind in (
            *((WHOLE, pa.int64()), ([1, 2**63, None], pa.uint64()), (TRUTHS, pa.bool_())),
            *((TEXTS, pa.large_string()), ([Decimal("1.50"), None], pa.decimal128(9, 2))),
            *(([1.0, 2.5, None], pa.float16()), ([datetime(2020, 1, 1), None], pa.timestamp("ns"))),
            *(([b"ab", b"\xff\xff", None], pa.binary(2)), ([{"a": 1}], pa.struct({"a": "int8"}))),
        )
    },
    "arrow categories": (TEXTS, lambda v: pa.array(v, pa.string()).dictionary_encode()),
    "array of moments": (
        [np.datetime64("2020-01-01"), np.datetime64("NaT")],
        lambda values: np.array(values, dtype="M8[s]"),
    ),
    "array of wide floats": (
        [np.longdouble("1e4000"), np.longdouble("2.5")],
        lambda values: np.array(values, dtype="g"),
    ),
    "array of bytes": ([b"1", b"x", b"\xff"], lambda values: np.array(values, dtype="S4")),
    "structured array": (
        [(1, 2.5), (3, 1.0)],
        lambda v: np.array(v, dtype=[("a", int), ("b", "f")]),
    ),
}


def kept(held: Any, places: list[int]) -> Any:
    """Return some of the records, taken out by the means of whatever holds them."""
    if isinstance(held, list):
        return [held[place] for place in places]
    if isinstance(held, pd.Series | pd.DataFrame):
        return held.iloc[places]
    if isinstance(held, pa.Array | pa.ChunkedArray | pa.Table):
        return held.take(pa.array(places, pa.int64()))
    if scipy.sparse.issparse(held):
        return type(held)(held.tocsr()[places])
    return held[places]


# --- readers: what is made of each record, or of all as a set -----------------------------------


def column_of(read: Callable[[Any], Any], held: Any) -> list[str]:
    found = read(held)
    listed = found.to_pylist() if hasattr(found, "to_pylist") else found.tolist()
    return [repr(one) for one in listed]


def days_of(held: Any) -> list[str]:
    found, missing = cells.days(held, "c")
    return [repr(pair) for pair in zip(found.tolist(), missing.tolist(), strict=True)]


def individuals_of(held: Any) -> list[str]:
    """Who each record is of: a number for each label, and the same label for each number."""
    numbers, names = cells.codes(held, "c").tolist(), cells.texts(held, "c").to_pylist()
    assert len(set(zip(numbers, names, strict=True))) == len(set(numbers)) == len(set(names))
    return [repr(name) for name in names]


def table_of(held: Any) -> list[str]:
    return [repr(one) for one in Table({"c": held}, bounds={"c": (0, 3)}).column("c").tolist()]


def attribute_of(kind: str, held: Any) -> list[str]:
    more = kept(held, [*range(len(held)), 0])  # a graph of at least two nodes
    graph = Graph.from_edges([(0, 1)], nodes=len(more))
    found = graph.with_attributes(nodes={"a": more}, kinds={"a": kind}).node_attributes["a"]
    return [repr(one) for one in found.tolist()][:-1]


def cells_of_frame(held: Any) -> list[str]:
    if isinstance(held, pl.Series):
        frame: Any = pl.DataFrame({"c": held})
    elif isinstance(held, pa.Array | pa.ChunkedArray):
        frame = pa.table({"c": held})
    else:
        frame = pd.DataFrame({"c": held})
    column = frames.arrow_table("t", frame).column(0)
    return [repr((column.type, one)) for one in column.to_pylist()]


COLUMNS: dict[str, Callable[[Any], Any]] = {
    "texts": partial(column_of, lambda held: cells.texts(held, "c")),
    "numbers": partial(column_of, lambda held: cells.numbers(held, "c")),
    "places": partial(column_of, lambda held: cells.places(held, ["x", "1", "true"], "c")),
    "places of numbers": partial(column_of, lambda held: cells.places(held, [1, 2, 0.5], "c")),
    "days": days_of,
    "individuals": individuals_of,
    "table": table_of,
    "nodes": lambda held: {repr(one) for one in declared_nodes(held)},
    **{f"attribute: {kind}": partial(attribute_of, kind) for kind in ("number", "text")},
}


def edges_of(held: Any, **terms: Any) -> set[Any]:
    graph = Graph.from_edges(held, **terms)
    names = [repr(label) for label in graph.labels.tolist()]
    return {*names, *(frozenset((names[u], names[v])) for u, v in graph.edges().tolist())}


PAIRS: dict[str, Callable[[Any], Any]] = {
    "as they are": edges_of,
    "so many nodes": partial(edges_of, nodes=9),
    "declared nodes": partial(edges_of, nodes=[1, 2, "x", "ann", b"x"]),
}


def as_columns(values: Sequence[Any], series: Callable[[Any], Any] = objects) -> dict[str, Any]:
    return {name: series([row[place] for row in values]) for place, name in enumerate("ab")}


def as_array(values: Sequence[Any]) -> Any:
    return objects([cell for row in values for cell in row]).reshape(-1, 2)


def masked_rows(kind: Any) -> Build:
    return lambda values: masked([], kind)[1]([c for row in values for c in row]).reshape(-1, 2)


ROWS: dict[str, Form] = {
    "lists": (ODD, lambda values: [list(row) for row in values]),
    "tuples": (ODD, list),
    "array": (ODD, as_array),
    "pandas": (ODD, lambda values: pd.DataFrame(as_columns(values), dtype=object)),
    **{
        f"categories {pool}": (
            pool,
            lambda values: pd.DataFrame(as_columns(values, pd.Categorical)),
        )
        for pool in (COUNTS, [0.0, 1.0, 0.5, None], ["1", "x", None])
    },
    "small categories": (
        COUNTS,
        lambda values: pd.DataFrame(
            as_columns(
                values,
                lambda column: pd.Categorical.from_codes(
                    [-1 if one is None else one for one in column],
                    pd.Index(range(4 + (0 in column)), dtype="uint8"),
                ),
            )
        ),
    ),
    **{
        f"pandas {kind}": (
            pool,
            lambda values, kind=kind: pd.DataFrame(
                as_columns(values, lambda column: pd.Series(column, dtype=kind))
            ),
        )
        for pool, kind in (
            *((COUNTS, "Int8"), (TRUTHS, "boolean"), ([0, 1, 2], "Sparse[int]")),
            *(([0.0, 1.0, float("nan")], "Sparse[float]"), (TEXTS, "string")),
        )
    },
    "polars": (COUNTS, lambda values: pl.DataFrame(as_columns(values, pl.Series))),
    "arrow": (COUNTS, lambda values: pa.table(as_columns(values, pa.array))),
    "masked": (COUNTS, masked_rows("i8")),
    "masked bytes": (COUNTS, masked_rows("u1")),
    "masked floats": ([0.0, 1.0, 0.5, None], masked_rows("f8")),
    "wide floats": ([np.longdouble("1e4000"), 1, 0], lambda values: np.array(values, dtype="g")),
    "complex": ([0, 1, 1j], lambda values: np.array(values, dtype="c16")),
}
SPARSE: dict[str, Form] = {
    f"{form} {kind}": (
        [0, 1, 2, 3],
        lambda values, form=form, kind=kind: getattr(scipy.sparse, form)(np.array(values, kind)),
    )
    for form in ("csr_array", "coo_array", "lil_array", "dok_array")
    for kind in ("u1", "f8", "?")
}


def rows_of(read: Callable[[Any], Any], held: Any) -> list[str]:
    return [repr(row) for row in read(held).tolist()]


GRIDS: dict[str, Callable[[Any], Any]] = {
    "binary": partial(rows_of, lambda held: tulle.BinaryMatrix(held).to_numpy()),
    "threshold": partial(rows_of, lambda held: tulle.BinaryMatrix(held, threshold=1).to_numpy()),
    "weights": partial(
        rows_of, lambda held: tulle.Contributions.from_matrix(held, protect="row").totals()
    ),
}
GENOTYPES = {"genotypes": partial(rows_of, lambda held: tulle.Genotypes(held).to_numpy())}


# --- the harness --------------------------------------------------------------------------------

WHERE = re.compile(r"[0-9]+")


def told(read: Callable[[Any], Any], held: Any) -> tuple[str, Any, list[str]]:
    """Return what is read, or the words of the refusal but for places in it; and all warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found: tuple[str, Any] = "read", read(held)
        except InputError as error:
            found = "refused", WHERE.sub("#", str(error))
    return *found, [str(one.message) for one in heard]


def fault(read: Callable[[Any], Any], held: Any, count: int) -> str | None:
    """Say what of the records hangs on other records, or nothing."""
    how, what, heard = told(read, held)
    alone = [told(read, kept(held, [place])) for place in range(count)]
    if heard or any(one[2] for one in alone):
        return "a warning"
    refusals = [words for state, words, _ in alone if state == "refused"]
    if how == "refused":
        return None if what in refusals else "refused together" if not refusals else "other words"
    if refusals:
        return "refused alone"
    parts = [one[1] for one in alone]
    together = set().union(*parts) if isinstance(what, set) else [part[0] for part in parts]
    return None if what == together else "read otherwise"


def faults(
    forms: dict[str, Form], readers: dict[str, Callable[[Any], Any]], rounds: int, width: int = 1
) -> tuple[list[Any], int]:
    """Return what hangs on other records, and how many sets of records were read."""
    draw, found, read = random.Random(5), [], 0
    for _ in range(rounds):
        for form, (pool, build) in forms.items():
            count = draw.choice([2, 2, 3])
            drawn = [tuple(draw.choice(pool) for _ in range(width)) for _ in range(count)]
            values = [row[0] for row in drawn] if width == 1 else drawn
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    held = build(values)
            except Exception:  # noqa: BLE001 - this library cannot hold such values
                continue
            for name, reader in readers.items():
                wrong = fault(reader, held, count)
                if wrong is not None:
                    found.append((form, name, wrong, values))
                read += told(reader, held)[0] == "read"
    return found, read


@pytest.mark.parametrize("reader", COLUMNS)
def test_a_value_of_a_column_is_read_by_itself(reader: str) -> None:
    found, read = faults(UNTYPED, {reader: COLUMNS[reader]}, 60)
    assert found == []
    assert read > 3
    found, read = faults(TYPED, {reader: COLUMNS[reader]}, 4)
    assert found == []
    assert read > 10


def test_a_value_of_a_frame_of_a_database_is_read_by_itself() -> None:
    held = {form: TYPED[form] for form in TYPED if not form.startswith(("masked", "struct"))}
    found, read = faults(held, {"frame": cells_of_frame}, 8)
    assert found == []
    assert read > 200
    untyped = {form: UNTYPED[form] for form in ("pandas", "categories", "polars")}
    found, read = faults(untyped, {"frame": cells_of_frame}, 60)
    assert found == []
    assert read > 60


@pytest.mark.parametrize("reader", PAIRS)
def test_a_pair_of_nodes_is_read_by_itself(reader: str) -> None:
    nodes = [one for one in ODD if told(canonical, one)[0] == "read"]
    for pool in (ODD, [*nodes, 1, 2, 3]):
        forms = {form: (pool if own is ODD else own, build) for form, (own, build) in ROWS.items()}
        found, read = faults(forms, {reader: PAIRS[reader]}, 40, width=2)
        assert found == []
    assert read > 100


def test_a_row_of_a_matrix_is_read_by_itself() -> None:
    plain = [0, 1, 2, True, None, "1", "0", 1.0, pd.NA, Decimal(1), np.int8(1), np.ma.masked]
    for pool in (ODD, plain):
        forms = {form: (pool if own is ODD else own, build) for form, (own, build) in ROWS.items()}
        found, read = faults(forms, GRIDS | GENOTYPES, 15, width=2)
        assert found == []
    assert read > 200
    found, read = faults(SPARSE, GRIDS, 10, width=2)
    assert found == []
    assert read > 100


def test_a_node_of_another_library_is_read_by_itself() -> None:
    """All nodes but one, taken away by networkx: the others are who they were, in their order."""
    draw = random.Random(7)
    nodes = [one for one in ODD if told(canonical, one)[0] == "read"]
    pool = [one for one in nodes if isinstance(one, Hashable)]
    for _ in range(60):
        graph = nx.MultiDiGraph([(draw.choice(pool), draw.choice(pool)) for _ in range(4)])
        whole = Graph.from_networkx(graph, ignore=("direction", "weights"))
        for node in [*graph]:
            smaller = graph.copy()
            smaller.remove_node(node)
            left = Graph.from_networkx(smaller, ignore=("direction", "weights"))
            names, rest = whole.labels.tolist(), left.labels.tolist()
            assert [name for name in names if name in rest] == rest


# --- readers that let a library find one type for all -------------------------------------------


def test_types_that_arrow_finds_are_caught() -> None:

    def twin(held: Any) -> Any:
        try:
            return cells.texts(pa.array(held, from_pandas=True), "c")
        except pa.ArrowException:
            return cells.texts(held, "c")

    found, _ = faults({"list": ([1.0, True], list)}, {"twin": partial(column_of, twin)}, 30)
    assert found


def test_texts_that_pandas_makes_of_categories_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def twin(series: Any) -> Any:
        return pa.array(series.astype("string"), type=pa.string(), from_pandas=True)

    monkeypatch.setattr(frames, "_pandas_column", twin)
    held = {form: TYPED[form] for form in ("categories 0", "pandas timedelta64[ns]")}
    found, _ = faults(held, {"frame": cells_of_frame}, 30)
    assert {form for form, _, _, _ in found} == set(held)


def test_labels_that_are_compared_before_they_are_read_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs, "_label", lambda value, row: value)
    found, _ = faults({"tuples": ([1, Decimal(1), 2], list)}, PAIRS, 30, width=2)
    assert found


def test_numbers_that_numpy_makes_of_frames_and_masks_are_caught() -> None:
    def twin(held: Any) -> Any:
        return np.asarray(held).astype(np.float64)

    forms = {form: ROWS[form] for form in (f"categories {COUNTS}", "small categories")}
    found, _ = faults(forms, {"twin": partial(rows_of, twin)}, 30, width=2)
    assert "a warning" in {wrong for _, _, wrong, _ in found}
    shown = np.asarray(np.ma.masked_array([[1, 1], [1, 0]], [[1, 1], [0, 0]]))
    assert shown.tolist() == [[1, 1], [1, 0]]  # so none of these may read it like that
    hidden = np.ma.masked_array([[0, 1], [1, 0]], [[0, 1], [0, 0]])
    survey = tulle.surveys.Survey({"a": 2}).form(epsilon=1)
    for read in (
        Graph.from_edges,
        Graph.from_scipy,
        tulle.BinaryMatrix,
        partial(tulle.Contributions.from_matrix, protect="row"),
        lambda held: Table({"c": held[:, 1]}, bounds={"c": (0, 1)}),
        lambda held: tulle.Genotypes([[0], [1]], cases=held[:, 1]),
        lambda held: tulle.surveys.perturb(survey, {"a": held[:, 1]}),
        lambda held: tulle.surveys.perturb_links(tulle.surveys.LinkForm.of(3, epsilon=1), held),
        lambda held: tulle.models.LinearRegression(
            unit="row", epsilon=1, bounds=(0, 1), target_bounds=(0, 1)
        ).fit(held, [0, 1]),
    ):
        assert told(read, hidden)[0] == "refused"
    assert tulle.Genotypes(hidden).missing == 1


def test_nobody_becomes_somebody_else_where_a_category_is_missing() -> None:
    """Of whole numbers with one missing pandas makes floats: two owners were one."""
    owners = pd.Categorical.from_codes([0, 1, -1], [LARGE + 1, LARGE])
    frame = pd.DataFrame({"who": owners, "x": [1, 2, 3]})
    for rows in (frame, frame[:2]):
        database = Database.from_tables({"t": rows}, owners={"t": "who"})
        (relation,) = relations_of(database, sql("SELECT COUNT(DISTINCT who) FROM t"))
        assert float(relation.total) == 2


# --- row numbers of pandas ----------------------------------------------------------------------


def without_each(folder: Path, read: Callable[[Any], Any], file: bool) -> set[str]:
    """Return what a reader tells where pandas took each row away and wrote the others anew."""
    frame = pd.DataFrame({"a": [1, 2, 3, 4, 5], "b": [3, 4, 5, 6, 7]})
    told = set()
    for gone in (*frame["a"], None):
        left = frame[frame["a"] != gone]
        if file:
            left.to_parquet(folder / "t.parquet")
        told.add(repr(read(folder / "t.parquet" if file else pa.Table.from_pandas(left))))
    return told


def attributes_of(table: Any) -> Any:
    return Graph.from_edges([(1, 3)], nodes=8).with_attributes(nodes=table).node_kinds


ROW_NUMBERED: dict[str, tuple[bool, Callable[[Any], Any]]] = {
    "edges": (True, lambda file: Graph.read(file, nodes=8).node_count),
    "attributes": (True, attributes_of),
    "matrix": (True, lambda file: tulle.BinaryMatrix.read(file, threshold=3).shape[1]),
    "table": (True, lambda file: cells.read_table(file).column_names),
    "database": (True, lambda file: Database.from_tables({"t": file}, owners={"t": "a"}).schema),
    "edges held": (False, lambda table: Graph.from_edges(table, nodes=8).node_count),
    "attributes held": (False, attributes_of),
    "matrix held": (False, lambda table: tulle.BinaryMatrix(table, threshold=3).shape[1]),
    "database held": (
        False,
        lambda table: Database.from_tables({"t": table}, owners={"t": "a"}).schema,
    ),
}


@pytest.mark.parametrize("way", ROW_NUMBERED)
def test_row_numbers_of_pandas_are_no_column(way: str, tmp_path: Path) -> None:
    """It writes them where a row is gone from between others, and only there."""
    file, read = ROW_NUMBERED[way]
    assert len(without_each(tmp_path, read, file)) == 1


def test_row_numbers_that_are_read_are_caught(tmp_path: Path) -> None:
    assert len(without_each(tmp_path, lambda file: pq.read_schema(file).names, True)) == 2


def test_files_with_and_without_row_numbers_are_alike(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [3, 4, 5]})
    for order in ("12", "21"):
        frame.to_parquet(tmp_path / f"{order[0]}.parquet")
        pd.concat([frame, frame]).to_parquet(tmp_path / f"{order[1]}.parquet")
        database = Database.from_tables({"t": tmp_path / "*.parquet"}, owners={"t": "a"})
        assert list(database.schema.tables["t"]) == ["a", "b"]
        (relation,) = relations_of(database, sql("SELECT COUNT(*) FROM t"))
        assert float(relation.total) == 9


# --- files of nobody, and odd ones --------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("outside", ["refuse", "drop"])
def test_a_file_of_nobody_is_read_like_any_other(tmp_path: Path, end: str, outside: str) -> None:
    (tmp_path / "t.csv").write_text("who,day,x" + end)
    told = {"individual": "who", "row": "x", "column": "x", "rows": 2, "columns": 2}
    held = tulle.Contributions.read(tmp_path / "t.csv", outside=outside, **told)
    assert held.individuals() == 0
    edges = {"columns": ["who", "x"], "time": "day", "nodes": 3}
    assert Graph.read(tmp_path / "t.csv", **edges).edge_count == 0


def test_an_end_that_is_no_number_is_nobody(tmp_path: Path) -> None:
    """As text NaN is a name, and all who are missing would be one person."""
    for ends in ([1.0, float("nan")], [1.0, None]):
        days = pa.array(["2026-01-05"] * 2)
        pq.write_table(pa.table({"a": ends, "b": [2, 3], "day": days}), tmp_path / "t.parquet")
        with pytest.raises(InputError, match="An end of an edge is missing"):
            Graph.read(tmp_path / "t.parquet", columns=["a", "b"], time="day")


def test_genotypes_of_two_headers_are_refused(tmp_path: Path) -> None:
    """The people of the second took the places of the first's."""
    head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
    line = "1\t1\trs{}\tA\tG\t.\t.\t.\tGT\t0/1\t1/1\n"
    file = tmp_path / "two.vcf"
    file.write_text(f"{head}a\tb\n{line.format(1)}{head}b\ta\n{line.format(2)}")
    with pytest.raises(InputError, match="line 3: a second line #CHROM"):
        tulle.Genotypes.read(file, snps=["rs1", "rs2"], counted=["G", "G"])


def test_no_warning_of_scikit_learn_tells_of_a_record() -> None:
    terms: dict[str, Any] = {"unit": "row", "epsilon": 1, "bounds": (0, 1)}
    ones = [f"{sign}{'0' * zeros}1" for zeros in range(12) for sign in ("", "+")]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        check_classification_targets(
            np.array(ones)
        )  # what is said of labels that are written in many ways
        assert len(heard) == 1
        tulle.models.LogisticRegression(**terms, classes=[1, 2]).fit([[1.0]] * len(ones), ones)
        wide = np.array([["1e4000"], ["1"]], dtype="g")
        with pytest.raises(InputError):
            tulle.models.LinearRegression(**terms, target_bounds=(0, 1)).fit(wide, [1, 1])
    assert len(heard) == 1


def test_genotypes_that_pandas_writes_with_a_point_are_read(tmp_path: Path) -> None:
    """It does so in all of a column where one of it is missing."""
    for missing in (0, None):
        frame = pd.DataFrame({"person": ["a", "b", "c"], "rs1": [1, 2, missing], "rs2": [0, 1, 2]})
        frame.to_csv(tmp_path / "t.csv", index=False)
        read = tulle.Genotypes.read(tmp_path / "t.csv").to_numpy()[:2]
        assert read.tolist() == [[1, 0], [2, 1]]


def test_objects_of_polars_are_refused() -> None:
    """Arrow is given where they are in memory: one person's rows would have several owners."""
    frame = pl.DataFrame({"who": pl.Series(["ann", "bob"], dtype=pl.Object), "x": [1, 2]})
    with pytest.raises(InputError, match="objects of Python"):
        Database.from_tables({"t": frame}, owners={"t": "x"})


def test_an_entry_that_stands_there_256_times_is_no_zero() -> None:
    both = ([0] * 256 + [1] * 256, [1] * 256 + [0] * 256)
    matrix = scipy.sparse.coo_array((np.ones(512, dtype=np.uint8), both), shape=(2, 2))
    assert Graph.from_scipy(matrix, ignore="weights").edge_count == 1
    assert tulle.BinaryMatrix(matrix, threshold=1).to_numpy().tolist() == [[0, 1], [1, 0]]
