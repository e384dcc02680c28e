"""How the gallery's figures look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

# Otherwise the names of shapes in a file are drawn at random.
plt.rcParams["svg.hashsalt"] = "tulle"

INSIDE, OUTSIDE, SOFT = "#d9a441", "#14666a", "#8b9499"


def panels(count: int = 1, *, width: float = 8.0, height: float = 3.2) -> tuple[Any, list[Any]]:
    """Return a figure with so many panels side by side."""
    figure, axes = plt.subplots(1, count, figsize=(width, height), layout="constrained")
    found = [axes] if count == 1 else list(axes)
    for panel in found:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, found


def save(figure: Any, path: Path) -> None:
    """Write a figure, the same bytes each time."""
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
