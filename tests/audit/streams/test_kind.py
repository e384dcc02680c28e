"""The audit's rows of streams: the real one passes, each broken one is caught by its check."""

from __future__ import annotations

import gc

import pytest

from tulle.audit.streams import kind
from tulle.audit.table import stream_rows
from tulle.streams.stream import Stream


def test_the_stream_passes_and_broken_ones_are_caught() -> None:
    rows = stream_rows()
    assert all(row.good for row in rows), [row for row in rows if not row.good]
    passed = {row.check for row in rows if row.verdict == "passed"}
    assert passed == {"exact", "drawn", "fresh", "once"}
    assert sum(row.verdict == "caught" for row in rows) == len(kind.broken()) == 8


def test_an_audit_that_misses_a_fault_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version called broken that is not: the table must not call it caught."""
    harmless = kind.Subject("none at all", ("exact",))
    monkeypatch.setattr(kind, "broken", lambda: (harmless,))
    assert [row.verdict for row in stream_rows() if row.mechanism.startswith("broken")] == [
        "MISSED"
    ]


def test_a_stream_that_nobody_examined_fails_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tree(Stream):
        """A stream whose noise nobody has looked at."""

    monkeypatch.setattr(kind, "check_streams", list)
    monkeypatch.setattr(kind, "catch_broken", list)
    assert [(row.mechanism, row.verdict) for row in stream_rows()] == [("Tree", "FAILED")]
    del Tree
    gc.collect()
    assert stream_rows() == []
