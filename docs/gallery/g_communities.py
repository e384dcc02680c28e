"""Communities from a private embedding.

Three groups of forty people; each point is a person, placed by two released eigenvectors at
epsilon = 2 per edge and coloured by the group that was found.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import panels, save

import tulle


def draw(path: Path) -> None:
    """Draw the figure."""
    generator = np.random.default_rng(1)
    group = np.repeat([0, 1, 2], 40)
    chance = np.where(group[:, None] == group, 0.6, 0.02)
    pairs = np.argwhere(np.triu(generator.random((120, 120)) < chance, 1))
    friends = tulle.Graph.from_edges(pairs, nodes=120)
    found = tulle.release(friends, tulle.spectrum(5), unit="edge", epsilon=2.0).value
    clusters = found.communities(3)
    figure, (panel,) = panels(height=3.6)
    for real, marker in enumerate("osD"):
        chosen = group == real
        panel.scatter(
            found.vectors[chosen, 1],
            found.vectors[chosen, 2],
            c=clusters[chosen],
            cmap="viridis",
            vmin=-1,
            vmax=2,
            marker=marker,
            s=26,
            label=f"group {real + 1} (inside)",
        )
    panel.set(xlabel="second vector", ylabel="third vector")
    panel.legend(frameon=False)
    save(figure, path)
