"""What a check found: how many cases it saw, the worst of them, and whether that is allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Finding:
    """The result of one check on one mechanism and question.

    ``worst`` is the largest ratio of what was observed to what is allowed, so at most 1 passes.
    The witness is one of the enumerated tiny datasets: made up, not private.
    """

    mechanism: str
    query: str
    check: str
    cases: int
    worst: float
    passed: bool
    figure: str = ""
    """The worst case in the check's own terms."""
    witness: str = ""
    """Where the worst case was seen."""

    def of_broken(self, name: str) -> Finding:
        """Return this as the finding on a broken version, which passes by being caught."""
        return replace(
            self,
            query=f"broken: {name}",
            passed=not self.passed,
            worst=1 / max(self.worst, 1e-9),
            figure=f"{self.figure}, as it should not be",
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form; an infinite ratio is written as text."""
        return {
            "mechanism": self.mechanism,
            "query": self.query,
            "check": self.check,
            "cases": self.cases,
            "worst": self.worst if math.isfinite(self.worst) else str(self.worst),
            "passed": self.passed,
            "figure": self.figure,
            "witness": self.witness,
        }


def merge(findings: list[Finding]) -> list[Finding]:
    """Return one finding for each mechanism, question and check: the worst, cases added up."""
    kept: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = finding.mechanism, finding.query, finding.check
        if key not in kept:
            kept[key] = finding
            continue
        known = kept[key]
        worse = finding if finding.worst > known.worst else known
        kept[key] = replace(
            worse,
            cases=known.cases + finding.cases,
            passed=known.passed and finding.passed,
        )
    return list(kept.values())
