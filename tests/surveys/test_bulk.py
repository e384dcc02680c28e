"""Bulk perturbation has the designs' laws; counting and the fast transforms are exact."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from baselines.laplace_and_round import laplace_and_round
from tests.surveys.survey_helpers import SIGNIFICANCE, chi_square_p

from tulle import Release
from tulle.core.errors import InputError
from tulle.noise import SeededSource
from tulle.surveys import (
    Collection,
    DesignMatrix,
    LocalHashing,
    RandomizedResponse,
    Reports,
    Survey,
    UnaryEncoding,
    perturb,
)
from tulle.surveys.bulk import encode
from tulle.surveys.designs import Design

RUNS = 40_000

DESIGNS: list[Design] = [
    RandomizedResponse.of(2, epsilon=1),
    RandomizedResponse.of(5, epsilon=0.5),
    laplace_and_round(4, epsilon=2),
    DesignMatrix.of([["1/2", "1/4", "1/8"], ["1/4", "1/2", "3/8"], ["1/4", "1/4", "1/2"]]),
    DesignMatrix.of([["2/3", "1/7"], ["1/3", "6/7"]]),
    UnaryEncoding.of(4, epsilon=1),
    LocalHashing.of(4, epsilon=1, buckets=2),
    LocalHashing.of(5, epsilon=1.5),
]


def bulk_counts(design: Design, answer: int) -> dict[object, int]:
    form = Survey({"a": design.categories}).form(designs={"a": design})
    reports = perturb(form, {"a": np.full(RUNS, answer)}).columns["a"]
    counts: dict[object, int] = {}
    if isinstance(design, UnaryEncoding):
        rows = np.unpackbits(reports, axis=1, count=design.categories)
        listed: list[object] = ["".join(map(str, row)) for row in rows.tolist()]
    elif isinstance(design, LocalHashing):
        listed = [divmod(code, design.buckets) for code in reports.tolist()]
    else:
        listed = reports.tolist()
    for report in listed:
        counts[report] = counts.get(report, 0) + 1
    return counts


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: f"{d.name} {d.categories}")
def test_bulk_reports_have_the_exact_law(design: Design) -> None:
    """A wrong law by 5 percentage points at one report is seen with probability > 0.999."""
    for answer in range(design.categories):
        counts = bulk_counts(design, answer)
        assert chi_square_p(counts, design.law(answer)) > SIGNIFICANCE
        other = (answer + 1) % design.categories
        assert chi_square_p(counts, design.law(other)) < SIGNIFICANCE


def test_bulk_reports_of_different_clients_are_not_mixed_up() -> None:
    form = Survey({"a": 3}).form(epsilon=40)
    codes = np.arange(300_001) % 3
    assert (perturb(form, {"a": codes}).columns["a"] == codes).all()
    rounded = Survey({"a": 3}).form(designs={"a": laplace_and_round(3, epsilon=64)})
    assert (perturb(rounded, {"a": codes}).columns["a"] == codes).mean() > 0.9999


def test_portions_and_merging_give_the_same_counts() -> None:
    form = Survey({"a": 3, "b": 2, "c": 200, "d": 40}).form(
        epsilon=4, designs={"d": UnaryEncoding.of(40, epsilon=1)}
    )
    generator = np.random.default_rng(1)
    codes = {a.name: generator.integers(0, a.size, 5000) for a in form.survey}
    reports = perturb(form, codes)
    whole, parts, rest = Collection(form), Collection(form), Collection(form)
    whole.add(reports)
    for start in range(0, 5000, 700):
        part = {name: column[start : start + 700] for name, column in reports.columns.items()}
        (parts if start < 2000 else rest).add(Reports(form, part))
    parts.merge(rest)
    assert parts.responses == 5000
    for names in (("a",), ("b", "a"), ("c",), ("d",)):
        one, other = whole.proportions(*names).value, parts.proportions(*names).value
        assert (one == other).all()
    assert np.allclose(whole.frequencies("a", "b").counts, whole.frequencies("b", "a").counts.T)


def test_releases_carry_guarantee_and_survive_json() -> None:
    form = Survey({"a": 3, "b": 2}, name="x").form(epsilon=2)
    collection = Collection(form)
    collection.add(perturb(form, {"a": np.arange(900) % 3, "b": np.arange(900) % 2}))
    for made in (collection.proportions("a", "b"), collection.entropy("a")):
        assert made.guarantee.holds
        assert made.guarantee.epsilon == 2
        assert made.guarantee.unit.name == "client"
        assert made.debit is None
        assert any("before they left" in a for a in made.guarantee.assumptions)
        again = Release.from_json(json.dumps(made.to_json()))
        assert np.allclose(again.interval(0.9), made.interval(0.9))
        assert again.guarantee == made.guarantee
    seeded = Collection(form)
    seeded.add(perturb(form, {"a": [0, 1], "b": [0, 1]}, source=SeededSource(1)))
    assert not seeded.proportions("a").guarantee.holds


def test_bad_bulk_input_is_refused_without_values() -> None:
    survey = Survey({"a": 3})
    form = survey.form(epsilon=1)
    for column in ([0, 3], [-1, 0], [0.5], ["x"], [[0]], [True, False]):
        with pytest.raises(InputError, match="'a'"):
            perturb(form, {"a": column})
    with pytest.raises(InputError):
        perturb(form, {"b": [0]})
    with pytest.raises(InputError) as refused:
        encode(Survey({"a": ["x", "y"]}), {"a": ["x", "secret"]})
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="not ones that its design can give"):
        Reports(form, {"a": np.array([5])})
    with pytest.raises(InputError, match="another form"):
        Collection(form).add(Reports(survey.form(epsilon=2), {"a": np.array([1])}))


def test_zero_responses_are_refused() -> None:
    form = Survey({"a": 3, "b": 2, "c": 10**5}).form(epsilon=3)
    empty = Collection(form)
    empty.add(perturb(form, {"a": [], "b": [], "c": []}))
    asked = (
        lambda: empty.proportions("a"),
        lambda: empty.proportions("c"),
        lambda: empty.entropy("a"),
        lambda: empty.chi_square("a", "b"),
    )
    for ask in asked:
        with pytest.raises(InputError, match="no responses"):
            ask()
    collection = Collection(form, tables=[["a"]])
    collection.add(perturb(form, {"a": [0], "b": [0], "c": [0]}))
    with pytest.raises(InputError, match="was not counted as a table"):
        collection.chi_square("a", "b")
    with pytest.raises(InputError, match="counted alone or in pairs"):
        Collection(form, tables=[["a", "b", "c"]])
    with pytest.raises(InputError, match="at least two responses"):
        collection.proportions("a", target="population")


def test_huge_epsilons_cost_no_time_and_stay_below_what_was_asked() -> None:
    design = RandomizedResponse.of(3, epsilon=10**6)
    assert 0 < design.other < Fraction(1, 10**20)
