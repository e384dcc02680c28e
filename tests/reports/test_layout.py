"""Where the nodes of a public network are drawn."""

from __future__ import annotations

import numpy as np

from tulle.graphs.generators import social_network
from tulle.reports.charts import network_chart
from tulle.reports.layout import MOST_NODES, lay_out, part_to_draw


def test_a_network_is_drawn_with_all_its_nodes_or_says_not() -> None:
    small = social_network(60, seed=1)
    picture = network_chart(60, small.edges())
    assert picture.count("<circle") == 60
    large = social_network(900, seed=1)
    kept, links = part_to_draw(900, large.edges())
    assert len(kept) == MOST_NODES
    assert links.max() < MOST_NODES
    assert f"{MOST_NODES} of 900 nodes" in network_chart(900, large.edges())
    places = lay_out(len(kept), links)
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(6), axis=0)) == MOST_NODES
    assert network_chart(3, np.empty((0, 2), dtype=int)).count("<circle") == 3
