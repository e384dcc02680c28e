"""Readers of files, on files that are damaged at random: one kind of error, nothing quoted.

A file of each format is changed at random places. Whatever is in it, a reader gives data or an
InputError of its own words: no other error, no warning, no word of a record, and the process lives.
"""

from __future__ import annotations

import gzip
import io
import random
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from tests.audit.replay.engine import causes_of

import tulle
from tulle.core import cells
from tulle.core.reading import reading
from tulle.genomes import reading as genotypes
from tulle.graphs.io import dates, node_sets
from tulle.graphs.io import reading as networks
from tulle.matrices.binary import data as matrices
from tulle.models import Table
from tulle.studio import data_worker

SECRET = "hunter2"
RECORDS = f"who,from,to,trips\nann,0,0,1\n{SECRET},1,0,2\n".encode()
MARKET = b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2"
VCF = (
    f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{SECRET}\tb\n"
    "1\t5\trs5\tA\tG\t.\t.\t.\tGT\t0/1\t1/1\n"
).encode()  # fmt: skip
GRID = {
    "individual": "who",
    "row": "from",
    "column": "to",
    "weight": "trips",
    "rows": 2,
    "columns": 2,
}


def array_file() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[0, 1], [1, 0]]))
    return file.getvalue()


READERS = {
    "edges.csv": (f"{SECRET},2\n3,4\n".encode(), lambda p: tulle.Graph.read(p, header=False)),
    "numbers.txt": (b"# c\n1 2\n3 4\n", tulle.Graph.read),
    "edges.csv.gz": (gzip.compress(b"1,2\n3,4\n"), tulle.Graph.read),
    "dated.csv": (
        f"from,to,day\n{SECRET},b,2026-01-01\n".encode(),
        lambda p: tulle.Graph.read(p, columns=["from", "to"], time="day"),
    ),
    "graph.mtx": (MARKET, tulle.Graph.read),
    "graph.graphml": (
        f'<graphml><graph><node id="{SECRET}"/><node id="b"/>'
        f'<edge source="{SECRET}" target="b"/></graph></graphml>'.encode(),
        tulle.Graph.read,
    ),
    "nodes.txt": (f"{SECRET}\nb\n".encode(), lambda p: tulle.Graph.from_edges([], nodes=p)),
    "nodes.csv": (f"id,x\n{SECRET},1\n".encode(), lambda p: tulle.Graph.from_edges([], nodes=p)),
    "matrix.npy": (array_file(), tulle.BinaryMatrix.read),
    "matrix.mtx": (MARKET, tulle.BinaryMatrix.read),
    "matrix.csv": (b"q,r\n1,0\n0,1\n", tulle.BinaryMatrix.read),
    "trips.csv": (RECORDS, lambda p: tulle.Contributions.read(p, **GRID, outside="drop")),
    "people.csv": (
        f"a,b\n1,{SECRET}\n".encode(),
        lambda p: Table.read(p, bounds={"a": (0, 5)}, classes={"b": [SECRET, "y"]}),
    ),
    "study.vcf": (VCF, tulle.Genotypes.read),
    "study.vcf.gz": (gzip.compress(VCF), tulle.Genotypes.read),
    "study.csv": (b"name,rs1,rs2\na,0,1\nb,2,0\n", tulle.Genotypes.read),
    "studio.csv.gz": (gzip.compress(RECORDS), lambda p: data_worker.DataWorker().peek(str(p))),
    "studio.csv": (
        b"q,r,s\n1,0,1\n0,1,1\n",
        lambda p: data_worker.DataWorker().read({"kind": "matrix", "path": str(p)}),
    ),
}
ODD = (
    *(b"", b"\n", b"\r", b'"', b",", b";", b"\t", b" ", b"\x00", b"\xff", b"\xef\xbb\xbf"),
    *(b"\xff\xfe", b"#", b"%", b"//", b"-1", b"1e400", b"nan", b"9" * 30, b"9" * 5000, b"0x1"),
    *(b"\xe2\x80\xa8", b"\x85", b"\x0b", b"\x1c", b"<", b"&a;", b"\x1f\x8b", b"1_0", b"\xd9\xa1"),
    *(b"2026-13-45", SECRET.encode() * 50),
)


def damage(chance: random.Random, data: bytes) -> bytes:
    """Change a file at up to three places."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        place, far = chance.randrange(len(found) + 1), chance.randint(1, 9)
        how = chance.randrange(5)
        if how == 0:
            found[place:place] = chance.choice(ODD)
        elif how == 1:
            found[place : place + far] = chance.choice(ODD)
        elif how == 2:
            del found[place : place + far]
        elif how == 3:
            del found[place:]
        else:
            start = chance.randrange(len(found) + 1)
            found[place:place] = found[start : start + 3 * far]
    return bytes(found)


def findings(name: str, folder, rounds: int) -> list[str]:
    """Return what an onlooker sees besides data and errors in the reader's own words."""
    base, read = READERS[name]
    chance, found = random.Random(name), []
    path = folder / name
    for number in range(rounds):
        path.write_bytes(base if not number else damage(chance, base))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                read(path)
            except tulle.InputError as error:
                found += [] if number else [f"refuses a whole file: {error}"]
                said = " ".join(causes_of(error)).replace(str(path), "")
                found += [said] if SECRET in said else []
            except Exception as error:  # noqa: BLE001 - this is what is looked for
                found.append(f"{type(error).__name__}: {error}")
        found += [f"warns: {one.message}" for one in warned]
    return found


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_raise_one_kind_of_error(tmp_path, name):
    assert findings(name, tmp_path, 60) == []


