"""All kinds of tiny relations, and who of them are neighbours."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, combinations, permutations, product
from typing import Any

import numpy as np

from tulle.audit.engine.world import World
from tulle.core.dataset import Dataset
from tulle.core.unit import Unit
from tulle.relations.annotations import (
    Annotation,
    Either,
    Participant,
    Together,
    either,
    together,
)
from tulle.relations.data import Relation

Members = tuple[int, ...]
Tuples = Sequence[tuple[Members, float]]

WEIGHTS = (0.0, 1.0, 3.0, 50.0, -2.0)
"""Of tuples over at most two participants; zero stands for a tuple that is not there."""


@lru_cache(maxsize=8)
def tiny_world(size: int) -> World:
    """Return relations of about this size, closed under leaving, with all pairs both ways.

    Up to two participants these are all relations with some weights; of three, all sets of
    tuples, weights that go with the tuple, and annotations that are no conjunctions; of four, all
    sets of pairs, all of triples, an expression that must not be rewritten, and tuples that share
    one of their ways; of five, each
    graph's edges and triangles. Size six stands for all sets of tuples over four, and for two
    annotations of any form over three.
    """
    named: dict[int, tuple[str, Iterable[Relation]]] = {
        3: ("over three participants", chain(_three(), _expressions())),
        4: ("over four participants", chain(_four(), [careful(), crowded()])),
        5: ("of graphs on five nodes", _graphs(5)),
        6: ("over four participants, more of them", chain(_sets_of_four(), _two_notes())),
    }
    if size not in named:
        people = f"over {size} participants, weighted"
        return closed_world(f"relations {people}", _weighted(min(size, 2)))
    name, bases = named[size]
    return closed_world(f"relations {name}", bases)


def closed_world(name: str, bases: Iterable[Relation]) -> World:
    """Return the relations and all that participants leave behind, paired in both directions.

    What is left is looked at twice where that can matter: as leaving rewrites it, and as it would
    be built without the one who left, since an expression may then be a plain conjunction.
    """
    datasets: list[Relation] = []
    known: dict[Hashable, int] = {}
    pairs: list[tuple[int, int]] = []

    def find(relation: Relation) -> int:
        key = relation_key(relation)
        if key not in known:
            known[key] = len(datasets)
            datasets.append(relation)
        return known[key]

    for relation in bases:
        find(relation)
    here = 0
    # The list grows while it is walked through.
    while here < len(datasets):
        whole = datasets[here]
        for participant in sorted(_present(whole)):
            left = whole.without(participant)
            for form in (left, _anew(left)) if left.general else (left,):
                there = find(form)
                pairs += [(here, there), (there, here)]
        here += 1
    listed = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
    # Someone new with any tuples at all can join: most neighbours are outside of a finite set.
    return World(name, Unit.of("participant"), datasets, listed[:, 0], listed[:, 1], 0)


def _anew(relation: Relation) -> Relation:
    return Relation.from_annotations(relation.annotations(), normalise=False)


def _present(relation: Relation) -> set[int]:
    notes = (note.participants() for note, _ in relation.general)
    return {int(p) for p in chain(relation.participants.tolist(), *notes)}


def relation_key(dataset: Dataset) -> Hashable:
    """Return what tells relations apart: their records. For made-up relations only."""
    assert isinstance(dataset, Relation)
    arrays = dataset.offsets, dataset.participants, dataset.weights
    return *(array.tobytes() for array in arrays), dataset.general


def apart_from_names(relation: Relation) -> Hashable:
    """Return what relations share that differ only in what their participants are called."""
    notes = list(relation.annotations())
    people = sorted(_present(relation))
    ways = (dict(zip(people, to, strict=True)) for to in permutations(range(len(people))))
    return min(
        tuple(sorted((repr(_rename(note, names)), height) for note, height in notes))
        for names in ways
    )


def _rename(note: Annotation, names: dict[Any, int]) -> Annotation:
    if isinstance(note, Participant):
        return Participant(names[note.name])
    if isinstance(note, Together):
        return together(*sorted((_rename(part, names) for part in note.parts), key=repr))
    if isinstance(note, Either):
        return either(*sorted((_rename(part, names) for part in note.parts), key=repr))
    return note


def words(relation: Relation) -> str:
    """Describe a made-up relation: each tuple's weight and whom it needs."""
    listed = [f"{height:g}·{_spell(note)}" for note, height in relation.annotations()]
    return " + ".join(listed) or "no tuple"


def _spell(note: Annotation) -> str:
    if isinstance(note, Participant):
        return f"p{note.name}"
    if isinstance(note, Together | Either):
        sign = "&" if isinstance(note, Together) else "|"
        return f"({sign.join(map(_spell, note.parts))})"
    return "always"


def conjunctive(tuples: Tuples, count: int) -> Relation:
    """Build a relation from who is needed and the weight of each tuple."""
    return Relation.conjunctive(
        np.cumsum([0, *(len(members) for members, _ in tuples)]),
        np.array([p for members, _ in tuples for p in members], dtype=np.int64),
        [weight for _, weight in tuples],
        count=count,
    )


