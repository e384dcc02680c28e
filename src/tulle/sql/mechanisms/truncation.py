"""Answers to SQL per participant, through the relation that a question comes down to."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.relations.data import Relation
from tulle.relations.mechanisms.race import Race, RaceSettings
from tulle.relations.mechanisms.recursive import Recursive, RecursiveSettings, Tuning
from tulle.relations.mechanisms.single_owner import (
    Clipped,
    NoiseOnGroups,
    release_totals,
)
from tulle.relations.truncation.mechanism import TruncationLaw, TruncationMechanism
from tulle.relations.truncation.totals import least_level, predicted_level
from tulle.sql.data import Database
from tulle.sql.queries import SqlQuery, SqlSum, person_totals_of, relations_of
from tulle.sql.stand_in.laws import StandInLaw, in_full_size, laplace_points

SINGLE_OWNER = Tuning(reach=1.75, share=Fraction(3, 10))
"""Usual settings where each row is about one participant."""

UNLINKED, LINKED, NETWORK = Tuning(reach=2.0), Tuning(reach=4.0), Tuning()
"""The same where rows link no participants of one kind, by single links, or by several."""


@dataclass(frozen=True, eq=False)
class DatabaseRecursiveSettings(RecursiveSettings):
    """The public settings of the recursive mechanism on a question in SQL."""

    groups: int
    single_owner: bool
    """Whether the schema says that each row is about one participant."""


@dataclass(frozen=True, eq=False)
class DatabaseRaceSettings(RaceSettings):
    """The public settings of the race on a question in SQL."""

    groups: int


class OnDatabase(TruncationMechanism):
    """A mechanism on the tuples of a question in SQL; with groups, on each group's in turn.

    The groups are public and a participant may be in all of them, so each gets an equal share of
    epsilon. A SUM may have terms of both signs, and then pays for both, half each; unless the
    declared ranges of its columns say that nothing in it is below zero.
    """

    kind: ClassVar[str] = "database"

    def defaults(self, query: SqlQuery) -> Parameters:
        """Return settings that suit a question, where the user leaves them open."""
        return {}

    def signed(self, query: Query) -> bool:
        return is_signed(query)

    def shares(self, query: SqlQuery) -> int:
        """Return among how many groups epsilon is divided."""
        return group_count(query)

    def shared_settings(self, terms: Terms, query: SqlQuery, options: Parameters) -> dict[str, Any]:
        """Return the settings of one group's run, of which epsilon is divided among the groups."""
        share = replace(terms, query=query, epsilon=terms.epsilon / self.shares(query))
        found = super().settings(share, {**self.defaults(query), **options})  # type: ignore[safe-super]
        assert isinstance(found, Settings)
        return found.typed()

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        """Predict on a public database given as ``like``, if the answer is one number."""
        if like is None or terms.query.shape != "scalar":
            return Prediction(None, None)
        return super().predict(replace(terms, query=bound_query(terms)), settings, like)

    def relation(self, terms: Terms, dataset: Dataset) -> Relation:
        (only,) = relations_in(bound_query(terms), dataset)
        return only

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query = bound_query(terms)
        drawn = [
            self.run_parts(query, settings, self.truncations(query, relation), source)
            for relation in relations_in(bound_query(terms), dataset)
        ]
        if terms.query.shape == "scalar":
            return drawn[0]
        details = {
            name: [outcome.details.get(name) for outcome in drawn]
            for name in dict.fromkeys(key for outcome in drawn for key in outcome.details)
        }
        values = np.array([outcome.value for outcome in drawn])
        return Outcome(values, _law_of_all(drawn), details)


def _law_of_all(drawn: list[Outcome]) -> TruncationLaw | None:
    """Return one law that covers all groups at once: the widest, for as many draws."""
    laws = [outcome.error for outcome in drawn if isinstance(outcome.error, TruncationLaw)]
    if len(laws) != len(drawn):
        return None
    return TruncationLaw(
        max(law.scale for law in laws),
        max(law.slack for law in laws),
        lanes=sum(law.lanes for law in laws),
        penalty=min(law.penalty for law in laws),
    )


def bound_query(terms: Terms) -> SqlQuery:
    """Return the question as the public schema lets it be answered; plans have bound it already."""
    assert isinstance(terms.query, SqlQuery)
    return terms.query if terms.query.bound is not None else terms.query.bound_to(terms.facts)


_FEW_LEVELS, _MANY_LEVELS = 3, 9
"""At how many levels errors are predicted; each costs a linear program where rows are shared."""


