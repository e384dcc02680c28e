"""Small drawings as SVG text, for pages that must stand alone: no library, no script."""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

WIDTH = 640
_LEFT, _RIGHT, _BOTTOM = 70, 20, 34
_MOST_POINTS = 1_200
_MOST_PIXELS = 160


def interval_chart(value: float, low: float, high: float) -> str:
    """Draw a number with the range that holds the truth."""
    ends = [end for end in (low, high, value) if math.isfinite(end)]
    pad = (max(ends) - min(ends)) * 0.15 or abs(value) * 0.1 or 1.0
    start, stop = min(ends) - pad, max(ends) + pad

    def place(x: float) -> float:
        return _LEFT + (min(max(x, start), stop) - start) / (stop - start) * _span()

    left, right, middle = place(low), place(high), place(value)
    marks = [(left, low), (middle, value), (right, high)]
    words = "".join(
        f'<text x="{x:.1f}" y="{78 if i == 1 else 22}" text-anchor="middle">{_short(end)}</text>'
        for i, (x, end) in enumerate(marks)
    )
    return _svg(
        90,
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="45" y2="45" class="range"/>'
        f'<line x1="{left:.1f}" x2="{left:.1f}" y1="36" y2="54" class="range"/>'
        f'<line x1="{right:.1f}" x2="{right:.1f}" y1="36" y2="54" class="range"/>'
        f'<circle cx="{middle:.1f}" cy="45" r="7" class="value"/>{words}',
        f"released {_short(value)}, between {_short(low)} and {_short(high)}",
    )


def line_chart(
    values: Sequence[float],
    band: tuple[Sequence[float], Sequence[float]] | None = None,
    *,
    across: str = "place",
) -> str:
    """Draw a list of numbers, with a band that holds the truth if there is one."""
    count = _without_tail(values)
    step = max(1, -(-count // _MOST_POINTS))
    places = range(0, count, step)
    shown = [values[i] for i in places]
    finite = [v for v in shown if math.isfinite(v)]
    if not finite:
        return ""
    height = 260
    bottom, top = min(0.0, *finite), max(finite) or 1.0

    def point(i: int, v: float) -> str:
        x = _LEFT + i / max(count - 1, 1) * _span()
        y = 12 + (top - min(max(v, bottom), top)) / ((top - bottom) or 1.0) * (
            height - 12 - _BOTTOM
        )
        return f"{x:.1f},{y:.1f}"

    drawn = ""
    if band is not None:
        there = [point(i, band[0][i]) for i in places]
        back = [point(i, band[1][i]) for i in reversed(places)]
        drawn += f'<polygon points="{" ".join([*there, *back])}" class="band"/>'
    line = " ".join(point(i, v) for i, v in zip(places, shown, strict=True))
    drawn += f'<polyline points="{line}" class="line"/>'
    base = height - _BOTTOM
    drawn += (
        f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{base}" y2="{base}" class="axis"/>'
        f'<text x="{_LEFT - 8}" y="20" text-anchor="end">{_short(top)}</text>'
        f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{_short(bottom)}</text>'
        f'<text x="{_LEFT}" y="{base + 22}">0</text>'
        f'<text x="{WIDTH - _RIGHT}" y="{base + 22}" text-anchor="end">{count - 1:,}</text>'
        f'<text x="{WIDTH / 2}" y="{base + 22}" text-anchor="middle">{html.escape(across)}</text>'
    )
    return _svg(height, drawn, f"{count:,} numbers between {_short(bottom)} and {_short(top)}")


def _without_tail(values: Sequence[float]) -> int:
    """Return how many numbers are worth drawing: long tails of zeros are not."""
    last = next((i for i in reversed(range(len(values))) if values[i]), 0)
    return min(len(values), last + last // 10 + 2)


def heat_chart(matrix: Any) -> str:
    """Draw a matrix as a picture: dark is much."""
    import numpy as np

    values = coarsen(matrix, _MOST_PIXELS)
    low, high = float(values.min()), float(values.max())
    grey = 255 - np.round(225 * (values - low) / ((high - low) or 1.0)).astype(np.uint8)
    picture = base64.b64encode(_png(grey)).decode()
    side = min(480, 4 * max(grey.shape))
    rows, columns = np.shape(matrix)
    words = f"{rows:,} rows and {columns:,} columns, from {_short(low)} to {_short(high)}"
    return (
        f'<img class="heat" src="data:image/png;base64,{picture}" alt="{words}" '
        f'width="{side * grey.shape[1] // max(grey.shape)}" '
        f'height="{side * grey.shape[0] // max(grey.shape)}">'
    )


def coarsen(matrix: Any, most: int) -> Any:
    """Return a matrix as means over blocks, so that it has at most so many rows and columns.

    Example:
        >>> coarsen([[1, 3], [5, 7]], 1).tolist()
        [[4.0]]
    """
    import numpy as np

    values = np.asarray(matrix, dtype=float)
    for axis in (0, 1):
        size = values.shape[axis]
        if size > most:
            edges = np.linspace(0, size, most + 1).astype(int)
            sums = np.add.reduceat(values, edges[:-1], axis=axis)
            shape = [1, 1]
            shape[axis] = -1
            values = sums / np.diff(edges).reshape(shape)
    return values


def _png(grey: Any) -> bytes:
    rows, columns = grey.shape
    raw = b"".join(b"\0" + grey[i].tobytes() for i in range(rows))

    def chunk(name: bytes, body: bytes) -> bytes:
        check = zlib.crc32(name + body)
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _span() -> float:
    return float(WIDTH - _LEFT - _RIGHT)


def _svg(height: int, inner: str, words: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(words)}">'
        f"{inner}</svg>"
    )


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "no end"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
