"""Tuples with several ways: both numbers against other solvers, and what one participant moves."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.relations import written_out
from tests.relations.enumeration import General

from tulle.core.errors import InputError, SealedError
from tulle.lp import (
    AlternativesOracle,
    AlternativesProblem,
    DeletionOracle,
    certificate,
    solve,
    solve_alternatives,
)
from tulle.lp.alternatives_certificate import (
    binding,
    enough,
    first_line,
    line_of,
    lower_value,
    upper_value,
)
from tulle.lp.alternatives_deletion import exact_deletion, exact_value
from tulle.lp.program import Program
from tulle.relations.annotations import NEVER, Participant, either, together
from tulle.relations.data import Relation
from tulle.relations.trees import Trees
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


def problem_of(tuples: Tuples, people: int) -> AlternativesProblem:
    ways = [sorted(way) for listed, _ in tuples for way in sorted(listed, key=sorted)]
    return AlternativesProblem(
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


def test_there_are_eighteen_forms_of_three():
    assert len(normal_forms(3)) == 18


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_of_pairs_of_tuples_over_three_both_numbers_are_those_of_plain_solvers(step):
    for tuples in pairs(3)[::step]:
        relation = annotate(tuples, 3)
        problem, notes = problem_of(tuples, 3), list(relation.annotations())
        oracle, general = AlternativesOracle(problem, eta=ETA), General(relation)
        for tau in (0.4, 1.7):
            value = solve_alternatives(problem, tau, gap=GAP * tau)
            assert value.middle == pytest.approx(written_out.value(notes, 3, tau), abs=GAP * tau)
            assert value.lower <= general.value(tau)
            least = exact_deletion(problem, tau)
            assert float(least) == pytest.approx(written_out.deletion(notes, 3, tau), abs=1e-6)
            for level in range(3):
                assert oracle.decide(tau, level) is (least <= level + Fraction(ETA))


def test_one_participant_moves_the_value_by_tau_and_the_level_by_one():
    seen: dict[Tuples, tuple[list[float], int, list[Fraction]]] = {}

    def measure(tuples: Tuples) -> tuple[list[float], int, list[Fraction]]:
        if tuples not in seen:
            problem = problem_of(tuples, 3)
            values = [solve_alternatives(problem, t, gap=GAP * t).middle for t in TAUS]
            level = least_level(AlternativesOracle(problem, eta=ETA), GRID)  # type: ignore[arg-type]
            seen[tuples] = values, level, [exact_deletion(problem, t) for t in TAUS]
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
    printed = [
        written_out.deletion(
            list(annotate(tuples, size + 2).annotations()), size + 2, 1.0, named_bear_all=True
        )
        for tuples in (less, whole)
    ]
    assert printed[0] == pytest.approx(0.0)
    assert printed[1] > size - 1.0
    for gone in range(size + 2):
        for tau in (0.5, 1.0, 2.0, 4.5):
            more, fewer = (
                exact_deletion(problem_of(tuples, size + 2), tau)
                for tuples in (whole, without(whole, gone))
            )
            assert 0 <= more - fewer <= 1
    levels = [
        least_level(truncate(annotate(tuples, size + 2)), Thresholds(1.0, 0.07))
        for tuples in (whole, less)
    ]
    assert levels == [1, 0]


way = st.frozensets(st.integers(0, 6), min_size=1, max_size=3)
weight = st.sampled_from([0.25, 1.0, 3.0, 1e9])
several = st.lists(st.tuples(st.frozensets(way, min_size=1, max_size=4), weight), max_size=7)


@given(several, st.sampled_from(TAUS), st.integers(0, 4))
@settings(max_examples=80, deadline=None)
def test_decisions_are_those_of_exact_arithmetic(items, tau, level):
    problem = problem_of(tuple(items), 7)
    right = exact_deletion(problem, tau) <= level + Fraction(ETA)
    assert AlternativesOracle(problem, eta=ETA).decide(tau, level) is right


@given(several, st.sampled_from(TAUS), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_bounds_hold_for_any_vectors(items, tau, seed):
    problem = problem_of(tuple(items), 7)
    random = np.random.default_rng(seed)
    least = exact_deletion(problem, tau)
    assert enough(problem, tau, random.uniform(-0.2, 1.2, 7)) >= least
    pressures = random.exponential(1.0, 7)
    covers, splits = random.uniform(-0.5, 1.0, (2, len(problem.places)))
    splits = splits[: len(problem.owner)]
    for line in (line_of(problem, pressures, covers, splits), first_line(problem, tau)):
        assert line.at(tau) <= least
    packing = problem.packing(tau)
    assert packing is not None
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
    bracket = solve_alternatives(problem, tau, gap=GAP * tau)
    assert bracket.lower - 1e-6 <= found <= bracket.upper + 1e-6


def test_the_simplex_method_gives_vectors_that_certify():
    tuples = tuple((frozenset([frozenset([n, 8]), frozenset([n, 9])]), 1.0 + n) for n in range(8))
    problem = problem_of(tuples, 10)
    program = problem.deletion_program(2.0, binding(problem, 2.0))
    deletions, *multipliers = program.read(*program.program.vertex())
    least = exact_deletion(problem, 2.0)
    assert float(enough(problem, 2.0, deletions)) == pytest.approx(float(least), abs=1e-6)
    assert float(line_of(problem, *multipliers).at(2.0)) == pytest.approx(float(least), abs=1e-6)


tree = st.recursive(
    st.integers(0, 4).map(Participant),
    lambda parts: st.one_of(
        st.lists(parts, min_size=2, max_size=3).map(lambda p: together(*p)),
        st.lists(parts, min_size=2, max_size=3).map(lambda p: either(*p)),
    ),
    max_leaves=8,
)
height = st.sampled_from([0.25, 1.0, 3.0, 50.0])
trees = st.lists(st.tuples(tree, height), min_size=1, max_size=4)


def as_written(notes: written_out.Notes, people: int) -> AlternativesProblem:
    """Return the trees as they are, conjunctions too."""
    arrays = Trees(people)
    arrays.add(note for note, _ in notes)
    found = arrays.arrays(np.zeros(1, np.int64), np.zeros(0, np.int32))
    return AlternativesProblem(*found, [weight for _, weight in notes], people)


@given(trees, st.sampled_from(TAUS))
@settings(max_examples=60, deadline=None)
def test_both_numbers_of_trees_are_those_of_all_their_ways(notes, tau):
    """The compact programs lose nothing: they are as if every tree were written out."""
    problem = as_written(notes, 5)
    value, least = exact_value(problem, tau), exact_deletion(problem, tau)
    assert float(value) == pytest.approx(written_out.value(notes, 5, tau), abs=1e-5)
    assert float(least) == pytest.approx(written_out.deletion(notes, 5, tau), abs=1e-5)


@given(trees, st.sampled_from(TAUS), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_decisions_and_brackets_of_trees_are_those_of_exact_arithmetic(notes, tau, level):
    problem = as_written(notes, 5)
    right = exact_deletion(problem, tau) <= level + Fraction(ETA)
    assert AlternativesOracle(problem, eta=ETA).decide(tau, level) is right
    bracket = solve_alternatives(problem, tau, gap=GAP * tau)
    assert bracket.lower <= exact_value(problem, tau) <= bracket.upper
    assert bracket.upper - bracket.lower <= GAP * tau


@given(trees, st.sampled_from(TAUS), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_bounds_of_trees_hold_for_any_vectors(notes, tau, seed):
    problem = as_written(notes, 5)
    random = np.random.default_rng(seed)
    least, value = exact_deletion(problem, tau), exact_value(problem, tau)
    assert enough(problem, tau, random.uniform(-0.2, 1.2, 5)) >= least
    covers = random.uniform(-0.5, 1.0, len(problem.places))
    splits = random.uniform(-0.5, 1.0, len(problem.owner))
    for line in (
        line_of(problem, random.exponential(1.0, 5), covers, splits),
        first_line(problem, tau),
    ):
        assert line.at(tau) <= least
    assert upper_value(problem, tau, random.uniform(-0.2, 1.4, 5)) >= value
    assert lower_value(problem, tau, random.uniform(-1.0, 4.0, len(problem.owner))) <= value


def small_trees() -> list[written_out.Notes]:
    """Return pairs of trees over four participants, nested up to three deep."""
    a, b, c, d = (Participant(n) for n in range(4))
    shapes = [
        (a | b) & (c | d),
        (a | b) & (a | c),
        a & (b | (c & d)),
        (a | (b & (c | d))) & (b | d),
        ((a | b) & c) | (a & d),
        (a | b) & (b | c) & (c | a),
        a | b | (c & d),
        a & b,
        d,
    ]
    return [[(one, 3.0), (other, 2.0)] for one in shapes for other in shapes]


def moves(measure, notes: written_out.Notes) -> tuple[float, float]:
    """Return the least and the most by which a number falls when one of four leaves."""
    whole = measure(notes)
    falls = []
    for gone in range(4):
        left = [(note.without(gone), weight) for note, weight in notes]
        falls.append(whole - measure([(n, w) for n, w in left if n != NEVER]))
    return min(falls), max(falls)


def test_one_participant_moves_both_numbers_of_trees_as_the_proof_says():
    for notes in small_trees():
        for tau in (0.4, 1.7):
            down, up = moves(lambda left, t=tau: exact_value(as_written(left, 4), t), notes)
            assert 0 <= down <= up <= Fraction(tau)
            down, up = moves(lambda left, t=tau: exact_deletion(as_written(left, 4), t), notes)
            assert 0 <= down <= up <= 1
        total = sum(weight for _, weight in notes)
        assert exact_value(as_written(notes, 4), 100.0) == total


def test_the_printed_bounding_sequence_is_caught_on_trees_too():
    """The twin: with equation 19 the same comparison finds one who moves D by more than one."""
    r, b = Participant(0), Participant(1)
    notes = [((Participant(n) | (r & b)) & Participant(n + 9), 1.0) for n in range(2, 11)]

    def measure(left: written_out.Notes, named_bear_all: bool) -> float:
        return written_out.deletion(left, 20, 1.0, named_bear_all=named_bear_all)

    left = [(note.without(0), weight) for note, weight in notes]
    fell = [measure(notes, twin) - measure(left, twin) for twin in (False, True)]
    assert fell[0] <= 1 + 1e-6
    assert fell[1] > 1 + 1e-6


def test_flows_that_forget_a_group_are_caught():
    """The twin: rows of groups left out of the program give another number at once."""
    notes = [((Participant(0) | Participant(1)) & (Participant(2) | Participant(3)), 9.0)]
    problem = as_written(notes, 4)
    program = problem.value_program(2.0, exact=True)
    assert program.least() == 4
    loose = Program(
        program.cost,
        program.upper,
        program.starts[:2],
        program.columns,
        program.values,
        program.right[:1],
    )
    assert loose.least() == 0


def test_long_alternatives_are_nested_and_mean_the_same(monkeypatch):
    notes = [
        (together(*(Participant(2 * n) | Participant(2 * n + 1) for n in range(5))), 3.0),
        (together(*map(Participant, range(7))) | Participant(3), 2.0),
        (together(*map(Participant, range(5)), Participant(8) | Participant(9)), 2.0),
    ]
    plain = as_written(notes, 10)
    monkeypatch.setattr("tulle.relations.trees._GROUPS", 2)
    monkeypatch.setattr("tulle.relations.trees._MEMBERS", 3)
    nested = as_written(notes, 10)
    assert np.diff(plain.offsets).max() == 7
    assert np.diff(nested.offsets).max() == 3
    for tau in TAUS:
        assert exact_value(nested, tau) == exact_value(plain, tau)
        assert exact_deletion(nested, tau) == exact_deletion(plain, tau)


@pytest.mark.parametrize("clauses", [8, 16])
def test_a_thousand_long_trees_are_truncated_quickly(clauses):
    """The written-out form has three to the power of the clauses in ways, for each."""
    random = np.random.default_rng(clauses)
    notes = [
        (together(*(either(*map(Participant, random.choice(300, 3, replace=False).tolist()))
         for _ in range(clauses))), 1.0)
        for _ in range(1_000)
    ]  # fmt: skip
    problem = as_written(notes, 300)
    assert len(problem.members) <= 5 * clauses * 1_000
    begun = time.process_time()
    oracle = AlternativesOracle(problem, eta=ETA)
    level = least_level(oracle, Thresholds(1.0, 0.07))  # type: ignore[arg-type]
    tau = Thresholds(1.0, 0.07).at(level)
    solve_alternatives(problem, tau, gap=0.01 * tau)
    assert time.process_time() - begun < 10.0


def test_many_tuples_in_several_ways_are_truncated_quickly():
    random = np.random.default_rng(4)
    tuples, people = 3_000, 4_000
    starts = np.arange(0, 4 * tuples + 1, 4)
    members = np.stack(
        [np.repeat(np.arange(tuples), 4), random.integers(tuples, people, 4 * tuples)], axis=1
    )
    problem = AlternativesProblem(
        starts, 2 * np.arange(4 * tuples + 1), members.ravel(), np.ones(tuples), people
    )
    oracle = AlternativesOracle(problem, eta=ETA)
    level = least_level(oracle, Thresholds(1.0, 0.07))  # type: ignore[arg-type]
    tau = Thresholds(1.0, 0.07).at(level)
    assert oracle.decide(tau, level)
    assert not oracle.decide(Thresholds(1.0, 0.07).at(level - 1), level - 1)
    bracket = solve_alternatives(problem, tau, gap=0.01 * tau)
    assert bracket.upper - bracket.lower <= 0.01 * tau


def test_what_is_refused_and_what_is_sealed():
    problem = problem_of(crowd(2), 4)
    assert repr(problem) == "AlternativesProblem(...)"
    with pytest.raises(SealedError):
        problem.__reduce__()
    with pytest.raises(InputError, match="an alternative"):
        AlternativesProblem([0, 0], [0], [], [1.0], 1)
    with pytest.raises(InputError, match="no limits"):
        DeletionOracle(problem.packing(1.0), eta=ETA)  # type: ignore[arg-type]
    # A group that lists itself, one that nobody lists, one that is listed twice.
    for members in ([1], [0], [2, 2]):
        with pytest.raises(InputError, match="listed once"):
            AlternativesProblem(
                [0, 1, 2], [0, len(members), len(members) + 1], [*members, 1], [1.0], 1
            )
