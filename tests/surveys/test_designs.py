"""Every design's exact output law, all answers against all, and the client's sampler by tapes."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from baselines.laplace_and_round import laplace_and_round

from tulle.audit.surveys.kind import Laws, is_private, joint, laws_of, worst_ratio
from tulle.core.errors import InputError
from tulle.noise import TapeExhausted, TapeSource, uniform_below
from tulle.surveys import (
    DesignMatrix,
    Form,
    LocalHashing,
    RandomizedResponse,
    Survey,
    UnaryEncoding,
    plan_design,
)
from tulle.surveys.designs import PRECISION, Design
from tulle.surveys.exact import epsilon_of_ratio, ratio_is_within
from tulle.surveys.form import design_from_json

EPSILONS = ["1/1000", "0.1", "0.5", "1", "2", "5", "20"]


def designs(epsilon: str) -> list[Design]:
    found: list[Design] = []
    for k in (2, 3, 6, 7):
        found += [
            RandomizedResponse.of(k, epsilon=epsilon),
            laplace_and_round(k, epsilon=epsilon),
            UnaryEncoding.of(k, epsilon=epsilon),
            LocalHashing.of(k, epsilon=epsilon),
            LocalHashing.of(k, epsilon=epsilon, buckets=3),
        ]
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_law_keeps_epsilon_exactly(epsilon: str) -> None:
    for design in designs(epsilon):
        if design.categories > 6 and isinstance(design, LocalHashing) and design.buckets > 7:
            continue  # too many reports to list quickly; smaller ones show the same law
        laws = laws_of(design)
        assert is_private(laws), design
        assert worst_ratio(laws) == design.worst_ratio()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_optimal_designs_waste_nothing(epsilon: str) -> None:
    """At (1 - 2**-50)·epsilon they must fail the same check: the rounding is that small."""
    less = Fraction(epsilon) * (1 - Fraction(1, 2**50))
    for design in designs(epsilon):
        if not isinstance(design, DesignMatrix):
            assert not ratio_is_within(design.worst_ratio(), less)


def test_results_9_and_11() -> None:
    from math import exp

    for k in (2, 3, 6, 50):
        design = RandomizedResponse.of(k, epsilon=1.5)
        assert float(design.same) == pytest.approx(exp(1.5) / (exp(1.5) + k - 1), rel=1e-15)
        assert float(design.other) == pytest.approx(1 / (exp(1.5) + k - 1), rel=1e-15)


def test_laplace_and_round_is_the_published_matrix() -> None:
    """Results 10 and 12: Laplace probabilities between the half-way points."""
    from scipy.stats import laplace

    for k, epsilon in ((2, 1.0), (3, 0.7), (6, 5.0)):
        design = laplace_and_round(k, epsilon=epsilon)
        scale = (k - 1) / epsilon
        for v in range(k):
            edges = [laplace.cdf(u + 0.5, loc=v, scale=scale) for u in range(k - 1)]
            expected = [b - a for a, b in zip([0.0, *edges], [*edges, 1.0], strict=True)]
            column = [float(design.probability(u, v)) for u in range(k)]
            assert column == pytest.approx(expected, abs=1e-14)


def test_randomized_response_keeps_more_than_laplace() -> None:
    """Theorem 11: a larger diagonal at the same epsilon, in exact fractions."""
    for k in (2, 3, 6, 20):
        for epsilon in EPSILONS:
            kept = k * RandomizedResponse.of(k, epsilon=epsilon).same
            rounded = laplace_and_round(k, epsilon=epsilon)
            assert kept > sum(rounded.probability(v, v) for v in range(k))


# --- the sampler ------------------------------------------------------------------------------

SMALL = [
    RandomizedResponse(3, Fraction(1, 6), Fraction(2)),
    RandomizedResponse(2, Fraction(1, 3), Fraction(1)),
    DesignMatrix.of([["1/2", "1/4", "1/8"], ["1/4", "1/2", "3/8"], ["1/4", "1/4", "1/2"]]),
    UnaryEncoding(2, Fraction(1, 4), Fraction(2)),
    LocalHashing(4, 2, Fraction(1, 4), Fraction(2)),
    LocalHashing(3, 3, Fraction(1, 4), Fraction(2)),
]


def tape_law(design: Design, answer: int, length: int) -> tuple[dict[object, Fraction], Fraction]:
    """Drive the client's sampler with all bit tapes; return the masses and what stays open."""
    masses: dict[object, Fraction] = {}
    open_mass = Fraction(0)
    tapes = [""]
    while tapes:
        tape = tapes.pop()
        source = TapeSource(tape)
        try:
            report = design.sample(answer, lambda b, s=source: uniform_below(b, source=s))
        except TapeExhausted:
            if len(tape) == length:
                open_mass += Fraction(1, 2**length)
            else:
                tapes += [tape + "0", tape + "1"]
            continue
        masses[report] = masses.get(report, Fraction(0)) + Fraction(1, 2 ** len(tape))
    return masses, open_mass


