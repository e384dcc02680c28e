"""Synthetic graphs: the question, its release, and models on all kinds of small data."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tulle
from tulle.core import registry
from tulle.core.errors import InputError, QueryError
from tulle.graphs.data import Graph
from tulle.graphs.generators import barabasi_albert, social_network
from tulle.graphs.kernels.counts import count_triangles
from tulle.graphs.synthesis.model import SynthesisModel, regenerate
from tulle.graphs.synthesis.query import Synthetic
from tulle.metrics import assortativity
from tulle.noise import SeededSource

MINE = ["1k", "2k", "2.5k"]
SOCIAL = social_network(300, seed=4)


def degrees_of(graph):
    return np.diff(graph.csr()[0])


def released(graph, model, epsilon=1.0, **options):
    return tulle.release(graph, tulle.synthetic(model, **options), unit="edge", epsilon=epsilon)


@pytest.mark.parametrize("model", MINE)
@pytest.mark.parametrize("nodes", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("edges", [0, 1])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1000.0])
def test_tiny_graphs_work(model, nodes, edges, epsilon):
    graph = Graph.from_edges([(0, 1)][: edges if nodes > 1 else 0], nodes=nodes)
    r = released(graph, model, epsilon)
    assert r.value.node_count == nodes
    assert r.guarantee.measure == "pure"
    if epsilon == 1000.0:
        assert r.value.edge_count == graph.edge_count
    assert tulle.Release.from_json(json.dumps(r.to_json())).value == r.value


@pytest.mark.parametrize("model", MINE)
def test_a_large_budget_gives_the_degrees_back(model):
    r = released(SOCIAL, model, 5000.0)
    assert sorted(degrees_of(r.value)) == sorted(degrees_of(SOCIAL))


def test_two_k_keeps_assortativity_where_one_k_loses_it():
    graph = barabasi_albert(2000, 4, seed=3)
    true = assortativity(graph)
    made = np.mean([assortativity(released(graph, "2k", 4.0).value) for _ in range(3)])
    plain = np.mean([assortativity(released(graph, "1k", 4.0).value) for _ in range(3)])
    assert abs(made - true) < 0.02
    assert abs(made - true) <= abs(plain - true) + 0.02


def test_two_five_k_brings_triangles():
    true = count_triangles(SOCIAL)
    plain = count_triangles(released(SOCIAL, "2k", 8.0).value)
    made = count_triangles(released(SOCIAL, "2.5k", 8.0).value)
    assert plain < 0.5 * true
    assert abs(made - true) < 0.3 * true


@pytest.mark.parametrize("model", MINE)
def test_a_release_draws_further_graphs_from_its_statistics_alone(model):
    r = released(SOCIAL, model)
    again = tulle.Release.from_json(json.dumps(r.to_json()))
    one, other = (regenerate(given, SeededSource(3)) for given in (r, again))
    assert one == other
    assert regenerate(r) != one


def test_only_releases_of_synthetic_graphs_draw_further_ones():
    r = tulle.release(SOCIAL, tulle.edges(), unit="edge", epsilon=1.0)
    with pytest.raises(InputError, match="holds no statistics"):
        regenerate(r)


def test_anonymous_nodes_are_numbered_at_random():
    star = Graph.from_edges([(0, v) for v in range(1, 60)], nodes=60)
    hubs = {int(np.argmax(degrees_of(released(star, "1k", 100.0).value))) for _ in range(6)}
    assert len(hubs) > 1


@given(
    st.integers(2, 40).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.integers(-5, n + 5), min_size=n - 1, max_size=n - 1)
        )
    )
)
@settings(max_examples=60, deadline=None)
def test_generators_cope_with_whatever_noise_produces(drawn):
    nodes, counts = drawn
    known = registry.mechanisms("graph")
    source = SeededSource(nodes)
    empty = Graph.from_edges([], nodes=nodes)
    for word in MINE:
        model = known[f"synthetic_{word}"]
        assert isinstance(model, SynthesisModel)
        terms = tulle.core.mechanism.Terms(
            Synthetic(word),
            tulle.Unit.of("edge"),
            tulle.core.validate.rational(1),
            0,
            {"nodes": nodes},
        )
        chosen = model.settings(terms, {})
        statistics = dict(model.measure(terms, chosen, empty, source))
        statistics["degrees"] = np.array(counts, dtype=np.int64)
        if "joint" in statistics:
            statistics["joint"] = statistics["joint"] * (1 + counts[0])
        if "triangles" in statistics:
            statistics["triangles"] = 10 * sum(counts)
        made = model.draw(statistics, chosen, source)
        assert made.node_count == nodes


def test_the_question_validates_itself():
    with pytest.raises(InputError, match="no model '3k'"):
        tulle.synthetic("3k")
    with pytest.raises(InputError, match="number or text"):
        tulle.synthetic("1k", form=[1])
    with pytest.raises(InputError, match="no option 'colour'"):
        released(SOCIAL, "1k", colour="red")
    with pytest.raises(InputError, match="form must be one of"):
        released(SOCIAL, "1k", form="round")
    with pytest.raises(InputError, match="at least"):
        released(SOCIAL, "2k", ratio=1.2)
    with pytest.raises(InputError, match="add up"):
        released(SOCIAL, "2.5k", degree_share=0.9)
    with pytest.raises(QueryError, match="per node"):
        tulle.release(SOCIAL, tulle.synthetic("1k"), unit="node", epsilon=1.0)
    question = tulle.synthetic("2k", ratio=3, joint_share="1/3")
    assert str(question) == "synthetic('2k', joint_share='1/3', ratio=3)"
    assert question.canonical()["model"] == "2k"
    assert hash(question) == hash(tulle.synthetic("2k", joint_share="1/3", ratio=3))


@pytest.mark.parametrize("form", ["cumulative", "sequence"])
def test_both_forms_of_one_k_have_the_right_degrees(form):
    r = released(SOCIAL, "1k", 3.0, form=form)
    off = np.abs(np.sort(degrees_of(r.value)) - np.sort(degrees_of(SOCIAL))).mean()
    assert off < 0.7


@pytest.mark.parametrize("model", MINE)
def test_too_small_a_budget_gives_advice(model):
    crowd = Graph.from_edges([(0, 1)], nodes=50_000)
    with pytest.raises(QueryError, match="noise alone would invent") as raised:
        released(crowd, model, 1e-5)
    enough = float(str(raised.value).split("at least ")[1].split(",")[0])
    assert tulle.ledger.session.plan_for(
        crowd, tulle.synthetic(model), unit="edge", epsilon=1.02 * enough
    )
