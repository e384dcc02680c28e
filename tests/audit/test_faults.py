"""An audit that catches nothing proves nothing: each broken version must be rejected."""

from pathlib import Path

import pytest

from tulle.audit.engine.broken import Broken
from tulle.audit.engine.kind import kind_of
from tulle.audit.faults import broken_versions
from tulle.audit.table import catch
from tulle.core import registry

BROKEN = [
    broken for kind in registry.groups("mechanism") for broken in broken_versions(kind_of(kind))
]
TABLE = [
    line.split(" | ")
    for line in Path(__file__).parent.joinpath("faults.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


GENERAL = {
    "half the noise": "exact",
    "seeded": "fresh noise + sampler",
    "two answers": "cost",
}
"""Broken versions that every mechanism has, and what must reject each."""

COSTLY = ("table", "database")
"""Kinds of data whose runs are too slow to be drawn by the thousand."""

EXEMPT = {
    ("database", name)
    for name in ("gaussian", "laplace", "partition_selection", "private_ranges", "quantile")
} | {("contributions", "cell_selection")}
"""Mechanisms that are examined by suites of their own."""


def general_lines() -> list[list[str]]:
    """Return the lines of the general broken versions of all mechanisms, by rule."""
    return [
        [one.kind, f"{one.name}, {what}", checks.removesuffix(" + sampler")]
        if one.kind in COSTLY
        else [one.kind, f"{one.name}, {what}", checks]
        for one in registry.every_mechanism()
        if (one.kind, one.name) not in EXEMPT
        for what, checks in GENERAL.items()
    ]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.kind}: {broken.name}")
def test_every_check_that_should_reject_a_broken_version_does(broken):
    assert broken.caught_by
    caught = catch(kind_of(broken.kind), broken)
    assert set(caught) == set(broken.caught_by)
    for check, finding in caught.items():
        assert finding is not None, f"{broken.name} is not seen by {check}"
        assert not finding.passed


def test_no_fault_and_no_check_of_one_is_lost():
    """The table is kept by hand: a fault that is taken out, or caught by less, is taken out here.

    What ERRATA of the papers lists is in it: printed bounds, printed noise, supports off the data.
    What all mechanisms have follows from their names.
    """
    assert sorted(TABLE + general_lines()) == sorted(
        [broken.kind, broken.name, " + ".join(broken.caught_by)] for broken in BROKEN
    )


def test_broken_versions_are_not_registered_and_name_a_mechanism():
    known = {(mechanism.kind, mechanism.name) for mechanism in registry.every_mechanism()}
    for broken in BROKEN:
        assert isinstance(broken, Broken)
        assert (broken.kind, broken.name) not in known
        assert (broken.kind, broken.mimics) in known
        assert broken.name.startswith(f"{broken.mimics}, ")
        assert broken.fault
        assert broken.questions
    assert len({(broken.kind, broken.name) for broken in BROKEN}) == len(BROKEN)
