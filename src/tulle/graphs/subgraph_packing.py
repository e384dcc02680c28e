"""The truncated value of bundles at a threshold, between two certain bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.graphs.subgraph_bounds import Tables, lower_bound, upper_bound
from tulle.graphs.subgraph_bundles import Bundles
from tulle.graphs.subgraph_interior import Interior, reduce
from tulle.relations.packing import Bracket

Array = npt.NDArray[Any]


def solve_bundles(bundles: Bundles, tau: float, *, gap: float, verbose: bool = False) -> Bracket:
    tables = Tables(bundles)
    active = bundles.loads() > tau
    problem = reduce(bundles, tau, active)
    run = Interior(problem)
    full = tables.slope[bundles.sizes - 1]
    lower, upper = 0.0, np.inf
    for turn in range(200):
        g = np.zeros(bundles.count)
        g[active] = run.deletions()
        upper = min(upper, upper_bound(bundles, tables, tau, g))
        kept, height, use = run.levels()
        limits = np.full(len(bundles.stems), np.inf)
        if bundles.stems.shape[1] > 1:
            limits[problem.bundles] = kept * tau
        heights = full.copy()
        heights[problem.bundles] = height * tau
        uses = np.repeat(heights, bundles.sizes)
        uses[problem.places] = use * tau
        lower = max(lower, lower_bound(bundles, tables, tau, limits, heights, uses))
        if verbose:
            print(turn, lower, upper, (upper - lower) / tau, run.gap)
        if upper - lower <= gap:
            return Bracket(lower, upper)
        run.advance()
    raise RuntimeError
