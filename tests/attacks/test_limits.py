"""No mechanism gives an adversary more than the limits say, and some give exactly that."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tulle.attacks.limits import advantage_limit, belief_limits, group_privacy, success_limit
from tulle.attacks.report import AttackReport
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee

EPSILONS = st.floats(0.01, 5)


def random_channel(generator, values, outputs, epsilon, delta):
    """Return a made-up channel whose rows are (epsilon, delta)-close, as near the edge as it can.

    Rows of ratio exp(epsilon) or 1 before scaling, moved towards their mean until they fit, and
    with chance delta a row that tells everything.
    """
    rows = np.exp(epsilon * generator.integers(0, 2, size=(values, outputs)))
    rows /= rows.sum(axis=1, keepdims=True)
    mean = rows.mean(axis=0)
    share = 1.0
    while np.max(rows[:, None] / rows[None]) > math.exp(epsilon) * (1 + 1e-12):
        share *= 0.9
        rows = mean + share * (rows - mean)
    if not delta:
        return rows
    return np.hstack([(1 - delta) * rows, delta * np.eye(values)])


@settings(max_examples=150, deadline=None)
@given(
    st.integers(2, 5),
    st.integers(2, 6),
    EPSILONS,
    st.sampled_from([0.0, 0.01, 0.3]),
    st.integers(0, 2**32 - 1),
)
def test_no_private_channel_beats_the_limits(values, outputs, epsilon, delta, seed):
    generator = np.random.default_rng(seed)
    channel = random_channel(generator, values, outputs, epsilon, delta)
    prior = generator.dirichlet(np.ones(values))
    guarantee = Guarantee.of("participant", epsilon=repr(epsilon), delta=repr(delta))
    joint = prior[:, None] * channel
    success = joint.max(axis=0).sum()
    assert success <= success_limit(float(prior.max()), guarantee) + 1e-9
    if values == 2:
        assert success <= success_limit(float(prior.max()), guarantee, values=2) + 1e-9
        assert np.abs(channel[0] - channel[1]).sum() / 2 <= advantage_limit(guarantee) + 1e-9
    if not delta:
        beliefs = joint / joint.sum(axis=0)
        for value in range(values):
            low, high = belief_limits(float(prior[value]), guarantee)
            assert beliefs[value].min() >= low - 1e-9
            assert beliefs[value].max() <= high + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("values", [2, 3, 7])
def test_randomized_response_attains_the_limits(epsilon, values):
    guarantee = Guarantee.of("client", epsilon=epsilon)
    keep = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    assert success_limit(repr(1 / values), guarantee) == pytest.approx(keep, rel=1e-12)
    assert belief_limits(repr(1 / values), guarantee)[1] == pytest.approx(keep, rel=1e-12)
    if values == 2:
        assert advantage_limit(guarantee) == pytest.approx(2 * keep - 1)


def test_units_beyond_one_cost_group_privacy():
    pure = Guarantee.of("participant", epsilon=1)
    assert group_privacy(pure, 2)[0] == pytest.approx(2)
    loose = Guarantee.of("participant", epsilon=1, delta="0.001")
    assert group_privacy(loose, 2)[1] == pytest.approx(0.001 * (1 + math.e))
    assert success_limit("0.5", pure, units=2) == pytest.approx(1 / (1 + math.exp(-2)))


def test_a_guarantee_that_does_not_hold_limits_nothing():
    void = Guarantee.of("edge", epsilon=1).void()
    assert belief_limits("0.5", void) == (0.0, 1.0)
    assert success_limit("0.5", void) == 1.0
    assert advantage_limit(void) == 1.0


def test_a_concentrated_guarantee_is_converted():
    assert success_limit("0.5", Guarantee.of("edge", rho="0.001")) < 0.65


def test_certainty_stays_certainty():
    guarantee = Guarantee.of("edge", epsilon=1)
    assert belief_limits(0, guarantee) == (0.0, 0.0)
    assert belief_limits(1, guarantee) == (1.0, 1.0)
    with pytest.raises(InputError, match="before must be a probability"):
        belief_limits(2, guarantee)


def report(**changes):
    fields = {
        "attack": "toy",
        "secret": "a bit",
        "knows": (),
        "measure": "success",
        "before": 0.5,
        "after": 0.8,
        "interval": (0.75, 0.85),
        "level": 0.95,
        "limits": (0.0, 0.73),
        "reason": "a test",
        "guarantee": Guarantee.of("edge", epsilon=1),
    }
    return AttackReport(**(fields | changes))


def test_a_report_says_when_the_guarantee_must_be_wrong():
    assert not report().within
    assert report(interval=(0.7, 0.9)).within
    assert report(wide=(0.7, 0.9)).within
    assert report(limits=(0.0, 1.0)).within
    assert not report(limits=(0.0, 1.0)).bounded


def test_a_report_shows_and_writes_itself():
    shown = repr(report())
    assert "a gain of +0.23" in shown
    assert "0.75 to 0.85 at 95 %" in shown
    assert "<table>" in report()._repr_html_()
    assert report().to_json()["most_gain"] == pytest.approx(0.23)
    assert "published as it is" in repr(report(guarantee=None))
    assert "can be replayed" in repr(
        report(guarantee=Guarantee.of("edge", epsilon=1).void(), limits=(0.0, 1.0))
    )


@pytest.mark.parametrize("changes", [{"after": 1.2}, {"interval": (0.9, 0.8)}])
def test_a_report_refuses_what_is_not_a_probability(changes):
    with pytest.raises(InputError):
        report(**changes)
