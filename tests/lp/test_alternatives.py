"""Tuples with several ways: both numbers against other solvers, and what one participant moves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tulle.core.errors import InputError, SealedError
from tulle.lp import DeletionOracle, WaysOracle, WaysProblem, certificate, solve
from tulle.lp.alternatives_certificate import enough, first_line, line_of
from tulle.lp.alternatives_deletion import _Run, least_ways_deletion
from tulle.relations.annotations import Participant, either, together
from tulle.relations.data import Relation
from tulle.relations.general import General
from tulle.relations.truncation.general_lp import Epigraph
from tulle.relations.truncation.totals import ETA, Thresholds, least_level, truncate

Ways = frozenset[frozenset[int]]
Tuples = tuple[tuple[Ways, float], ...]
TAUS = (0.4, 1.0, 1.7, 3.0)
GRID = Thresholds(theta=0.5, beta=0.35)
GAP = 1e-3


def annotate(tuples: Tuples, people: int) -> Relation:
    """Return the tuples as expressions, the participants keeping their numbers."""
    anchors = [(Participant(n), 0.0) for n in range(people)]
    notes = [
        (either(*(together(*map(Participant, sorted(w))) for w in sorted(ways, key=sorted))), q)
        for ways, q in tuples
    ]
    return Relation.from_annotations([*anchors, *notes])


def problem_of(tuples: Tuples, people: int) -> WaysProblem:
    ways = [sorted(way) for listed, _ in tuples for way in sorted(listed, key=sorted)]
    return WaysProblem(
        np.cumsum([0, *(len(listed) for listed, _ in tuples)]),
        np.cumsum([0, *map(len, ways)]),
        np.array(list(itertools.chain(*ways)), dtype=np.int64),
        [weight for _, weight in tuples],
        people,
    )


def without(tuples: Tuples, gone: int) -> Tuples:
    left = ((frozenset(w for w in ways if gone not in w), q) for ways, q in tuples)
    return tuple((ways, q) for ways, q in left if ways)


def normal_forms(people: int) -> list[Ways]:
    """Return every way to depend on some of so many participants, in disjunctive normal form."""
    sets = [
        frozenset(c) for n in range(1, people + 1) for c in itertools.combinations(range(people), n)
    ]
    found = []
    for mask in range(1, 1 << len(sets)):
        ways = frozenset(s for place, s in enumerate(sets) if mask >> place & 1)
        if not any(one < other for one in ways for other in ways):
            found.append(ways)
    return found


def pairs(people: int) -> list[Tuples]:
    forms = normal_forms(people)
    return [((one, 3.0), (other, 2.0)) for one in forms for other in forms]


def printed_deletion(tuples: Tuples, people: int, tau: float) -> float:
    """The deletion of the paper's equation 19: all whom a tuple names bear all of it."""
    count = len(tuples)
    rows, room = [], []
    for place, (ways, _) in enumerate(tuples):
        for way in ways:
            row = np.zeros(people + count)
            row[[*way, people + place]] = -1.0
            rows.append(row)
            room.append(-1.0)
    for person in range(people):
        row = np.zeros(people + count)
        for place, (ways, weight) in enumerate(tuples):
            row[people + place] = weight * any(person in way for way in ways)
        rows.append(row)
        room.append(tau)
    cost = np.repeat([1.0, 0.0], [people, count])
    return float(linprog(cost, A_ub=np.array(rows), b_ub=room, bounds=(0.0, 1.0)).fun)


def test_there_are_eighteen_forms_of_three():
    assert len(normal_forms(3)) == 18


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_of_pairs_of_tuples_over_three_both_numbers_are_those_of_the_epigraph(step):
    for tuples in pairs(3)[::step]:
        relation = annotate(tuples, 3)
        problem, epigraph = problem_of(tuples, 3), Epigraph(relation, eta=ETA)
        oracle, general = WaysOracle(problem, eta=ETA), General(relation)
        for tau in (0.4, 1.7):
            value = solve(problem.packing(tau), tau, gap=GAP * tau)
            assert value.middle == pytest.approx(epigraph.value(tau, GAP * tau), abs=2 * GAP * tau)
            assert value.lower <= general.value(tau)
            least = least_ways_deletion(problem, tau)
            for level in range(3):
                right = least <= level + Fraction(ETA)
                assert oracle.decide(tau, level) is right
                assert epigraph.decide(tau, level) is right


