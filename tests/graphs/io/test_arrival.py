"""How graphs arrive: what a reader makes of a file hangs on no other edge and no other node.

Each reader is given a network and all its neighbours, written to files (or held by the graphs of
other libraries) in shuffled order. Who is who, who comes before whom and how the rest was read
must be the same. Broken readers, which number nodes as they appear or look at all labels at once,
are caught by the same checks.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tulle.core.errors import InputError
from tulle.graphs.data import Graph
from tulle.graphs.io import node_sets, reading
from tulle.graphs.io.dates import read_dated, read_days
from tulle.graphs.io.labels import canonical, order_key, ordered
from tulle.graphs.mechanisms.projection import block_counts, moved, projected_degrees
from tulle.graphs.synthesis.edge_counts import order_counts

Edge = tuple[Any, Any]
Reader = Callable[..., Graph]

NUMBERS = ["9", "10", "2", "100", "12345678901234567890", "0"]
MIXED = ["9", "10", "ann", "010", "Zoe", "12345678901234567890"]
TEXT = ["bob", "ann", "Zoe", "b ob", "é", "10a"]


def lines_of(edges: list[Edge], delimiter: str) -> str:
    return "".join(f'"{u}"{delimiter}"{v}"\n' if " " in f"{u}{v}" else f"{u}{delimiter}{v}\n"
                   for u, v in edges)  # fmt: skip


def as_text(suffix: str, delimiter: str, head: str = "") -> Reader:
    def read(edges: list[Edge], folder: Path, **options: Any) -> Graph:
        file = folder / f"net.{suffix}"
        file.write_text(head + lines_of(edges, delimiter))
        return Graph.read(file, header=bool(head), **options)

    return read


def as_parquet(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    columns = {name: [edge[i] for edge in edges] for i, name in enumerate("ab")}
    table = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
    parquet.write_table(table, folder / "net.parquet")
    return Graph.read(folder / "net.parquet", **options)


def as_graphml(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    nx.write_graphml_xml(nx.Graph(edges), folder / "net.graphml")
    return Graph.read(folder / "net.graphml", **options)


def token(label: Any) -> Any:
    """A label as Python code would have it: numbers as numbers."""
    return int(label) if label.isdigit() and (label == "0" or label[0] != "0") else label


def tokens(edges: list[Edge]) -> list[Edge]:
    return [(token(u), token(v)) for u, v in edges]


def declared(options: dict[str, Any]) -> dict[str, Any]:
    return {k: [token(n) for n in v] if k == "nodes" else v for k, v in options.items()}


def as_pairs(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    return Graph.from_edges(tokens(edges), **declared(options))


def as_frame(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    frame = pd.DataFrame(tokens(edges), columns=["a", "b"], dtype=object)
    return Graph.from_edges(frame, **declared(options))


def as_networkx(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    return Graph.from_networkx(nx.Graph(tokens(edges)), **declared(options))


def as_igraph(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    made = igraph.Graph.TupleList(tokens(edges)) if edges else igraph.Graph()
    if not edges:
        made.vs["name"] = []
    return Graph.from_igraph(made, **declared(options))


READERS: dict[str, Reader] = {
    "txt": as_text("txt", " "),
    "csv": as_text("csv", ","),
    "csv with header": as_text("csv", ",", "ego,alter\n"),
    "semicolons": as_text("csv", ";"),
    "tsv": as_text("tsv", "\t"),
    "parquet": as_parquet,
    "graphml": as_graphml,
    "pairs": as_pairs,
    "frame": as_frame,
    "networkx": as_networkx,
    "igraph": as_igraph,
}


def by_appearance(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    """A broken reader: nodes are numbered as they appear."""
    names = list(dict.fromkeys([end for edge in edges for end in edge]))
    names += [name for name in options.get("nodes", ()) if name not in names]
    place = {name: number for number, name in enumerate(names)}
    ends = np.array([[place[u], place[v]] for u, v in edges], dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(ends, labels=[token(name) for name in names])


def by_column(edges: list[Edge], folder: Path, **options: Any) -> Graph:
    """A broken reader: all ids are text once one of them is not a number."""
    names = sorted({end for edge in edges for end in edge} | set(options.get("nodes", ())))
    if all(name.isdigit() for name in names):
        names = sorted(names, key=int)
    place = {name: number for number, name in enumerate(names)}
    ends = np.array([[place[u], place[v]] for u, v in edges], dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(ends, labels=[token(name) for name in names])


TWINS: dict[str, Reader] = {"appearance": by_appearance, "column": by_column}


def network(labels: list[str], seed: int) -> list[Edge]:
    draw = random.Random(seed)
    pairs = [pair for pair in itertools.combinations(labels, 2) if draw.random() < 0.5]
    draw.shuffle(pairs)
    return [pair[::-1] if draw.random() < 0.5 else pair for pair in pairs]


def without(edges: list[Edge], label: str) -> list[Edge]:
    return [edge for edge in edges if label not in edge]


def shared_order(one: Graph, two: Graph) -> bool:
    """Say whether the nodes that two graphs share are in the same order in both."""
    left, right = one.labels.tolist(), two.labels.tolist()
    return [x for x in left if x in set(right)] == [x for x in right if x in set(left)]


def named_edges(graph: Graph) -> set[frozenset[Any]]:
    names = graph.labels.tolist()
    return {frozenset((names[u], names[v])) for u, v in graph.edges().tolist()}


def disorders(reader: Reader, folder: Path, labels: list[str]) -> int:
    """Count the neighbours, edges or nodes removed, that a reader numbers in another order."""
    found = 0
    for seed in range(4):
        edges = network(labels, seed)
        graph = reader(edges, folder)
        smaller = [reader(edges[:i] + edges[i + 1 :], folder) for i in range(len(edges))]
        smaller += [reader(without(edges, label), folder) for label in labels]
        found += sum(not shared_order(graph, other) for other in smaller)
        found += sum(not named_edges(other) <= named_edges(graph) for other in smaller)
    return found


POOLS = {"numbers": NUMBERS, "mixed": MIXED, "text": TEXT}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", READERS)
def test_no_edge_and_no_node_moves_the_others(name: str, pool: str, tmp_path: Path) -> None:
    labels = [label for label in POOLS[pool] if " " not in label or name != "semicolons"]
    assert disorders(READERS[name], tmp_path, labels) == 0


def test_broken_orders_are_caught(tmp_path: Path) -> None:
    assert disorders(by_appearance, tmp_path, NUMBERS) > 0
    assert disorders(by_column, tmp_path, MIXED[:5]) > 0


@pytest.mark.parametrize("name", READERS)
def test_all_readers_agree_who_is_where(name: str, tmp_path: Path) -> None:
    edges = network(MIXED, 3)
    graph = READERS[name](edges, tmp_path, nodes=MIXED)
    expected = as_pairs(edges, tmp_path, nodes=MIXED)
    assert graph == expected
    assert graph.labels.tolist() == [9, 10, 12345678901234567890, "010", "Zoe", "ann"]


@pytest.mark.parametrize("name", READERS)
def test_with_declared_nodes_an_edge_is_all_that_changes(name: str, tmp_path: Path) -> None:
    read = READERS[name]
    for seed in range(3):
        edges = network(MIXED, seed)
        graph = read(edges, tmp_path, nodes=MIXED)
        for i in range(len(edges)):
            other = read(edges[:i] + edges[i + 1 :], tmp_path, nodes=MIXED)
            assert other.labels.tolist() == graph.labels.tolist()
            differing = set(map(tuple, graph.edges())) ^ set(map(tuple, other.edges()))
            assert len(differing) == 1
            assert other.facts("edge") == graph.facts("edge")


@pytest.mark.parametrize("name", READERS)
def test_edges_of_others_are_left_out_and_only_counted(name: str, tmp_path: Path) -> None:
    inside = network(NUMBERS[:4], 1)
    stray = [("9", "ann"), ("ann", "zed")]
    one = READERS[name](inside, tmp_path, nodes=NUMBERS)
    two = READERS[name]([*stray, *inside], tmp_path, nodes=NUMBERS)
    assert one == two
    assert one.labels.tolist() == two.labels.tolist()
    assert (one.dropped.outside, two.dropped.outside) == (0, 2)


# --- mechanisms that go through the nodes in order ----------------------------------------------


def projection_excess(reader: Reader, folder: Path) -> int:
    """Return by how much one node moves the projected counts beyond what their noise covers."""
    worst = -(10**9)
    labels = ["9", "10", "2", "100", "ann", "33", "7", "55"]
    for seed in range(12):
        edges = network(labels, seed)
        graph = reader(edges, folder, nodes=labels)
        for label in labels:
            rest = [other for other in labels if other != label]
            smaller = reader(without(edges, label), folder, nodes=rest)
            for bound in (1, 2, 3, 4):
                one = block_counts(projected_degrees(graph, bound), bound, Fraction(1))
                two = block_counts(projected_degrees(smaller, bound), bound, Fraction(1))
                worst = max(worst, int(np.abs(one - two).sum()) - moved(bound))
    return worst


@pytest.mark.parametrize("name", ["csv", "parquet", "networkx", "igraph", "pairs"])
def test_projection_keeps_its_bound_through_the_reader(name: str, tmp_path: Path) -> None:
    assert projection_excess(READERS[name], tmp_path) <= 0


@pytest.mark.parametrize("name", TWINS)
def test_projection_with_a_broken_order_is_caught(name: str, tmp_path: Path) -> None:
    assert projection_excess(TWINS[name], tmp_path) > 0


def order_moves(reader: Reader, folder: Path) -> int:
    """Return the most that one edge moves what ``auto`` counts along the order of nodes."""
    labels = [str(number) for number in (9, 10, 2, 100, 33, 7, 1, 55)]
    worst = 0
    for seed in range(6):
        edges = network(labels, seed)
        counts = order_counts(reader(edges, folder, nodes=labels), 4)
        for i in range(len(edges)):
            other = reader(edges[:i] + edges[i + 1 :], folder, nodes=labels)
            worst = max(worst, int(np.abs(counts - order_counts(other, 4)).sum()))
    return worst


def test_what_auto_counts_in_order_moves_by_one(tmp_path: Path) -> None:
    assert order_moves(READERS["csv"], tmp_path) == 1
    assert order_moves(READERS["networkx"], tmp_path) == 1
    assert order_moves(by_appearance, tmp_path) > 1


# --- labels -------------------------------------------------------------------------------------


def test_the_order_of_two_labels_hangs_on_these_two() -> None:
    pool = [0, 1, 10, 9, 2**70, -3, 0.5, "1", "01", "a", "Z", "", b"a", (1, "a"), (1, 2), ("a",)]
    for size in (2, 3, 5):
        for some in itertools.islice(itertools.combinations(pool, size), 400):
            everything = ordered(pool)
            assert ordered(some) == [label for label in everything if label in some]
    keys = [order_key(label) for label in ordered(pool)]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(pool)


MOMENT = pd.Timestamp("2020-01-01")
ODD_LABELS = (
    *(0, -0.0, True, 0.5, float("inf"), -float("inf"), float("nan"), 2**53, 2.0**53, 2**53 + 1),
    *(10**400, np.int8(1), np.float16(0.1), np.float64("nan"), np.longdouble(1), 1j, Decimal(1)),
    *("", "1", "01", "\ud800", "a\0", "a", "A", "é", "e\u0301", np.str_("a"), b"", b"\xff"),
    *(np.bytes_(b"a"), bytearray(b"a"), (), (1,), (1.0,), ("a", 1), ((1,),), (b"a",), (None,)),
    *((float("nan"),), (pd.NaT,), (MOMENT,), (MOMENT.date(),), (MOMENT, 1), frozenset(), None),
    *(MOMENT, MOMENT.date(), MOMENT.to_pydatetime(), MOMENT + pd.Timedelta(1), pd.NaT, pd.NA),
    *(pd.Timestamp.max, pd.Timestamp("2020-01-01", tz="UTC"), pd.Timedelta(1), pd.Period("2020")),
    *(np.datetime64("NaT"), np.datetime64("2020-01-01"), np.timedelta64(1), UUID(int=2**127)),
    *(datetime.max, date.min, Ellipsis, range(3), object),
)


def without_a_place(labels: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return pairs of different labels of which neither comes first."""
    return [
        (one, two)
        for one, two in itertools.product(labels, repeat=2)
        if (order_key(one) < order_key(two)) + (order_key(two) < order_key(one)) != (one != two)
    ]


