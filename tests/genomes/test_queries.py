"""Releases: the planner's choice, intervals that cover, what is computed from them."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2
from tests.genomes.genome_helpers import study

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.genomes import (
    allele_counts,
    allele_frequencies,
    association_tests,
    chi_squares,
    odds_ratios,
    p_values,
    score_intervals,
    significance,
    top_snps,
)
from tulle.ledger.answer import plan_for

STUDY = study()
LEVEL = 0.9


def true_frequencies(table):
    cells, cases = table.to_numpy().astype(float), table.labels
    cells[cells < 0] = np.nan
    return [np.nanmean(cells[group], axis=0) / 2 for group in (cases, ~cases)]


def covers(estimates, truth):
    return bool(np.all((estimates.low <= truth) & (truth <= estimates.high)))


NOISES = ["laplace", "knorm", "gaussian"]


@pytest.mark.parametrize("mechanism", NOISES)
@pytest.mark.parametrize("unit", ["row", "participant"])
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
def test_frequency_intervals_cover(unit, epsilon, mechanism):
    runs, hits = 60, 0
    truth = true_frequencies(STUDY)
    asked = {"unit": unit, "epsilon": epsilon, "delta": 1e-6, "mechanism": mechanism}
    for _ in range(runs):
        release = tulle.release(STUDY, allele_counts(), **asked)
        found = allele_frequencies(release, level=LEVEL)
        hits += covers(found["cases"], truth[0]) and covers(found["controls"], truth[1])
    assert binom.cdf(hits, runs, LEVEL) >= 1e-6


def test_frequencies_are_right_without_noise():
    release = tulle.release(STUDY, allele_counts([3, 0]), unit="row", epsilon=10_000)
    found = allele_frequencies(release)
    truth = true_frequencies(STUDY)
    assert found["cases"].value == pytest.approx(truth[0][[3, 0]])
    assert found["controls"].value == pytest.approx(truth[1][[3, 0]])
    assert found["cases"].snps == ("snp3", "snp0")
    odds = [f / (1 - f) for f in truth]
    ratios = odds_ratios(release)
    assert ratios.value == pytest.approx((odds[0] / odds[1])[[3, 0]], rel=0.05)
    assert (ratios.low <= ratios.value).all()
    assert (ratios.value <= ratios.high).all()


def test_odds_ratios_cover():
    runs, hits = 80, 0
    truth = [np.clip(f, 0.01, 0.99) for f in true_frequencies(STUDY)]
    expected = truth[0] / (1 - truth[0]) * (1 - truth[1]) / truth[1]
    for _ in range(runs):
        release = tulle.release(STUDY, allele_counts(), unit="row", epsilon=30.0)
        hits += covers(odds_ratios(release, level=LEVEL), expected)
    assert binom.cdf(hits, runs, LEVEL) >= 1e-6


def test_everyone_is_one_group_without_labels():
    table = tulle.Genotypes([[0, 2], [1, 2]])
    release = tulle.release(table, allele_counts(), unit="participant", epsilon=1000.0)
    assert release.value.shape == (1, 2, 2)
    assert allele_frequencies(release)["everyone"].value.tolist() == [0.25, 1.0]
    with pytest.raises(InputError, match="compares cases with controls"):
        odds_ratios(release)
    with pytest.raises(QueryError, match="nobody is labelled"):
        tulle.release(table, chi_squares(), unit="row", epsilon=1.0)


def test_chi_square_intervals_cover_and_become_p_values():
    runs, hits = 80, 0
    truth = chi_squares([3, 7]).truth(STUDY)
    for _ in range(runs):
        release = tulle.release(STUDY, chi_squares([3, 7]), unit="row", epsilon=3.0)
        low, high = release.interval(LEVEL)
        inside = bool(np.all((low <= truth) & (truth <= high)))
        hits += inside
        values = significance(release, level=LEVEL)
        assert covers(values, chi2.sf(truth, 1)) == inside
    assert binom.cdf(hits, runs, LEVEL) >= 1e-6


def test_statistics_from_counts_are_those_of_the_table():
    full = study(missing=0.0)
    release = tulle.release(full, allele_counts(), unit="row", epsilon=10_000)
    assert association_tests(release).value == pytest.approx(chi_squares().truth(full))


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("unit", ["row", "participant"])
@pytest.mark.parametrize("mechanism", NOISES)
def test_counts_are_as_far_off_as_predicted(mechanism, unit, complete):
    """Mean error within a tenth of the plan's, and all numbers at once inside the interval."""
    table = study(snps=30)
    if complete:
        table = tulle.Genotypes(table.to_numpy(), cases=table.labels, complete=True)
    truth = allele_counts().truth(table)
    asked = {"unit": unit, "epsilon": 1.0, "delta": 1e-6, "mechanism": mechanism}
    plan = plan_for(table, allele_counts(), **asked)
    runs = 200
    errors = np.array(
        [np.abs(tulle.release(table, allele_counts(), **asked).value - truth) for _ in range(runs)]
    )
    if complete and unit == "row":
        assert not errors[..., 1].any()
        errors = errors[..., :1]
    assert np.mean(errors) == pytest.approx(plan.chosen.prediction.mean_error, rel=0.1)
    hits = sum(error.max() <= plan.chosen.prediction.bound.half_width(LEVEL) for error in errors)
    assert binom.cdf(hits, runs, LEVEL) >= 1e-6


