"""Test a mechanism from outside: draw, look for a telling event, bound epsilon from below.

Nothing is assumed about how answers are made. The bound holds with the stated confidence, so a
bound above the claimed epsilon is proof; a bound below it is only as good as :func:`power`.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom

from tulle.audit.engine.answers import Answer, attempt, describe
from tulle.core import validate
from tulle.core.arrays import Floats, Truths
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.unit import Unit
from tulle.core.validate import round_down, round_up

Draw = Callable[[Any, int], Iterable[Any]]
"""Given an input and a number, that many independent answers."""


CONFIDENCE = 1 - 1e-4
THRESHOLDS = 64
"""How many thresholds are tried on each feature, at quantiles of what was drawn."""


LEAST_SAMPLES = 200
MOST_SAMPLES = 10**8

_SIMPLE = (int, bool, str, np.int64)
"""Types of answers that are equal only if they look the same, and often come again."""

_SUMMARIES = ("sum", "largest", "zeros", "not finite", "length")
"""What is looked at of an answer besides its entries; the last columns of the features."""


@dataclass(frozen=True)
class Evidence:
    """The largest lower bound on epsilon that was found, and the event that shows it."""

    epsilon_at_least: float
    """Zero when nothing was found."""
    confidence: float
    event: str
    pair: int
    """Which of the pairs; see ``swapped`` for its order."""
    swapped: bool
    hits: tuple[int, int]
    """How often the event happened on either input of the pair, among ``measured`` draws."""
    measured: int
    delta: float = 0.0
    raised: tuple[int, int] = (0, 0)
    """How many of the measured draws raised: where all did, nothing but that was looked at."""


@dataclass(frozen=True)
class _Event:
    text: str
    happens: Callable[[Sequence[Answer], Floats], Truths]


def one_by_one(answer: Callable[[Any], Any]) -> Draw:
    """Make a bulk callable of one that gives a single answer. One that raises is an answer too."""
    return lambda dataset, size: [attempt(answer, dataset) for _ in range(size)]


def find_pairs(dataset: Dataset, unit: str | Unit, most: int = 8) -> list[tuple[Dataset, Dataset]]:
    """Return up to so many neighbouring pairs that contain a small dataset."""
    known = dataset.check_unit(unit)
    wanted = validate.whole(most=most, at_least=1)
    return [(dataset, other) for other in islice(known.neighbours(dataset), wanted)]


def lower_bound(
    draw: Draw | Callable[[Any], Any],
    pairs: Iterable[tuple[Any, Any]],
    *,
    samples: int,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Evidence:
    """Return a lower confidence bound on the epsilon of a callable, and how it was found.

    ``draw`` takes an input and gives one answer, or takes an input and a number and gives that
    many. An answer may be anything: numbers, arrays, words, graphs, None. A run that raises is an
    answer as well, namely the type and the text of the exception.

    For each pair both inputs are drawn ``samples`` times. Half of the draws choose the event:
    thresholds on the answer or, for vectors, on each entry, sum, largest, number of zeros and
    length; single answers; sets of answers by likelihood ratio; failures. The other half measure
    it, with exact (Clopper-Pearson) limits; the chance of error is divided among all pairs and
    orders.

    Raises:
        InputError: without pairs, with fewer than 200 samples, when delta is not in [0, 1) or the
            confidence not strictly between 0 and 1, or when ``draw`` does not give as many
            answers as it is asked for.

    Example:
        >>> lower_bound(lambda secret: secret, [(0, 1)], samples=1000).epsilon_at_least > 3
        True
    """
    take = _in_bulk(draw)
    listed = _listed(pairs)
    half = validate.whole(samples=samples, at_least=LEAST_SAMPLES, at_most=MOST_SAMPLES) // 2
    # Rounded so that a bound is never higher for it.
    spared = round_up(validate.delta(delta=delta))
    sure = round_down(1 - validate.probability(confidence=confidence))
    failure = sure / (2 * len(listed))
    best: tuple[float, Evidence] | None = None
    for place, pair in enumerate(listed):
        drawn = _draw_pair(take, pair, 2 * half)
        for swapped in (False, True):
            first, second = drawn[::-1] if swapped else drawn
            event = _choose(first[:half], second[:half], spared, failure)
            measured = first[half:], second[half:]
            hits = _count(event, measured[0]), _count(event, measured[1])
            bound = float(_bound(np.array(hits[:1]), np.array(hits[1:]), half, spared, failure)[0])
            if best is None or bound > best[0]:
                raised = tuple(sum(answer.failed for answer in part) for part in measured)
                best = (
                    bound,
                    Evidence(
                        # No bound below zero says anything.
                        max(bound, 0.0),
                        float(confidence),
                        event.text,
                        place,
                        swapped,
                        hits,
                        half,
                        float(delta),
                        (raised[0], raised[1]),
                    ),
                )
    assert best is not None
    return best[1]


def _in_bulk(draw: Draw | Callable[[Any], Any]) -> Draw:
    """Return a callable for an input and a number, whichever of the two forms was given."""
    if not callable(draw):
        raise InputError(f"draw must be a callable; got {type(draw).__name__}.")
    bulk: Any = draw
    try:
        signature = inspect.signature(draw)
    except (TypeError, ValueError):
        return bulk  # type: ignore[no-any-return]
    # A second argument with a default need not be a number of answers.
    if _accepts(signature, 1):
        return one_by_one(bulk)
    if _accepts(signature, 2):
        return bulk  # type: ignore[no-any-return]
    raise InputError(
        "draw must be callable with an input alone, for one answer, or with an input and a "
        f"number, for that many; its signature is {signature}."
    )


def _accepts(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _listed(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    listed = list(pairs) if isinstance(pairs, Iterable) else []
    if not listed:
        raise InputError("At least one pair of neighbouring inputs is needed.")
    for pair in listed:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(
                "pairs must be a list of pairs of neighbouring inputs, such as [(one, other)]; "
                f"one entry is a {type(pair).__name__}."
            )
    return listed


def _draw_pair(draw: Draw, pair: tuple[Any, Any], size: int) -> list[list[Answer]]:
    try:
        return [_answers(draw(dataset, size), size) for dataset in pair]
    except _CountError:
        raise
    except (Exception, SystemExit):  # noqa: BLE001
        # Which of the runs failed is not known: both inputs are drawn afresh, one at a time.
        single = one_by_one(lambda dataset: _only(draw(dataset, 1)))
        return [_answers(single(dataset, size), size) for dataset in pair]


class _CountError(InputError):
    """A callable under test gave another number of answers than it was asked for."""


def _only(drawn: Any) -> Any:
    (answer,) = drawn
    return answer


def _answers(drawn: Any, size: int) -> list[Answer]:
    scalar = isinstance(drawn, np.ndarray) and drawn.ndim == 0
    if scalar or isinstance(drawn, str | bytes | Mapping) or not isinstance(drawn, Iterable):
        raise _CountError(
            f"draw was asked for {size:,} answers and gave one {type(drawn).__name__}. If it gives "
            "one answer at a time, pass one_by_one(draw)."
        )
    listed = list(islice(drawn, size + 1))
    if len(listed) != size:
        given = "more" if len(listed) > size else f"{len(listed):,}"
        raise _CountError(f"draw was asked for {size:,} answers and gave {given}.")
    known: dict[tuple[type, Any], Answer] = {}
    answers = []
    for value in listed:
        if type(value) not in _SIMPLE:
            answers.append(describe(value))
            continue
        if (type(value), value) not in known:
            known[type(value), value] = describe(value)
        answers.append(known[type(value), value])
    return answers


def _features(answers: Sequence[Answer], least: int = 0) -> Floats:
    """Return numbers that describe each answer, one row each: entries, then summaries."""
    width = max(least, *(len(answer.numbers) for answer in answers), 1)
    if width == 1:
        single = [answer.numbers[0] if answer.numbers else math.nan for answer in answers]
        entries = np.array(single)[:, None]
        return np.column_stack([entries, np.full((len(answers), len(_SUMMARIES)), math.nan)])
    entries = np.full((len(answers), width), math.nan)
    for row, answer in zip(entries, answers, strict=True):
        row[: len(answer.numbers)] = answer.numbers
    known = ~np.isnan(entries)
    lengths = np.array([len(answer.numbers) for answer in answers])
    finite = np.isfinite(entries).sum(axis=1)
    some = known.any(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.where(some, np.where(known, entries, 0.0).sum(axis=1), math.nan)
    largest = np.where(some, np.where(known, entries, -math.inf).max(axis=1), math.nan)
    zeros = (entries == 0).sum(axis=1)
    return np.column_stack([entries, sums, largest, zeros, lengths - finite, lengths])


def _count(event: _Event, answers: Sequence[Answer]) -> int:
    return int(np.count_nonzero(event.happens(answers, _features(answers))))


def _bound(
    hits: npt.NDArray[Any], misses: npt.NDArray[Any], count: int, delta: float, failure: float
) -> Floats:
    """Return ln((p_low - delta) / q_high), half of the failure probability for each limit."""
    low = np.where(hits > 0, beta.ppf(failure / 2, hits, count - hits + 1), 0.0)
    high = np.where(misses < count, beta.isf(failure / 2, misses + 1, count - misses), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log((low - delta) / high), -math.inf)


def _choose(first: list[Answer], second: list[Answer], delta: float, failure: float) -> _Event:
    events, hits, misses = zip(*_candidates(first, second), strict=True)
    scores = _bound(np.array(hits), np.array(misses), len(first), delta, failure)
    chosen: _Event = events[int(np.argmax(scores))]
    return chosen


def _candidates(first: list[Answer], second: list[Answer]) -> Iterator[tuple[_Event, int, int]]:
    yield from _by_likelihood(first, second)
    yield from _by_sort(first, second)
    joint = _features([*first, *second])
    here, there = joint[: len(first)], joint[len(first) :]
    for column in range(joint.shape[1]):
        values = np.sort(joint[:, column])
        values = values[~np.isnan(values)]
        if not len(values):
            continue
        places = np.rint(np.linspace(0, len(values) - 1, THRESHOLDS)).astype(np.int64)
        for edge in np.unique(values[places]):
            for upper in (False, True):
                event = _threshold(column, float(edge), joint.shape[1], upper)
                yield (
                    event,
                    int(np.count_nonzero(event.happens(first, here))),
                    int(np.count_nonzero(event.happens(second, there))),
                )


def _by_sort(first: list[Answer], second: list[Answer]) -> Iterator[tuple[_Event, int, int]]:
    """Yield that a run raises, and each type of answer or exception: texts may never repeat."""
    here, there = (Counter(answer.sort for answer in part) for part in (first, second))
    for sort in here | there:
        yield _Event(sort, _sort_is(sort)), here[sort], there[sort]
    failed = [sum(answer.failed for answer in part) for part in (first, second)]
    if any(failed):
        yield _Event("raises", _fails), failed[0], failed[1]


def _sort_is(sort: str) -> Callable[[Sequence[Answer], Floats], Truths]:
    return lambda answers, features: np.array([answer.sort == sort for answer in answers])


def _fails(answers: Sequence[Answer], features: Floats) -> Truths:
    return np.array([answer.failed for answer in answers])


def _threshold(column: int, edge: float, width: int, upper: bool) -> _Event:
    entries = width - len(_SUMMARIES)
    name = _SUMMARIES[column - entries] if column >= entries else f"entry {column}"

    def happens(answers: Sequence[Answer], features: Floats) -> Truths:
        # Later draws may be longer or shorter: summaries are found from the end.
        place = column if column < entries else column - width
        if column < entries and column >= features.shape[1] - len(_SUMMARIES):
            return np.zeros(len(features), dtype=np.bool_)
        values = features[:, place]
        return np.asarray(values >= edge if upper else values <= edge)

    return _Event(f"{name} {'>=' if upper else '<='} {edge:g}", happens)


def _by_likelihood(first: list[Answer], second: list[Answer]) -> Iterator[tuple[_Event, int, int]]:
    """Yield sets of answers, those more likely here than there first, and single answers.

    An answer that came once tells nothing: a set of such would look perfect, and never come again.
    """
    here, there = (Counter(answer.key for answer in part) for part in (first, second))
    text = {answer.key: answer.text for answer in first}
    again = [key for key in here if here[key] + there[key] > 1]
    order = sorted(again, key=lambda a: (here[a] / (there[a] + 1.0), here[a]), reverse=True)
    hits = misses = 0
    shown = set(np.unique(np.geomspace(1, max(len(order), 1), 200).astype(int)).tolist())
    for place, key in enumerate(order, start=1):
        hits += here[key]
        misses += there[key]
        if place in shown:
            several = text[key] if place == 1 else f"one of {place} answers"
            yield _members(frozenset(order[:place]), several), hits, misses
    for key, count in here.most_common(100):
        yield _members(frozenset([key]), text[key]), count, there[key]


def _members(chosen: frozenset[Hashable], text: str) -> _Event:
    def happens(answers: Sequence[Answer], features: Floats) -> Truths:
        return np.array([answer.key in chosen for answer in answers], dtype=np.bool_)

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

    Raises:
        InputError: when an argument is out of its range; see :func:`lower_bound`.

    Example:
        >>> 1.0 < power(epsilon=1.0, samples=100_000) < 1.1
        True
    """
    half = validate.whole(samples=samples, at_least=LEAST_SAMPLES, at_most=MOST_SAMPLES) // 2
    claimed = float(validate.epsilon(epsilon=epsilon)) if epsilon else 0.0
    delta = round_up(validate.delta(delta=delta))
    chance = float(validate.probability(chance=chance))
    sure = round_down(1 - validate.probability(confidence=confidence))
    failure = sure / (2 * validate.whole(pairs=pairs, at_least=1))
    low, high = claimed, claimed + 1.0
    while _noticed(high, claimed, delta, half, failure) < chance:
        high += 1.0
        if high > claimed + 60:
            return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        enough = _noticed(middle, claimed, delta, half, failure) >= chance
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