def test_readers_without_the_boundary_are_caught(tmp_path, monkeypatch):
    for place in (cells, genotypes, networks, dates, node_sets, matrices, data_worker):
        monkeypatch.setattr(place, "reading", lambda name: nullcontext())
    caught = [name for name in READERS if findings(name, tmp_path, 60)]
    assert len(caught) >= 4, caught


# --- objects of other libraries -----------------------------------------------------------------


def held(kind, numbers):
    """Return an Arrow array by the numbers that it is stored as, whether they are values or not."""
    import pyarrow

    size = kind.bit_width // 8
    stored = b"".join(number.to_bytes(size, "little", signed=True) for number in numbers)
    return pyarrow.Array.from_buffers(kind, len(numbers), [None, pyarrow.py_buffer(stored)])


def not_utf8(kind, size):
    import pyarrow

    ends = b"".join(end.to_bytes(size, "little") for end in (0, 1, 2, 3))
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(b"ab\xff")]
    return pyarrow.Array.from_buffers(kind, 3, buffers)


def odd_columns():
    """Yield columns whose last value is one that Python cannot have, by name."""
    import pyarrow as pa

    most, least = 2**63 - 1, -(2**63)
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Europe/Rome"):
            for far in (most, least):
                yield f"timestamp {unit} {zone} {far}", held(pa.timestamp(unit, zone), (1, 2, far))
        yield f"duration {unit}", held(pa.duration(unit), (1, 2, most))
    for name, kind, far in (
        ("date32", pa.date32(), 2**31 - 1),
        ("date64", pa.date64(), most),
        ("time32", pa.time32("s"), 2**31 - 1),
        ("time64", pa.time64("us"), most),
        ("decimal", pa.decimal128(5, 2), 10**37),
    ):
        yield name, held(kind, (1, 2, far))
    yield "text", not_utf8(pa.string(), 4)
    yield "long text", not_utf8(pa.large_string(), 8)
    yield "unsigned", pa.array([1, 2, 2**64 - 1], pa.uint64())
    yield "half", pa.array(np.array([1, 2, np.nan], np.float16))
    yield "categories", pa.array(["a", "b", None]).dictionary_encode()


def frames_of(column):
    """Yield a column as other libraries hold it, where they do, by name."""
    import pandas
    import polars
    import pyarrow

    table = pyarrow.table({"x": column})
    yield "arrow", column
    yield "chunks", pyarrow.chunked_array([column.slice(0, 1), column.slice(1)])
    yield "pandas", table.to_pandas(types_mapper=pandas.ArrowDtype)["x"]
    for name, make in (
        ("polars", lambda: polars.from_arrow(table)["x"]),
        ("plain pandas", lambda: table.to_pandas()["x"]),
    ):
        try:
            yield name, make()
        except (pyarrow.ArrowException, ValueError, OverflowError):
            continue


CELLS = {
    "texts": lambda given: cells.texts(given, "x").to_pylist(),
    "numbers": lambda given: [repr(one) for one in cells.numbers(given, "x")],
    "codes": lambda given: cells.codes(given, "x").tolist(),
    "places": lambda given: cells.places(given, ["1", "2", "a", 3], "x").tolist(),
    "numbered": lambda given: cells.places(given, range(5), "x").tolist(),
    "days": lambda given: [str(one) for one in cells.days(given, "x")[0]],
}


def changed_cells(libraries=("arrow", "chunks", "pandas", "polars", "plain pandas")):
    """Return which columns of which library are read otherwise because of their last value."""
    found = []
    for name, column in odd_columns():
        for library, given in frames_of(column):
            if library not in libraries:
                continue
            if getattr(getattr(given, "dtype", None), "kind", "") == "O" and library[0] == "p":
                continue  # of objects: Python's values already
            for what, read in CELLS.items():
                try:
                    good = read(given[:2]) == read(given)[:2]
                except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
                    found.append((name, library, what, type(error).__name__))
                else:
                    found += [] if good else [(name, library, what, "changed")]
    return found


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_value_of_a_frame_changes_how_its_column_is_read() -> None:
    assert changed_cells() == []


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_columns_read_through_python_are_caught(monkeypatch) -> None:
    monkeypatch.setattr(cells, "_as_held", lambda values: values)
    found = changed_cells(["pandas"])  # where nothing panics, which prints pages
    assert {"date32", "timestamp us None 9223372036854775807"} <= {name for name, *_ in found}


def test_a_panic_of_a_library_is_an_error_like_any_other() -> None:
    class Panic(BaseException):
        pass

    with pytest.raises(tulle.InputError) as caught, reading("x.csv"):
        raise Panic(SECRET)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(KeyboardInterrupt), reading("x.csv"):
        raise KeyboardInterrupt


GRAPHS = {
    "pairs": lambda table: tulle.Graph.from_edges(table),
    "nodes": lambda table: tulle.Graph.from_edges([(1, 2)], nodes=table),
    "attributes": lambda table: tulle.Graph.from_edges([(0, 1)], nodes=3).with_attributes(
        nodes=table
    ),
}


@pytest.mark.parametrize("made", GRAPHS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_object_of_a_library_makes_a_graph_fail_in_its_own_words(made) -> None:
    import pandas
    import pyarrow

    for name, column in odd_columns():
        order = ["x", "b"] if made == "nodes" else ["b", "x"]
        table = pyarrow.table({"x": column, "b": [0, 1, 2]}).select(order)
        for given in (table, table.to_pandas(types_mapper=pandas.ArrowDtype)):
            try:
                GRAPHS[made](given)
            except tulle.InputError as error:
                causes = causes_of(error)
            else:
                causes = ["none"]
            assert len(causes) == 1, (name, made)
