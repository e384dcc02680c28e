import copy
import itertools
import math

import numpy as np
import pytest

import tulle
from tulle.audit import find_pairs, lower_bound, one_by_one, power
from tulle.core.errors import InputError
from tulle.noise import bernoulli, discrete_laplace

SURE = 1 - 1e-8
"""So that a correct bound fails a test about once in a hundred million runs."""


def keep_probability(epsilon):
    return 1 / (1 + math.exp(-epsilon))


def respond(epsilon):
    """Randomized response on one bit, in bulk."""

    def draw(bit, size):
        kept = np.asarray(bernoulli(keep_probability(epsilon), size=size))
        return np.where(kept, bit, 1 - bit)

    return draw


def laplace(scale):
    return lambda value, size: value + discrete_laplace(scale=scale, size=size)


def test_randomized_response_is_bounded_from_below_and_closely():
    evidence = lower_bound(respond(1.0), [(0, 1)], samples=100_000, confidence=SURE)
    assert 0.9 < evidence.epsilon_at_least <= 1.0
    assert evidence.measured == 50_000


def test_half_the_noise_is_caught():
    evidence = lower_bound(laplace(0.5), [(0, 1)], samples=40_000)
    assert evidence.epsilon_at_least > 1.5


def test_a_tail_event_is_found():
    """Two scales differ in the tails only."""
    draw = lambda scale, size: discrete_laplace(scale=scale, size=size)  # noqa: E731
    evidence = lower_bound(draw, [(1, 4)], samples=40_000)
    assert evidence.epsilon_at_least > 2


def test_features_of_vectors():
    def skipped(counts, size):
        noise = discrete_laplace(scale=2, size=(size, 3))
        noise[:, 1] = 0
        return list(np.array(counts) + noise)

    evidence = lower_bound(skipped, [((3, 1, 0), (3, 2, 0))], samples=2_000)
    assert evidence.epsilon_at_least > 4
    assert "entry 1" in evidence.event or "answers" in evidence.event


def test_a_leak_is_found_among_answers_that_never_come_twice():
    def among_noise(secret, size):
        return np.column_stack([discrete_laplace(scale=10**6, size=size), np.full(size, secret)])

    assert lower_bound(among_noise, [(0, 1)], samples=400).epsilon_at_least > 2


def test_a_length_that_tells():
    draw = lambda n, size: [tuple(discrete_laplace(scale=3, size=n)) for _ in range(size)]  # noqa: E731
    assert lower_bound(draw, [(2, 3)], samples=2_000).epsilon_at_least > 4


def test_words_andpairs_of_answers():
    draw = one_by_one(lambda secret: "yes" if secret else "no")
    evidence = lower_bound(draw, [("", "x")], samples=1_000)
    assert evidence.event in ("answer is yes", "answer is no")
    assert evidence.epsilon_at_least > 3


def test_delta_is_taken_off():
    """A secret shown with probability 0.05 is (0, 0.05)."""

    def shown(secret, size):
        return np.where(bernoulli("0.05", size=size), secret, 7)

    assert lower_bound(shown, [(0, 1)], samples=20_000).epsilon_at_least > 1
    assert (
        lower_bound(shown, [(0, 1)], samples=20_000, delta=0.05, confidence=SURE).epsilon_at_least
        <= 0
    )


def test_the_bound_is_seldom_too_high():
    """With 40 tries at confidence 0.95 the true epsilon is exceeded in at most about 5 %."""
    tries = [
        lower_bound(respond(0.5), [(0, 1)], samples=2_000, confidence=0.95).epsilon_at_least
        for _ in range(40)
    ]
    assert sum(bound > 0.5 for bound in tries) <= 10


def test_power_is_what_it_says():
    noticed = power(epsilon=1.0, samples=20_000)
    assert 1.0 < noticed < 1.3
    found = [
        lower_bound(respond(noticed + 0.02), [(0, 1)], samples=20_000).epsilon_at_least > 1.0
        for _ in range(12)
    ]
    assert sum(found) >= 4
    assert power(epsilon=1.0, samples=200_000) < noticed < power(epsilon=1.0, samples=2_000)
    assert power(epsilon=1.0, samples=200, delta=0.999) == math.inf


def test_pairs_come_from_the_unit():
    square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
    pairs = find_pairs(square, "edge")
    assert len(pairs) == 6
    exact = one_by_one(lambda graph: tulle.triangles().truth(graph))
    assert lower_bound(exact, pairs, samples=400).epsilon_at_least > 2


