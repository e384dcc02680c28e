"""How results look on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from tulle.core.release import Release

LEVEL = 0.95


def simple(**settings: Any) -> Table:
    """Return an empty table with a rule below its titles and nothing else."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", **settings
    )


def facing() -> Table:
    """Return a table of names and contents, side by side."""
    from rich.table import Table

    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    return drawn


def figure(value: Any, *, first: int = 8) -> str:
    """Write a released number for people; of several numbers, say how many and the first."""
    import numpy as np

    if np.ndim(value):
        flat = np.ravel(value)
        shown = ", ".join(figure(item) for item in flat[:first].tolist())
        number = f"{flat.size:,} numbers"
        return f"{number}: {shown}{', …' if flat.size > first else ''}" if shown else number
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        size = abs(float(value))
        return f"{float(value):,.0f}" if size >= 1e3 else f"{float(value):.5g}"
    return str(value)


def error_figure(value: float) -> str:
    """Write the size of an error: two digits are enough, unless it is large."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def interval(release: Release) -> str:
    """Write the 95 % interval, or why there is none."""
    import numpy as np

    if release.error is None and not release.parts:
        return "none was bought" if "epsilon_spread" in release.parameters else "it has none"
    if np.ndim(release.value):
        assert release.error is not None
        return f"± {figure(release.error.half_width(LEVEL))}, all numbers at once"
    low, high = release.interval(LEVEL)
    return f"{figure(low)} to {figure(high)}"


def interval_json(release: Release) -> dict[str, Any] | None:
    """Return the 95 % interval as JSON, or None when there is none."""
    import numpy as np

    if release.error is None and not release.parts:
        return None
    low, high = (np.asarray(end).tolist() for end in release.interval(LEVEL))
    return {"level": LEVEL, "low": low, "high": high}


def answer(release: Release) -> Table:
    """Return a release as names and contents."""
    drawn = facing()
    drawn.add_row("answer", figure(release.value), style="bold")
    drawn.add_row("95 % interval", interval(release))
    drawn.add_row("guarantee", str(release.guarantee))
    drawn.add_row("mechanism", release.mechanism)
    drawn.add_row("debit", release.debit[:12] if release.debit else "none (outside a ledger)")
    return drawn