@pytest.mark.parametrize("design", SMALL, ids=lambda d: f"{d.name} {d.categories}")
def test_the_client_draws_exactly_from_the_law(design: Design) -> None:
    for answer in range(design.categories):
        masses, left = tape_law(design, answer, 13)
        law = design.law(answer)
        assert set(masses) <= set(law)
        for report, chance in law.items():
            # Each tape that decides adds to its report; the rest is what rejection leaves open.
            assert masses.get(report, 0) <= chance <= masses.get(report, 0) + left
        assert left < Fraction(1, 20)


def test_the_client_side_is_plain_python() -> None:
    import ast

    import tulle.surveys

    folder = Path(tulle.surveys.__file__).parent
    for name in ("client", "account", "links_client", "designs", "large", "exact"):
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import):
                assert not any(a.name.startswith(("numpy", "scipy")) for a in node.names), name
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith(("numpy", "scipy")), name
    assert "tulle.surveys" in sys.modules


# --- several attributes -----------------------------------------------------------------------


def test_epsilons_of_attributes_add_up_exactly() -> None:
    form = Survey({"a": 2, "b": 3}).form(epsilon={"a": "1/2", "b": 1})
    first, second = form.designs
    people = [(x, y) for x in range(2) for y in range(3)]
    laws = Laws(
        form.epsilon,
        {p: joint(first.law(p[0]), second.law(p[1])) for p in people},
        list(combinations(people, 2)),
    )
    assert is_private(laws)
    assert worst_ratio(laws) == first.worst_ratio() * second.worst_ratio()
    # The twin that claims only one attribute's epsilon is caught.
    assert not is_private(replace(laws, epsilon=Fraction(1)))


# --- broken twins -----------------------------------------------------------------------------


def test_half_the_noise_is_caught() -> None:
    for k in (2, 3, 6):
        real = RandomizedResponse.of(k, epsilon=1)
        twin = Laws(
            real.epsilon,
            {
                v: {u: real.other / 2 if u != v else 1 - (k - 1) * real.other / 2 for u in range(k)}
                for v in range(k)
            },
            list(combinations(range(k), 2)),
        )
        assert is_private(laws_of(real))
        assert not is_private(twin)


def test_one_unflipped_bit_is_caught() -> None:
    """Unary encoding whose last bit is sent as it is."""
    real = UnaryEncoding.of(3, epsilon=1)
    laws = {}
    for answer in range(3):
        law: dict[object, Fraction] = {}
        for report, chance in real.law(answer).items():
            assert isinstance(report, str)
            sent = report[:-1] + ("1" if answer == 2 else "0")
            law[sent] = law.get(sent, Fraction(0)) + chance
        laws[answer] = law
    assert is_private(laws_of(real))
    assert not is_private(Laws(real.epsilon, laws, list(combinations(range(3), 2))))


def test_probabilities_rounded_to_nearest_are_caught_somewhere() -> None:
    """Rounding inwards breaks epsilon by little; the exact check sees it all the same."""
    real = RandomizedResponse.of(3, epsilon=1)
    nudge = Fraction(1, 2 ** (PRECISION + 40))
    lower = real.other * (1 - Fraction(1, 2 ** (PRECISION - 2))) - nudge
    assert not ratio_is_within((1 - 2 * lower) / lower, real.epsilon)
    with pytest.raises(InputError, match="not private"):
        RandomizedResponse(3, lower, real.epsilon)


def test_a_hash_that_is_not_randomized_is_caught() -> None:
    real = LocalHashing.of(4, epsilon=1, buckets=2)
    laws = {
        x: {(a, real.bucket(a, x)): Fraction(1, real.rows) for a in range(real.rows)}
        for x in range(4)
    }
    assert not is_private(Laws(real.epsilon, laws, list(combinations(range(4), 2))))


# --- hashing, exact ---------------------------------------------------------------------------


@pytest.mark.parametrize(("categories", "buckets"), [(4, 2), (5, 2), (9, 3), (7, 3), (25, 5)])
def test_two_categories_collide_for_exactly_one_function_in_g(
    categories: int, buckets: int
) -> None:
    design = LocalHashing.of(categories, epsilon=1, buckets=buckets)
    for x, y in combinations(range(categories), 2):
        equal = sum(design.bucket(a, x) == design.bucket(a, y) for a in range(design.rows))
        assert equal * buckets == design.rows


# --- user matrices, planner, bad input --------------------------------------------------------


