"""The published XOR mechanism: its exact price on all small shapes, and its broken twins."""

from fractions import Fraction

import numpy as np
import pytest
from baselines.xor_columns import paper_xor
from tests.matrices.binary import xor_patterns as patterns

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.ledger.answer import plan_for
from tulle.matrices.binary.estimates import debias, sums

QUESTIONS = [
    (paper_xor(alpha), unit)
    for alpha in ("0.05", "0.3", "0.7", "0.999", "1")
    for unit in ("row", "cell")
]


@pytest.mark.parametrize(("rows", "columns"), patterns.SHAPES)
@pytest.mark.parametrize(("query", "unit"), QUESTIONS, ids=str)
def test_the_worst_ratio_of_all_patterns_is_epsilon(query, unit, rows, columns):
    patterns.check_worst_ratio("columns", query, unit, rows, columns)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (1, 4), (3, 1), (2, 3)])
@pytest.mark.parametrize(("query", "unit"), QUESTIONS, ids=str)
def test_releases_of_all_matrices_and_all_neighbours(query, unit, rows, columns):
    patterns.check_all_neighbours("columns", query, unit, rows, columns)


@pytest.mark.parametrize(("query", "unit"), QUESTIONS, ids=str)
def test_real_runs_have_the_listed_law(query, unit):
    epsilon = Fraction(2)
    terms, mechanism, settings = patterns.settings_of("columns", query, unit, 2, 2, epsilon)
    logs = patterns.law_of("columns", settings, epsilon)
    patterns.check_runs(terms, mechanism, settings, logs)


@pytest.mark.parametrize("unit", ["row", "cell"])
def test_it_is_never_better_than_optimal(unit):
    matrix = tulle.BinaryMatrix(np.arange(120).reshape(20, 6) % 3 == 0)
    for epsilon in ("0.1", 1, 2, 5, 30):
        best, published = (
            plan_for(matrix, query, unit=unit, epsilon=epsilon).chosen.prediction.mean_error
            for query in (tulle.xor(), paper_xor())
        )
        assert best <= published


@pytest.mark.parametrize("unit", ["row", "cell"])
def test_sums_are_unbiased_and_a_stored_release_gives_the_same(unit):
    truth = (np.random.default_rng(8).random((300, 8)) < np.linspace(0.02, 0.98, 8)).astype(int)
    matrix = tulle.BinaryMatrix(truth)
    runs = 250
    found = []
    for _ in range(runs):
        r = tulle.release(matrix, paper_xor("0.2"), unit=unit, epsilon=2)
        found.append(sums(r))
    off = np.array([estimate.value - truth.sum(axis=0) for estimate in found])
    stated = np.broadcast_to(found[0].error, 8)
    assert np.max(np.abs(off.mean(axis=0)) / (stated / np.sqrt(runs))) < 5.5
    assert np.max(off.std(axis=0) / stated) < 1 + 5 / np.sqrt(2 * runs)
    back = tulle.Release.from_json(r.to_json())
    assert np.array_equal(sums(back).value, found[-1].value)
    assert debias(back).shape == truth.shape


@pytest.mark.parametrize(("alpha", "words"), [(1.5, "at most 1"), (0, "alpha"), ("x", "finite")])
def test_bad_shares_are_refused(alpha, words):
    with pytest.raises(InputError, match=words):
        paper_xor(alpha)


def test_a_graph_is_asked_otherwise():
    graph = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=6)
    with pytest.raises(QueryError, match=r"tulle\.xor\(\)"):
        tulle.release(graph, paper_xor(), unit="edge", epsilon=1.0)


# --- broken twins: the same check must reject each ----------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(2, 1), (3, 1), (2, 2)])
def test_twin_the_printed_parameters(rows, columns):
    """Algorithm 1 with one changed cell: theta and lambda from the budget shares, as printed."""
    epsilon, alpha = 1.0, 0.3
    theta = alpha * epsilon / np.sqrt(columns)
    coupling = (1 - alpha) * epsilon / (np.sqrt(columns) * rows * (rows - 1) / 2)
    logs = patterns.algorithm_one(rows, columns, theta, coupling)
    assert patterns.worst_loss(logs, rows, columns, "cell") > epsilon * 1.05


def test_twin_with_the_printed_sign_is_as_private_but_flips_more_than_half():
    law = patterns.settings_of("columns", paper_xor(), "cell", 4, 3, Fraction(2))[2]
    theta, coupling = Fraction(law["theta"]), Fraction(law["coupling"])
    assert theta < 0
    printed = patterns.algorithm_one(4, 3, -theta, -coupling)
    mended = patterns.algorithm_one(4, 3, theta, coupling)
    losses = [patterns.worst_loss(logs, 4, 3, "cell") for logs in (printed, mended)]
    assert losses[0] == pytest.approx(losses[1]) == pytest.approx(2.0)
    assert patterns.flips(mended, 4, 3) < 0.5 < patterns.flips(printed, 4, 3)


def test_twin_with_a_temperature():
    """Parameters divided by 3e-5: hardly a bit is ever flipped, and epsilon is thousands."""
    law = patterns.settings_of("columns", paper_xor(), "cell", 4, 3, Fraction(1, 2))[2]
    temperature = 3e-5
    theta, coupling = (float(Fraction(law[name])) / temperature for name in ("theta", "coupling"))
    logs = patterns.algorithm_one(4, 3, theta, coupling)
    assert patterns.worst_loss(logs, 4, 3, "cell") > 10_000
    assert patterns.flips(logs, 4, 3) < 1e-100
