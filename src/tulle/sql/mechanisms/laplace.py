"""One row of each participant: Laplace noise on its answer, without truncation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import LaplaceLaw
from tulle.core.errors import QueryError
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.unit import Unit
from tulle.noise import discrete_laplace
from tulle.noise.charge import LaplaceCharge, charge
from tulle.relations.mechanisms.single_owner import (
    SUMMED,
    NoiseOnGroups,
)
from tulle.sql.data import Database
from tulle.sql.mechanisms.truncation import answer, bound_query, shown
from tulle.sql.queries import SqlQuery, person_totals_of
from tulle.sql.stand_in.laws import StandInLaw, laplace_points


@dataclass(frozen=True, eq=False)
class RowSettings(Settings):
    """The public settings: the most that one row adds to a group, and how many groups there are."""

    most: float
    groups: int

    def noise(self, epsilon: Fraction) -> NoiseOnGroups:
        """Return the noise on all groups."""
        return NoiseOnGroups.at(self.most, self.groups, epsilon)


@registry.mechanism("database", "laplace", answers=(SqlQuery,), units=("participant",))
class OneRow(Mechanism):
    """Laplace noise of the size of one row, where a primary key says that everyone has one.

    Guarantee:
        Pure epsilon per participant, whether or not the key holds: everyone is cut to what one row
        adds at most, over all groups together, as
        :mod:`tulle.relations.mechanisms.single_owner` does at a threshold. When somebody leaves,
        the sums of all groups move by at most that together (and what rounding and snapping to a
        lattice add), and each has discrete Laplace noise of that scale over epsilon.

    Error:
        The noise, on both sides: nobody is cut where the key holds.

    Reference:
        Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity, TCC 2006.

    Example:
        >>> import duckdb, tulle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER)")
        >>> _ = connection.execute("INSERT INTO person SELECT range, 40 FROM range(500)")
        >>> town = Database.connect(
        ...     connection, owners={"person": "id"}, ranges={"person.age": (0, 120)})
        >>> question = tulle.sql("SELECT COUNT(*) AS n, AVG(age) AS mean FROM person")
        >>> r = tulle.release(town, question, unit="participant", epsilon=1.0)
        >>> r.mechanism, bool(r.value["mean_low"][0] < 40 < r.value["mean_high"][0])
        ('laplace', True)
    """

    title: ClassVar[str] = "Laplace noise of the size of one row"
    reference: ClassVar[str] = "Dwork et al., TCC 2006"

    def offers(self, query: Query, unit: Unit) -> bool:
        """Say whether every row is one participant's, so that a key could be declared."""
        known = query.bound if isinstance(query, SqlQuery) else None
        return known is not None and known.single_owner

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query = bound_query(terms)
        assert query.bound is not None
        if not query.bound.once:
            raise QueryError(
                "it needs one row of each participant, in one table: where that is so, and no "
                "primary key says it, declare keys={'table': 'column'}"
            )
        if not 1e-240 <= query.term <= 1e240:
            raise QueryError("it needs the most that one row adds: declare ranges of the columns")
        return RowSettings(query.term, query.bound.groups)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen = RowSettings.read(settings)
        noise = chosen.noise(terms.epsilon)
        law = _row_law(noise, chosen.groups)
        if like is None:
            return Prediction(law, law)
        query = bound_query(terms)
        truth = np.ravel(query.expected(like)).astype(np.float64)
        points = laplace_points(float(noise.scale), len(truth))
        shows = StandInLaw.of(law, truth, [(truth, points)], lambda found: shown(query, found))
        return Prediction(law, shows)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query, chosen = bound_query(terms), RowSettings.read(settings)
        assert isinstance(dataset, Database)
        totals = person_totals_of(dataset, query)
        noise = chosen.noise(terms.epsilon)
        step = noise.lattice.step
        values = np.empty(totals.groups)
        moved = Fraction(chosen.most) * (1 + SUMMED) / step + totals.groups
        with charge(LaplaceCharge(moved, calls=totals.groups)):
            for group, value in enumerate(totals.clipped(chosen.most).tolist()):
                point = noise.lattice.snap(value)
                point += discrete_laplace(scale=noise.scale / step, source=source)
                values[group] = noise.lattice.value(point) + totals.fixed[group]
        return Outcome(answer(query, values), _row_law(noise, totals.groups))


def _row_law(noise: NoiseOnGroups, groups: int) -> LaplaceLaw:
    step = noise.lattice.step
    # Snapping, rounding to a whole number, and the sums' own rounding.
    slack = math.nextafter(float(step) + 0.5, math.inf)
    return LaplaceLaw(noise.scale / step, step, count=groups, slack=slack)
