"""``tulle ask``: how answers and errors read on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.cli_helpers import Run

from tulle.cli.common import in_options


def write_star(path: Path, leaves: int = 60) -> None:
    path.write_text("".join(f"0,{leaf}\n" for leaf in range(1, leaves + 1)))


def test_a_one_sided_interval_is_not_written_as_plus_or_minus(run: Run, tmp_path: Path) -> None:
    write_star(tmp_path / "star.csv")
    asked = ("ask", "star.csv", "edges", "--unit", "node", "--epsilon", "2", "--no-ledger")
    ran = run(*asked)
    assert ran.code == 0
    assert "at least" in ran.out
    assert "±" not in ran.out
    assert "what anybody has beyond it was cut" in " ".join(ran.out.split())
    found = run(*asked, "--json").json()
    assert found["interval"]["high"] is None
    assert "may be larger" in found["not_in_the_interval"]


def test_a_kept_answer_says_from_when_it_is(run: Run, tmp_path: Path) -> None:
    write_star(tmp_path / "star.csv")
    asked = ("ask", "star.csv", "edges", "--unit", "edge", "--epsilon", "1")
    asked += ("--ledger", "s.ledger", "--budget", "1")
    first = run(*asked)
    assert "kept answer" not in first.out
    day = json.loads(run(*asked, "--json").out)["date"]
    assert f"Asked on {day}: this is the kept answer, at no cost." in run(*asked).out


def test_csv_has_names(run: Run, tmp_path: Path) -> None:
    write_star(tmp_path / "star.csv", 4)
    asked = ("ask", "star.csv", "triangles_per_node", "--unit", "edge", "--epsilon", "1")
    assert run(*asked, "--no-ledger", "--out", "t.csv").code == 0
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "node,value,low,high"
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "1", "2", "3", "4"]


def test_attributes_are_read_and_missing_ones_cost_nothing(run: Run, tmp_path: Path) -> None:
    write_star(tmp_path / "star.csv", 4)
    (tmp_path / "people.csv").write_text("name,dept\n0,a\n1,a\n2,a\n3,b\n4,b\n")
    asked = ("ask", "star.csv", "subgraphs('a-b', where='a.dept = b.dept')", "--unit", "edge")
    asked += ("--epsilon", "40", "--ledger", "s.ledger", "--budget", "50")
    refused = run(*asked)
    assert refused.code == 2
    assert "--attributes FILE, a table with a column 'dept'" in refused.err
    assert not (tmp_path / "s.ledger").exists()
    ran = run(*asked, "--attributes", "people.csv", "--json")
    assert ran.json()["release"]["value"] == 2


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("Pick columns=(0, 1).", "Pick --columns 0,1."),
        ("columns=['a', 'b'] are", "--columns a,b are"),
        ('ignore=("weights", "direction")', "--ignore weights --ignore direction"),
        ("unit='edge' or unit=", "--unit 'edge' or --unit"),
        ("delimiter=' ' stands", "--delimiter ' ' stands"),
        ("header=False", "--no-header"),
        ("epsilon=0.5.", "--epsilon 0.5."),
        ("columns=(0, x)", "--columns (0, x)"),
        (
            "Give attributes with graph.with_attributes(nodes={'dept': values}).",
            "Give attributes with --attributes FILE, a table with a column 'dept'.",
        ),
    ],
)
def test_errors_are_in_the_shells_own_syntax(python: str, shell: str) -> None:
    assert in_options(python) == shell


def test_a_question_that_lacks_an_argument_says_how_it_is_written(run: Run, tmp_path: Path) -> None:
    write_star(tmp_path / "star.csv")
    ran = run("ask", "star.csv", "stars", "--unit", "edge", "--epsilon", "1", "--no-ledger")
    assert ran.code == 2
    assert "which is written stars(k)." in ran.err
