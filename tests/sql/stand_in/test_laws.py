"""Laws of the errors on made-up rows."""

from __future__ import annotations

import numpy as np

from tulle.core.error_law import ErrorLaw
from tulle.core.expression_error import SampledLaw, variance_of
from tulle.sql.stand_in.laws import StandInLaw


def test_the_variance_of_one_law_is_not_taken_for_that_of_another() -> None:
    """Laws without fields of their own are equal, and what is known of one holds for the other."""
    near, far = (StandInLaw(SampledLaw((size,)), np.full((1, 4), size)) for size in (1.0, 100.0))
    assert near != far
    assert variance_of(far) > 100 * variance_of(near) > 0
    unlike = StandInLaw.__eq__, StandInLaw.__hash__
    assert unlike == (object.__eq__, object.__hash__) != (ErrorLaw.__eq__, ErrorLaw.__hash__)
