"""Noise of the size of one row: its loss on all small contributions, also where no key holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from tulle.audit.engine.findings import Finding
from tulle.audit.sql.single_owner import (
    GROUPS,
    Cut,
    contributions,
    cut_each_group,
    cut_nobody,
    cut_together,
    neighbours,
)
from tulle.relations.mechanisms.single_owner import NoiseOnGroups, Owned

MOST = (0.5, 1.0, 2.5)
"""What one row adds at most; contributions are up to three, as of people with several rows."""

EPSILON = Fraction(1)


def check_one_row(cut: Cut = Owned.clipped) -> Finding:
    """Compare the largest log-ratio with epsilon, for everyone who may leave."""
    noises = [(most, NoiseOnGroups.at(most, GROUPS, EPSILON)) for most in MOST]
    cases, worst, witness = 0, 0.0, ""
    for people, others in neighbours():
        one, other = contributions(people), contributions(others)
        for most, noise in noises:
            snapped = [
                np.array([noise.lattice.snap(float(v)) for v in cut(owned, most)])
                for owned in (one, other)
            ]
            moved = float(np.abs(snapped[0] - snapped[1]).sum())
            found = moved * float(noise.lattice.step / noise.scale / EPSILON)
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


TWINS: dict[str, Cut] = {
    "the key is trusted, nobody cut": cut_nobody,
    "each group cut by itself": cut_each_group,
    "all cut by the largest": cut_together,
}


def one_row_findings() -> list[Finding]:
    """Return what is found, and on broken twins that must be caught."""
    found = [check_one_row()]
    for name, cut in TWINS.items():
        twin = check_one_row(cut)
        found.append(
            replace(
                twin,
                query=f"broken: {name}",
                passed=not twin.passed,
                worst=1 / max(twin.worst, 1e-9),
                figure=f"{twin.figure}, as it should not be",
            )
        )
    return found
