"""Graphs whose edges have days: units of an edge and a period, and the graph of some days."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tulle
from tulle.cli.main import app
from tulle.core import registry
from tulle.core.errors import InputError, TulleError, UnitError
from tulle.core.period import Calendar
from tulle.ledger.account import Account
from tulle.ledger.answer import plan_for

MONDAY = date(2026, 8, 24)
PERIODS = ("day", "week", "month", "year")


def records(seed: int, count: int = 9) -> tuple[list[tuple[int, int]], list[date | None]]:
    chance = random.Random(seed)
    pairs = [(chance.randrange(4), chance.randrange(4)) for _ in range(count)]
    days = [
        None if chance.random() < 0.1 else MONDAY + timedelta(chance.randrange(16)) for _ in pairs
    ]
    return pairs, days


def dated(seed: int) -> tulle.Graph:
    pairs, days = records(seed)
    return tulle.Graph.from_edges(pairs, nodes=4, times=days)


def pairs_of(graph: tulle.Graph) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in graph.edges()}


def once(graph: tulle.Graph) -> int:
    return graph.edge_count


def every_record(graph: tulle.Graph) -> int:
    """The broken twin counts an edge as often as it has records."""
    assert graph._dated is not None
    return len(graph._dated.days)


def largest_move(count: Callable[[tulle.Graph], int], period: str) -> int:
    """Return by how much one edge's records of a period move a count, over all days asked about."""
    largest = 0
    for seed in range(12):
        graph = dated(seed)
        for other in graph.neighbours(f"edge-{period}"):
            for first, length in ((0, 16), (0, 7), (5, 4), (7, 1)):
                days = (MONDAY + timedelta(first), MONDAY + timedelta(first + length - 1))
                one, two = graph.of_days(*days), other.of_days(*days)
                assert one.node_count == two.node_count == 4
                assert len(pairs_of(one) ^ pairs_of(two)) <= 1
                largest = max(largest, abs(count(one) - count(two)))
            assert len(pairs_of(graph) ^ pairs_of(other)) <= 1
    return largest


@pytest.mark.parametrize("period", PERIODS)
def test_one_edge_of_one_period_is_at_most_one_edge_of_any_days(period: str) -> None:
    assert largest_move(once, period) == 1


def test_counting_every_record_is_caught() -> None:
    assert largest_move(every_record, "month") > 1


def test_the_graph_of_some_days_by_hand() -> None:
    graph = tulle.Graph.from_edges(
        [("a", "b"), ("b", "a"), ("b", "c"), ("c", "d")],
        nodes=list("abcd"),
        times=["2026-01-05", "2026-01-12", "2026-01-12T23:59:00", None],
    )
    assert graph.edge_count == 3
    week = graph.of_days(date(2026, 1, 12), date(2026, 1, 18))
    assert pairs_of(week) == {(0, 1), (1, 2)}
    assert list(week.labels) == list("abcd")
    assert pairs_of(graph.of_days(date(2026, 1, 5), date(2026, 1, 11))) == {(0, 1)}
    assert graph.of_days(date(2027, 1, 1), date(2027, 1, 1)).edge_count == 0
    assert week.check_unit("edge-week").period == "week"
    for names in (list("xyz"), [2, 0, 1]):
        named = tulle.Graph.from_edges(
            [(0, 1), (1, 2)], labels=names, times=["2026-01-05", "2026-01-12"]
        )
        assert pairs_of(named.of_days(date(2026, 1, 5), date(2026, 1, 5))) == {(0, 1)}
        assert {len(pairs_of(other)) for other in named.neighbours("edge-day")} == {1}
    # Nodes that were read off all edges stay for all days.
    off = tulle.Graph.from_edges([(7, 9), (3, 7)], times=["2026-01-05", "2026-01-12"])
    assert list(off.of_days(date(2026, 1, 5), date(2026, 1, 5)).labels) == [3, 7, 9]
    assert off.assumptions("edge-week") == off.assumptions("edge")


def test_attributes_of_nodes_are_the_same_on_all_days() -> None:
    graph = tulle.Graph.from_edges(
        [(0, 1), (1, 2), (1, 2)], nodes=4, times=["2026-01-05", "2026-01-12", "2026-01-19"]
    )
    staff = graph.with_attributes(nodes={"dept": ["law", "law", "art", None]})
    asked = tulle.mixing(by="dept", groups=["art", "law"])
    assert asked.truth(staff).tolist() == [0, 1, 1]
    week = staff.of_days(date(2026, 1, 5), date(2026, 1, 11))
    assert asked.truth(week).tolist() == [0, 0, 1]
    assert week.check_unit("edge-week").period == "week"
    moved = [np.abs(asked.truth(one) - [0, 1, 1]).sum() for one in staff.neighbours("edge-week")]
    assert sorted(moved) == [0, 0, 1]
    assert tulle.release(staff, asked, unit="edge-week", epsilon=1).value.shape == (3,)
    named = graph.with_attributes(edges={"kind": ["a", "b"]})
    with pytest.raises(UnitError):
        named.check_unit("edge-week")


