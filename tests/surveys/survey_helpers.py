"""Exact output laws and the one check that all of them, and their broken twins, go through.

A mechanism is anything with ``epsilon`` and ``law(input)`` for finitely many ``inputs``; its law
maps every report to an exact probability. In that form it can join the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import stats

from tulle.surveys.designs import Design
from tulle.surveys.exact import ratio_is_within
from tulle.surveys.links_client import LinkForm

SIGNIFICANCE = 1e-6
"""A right sampler or interval fails one test in a million runs."""

Exact = Mapping[Any, Fraction]


@dataclass(frozen=True)
class Laws:
    """The exact law of each input, and which inputs are neighbours."""

    epsilon: Fraction
    laws: Mapping[Hashable, Exact]
    neighbours: Sequence[tuple[Hashable, Hashable]]


def worst_ratio(found: Laws) -> Fraction | None:
    """Return the largest ratio over all reports and neighbours; None when it is infinite."""
    worst = Fraction(1)
    for law in found.laws.values():
        assert sum(law.values()) == 1
        assert min(law.values()) >= 0
    for one, other in found.neighbours:
        for first, second in ((one, other), (other, one)):
            for report, chance in found.laws[first].items():
                against = found.laws[second].get(report, Fraction(0))
                if chance and not against:
                    return None
                if chance:
                    worst = max(worst, chance / against)
    return worst


def is_private(found: Laws) -> bool:
    """Tell, with certainty, whether every ratio is at most exp(epsilon)."""
    worst = worst_ratio(found)
    return worst is not None and ratio_is_within(worst, found.epsilon)


def laws_of(design: Design) -> Laws:
    """Return the laws of a design: any two answers are neighbours."""
    answers = range(design.categories)
    return Laws(design.epsilon, {v: design.law(v) for v in answers}, list(combinations(answers, 2)))


def joint(first: Exact, second: Exact) -> dict[Any, Fraction]:
    """Return the law of two independent reports."""
    return {(a, b): p * q for a, p in first.items() for b, q in second.items()}


# --- links ------------------------------------------------------------------------------------

Graph = frozenset[tuple[int, int]]


def all_graphs(nodes: int) -> tuple[list[Graph], list[tuple[Graph, Graph]]]:
    """Return every graph on so many nodes, and all pairs that differ in one edge."""
    pairs = list(combinations(range(nodes), 2))
    graphs = [
        frozenset(pair for pair, there in zip(pairs, bits, strict=True) if there)
        for bits in product((0, 1), repeat=len(pairs))
    ]
    return graphs, [(g, g | {pair}) for g in graphs for pair in pairs if pair not in g]


def link_law(form: LinkForm, graph: Graph, reporters: Callable[..., Sequence[int]]) -> Exact:
    """Return the law of all reports when ``reporters(i, j)`` speak about each pair."""
    law: dict[Any, Fraction] = {(): Fraction(1)}
    for pair in combinations(range(form.nodes), 2):
        truth = int(pair in graph)
        for _ in reporters(*pair):
            law = {
                (*reports, said): chance * form.design.probability(said, truth)
                for reports, chance in law.items()
                for said in (0, 1)
            }
    return law


def graph_law(form: LinkForm, graph: Graph, keep: Callable[[int, Graph], int]) -> Exact:
    """Return the law of the rebuilt graph when ``keep(reported, truth)`` links are kept."""
    pairs = list(combinations(range(form.nodes), 2))
    found: dict[Any, Fraction] = {}
    for reports, chance in link_law(form, graph, lambda i, j: (i,)).items():
        ones = [pair for pair, said in zip(pairs, reports, strict=True) if said]
        zeros = [pair for pair, said in zip(pairs, reports, strict=True) if not said]
        wanted = keep(len(ones), graph)
        first, rest = (ones, []) if wanted <= len(ones) else (zeros, ones)
        options = list(combinations(first, wanted - len(rest)))
        for option in options:
            key = frozenset([*option, *rest])
            found[key] = found.get(key, Fraction(0)) + chance / len(options)
    return found


# --- statistics -------------------------------------------------------------------------------


def chi_square_p(counts: Mapping[Any, int], law: Exact) -> float:
    """Return the p-value of observed counts under an exact law; a report outside it gives 0."""
    if set(counts) - {report for report, chance in law.items() if chance}:
        return 0.0
    runs = sum(counts.values())
    expected = np.array([float(p) * runs for p in law.values() if p])
    seen = np.array([counts.get(report, 0) for report, p in law.items() if p])
    assert expected.min() >= 5
    return float(stats.chisquare(seen, expected).pvalue)


COVERAGE_RUNS = 1000
LEAST_COVERED = 915
"""Of 1000 intervals at 95 %. A right one passes but for 2e-6; one that covers at most 88 % is
rejected with probability 0.9997 or more (see test_the_coverage_test_has_its_stated_power)."""


def covers(hits: int) -> bool:
    """Tell whether a 95 % interval has shown its coverage in COVERAGE_RUNS runs."""
    return hits >= LEAST_COVERED


def draw_reports(
    generator: np.random.Generator, matrices: Sequence[Any], answers: Any
) -> np.ndarray[Any, Any]:
    """Draw counts of reports for counts of answers; the Kronecker product is formed, for tests."""
    full = np.array([[1.0]])
    for matrix in matrices:
        full = np.kron(full, matrix)
    flat = np.asarray(answers).ravel()
    parts = [generator.multinomial(count, full[:, v]) for v, count in enumerate(flat) if count]
    return np.sum(parts, axis=0).reshape(np.shape(answers))
