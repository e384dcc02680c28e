"""An audit that catches nothing proves nothing: each twin must be rejected."""

import pytest

from tulle.audit.engine.kind import is_audited, kind_of
from tulle.audit.table import catch, completeness
from tulle.core import registry

KINDS = [kind_of(name) for name in registry.groups("mechanism") if is_audited(name)]
TWINS = [twin for kind in KINDS for twin in kind.twins()]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_every_check_that_should_reject_a_twin_does(twin):
    assert twin.caught_by
    caught = catch(kind_of(twin.kind), twin)
    assert set(caught) == set(twin.caught_by)
    for check, finding in caught.items():
        assert finding is not None, f"{twin.name} is not seen by {check}"
        assert not finding.passed


@pytest.mark.parametrize("name", registry.groups("mechanism"))
def test_every_registered_mechanism_has_a_case_and_a_twin(name):
    kind = kind_of(name) if is_audited(name) else None
    for mechanism in registry.mechanisms(name).values():
        missing = [row.check for row in completeness(kind, mechanism)]
        assert not missing, f"{mechanism.name}: the audit needs that it {' and '.join(missing)}"


def test_a_mechanism_without_case_or_twin_is_reported():
    mechanism = registry.mechanisms("graph")["smoothed_ladder"]
    stranger = type("Stranger", (type(mechanism),), {"name": "stranger"})()
    for kind in (None, kind_of("graph")):
        rows = list(completeness(kind, stranger))
        assert [row.check for row in rows] == ["has a case", "has a broken version"]
        assert not any(row.good for row in rows)


def test_twins_are_not_registered_and_name_a_mechanism():
    names = {mechanism.name for mechanism in registry.every_mechanism()}
    for twin in TWINS:
        assert twin.name not in names
        assert twin.mimics in names
        assert twin.fault
    assert len({twin.name for twin in TWINS}) == len(TWINS)
