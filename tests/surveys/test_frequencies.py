"""Estimators: exact unbiasedness, and intervals that cover at their stated rate.

Each coverage test makes 1000 intervals at 95 % and needs 915 hits. The same test rejects
intervals of half the width, and estimators that ignore the perturbation.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from baselines.laplace_and_round import laplace_and_round
from scipy import stats
from tests.surveys.survey_helpers import COVERAGE_RUNS, LEAST_COVERED, covers, draw_reports

from tulle.core.errors import InputError
from tulle.surveys import (
    Collection,
    DesignMatrix,
    LocalHashing,
    RandomizedResponse,
    Survey,
    UnaryEncoding,
    operators,
    perturb,
    reconstruct,
    statistics,
)
from tulle.surveys.designs import MatrixDesign
from tulle.surveys.error_law import NormalLaw
from tulle.surveys.frequencies import Frequencies, Target
from tulle.surveys.likelihood import most_likely, project_to_simplex

LEVELS = np.array([0.08, 0.20, 0.27, 0.22, 0.15, 0.08])
GIVEN = np.array([[85, 12, 3], [70, 22, 8], [45, 38, 17], [25, 40, 35], [12, 33, 55], [6, 19, 75]])
DEPENDENT = LEVELS[:, None] * GIVEN / 100
INDEPENDENT = np.outer(DEPENDENT.sum(axis=1), DEPENDENT.sum(axis=0))
SKEWED = DesignMatrix.of([["3/4", "1/4", "1/8"], ["1/8", "1/2", "1/8"], ["1/8", "1/4", "3/4"]])
PAIR = (RandomizedResponse.of(6, epsilon=2), RandomizedResponse.of(3, epsilon=2))


def test_the_coverage_test_has_its_stated_power() -> None:
    assert stats.binom.cdf(LEAST_COVERED - 1, COVERAGE_RUNS, 0.95) < 2e-6
    assert stats.binom.cdf(LEAST_COVERED - 1, COVERAGE_RUNS, 0.88) > 0.9997


# --- exact algebra ----------------------------------------------------------------------------


def test_operators_equal_the_kronecker_product() -> None:
    generator = np.random.default_rng(2)
    designs = (RandomizedResponse.of(4, epsilon=1), SKEWED, laplace_and_round(2, epsilon=1))
    full = np.array([[1.0]])
    for design in designs:
        full = np.kron(full, operators.matrix_of(design))
    table = generator.random((4, 3, 2))
    inverse = np.linalg.inv(full)
    for function, matrix in (
        (operators.apply, full),
        (operators.apply_transposed, full.T),
        (operators.solve, inverse),
        (operators.solve_transposed, inverse.T),
        (operators.solve_squared, inverse**2),
    ):
        expected = (matrix @ table.ravel()).reshape(table.shape)
        assert np.allclose(function(designs, table), expected, atol=1e-9)


def all_outcomes(designs: tuple[MatrixDesign, ...], answers: list[Any]) -> Any:
    """Yield each table of reports of a few clients, and its probability."""
    spaces = [list(product(*(range(d.categories) for d in designs)))] * len(answers)
    for reports in product(*spaces):
        chance = 1.0
        counts = np.zeros(tuple(d.categories for d in designs), dtype=np.int64)
        for answer, report in zip(answers, reports, strict=True):
            counts[report] += 1
            for design, u, v in zip(designs, report, answer, strict=True):
                chance *= float(design.probability(u, v))
        yield counts, chance


@pytest.mark.parametrize(
    ("designs", "answers"),
    [
        ((RandomizedResponse.of(3, epsilon=1),), [(0,), (0,), (1,), (2,)]),
        ((SKEWED,), [(0,), (2,), (2,)]),
        ((RandomizedResponse.of(2, epsilon=1), SKEWED), [(0, 1), (1, 2), (1, 1)]),
    ],
)
def test_shares_and_dispersion_are_unbiased_over_all_outcomes(
    designs: tuple[MatrixDesign, ...], answers: list[Any]
) -> None:
    """No sampling: every possible outcome with its probability."""
    truth = np.zeros(tuple(d.categories for d in designs))
    for answer in answers:
        truth[answer] += 1 / len(answers)
    mean = np.zeros_like(truth)
    square = np.zeros((truth.size, truth.size))
    claimed = np.zeros_like(square)
    for counts, chance in all_outcomes(designs, answers):
        table = Frequencies(designs, counts)
        value = table.unbiased()
        mean += chance * value
        square += chance * np.outer(value - truth, value - truth)
        claimed += chance * table.dispersion("respondents")
    assert np.allclose(mean, truth, atol=1e-12)
    assert np.allclose(claimed, square, atol=1e-12)


def test_the_population_dispersion_is_unbiased_over_all_outcomes() -> None:
    """Lemma 14, with the clients' answers random as well."""
    design = RandomizedResponse.of(3, epsilon=1)
    shares = np.array([0.5, 0.3, 0.2])
    square, claimed = np.zeros((3, 3)), np.zeros((3, 3))
    for answers in product(range(3), repeat=3):
        weight = float(np.prod(shares[list(answers)]))
        for counts, chance in all_outcomes((design,), [(a,) for a in answers]):
            table = Frequencies((design,), counts)
            error = table.unbiased() - shares
            square += weight * chance * np.outer(error, error)
            claimed += weight * chance * table.dispersion("population")
    assert np.allclose(claimed, square, atol=1e-12)


