"""Pairs of attributes that report by support: unbiased over all reports, intervals that cover."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tulle.core.errors import InputError
from tulle.surveys import (
    Collection,
    LocalHashing,
    RandomizedResponse,
    Reports,
    Survey,
    UnaryEncoding,
    perturb,
)

KINDS = {
    "response": lambda k: RandomizedResponse.of(k, epsilon=1),
    "unary": lambda k: UnaryEncoding.of(k, epsilon=1),
    "hash": lambda k: LocalHashing.of(k, epsilon=1, buckets=2),
}
PAIRS = [("unary", "response"), ("hash", "response"), ("unary", "hash"), ("hash", "hash")]


def form_of(first, second, sizes=(3, 2)):
    designs = {"a": KINDS[first](sizes[0]), "b": KINDS[second](sizes[1])}
    return Survey({"a": sizes[0], "b": sizes[1]}).form(designs=designs)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_tables_and_variances_are_unbiased_over_all_reports(first, second):
    """One client, every report it could send, weighted by its exact chance."""
    form = form_of(first, second)
    for a, b in product(range(3), range(2)):
        mean = np.zeros((3, 2))
        square = np.zeros((3, 2))
        claimed = np.zeros((3, 2))
        total = Fraction(0)
        for (one, p), (other, q) in product(
            form.design("a").law(a).items(), form.design("b").law(b).items()
        ):
            collection = Collection(form, tables=[("a", "b")])
            collection.add({"a": one, "b": other})
            value = collection.proportions("a", "b").value
            mean += float(p * q) * value
            square += float(p * q) * value**2
            # Before it is cut at zero, the estimate of the variance is the square minus the share.
            pair = collection._pairs["a", "b"]
            claimed += float(p * q) * (pair._transform(_squared) - value)
            total += p * q
        assert total == 1
        expected = np.zeros((3, 2))
        expected[a, b] = 1
        assert mean == pytest.approx(expected, abs=1e-9)
        assert claimed == pytest.approx(square - mean**2, abs=1e-9)


def _squared(design):
    from tulle.surveys.pair_counts import _unbias_squared

    return _unbias_squared(design)


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("target", ["respondents", "population"])
def test_intervals_cover(first, second, target):
    form = form_of(first, second, sizes=(4, 3))
    generator = np.random.default_rng(4)
    joint = generator.dirichlet(np.ones(12))
    fixed = generator.choice(12, p=joint, size=1500)
    hits, runs = 0, 150
    for _ in range(runs):
        drawn = fixed if target == "respondents" else generator.choice(12, p=joint, size=1500)
        truth = np.bincount(fixed, minlength=12) / 1500 if target == "respondents" else joint
        collection = Collection(form, tables=[("a", "b")])
        collection.add(perturb(form, {"a": drawn // 3, "b": drawn % 3}))
        low, high = collection.proportions("a", "b", target=target).interval(0.9)
        truth = truth.reshape(4, 3)
        hits += bool(((low <= truth) & (truth <= high)).all())
    assert stats.binom.cdf(hits, runs, 0.9) > 1e-6


def test_order_portions_and_merging():
    form = form_of("unary", "hash", sizes=(5, 4))
    codes = {"a": np.arange(22_500) % 5, "b": np.arange(22_500) % 4}
    reports = perturb(form, codes)
    whole = Collection(form, tables=[("a", "b")])
    whole.add(reports)
    parts = [Collection(form, tables=[("a", "b")]) for _ in range(2)]
    for part, chosen in zip(parts, (slice(0, 10_000), slice(10_000, None)), strict=True):
        part.add(Reports(form, {name: column[chosen] for name, column in reports.columns.items()}))
    parts[0].merge(parts[1])
    value = whole.proportions("a", "b").value
    assert parts[0].proportions("a", "b").value == pytest.approx(value)
    assert whole.proportions("b", "a").value == pytest.approx(value.T)
    # The margins of the table are the shares of either attribute alone, but for noise of about .04.
    assert value.sum(axis=1) == pytest.approx(whole.proportions("a").value, abs=0.3)
    projected = whole.proportions("a", "b", method="projected").value
    assert projected.shape == (5, 4)
    assert projected.sum() == pytest.approx(1)
    assert projected.min() >= 0


def test_hashes_of_all_categories_are_the_clients():
    from tulle.surveys.pair_counts import _hashed

    design = LocalHashing.of(11, epsilon=1, buckets=3)
    column = np.arange(design.rows * design.buckets)
    found = _hashed(design, column)
    for code in column.tolist():
        row, bucket = divmod(code, design.buckets)
        assert found[code].tolist() == [design.bucket(row, x) == bucket for x in range(11)]


def test_what_was_not_counted_is_refused():
    form = form_of("unary", "hash")
    collection = Collection(form)
    collection.add(perturb(form, {"a": [0, 1], "b": [0, 1]}))
    with pytest.raises(InputError, match="was not counted as a table"):
        collection.proportions("a", "b")
    paired = Collection(form, tables=[("a", "b")])
    with pytest.raises(InputError, match="no responses"):
        paired.proportions("a", "b")
    paired.add(perturb(form, {"a": [0], "b": [1]}))
    with pytest.raises(InputError, match="no likelihood"):
        paired.proportions("a", "b", method="likelihood")
    with pytest.raises(InputError, match="at least two responses"):
        paired.proportions("a", "b", target="population")
    with pytest.raises(InputError, match="same form and tables"):
        paired.merge(collection)
    large = Survey({"a": 5000, "b": 5000}).form(epsilon=2)
    with pytest.raises(InputError, match="too many cells"):
        Collection(large, tables=[("a", "b")])
