"""How results look on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tulle.cli.common import printer
from tulle.core.validate import counted

if TYPE_CHECKING:
    from rich.table import Table

    from tulle.core.release import Release


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
        number = counted(flat.size, "number")
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


def interval_json(release: Release) -> dict[str, Any] | None:
    """Return the 95 % interval as JSON, a side without an end as null; None when there is none."""
    from tulle.core import wording

    found = wording.ends(release, wording.LEVEL)
    if found is None:
        return None
    low, high = (_listed(end) for end in found)
    return {"level": wording.LEVEL, "low": low, "high": high}


def _listed(end: Any) -> Any:
    import numpy as np

    if isinstance(end, Mapping):
        return {name: _listed(column) for name, column in end.items()}
    return np.asarray(end).tolist()


def answer(release: Release) -> Table:
    """Return a release as names and contents."""
    from tulle.core import wording

    said = wording.state(release)
    drawn = facing()
    if release.labels.question:
        drawn.add_row("question", release.labels.question)
    drawn.add_row("answer", said.answer, style="bold")
    drawn.add_row("95 % interval", said.interval)
    if said.wider:
        drawn.add_row("its width", said.wider)
    if wording.after_noise(release):
        drawn.add_row("after the noise", wording.after_noise(release))
    if said.not_in_it:
        drawn.add_row("not in it", said.not_in_it)
    drawn.add_row("guarantee", f"{release.guarantee}: hides {wording.hidden(release.guarantee)}")
    drawn.add_row("mechanism", release.mechanism)
    drawn.add_row("debit", release.debit[:12] if release.debit else "none (outside a ledger)")
    return drawn


def present(release: Release, further: Mapping[str, str] = MappingProxyType({})) -> None:
    """Print a release: its question, names and contents, and the rows of an answer that has any."""
    console = printer()
    console.print(release.query, style="bold")
    drawn = answer(release)
    for name, content in further.items():
        drawn.add_row(name, content)
    console.print(drawn)
    below = rows(release)
    if below is not None:
        console.print(below)


def rows(release: Release, most: int = 12) -> Table | None:
    """Return the first and last rows of an answer of several numbers; a network has none."""
    import numpy as np

    single = isinstance(release.value, int | float | np.number)
    if single or hasattr(release.value, "edge_count"):
        return None
    table = release.table()
    drawn = simple()
    for name in table.names:
        right = isinstance(table[name], np.ndarray) or name in ("low", "high")
        drawn.add_column(name, justify="right" if right else "left")
    for row in table.written(most):
        drawn.add_row(*(row or ("…",) * len(table.names)))
    if len(table) > most:
        drawn.caption = f"{counted(len(table), 'row')} in all; --out FILE.csv writes them"
    return drawn
