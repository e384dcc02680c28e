"""How close a synthetic graph is to the true one: one number for each question."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from tulle.core.arrays import Wholes
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.graphs.data import Graph
from tulle.metrics.communities import (
    average_f1,
    cover_of,
    information_beyond_chance,
    mutual_information,
)
from tulle.metrics.portrait import Portrait
from tulle.metrics.scores import divergence, relative_error, top_error


@dataclass(frozen=True)
class ComparisonRow:
    """One question: both answers where they are single numbers, and how far apart they are."""

    question: str
    measure: str
    true: float | None
    made: float | None
    score: float
    higher_is_better: bool = False
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form; what is not finite is written as text."""
        plain = {
            "question": self.question,
            "measure": self.measure,
            "true": self.true,
            "made": self.made,
            "score": self.score if math.isfinite(self.score) else str(self.score),
            "higher_is_better": self.higher_is_better,
        }
        return plain | ({"note": self.note} if self.note else {})


@dataclass(frozen=True)
class Comparison:
    """A table of questions. It is computed from the true graph: custodian side, not private."""

    rows: tuple[ComparisonRow, ...]
    truth: Portrait
    synthetic: Portrait

    def __getitem__(self, question: str) -> float:
        for row in self.rows:
            if row.question == question:
                return row.score
        known = ", ".join(row.question for row in self.rows)
        raise InputError(f"{question!r} was not compared. Compared: {known}.")

    def scores(self) -> dict[str, float]:
        """Return all scores by question."""
        return {row.question: row.score for row in self.rows}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {"rows": [row.to_json() for row in self.rows]}

    def table(self) -> list[dict[str, str]]:
        """Return the table as text, one dictionary for each row."""
        return [
            {
                "question": row.question,
                "true": _figure(row.true),
                "synthetic": _figure(row.made),
                "score": _figure(row.score),
                "measure": row.measure + (f" ({row.note})" if row.note else ""),
            }
            for row in self.rows
        ]

    def figure(self, path: str | PathLike[str], *, title: str = "") -> None:
        """Draw degrees, clustering, distances and spectrum of both graphs into a file.

        Raises:
            MissingExtraError: when matplotlib is not installed.
        """
        from tulle.metrics.figure import draw

        draw(path, self.truth, self.synthetic, title)

    def __str__(self) -> str:
        lines = self.table()
        names = list(lines[0])
        widths = {n: max(len(n), *(len(line[n]) for line in lines)) for n in names}
        rows = [{n: n for n in names}, *lines]
        return "\n".join("  ".join(row[n].ljust(widths[n]) for n in names).rstrip() for row in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        lines = self.table()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in lines[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(v)}</td>" for v in line.values()) + "</tr>"
            for line in lines
        )
        return f"<table><tr>{head}</tr>{body}</table>"


@public("Judge")
def compare(
    truth: Graph | Portrait,
    synthetic: Graph | Portrait,
    *,
    communities: Sequence[Any] | None = None,
    seed: int = 1,
) -> Comparison:
    """Compare a synthetic graph with the true one on the fifteen queries of PGB, and some more.

    Relative errors are relative to the true number; divergences go from true to made. Nodes of
    the two graphs are matched by number for the communities' mutual information, only there. It
    grows with the number of communities by chance alone: *communities beyond chance* is 0 for
    a graph that knows nothing about them.
    ``communities`` are known communities (lists of nodes): the average F1 score of the found ones
    with them is then compared too. A :class:`Portrait` may stand for a graph that is compared
    often.

    Custodian side: the result says as much about the true graph as an exact answer does.

    Raises:
        InputError: when something else than a graph is given.

    Example:
        >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)], nodes=4)
        >>> compare(square, path)["edges"]
        0.25

    Reference:
        Liu et al., PGB: Benchmarking differentially private synthetic graph generation
        algorithms, ICDE 2025.
    """
    true, made = (
        given if isinstance(given, Portrait) else Portrait.of(_graph(given), seed=seed)
        for given in (truth, synthetic)
    )
    rows = [_relative(name, read, true, made) for name, read in _NUMBERS[:5]]
    rows.append(_divergence("degree distribution", _histogram(true), _histogram(made)))
    notes = _distance_notes(true, made)
    rows.append(_relative("diameter", lambda p: p.distances.diameter, true, made, notes[0]))
    rows.append(_relative("mean shortest path", lambda p: p.distances.mean, true, made, notes[1]))
    rows.append(
        _divergence("distance distribution", true.distances.counts, made.distances.counts, notes[1])
    )
    rows += [_relative(name, read, true, made) for name, read in _NUMBERS[5:7]]
    rows.append(_matched("communities", "mutual information", mutual_information, true, made))
    rows += [_relative(name, read, true, made) for name, read in _NUMBERS[7:9]]
    rows.append(_top("eigenvector centrality", true.centrality, made.centrality))
    rows += [_relative(name, read, true, made) for name, read in _NUMBERS[9:]]
    rows.append(_top("betweenness", true.betweenness, made.betweenness))
    adjusted = ("communities beyond chance", "adjusted mutual information")
    rows.append(_matched(*adjusted, information_beyond_chance, true, made))
    if communities is not None:
        found = [average_f1(communities, cover_of(p.communities)) for p in (true, made)]
        error = relative_error(*found)
        rows.append(ComparisonRow("communities' F1", "relative error", found[0], found[1], error))
    return Comparison(tuple(rows), true, made)


