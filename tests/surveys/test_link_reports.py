"""Link reports: one report for each pair, exact laws on tiny graphs, unbiased counts."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.surveys.survey_helpers import COVERAGE_RUNS, covers

from tulle.audit.surveys.kind import Laws, all_graphs, graph_law, is_private, link_law, worst_ratio
from tulle.core.errors import BudgetError, InputError, UnitError
from tulle.surveys import ClientAccount, LinkForm, LinkReports, perturb_links, report_links
from tulle.surveys.link_reports import links_to_keep


def account() -> ClientAccount:
    return ClientAccount(epsilon=1, unit="edge")


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 10, 11])
def test_each_pair_has_exactly_one_reporter(nodes: int) -> None:
    form = LinkForm.of(nodes, epsilon=1)
    told = [(client, partner) for client in range(nodes) for partner in form.partners(client)]
    assert sorted(tuple(sorted(pair)) for pair in told) == list(combinations(range(nodes), 2))
    for client, partner in told:
        assert form.reporter(client, partner) == form.reporter(partner, client) == client


def test_reports_of_all_graphs_are_private_and_two_reports_are_not() -> None:
    """ERRATA 17: if both ends report, a link pays twice; charging it once is caught."""
    form = LinkForm.of(3, epsilon=1)
    graphs, neighbours = all_graphs(3)
    once = Laws(
        form.epsilon,
        {g: link_law(form, g, lambda i, j: (form.reporter(i, j),)) for g in graphs},
        neighbours,
    )
    assert is_private(once)
    both = Laws(
        form.epsilon, {g: link_law(form, g, lambda i, j: (i, j)) for g in graphs}, neighbours
    )
    assert not is_private(both)
    assert worst_ratio(both) == form.design.worst_ratio() ** 2


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_a_rebuilt_graph_is_private_unless_it_uses_the_true_number(epsilon: float) -> None:
    """ERRATA 18: exactly the true number of links tells that number."""
    form = LinkForm.of(3, epsilon=epsilon)
    graphs, neighbours = all_graphs(3)
    real = Laws(
        form.epsilon,
        {g: graph_law(form, g, lambda said, _: links_to_keep(form, said)) for g in graphs},
        neighbours,
    )
    assert is_private(real)
    twin = Laws(
        form.epsilon, {g: graph_law(form, g, lambda _, g: len(g)) for g in graphs}, neighbours
    )
    assert worst_ratio(twin) is None
    assert not is_private(twin)


def test_rebuilt_graphs_have_the_estimated_number_of_links() -> None:
    form = LinkForm.of(60, epsilon=2)
    edges = [(i, (i + 1) % 60) for i in range(60)]
    for _ in range(20):
        reports = perturb_links(form, edges)
        rebuilt = reports.graph().value
        wanted = min(max(round(reports.edges().value), 0), form.pairs)
        assert len(rebuilt) == wanted
        assert len(np.unique(rebuilt, axis=0)) == len(rebuilt)
        assert (rebuilt[:, 0] < rebuilt[:, 1]).all()
    dense = perturb_links(form, list(combinations(range(60), 2)))
    assert len(dense.graph().value) == min(round(dense.edges().value), form.pairs)


def test_clients_and_bulk_agree_in_law() -> None:
    """Five clients, one true link: how often each pair is reported."""
    form = LinkForm.of(5, epsilon=1)
    runs, seen = 1000, np.zeros((2, 5, 5))
    for _ in range(runs):
        reports = LinkReports(form)
        for client in range(5):
            friends = {0: [3], 3: [0]}.get(client, [])
            reports.add(client, report_links(form, client, friends, account=account()))
        seen[0] += reports._bits
        seen[1] += perturb_links(form, [(3, 0)])._bits
    expected = np.full((5, 5), float(form.design.other))
    expected[0, 3] = expected[3, 0] = float(form.design.same)
    np.fill_diagonal(expected, 0)
    error = np.sqrt(runs * 0.25)
    assert np.abs(seen - runs * expected).max() < 5.5 * error


def counted(nodes: int, edges: Any) -> dict[str, Any]:
    matrix = np.zeros((nodes, nodes), dtype=int)
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1
    degree = matrix.sum(axis=1)
    cube = np.diag(matrix @ matrix @ matrix)
    return {
        "edges": len(edges),
        "degrees": degree,
        "two_stars": int((degree * (degree - 1) // 2).sum()),
        "triangles": int(cube.sum()) // 6,
        "triangles_by_node": cube // 2,
    }


NAMES = ["edges", "degrees", "two_stars", "triangles", "triangles_by_node"]


def test_counts_are_unbiased_over_all_reports() -> None:
    """No sampling: all 64 reports of four clients with their probabilities, for all graphs."""
    form = LinkForm.of(4, epsilon=1)
    pairs = list(combinations(range(4), 2))
    for graph in all_graphs(4)[0]:
        truth = counted(4, graph)
        means: dict[str, Any] = dict.fromkeys(NAMES, 0.0)
        squares: dict[str, Any] = dict.fromkeys(NAMES, 0.0)
        for said, chance in link_law(form, graph, lambda i, j: (i,)).items():
            reports = LinkReports(form)
            linked = [pair for pair, there in zip(pairs, said, strict=True) if there]
            for client in range(4):
                mine = [a + b - client for a, b in linked if form.reporter(a, b) == client]
                reports.add(client, mine)
            for name in NAMES:
                value = getattr(reports, name)().value
                means[name] = means[name] + float(chance) * value
                squares[name] = squares[name] + float(chance) * (value - truth[name]) ** 2
        for name in NAMES:
            assert np.allclose(means[name], truth[name], atol=1e-8), name
        noise = float(form.design.same * form.design.other) / reports._gap**2
        assert np.allclose(squares["edges"], 6 * noise)
        assert np.allclose(squares["degrees"], 3 * noise)
        # The formulas of the docstrings, with the true counts.
        degree = truth["degrees"]
        linear = sum((degree[i] + degree[j] - 2 * ((i, j) in graph)) ** 2 for i, j in pairs)
        assert np.allclose(squares["two_stars"], noise * linear + noise**2 * 4 * 3)
        common = sum(
            sum({(min(i, k), max(i, k)), (min(j, k), max(j, k))} <= graph for k in range(4)) ** 2
            for i, j in pairs
        )
        expected = noise * common + noise**2 * 2 * len(graph) + noise**3 * 4
        assert np.allclose(squares["triangles"], expected)


@pytest.fixture(scope="module")
def coverage() -> dict[str, tuple[int, int]]:
    """How often intervals, whole and halved, hold the truth on one random graph."""
    nodes = 40
    generator = np.random.default_rng(3)
    upper = np.triu(generator.random((nodes, nodes)) < 0.15, 1)
    edges = np.argwhere(upper)
    truth = counted(nodes, edges)
    form = LinkForm.of(nodes, epsilon=2)
    hits = dict.fromkeys(NAMES, 0)
    halved = dict.fromkeys(NAMES, 0)
    for _ in range(COVERAGE_RUNS):
        reports = perturb_links(form, edges)
        for name in NAMES:
            made = getattr(reports, name)()
            width = made.error.half_width(0.95)
            away = np.abs(made.value - truth[name])
            hits[name] += bool((away <= width).all())
            halved[name] += bool((away <= width / 2).all())
    return {name: (hits[name], halved[name]) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_intervals_of_counts_cover(name: str, coverage: dict[str, tuple[int, int]]) -> None:
    whole, half = coverage[name]
    assert covers(whole)
    assert not covers(half)


def hub(nodes: int) -> list[tuple[int, int]]:
    """One node linked to all others, who are linked in couples."""
    spokes = [(0, other) for other in range(1, nodes)]
    return spokes + [(one, one + 1) for one in range(1, nodes - 1, 2)]


@pytest.mark.parametrize(
    "edges", [hub(40), list(combinations(range(13), 2))], ids=["hub", "clique"]
)
def test_triangles_at_each_node_cover_where_few_links_matter(edges: list[tuple[int, int]]) -> None:
    """Without the widening for skewness .51 of the hub's intervals held, .80 of the clique's."""
    truth = counted(40, edges)["triangles_by_node"]
    form = LinkForm.of(40, epsilon=4)
    hits = 0
    for _ in range(COVERAGE_RUNS):
        made = perturb_links(form, np.array(edges)).triangles_by_node()
        hits += bool((np.abs(made.value - truth) <= made.error.half_width(0.95)).all())
    assert covers(hits)


def test_collectors_refuse_second_and_foreign_reports() -> None:
    form = LinkForm.of(4, epsilon=1)
    reports = LinkReports(form)
    reports.add(1, [0])
    with pytest.raises(InputError, match="reported already"):
        reports.add(1, [])
    with pytest.raises(InputError, match="not theirs"):
        reports.add(2, [0])
    with pytest.raises(InputError, match="have not reported yet"):
        reports.edges()
    with pytest.raises(InputError, match="client must be below"):
        reports.add(4, [])


def test_bad_input_is_refused_without_naming_friends() -> None:
    form = LinkForm.of(4, epsilon=1)
    for friends in ([1], [4], [-1], ["x"], [True]):
        with pytest.raises(InputError, match="friends are numbers"):
            report_links(form, 1, friends, account=account())  # type: ignore[arg-type]
    with pytest.raises(InputError):
        report_links(form, 4, [], account=account())
    for nodes in (1, 0, -2, 10**6, 2.5):
        with pytest.raises(InputError):
            LinkForm.of(nodes, epsilon=1)  # type: ignore[arg-type]
    for epsilon in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError):
            LinkForm.of(4, epsilon=epsilon)
    for edges in ([(0, 0)], [(0, 4)], [(0, 1, 2)], [(0.5, 1)]):
        with pytest.raises(InputError, match="edges"):
            perturb_links(form, edges)


def test_link_reports_are_stored_and_priced_per_edge() -> None:
    form = LinkForm.of(9, epsilon=1)
    mine = account()
    first = report_links(form, 0, [2, 4], account=mine)
    assert report_links(form, 0, [6], account=mine) == first
    assert mine.spent == 1
    with pytest.raises(BudgetError):
        report_links(form, 0, [2], account=mine, wave="next")
    with pytest.raises(UnitError):
        report_links(form, 0, [2], account=ClientAccount(epsilon=1, unit="client"))
    guarantee = perturb_links(form, []).edges().guarantee
    assert guarantee.unit.name == "edge"
    assert guarantee.epsilon == 1


def test_another_client_has_a_report_and_a_price_of_its_own() -> None:
    form, mine = LinkForm.of(40, epsilon=1), ClientAccount(epsilon=2, unit="edge")
    for client in (0, 1):
        sent = report_links(form, client, [5, 6], account=mine)
        assert set(sent) <= set(form.partners(client))
        assert mine.spent == client + 1


def test_a_triangle_of_two_invented_links_is_within_the_interval() -> None:
    """Thirty couples at epsilon = 5: one in thirteen times such a triangle is reported."""
    form = LinkForm.of(60, epsilon=5)
    reports = LinkReports(form)
    said = [(2 * couple, 2 * couple + 1) for couple in range(30)] + [(0, 2), (1, 2)]
    # As many more invented links as are usual.
    said += [(node, node + 2) for node in range(4, 50, 4)]
    for client in range(60):
        known = [sum(pair) - client for pair in said if client in pair]
        reports.add(client, [other for other in known if other in form.partners(client)])
    assert 30 * 58 * float(form.design.other) ** 2 > 0.05
    made = reports.triangles()
    assert made.value > 0.9
    assert made.interval(0.95)[0] <= 0
