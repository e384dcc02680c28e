"""Small datasets with neighbours for the replay, through every reader; and every question.

Each world is one dataset and some of its neighbours under one unit, written down as records and
brought in by a reader: an object, a file in some format, a database. Extreme ones are among them:
nobody, one record, all equal, one person with everything, values without measure.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.audit.replay.engine import Case, Opener

import tulle
from tulle.core import registry
from tulle.core.query import Query

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Setting:
    """One dataset and neighbours of it, under a unit, through a reader."""

    kind: str
    name: str
    unit: str
    variants: tuple[Opener, ...]
    plain: bool = False
    """Whether every question is asked of it; of the others, one question of the kind is."""
    asked: str = ""
    """Which question that is, if not the first one."""


# --- graphs -------------------------------------------------------------------------------------

KITE: Edges = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5))
GRAPHS: Mapping[str, tuple[str, tuple[tuple[int, Edges], ...]]] = {
    "a kite": ("edge", ((6, KITE), (6, KITE[1:]), (6, KITE[:-1]), (6, (*KITE, (0, 5))))),
    "no edges": ("edge", ((6, ()), (6, ((2, 5),)))),
    "all edges": (
        "edge",
        (
            (5, tuple((u, v) for v in range(5) for u in range(v))),
            (5, tuple((u, v) for v in range(5) for u in range(v))[1:]),
        ),
    ),
    "a kite and a guest": ("node", ((5, KITE[:-1]), (6, KITE))),
    "a kite and many guests": (
        "node",
        ((6, KITE), (6, KITE[:-1]), (7, (*KITE, *((u, 6) for u in range(6))))),
    ),
    "one person": ("node", ((1, ()), (0, ()), (2, ((0, 1),)))),
    "a star and its hub": ("node", ((6, tuple((0, v) for v in range(1, 6))), (6, ()))),
}
"""By name: the unit, then number of nodes and edges of each variant.

