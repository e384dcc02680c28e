"""The demonstration's picture: what went in beside what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tulle.core.arrays import Wholes
from tulle.core.errors import MissingExtraError, raise_alone

# A light grey and a dark blue (Okabe and Ito's): told apart by every reader, and in print.
_INSIDE = "#d4d4d4"
_OUTSIDE = "#0072B2"
_INK = "#2b2b2b"
_LEFT = 0.07
_NAMES = 0.72
"""Room for the names left of the bars, as a share of the width that the bars have."""


@dataclass(frozen=True)
class Bar:
    """One answer relative to the truth, in per cent: its place and both ends of its interval."""

    words: str
    released: str
    value: float
    low: float
    high: float


def draw(
    path: Path,
    *,
    title: str,
    subtitle: str,
    inside: Wholes,
    outside: Wholes,
    bars: Sequence[Bar],
) -> None:
    """Write the picture: two degree distributions, and each answer beside the truth.

    Raises:
        MissingExtraError: when matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise_alone(MissingExtraError("matplotlib", "plot", "Drawing the picture"))

    figure = Figure(figsize=(13, 5.8), dpi=140, facecolor="white")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
    figure.subplots_adjust(left=_LEFT, right=0.975, top=0.72, bottom=0.12, wspace=0.75)
    figure.text(_LEFT, 0.935, title, fontsize=18, fontweight="bold", color=_INK)
    figure.text(_LEFT, 0.88, subtitle, fontsize=12, color=_INK)
    _distributions(left, inside, outside)
    _answers(right, bars)
    figure.savefig(path)


def _distributions(axes: Any, inside: Wholes, outside: Wholes) -> None:
    """Draw how many people have at least so many friends: no bar is too thin to see."""
    truth, released = _at_least(inside), _at_least(outside)
    friends = np.arange(1, len(truth) + 1)
    axes.fill_between(friends, truth, 0.5, step="mid", color=_INSIDE, label="the truth", lw=0)
    axes.plot(
        np.arange(1, len(released) + 2),
        np.append(released, 0.5),  # nobody has more: the line falls off the picture
        drawstyle="steps-mid",
        color=_OUTSIDE,
        linewidth=2.4,
        label="what was released",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    # Noise may leave a last person with absurdly many friends; twice the truth shows enough.
    axes.set_xlim(1, min(1.15 * max(len(truth), len(released)), 2 * len(truth)))
    axes.set_ylim(0.8, 1.3 * float(inside.sum()))
    _plain_ticks(axes.xaxis, [1, 2, 5, 10, 20, 50, 100, 200])
    _plain_ticks(axes.yaxis, [1, 10, 100, 1000, 10_000])
    axes.set_xlabel("number of friends", fontsize=12, color=_INK)
    axes.set_ylabel("people with at least that many", fontsize=12, color=_INK)
    _head(axes, "How many friends people have", 0.0)
    axes.text(
        0.04,
        0.08,
        "Many people: a sharp answer.\nFew people: a blurred one, by design.",
        transform=axes.transAxes,
        fontsize=11.5,
        color=_INK,
    )


def _at_least(counts: Wholes) -> Wholes:
    """Return how many have at least 1, 2, ... up to the largest that anybody has."""
    tail = np.cumsum(counts[::-1])[::-1]
    return tail[1 : int(np.flatnonzero(counts)[-1]) + 1]


def _answers(axes: Any, bars: Sequence[Bar]) -> None:
    for place, bar in enumerate(reversed(bars)):
        axes.plot(
            [bar.low, bar.high],
            [place, place],
            color=_OUTSIDE,
            linewidth=11,
            alpha=0.3,
            solid_capstyle="butt",
            label="95 % interval" if place == 0 else None,
        )
        axes.plot(
            bar.value,
            place,
            "o",
            markersize=8,
            color=_OUTSIDE,
            linestyle="none",
            label="what was released" if place == 0 else None,
        )
        beside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        beside |= {"ha": "right", "va": "center"}
        axes.annotate(bar.words, (0, place), xytext=(-14, 8), fontsize=12, color=_INK, **beside)
        axes.annotate(
            bar.released, (0, place), xytext=(-14, -9), fontsize=12, color=_OUTSIDE, **beside
        )
    axes.axvline(0, color=_INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=0, label="the truth")
    axes.set_yticks([])
    axes.set_ylim(-0.55, len(bars) - 0.45)
    reach = 1.12 * max(max(abs(bar.low), abs(bar.high)) for bar in bars)
    axes.set_xlim(-reach, reach)
    axes.set_xlabel("difference from the truth, in per cent", fontsize=12, color=_INK)
    _head(axes, "Counts and a ratio, beside the truth", -_NAMES)
    axes.spines["left"].set_visible(False)


def _head(axes: Any, title: str, start: float) -> None:
    axes.text(
        start,
        1.13,
        title,
        transform=axes.transAxes,
        fontsize=14,
        fontweight="bold",
        color=_INK,
    )
    axes.legend(
        frameon=False,
        fontsize=11.5,
        loc="lower left",
        bbox_to_anchor=(start - 0.01, 1.01),
        ncols=3,
        borderaxespad=0.2,
        handletextpad=0.5,
        columnspacing=1.4,
        labelcolor=_INK,
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.tick_params(labelsize=11, colors=_INK)


def _plain_ticks(axis: Any, places: list[int]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.set_minor_locator(NullLocator())
