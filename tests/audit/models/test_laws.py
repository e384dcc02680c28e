"""Closed forms of noisy sums of products, and of a tilted logistic loss with a few features."""

from collections import Counter
from fractions import Fraction

import pytest

from tulle.audit.engine.laws import excess
from tulle.audit.models.laws import Tilted


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_two_features_of_which_one_is_always_zero_are_as_one(noise):
    """Sums over the plane against those over the line: the noise of the second tells nothing."""

    def law(count, features):
        people = tuple((row[:features], y) for row, y in rows[:count])
        numbers = map(Fraction, ("1/2", "1", "1", "1", "1/100", "1/1000"))
        return Tilted(noise, people, features, *numbers, 0.5)

    rows = [((1.0, 0.0), True), ((-1.0, 0.0), False)]
    plane, line = ((law(2, features), law(1, features)) for features in (2, 1))
    for epsilon in (0.0, 0.3, 1.0):
        found, exact = (excess(*one.losses(other), epsilon) for one, other in (plane, line))
        assert found == pytest.approx(exact, abs=2e-3)
    # The plane is looked at in fewer places, so that the worst of them is nearly the worst.
    assert line[0].loss(line[1]) - 0.1 <= plane[0].loss(plane[1]) <= line[0].loss(line[1]) + 1e-9
    first = Counter()
    for place, mass in zip(*plane[0].points(1e-6), strict=True):
        first[place[:1]] += mass
    for place, mass in zip(*line[0].points(1e-6), strict=True):
        assert first[place] == pytest.approx(mass, abs=2e-3)