def _subsets(people: int, sizes: Iterable[int]) -> list[Members]:
    return [members for size in sizes for members in combinations(range(people), size)]


def _choices(tuples: Tuples, count: int) -> Iterator[Relation]:
    """Yield all sets of these tuples."""
    for kept in product((False, True), repeat=len(tuples)):
        chosen = [item for item, there in zip(tuples, kept, strict=True) if there]
        yield conjunctive(chosen, count)


def _weighted(people: int) -> Iterator[Relation]:
    # Over two participants, a tuple that needs nobody would only repeat what one shows.
    tuples = _subsets(people, range(people > 1, people + 1))
    for weights in product(WEIGHTS, repeat=len(tuples)):
        listed = zip(tuples, weights, strict=True)
        yield conjunctive([(members, w) for members, w in listed if w], people)


def _three() -> Iterator[Relation]:
    tuples = _subsets(3, (1, 2, 3))
    yield from _choices([(members, 1.0) for members in tuples], 3)
    # A different weight for each, some of them negative.
    weights = (3.0, 1.0, -2.0, 2.0, -1.0, 3.0, 2.0)
    yield from _choices(list(zip(tuples, weights, strict=True)), 3)


def _expressions() -> Iterator[Relation]:
    notes = _monotone(3)
    for note in notes:
        yield Relation.from_annotations([(note, 3.0)])
    a, b, c = (Participant(name) for name in range(3))
    for items in (
        [(a | (b & c), 3.0), (a | b, 1.0)],
        [((a & b) | (a & c), 2.0), (a & b, 1.0), (c, 1.0)],
        [(a | b, 3.0), (b | c, -2.0)],
    ):
        yield Relation.from_annotations(items)


def _monotone(people: int) -> list[Annotation]:
    """Return every positive expression that is no constant, up to names, in normal form."""
    sets = [frozenset(members) for members in _subsets(people, range(1, people + 1))]
    found: dict[Hashable, Annotation] = {}
    for clauses in chain.from_iterable(combinations(sets, n) for n in range(1, people + 1)):
        if not any(x < y for x in clauses for y in clauses):
            note = either(*(together(*map(Participant, sorted(c))) for c in clauses))
            shape = apart_from_names(Relation.from_annotations([(note, 1.0)]))
            found.setdefault(shape, note.normal_form())
    return list(found.values())


def careful() -> Relation:
    """Return the expression that must not be shortened, beside one more participant.

    (a or b) and (a or c) has the truth table of a or (b and c), but another relaxation.
    """
    a, b, c, d = (Participant(name) for name in range(4))
    return Relation.from_annotations([((a | b) & (a | c), 3.0), (d, 3.0)], normalise=False)


def crowded() -> Relation:
    """Return tuples that need one of a crowd each, or else the same two participants.

    Whoever lets all of a tuple count for all whom it names is off by the crowd when one of the two
    leaves.
    """
    first, second = Participant(3), Participant(4)
    return Relation.from_annotations([(Participant(n) | (first & second), 0.5) for n in range(3)])


def _four() -> Iterator[Relation]:
    yield from _choices([(members, 1.0) for members in _subsets(4, (2,))], 4)
    yield from _choices([(members, 2.0) for members in _subsets(4, (3,))], 4)
    yield from _choices([((p,), 10.0 * (p + 1)) for p in range(4)], 4)


def _shapes(tuples: Sequence[Members], people: int) -> Iterator[list[Members]]:
    """Yield all sets of these tuples, one of each group that differs in names only."""
    place = {members: index for index, members in enumerate(tuples)}
    renamed = [
        [place[tuple(sorted(to[p] for p in members))] for members in tuples]
        for to in permutations(range(people))
    ]
    seen: set[int] = set()
    for mask in range(1 << len(tuples)):
        if mask not in seen:
            there = [at for at in range(len(tuples)) if mask >> at & 1]
            seen |= {sum(1 << to[at] for at in there) for to in renamed}
            yield [tuples[at] for at in there]


def _graphs(nodes: int) -> Iterator[Relation]:
    """Yield each graph's edges, and its triangles with weight 2, once for each shape of graph."""
    for edges in _shapes(_subsets(nodes, (2,)), nodes):
        triples = _subsets(nodes, (3,))
        corners = [c for c in triples if set(combinations(c, 2)) <= set(edges)]
        yield conjunctive([*((e, 1.0) for e in edges), *((c, 2.0) for c in corners)], nodes)


def _sets_of_four() -> Iterator[Relation]:
    """Yield all sets of tuples over four participants, at most three in each, up to names."""
    for members in _shapes(_subsets(4, (1, 2, 3)), 4):
        yield conjunctive([(m, 1.0) for m in members], 4)


def _two_notes() -> Iterator[Relation]:
    """Yield two annotations of any form over three participants, in every way they can meet."""
    shapes = _monotone(3)
    seen: set[Hashable] = set()
    for one, other in product(shapes, repeat=2):
        for to in permutations(range(3)):
            met = _rename(other, dict(enumerate(to)))
            relation = Relation.from_annotations([(one, 3.0), (met, 2.0)])
            shape = apart_from_names(relation)
            if relation.general and shape not in seen:
                seen.add(shape)
                yield relation
