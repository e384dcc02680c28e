"""Cells that nobody listed: what one person moves when everyone keeps a few cells, on small tables.

The law of what is shown is that of partition selection, examined for keys of any kind
(:mod:`tulle.audit.sql.partition_selection`). Here it is the step before: which cells are kept and
what is added up. Whoever leaves a table comes last in it, so that all others draw the same coins
with and without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, combinations_with_replacement

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.audit.sql.partition_selection import BROKEN_SELECTION, check_selection
from tulle.core.source import Source
from tulle.matrices.contributions.data import Contributions, KeptCells
from tulle.noise import SeededSource

MOST, BOUND = 2, 3
NAMES = ("a", "b", "c", "d")
"""Columns of the cells; all are in one row."""
SEEDS = 3

Person = tuple[tuple[str, float], ...]
"""Who has what in which columns."""
Keep = Callable[[Contributions, Source], KeptCells]


def honest(data: Contributions, source: Source) -> KeptCells:
    """Keep cells as the mechanism does."""
    return data.keep(MOST, 0, BOUND, source)


def one_more(data: Contributions, source: Source) -> KeptCells:
    """Keep a cell more than is paid for: a broken version."""
    return data.keep(MOST + 1, 0, BOUND, source)


def not_cut(data: Contributions, source: Source) -> KeptCells:
    """Take weights as they are: a broken version."""
    return data.keep(MOST, 0, 100, source)


def all_together(data: Contributions, source: Source) -> KeptCells:
    """Keep cells as if all records were one person's: a broken version."""
    cell = data.entries()[1]
    return data.part(np.isin(cell, np.unique(cell)[:MOST])).keep(MOST, 0, BOUND, source)


def tables() -> Iterator[tuple[Person, ...]]:
    """Yield all small tables; who comes last is the one who leaves."""
    sets = [held for size in range(1, 5) for held in combinations(NAMES, size)]
    weights = (1.0, -7.0, 4.0, 2.0)
    people = [tuple(zip(held, weights, strict=False)) for held in sets]
    for others in combinations_with_replacement(people, 1):
        for last in people:
            yield (*others, last)
    for last in people:
        yield (last,)
        yield (people[-1], people[0], people[-2], last)


def sums(people: tuple[Person, ...], keep: Keep, seed: int) -> dict[str, tuple[int, int]]:
    """Return people and steps of each cell."""
    rows = [(who, name, w) for who, held in enumerate(people) for name, w in held]
    who, names, weights = zip(*rows, strict=True) if rows else ((), (), ())
    data = Contributions(list(who), ["r"] * len(who), list(names), list(weights))
    kept = keep(data, SeededSource(seed))
    columns = kept.names(np.arange(len(kept.people)))[1]
    pairs = zip(kept.people.tolist(), kept.steps.tolist(), strict=True)
    return dict(zip(columns, pairs, strict=True))


def check_keeping(keep: Keep = honest) -> Finding:
    """Compare what one person moves with what is paid for, on all small tables."""
    cases, worst, witness = 0, 0.0, ""
    for people in tables():
        for seed in range(SEEDS):
            whole, left = sums(people, keep, seed), sums(people[:-1], keep, seed)
            moves = [
                tuple(a - b for a, b in zip(whole.get(c, (0, 0)), left.get(c, (0, 0)), strict=True))
                for c in {*whole, *left}
            ]
            moved = [move for move in moves if any(move)]
            found = max(
                len(moved) / MOST,
                max((abs(steps) / BOUND for _, steps in moved), default=0.0),
                *(np.inf if count not in (0, 1) else 0.0 for count, _ in moved),
                0.0,
            )
            cases += 1
            if found > worst:
                worst, witness = float(found), f"{people[-1]} leaves {people[:-1]}"
    return Finding(
        "cell_selection",
        f"{MOST} cells per person",
        "cells of one person",
        cases,
        worst,
        worst <= 1,
        f"{worst:.6g} of what one person moves",
        witness,
    )


BROKEN: dict[str, Keep] = {
    "one cell too many per person": one_more,
    "weights are not cut": not_cut,
    "the choice is of all people together": all_together,
}


def cell_findings() -> list[Finding]:
    """Return what is found, and on broken versions that must be caught."""
    ways = [
        check_selection(),
        *(check_selection(way).of_broken(n) for n, way in BROKEN_SELECTION.items()),
    ]
    found = [check_keeping(), *(replace(one, mechanism="cell_selection") for one in ways)]
    found += [check_keeping(keep).of_broken(name) for name, keep in BROKEN.items()]
    return found
