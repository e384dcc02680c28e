"""Contributions of one owner each: all small ones, and what a release of them costs, exactly.

Questions in SQL whose rows are about one participant go this way
(:mod:`tulle.relations.mechanisms.single_owner`), and not through the linear programs that the view
of relations examines. A release is a level with noise, and at its threshold a vector with noise;
the largest log-ratio between neighbours is worked out level by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.audit.engine.findings import Finding
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import RecursiveSettings
from tulle.relations.mechanisms.single_owner import NoiseOnGroups, Owned
from tulle.relations.truncation.totals import least_level

Array = npt.NDArray[Any]
Person = tuple[float, ...]
People = tuple[Person, ...]
Cut = Callable[[Owned, float], Array]
Level = Callable[[Owned], int]
Described = tuple[int, Array]

GROUPS = 2
AMOUNTS = (-2.0, 0.0, 1.0, 3.0)
CHOICE = RecursiveSettings(0.5, 0.35, 1.0, 1.0, Fraction(1, 4), Fraction(3, 4))
"""Thresholds among the contributions, and a little below and above them."""

EPSILON = CHOICE.epsilon_select + CHOICE.epsilon_answer

_TAUS = [CHOICE.threshold(level) for level in range(12)]
_NOISES = [NoiseOnGroups.at(tau, GROUPS, CHOICE.epsilon_answer) for tau in _TAUS]
_SCALES = np.array([float(noise.scale / noise.lattice.step) for noise in _NOISES])
_CHECK = "exact, one owner each"


def contributions(people: People, *, signed: bool = True) -> Owned:
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
    return Owned(relations, signed=signed)


def neighbours() -> Iterator[tuple[People, People]]:
    """Yield everything of up to three participants with and without each of them, both ways."""
    everyone = list(product(AMOUNTS, repeat=GROUPS))
    for size, vectors in ((1, everyone), (2, everyone), (3, everyone[::2])):
        for people in combinations_with_replacement(vectors, size):
            for gone in range(size):
                less = people[:gone] + people[gone + 1 :]
                yield people, less
                yield less, people


def least(owned: Owned) -> int:
    """Return the level that a release starts from."""
    return least_level(owned, CHOICE.thresholds)


def describe(owned: Owned, cut: Cut = Owned.clipped, level: Level = least) -> Described:
    """Return the level of a release, and for each level drawn the sums in steps of its lattice."""
    sums = [
        [noise.lattice.snap(float(value)) for value in cut(owned, tau)]
        for tau, noise in zip(_TAUS, _NOISES, strict=True)
    ]
    return level(owned), np.array(sums)


def loss(one: Described, other: Described) -> float:
    """Return the largest log-ratio of what is released of the two."""
    (here, ours), (there, theirs) = one, other
    drawn = np.arange(len(_TAUS))
    levels = (np.abs(drawn - there) - np.abs(drawn - here)) * float(CHOICE.epsilon_select)
    given = np.abs(ours - theirs).sum(axis=1) / _SCALES
    return float(np.max(levels + given))


def check_owned(*, signed: bool = True, cut: Cut = Owned.clipped, level: Level = least) -> Finding:
    """Compare the loss with epsilon on all small contributions."""
    known: dict[People, Described] = {}

    def described(people: People) -> Described:
        if people not in known:
            known[people] = describe(contributions(people, signed=signed), cut, level)
        return known[people]

    cases, worst, witness = 0, 0.0, ""
    for people, others in neighbours():
        found = loss(described(people), described(others))
        cases += 1
        if found > worst:
            worst, witness = found, f"{people} and {others}"
    part = worst / float(EPSILON)
    return Finding(
        "recursive",
        f"groups of {'signed ' if signed else ''}sums",
        _CHECK,
        cases,
        part,
        part <= 1 + 1e-12,
        f"epsilon {worst:.6g} of {float(EPSILON):.6g}",
        witness,
    )


def cut_each_group(owned: Owned, tau: float) -> Array:
    """Cut everyone to tau in each group, and not in all together: a broken way."""
    cut: Array = np.bincount(owned.places, np.clip(owned.amounts, -tau, tau), owned.groups)
    return cut


def cut_nobody(owned: Owned, tau: float) -> Array:
    """Cut nobody: a broken way."""
    whole: Array = np.bincount(owned.places, owned.amounts, owned.groups)
    return whole


def cut_together(owned: Owned, tau: float) -> Array:
    """Scale all totals by what the largest contribution needs: a broken way."""
    largest = max(float(owned.loads.max(initial=tau)), tau)
    scaled: Array = cut_nobody(owned, tau) * (tau / largest)
    return scaled


def level_of_totals(owned: Owned) -> int:
    """Let the level follow the total, which one participant moves by anything: a broken way."""
    return int(owned.loads.sum())


BROKEN_CUTS: dict[str, Cut] = {
    "each group cut by itself": cut_each_group,
    "nobody cut": cut_nobody,
    "all cut by the largest": cut_together,
}
BROKEN: dict[str, dict[str, Any]] = {
    **{name: {"cut": cut} for name, cut in BROKEN_CUTS.items()},
    "a level of totals": {"level": level_of_totals},
}


def owned_findings() -> list[Finding]:
    """Return what is found on contributions, and on broken ways that must be caught."""
    found = [check_owned(signed=signed) for signed in (True, False)]
    for name, broken in BROKEN.items():
        caught = check_owned(**broken)
        found.append(
            replace(
                caught,
                query=f"broken: {name}",
                passed=not caught.passed,
                worst=1 / max(caught.worst, 1e-9),
                figure=f"{caught.figure}, as it should not be",
            )
        )
    return found