def test_the_epsilon_of_a_matrix_is_tight_and_never_too_small() -> None:
    design = DesignMatrix.of([["1/2", "1/3"], ["1/2", "2/3"]])
    assert design.worst_ratio() == Fraction(3, 2)
    assert ratio_is_within(Fraction(3, 2), design.epsilon)
    assert not ratio_is_within(Fraction(3, 2), design.epsilon * (1 - Fraction(1, 2**51)))
    for ratio in (Fraction(3), Fraction(10**30, 7), 1 + Fraction(1, 10**30)):
        assert ratio_is_within(ratio, epsilon_of_ratio(ratio))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, 0.5], [0.4, 0.5]], "sums to 0.9"),
        ([["1/2", "1/2"], ["1/2", "1/2"]], "singular"),
        ([["1/4", "1/2", "3/8"], ["1/2", "1/4", "3/8"], ["1/4", "1/4", "1/4"]], "singular"),
        ([[1, 0], [0, 1]], "no epsilon holds"),
        ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], "square"),
        ([[1.5, 0.5], [-0.5, 0.5]], "negative|no epsilon|ratio"),
        ([[float("nan"), 0.5], [0.5, 0.5]], "finite"),
        ([["1/3"]], "square|two rows"),
    ],
)
def test_bad_matrices_are_refused(rows: list[list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DesignMatrix.of(rows)  # type: ignore[arg-type]


def test_a_matrix_that_breaks_the_epsilon_asked_for_is_refused() -> None:
    with pytest.raises(InputError, match="not private at epsilon = 1"):
        DesignMatrix.of([["3/4", "1/4"], ["1/4", "3/4"]], epsilon=1)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "x", None, True])
def test_bad_epsilons_are_refused_everywhere(epsilon: object) -> None:
    makers = (RandomizedResponse.of, UnaryEncoding.of, LocalHashing.of, laplace_and_round)
    for make in makers:
        with pytest.raises(InputError):
            make(3, epsilon=epsilon)  # type: ignore[operator]
    with pytest.raises(InputError):
        Survey({"a": 3}).form(epsilon=epsilon)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        plan_design(3, epsilon=epsilon)  # type: ignore[arg-type]


def test_the_planner_changes_near_three_times_the_exponential_plus_two() -> None:
    from math import exp

    for epsilon in (0.5, 1.0, 2.0):
        crossing = 3 * exp(epsilon) + 2
        below, above = int(crossing - 1), int(crossing + 2)
        assert plan_design(below, epsilon=epsilon).chosen.name == "randomized response"
        assert plan_design(above, epsilon=epsilon).chosen.name != "randomized response"
    assert plan_design(10**6, epsilon=1).chosen.name == "local hashing"


def test_hashing_is_within_a_tenth_of_the_optimum() -> None:
    from math import exp

    for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0, 4.0):
        best = 4 * exp(epsilon) / (exp(epsilon) - 1) ** 2
        assert LocalHashing.of(10**4, epsilon=epsilon).variance() < 1.1 * best
        assert UnaryEncoding.of(10, epsilon=epsilon).variance() == pytest.approx(best)


def test_designs_survive_json_and_are_checked_on_the_way_in() -> None:
    for design in designs("1"):
        assert design_from_json(design.to_json()) == design
    forged = RandomizedResponse.of(2, epsilon=3).to_json() | {"epsilon": "1"}
    with pytest.raises(InputError, match="not private"):
        design_from_json(forged)
    with pytest.raises(InputError):
        design_from_json({"design": "randomized response"})
    with pytest.raises(InputError):
        Form.from_json({"format": 1})


@pytest.mark.parametrize(
    "attributes",
    [{}, {"a": ["x"]}, {"a": ["x", "x"]}, {"a": "xy"}, {"a": 1}, {"": 2}, {"a": [True, False]}, 3],
)
def test_bad_surveys_are_refused(attributes: object) -> None:
    with pytest.raises(InputError):
        Survey(attributes)  # type: ignore[arg-type]


def test_forms_say_what_is_missing() -> None:
    survey = Survey({"a": 2, "b": 3})
    with pytest.raises(InputError, match="'b' must be given"):
        survey.form(epsilon={"a": 1})
    with pytest.raises(InputError, match="no attribute 'c'"):
        survey.form(epsilon={"c": 1})
    with pytest.raises(InputError, match="no design 'magic'"):
        survey.form(epsilon=1, designs={"a": "magic"})
    with pytest.raises(InputError, match="own epsilon"):
        survey.form(epsilon={"a": 1, "b": 1}, designs={"a": RandomizedResponse.of(2, epsilon=1)})
    with pytest.raises(InputError, match="for 5 categories"):
        survey.form(epsilon=2, designs={"a": RandomizedResponse.of(5, epsilon=1)})
    given = survey.form(epsilon=2, designs={"a": RandomizedResponse.of(2, epsilon="1/2")})
    assert given.epsilon == 2
    assert given.design("b").epsilon == Fraction(3, 2)