def test_refusals():
    with pytest.raises(InputError, match="pair"):
        lower_bound(respond(1.0), [], samples=1000)
    with pytest.raises(InputError, match="samples"):
        lower_bound(respond(1.0), [(0, 1)], samples=10)


BAD = {
    "delta": [-1, -1e-12, 1, 1.5, math.nan, math.inf, "x", None, True],
    "confidence": [0, 1, 2, -0.5, math.nan, 1 + 1e-9, "sure", None],
    "samples": [0, -5, 199, 1e3, "many", True, None],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_arguments_out_of_range_are_refused(name, value):
    given = {"samples": 1000, name: value}
    with pytest.raises(InputError, match=name):
        lower_bound(respond(1.0), [(0, 1)], **given)
    with pytest.raises(InputError, match=name):
        power(epsilon=1.0, **given)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", -1), ("epsilon", math.nan), ("pairs", 0), ("chance", 0), ("chance", 1)],
)
def test_power_refuses_what_it_cannot_mean(name, value):
    with pytest.raises(InputError, match=name):
        power(**{"epsilon": 1.0, "samples": 1000, name: value})


@pytest.mark.parametrize("pairs", [[], None, 7, [0, 1], [(0,)], [(0, 1, 2)], ["ab"]])
def test_pairs_must_be_pairs(pairs):
    with pytest.raises(InputError, match="pair"):
        lower_bound(respond(1.0), pairs, samples=200)


def test_a_callable_must_fit_and_give_as_many_answers_as_asked():
    with pytest.raises(InputError, match="callable"):
        lower_bound(3, [(0, 1)], samples=200)
    with pytest.raises(InputError, match="signature"):
        lower_bound(lambda: 0, [(0, 1)], samples=200)
    for wrong in (
        lambda secret, size: [secret] * (size - 1),
        lambda secret, size: [],
        lambda secret, size: secret,
        lambda secret, size: "a" * size,
        lambda secret, size: np.float64(secret),
        lambda secret, size: np.array(secret),
    ):
        with pytest.raises(InputError, match="answers"):
            lower_bound(wrong, [(0, 1)], samples=200)


def test_one_answer_at_a_time_needs_no_wrapper():
    def mechanism(secret):
        return secret + discrete_laplace(scale=1)

    evidence = lower_bound(mechanism, [(0, 1)], samples=2_000, confidence=SURE)
    assert 0.3 < evidence.epsilon_at_least <= 1
    assert lower_bound(iter_draw, [(0, 1)], samples=200).epsilon_at_least > 1


def iter_draw(secret, size):
    return (secret for _ in range(size))


# --- a run that raises is an answer ---------------------------------------------------------------


def boom(text, kind=ValueError):
    raise kind(text)


FAILING = {
    "on one input": lambda secret: boom("no") if secret else 1,
    "another text": lambda secret: boom(f"no {secret}"),
    "another type": lambda secret: boom("no", KeyError if secret else IndexError),
    "a text that never repeats": lambda secret: (
        boom(f"{discrete_laplace(scale=10**9)}") if secret else discrete_laplace(scale=10**9)
    ),
    "a secret among noise in a text": lambda secret: boom(
        f"{discrete_laplace(scale=10**9)} of {secret}"
    ),
    "an exit code": lambda secret: boom(secret, SystemExit),
    "a text that cannot be made": lambda secret: boom(Mute()) if secret else 1,
    "a quarter of the time": lambda secret: boom("no") if secret and bernoulli("1/4") else 1,
}


class Mute:
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("given", "said"),
    [(itertools.count(), "more"), ([0] * 401, "more"), ([0] * 399, "399"), ([], "0")],
)
def test_another_number_of_answers_than_was_asked_for_is_refused(given, said):
    with pytest.raises(tulle.InputError, match=f"asked for 400 answers and gave {said}"):
        lower_bound(lambda secret, size: given, [(0, 1)], samples=400)


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("form", ["single", "bulk"])
def test_a_failure_that_tells_is_found(name, form):
    answer = FAILING[name]
    # A bulk callable that raises loses the whole batch.
    bulk = lambda secret, size: [answer(secret) for _ in range(size)]  # noqa: E731
    draw = answer if form == "single" else bulk
    evidence = lower_bound(draw, [(0, 1)], samples=600)
    assert evidence.epsilon_at_least > 0.7
    assert sum(evidence.raised) > 0


@pytest.mark.parametrize(
    "answer",
    [
        lambda secret: boom("no"),
        lambda secret: boom("no") if bernoulli("1/2") else 3,
        lambda secret: 1 / 0,
        lambda secret: np.linalg.inv(np.zeros((2, 2))),
    ],
)
def test_failing_alike_gives_nothing(answer):
    for draw in (answer, lambda secret, size: [answer(secret) for _ in range(size)]):
        evidence = lower_bound(draw, [(0, 1)], samples=400, confidence=SURE)
        assert evidence.epsilon_at_least == 0
        assert min(evidence.raised) > 50


