"""What the model auto measures, in which order, and what each part may spend.

A schedule follows from public facts and from parts released before, and all of them spend
epsilon. What a part spends never depends on parts released after it:

- the first parts, edges and order, spend the same in all schedules;
- ``blocks`` follows when the order shows blocks, all other schedules when it does not;
- the sounding goes on as long as there is hope for a core: ``plain`` ends after triangles,
  ``heard`` after the number of nodes that could be placed, ``tried`` after noisy degrees, and
  ``core`` finds one; each part spends the same in all schedules that have it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from tulle.core.exact import rational
from tulle.core.mechanism import Parameters
from tulle.graphs.synthesis.auto_budget import FIRST, SCHEDULES, later_shares
from tulle.graphs.synthesis.auto_core import (
    Ranks,
    core_size,
    pair_noise,
    shows_among,
    smallest_core,
    telling_degree,
)
from tulle.graphs.synthesis.blocks import chance_modularity, find_blocks, square_of
from tulle.graphs.synthesis.model import Statistics

PARTS = ("edges", "order", "reached", "sequence", "triangles", "closure", "mixing")

AMPLE = Fraction(3)
"""From this epsilon on a core takes less of it, and is tried on less hope."""

SOUNDING: Mapping[str, Mapping[str, Fraction]] = {
    "scarce": {
        "triangles": Fraction(8, 100),
        "heard": Fraction(2, 100),
        "ranks": Fraction(7, 100),
        "core": Fraction(45, 100),
        "pairs": Fraction(2, 100),
    },
    "ample": {
        "triangles": Fraction(6, 100),
        "heard": Fraction(1, 100),
        "ranks": Fraction(5, 100),
        "core": Fraction(35, 100),
        "pairs": Fraction(2, 100),
    },
}
"""What the search for a core spends of epsilon."""

SOUNDED: Mapping[str, tuple[str, ...]] = {
    "plain": ("triangles",),
    "heard": ("triangles", "heard"),
    "tried": ("triangles", "heard", "ranks"),
    "core": ("triangles", "heard", "ranks", "core", "pairs"),
}
"""Which of these each schedule spends."""

HOPE = {"scarce": 1.0, "ample": 0.3}
"""How a typical eigenvalue must compare with the noise of a core; the largest are far larger."""

MOST = Fraction(11, 20)
"""So many of the nodes must have enough neighbours to be placed by a core."""

FEWEST_SOUNDED = 64
"""A graph of fewer nodes is not searched for a core."""

TELLING = 0.2
"""How much more modularity than chance shows the public order must have to be used."""

_MOST_RANGES = 128


def grade_of(epsilon: Fraction) -> str:
    """Return whether this is a small or a large budget."""
    return "ample" if epsilon >= AMPLE else "scarce"


def budgets_of(seen: Statistics, settings: Parameters) -> dict[str, Fraction]:
    """Return what each part spends, given the parts released before; together exactly epsilon."""
    return spending(settings, schedule_of(seen, settings), int(seen["edges"]))


def spending(settings: Parameters, schedule: str, edges: int) -> dict[str, Fraction]:
    """Return what each part spends in a schedule, when this number of edges was released."""
    epsilon = rational(settings["epsilon"])
    asked = settings["parts"].split(",")
    fixed = {name: rational(share) for name, share in settings["shares"].items()}
    for name in SOUNDED.get(schedule, ()):
        if name in settings["sounding"]:
            fixed[name] = rational(settings["sounding"][name])
    names = tuple(
        name
        for name in SCHEDULES.get(schedule, SCHEDULES["plain"])
        if name not in fixed and (name in asked or name not in PARTS)
    )
    left = 1 - sum(fixed.values(), Fraction(0))
    later: dict[str, Fraction] = {}
    if names and left:
        later = later_shares(names, epsilon * left, int(settings["nodes"]), edges)
    shares = {**fixed, **{name: share * left for name, share in later.items() if share}}
    return {name: epsilon * share for name, share in shares.items()}


def budget(settings: Parameters, seen: Statistics, name: str) -> Fraction:
    """Return what a part may spend, given the parts released before."""
    if name in FIRST:
        return rational(settings["epsilon"]) * rational(settings["shares"][name])
    return budgets_of(seen, settings)[name]


def schedule_of(seen: Statistics, settings: Parameters) -> str:
    """Return which schedule is followed: by choice, or by what was released so far shows."""
    if "order" in seen and _order_tells(seen, settings):
        return "blocks"
    if not settings["sounding"]:
        return "plain"
    return _sounded(seen, settings)


def _order_tells(seen: Statistics, settings: Parameters) -> bool:
    counts = square_of(seen["order"], ranges_of(seen, settings))
    blocks, modularity = find_blocks(counts)
    if int(blocks.max()) == 0:
        return False
    if settings["blocks"] == "yes":
        return True
    scale = float(1 / budget(settings, seen, "order"))
    return modularity - chance_modularity(counts, scale) >= TELLING


def _sounded(seen: Statistics, settings: Parameters) -> str:
    """Return whether there is hope for a core still, or where the search for one ended."""
    nodes = int(settings["nodes"])
    if "ranks" in seen:
        return "core" if size_of_core(seen, settings) else "tried"
    if "heard" in seen:
        most = int(seen["heard"]) >= MOST * nodes or settings["blocks"] == "core"
        return "core" if most else "heard"
    return "core" if _most_in_core(seen, settings) >= smallest_core(nodes) else "plain"


def _most_in_core(seen: Statistics, settings: Parameters) -> int:
    """Return how large a core may be, for something to show in it."""
    nodes = int(settings["nodes"])
    if settings["blocks"] == "core":
        return nodes
    if "triangles" not in seen:
        return 0
    epsilon = rational(settings["epsilon"])
    noise = pair_noise(_sounding(settings, "core")) * HOPE[grade_of(epsilon)]
    return shows_among(nodes, int(seen["edges"]), int(seen["triangles"]), noise)


def size_of_core(seen: Statistics, settings: Parameters) -> int:
    """Return how many nodes make the core, or none."""
    most = _most_in_core(seen, settings)
    return core_size(ranks_of(seen, settings), _sounding(settings, "core"), most)


def heard_from(settings: Parameters) -> int:
    """Return how many neighbours a node must have for a core to say where it belongs."""
    return telling_degree(_sounding(settings, "core"))


def _sounding(settings: Parameters, name: str) -> Fraction:
    return rational(settings["epsilon"]) * rational(settings["sounding"][name])


def ranks_of(seen: Statistics, settings: Parameters) -> Ranks:
    """Return the noisy degrees of all nodes."""
    return Ranks(seen["ranks"], float(2 / _sounding(settings, "ranks")))


def ranges_of(seen: Statistics, settings: Parameters) -> int:
    """Return into how many ranges the order is cut: so many that a cell outweighs its noise."""
    spent = float(budget(settings, seen, "order"))
    most = math.isqrt(max(int(seen["edges"] * spent / 3), 0))
    return max(2, min(most, _MOST_RANGES, int(settings["nodes"]) // 2))
