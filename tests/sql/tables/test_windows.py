"""Windows over the rows of an answer: the engine's values, and intervals that hold."""

from __future__ import annotations

import random
import time
from typing import Any

import duckdb
import numpy as np
import pytest
from sqlglot import exp
from tests.sql.tables.test_columns import parsed

import tulle
from tulle.core.errors import QueryError
from tulle.ledger.answer import draw, plan_for
from tulle.sql.tables.columns import Arithmetic, Column
from tulle.sql.tables.post_processing import PostProcessing
from tulle.sql.tables.windows import _Made

GROUPS = {"dept": ["a", "b", "c", "d", "e"], "sex": [0, 1]}
ROWS = "FROM staff GROUP BY dept, sex"
OVERS = (
    *("()", "(PARTITION BY sex)", "(ORDER BY dept, sex)", "(PARTITION BY dept ORDER BY sex DESC)"),
    "(PARTITION BY sex ORDER BY COUNT(*) DESC, dept)",
    "(ORDER BY dept, sex ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "(ORDER BY dept, sex ROWS 2 PRECEDING)",
    "(PARTITION BY sex ORDER BY dept ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "(ORDER BY sex)",
    "(ORDER BY sex RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
)
TOTALS = (
    *("SUM(COUNT(*))", "SUM(SUM(pay))", "AVG(COUNT(*))", "MIN(SUM(pay))", "MAX(COUNT(*))"),
    *("COUNT(*)", "COUNT(AVG(pay))", "SUM(SUM(pay) / COUNT(*))"),
)
ORDERED = (
    *("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "LAG(COUNT(*))", "LEAD(SUM(pay), 2)"),
    *("LAG(COUNT(*), 1, -1)", "FIRST_VALUE(COUNT(*))"),
)


@pytest.fixture(scope="module")
def staff() -> Any:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE staff AS SELECT range AS who, range * 37 % 101 AS pay, range % 3 % 2 AS sex,"
        " ['a', 'b', 'b', 'c', 'd', 'e', 'e'][(hash(range) % 7)::INT + 1] AS dept FROM range(60)"
    )
    database = tulle.Database.connect(connection, owners={"staff": "who"})
    yield database, connection.cursor()
    database.close()


def compare(database: Any, plain: Any, text: str) -> None:
    mine = tulle.sql(text, groups=GROUPS).truth(database)
    theirs = plain.execute(text).fetchall()
    assert len(theirs) >= 3
    rows = list(zip(*(mine[name] for name in mine.names), strict=True))
    assert len(rows) == len(theirs), text
    for one, other in zip(rows, theirs, strict=True):
        assert one[:2] == other[:2]
        for value, expected in zip(one[2:], other[2:], strict=True):
            assert value == (None if expected is None else pytest.approx(float(expected))), text


@pytest.mark.parametrize("over", OVERS)
def test_values_are_the_engine_s(staff: Any, over: str) -> None:
    listed = [*TOTALS, *(ORDERED if "dept" in over and "ROWS" not in over else ())]
    asked = ", ".join(f"{one} OVER {over} AS c{place}" for place, one in enumerate(listed))
    compare(*staff, f"SELECT dept, sex, {asked} {ROWS} ORDER BY dept, sex")


INTERVALS = (
    *("SUM(SUM(a)) OVER ()", "SUM(a) / SUM(SUM(a)) OVER ()", "AVG(SUM(a)) OVER (PARTITION BY h)"),
    *("SUM(a) - LAG(SUM(a)) OVER (ORDER BY k)", "MAX(SUM(a)) OVER (ORDER BY k) * SUM(a)"),
    *("MIN(SUM(a) - 3) OVER (PARTITION BY h)", "LEAD(SUM(a), 1, 2) OVER (ORDER BY k)"),
    "SUM(ABS(SUM(a))) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
)


def window(text: str, column: Column) -> Column:
    keys = [("k", parsed("k"), [0, 1, 2, 3]), ("h", parsed("h"), ["x", "y", "x", "y"])]
    return PostProcessing(Arithmetic({}), keys, lambda node: column, 4).column(parsed(text))


def check_intervals(text: str) -> None:
    rng = random.Random(text)
    for _ in range(40):
        ends = [sorted(rng.choice([-4, -1.5, 0, 0.5, 3, 9]) for _ in "ab") for _ in range(4)]
        low, high = (np.array(side, dtype=float) for side in zip(*ends, strict=True))
        shown = np.array([rng.uniform(*pair) for pair in ends])
        found = window(text, Column(shown, low, high))
        for _ in range(20):
            at = np.array([rng.choice([0, 0.4, 1]) for _ in range(4)])
            truth = window(text, Column.exact(low + at * (high - low), 4)).value
            there = ~np.isnan(truth)
            assert (found.low[there] - 1e-9 <= truth[there]).all(), (text, ends)
            assert (truth[there] <= found.high[there] + 1e-9).all(), (text, ends)


@pytest.mark.parametrize("text", INTERVALS)
def test_intervals_hold_whatever_lies_in_those_of_the_rows(text: str) -> None:
    check_intervals(text)


