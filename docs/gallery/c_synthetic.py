"""A synthetic network.

The default model at epsilon = 2 per edge: degrees and how links close, original and made up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import INSIDE, OUTSIDE, panels, save

import tulle
from tulle.graphs.generators import social_network


def draw(path: Path) -> None:
    """Draw the figure."""
    graph = social_network(1000, seed=11)
    made = tulle.release(graph, tulle.synthetic(), unit="edge", epsilon=2.0).value
    figure, (left, right) = panels(2)
    for network, colour, words in ((graph, INSIDE, "original"), (made, OUTSIDE, "synthetic")):
        degrees = np.sort(np.bincount(network.edges().ravel(), minlength=1000))[::-1]
        left.plot(np.arange(1, 1001), degrees + 1, color=colour, label=words)
        spectrum = np.linalg.eigvalsh(network.to_scipy().toarray().astype(float))[::-1][:40]
        right.plot(np.arange(1, 41), spectrum, ".-", color=colour, label=words)
    left.set(xscale="log", yscale="log", xlabel="rank", ylabel="links + 1", title="degrees")
    right.set(xlabel="rank", ylabel="eigenvalue", title="spectrum")
    right.legend(frameon=False)
    save(figure, path)
