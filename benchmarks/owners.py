"""Median relative error of sums per participant, from even to skewed, small to large.

Run with ``python -m benchmarks owners``. Made-up owners of rows, and two relations in which rows
need several people: acquaintances who share a group, and distinct things that any of some people
has. "single_owner" is what a question in SQL gets by itself whose rows are about one person each,
"programs" what it gets otherwise; beside them stand the settings of Chen & Zhou's paper, and
race-to-the-top with a bound of 1,024. "best" is what somebody would get who chooses the threshold
with the data at hand: no private mechanism can promise it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.common import print_table
from tulle.core.arrays import Array
from tulle.core.mechanism import Outcome, Terms
from tulle.core.registry import mechanisms
from tulle.core.unit import Unit
from tulle.core.validate import rational
from tulle.relations.annotations import Participant, either
from tulle.relations.data import Relation
from tulle.relations.mechanisms.recursive import RecursiveSettings, Tuning
from tulle.relations.mechanisms.single_owner import SingleOwnerRows, release_totals
from tulle.relations.queries import total
from tulle.relations.truncation.totals import GAP, truncate
from tulle.sql.mechanisms.truncation import LINKED as ONE_LINK
from tulle.sql.mechanisms.truncation import SINGLE_OWNER, UNLINKED

EPSILONS = (0.1, 0.5, 1.0, 5.0)
RUNS = 41
EVEN = ((50, 4), (50, 20), (200, 1), (200, 4), (200, 20), (10**4, 4), (10**5, 20))
"""How many people have how many rows each."""
SKEWED = (200, 20_000)
LINKED = (200, 2_000)


def owners() -> Iterator[tuple[str, Array]]:
    """Yield how many rows each participant has."""
    for people, rows in EVEN:
        yield f"{people:,} people, {rows} rows each", np.full(people, rows)
    draw = np.random.Generator(np.random.PCG64(7))
    for people in SKEWED:
        yield f"{people:,} people, Poisson of 4", np.maximum(draw.poisson(4, people), 1)
        yield f"{people:,} people, geometric of 10", draw.geometric(0.1, people)
        yield f"{people:,} people, Pareto, index 2", np.ceil(2 * (draw.pareto(2, people) + 1))
    yield "1,000 people of 4, one of 400", np.append(np.full(1000, 4), 400)


def several() -> Iterator[tuple[str, float, Relation]]:
    """Yield relations whose tuples need several people, or any of some, and the usual reach."""
    draw = np.random.Generator(np.random.PCG64(3))
    for people in LINKED:
        pairs: set[tuple[int, ...]] = set()
        for _ in range(people // 4):
            here = sorted(draw.choice(people, 5, replace=False).tolist())
            pairs |= {(a, b) for place, a in enumerate(here) for b in here[place + 1 :]}
        members = np.array(sorted(pairs)).ravel()
        offsets = np.arange(0, len(members) + 1, 2)
        relation = Relation.conjunctive(offsets, members, count=people)
        yield f"links between {people:,} people", ONE_LINK.reach, relation
    notes = [
        (either(*map(Participant, draw.choice(300, 3, replace=False).tolist())), 1.0)
        for _ in range(400)
    ]
    yield "DISTINCT, 300 people", UNLINKED.reach, Relation.from_annotations(notes)


def error(draws: Callable[[], float], truth: float) -> float:
    return 100 * float(np.median([abs(draws() - truth) / truth for _ in range(RUNS)]))


def run_of(name: str, relation: Relation, epsilon: float, **options: Any) -> Callable[[], float]:
    """Return a draw of a mechanism on a relation, which is taken apart only once."""
    mechanism: Any = mechanisms("relation")[name]
    unit = Unit.of("participant")
    terms = Terms(total(), unit, rational(epsilon), rational(0), {})
    settings = mechanism.settings(terms, options)
    parts = mechanism.truncations(total(), relation)

    def draw() -> float:
        outcome: Outcome = mechanism.run_parts(total(), settings, parts, None)
        return float(outcome.value)

    return draw


def run_single_owner(relation: Relation, epsilon: float) -> Callable[[], float]:
    """Return a draw as a question in SQL gets it whose rows are about one person each."""
    mechanism: Any = mechanisms("relation")["recursive"]
    terms = Terms(total(), Unit.of("participant"), rational(epsilon), rational(0), {})
    far = SINGLE_OWNER.reach * max(1.0, epsilon ** -Tuning().stretch)
    settings = mechanism.settings(
        terms, {"theta": 1, "reach": far, "selection_share": SINGLE_OWNER.share}
    )
    owned = SingleOwnerRows([relation], signed=False)
    return lambda: float(
        max(release_totals(owned, RecursiveSettings.read(settings), None)[0][0], 0.0)
    )


def best(relation: Relation, top: float, epsilon: float) -> float:
    truncation = truncate(relation)
    truth = relation.total
    losses = [
        truth - truncation.value(tau, GAP * tau) + math.log(2) * tau / epsilon
        for tau in (top * np.geomspace(0.02, 1.0, 30)).tolist()
    ]
    return 100 * min(losses) / truth


def compared(relation: Relation, reach: float, epsilon: float) -> dict[str, float]:
    """Return the errors that need not know whose rows are whose."""
    paper = {"theta": 1, "beta": epsilon / 5, "reach": 2.7, "selection_share": "1/2"}
    near = {"theta": 1, "reach": reach * max(1.0, epsilon ** -Tuning().stretch)}
    return {
        "programs %": error(run_of("recursive", relation, epsilon, **near), relation.total),
        "paper %": error(run_of("recursive", relation, epsilon, **paper), relation.total),
        "race %": error(run_of("race", relation, epsilon, bound=1024), relation.total),
    }


def run() -> list[dict[str, Any]]:
    rows = []
    for name, loads in owners():
        count = len(loads)
        relation = Relation.conjunctive(np.arange(count + 1), np.arange(count), loads)
        for epsilon in EPSILONS:
            mine = error(run_single_owner(relation, epsilon), relation.total)
            top = float(loads.max())
            rows.append(
                {"owners": name, "epsilon": epsilon, "single_owner %": mine}
                | compared(relation, UNLINKED.reach, epsilon)
                | {"best %": best(relation, top, epsilon)}
            )
    for name, reach, relation in several():
        loads = np.zeros(relation.count)
        for note, height in relation.annotations():
            for person in note.participants():
                loads[person] += height
        for epsilon in EPSILONS:
            rows.append(
                {"owners": name, "epsilon": epsilon, "single_owner %": ""}
                | compared(relation, reach, epsilon)
                | {"best %": best(relation, float(loads.max()), epsilon)}
            )
    return rows


MINUTE: dict[str, Any] = {
    "EPSILONS": (1.0,),
    "RUNS": 1,
    "EVEN": ((50, 4),),
    "SKEWED": (),
    "LINKED": (200,),
}
"""What is smaller in the minute's version."""


def main() -> None:
    print_table(f"Sums per participant, median relative errors of {RUNS} draws", run())


if __name__ == "__main__":
    main()
