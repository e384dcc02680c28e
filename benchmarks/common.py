"""Where the benchmarks find their data and how they print."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def find_data(name: str) -> Path | None:
    """Return the edge list of a data set below ``TULLE_DATA``, or None when it is not there."""
    folder = os.environ.get("TULLE_DATA")
    if not folder:
        return None
    found = sorted(Path(folder, name).glob(f"{name}.edges.txt*"))
    return found[0] if found else None


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows with equal keys as one table."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(100, Console().width))
    if not rows:
        console.print(f"{title}: nothing to measure (is TULLE_DATA set?)")
        return
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name)
    for row in rows:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)
