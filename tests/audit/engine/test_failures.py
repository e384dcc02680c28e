"""Neighbours fail alike and say nothing that differs."""

import copy
import pickle

import pytest

import tulle
from tulle.audit.engine.failures import check_alike, speak
from tulle.audit.engine.kind import kind_of
from tulle.audit.engine.world import World
from tulle.audit.graphs.kind import DESCRIBERS
from tulle.core import registry
from tulle.graphs.data import Graph
from tulle.noise import SeededSource

GRAPHS = kind_of("graph")
NAMES = [None, *DESCRIBERS]
EVERY_NAME = [None, *registry.mechanisms("graph")]
BUDGETS = [(1.0, 1e-6), (1.0, 0.0), ("1e-9", "1e-300"), (1e6, 0.5), (0, 0), (-1, 0), ("x", 2)]


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_odd_questions_on_all_graphs(size):
    finding = check_alike(GRAPHS, GRAPHS.world(size), GRAPHS.odd_questions(), BUDGETS, NAMES)
    assert finding.passed, finding


@pytest.mark.parametrize("size", [2, 3])
def test_every_mechanism_on_all_graphs(size):
    asked = [tulle.triangles(), tulle.degrees(), tulle.cliques(50)]
    finding = check_alike(GRAPHS, GRAPHS.world(size), asked, BUDGETS[:1], EVERY_NAME)
    assert finding.passed, finding


@pytest.mark.slow
def test_odd_questions_on_all_graphs_of_four_nodes():
    finding = check_alike(GRAPHS, GRAPHS.world(4), GRAPHS.odd_questions(), BUDGETS, NAMES)
    assert finding.passed, finding


@pytest.mark.parametrize("name", [None, "ladder", "laplace"])
def test_usual_questions_on_all_graphs_of_four_nodes(name):
    finding = check_alike(GRAPHS, GRAPHS.world(4), [tulle.triangles()], BUDGETS[:2], [name])
    assert finding.passed, finding


class Talkative(Graph):
    """A graph that says too much."""

    def __repr__(self):
        return f"<Talkative: {self.edge_count} edges>"


class Moody(Graph):
    """A graph whose failure depends on its records."""

    def facts(self, unit):
        if self.edge_count > 1:
            raise tulle.InputError("too many edges")
        return super().facts(unit)


@pytest.mark.parametrize("leaky", [Talkative, Moody])
def test_a_dataset_that_leaks_in_words_is_caught(leaky):
    honest = GRAPHS.world(3)
    datasets = [leaky.from_edges(graph.edges(), nodes=3) for graph in honest.datasets]
    world = World("leaky", honest.unit, datasets, honest.first, honest.second, 0)
    finding = check_alike(GRAPHS, world, [tulle.edges()], [(1.0, 0.0)], [None])
    assert not finding.passed
    assert finding.witness


def test_sessions_and_ledgers_of_neighbours_say_the_same(tmp_path):
    """Only the private numbers of a release may differ; its parameters may not."""
    square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
    said = []
    for place, graph in enumerate([square, *square.neighbours("edge")]):
        ledger = tulle.Ledger(tmp_path / f"{place}.ledger")
        study = ledger.open("friends", graph, unit="edge", epsilon=2.0, delta=1e-5)
        plan = study.plan(tulle.triangles(), epsilon=1.0)
        answer = study.ask(tulle.triangles(), epsilon=1.0, source=SeededSource(3))
        said.append(
            [
                repr(study),
                str(study),
                f"{study}",
                repr(plan),
                plan.to_json(),
                speak(lambda plan=plan: pickle.loads(pickle.dumps(plan))),
                speak(lambda study=study: pickle.dumps(study)),
                speak(lambda study=study: copy.deepcopy(study)),
                dict(answer.parameters),
                answer.query,
                answer.mechanism,
                str(answer.guarantee),
                speak(lambda study=study: study.ask(tulle.stars(2), epsilon=5.0)),
                speak(lambda study=study: study.ask(tulle.stars(2), epsilon=-1)),
                speak(lambda study=study: study.ask(tulle.stars(2), epsilon=1, mechanism="no")),
                str(study.remaining),
            ]
        )
    assert all(words == said[0] for words in said[1:])
