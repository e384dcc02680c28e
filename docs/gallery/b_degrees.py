"""A degree distribution, inside and outside.

How many people have how many links, at epsilon = 0.5 per edge.
"""

from __future__ import annotations

from pathlib import Path

from gallery._style import INSIDE, OUTSIDE, panels, save

import tulle
from tulle.graphs.generators import social_network


def draw(path: Path) -> None:
    """Draw the figure."""
    graph = social_network(2000, seed=5)
    query = tulle.degree_distribution()
    r = tulle.release(graph, query, unit="edge", epsilon=0.5)
    figure, (panel,) = panels()
    panel.step(range(80), query.truth(graph)[:80], where="mid", color=INSIDE, label="inside")
    panel.plot(range(80), r.value[:80], ".", color=OUTSIDE, label="released")
    panel.set(xlabel="links", ylabel="people")
    panel.legend(frameon=False)
    save(figure, path)