def test_variances_are_the_diagonal_of_the_dispersion() -> None:
    counts = np.random.default_rng(5).integers(50, 200, (6, 3))
    table = Frequencies(PAIR, counts)
    targets: tuple[Target, ...] = ("respondents", "population")
    for target in targets:
        diagonal = np.diag(table.dispersion(target)).reshape(6, 3)
        assert np.allclose(table.variances(target), diagonal)
        gradient = np.random.default_rng(6).random((6, 3))
        shares = table.unbiased()
        expected = gradient.ravel() @ table.covariance_at(shares, target) @ gradient.ravel()
        assert table.functional_variance(shares, gradient, target) == pytest.approx(expected)


# --- the simplex ------------------------------------------------------------------------------


def loglikelihood(designs: tuple[MatrixDesign, ...], observed: Any, shares: Any) -> float:
    return float(np.sum(observed * np.log(operators.apply(designs, shares))))


def test_the_most_likely_shares_beat_all_others() -> None:
    generator = np.random.default_rng(8)
    for designs in ((RandomizedResponse.of(5, epsilon=0.5),), (SKEWED,), PAIR):
        shape = tuple(d.categories for d in designs)
        for _ in range(10):
            table = Frequencies(designs, generator.integers(1, 30, shape))
            found = table.likelihood()
            assert found.min() >= 0
            assert found.sum() == pytest.approx(1)
            best = loglikelihood(designs, table.observed, found)
            others = generator.dirichlet(np.ones(found.size) / 2, 200).reshape(-1, *shape)
            nearby = 0.99 * found + 0.01 * others
            for other in (*others, *nearby, project_to_simplex(table.unbiased())):
                assert loglikelihood(designs, table.observed, other) <= best + 2e-3


def test_the_closed_form_agrees_with_the_iteration() -> None:
    generator = np.random.default_rng(9)
    design = RandomizedResponse.of(6, epsilon=0.5)
    for _ in range(20):
        table = Frequencies((design,), generator.integers(1, 40, 6))
        slow = most_likely((design,), table.observed, table.unbiased(), 1e-9)
        assert np.allclose(table.likelihood(), slow, atol=1e-3)


# --- coverage ---------------------------------------------------------------------------------


def proportions_hits(
    designs: tuple[MatrixDesign, ...], table: Any, n: int, target: Target, method: str, width: float
) -> int:
    generator = np.random.default_rng(11)
    matrices = [operators.matrix_of(design) for design in designs]
    fixed = np.round(table * n).astype(int)
    hits = 0
    for _ in range(COVERAGE_RUNS):
        people = fixed
        if target == "population":
            people = generator.multinomial(n, table.ravel()).reshape(table.shape)
        truth = table if target == "population" else people / people.sum()
        found = Frequencies(designs, draw_reports(generator, matrices, people))
        value = found.likelihood() if method == "likelihood" else found.unbiased()
        law = found.law(target)
        hits += bool((np.abs(value - truth) <= width * law.half_width(0.95)).all())
    return hits


