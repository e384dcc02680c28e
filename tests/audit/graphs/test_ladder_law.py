"""Is the ladder's published error law as wide as the error of every ladder it stands for?"""

from fractions import Fraction
from functools import partial
from math import comb

import pytest

from tulle.graphs.generators import erdos_renyi, social_network
from tulle.graphs.mechanisms.ladder import KnownLadderLaw, LadderLaw, best_middle, smooth_widths
from tulle.graphs.queries.counts import cliques, k_triangles, stars, triangles
from tulle.graphs.sensitivity.counts import public_length

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
EPSILONS = tuple(Fraction(number) for number in ("0.1", "0.5", "1", "2", "5"))
SHARES = {"ladder": Fraction(0), "smoothed_ladder": Fraction(1, 8)}
COUNTS = [
    triangles(),
    *(stars(k) for k in (2, 3, 5)),
    *(k_triangles(k) for k in (2, 3)),
    *(cliques(k) for k in (4, 5, 6)),
]


def too_narrow(name, query, nodes, spread, widths_of, epsilons=EPSILONS):
    """Return (epsilon, level, published, true) wherever the published half-width is too small."""
    share = SHARES[name]
    for epsilon in epsilons:
        decay = epsilon * (1 - share) if share else epsilon / 2
        smoothing = epsilon * share
        most = query.cap(nodes)
        widths = smooth_widths(widths_of(public_length(query, nodes, decay)), most, smoothing)
        middle = best_middle(decay) if share else Fraction(0)
        true = KnownLadderLaw(decay, most, tuple(widths), middle)
        k = int(getattr(query, "k", 0))
        law = LadderLaw(query.name, k, nodes, spread, Fraction(0), decay, smoothing, middle)
        for level in LEVELS:
            published, actual = law.half_width(level), true.half_width(level)
            if published < actual:
                yield float(epsilon), level, published, actual


def synthetic(query, nodes, common, value, length):
    """Build a profile as sensitivity.py does, from any local sensitivity and a(G)."""
    k, most = query.k, query.cap(nodes)
    widths = []
    for t in range(length):
        a = common + t
        widths.append(min(max(min(value, query.envelope(a)), 1), most))
        if query.name == "cliques":
            value += comb(a, k - 3)
        else:
            value += 3 * comb(a, k - 1) + max(a, 4) * comb(a, k - 2)
    return widths


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("query", COUNTS, ids=str)
def test_profiles_of_graphs(name, query):
    graphs = [
        *(erdos_renyi(n, p, seed=s) for n in (6, 12, 30) for p in (0.1, 0.4, 0.9) for s in (1, 2)),
        social_network(40, seed=1),
        social_network(100, seed=2),
    ]
    for graph in graphs:
        nodes = graph.node_count
        found = query.measure(graph, 2 * nodes + 2)
        bad = list(too_narrow(name, query, nodes, found.spread, lambda n, f=found: f.profile[:n]))
        assert not bad, f"{query} on {nodes} nodes, spread {found.spread}: {bad}"


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("query", COUNTS[4:], ids=str)
def test_profiles_of_any_local_sensitivity(name, query):
    for nodes, common, value in combinations_of(query):
        widths = partial(synthetic, query, nodes, common, value)
        bad = list(too_narrow(name, query, nodes, common, widths))
        assert not bad, f"{query}, n={nodes}, a={common}, I_0={value}: {bad}"


def combinations_of(query):
    """Yield numbers of nodes, of common neighbours, and local sensitivities they allow."""
    for nodes in (10, 60):
        for common in sorted({0, 1, 2, 3, 5, nodes // 4, nodes // 2, nodes - 2}):
            top = query.envelope(common)
            for value in sorted({0, min(1, top), top // 8, top // 2, 3 * top // 4, top}):
                yield nodes, common, value


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("query", COUNTS, ids=str)
def test_profiles_of_larger_graphs(name, query):
    for nodes in (300, 1000):
        graph = social_network(nodes, seed=nodes)
        found = query.measure(graph, 2 * nodes + 2)
        bad = list(too_narrow(name, query, nodes, found.spread, lambda n, f=found: f.profile[:n]))
        assert not bad, f"{query} on {nodes} nodes, spread {found.spread}: {bad}"
