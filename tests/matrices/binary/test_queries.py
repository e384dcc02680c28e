"""Asking, planning, booking and storing XOR releases."""

import json
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.ledger.answer import plan_for
from tulle.noise import SeededSource

MATRIX = tulle.BinaryMatrix(np.arange(120).reshape(20, 6) % 3 == 0)
PI = np.eye(6) * -2 + 0.1
QUERIES = [tulle.xor(), tulle.xor("general", pi=PI)]


@pytest.mark.parametrize("unit", ["row", "cell"])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_release_is_a_matrix_with_its_guarantee(query, unit):
    r = tulle.release(MATRIX, query, unit=unit, epsilon=1.5)
    assert r.value.shape == MATRIX.shape
    assert r.value.dtype == np.uint8
    assert set(np.unique(r.value)) <= {0, 1}
    assert r.guarantee.epsilon == Fraction(3, 2)
    assert r.guarantee.delta == 0
    assert r.guarantee.unit.name == unit
    assert r.guarantee.holds
    back = tulle.Release.from_json(json.dumps(r.to_json()))
    assert (back.value == r.value).all()
    assert back.value.dtype == np.uint8
    assert back.parameters == json.loads(json.dumps(dict(r.parameters)))
    assert "xor" in repr(r)


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_seeded_release_repeats_and_says_so(query):
    first, second = (
        tulle.release(MATRIX, query, unit="row", epsilon=1, source=SeededSource(4))
        for _ in range(2)
    )
    assert (first.value == second.value).all()
    assert not first.guarantee.holds


def test_a_large_release_takes_about_a_bit_for_each_cell():
    cells = np.random.default_rng(0).integers(0, 2, (400, 400))
    r = tulle.release(tulle.BinaryMatrix(cells), tulle.xor(), unit="cell", epsilon=1)
    text = json.dumps(r.to_json())
    # Fair bits in base 64 take a sixth of a byte each, and nothing can compress them.
    assert len(text) < 400 * 400 / 6 + 2000
    back = tulle.Release.from_json(text).value
    assert (back == r.value).all()
    assert back.dtype == np.uint8


@pytest.mark.parametrize("unit", ["row", "cell"])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_the_plan_says_how_many_cells_flip(query, unit):
    plan = plan_for(MATRIX, query, unit=unit, epsilon=2)
    flip = plan.chosen.prediction.mean_error
    assert 0 < flip < 0.5
    assert plan.chosen.prediction.bound.half_width(0.95) == 1
    truth = MATRIX.to_numpy()
    wrong = [
        np.mean(tulle.release(MATRIX, query, unit=unit, epsilon=2).value != truth)
        for _ in range(200)
    ]
    assert np.mean(wrong) == pytest.approx(flip, abs=5 * np.std(wrong) / np.sqrt(200))


def test_optimal_is_the_best():
    for unit in ("row", "cell"):
        rates = [
            plan_for(MATRIX, query, unit=unit, epsilon=2).chosen.prediction.mean_error
            for query in QUERIES
        ]
        assert rates[0] == min(rates)


def test_a_ledger_pays_once():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ledger = tulle.Ledger(folder + "/study.ledger")
        study = ledger.open("votes", MATRIX, unit="row", epsilon=2)
        first = study.ask(tulle.xor(), epsilon=1)
        again = study.ask(tulle.xor(), epsilon=1)
        assert (first.value == again.value).all()
        assert study.remaining.epsilon == 1
        study.ask(tulle.xor("general", pi=PI), epsilon=0.5)
        assert study.remaining.epsilon == Fraction(1, 2)
        other = study.ask(
            tulle.xor("general", pi=PI * np.arange(1, 7)[:, None] * np.arange(1, 7)), epsilon=0.5
        )
        assert study.remaining.epsilon == 0
        assert other.query.startswith("xor(general, pi=6x6:")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"family": "best"}, "Known: optimal, general"),
        ({"family": "paper"}, "Known: optimal, general"),
        ({"family": "optimal", "pi": [[1]]}, "needs pi="),
        ({"family": "general"}, "needs pi="),
        ({"family": "general", "pi": [[1, 2], [3, 4]]}, "symmetric"),
        ({"family": "general", "pi": [[1, 2]]}, "square"),
        ({"family": "general", "pi": []}, "square"),
        ({"family": "general", "pi": [[1, 2], [3]]}, "square"),
        ({"family": "general", "pi": [[float("nan")]]}, "finite"),
        ({"family": "general", "pi": [["x"]]}, "finite"),
        ({"family": "general", "pi": np.zeros((2, 2))}, "other than zero"),
    ],
)
def test_bad_questions(arguments, words):
    with pytest.raises(InputError, match=words):
        tulle.xor(**arguments)


