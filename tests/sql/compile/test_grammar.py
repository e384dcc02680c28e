"""Statements over the whole supported grammar, before the two judges of ``judges``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from tests.sql.compile import test_inside, test_removal
from tests.sql.compile.judges import wrong
from tests.sql.compile.test_inside import SEEDS
from tests.sql.grammar import (
    AGGREGATES,
    ALIKE,
    KEYS,
    OWNED_VIEWS,
    QUANTILES,
    RANGED,
    SPELLED,
    Asked,
    Grammar,
)
from tests.sql.sql_extremes import SHAPES

from tulle.core.errors import QueryError
from tulle.sql.compile.statements import Compiler
from tulle.sql.expressions.total import ENTRIES

EVERYDAY = 160
"""So many statements are tried every day."""

EVERY = 2
"""Of those who may leave, every so many do then."""


def placed(seed: int) -> tuple[int, bool]:
    """Return on which database a statement is tried, and whether its keys are unique."""
    return SEEDS[seed // 2 % 4], bool(seed % 2)


def check(start: int, count: int, depth: int, every: int = 1) -> None:
    """Judge so many statements; of those who may leave, every so many do."""
    accepted = 0
    for seed in range(start, start + count):
        asked = Grammar(seed).question(depth)
        place, unique = placed(seed)
        people = slice(seed % every, None, every)
        try:
            assert list(wrong(asked, place, unique=unique, people=people)) == [], asked
        except QueryError:
            continue
        accepted += 1
    assert accepted > 0.6 * count


@pytest.mark.parametrize("start", range(0, EVERYDAY, 40))
def test_random_statements(start: int) -> None:
    check(start, 40, 1, EVERY)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 16_000, 100))
def test_thousands_of_random_statements(start: int) -> None:
    check(start, 100, 2)


def test_statements_are_made_of_every_part() -> None:
    """Every function, shape, aggregate, key and view is in some statement of the slow suite."""
    asked = [Grammar(seed).question(2) for seed in range(10_000, 16_000)]
    texts = " ".join(one.text for one in asked)
    parts = [entry.written for entry in ENTRIES]
    parts += [*SHAPES, *AGGREGATES, *QUANTILES, *SPELLED, *(written for written, _ in KEYS)]
    for written in parts:
        longest = max(re.split(r"\{\w*\}(?:\.\w)?|x\.b", written), key=len).strip(" ()")
        assert longest in texts, written
    for rows in (*ALIKE, *(source for source, _ in RANGED), *OWNED_VIEWS):
        assert rows.replace("ANY_OF", "(0.0)") in texts, rows
    # Rows of others and of a shared key come from short lists, and are drawn again.
    assert len({Grammar(seed).question().text for seed in range(200)}) > 175
    for word in ("COUNT_IF", "FILTER", "OVER", "QUALIFY", "EXCEPT", "NOT EXISTS", "WITH", "UNION"):
        assert word in texts
    kinds = Counter((one.keys > 0, one.groups is None) for one in asked)
    assert min(kinds[True, True], kinds[True, False]) > 200


def keep_any_spelling(patch: pytest.MonkeyPatch) -> None:
    """Of values that are equal and yet differ, whichever the engine finds first is kept."""
    patch.setattr(Compiler, "_same_value", lambda self, node, scope: self.value(node.this, scope))


TWINS: list[Any] = [*test_inside.TWINS, *test_removal.TWINS, keep_any_spelling]
TOUCHED = {
    "match_without_the_owners": r"LEFT JOIN|NOT IN|NOT EXISTS|\(SELECT (SUM|MAX|COUNT)",
    "accept_any_match": r"LEFT JOIN|NOT IN|NOT EXISTS|\(SELECT (SUM|MAX|COUNT)",
    "accept_any_group": "GROUP BY|PARTITION BY",
    "forget_the_owner_of_a_window": r"PARTITION BY (s\d+\.)?okey",
    "count_every_witness": r"EXISTS|IN \(SELECT",
    "take_union_for_union_all": "UNION",
    "forget_distinct": r"\(DISTINCT",
    "forget_null": r"COUNT\((DISTINCT )?\w",
    "keep_any_spelling": "reading",
    "forget_the_way_to_an_owner": "item",
}
"""Which statements can show that a version is broken; the others need not be tried for it."""

QUICK = [
    test_inside.accept_any_match,
    test_inside.match_without_the_owners,
    test_removal.forget_distinct,
    test_removal.count_every_witness,
]
"""Those that are caught soon; the rest is in the slow suite."""


def caught(twin: Any, patch: pytest.MonkeyPatch, seeds: range) -> Iterator[int]:
    """Yield the statements by which a broken version is caught."""
    twin(patch)
    touched = TOUCHED.get(twin.__name__, "")
    for seed in seeds:
        asked = Grammar(seed).question(1)
        if re.search(touched, asked.text) and _fails(asked, seed):
            yield seed


@pytest.mark.parametrize("twin", QUICK, ids=lambda twin: twin.__name__)
def test_a_broken_twin_is_caught(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert next(caught(twin, monkeypatch, range(EVERYDAY)), None) is not None


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_every_broken_twin_is_caught(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert next(caught(twin, monkeypatch, range(5 * EVERYDAY)), None) is not None


def _fails(asked: Asked, seed: int) -> bool:
    place, unique = placed(seed)
    try:
        found = wrong(asked, place, unique=unique, people=slice(seed % EVERY, None, EVERY))
        return next(found, None) is not None
    except QueryError:
        return False
    except (AssertionError, KeyError, IndexError, duckdb.Error):
        # A broken version may also stop with an error of its own.
        return True