def test_a_complete_table_needs_less_noise():
    """Of others, how many genotypes are known is secret too, and needs noise as well."""
    people = 1000
    for complete, limits in ((False, (0.056, 0.028)), (True, (0.0275, 0.0205))):
        table = tulle.Genotypes(
            np.zeros((2 * people, 100), dtype=np.int8),
            cases=np.arange(2 * people) < people,
            complete=complete,
        )
        for delta, limit in zip((0.0, 1e-6), limits, strict=True):
            asked = {"unit": "participant", "epsilon": 1.0, "delta": delta}
            plan = plan_for(table, allele_counts(), **asked)
            assert plan.chosen.prediction.mean_error / (2 * people) < limit
    assert tulle.Genotypes([[None, 2]], complete=True).to_numpy().tolist() == [[1, 2]]
    everyone = tulle.Genotypes([[0, 2], [1, 2]], complete=True)
    for unit in ("row", "participant"):
        release = tulle.release(everyone, allele_counts(), unit=unit, epsilon=1000.0)
        assert release.value.tolist() == [[[-1, 2], [2, 2]]]
        assert release.labels.axes[0].labels == ["everyone"]
        assert allele_frequencies(release)["everyone"].value.tolist() == [0.25, 1.0]


@pytest.mark.parametrize("unit", ["row", "participant"])
def test_the_plan_takes_the_least_noise(unit):
    """One radius for all beats noise of its own for each; Gaussian noise beats both at a delta."""
    table = study(snps=100)
    for delta, best in ((0.0, "knorm"), (1e-6, "gaussian")):
        plan = plan_for(table, allele_counts(), unit=unit, epsilon=1.0, delta=delta)
        errors = {offer.mechanism: offer.prediction.mean_error for offer in plan.offers}
        assert plan.mechanism == best == min(errors, key=errors.get)
        assert errors["laplace"] > (1.4 if unit == "row" else 1.9) * errors["knorm"]
    few = plan_for(table, allele_counts([0]), unit=unit, epsilon=1.0, delta=1e-6)
    assert few.mechanism in ("knorm", "laplace")


@pytest.mark.parametrize("mechanism", NOISES)
def test_chi_squares_are_not_raised_to_zero(mechanism):
    """Of SNPs without any association the average is that of the truth: about one."""
    table = study(snps=40, missing=0.0)
    truth = chi_squares().truth(table)
    asked = {"unit": "row", "epsilon": 20.0, "delta": 1e-6, "mechanism": mechanism}
    found = np.array([tulle.release(table, chi_squares(), **asked).value for _ in range(120)])
    error = found.std() / np.sqrt(found.size)
    assert abs(found.mean() - truth.mean()) < 5 * error * (7 if mechanism == "knorm" else 1)
    assert (found < 0).any()
    # The same numbers, clipped, are too large on average.
    assert np.maximum(found, 0).mean() - truth.mean() > 5 * error
    low, high = tulle.release(table, chi_squares(), **asked).interval(LEVEL)
    assert (low >= 0).all()
    assert (low <= high).all()