def test_every_label_has_its_place_among_all_others() -> None:
    """One that compares with nothing would let the order of others follow from where it stands."""
    accepted = []
    for label in ODD_LABELS:
        with contextlib.suppress(InputError):
            accepted.append(canonical(label))
    assert len(accepted) > 35
    assert without_a_place(accepted) == []
    assert len(without_a_place([MOMENT, pd.NaT])) > 1
    days = pd.date_range("2020-01-01", periods=12).tolist()
    with pytest.raises(InputError, match="missing"):
        Graph.from_edges([*itertools.pairwise(days[::-1]), (days[5], pd.NaT)])


def test_equal_labels_are_one_node_however_they_are_written() -> None:
    same = [1, 1.0, True, np.int8(1), np.float32(1), np.bool_(True), np.uint64(1)]
    assert {canonical(label) for label in same} == {1}
    assert all(type(canonical(label)) is int for label in same)
    for one, two in itertools.permutations(same, 2):
        graph = Graph.from_edges([(one, "x"), (two, "y")])
        assert graph.labels.tolist() == [1, "x", "y"]
        assert [type(label) for label in graph.labels] == [int, str, str]
    assert Graph.from_edges([("1", 1), ("01", 1)]).labels.tolist() == [1, "01", "1"]
    assert Graph.from_edges([(True, False), (2, 3)]).labels.tolist() == [0, 1, 2, 3]
    assert Graph.from_edges([(True, False)]).labels.tolist() == [0, 1]
    assert Graph.from_edges([(2**63, 1), (0, 2.0)]).labels.tolist() == [0, 1, 2, 2**63]