def _offsets(count: int, chosen: RecursiveSettings) -> list[int]:
    """Return the noise on a level, laid out evenly over its law; the middle one is zero."""
    places = (np.arange(count) + 0.5) / count - 0.5
    sizes = -np.sign(places) * np.log(1 - 2 * np.abs(places)) / float(chosen.epsilon_select)
    return [round(float(one)) for one in sizes]


def is_signed(query: Query) -> bool:
    """Say whether answers may be below zero."""
    return isinstance(query, SqlSum) and not query.positive


def shown(query: SqlQuery, values: Any) -> Any:
    """Return noisy totals as they are released: not below zero if none is, counts rounded."""
    found = values if is_signed(query) else np.maximum(values, 0.0)
    return np.rint(np.clip(found, -(2.0**62), 2.0**62)) if query.integral else found


def answer(query: SqlQuery, values: Any) -> Any:
    """Return the released answer: whole numbers for counts, a plain number without groups."""
    found = shown(query, values)
    found = found.astype(np.int64) if query.integral else found
    return found[0].item() if query.shape == "scalar" else found


def _has_single_owners(query: Query) -> bool:
    return isinstance(query, SqlQuery) and query.single_owner


def group_count(query: SqlQuery) -> int:
    """Return how many groups a question has; one without GROUP BY."""
    return prod(len(values) for _, values in query.groups)


def usual_groups(query: SqlQuery) -> float:
    """Return in how many groups a participant is thought to be, where nothing says so.

    Half of the way, in logarithm, from one to all of them; one, where a key says that nobody has
    more than one row.
    """
    once = query.bound is not None and query.bound.once
    return 1.0 if once else math.sqrt(group_count(query))


def person_totals(query: SqlQuery, dataset: Dataset, *, power: int = 1) -> Clipped:
    """Return what people add to each group, left in the engine. Custodian side."""
    assert isinstance(dataset, Database)
    return person_totals_of(dataset, query, power=power)


def relations_in(query: SqlQuery, dataset: Dataset) -> tuple[Relation, ...]:
    """Return the tuples of each group. Custodian side."""
    assert isinstance(dataset, Database)
    return relations_of(dataset, query)


