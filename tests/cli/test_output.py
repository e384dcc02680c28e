"""How results look on a terminal."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

import tulle
from tulle.cli.common import print_json, printer, warn
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


CONTROLS = "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066]))


def test_no_name_commands_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys and columns are chosen by whoever is in the data, or wrote it."""
    con = duckdb.connect()
    con.execute("CREATE TABLE visit (id INTEGER, place VARCHAR)")
    con.execute("INSERT INTO visit VALUES (1, ?)", [CONTROLS])
    data = tulle.Database.connect(con, owners={"visit": "id"})
    asked = tulle.sql(
        f'SELECT place, COUNT(*) AS "n{CONTROLS[25]}" FROM visit GROUP BY place',
        groups={"place": [CONTROLS, "b"]},
    )
    release = tulle.release(data, asked, unit="participant", epsilon=1)
    assert CONTROLS in release.table().to_csv()
    present(release, {CONTROLS: CONTROLS})
    printer().print(CONTROLS)
    print_json({CONTROLS: CONTROLS})
    warn(CONTROLS)
    print(repr(release), repr(release.table()))
    shown = "".join(capsys.readouterr())
    assert CONTROLS[25] == "\x1b"
    assert "u001b" in shown
    assert not set(CONTROLS) & set(shown)


def test_several_numbers_are_listed_below(capsys: pytest.CaptureFixture[str]) -> None:
    present(tulle.release(GRAPH, tulle.degrees(), **ASKED))
    assert "guarantee" in capsys.readouterr().out
    assert rows(tulle.release(GRAPH, tulle.degrees(), **ASKED)) is not None