def test_a_label_that_no_file_can_hold_is_refused_before_anything_is_paid() -> None:
    for label in ("\ud800", (1, "a\udfff"), np.str_("\ud800")):
        with pytest.raises(InputError, match="half of a letter") as caught:
            Graph.from_edges([("a", label)])
        assert caught.value.__context__ is None


def test_labels_without_an_order_are_refused() -> None:
    for label in (object(), 1j, None, float("nan"), frozenset([1])):
        with pytest.raises(InputError):
            Graph.from_networkx(nx.Graph([("a", label)]) if label is not None else [("a", label)])
        with pytest.raises(InputError):
            Graph.from_edges([("a", label)])
    with pytest.raises(InputError, match="same name"):
        Graph.from_igraph(igraph.Graph([(0, 1)], vertex_attrs={"name": ["a", "a"]}))


# --- files: what is inferred --------------------------------------------------------------------


def told(read: Callable[[], Graph]) -> Any:
    """Return what a reader makes of a file, without the edges: who is in it, or the error."""
    try:
        graph = read()
    except InputError as error:
        return str(error)
    return graph.labels.tolist(), dict(graph.facts("edge")), graph.assumptions("edge")


SHAPES = [
    (delimiter, head, comment)
    for delimiter in (" ", ",", ";", "\t")
    for head in ("", "ego,alter\n", "V1\tV2\n", '"a" "b"\n')
    for comment in ("", "# made by hand\n\n")
]


