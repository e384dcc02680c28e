"""What the noise did to the coefficients of a released model. Costs no privacy."""

from __future__ import annotations

import numpy as np

from tulle.core.arrays import Floats
from tulle.core.error_law import law_from_json
from tulle.core.errors import InputError, NoIntervalError
from tulle.core.public import public
from tulle.core.release import Release

NOISE_LAW = "noise_law"
"""Where a release keeps the law of its noise when that is not the law of its whole error."""


@public()
def noise_interval(release: Release, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return where the coefficients would be if the same loss of the same people had no noise.

    For a linear model that is the interval of the release: least squares is the loss. For a
    logistic model by ``functional`` or ``adassp`` it is about the loss that they minimise, the
    logistic one to second order: its coefficients have the same signs, as a rule, and are smaller
    than those of the logistic loss itself, the more so the stronger the model. That difference is
    not noise, no epsilon makes it vanish, and this interval leaves it out; a plan on a public
    stand-in (``like=``) predicts both together. As every interval here it is about the people in
    the table, not about those who might have been in it.

    Error:
        To first order in the noise, all coefficients at once. Where noise drowned a direction
        nothing is known, and the ends are beyond any number of use.

    Raises:
        InputError: when the release is not one of a regression.
        NoIntervalError: for objective perturbation, where the curvature of the loss, through
            which the noise is seen, is not published.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table(
        ...     {"age": list(range(20, 80)) * 50, "ill": [0] * 1500 + [1] * 1500},
        ...     bounds={"age": (18, 90)}, classes={"ill": [0, 1]})
        >>> r = tulle.release(people, tulle.models.logistic("ill"), unit="row", epsilon=5.0,
        ...                   mechanism="functional")
        >>> low, high = noise_interval(r)
        >>> bool((low < r.value).all() and (r.value < high).all())
        True
    """
    if "model" not in release.parameters:
        raise InputError(f"This release of {release.query} is not a regression model.")
    law = release.error or law_from_json(release.parameters.get(NOISE_LAW))
    if law is None:
        raise NoIntervalError(
            f"Mechanism {release.mechanism!r} does not publish the curvature through which its "
            "noise reaches the coefficients. Plan on a public stand-in (like=) to predict it, or "
            "use mechanism='functional' or 'adassp'."
        )
    low, high = law.interval(np.asarray(release.value), level)
    return np.asarray(low), np.asarray(high)
