import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tulle.core.errors import InputError
from tulle.graphs.data import Dropped, Graph
from tulle.graphs.generators import erdos_renyi, social_network

PATH = Graph.from_edges([(0, 1), (1, 2)], nodes=3)


@pytest.fixture
def save(tmp_path):
    def write(content, name="graph.txt"):
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return write


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 2\n",
        "0 1\n1 2",
        "0\t1\n1\t2\n",
        "0,1\n1,2\n",
        "0;1\n1;2\n",
        "0, 1\n1 , 2\n",
        "  0   1  \n\t1 \t 2\n".replace("\t", " "),
        "0 1\r\n1 2\r\n",
        "0 1\r1 2\r",
        "\n\n0 1\n\n1 2\n\n",
        "# a comment\n% another\n// a third\n0 1\n# inside\n1 2\n",
        "\ufeff0 1\n1 2\n",
        "source,target\n0,1\n1,2\n",
        '"source","target"\n0,1\n1,2\n',
        '"ego","alter"\n"0","1"\n"1","2"\n',
        "# SNAP\nFromNodeId\tToNodeId\n0\t1\n1\t2\n",
        "user_id,friend_id\n0,1\n1,2\n",
        '"0","1"\n"1","2"\n',
        "0 1\n1 0\n1 2\n2 2\n",
        "0 1\n1,2\n",
        "ego;alter\n0\t1\n1 2\n",
        "0 1\t\n1\t2 \n",
    ],
)
def test_edge_lists_of_numbers(save, text):
    graph = Graph.read(save(text))
    assert graph == PATH
    assert graph.labels.tolist() == [0, 1, 2]


def test_dropped_lines_are_counted(save):
    assert Graph.read(save("0 1\n1 0\n0 1\n1 2\n2 2\n")).dropped == Dropped(1, 2)


def test_ids_that_occur_are_the_nodes_unless_declared(save):
    file = save("7 3\n3 100\n")
    assert Graph.read(file).labels.tolist() == [3, 7, 100]
    assert Graph.read(file, nodes=101).node_count == 101
    assert Graph.read(save("9000000000000 5\n")).labels.tolist() == [5, 9000000000000]


@pytest.mark.parametrize(
    "text",
    [
        "ann bob\nbob cas\n",
        "ann\tbob\nbob\tcas\n",
        '"ann","bob"\n"bob","cas"\n',
        '"ann" "bob"\n"bob"   cas\n',
    ],
)
@pytest.mark.parametrize("header", ["", "from to\n", "V1,V2\n", '"Person A";"Person B"\n'])
def test_edge_lists_of_names(save, header, text):
    file = save(header + text)
    graph = Graph.read(file, header=bool(header))
    assert graph == PATH
    assert graph.labels.tolist() == ["ann", "bob", "cas"]
    if header == "from to\n":
        # Two usual names of columns: a header, unless it is said that there is none.
        assert Graph.read(file) == graph
        assert Graph.read(file, header=False).node_count == 5
        return
    with pytest.raises(InputError, match=r"not all ids are numbers.*header=True or header=False"):
        Graph.read(file)


def test_quoted_names_hold_delimiters_and_other_alphabets(save):
    graph = Graph.read(
        save('"Doe, Ann","Łukasz; B"\n"Łukasz; B","名 ""x"""\n', "a.csv"), header=False
    )
    assert sorted(graph.labels.tolist()) == sorted(["Doe, Ann", "Łukasz; B", '名 "x"'])
    assert graph.edge_count == 2


def test_numbers_that_are_codes_stay_apart(save):
    assert Graph.read(save("007 7\n7 8\n")).labels.tolist() == [7, 8, "007"]
    assert Graph.read(save("1 2\n3 x\n"), header=False).labels.tolist() == [1, 2, 3, "x"]
    assert Graph.read(save("12345678901234567890 1\n")).labels.tolist() == [1, 12345678901234567890]
    assert Graph.read(save("9" * 5000 + " 1\n")).labels.tolist() == [1, "9" * 5000]


