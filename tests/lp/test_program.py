"""Every search for a linear program ends, on any weights, also where floats show no progress."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.lp.packing_reference import random_problem

import tulle
from tulle.graphs.generators import erdos_renyi
from tulle.graphs.truncation import bundle_packing
from tulle.graphs.truncation.bundle_packing import solve_bundles
from tulle.graphs.truncation.bundles import bundles_of
from tulle.lp import DeletionOracle, PackingProblem, first_order, program, solve
from tulle.lp.exact import least_deletion
from tulle.relations.annotations import Participant
from tulle.relations.data import Relation
from tulle.relations.queries import total

_MOST = 2**20
"""So many steps that gain nothing are no end."""


def stall(patch: pytest.MonkeyPatch) -> None:
    """Let no first-order method gain anything, and HiGHS find nothing."""

    def counts(*given: Any) -> None:
        memory, iterations = given[-2:]
        memory[2] += iterations
        assert memory[2] <= _MOST, "it goes on for ever"

    for place in (
        "tulle.lp.first_order.advance",
        "tulle.lp.deletion.advance_deletion",
        "tulle.lp.program._advance",
    ):
        patch.setattr(place, counts)
    patch.setattr("tulle.lp.deletion.fits_interior", lambda *given: False)
    patch.setattr("tulle.lp.highs.minimise", lambda cost, upper, lower, *given: _nothing(lower))
    patch.setattr(
        "tulle.lp.highs.packing_vectors",
        lambda offsets, rows, weights, capacities: (
            np.zeros(len(weights)),
            np.zeros_like(capacities),
        ),
    )
    patch.setattr(
        "tulle.lp.highs.deletion_vectors",
        lambda offsets, rows, weights, capacities, *given: (
            np.ones(len(capacities)),
            np.zeros(len(capacities)),
            np.zeros(len(weights)),
        ),
    )


def _nothing(lower: Any) -> tuple[Any, Any]:
    return np.zeros(0), np.zeros(len(lower))


def wide(random: np.random.Generator, reach: float) -> PackingProblem:
    """Return a problem whose weights are up to 10^reach apart."""
    plain = random_problem(random)
    weights = 10.0 ** random.uniform(-reach, reach, size=len(plain.weights))
    return PackingProblem(plain.offsets, plain.participants, weights, plain.count)


def exact_value(problem: PackingProblem, tau: float) -> Fraction:
    shape = problem.offsets, problem.participants, problem.weights, problem.capacities(tau)
    return program.packing_program(*shape).least()


@pytest.mark.parametrize("reach", [9, 60, 265])
def test_weights_far_apart_are_solved(reach: float) -> None:
    """Such weights were searched for ever, or refused after the price, on some data only."""
    random = np.random.default_rng()
    for _ in range(60):
        problem = wide(random, reach)
        tau = 10.0 ** random.uniform(-9, 12)
        if not all(np.diff(problem.offsets)):
            continue  # what needs nobody may be beyond any gap
        bracket = solve(problem, tau, gap=tau / 1000)
        assert bracket.upper - bracket.lower <= tau / 1000
        assert bracket.lower <= exact_value(problem, tau) <= bracket.upper


def test_methods_that_gain_nothing_end_in_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(11)
    monkeypatch.setattr(bundle_packing, "_REACHES", ())
    # Pairs among odd cycles of unlike people: what comes first is not best.
    pairs = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 0), (1, 5), (5, 6), (6, 1)]
    linked = PackingProblem(np.arange(0, 20, 2), np.ravel(pairs), np.arange(9) + 2.0, 7)
    problems = [linked, *(random_problem(random) for _ in range(12))]
    bundles = bundles_of(tulle.stars(2), erdos_renyi(7, 0.6, seed=1), "node")
    usual = solve_bundles(bundles, 2.0, gap=0.01)
    with monkeypatch.context() as patch:
        stall(patch)
        for problem in problems:
            for tau in (0.5, 1.5):
                bracket = solve(problem, tau, gap=tau / 1000)
                assert bracket.upper - bracket.lower <= tau / 1000
                assert bracket.lower <= exact_value(problem, tau) <= bracket.upper
                least = least_deletion(problem, tau)
                level = max(int(least), 0)
                oracle = DeletionOracle(problem, eta=Fraction(1, 3))
                assert oracle.decide(tau, level) == (least <= level + Fraction(1, 3))
        found = solve_bundles(bundles, 2.0, gap=0.01)
        assert found.upper - found.lower <= 0.01
        assert max(found.lower, usual.lower) <= min(found.upper, usual.upper)
    # Broken version: only the first-order method, as long as it takes.
    with monkeypatch.context() as patch:
        stall(patch)
        patch.setattr(first_order, "_LAST", 2**60)
        for module in (first_order, program):
            patch.setattr(module, "EXACT_ENTRIES", -1)
        with pytest.raises(AssertionError, match="for ever"):
            solve(linked, 1.5, gap=0.001)
        with pytest.raises(AssertionError, match="for ever"):
            solve_bundles(bundles, 2.0, gap=0.01)


def test_a_release_ends_whatever_one_person_weighs() -> None:
    people = [Participant(n) for n in range(7)]
    random = np.random.default_rng(1)
    for reach in (18, 100):
        notes = []
        for _ in range(14):
            one, two, three = (people[n] for n in random.choice(7, size=3, replace=False))
            notes.append(
                (one & two & three if len(notes) % 2 else one & two, _weight(random, reach))
            )
        whole = Relation.from_annotations(notes)
        for held in (whole, whole.without(0)):
            asked: dict[str, Any] = {"unit": "participant", "epsilon": 1, "mechanism": "recursive"}
            assert np.isfinite(tulle.release(held, total(), **asked).value)


def _weight(random: np.random.Generator, reach: float) -> float:
    return float(10.0 ** random.uniform(0, reach))
