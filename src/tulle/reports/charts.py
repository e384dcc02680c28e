"""Small drawings as SVG text, for pages that must stand alone: no library, no script."""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from tulle.core.validate import counted
from tulle.core.wording import between

WIDTH = 640
_LEFT, _RIGHT, _BOTTOM = 70, 20, 34
_MOST_POINTS = 1_200
_MOST_PIXELS = 160
_SHORT = 40
"""Lists up to so many numbers are drawn whole."""


def interval_chart(value: float, low: float, high: float) -> str:
    """Draw a number with the range that holds the truth; a side without an end has an arrow."""
    known = [end for end in (low, high, value) if math.isfinite(end)]
    pad = (max(known) - min(known)) * 0.15 or abs(value) * 0.1 or 1.0
    start, stop = min(known) - pad, max(known) + pad

    def place(x: float) -> float:
        return _LEFT + (min(max(x, start), stop) - start) / (stop - start) * _span()

    left, right, middle = place(low), place(high), place(value)
    marks = [(left, low, 22), (middle, value, 78), (right, high, 22)]
    words = "".join(
        f'<text x="{min(x, WIDTH - 24):.1f}" y="{y}" text-anchor="middle">{_short(end)}</text>'
        for x, end, y in marks
    )
    ends = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="36" y2="54" class="range"/>'
        if math.isfinite(end)
        else f'<path d="M{x - 10 * way:.1f} 36 L{x:.1f} 45 L{x - 10 * way:.1f} 54" class="arrow"/>'
        for x, end, way in ((left, low, -1), (right, high, 1))
    )
    return _svg(
        90,
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="45" y2="45" class="range"/>{ends}'
        f'<circle cx="{middle:.1f}" cy="45" r="7" class="value"/>{words}',
        f"released {_short(value)}; the truth lies {between(low, high)}",
    )


def bar_chart(
    labels: Sequence[str],
    values: Sequence[float],
    ends: tuple[Sequence[float], Sequence[float]] | None = None,
    *,
    across: str = "",
    up: str = "",
) -> str:
    """Draw a number for each of a few names, as bars, with the range that holds the truth."""
    shown = [
        (name, value, *((ends[0][i], ends[1][i]) if ends else (value, value)))
        for i, (name, value) in enumerate(zip(labels, values, strict=True))
        if math.isfinite(value)
    ]
    if not shown:
        return ""
    finite = [x for _, *xs in shown for x in xs if math.isfinite(x)]
    start, stop = min(0.0, *finite), max(0.0, *finite)
    left, line = 190, 22

    def place(x: float) -> float:
        share = (min(max(x, start), stop) - start) / ((stop - start) or 1.0)
        return left + share * (WIDTH - left - 90)

    zero, drawn = place(0.0), ""
    for row, (name, value, low, high) in enumerate(shown):
        y = 26 + row * line
        x = place(value)
        drawn += (
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{_name(name)}</text>'
            f'<rect x="{min(zero, x):.1f}" y="{y - 6}" width="{abs(x - zero):.1f}" height="12" '
            f'class="bar"/>'
            f'<text x="{WIDTH - 4}" y="{y + 4}" text-anchor="end">{_short(value)}</text>'
        )
        if ends:
            drawn += (
                f'<line x1="{place(low):.1f}" x2="{place(high):.1f}" y1="{y}" y2="{y}" '
                'class="whisker"/>'
            )
    drawn += (
        f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="12" y2="{14 + line * len(shown)}" '
        f'class="axis"/><text x="{left - 8}" y="12" text-anchor="end">{html.escape(across)}</text>'
        f'<text x="{WIDTH - 4}" y="12" text-anchor="end">{html.escape(up)}</text>'
    )
    return _svg(24 + line * len(shown), drawn, f"{up} by {across}: {counted(len(shown), 'number')}")


