"""The race: intervals, whoever wins. Its answers are tested with the audit."""

from __future__ import annotations

import pytest
from scipy.stats import binom

import tulle
from tulle.relations.annotations import Participant
from tulle.relations.data import Relation
from tulle.relations.queries import total


def test_intervals_hold_over_all_releases_also_where_nobody_wins() -> None:
    """Intervals of winners alone held once in four on small data: noise had picked them."""
    held = Relation.from_annotations([(Participant(0) & Participant(1), 1.0)])
    runs, hits, shown = 600, 0, 0
    for _ in range(runs):
        r = tulle.release(
            held, total(), unit="participant", epsilon=1.0, mechanism="race", bound="2"
        )
        low, high = r.interval(0.9)
        hits += bool(low <= 1 <= high)
        shown += "threshold" in r.parameters and bool(low <= 1)
    assert binom.cdf(hits, runs, 0.9) > 1e-6
    # Broken version: silent but where a threshold won.
    assert 0 < shown < runs / 2


@pytest.mark.parametrize("bound", ["2", "64", "1e6"])
@pytest.mark.parametrize("people", [0, 1, 2, 9])
def test_intervals_hold_at_every_level(bound: str, people: int) -> None:
    """Where nobody won, the penalty that no threshold paid once raised the lower end above all."""
    each = [(Participant(one) & Participant(one + 1), 1.0) for one in range(people)]
    held = Relation.from_annotations(each)
    releases = [
        tulle.release(
            held, total(), unit="participant", epsilon=epsilon, mechanism="race", bound=bound
        )
        for epsilon in (0.01, 1.0, 30.0)
        for _ in range(60)
    ]
    for level in (0.01, 0.5, 0.9, 0.95, 0.999):
        hits = sum(r.interval(level)[0] <= people for r in releases)
        assert binom.cdf(hits, len(releases), level) > 1e-6, level
    # Zero is all that is known of a release that no threshold won.
    lost = [r for r in releases if "threshold" not in r.parameters]
    assert all(r.interval(level)[0] == 0 for r in lost for level in (0.01, 0.5, 0.9, 0.999))
