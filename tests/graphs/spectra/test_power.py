"""Eigenvectors by noisy subspace iteration: the matrix is only ever multiplied by public rows."""

import numpy as np
import pytest

from tulle.graphs.generators import all_graphs
from tulle.graphs.spectra.power import whole_rows
from tulle.graphs.spectra.queries import (
    adjacency,
)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("columns", [1, 3])
def test_one_edge_moves_the_product_by_what_clipping_allows(order, columns):
    """Every graph of four nodes, every neighbour, wild iterates: at most 2·L, or sqrt(2)·L."""
    draw = np.random.default_rng(5)
    levels = 7
    for _ in range(12):
        iterate = draw.standard_cauchy((4, columns)) * 10.0 ** draw.integers(-3, 4)
        rows = whole_rows(iterate, 1.0, levels, order)
        allowed = 2 * levels**order
        for graph in all_graphs(4):
            here = adjacency(graph) @ rows
            for other in graph.neighbours("edge"):
                moved = np.abs(here - adjacency(other) @ rows)
                assert int((moved**order).sum()) <= allowed


@pytest.mark.parametrize("order", [1, 2])
def test_whole_rows_are_never_too_long(order):
    draw = np.random.default_rng(2)
    for levels in (1, 2, 3, 64, 4096):
        for longest in (1e-6, 0.3, 1.0, 50.0):
            rows = draw.normal(size=(200, 4)) * 10.0 ** draw.integers(-8, 8, size=(200, 1))
            made = np.abs(whole_rows(rows, longest, levels, order)).astype(object)
            assert max((made**order).sum(axis=1)) <= levels**order
    # Rows within reach are kept up to rounding.
    rows = draw.uniform(-0.5, 0.5, size=(50, 2))
    assert np.abs(whole_rows(rows, 1.0, 4096, order) / 4096 - rows).max() < 1e-3


@pytest.mark.parametrize("longest", [0.0, 5e-324, 1e-300, 1.0, 1e308])
@pytest.mark.parametrize("order", [1, 2])
def test_no_row_is_longer_than_the_noise_covers_whatever_its_numbers(longest, order):
    odd = [0.0, -0.0, 5e-324, 1e-300, 1.0, 1e154, 1e308, np.inf, np.nan]
    rows = np.array([[a, b] for a in odd for b in odd])
    made = whole_rows(rows, longest, 1024, order).astype(object)
    assert (np.abs(made) ** order).sum(axis=1).max() <= 1024**order


def test_rows_that_are_no_numbers_would_be_caught(monkeypatch):
    monkeypatch.setattr("tulle.graphs.spectra.power.np.nan_to_num", lambda rows: rows)
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        test_no_row_is_longer_than_the_noise_covers_whatever_its_numbers(0.0, 1)
