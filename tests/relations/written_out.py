"""And/or trees with all their ways written out: what the compact programs are compared with."""

from __future__ import annotations

from itertools import chain, product

import numpy as np
from scipy.optimize import linprog

from tulle.relations.annotations import Annotation, ConstantAnnotation, Either, Participant

Way = tuple[int, ...]
Notes = list[tuple[Annotation, float]]


def ways(note: Annotation) -> list[Way]:
    """Return who must be there together, for each way; whom it meets twice is listed twice."""
    if isinstance(note, Participant):
        return [(note.name,)]  # type: ignore[list-item]
    if isinstance(note, ConstantAnnotation):
        return [()] if note.value else []
    listed = [ways(part) for part in note.parts]  # type: ignore[attr-defined]
    if isinstance(note, Either):
        return list(chain.from_iterable(listed))
    return [tuple(chain.from_iterable(way)) for way in product(*listed)]


def slope(note: Annotation, person: object) -> int:
    """Return the paper's bound on how fast the relaxation grows with one participant's presence."""
    return max((way.count(person) for way in ways(note)), default=0)  # type: ignore[arg-type]


def value(notes: Notes, people: int, tau: float) -> float:
    """Return X(tau) by a plain solver."""
    rows = []
    for place, (note, _) in enumerate(notes):
        for way in ways(note):
            row = np.zeros(people + len(notes))
            np.subtract.at(row, [*way, people + place], 1.0)
            rows.append(row)
    cost = np.concatenate([np.full(people, tau), [height for _, height in notes]])
    return float(linprog(cost, A_ub=np.array(rows), b_ub=-np.ones(len(rows))).fun)


def deletion(notes: Notes, people: int, tau: float, *, named_bear_all: bool = False) -> float:
    """Return D(tau) by a plain solver.

    With ``named_bear_all`` everyone whom a tuple names bears all of it: the paper's equation 19.
    """
    listed = [ways(note) for note, _ in notes]
    named = [sorted(set(chain.from_iterable(each))) for each in listed]
    burdens = [(place, person) for place, names in enumerate(named) for person in names]
    rows, room = [], []
    for index, (place, person) in enumerate(burdens):
        for way in listed[place]:
            if named_bear_all or person in way:
                row = np.zeros(people + len(burdens))
                np.subtract.at(row, [*way, people + index], 1.0)
                rows.append(row)
                room.append(-1.0)
    for person in range(people):
        row = np.zeros(people + len(burdens))
        for index, (place, who) in enumerate(burdens):
            row[people + index] = notes[place][1] * (who == person)
        rows.append(row)
        room.append(tau)
    cost = np.repeat([1.0, 0.0], [people, len(burdens)])
    return float(linprog(cost, A_ub=np.array(rows), b_ub=room, bounds=(0.0, 1.0)).fun)
