"""Contributions of one owner each: all small ones, and what a release of them costs, exactly.

Questions in SQL whose rows are about one participant go this way
(:mod:`tulle.relations.mechanisms.single_owner`), and not through the linear programs that the view
of relations examines. A release is a level with noise, and at its threshold a vector with noise;
the largest log-ratio between neighbours is worked out level by level.

Noise of the size of one row is examined on the same contributions, also where no key holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.audit.relations.kind import level_grid
from tulle.audit.relations.truncated import Grid, Truncated
from tulle.core.arrays import Array
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.mechanisms.single_owner import NoiseOnGroups, SingleOwnerRows
from tulle.relations.truncation.totals import least_level

Person = tuple[float, ...]
People = tuple[Person, ...]
Cut = Callable[[SingleOwnerRows, float], Array]
Level = Callable[[SingleOwnerRows], int]

GROUPS = 2
AMOUNTS = (-2.0, 0.0, 1.0, 3.0)
CHOICE = RecursiveSettings(0.5, 0.35, 1.0, 1.0, Fraction(1, 4), Fraction(3, 4))
"""Thresholds among the contributions, and a little below and above them."""

EPSILON = CHOICE.epsilon_select + CHOICE.epsilon_answer

_CHECK = "exact, one owner each"


def contributions(people: People, *, signed: bool = True) -> SingleOwnerRows:
    """Return made-up contributions: each amount comes from two tuples."""
    relations = []
    for group in range(GROUPS):
        halves = [
            (place, part)
            for place, amounts in enumerate(people)
            for part in (amounts[group] / 4, amounts[group] * 3 / 4)
            if part
        ]
        members = [place for place, _ in halves]
        weights = [part for _, part in halves]
        offsets = np.arange(len(members) + 1)
        relations.append(Relation.conjunctive(offsets, members, weights, count=len(people)))
    return SingleOwnerRows(relations, signed=signed)


def neighbours() -> Iterator[tuple[People, People]]:
    """Yield everything of up to three participants with and without each of them, both ways."""
    everyone = list(product(AMOUNTS, repeat=GROUPS))
    for size, vectors in ((1, everyone), (2, everyone), (3, everyone[::2])):
        for people in combinations_with_replacement(vectors, size):
            for gone in range(size):
                less = people[:gone] + people[gone + 1 :]
                yield people, less
                yield less, people


def least(totals: SingleOwnerRows) -> int:
    """Return the level that a release starts from."""
    return least_level(totals, CHOICE.thresholds)


def law_of_totals(
    chosen: RecursiveSettings,
    totals: SingleOwnerRows,
    *,
    cut: Cut = SingleOwnerRows.clipped,
    level: int | None = None,
    signed: bool = False,
    integral: bool = False,
) -> Truncated:
    """Return the law of a release: a level with noise, and at its threshold sums with noise."""
    grid = _grid(chosen, totals.groups)
    sums = [
        [lattice.snap(float(value)) for value in cut(totals, tau)]
        for tau, lattice in zip(grid.taus, grid.lattices, strict=True)
    ]
    centres = tuple(found[0] if totals.groups == 1 else tuple(found) for found in sums)
    start = least_level(totals, chosen.thresholds) if level is None else level
    return Truncated(
        grid, centres, 0.0, start, chosen.epsilon_select, signed=signed, integral=integral
    )


@lru_cache(maxsize=256)
def _grid(chosen: RecursiveSettings, groups: int) -> Grid:
    levels, taus = level_grid(chosen).levels, level_grid(chosen).taus
    noises = [NoiseOnGroups.at(tau, groups, chosen.epsilon_answer) for tau in taus]
    scales = tuple(noise.scale / noise.lattice.step for noise in noises)
    lattices = tuple(noise.lattice for noise in noises)
    return Grid(levels, taus, lattices, scales, tuple(s * chosen.epsilon_answer for s in scales))


def check_totals(
    *, signed: bool = True, cut: Cut = SingleOwnerRows.clipped, level: Level = least
) -> Finding:
    """Compare the loss with epsilon on all small contributions."""

    @cache
    def law(people: People) -> Truncated:
        totals = contributions(people, signed=signed)
        return law_of_totals(CHOICE, totals, cut=cut, level=level(totals))

    losses = [(law(people).loss(law(others)), people, others) for people, others in neighbours()]
    worst, people, others = max(losses)
    part = worst / float(EPSILON)
    return Finding(
        "recursive",
        f"groups of {'signed ' if signed else ''}sums",
        _CHECK,
        len(losses),
        part,
        part <= 1 + 1e-12,
        f"epsilon {worst:.6g} of {float(EPSILON):.6g}",
        f"{people} and {others}",
    )


def cut_each_group(totals: SingleOwnerRows, tau: float) -> Array:
    """Cut everyone to tau in each group, and not in all together: a broken way."""
    cut: Array = np.bincount(totals.places, np.clip(totals.amounts, -tau, tau), totals.groups)
    return cut


def cut_nobody(totals: SingleOwnerRows, tau: float) -> Array:
    """Cut nobody: a broken way."""
    whole: Array = np.bincount(totals.places, totals.amounts, totals.groups)
    return whole


def cut_together(totals: SingleOwnerRows, tau: float) -> Array:
    """Scale all totals by what the largest contribution needs: a broken way."""
    largest = max(float(totals.loads.max(initial=tau)), tau)
    scaled: Array = cut_nobody(totals, tau) * (tau / largest)
    return scaled


def level_of_totals(totals: SingleOwnerRows) -> int:
    """Let the level follow the total, which one participant moves by anything: a broken way."""
    return int(totals.loads.sum())


BROKEN_CUTS: dict[str, Cut] = {
    "each group cut by itself": cut_each_group,
    "nobody cut": cut_nobody,
    "all cut by the largest": cut_together,
}
BROKEN: dict[str, dict[str, Any]] = {
    **{name: {"cut": cut} for name, cut in BROKEN_CUTS.items()},
    "a level of totals": {"level": level_of_totals},
}


def totals_findings() -> list[Finding]:
    """Return what is found on contributions, and on broken ways that must be caught."""
    found = [check_totals(signed=signed) for signed in (True, False)]
    return found + [check_totals(**broken).of_broken(name) for name, broken in BROKEN.items()]


MOST_OF_A_ROW = (0.5, 1.0, 2.5)
"""What one row adds at most; contributions are up to three, as of people with several rows."""

PRICE_OF_A_ROW = Fraction(1)


def check_one_row(cut: Cut = SingleOwnerRows.clipped) -> Finding:
    """Compare the largest log-ratio with epsilon, for everyone who may leave."""
    noises = [(most, NoiseOnGroups.at(most, GROUPS, PRICE_OF_A_ROW)) for most in MOST_OF_A_ROW]
    cases, worst, witness = 0, 0.0, ""
    for people, others in neighbours():
        one, other = contributions(people), contributions(others)
        for most, noise in noises:
            snapped = [
                np.array([noise.lattice.snap(float(v)) for v in cut(totals, most)])
                for totals in (one, other)
            ]
            moved = float(np.abs(snapped[0] - snapped[1]).sum())
            found = moved * float(noise.lattice.step / noise.scale / PRICE_OF_A_ROW)
            cases += 1
            if found > worst:
                worst, witness = found, f"{people} and {others}"
    return Finding(
        "laplace",
        "groups of sums",
        "exact, one row each",
        cases,
        worst,
        worst <= 1 + 1e-12,
        f"{worst:.6g} of the price",
        witness,
    )


BROKEN_ONE_ROW: dict[str, Cut] = {
    "the key is trusted, nobody cut": cut_nobody,
    "each group cut by itself": cut_each_group,
    "all cut by the largest": cut_together,
}


def one_row_findings() -> list[Finding]:
    """Return what is found, and on broken versions that must be caught."""
    broken = [check_one_row(cut).of_broken(name) for name, cut in BROKEN_ONE_ROW.items()]
    return [check_one_row(), *broken]
