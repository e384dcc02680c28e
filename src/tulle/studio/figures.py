"""Figures as data for the page's drawing library; colours are the page's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Figure = dict[str, Any]
"""``data`` and ``layout`` as Plotly reads them; ``color`` names are resolved by the page."""


def curve_figure(lines: Mapping[str, Sequence[Mapping[str, float | None]]]) -> Figure:
    """Draw predicted error against price, one line for each mechanism, both axes logarithmic."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [p["epsilon"] for p in points if p["error"]],
            "y": [p["error"] for p in points if p["error"]],
            "hovertemplate": "epsilon %{x}: ± %{y:.3s}<extra>" + name + "</extra>",
        }
        for name, points in lines.items()
        if any(p["error"] for p in points)
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"type": "log", "title": {"text": "price (epsilon)"}},
            "yaxis": {
                "type": "log",
                "title": {"text": "19 of 20 within ±"},
                "exponentformat": "SI",
            },
            "height": 280,
        },
    }


def value_figure(
    shown: Mapping[str, Any], truth: Any = None, names: Sequence[Sequence[str]] | None = None
) -> Figure | None:
    """Draw a release: a number with its range, a curve, a heat map, a graph's degrees.

    ``names`` are the public names of the rows and columns of a matrix.
    """
    form = shown["form"]
    if form == "number":
        return _number_figure(shown, truth)
    if form == "vector":
        return _vector_figure(shown, truth)
    if form == "matrix":
        return heat_figure(shown["values"], names, shown.get("sides"))
    if form == "graph":
        return {
            "data": [{**_line("nodes", shown["degrees"]), "mode": "markers"}],
            "layout": {
                "height": 300,
                "xaxis": {"type": "log", "title": {"text": "links"}},
                "yaxis": {"type": "log", "title": {"text": "nodes with so many"}},
            },
        }
    return None


def _vector_figure(shown: Mapping[str, Any], truth: Any) -> Figure:
    """Draw a list of numbers: few as bars with names, more as a curve with its band."""
    points, names = shown["value"], shown.get("names")
    axis: Figure = {"title": {"text": shown.get("across", "")}}
    layout = {
        "height": 300,
        "xaxis": axis,
        "yaxis": {"title": {"text": shown.get("measure", "")}},
    }
    across = names or points["x"]
    data: list[Figure] = []
    if names is None:
        data.append(_line("released", points))
        if shown.get("band"):
            data[:0] = _band(points["x"], *shown["band"])
    else:
        bars: Figure = {"type": "bar", "name": "released", "x": names, "y": points["y"]}
        low, high = shown.get("band") or (None, None)
        if low is not None and high is not None and None not in low:
            bars["error_y"] = {
                "type": "data",
                "symmetric": False,
                "arrayminus": [y - end for y, end in zip(points["y"], low, strict=True)],
                "array": [
                    0 if end is None else end - y for y, end in zip(points["y"], high, strict=True)
                ],
            }
        data.append(bars)
        axis["type"] = "category"
    if truth is not None:
        start = points["x"][0] if points["x"] else 0
        spot = {"x": across, "y": _pick(truth["y"], [x - start for x in points["x"]])}
        data.append({**_line("truth (inside)", spot), "inside": True})
    return {"data": data, "layout": layout}