def test_one_participant_moves_the_value_by_tau_and_the_level_by_one():
    seen: dict[Tuples, tuple[list[float], int, list[Fraction]]] = {}

    def measure(tuples: Tuples) -> tuple[list[float], int, list[Fraction]]:
        if tuples not in seen:
            problem = problem_of(tuples, 3)
            values = [solve(problem.packing(t), t, gap=GAP * t).middle for t in TAUS]
            level = least_level(WaysOracle(problem, eta=ETA), GRID)  # type: ignore[arg-type]
            seen[tuples] = values, level, [least_ways_deletion(problem, t) for t in TAUS]
        return seen[tuples]

    compared = 0
    for tuples in pairs(3):
        values, level, deletions = measure(tuples)
        for gone in range(3):
            fewer, below, less = measure(without(tuples, gone))
            assert 0 <= level - below <= 1
            for tau, one, other in zip(TAUS, values, fewer, strict=True):
                assert -GAP * tau <= one - other <= tau * (1 + GAP)
            assert all(0 <= one - other <= 1 for one, other in zip(deletions, less, strict=True))
            compared += 1
    assert compared == 18 * 18 * 3


def crowd(size: int) -> Tuples:
    """Return tuples that need one of a crowd each, or else the last two participants."""
    return tuple(
        (frozenset([frozenset([n]), frozenset([size, size + 1])]), 1.0) for n in range(size)
    )


def test_the_printed_bounding_sequence_moves_by_more_than_one():
    """Theorem 4 holds for conjunctions only; what is shipped here keeps to one."""
    size = 9
    whole, less = crowd(size), without(crowd(size), size)
    assert printed_deletion(less, size + 2, 1.0) == pytest.approx(0.0)
    assert printed_deletion(whole, size + 2, 1.0) > size - 1.0
    for gone in range(size + 2):
        for tau in (0.5, 1.0, 2.0, 4.5):
            more, fewer = (
                least_ways_deletion(problem_of(tuples, size + 2), tau)
                for tuples in (whole, without(whole, gone))
            )
            assert 0 <= more - fewer <= 1
    levels = [
        least_level(truncate(annotate(tuples, size + 2)), Thresholds(1.0, 0.07))
        for tuples in (whole, less)
    ]
    assert levels == [1, 0]


def test_the_epigraph_keeps_to_one_for_the_crowd_too():
    relation = annotate(crowd(6), 8)
    grid = Thresholds(1.0, 0.07)
    whole = least_level(Epigraph(relation, eta=ETA), grid)
    for gone in range(8):
        assert 0 <= whole - least_level(Epigraph(relation.without(gone), eta=ETA), grid) <= 1


way = st.frozensets(st.integers(0, 6), min_size=1, max_size=3)
weight = st.sampled_from([0.25, 1.0, 3.0, 1e9])
several = st.lists(st.tuples(st.frozensets(way, min_size=1, max_size=4), weight), max_size=7)


@given(several, st.sampled_from(TAUS), st.integers(0, 4))
@settings(max_examples=80, deadline=None)
def test_decisions_are_those_of_exact_arithmetic(items, tau, level):
    problem = problem_of(tuple(items), 7)
    right = least_ways_deletion(problem, tau) <= level + Fraction(ETA)
    assert WaysOracle(problem, eta=ETA).decide(tau, level) is right


