"""What is said about a release, in words: the same on every surface."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tulle.core.error_law import law_from_json, secret_size
from tulle.core.errors import NoIntervalError
from tulle.core.table import LabelledTable, written
from tulle.core.validate import counted

if TYPE_CHECKING:
    from tulle.core.guarantee import Guarantee
    from tulle.core.release import Release

LEVEL = 0.95
"""The level of the intervals that are shown: 19 of 20 hold the truth."""

HIDDEN = {
    "edge": "any one link",
    "node": "any one person with all their links",
    "participant": "any one person with all their records",
    "row": "everything about any one row",
    "cell": "any one value of the table",
    "client": "everything that any one person reports",
}
"""What each unit hides, for people who do not know the word."""


@dataclass(frozen=True)
class ReleaseWords:
    """A release in words; what does not apply is empty."""

    answer: str
    """The number, or how many there are."""
    interval: str
    """Where the truth lies, or that nothing is known about it."""
    wider: str
    """Why the interval is wider than the noise alone would make it."""
    not_in_it: str
    """What the interval leaves out, such as what clipping took away."""
    kept: str
    """Whether it had been given before, and when."""


def state(release: Release) -> ReleaseWords:
    """Say a release's answer, its interval and what that leaves out."""
    return ReleaseWords(
        answer(release.value),
        interval(release),
        allowance(release),
        leaves_out(release),
        kept_words(release),
    )


def kept_words(release: Release) -> str:
    """Say that an answer was found in the ledger, and from when it is."""
    if not release.kept:
        return ""
    day = f" on {release.date}" if release.date else " before"
    return f"Asked{day}: this is the kept answer, at no cost."


def answer(value: Any) -> str:
    """Write a released number; of anything larger say what it is.

    Example:
        >>> answer(12345), answer(np.zeros((2, 3)))
        ('12,345', '2 × 3 numbers')
    """
    if isinstance(value, LabelledTable):
        return f"{counted(len(value), 'row')}: {', '.join(value.names)}"
    if isinstance(value, np.ndarray) and value.ndim:
        shape = " × ".join(f"{size:,}" for size in value.shape)
        return f"{shape} number{'' if value.size == 1 else 's'}"
    if isinstance(value, dict):
        return ", ".join(str(name) for name in value)
    if hasattr(value, "node_count"):
        nodes, links = counted(value.node_count, "node"), counted(value.edge_count, "link")
        return f"a network of {nodes} and {links}"
    return " ".join(written(value.item() if isinstance(value, np.generic) else value).split())


def ends(release: Release, level: float = LEVEL) -> tuple[Any, Any] | None:
    """Return both ends of the interval, or None when there is none."""
    try:
        low, high = release.interval(level)
    except NoIntervalError:
        return None
    return low, high


def interval(release: Release, level: float = LEVEL) -> str:
    """Say where the truth lies: between two ends, beyond one, or that nobody can tell.

    Example:
        >>> between(3.0, 9.5), between(3.0, math.inf), between(-math.inf, 2.0)
        ('3 to 9.5', 'at least 3', 'at most 2')
    """
    if has_ends_beside(release):
        return _ends_beside(release.value)
    found = ends(release, level)
    if found is None:
        return "none was bought" if "epsilon_spread" in release.parameters else "it has none"
    if isinstance(release.value, LabelledTable):
        return "in the columns low and high, all numbers at once"
    if np.ndim(release.value) == 0:
        return between(float(found[0]), float(found[1]))
    low, high = (np.asarray(end, dtype=np.float64) for end in found)
    value = np.asarray(release.value, dtype=np.float64)
    below, above = (float(np.max(d, initial=0.0)) for d in (value - low, high - value))
    many = "" if value.size == 1 else ", all numbers at once"
    if math.isfinite(below) and math.isfinite(above):
        return f"each within ± {written(_up(max(below, above)))}{many}"
    if math.isfinite(below):
        return f"each at least its number less {written(_up(below))}{many}; no upper end is known"
    if math.isfinite(above):
        return f"each at most its number plus {written(_up(above))}{many}; no lower end is known"
    return "no end is known"


def has_ends_beside(release: Release) -> bool:
    """Say whether the answer is a table whose columns have their ends beside them."""
    return isinstance(release.value, LabelledTable) and "level" in release.parameters


