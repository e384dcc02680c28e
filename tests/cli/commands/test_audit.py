"""``tulle audit``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.cli.cli_helpers import Run

from tulle.audit import AuditTable, Row

GOOD = Row("graph", "laplace", "edges()", "exact", 1234, "loss 0.5 of 0.5", "passed")
BROKEN = Row(
    "graph", "broken: laplace, half the noise", "edges()", "exact", 99, "loss 1 of 0.5", "caught"
)
BAD = Row("graph", "laplace", "edges()", "exact", 1234, "loss 1 of 0.5", "FAILED")


def arrange(monkeypatch: pytest.MonkeyPatch, *rows: Row) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []

    def audit(*, slow: bool, mechanisms: Sequence[str] | None, progress: Any) -> AuditTable:
        asked.append({"slow": slow, "mechanisms": mechanisms})
        progress("all graphs of 3 nodes")
        return AuditTable(rows)

    monkeypatch.setattr("tulle.audit.run_audit", audit)
    return asked


def test_a_clean_audit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = arrange(monkeypatch, GOOD, BROKEN)
    ran = run("audit")
    assert ran.code == 0
    assert "1,234" in ran.out
    assert "1 check passed, 1 broken version caught" in ran.out
    assert ran.err == ""
    assert run("audit", "--json", "--all", "--mechanism", "laplace").json()["passed"]
    assert asked == [
        {"slow": False, "mechanisms": None},
        {"slow": True, "mechanisms": ["laplace"]},
    ]


def test_a_failed_audit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arrange(monkeypatch, GOOD, BAD)
    ran = run("audit")
    assert ran.code == 1
    assert "FAILED" in ran.out
    assert run("audit", "--json").code == 1


def test_an_unknown_mechanism(run: Run) -> None:
    ran = run("audit", "--mechanism", "magic")
    assert ran.code == 2
    assert "laplace" in ran.err


@pytest.mark.slow
def test_a_real_audit(run: Run) -> None:
    ran = run("audit", "--mechanism", "isotonic", "--json")
    assert ran.code == 0
    assert ran.json()["rows"]
