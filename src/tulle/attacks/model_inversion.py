"""Model inversion: guess a feature of a person from a released model and the person's outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.attacks.intervals import rate_interval
from tulle.attacks.limits import NO_LIMIT
from tulle.attacks.report import AttackReport, released
from tulle.core.arrays import Floats
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.release import Release
from tulle.core.validate import counted
from tulle.models.model import Model

LEVEL = 0.95
_NEEDS = "a release of tulle.models.linear(...) or tulle.models.logistic(...)"
_MOST_COMPLETIONS = 100_000

REASON = (
    "a model tells about people in general, also about those who took no part; the guarantee "
    "limits only what taking part adds"
)


@public()
def feature_inference(
    release: Release,
    *,
    sensitive: str,
    marginal: Mapping[Any, float],
    known: Mapping[str, Any],
    outcome: Any,
    confusion: Any = None,
    deviation: float | None = None,
    unknown: Mapping[str, Mapping[Any, float]] | None = None,
    truth: Any = None,
) -> AttackReport:
    """Guess the sensitive feature of targets by the largest posterior weight.

    The adversary has the released model, knows the other features (``known``: columns by name, one
    entry per target) and the ``outcome`` of each target, and the ``marginal`` probabilities of the
    sensitive feature. Features that are not known are listed in ``unknown`` with their marginals
    and summed out. The weight of a value is its marginal times the probability of the outcome
    given what the model predicts:

    * logistic: ``confusion[actual][predicted]``, how often each class is the actual one among those
      for which the model predicts a class (only the columns' proportions matter); without it the
      model's own probabilities are used, which tell more.
    * linear: a Gaussian around the prediction with this ``deviation``.

    With ``truth`` the figure is the rate of right guesses over all targets, and ``before`` that of
    always guessing the likeliest value. Without, both are the adversary's own expectation.

    Guarantee:
        None that limits this figure: the model is private about who took part, not about how
        features and outcomes go together. What taking part adds is limited: the probability of any
        guess changes by at most exp(epsilon) when the target's record is changed. If only the
        target's sensitive features change, by at most exp(``attribute_epsilon``), which is among
        the details when the release has it.

    Raises:
        InputError: when this is not a released model, or columns are missing or of wrong length.

    Reference:
        Fredrikson, Lantz, Jha, Lin, Page & Ristenpart, Privacy in pharmacogenetics, USENIX
        Security 2014; Wang, Si & Wu, 2015.

    Example:
        >>> import tulle
        >>> people = tulle.models.Table(
        ...     {"smokes": [0, 1] * 50, "ill": [0, 1] * 50}, bounds={},
        ...     classes={"smokes": [0, 1], "ill": [0, 1]})
        >>> r = tulle.release(people, tulle.models.logistic("ill"), unit="row", epsilon=10.0)
        >>> found = feature_inference(r, sensitive="smokes", marginal={0: 0.5, 1: 0.5}, known={},
        ...                         outcome=[0, 1], truth=[0, 1])
        >>> found.before, found.bounded
        (0.5, False)
    """
    attacked = released(release, _NEEDS)
    model = Model.of(attacked)
    values, prior = _distribution("marginal", marginal)
    targets = np.asarray(outcome)
    weights = np.column_stack(
        [
            chance
            * _likelihood(
                model,
                {**known, sensitive: value},
                targets,
                confusion,
                deviation,
                unknown or {},
            )
            for value, chance in zip(values, prior, strict=True)
        ]
    )
    # Where every value is impossible the prior decides.
    weights[weights.sum(axis=1) == 0] = prior
    beliefs = weights / weights.sum(axis=1, keepdims=True)
    guesses = beliefs.argmax(axis=1)
    likeliest = int(np.argmax(prior))
    if truth is None:
        before, after = float(prior[likeliest]), float(beliefs.max(axis=1).mean())
        interval, level = (after, after), 1.0
    else:
        right = _places(truth, values, len(targets))
        before = float(np.mean(right == likeliest))
        hits = int(np.sum(right == guesses))
        after, interval, level = hits / len(right), rate_interval(hits, len(right), LEVEL), LEVEL
    details: dict[str, Any] = {
        "guessed": [float(np.mean(guesses == place)) for place in range(len(values))],
    }
    if "attribute_epsilon" in attacked.parameters:
        details["attribute_epsilon"] = attacked.parameters["attribute_epsilon"]
    return AttackReport(
        attack="inversion",
        secret=f"{sensitive} of each target",
        knows=_knows(model, sensitive, unknown, confusion),
        measure="success",
        before=before,
        after=after,
        interval=interval,
        level=level,
        limits=NO_LIMIT,
        reason=REASON,
        guarantee=attacked.guarantee,
        trials=len(targets),
        details=details,
    )


@public()
def confusion_matrix(model: Model, features: Any, outcome: Any) -> list[list[int]]:
    """Count, on public or held-out people, actual classes (rows) by predicted ones (columns)."""
    assert model.classes is not None
    actual, guessed = np.asarray(outcome), model.predict(features)
    return [
        [int(np.sum((actual == a) & (guessed == b))) for b in model.classes] for a in model.classes
    ]


def _likelihood(
    model: Model,
    columns: Mapping[str, Any],
    targets: npt.NDArray[Any],
    confusion: Any,
    deviation: float | None,
    unknown: Mapping[str, Mapping[Any, float]],
) -> Floats:
    """Return the probability of each target's outcome, unknown features summed out."""
    listed = [_distribution(f"unknown[{name!r}]", law) for name, law in unknown.items()]
    if np.prod([len(values) for values, _ in listed]) > _MOST_COMPLETIONS:
        raise InputError("The unknown features have too many combinations to sum over.")
    total = np.zeros(len(targets))
    for choice in product(*(zip(values, law, strict=True) for values, law in listed)):
        filled = {**columns, **{n: v for n, (v, _) in zip(unknown, choice, strict=True)}}
        chance = float(np.prod([p for _, p in choice]))
        rows = model.design(_repeated(filled, len(targets)))
        total += chance * _outcome_chance(model, rows, targets, confusion, deviation)
    return total


def _repeated(columns: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Repeat single values for every target, and check the lengths of the others."""
    found = {}
    for name, values in columns.items():
        if isinstance(values, str) or np.ndim(values) == 0:
            found[name] = np.full(count, values)
            continue
        if len(values) != count:
            raise InputError(
                f"known has {counted(len(values), 'entry', 'entries')} of {name!r} for "
                f"{counted(count, 'target')}."
            )
        found[name] = values
    return found


def _outcome_chance(
    model: Model, rows: Floats, targets: npt.NDArray[Any], confusion: Any, deviation: float | None
) -> Floats:
    if model.kind == "linear":
        if deviation is None or not deviation > 0:
            raise InputError("A linear model needs deviation=, the spread of outcomes around it.")
        off = (targets.astype(np.float64) - model.decision(rows)) / deviation
        return np.asarray(np.exp(-(off**2) / 2))
    assert model.classes is not None
    actual = _places(targets, model.classes, len(targets))
    if confusion is None:
        second = model.probability(rows)
        return np.where(actual == 1, second, 1 - second)
    table = np.asarray(confusion, dtype=np.float64)
    if table.shape != (2, 2) or (table < 0).any():
        raise InputError("confusion must be a 2 x 2 table of counts: actual by predicted class.")
    # A class that is never predicted tells nothing.
    sums = table.sum(axis=0)
    shares = np.divide(table, sums, out=np.full((2, 2), 0.5), where=sums > 0)
    predicted = (model.decision(rows) > 0).astype(np.int64)
    return np.asarray(shares[actual, predicted])


def _distribution(name: str, law: Mapping[Any, float]) -> tuple[list[Any], Floats]:
    values, chances = list(law), np.array(list(law.values()), dtype=np.float64)
    if len(values) < 1 or not (chances >= 0).all() or not chances.sum() > 0:
        raise InputError(f"{name} must give a probability for each value.")
    return values, chances / chances.sum()


def _places(given: Any, values: Sequence[Any], count: int) -> npt.NDArray[np.int64]:
    listed = given.tolist() if hasattr(given, "tolist") else list(given)
    if len(listed) != count:
        raise InputError(
            f"There are {counted(count, 'target')} but {counted(len(listed), 'value')}."
        )
    known = {value: place for place, value in enumerate(values)}
    try:
        return np.array([known[value] for value in listed], dtype=np.int64)
    except KeyError:
        raise_alone(InputError("A value is not among those that the adversary considers."))


def _knows(
    model: Model, sensitive: str, unknown: Mapping[str, Any] | None, confusion: Any
) -> tuple[str, ...]:
    hidden = {sensitive, *(unknown or {})}
    others = [n for n in model.features if n.partition("=")[0] not in hidden and n not in hidden]
    said = [f"the marginal of {sensitive}", f"the outcome {model.target}"]
    if others:
        said.append(f"{len(others)} other features")
    if unknown:
        said.append(f"marginals of {', '.join(unknown)}")
    if confusion is not None:
        said.append("how often the model is right")
    return tuple(said)