def _band(x: Sequence[float], low: Sequence[Any], high: Sequence[Any]) -> list[Figure]:
    """Return the two sides of a band, the upper filled down to the lower; none if one is open."""
    if None in low or None in high:
        return []
    thin = {"line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
    lower = {**_line("low", {"x": x, "y": low}), **thin}
    return [lower, {**_line("95 %", {"x": x, "y": high}), **thin, "fill": "tonexty"}]


def network_figure(shown: Mapping[str, Any]) -> Figure:
    """Draw a released network as one: its nodes as dots, its links as lines."""
    places, links = shown["places"], shown["links"]
    x: list[float | None] = []
    y: list[float | None] = []
    for one, other in links:
        x += [places[one][0], places[other][0], None]
        y += [places[one][1], places[other][1], None]
    hidden = {"visible": False, "constrain": "domain"}
    return {
        "data": [
            {"type": "scatter", "mode": "lines", "name": "links", "x": x, "y": y}
            | {"line": {"width": 0.6, "color": "#7f8c8f"}, "hoverinfo": "skip", "opacity": 0.5},
            {"type": "scatter", "mode": "markers", "name": "nodes", "hoverinfo": "skip"}
            | {"x": [p[0] for p in places], "y": [p[1] for p in places]}
            | {"marker": {"size": 5, "color": "#14868a"}},
        ],
        "layout": {
            "height": 380,
            "showlegend": False,
            "xaxis": hidden,
            "yaxis": {**hidden, "scaleanchor": "x"},
        },
    }


def heat_figure(
    values: Sequence[Sequence[float]],
    names: Sequence[Sequence[str]] | None = None,
    sides: Sequence[str] | None = None,
) -> Figure:
    """Draw a matrix as a heat map, its first row on top; names are those of rows and columns.

    ``sides`` says what rows and columns are.
    """
    drawn = {"type": "heatmap", "z": values, "colorscale": "Viridis", "showscale": True}
    if names is not None:
        drawn |= {"y": names[0], "x": names[1]}
    shown = {"constrain": "domain", "showticklabels": names is not None}
    titles = [{"title": {"text": side}} for side in sides or ("row", "column")]
    return {
        "data": [drawn],
        "layout": {
            "height": 380,
            "yaxis": {"autorange": "reversed", "scaleanchor": "x", **shown, **titles[0]},
            "xaxis": {**shown, **titles[1]},
        },
    }


def belief_figure(found: Mapping[str, Any]) -> Figure:
    """Draw a belief before and after a release, in the range that the guarantee allows."""
    low, high = found["limits"]
    allowed = {
        "type": "scatter",
        "mode": "lines",
        "name": "allowed",
        "x": [low, high],
        "y": [0, 0],
        "line": {"width": 10},
    }
    marks = [("before", found["before"], "circle-open"), ("after", found["after"], "x")]
    points = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [belief],
            "y": [0],
            "marker": {"size": 13, "symbol": symbol},
        }
        for name, belief, symbol in marks
        if belief is not None
    ]
    return {
        "data": [allowed, *points],
        "layout": {
            "height": 150,
            "xaxis": {"range": [0, 1], "tickformat": ".0%", "title": {"text": "belief"}},
            "yaxis": {"visible": False, "range": [-1, 1]},
            "legend": {"orientation": "h", "y": 1.2},
        },
    }


def compare_figure(compared: Mapping[str, Any]) -> Figure | None:
    """Draw the relative errors of a comparison as bars, where it has any."""
    rows = [
        (row["question"], row["score"])
        for row in compared["rows"]
        if row["measure"] == "relative error" and isinstance(row["score"], int | float)
    ]
    if not rows:
        return None
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": [name for name, _ in reversed(rows)],
                "x": [error for _, error in reversed(rows)],
                "inside": True,
            }
        ],
        "layout": {
            "height": 60 + 24 * len(rows),
            "margin": {"l": 190},
            "xaxis": {"title": {"text": "relative error (0: as the original)"}},
        },
    }


def _number_figure(shown: Mapping[str, Any], truth: Any) -> Figure:
    value, interval = shown["value"], shown["interval"]
    bar: Figure = {
        "type": "scatter",
        "mode": "markers",
        "name": "released",
        "x": [value],
        "y": [0],
        "marker": {"size": 12},
    }
    if interval and None not in interval:
        bar["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [interval[1] - value],
            "arrayminus": [value - interval[0]],
            "thickness": 3,
        }
    elif interval and interval[0] is not None:
        # The truth is somewhere to the right: an arrow, and no end.
        bar["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [0],
            "arrayminus": [value - interval[0]],
            "thickness": 3,
        }
    data = [bar]
    if truth is not None:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "truth (inside)",
                "x": [truth],
                "y": [0],
                "marker": {"size": 12, "symbol": "x"},
                "inside": True,
            }
        )
    layout = {
        "height": 150,
        "xaxis": {"title": {"text": shown.get("measure", "")}},
        "yaxis": {"visible": False, "range": [-1, 1]},
    }
    return {"data": data, "layout": layout}


def _line(name: str, points: Mapping[str, Any]) -> Figure:
    return {"type": "scatter", "mode": "lines", "name": name, "x": points["x"], "y": points["y"]}


def _pick(values: Sequence[float], places: Sequence[int]) -> list[float | None]:
    return [values[place] if place < len(values) else None for place in places]
