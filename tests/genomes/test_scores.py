"""Every bound on every small table, and the audit with its twins."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chi2

from tulle.audit.engine.failures import check_alike
from tulle.audit.engine.kind import kind_of
from tulle.audit.table import BUDGETS, closed_form, drawn
from tulle.audit.table import FAST as EFFORT
from tulle.core import registry
from tulle.genomes.exponential import round_epsilon
from tulle.genomes.laplace import Numbers
from tulle.genomes.scores import (
    chi_square_sensitivity,
    chi_squares,
    difference_weights,
    group_sums,
    true_differences,
)

KIND = kind_of("genotypes")
MECHANISMS = registry.mechanisms("genotypes")
CASES = [(name, query) for name, item in MECHANISMS.items() for query in KIND.questions(item)]


def grid(cases, controls):
    """Return the statistic of every table of alleles."""
    own, others = np.meshgrid(
        np.arange(2.0 * cases + 1), np.arange(2.0 * controls + 1), indexing="ij"
    )
    flat = np.stack([own.ravel(), others.ravel()])
    return chi_squares(flat, np.array([[2.0 * cases], [2.0 * controls]])).reshape(own.shape)


def largest_step(values):
    """Return the most that a step of one or two alleles in one group moves a table of values."""
    steps = [np.abs(values[k:] - values[:-k]).max() for k in (1, 2)]
    return max(steps + [np.abs(values[:, k:] - values[:, :-k]).max() for k in (1, 2)])


@pytest.mark.parametrize(("cases", "controls"), list(product(range(1, 13), repeat=2)))
def test_chi_square_sensitivity_is_exact_on_all_tables(cases, controls):
    exact = largest_step(grid(cases, controls))
    claimed = float(chi_square_sensitivity(cases, controls))
    assert exact <= claimed <= exact * (1 + 1e-7)


def test_chi_square_sensitivity_of_equal_groups():
    for n in (2, 10, 100, 5000):
        assert float(chi_square_sensitivity(n // 2, n // 2)) == pytest.approx(8 * n / (n + 2))


def test_the_printed_bound_for_genotypes_is_too_small_for_alleles():
    for cases, controls in product(range(1, 8), repeat=2):
        n = cases + controls
        assert largest_step(grid(cases, controls)) > 4 * n / (n + 2) + 1e-9


def test_one_person_moves_a_p_value_by_nearly_all_of_its_range():
    moves = [
        largest_step(chi2.sf(grid(cases, controls), 1))
        for cases, controls in product(range(1, 13), repeat=2)
    ]
    assert max(moves) <= 1
    assert min(moves) > 0.8


def test_statistics_are_pearsons():
    from scipy.stats import chi2_contingency

    found = chi_squares(np.array([[7.0], [3.0]]), np.array([[20.0], [16.0]]))
    expected = chi2_contingency([[7, 13], [3, 13]], correction=False).statistic
    assert found[0] == pytest.approx(expected)


@pytest.mark.parametrize("snps", [1, 2])
@pytest.mark.parametrize("unit", ["row", "participant"])
def test_sums_and_differences_move_as_little_as_claimed(unit, snps):
    asked = next(
        q for q in KIND.questions(MECHANISMS["laplace"]) if (q.unit, q.snps) == (unit, snps)
    )
    world = KIND.world_for(3, asked)
    sums = [group_sums(dataset) for dataset in world.datasets]
    weights = difference_weights(2, 3)
    scores = [true_differences(dataset, weights) for dataset in world.datasets]
    moved = max(
        np.abs(sums[a] - sums[b]).sum()
        for a, b in zip(world.first.tolist(), world.second.tolist(), strict=True)
    )
    assert moved == 2 * snps
    pairs = list(zip(world.first.tolist(), world.second.tolist(), strict=True))
    moves = np.array([sums[a] - sums[b] for a, b in pairs])
    # What K-norm and Gaussian noise are for: one group alone moves, each number by so much.
    assert (np.abs(moves).sum(axis=(2, 3)) > 0).sum(axis=1).max() == 1
    assert (moves**2).sum(axis=(1, 2, 3)).max() == (4 if unit == "row" else 2) * snps
    if unit == "participant":
        assert np.abs(moves).max() == 1
    else:
        copies = np.stack((moves.sum(axis=3), moves[..., 1] - moves[..., 0]))
        assert np.abs(copies).max() == 2
        assert np.abs(moves).max() == 2
    most = max(
        np.abs(scores[a] - scores[b]).max()
        for a, b in zip(world.first.tolist(), world.second.tolist(), strict=True)
    )
    allowed = max(weights) * (2 if unit == "row" else 1)
    assert most == allowed if snps == 1 else most <= allowed


@pytest.mark.parametrize("snps", [1, 2])
@pytest.mark.parametrize("unit", ["row", "participant"])
def test_numbers_of_a_complete_table_move_as_little_as_claimed(unit, snps):
    asked = next(
        q
        for q in KIND.questions(MECHANISMS["laplace"])
        if (q.unit, q.snps) == (unit, snps) and q.complete
    )
    world = KIND.world_for(3, asked)
    terms = KIND.terms(asked, world.datasets[0], world.unit, Fraction(1))
    settings = MECHANISMS["laplace"].settings(terms, {})
    numbers = [MECHANISMS["laplace"].centre(terms, settings, one) for one in world.datasets]
    # What has no noise is public.
    whole = [Numbers.read(settings).counts(one) for one in numbers]
    assert all(
        np.array_equal(one, group_sums(dataset))
        for one, dataset in zip(whole, world.datasets, strict=True)
        if unit == "participant" or dataset.group_sizes() == world.datasets[0].group_sizes()
    )
    pairs = zip(world.first.tolist(), world.second.tolist(), strict=True)
    moves = np.array([numbers[a] - numbers[b] for a, b in pairs])
    assert (np.abs(moves).sum(axis=2) > 0).sum(axis=1).max() == 1
    if unit == "row":
        assert np.abs(moves).max() == 2
        assert np.abs(moves).sum(axis=(1, 2)).max() == 2 * snps
        assert (moves**2).sum(axis=(1, 2)).max() == 4 * snps
    else:
        assert np.abs(moves).max() == 1
        assert np.abs(moves).sum(axis=(1, 2)).max() == snps + 1
        assert (moves**2).sum(axis=(1, 2)).max() == snps + 1


@pytest.mark.parametrize(("name", "query"), CASES, ids=str)
def test_output_laws_keep_the_guarantee(name, query):
    for finding in closed_form(KIND, MECHANISMS[name], query, KIND.world_for(4, query)):
        assert finding.passed, finding


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_draws_follow_the_closed_form(name):
    for finding in drawn(KIND, MECHANISMS[name], EFFORT):
        assert finding.passed, finding


def composed_delta(rounds, span, epsilon):
    """Return the largest delta at epsilon of rounds whose log-ratios span this much, exactly.

    The extreme rounds take two log-ratios, t and t - span; t is searched on a grid.
    """
    worst = 0.0
    for t in np.linspace(0, span, 203)[1:-1]:
        other = (1 - np.exp(t - span)) / (np.exp(t) - np.exp(t - span))
        chance = other * np.exp(t)
        low = np.arange(rounds + 1)
        losses = rounds * t - span * low
        masses = binom.pmf(low, rounds, 1 - chance)
        worst = max(worst, float((masses * np.maximum(0, -np.expm1(epsilon - losses))).sum()))
    return worst


@pytest.mark.parametrize("rounds", [1, 3, 10, 50])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-6"), ("3", "1e-4")])
def test_rounds_of_the_exponential_mechanism_add_up(rounds, epsilon, delta):
    one = float(round_epsilon(rounds, Fraction(epsilon), Fraction(delta)))
    assert composed_delta(rounds, one, float(epsilon)) <= float(delta)
    assert composed_delta(rounds, 1.6 * one, float(epsilon)) > float(delta)


def test_neighbours_fail_alike():
    budgets = [(epsilon, 0) for epsilon, _ in BUDGETS[:2]]
    finding = check_alike(
        KIND, KIND.world(3), KIND.odd_questions(), budgets, [None, "laplace", "one_shot"]
    )
    assert finding.passed, finding
