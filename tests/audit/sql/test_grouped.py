"""What many groups with Gaussian noise cost, over all small ones; and broken ways."""

import pytest

from tulle.audit.sql.grouped import (
    BALL,
    HONEST,
    SEVERAL,
    broken_ways,
    check,
    own_programs,
    pairs_in_groups,
    relations,
)
from tulle.audit.sql.kind import AuditedDatabases
from tulle.audit.sql.single_owner import neighbours
from tulle.relations.mechanisms.grouped import largest_level
from tulle.relations.truncation.totals import truncate

BROKEN = (
    "half the noise",
    "rho of one group for all",
    "the sum of all levels",
    "groups read off one solution",
    "each group cut by itself",
    "norms after rounding",
)


def test_groups_of_pairs_cost_rho_and_no_more():
    finding = check(HONEST, pairs_in_groups(), "groups of pairs")
    assert finding.passed, finding
    assert finding.cases > 30_000
    # Nearly all of rho is used by someone: the check has something to see.
    assert finding.worst > 0.95


def test_contributions_in_a_ball_cost_rho_and_no_more():
    finding = check(BALL, neighbours(), "groups of sums")
    assert finding.passed, finding
    assert finding.worst > 0.95


def test_broken_ways_are_all_listed():
    assert sorted(BROKEN) == sorted(broken_ways())
    assert "gaussian" in AuditedDatabases.own_checks


@pytest.mark.parametrize("name", BROKEN)
def test_broken_ways_are_caught(name):
    finding = check(*broken_ways()[name], name)
    assert not finding.passed
    assert finding.worst > 1.2


def test_the_level_of_all_groups_is_the_largest_of_theirs():
    """The release asks most groups one question only; the audit works out every group's level."""
    keys = list(dict.fromkeys(key for key, _ in pairs_in_groups()))[::199]
    levels = {
        key: largest_level([truncate(one) for one in relations(key)], SEVERAL.thresholds)
        for key in keys
    }
    assert len(keys) > 20
    assert len(set(levels.values())) > 1
    assert levels == {key: own_programs(key)[0] for key in keys}