Per node, somebody without edges is there or not: the last two differ by a hub's edges, all gone.
"""


def from_edges(nodes: int, edges: Edges, folder: Path) -> Any:
    """Bring in a graph as pairs."""
    return tulle.Graph.from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2), nodes=nodes)


def from_networkx(nodes: int, edges: Edges, folder: Path) -> Any:
    """Bring in a graph as a networkx graph."""
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edges)
    return tulle.Graph.from_networkx(graph)


def from_igraph(nodes: int, edges: Edges, folder: Path) -> Any:
    """Bring in a graph as an igraph graph."""
    import igraph

    return tulle.Graph.from_igraph(igraph.Graph(n=nodes, edges=list(edges)))


def from_scipy(nodes: int, edges: Edges, folder: Path) -> Any:
    """Bring in a graph as a sparse adjacency matrix."""
    import scipy.sparse

    matrix = np.zeros((nodes, nodes), dtype=np.int64)
    for u, v in edges:
        matrix[u, v] = matrix[v, u] = 1
    return tulle.Graph.from_scipy(scipy.sparse.csr_array(matrix))


def write_graph(ending: str, nodes: int, edges: Edges, folder: Path) -> Path:
    """Write a graph in the format of a file's ending."""
    path = folder / f"edges{ending}"
    if ending == ".parquet":
        import pyarrow
        import pyarrow.parquet

        columns = [pyarrow.array([e[i] for e in edges], pyarrow.int64()) for i in (0, 1)]
        pyarrow.parquet.write_table(pyarrow.table(columns, names=["a", "b"]), path)
        return path
    if ending == ".mtx":
        lines = ["%%MatrixMarket matrix coordinate pattern symmetric"]
        lines.append(f"{nodes} {nodes} {len(edges)}")
        lines += [f"{max(e) + 1} {min(e) + 1}" for e in edges]
    elif ending == ".graphml":
        lines = ['<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
        lines.append('<graph edgedefault="undirected">')
        lines += [f'<node id="{u}"/>' for u in range(nodes)]
        lines += [f'<edge source="{u}" target="{v}"/>' for u, v in edges]
        lines.append("</graph></graphml>")
    else:
        mark = {".csv": ",", ".tsv": "\t", ".txt": " ", ".csv.gz": ","}[ending]
        lines = [mark.join(("source", "target"))] + [f"{u}{mark}{v}" for u, v in edges]
    text = "\n".join(lines) + "\n"
    if ending.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        path.write_text(text)
    return path


def read_graph(ending: str, nodes: int, edges: Edges, folder: Path) -> Any:
    """Bring in a graph from a file; formats that list no nodes have their number declared."""
    declared = None if ending in (".mtx", ".graphml") else nodes
    return tulle.Graph.read(write_graph(ending, nodes, edges, folder), nodes=declared)


def read_names(ending: str, nodes: int, edges: Edges, folder: Path) -> Any:
    """Bring in a graph whose nodes are the names that occur: for whoever protects nodes."""
    return tulle.Graph.read(write_graph(ending, nodes, edges, folder))


def with_ages(nodes: int, edges: Edges, ages: Sequence[Any], folder: Path) -> Any:
    """Bring in a graph whose nodes have ages, some of them missing."""
    return from_edges(nodes, edges, folder).with_attributes(
        nodes={"age": list(ages)}, kinds={"age": "number"}
    )


AGED: tuple[tuple[str, str, Any, Any], ...] = (
    (
        "a kite with ages",
        "edge",
        ((6, KITE), (6, KITE[1:])),
        ((30, 30, 40, 40, 30, 50),) * 2,
    ),
    (
        "a kite with ages and a guest",
        "node",
        ((6, KITE), (5, KITE[:-1]), (7, (*KITE, (0, 6)))),
        ((30, 30, 40, 40, 30, 50), (30, 30, 40, 40, 30), (30, 30, 40, 40, 30, 50, None)),
    ),
    (
        "the only age there is",
        "node",
        ((2, ((0, 1),)), (3, ((0, 1), (1, 2)))),
        ((None, None), (None, None, 30)),
    ),
)

WITH_AGES = tuple(name for name, *_ in AGED)

GRAPH_FILES = (".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".mtx", ".graphml")
GRAPH_READERS: Mapping[str, Callable[[int, Edges, Path], Any]] = {
    "pairs": from_edges,
    "networkx": from_networkx,
    "igraph": from_igraph,
    "scipy": from_scipy,
    **{ending: partial(read_graph, ending) for ending in GRAPH_FILES},
}


def graph_settings() -> Iterator[Setting]:
    """Yield graphs: the plain ones as pairs, and all through every reader."""
    for reader, open_graph in GRAPH_READERS.items():
        for name, (unit, variants) in GRAPHS.items():
            listed = reader not in GRAPH_FILES or reader in (".mtx", ".graphml")
            opened = open_graph if unit == "edge" or listed else partial(read_names, reader)
            openers = tuple(partial(opened, nodes, edges) for nodes, edges in variants)
            plain = reader == "pairs" and name in ("a kite", "a kite and a guest")
            # The quick question of those that can be asked per node, and one that an order of
            # the nodes would show in.
            asked = "degree_distribution" if unit == "node" else ""
            yield Setting("graph", f"{name}, {reader}", unit, openers, plain, asked)
    for name, unit, variants, ages in AGED:
        openers = tuple(
            partial(with_ages, nodes, edges, held)
            for (nodes, edges), held in zip(variants, ages, strict=True)
        )
        for asked in ("subgraphs", "mixing") if unit == "edge" else ("subgraphs",):
            yield Setting("graph", name, unit, openers, asked=asked)


# --- matrices of yes and no ---------------------------------------------------------------------

VOTES = ((1, 0, 1), (0, 0, 1), (1, 1, 1), (0, 0, 0))
MATRICES: Mapping[str, tuple[str, tuple[Sequence[Sequence[int]], ...]]] = {
    "votes": ("row", (VOTES, ((0, 1, 0), *VOTES[1:]), (*VOTES[:3], (1, 1, 1)))),
    "votes by cell": ("cell", (VOTES, ((0, 0, 1), *VOTES[1:]), (*VOTES[:3], (0, 1, 0)))),
    "one row": ("row", (((0, 0, 0),), ((1, 1, 1),))),
    "all equal": ("cell", (((1, 1), (1, 1)), ((1, 1), (1, 0)))),
}


def matrix_readers() -> dict[str, Callable[[Any, Path], Any]]:
    """Return every way in which a matrix of yes and no comes in."""

    def frame(make: Callable[[Any], Any]) -> Callable[[Any, Path], Any]:
        return lambda rows, folder: tulle.BinaryMatrix(make(rows))

    def pandas(rows: Any) -> Any:
        import pandas

        return pandas.DataFrame(list(rows), columns=[f"q{i}" for i in range(len(rows[0]))])

    def polars(rows: Any) -> Any:
        import polars

        return polars.DataFrame(list(rows), orient="row")

    def sparse(rows: Any) -> Any:
        import scipy.sparse

        return scipy.sparse.csr_array(np.array(rows))

    def read(ending: str) -> Callable[[Any, Path], Any]:
        return lambda rows, folder: tulle.BinaryMatrix.read(write_matrix(ending, rows, folder))

    return {
        "lists": frame(lambda rows: [list(row) for row in rows]),
        "numpy": frame(lambda rows: np.array(rows, dtype=bool)),
        "floats": frame(lambda rows: np.array(rows, dtype=float)),
        "pandas": frame(pandas),
        "polars": frame(polars),
        "scipy": frame(sparse),
        **{ending: read(ending) for ending in (".csv", ".csv.gz", ".npy", ".npz", ".mtx")},
    }


def write_matrix(ending: str, rows: Sequence[Sequence[int]], folder: Path) -> Path:
    """Write a matrix in the format of a file's ending."""
    path = folder / f"votes{ending}"
    if ending == ".npy":
        np.save(path, np.array(rows))
    elif ending in (".npz", ".mtx"):
        import scipy.io
        import scipy.sparse

        held = scipy.sparse.coo_array(np.array(rows))
        scipy.sparse.save_npz(path, held) if ending == ".npz" else scipy.io.mmwrite(path, held)
    else:
        write_rows(path, [[f"q{i}" for i in range(len(rows[0]))], *rows])
    return path


def write_rows(path: Path, rows: Iterable[Iterable[Any]]) -> Path:
    """Write a CSV file, gzipped if its name says so."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    packed = text.getvalue().encode()
    path.write_bytes(gzip.compress(packed, mtime=0) if path.suffix == ".gz" else packed)
    return path


def matrix_settings() -> Iterator[Setting]:
    """Yield matrices of yes and no."""
    for reader, open_matrix in matrix_readers().items():
        for name, (unit, variants) in MATRICES.items():
            openers = tuple(partial(open_matrix, rows) for rows in variants)
            plain = reader == "lists" and name.startswith("votes")
            yield Setting("matrix", f"{name}, {reader}", unit, openers, plain)


# --- contributions ------------------------------------------------------------------------------

Trips = Sequence[tuple[Any, str, str, Any]]
TRIPS: Trips = (
    ("ann", "home", "work", 2),
    ("ann", "work", "home", 1.5),
    ("7", "home", "work", 1),
    ("bob", "home", "home", 3),
    ("bob", "home", "home", 4),
)
EVERYWHERE: Trips = tuple(
    ("eve", row, column, 1e300) for row in ("home", "work") for column in ("home", "work")
)
CONTRIBUTIONS: Mapping[str, tuple[Trips, ...]] = {
    "trips": (TRIPS, TRIPS[2:], TRIPS[:3], (*TRIPS, ("12", "work", "work", -5))),
    "one with everything": (TRIPS, (*EVERYWHERE, *TRIPS), (*TRIPS, *EVERYWHERE)),
    "nobody": ((), (("ann", "home", "work", 1),)),
    "all equal": (
        (("1", "home", "home", 0), ("2", "home", "home", 0)),
        (("1", "home", "home", 0),),
    ),
}
GRID: dict[str, Any] = {"rows": ["home", "work"], "columns": ["home", "work"]}
NAMED: dict[str, Any] = {"individual": "who", "row": "from", "column": "to", "weight": "trips"}


def contribution_readers() -> dict[str, Callable[[Trips, Path], Any]]:
    """Return every way in which contributions come in."""
    titles = tuple(NAMED.values())

    def columns(records: Trips) -> dict[str, list[Any]]:
        return {title: [record[i] for record in records] for i, title in enumerate(titles)}

    def typed(records: Trips) -> Any:
        import pyarrow

        kinds = [pyarrow.string()] * 3 + [pyarrow.float64()]
        arrays = [
            pyarrow.array(v, k) for v, k in zip(columns(records).values(), kinds, strict=True)
        ]
        return pyarrow.table(arrays, names=titles)

    def table(make: Callable[[Trips], Any]) -> Callable[[Trips, Path], Any]:
        return lambda records, folder: tulle.Contributions.from_table(
            make(records), **NAMED, **GRID
        )

    def pandas(records: Trips) -> Any:
        import pandas

        return pandas.DataFrame(list(records), columns=list(titles))

    def polars(records: Trips) -> Any:
        import polars

        return polars.from_arrow(typed(records))

    def matrix(records: Trips, folder: Path) -> Any:
        held = np.zeros((2, 2))
        for _, row, column, weight in records[:1]:
            held[GRID["rows"].index(row), GRID["columns"].index(column)] = weight
        return tulle.Contributions.from_matrix(held, protect="row")

    def read(ending: str) -> Callable[[Trips, Path], Any]:
        return lambda records, folder: tulle.Contributions.read(
            write_trips(ending, records, folder), **NAMED, **GRID
        )

    def query(records: Trips, folder: Path) -> Any:
        import duckdb

        connection = duckdb.connect()
        connection.execute(
            'CREATE TABLE trip (who VARCHAR, "from" VARCHAR, "to" VARCHAR, trips DOUBLE)'
        )
        for record in records:
            connection.execute("INSERT INTO trip VALUES (?, ?, ?, ?)", list(record))
        return tulle.Contributions.from_query(
            tulle.Database.connect(connection, owners={"trip": "who"}),
            'SELECT "from", "to", trips FROM trip',
            **GRID,
        )

    return {
        "dictionary": table(columns),
        "arrow": table(typed),
        "pandas": table(pandas),
        "polars": table(polars),
        "matrix": matrix,
        **{ending: read(ending) for ending in (".csv", ".csv.gz", ".parquet")},
        "duckdb": query,
    }


def write_trips(ending: str, records: Trips, folder: Path) -> Path:
    """Write contributions in the format of a file's ending."""
    path = folder / f"trips{ending}"
    if ending == ".parquet":
        import pyarrow
        import pyarrow.parquet

        kinds = [pyarrow.string()] * 3 + [pyarrow.float64()]
        arrays = [pyarrow.array([r[i] for r in records], kind) for i, kind in enumerate(kinds)]
        pyarrow.parquet.write_table(pyarrow.table(arrays, names=tuple(NAMED.values())), path)
        return path
    return write_rows(path, [list(NAMED.values()), *records])


def contribution_settings() -> Iterator[Setting]:
    """Yield contributions."""
    for reader, opened in contribution_readers().items():
        for name, variants in CONTRIBUTIONS.items():
            openers = tuple(partial(opened, records) for records in variants)
            plain = reader == "dictionary" and name in ("trips", "nobody")
            yield Setting("contributions", f"{name}, {reader}", "participant", openers, plain)


# --- tables of people ---------------------------------------------------------------------------

People = Sequence[tuple[Any, ...]]
PEOPLE: People = (
    (31, 1500.5, "no", "north"),
    (58, 4200, "yes", "south"),
    (44, 0, "no", "east"),
    (19, 800, "yes", "north"),
)
TABLES: Mapping[str, tuple[str, tuple[People, ...]]] = {
    "people": (
        "participant",
        (PEOPLE, PEOPLE[1:], PEOPLE[:-1], (*PEOPLE, (90, 1e9, "yes", "east"))),
    ),
    "one person": ("participant", (PEOPLE[:1], (), PEOPLE[:2])),
    "all equal": ("participant", ((PEOPLE[0],) * 3, (PEOPLE[0],) * 2)),
    "people by row": ("row", (PEOPLE, ((90, -1e300, "yes", "south"), *PEOPLE[1:]))),
    "one row": ("row", (PEOPLE[:1], PEOPLE[1:2])),
    "constant columns": ("row", ((PEOPLE[0],) * 3, (PEOPLE[0], PEOPLE[0], PEOPLE[1]))),
}
TITLES = ("age", "income", "smokes", "region")
DECLARED: dict[str, Any] = {
    "bounds": {"age": (18, 90), "income": (0, 5000)},
    "classes": {"smokes": ["no", "yes"], "region": ["north", "south", "east"]},
}


def table_readers() -> dict[str, Callable[[People, Path], Any]]:
    """Return every way in which a table of people comes in."""
    from tulle.models import Table

    def columns(rows: People) -> dict[str, list[Any]]:
        return {title: [row[i] for row in rows] for i, title in enumerate(TITLES)}

    def typed(rows: People) -> Any:
        import pyarrow

        kinds = [pyarrow.float64()] * 2 + [pyarrow.string()] * 2
        arrays = [pyarrow.array(v, k) for v, k in zip(columns(rows).values(), kinds, strict=True)]
        return pyarrow.table(arrays, names=TITLES)

    def table(make: Callable[[People], Any]) -> Callable[[People, Path], Any]:
        return lambda rows, folder: Table(make(rows), **DECLARED)

    def pandas(rows: People) -> Any:
        import pandas

        return pandas.DataFrame(list(rows), columns=list(TITLES))

    def polars(rows: People) -> Any:
        import polars

        return polars.from_arrow(typed(rows))

    def read(rows: People, folder: Path, ending: str) -> Any:
        path = folder / f"people{ending}"
        if ending == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(typed(rows), path)
        else:
            write_rows(path, [TITLES, *rows])
        return Table.read(path, **DECLARED)

    return {
        "dictionary": table(columns),
        "arrow": table(typed),
        "pandas": table(pandas),
        "polars": table(polars),
        **{e: partial(read, ending=e) for e in (".csv", ".csv.gz", ".parquet")},
    }


def table_settings() -> Iterator[Setting]:
    """Yield tables of people."""
    for reader, opened in table_readers().items():
        for name, (unit, variants) in TABLES.items():
            openers = tuple(partial(opened, rows) for rows in variants)
            plain = reader == "dictionary" and name != "all equal"
            yield Setting("table", f"{name}, {reader}", unit, openers, plain)


# --- genotypes ----------------------------------------------------------------------------------

Study = Sequence[tuple[str, int, tuple[int | None, ...]]]
STUDY: Study = (
    ("p1", 1, (0, 2, 1)),
    ("p2", 1, (1, None, 2)),
    ("p3", 0, (0, 0, 1)),
    ("p4", 0, (2, 1, 0)),
)
MISSING_ALL = ("p5", 1, (None, None, None))
STUDIES: Mapping[str, tuple[str, tuple[Study, ...]]] = {
    "a study": ("participant", (STUDY, STUDY[1:], STUDY[:-1], (*STUDY, MISSING_ALL))),
    "one person": ("participant", (STUDY[:1], (), (STUDY[0], STUDY[3]))),
    "all missing": ("participant", ((MISSING_ALL,), (MISSING_ALL, STUDY[0]))),
    "a study by row": ("row", (STUDY, (("p1", 1, (2, 2, 2)), *STUDY[1:]))),
    "nobody carries": (
        "row",
        (
            (("p1", 1, (0, 0, 0)), ("p2", 0, (0, 0, 0))),
            (("p1", 1, (2, 2, 2)), ("p2", 0, (0, 0, 0))),
        ),
    ),
}
SNPS = ("rs1", "rs2", "rs3")


def genotype_readers() -> dict[str, Callable[[Study, Path], Any]]:
    """Return every way in which genotypes come in."""
    from tulle.genomes.data import Genotypes

    def cases(people: Study) -> list[int]:
        return [label for _, label, _ in people]

    def lists(people: Study, folder: Path) -> Any:
        return Genotypes([list(g) for _, _, g in people], cases=cases(people), snps=SNPS)

    def complete(people: Study, folder: Path) -> Any:
        held = [list(g) for _, _, g in people]
        return Genotypes(held, cases=cases(people), snps=SNPS, complete=True)

    def numpy(people: Study, folder: Path) -> Any:
        held = np.array([g for _, _, g in people], dtype=float).reshape(-1, len(SNPS))
        return Genotypes(held, cases=cases(people), snps=SNPS)

    def pandas(people: Study, folder: Path) -> Any:
        import pandas

        held = pandas.DataFrame([g for _, _, g in people], columns=list(SNPS))
        return Genotypes(held, cases=cases(people), snps=SNPS)

    def read(people: Study, folder: Path, write: Callable[[Study, Path], Path]) -> Any:
        labelled = {name: bool(label) for name, label, _ in people}
        return Genotypes.read(write(people, folder), cases=labelled)

    return {
        "lists": lists,
        "complete lists": complete,
        "numpy": numpy,
        "pandas": pandas,
        "csv by person": partial(read, write=write_people),
        "csv by snp": partial(read, write=write_snps),
        "vcf": partial(read, write=write_vcf),
    }


def write_people(people: Study, folder: Path) -> Path:
    """Write one person a line."""
    lines = [[name, *("NA" if g is None else g for g in row)] for name, _, row in people]
    return write_rows(folder / "study.csv", [["person", *SNPS], *lines])


def write_snps(people: Study, folder: Path) -> Path:
    """Write one SNP a line."""
    lines = [
        ["1", 100 + i, snp, "A", "G", *("." if row[i] is None else row[i] for _, _, row in people)]
        for i, snp in enumerate(SNPS)
    ]
    titles = ["chrom", "pos", "id", "ref", "alt", *(name for name, _, _ in people)]
    return write_rows(folder / "study.csv", [titles, *lines])


def write_vcf(people: Study, folder: Path) -> Path:
    """Write a VCF with genotypes."""
    called = {None: "./.", 0: "0/0", 1: "0|1", 2: "1/1"}
    titles = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines = ["##fileformat=VCFv4.2", "\t".join([*titles, *(name for name, _, _ in people)])]
    for i, snp in enumerate(SNPS):
        cells = ["1", str(100 + i), snp, "A", "G", ".", "PASS", ".", "GT"]
        lines.append("\t".join([*cells, *(called[row[i]] for _, _, row in people)]))
    path = folder / "study.vcf"
    path.write_text("\n".join(lines) + "\n")
    return path


def genotype_settings() -> Iterator[Setting]:
    """Yield genotypes."""
    for reader, opened in genotype_readers().items():
        for name, (unit, variants) in STUDIES.items():
            openers = tuple(partial(opened, people) for people in variants)
            plain = reader in ("lists", "complete lists") and name != "all missing"
            yield Setting("genotypes", f"{name}, {reader}", unit, openers, plain)


# --- databases ----------------------------------------------------------------------------------

Staff = Sequence[tuple[Any, ...]]
STAFF: Staff = (
    (1, "ann", 44000.0, "art"),
    (2, "bob", 51000.0, "law"),
    (3, None, None, None),
    (4, "dan", float("nan"), "art"),
)
FRIENDS: Edges = ((1, 2), (2, 3), (1, 3), (3, 4))
NEWCOMER = (5, "eve", 1e300, "it's")
STAFFS: Mapping[str, tuple[tuple[Staff, Edges], ...]] = {
    "staff": (
        (STAFF, FRIENDS),
        (STAFF[1:], ((2, 3), (3, 4))),
        (STAFF[:3], FRIENDS[:3]),
        ((*STAFF, NEWCOMER), (*FRIENDS, *((5, i) for i in range(1, 5)))),
    ),
    "nobody": (((), ()), (STAFF[:1], ())),
}
MAKE_STAFF = (
    "CREATE TABLE person (id INTEGER, name VARCHAR(40), salary DOUBLE PRECISION, dept VARCHAR(40))",
    "CREATE TABLE friend (a INTEGER, b INTEGER)",
)
OWNERS = {"person": "id", "friend": ["a", "b"]}
RANGES = {"person.salary": (0, 100_000)}


def staff_rows(staff: Staff, friends: Edges) -> Iterator[str]:
    """Yield statements that fill the two tables; the same SQL for every engine."""
    for one in staff:
        yield f"INSERT INTO person VALUES ({', '.join(map(_literal, one))})"
    for a, b in friends:
        yield f"INSERT INTO friend VALUES ({a}, {b})"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE PRECISION)"
    return str(value)


def open_duckdb(staff: Staff, friends: Edges, folder: Path) -> Any:
    """Bring in a database in memory."""
    import duckdb

    connection = duckdb.connect()
    for statement in (*MAKE_STAFF, *staff_rows(staff, friends)):
        connection.execute(statement.replace("DOUBLE PRECISION", "DOUBLE"))
    return tulle.Database.connect(connection, owners=OWNERS, ranges=RANGES)


def database_settings() -> Iterator[Setting]:
    """Yield databases in DuckDB; the other engines need a server and are brought by the tests."""
    for name, variants in STAFFS.items():
        openers = tuple(partial(open_duckdb, *rows) for rows in variants)
        yield Setting("database", f"{name}, duckdb", "participant", openers, name == "staff")


# --- relations ----------------------------------------------------------------------------------


def relation_settings() -> Iterator[Setting]:
    """Yield relations: tuples with the participants that they need."""
    from tulle.relations.data import Relation

    def opened(tuples: Sequence[Sequence[int]], weights: Sequence[float], folder: Path) -> Any:
        offsets = np.cumsum([0, *map(len, tuples)])
        members = [one for needed in tuples for one in needed]
        return Relation.conjunctive(offsets, np.array(members, dtype=np.int64), weights)

    joined = ((0, 1), (1, 2), (0, 2), (2,))
    variants = (
        (joined, (1.0, 2.0, 0.5, 4.0)),
        (((0, 1), (1, 2), (0, 2)), (1.0, 2.0, 0.5)),
        (((0, 1),), (1.0,)),
        ((), ()),
    )
    openers = tuple(partial(opened, *records) for records in variants)
    yield Setting("relation", "tuples", "participant", openers, True)


SETTINGS: Mapping[str, Callable[[], Iterator[Setting]]] = {
    "graph": graph_settings,
    "matrix": matrix_settings,
    "contributions": contribution_settings,
    "table": table_settings,
    "genotypes": genotype_settings,
    "database": database_settings,
    "relation": relation_settings,
}

# --- questions ----------------------------------------------------------------------------------


@cache
def questions() -> dict[tuple[str, str], list[Query]]:
    """Return at least one question for every name that the registry knows, by kind and name."""
    from tulle.genomes import allele_counts, chi_squares, p_values, top_snps
    from tulle.models import linear, logistic
    from tulle.relations.queries import total

    halves = [0, 0, 0, 1, 1, 1]
    graph: dict[str, list[Query]] = {
        "edges": [tulle.edges()],
        "triangles": [tulle.triangles(), 3 * tulle.triangles() / tulle.stars(2)],
        "stars": [tulle.stars(2)],
        "k_triangles": [tulle.k_triangles(2)],
        "cliques": [tulle.cliques(4)],
        "degrees": [tulle.degrees()],
        "degree_distribution": [tulle.degree_distribution()],
        "max_degree": [tulle.max_degree()],
        "synthetic_per_node": [tulle.synthetic_per_node()],
        "triangles_per_node": [tulle.triangles_per_node()],
        "triples_per_node": [tulle.triples_per_node()],
        "triangles_at": [tulle.triangles_at(1)],
        "degree_of": [tulle.degree_of(1)],
        "chains": [tulle.chains()],
        "edges_within": [tulle.edges_within(halves)],
        "mixing": [tulle.mixing(halves), tulle.mixing(by="age", groups=[30, 40, 50])],
        "degree_squares": [tulle.degree_squares(halves), tulle.degree_squares()],
        "topology": [tulle.topology()],
        "eigenvalues": [tulle.eigenvalues(2)],
        "spectrum": [tulle.spectrum(1)],
        "low_rank": [tulle.low_rank(1)],
        "clustering": [tulle.clustering(), tulle.clustering(1)],
        "average_clustering": [tulle.average_clustering()],
        "transitivity": [tulle.transitivity()],
        "assortativity": [tulle.assortativity()],
        "modularity": [tulle.modularity(halves)],
        "paths": [tulle.paths(2)],
        "cycles": [tulle.cycles(4)],
        "subgraphs": [tulle.subgraphs("a-b, b-c"), tulle.subgraphs("a-b", where="a.age = b.age")],
        "joint_degrees": [tulle.joint_degrees(4), tulle.joint_degrees(ratio=2)],
        "synthetic": [tulle.synthetic(), tulle.synthetic(model="1k")],
    }
    person = "SELECT COUNT(*) FROM person"
    found: dict[str, dict[str, list[Query]]] = {
        "graph": graph,
        "database": {
            "sql": [
                tulle.sql(person),
                tulle.sql(f"{person} WHERE salary >= 44000 AND name <> 'bob'"),
                tulle.sql("SELECT SUM(salary) FROM person WHERE salary BETWEEN 0 AND 100000"),
                tulle.sql(
                    "SELECT dept, COUNT(*) FROM person GROUP BY dept",
                    groups={"dept": ["art", "law", "it"]},
                ),
                tulle.sql(
                    "SELECT dept, COUNT(*) AS n, AVG(salary) AS mean, STDDEV_SAMP(salary) AS s, "
                    "MEDIAN(salary) AS middle, COUNT_IF(name = 'bob') / COUNT(*) AS share "
                    "FROM person GROUP BY dept HAVING COUNT(*) > -1e9 ORDER BY dept",
                    groups={"dept": ["art", "law", "it"]},
                ),
                tulle.sql(
                    "SELECT dept, COUNT(*) AS n, COUNT(DISTINCT id) AS people FROM person "
                    "GROUP BY dept ORDER BY dept",
                    minimum=2,
                ),
                tulle.sql(
                    "SELECT name, COUNT(DISTINCT id) AS people FROM person GROUP BY name",
                    keys_per_person="private",
                ),
                # People are weighted by how many keys they have.
                tulle.sql(
                    "SELECT dept, COUNT(*) AS n FROM person GROUP BY dept", keys_per_person=9
                ),
                tulle.sql(
                    "SELECT name, salary, AVG(salary) AS mean FROM person GROUP BY name, salary",
                    keys_per_person=1,
                    other=True,
                    top=2,
                ),
                tulle.sql("SELECT MIN(salary) AS least, MAX(salary) AS most FROM person"),
                tulle.sql(
                    "SELECT dept, AVG(LENGTH(name)) AS mean, MAX(salary / 7) AS most FROM person "
                    "GROUP BY dept",
                    groups={"dept": ["art", "law"]},
                    ranges="private",
                ),
                tulle.sql(
                    "SELECT COUNT(*) AS n, AVG(p.salary - q.salary) AS gap "
                    "FROM friend f, person p, person q WHERE f.a = p.id AND f.b = q.id"
                ),
                tulle.sql(
                    "SELECT COUNT(*) FROM friend f, person p, person q "
                    "WHERE f.a = p.id AND f.b = q.id AND p.dept = q.dept"
                ),
                # So many groups that Gaussian noise is chosen.
                tulle.sql(
                    "SELECT p.dept, COUNT(*) FROM friend f, person p, person q "
                    "WHERE f.a = p.id AND f.b = q.id GROUP BY p.dept",
                    groups={"dept": ["art", "law", "it", *"abcdefghijkl"]},
                ),
            ]
        },
        "relation": {"total": [total(), total(signed=True)]},
        "matrix": {"xor": [tulle.xor()]},
        "contributions": {
            "weights": [tulle.weights(bound=2, total=5), tulle.weights(length=3)],
            "block_bounds": [tulle.block_bounds("0.9", [1, 2, 4, 8])],
            "found_cells": [tulle.found_cells(cells_per_person=1, bound=2, other=True)],
            "block_partition": [tulle.block_partition(), tulle.block_partition(3, pieces=64)],
            "participants": [tulle.participants()],
        },
        "genotypes": {
            "allele_counts": [allele_counts(), allele_counts([0, 2])],
            "chi_squares": [chi_squares()],
            "p_values": [p_values([1])],
            "top_snps": [top_snps(2, ratio=1), top_snps(1, by="chi_square", scores=True)],
        },
        "table": {
            "linear": [linear("income"), linear("age", ["income", "region"], norm=1.0)],
            "logistic": [logistic("smokes"), logistic("smokes", ["age"])],
        },
    }
    return {(kind, name): asked for kind, named in found.items() for name, asked in named.items()}


def registered() -> set[tuple[str, str]]:
    """Return the kind and name of every question that the registry knows."""
    return {
        (kind, name) for kind in registry.groups("query") for name in registry.find("query", kind)
    }


def cases(kind: str, *, thorough: bool = False) -> Iterator[Case]:
    """Yield the cases of one kind of data.

    Every question is asked of the plain settings under their unit, at a budget with a delta. Of
    all other readers and datasets one question is asked. If ``thorough``, every question is asked
    of every one, and of the plain settings each mechanism that supports it is named in turn.
    """
    from tulle.core.unit import Unit

    most = None if thorough or kind != "graph" else 1
    asked = [q for (of, _), listed in questions().items() if of == kind for q in listed[:most]]
    for setting in SETTINGS[kind]():
        if not (setting.plain or (thorough and setting.name not in WITH_AGES)):
            one = questions()[kind, setting.asked][-1] if setting.asked else asked[0]
            yield Case(setting.name, setting.unit, setting.variants, one, "1", "1e-6")
            continue
        for query in asked:
            yield Case(setting.name, setting.unit, setting.variants, query, "1", "1e-6")
            if not thorough or not setting.plain:
                continue
            for name, item in registry.mechanisms(kind).items():
                if item.supports(query, Unit.of(setting.unit)):
                    options = dict.fromkeys(item.needs_options, "2")
                    yield Case(
                        setting.name,
                        setting.unit,
                        setting.variants,
                        query,
                        "1",
                        "1e-6",
                        name,
                        options,
                    )