def _ends_beside(table: LabelledTable) -> str:
    """Say of which columns of a table which ends are known."""
    said: dict[str, list[str]] = {}
    for name in table.names:
        sides = [f"{name}_low", f"{name}_high"]
        if not {*sides} <= {*table.names}:
            continue
        low, high = (any(end is not None for end in table[side]) for side in sides)
        if low and high:
            words = "between {}_low and {}_high"
        elif low:
            words = "at least {}_low, no upper end is known"
        elif high:
            words = "at most {}_high, no lower end is known"
        else:
            words = "no end is known"
        said.setdefault(words, []).append(name)
    listed = [
        f"{', '.join(names)} {words.replace('{}', names[0] if len(names) == 1 else '…')}"
        for words, names in said.items()
    ]
    return f"{'; '.join(listed)}; all rows of a column at once" if listed else "it has none"


def allowance(release: Release) -> str:
    """Say how much wider an interval is because the size of the noise is secret; empty if not."""
    if ends(release) is None:
        return ""
    laws = [one.error for one in release.parts.values() or [release]]
    times = max((law.wider for law in laws if law is not None), default=1.0)
    if times < 1.05:
        return ""
    said = f"{secret_size(times)}."
    if release.parts:
        return f"Put together from parts whose intervals are up to {said}"
    return f"The interval is {said}"


def between(low: float, high: float) -> str:
    """Say which numbers lie between two ends, either of which may be missing."""
    if math.isfinite(low) and math.isfinite(high):
        return f"{written(low)} to {written(high)}"
    if math.isfinite(low):
        return f"at least {written(low)}"
    return f"at most {written(high)}" if math.isfinite(high) else "no end is known"


def after_noise(release: Release) -> str:
    """Say what was done to a table after the noise, and so cost nothing."""
    return ", ".join(release.parameters.get("after_noise", ()))


def leaves_out(release: Release) -> str:
    """Say what the noise is not all of; for an expression, what is cut from its parts."""
    every = list(release.parts.values()) or [release]
    laws = [one.error or law_from_json(one.parameters.get("noise_law")) for one in every]
    said = [law.leaves_out for law in laws if law is not None and law.leaves_out]
    return " ".join(dict.fromkeys([*said, *release.parameters.get("leaves_out", ())]))


def hidden(guarantee: Guarantee) -> str:
    """Say whom a guarantee hides, in a few plain words."""
    unit = guarantee.unit
    if unit.period is None:
        return HIDDEN[unit.name]
    whose = "link's records" if unit.base == "edge" else "person's rows"
    return f"any one {whose} of one {unit.period}"


def rounded(value: float, width: float | None) -> str:
    """Write a number with the digits that mean something beside an error of this size.

    Example:
        >>> rounded(3774, 434), rounded(2042, 41), rounded(0.123456, 0.02), rounded(17, None)
        ('3,800', '2,040', '0.12', '17')
    """
    if width is None or not math.isfinite(width) or width <= 0 or not math.isfinite(value):
        return written(value)
    place = math.floor(math.log10(width / 2))
    if place <= 0 and float(value).is_integer():
        return written(int(value))
    near = round(value, -place)
    return f"{near:,.{max(-place, 0)}f}"


def size_of_error(value: float, width: float) -> str:
    """Say how large an error is beside the number, as a share and in a word.

    Example:
        >>> size_of_error(1000.0, 10.0)
        'within 1 % of the number: very small'
        >>> size_of_error(0.0, 10.0)
        'as large as the number itself: the answer says little'
    """
    if width == 0:
        return "no error"
    share = width / abs(value) if value else math.inf
    if share >= 1:
        return "as large as the number itself: the answer says little"
    words = ((0.02, "very small"), (0.1, "small"), (0.3, "noticeable"), (1.0, "large"))
    word = next(word for most, word in words if share < most)
    return f"within {share * 100:.2g} % of the number: {word}"


def _up(width: float) -> float:
    """Return a width with at most three digits, rounded up."""
    if width <= 0 or width >= 1e15:
        return width
    step = 10.0 ** (math.floor(math.log10(width)) - 2)
    return float(f"{math.ceil(width / step) * step:.12g}")
