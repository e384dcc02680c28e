"""``tulle survey``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cli_helpers import SECRET, Run

from tulle.surveys import Form, perturb


@pytest.fixture
def form(run: Run, tmp_path: Path) -> Path:
    ran = run(
        "survey", "form", "form.json", "--ask", "smokes=no,yes", "--ask", "age=5", "--epsilon", "2"
    )
    assert ran.code == 0
    assert "smokes: randomized response at epsilon 1" in ran.out
    assert "epsilon = 2, pure, per client" in ran.out
    return tmp_path / "form.json"


def test_a_client_answers_once(run: Run, form: Path) -> None:
    given = ["--account", "mine.db", "--budget", "3", "--answer", "smokes=yes", "--answer", "age=3"]
    first = run("survey", "respond", form, *given)
    assert first.code == 0
    assert set(json.loads(first.out)) == {"smokes", "age"}
    assert run("survey", "respond", form, *given).out == first.out
    refused = run("survey", "respond", form, *given, "--wave", "2025")
    assert refused.code == 3
    assert "Nothing was sent" in refused.err


def test_shares_are_estimated(run: Run, form: Path, tmp_path: Path) -> None:
    read = Form.from_json(json.loads(form.read_text()))
    answers = {"smokes": np.arange(4000) % 4 == 0, "age": np.arange(4000) % 5}
    reports = perturb(read, {name: np.asarray(a).astype(int) for name, a in answers.items()})
    lines = [
        json.dumps({name: int(column[place]) for name, column in reports.columns.items()})
        for place in range(4000)
    ]
    (tmp_path / "reports.jsonl").write_text("\n".join(lines) + "\n")
    ran = run("survey", "estimate", form, "reports.jsonl", "--of", "smokes", "--level", "0.999999")
    assert ran.code == 0
    assert "yes" in ran.out
    found = run("survey", "estimate", form, "reports.jsonl", "--json").json()
    assert set(found) == {"smokes", "age"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["form", "x.json", "--ask", "smokes", "--epsilon", "1"], "--ask is written"),
        (["form", "x.json", "--ask", "smokes=no", "--epsilon", "1"], "two categories"),
        (["form", "x.json", "--ask", "smokes=no,yes", "--epsilon", "0"], "epsilon"),
        (["estimate", "form.json", "bad.jsonl"], "line 2: not one JSON object"),
        (["estimate", "form.json", "odd.jsonl"], "line 1"),
        (["estimate", "bad.jsonl", "bad.jsonl"], "not a form"),
    ],
)
def test_bad_input_is_refused(
    run: Run, form: Path, tmp_path: Path, arguments: list[str], text: str
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"smokes": 1, "age": 2}\nnonsense\n')
    (tmp_path / "odd.jsonl").write_text('{"smokes": 9, "age": 2}\n')
    ran = run("survey", *arguments)
    assert ran.code == 2
    assert text in ran.err


def test_an_answer_that_is_no_category_stays_out_of_the_message(run: Run, form: Path) -> None:
    given = ["--account", "mine.db", "--budget", "3", "--answer", "age=3"]
    for answer in (f"smokes={SECRET}", SECRET):
        ran = run("survey", "respond", form, *given, "--answer", answer)
        assert ran.code == 2
        assert SECRET not in ran.err
