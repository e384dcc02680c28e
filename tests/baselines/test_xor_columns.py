"""The published XOR noise: its exact privacy, its releases, and versions as they were printed."""

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from baselines.xor_columns import Columns, paper_xor
from scipy import stats
from tests.matrices.binary import xor_patterns as patterns

import tulle
from tulle.audit.engine.cost import Case, cost_of
from tulle.core.errors import InputError, QueryError
from tulle.core.mechanism import Terms
from tulle.core.unit import Unit
from tulle.ledger.session import plan_for
from tulle.matrices.binary.estimates import sums

UNITS = ("row", "cell")
ALPHAS = ("0.05", "0.3", "0.7", "0.999")
MATRIX = tulle.BinaryMatrix(np.arange(120).reshape(20, 6) % 3 == 0)


def settings_of(query, unit, rows, columns, epsilon):
    terms = Terms(query, Unit.of(unit), epsilon, Fraction(0), {"rows": rows, "columns": columns})
    assert Columns().supports(query, Unit.of(unit))
    return terms, Columns().settings(terms, {})


@pytest.mark.parametrize(("rows", "columns"), patterns.SHAPES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_worst_ratio_of_all_patterns_is_epsilon(alpha, unit, rows, columns):
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        _, settings = settings_of(paper_xor(alpha), unit, rows, columns, epsilon)
        logs = patterns.law_of("columns", settings, epsilon)
        worst = patterns.worst_loss(logs, rows, columns, unit)
        assert worst == pytest.approx(float(epsilon), rel=1e-12)
        assert settings["flip"] == pytest.approx(patterns.flips(logs, rows, columns), abs=1e-12)
        assert settings["flip"] >= settings["least_flip"] - 1e-15


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_real_runs_have_the_listed_law(alpha, unit):
    terms, settings = settings_of(paper_xor(alpha), unit, 2, 2, Fraction(2))
    matrix, truth, runs = tulle.BinaryMatrix([[1, 0], [1, 1]]), 0b1101, 4000
    seen = Counter(
        int(Columns().run(terms, settings, matrix, None).value.ravel() @ (1 << np.arange(4)))
        for _ in range(runs)
    )
    expected = np.exp(patterns.law_of("columns", settings, Fraction(2)))[np.arange(16) ^ truth]
    observed = np.array([seen[k] for k in range(16)])
    frequent = expected * runs >= 5
    observed = np.append(observed[frequent], observed[~frequent].sum())
    expected = np.append(expected[frequent], max(expected[~frequent].sum(), 1e-6))
    assert stats.chisquare(observed, expected * runs / expected.sum()).pvalue > 1e-6


@pytest.mark.parametrize("unit", UNITS)
def test_a_release_says_what_it_is_and_optimal_is_better(unit):
    r = tulle.release(MATRIX, paper_xor(), unit=unit, epsilon=1.5)
    assert (r.mechanism, r.guarantee.epsilon, r.guarantee.delta) == ("columns", Fraction(3, 2), 0)
    back = tulle.Release.from_json(json.dumps(r.to_json()))
    assert (back.value == r.value).all()
    rates = [
        plan_for(MATRIX, query, unit=unit, epsilon=2).chosen.prediction.mean_error
        for query in (tulle.xor(), paper_xor())
    ]
    assert rates[0] <= rates[1]
    case = Case(Terms(paper_xor(), Unit.of(unit), Fraction(1), Fraction(0), MATRIX.facts(unit)),
                {}, MATRIX)  # fmt: skip
    assert cost_of(Columns(), case).kept


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("axis", ["columns", "rows", "all"])
def test_estimates_are_unbiased_and_their_error_covers(unit, axis):
    truth, runs = MATRIX.to_numpy(), 250
    exact = {"columns": truth.sum(axis=0), "rows": truth.sum(axis=1), "all": truth.sum()}[axis]
    found = [
        sums(tulle.release(MATRIX, paper_xor(0.2), unit=unit, epsilon=2), axis) for _ in range(runs)
    ]
    off = np.array([estimate.value - exact for estimate in found])
    stated = np.broadcast_to(found[0].error, np.shape(exact))
    assert np.max(np.abs(off.mean(axis=0)) / (stated / np.sqrt(runs))) < 5.5
    assert np.max(off.std(axis=0) / stated) < 1 + 5 / np.sqrt(2 * runs)


@pytest.mark.parametrize(("alpha", "words"), [(1, "strictly between"), ("x", "finite number")])
def test_bad_shares_are_refused(alpha, words):
    with pytest.raises(InputError, match=words):
        paper_xor(alpha)


def test_equal_questions_are_equal_and_none_is_for_a_graph():
    assert paper_xor() == paper_xor("0.7")
    graph = tulle.Graph.from_edges([(0, 1)], nodes=3)
    with pytest.raises(QueryError, match=r"tulle\.xor\(\)"):
        tulle.release(graph, paper_xor(), unit="edge", epsilon=1.0)


# --- broken versions ----------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(2, 1), (3, 1), (2, 2)])
def test_twin_the_printed_parameters(rows, columns):
    """Algorithm 1 with one changed cell: theta and lambda from the budget shares, as printed."""
    epsilon, alpha = 1.0, 0.3
    theta = alpha * epsilon / np.sqrt(columns)
    coupling = (1 - alpha) * epsilon / (np.sqrt(columns) * rows * (rows - 1) / 2)
    logs = patterns.algorithm_one(rows, columns, theta, coupling)
    assert patterns.worst_loss(logs, rows, columns, "cell") > epsilon * 1.05


def test_twin_with_the_printed_sign_is_as_private_but_flips_more_than_half():
    law = settings_of(paper_xor(), "cell", 4, 3, Fraction(2))[1]
    theta, coupling = Fraction(law["theta"]), Fraction(law["lambda"])
    assert theta < 0
    printed = patterns.algorithm_one(4, 3, -theta, -coupling)
    mended = patterns.algorithm_one(4, 3, theta, coupling)
    losses = [patterns.worst_loss(logs, 4, 3, "cell") for logs in (printed, mended)]
    assert losses[0] == pytest.approx(losses[1]) == pytest.approx(2.0)
    assert patterns.flips(mended, 4, 3) < 0.5 < patterns.flips(printed, 4, 3)


def test_twin_with_a_temperature():
    """Parameters divided by 3e-5: hardly a bit is ever flipped, and epsilon is thousands."""
    law = settings_of(paper_xor(), "cell", 4, 3, Fraction(1, 2))[1]
    temperature = 3e-5
    theta, coupling = (float(Fraction(law[name])) / temperature for name in ("theta", "lambda"))
    logs = patterns.algorithm_one(4, 3, theta, coupling)
    assert patterns.worst_loss(logs, 4, 3, "cell") > 10_000
    assert patterns.flips(logs, 4, 3) < 1e-100
