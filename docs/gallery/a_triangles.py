"""A count, and how its error falls with the price.

Forty releases of the number of triangles at each price, as relative errors, with what the plan
predicted before anything was spent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import INSIDE, OUTSIDE, panels, save

import tulle
from tulle.graphs.generators import social_network
from tulle.ledger.answer import plan_for


def draw(path: Path) -> None:
    """Draw the figure."""
    graph, like = social_network(1000, seed=7), social_network(1000, seed=8)
    query = tulle.triangles()
    truth = query.truth(graph)
    prices = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
    figure, (panel,) = panels()
    predicted = []
    for epsilon in prices:
        plan = plan_for(graph, query, unit="edge", epsilon=epsilon, like=like)
        predicted.append((plan.half_width(0.95) or 0.0) / truth)
        released = [
            tulle.release(graph, query, unit="edge", epsilon=epsilon).value for _ in range(40)
        ]
        errors = np.abs(np.array(released) / truth - 1)
        panel.plot([epsilon] * 40, errors, ".", color=OUTSIDE, alpha=0.4)
    panel.plot(prices, predicted, color=INSIDE, label="predicted: 19 of 20 below")
    panel.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="relative error")
    panel.legend(frameon=False)
    save(figure, path)
