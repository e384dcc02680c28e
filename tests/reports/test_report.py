"""Reports: what they say, and what they must not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tulle
from tulle.graphs.generators import social_network
from tulle.noise import SeededSource
from tulle.reports.charts import heat_chart, interval_chart, line_chart
from tulle.reports.report import public_report


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
        "smoothed_ladder",
        f"{r.value:,}",
    ):
        assert words in page


def test_the_most_that_a_belief_can_change_is_stated(friends: tulle.Graph) -> None:
    page = tulle.release(friends, tulle.edges(), unit="edge", epsilon=1).report()
    # e / (1 + e) and 1 / (1 + e), from a belief of one half.
    assert "at most 73.1%" in page
    assert "at least 26.9%" in page
    two = [tulle.release(friends, tulle.edges(), unit="edge", epsilon=1) for _ in range(2)]
    assert "at most 88.1%" in public_report(two)


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
    # In words beside the formula, with what is hidden, what the terms mean and how to cite.
    for words in (
        "hides <b>any one link</b>",
        "How many triangles does the network have",
        "the release is off by",
        "Its numbers are off by",
        "<i>pure</i>: a guarantee with delta = 0",
        "To cite the release",
    ):
        assert words in page
    assert not re.search(r"&lt;|array\(|Fraction|object at", page)


def _lines(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(<td>.*?)</tr>", page)
    return [re.findall(r"<td>([^<]*)</td>", row) for row in rows]


def test_the_truth_of_a_database_is_found_again(tmp_path: Path) -> None:
    rows = [f"{i % 40},{'ab'[i % 2]},{i % 7}" for i in range(200)]
    (tmp_path / "orders.csv").write_text("\n".join(["who,city,price", *rows]) + "\n")
    shop = tulle.Database.connect(
        "duckdb://", owners={"orders": "who"}, tables={"orders": str(tmp_path / "orders.csv")}
    )
    study = tulle.Ledger(tmp_path / "s.ledger").open("shop", shop, unit="participant", epsilon=9)
    study.ask(tulle.sql("SELECT count(*) FROM orders WHERE price > 3"), epsilon=1)
    by_city = "SELECT city, count(*) FROM orders GROUP BY city"
    study.ask(tulle.sql(by_city, groups={"city": ["a", "b"]}), epsilon=1)
    study.ask(tulle.sql("SELECT count(*) FROM orders", dialect="postgres"), epsilon=1)
    other = tulle.sql(by_city, groups={"city": ["a", "b"]}, dialect="postgres")
    study.ask(other, epsilon=1)
    lines = _lines(study.report())
    assert [line[3] for line in lines] == ["84", "2 rows: city, COUNT(*)", "200", "–"]
    assert float(lines[1][4]) >= 0
    # The text leaves the dialect out: it would be another question.
    assert "questions=[" in study.report()
    complete = study.report(questions=[other])
    assert _lines(complete)[3][3] == "2 rows: city, COUNT(*)"
    assert "questions=[" not in complete


def test_the_truth_of_matrices_is_shown_when_the_question_is_given(tmp_path: Path) -> None:
    ledger = tulle.Ledger(tmp_path / "m.ledger")
    votes = tulle.BinaryMatrix([[1, 0, 1], [0, 1, 1]])
    study = ledger.open("votes", votes, unit="cell", epsilon=40)
    study.ask(tulle.xor(), epsilon=30)
    assert _lines(study.report())[0][3:5] == ["a table of numbers", "0"]
    moves = tulle.Contributions.from_matrix([[2.0, 0.0], [1.0, 3.0]], protect="edge")
    study = ledger.open("moves", moves, unit="participant", epsilon=40)
    bound = np.array([[2.0, 1.0], [1.0, 3.0]])
    asked = tulle.weights(bound=bound)
    study.ask(asked, epsilon=30)
    assert _lines(study.report())[0][3] == "–"
    assert _lines(study.report(questions=[asked]))[0][3] == "a table of numbers"
    # Another question of the same kind is not taken for it.
    assert _lines(study.report(questions=[tulle.weights(bound=3.0)]))[0][3] == "–"


def test_charts_bear_what_is_odd() -> None:
    assert "no end" in interval_chart(3.0, 1.0, float("inf"))
    assert interval_chart(0.0, 0.0, 0.0).startswith("<svg")
    assert line_chart([float("nan")]) == ""
    assert "<polyline" in line_chart([0.0] * 5)
    picture = heat_chart(np.arange(400 * 300).reshape(400, 300))
    assert len(picture) < 100_000


def test_a_report_of_nothing_says_so() -> None:
    assert "no release" in public_report([])


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