def test_chi_squares_beat_p_values():
    plans = [
        plan_for(STUDY, query, unit="row", epsilon=1) for query in (chi_squares([3]), p_values([3]))
    ]
    truth = chi_squares([3]).truth(STUDY)[0]
    noise = plans[0].half_width(0.95)
    assert chi2.sf(max(truth - noise, 0), 1) < plans[1].half_width(0.95) / 10


@pytest.mark.parametrize("mechanism", ["one_shot", "peeling", "exponential"])
@pytest.mark.parametrize("by", ["difference", "chi_square"])
def test_strong_snps_are_found(mechanism, by):
    large = study(cases=600, controls=600, snps=40, missing=0.0)
    query = top_snps(2, by=by, scores=True)
    release = tulle.release(large, query, unit="row", epsilon=20.0, delta=1e-6, mechanism=mechanism)
    assert set(release.value["snps"]) == {"snp3", "snp7"}
    truth = dict(zip(query.truth(large)["snps"], query.truth(large)["scores"], strict=True))
    found = score_intervals(release, level=0.999999)
    assert covers(found, np.array([truth[name] for name in found.snps]))


def test_selection_is_as_good_as_predicted():
    large = study(cases=80, controls=60, snps=60, missing=0.0)
    query = top_snps(3)
    for name in ("one_shot", "peeling"):
        plan = plan_for(large, query, unit="row", epsilon=5, mechanism=name)
        weights = plan.chosen.settings["weights"]
        from tulle.genomes.scores import true_differences

        scores = true_differences(large, tuple(weights))
        width, hits, runs = plan.half_width(LEVEL), 0, 60
        for _ in range(runs):
            chosen = tulle.release(large, query, unit="row", epsilon=5, mechanism=name).value[
                "places"
            ]
            passed_over = np.delete(scores, chosen)
            hits += passed_over.max() - scores[chosen].min() <= width
        assert binom.cdf(hits, runs, LEVEL) >= 1e-6


def test_the_planner_prefers_the_better_choice():
    plan = plan_for(STUDY, top_snps(3), unit="row", epsilon=1)
    assert [offer.mechanism for offer in plan.offers] == ["one_shot", "peeling"]


def test_many_snps_are_cheaper_with_a_delta():
    wide = study(snps=200)
    plans = [
        plan_for(wide, top_snps(count), unit="row", epsilon=1, delta=delta)
        for count, delta in ((50, 1e-6), (50, 0), (3, 1e-6))
    ]
    assert [plan.mechanism for plan in plans] == ["exponential", "one_shot", "one_shot"]
    assert plans[0].half_width(0.95) < plans[1].half_width(0.95) / 2


def test_participants_need_a_ratio_or_counts():
    with pytest.raises(QueryError, match="ratio="):
        tulle.release(STUDY, top_snps(2), unit="participant", epsilon=1.0)
    release = tulle.release(STUDY, top_snps(2, ratio="3/4"), unit="participant", epsilon=9.0)
    assert len(release.value["snps"]) == 2
    with pytest.raises(QueryError, match="It can be asked per row"):
        tulle.release(STUDY, chi_squares(), unit="participant", epsilon=1.0)


def test_one_budget_for_several_questions(tmp_path):
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    account = ledger.open("study", STUDY, unit="row", epsilon=3)
    best = account.ask(top_snps(2), epsilon=1).value["places"]
    account.ask(allele_counts(best), epsilon=1)
    account.ask(chi_squares(best), epsilon=1)
    assert account.remaining.epsilon == 0
    with pytest.raises(tulle.BudgetError):
        account.ask(allele_counts(), epsilon="0.1")


def test_releases_survive_a_file(tmp_path):
    release = tulle.release(STUDY, top_snps(2, scores=True), unit="row", epsilon=1.0)
    release.save(tmp_path / "top.json")
    again = tulle.Release.load(tmp_path / "top.json")
    assert again.value == release.value
    assert again.guarantee == release.guarantee


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: top_snps(0), "at least 1"),
        (lambda: top_snps(1, by="magic"), "no score 'magic'"),
        (lambda: top_snps(1, by="chi_square", ratio=1), "belongs to by='difference'"),
        (lambda: allele_counts([]), "at least one SNP"),
        (lambda: allele_counts([1, 1]), "each SNP once"),
        (lambda: tulle.release(STUDY, allele_counts([99]), unit="row", epsilon=1), "SNP 99"),
        (lambda: tulle.release(STUDY, top_snps(99), unit="row", epsilon=1), "99 SNPs; there are"),
        (lambda: significance(3), "chi_squares"),
        (lambda: allele_frequencies(3), "allele_counts"),
        (lambda: score_intervals(3), "scores=True"),
    ],
)
def test_bad_questions_are_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()


