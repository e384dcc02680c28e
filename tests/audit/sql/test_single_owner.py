"""What a release of contributions costs, over all small ones; and broken ways of cutting."""

import pytest

from tulle.audit.sql.single_owner import (
    BROKEN,
    check_totals,
    contributions,
    least,
    neighbours,
    totals_findings,
)


@pytest.mark.parametrize("signed", [True, False])
def test_a_release_costs_epsilon_and_no_more(signed):
    finding = check_totals(signed=signed)
    assert finding.passed, finding
    assert finding.cases > 1000
    # All of epsilon is used by someone: the check has something to see.
    assert finding.worst > 0.9


def test_the_level_moves_by_at_most_one():
    for people, others in neighbours():
        if len(people) > len(others):
            assert 0 <= least(contributions(people)) - least(contributions(others)) <= 1


@pytest.mark.parametrize("way", BROKEN)
def test_broken_ways_are_caught(way):
    finding = check_totals(**BROKEN[way])
    assert not finding.passed
    assert finding.worst > 1.05


def test_all_of_it_is_in_the_table():
    found = totals_findings()
    assert len(found) == 2 + len(BROKEN)
    assert all(finding.passed for finding in found)
    assert all(finding.worst <= 1 + 1e-12 for finding in found)
