"""Real runs against the closed forms."""

from collections import Counter
from fractions import Fraction

import pytest

from tulle.audit.engine.exact import check_sampler, chi_square
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


def test_chi_square_rejects_on_both_sides():
    law = {0: 0.5, 1: 0.5}
    assert chi_square(Counter({0: 500, 1: 500}), law, 1000) > 0.9
    assert chi_square(Counter({0: 600, 1: 400}), law, 1000) < 1e-6
    assert chi_square(Counter({0: 450, 1: 450, 2: 100}), law, 1000) < 1e-6
    assert chi_square(Counter({0: 1000}), {0: 1.0}, 1000) == 1.0
    assert chi_square(Counter({0: 900, 1: 100}), {0: 1.0}, 1000) == 0.0


def test_one_rare_outcome_again_and_again_is_rejected():
    """As from a source with a seed; so is one that cannot occur, among many that can."""
    law = dict.fromkeys(range(1000), 0.001)
    assert chi_square(Counter(range(200)), law, 200) == 1.0
    assert chi_square(Counter({5: 200}), law, 200) == 0.0
    assert chi_square(Counter(range(150)) + Counter({-1: 50}), law, 200) == 0.0
