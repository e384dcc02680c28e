"""What a draw of noise costs: events, and what a number of them costs together.

An event says what happened to one person's privacy, apart from who adds events up. The names are
those of the field: noise of Laplace and Gauss, choices of bounded range, pure and approximate
guarantees, and what is composed of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tulle.core.guarantee import epsilon_of_rho
from tulle.core.validate import rational, text


@dataclass(frozen=True)
class Event:
    """Something that was drawn from data, with what it may tell about one unit."""


@dataclass(frozen=True)
class Pure(Event):
    """No probability changes by more than a factor of exp(epsilon)."""

    epsilon: Fraction


@dataclass(frozen=True)
class Laplace(Pure):
    """Laplace noise; epsilon is the L1 sensitivity over the scale."""


@dataclass(frozen=True)
class RandomizedResponse(Pure):
    """Coins that flip bits; epsilon is the log-odds of a coin times the bits of one unit."""


@dataclass(frozen=True)
class BoundedRange(Pure):
    """A choice by the exponential mechanism: log-ratios of probabilities span at most epsilon.

    It is epsilon-private, and epsilon²/8-zero-concentrated (Cesar & Rogers, ALT 2021).
    """


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise: rho-zero-concentrated, rho = squared L2 sensitivity / (2·variance).

    Accounts that add events up by divergences use rho alone. By itself the noise costs less than
    its rho says (:mod:`tulle.core.gaussian`), if ``moved`` and ``variance`` are known: the most
    numbers that one unit moves, and the least variance of the noise on any, on whole numbers.
    """

    rho: Fraction
    moved: Fraction = Fraction(0)
    variance: Fraction = Fraction(0)
    """Zero where it is not known."""

    @classmethod
    def of(cls, squared: Fraction, variance: Fraction) -> Gaussian:
        """Return noise of one variance on whole numbers that move by so much in L2, squared."""
        return cls(squared / (2 * variance), Fraction(max(int(squared), 1)), variance)


@dataclass(frozen=True)
class Approximate(Event):
    """A guarantee of (epsilon, delta)."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Composed(Event):
    """All of these happened, each chosen in view of those before."""

    events: tuple[Event, ...]


@dataclass(frozen=True)
class Disjoint(Event):
    """These are about separate parts of the data, and one unit is in one of the parts only."""

    events: tuple[Event, ...]


def event_to_json(event: Event) -> dict[str, Any]:
    """Return a JSON-able form that :func:`event_from_json` reads back exactly.

    Example:
        >>> event_from_json(event_to_json(Gaussian(Fraction(1, 3))))
        Gaussian(rho=Fraction(1, 3), moved=Fraction(0, 1), variance=Fraction(0, 1))
    """
    name = type(event).__name__
    if isinstance(event, Composed | Disjoint):
        return {"event": name, "events": [event_to_json(part) for part in event.events]}
    return {"event": name} | {key: text(value) for key, value in vars(event).items()}


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read what :func:`event_to_json` wrote.

    Raises:
        ValueError, LookupError, TypeError: when it is none, or has a parameter below zero.
    """
    made = _BY_NAME[data["event"]]
    if issubclass(made, Composed | Disjoint):
        return made(tuple(event_from_json(part) for part in data["events"]))
    values = {key: rational(value) for key, value in data.items() if key != "event"}
    if any(value < 0 for value in values.values()):
        raise ValueError("a price is below zero")
    return made(**values)


_BY_NAME: dict[str, type[Event]] = {
    made.__name__: made
    for made in (
        Pure,
        Laplace,
        RandomizedResponse,
        BoundedRange,
        Gaussian,
        Approximate,
        Composed,
        Disjoint,
    )
}


def noise_of(event: Event) -> tuple[Gaussian, ...] | None:
    """Return the parts of an event that is all Gaussian noise, or None when it is not.

    Example:
        >>> noise_of(Composed((Gaussian(Fraction(1)), Pure(Fraction(1))))) is None
        True
    """
    parts = tuple(_flat(event)) if isinstance(event, Composed) else (event,)
    known = tuple(part for part in parts if isinstance(part, Gaussian))
    return known if len(known) == len(parts) else None


def price(event: Event, delta: Fraction = Fraction(0)) -> tuple[Fraction, Fraction]:
    """Return the least epsilon found at this delta, and the delta that is spent by itself.

    Every way of adding up that is tried bounds the loss from above, so the least of them does.

    Example:
        >>> price(Composed((Laplace(Fraction(1, 2)), BoundedRange(Fraction(1, 4)))))
        (Fraction(3, 4), Fraction(0, 1))
    """
    parts = list(_flat(event))
    pure = [part.epsilon for part in parts if isinstance(part, Pure)]
    ranges = [part.epsilon for part in parts if isinstance(part, BoundedRange)]
    noise = [part for part in parts if isinstance(part, Gaussian)]
    rho = sum((part.rho for part in noise), Fraction(0))
    known = [part for part in parts if isinstance(part, Approximate)]
    base = sum((part.epsilon for part in known), Fraction(0))
    spent = sum((part.delta for part in known), Fraction(0))
    whole = sum(pure, base)
    ways = [] if rho else [whole]
    if (rho or ranges) and delta > spent:
        chosen = rho + sum((epsilon**2 for epsilon in ranges), Fraction(0)) / 8
        apart = epsilon_of_rho(chosen, delta - spent) + whole - sum(ranges, Fraction(0))
        ways.append(apart)
        if rho:
            from tulle.core.gaussian import epsilon_of_gaussian

            described = tuple((part.rho, part.moved, part.variance) for part in noise)
            ways.append(epsilon_of_gaussian(described, delta - spent) + whole)
    if not ways:
        raise ValueError("Gaussian noise has a price only where some delta is left.")
    return min(ways), spent


def _flat(event: Event) -> Iterator[Event]:
    """Yield the events that an event is composed of; of disjoint ones the dearest."""
    if isinstance(event, Composed):
        for part in event.events:
            yield from _flat(part)
    elif isinstance(event, Disjoint):
        epsilons, deltas = zip(*map(price, event.events), strict=True)
        yield Approximate(max(epsilons), max(deltas)) if any(deltas) else Pure(max(epsilons))
    else:
        yield event
