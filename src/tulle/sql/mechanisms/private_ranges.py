"""Private ranges: bounds of values are bought before what is aggregated within them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw
from tulle.core.errors import QueryError
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.planning.preview import Preview, predicted_on
from tulle.sql.data import Database
from tulle.sql.mechanisms.partition_selection import AnswerShare, OnSchema, buy_parts, plan_answers
from tulle.sql.schema.ranges import Range
from tulle.sql.tables.question import SqlTable
from tulle.sql.tables.value_cells import beyond_at_most, draw_range, likely_range
from tulle.sql.unranged import Unranged, UnrangedTable


@dataclass(frozen=True)
class Tuning:
    """What epsilon is divided into.

    Not chosen on any data: with halves neither part has more than twice the noise that the whole
    epsilon would leave it, and no other division promises that.
    """

    share: Fraction = Fraction(1, 2)
    """Buys bounds, in equal parts for all ends; the rest is for the answers."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class RangesSettings(AnswerShare):
    """The public settings of one run: what each bound costs, and how much may lie beyond it."""

    epsilon_ranges: Fraction
    epsilon_end: Fraction
    ranges_of: tuple[str, ...]
    beyond_at_most: tuple[int, ...]


@registry.mechanism("database", "private_ranges", answers=(UnrangedTable,), units=("participant",))
class PrivateRanges(Mechanism):
    """Bounds of values are drawn among powers of two; then the answers within them are bought.

    Of every expression that is summed, averaged or ranked and has no declared range, each missing
    end is drawn by the exponential mechanism, everyone having one vote for all their rows together.
    Values beyond the bounds are moved to the nearer one, and the statement is answered as if the
    bounds had been declared.

    Guarantee:
        Epsilon (and delta) per participant: each end costs epsilon_end, as
        :mod:`tulle.sql.tables.value_cells` argues, and the ends add up to epsilon_ranges; given the
        bounds, which are released and so public, the answers cost epsilon_answers and delta by
        mechanisms of their own; the two compose. Where rows need several people the question is
        refused.

    Error:
        That of the mechanisms that answer, and what is clipped: rows that amount to at most
        ``beyond_at_most`` people at each end, with 95 % chance for each. How many it really are,
        and how far beyond they were, is not known, so intervals are about the values within the
        bounds.

    Reference:
        Smith, Privacy-preserving statistical estimation with optimal convergence rates, STOC 2011
        (the exponential mechanism on ranks), on powers of two as in Wilson et al., Differentially
        private SQL with bounded user contribution, PETS 2020, section 5.1.1.

    Example:
        >>> import duckdb, tulle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE pay AS SELECT range AS who, 100 + range % 100 "
        ...     "AS x FROM range(5000)")
        >>> staff = tulle.Database.connect(connection, owners={"pay": "who"})
        >>> mean = tulle.sql("SELECT AVG(x) AS mean FROM pay", ranges="private")
        >>> r = tulle.release(staff, mean, unit="participant", epsilon=2.0)
        >>> r.parameters["ranges_found"]
        {'x': [64.0, 256.0]}
    """

    title: ClassVar[str] = "bounds bought first"
    reference: ClassVar[str] = "Smith, STOC 2011; Wilson et al., PETS 2020"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        _, found = _bound(terms)
        spent = terms.epsilon * _TUNING.share
        end = spent / found.ends
        if end < validate.LEAST_EPSILON:
            raise QueryError(f"epsilon is too small to divide among {counted(found.ends, 'bound')}")
        made = RangesSettings(
            epsilon_answers=terms.epsilon - spent,
            delta_answers=terms.delta,
            epsilon_ranges=spent,
            epsilon_end=end,
            ranges_of=tuple(one.name for one, _ in found.missing),
            beyond_at_most=tuple(beyond_at_most(one.cells, end) for one, _ in found.missing),
        )
        # Refuse before anything is paid what would be refused once the bounds are known.
        plan = plan_answers(found.blank, OnSchema(found.schema), terms, made)
        least = made.epsilon_answers / (4 * max(len(plan.parts), 1))
        if least < validate.LEAST_EPSILON:
            raise QueryError("epsilon is too small to divide among what is asked")
        return made

    def guarantee(self, terms: Terms, settings: Parameters) -> Guarantee:
        """Return all of epsilon and delta: answers may use what the bounds leave."""
        return Guarantee(terms.unit, terms.epsilon, terms.delta)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        _, found = _bound(terms)
        chosen = RangesSettings.read(settings)
        share = float(chosen.epsilon_end)
        notes = []
        for (one, _), most in zip(found.missing, chosen.beyond_at_most, strict=True):
            ends = "each bound" if len(one.ends) == 2 else "one bound"
            notes.append(
                f"Of {one.name}, {ends} costs epsilon {share:.3g}. Clipping is not known "
                f"beforehand; with 95 % chance at most {most:,} people's rows lie beyond a bound."
            )
        return Prediction(None, None, notes=tuple(notes))

    def predict_columns(
        self, terms: Terms, settings: Parameters, like: Dataset
    ) -> tuple[tuple[str, ErrorLaw | None], ...]:
        """Return the error to expect in each column, within bounds that are likely on a stand-in.

        What lies beyond them is clipped, and is no part of it.
        """
        query, found = _bound(terms)
        assert isinstance(like, Database)
        ranges = self.ranges(query, found, settings, like, None, expected=True)
        asked = query.within(ranges, [one for one, _ in found.missing])
        # Asked of the stand-in alone: nothing is read from the data, nor checked by its engine.
        plan = plan_answers(asked, like, terms, settings)
        return predicted_on(plan, Preview(like, "")).columns

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query, found = _bound(terms)
        assert isinstance(dataset, Database)
        ranges = self.ranges(query, found, settings, dataset, source)
        asked = query.within(ranges, [one for one, _ in found.missing])
        plan = plan_answers(asked, dataset, terms, settings)
        beyond = RangesSettings.read(settings).beyond_at_most
        details: dict[str, Any] = {
            "ranges_found": {name: [one.low, one.high] for name, one in ranges.items()},
            "leaves_out": [
                _clipped(name, one, most)
                for (name, one), most in zip(ranges.items(), beyond, strict=True)
            ],
        }
        if isinstance(plan.query, SqlTable):
            value, about = plan.query.assemble(buy_parts(plan, terms, dataset, source))
            return Outcome(value, None, {**about, **details})
        offer = plan.chosen
        mechanism = registry.make_mechanism(self.kind, offer.mechanism)
        inner = mechanism.run(offer.terms, offer.settings, dataset, source)
        return Outcome(
            inner.value, None, {**inner.details, **details, "keys": dict(offer.settings)}
        )

    def ranges(
        self,
        query: UnrangedTable,
        found: Unranged,
        settings: Parameters,
        dataset: Database,
        source: Source | None,
        *,
        expected: bool = False,
    ) -> dict[str, Range]:
        """Draw the bounds of every expression that has none; or, on a stand-in, likely ones."""
        epsilon = RangesSettings.read(settings).epsilon_end
        ranges = {}
        for one, _ in found.missing:
            values = query.values(one, dataset).times(dataset.stands_for)
            ranges[one.name] = (
                likely_range(one, values, epsilon)
                if expected
                else draw_range(one, values, epsilon, source)
            )
        return ranges


def _clipped(name: str, found: Range, most: int) -> str:
    """Say what is not known about values beyond bounds that were found."""
    return (
        f"Values of {name} were clipped to the bounds found, {found.low:,.10g} and "
        f"{found.high:,.10g}. How many lay beyond is not known: with 95 % chance at most {most:,} "
        "people's rows at each bound."
    )


def _bound(terms: Terms) -> tuple[UnrangedTable, Unranged]:
    query = terms.query
    assert isinstance(query, UnrangedTable)
    bound = query if query.bound is not None else query.bound_to(terms.facts)
    assert bound.bound is not None
    return bound, bound.bound