def test_sizes_of_pi_that_do_not_fit():
    with pytest.raises(QueryError, match="must have 6"):
        tulle.release(MATRIX, tulle.xor("general", pi=np.eye(5)), unit="row", epsilon=1)


def test_sparse_couplings_of_a_whole_matrix():
    size = 120
    pi = scipy.sparse.diags_array(
        [[0.2] * (size - 1), [-2.0] * size, [0.2] * (size - 1)], offsets=[-1, 0, 1]
    )
    r = tulle.release(MATRIX, tulle.xor("general", pi=pi), unit="row", epsilon=2)
    assert r.parameters["method"] == "coupling from the past"
    # Rows of six cells: their own patterns are listed, whatever is outside.
    assert r.parameters["price"] == "exact"
    wide = tulle.BinaryMatrix(np.zeros((2, 60), dtype=int))
    r = tulle.release(wide, tulle.xor("general", pi=pi), unit="row", epsilon=2)
    assert r.parameters["price"] == "exact"
    r = tulle.release(MATRIX, tulle.xor("general", pi=pi), unit="cell", epsilon=1)
    assert r.parameters["price"] == "exact"
    assert r.value.shape == MATRIX.shape
    repulsive = scipy.sparse.diags_array(
        [[-0.2] * (size - 1), [-2.0] * size, [-0.2] * (size - 1)], offsets=[-1, 0, 1]
    )
    with pytest.raises(InputError, match="repulsively"):
        tulle.release(MATRIX, tulle.xor("general", pi=repulsive), unit="row", epsilon=2)


def test_a_graph_question_is_not_for_a_matrix():
    with pytest.raises(QueryError, match="matrix"):
        tulle.release(MATRIX, tulle.triangles(), unit="row", epsilon=1)
    with pytest.raises(QueryError):
        tulle.xor() + 1


def test_equal_questions_are_equal():
    assert tulle.xor("general", pi=PI) == tulle.xor("general", pi=scipy.sparse.csr_array(PI))
    assert hash(tulle.xor("general", pi=PI)) == hash(tulle.xor("general", pi=PI.tolist()))
    assert str(tulle.xor("general", pi=PI)) != str(tulle.xor("general", pi=PI * [[2]]))


def test_neighbours_get_the_same_plan_and_errors():
    for unit in ("row", "cell"):
        small = tulle.BinaryMatrix([[1, 0], [0, 1]])
        said = set()
        for matrix in [small, *small.neighbours(unit)]:
            plan = plan_for(matrix, tulle.xor(), unit=unit, epsilon=1)
            with pytest.raises(InputError) as caught:
                tulle.release(matrix, tulle.xor("general", pi=np.eye(3)), unit=unit, epsilon=1)
            said.add((repr(plan), json.dumps(plan.to_json()), str(caught.value), repr(matrix)))
        assert len(said) == 1


@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", 50, 1000])
@pytest.mark.parametrize("unit", ["row", "cell"])
def test_extreme_budgets(epsilon, unit):
    for query in QUERIES:
        r = tulle.release(MATRIX, query, unit=unit, epsilon=epsilon)
        if epsilon == 1000 and not query.entries:
            assert unit == "row" or (r.value == MATRIX.to_numpy()).all()
