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
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

Clause = frozenset[Any]

_WRITTEN_OUT = 3
"""Up to so many linked parts are simply multiplied."""


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
    def without(self, participant: Hashable) -> Annotation:
        """Return the expression after a participant has left."""

    @abstractmethod
    def participants(self) -> frozenset[Any]:
        """Return everyone that the expression names."""

    @abstractmethod
    def clauses(self) -> frozenset[Clause]:
        """Return the disjunctive normal form: who must be there together, for each way.

        Ways that contain another are left out.
        """

    def normal_form(self) -> Annotation:
        """Return the disjunctive normal form without clauses that contain another.

        Two expressions with one truth table have one such form, so it is always safe to write all
        annotations of a relation in it.
        """
        ordered = sorted(self.clauses(), key=lambda clause: sorted(map(repr, clause)))
        return either(*(together(*map(Participant, sorted(c, key=repr))) for c in ordered))

    def factored_form(self) -> Annotation:
        """Return an expression with the ways of the normal form, each once or more, but shorter.

        So the relaxation is the same, and what each participant bears of it. Of parts that share
        nobody, every choice of one way of each (*and*) or any of them (*or*) contains no other:
        they stay as they are written, and the expression as it is where nobody is named twice.
        Alternatives of an *or* that share somebody are written out. Parts of an *and* that do are
        divided by participants whom several name (:func:`_divided`), so that the length grows with
        how closely they are linked rather than with how many there are.

        That there is no short form for all expressions is no wonder: the relaxation of the normal
        form of (a or b or c) and (c or d or e) and ... at one point is a weighted set cover.
        """
        return self

    def __and__(self, other: Annotation) -> Annotation:
        return together(self, other)

    def __or__(self, other: Annotation) -> Annotation:
        return either(self, other)


@dataclass(frozen=True)
class ConstantAnnotation(Annotation):
    """Always there, or never."""

    value: bool

    def holds(self, present: Any) -> bool:
        return self.value

    def relax(self, present: Any) -> Any:
        return 1 if self.value else 0

    def without(self, participant: Hashable) -> Annotation:
        return self

    def participants(self) -> frozenset[Any]:
        return frozenset()

    def clauses(self) -> frozenset[Clause]:
        return frozenset([frozenset()]) if self.value else frozenset()


ALWAYS = ConstantAnnotation(True)
NEVER = ConstantAnnotation(False)


@dataclass(frozen=True)
class Participant(Annotation):
    """There when one participant is."""

    name: Hashable

    def holds(self, present: Any) -> bool:
        return bool(present[self.name])

    def relax(self, present: Any) -> Any:
        return present[self.name]

    def without(self, participant: Hashable) -> Annotation:
        return NEVER if participant == self.name else self

    def participants(self) -> frozenset[Any]:
        return frozenset([self.name])

    def clauses(self) -> frozenset[Clause]:
        return frozenset([frozenset([self.name])])


@dataclass(frozen=True)
class Together(Annotation):
    """There when all parts are. Build with :func:`together`."""

    parts: tuple[Annotation, ...]

    def holds(self, present: Any) -> bool:
        return all(part.holds(present) for part in self.parts)

    def relax(self, present: Any) -> Any:
        missing = sum(1 - part.relax(present) for part in self.parts)
        return max(0 * missing, 1 - missing)

    def without(self, participant: Hashable) -> Annotation:
        return together(*(part.without(participant) for part in self.parts))

    def participants(self) -> frozenset[Any]:
        return frozenset().union(*(part.participants() for part in self.parts))

    def clauses(self) -> frozenset[Clause]:
        found: frozenset[Clause] = frozenset([frozenset()])
        for part in self.parts:
            # Part by part: what contains another goes before it is multiplied.
            found = _least(one | other for one, other in product(found, part.clauses()))
        return found

    def factored_form(self) -> Annotation:
        return together(*map(_divided, _linked(self.parts)))


