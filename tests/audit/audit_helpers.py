"""What the tests of every kind's audit share."""

from __future__ import annotations

from fractions import Fraction

from tulle.audit.engine.exact import check_sampler
from tulle.audit.engine.fresh import check_fresh
from tulle.audit.engine.kind import AuditView
from tulle.audit.table import DRAWN_AT, check_black_box
from tulle.core import registry


def runs_are_as_described(kind: AuditView, name: str, runs: int) -> None:
    """Runs of a mechanism have the law that is described, and draw afresh every time."""
    mechanism = registry.mechanisms(kind.name)[name]
    epsilon, delta = DRAWN_AT
    for query in kind.drawn_questions(mechanism):
        found = check_sampler(kind, mechanism, query, epsilon=epsilon, delta=delta, runs=runs)
        assert found.passed, found
        found = check_fresh(kind, mechanism, query, epsilon=Fraction(1), delta=delta)
        assert found.passed, found


def black_box_finds_nothing(kind: AuditView, name: str, runs: int) -> None:
    """Seen from outside, runs of a mechanism keep its promise."""
    mechanism = registry.mechanisms(kind.name)[name]
    for query in kind.drawn_questions(mechanism):
        found = check_black_box(kind, mechanism, query, runs)
        assert found.passed, found
