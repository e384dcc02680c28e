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

from tulle.core.exact import rational, text
from tulle.core.guarantee import epsilon_of_rho


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
    """Gaussian noise: rho-zero-concentrated, rho = squared L2 sensitivity / (2·variance)."""

    rho: Fraction


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
        Gaussian(rho=Fraction(1, 3))
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
    rho = sum((part.rho for part in parts if isinstance(part, Gaussian)), Fraction(0))
    known = [part for part in parts if isinstance(part, Approximate)]
    base = sum((part.epsilon for part in known), Fraction(0))
    spent = sum((part.delta for part in known), Fraction(0))
    whole = sum(pure, base)
    ways = [] if rho else [whole]
    if (rho or ranges) and delta > spent:
        chosen = rho + sum((epsilon**2 for epsilon in ranges), Fraction(0)) / 8
        apart = epsilon_of_rho(chosen, delta - spent) + whole - sum(ranges, Fraction(0))
        ways.append(apart)
    if not ways:
        raise ValueError("Gaussian noise has a price only where some delta is left.")
    return min(ways), spent


def _flat(event: Event) -> Iterator[Event]:
    """Yield the events that an event is composed of; of disjoint ones the dearest."""
    if isinstance(event, Composed):
        for part in event.events:
            yield from _flat(part)
    elif isinstance(event, Disjoint):
        yield Pure(max(price(part)[0] for part in event.events))
    else:
        yield event
