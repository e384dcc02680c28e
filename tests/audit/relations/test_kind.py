"""Relations: both mechanisms keep their promises on many tiny ones, and each twin is caught."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.relations.enumeration import General
from tests.relations.written_out import slope

from tulle.audit.engine.exact import check_exact, check_sampler, output_law
from tulle.audit.engine.exhaustive import describe_world
from tulle.audit.engine.failures import check_alike
from tulle.audit.engine.fresh import check_fresh
from tulle.audit.engine.kind import kind_of
from tulle.audit.relations.faults import no_gap, shorten
from tulle.audit.relations.kind import HEAVIEST
from tulle.audit.relations.tiny import apart_from_names, careful, conjunctive, relation_key
from tulle.audit.relations.truncated import Difference, Lanes, laplace_masses, place
from tulle.audit.table import DRAWN_AT, check_black_box, closed_form
from tulle.core import registry
from tulle.relations.data import Relation
from tulle.relations.queries import total

RELATIONS = kind_of("relation")
MECHANISMS = registry.mechanisms("relation")
EPSILON, DELTA = DRAWN_AT
BOTH = [total(), total(signed=True)]


def settled(name, query, epsilon=EPSILON):
    """Return a mechanism's terms and settings for its first options, and a small relation."""
    mechanism, relation = MECHANISMS[name], RELATIONS.small(query)[0]
    unit = relation.check_unit("participant")
    terms = RELATIONS.terms(query, relation, unit, epsilon)
    settings = mechanism.settings(terms, RELATIONS.options(mechanism)[0])
    return mechanism, terms, settings, relation


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5])
def test_worlds_hold_all_that_is_left_when_someone_leaves(size):
    world = RELATIONS.world(size)
    keys = {relation_key(dataset): place for place, dataset in enumerate(world.datasets)}
    assert len(keys) == len(world.datasets)
    pairs = set(zip(world.first.tolist(), world.second.tolist(), strict=True))
    assert pairs == {(b, a) for a, b in pairs}
    for here, relation in enumerate(world.datasets):
        for less in relation.neighbours(world.unit):
            there = keys[relation_key(less)]
            assert there == here or (here, there) in pairs
        loads = np.zeros(relation.count)
        for note, height in relation.annotations():
            for name in note.participants():
                loads[name] += slope(note, name) * abs(height)
        assert loads.max(initial=0.0) <= HEAVIEST


def test_worlds_are_not_vacuous():
    """Levels above one, values that are cut, both solvers, weights of both signs."""
    mechanism, terms, settings, _ = settled("recursive", total())
    levels = set()
    for size in (3, 4, 5):
        for relation in RELATIONS.world(size).datasets:
            law = RELATIONS.describe(mechanism, terms, settings, relation).parts[0][1]
            levels.add(law.level)
    assert levels == {0, 1, 2, 3, 4}
    assert {relation.is_conjunctive for relation in RELATIONS.world(3).datasets} == {True, False}
    assert any((relation.weights < 0).any() for relation in RELATIONS.world(3).datasets)
    # Even with the usual, large thresholds something is cut.
    usual = mechanism.settings(terms, {})
    heavy = conjunctive([((0,), 50.0), ((0, 1), 50.0)], 2)
    law = RELATIONS.describe(mechanism, terms, usual, heavy).parts[0][1]
    values = [lattice.value(c) for lattice, c in zip(law.grid.lattices, law.centres, strict=True)]
    assert values[0] < 85
    assert values[-2] == pytest.approx(100, abs=1)


@pytest.mark.parametrize("query", BOTH, ids=str)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("name", MECHANISMS)
def test_claims_and_distributions(name, size, query):
    findings = closed_form(RELATIONS, MECHANISMS[name], query, RELATIONS.world(size))
    for finding in findings:
        assert finding.passed, finding
    exact = next(finding for finding in findings if finding.check == "exact")
    # What is claimed is needed: some pair of neighbours uses up nearly all of it.
    assert exact.worst > (0.98 if not query.signed or size < 4 else 0.48)