@registry.mechanism("database", "recursive", answers=(SqlQuery,), units=("participant",))
class DatabaseRecursive(OnDatabase, Recursive):
    """The recursive mechanism on the joined rows of a question in SQL.

    Guarantee:
        Pure epsilon per participant, as :class:`tulle.relations.mechanisms.recursive.Recursive`:
        when a participant leaves with all their rows, the tuples that need them leave the relation
        and nothing else changes. Where the public schema says that each row is about one
        participant, everyone is cut by themselves, over all groups and both signs at once
        (:mod:`tulle.relations.mechanisms.single_owner` has the argument): then neither groups nor
        signs divide epsilon.

    Error:
        Noise about as large as the largest contribution of a participant over epsilon; the
        answer falls short by what the few largest contribute beyond the threshold.

    Reference:
        Chen & Zhou, Recursive mechanism, SIGMOD 2013.

    Example:
        >>> import duckdb, tulle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE visit AS SELECT range AS person FROM range(500)")
        >>> clinic = Database.connect(connection, owners={"visit": "person"})
        >>> question = tulle.sql("SELECT COUNT(*) FROM visit")
        >>> tulle.release(clinic, question, unit="participant", epsilon=1.0).mechanism
        'recursive'
    """

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query = bound_query(terms)
        shared = self.shared_settings(terms, query, options)
        return DatabaseRecursiveSettings(
            **shared, groups=group_count(query), single_owner=query.single_owner
        )

    def defaults(self, query: SqlQuery) -> Parameters:
        """Start at the most that one row adds, but for rows of several links in a network.

        A participant with a single row is then never cut.
        """
        known = 1e-9 <= query.term <= 1e12
        return {"theta": query.term} if known and (query.single_owner or query.linked < 2) else {}

    def tuning(self, query: Query) -> Tuning:
        """Return less reach than for networks, and least where each row is about one participant.

        Where participants of one kind are linked with each other a few may have most of the links,
        and of what is joined from several links a power of that; rows over foreign keys have no
        such tail. Chosen by simulation over made-up owners, even and skewed, networks, and
        questions on TPC-H.
        """
        assert isinstance(query, SqlQuery)
        return (
            SINGLE_OWNER
            if query.single_owner
            else (UNLINKED, LINKED, NETWORK)[min(query.linked, 2)]
        )

    def sides(self, query: Query) -> int:
        """Return one where each row is about one participant: what they add is then one number."""
        return 1 if _has_single_owners(query) else super().sides(query)

    def shares(self, query: SqlQuery) -> int:
        """Return one where each row is about one participant: cut over all groups at once."""
        return 1 if query.single_owner else super().shares(query)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query, chosen = bound_query(terms), RecursiveSettings.read(settings)
        scalar = terms.query.shape == "scalar"
        if like is None:
            # A standard deviation in parts of the threshold; over rows of one participant that is
            # for all groups together.
            groups = usual_groups(query) if query.single_owner else math.sqrt(self.sides(query))
            return Prediction(
                None, None, relative=math.sqrt(2) * groups / float(chosen.epsilon_answer)
            )
        truth = np.ravel(query.expected(like)).astype(np.float64)
        cuts, scales, slack = self._truncated(query, chosen, like)
        middle = len(cuts) // 2
        short = np.abs(truth - cuts[middle])
        joint = TruncationLaw(scales[middle], slack, float(short.max()), lanes=len(short))
        noise = [laplace_points(float(scale), len(truth)) for scale in scales]
        law = StandInLaw.of(
            joint, truth, list(zip(cuts, noise, strict=True)), lambda found: shown(query, found)
        )
        mean = float(short.mean()) + float(scales[middle])
        return Prediction(None, law, None if scalar else mean)

    def _truncated(
        self, query: SqlQuery, chosen: RecursiveSettings, like: Dataset
    ) -> tuple[list[Any], list[Fraction], float]:
        """Return totals on a stand-in at thresholds that are as likely as each other.

        With each comes the scale of the noise; the middle one is at the level without noise.
        """
        cuts: list[Any] = []
        scales: list[Fraction] = []
        slack = 0.0
        if query.single_owner:
            totals = person_totals(query, like)
            level = least_level(in_full_size(totals, like), chosen.thresholds)
            for moved in _offsets(_MANY_LEVELS, chosen):
                tau = chosen.threshold(max(level + moved, 0))
                noise = NoiseOnGroups.at(tau, totals.groups, chosen.epsilon_answer)
                cuts.append((totals.clipped(tau) + totals.fixed) * like.stands_for)
                scales.append(noise.scale)
                slack = max(slack, float(noise.lattice.step))
            return cuts, scales, slack
        sides = [self.truncations(query, relation) for relation in relations_in(query, like)]
        levels = [
            [
                predicted_level(in_full_size(truncation, like), chosen.thresholds)
                for _, truncation in group
            ]
            for group in sides
        ]
        for moved in _offsets(_FEW_LEVELS, chosen):
            found = [
                [
                    (sign, chosen.expected(truncation, max(level + moved, 0)))
                    for (sign, truncation), level in zip(group, known, strict=True)
                ]
                for group, known in zip(sides, levels, strict=True)
            ]
            sums = [sum(sign * side.value for sign, side in group) for group in found]
            cuts.append(np.array(sums) * like.stands_for)
            scales.append(max(sum((s.scale for _, s in group), Fraction(0)) for group in found))
            slack = max(slack, *(sum(side.slack for _, side in group) for group in found))
        return cuts, scales, slack

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query = bound_query(terms)
        if not query.single_owner:
            return super().run(terms, settings, dataset, source)
        totals = person_totals(query, dataset)
        return self.run_totals(query, settings, totals, source)

    def run_totals(
        self, query: SqlQuery, settings: Parameters, totals: Clipped, source: Source | None
    ) -> Outcome:
        """Draw the total of each group, where each row is about one participant."""
        values, tau, noise = release_totals(totals, RecursiveSettings.read(settings), source)
        law = TruncationLaw(noise.scale, float(noise.lattice.step) + 0.5, lanes=totals.groups)
        error = None if self.signed(query) else law
        return Outcome(answer(query, values), error, {"thresholds": [tau]})


@registry.mechanism("database", "race", answers=(SqlQuery,), units=("participant",))
class DatabaseRace(OnDatabase, Race):
    """The race to the top on the joined rows of a question in SQL; the bound is the user's.

    Guarantee:
        Pure epsilon per participant, as :class:`tulle.relations.mechanisms.race.Race`.

    Error:
        As :class:`tulle.relations.mechanisms.race.Race`.

    Reference:
        Dong et al., R2T, SIGMOD 2022.
    """

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query = bound_query(terms)
        shared = self.shared_settings(terms, query, options)
        return DatabaseRaceSettings(**shared, groups=group_count(query))
