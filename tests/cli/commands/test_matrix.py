"""``tulle matrix``: contributions and matrices of yes and no, as a user would ask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array, save_npz
from tests.cli.cli_helpers import SECRET, Run

from tulle.core.release import Release

TERMS = ("--unit", "participant", "--epsilon", "1")
COLUMNS = ("--individual", "who", "--row", "from", "--column", "to", "--rows", "3")
WEIGHTS = "weights(bound=3, total=10)"


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    generator = np.random.default_rng(1)
    cells = generator.integers(0, 3, (900, 2)).tolist()
    lines = [f"{SECRET}-{k % 60},{a},{b},{k % 4}" for k, (a, b) in enumerate(cells)]
    file = tmp_path / "trips.csv"
    file.write_text("who,from,to,times\n" + "\n".join(lines) + "\n")
    return file


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    file = tmp_path / "votes.csv"
    rows = np.random.default_rng(2).integers(0, 2, (40, 6))
    np.savetxt(file, rows, delimiter=",", fmt="%d", header="a,b,c,d,e,f", comments="")
    return file


def test_plan_and_ask_about_contributions(run: Run, trips: Path, tmp_path: Path) -> None:
    plan = run("matrix", "plan", trips, WEIGHTS, *TERMS, *COLUMNS, "--json")
    assert plan.code == 0, plan.out
    assert plan.json()["offers"][0]["median_error"] > 0
    asked = ("matrix", "ask", trips, WEIGHTS, *TERMS, *COLUMNS, "--ledger", "m.ledger")
    first = run(
        *asked, "--budget", 2, "--positive", "--whole", "--save", "t.csv", "--out", "r.json"
    )
    assert first.code == 0, first.err
    assert "trips in m.ledger" in first.out
    saved = np.loadtxt(tmp_path / "t.csv", delimiter=",")
    assert saved.shape == (3, 3)
    assert (saved == np.rint(saved)).all()
    release = Release.load(tmp_path / "r.json")
    assert release.parameters["post_processing"] == ["positive", "whole"]
    assert release.value.tolist() == saved.tolist()
    # Post-processing is no new question.
    again = run(*asked, "--low-rank", "auto", "--save", "t.npy")
    assert "at no cost" in again.out
    assert np.load(tmp_path / "t.npy").shape == (3, 3)


def test_a_matrix_that_fails_to_be_saved_is_still_shown(
    run: Run, trips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, value: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tulle.cli.commands.matrix._write", full)
    asked = ("matrix", "ask", trips, WEIGHTS, *TERMS, *COLUMNS, "--ledger", "m.ledger")
    ran = run(*asked, "--budget", 2, "--save", "t.csv", "--json")
    assert ran.code == 2
    assert ran.json()["release"]["mechanism"]
    assert "No space left" in ran.err


def test_weights_names_and_a_reference(run: Run, trips: Path, tmp_path: Path) -> None:
    named = ("--individual", "who", "--row", "from", "--column", "to", "--weight", "times")
    (tmp_path / "places").write_text("0\n1\n2\n")
    listed = run("matrix", "plan", trips, WEIGHTS, *TERMS, *named, "--rows", "@places")
    assert listed.code == 0, listed.err
    others = trips.with_name("public.csv")
    others.write_bytes(trips.read_bytes())
    public = run(
        *("matrix", "plan", trips, "weights(blocks=1)", *TERMS, *named),
        *("--rows", "0,1,2", "--reference", others, "--like", others, "--json"),
    )
    for name in ("--reference", "--like"):
        own = run("matrix", "plan", trips, WEIGHTS, *TERMS, *named, "--rows", "0,1,2", name, trips)
        assert own.code == 2
        assert f"{name} names the data itself" in own.err
    assert public.code == 0, public.out
    assert public.json()["half_width_95"] > 0
    fewer = run("matrix", "plan", trips, WEIGHTS, *TERMS, *named, "--rows", "2")
    assert fewer.code == 2
    assert "not in the declared grid" in fewer.err.replace("\n", " ")
    dropped = run(
        "matrix", "plan", trips, WEIGHTS, *TERMS, *named, "--rows", "2", "--outside", "drop"
    )
    assert dropped.code == 0, dropped.err


def test_contributions_in_a_database(run: Run, trips: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="the extra tulle[sql] is not installed")
    (tmp_path / "city.toml").write_text(
        'url = "duckdb://"\n[owners]\ntrip = "who"\n[tables]\ntrip = "trips.csv"\n'
        '[types.trip]\nfrom = "INT"\nto = "INT"\ntimes = "DOUBLE"\n'
    )
    select = 'SELECT "from", "to", times FROM trip'
    asked = ("matrix", "ask", "city.toml", WEIGHTS, *TERMS, "--select", select, "--rows", "3")
    ran = run(*asked, "--ledger", "m.ledger", "--budget", "1", "--json")
    assert ran.code == 0, ran.out
    assert ran.json()["account"] == "city"
    assert ran.json()["release"]["value"]["shape"] == [3, 3]


def test_yes_and_no_from_every_kind_of_file(run: Run, votes: Path, tmp_path: Path) -> None:
    bits = np.loadtxt(votes, delimiter=",", skiprows=1, dtype=int)
    np.save(tmp_path / "votes.npy", bits)
    save_npz(tmp_path / "votes.npz", coo_array(bits))
    np.savetxt(tmp_path / "bare.csv", bits * 5, delimiter=",", fmt="%d")
    cases = (("votes.csv",), ("votes.npy",), ("votes.npz",), ("bare.csv", "--no-header"))
    for name, *more in cases:
        limit = ("--threshold", "5") if name == "bare.csv" else ()
        ran = run(
            *("matrix", "ask", name, "xor", "--unit", "row", "--epsilon", "3", "--no-ledger"),
            *("--save", "v.csv", *more, *limit),
        )
        assert ran.code == 0, ran.err
        released = np.loadtxt(tmp_path / "v.csv", delimiter=",")
        assert released.shape == bits.shape
        assert set(np.unique(released)) <= {0, 1}
    general = run(
        "matrix", "plan", votes, "xor('general', pi=[[-1]])", "--unit", "cell", *TERMS[2:]
    )
    assert general.code == 2
    assert "pi has 1 row" in general.err


def test_cells_that_nobody_listed(run: Run, trips: Path) -> None:
    asked = ("found_cells(cells_per_person=2, bound=1, other='rest')", *TERMS, *COLUMNS[:6])
    plan = run("matrix", "plan", trips, *asked, "--delta", "1e-6")
    assert plan.code == 0, plan.err
    assert "A cell is seen with 95 % chance from" in plan.out.replace("\n", " ")
    answer = run("matrix", "ask", trips, *asked, "--delta", "1e-6", "--no-ledger")
    assert answer.code == 0, answer.err
    assert "rest" in answer.out
    without = run("matrix", "plan", trips, *asked)
    assert without.code == 2
    assert "--delta" in without.err


def test_bad_usage_says_what_to_write(run: Run, trips: Path, votes: Path, tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text(f"a,b\n{SECRET},2\n")
    cells = ("--unit", "cell", "--epsilon", "1")
    wrong = {
        (
            "matrix",
            "plan",
            trips,
            WEIGHTS,
            *TERMS,
            *COLUMNS[:6],
        ): "have no grid. Declare",
        ("matrix", "plan", trips, WEIGHTS, *TERMS, "--columns", "3"): "--columns goes with --rows",
        ("matrix", "plan", trips, WEIGHTS, *TERMS, "--rows", "3"): "missing: --individual, --row",
        ("matrix", "plan", "no.toml", WEIGHTS, *TERMS, *COLUMNS): "--select",
        ("matrix", "plan", votes, "xor", "--unit", "edge", "--epsilon", "1"): "participant",
        ("matrix", "plan", votes, "xor", *cells, "--rows", "3"): "--unit participant",
        ("matrix", "plan", votes, "xor", *cells, "--reference", trips): "--unit participant",
        ("matrix", "plan", trips, WEIGHTS, *TERMS, *COLUMNS, "--threshold", "1"): "row or cell",
        ("matrix", "plan", "words.csv", "xor", *cells): "holds numbers",
        ("matrix", "plan", trips, "weights()", *TERMS, *COLUMNS): "how much one individual",
        ("matrix", "plan", trips, "nothing", *TERMS, *COLUMNS): "no question",
    }
    for arguments, words in wrong.items():
        ran = run(*arguments)
        assert ran.code == 2, arguments
        assert words in ran.err.replace("\n", " "), (arguments, ran.err)
    asked = ("matrix", "ask", votes, "xor", *cells, "--no-ledger")
    for more in (("--positive",), ("--save", "v.txt"), ("--save", "no/v.csv")):
        assert run(*asked, *more).code == 2
    totals = ("matrix", "ask", trips, WEIGHTS, *TERMS, *COLUMNS, "--no-ledger")
    assert run(*totals, "--low-rank", "few").code == 2


def test_units_of_other_data_are_refused_by_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("a,b\n1,0\n0,1\n")
    ran = run("matrix", "ask", "votes.csv", "xor", "--unit", "edge", "--epsilon", 1, "--no-ledger")
    assert ran.code == 2
    assert "participant, row, cell" in ran.err
    answered = run(
        "matrix", "ask", "votes.csv", "xor", "--unit", "row", "--epsilon", 1, "--no-ledger"
    )
    assert "it has none" in answered.out
