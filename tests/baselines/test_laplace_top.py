"""Two-sided noise on every score: its price, its answers, and a version with less noise."""

from fractions import Fraction

import numpy as np
import pytest
from baselines.laplace_top import LaplaceTop
from tests.genomes.genome_helpers import study

import tulle
from tulle.audit.engine.cost import Case, cost_of
from tulle.audit.genomes.laws import _log_chances
from tulle.core.mechanism import Terms
from tulle.core.unit import Unit
from tulle.core.validate import rational, text
from tulle.genomes import Genotypes, score_intervals, top_snps
from tulle.ledger.answer import plan_for

PAIR = Genotypes([[0, 2], [1, -1]], cases=[1, 0])


class Quarter(LaplaceTop):
    """Adds a quarter of the noise."""

    def settings(self, terms, options):
        found = super().settings(terms, options)
        return {**found, "selection_scale": text(rational(found["selection_scale"]) / 4)}


def terms_of(query, epsilon=Fraction(1)):
    return Terms(query, Unit.of("row"), epsilon, Fraction(0), PAIR.facts("row"))


def worst_loss(mechanism, count=1, options=3):
    """Return the largest loss of a choice when each score moves by what one person moves."""
    settings = mechanism.settings(terms_of(top_snps(1)), {})
    sensitivity, scale = int(settings["sensitivity"]), rational(settings["selection_scale"])
    worst = 0.0
    for start in np.ndindex(*(3,) * options):
        scores = tuple(sensitivity * rank for rank in start)
        ours = _log_chances("laplace_top", scores, count, scale * count)
        for signs in np.ndindex(*(2,) * options):
            moved = tuple(
                score + sensitivity * (2 * sign - 1)
                for score, sign in zip(scores, signs, strict=True)
            )
            theirs = _log_chances("laplace_top", moved, count, scale * count)
            worst = max(worst, float(np.abs(ours - theirs).max()))
    return worst


@pytest.mark.parametrize("count", [1, 2])
def test_the_loss_is_at_most_epsilon_and_less_noise_is_caught(count):
    assert worst_loss(LaplaceTop(), count) <= 1 + 1e-9
    assert worst_loss(Quarter(), count) > 1.2


@pytest.mark.parametrize("query", [top_snps(1), top_snps(2), top_snps(1, scores=True)], ids=str)
def test_draws_cost_what_is_charged(query):
    assert cost_of(LaplaceTop(), Case(terms_of(query), {}, PAIR)).kept
    assert not cost_of(Quarter(), Case(terms_of(query), {}, PAIR)).kept


@pytest.mark.parametrize("by", ["difference", "chi_square"])
def test_strong_snps_are_found(by):
    large = study(cases=600, controls=600, snps=40, missing=0.0)
    query = top_snps(2, by=by, scores=True)
    release = tulle.release(large, query, unit="row", epsilon=20.0, mechanism="laplace_top")
    assert set(release.value["snps"]) == {"snp3", "snp7"}
    truth = dict(zip(query.truth(large)["snps"], query.truth(large)["scores"], strict=True))
    found = score_intervals(release, level=0.999999)
    expected = np.array([truth[name] for name in found.snps])
    assert np.all((found.low <= expected) & (expected <= found.high))


def test_plans_do_not_offer_it():
    plan = plan_for(PAIR, top_snps(1), unit="row", epsilon=1)
    assert "laplace_top" not in {offer.mechanism for offer in plan.offers}