@pytest.mark.parametrize("query", [allele_counts(), chi_squares(), top_snps(5)], ids=str)
def test_noise_beyond_all_numbers_is_refused_before_anything_is_spent(query, tmp_path):
    table = tulle.Genotypes(np.zeros((4, 200_000), dtype=np.int8), cases=[1, 1, 0, 0])
    account = tulle.Ledger(tmp_path / "study.ledger").open("s", table, unit="row", epsilon=1)
    if query.name == "top_snps":
        assert account.ask(query, epsilon="1e-9").value["snps"]
        return
    with pytest.raises(QueryError, match="64-bit"):
        account.ask(query, epsilon="1e-9")
    assert account.remaining.epsilon == 1


def test_an_empty_group_is_refused_by_public_facts():
    table = tulle.Genotypes([[0], [1]], cases=[1, 1])
    with pytest.raises(QueryError, match="at least one case and one control"):
        tulle.release(table, chi_squares(), unit="row", epsilon=1)


def test_a_huge_ratio_is_made_smaller():
    weights = top_snps(1, ratio="0.333333333333").weights(None)
    assert max(weights) <= 1000


def fits(noise, scale, cuts=16):
    """Return the p-value of whole noise under discrete Laplace of this scale, in bins."""
    from scipy.stats import chisquare, dlaplace

    law = dlaplace(1 / float(scale))
    edges = np.unique(law.ppf(np.linspace(0, 1, cuts + 1)[1:-1]))
    chances = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, noise, side="left"), minlength=len(chances))
    return chisquare(seen, chances * len(noise)).pvalue


@pytest.mark.parametrize("factor", [1.0, 0.7, 1.4])
def test_the_noise_on_statistics_has_the_stated_scale(factor):
    """And the same test rejects a scale that is a third off, either way."""
    query = chi_squares([3])
    truth = query.truth(STUDY)[0]
    # So many statistics in one release that hardly any noise is cut off at zero.
    release = tulle.release(STUDY, query, unit="row", epsilon=400.0)
    step, scale = (float(Fraction(release.parameters[name])) for name in ("step", "scale"))
    drawn = [tulle.release(STUDY, query, unit="row", epsilon=400.0).value[0] for _ in range(600)]
    assert min(drawn) > 0
    noise = np.rint(np.array(drawn) / step).astype(int) - round(truth / step)
    assert (fits(noise, scale * factor) > 1e-6) == (factor == 1.0)


def test_scores_without_association_are_not_raised():
    """Noise leaves half of them below zero; only what is shown is cut there."""
    genotypes = np.random.default_rng(1).integers(0, 3, (200, 1)).repeat(2, axis=0)
    flat = tulle.Genotypes(genotypes, cases=np.arange(400) % 2 == 0)
    query = top_snps(1, scores=True)
    assert query.truth(flat)["scores"] == [0]
    drawn = [tulle.release(flat, query, unit="row", epsilon=1.0) for _ in range(200)]
    below = sum(r.value["scores"][0] < 0 for r in drawn)
    assert binom.cdf(below, 200, 0.3) >= 1e-6
    assert all(score_intervals(r).value[0] >= 0 for r in drawn)


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_the_noise_on_chosen_scores_has_the_stated_scale(factor):
    single = study(cases=300, controls=300, snps=1, strong=(0,), missing=0.0)
    query = top_snps(1, scores=True)
    truth = query.truth(single)["scores"][0]
    release = tulle.release(single, query, unit="row", epsilon=2.0)
    scale = Fraction(release.parameters["score_scale"])
    assert scale == 2  # two steps at half of epsilon 2
    drawn = [
        tulle.release(single, query, unit="row", epsilon=2.0).value["scores"][0] for _ in range(800)
    ]
    noise = np.array(drawn).astype(int) - int(truth)
    assert (fits(noise, scale * Fraction(factor)) > 1e-6) == (factor == 1.0)
