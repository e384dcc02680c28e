"""Arithmetic on noisy columns: intervals hold whatever the parts are, brute force."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
import sqlglot
from sqlglot import exp

import tulle
from tulle.sql.tables.columns import Arithmetic, Column
from tulle.sql.tables.post_processing import PostProcessing

EXPRESSIONS = (
    "SUM(a) + SUM(b)",
    "SUM(a) - SUM(b)",
    "SUM(a) - SUM(a)",
    "SUM(a) * SUM(b)",
    "SUM(a) * SUM(a)",
    "SUM(a) / SUM(b)",
    "SUM(a) / (SUM(a) + SUM(b))",
    "-SUM(a) / SUM(b) * 3",
    "ABS(SUM(a))",
    "ABS(SUM(a) - SUM(b)) / 2",
    "SQRT(ABS(SUM(a)))",
    "ROUND(SUM(a) / 3, 1)",
    "FLOOR(SUM(a)) + CEIL(SUM(b))",
    "COALESCE(SUM(a) / NULLIF(SUM(b), 0), 7)",
    "GREATEST(SUM(a), SUM(b), 1)",
    "LEAST(SUM(a), SUM(b) * 2)",
    "CASE WHEN SUM(a) > SUM(b) THEN SUM(a) ELSE 5 END",
    "CASE WHEN SUM(a) > 0 THEN 1 / SUM(a) WHEN SUM(b) > 0 THEN SUM(b) END",
    "CAST(SUM(a) / 2 AS INTEGER)",
)


def parsed(text: str) -> Any:
    return sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").expressions[0]


def column_of(text: str, leaves: dict[str, Column], variances: Any = None) -> Column:
    size = len(next(iter(leaves.values())).value)

    def leaf(node: Any) -> Column:
        return leaves[node.this.name]

    return PostProcessing(Arithmetic(variances or {}), [], leaf, size).column(parsed(text))


def exact(text: str, a: float, b: float) -> float:
    found = column_of(text, {"a": Column.exact(a, 1), "b": Column.exact(b, 1)})
    return float(found.value[0])


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_values_are_the_engine_s(text: str) -> None:
    import duckdb

    for a, b in itertools.product((-3.5, -1.0, 0.0, 2.0, 4.25), (-2.0, 0.0, 1.5)):
        values = f"(VALUES (CAST({a} AS DOUBLE), CAST({b} AS DOUBLE))) t(a, b)"
        ((theirs,),) = duckdb.connect().execute(f"SELECT {text} FROM {values}").fetchall()
        mine = exact(text, a, b)
        if theirs is None:
            assert np.isnan(mine), (text, a, b)
        elif np.isfinite(theirs):
            assert mine == pytest.approx(theirs, abs=0.51 if "CAST" in text else 1e-9), (a, b)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_intervals_hold_whatever_lies_in_those_of_the_parts(text: str) -> None:
    draw = random.Random(text)
    for _ in range(60):
        ends = {name: sorted(draw.choice([-4, -1.5, 0, 0.5, 3, 9]) for _ in "ab") for name in "ab"}
        centres = {name: draw.uniform(*ends[name]) for name in "ab"}
        leaves = {
            name: Column(*(np.array([float(v)]) for v in (centres[name], *ends[name])))
            for name in "ab"
        }
        found = column_of(text, leaves)
        for shares in itertools.product((0, 0.3, 0.5, 1), repeat=2):
            a, b = (
                low + share * (high - low)
                for (low, high), share in zip(ends.values(), shares, strict=True)
            )
            truth = exact(text, a, b)
            if np.isnan(truth):
                continue
            assert found.low[0] - 1e-9 <= truth <= found.high[0] + 1e-9, (ends, a, b)


def test_a_broken_interval_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin forgets that a divisor may be zero."""
    from tulle.sql.tables import columns

    def careless(left: Column, right: Column) -> Any:
        with np.errstate(all="ignore"):
            corners = np.stack(
                [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
            )
        return corners.min(axis=0), corners.max(axis=0)

    monkeypatch.setattr(columns, "_quotient", careless)
    with pytest.raises(AssertionError):
        test_intervals_hold_whatever_lies_in_those_of_the_parts("SUM(a) / SUM(b)")


def test_one_sided_ends_stay_one_sided() -> None:
    known = Column(np.array([5.0]), np.array([3.0]), np.array([np.inf]))
    other = Column(np.array([2.0]), np.array([1.0]), np.array([np.inf]))
    total = column_of("SUM(a) + SUM(b)", {"a": known, "b": other})
    assert (total.low[0], total.high[0]) == (4.0, np.inf)
    ratio = column_of("SUM(a) / SUM(b)", {"a": known, "b": other})
    assert (ratio.low[0], ratio.high[0]) == (0.0, np.inf)
    difference = column_of("SUM(a) - SUM(b)", {"a": known, "b": other})
    assert (difference.low[0], difference.high[0]) == (-np.inf, np.inf)


def test_noise_in_a_divisor_is_corrected_for() -> None:
    random = np.random.default_rng(5)
    count = 200_000
    noise = random.laplace(size=count) * 3
    leaves = {
        "a": Column.exact(100.0, count),
        "b": Column(*(20 + noise,) * 3, {"b": np.ones(count)}),
    }
    plain = column_of("SUM(a) / SUM(b)", leaves).value
    corrected = column_of("SUM(a) / SUM(b)", leaves, {"b": 18.0}).value
    assert abs(corrected.mean() - 5) < 0.2 * abs(plain.mean() - 5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT SUM(w), SIN(SUM(w)) FROM edge", "after the noise"),
        ("SELECT SUM(w) > (SELECT SUM(w) FROM edge) FROM edge", "GT|after the noise|sub-select"),
        ("SELECT SUM(w) + b, COUNT(*) FROM edge", "neither a column of GROUP BY"),
        ("SELECT SUM(w), COUNT(*) FROM edge HAVING SUM(w) LIKE 'x'", "comparisons"),
        ("SELECT SUM(w), COUNT(*) FROM edge HAVING NULLIF(SUM(w), 1) > 'x'", "of two kinds"),
    ],
)
def test_what_is_not_supported_afterwards_is_refused_at_once(text: str, reason: str) -> None:
    with pytest.raises(tulle.QueryError, match=reason):
        tulle.sql(text)


def test_literals_are_public() -> None:
    assert isinstance(parsed("3"), exp.Literal)
    assert exact("3 * SUM(a)", 2.0, 0.0) == 6.0
