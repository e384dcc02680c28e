"""Movements between places.

Two thousand people move between twelve places; each counts for at most eight trips.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import panels, save

import tulle


def draw(path: Path) -> None:
    """Draw the figure."""
    generator = np.random.default_rng(4)
    people = np.repeat(np.arange(2000), 5)
    home = np.repeat(generator.integers(0, 12, 2000), 5)
    away = (home + generator.geometric(0.45, len(home))) % 12
    trips = tulle.Contributions(people, home, away, rows=12, columns=12)
    r = tulle.release(trips, tulle.weights(bound=4, total=8), unit="participant", epsilon=1.0)
    figure, places = panels(2)
    top = float(trips.totals().max())
    for panel, title, values in zip(
        places, ("inside", "released, epsilon = 1"), (trips.totals(), r.value), strict=True
    ):
        drawn = panel.imshow(values, cmap="viridis", vmin=0, vmax=top)
        panel.set(title=title, xlabel="to", ylabel="from")
    figure.colorbar(drawn, ax=places, label="trips")
    save(figure, path)
