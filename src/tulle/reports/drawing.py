"""An answer drawn by its form, alone or with the table of its numbers."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.errors import InputError
from tulle.core.release import Release
from tulle.core.release_table import possible
from tulle.core.table import written
from tulle.core.validate import counted
from tulle.core.wording import (
    allowance,
    between,
    ends,
    interval,
    rounded,
    size_of_error,
)
from tulle.reports.charts import (
    bar_chart,
    heat_chart,
    interval_chart,
    line_chart,
    network_chart,
    standalone,
)
from tulle.reports.layout import MOST_NODES
from tulle.reports.terms import TERMS

if TYPE_CHECKING:
    pass
from tulle.reports.page import STYLE

_ROWS = 20
"""So many rows of a table stand on a page."""


_BARS = 30
"""Up to so many numbers are drawn as bars with names, more as a curve."""


def show_answer(release: Release) -> str:
    """Draw an answer by its form, with the table of its numbers and their names below."""
    import numpy as np

    value = release.value
    if isinstance(value, int | float | np.number):
        return _number(release, float(value))
    if hasattr(value, "edges") and hasattr(value, "edge_count"):
        return _network(value)
    drawn = ""
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "biuf":
        shown = possible(release)
        drawn = _list(release, shown) if value.ndim == 1 else _matrix(release, shown)
    said = interval(release)
    words = f"Interval: {said}. {allowance(release)}".strip()
    ranges = "" if ends(release) is None else f"<p>{html.escape(words)}</p>"
    return f"{drawn}{ranges}<div class='wide'>{release.table().to_html(_ROWS)}</div>"


@registry.register("page", "release", "drawing")
def draw(release: Release) -> str:
    """Return a release as one picture in SVG that stands alone.

    Raises:
        InputError: when it is nothing that can be drawn.
    """
    import numpy as np

    value, drawn = release.value, ""
    if isinstance(value, int | float | np.number):
        low, high = ends(release) or (value, value)
        drawn = interval_chart(float(value), float(low), float(high))
    elif hasattr(value, "edges") and hasattr(value, "edge_count"):
        nodes = int(getattr(value, "node_count", None) or value.nodes)
        drawn = network_chart(nodes, np.asarray(value.edges()))
    elif isinstance(value, np.ndarray) and value.size and value.dtype.kind in "biuf":
        shown = possible(release)
        drawn = _list(release, shown) if value.ndim == 1 else _matrix(release, shown)
    if not drawn:
        raise InputError(
            f"An answer to {release.query} cannot be drawn as one picture. release.table() has its "
            "numbers, and release.report() a page."
        )
    return standalone(drawn, STYLE)


def _number(release: Release, value: float) -> str:
    found = ends(release)
    if found is None:
        return f'<p class="big">{written(release.value)}</p><p>It has no interval.</p>'
    low, high = (float(end) for end in found)
    sides = [abs(value - end) for end in (low, high) if math.isfinite(end)]
    width = max(sides, default=math.inf)
    about = rounded(value, width)
    same = about == written(release.value)
    unit = release.labels.measure
    named = "" if unit == "value" else f" <small>{html.escape(unit)}</small>"
    drawn = f'<p class="big">{"" if same else "about "}{html.escape(about)}{named}</p>'
    drawn += interval_chart(value, low, high) + f"<p>{html.escape(_range(low, high))}"
    if math.isfinite(low) and math.isfinite(high):
        drawn += f" The error is {html.escape(size_of_error(value, width))}."
    if why := allowance(release):
        drawn += f" {html.escape(why)}"
    return drawn + f" <small>{_term('interval')}</small></p>"


def _term(name: str) -> str:
    return f"{name}: {html.escape(TERMS[name])}."


def _list(release: Release, value: Any) -> str:
    (axis, _), *others = release.labels.sides(value.shape)
    found = ends(release)
    band = None
    if found is not None:
        low, high = ([float(x) for x in end] for end in found)
        band = low, high
    numbers = value.astype(float).tolist()
    unit = "" if release.labels.measure == "value" else release.labels.measure
    if len(numbers) <= _BARS:
        keys = release.table()
        names = [
            " · ".join(written(cell) for cell in row)
            for row in zip(*(keys.to_dict()[key] for key in keys.keys), strict=True)
        ]
        across = " · ".join(keys.keys)
        return bar_chart(names, numbers, band, across=across, up=unit)
    across = axis.name if not others else "group"
    first = axis.first if axis.labels is None and axis.paired is None else 0
    return line_chart(numbers, band, across=across, up=unit, first=first)


def _matrix(release: Release, value: Any) -> str:
    names = [axis.name for axis, _ in release.labels.sides(value.shape)]
    if value.ndim == 2:
        return heat_chart(value, down=names[0], across=names[1])
    return ""


def _network(value: Any) -> str:
    """Draw a released network as one, beside how many nodes have how many links."""
    import numpy as np

    edges = np.asarray(value.edges())
    nodes = int(getattr(value, "node_count", None) or value.nodes)
    degrees = np.bincount(np.bincount(edges.ravel(), minlength=nodes)).astype(float).tolist()
    shown = network_chart(nodes, edges)
    part = "" if nodes <= MOST_NODES else f", {MOST_NODES} of its nodes drawn"
    histogram = (
        bar_chart([str(i) for i in range(len(degrees))], degrees, across="links", up="nodes")
        if len(degrees) <= _BARS
        else line_chart(degrees, across="links", up="nodes")
    )
    return (
        f"<p class='big'>{counted(nodes, 'node')}, {counted(value.edge_count, 'link')}</p>{shown}"
        f"<p class='soft'>The released network{part}. It is public; no single link in it need "
        f"exist.</p><p><b>How many nodes have how many links</b></p>{histogram}"
    )


def _range(low: float, high: float) -> str:
    return f"The truth is {between(low, high)}; 19 of 20 such statements are right."