def test_columns(save):
    file = save("id,a,b,weight\n1,0,1,0.5\n2,1,2,0.25\n")
    assert Graph.read(file, columns=("a", "b")) == PATH
    assert Graph.read(file, columns=(1, 2), header=True) == PATH
    with pytest.raises(InputError, match="header=True or header=False"):
        Graph.read(file, columns=(1, 2))
    assert Graph.read(save("0 1 0.5\n1 2 9\n", "b"), ignore=("weights",)) == PATH
    assert Graph.read(save("0,1,x\n1,2,\n", "b"), columns=(0, 1)) == PATH
    assert Graph.read(save("1,0\n2,1\n", "b"), columns=(1, 0)) == PATH
    with pytest.raises(InputError, match="'c'"):
        Graph.read(file, columns=("a", "c"))
    for wrong in [(0,), (0, 0), (0, "a"), (-1, 0), (0, 1, 2), "ab", (0, 1.5), (True, 0)]:
        with pytest.raises(InputError, match="columns="):
            Graph.read(file, columns=wrong)


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ("0 1\n" * 16 + "5\n", {}, "line 17: only 1 field;"),
        ("a b\nc\n", {"header": True}, "line 2: only 1 field;"),
        ("0,1\n", {"columns": (0, 7)}, "line 1: only 2 fields, so there is no column 7"),
        ("a,b\n", {"columns": (2, 1), "header": False}, "line 1: .* there is no column 2"),
        ("0 1 3\n", {}, "line 1: more than two fields.*weighted"),
        ("# x\n0,1\n0,1,\n", {}, "line 3: more than two fields"),
        ("ann bob 3\n", {"header": False}, "line 1: more than two fields"),
        ("0,1\n2,\n", {}, "line 2: a node is missing"),
        ("a,b\n,\n", {"header": True}, "line 2: a node is missing"),
        ("0 1\n2 9\n", {"nodes": 5}, "line 2: an id outside"),
        ("source,target\n0,1\n\n2,9\n", {"nodes": 5}, "line 4: an id outside"),
        ("0 1\na b\n", {"nodes": 5}, "line 2: with nodes=5"),
        ("0 1\n-1 2\n", {}, "line 2: a number that is negative"),
        ("0 1\n1.5 2\n", {}, "line 2: a number that is negative or has a fraction"),
        ('0,1\n"a,b\n', {}, "line 2: a quote is opened"),
        ("a b\n", {"columns": ("a", "b"), "header": False}, "names, which stand in a header"),
        ("a b\n", {"header": 1}, "header=1 must be"),
        ("a b\n", {"delimiter": "ab"}, "one character"),
        (b"0 1\n\xff\xfe\xfa 2\n", {}, "line 2: not UTF-8"),
        (b"a b\n" * 9 + b"\xe9 b\n", {"header": False}, "line 10: not UTF-8"),
        (b"PK\x00\x01\x02", {}, "binary file"),
        ("0 1\n".encode("utf-16"), {}, "UTF-16"),
        ("0 1\n", {"format": "gexf"}, "format='gexf' is not known"),
        ("0 1\n", {"ignore": ("colour",)}, "colour"),
        ("0 1\n", {"nodes": -1}, "nodes must be at least 0"),
        ("0 1\n", {"nodes": 2**31}, "nodes must be at most"),
    ],
)
def test_errors_name_the_line_and_the_reason(save, content, options, reason):
    with pytest.raises(InputError, match=reason):
        Graph.read(save(content), **options)


def test_errors_do_not_echo_records(save):
    with pytest.raises(InputError) as caught:
        Graph.read(save("ann bob\nsecretname\n"))
    assert "secretname" not in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        Graph.read(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="is a folder"):
        Graph.read(tmp_path)


def test_no_edges_with_declared_nodes(save):
    for nothing in ("", "# none\n", "ego,alter\n"):
        assert Graph.read(save(nothing)).node_count == 0
    assert Graph.read(save("# none\n"), nodes=4) == Graph.from_edges([], nodes=4)
    assert Graph.read(save(""), nodes=0).node_count == 0


def test_gzip(save):
    whole = gzip.compress(b"0 1\n1 2\n")
    assert Graph.read(save(whole, "graph.txt.gz")) == PATH
    assert Graph.read(save(whole, "graph.txt")) == PATH
    with pytest.raises(InputError, match="gzip"):
        Graph.read(save(whole[:-6], "graph.csv.gz"))


def test_progress_rises_to_one(save):
    seen = []
    Graph.read(save("0 1\n"), progress=lambda fraction, label: seen.append((fraction, label)))
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0
    assert seen[-1] == (1.0, "done")


