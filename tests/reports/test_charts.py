"""What charts draw: the range that matters, and every node of a small network."""

from __future__ import annotations

import numpy as np
import pytest

import tulle
from tulle.graphs.generators import social_network
from tulle.noise import SeededSource
from tulle.reports.charts import bar_chart, line_chart, worth_drawing


@pytest.mark.parametrize("mechanism", ["laplace", "isotonic"])
def test_a_degree_plot_ends_where_the_degrees_do(mechanism: str) -> None:
    graph = social_network(1200, seed=5)
    most = int(np.diff(graph.csr()[0]).max())
    release = tulle.release(
        graph,
        tulle.degree_distribution(),
        unit="edge",
        epsilon=1.0,
        mechanism=mechanism,
        source=SeededSource(3),
    )
    shown = worth_drawing(release.value.astype(float).tolist())
    assert shown < 4 * most < 1200
    assert shown > most / 3


def test_what_has_no_tail_is_drawn_whole() -> None:
    assert worth_drawing([5.0] * 500) == 500
    assert worth_drawing(np.linspace(9, 5, 300).tolist()) == 300
    assert worth_drawing([1.0, 0.0]) == 2


def test_axes_have_names() -> None:
    drawn = line_chart([3.0] * 50, across="degree", up="nodes")
    assert ">degree<" in drawn
    assert ">nodes<" in drawn
    bars = bar_chart(["a <b>", "c"], [1.0, -2.0], ([0.0, -3.0], [2.0, float("inf")]), across="city")
    assert "a &lt;b&gt;" in bars
    assert "inf" not in bars
