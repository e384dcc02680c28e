"""Real runs against the closed forms."""

from fractions import Fraction

import pytest

from tulle.audit.engine.exact import check_sampler
from tulle.audit.engine.fresh import check_fresh
from tulle.audit.engine.kind import kind_of
from tulle.audit.table import DRAWN_AT
from tulle.core import registry

GRAPHS = kind_of("graph")
MECHANISMS = {
    name: item for name, item in registry.mechanisms("graph").items() if GRAPHS.questions(item)
}
EPSILON, DELTA = DRAWN_AT


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_sampler_has_the_law_of_the_description(name):
    mechanism = MECHANISMS[name]
    asked = GRAPHS.drawn_questions(mechanism)
    assert asked
    for query in asked:
        finding = check_sampler(GRAPHS, mechanism, query, epsilon=EPSILON, delta=DELTA, runs=2000)
        assert finding.passed, finding


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_sampler_has_the_law_of_the_description_at_another_budget(name):
    """Many more runs, at the audit's own budget, are in the whole audit of each mechanism."""
    mechanism = MECHANISMS[name]
    for query in GRAPHS.drawn_questions(mechanism):
        finding = check_sampler(
            GRAPHS, mechanism, query, epsilon=Fraction(1), delta=DELTA, runs=20_000
        )
        assert finding.passed, finding


@pytest.mark.parametrize("name", MECHANISMS)
def test_noise_is_fresh(name):
    mechanism = MECHANISMS[name]
    for query in GRAPHS.drawn_questions(mechanism):
        finding = check_fresh(GRAPHS, mechanism, query, epsilon=Fraction(1), delta=DELTA)
        assert finding.passed, finding