@given(several, st.sampled_from(TAUS), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_bounds_hold_for_any_vectors(items, tau, seed):
    problem = problem_of(tuple(items), 7)
    random = np.random.default_rng(seed)
    least = least_ways_deletion(problem, tau)
    assert enough(problem, tau, random.uniform(-0.2, 1.2, 7)) >= least
    pressures = random.exponential(1.0, 7)
    covers = random.uniform(-0.5, 1.0, len(problem.places))
    for line in (line_of(problem, pressures, covers), first_line(problem, tau)):
        assert line.at(tau) <= least
    packing = problem.packing(tau)
    value = solve(packing, tau, gap=GAP * tau)
    prices = random.uniform(0.0, 1.0, 7 + len(packing.limits))
    assert certificate.upper_bound(packing, tau, prices) >= value.lower
    fractions = random.uniform(-0.5, 1.5, packing.tuple_count)
    assert certificate.lower_bound(packing, tau, fractions) <= value.upper


@given(several, st.sampled_from(TAUS))
@settings(max_examples=60, deadline=None)
def test_the_packing_with_limits_is_the_dual_of_the_relaxation(items, tau):
    """Against the program as it is written down, without duality: over deletions and remainders."""
    tuples: Sequence[tuple[Ways, float]] = [(ways, min(q, 50.0)) for ways, q in items]
    count = len(tuples)
    rows = []
    for place, (ways, _) in enumerate(tuples):
        for one in ways:
            row = np.zeros(7 + count)
            row[[*one, 7 + place]] = -1.0
            rows.append(row)
    cost = np.concatenate([np.full(7, tau), [q for _, q in tuples]])
    found = linprog(cost, A_ub=np.array(rows), b_ub=-np.ones(len(rows))).fun if rows else 0.0
    problem = problem_of(tuple(tuples), 7)
    bracket = solve(problem.packing(tau), tau, gap=GAP * tau)
    assert bracket.lower - 1e-6 <= found <= bracket.upper + 1e-6


def test_the_simplex_method_gives_vectors_that_certify():
    tuples = tuple((frozenset([frozenset([n, 8]), frozenset([n, 9])]), 1.0 + n) for n in range(8))
    problem = problem_of(tuples, 10)
    deletions, pressures, covers = _Run(problem, 2.0).vertex()
    least = least_ways_deletion(problem, 2.0)
    assert float(enough(problem, 2.0, deletions)) == pytest.approx(float(least), abs=1e-6)
    assert float(line_of(problem, pressures, covers).at(2.0)) == pytest.approx(
        float(least), abs=1e-6
    )


def test_expressions_with_ways_of_their_own_take_the_fast_route():
    a, b, c = (Participant(n) for n in range(3))
    assert (a & (b | c)).ways() == ((0, 1), (0, 2))
    assert ((a | b) & (a | c)).ways() is None
    crossed = together(*(either(Participant(2 * n), Participant(2 * n + 1)) for n in range(9)))
    assert crossed.ways() is None
    tree = Relation.from_annotations([(a & (b | c), 3.0), (b, 1.0)], normalise=False)
    fast, slow = truncate(tree), Epigraph(tree, eta=ETA)
    assert not isinstance(fast, Epigraph)
    for tau in TAUS:
        assert fast.value(tau, GAP) == pytest.approx(slow.value(tau, GAP), abs=2 * GAP)
    assert least_level(fast, GRID) == least_level(slow, GRID)


def test_many_tuples_in_several_ways_are_truncated_quickly():
    random = np.random.default_rng(4)
    tuples, people = 3_000, 4_000
    starts = np.arange(0, 4 * tuples + 1, 4)
    members = np.stack(
        [np.repeat(np.arange(tuples), 4), random.integers(tuples, people, 4 * tuples)], axis=1
    )
    problem = WaysProblem(
        starts, 2 * np.arange(4 * tuples + 1), members.ravel(), np.ones(tuples), people
    )
    oracle = WaysOracle(problem, eta=ETA)
    level = least_level(oracle, Thresholds(1.0, 0.07))  # type: ignore[arg-type]
    tau = Thresholds(1.0, 0.07).at(level)
    assert oracle.decide(tau, level)
    assert not oracle.decide(Thresholds(1.0, 0.07).at(level - 1), level - 1)
    bracket = solve(problem.packing(tau), tau, gap=0.01 * tau)
    assert bracket.upper - bracket.lower <= 0.01 * tau


def test_what_is_refused_and_what_is_sealed():
    problem = problem_of(crowd(2), 4)
    assert repr(problem) == "WaysProblem(...)"
    with pytest.raises(SealedError):
        problem.__reduce__()
    with pytest.raises(InputError, match="at least one way"):
        WaysProblem([0, 0], [0], [], [1.0], 1)
    with pytest.raises(InputError, match="no limits"):
        DeletionOracle(problem.packing(1.0), eta=ETA)
