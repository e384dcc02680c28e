"""How results look on a terminal."""

from __future__ import annotations

import numpy as np
import pytest

import tulle
from tulle.cli.output import error_figure, figure, interval_json, present, rows

GRAPH = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=5)
ASKED = {"unit": "edge", "epsilon": 1.0}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1234567, "1,234,567"),
        (1234.5678, "1,235"),
        (0.123456789, "0.12346"),
        (np.array([1, 2]), "2 numbers: 1, 2"),
        (np.zeros(9, dtype=np.int64), "9 numbers: 0, 0, 0, 0, 0, 0, 0, 0, …"),
        (np.zeros(0), "0 numbers"),
    ],
)
def test_numbers_are_written_for_people(value: object, written: str) -> None:
    assert figure(value) == written


def test_errors_have_two_digits_unless_they_are_large() -> None:
    assert [error_figure(one) for one in (0.0123, 1.26, 12345.6)] == ["0.012", "1.3", "12,346"]


def test_a_release_is_printed_with_what_is_added(capsys: pytest.CaptureFixture[str]) -> None:
    release = tulle.release(GRAPH, tulle.edges(), **ASKED)
    present(release, {"account": "friends in s.ledger"})
    shown = capsys.readouterr().out
    assert "edges()" in shown
    assert "friends in s.ledger" in shown
    assert rows(release) is None
    ends = interval_json(release)
    assert ends is not None
    assert ends["low"] <= release.value <= ends["high"]


def test_several_numbers_are_listed_below(capsys: pytest.CaptureFixture[str]) -> None:
    present(tulle.release(GRAPH, tulle.degrees(), **ASKED))
    assert "guarantee" in capsys.readouterr().out
    assert rows(tulle.release(GRAPH, tulle.degrees(), **ASKED)) is not None
