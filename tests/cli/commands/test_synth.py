"""``tulle synth`` and ``tulle compare``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.cli_helpers import SECRET, Run

from tulle.core.release import Release
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.graph import SyntheticGraph
from tulle.graphs.synthesis.model import regenerate

EDGE = ("--unit", "edge", "--epsilon", "1", "--model", "1k")


def test_synth_writes_the_graph_and_its_release(run: Run, friends: Path, tmp_path: Path) -> None:
    ran = run("synth", friends, *EDGE, "--out", "made.csv", "--no-ledger")
    assert ran.code == 0, ran.err
    assert "made.csv.release.json" in ran.out
    release = Release.load(tmp_path / "made.csv.release.json")
    made = Graph.read(tmp_path / "made.csv")
    assert made.edge_count == release.value.edge_count
    assert all(isinstance(name, int) for name in made.labels.tolist())
    assert regenerate(release).node_count == 30


def test_a_graph_that_fails_to_be_written_is_still_shown(
    run: Run, friends: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: SyntheticGraph, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SyntheticGraph, "write", full)
    ran = run("synth", friends, *EDGE, "--out", "made.csv", "--ledger", "s.ledger", "--budget", "1")
    assert ran.code == 2
    assert "No space left" in ran.err
    assert "synthetic('1k')" in ran.out
    assert Release.load(tmp_path / "made.csv.release.json").value.edge_count >= 0


@pytest.mark.parametrize("model", ["topm", "response", "communities"])
def test_names_are_given_when_they_are_asked_for(
    run: Run, friends: Path, tmp_path: Path, model: str
) -> None:
    asked = ("synth", friends, "--unit", "edge", "--epsilon", "20", "--model", model)
    assert run(*asked, "--names", "--out", "made.csv", "--no-ledger").code == 0
    release = Release.load(tmp_path / "made.csv.release.json")
    assert sorted(release.value.labels) == sorted(Graph.read(friends).labels)
    made = Graph.read(tmp_path / "made.csv", header=True, nodes=release.value.labels)
    assert made.edge_count == release.value.edge_count
    assert all(SECRET in name for name in made.labels)
    assert regenerate(release).labels.tolist() == release.value.labels.tolist()
    assert run(*asked, "--out", "plain.csv", "--no-ledger").code == 0
    assert SECRET not in (tmp_path / "plain.csv").read_text()
    assert SECRET not in (tmp_path / "plain.csv.release.json").read_text()


@pytest.mark.parametrize("model", ["auto", "1k", "2k", "2.5k", "kronecker"])
def test_names_are_refused_where_nobody_is_known(run: Run, friends: Path, model: str) -> None:
    ran = run("synth", friends, "--unit", "edge", "--epsilon", "20", "--model", model, "--names",
              "--out", "made.csv", "--ledger", "s.ledger", "--budget", "20")  # fmt: skip
    assert ran.code == 2
    assert "does not know who is who" in ran.err
    assert not Path("made.csv").exists()
    assert not Path("s.ledger").exists()


@pytest.fixture
def schools(friends: Path, tmp_path: Path) -> Path:
    """Who goes to which of three schools; friendships do not follow them."""
    names = Graph.read(friends).labels.tolist()
    lines = [f"{name},{'abc'[place % 3]}" for place, name in enumerate(names)]
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["name,school", *lines]) + "\n")
    return file


def test_a_public_column_is_kept(run: Run, friends: Path, schools: Path, tmp_path: Path) -> None:
    asked = ("synth", friends, "--unit", "edge", "--epsilon", "20", "--attributes", schools)
    ran = run(*asked, "--partition", "school", "--out", "made.csv", "--no-ledger")
    assert ran.code == 0, ran.err
    release = Release.load(tmp_path / "made.csv.release.json")
    assert release.mechanism == "synthetic_communities"
    assert "3 parts" in release.query
    assert SECRET not in (tmp_path / "made.csv.release.json").read_text()
    # As many links within schools as there are, or nearly.
    place = [int(part) for part in release.parameters["partition"].split(",")]
    within, true = (
        sum(place[a] == place[b] for a, b in graph.edges().tolist())
        for graph in (release.value, Graph.read(friends))
    )
    assert abs(within - true) <= 10


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--partition", "age"), "no column 'age' of nodes. Columns: school"),
        (("--partition", "school", "--model", "1k"), "does not keep a public partition"),
    ],
)
def test_a_partition_that_cannot_be_kept_costs_nothing(
    run: Run, friends: Path, schools: Path, more: tuple[str, ...], said: str
) -> None:
    ran = run("synth", friends, "--unit", "edge", "--epsilon", "20", "--attributes", schools,
              *more, "--out", "made.csv", "--ledger", "s.ledger", "--budget", "20")  # fmt: skip
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert not Path("made.csv").exists()


def test_synth_is_booked_and_asked_before_is_free(run: Run, friends: Path) -> None:
    asked = ("synth", friends, *EDGE, "--out", "made.csv", "--ledger", "s.ledger", "--json")
    first = run(*asked, "--budget", "2").json()
    assert first["remaining"]["epsilon"] == "1"
    second = run(*asked).json()
    assert second["asked_before"]
    assert second["release"]["value"] == first["release"]["value"]
    third = run(*asked[:-1], "--again", "--json").json()
    assert third["remaining"]["epsilon"] == "0"
    assert run(*asked, "--again").code == 3


def test_synth_refuses_before_it_pays(run: Run, friends: Path) -> None:
    for out in ("made.xyz", "nowhere/made.csv"):
        ran = run("synth", friends, *EDGE, "--out", out, "--ledger", "s.ledger", "--budget", "2")
        assert ran.code == 2
    assert not Path("s.ledger").exists()
    ran = run("synth", friends, "--unit", "edge", "--epsilon", "1", "--model", "3k",
              "--out", "made.csv", "--no-ledger")  # fmt: skip
    assert ran.code == 2
    assert "2.5k" in ran.err
    ran = run("synth", friends, *EDGE, "--option", "colour=red", "--out", "m.csv", "--no-ledger")
    assert ran.code == 2
    assert "form" in ran.err
    node = ("--unit", "node", "--epsilon", "1", "--model", "1k")
    assert run("synth", friends, *node, "--out", "m.csv", "--no-ledger").code == 2


def test_synth_takes_options_of_the_model(run: Run, friends: Path) -> None:
    ran = run("synth", friends, *EDGE, "--option", "form=sequence", "--out", "m.mtx",
              "--no-ledger", "--json")  # fmt: skip
    assert ran.json()["release"]["parameters"]["form"] == "sequence"
    assert Graph.read("m.mtx").node_count == 30


def matrix_market(nodes: int, edges: list[tuple[int, int]]) -> str:
    """A file that knows its nodes even without edges."""
    head = f"%%MatrixMarket matrix coordinate pattern symmetric\n{nodes} {nodes} {len(edges)}\n"
    return head + "".join(f"{v + 1} {u + 1}\n" for u, v in edges)


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        (0, []),
        (1, []),
        (2, []),
        (2, [(0, 1)]),
        (20, [(3, 7)]),
        (20, [(0, leaf) for leaf in range(1, 20)]),
        (9, [(u, v) for v in range(9) for u in range(v)]),
        (100_000, [(u, 99_999 - u) for u in range(10)]),
    ],
    ids=["nobody", "one node", "two apart", "two", "one edge", "star", "complete", "large"],
)
def test_synth_makes_do_with_any_graph(
    run: Run, tmp_path: Path, nodes: int, edges: list[tuple[int, int]]
) -> None:
    (tmp_path / "odd.mtx").write_text(matrix_market(nodes, edges))
    asked = ("synth", "odd.mtx", "--unit", "edge", "--epsilon", "1", "--no-ledger")
    assert run(*asked, "--out", "made.mtx").code == 0
    assert Graph.read("made.mtx").node_count == nodes
    assert Release.load(tmp_path / "made.mtx.release.json").value.node_count == nodes


@pytest.mark.parametrize(
    ("epsilon", "model", "advice"),
    [
        ("1e-6", "communities", "at least"),
        ("1e-6", "2k", "at least"),
        ("1e6", "1k", "at most 10,000"),
        ("1", "response", "Ask for counts"),
    ],
)
def test_synth_says_what_would_do(
    run: Run, tmp_path: Path, epsilon: str, model: str, advice: str
) -> None:
    (tmp_path / "odd.mtx").write_text(matrix_market(100_000, [(0, 1)]))
    ran = run("synth", "odd.mtx", "--unit", "edge", "--epsilon", epsilon, "--model", model,
              "--out", "made.mtx", "--ledger", "s.ledger", "--budget", "10000")  # fmt: skip
    assert ran.code == 2
    assert advice in ran.err
    assert not Path("made.mtx").exists()


@pytest.mark.parametrize("content", ["", "# nobody\n", "ego,alter\n"])
def test_an_empty_edge_list_is_a_network_of_nobody(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "empty.csv").write_text(content)
    asked = ("synth", "empty.csv", "--unit", "edge", "--epsilon", "1", "--no-ledger")
    assert run(*asked, "--out", "made.mtx").code == 0
    assert Graph.read("made.mtx").node_count == 0
    assert run(*asked, "--nodes", "5", "--out", "made.mtx").code == 0
    assert Graph.read("made.mtx").node_count == 5


def test_compare_prints_a_table(run: Run, friends: Path) -> None:
    run("synth", friends, *EDGE, "--out", "made.csv", "--no-ledger")
    ran = run("compare", friends, "made.csv", "--figure", "both.png")
    assert ran.code == 0
    assert "average clustering" in ran.out
    assert "not for publication" in ran.out
    assert Path("both.png").exists()
    rows = run("compare", friends, "made.csv", "--json").json()["rows"]
    found = {row["question"]: row for row in rows}
    assert found["nodes"]["score"] == 0
    assert 0 <= found["communities"]["score"] <= 1


@pytest.mark.parametrize("other", ["a,b\nc,a\n", "90,1\n2,1\n"])
def test_compare_copes_with_other_names(run: Run, friends: Path, other: str) -> None:
    Path("other.csv").write_text(other)
    rows = run("compare", friends, "other.csv", "--no-made-header", "--json").json()["rows"]
    assert next(r for r in rows if r["question"] == "nodes")["made"] == 3


def test_per_node_a_graph_is_made_of_counts(run: Run, friends: Path, tmp_path: Path) -> None:
    asked = ("synth", friends, "--unit", "node", "--epsilon", "8", "--out", "made.csv")
    ran = run(*asked, "--ledger", "s.ledger", "--budget", "8")
    assert ran.code == 0, ran.err
    release = Release.load(tmp_path / "made.csv.release.json")
    assert release.query == "synthetic_per_node()"
    assert len(release.parts) == 4
    assert SECRET not in (tmp_path / "made.csv").read_text()
    refused = run(*asked, "--no-ledger", "--names")
    assert refused.code == 2
    assert "no models and no names" in refused.err
