"""Under which participants a tuple is there: positive Boolean expressions, rewritten only safely.

The recursive mechanism looks at *how* an expression is written, through its relaxation to the
unit interval. Two expressions with one truth table can relax differently, and a rewriting that
changes the relaxation breaks the guarantee. What this module does by itself is limited to the
rules that leave the relaxation unchanged: identity, annihilation, associativity, distributing
*and* over *or*, and, within a disjunctive normal form, dropping repeated participants and clauses.

Reference: Chen & Zhou, Recursive mechanism, SIGMOD 2013, sections 2.4 and 5.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from math import prod
from typing import Any

Clause = frozenset[Any]
Way = tuple[Any, ...]

_MOST_WAYS = 256


class Annotation(ABC):
    """A positive Boolean expression over participants. Combine with ``&`` and ``|``."""

    @abstractmethod
    def holds(self, present: Any) -> bool:
        """Say whether the tuple is there when these participants are."""

    @abstractmethod
    def relax(self, present: Any) -> Any:
        """Return the relaxation at fractional presences: 0 to 1, convex, equal to truth at 0 and 1.

        *And* is max(0, x + y - 1), *or* is the larger of the two.
        """

    @abstractmethod
    def slope(self, participant: Hashable) -> int:
        """Return a bound on how fast the relaxation grows with one participant's presence."""

    @abstractmethod
    def bear(self, participant: Hashable, present: Any) -> Any:
        """Return the relaxation of those ways to be there that need one participant.

        It is what the participant is answerable for, and zero for whoever is not named. Written as
        a disjunction of ways, the expression relaxes to the largest of their relaxations; this is
        the largest of the ways that name the participant.
        """

    @abstractmethod
    def without(self, participant: Hashable) -> Annotation:
        """Return the expression after a participant has left."""

    @abstractmethod
    def participants(self) -> frozenset[Any]:
        """Return everyone that the expression names."""

    @abstractmethod
    def clauses(self) -> frozenset[Clause]:
        """Return the disjunctive normal form: who must be there together, for each way."""

    @abstractmethod
    def ways(self) -> tuple[Way, ...] | None:
        """Return who must be there together, for each way, as the expression is written.

        The expression relaxes to the largest of the ways' relaxations. None if there are more than
        some hundreds, or if a way names someone twice: that relaxes to less than naming them once,
        so such an expression must not be written with sets.
        """

    def normal_form(self) -> Annotation:
        """Return the disjunctive normal form without clauses that contain another.

        Two expressions with one truth table have one such form, so it is always safe to write all
        annotations of a relation in it.
        """
        found = self.clauses()
        least = [c for c in found if not any(other < c for other in found)]
        ordered = sorted(least, key=lambda clause: sorted(map(repr, clause)))
        return either(*(together(*map(Participant, sorted(c, key=repr))) for c in ordered))

    def __and__(self, other: Annotation) -> Annotation:
        return together(self, other)

    def __or__(self, other: Annotation) -> Annotation:
        return either(self, other)


@dataclass(frozen=True)
class Constant(Annotation):
    """Always there, or never."""

    value: bool

    def holds(self, present: Any) -> bool:
        return self.value

    def relax(self, present: Any) -> Any:
        return 1 if self.value else 0

    def slope(self, participant: Hashable) -> int:
        return 0

    def bear(self, participant: Hashable, present: Any) -> Any:
        return 0

    def without(self, participant: Hashable) -> Annotation:
        return self

    def participants(self) -> frozenset[Any]:
        return frozenset()

    def clauses(self) -> frozenset[Clause]:
        return frozenset([frozenset()]) if self.value else frozenset()

    def ways(self) -> tuple[Way, ...] | None:
        return ((),) if self.value else ()


ALWAYS = Constant(True)
NEVER = Constant(False)


@dataclass(frozen=True)
class Participant(Annotation):
    """There when one participant is."""

    name: Hashable

    def holds(self, present: Any) -> bool:
        return bool(present[self.name])

    def relax(self, present: Any) -> Any:
        return present[self.name]

    def slope(self, participant: Hashable) -> int:
        return int(participant == self.name)

    def bear(self, participant: Hashable, present: Any) -> Any:
        return present[self.name] if participant == self.name else 0

    def without(self, participant: Hashable) -> Annotation:
        return NEVER if participant == self.name else self

    def participants(self) -> frozenset[Any]:
        return frozenset([self.name])

    def clauses(self) -> frozenset[Clause]:
        return frozenset([frozenset([self.name])])

    def ways(self) -> tuple[Way, ...] | None:
        return ((self.name,),)


