"""The audit's view of tables of people: all tables of a few rows on a coarse grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, ClassVar

import numpy as np

from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.world import World
from tulle.audit.models.laws import MomentVector, Tilted
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.models.adassp import squared_moves
from tulle.models.data import Table
from tulle.models.design import Frame, whole_rows
from tulle.models.moments import (
    NOISE_LAW,
    CoefficientLaw,
    MomentMechanism,
    MomentSettings,
    Places,
    frame_for,
)
from tulle.models.objective import (
    TUNING,
    Objective,
    ObjectiveSettings,
    persons,
    row_entry,
    row_length,
    volume,
)
from tulle.models.queries import linear, logistic
from tulle.models.sensitivity import functional_sensitivity, pair_weights, target_weights

Row = tuple[float, float, int]

ONE = linear("b", ["a"], intercept=False, bits=0)
TWO = linear("y", ["a", "b"], intercept=False, bits=0)
HIDDEN = linear("y", ["a", "b"], sensitive=["a"], gamma="0.25", bits=0)
SHORT = linear("y", ["a", "b"], norm=1, bits=0)
CHANGE = linear("b", ["a"], bits=0)
CHANGE_HIDDEN = logistic("y", ["a", "b"], sensitive=["b"], gamma="0.5", bits=0)
ODDS = logistic("y", ["a"], intercept=False, bits=0)
CHANGE_ODDS = logistic("y", ["b"], intercept=False, bits=0)
CROWD = logistic("y", ["a"], intercept=False, bits=3)
PAIR = logistic("y", ["a", "b"], intercept=False, bits=0)
CHANGE_PAIR = logistic("y", ["b", "a"], intercept=False, bits=0)
CHANGE_ONE = linear("y", ["b"], intercept=False, bits=0)

QUESTIONS: dict[str, tuple[Query, ...]] = {
    "functional": (ONE, TWO, HIDDEN, SHORT, CHANGE, CHANGE_HIDDEN, ODDS),
    "adassp": (ONE, ODDS, CHANGE_ONE),
    "objective_knorm": (ODDS, CHANGE_ODDS, PAIR, CHANGE_PAIR, CROWD),
    "objective_laplace": (ODDS, CHANGE_ODDS, PAIR, CHANGE_PAIR),
    "objective_gaussian": (ODDS, CHANGE_ODDS, PAIR, CHANGE_PAIR),
}
"""The questions on which each mechanism is examined."""

PER_ROW = frozenset({CHANGE, CHANGE_HIDDEN, CHANGE_ODDS, CHANGE_PAIR, CHANGE_ONE})
"""The questions that are examined per row; all others per participant."""

DRAWN: dict[str, tuple[Query, ...]] = {
    "functional": (ONE, ODDS),
    "adassp": (ONE,),
    "objective_knorm": (ODDS, PAIR),
    "objective_laplace": (ODDS, PAIR),
    "objective_gaussian": (ODDS, PAIR),
}

# Two is beyond the bounds of the first column and must be clipped.
_ROWS: tuple[Row, ...] = tuple(product((-1.0, 0.0, 2.0), (-1.0, 0.0, 1.0), (0, 1)))

BINS = 2
"""How many bins to one unit a drawn minimum is sorted into."""


def table(rows: Sequence[Row]) -> Table:
    """Return the made-up table with these rows (a, b, y)."""
    found = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return Table(
        {"a": found[:, 0], "b": found[:, 1], "y": found[:, 2].astype(int).tolist()},
        bounds={"a": (-1, 1), "b": (-1, 1)},
        classes={"y": [0, 1]},
    )


def rows_of(dataset: Dataset) -> tuple[Row, ...]:
    """Return the rows of a made-up table, sorted."""
    assert isinstance(dataset, Table)
    columns = [dataset.column(name).tolist() for name in ("a", "b", "y")]
    return tuple(sorted((a, b, int(y)) for a, b, y in zip(*columns, strict=True)))


def describe_moments(
    mechanism: MomentMechanism, terms: Terms, settings: Parameters, centre: Sequence[int]
) -> Description:
    """Return the law of noisy sums around these."""
    frame = frame_for(terms)
    places, bits = Places.of(frame), MomentSettings.read(settings).bits
    weights: Sequence[Any]
    if mechanism.noise == "laplace":
        labels = (0,) * len(centre)
        weights = places.pack(pair_weights(frame), target_weights(frame)).tolist()
        caps: list[Any] = [functional_sensitivity(frame) * 4**bits]
    else:
        labels = (0,) * len(places.pairs) + (1,) * places.targets
        weights = [1 if i == j else 2 for i, j in places.pairs] + [1] * places.targets
        caps = [moved * 16**bits for moved in squared_moves(frame)]
    law = MomentVector(
        mechanism.noise,
        tuple(centre),
        labels,
        tuple(mechanism.scales(terms, settings).each()),
        tuple(caps),
        sum(caps),
        tuple(Fraction(w) for w in weights),
    )
    return Description((("sums", law),))


_LONGEST: dict[str, Callable[[Frame], Fraction]] = {
    "knorm": row_entry,
    "laplace": row_length,
    "gaussian": lambda frame: Fraction(math.sqrt(frame.length_squared + frame.intercept)),
}
"""How long a row is at most, in the norm of each noise."""


def describe_objective(
    mechanism: Objective, terms: Terms, settings: Parameters, dataset: Table
) -> Description:
    """Return the law of the minimum of a tilted loss."""
    frame = frame_for(terms)
    chosen = ObjectiveSettings.read(settings)
    features, target = whole_rows(frame, dataset, chosen.bits)
    rows = (features / 2**chosen.bits).tolist()
    people = sorted(zip(map(tuple, rows), (target > 0).tolist(), strict=True))
    penalty = chosen.penalty
    # K-norm noise pays for the change of volume together with that of the slope.
    together = mechanism.noise == "knorm"
    law = Tilted(
        mechanism.noise,
        tuple(people),
        frame.size,
        penalty,
        chosen.scale,
        persons(frame) * _LONGEST[mechanism.noise](frame),
        volume(frame, penalty) if together else chosen.volume_share * terms.epsilon,
        TUNING.output * terms.epsilon,
        2 * TUNING.output * terms.delta,
        1 / BINS,
    )
    return Description((("minimum", law),))


def describe_run(
    mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Any
) -> Description:
    """Return the closed form of a run of a real mechanism."""
    if isinstance(mechanism, Objective):
        return describe_objective(mechanism, terms, settings, dataset)
    assert isinstance(mechanism, MomentMechanism)
    centre = mechanism.centre(terms, settings, dataset)
    return describe_moments(mechanism, terms, settings, centre)


@registry.register("audit", "table", "view")
class AuditedTables(AuditView):
    """Tables of up to three rows with two features, one of them beyond its bounds at times."""

    name: ClassVar[str] = "table"
    private: ClassVar[tuple[str, ...]] = ("deviations", "bias", NOISE_LAW)
    costly: ClassVar[bool] = True

    def world(self, size: int) -> World:
        return _coming(size // 2)

    def world_for(self, size: int, query: Query) -> World:
        if query == CROWD:
            return _crowded()
        return _changing(max(size // 2, 1)) if query in PER_ROW else self.world(size)

    def asked(self, mechanism: Mechanism) -> Sequence[Query]:
        return QUESTIONS.get(mechanism.name, ())

    def drawn_of(self, asked: Sequence[Query], name: str) -> Sequence[Query]:
        return DRAWN.get(name, ())

    def law_of(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Dataset
    ) -> Description:
        return describe_run(mechanism, terms, settings, dataset)

    def draw(self, mechanism: Mechanism, terms: Terms, settings: Parameters, dataset: Any) -> Any:
        if not isinstance(mechanism, MomentMechanism):
            return super().draw(mechanism, terms, settings, dataset)
        finish = mechanism.finish
        known: dict[tuple[int, ...], Outcome] = {}

        def finish_once(terms: Terms, settings: Parameters, frame: Any, noisy: Any) -> Outcome:
            # Noise on tiny tables takes few values, and the same sums give the same model.
            key = tuple(noisy.tolist())
            if key not in known:
                known[key] = finish(terms, settings, frame, noisy)
            return known[key]

        again = copy(mechanism)
        again.finish = finish_once  # type: ignore[method-assign]
        return super().draw(again, terms, settings, dataset)

    def finish(
        self, mechanism: Mechanism, terms: Terms, settings: Parameters
    ) -> Callable[[tuple[Any, ...]], Hashable]:
        if isinstance(mechanism, Objective):
            return lambda parts: parts[0]
        assert isinstance(mechanism, MomentMechanism)
        frame = frame_for(terms)
        return lambda parts: self.observe(
            mechanism.finish(terms, settings, frame, np.array(parts[0]))
        )

    def observe(self, outcome: Outcome) -> Hashable:
        value = np.asarray(outcome.value)
        if "lattice" in outcome.details:
            # Continuous but for the lattice: sorted into bins, the intercept left out.
            return tuple(np.rint(value[1:] * BINS).astype(int).tolist())
        law = outcome.error
        shown = (*law.deviations, *law.bias) if isinstance(law, CoefficientLaw) else ()
        return (*value.tolist(), *shown)

    def small(self, query: Query) -> tuple[Dataset, Dataset]:
        return table([(2.0, 1.0, 1), (-1.0, 1.0, 1)]), table([(2.0, 1.0, 1)])

    def show(self, dataset: Dataset) -> str:
        return " ".join(f"{a:g},{b:g},{y}" for a, b, y in rows_of(dataset)) or "nobody"

    def odd_questions(self) -> Sequence[Query]:
        return [
            ONE,
            HIDDEN,
            linear("y"),
            logistic("y"),
            linear("nothing"),
            logistic("a"),
            linear("a", ["nothing"]),
            logistic("y", norm=0.01),
            linear("y", sensitive=["a", "b"], gamma=1e-6),
        ]


@lru_cache(maxsize=8)
def _coming(people: int) -> World:
    made = [
        table(chosen)
        for count in range(people + 1)
        for chosen in combinations_with_replacement(_ROWS, count)
    ]
    name = f"all tables of up to {people} rows"
    return World.of(name, "participant", made, rows_of, removals_only=True)


@lru_cache(maxsize=1)
def _crowded() -> World:
    """One person beside many who tilt the loss and hardly bend it.

    There the person's slope lessens the whole where their own curvature is not small.
    """
    made: list[Dataset] = []
    first: list[int] = []
    second: list[int] = []
    for others in (0, 8, 48):
        alone = len(made)
        for person in ([], *([row] for row in _ROWS)):
            made.append(table([(0.125, 1.0, 0)] * others + person))
        first += [alone] * len(_ROWS)
        second += range(alone + 1, len(made))
    return World(
        "one person beside many",
        Unit.of("participant"),
        made,
        np.array(first + second),
        np.array(second + first),
        0,
    )


@lru_cache(maxsize=8)
def _changing(people: int) -> World:
    listed = [tuple(sorted(c)) for c in combinations_with_replacement(_ROWS, people)]
    place = {rows: index for index, rows in enumerate(listed)}
    first, second = [], []
    for rows, index in place.items():
        for one, other in product(range(people), _ROWS):
            changed = tuple(sorted((*rows[:one], other, *rows[one + 1 :])))
            if changed != rows:
                first.append(index)
                second.append(place[changed])
    return World(
        f"all tables of {people} rows, any one changed",
        Unit.of("row"),
        [table(rows) for rows in listed],
        np.array(first),
        np.array(second),
        0,
    )