def line_chart(
    values: Sequence[float],
    band: tuple[Sequence[float], Sequence[float]] | None = None,
    *,
    across: str = "place",
    up: str = "",
    first: int = 0,
    whole: bool = False,
) -> str:
    """Draw a list of numbers, with a band that holds the truth if there is one.

    A long tail that cannot be told from noise is left out; ``first`` is the number of the first.
    With ``whole`` all numbers are drawn, and all of the band.
    """
    count = len(values) if whole else worth_drawing(values)
    step = max(1, -(-count // _MOST_POINTS))
    places = range(0, count, step)
    shown = [values[i] for i in places]
    finite = [v for v in shown if math.isfinite(v)]
    if not finite:
        return ""
    height = 270
    if whole and band is not None:
        finite += [v for ends in band for v in ends if math.isfinite(v)]
    bottom, top = min(0.0, *finite), max(finite) or 1.0
    if band is not None:
        # The band is shown whole, unless the curve would be lost in it.
        ends = (band[1][i] for i in places)
        top = max(top, *(min(end, 3 * top) for end in ends if math.isfinite(end)), top)

    def point(i: int, v: float) -> str:
        x = _LEFT + i / max(count - 1, 1) * _span()
        y = 24 + (top - min(max(v, bottom), top)) / ((top - bottom) or 1.0) * (
            height - 24 - _BOTTOM
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
        f'<text x="{_LEFT - 8}" y="30" text-anchor="end">{_short(top)}</text>'
        f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{_short(bottom)}</text>'
        f'<text x="{_LEFT}" y="12">{html.escape(up)}</text>'
        f'<text x="{_LEFT}" y="{base + 22}">{first:,}</text>'
        f'<text x="{WIDTH - _RIGHT}" y="{base + 22}" text-anchor="end">'
        f"{first + count - 1:,}</text>"
        f'<text x="{WIDTH / 2}" y="{base + 22}" text-anchor="middle">{html.escape(across)}</text>'
    )
    cut = f", of {len(values):,}" if count < len(values) else ""
    words = f"{counted(count, 'number')}{cut} between {_short(bottom)} and {_short(top)}"
    return _svg(height, drawn, words)


def worth_drawing(values: Sequence[float]) -> int:
    """Return how many numbers are worth drawing: a tail that looks like noise alone is not.

    The last half of the released numbers says how large noise is around nothing; the last stretch
    that stands out from it is shown, and a quarter more. What stands out everywhere is shown whole.

    Example:
        >>> worth_drawing([5.0] * 20 + [0.0] * 1000)
        38
    """
    import numpy as np

    held = np.nan_to_num(np.asarray(values, dtype=float))
    count = len(held)
    if count < _SHORT:
        return count
    tail = held[count // 2 :]
    floor = float(np.median(tail))
    usual = float(np.abs(tail - floor).mean())
    if abs(floor) > 0.02 * float(np.abs(held).max() or 1.0):
        return count
    width = max(1, count // 100)
    sums = np.convolve(np.abs(held - floor), np.ones(width) / width, mode="valid")
    out = np.flatnonzero(sums > usual * (1 + 8 / math.sqrt(width)))
    last = int(out[-1]) + width if len(out) else count - 1
    return min(count, last + last // 4 + 2)


def network_chart(nodes: int, edges: Any) -> str:
    """Draw a public network as one: nodes as dots, the well connected ones larger."""
    import numpy as np

    from tulle.reports.layout import lay_out, part_to_draw

    kept, links = part_to_draw(nodes, edges)
    if not len(kept):
        return ""
    height, rim = 420, 14
    places = lay_out(len(kept), links)
    x = rim + places[:, 0] * (WIDTH - 2 * rim)
    y = rim + places[:, 1] * (height - 2 * rim)
    x += (WIDTH - rim - x.max(initial=0.0)) / 2
    lines = " ".join(f"M{x[u]:.1f} {y[u]:.1f}L{x[v]:.1f} {y[v]:.1f}" for u, v in links.tolist())
    degrees = np.bincount(links.ravel(), minlength=len(kept))
    sizes = 2.0 + 5.0 * np.sqrt(degrees / max(int(degrees.max(initial=0)), 1))
    dots = "".join(
        f'<circle cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="{sizes[i]:.1f}" class="dot"/>'
        for i in range(len(kept))
    )
    whole = len(kept) == nodes
    words = counted(nodes, "node") if whole else f"{len(kept):,} of {counted(nodes, 'node')}"
    return _svg(height, f'<path d="{lines}" class="link"/>{dots}', f"a network: {words}")


def heat_chart(matrix: Any, *, down: str = "row", across: str = "column") -> str:
    """Draw a matrix as a picture: dark is much; the sides are named."""
    import numpy as np

    values = coarsen(matrix, _MOST_PIXELS)
    low, high = float(values.min()), float(values.max())
    grey = 255 - np.round(225 * (values - low) / ((high - low) or 1.0)).astype(np.uint8)
    picture = base64.b64encode(_png(grey)).decode()
    side = min(480, max(180, 4 * max(grey.shape)))
    rows, columns = np.shape(matrix)
    size = f"{counted(rows, 'row')} and {counted(columns, 'column')}"
    words = f"{size}, from {_short(low)} to {_short(high)}"
    named = html.escape(f"{down} downwards, {across} across; from {_short(low)} to {_short(high)}")
    return (
        f'<img class="heat" src="data:image/png;base64,{picture}" alt="{words}" '
        f'width="{side * grey.shape[1] // max(grey.shape)}" '
        f'height="{side * grey.shape[0] // max(grey.shape)}"><p class="soft">{named}</p>'
    )


def standalone(drawn: str, style: str) -> str:
    """Return a chart as SVG that stands alone, with the style that its page would give it."""
    space = 'xmlns="http://www.w3.org/2000/svg"'
    if drawn.startswith("<img"):
        words, source = (
            html.escape(html.unescape(_between(drawn, f'{name}="', '"'))) for name in ("alt", "src")
        )
        named = _between(drawn, '<p class="soft">', "</p>")
        return (
            f'<svg {space} viewBox="0 0 500 520" role="img" aria-label="{words}">'
            f'<style>{style}</style><image x="10" y="10" width="480" height="480" '
            f'style="image-rendering:pixelated" href="{source}"/>'
            f'<text x="10" y="510">{named}</text></svg>'
        )
    head, _, inner = drawn.partition(">")
    return f"{head.replace('<svg', f'<svg {space}', 1)}><style>{style}</style>{inner}"


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


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


def _name(text: str) -> str:
    return html.escape(text if len(text) <= 26 else f"{text[:25]}…")


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "no end"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