@dataclass(frozen=True)
class Either(Annotation):
    """There when some part is. Build with :func:`either`."""

    parts: tuple[Annotation, ...]

    def holds(self, present: Any) -> bool:
        return any(part.holds(present) for part in self.parts)

    def relax(self, present: Any) -> Any:
        return max(part.relax(present) for part in self.parts)

    def without(self, participant: Hashable) -> Annotation:
        return either(*(part.without(participant) for part in self.parts))

    def participants(self) -> frozenset[Any]:
        return frozenset().union(*(part.participants() for part in self.parts))

    def clauses(self) -> frozenset[Clause]:
        return _least(chain.from_iterable(part.clauses() for part in self.parts))

    def factored_form(self) -> Annotation:
        return either(
            *(
                listed[0].factored_form() if len(listed) == 1 else either(*listed).normal_form()
                for listed in _linked(self.parts)
            )
        )


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


def _linked(parts: Iterable[Annotation]) -> list[list[Annotation]]:
    """Return the parts in groups that share nobody with each other."""
    linked: list[tuple[set[Any], list[Annotation]]] = []
    for part in parts:
        people, together_with = set(part.participants()), [part]
        apart = []
        for others, listed in linked:
            if people.isdisjoint(others):
                apart.append((others, listed))
            else:
                people |= others
                together_with = listed + together_with
        linked = [*apart, (people, together_with)]
    return [listed for _, listed in linked]


def _divided(listed: list[Annotation]) -> Annotation:
    """Return an expression with the ways of the conjunction of linked parts that contain no other.

    Take a participant x whom several parts name, all of them disjunctions of participants. Ways
    without x are those of what is left when x leaves. A way with x needs x, so there is a part P
    in which nobody else of it is; the rest of it is a way of the parts that do not name x, and
    contains no other, once all others of P have left. Conversely x and such a rest contain no
    other way: x is needed for P, and everybody else for the parts without x. A way may be found by
    several P, and counts once: the larger of x and x is x.
    """
    if len(listed) == 1:
        return listed[0].factored_form()
    plain = [part.participants() for part in listed if _is_disjunction(part)]
    # A disjunction that contains another says nothing besides.
    listed = [
        part
        for part in dict.fromkeys(listed)
        if not (_is_disjunction(part) and any(one < part.participants() for one in plain))
    ]
    chosen = _dividing(listed)
    if chosen is None:
        return together(*listed).normal_form()
    name = [part for part in listed if chosen in part.participants()]
    others = [part for part in listed if chosen not in part.participants()]
    found = [_without(listed, {chosen}).factored_form()]
    for part in name:
        rest = _without(others, part.participants() - {chosen}).factored_form()
        found.append(together(Participant(chosen), rest))
    return either(*found)


def _dividing(listed: list[Annotation]) -> Any:
    """Return the participant without whom the parts fall apart best; none where few are linked."""
    named: dict[Any, list[Annotation]] = {}
    for part in listed:
        for name in part.participants():
            named.setdefault(name, []).append(part)
    shared = [
        name for name, parts in named.items() if len(parts) > 1 and all(map(_is_disjunction, parts))
    ]
    if len(listed) <= _WRITTEN_OUT or not shared:
        return None

    def left(name: Any) -> tuple[int, int]:
        parts = (part.without(name) for part in listed)
        return max(map(len, _linked(parts))), len(named[name])

    return min(shared, key=left)


def _without(parts: Iterable[Annotation], people: Iterable[Any]) -> Annotation:
    for person in people:
        parts = [part.without(person) for part in parts]
    return together(*parts)


def _is_disjunction(note: Annotation) -> bool:
    """Say whether one of some participants is all that is needed."""
    parts = note.parts if isinstance(note, Either) else (note,)
    return all(isinstance(part, Participant) for part in parts)


def _least(sets: Iterable[Clause]) -> frozenset[Clause]:
    """Return the sets that contain no other."""
    found: list[Clause] = []
    for one in sorted(set(sets), key=len):
        if not any(map(one.issuperset, found)):
            found.append(one)
    return frozenset(found)


def _flatten(parts: tuple[Annotation, ...], kind: type[Any]) -> Iterator[Annotation]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part