def test_an_interrupt_is_not_an_answer():
    with pytest.raises(KeyboardInterrupt):
        lower_bound(lambda secret: boom("stop", KeyboardInterrupt), [(0, 1)], samples=200)


# --- answers of any type --------------------------------------------------------------------------


class Plain:
    """Neither hashable by value nor comparable."""

    def __init__(self, inside):
        self.inside = inside


class Unreadable:
    def __repr__(self):
        raise ValueError

    __str__ = __hash__ = __eq__ = __reduce_ex__ = __repr__


RING = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=4)
PATH = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=4)
CYCLE = []
CYCLE.append(CYCLE)

TELLING = [
    (1, 1.0),
    (1, True),
    (0.0, -0.0),
    (1.0, math.nan),
    (math.inf, -math.inf),
    (None, 0),
    (None, math.nan),
    (1j, 1),
    (10**400, 10**401),
    ("a", b"a"),
    ("", None),
    ((), []),
    ((1, (2, 3)), ((1, 2), 3)),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({1, 2}, {1, 3}),
    (np.zeros(2), np.zeros(3)),
    (np.zeros((1, 2)), np.zeros((2, 1))),
    (np.zeros(2), np.zeros(2, dtype=np.float32)),
    (np.array([0.0, math.nan]), np.array([0.0, 1.0])),
    (np.ma.masked_array([1.0, 2.0], [False, True]), np.ma.masked_array([1.0, 2.0])),
    (np.array(["x", None], dtype=object), np.array(["x", 1], dtype=object)),
    (np.datetime64("2020-01-01"), np.datetime64("2020-01-02")),
    (np.longdouble(1), np.longdouble(2)),
    (RING, PATH),
    (Plain(1), Plain(2)),
    (Plain(1), Unreadable()),
    (ValueError("a"), ValueError("b")),
    (lambda: 0, 0),
    (CYCLE, 0),
]


@pytest.mark.parametrize(("one", "other"), TELLING)
def test_answers_of_any_type_are_told_apart(one, other):
    shown = {0: one, 1: other}
    evidence = lower_bound(lambda secret: shown[secret], [(0, 1)], samples=200)
    assert evidence.epsilon_at_least > 1
    assert lower_bound(lambda s, size=1: shown[s], [(0, 1)], samples=200).epsilon_at_least > 1
    for same in (one, other):
        copies = lambda secret, same=same: copy.deepcopy(same) if same is not CYCLE else same  # noqa: E731
        if not isinstance(same, tulle.Graph | Unreadable):
            assert lower_bound(copies, [(0, 1)], samples=200).epsilon_at_least == 0
        assert lower_bound(lambda secret, s=same: s, [(0, 1)], samples=200).epsilon_at_least == 0


def test_every_nan_is_the_same_answer():
    evidence = lower_bound(lambda secret: float("nan"), [(0, 1)], samples=200)
    assert evidence.epsilon_at_least == 0
    arrays = lambda secret, size: np.full((size, 2), math.nan)  # noqa: E731
    assert lower_bound(arrays, [(0, 1)], samples=200).epsilon_at_least == 0


def test_nan_among_noise_is_found():
    def draw(secret, size):
        noise = discrete_laplace(scale=10**9, size=(size, 3)).astype(float)
        noise[:, 1] = math.nan if secret else noise[:, 1]
        return noise

    assert lower_bound(draw, [(0, 1)], samples=400).epsilon_at_least > 2


def test_infinite_answers_do_not_hide_the_finite_ones():
    def draw(secret, size):
        noise = discrete_laplace(scale=10**9, size=size) + 10**11 * secret
        return np.where(bernoulli("1/3", size=size), math.inf, noise)

    assert lower_bound(draw, [(0, 1)], samples=1000).epsilon_at_least > 1.5


def test_a_release_is_an_answer_and_its_debit_is_not(tmp_path):
    pair = [(RING, PATH)]
    honest = lambda graph: tulle.release(graph, tulle.edges(), unit="edge", epsilon=1.0)  # noqa: E731
    assert lower_bound(honest, pair, samples=400, confidence=SURE).epsilon_at_least <= 1
    exact = lambda graph: tulle.release(graph, tulle.edges(), unit="edge", epsilon=500.0)  # noqa: E731
    assert lower_bound(exact, pair, samples=400).epsilon_at_least > 2