@pytest.mark.parametrize("target", ["respondents", "population"])
@pytest.mark.parametrize("method", ["unbiased", "likelihood"])
def test_intervals_of_proportions_cover_all_entries_at_once(target: Target, method: str) -> None:
    for designs, table, n in (
        (PAIR[:1], LEVELS, 1000),
        ((laplace_and_round(3, epsilon=4),), np.array([0.5, 0.3, 0.2]), 1000),
        ((RandomizedResponse.of(3, epsilon=0.5),), np.array([0.97, 0.02, 0.01]), 1000),
        # Few reports matter here: a plain normal law covers 92 and 91 % of the time.
        ((RandomizedResponse.of(6, epsilon=5),), LEVELS, 248),
        (PAIR[:1], LEVELS, 100),
    ):
        assert covers(proportions_hits(designs, table, n, target, method, 1.0))
    assert not covers(proportions_hits(PAIR[:1], LEVELS, 1000, target, method, 0.5))


def test_joint_proportions_cover() -> None:
    assert covers(proportions_hits(PAIR, DEPENDENT, 4000, "respondents", "unbiased", 1.0))


def truth_of(name: str, p: Any, n: int) -> float:
    rows, columns = p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True)
    used = p > 0
    if name == "chi_square":
        return float(n * ((p**2 / (rows * columns)).sum() - 1))
    if name == "mutual_information":
        return float((p[used] * np.log2(p[used] / (rows * columns)[used])).sum())
    if name == "entropy":
        shares = p.sum(axis=1)
        return float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum())
    a, b = np.arange(6)[:, None], np.arange(3)[None, :]
    at_a, at_b = a - (p * a).sum(), b - (p * b).sum()
    return float((p * at_a * at_b).sum() / np.sqrt((p * at_a**2).sum() * (p * at_b**2).sum()))


def statistic(name: str, table: Frequencies, target: Target) -> statistics.Estimate:
    if name == "entropy":
        return statistics.entropy(Frequencies(table.designs[:1], table.counts.sum(axis=1)), target)
    if name == "chi_square":
        return statistics.chi_square(table, target)
    if name == "mutual_information":
        return statistics.mutual_information(table, target)
    return statistics.correlation(table, None, target)


@cache
def statistic_hits(name: str, dependent: bool, n: int, target: Target) -> dict[str, int]:
    """Count hits of the intervals, of halved ones, and around the statistic of the reports."""
    table = DEPENDENT if dependent else INDEPENDENT
    generator = np.random.default_rng(12)
    matrices = [operators.matrix_of(design) for design in PAIR]
    fixed = np.round(table * n).astype(int)
    hits = {"whole": 0, "halved": 0, "naive": 0}
    for _ in range(COVERAGE_RUNS):
        people = fixed
        if target == "population":
            people = generator.multinomial(n, table.ravel()).reshape(table.shape)
        shares = table if target == "population" else people / people.sum()
        found = Frequencies(PAIR, draw_reports(generator, matrices, people))
        estimate = statistic(name, found, target)
        truth, width = truth_of(name, shares, n), 1.959964 * estimate.sigma
        hits["whole"] += abs(estimate.value - truth) <= width
        hits["halved"] += abs(estimate.value - truth) <= width / 2
        hits["naive"] += abs(truth_of(name, found.observed, n) - truth) <= width
    return hits


STATISTICS = ["entropy", "chi_square", "mutual_information", "correlation"]


@pytest.mark.parametrize("name", STATISTICS)
def test_intervals_of_statistics_cover(name: str) -> None:
    assert covers(statistic_hits(name, True, 8000, "respondents")["whole"])


@pytest.mark.parametrize("name", STATISTICS)
def test_broken_statistics_are_rejected_by_the_same_test(name: str) -> None:
    """Half the width, and the statistic of the reports taken for that of the answers."""
    hits = statistic_hits(name, True, 8000, "respondents")
    assert not covers(hits["halved"])
    assert not covers(hits["naive"])


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("dependent", [True, False])
@pytest.mark.parametrize("n", [2000, 50_000])
def test_intervals_of_statistics_cover_the_population(name: str, dependent: bool, n: int) -> None:
    assert covers(statistic_hits(name, dependent, n, "population")["whole"])