PGB = (
    "nodes",
    "edges",
    "triangles",
    "mean degree",
    "degree variance",
    "degree distribution",
    "diameter",
    "mean shortest path",
    "distance distribution",
    "transitivity",
    "average clustering",
    "communities",
    "modularity",
    "assortativity",
    "eigenvector centrality",
)
"""The fifteen queries of PGB, as :func:`compare` names them."""

_NUMBERS: tuple[tuple[str, Callable[[Portrait], float]], ...] = (
    ("nodes", lambda p: p.nodes),
    ("edges", lambda p: p.edges),
    ("triangles", lambda p: p.triangles),
    ("mean degree", lambda p: p.mean_degree),
    ("degree variance", lambda p: p.degree_variance),
    ("transitivity", lambda p: p.transitivity),
    ("average clustering", lambda p: p.average_clustering),
    ("modularity", lambda p: p.modularity),
    ("assortativity", lambda p: p.assortativity),
    ("largest eigenvalue", lambda p: p.largest_eigenvalue),
    ("density", lambda p: p.density),
)


def _graph(given: Any) -> Graph:
    if not isinstance(given, Graph):
        raise InputError(
            f"Two graphs are compared, such as tulle.Graph.read(...) and release.value; got "
            f"{type(given).__name__}."
        )
    return given


def _relative(
    name: str,
    read: Callable[[Portrait], float],
    true: Portrait,
    made: Portrait,
    note: str = "",
) -> ComparisonRow:
    one, other = read(true), read(made)
    return ComparisonRow(name, "relative error", one, other, relative_error(one, other), note=note)


def _divergence(name: str, true: Any, made: Any, note: str = "") -> ComparisonRow:
    return ComparisonRow(name, "KL divergence", None, None, divergence(true, made), note=note)


def _top(name: str, true: Any, made: Any) -> ComparisonRow:
    return ComparisonRow(
        name, "mean absolute error of the top 1 %", None, None, top_error(true, made)
    )


def _matched(
    name: str,
    measure: str,
    agreement: Callable[[Wholes, Wholes], float],
    true: Portrait,
    made: Portrait,
) -> ComparisonRow:
    found = [float(p.communities.max(initial=-1) + 1) for p in (true, made)]
    score, note = math.nan, "no: the graphs have different nodes"
    if true.nodes == made.nodes:
        score, note = agreement(true.communities, made.communities), ""
    return ComparisonRow(name, measure, found[0], found[1], score, True, note)


def _histogram(portrait: Portrait) -> Any:
    import numpy as np

    return np.bincount(portrait.degree, minlength=1)


def _distance_notes(true: Portrait, made: Portrait) -> tuple[str, str]:
    known = true.distances.diameter_known and made.distances.diameter_known
    sampled = [f"{p.distances.sources:,}" for p in (true, made) if p.distances.sources < p.nodes]
    note = f"from {sampled[0]} sampled nodes" if sampled else ""
    return ("" if known else "at least", note)


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) >= 1:
        return f"{value:,.0f}"
    return f"{value:.4g}"