def test_every_question_is_planned_as_per_edge() -> None:
    """The same mechanisms, settings and prices; only the words of the unit differ."""
    graph, asked = dated(1), 0
    for make in registry.find("query", "graph").values():
        try:
            query = make()
            plain = plan_for(graph, query, unit="edge", epsilon=1, delta=1e-6)
        except (TulleError, TypeError):
            continue
        found = plan_for(graph, query, unit="edge-week", epsilon=1, delta=1e-6)
        assert found.mechanism == plain.mechanism
        assert found.guarantee.epsilon == plain.guarantee.epsilon
        assert found.guarantee.unit.name == "edge-week"
        asked += 1
    assert asked > 5
    for mechanism in registry.mechanisms("graph", tulle.triangles()):
        plan = {
            unit: offered(graph, unit, mechanism) for unit in ("edge", "edge-week")
        }  # fmt: skip
        assert plan["edge"] == plan["edge-week"]


def offered(graph: tulle.Graph, unit: str, mechanism: str) -> Any:
    try:
        release = tulle.release(
            graph, tulle.triangles(), unit=unit, epsilon=1, delta=1e-6, mechanism=mechanism
        )
    except TulleError as error:
        return str(error).replace("edge-week", "edge")
    return release.mechanism


def weeks_that_see_an_edge(folder: Path) -> int:
    """Return in how many weeks, at most, an answer depends on one edge's records of one week."""
    ledger, seen = tulle.Ledger(folder / "study.ledger"), dict[int, int]()
    graph = dated(4)
    for week in range(2):
        day = MONDAY + timedelta(7 * week)
        study = ledger.open(
            "calls", graph, unit="edge-week", epsilon=1, every="week", version=f"{week}", date=day
        )
        whole: Any = study.dataset
        account = ledger.account("calls")
        for number, other in enumerate(graph.neighbours("edge-week")):
            changed = pairs_of(account.divided(other)) != pairs_of(whole)  # type: ignore[arg-type]
            seen[number] = seen.get(number, 0) + changed
    return max(seen.values())


def test_a_budget_each_week_is_for_good(tmp_path: Path) -> None:
    assert weeks_that_see_an_edge(tmp_path) == 1
    words = tulle.Ledger(tmp_path / "study.ledger").account("calls").words
    assert "Any one edge's records of any one week are in one of them alone" in words


def test_weeks_that_are_not_divided_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, "divided", lambda self, data: data)
    assert weeks_that_see_an_edge(tmp_path) == 2


def test_units_without_times_are_refused() -> None:
    plain = tulle.Graph.from_edges([(0, 1)], nodes=3)
    with pytest.raises(UnitError, match=r"Graph\.read"):
        tulle.release(plain, tulle.edges(), unit="edge-week", epsilon=1)
    with pytest.raises(UnitError, match=r"Graph\.read"):
        plain.of_days(MONDAY, MONDAY)
    with pytest.raises(UnitError, match="not known"):
        dated(0).check_unit("node-week")
    with pytest.raises(UnitError):
        dated(0).check_unit("participant-week")
    for times in (["2026-01-05"], ["soon"] * 2, [object()] * 2):
        with pytest.raises(InputError):
            tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=3, times=times)
    for unit in ("edge-day", "edge-month"):
        meaning = tulle.release(dated(0), tulle.edges(), unit=unit, epsilon=1).guarantee.over_time
        assert meaning is not None
        assert "any one edge's records of any one" in meaning


TEXT = "day,note,from,to\n2026-01-05,x,ann,7\n2026-01-13 10:00:00,y,7,07\n,z,ann,7\n"


