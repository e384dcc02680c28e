"""Exact privacy of every XOR family on all shapes up to twelve cells, and of its broken twins."""

from fractions import Fraction

import numpy as np
import pytest
from tests.matrices.binary import xor_patterns as patterns

import tulle
from tulle.noise.xor.limits import Limit

FAMILIES = [("cells", tulle.xor(), "cell"), ("two_level", tulle.xor(), "row")]


@pytest.mark.parametrize(("rows", "columns"), patterns.SHAPES)
@pytest.mark.parametrize(("name", "query", "unit"), FAMILIES, ids=str)
def test_the_worst_ratio_of_all_patterns_is_epsilon(name, query, unit, rows, columns):
    patterns.check_worst_ratio(name, query, unit, rows, columns)


@pytest.mark.parametrize("attractive", [True, False])
@pytest.mark.parametrize(("rows", "columns"), patterns.SHAPES)
def test_general_couplings(rows, columns, attractive):
    generator = np.random.default_rng(rows * 100 + columns)
    size = rows * columns
    for of_row in {True, size == columns}:
        for unit in ("row", "cell"):
            side = columns if of_row else size
            drawn = generator.integers(0 if attractive else -4, 5, (side, side))
            pi = drawn + drawn.T
            pi[np.diag_indices(side)] -= 9
            query = tulle.xor("general", pi=pi)
            settings = patterns.settings_of("coupled", query, unit, rows, columns, Fraction(2))[2]
            full = np.kron(np.eye(rows), pi) if of_row else pi
            entries = [Fraction(v) for _, _, v in query.entries]
            unit_of_scale = np.lcm.reduce([value.denominator for value in entries])
            scale = float(Fraction(settings["scale"])) * unit_of_scale
            logs = patterns.quadratic(full * scale)
            worst = patterns.worst_loss(logs, rows, columns, unit)
            assert worst == pytest.approx(2.0, rel=1e-12)
            assert settings["price"] == "exact"
            assert settings["flip"] == pytest.approx(patterns.flips(logs, rows, columns), abs=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (1, 4), (3, 1), (2, 3)])
@pytest.mark.parametrize(("name", "query", "unit"), FAMILIES, ids=str)
def test_releases_of_all_matrices_and_all_neighbours(name, query, unit, rows, columns):
    """The whole way: dataset, its own list of neighbours, probabilities of each release."""
    patterns.check_all_neighbours(name, query, unit, rows, columns)


GENERAL = tulle.xor("general", pi=[[-3, 1], [1, -2]])
WHOLE = tulle.xor("general", pi=np.eye(4) * -2 + np.ones((4, 4)) * 0.25)


@pytest.mark.parametrize(
    ("name", "query", "unit"),
    [*FAMILIES, ("coupled", GENERAL, "row"), ("coupled", WHOLE, "cell")],
    ids=str,
)
def test_real_runs_have_the_listed_law(name, query, unit):
    rows = columns = 2
    epsilon = Fraction(2)
    terms, mechanism, settings = patterns.settings_of(name, query, unit, rows, columns, epsilon)
    if name == "coupled":
        pi = np.zeros((query.size, query.size))
        for i, j, value in query.entries:
            pi[i, j] = pi[j, i] = float(Fraction(value))
        full = np.kron(np.eye(2), pi) if query.size == 2 else pi
        logs = patterns.quadratic(full)
        logs = patterns.normalise(logs * 2 / patterns.worst_loss(logs, 2, 2, unit))
    else:
        logs = patterns.law_of(name, settings, epsilon)
    patterns.check_runs(terms, mechanism, settings, logs)


# --- broken twins: the same check must reject each ----------------------------------------------


def test_twin_the_printed_condition_on_a_full_theta():
    """Condition (4) for one changed cell: ||Theta||_F <= epsilon. N = 1, P = 8."""
    logs = patterns.quadratic(np.full((8, 8), 1 / 8))
    claimed = np.linalg.norm(np.full((8, 8), 1 / 8))
    assert claimed == pytest.approx(1.0)
    assert patterns.worst_loss(logs, 1, 8, "cell") == pytest.approx(1.875)


def test_twin_that_flips_two_percent_at_a_claimed_half():
    flip = 0.02
    logs = patterns.response(1, 4, np.log((1 - flip) / flip))
    assert patterns.worst_loss(logs, 1, 4, "cell") > 3.8
    assert patterns.worst_loss(logs, 1, 4, "row") > 15
    assert not Limit(keep=0.98, invent=0.02, epsilon=0.5).possible


def test_twin_charges_a_row_as_one_cell():
    logs = patterns.response(2, 3, 1.0)
    assert patterns.worst_loss(logs, 2, 3, "row") == pytest.approx(3.0)


def test_twin_of_both_triangles():
    """A pair of nodes in both halves, kept where both say so: one edge pays twice."""
    for epsilon in (0.5, 1.0, 3.0):
        flip = patterns.logistic(-epsilon)
        joined, apart = (1 - flip) ** 2, flip**2
        assert np.log(joined / apart) == pytest.approx(2 * epsilon)
        assert not Limit(joined, apart, epsilon).possible


def sweep_law(start, matrix):
    """The law after one heat-bath sweep over all cells, from a law on patterns."""
    size = len(matrix)
    law = start.copy()
    listed = np.arange(2**size)
    cells = listed[:, None] >> np.arange(size) & 1
    for site in range(size):
        others = cells.copy()
        others[:, site] = 0
        chance = 1 / (1 + np.exp(-(matrix[site, site] + 2 * others @ matrix[site])))
        both = law[listed | 1 << site] + law[listed & ~(1 << site)]
        law = both * np.where(cells[:, site] == 1, chance, 1 - chance)
    return law


def test_twin_with_a_finite_chain():
    """A chain stopped after some sweeps has another law, and a larger epsilon."""
    size = 6
    matrix = np.full((size, size), 0.3)
    matrix[np.diag_indices(size)] = -2.0
    exact = patterns.quadratic(matrix)
    claimed = patterns.worst_loss(exact, 1, size, "cell")
    law = np.zeros(2**size)
    law[0] = 1.0
    losses = []
    for _ in range(30):
        law = sweep_law(law, matrix)
        losses.append(patterns.worst_loss(np.log(law), 1, size, "cell"))
    assert losses[0] > claimed * 1.01
    assert all(loss > claimed * (1 + 1e-12) for loss in losses[:3])
    assert losses[-1] == pytest.approx(claimed, rel=1e-6)
