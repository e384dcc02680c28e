"""Models whose later parts follow from earlier ones, audited as a whole.

The closed forms describe each part with the earlier ones held fixed. Here whole runs are looked
at. A run on one graph is replayed on a neighbour: every draw is made to give the value that was
released, and both its chance and what it was scaled by are compared. The logarithms of the
chances' ratios add up to the exact privacy loss of that run, however the parts hang together; a
scale, a length or a number of parts that differs is a leak without bound. A black box, which
knows nothing of all this, sees the released graph and its statistics.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pytest

import tulle
from tulle.audit import lower_bound, power
from tulle.audit.kind import kind_of
from tulle.audit.laws import Ladder
from tulle.audit.synthesis import see_statistics
from tulle.audit.synthesis_models_twins import FullCellsAuto, HalvedCommunities, OneEndAuto
from tulle.core import codec
from tulle.core.mechanism import Outcome
from tulle.core.registry import mechanisms
from tulle.graphs.ladder import draw_ladder
from tulle.graphs.synthesis.auto import Auto
from tulle.noise import SeededSource, discrete_laplace

GRAPHS = kind_of("graph")
EPSILON = Fraction(2)


class Refusing:
    """A source for replays: whatever is drawn past the replay is an error."""

    def read(self, count: int) -> bytes:
        raise AssertionError("a draw that the replay does not know")


@dataclass
class Draw:
    """Noise that remembers to what it was added, and may be made to give a certain value."""

    law: tuple[Any, ...]
    noise: Any = None
    value: Any = None
    truth: Any = None

    __array_ufunc__ = None  # so that numpy leaves the sum to us

    def __radd__(self, truth: Any) -> Any:
        assert self.truth is None, "noise was used twice"
        self.truth = truth
        if self.noise is not None:
            self.value = truth + self.noise
        return self.value

    def chance(self, value: Any) -> float:
        """Return the logarithm of the chance of a value, up to what neighbours share."""
        kind, *parameters = self.law
        if kind == "ladder":
            widths, most, decay = parameters
            ladder = Ladder(int(self.truth), tuple(widths), most, decay, Fraction(0))
            return log_chance(ladder, int(value), float(decay))
        scale = float(parameters[0])
        return -float(np.abs(np.asarray(value) - np.asarray(self.truth)).sum()) / scale

    def public(self) -> tuple[Any, ...]:
        """Return what may not depend on the data: the scale and the shape of the noise."""
        return self.law[:1] if self.law[0] == "ladder" else self.law


def log_chance(ladder: Ladder, value: int, decay: float) -> float:
    """Return the logarithm of the chance that a ladder gives this value."""
    reach = list(np.cumsum(ladder.widths))
    distance = abs(value - ladder.centre)
    beyond = distance - reach[-1]
    rung = int(np.searchsorted(reach, distance)) + 1 if distance else 0
    if beyond > 0:
        rung = len(reach) + math.ceil(beyond / ladder.most)
    steps = np.arange(1, len(reach) + 1)
    total = 1 + 2 * float(np.array(ladder.widths) @ np.exp(-decay * steps))
    total += 2 * ladder.most * math.exp(-decay * (len(reach) + 1)) / -math.expm1(-decay)
    return -decay * rung - math.log(total)


class Replay:
    """Records the draws of a run, or gives those of an earlier one again."""

    def __init__(self, seed: int, values: list[Any] | None = None) -> None:
        self.source = SeededSource(seed)
        self.values = values
        self.draws: list[Draw] = []

    def _next(self, law: tuple[Any, ...], noise: Any) -> Draw:
        place = len(self.draws)
        if self.values is not None and place < len(self.values):
            self.draws.append(Draw(law, value=self.values[place]))
        else:
            self.draws.append(Draw(law, noise=noise()))
        return self.draws[-1]

    def laplace(self, *, scale: Any, size: Any = None, source: Any = None) -> Draw:
        def noise() -> Any:
            return discrete_laplace(scale=scale, size=size, source=self.source)

        return self._next(("laplace", scale, size), noise)

    def ladder(self, profile: Any, most: int, decay: Fraction, source: Any) -> Draw:
        def noise() -> int:
            return draw_ladder(profile, most, decay, self.source)

        return self._next(("ladder", profile, most, decay), noise)

    def run(self, model: Any, terms: Any, settings: Any, graph: Any) -> dict[str, Any]:
        """Return the statistics of a run whose noise comes from here."""
        with patch.object(Replay, "current", self):
            return dict(model.measure(terms, settings, graph, Refusing()))

    current: ClassVar[Replay]


@pytest.fixture
def replayed(monkeypatch):
    """All models draw from the replay that is on."""
    stand_ins = {
        discrete_laplace: lambda **asked: Replay.current.laplace(**asked),
        draw_ladder: lambda *asked: Replay.current.ladder(*asked),
    }
    Replay.current = Replay(0)
    for module in [m for n, m in sys.modules.items() if n.startswith("tulle.graphs.synthesis")]:
        for name, item in list(vars(module).items()):
            if item in (discrete_laplace, draw_ladder):
                monkeypatch.setattr(module, name, stand_ins[item])


def loss_of(model: Any, query: Any, graph: Any, other: Any, seed: int) -> float:
    """Return the privacy loss, between two graphs, of one run on the first."""
    unit = graph.check_unit("edge")
    terms = GRAPHS.terms(query, graph, unit, EPSILON)
    settings = model.settings(terms, {})
    first = Replay(seed)
    seen = first.run(model, terms, settings, graph)
    second = Replay(seed, [draw.value for draw in first.draws])
    again = second.run(model, terms, settings, other)
    if [draw.public() for draw in first.draws] != [draw.public() for draw in second.draws]:
        return math.inf
    if any(not np.array_equal(seen[name], again.get(name)) for name in seen):
        return math.inf
    return math.fsum(
        here.chance(here.value) - there.chance(here.value)
        for here, there in zip(first.draws, second.draws, strict=True)
    )


def losses(model: Any, query: Any, nodes: int, *, every: int = 1) -> Iterator[float]:
    """Yield the loss of a run for each pair of neighbours on so many nodes, in both orders."""
    world = GRAPHS.world(nodes)
    pairs = zip(world.first.tolist(), world.second.tolist(), strict=True)
    for seed, (one, other) in islice(enumerate(pairs), 0, None, every):
        for here, there in ((one, other), (other, one)):
            graphs = world.datasets[here], world.datasets[there]
            yield loss_of(model, query, *graphs, seed)


WHOLE = [
    tulle.synthetic("auto"),
    tulle.synthetic("auto", blocks="yes"),
    tulle.synthetic("auto", blocks="no"),
    tulle.synthetic("communities", size=1),
    tulle.synthetic("communities", size=2),
    tulle.synthetic("kronecker"),
    tulle.synthetic("1k"),
]


def check(query, nodes, every):
    model = mechanisms("graph")[f"synthetic_{query.model}"]
    assert 0 < max(losses(model, query, nodes, every=every)) <= float(EPSILON) * (1 + 1e-9)


@pytest.mark.usefixtures("replayed")
@pytest.mark.parametrize("query", WHOLE, ids=str)
def test_no_run_loses_more_than_epsilon(query):
    check(query, 4, every=5)


@pytest.mark.slow
@pytest.mark.usefixtures("replayed")
@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
@pytest.mark.parametrize("query", WHOLE, ids=str)
def test_no_run_on_any_graph_loses_more_than_epsilon(query, nodes):
    check(query, nodes, every=1)


@pytest.mark.usefixtures("replayed")
@pytest.mark.parametrize(
    "twin", [FullCellsAuto(), OneEndAuto(), HalvedCommunities()], ids=lambda twin: twin.name
)
def test_replays_catch_the_twins(twin):
    query = tulle.synthetic("communities", size=2)
    if twin.model == "auto":
        query = tulle.synthetic("auto", blocks="yes")
    assert any(loss > float(EPSILON) * 1.01 for loss in losses(twin, query, 4))


def draws_of(model: Any, epsilon: Fraction) -> Any:
    """Return how a black box draws: all that a release shows, its graph as well."""

    def draw(graph: Any, size: int) -> list[Any]:
        terms = GRAPHS.terms(tulle.synthetic(), graph, graph.check_unit("edge"), epsilon)
        settings = model.settings(terms, {})
        runs = [model.run(terms, settings, graph, None) for _ in range(size)]
        return [(*see_statistics(run), *places(run.value)) for run in runs]

    return draw


def places(graph: Any) -> list[int]:
    """Return a bit for each pair of nodes."""
    joined = {tuple(pair) for pair in graph.edges().tolist()}
    return [int(pair in joined) for pair in combinations(range(graph.node_count), 2)]


PAIR = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=3), tulle.Graph.from_edges([(0, 1)], nodes=3)


def check_black_box(samples):
    claimed = Fraction(1)
    auto = mechanisms("graph")["synthetic_auto"]
    sure = 1 - 1e-9
    honest = lower_bound(draws_of(auto, claimed), [PAIR], samples=samples, confidence=sure)
    assert honest.epsilon_at_least <= claimed
    return power(epsilon=1.0, samples=samples, confidence=sure)


def test_a_black_box_finds_nothing_in_the_whole_of_auto():
    assert check_black_box(250) < 4


@pytest.mark.slow
def test_a_black_box_with_more_draws_finds_nothing_in_the_whole_of_auto():
    assert check_black_box(10_000) < 1.4


class CountingAuto(Auto):
    """Its graph has the true number of edges; its statistics are as they should be."""

    def run(self, terms, settings, dataset, source):
        seen = dict(self.measure(terms, settings, dataset, source))
        pairs = list(combinations(range(dataset.node_count), 2))[: dataset.edge_count]
        graph = tulle.Graph.from_edges(pairs, nodes=dataset.node_count)
        return Outcome(graph, None, {"statistics": codec.encode(seen)})


def test_the_black_box_sees_a_graph_that_tells_its_size():
    found = lower_bound(draws_of(CountingAuto(), Fraction(1)), [PAIR], samples=250)
    assert found.epsilon_at_least > 1


def test_the_whole_of_auto_repeats_itself_from_a_seed():
    graph = PAIR[0]
    one, two, other = (
        tulle.release(graph, tulle.synthetic(), unit="edge", epsilon=1, source=SeededSource(seed))
        for seed in (5, 5, 6)
    )
    assert one.parameters == two.parameters
    assert one.parameters["statistics"] != other.parameters["statistics"]
    assert one.value == two.value
