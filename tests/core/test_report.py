"""Reports: what they say, and what they must not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tulle
from tulle.core.charts import heat_chart, interval_chart, line_chart
from tulle.core.report import outside_report
from tulle.graphs.generators import social_network
from tulle.noise import SeededSource


@pytest.fixture(scope="module")
def friends() -> tulle.Graph:
    return social_network(120, seed=2)


def test_an_outside_report_stands_alone_and_is_small(friends: tulle.Graph, tmp_path: Path) -> None:
    r = tulle.release(friends, tulle.triangles(), unit="edge", epsilon=1)
    page = r.report(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text() == page
    assert not re.search(r"<script|<link|src=\"http|href=\"http|@import|url\(", page)
    assert len(page.encode()) < 1_000_000
    for words in (
        "any one edge",
        "What epsilon means here",
        "How to cite",
        "steep",
        f"{r.value:,}",
    ):
        assert words in page


def test_the_most_that_a_belief_can_change_is_stated(friends: tulle.Graph) -> None:
    page = tulle.release(friends, tulle.edges(), unit="edge", epsilon=1).report()
    # e / (1 + e) and 1 / (1 + e), from a belief of one half.
    assert "at most 73.1%" in page
    assert "at least 26.9%" in page
    two = [tulle.release(friends, tulle.edges(), unit="edge", epsilon=1) for _ in range(2)]
    assert "at most 88.1%" in outside_report(two)


def test_no_truth_reaches_the_outside(friends: tulle.Graph) -> None:
    """Whatever the data, the page is a function of the release alone."""
    r = tulle.release(friends, tulle.stars(2), unit="edge", epsilon=1)
    again = tulle.Release.from_json(r.to_json())
    assert again.report() == r.report()


def test_questions_are_shown_as_text(friends: tulle.Graph) -> None:
    r = tulle.release(friends, tulle.edges(), unit="edge", epsilon=1)
    shown = tulle.Release.from_json({**r.to_json(), "query": "<script>alert(1)</script>"}).report()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_replayable_release_warns(friends: tulle.Graph) -> None:
    r = tulle.release(friends, tulle.edges(), unit="edge", epsilon=1, source=SeededSource(5))
    assert "No guarantee" in r.report()
    assert (
        "No guarantee" not in tulle.release(friends, tulle.edges(), unit="edge", epsilon=1).report()
    )


def test_lists_expressions_and_matrices_are_drawn(friends: tulle.Graph) -> None:
    vector = tulle.release(friends, tulle.degree_distribution(), unit="edge", epsilon=1)
    assert "<polyline" in vector.report()
    ratio = tulle.release(friends, 3 * tulle.triangles() / tulle.stars(2), unit="edge", epsilon=1)
    assert "<circle" in ratio.report()
    votes = tulle.BinaryMatrix([[1, 0, 1], [0, 1, 1]])
    matrix = tulle.release(votes, tulle.xor(), unit="cell", epsilon=1)
    assert "data:image/png;base64," in matrix.report()


def test_the_custodians_page_shows_truth_and_prediction(
    friends: tulle.Graph, tmp_path: Path
) -> None:
    study = tulle.Ledger(tmp_path / "s.ledger").open("f", friends, unit="edge", epsilon=3)
    study.ask(tulle.triangles(), epsilon=1)
    study.ask(tulle.degree_distribution(), epsilon=1)
    page = study.report(tmp_path / "inside.html")
    truth = tulle.triangles().truth(friends)
    assert f"<td>{truth:,}</td>" in page
    assert "must stay with the custodian" in page
    cells = re.findall(r"<td>([^<]*)</td>", page)
    assert len(cells) == 12
    assert cells[9] == "a list of numbers"
    assert float(study.remaining) == 1, "reporting spends nothing"


def test_charts_bear_what_is_odd() -> None:
    assert "no end" in interval_chart(3.0, 1.0, float("inf"))
    assert interval_chart(0.0, 0.0, 0.0).startswith("<svg")
    assert line_chart([float("nan")]) == ""
    assert "<polyline" in line_chart([0.0] * 5)
    picture = heat_chart(np.arange(400 * 300).reshape(400, 300))
    assert len(picture) < 100_000


def test_a_report_of_nothing_says_so() -> None:
    assert "no release" in outside_report([])


def test_a_notebook_shows_plan_release_and_ledger(friends: tulle.Graph, tmp_path: Path) -> None:
    ledger = tulle.Ledger(tmp_path / "n.ledger")
    study = ledger.open("<b>f</b>", friends, unit="edge", epsilon=3)
    release = study.ask(tulle.edges(), epsilon=1)
    for shown in (study.plan(tulle.edges(), epsilon=1), release, ledger):
        page = shown._repr_html_()
        assert page.startswith("<table>")
        assert "<b>f</b>" not in page
    assert "&lt;b&gt;f&lt;/b&gt;" in ledger._repr_html_()
    assert "epsilon = 2" in ledger._repr_html_()
