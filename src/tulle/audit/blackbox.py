"""Test a mechanism from outside: draw, look for a telling event, bound epsilon from below.

Nothing is assumed about how answers are made. The bound holds with the stated confidence, so a
bound above the claimed epsilon is proof; a bound below it is only as good as :func:`power`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom

from tulle.core import validate
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.unit import Unit

Draw = Callable[[Any, int], Sequence[Any]]
"""Given an input and a number, that many independent answers."""

Floats = npt.NDArray[np.float64]

CONFIDENCE = 1 - 1e-4
THRESHOLDS = 64
"""How many thresholds are tried on each feature, at quantiles of what was drawn."""


@dataclass(frozen=True)
class Evidence:
    """The largest lower bound on epsilon that was found, and the event that shows it."""

    epsilon_at_least: float
    confidence: float
    event: str
    pair: int
    """Which of the pairs; see ``swapped`` for its order."""
    swapped: bool
    hits: tuple[int, int]
    """How often the event happened on either input of the pair, among ``measured`` draws."""
    measured: int
    delta: float = 0.0


@dataclass(frozen=True)
class _Event:
    text: str
    happens: Callable[[Sequence[Hashable], Floats], npt.NDArray[np.bool_]]


def one_by_one(answer: Callable[[Any], Any]) -> Draw:
    """Make a bulk callable of one that gives a single answer."""
    return lambda dataset, size: [answer(dataset) for _ in range(size)]


def find_pairs(dataset: Dataset, unit: str | Unit, most: int = 8) -> list[tuple[Dataset, Dataset]]:
    """Return up to so many neighbouring pairs that contain a small dataset."""
    known = dataset.check_unit(unit)
    return [(dataset, other) for other in islice(known.neighbours(dataset), most)]


def lower_bound(
    draw: Draw,
    pairs: Sequence[tuple[Any, Any]],
    *,
    samples: int,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Evidence:
    """Return a lower confidence bound on the epsilon of a callable, and how it was found.

    For each pair both inputs are drawn ``samples`` times. Half of the draws choose the event:
    thresholds on the answer or, for vectors, on each entry, sum, largest and number of zeros;
    single answers; sets of answers by likelihood ratio. The other half measure it, with exact
    (Clopper-Pearson) limits; the chance of error is divided among all pairs and orders.

    Raises:
        InputError: without pairs, or with fewer than 200 samples.

    Example:
        >>> leaky = one_by_one(lambda secret: secret)
        >>> lower_bound(leaky, [(0, 1)], samples=1000).epsilon_at_least > 3
        True
    """
    count = validate.whole(samples=samples, at_least=200)
    if not pairs:
        raise InputError("At least one pair of neighbouring inputs is needed.")
    half = count // 2
    failure = (1 - confidence) / (2 * len(pairs))
    best: Evidence | None = None
    for place, (one, other) in enumerate(pairs):
        drawn = [_answers(draw, dataset, 2 * half) for dataset in (one, other)]
        for swapped in (False, True):
            first, second = drawn[::-1] if swapped else drawn
            event = _choose(first[:half], second[:half], delta, failure)
            hits = _count(event, first[half:]), _count(event, second[half:])
            bound = float(_bound(np.array(hits[:1]), np.array(hits[1:]), half, delta, failure)[0])
            if best is None or bound > best.epsilon_at_least:
                best = Evidence(bound, confidence, event.text, place, swapped, hits, half, delta)
    assert best is not None
    return best


def _answers(draw: Draw, dataset: Any, size: int) -> list[Hashable]:
    drawn = draw(dataset, size)
    if isinstance(drawn, np.ndarray):
        listed = drawn.tolist()
        return [tuple(row) for row in listed] if drawn.ndim == 2 else [_plain(v) for v in listed]
    return [_plain(value) for value in drawn]


def _plain(value: Any) -> Hashable:
    """Return an answer as a number or a tuple of numbers, or as it is."""
    if isinstance(value, np.ndarray | list | tuple):
        flat: list[Hashable] = []
        for entry in value:
            part = _plain(entry)
            flat.extend(part if isinstance(part, tuple) else (part,))
        return tuple(flat)
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Hashable):
        return value
    raise InputError(f"An answer must be hashable or an array; got {type(value).__name__}.")


def _features(answers: Sequence[Hashable]) -> Floats:
    """Return numbers that describe each answer, one row each: length, entries, summaries."""
    if not any(isinstance(answer, tuple | str) for answer in answers):
        single = np.full((len(answers), 5), math.nan)
        single[:, 0] = [float(a) if isinstance(a, int | float) else math.nan for a in answers]
        return single
    rows = []
    width = max((len(a) for a in answers if isinstance(a, tuple)), default=1)
    for answer in answers:
        entries = answer if isinstance(answer, tuple) else (answer,)
        numbers = [float(e) if isinstance(e, int | float) else math.nan for e in entries]
        padded = numbers + [math.nan] * (width - len(numbers))
        known = [n for n in numbers if not math.isnan(n)] or [math.nan]
        rows.append([*padded, sum(known), max(known), float(known.count(0.0)), len(entries)])
    return np.array(rows, dtype=np.float64)


def _count(event: _Event, answers: Sequence[Hashable]) -> int:
    return int(np.count_nonzero(event.happens(answers, _features(answers))))


def _bound(
    hits: npt.NDArray[Any], misses: npt.NDArray[Any], count: int, delta: float, failure: float
) -> Floats:
    """Return ln((p_low - delta) / q_high), half of the failure probability for each limit."""
    low = np.where(hits > 0, beta.ppf(failure / 2, hits, count - hits + 1), 0.0)
    high = np.where(misses < count, beta.isf(failure / 2, misses + 1, count - misses), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log((low - delta) / high), -math.inf)


def _choose(first: list[Hashable], second: list[Hashable], delta: float, failure: float) -> _Event:
    best: tuple[float, _Event] | None = None
    for event, hits, misses in _candidates(first, second):
        score = float(_bound(np.array([hits]), np.array([misses]), len(first), delta, failure)[0])
        if best is None or score > best[0]:
            best = score, event
    assert best is not None
    return best[1]


def _candidates(first: list[Hashable], second: list[Hashable]) -> Iterator[tuple[_Event, int, int]]:
    yield from _by_likelihood(first, second)
    joint = _features([*first, *second])
    here, there = joint[: len(first)], joint[len(first) :]
    for column in range(joint.shape[1]):
        values = joint[:, column]
        values = values[~np.isnan(values)]
        if not len(values):
            continue
        for edge in np.unique(np.quantile(values, np.linspace(0, 1, THRESHOLDS), method="nearest")):
            for upper in (False, True):
                event = _threshold(column, float(edge), joint.shape[1], upper)
                yield (
                    event,
                    int(np.count_nonzero(event.happens(first, here))),
                    int(np.count_nonzero(event.happens(second, there))),
                )


def _threshold(column: int, edge: float, width: int, upper: bool) -> _Event:
    entries = width - 4
    name = (
        ("sum", "largest", "zeros", "length")[column - entries]
        if column >= entries
        else (f"entry {column}")
    )

    def happens(answers: Sequence[Hashable], features: Floats) -> npt.NDArray[np.bool_]:
        # Later draws may be longer or shorter: summaries are found from the end.
        place = column if column < entries else column - width
        if column < entries and column >= features.shape[1] - 4:
            return np.zeros(len(features), dtype=np.bool_)
        values = features[:, place]
        return values >= edge if upper else values <= edge

    return _Event(f"{name} {'>=' if upper else '<='} {edge:g}", happens)


def _by_likelihood(
    first: list[Hashable], second: list[Hashable]
) -> Iterator[tuple[_Event, int, int]]:
    """Yield sets of answers, those more likely here than there first, and single answers.

    An answer that came once tells nothing: a set of such would look perfect, and never come again.
    """
    here, there = Counter(first), Counter(second)
    again = [answer for answer in here if here[answer] + there[answer] > 1]
    order = sorted(again, key=lambda a: (here[a] / (there[a] + 1.0), here[a]), reverse=True)
    hits = misses = 0
    shown = set(np.unique(np.geomspace(1, max(len(order), 1), 200).astype(int)).tolist())
    for place, answer in enumerate(order, start=1):
        hits += here[answer]
        misses += there[answer]
        if place in shown:
            yield _members(frozenset(order[:place])), hits, misses
    for answer, count in here.most_common(100):
        yield _members(frozenset([answer])), count, there[answer]


def _members(chosen: frozenset[Hashable]) -> _Event:
    def happens(answers: Sequence[Hashable], features: Floats) -> npt.NDArray[np.bool_]:
        return np.array([answer in chosen for answer in answers], dtype=np.bool_)

    text = (
        f"answer is {next(iter(chosen))}" if len(chosen) == 1 else f"one of {len(chosen)} answers"
    )
    return _Event(text, happens)


def power(
    *,
    epsilon: float,
    samples: int,
    delta: float = 0.0,
    pairs: int = 1,
    confidence: float = CONFIDENCE,
    chance: float = 0.8,
) -> float:
    """Return the least true epsilon above the claimed one that would be noticed.

    The reference is randomized response, one bit kept with probability e^t / (1 + e^t): at the t
    returned, :func:`lower_bound` with these numbers exceeds ``epsilon`` with probability at
    least ``chance``. Infinity when no violation would be noticed.

    Example:
        >>> 1.0 < power(epsilon=1.0, samples=100_000) < 1.1
        True
    """
    half = samples // 2
    failure = (1 - confidence) / (2 * pairs)
    low, high = epsilon, epsilon + 1.0
    while _noticed(high, epsilon, delta, half, failure) < chance:
        high += 1.0
        if high > epsilon + 60:
            return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        enough = _noticed(middle, epsilon, delta, half, failure) >= chance
        low, high = (low, middle) if enough else (middle, high)
    return high


def _noticed(true: float, claimed: float, delta: float, count: int, failure: float) -> float:
    """Return the probability that randomized response at ``true`` is found above ``claimed``."""
    kept = 1 / (1 + math.exp(-true))
    spread = 8 * math.sqrt(count * kept * (1 - kept)) + 8
    hits = np.arange(
        max(math.floor(count * kept - spread), 1), min(math.ceil(count * kept + spread), count) + 1
    )
    low = beta.ppf(failure / 2, hits, count - hits + 1)
    limit = np.clip((low - delta) * math.exp(-claimed), 0.0, 1.0)
    # The upper limit of y misses is below the limit when P(at most y | limit) < failure / 2.
    most = binom.ppf(failure / 2, count, limit) - 1
    chances = binom.pmf(hits, count, kept) * binom.cdf(most, count, 1 - kept)
    return float(np.sum(np.where(limit > 0, chances, 0.0)))
