"""Is the noise fresh, and from the source that was asked for?"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import AuditView
from tulle.core.mechanism import Mechanism
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.noise import system

FRESH = "fresh noise"
RUNS = 60


class _Counted(Source):
    """The system's random bytes, counted."""

    secure: ClassVar[bool] = True

    def __init__(self) -> None:
        self.used = 0

    def read(self, count: int) -> bytes:
        self.used += count
        return system().read(count)


def check_fresh(
    kind: AuditView, mechanism: Mechanism, query: Query, *, epsilon: Fraction, delta: Fraction
) -> Finding:
    """Run again and again: answers must vary, and every run must read from its source.

    A mechanism that seeds its own generator, keeps one between runs or draws nothing at all
    fails. At the epsilon used no outcome is so likely that all runs agree by chance.
    """
    dataset = kind.small(query)[0]
    unit = kind.unit_for(query, dataset)
    terms = kind.terms(query, dataset, unit, epsilon, delta)
    settings = mechanism.settings(terms, kind.options(mechanism)[0])
    draw = kind.draw(mechanism, terms, settings, dataset)
    outcomes = set()
    silent = 0
    for _ in range(RUNS):
        outcomes.add(kind.observe(draw()))
        counted = _Counted()
        draw(counted)
        silent += counted.used == 0
    passed = len(outcomes) > 1 and silent == 0
    return Finding(
        mechanism.name,
        str(query),
        FRESH,
        2 * RUNS,
        0.0 if passed else float("inf"),
        passed,
        f"{len(outcomes)} outcomes in {RUNS} runs, {silent} without a draw",
        kind.show(dataset),
    )