@pytest.mark.parametrize(
    ("name", "over"),
    [("running", "()"), ("total", "(ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)")],
)
def test_a_broken_interval_would_be_caught(
    name: str, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin takes the ends of its own row for those of all that it looks at."""
    real = getattr(_Made, name)

    def careless(self: Any, row: Any, *arguments: Any) -> None:
        real(self, row, *arguments)
        self._low[row] = self._value[row] - self._inner.value[row] + self._inner.low[row]

    check_intervals(f"SUM(SUM(a)) OVER {over}")
    monkeypatch.setattr(_Made, name, careless)
    with pytest.raises(AssertionError):
        check_intervals(f"SUM(SUM(a)) OVER {over}")


def test_errors_of_shares_and_running_sums_are_predicted() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE staff AS SELECT range AS who, range % 2 AS sex, "
        "['a', 'b', 'c', 'd', 'e'][(hash(range) % 5)::INT + 1] AS dept FROM range(2000)"
    )
    database = tulle.Database.connect(connection, owners={"staff": "who"}, keys={"staff": "who"})
    question = tulle.sql(
        "SELECT dept, COUNT(*) / SUM(COUNT(*)) OVER () AS share, "
        "SUM(COUNT(*)) OVER (ORDER BY dept) AS running FROM staff GROUP BY dept",
        groups={"dept": GROUPS["dept"]},
    )
    terms = {"unit": "participant", "epsilon": 0.5}
    values = {"staff.dept": GROUPS["dept"]}
    plan = tulle.plan(database, question, **terms, people=2000, values=values)
    truth = question.truth(database)
    drawn = [
        draw(plan_for(database, question, **terms), database, None, debit=None).value
        for _ in range(60)
    ]
    for name, law in plan.columns:
        errors = [np.abs(np.subtract(one[name], truth[name])) for one in drawn]
        assert law.of_one().half_width(0.5) == pytest.approx(np.median(errors), rel=0.5)
        ends = [(one[f"{name}_low"], one[f"{name}_high"]) for one in drawn]
        held = [np.all((low <= truth[name]) & (truth[name] <= high)) for low, high in ends]
        assert np.mean(held) > 0.8
    database.close()


def test_the_release_says_that_windows_came_after_the_noise(staff: Any) -> None:
    text = "SELECT dept, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM staff GROUP BY dept"
    asked = tulle.sql(f"{text} QUALIFY r < 3", groups={"dept": GROUPS["dept"]})
    release = tulle.release(staff[0], asked, unit="participant", epsilon=1.0)
    assert [word.split()[0] for word in release.parameters["after_noise"]] == ["QUALIFY", "RANK()"]
    assert len(release.value["dept"]) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT NTILE(4) OVER (ORDER BY COUNT(*)) AS q FROM staff", "SUM, AVG, COUNT, MIN"),
        ("SELECT COUNT(*) AS n, SUM(pay) OVER () AS s FROM staff", "inside an aggregate"),
        ("SELECT SUM(pay) OVER (PARTITION BY who) AS s FROM staff", "selects no aggregate"),
        (
            "SELECT SUM(COUNT(*)) OVER (ORDER BY COUNT(*) RANGE 2 PRECEDING) AS s FROM staff",
            "ROWS in place of RANGE",
        ),
        ("SELECT COUNT(*) AS n, LAG(COUNT(*), COUNT(*)) OVER () AS s FROM staff", "LAG"),
    ],
)
def test_what_is_not_supported_is_said_at_once(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        tulle.sql(text)


@pytest.mark.parametrize("kind", [exp.Sum, exp.Avg, exp.Count])
@pytest.mark.parametrize("seed", range(8))
def test_all_rows_at_once_are_what_they_are_one_by_one(kind: Any, seed: int) -> None:
    """Of the first rows, up to any stop; with NULL, open ends and noise of other rows."""
    draw = np.random.default_rng(seed)
    size = 9
    value = np.where(draw.random(size) < 0.25, np.nan, draw.normal(size=size))
    low = np.where(draw.random(size) < 0.2, -np.inf, value - 1)
    high = np.where(draw.random(size) < 0.2, np.inf, value + 1)
    slopes = {"n": draw.normal(size=size), "s, in other rows": draw.random(size)}
    inner = Column(value, low, high, slopes)
    rows, stops = draw.permutation(size)[:7], draw.integers(0, 8, size=7)
    one, all_at_once = _Made(inner, size), _Made(inner, size)
    for row, stop in zip(rows.tolist(), stops.tolist(), strict=True):
        one.total(row, rows[:stop], kind)
    all_at_once.running(rows, stops, kind())
    mine, theirs = all_at_once.column(), one.column()
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(mine, name)[rows], getattr(theirs, name)[rows])
    for name, slope in theirs.slopes.items():
        np.testing.assert_allclose(mine.slopes[name][rows], slope[rows], atol=1e-7)


def test_windows_over_many_groups_take_one_pass() -> None:
    many = 20_000
    counts = Column.exact(np.arange(many), many)
    keys = [("k", parsed("k"), list(range(many)))]
    processing = PostProcessing(Arithmetic({}), keys, lambda node: counts, many)
    began = time.process_time()
    found = processing.column(parsed("SUM(COUNT(*)) OVER (ORDER BY k)"))
    assert time.process_time() - began < 3
    assert found.value[-1] == many * (many - 1) / 2