def test_the_independence_test_keeps_its_level_and_has_power() -> None:
    generator = np.random.default_rng(13)
    matrices = [operators.matrix_of(design) for design in PAIR]
    rejected = {"independent": 0, "dependent": 0}
    for _ in range(1000):
        for label, table in (("independent", INDEPENDENT), ("dependent", DEPENDENT)):
            people = generator.multinomial(1000, table.ravel()).reshape(6, 3)
            counts = draw_reports(generator, matrices, people)
            rejected[label] += statistics.independence_p_value(counts) < 0.05
    assert rejected["independent"] <= stats.binom.ppf(1 - 1e-6, 1000, 0.06)
    assert rejected["dependent"] > 900


@pytest.mark.parametrize(
    "design",
    [UnaryEncoding.of(40, epsilon=1), LocalHashing.of(40, epsilon=1)],
    ids=["unary", "hash"],
)
def test_large_designs_are_unbiased_and_cover(design: UnaryEncoding | LocalHashing) -> None:
    """200 surveys of 2000 people: all 40 shares within their intervals at 95 %."""
    form = Survey({"a": 40}).form(designs={"a": design})
    codes = (np.arange(2000) ** 2 // 4000) % 40
    truth = np.bincount(codes, minlength=40) / 2000
    hits = 0
    total = np.zeros(40)
    spread = np.zeros(40)
    for _ in range(200):
        collection = Collection(form)
        collection.add(perturb(form, {"a": codes}))
        made = collection.proportions("a")
        low, high = made.interval(0.95)
        hits += bool(((low <= truth) & (truth <= high)).all())
        total += (made.value - truth) / 200
        spread += (made.value - truth) ** 2 / 200
    # Right at 0.95: fails once in a million. At 0.80 or less: rejected with 0.99.
    assert hits >= stats.binom.ppf(1e-6, 200, 0.95)
    assert isinstance(made.error, NormalLaw)
    sigma = np.array(made.error.sigmas)
    assert np.abs(total / (sigma / np.sqrt(200))).max() < 5.5
    assert spread.mean() == pytest.approx((sigma**2).mean(), rel=0.2)


def test_the_mean_of_scores() -> None:
    form = Survey({"a": 4}).form(epsilon=2)
    collection = Collection(form)
    codes = np.arange(20_000) % 4
    collection.add(perturb(form, {"a": codes}))
    made = collection.mean("a", [0, 1, 2, 10])
    low, high = made.interval(0.999999)
    assert low < 3.25 < high
    for scores in ([1, 2], [1, 2, 3, float("nan")]):
        with pytest.raises(InputError, match="finite numbers"):
            collection.mean("a", scores)
    with pytest.raises(InputError, match="target is"):
        collection.mean("a", [0, 1, 2, 3], target="everyone")  # type: ignore[arg-type]


# --- single people ----------------------------------------------------------------------------


def test_reconstruction_is_right_as_often_as_it_says() -> None:
    generator = np.random.default_rng(4)
    prior = np.array([0.5, 0.3, 0.2])
    for design in (RandomizedResponse.of(3, epsilon=1.5), laplace_and_round(3, epsilon=1.5)):
        found = reconstruct(design, prior)
        assert found.prior_accuracy <= found.accuracy <= found.bound
        assert found.posterior.sum(axis=1) == pytest.approx(1)
        assert prior @ found.accuracy_by_answer == pytest.approx(found.accuracy)
        answers = generator.choice(3, 100_000, p=prior)
        form = Survey({"a": 3}).form(designs={"a": design})
        reports = perturb(form, {"a": answers}).columns["a"]
        right = np.count_nonzero(found.guess[reports] == answers)
        assert stats.binomtest(right, 100_000, found.accuracy).pvalue > 1e-6
        assert found.error == pytest.approx(1 - found.accuracy)
    # Theorem 11: randomized response tells more at the same epsilon.
    best = reconstruct(RandomizedResponse.of(3, epsilon=1.5), prior)
    assert (prior @ best.sampled_accuracy) > (prior @ found.sampled_accuracy)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.5, 0.6, -0.1], [0.2, 0.2, 0.2], [1, np.nan, 0]])
def test_bad_priors_are_refused(prior: list[float]) -> None:
    with pytest.raises(InputError, match="prior"):
        reconstruct(RandomizedResponse.of(3, epsilon=1), prior)
