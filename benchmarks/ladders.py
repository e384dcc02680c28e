"""Ladders of counts and statistics with and without a middle: mean errors, from exact laws.

Run with ``python -m benchmarks ladders``, with TULLE_DATA naming the folder of real data sets. Both
spend a tenth (a sixth for statistics) of epsilon on an interval. The middle's share follows from
epsilon by a formula, so nothing was chosen on any graph; ``without`` is the ladder as it was, for
statistics with weights that fall within a rung as well, as of Laplace noise.

Then what the usual share of epsilon for smooth widths costs against the best share for each graph,
chosen with the graph at hand. The usual shares were chosen while looking at these graphs.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import tulle
from benchmarks.common import find_data, print_table
from tulle.core.mechanism import Terms
from tulle.core.registry import mechanisms
from tulle.core.validate import rational
from tulle.graphs.data import Graph
from tulle.graphs.mechanisms.ladder import ladder_widths, middle_reach, rung_counts
from tulle.graphs.mechanisms.statistic_ladder import measure_widths, raise_widths
from tulle.graphs.queries.counts import ProfiledCount
from tulle.graphs.queries.statistics import Statistic

NAMES = ("wiki-Vote", "as20000102", "brightkite", "email-Enron")
COUNTS: tuple[Any, ...] = (tulle.triangles(), tulle.stars(2))
STATISTICS: tuple[Any, ...] = (tulle.transitivity(), tulle.average_clustering())
EPSILONS = (1, 2, 5)
PARTS_PER_DECAY = 8
SHARED = (
    *("polbooks", "netscience", "power", "ca-GrQc", "ca-HepTh", "polblogs", "email-Eu-core"),
    *("p2p-Gnutella08", "lastfm-asia", *NAMES),
)
SHARE_EPSILONS: tuple[Any, ...] = (1,)
SHARES = tuple(Fraction(part, 32) for part in (1, 2, 3, 4, 6, 8, 9, 10))


def mean_error(widths: list[int], most: int, decay: Fraction, middle: Fraction) -> float:
    """Return the mean distance of a draw from the truth; rungs beyond the widths do not matter."""
    counts = np.array(rung_counts(widths, most, middle)[:-1], dtype=float)
    counts /= middle_reach(most, middle)[1]
    weights = counts * np.exp(-float(decay) * np.arange(len(counts)))
    # Half a number on either side is the truth; the rest of a rung is half a step further out.
    ends = np.cumsum(counts) / 2
    away = ends - counts / 4
    away[0] = (ends[0] ** 2 - 0.25) / (2 * ends[0])
    return float(weights @ away / weights.sum())


def terms_for(graph: Graph, query: Any, epsilon: int) -> Terms:
    """Return what is asked."""
    unit = graph.check_unit("edge")
    return Terms(query, unit, Fraction(epsilon), Fraction(0), graph.facts(unit))


def of_count(graph: Graph, query: ProfiledCount, epsilon: int) -> tuple[float, float]:
    """Return the mean error of a count without and with a middle."""
    chosen: Any = mechanisms("graph")["smoothed_ladder"].settings(
        terms_for(graph, query, epsilon), {}
    )
    widths = ladder_widths(query, graph, chosen).profile
    ladder = widths, query.cap(chosen.nodes), chosen.decay
    return mean_error(*ladder, Fraction(0)), mean_error(*ladder, chosen.middle)


def of_statistic(graph: Graph, query: Statistic, epsilon: int) -> tuple[float, float]:
    """Return the mean error of a statistic with rungs in parts, and with a middle."""
    chosen = mechanisms("graph")["statistic_ladder"].settings(terms_for(graph, query, epsilon), {})
    units, decay = int(chosen["units"]), rational(chosen["decay"])
    widths, _ = measure_widths(query, graph, chosen)
    most = query.cap(units)
    parts = max(int(PARTS_PER_DECAY * decay), 1)
    fine = [-(-width // parts) for width in widths for _ in range(parts)]
    before = mean_error(fine, -(-most // parts), decay / parts, Fraction(0))
    return before / units, mean_error(widths, most, decay, rational(chosen["middle"])) / units


def share_rows(name: str, graph: Graph) -> list[dict[str, Any]]:
    """Return the mean error at the usual share and at the best, for each statistic."""
    ladder: Any = mechanisms("graph")["statistic_ladder"]
    hub = int(graph.labels[int(np.argmax(np.diff(graph.csr()[0])))])
    halves = [place % 2 for place in range(graph.node_count)]
    rows = []
    asked: tuple[Any, ...] = (
        *(tulle.transitivity(), tulle.average_clustering(), tulle.assortativity()),
        *(tulle.clustering(hub), tulle.modularity(halves)),
    )
    for query in asked:
        for epsilon in SHARE_EPSILONS:
            terms = terms_for(graph, query, epsilon)
            options: list[dict[str, Any]] = [{}, *({"smoothing_share": one} for one in SHARES)]
            tried = [{**ladder.settings(terms, one), "level_length": 0} for one in options]
            units = int(tried[0]["units"])
            row = query.profile(graph, units, max(int(one["length"]) for one in tried))
            errors = []
            for one in tried:
                widths, _ = raise_widths(query, row[: int(one["length"])], one)
                rates = rational(one["decay"]), rational(one["middle"])
                errors.append(mean_error(widths, query.cap(units), *rates) / units)
            rows.append(
                {
                    "graph": name,
                    "statistic": query.name,
                    "epsilon": epsilon,
                    "usual share": errors[0],
                    "best share": min(errors),
                    "times": errors[0] / min(errors),
                }
            )
    return rows


def rows_of(name: str, graph: Graph) -> list[dict[str, Any]]:
    """Return the rows of one graph."""
    rows = []
    for query in (*COUNTS, *STATISTICS):
        measure: Any = of_statistic if isinstance(query, Statistic) else of_count
        for epsilon in EPSILONS:
            before, after = measure(graph, query, epsilon)
            rows.append(
                {
                    "graph": name,
                    "question": str(query),
                    "truth": float(query.truth(graph)),
                    "epsilon": epsilon,
                    "without": before,
                    "with a middle": after,
                    "times": before / max(after, 1e-12),
                }
            )
    return rows


MINUTE: dict[str, Any] = {
    "NAMES": NAMES[:1],
    "COUNTS": COUNTS[:1],
    "EPSILONS": (1,),
    "SHARED": NAMES[:1],
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the tables."""
    for title, names, measure in (
        ("Ladders per edge: mean error without and with a middle", NAMES, rows_of),
        ("Shares of epsilon for smooth widths: mean error, usual and best", SHARED, share_rows),
    ):
        rows = []
        for name in names:
            path = find_data(name)
            if path is not None:
                rows += measure(name, Graph.from_edges(np.loadtxt(path, dtype=np.int64)))
        print_table(title, rows)


if __name__ == "__main__":
    main()
