"""How the model auto divides its epsilon: by what each part is expected to gain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.graphs.synthesis_reference import terms_for

import tulle
from tulle.core.registry import mechanisms
from tulle.graphs.generators import social_network
from tulle.graphs.synthesis.auto.budget import (
    FIRST,
    SCHEDULES,
    degree_budgets,
    guess_known,
    last_budgets,
)
from tulle.graphs.synthesis.auto.schedule import spending


@pytest.mark.parametrize("epsilon", ["0.3", "1", "7", "1000"])
@pytest.mark.parametrize("parts", ["all", "edges", "edges,triangles", "order,closure"])
@pytest.mark.parametrize("edges", [-50, 0, 7, 100, 10**7])
def test_all_schedules_spend_all_and_no_more(epsilon, parts, edges):
    graph = social_network(30, seed=1)
    auto = mechanisms("graph")["synthetic_auto"]
    query = tulle.synthetic("auto", parts=parts)
    settings = auto.settings(terms_for(graph, query, epsilon), {})
    known = guess_known(30, edges)
    budgets = {name: spending(settings, name, known) for name in SCHEDULES}
    for shares in budgets.values():
        assert sum(shares.values()) == Fraction(epsilon)
        assert all(share > 0 for share in shares.values())
    if parts == "all":
        # What comes before the schedule is known spends the same in all.
        first = [{n: b[n] for n in FIRST if n in b} for b in budgets.values()]
        assert all(shares == first[0] for shares in first)


def test_degrees_get_more_where_there_is_more():
    names = SCHEDULES["plain"]
    path = [degree_budgets(names, 4000, Fraction(e, 50), Fraction(e, 50)) for e in range(5, 300)]
    shares = [sum(path[i].values()) / Fraction(i + 5, 50) for i in range(len(path))]
    assert shares == sorted(shares)
    assert shares[-1] > Fraction(3, 2) * shares[0]
    assert max(np.diff([float(share) for share in shares])) <= 0.01
    # With little noise the counts alone show every step.
    assert "sequence" in path[0]
    assert "sequence" not in path[-1]


def test_the_rest_is_divided_by_what_is_known():
    names = ("recount", "stars", "closure", "mixing")
    usual = guess_known(4000, 90_000)

    def shares(left, scale, **known):
        budgets = last_budgets(names, Fraction(left), usual._replace(**known), scale)
        assert sum(budgets.values()) == Fraction(left)
        return {name: budget / Fraction(left) for name, budget in budgets.items()}

    many, some = (shares(1, 2.0, triangles=count) for count in (10.0**7, 10.0**5))
    assert many["recount"] < Fraction(3, 4) * some["recount"]
    # What would hardly rise out of the noise is not measured.
    assert "recount" not in shares("0.05", 20.0, triangles=10.0)
    # The curve knows its variance where it has little noise.
    assert shares(1, 0.5)["stars"] < Fraction(3, 4) * shares(1, 20.0)["stars"]


def test_a_part_alone_gets_all_there_is():
    hopeless = guess_known(4000, 90_000)._replace(triangles=0.0)
    budgets = last_budgets(("recount",), Fraction(1, 100), hopeless, 20.0)
    assert budgets == {"recount": Fraction(1, 100)}
