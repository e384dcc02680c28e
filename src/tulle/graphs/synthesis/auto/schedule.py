"""What the model auto measures, in which order, and what each part may spend.

A schedule follows from public facts and from parts released before, and all of them spend
epsilon. What a part spends never depends on parts released after it:

- the first parts, edges, order and a first count of triangles, spend the same in all schedules;
- ``blocks`` follows when the order shows blocks, all other schedules when it does not;
- the search for a core goes on as long as there is hope for one: ``plain`` ends after triangles,
  ``placeable`` after the number of nodes that could be placed, ``tried`` after noisy degrees, and
  ``core`` finds one; each part spends the same in all schedules that have it;
- then come the degrees; what the parts after them spend follows from all of these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.mechanism import Parameters
from tulle.core.validate import rational
from tulle.graphs.mechanisms.isotonic import decreasing
from tulle.graphs.synthesis.auto.budget import (
    DEGREES,
    FIRST,
    SCHEDULES,
    Known,
    degree_budgets,
    guess_known,
    last_budgets,
    rungs_of,
)
from tulle.graphs.synthesis.auto.core import (
    Ranks,
    core_size,
    largest_core,
    pair_noise,
    smallest_core,
    telling_degree,
)
from tulle.graphs.synthesis.auto.tuning import TUNING
from tulle.graphs.synthesis.estimates.blocks import chance_modularity, find_blocks, square_of
from tulle.graphs.synthesis.joint_degrees.scores import DegreeScores, degree_scores
from tulle.graphs.synthesis.model import ModelSettings, Statistics

_TUNING = TUNING.schedule

PARTS = (
    "edges",
    "order",
    "triangles",
    "reached",
    "sequence",
    "stars",
    "closure",
    "correlation",
    "mixing",
)

CORE_SEARCH: Mapping[str, Mapping[str, Fraction]] = {
    "scarce": {
        "placeable": Fraction(2, 100),
        "ranks": Fraction(7, 100),
        "core": Fraction(45, 100),
        "pairs": Fraction(2, 100),
    },
    "ample": {
        "placeable": Fraction(1, 100),
        "ranks": Fraction(5, 100),
        "core": Fraction(35, 100),
        "pairs": Fraction(2, 100),
    },
}
"""What the search for a core spends of epsilon."""

CORE_SEARCH_PARTS: Mapping[str, tuple[str, ...]] = {
    "placeable": ("placeable",),
    "tried": ("placeable", "ranks"),
    "core": ("placeable", "ranks", "core", "pairs"),
}
"""Which of these each schedule spends."""


def grade_of(epsilon: Fraction) -> str:
    """Return whether this is a small or a large budget."""
    return "ample" if epsilon >= _TUNING.ample else "scarce"


@dataclass(frozen=True, eq=False, kw_only=True)
class AutoSettings(ModelSettings):
    """The public settings of one run."""

    blocks: str
    parts: str
    """The parts that are measured, with commas between them."""
    epsilon: Fraction
    shares: Any
    """Of each part that is measured first, its share of epsilon; exact numbers as text."""
    core_search: Any
    """The same while a core is searched for; empty where none is."""


def budgets_of(seen: Statistics, settings: Parameters) -> dict[str, Fraction]:
    """Return what each part spends, given the parts released before; together exactly epsilon.

    What the parts after the degrees spend is a guess until these are released.
    """
    return spending(settings, schedule_of(seen, settings), known_of(seen, settings))


def spending(settings: Parameters, schedule: str, known: Known) -> dict[str, Fraction]:
    """Return what each part spends in a schedule, when so much is known after the degrees."""
    epsilon = AutoSettings.read(settings).epsilon
    asked = AutoSettings.read(settings).parts.split(",")
    shares = {name: rational(share) for name, share in AutoSettings.read(settings).shares.items()}
    for name in CORE_SEARCH_PARTS.get(schedule, ()):
        if name in AutoSettings.read(settings).core_search:
            shares[name] = rational(AutoSettings.read(settings).core_search[name])
    fixed = {name: epsilon * share for name, share in shares.items()}
    names = tuple(
        name
        for name in SCHEDULES.get(schedule, SCHEDULES["plain"])
        if name not in fixed and (name not in PARTS or name in asked)
    )
    if "triangles" not in asked:
        names = tuple(name for name in names if name != "recount")
    left = epsilon - sum(fixed.values(), Fraction(0))
    if not names or not left:
        return fixed
    curve = degree_budgets(names, AutoSettings.read(settings).nodes, epsilon, left)
    left -= sum(curve.values(), Fraction(0))
    others = tuple(name for name in names if name not in DEGREES)
    if not left:
        return {**fixed, **curve}
    scale = float(2 / max(curve.values(), default=left))
    return {**fixed, **curve, **last_budgets(others, left, known, scale)}


def known_of(seen: Statistics, settings: Parameters) -> Known:
    """Return what the number of edges, triangles and degrees say, as far as they are released."""
    nodes, edges = AutoSettings.read(settings).nodes, int(seen["edges"])
    known = guess_known(nodes, edges)
    if "reached" not in seen:
        return _counted(known, seen, settings)
    reaching, first, second = _reaching(seen)
    degree = np.arange(1.0, len(reaching) + 1)
    squares = float(reaching @ (2 * degree - 1))
    known = known._replace(largest=first, second=second, squares=squares)
    return _counted(known, seen, settings)


def _reaching(seen: Statistics) -> tuple[Floats, float, float]:
    """Return about how many nodes reach each degree, and the largest two degrees.

    Enough to divide a budget by.
    """
    reaching = np.maximum(decreasing(seen["reached"]), 0.0)
    first, second = (float(max((reaching >= rank).sum(), 1)) for rank in (0.5, 1.5))
    if "sequence" in seen:
        first, second = (max(float(one), 1.0) for one in decreasing(seen["sequence"])[:2])
    # Beyond the largest degree there is noise alone.
    return reaching[: round(first)], first, second


def scores_of(seen: Statistics, settings: Parameters) -> DegreeScores:
    """Return the scores of degrees: over the bulk of those that ends of edges have."""
    nodes = AutoSettings.read(settings).nodes
    middle, deviation = math.log(max(4 * int(seen["edges"]) / max(nodes, 1), 1.0)), 1.0
    if "reached" in seen:
        reaching, _, _ = _reaching(seen)
        degree = np.arange(1.0, len(reaching) + 1)
        ends = degree * -np.diff(np.append(reaching, 0.0))
        if (total := float(ends.sum())) > 0:
            middle = float(ends @ np.log(degree)) / total
            deviation = math.sqrt(float(ends @ (np.log(degree) - middle) ** 2) / total)
    width = max(TUNING.model.reach * deviation, TUNING.model.narrowest)
    return degree_scores(nodes, middle, width)


def _counted(known: Known, seen: Statistics, settings: Parameters) -> Known:
    """Return what is known with the first count of triangles, or as many as it may have missed."""
    if "triangles" not in seen:
        return known
    spent = float(budget(settings, seen, "triangles"))
    missed = rungs_of(known, "triangles").scale(spent, float(_TUNING.first_smoothing))
    return known._replace(triangles=max(float(seen["triangles"]), missed / 2))


def budget(settings: Parameters, seen: Statistics, name: str) -> Fraction:
    """Return what a part may spend, given the parts released before."""
    if name in FIRST:
        return AutoSettings.read(settings).epsilon * rational(
            AutoSettings.read(settings).shares[name]
        )
    return budgets_of(seen, settings)[name]


def smoothing_of(settings: Parameters, seen: Statistics, name: str) -> Fraction:
    """Return what part of its budget a ladder spends on smoothing."""
    if name == "triangles":
        return _TUNING.first_smoothing
    return rungs_of(known_of(seen, settings), name).best_share(budget(settings, seen, name))


def schedule_of(seen: Statistics, settings: Parameters) -> str:
    """Return which schedule is followed: by choice, or by what was released so far shows."""
    if "order" in seen and _order_tells(seen, settings):
        return "blocks"
    if not AutoSettings.read(settings).core_search:
        return "plain"
    return _core_search(seen, settings)


def _order_tells(seen: Statistics, settings: Parameters) -> bool:
    counts = square_of(seen["order"], ranges_of(seen, settings))
    blocks, modularity = find_blocks(counts)
    if int(blocks.max()) == 0:
        return False
    if AutoSettings.read(settings).blocks == "yes":
        return True
    scale = float(1 / budget(settings, seen, "order"))
    chance = chance_modularity(counts, scale)
    least = max(_TUNING.telling, _TUNING.deviations * chance.deviation)
    return modularity - chance.mean >= least


def _core_search(seen: Statistics, settings: Parameters) -> str:
    """Return whether there is hope for a core still, or where the search for one ended."""
    nodes = AutoSettings.read(settings).nodes
    if "ranks" in seen:
        return "core" if size_of_core(seen, settings) else "tried"
    if "placeable" in seen:
        most = (
            int(seen["placeable"]) >= _TUNING.most * nodes
            or AutoSettings.read(settings).blocks == "core"
        )
        return "core" if most else "placeable"
    return "core" if _most_in_core(seen, settings) >= smallest_core(nodes) else "plain"


def _most_in_core(seen: Statistics, settings: Parameters) -> int:
    """Return how large a core may be, for something to show in it."""
    settled = AutoSettings.read(settings)
    nodes = settled.nodes
    if settled.blocks == "core":
        return nodes
    if "triangles" not in seen or seen["edges"] * settled.epsilon < _TUNING.rich:
        return 0
    noise = pair_noise(_search_budget(settings, "core"))
    return largest_core(nodes, int(seen["triangles"]), noise)


def size_of_core(seen: Statistics, settings: Parameters) -> int:
    """Return how many nodes make the core, or none."""
    most = _most_in_core(seen, settings)
    return core_size(ranks_of(seen, settings), _search_budget(settings, "core"), most)


def placeable_degree(settings: Parameters) -> int:
    """Return how many neighbours a node must have for a core to say where it belongs."""
    return telling_degree(_search_budget(settings, "core"))


def _search_budget(settings: Parameters, name: str) -> Fraction:
    return AutoSettings.read(settings).epsilon * rational(
        AutoSettings.read(settings).core_search[name]
    )


def ranks_of(seen: Statistics, settings: Parameters) -> Ranks:
    """Return the noisy degrees of all nodes."""
    return Ranks(seen["ranks"], float(2 / _search_budget(settings, "ranks")))


def ranges_of(seen: Statistics, settings: Parameters) -> int:
    """Return into how many ranges the order is cut: so many that a cell outweighs its noise."""
    spent = float(budget(settings, seen, "order"))
    most = math.isqrt(max(int(seen["edges"] * spent / 3), 0))
    return max(2, min(most, _TUNING.most_ranges, AutoSettings.read(settings).nodes // 2))
