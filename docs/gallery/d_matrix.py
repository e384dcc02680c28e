"""A yes/no matrix.

A letter in a grid of 48 by 48 bits: inside, released per cell at epsilon = 1 and at 3.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import panels, save

import tulle


def draw(path: Path) -> None:
    """Draw the figure."""
    rows, columns = np.mgrid[0:48, 0:48]
    distance = np.hypot(rows - 23.5, columns - 23.5)
    letter = (distance > 11) & (distance < 19) & ~((columns > 28) & (np.abs(rows - 23.5) < 8))
    figure, places = panels(3, height=2.9)
    shown = [("inside", letter.astype(int))]
    for epsilon in (1.0, 3.0):
        matrix = tulle.BinaryMatrix(letter.astype(int))
        r = tulle.release(matrix, tulle.xor(), unit="cell", epsilon=epsilon)
        shown.append((f"epsilon = {epsilon:g}", np.asarray(r.value)))
    for panel, (title, values) in zip(places, shown, strict=True):
        panel.imshow(values, cmap="Greys", interpolation="nearest")
        panel.set(title=title, xticks=[], yticks=[])
    save(figure, path)