def test_pieces_do_not_change_the_answer(save, monkeypatch):
    import tulle.graphs.io.edge_lists as edge_lists

    graph = erdos_renyi(60, 0.3, seed=1)
    file = save("\n".join(f"{u} {v}" for u, v in graph.edges().tolist()))
    for size in (1, 5, 64):
        monkeypatch.setattr(edge_lists, "_PIECE", size)
        assert Graph.read(file, nodes=60) == graph


# --- other formats ---------------------------------------------------------------------------


def test_parquet(tmp_path):
    file = tmp_path / "graph.parquet"
    pq.write_table(pa.table({"a": [0, 1], "b": [1, 2], "w": [1.0, 2.0]}), file)
    assert Graph.read(file, columns=("a", "b")) == PATH
    assert Graph.read(file, columns=(0, 1), nodes=7).node_count == 7
    assert Graph.read(file, ignore=("weights",)) == PATH
    with pytest.raises(InputError, match="3 columns"):
        Graph.read(file)
    with pytest.raises(InputError, match="no column 'z'"):
        Graph.read(file, columns=("a", "z"))
    pq.write_table(pa.table({"a": [0.5, 1], "b": [1.0, 2]}), file)
    with pytest.raises(InputError, match="fractional part"):
        Graph.read(file)
    pq.write_table(pa.table({"a": ["x", "y"], "b": ["y", "z"]}), file)
    assert Graph.read(file).labels.tolist() == ["x", "y", "z"]
    with pytest.raises(InputError, match="whole numbers"):
        Graph.read(file, nodes=3)
    pq.write_table(pa.table({"a": ["x", None], "b": ["y", "z"]}), file)
    with pytest.raises(InputError, match="missing nodes"):
        Graph.read(file)
    file.write_bytes(b"not parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        Graph.read(file)


MATRIX = "%%MatrixMarket matrix coordinate {}\n% a comment\n{}"


def test_matrix_market(save):
    def read(header, body, **options):
        return Graph.read(save(MATRIX.format(header, body), "graph.mtx"), **options)

    assert read("pattern symmetric", "3 3 2\n2 1\n3 2\n") == PATH
    assert read("real symmetric", "3 3 3\n1 1 1.0\n2 1 1\n3 2 1\n") == PATH
    assert read("integer general", "3 3 4\n1 2 1\n2 1 1\n3 2 1\n2 3 1\n") == PATH
    assert read("real symmetric", "3 3 2\n2 1 0.5\n3 2 7\n", ignore=("weights",)) == PATH
    assert read("pattern general", "3 3 2\n1 2\n2 3\n", ignore=("direction",)) == PATH
    with pytest.raises(InputError, match="values other than 0 and 1"):
        read("real symmetric", "3 3 2\n2 1 0.5\n3 2 7\n")
    with pytest.raises(InputError, match="not symmetric"):
        read("pattern general", "3 3 2\n1 2\n2 3\n")
    with pytest.raises(InputError, match="square"):
        read("pattern general", "3 2 1\n1 2\n")
    with pytest.raises(InputError, match="complex"):
        read("complex general", "1 1 1\n1 1 0 1\n")
    with pytest.raises(InputError, match="not valid MatrixMarket"):
        read("pattern symmetric", "3 3 2\n2 x\n")
    with pytest.raises(InputError, match="header"):
        Graph.read(save("3 3 2\n", "graph.mtx"))
    with pytest.raises(InputError, match="states its own nodes"):
        read("pattern symmetric", "3 3 1\n2 1\n", nodes=5)
    with pytest.raises(InputError, match="columns"):
        read("pattern symmetric", "3 3 1\n2 1\n", columns=(0, 1))


GRAPHML = (
    '<?xml version="1.0"?>{}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="d0" for="edge" attr.name="weight" attr.type="double"/>'
    '<graph edgedefault="{}"><node id="a"/><node id="b"/><node id="c"/>{}</graph></graphml>'
)
EDGES = '<edge source="a" target="b"/><edge source="b" target="c"/>'


def test_graphml(save):
    def read(declaration, default, body, **options):
        text = GRAPHML.format(declaration, default, body)
        return Graph.read(save(text, "graph.graphml"), **options)

    graph = read("", "undirected", EDGES)
    assert graph == PATH
    assert graph.labels.tolist() == ["a", "b", "c"]
    assert read("", "directed", EDGES, ignore=("direction",)) == PATH
    with pytest.raises(InputError, match="directed"):
        read("", "directed", EDGES)
    with pytest.raises(InputError, match="directed"):
        read("", "undirected", '<edge source="a" target="b" directed="true"/>')
    weighted = '<edge source="a" target="b"><data key="d0">2</data></edge>'
    with pytest.raises(InputError, match="has weights"):
        read("", "undirected", weighted)
    assert read("", "undirected", weighted, ignore=("weights",)).edge_count == 1
    with pytest.raises(InputError, match="DOCTYPE"):
        read('<!DOCTYPE x [<!ENTITY a "aaaa">]>', "undirected", EDGES)
    with pytest.raises(InputError, match="not declared"):
        read("", "undirected", '<edge source="a" target="z"/>')
    with pytest.raises(InputError, match="hyperedge"):
        read("", "undirected", "<hyperedge/>")
    with pytest.raises(InputError, match="used before"):
        read("", "undirected", '<node id="a"/>')
    with pytest.raises(InputError, match="without source"):
        read("", "undirected", '<edge source="a"/>')
    with pytest.raises(InputError, match="not valid XML"):
        read("", "undirected", "<edge")
    with pytest.raises(InputError, match="no graph"):
        Graph.read(save("<graphml/>", "graph.graphml"))
    with pytest.raises(InputError, match="empty"):
        Graph.read(save("", "graph.graphml"))


def test_graphml_of_other_libraries(tmp_path):
    import networkx as nx

    graph = social_network(60, seed=3)
    nx.write_graphml_xml(graph.to_networkx(), tmp_path / "one.graphml")
    assert Graph.read(tmp_path / "one.graphml") == graph
    graph.to_igraph().write_graphml(str(tmp_path / "two.graphml"))
    again = Graph.read(tmp_path / "two.graphml")
    # igraph calls nodes n0, n1, ..., which are in the order of text: n10 comes before n2.
    numbers = np.array([int(name[1:]) for name in again.labels])
    assert Graph.from_edges(numbers[again.edges()], nodes=60) == graph


# --- writing ---------------------------------------------------------------------------------

SUFFIXES = ["csv", "tsv", "txt", "edges", "csv.gz", "parquet", "mtx", "mtx.gz", "graphml"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_written_files_read_back(tmp_path, suffix):
    graph = erdos_renyi(40, 0.2, seed=2)
    file = tmp_path / f"graph.{suffix}"
    graph.write(file)
    keeps_nodes = suffix.startswith(("mtx", "graphml"))
    assert Graph.read(file, nodes=None if keeps_nodes else 40) == graph


@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "parquet", "graphml"])
@given(
    names=st.lists(st.text("aé名 ,;'&<", min_size=1).map("x{}y".format), min_size=3, unique=True)
)
@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_names_read_back(tmp_path, suffix, names):
    graph = Graph.from_edges([(names[i], names[i + 1]) for i in range(len(names) - 1)])
    file = tmp_path / f"graph.{suffix}"
    graph.write(file)
    written = {"csv": True, "tsv": True, "txt": False}
    again = Graph.read(file, header=written.get(suffix))
    assert again.labels.tolist() == graph.labels.tolist()
    assert again == graph


def test_writing_refuses_what_it_cannot(tmp_path):
    with pytest.raises(InputError, match="format to write"):
        PATH.write(tmp_path / "graph.gexf")
    with pytest.raises(InputError, match="does not exist"):
        PATH.write(tmp_path / "nowhere" / "graph.csv")
    mixed = Graph.from_edges([(1, "1"), ("1", "a")])
    with pytest.raises(InputError, match="the same when written"):
        mixed.write(tmp_path / "graph.graphml")
    with pytest.raises(InputError, match="mixed types"):
        mixed.write(tmp_path / "graph.parquet")


def test_real_files(data_folder):
    graph = Graph.read(data_folder / "1138_bus/1138_bus.mtx", ignore=("weights",))
    again = Graph.read(data_folder / "1138_bus/1138_bus.edges.txt", nodes=1138)
    assert graph == again
    assert np.array_equal(graph.labels, np.arange(1138))