@pytest.mark.slow
@pytest.mark.parametrize("query", BOTH, ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_claims_and_distributions_on_many_more(name, query):
    world = RELATIONS.world(6)
    assert len(world.datasets) > 1000
    for finding in closed_form(RELATIONS, MECHANISMS[name], query, world):
        assert finding.passed, finding


@pytest.mark.parametrize("query", BOTH, ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_sampler_has_the_law_of_the_description(name, query):
    finding = check_sampler(
        RELATIONS, MECHANISMS[name], query, epsilon=EPSILON, delta=DELTA, runs=1500
    )
    assert finding.passed, finding


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(4)])
@pytest.mark.parametrize("query", BOTH, ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_sampler_has_the_law_of_the_description_in_many_runs(name, query, epsilon):
    finding = check_sampler(
        RELATIONS, MECHANISMS[name], query, epsilon=epsilon, delta=DELTA, runs=20_000
    )
    assert finding.passed, finding


@pytest.mark.parametrize("query", BOTH, ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_noise_is_fresh(name, query):
    finding = check_fresh(RELATIONS, MECHANISMS[name], query, epsilon=Fraction(1), delta=DELTA)
    assert finding.passed, finding


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_black_box_finds_nothing(name):
    finding = check_black_box(RELATIONS, MECHANISMS[name], total(), 30_000)
    assert finding.passed, finding


@pytest.mark.parametrize("size", [0, 1])
def test_neighbours_fail_alike(size):
    budgets = [(1.0, 0.0), (1e6, 0.5), ("1e-9", 0), (0, 0), ("x", 2)]
    names = [None, *MECHANISMS]
    world = RELATIONS.world(size)
    finding = check_alike(RELATIONS, world, RELATIONS.odd_questions(), budgets, names)
    assert finding.passed, finding


def test_the_gap_is_what_gives_its_broken_version_away():
    """With the same noise and an exact solver the checks find nothing."""
    exact = no_gap(MECHANISMS["recursive"], exact=True)
    for finding in closed_form(RELATIONS, exact, total(), RELATIONS.world(4)):
        assert finding.passed, finding


def test_shortening_keeps_the_truth_table():
    long = next(note for note, _ in careful().annotations() if len(note.participants()) == 3)
    short = shorten(long)
    assert short != long
    for present in itertools.product((False, True), repeat=3):
        assert short.holds(present) == long.holds(present)


@pytest.mark.parametrize("query", BOTH, ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_masses_add_up_to_one(name, query):
    mechanism, terms, settings, relation = settled(name, query)
    description = RELATIONS.describe(mechanism, terms, settings, relation)
    law = output_law(RELATIONS, mechanism, terms, settings, description)
    # Levels beyond the last that is listed have no cells. A search may go on for long where nobody
    # sticks out: of its two sides, more lies there.
    least = 0.9 if name == "sparse_vector" and query.signed else 0.97
    assert least < sum(law.values()) < 1 + 1e-9
    assert min(law.values()) > -1e-12
    telling = [mass for mass in law.values() if mass * 1500 >= 8]
    assert 10 < len(telling) < 100


def test_levels_have_the_masses_of_clipped_noise():
    mechanism, terms, settings, relation = settled("recursive", total())
    law = RELATIONS.describe(mechanism, terms, settings, relation).parts[0][1]
    assert law.level > 0
    steps, masses = laplace_masses(1 / law.select, 1e-12)
    clipped = np.maximum(law.level + steps, 0)
    for level, log in zip(law.grid.levels[:6], law.level_logs, strict=False):
        assert math.exp(log) == pytest.approx(masses[clipped == level].sum(), rel=1e-9)


def test_known_losses():
    one, other = conjunctive([((0,), 3.0), ((0, 1), 3.0)], 2), conjunctive([], 2)
    mechanism, terms, settings, _ = settled("recursive", total())
    first, second = (
        RELATIONS.describe(mechanism, terms, settings, relation).parts[0][1]
        for relation in (one, other)
    )
    assert (first.level, second.level) == (1, 0)
    select, answer = float(first.select), 3 - float(first.select)
    # At the least threshold all of it is moved; the gap and the lattice's step are paid for too.
    assert first.loss(second) == pytest.approx(select + answer / 1.0111, rel=1e-3)
    assert first.loss(first) == 0
    masses, losses = first.losses(second)
    assert masses.sum() == 1
    assert losses.max() == first.loss(second)


def test_the_race_and_differences_against_draws_of_the_law_itself():
    """Closed forms of the largest lane and of a difference, against many simulated ones."""
    generator = np.random.default_rng(5)
    mechanism, terms, settings, relation = settled("race", total(signed=True))
    law = RELATIONS.describe(mechanism, terms, settings, relation).parts[0][1]
    assert isinstance(law, Difference)
    count = 200_000

    def simulate(side):
        assert isinstance(side, Lanes)
        best = np.zeros(count)
        for at, centre in enumerate(side.centres):
            q = math.exp(-1 / float(side.grid.scales[at]))
            noise = generator.geometric(1 - q, count) - generator.geometric(1 - q, count)
            values = side.grid.lattices[at].value(centre + noise)
            best = np.maximum(best, values - side.grid.penalties[at])
        return best

    cells = place((), simulate(law.positive) - simulate(law.negative))
    for (shown, cell), mass in zip(*law.points(1e-7), strict=True):
        assert shown == ()
        assert np.mean(cells == cell) == pytest.approx(mass, abs=6 * math.sqrt(0.25 / count))


def test_values_are_below_the_general_mechanism_on_the_whole_world():
    """An oracle by enumeration that knows nothing of linear programs."""
    mechanism, terms, settings, _ = settled("recursive", total())
    for relation in RELATIONS.world(3).datasets:
        law = RELATIONS.describe(mechanism, terms, settings, relation).parts[0][1]
        general = General(relation.parts()[0])
        for at, tau in enumerate(law.grid.taus[:8]):
            value = law.grid.lattices[at].value(law.centres[at])
            assert value <= general.value(tau) + 0.02 * tau
            assert value >= min(tau, general.value(tau)) - 0.02 * tau


def test_the_exact_check_needs_the_stated_epsilon():
    """The budget is tight: the same runs do not keep a promise that is three percent stronger."""
    mechanism, terms, settings, _ = settled("recursive", total())
    world = RELATIONS.world(3)
    options = RELATIONS.options(mechanism)[0]
    described = describe_world(RELATIONS, mechanism, total(), world, EPSILON, DELTA, options)
    guarantee = mechanism.guarantee(terms, settings)
    for epsilon, kept in ((EPSILON, True), (EPSILON * Fraction(97, 100), False)):
        promise = type(guarantee)(guarantee.unit, epsilon, Fraction(0))
        finding = check_exact(RELATIONS, mechanism, total(), world, described, promise)
        assert finding.passed is kept


def test_names_do_not_matter():
    one = Relation.from_annotations([(careful().general[0][0], 3.0)], normalise=False)
    assert apart_from_names(one) == apart_from_names(careful().without(3))
