"""Draws compared with the law that describes them."""

from __future__ import annotations

from collections import Counter

from tulle.audit.engine.exact import chi_square


def test_chi_square_rejects_on_both_sides():
    law = {0: 0.5, 1: 0.5}
    assert chi_square(Counter({0: 500, 1: 500}), law, 1000) > 0.9
    assert chi_square(Counter({0: 600, 1: 400}), law, 1000) < 1e-6
    assert chi_square(Counter({0: 450, 1: 450, 2: 100}), law, 1000) < 1e-6
    assert chi_square(Counter({0: 1000}), {0: 1.0}, 1000) == 1.0
    assert chi_square(Counter({0: 900, 1: 100}), {0: 1.0}, 1000) == 0.0


def test_one_rare_outcome_again_and_again_is_rejected():
    """As from a source with a seed; so is one that cannot occur, among many that can."""
    law = dict.fromkeys(range(1000), 0.001)
    assert chi_square(Counter(range(200)), law, 200) == 1.0
    assert chi_square(Counter({5: 200}), law, 200) == 0.0
    assert chi_square(Counter(range(150)) + Counter({-1: 50}), law, 200) == 0.0
