"""The audit of partition selection finds nothing, and finds every broken version."""

from __future__ import annotations

from tulle.audit.sql.partition_selection import (
    BROKEN_BOUNDING,
    BROKEN_CHOICE,
    BROKEN_SELECTION,
    BROKEN_WEIGHTS,
    check_bounding,
    selection_findings,
)


def test_the_law_holds_and_every_broken_twin_is_caught() -> None:
    found = {finding.query: finding for finding in selection_findings()}
    assert [name for name, finding in found.items() if not finding.passed] == []
    broken = {name.removeprefix("broken: ") for name in found if name.startswith("broken: ")}
    assert broken == {*BROKEN_SELECTION, *BROKEN_BOUNDING, *BROKEN_WEIGHTS, BROKEN_CHOICE}
    # The loss is not only below delta but nearly all of it: nothing is given away.
    assert 0.9 < found["keys of three"].worst <= 1


def test_one_key_per_person() -> None:
    assert check_bounding(1).passed
