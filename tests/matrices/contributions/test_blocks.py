"""Block noise: clipping, guarantees in numbers, predictions, post-processing, refusals."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import tulle
from tulle.core.errors import InputError, QueryError
from tulle.core.guarantee import epsilon_of_rho, largest_rho
from tulle.core.release import Release
from tulle.core.validate import rational
from tulle.ledger.answer import plan_for
from tulle.matrices.contributions.clipping import Limits, clip
from tulle.matrices.contributions.low_rank import then_low_rank, then_positive, then_whole
from tulle.matrices.contributions.partition import price
from tulle.noise import SeededSource

BOTH = [("block_laplace", 0.0), ("block_gaussian", 1e-6)]


def movements(seed=1, people=300, records=6000, side=12):
    generator = np.random.default_rng(seed)
    start, end = (generator.zipf(1.6, records) % side for _ in range(2))
    who = generator.integers(0, people, records)
    return tulle.Contributions(who, start, end, rows=side, columns=side)


DATA, PUBLIC = movements(), movements(2, 60, 1200)


def ask(query, mechanism="block_laplace", delta=0.0, data=DATA, epsilon=1.0, **more):
    return tulle.release(
        data,
        query,
        unit="participant",
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        **more,
    )


# --- clipping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 10**6, 2**35])
@pytest.mark.parametrize("seed", range(3))
def test_each_individual_is_within_every_limit_exactly(seed, size):
    generator = np.random.default_rng(seed)
    labels = generator.integers(-1, 3, (3, 5))
    labels.flat[:3] = [0, 1, 2]
    cells = np.where(labels >= 0, generator.integers(1, size + 1, labels.shape), 0).astype(float)
    totals = tuple(int(t) for t in generator.integers(1, 2 * size, 3))
    squares = tuple(int(t) ** 2 for t in generator.integers(1, size + 1, 3))
    limits = Limits(0, labels, cells, totals, max(totals), squares, max(squares))
    people = 60
    weights = generator.choice([-1, 1], (people, 15)) * generator.exponential(size, (people, 15))
    weights[0], weights[1] = 1e300, -1e-300
    one_by_one = np.zeros(labels.shape, dtype=np.int64)
    for person in range(people):
        alone = tulle.Contributions(
            [person] * 15, np.arange(15) // 5, np.arange(15) % 5, weights[person], rows=3, columns=5
        )
        found = clip(alone, limits)
        one_by_one += found
        assert (np.abs(found) <= cells).all()
        whole = [int(entry) for entry in found.reshape(-1)]
        for block in range(3):
            held = [w for w, b in zip(whole, labels.reshape(-1), strict=True) if b == block]
            assert sum(map(abs, held)) <= totals[block]
            assert sum(w * w for w in held) <= squares[block]
        assert sum(map(abs, whole)) <= limits.total
        assert sum(w * w for w in whole) <= limits.square
        assert (
            (found == 0) | (np.sign(found).reshape(-1) == np.sign(weights[person])).reshape(3, 5)
        ).all()
    together = tulle.Contributions(
        np.repeat(np.arange(people), 15),
        np.tile(np.arange(15) // 5, people),
        np.tile(np.arange(15) % 5, people),
        weights.reshape(-1),
        rows=3,
        columns=5,
    )
    # Nobody's contribution depends on anybody else's.
    assert (clip(together, limits) == one_by_one).all()


def test_who_is_within_the_bounds_is_not_touched():
    r = ask(tulle.weights(bound=50, total=500), epsilon=1e4)
    assert np.abs(r.value - DATA.totals()).max() < 2
    tight = Limits(0, np.zeros((1, 2), dtype=np.int64), np.array([[3.0, 3.0]]), (4,), 4)
    data = tulle.Contributions([0, 0, 1, 1], [0] * 4, [0, 1, 0, 1], [2, 2, 3, 3], rows=1, columns=2)
    assert clip(data, tight).tolist() == [[4, 4]]


# --- guarantee ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.01", "1", "50"])
@pytest.mark.parametrize(
    "query",
    [
        tulle.weights(bound=5, total=40),
        tulle.weights(total=7.3),
        tulle.weights(reference=PUBLIC, blocks=3),
        tulle.weights(reference=PUBLIC, total=20),
        tulle.weights(length=3, bound=1),
    ],
    ids=str,
)
def test_the_exact_price_is_within_the_budget_and_uses_it(query, epsilon):
    settings = plan_for(
        DATA, query, unit="participant", epsilon=epsilon, mechanism="block_laplace"
    ).chosen.settings
    rates = [1 / rational(scale) for scale in settings["scales"]]
    paid = price(settings["totals"], settings["total"], rates)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**8)) <= paid <= Fraction(epsilon)


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**9), Fraction(1, 2), Fraction(3), Fraction(9999)]
)
@pytest.mark.parametrize("delta", [Fraction(1, 10**12), Fraction(1, 2)])
def test_rho_implies_the_guarantee(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert epsilon_of_rho(rho, delta) <= epsilon
    assert epsilon_of_rho(rho * Fraction(1001, 1000), delta) > epsilon


def test_cells_outside_the_support_stay_zero_and_all_others_get_noise():
    support = np.arange(144).reshape(12, 12) % 3 > 0
    individual, cell, weight = DATA.entries()
    data = tulle.Contributions(
        individual, cell // 12, cell % 12, weight, rows=12, columns=12, support=support
    )
    for mechanism, delta in BOTH:
        r = ask(tulle.weights(bound=2, total=10), mechanism, delta, data)
        assert not r.value[~support].any()
        assert (r.value[support] != 0).mean() > 0.95
        low, high = r.interval(0.99)
        assert (low[~support] == 0).all()
        assert (high[~support] == 0).all()


# --- predictions --------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "delta"), BOTH)
@pytest.mark.parametrize("step", [None, 8])
def test_the_predicted_error_is_the_measured_one(mechanism, delta, step):
    query = tulle.weights(reference=PUBLIC, blocks=3, step=step)
    plan = plan_for(DATA, query, unit="participant", epsilon=1.0, delta=delta, mechanism=mechanism)
    # Nobody is clipped here: the law is of the noise alone.
    predicted = plan.chosen.prediction.typical.mean_error()
    empty = DATA.part(np.zeros(len(DATA.entries()[0]), dtype=bool))
    drawn = [np.abs(ask(query, mechanism, delta, empty).value).mean() for _ in range(60)]
    assert np.mean(drawn) == pytest.approx(predicted, rel=0.05)


@pytest.mark.parametrize(("mechanism", "delta"), BOTH)
def test_with_a_stand_in_clipping_is_in_the_prediction(mechanism, delta):
    query = tulle.weights(bound=1, total=3)
    plan = plan_for(
        DATA, query, unit="participant", epsilon=1, delta=delta, mechanism=mechanism, like=DATA
    )
    truth = DATA.totals()
    drawn = [np.abs(ask(query, mechanism, delta).value - truth).mean() for _ in range(60)]
    assert np.mean(drawn) == pytest.approx(plan.chosen.prediction.mean_error, rel=0.05)


@pytest.mark.parametrize(("mechanism", "delta"), BOTH)
def test_intervals_cover_all_cells_at_once(mechanism, delta):
    query = tulle.weights(bound=60, total=600, blocks=1)
    truth = DATA.totals()
    hits = 0
    for _ in range(80):
        low, high = ask(query, mechanism, delta).interval(0.9)
        hits += bool(((low <= truth) & (truth <= high)).all())
    assert binom.cdf(hits, 80, 0.9) > 1e-6


def test_blocks_are_better_than_plain_noise_and_the_plan_takes_the_best():
    plain = plan_for(
        DATA, tulle.weights(reference=PUBLIC, blocks=1), unit="participant", epsilon=1
    ).chosen.prediction.mean_error
    plan = plan_for(
        DATA, tulle.weights(reference=PUBLIC), unit="participant", epsilon=1, delta=1e-6
    )
    ranks = [offer.prediction.rank() for offer in plan.offers]
    assert ranks == sorted(ranks)
    assert len(ranks) == 2
    assert ranks[0] < plain


# --- after the release --------------------------------------------------------------------------


def test_a_release_is_read_back_exactly_and_booked_once(tmp_path):
    study = tulle.Ledger(tmp_path / "a.ledger").open(
        "trips", DATA, unit="participant", epsilon=2.0, delta=1e-5, composition_delta=0
    )
    r = study.ask(tulle.weights(reference=PUBLIC), epsilon=1.0, delta=1e-6)
    again = study.ask(tulle.weights(reference=PUBLIC), epsilon=1.0, delta=1e-6)
    assert float(study.remaining.epsilon) == 1
    assert r.guarantee.assumptions == ("the reference is public, or of other people",)
    back = Release.from_json(r.to_json())
    for other in (again, back):
        assert (other.value == r.value).all()
        assert other.error == r.error
        assert (other.interval(0.9)[0] == r.interval(0.9)[0]).all()


def test_low_rank_finds_the_rank_of_a_clear_matrix():
    generator = np.random.default_rng(3)
    left, right = generator.random((60, 2)), generator.random((2, 50))
    cell = np.arange(3000)
    weight = (left @ right).reshape(-1) * 2000
    data = tulle.Contributions(np.arange(3000), cell // 50, cell % 50, weight, rows=60, columns=50)
    r = ask(tulle.weights(total=3000), data=data, epsilon=50)
    smooth = then_low_rank(r, "auto")
    assert smooth.parameters["post_processing"] == ["low rank 2"]
    truth = data.totals()
    assert np.abs(smooth.value - truth).mean() < 0.4 * np.abs(r.value - truth).mean()
    whole = then_whole(then_positive(smooth))
    assert whole.parameters["post_processing"] == ["low rank 2", "positive", "whole"]
    assert (whole.value >= 0).all()
    assert (whole.value == np.rint(whole.value)).all()
    assert whole.guarantee == r.guarantee


def test_low_rank_of_nothing_but_noise_is_nothing():
    empty = DATA.part(np.zeros(len(DATA.entries()[0]), dtype=bool))
    query = tulle.weights(reference=PUBLIC)
    kept = [
        then_low_rank(ask(query, m, d, empty), "auto").value.any()
        for m, d in BOTH
        for _ in range(10)
    ]
    assert sum(kept) <= 4
    r = ask(tulle.weights(total=5))
    with pytest.raises(InputError, match="at most 12"):
        then_low_rank(r, 13)
    with pytest.raises(InputError, match="needs a release of"):
        then_low_rank(
            tulle.release(tulle.BinaryMatrix([[1]]), tulle.xor(), unit="row", epsilon=1), 1
        )


def test_private_bounds_come_out_near_the_quantile_and_can_be_used():
    labels = np.eye(12, dtype=int)
    query = tulle.block_bounds(0.9, 2.0 ** np.arange(10), labels=labels)
    r = tulle.release(DATA, query, unit="participant", epsilon=5.0, source=SeededSource(1))
    truth = query.truth(DATA)
    assert (r.value <= 2 * truth).all()
    assert (r.value >= truth / 2).all()
    noisy = ask(tulle.weights(labels=labels, block_total=r.value))
    assert noisy.parameters["blocks"] == 2


def test_a_seeded_release_has_no_guarantee_and_can_be_replayed():
    first, second = (ask(tulle.weights(total=5), source=SeededSource(3)) for _ in range(2))
    assert (first.value == second.value).all()
    assert not first.guarantee.holds


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Nothing says"),
        ({"labels": [[0, 1]]}, "Nothing says"),
        ({"bound": -1}, "not negative"),
        ({"bound": float("nan")}, "finite"),
        ({"bound": [[1, np.inf]]}, "finite"),
        ({"bound": [1, 2]}, "matrix"),
        ({"bound": "much"}, "number"),
        ({"bound": 0}, "above zero"),
        ({"total": 0}, "above zero"),
        ({"total": float("nan")}, "finite"),
        ({"length": -2}, "above zero"),
        ({"total": 1, "blocks": 0}, "at least 1"),
        ({"total": 1, "step": 3}, "power of two"),
        ({"total": 1, "block_total": [1]}, "need labels"),
        ({"labels": [[0, 1]], "block_total": [1]}, "each of the 2"),
        ({"labels": [[0, 1]], "block_total": [1, -1]}, "above zero"),
        ({"labels": [[0, 1]], "block_total": [1, np.nan]}, "finite"),
        ({"labels": [[0, 2]], "block_total": [1, 1]}, "without a gap"),
        ({"labels": [[0, 0.5]], "total": 1}, "whole"),
        ({"labels": [[0, 1]], "bound": [[1], [2]]}, "shape"),
        ({"reference": PUBLIC, "bound": 1}, "leave out"),
        ({"reference": PUBLIC, "quantile": 2}, "at most 1"),
        ({"reference": [[1]]}, "Contributions"),
    ],
    ids=str,
)
def test_bad_bounds_are_refused_in_words(arguments, message):
    with pytest.raises((InputError, QueryError), match=message):
        tulle.weights(**arguments)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (tulle.weights(bound=[[1, 2]]), "grid is 12 x 12"),
        (tulle.weights(labels=[[0, 1]], total=1), "grid is 12 x 12"),
        (tulle.weights(total=1, step=4), "below one step"),
        (tulle.weights(total=1e30, step=1), "too many steps"),
        (tulle.block_bounds(0.5, [1], labels=[[0]]), "grid is 12 x 12"),
    ],
    ids=str,
)
def test_questions_that_do_not_fit_the_grid(query, message):
    with pytest.raises(QueryError, match=message):
        plan_for(DATA, query, unit="participant", epsilon=1)


@pytest.mark.parametrize("limit", ["block_total", "block_length"])
@pytest.mark.parametrize("bound", [[[0, 1]], [[1, 0]]])
def test_a_block_without_cells_is_refused_wherever_it_stands(bound, limit):
    data = tulle.Contributions([1], [0], [0], [1.0], rows=1, columns=2)
    query = tulle.weights(bound=bound, labels=[[0, 1]], **{limit: [1, 1]})
    with pytest.raises(QueryError, match="no cell in the public support"):
        plan_for(data, query, unit="participant", epsilon=1)


@pytest.mark.parametrize(
    "arguments", [(0, [1]), (0.5, []), (0.5, [2, 1]), (0.5, [0, 1]), (0.5, ["x"]), (0.5, [[1]])]
)
def test_bad_candidates_are_refused(arguments):
    with pytest.raises(InputError):
        tulle.block_bounds(*arguments)


def test_small_bounds_are_not_lost_below_the_step():
    data = tulle.Contributions([1, 1], [0, 0], [0, 1], [1000.0, 0.001], rows=1, columns=2)
    query = tulle.weights(bound=[[1000, 0.001]], blocks=1)
    found = plan_for(data, query, unit="participant", epsilon=1).chosen.settings
    assert 2.0 ** found["exponent"] < 0.001 / 500
