"""De-biased sums and means: right on average, and as far off as they say."""

import numpy as np
import pytest

import tulle
from tulle.core.errors import InputError
from tulle.matrices.binary.estimates import debias, means, sums

GENERATOR = np.random.default_rng(8)
TRUTH = (GENERATOR.random((300, 8)) < np.linspace(0.02, 0.98, 8)).astype(np.uint8)
TRUTH[:, 7] = 1
MATRIX = tulle.BinaryMatrix(TRUTH)
PI = np.eye(8) * -2 + 0.05 + np.diag(np.linspace(0, 0.5, 8))
QUERIES = [tulle.xor(), tulle.xor("general", pi=PI)]
RUNS = 250


@pytest.mark.parametrize("unit", ["row", "cell"])
@pytest.mark.parametrize("query", QUERIES, ids=str)
@pytest.mark.parametrize("axis", ["columns", "rows", "all"])
def test_estimates_are_unbiased_and_their_error_covers(query, unit, axis):
    if query.family == "general" and axis != "columns":
        with pytest.raises(InputError, match="column sums"):
            sums(tulle.release(MATRIX, query, unit=unit, epsilon=2), axis)
        return
    exact = {"columns": TRUTH.sum(axis=0), "rows": TRUTH.sum(axis=1), "all": TRUTH.sum()}[axis]
    found = [sums(tulle.release(MATRIX, query, unit=unit, epsilon=2), axis) for _ in range(RUNS)]
    off = np.array([estimate.value - exact for estimate in found])
    stated = np.broadcast_to(found[0].error, np.shape(exact))
    worst = np.abs(off.mean(axis=0)) / (stated / np.sqrt(RUNS))
    assert np.max(worst) < 5.5
    # Never more than stated (up to chance), and where lines are independent not less either.
    spread = off.std(axis=0) / stated
    assert np.max(spread) < 1 + 5 / np.sqrt(2 * RUNS)
    if axis == "columns":
        assert np.mean(spread) > 0.85
    inside = [np.mean((e.interval(0.9)[0] <= exact) & (exact <= e.interval(0.9)[1])) for e in found]
    assert np.mean(inside) > (0.8 if axis == "all" else 0.86)


def test_means_are_sums_over_sizes():
    r = tulle.release(MATRIX, tulle.xor(), unit="row", epsilon=3)
    for axis, size in (("columns", 300), ("rows", 8), ("all", 2400)):
        assert np.allclose(means(r, axis).value * size, sums(r, axis).value)
        assert np.allclose(means(r, axis).error * size, sums(r, axis).error)


def test_a_stored_release_gives_the_same_estimates():
    r = tulle.release(MATRIX, tulle.xor(), unit="cell", epsilon=3)
    back = tulle.Release.from_json(r.to_json())
    assert np.array_equal(sums(back).value, sums(r).value)
    assert debias(back).shape == TRUTH.shape


def test_whole_matrix_couplings_are_debiased_cell_by_cell():
    small = tulle.BinaryMatrix([[1, 0], [0, 1]])
    query = tulle.xor("general", pi=np.diag([-1.0, -2.0, -3.0, -4.0]))
    total = np.mean(
        [debias(tulle.release(small, query, unit="cell", epsilon=3)) for _ in range(2000)], axis=0
    )
    assert np.allclose(total, [[1, 0], [0, 1]], atol=0.25)


def test_refusals():
    r = tulle.release(MATRIX, tulle.xor(), unit="row", epsilon=3)
    with pytest.raises(InputError, match="axis"):
        sums(r, "cells")
    with pytest.raises(InputError, match="xor"):
        sums(TRUTH)
    few = tulle.BinaryMatrix(TRUTH[:4])
    chain = np.eye(32) * -2 + 0.1 * (np.eye(32, k=1) + np.eye(32, k=-1))
    measured = tulle.release(few, tulle.xor("general", pi=chain), unit="cell", epsilon=1)
    with pytest.raises(InputError, match="measured"):
        sums(measured)
    half = np.diag([0.0, 1.0])
    blind = tulle.release(
        tulle.BinaryMatrix([[0, 1]]), tulle.xor("general", pi=half), unit="cell", epsilon=1
    )
    with pytest.raises(InputError, match="half"):
        sums(blind)
