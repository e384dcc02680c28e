"""The smallest and the largest epsilon that can be asked: refused before a price, or kept exactly.

Every registered mechanism is in by itself. Its closed form is compared with its price on all tiny
data; where noise is so wide that its values cannot be listed, the inequalities of its proof are
checked on its public settings in high precision instead. Whatever is planned also runs.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

import tulle
from tulle.audit import table
from tulle.audit.engine.kind import kind_of
from tulle.audit.surveys.kind import is_private, laws_of, worst_ratio
from tulle.core import registry, validate
from tulle.core.errors import TulleError
from tulle.core.guarantee import largest_rho
from tulle.core.validate import LEAST_EPSILON, LEAST_SHARE, MOST_DELTA, MOST_EPSILON
from tulle.graphs.mechanisms.smooth import SLIDE, STRETCH, Smooth
from tulle.surveys.designs import RandomizedResponse
from tulle.surveys.large import LocalHashing, UnaryEncoding
from tulle.surveys.links_client import LinkForm

EXTREMES = (LEAST_EPSILON, Fraction(1, 10**6), Fraction(200), MOST_EPSILON)
DELTA = Fraction(1, 10**6)
DELTAS = (1 / Fraction(10) ** 3000, DELTA, MOST_DELTA)
ROUNDING = 2.0**-45
"""Closed forms are sums and logarithms of floats near one: their error, relative to nothing."""

SEARCHES = {
    ("graph", "degree_threshold"),
    ("graph", "sparse_vector"),
    ("relation", "sparse_vector"),
}
"""They share one draw among all places."""

WIDE = {
    ("graph", "smooth_pure"),
    ("genotypes", "one_shot"),
    ("genotypes", "peeling"),
    ("relation", "recursive"),
    ("graph", "recursive"),
    ("database", "recursive"),
    *SEARCHES,
}
"""At a tiny epsilon their noise, like any with a delta, takes too many values to list."""

MECHANISMS = list(registry.every_mechanism())
IDS = [f"{mechanism.kind}-{mechanism.name}" for mechanism in MECHANISMS]


def refused(view, mechanism, query, epsilon, delta=DELTA):
    dataset = view.small(query)[0]
    terms = view.terms(query, dataset, view.unit_for(query, dataset), epsilon, delta)
    try:
        mechanism.settings(terms, view.options(mechanism)[0])
    except TulleError:
        return True
    return False


def worst_finding(mechanism, query, epsilon, monkeypatch):
    """Return the worst ratio of a loss to its price, or of a claim to what is allowed."""
    view = kind_of(mechanism.kind)
    monkeypatch.setattr(table, "BUDGETS", ((epsilon, DELTA),))
    found = table.closed_form(view, mechanism, query, view.world_for(2, query))
    return max((finding.worst, finding.check, finding.figure) for finding in found)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_the_closed_form_keeps_to_its_price(mechanism, monkeypatch):
    view = kind_of(mechanism.kind)
    for query in view.questions(mechanism)[:1]:
        for epsilon in EXTREMES:
            listed = (mechanism.kind, mechanism.name) in WIDE or mechanism.needs_delta
            wide = listed and epsilon < 1
            if wide or refused(view, mechanism, query, epsilon):
                continue
            worst, check, figure = worst_finding(mechanism, query, epsilon, monkeypatch)
            # Parts of a price may be a twentieth of it.
            allowed = 1 + 1e-9 + 40 * ROUNDING / float(epsilon)
            assert worst <= allowed, (str(query), float(epsilon), check, figure)


def test_a_thousandth_too_little_noise_is_caught_at_the_extremes(monkeypatch):
    """The comparison has power where floats have few digits left."""

    class Thinner(type(registry.mechanisms("graph")["synthetic_response"])):
        def settings(self, terms, options):
            spent = terms.epsilon * Fraction(1001, 1000)
            return super().settings(replace(terms, epsilon=spent), options)

    for epsilon in EXTREMES:
        worst = worst_finding(Thinner(), tulle.synthetic("response"), epsilon, monkeypatch)[0]
        assert worst == pytest.approx(1.001)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_what_is_planned_also_runs(mechanism):
    view = kind_of(mechanism.kind)
    for query in view.questions(mechanism)[:1]:
        pair = view.small(query)
        unit = view.unit_for(query, pair[0])
        for epsilon, delta in product(EXTREMES, DELTAS if mechanism.needs_delta else (DELTA,)):
            if refused(view, mechanism, query, epsilon, delta):
                continue
            terms = view.terms(query, pair[0], unit, epsilon, delta)
            settings = mechanism.settings(terms, view.options(mechanism)[0])
            for dataset in pair:
                mechanism.run(terms, settings, dataset, None)


STRANGE = (
    *(0, 1, 3, -1, 10**9, 10**30, True, None, "x", "1/3", [], [1]),
    *(5e-324, 1e-300, LEAST_SHARE, 1 - LEAST_SHARE, 1 - 2**-53, float("nan"), float("inf")),
)


def faults_of_options(mechanism):
    """Return the options with which something fails after what is planned, or in odd words."""
    view, faults = kind_of(mechanism.kind), []
    if not (mechanism.options and view.questions(mechanism)):
        return faults
    query = view.questions(mechanism)[0]
    pair = view.small(query)
    unit = view.unit_for(query, pair[0])
    usual = view.options(mechanism)[0]
    for name, value in product(mechanism.options, STRANGE):
        for epsilon in (LEAST_EPSILON, Fraction(1), MOST_EPSILON):
            terms = view.terms(query, pair[0], unit, epsilon, DELTA)
            try:
                settings = mechanism.settings(terms, {**usual, name: value})
            except TulleError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
                faults.append((name, value, float(epsilon), repr(error)))
                continue
            for dataset in pair:
                try:
                    with np.errstate(over="raise", divide="raise", invalid="raise"):
                        mechanism.run(terms, settings, dataset, None)
                except Exception as error:  # noqa: BLE001
                    faults.append((name, value, float(epsilon), repr(error)))
    return faults


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_whatever_options_hold_they_are_refused_before_the_price_or_the_mechanism_runs(mechanism):
    assert faults_of_options(mechanism) == []


def test_options_that_no_noise_can_serve_would_be_found(monkeypatch):
    """The broken version takes any part of epsilon, however small."""
    monkeypatch.setattr(validate, "share", lambda or_none=False, **named: validate.number(**named))
    assert faults_of_options(registry.mechanisms("graph")["projection"])


@pytest.mark.parametrize("epsilon", EXTREMES)
@pytest.mark.parametrize(("kind", "name"), sorted(SEARCHES))
def test_searches_pay_for_both_directions_at_the_extremes(kind, name, epsilon):
    """What joining costs is b + below, what leaving costs a + b + above, exactly."""
    mechanism, view = registry.mechanisms(kind)[name], kind_of(kind)
    query = view.questions(mechanism)[0]
    if refused(view, mechanism, query, epsilon):
        return
    dataset = view.small(query)[0]
    terms = view.terms(query, dataset, view.unit_for(query, dataset), epsilon, DELTA)
    settings = mechanism.settings(terms, view.options(mechanism)[0])
    a, b = settings.epsilon_limit, settings.epsilon_stop
    above = getattr(settings, "epsilon_above", Fraction(0))
    below = getattr(settings, "epsilon_below", a)
    assert min(a, b) > 0
    assert b + below <= epsilon
    assert a + b + above <= epsilon


DESIGNS = {
    "randomized response": lambda epsilon: RandomizedResponse.of(3, epsilon=epsilon),
    "unary encoding": lambda epsilon: UnaryEncoding.of(3, epsilon=epsilon),
    "local hashing": lambda epsilon: LocalHashing.of(3, epsilon=epsilon, buckets=2),
    "link reports": lambda epsilon: LinkForm.of(3, epsilon=epsilon).design,
}


@pytest.mark.parametrize("epsilon", EXTREMES, ids=float)
@pytest.mark.parametrize("name", DESIGNS)
def test_survey_designs_keep_to_their_price_exactly(name, epsilon):
    """In fractions: no report is more than exp(epsilon) times as likely, or it is refused."""
    try:
        design = DESIGNS[name](epsilon)
    except TulleError:
        return
    laws = laws_of(design)
    assert laws.epsilon <= epsilon
    assert is_private(laws)
    # A thousandth less than what is lost would not cover it: the check has power here too.
    lost = Fraction(math.log(worst_ratio(laws)))
    assert not is_private(replace(laws, epsilon=lost * Fraction(999, 1000)))
    if epsilon < 1:
        assert lost > epsilon * Fraction(999, 1000)


def test_some_survey_designs_are_there_at_every_extreme():
    for epsilon in EXTREMES:
        assert RandomizedResponse.of(3, epsilon=epsilon).epsilon <= epsilon


@pytest.mark.parametrize("delta", [Fraction(1, 10**300), Fraction(1, 10**6), Fraction(99, 100)])
@pytest.mark.parametrize("epsilon", EXTREMES)
def test_rates_of_smooth_noise_add_up_to_the_price(epsilon, delta):
    alpha, beta = Smooth().rates(epsilon, delta)
    assert alpha + beta <= epsilon
    with mpmath.workdps(400):
        a, b, e, d = (
            mpmath.mpf(x.numerator) / x.denominator for x in (alpha, beta, epsilon, delta)
        )
        assert mpmath.exp(-(e - a + b) / mpmath.expm1(b)) <= d
        wider = b * (1 + mpmath.mpf(10) ** -6)
        near = mpmath.exp(-(e - a + wider) / mpmath.expm1(wider))
        # As large as it may be, unless the other inequality binds.
        assert near > d or alpha + beta == epsilon
    alpha, beta = registry.mechanisms("graph")["smooth_pure"].rates(epsilon, Fraction(0))
    assert SLIDE * alpha + STRETCH * beta <= epsilon
    assert float(SLIDE) >= 3**0.75


@pytest.mark.parametrize("delta", [Fraction(1, 10**30), Fraction(1, 10**6), Fraction(1, 2)])
@pytest.mark.parametrize("epsilon", EXTREMES)
def test_gaussian_noise_at_the_extremes_is_what_rho_allows(epsilon, delta):
    """rho-zCDP implies (epsilon, delta) at the best order, by an independent computation."""
    rho = largest_rho(epsilon, delta)
    with mpmath.workdps(60):
        r, d, e = (mpmath.mpf(x.numerator) / x.denominator for x in (rho, delta, epsilon))
        centre = mpmath.log(mpmath.sqrt(-mpmath.log(d) / r))

        def at(place):
            order = 1 + mpmath.exp(place)
            return r * order - mpmath.log(order * d) / (order - 1) + mpmath.log(1 - 1 / order)

        low, high = centre - 5, centre + 5
        for _ in range(200):
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (low, right) if at(left) < at(right) else (left, high)
        assert at((low + high) / 2) <= e
