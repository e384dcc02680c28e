import math
from fractions import Fraction

import numpy as np
import pytest

from tulle.audit.engine.laws import LaplaceVector, RungChoice, excess
from tulle.audit.engine.rounded import RoundedHeavy, RoundedLaplace
from tulle.audit.graphs.kind import describe_ladder, describe_smooth
from tulle.core import registry
from tulle.core.mechanism import Terms
from tulle.core.unit import Unit
from tulle.core.validate import rational
from tulle.graphs.generators import erdos_renyi
from tulle.graphs.mechanisms.ladder import ladder_widths
from tulle.graphs.mechanisms.smooth import smooth_bound
from tulle.graphs.queries.counts import cliques, k_triangles, stars, triangles

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    "law",
    [
        LaplaceVector((2,), (Fraction(3),), Fraction(1)),
        LaplaceVector((2, 0), (Fraction(1), Fraction(0)), Fraction(1)),
        RungChoice(5, (1, 2, 4), 6, HALF, Fraction(0)),
        RoundedLaplace(3, Fraction(2), HALF, HALF),
        RoundedLaplace(3, Fraction(1, 50), HALF, HALF),
        RoundedHeavy(3, Fraction(2), HALF, HALF),
        RoundedHeavy(3, Fraction(1, 50), HALF, HALF),
    ],
)
def test_masses_add_up_to_one(law):
    values, masses = law.points(1e-9)
    assert len(set(values)) == len(values)
    assert masses.sum() == pytest.approx(1, abs=2e-9)


def test_rungs_are_those_of_the_definition():
    law = RungChoice(5, (1, 2), 3, HALF, Fraction(0))
    rungs = {5: 0, 6: 1, 4: 1, 7: 2, 8: 2, 2: 2, 9: 3, 11: 3, 12: 4, 14: 4, 15: 5}
    values = np.array(list(rungs))
    expected = [law.logs(np.array([5]))[0] - rung / 2 for rung in rungs.values()]
    assert law.logs(values) == pytest.approx(expected, abs=1e-12)


def test_known_losses():
    one = LaplaceVector((0, 4), (Fraction(2),) * 2, Fraction(2))
    other = LaplaceVector((1, 3), (Fraction(2),) * 2, Fraction(2))
    assert one.loss(other) == 1
    masses, losses = one.losses(other)
    assert masses.sum() == pytest.approx(1, abs=1e-14)
    assert losses.max() == pytest.approx(1)
    assert excess(masses, losses, 1.0) == 0
    # Total variation of two discrete Laplaces one apart is (1 - q) / (1 + q) in each entry.
    single = LaplaceVector((0,), (Fraction(2),), Fraction(1))
    moved = LaplaceVector((1,), (Fraction(2),), Fraction(1))
    q = math.exp(-0.5)
    assert excess(*single.losses(moved), 0.0) == pytest.approx((1 - q) / (1 + q))


def test_entries_without_noise_lose_everything_when_they_move():
    still = LaplaceVector((3,), (Fraction(0),), Fraction(1))
    assert still.loss(LaplaceVector((4,), (Fraction(0),), Fraction(1))) == math.inf
    assert still.loss(still) == 0
    assert still.loss(LaplaceVector((3, 1), (Fraction(0),) * 2, Fraction(1))) == math.inf


@pytest.mark.parametrize("query", [triangles(), stars(3), k_triangles(2), cliques(4)])
def test_descriptions_use_what_the_mechanisms_use(query):
    unit = Unit.of("edge")
    known = registry.mechanisms("graph")
    for seed in range(4):
        graph = erdos_renyi(9, 0.5, seed=seed)
        terms = Terms(query, unit, Fraction(1), Fraction(1, 1000), graph.facts(unit))
        for name in ("ladder", "smoothed_ladder"):
            settings = known[name].settings(terms, {})
            law = describe_ladder(terms, settings, graph).parts[0][1]
            assert list(law.widths) == ladder_widths(query, graph, settings).profile
            assert law.centre == query.truth(graph)
        settings = known["smooth"].settings(terms, {})
        law, spread = (part for _, part in describe_smooth(terms, settings, graph).parts)
        found = query.measure(graph, settings["length"])
        beta = rational(settings["beta"])
        assert law.bound == smooth_bound(found.profile, query.cap(9), beta)
        assert spread.centre == (found.spread,)
