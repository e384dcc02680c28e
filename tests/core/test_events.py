"""What happened, as ledgers book it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tulle.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Gaussian,
    Pure,
    event_from_json,
    event_to_json,
)
from tulle.ledger.divergence import concentration

mpmath = pytest.importorskip("mpmath")


def test_events_are_written_and_read() -> None:
    event = Composed((Gaussian(Fraction(1, 3)), BoundedRange(Fraction(1, 7)), Pure(Fraction(2))))
    assert event_from_json(event_to_json(event)) == event
    with pytest.raises(ValueError, match="below zero"):
        event_from_json({"event": "Pure", "epsilon": "-1"})
    assert concentration(event) == Fraction(1, 3) + Fraction(1, 8 * 49) + 2
    assert concentration(Approximate(Fraction(1), Fraction(1, 9))) is None