def file_of(edges: list[Edge], shape: tuple[str, str, str], folder: Path, end: str) -> Path:
    delimiter, head, comment = shape
    file = folder / "net.txt"
    file.write_bytes((comment + head + lines_of(edges, delimiter)).replace("\n", end).encode())
    return file


def neighbours_of(edges: list[Edge]) -> list[list[Edge]]:
    labels = {end for edge in edges for end in edge}
    fewer = [edges[:i] + edges[i + 1 :] for i in range(len(edges))]
    fewer += [without(edges, label) for label in labels]
    shuffled = [random.Random(1).sample(edges, len(edges))]
    return [edges, *fewer, *shuffled, [*edges, *edges[:1]], [*edges, *edges, *edges]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_files_of_numbers_are_read_alike(end: str, tmp_path: Path) -> None:
    pool = ["9", "10", "2", "007", "12345678901234567890"]
    for shape in SHAPES:
        for edges in ([("9", "10")], [("9", "9")], network(pool, 2)):
            said = [
                told(lambda: Graph.read(file_of(some, shape, tmp_path, end), nodes=pool))  # noqa: B023
                for some in neighbours_of(edges)
            ]
            assert all(words == said[0] for words in said)
            if shape[1] in ("", "ego,alter\n"):
                assert said[0][0] == [2, 9, 10, 12345678901234567890, "007"]
            else:  # nodes may be called so: whether it is a header has to be said
                assert "header=True or header=False" in str(said[0])


def test_files_of_names_are_refused_in_one_way_until_the_header_is_said(tmp_path: Path) -> None:
    """A single row as well: only usual names of columns, from a fixed list, are a header unsaid."""
    refusals = set()
    for shape in SHAPES:
        for edges in (network(TEXT[:3], 2), network(MIXED, 2), [("ann", "1"), ("2", "3")]):
            for some in neighbours_of(edges):
                if all(u.isdigit() and v.isdigit() for u, v in some):
                    continue
                file = file_of(some, shape, tmp_path, "\n")
                head = bool(shape[1])
                if shape[1] == "ego,alter\n":
                    # The first line says by itself that it is no edge.
                    assert Graph.read(file) == Graph.read(file, header=True)
                else:
                    refusals.add(told(lambda: Graph.read(file)))  # noqa: B023
                alike = told(lambda: Graph.read(file, header=head, nodes=MIXED + TEXT[:3]))  # noqa: B023
                assert alike[0] == ordered([token(x) for x in {*MIXED, *TEXT[:3]}])
    assert len(refusals) == 1
    assert "header=True or header=False" in refusals.pop()


def test_whether_there_is_a_header_hangs_on_no_edge(tmp_path: Path) -> None:
    """With declared nodes, and for numbers: what is said is the same whichever edges are left."""
    for nodes, edges in (
        (["ann", "bob", "7"], [("ann", "bob"), ("bob", "7"), ("7", "7")]),
        (9, [("1", "2"), ("2", "3")]),
        ([1, 2, 3], [("1", "2"), ("2", "3")]),
    ):
        for head in ("", "source,target\n", "FromNodeId,ToNodeId\n", "ann,cas\n", "node1,node2\n"):
            said = set()
            for count in range(len(edges) + 1):
                for some in itertools.permutations(edges, count):
                    file = tmp_path / "net.csv"
                    file.write_text(head + "".join(f"{u},{v}\n" for u, v in some))
                    found = told(lambda: Graph.read(file, nodes=nodes))  # noqa: B023
                    said.add(found if isinstance(found, str) else "read")
            assert len(said) == 1
            usual = head.startswith(("source", "From"))
            plain = not head and nodes != ["ann", "bob", "7"]
            assert (said == {"read"}) == (usual or plain)


def test_a_header_in_a_file_of_nodes_is_nobody_wherever_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "people.txt"
    lines = ["user_id", "ann", "node1", "7"]
    for some in itertools.permutations(lines):
        file.write_text("\n".join(some))
        graph = Graph.from_edges([], nodes=file)
        assert graph.labels.tolist() == [7, "ann", "node1"]


def test_each_line_has_its_own_delimiter_and_no_line_changes_another(tmp_path: Path) -> None:
    file = tmp_path / "net.txt"
    odd = ['"x, y";z', "p\tq r", "s,t u", "v w", '"a;b" c']
    for count in range(1, len(odd) + 1):
        for lines in itertools.permutations(odd, count):
            file.write_text("\n".join(lines))
            found = named_edges(Graph.read(file, header=False))
            expected = {
                '"x, y";z': ("x, y", "z"),
                "p\tq r": ("p", "q r"),
                "s,t u": ("s", "t u"),
                "v w": ("v", "w"),
                '"a;b" c': ("a;b", "c"),
            }
            assert found == {frozenset(expected[line]) for line in lines}


PIECES = (
    *("1", "2", "31", "0", "9" * 17, "9" * 19, str(2**63 - 1), "\n", "\n", "\n"),
    *("007", "+1", "-1", "1_0", "1.0", "1e3", "\u0661", "\u00b2", "a", "ann,bob", "source,target"),
    *(" ", " ", ",", ",", ";", "\t", "|", '"', "'", "#", "%", "//", "/", "\\", "\r", "\x00"),
    *("\x0b", "\x0c", "\x1c", "\x1f", "\x7f", "\x85", "\xa0", "\u2003", "\u2028", "\ufeff"),
    *(b"\xff", b"\xc2", b"\xed\xa0\x80", "\xe9", "x" * 30, '"a;b"', '"' + "y" * 140_000 + '"'),
)
"""Parts of plain lines, and whatever a parser may take for something else."""

PLAIN = ("1", "2", "31", " ", ",", "\n")


def random_lines(draw: random.Random, mark: str) -> bytes:
    """Return lines, most of them almost plain: digits, a delimiter, digits, and something odd."""
    lines = []
    for _ in range(draw.randrange(1, 5)):
        if draw.random() < 0.1:
            mark = draw.choice([",", " ", "\t", ";", "|"])
        line: list[str | bytes] = [draw.choice("123"), mark, draw.choice("123")]
        for _ in range(draw.choice([0, 0, 1, 2])):
            line.insert(draw.randrange(len(line) + 1), draw.choice(draw.choice([PLAIN, PIECES])))
        if draw.random() < 0.2:
            line += [mark, draw.choice(PIECES)]
        if draw.random() < 0.2:
            line += [draw.choice(PIECES)]
        lines.append(b"".join(x if isinstance(x, bytes) else x.encode() for x in line))
    return draw.choice([b"\n", b"\n", b"\r\n"]).join(lines) + draw.choice([b"", b"\n"])


def random_options(draw: random.Random) -> dict[str, Any]:
    options = {
        "header": draw.choice([None, True, False]),
        "delimiter": draw.choice([None, None, ",", "\t", " ", "|", "\x0c", "/", "-"]),
        "nodes": draw.choice([None, None, 9, 40, [1, 2, 31], ["1", "ann", "2"]]),
        "bad_records": draw.choice(["refuse", "drop"]),
    }
    more = draw.choice([{}, {"ignore": "weights"}, {"columns": (0, 1)}, {"columns": (1, 0)}])
    return options | more


def told_of_all(file: Path, options: dict[str, Any]) -> Any:
    """Return all that a reader makes of a file: the edges, what was dropped, or the error."""
    try:
        graph = Graph.read(file, **options)
    except InputError as error:
        return str(error)
    return graph.labels.tolist(), named_edges(graph), graph.dropped, graph.assumptions("edge")


def disagreements(file: Path, monkeypatch: pytest.MonkeyPatch, files: int) -> tuple[int, int]:
    """Count the files that are read otherwise line by line, and those that are read at all."""
    from tulle.graphs.io.edge_lists import EdgeList

    draw = random.Random(5)
    differ = read = 0
    for _ in range(files):
        options = random_options(draw)
        file.write_bytes(random_lines(draw, options["delimiter"] or draw.choice(", \t;")))
        quick = told_of_all(file, options)
        with monkeypatch.context() as patch:
            patch.setattr(EdgeList, "_parse_numbers", lambda *_: None)
            slow = told_of_all(file, options)
        differ += quick != slow
        read += not isinstance(quick, str) and quick[1] != set()
    return differ, read


def test_the_quick_parser_agrees_with_the_careful_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of them reads a line follows from the other lines, so that it must not matter."""
    differ, read = disagreements(tmp_path / "net.txt", monkeypatch, 1500)
    assert differ == 0
    assert read > 400


def test_a_quick_parser_that_takes_odd_lines_for_plain_ones_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tulle.graphs.io import number_parser

    def hasty(text: Any, begin: int, stop: int, *rest: Any) -> tuple[int, int]:
        plain = text.copy()
        plain[plain > 127] = ord(" ")  # whatever is no ASCII is blank
        return parse(plain, begin, stop, *rest)

    parse = number_parser.parse_pairs
    monkeypatch.setattr(number_parser, "parse_pairs", hasty)
    assert disagreements(tmp_path / "net.txt", monkeypatch, 600)[0] > 10


# --- tables of people and of dated edges --------------------------------------------------------


def people_of(file: Path) -> Counter[str]:
    return Counter(map(repr, node_sets.read_names(file)))


def rows_of(file: Path) -> Counter[str]:
    return Counter(map(repr, zip(*node_sets.read_table(file).values(), strict=True)))


def dated_of(file: Path) -> Counter[str]:
    pairs, times = read_dated(file, "day", None, ["from", "to"], None, None)
    return Counter(map(repr, zip(pairs.tolist(), read_days(times).tolist(), strict=True)))


def at_once(file: Path) -> Counter[str]:
    """A broken reader: a quote may run on to the next line, and a mark counts on the first."""
    text = file.read_bytes().decode("utf-8-sig", "replace")
    return Counter(map(repr, csv.reader(io.StringIO(text, newline=""))))


BY_LINE: dict[str, tuple[str, str, int, Callable[[Path], Counter[str]]]] = {
    "names": ("people.txt", "", 1, people_of),
    "first column": ("people.csv", "name", 1, people_of),
    "attributes": ("people.csv", "name,dept", 2, rows_of),
    "tabs": ("people.tsv", "name\tdept", 2, rows_of),
    "dated": ("edges.csv", "from,to,day", 3, dated_of),
}
ODD_CELLS = (
    *(one for one in PIECES if len(one) < 40),
    "node",
    "2026-01-05",
    b"\xff\xfe",
    b"\x1f\x8b",
    "",
)


def read_together(
    folder: Path, form: str, read: Callable[[Path], Counter[str]] | None = None
) -> tuple[int, int]:
    """Count the files whose lines are read otherwise than each by itself, and all that are read."""
    name, head, columns, reader = BY_LINE[form]
    file, draw, read = folder / name, random.Random(11), read or reader
    mark = b"\t" if name.endswith("tsv") else b","
    differ = total = 0

    def found(lines: list[bytes]) -> Counter[str]:
        file.write_bytes(end.join([*([head.encode()] if head else []), *lines]) + end)
        return read(file)

    for _ in range(300):
        end = draw.choice([b"\n", b"\r\n", b"\r"])
        lines = []
        for _ in range(draw.randrange(1, 5)):
            cells: list[str | bytes] = [draw.choice(["1", "ann", "01"])] * columns
            cells[2:] = ["2026-01-05"] * (columns - 2)
            if draw.random() < 0.5:
                cells[draw.randrange(columns)] = draw.choice(ODD_CELLS)
            lines.append(mark.join(x if isinstance(x, bytes) else x.encode() for x in cells))
            if draw.random() < 0.1:
                lines[-1] = "\ufeff".encode() + lines[-1]
        try:
            together = found(lines)
        except InputError:
            continue
        total += 1
        try:
            differ += together != sum((found([line]) for line in lines), Counter())
        except InputError:
            differ += 1
    return differ, total


@pytest.mark.parametrize("form", BY_LINE)
def test_no_line_of_a_table_changes_how_another_is_read(form: str, tmp_path: Path) -> None:
    differ, total = read_together(tmp_path, form)
    assert differ == 0
    assert total > 80


@pytest.mark.parametrize("form", ["names", "first column"])
def test_a_reader_of_all_lines_at_once_is_caught(form: str, tmp_path: Path) -> None:
    assert read_together(tmp_path, form, at_once)[0] > 10


# --- declared nodes -----------------------------------------------------------------------------


@pytest.fixture
def people(tmp_path: Path) -> dict[str, Any]:
    names = ["ann", "bob", "7", "zed"]
    (tmp_path / "people.txt").write_text("# everybody\n" + "\n".join(names) + "\n")
    (tmp_path / "people.csv").write_text(
        "who,age\n" + "".join(f"{n},{i}\n" for i, n in enumerate(names))
    )
    parquet.write_table(pa.table({"who": names, "age": [1, 2, 3, 4]}), tmp_path / "people.parquet")
    return {
        "list": names,
        "array": np.array(names),
        "text file": tmp_path / "people.txt",
        "name of a file": str(tmp_path / "people.csv"),
        "parquet file": tmp_path / "people.parquet",
        "pandas": pd.DataFrame({"who": names, "age": 3}),
        "series": pd.Series(names),
        "polars": pl.DataFrame({"who": names}),
        "arrow": pa.table({"who": names}),
        "columns": {"who": names, "age": [1, 2, 3, 4]},
    }


def test_nodes_are_declared_in_many_forms(tmp_path: Path, people: dict[str, Any]) -> None:
    file = tmp_path / "net.csv"
    file.write_text("ann,7\n")
    for form, nodes in people.items():
        graph = Graph.read(file, header=False, nodes=nodes)
        assert graph.labels.tolist() == [7, "ann", "bob", "zed"], form
        assert graph.edge_count == 1
        assert graph.assumptions("edge") == graph.assumptions("node") == ()


def test_without_declared_nodes_every_guarantee_says_so(tmp_path: Path) -> None:
    for name, read in READERS.items():
        graph = read(network(MIXED, 1), tmp_path)
        (edge,), (node,) = graph.assumptions("edge"), graph.assumptions("node")
        assert "read off the edges" in edge, name
        assert "read off the edges" in node
        assert edge != node
    for made in (
        Graph.from_edges([(0, 1)], nodes=3),
        Graph.from_scipy(np.array([[0, 1], [1, 0]])),
        Graph.from_edges([(0, 1)], labels=["ann", "bob"]),
    ):
        assert made.assumptions("edge") == ()


# --- readers that guess from the records --------------------------------------------------------


def guess_header(file: Path) -> Graph:
    """A broken reader: a first row whose names never recur is taken for a header."""
    first, *rest = [line.split(",") for line in file.read_text().splitlines()] or [[]]
    recurs = any(name in row for row in rest for name in first)
    return Graph.read(file, header=not recurs)


def guess_delimiter(file: Path) -> Graph:
    """A broken reader: all lines have the delimiter of the first."""
    first = next(iter(file.read_text().splitlines()), "")
    return Graph.read(file, header=False, delimiter=";" if ";" in first else ",")


def misread(read: Callable[[Path], Graph], folder: Path) -> int:
    """Count the files in which an edge that others leave alone is lost or read otherwise."""
    file = folder / "net.csv"
    found = 0
    for seed in range(5):
        edges = [*network(TEXT[:3], seed), ("p;q", "r"), ("s", "t")]
        for some in neighbours_of(edges):
            file.write_text(
                "".join(f'"{u}","{v}"\n' if ";" in u else f"{u},{v}\n" for u, v in some)
            )
            try:
                found += named_edges(read(file)) != {frozenset(edge) for edge in some}
            except InputError:
                found += 1
    return found


def test_guesses_from_the_records_are_caught(tmp_path: Path) -> None:
    assert misread(lambda file: Graph.read(file, header=False), tmp_path) == 0
    assert misread(guess_header, tmp_path) > 0
    assert misread(guess_delimiter, tmp_path) > 0


# --- lines that are no records ------------------------------------------------------------------

ODD_LINES = (
    *(
        b"x",
        b"1",
        b"1,",
        b",2",
        b"1,2,3",
        b"ann,bob",
        b"-1,2",
        b"1.5,2",
        b"99,1",
        b'"1,2',
        b'1","2',
    ),
    *(
        b"\xff,1",
        b"1,\xff",
        b"1,2\x00",
        b"\xed\xa0\x80,1",
        b"01,2",
        b"source,target",
        b"1;2",
        b"1 2",
    ),
    *(
        b"1,2 # a",
        b"9" * 2000 + b",1",
        b"\x0b",
        b"\xe2\x80\xa8",
        b"1e3,2",
        b"\xd9\xa1,2",
        b"1,1",
        b",",
        b"\xef\xbb\xbf4,1",
        b"\xff\xfe,1",
        b"\xfe\xff",
        b"\x1f\x8b",
        b"\x1f\x8b\x08\x00,1",
    ),
)
WAYS_TO_DROP = (
    {},
    {"header": False},
    {"nodes": 9},
    {"nodes": [1, 2, 3, 4]},
    {"header": True},
    {"columns": (0, 1)},
    {"delimiter": ","},
)


def changed_by_a_line(folder, how, lines):
    """Return the odd lines that make reading fail or change an edge of other lines."""
    path, found = folder / "edges.csv", []
    top = [b"a,b"] if how.get("header") else []

    def edges(body):
        path.write_bytes(b"\n".join([*top, *body]) + b"\n")
        graph = Graph.read(path, **how)
        names = graph.labels.tolist()
        return {frozenset((names[u], names[v])) for u, v in graph.edges().tolist()}

    base = [b"1,2", b"3,4", b"2,3"]
    known = edges(base)
    for odd in lines:
        try:
            alone = edges([odd]) if "drop" in how.values() else set()
            more = [edges([*base[:place], odd, *base[place:]]) for place in range(4)]
        except InputError:
            found.append(odd)
            continue
        if not all(known <= one <= known | alone for one in more):
            found.append(odd)
    return found


@pytest.mark.parametrize("how", WAYS_TO_DROP, ids=str)
def test_lines_that_are_dropped_change_nothing_else(tmp_path, how):
    assert changed_by_a_line(tmp_path, {**how, "bad_records": "drop"}, ODD_LINES) == []


def test_a_reader_that_refuses_for_one_line_is_caught(tmp_path):
    for how in WAYS_TO_DROP[:3]:
        assert len(changed_by_a_line(tmp_path, how, ODD_LINES)) > 10


def test_a_line_that_decides_how_the_file_is_opened_is_caught(tmp_path, monkeypatch):
    """A file that begins like another kind, or has a byte order mark, is one by its first line."""
    monkeypatch.setattr(reading, "_load", lambda file, report, drop: by_the_first_line(file))
    found = changed_by_a_line(tmp_path, {"header": False, "bad_records": "drop"}, ODD_LINES)
    assert {odd[:2] for odd in found} == {b"\xef\xbb", b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b"}


def by_the_first_line(file):
    data = file.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b"):
        raise InputError("not a text in UTF-8")
    return data.removeprefix(b"\xef\xbb\xbf")


def test_dropping_is_total_and_counted(tmp_path):
    """Also where the only row is words: it is no edge, with it or without it."""
    path = tmp_path / "edges.csv"
    for body, bad in ((b"ann,bob\n", 1), (b"", 0), (b"1,2\nx\n\xff,1\n1,2,3\n", 3)):
        path.write_bytes(body)
        graph = Graph.read(path, nodes=3, bad_records="drop")
        assert (graph.node_count, graph.dropped.bad) == (3, bad)
    assert "3 lines without two nodes left out" in graph.what_was_read()
    with pytest.raises(InputError, match="must be 'refuse' or 'drop'"):
        Graph.read(path, bad_records="skip")
    with pytest.raises(InputError, match="is for edge lists"):
        Graph.read(path, format="mtx", bad_records="drop")
    with pytest.raises(InputError, match="is for edge lists"):
        Graph.read(path, columns=["a", "b"], time="day", bad_records="drop")
