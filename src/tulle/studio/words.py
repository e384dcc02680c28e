"""What pages say: units, prices and questions in words that a non-specialist follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

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


def _graph(text: str, title: str, meaning: str) -> Card:
    return Card({"kind": "graph", "text": text}, title, meaning)


CARDS = {
    "graph": (
        _graph("edges", "Links", "how many there are"),
        _graph("triangles", "Triangles", "trios in which everyone is linked"),
        _graph("stars(2)", "Shared contacts", "pairs of people who share a contact"),
        _graph("transitivity", "Transitivity", "how often two contacts of one are linked"),
        _graph("average_clustering", "Clustering", "the same, averaged over people"),
        _graph("assortativity", "Assortativity", "do the busy link with the busy?"),
        _graph("degree_distribution", "Degree distribution", "how many have how many links"),
        _graph("cliques(4)", "Cliques of four", "groups of four, all linked"),
        _graph("k_triangles(2)", "Pairs with two shared", "linked, with two shared contacts"),
        _graph("eigenvalues(5)", "Spectrum", "the five leading eigenvalues"),
    ),
    "database": (),
    "contributions": (),
    "matrix": (
        Card({"kind": "matrix", "arguments": {}}, "The whole table", "every cell, some flipped"),
    ),
}
"""The questions that are offered for each kind of data; pages leave out what a unit forbids."""

MODELS = {
    "auto": ("Automatic", "chooses and combines what survives at this price"),
    "1k": ("Degrees", "keeps how many links people have"),
    "2k": ("Joint degrees", "keeps who links with whom by number of links"),
    "2.5k": ("Joint degrees and clustering", "also keeps how links close into triangles"),
    "communities": ("Communities", "keeps groups and the links between them"),
    "kronecker": ("Kronecker", "four numbers, any size"),
    "topm": ("Top-m filter", "keeps the most likely links of a noisy matrix"),
    "response": ("Randomized response", "flips every pair by a coin: the limit case"),
    "per_node": ("From counts", "keeps how many links people have, links and triangles in all"),
}


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