def test_files_with_a_column_of_times(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    (tmp_path / "calls.csv").write_text(TEXT)
    (tmp_path / "calls.tsv").write_text(TEXT.replace(",", "\t"))
    table = pa.table(
        {
            "from": ["ann", "7", "ann"],
            "to": ["7", "07", "7"],
            "day": pa.array([date(2026, 1, 5), date(2026, 1, 13), None], pa.date32()),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "calls.parquet")
    for name in ("calls.csv", "calls.tsv", "calls.parquet"):
        graph = tulle.Graph.read(tmp_path / name, columns=["from", "to"], time="day")
        assert list(graph.labels) == [7, "07", "ann"]
        assert graph.edge_count == 2
        week = graph.of_days(date(2026, 1, 12), date(2026, 1, 18))
        assert pairs_of(week) == {(0, 1)}
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("a,b,t\n0,1,2026-01-05\n1,2,2026-01-06\n")
    assert tulle.Graph.read(numbers, columns=["a", "b"], time="t", nodes=5).node_count == 5
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b,t\nzebra,1,zebra-day\n")
    for more in (
        {"columns": ["a", "b"]},
        {"columns": ["a", "zzz"]},
        {"columns": [0, 1]},
        {"columns": ["a", "b"], "header": False},
        {},
    ):
        with pytest.raises(InputError) as caught:
            tulle.Graph.read(secret, time="t", **more)  # type: ignore[arg-type]
        assert "zebra" not in str(caught.value)
    secret.write_text("a,b,t\nzebra,,2026-01-05\n")
    with pytest.raises(InputError, match="is missing"):
        tulle.Graph.read(secret, columns=["a", "b"], time="t")


def test_a_week_of_a_network_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "calls.csv"
    file.write_text("a,b,t\n" + "".join(f"{n},{n + 1},2026-01-{5 + n % 14:02}\n" for n in range(9)))

    def ask(*more: str) -> Any:
        words = ["ask", str(file), "edges()", "--unit", "edge-week", "--epsilon", "0.5", "--json",
                 "--ledger", str(tmp_path / "study.ledger"), "--nodes", "20", *more]  # fmt: skip
        return CliRunner().invoke(app, words)

    read = ("--columns", "a,b", "--time", "t")
    refused = ask("--budget", "1", "--columns", "a,b")
    assert refused.exit_code != 0
    assert "time" in refused.output
    version = ("--version", "2026-W02", "--date", "2026-01-05")
    done = ask(*read, "--budget", "1", "--every", "week", *version)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["release"]["guarantee"]["unit"] == "edge-week"
    assert "for good" in tulle.Ledger(tmp_path / "study.ledger").account("calls").words


def test_the_calendar_agrees_with_numpy_days() -> None:
    """Days are compared as numpy has them, weeks as the calendar does: on all days alike."""
    days = np.arange(np.datetime64("2025-12-01"), np.datetime64("2026-02-01"))
    graph = tulle.Graph.from_edges([(0, 1)] * len(days), nodes=2, times=days)
    weeks = Calendar("week")
    for number in range(weeks.number(date(2025, 12, 8)), weeks.number(date(2026, 1, 19))):
        week: Any = graph.of_days(weeks.first_day(number), weeks.last_day(number))
        assert {weeks.number(day) for day in week._dated.days.tolist()} == {number}
        assert len(week._dated.days) == 7


@pytest.mark.parametrize(
    "cell",
    ["20260105", "2026", "2026-01", "-1", "2026-01-05abc", "NaT", "0000-01-01", "2026-13-40"],
)
def test_only_days_and_moments_are_days(tmp_path: Path, cell: str) -> None:
    """What another reader would take for some year, or for a day that is missing, is refused."""
    file = tmp_path / "calls.csv"
    file.write_text(f"a,b,day\n1,2,2026-01-05T08:00\n2,3,\n3,4,{cell}\n")
    # The whole text: whatever the cell says, it is the same.
    with pytest.raises(
        InputError, match=r"^The times of edges must be days, or moments\. Days are"
    ):
        tulle.Graph.read(file, columns=["a", "b"], time="day")


@pytest.mark.parametrize("nodes", [None, ["5", "7", "12345678901234567890", "x"]])
@pytest.mark.parametrize("more", ["", "x,5,2026-01-07\n", "12345678901234567890,7,2026-01-07\n"])
def test_nodes_are_named_as_without_days(tmp_path: Path, nodes: Any, more: str) -> None:
    file = tmp_path / "calls.csv"
    file.write_text("a,b,day\n5,7,2026-01-05\n 7,5,2026-01-06\n" + more)
    with_days = tulle.Graph.read(file, columns=["a", "b"], time="day", nodes=nodes)
    without = tulle.Graph.read(file, columns=["a", "b"], header=True, nodes=nodes)
    check_alike(with_days, without)


def test_numbers_of_parquet_name_nodes_as_without_days(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    file = tmp_path / "calls.parquet"
    for kind in (pa.int64(), pa.uint64(), pa.uint8(), pa.string()):
        ids = [5, 7, 2**63 + 1 if kind == pa.uint64() else 9]
        ends = pa.array([str(one) for one in ids] if kind == pa.string() else ids, kind)
        days = pa.array([date(2026, 1, 5)] * 3)
        pyarrow.parquet.write_table(pa.table({"a": ends, "b": ends[::-1], "day": days}), file)
        check_alike(
            tulle.Graph.read(file, columns=["a", "b"], time="day"),
            tulle.Graph.read(file, columns=["a", "b"]),
        )


def check_alike(with_days: tulle.Graph, without: tulle.Graph) -> None:
    assert with_days.edge_count == without.edge_count > 0
    assert list(with_days.labels) == list(without.labels)
    assert pairs_of(with_days) == pairs_of(without)
