"""What pages say: units, prices and questions in words that a non-specialist follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tulle import _index
from tulle.core.unit import PERIODS

KINDS = {
    "graph": ("A network", "who is linked to whom: friendships, calls, co-authors"),
    "database": ("A database", "tables of records that belong to people"),
    "contributions": ("Movements", "a long table: who, from where, to where, how often"),
    "matrix": ("A yes/no table", "one row per person, one column per question, 0 or 1"),
}
"""Each kind of data: its name and what it is."""

UNITS: dict[tuple[str, str], tuple[str, str]] = {
    ("graph", "edge"): (
        "Hide any one link",
        "Nobody can tell whether any two people are linked. Who is in the network, and how many "
        "they are, is public.",
    ),
    ("graph", "node"): (
        "Hide any one person and all their links",
        "Nobody can tell whether any one person is in the network at all. This protects far more, "
        "and answers are less accurate.",
    ),
    ("database", "participant"): (
        "Hide any one person and every row of theirs",
        "Nobody can tell whether any one owner of rows is in the database at all.",
    ),
    ("contributions", "participant"): (
        "Hide any one person and all their movements",
        "Nobody can tell whether any one person is in the table at all. The list of places is "
        "public.",
    ),
    ("matrix", "row"): (
        "Hide everything about any one row",
        "Nobody can tell what any one person answered, to all questions together.",
    ),
    ("matrix", "cell"): (
        "Hide any one answer",
        "Nobody can tell any single answer of any person; many answers of one person together "
        "are protected less.",
    ),
}

UNITS |= {
    ("database", f"participant-{period}"): (
        f"Hide any one person's rows of any one {period}",
        f"Nobody can tell whether any one person has rows of any one {period}. Rows of many "
        f"{period}s of one person together are protected less. The file must say which columns "
        "are times.",
    )
    for period in PERIODS
}
"""For each kind of data and unit: the promise in a few words, and what it means."""

PROTECTED = {
    "edge": "any one link",
    "node": "any one person with all their links",
    "row": "any one row",
    "cell": "any one answer",
    "participant": "any one person with all their records",
    "client": "anything one client reports",
} | {f"participant-{period}": f"any one person's records of any one {period}" for period in PERIODS}


@dataclass(frozen=True)
class Card:
    """A question that a page offers with one click."""

    asked: dict[str, Any]
    title: str
    meaning: str


CARDS = {
    "graph": tuple(
        Card({"kind": "graph", "text": asked}, title, meaning)
        for asked, title, meaning in _index.OFFERED["ask"]
    ),
    "database": (),
    "contributions": (),
    "matrix": (
        Card({"kind": "matrix", "arguments": {}}, "The whole table", "every cell, some flipped"),
    ),
}
"""The questions that are offered for each kind of data; pages leave out what a unit forbids."""

MODELS = {name: (title, meaning) for name, title, meaning in _index.OFFERED["synthetic"]}
"""The models of synthetic graphs, each with its title and what it keeps."""


def odds(epsilon: float) -> str:
    """Say what a price means: by how much anybody's odds can change."""
    factor = math.exp(min(epsilon, 700.0))
    if factor < 10:
        return f"{factor:.2g}"
    return f"{factor:,.0f}" if factor < 1e6 else f"{factor:.1e}"


def units(kind: str, *, dated: bool) -> dict[str, tuple[str, str]]:
    """Return the units of a kind of data, those with a period where times can be declared."""
    return {
        unit: text
        for (name, unit), text in UNITS.items()
        if name == kind and (dated or "-" not in unit)
    }


def meaning(epsilon: float, unit: str) -> str:
    """Say in one sentence what a price protects."""
    return (
        f"With {PROTECTED[unit]} more or less, the odds of anything an onlooker concludes change "
        f"by a factor of {odds(epsilon)} at most."
    )


def figure(value: Any) -> str:
    """Write a number as people read it."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    number = float(value)
    if math.isinf(number):
        return "unbounded"
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    # A delta of 5e-07 is written out: not everyone reads powers of ten.
    return f"{number:,.0f}" if abs(number) >= 1000 else format(Decimal(f"{number:.4g}"), "f")