@dataclass(frozen=True)
class Together(Annotation):
    """There when all parts are. Build with :func:`together`."""

    parts: tuple[Annotation, ...]

    def holds(self, present: Any) -> bool:
        return all(part.holds(present) for part in self.parts)

    def relax(self, present: Any) -> Any:
        missing = sum(1 - part.relax(present) for part in self.parts)
        return max(0 * missing, 1 - missing)

    def slope(self, participant: Hashable) -> int:
        return sum(part.slope(participant) for part in self.parts)

    def bear(self, participant: Hashable, present: Any) -> Any:
        levels = [part.relax(present) for part in self.parts]
        missing = sum(1 - level for level in levels)
        return max(
            max(0 * missing, part.bear(participant, present) + (1 - level) - missing)
            for part, level in zip(self.parts, levels, strict=True)
        )

    def without(self, participant: Hashable) -> Annotation:
        return together(*(part.without(participant) for part in self.parts))

    def participants(self) -> frozenset[Any]:
        return frozenset().union(*(part.participants() for part in self.parts))

    def clauses(self) -> frozenset[Clause]:
        ways = product(*(part.clauses() for part in self.parts))
        return frozenset(frozenset().union(*way) for way in ways)

    def ways(self) -> tuple[Way, ...] | None:
        listed = [part.ways() for part in self.parts]
        whole = [ways for ways in listed if ways is not None]
        if len(whole) < len(listed) or prod(len(ways) for ways in whole) > _MOST_WAYS:
            return None
        joined = tuple(tuple(chain.from_iterable(way)) for way in product(*whole))
        return None if any(len(set(way)) < len(way) for way in joined) else joined


@dataclass(frozen=True)
class Either(Annotation):
    """There when some part is. Build with :func:`either`."""

    parts: tuple[Annotation, ...]

    def holds(self, present: Any) -> bool:
        return any(part.holds(present) for part in self.parts)

    def relax(self, present: Any) -> Any:
        return max(part.relax(present) for part in self.parts)

    def slope(self, participant: Hashable) -> int:
        return max(part.slope(participant) for part in self.parts)

    def bear(self, participant: Hashable, present: Any) -> Any:
        return max(part.bear(participant, present) for part in self.parts)

    def without(self, participant: Hashable) -> Annotation:
        return either(*(part.without(participant) for part in self.parts))

    def participants(self) -> frozenset[Any]:
        return frozenset().union(*(part.participants() for part in self.parts))

    def clauses(self) -> frozenset[Clause]:
        return frozenset().union(*(part.clauses() for part in self.parts))

    def ways(self) -> tuple[Way, ...] | None:
        listed = [part.ways() for part in self.parts]
        whole = [ways for ways in listed if ways is not None]
        return tuple(chain.from_iterable(whole)) if len(whole) == len(listed) else None


def together(*parts: Annotation) -> Annotation:
    """Return the conjunction, simplified by identity, annihilation and associativity only.

    Example:
        >>> together(Participant("a"), ALWAYS)
        Participant(name='a')
    """
    flat = [p for p in _flatten(parts, Together) if p != ALWAYS]
    if NEVER in flat:
        return NEVER
    if len(flat) <= 1:
        return flat[0] if flat else ALWAYS
    return Together(tuple(flat))


def either(*parts: Annotation) -> Annotation:
    """Return the disjunction, simplified by identity, annihilation, associativity, repetition.

    Repeated parts may go: the larger of x and x is x, for the relaxation too.

    Example:
        >>> either(Participant("a"), NEVER, Participant("a"))
        Participant(name='a')
    """
    flat = [p for p in dict.fromkeys(_flatten(parts, Either)) if p != NEVER]
    if ALWAYS in flat:
        return ALWAYS
    if len(flat) <= 1:
        return flat[0] if flat else NEVER
    return Either(tuple(flat))


def _flatten(parts: tuple[Annotation, ...], kind: type[Any]) -> Iterator[Annotation]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part
