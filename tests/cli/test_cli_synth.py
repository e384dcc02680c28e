"""``tulle synth`` and ``tulle compare``."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import SECRET, Run

from tulle.core.release import Release
from tulle.graphs.data import Graph
from tulle.graphs.synthesis.model import regenerate

EDGE = ("--unit", "edge", "--epsilon", "1", "--model", "1k")


def test_synth_writes_the_graph_and_its_release(run: Run, friends: Path, tmp_path: Path) -> None:
    ran = run("synth", friends, *EDGE, "--out", "made.csv", "--no-ledger")
    assert ran.code == 0, ran.err
    assert "made.csv.release.json" in ran.out
    release = Release.load(tmp_path / "made.csv.release.json")
    made = Graph.read(tmp_path / "made.csv")
    assert made.edge_count == release.value.edge_count
    assert all(SECRET in str(name) for name in made.labels)
    assert regenerate(release).node_count == 30


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


@pytest.mark.parametrize("other", ["a,b\n", "0,1\n"])
def test_compare_copes_with_other_names(run: Run, friends: Path, other: str) -> None:
    Path("other.csv").write_text(other)
    rows = run("compare", friends, "other.csv", "--json").json()["rows"]
    assert next(r for r in rows if r["question"] == "nodes")["made"] == 2
