"""``tulle plan`` and ``tulle ask``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.cli_helpers import Run

from tulle.core.release import Release
from tulle.ledger.ledger import Ledger

EDGE = ("--unit", "edge", "--epsilon", "1")
TRANSITIVITY = "3 * triangles / stars(2)"


def test_plan_prints_offers_and_spends_nothing(run: Run, friends: Path) -> None:
    ran = run("plan", friends, "triangles", *EDGE)
    assert ran.code == 0
    assert "laplace" in ran.out
    assert "it needs a delta above zero" in ran.out
    assert "Nothing is spent." in ran.out
    assert ran.err == ""


def test_plan_json_has_numbers(run: Run, friends: Path) -> None:
    plan = run("plan", friends, TRANSITIVITY, *EDGE, "--delta", "1e-6", "--json").json()
    assert plan["query"] == "3 * triangles() / stars(2)"
    assert plan["spent"] == "0"
    assert plan["half_width_95"] > 0
    assert [part["query"] for part in plan["parts"]] == ["triangles()", "stars(2)"]
    for part in plan["parts"]:
        assert [offer["chosen"] for offer in part["offers"]].count(True) == 1
        assert all(offer["half_width_95"] > 0 for offer in part["offers"])


def test_plan_with_one_mechanism_and_its_option(run: Run, friends: Path) -> None:
    asked = ("plan", friends, "triangles", *EDGE, "--mechanism", "smoothed_ladder", "--json")
    offers = run(*asked, "--option", "spread_share=0.5").json()["offers"]
    assert [offer["mechanism"] for offer in offers] == ["smoothed_ladder"]
    assert offers[0]["median_error"] > run(*asked).json()["offers"][0]["median_error"]


def test_plan_like_a_public_network(run: Run, friends: Path) -> None:
    public = friends.with_stem("public")
    public.write_bytes(friends.read_bytes())
    ran = run("plan", friends, "triangles", *EDGE, "--like", public)
    assert "public stand-in given as --like" in ran.out


def test_the_data_is_not_its_own_stand_in(run: Run, friends: Path) -> None:
    other = friends.with_stem("link")
    other.symlink_to(friends)
    for name in (friends, other):
        for asked, more in (("plan", ()), ("ask", ("--no-ledger",))):
            ran = run(asked, friends, "triangles", *EDGE, "--like", name, *more)
            assert ran.code == 2
            assert "names the data itself" in ran.err


def test_notes_speak_of_options(run: Run, friends: Path) -> None:
    ran = run("plan", friends, "triangles", *EDGE)
    assert "pass --like for your own" in ran.out
    assert "like=" not in ran.out


def test_reading_options(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "weighted.csv"
    file.write_text("id,a,b\n7,0,1\n8,1,2\n9,2,0\n")
    asked = ("plan", file, "edges", *EDGE, "--json")
    assert run(*asked).code == 2
    assert run(*asked, "--columns", "a,b").code == 0
    # Whether words are a header or a link is not guessed.
    assert run(*asked, "--columns", "1,2").code == 2
    assert run(*asked, "--columns", "1,2", "--header").code == 0
    assert run(*asked, "--header", "--ignore", "weights").code == 0
    declared = run(*asked, "--columns", "1,2", "--header", "--nodes", "9").json()
    assert "9 nodes" in declared["public"]


def test_ask_opens_the_account_then_needs_no_budget(run: Run, friends: Path) -> None:
    first = run("ask", friends, "edges", *EDGE, "--ledger", "s.ledger", "--budget", "3", "--json")
    assert first.code == 0
    assert first.json()["account"] == "friends"
    assert first.json()["remaining"] == {"epsilon": "2", "delta": "0"}
    assert not first.json()["asked_before"]
    second = run("ask", friends, TRANSITIVITY, *EDGE, "--ledger", "s.ledger", "--json").json()
    assert second["remaining"]["epsilon"] == "1"
    low, high = second["interval"]["low"], second["interval"]["high"]
    assert low is None or high is None or low <= second["release"]["value"] <= high


def test_ask_again_is_free_unless_paid_for(run: Run, friends: Path) -> None:
    asked = ("ask", friends, "edges", *EDGE, "--ledger", "s.ledger", "--json")
    first = run(*asked, "--budget", "3").json()
    again = run(*asked).json()
    assert again["asked_before"]
    assert again["release"] == first["release"]
    assert again["remaining"] == first["remaining"]
    fresh = run(*asked, "--again").json()
    assert not fresh["asked_before"]
    assert fresh["remaining"]["epsilon"] == "1"
    assert "at no cost" in run(*asked[:-1]).out


def test_ask_writes_the_release(run: Run, friends: Path, tmp_path: Path) -> None:
    out = tmp_path / "release.json"
    ran = run(
        "ask", friends, "degrees", *EDGE, "--ledger", "s.ledger", "--budget", "3", "--out", out
    )
    assert ran.code == 0
    assert "30 numbers" in ran.out
    released = Release.load(out)
    assert len(released.value) == 30
    assert released.debit == Ledger("s.ledger").debits("friends")[0].digest


def test_ask_with_another_account_and_delta(run: Run, friends: Path) -> None:
    ran = run(
        *("ask", friends, "triangles", "--unit", "edge", "--epsilon", "1/2", "--delta", "1e-7"),
        *("--mechanism", "smooth", "--ledger", "s.ledger", "--account", "study"),
        *("--budget", "1", "--budget-delta", "1e-6", "--json"),
    )
    assert ran.json()["account"] == "study"
    assert ran.json()["remaining"] == {"epsilon": "0.5", "delta": "4e-07"}


def test_ask_without_ledger_warns(run: Run, friends: Path) -> None:
    ran = run("ask", friends, "edges", *EDGE, "--no-ledger", "--json")
    assert ran.code == 0
    assert ran.json()["account"] is None
    assert "recorded nowhere" in ran.err
    assert ran.err.count("\n") == 1


def test_ask_without_an_interval(run: Run, friends: Path) -> None:
    asked = ("ask", friends, "triangles", *EDGE, "--no-ledger", "--mechanism", "smoothed_ladder")
    assert "none was bought" in run(*asked, "--option", "spread_share=0").out
    assert run(*asked, "--option", "spread_share=0", "--json").json()["interval"] is None


def test_where_to_book_must_be_said(run: Run, friends: Path) -> None:
    asked = ("ask", friends, "edges", *EDGE)
    assert "--no-ledger" in run(*asked).err
    for wrong in (
        (),
        ("--ledger", "s.ledger", "--no-ledger"),
        ("--no-ledger", "--budget", "1"),
        ("--no-ledger", "--again"),
        ("--ledger", "s.ledger", "--budget-delta", "0.1"),
        ("--ledger", "s.ledger"),
    ):
        assert run(*asked, *wrong).code == 2
        assert not Path("s.ledger").exists()


def test_a_release_that_cannot_be_written_is_refused_before_paying(run: Run, friends: Path) -> None:
    asked = ("ask", friends, "edges", *EDGE, "--ledger", "s.ledger", "--budget", "1", "--out")
    for wrong in (".", "nowhere/release.json"):
        assert run(*asked, wrong).code == 2
        assert not Path("s.ledger").exists()


def test_a_release_that_fails_to_be_written_is_still_shown(
    run: Run, friends: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Release, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Release, "save", full)
    asked = ("ask", friends, "edges", *EDGE, "--ledger", "s.ledger", "--budget", "1", "--json")
    ran = run(*asked, "--out", "r.json")
    assert ran.code == 2
    assert ran.json()["release"]["query"] == "edges()"
    assert "No space left" in ran.err


def test_two_real_processes_share_a_ledger(friends: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tulle.cli.main", "ask", str(friends), *EDGE, "--json"]
    command += ["--ledger", str(tmp_path / "s.ledger"), "--budget", "3"]
    started = [
        subprocess.Popen([*command, question], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for question in ("edges", "stars(2)")
    ]
    for process in started:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        assert out.startswith(b"{")
        assert err == b""
    assert float(Ledger(tmp_path / "s.ledger").remaining("friends")) == 1.0


def test_the_header_is_asked_for_where_ids_are_names(run: Run, tmp_path: Path) -> None:
    asked = ("ask", "net.csv", "edges", "--unit", "edge", "--epsilon", "1", "--no-ledger")
    refusals = set()
    for rows in ("a,b\nb,c\n", "node1,node2\na,b\n", "x,y\n" * 3, "1,2\na,b\n"):
        (tmp_path / "net.csv").write_text(rows)
        ran = run(*asked)
        assert ran.code == 2
        refusals.add(ran.err)
        assert run(*asked, "--header").code == 0
        assert run(*asked, "--no-header").code == 0
    assert len(refusals) == 1
    assert "--header or --no-header" in refusals.pop()
    (tmp_path / "net.csv").write_text("ego,alter\na,b\n")
    assert run(*asked).code == 0
    (tmp_path / "net.csv").write_text("a|b\nb|c\n")
    assert run(*asked, "--no-header", "--delimiter", "|").code == 0
    assert run(*asked, "--no-header", "--delimiter", "tab").code == 2


def test_nodes_can_be_a_file_of_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "people.txt").write_text("".join(f"p{i}\n" for i in range(20)))
    asked = ("plan", "net.csv", "edges", "--no-header", "--nodes", "people.txt", "--epsilon", "1")
    said = []
    for rows in ("p1,p2\n", "", "p3,p4\np1,p2\n", "p1,p2\nstranger,p2\n"):
        (tmp_path / "net.csv").write_text(rows)
        found = [run(*asked, "--unit", unit, "--json") for unit in ("edge", "node")]
        assert [ran.code for ran in found] == [0, 0]
        # A terminal says that somebody else was in the file; what may end in a log does not.
        said.append([ran.out + ran.err for ran in found])
    assert all(words == said[0] for words in said)
    declared = run(*asked, "--unit", "edge", "--json").json()
    assert declared["guarantee"]["assumptions"] == []
    assert declared["public"] == "Public: the set of nodes, as declared with --nodes."


def test_what_is_assumed_about_nodes_is_printed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("1,2\n2,3\n")
    terms = ("net.csv", "edges", "--unit", "edge", "--epsilon", "1")
    for words in (("plan", *terms), ("ask", *terms, "--no-ledger")):
        assert "read off the edges" in " ".join(run(*words).out.split())
        assert "read off the edges" in run(*words, "--json").out
        assert "read off the edges" not in run(*words, "--nodes", "9", "--json").out
