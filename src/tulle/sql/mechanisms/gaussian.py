"""Many public groups of a question in SQL, with Gaussian noise on all of them at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tulle.core import registry, validate
from tulle.core.dataset import Dataset
from tulle.core.errors import QueryError
from tulle.core.events import Composed, Event, Gaussian
from tulle.core.gaussian import Noise, largest_rho_where
from tulle.core.guarantee import floor_to, largest_rho
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Terms
from tulle.core.query import Query
from tulle.core.source import Source
from tulle.core.validate import counted
from tulle.relations.mechanisms.grouped import (
    GaussianNoise,
    GroupedSettings,
    largest_level,
    release_groups,
    release_in_ball,
)
from tulle.relations.mechanisms.recursive import Recursive, RecursiveSettings
from tulle.relations.truncation.mechanism import GaussianTruncationLaw, predicted_value
from tulle.relations.truncation.totals import Truncation, least_level
from tulle.sql.mechanisms.truncation import (
    DatabaseRecursive,
    answer,
    bound_query,
    group_count,
    is_signed,
    person_totals,
    relations_in,
    shown,
    usual_groups,
)
from tulle.sql.queries import GroupedSqlCount, GroupedSqlSum, SqlQuery
from tulle.sql.stand_in.laws import StandInLaw, gaussian_points, in_full_size


@dataclass(frozen=True)
class Tuning:
    """What rho is divided into; which data chose it is not on record."""

    selection_share: Fraction = Fraction(1, 8)
    """Chooses the threshold. The rest is for the answer, whose noise it makes larger by the root
    of 8/7, a fourteenth."""


_TUNING = Tuning()
LARGEST_VARIANCE = 2**94
"""Of the noise in steps of a lattice: what can be drawn for all groups in one call."""

_TUNED = DatabaseRecursive()
"""Whose thresholds are taken, at the epsilon whose square is twice rho."""


@registry.mechanism(
    "database", "gaussian", answers=(GroupedSqlCount, GroupedSqlSum), units=("participant",)
)
class DatabaseGaussian(Mechanism):
    """Choose one threshold for all groups privately, and add Gaussian noise to each group's total.

    Guarantee:
        (epsilon, delta) per participant. The threshold and the totals of all groups are together
        rho-zero-concentrated (:mod:`tulle.relations.mechanisms.grouped` has the argument), and rho
        is the largest that implies (epsilon, delta). Where rows need several participants, each
        group is truncated by a program of its own, which one participant moves by at most the
        threshold; where each row is about one participant, everyone's contributions to all groups
        are cut to an L2 norm of the threshold. With signed terms over rows of several participants
        both signs are released at half of rho each. Accounts that add up tightly book the rho, and
        no delta.

    Error:
        Noise that grows with the root of the number of groups (over rows of one participant, not at
        all), where Laplace noise grows with their number; what few have beyond the threshold is
        cut. Nobody can bound that privately, so intervals have a lower end only.

    Reference:
        Canonne, Kamath & Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020;
        thresholds as in Chen & Zhou, Recursive mechanism, SIGMOD 2013.

    Example:
        >>> import duckdb, tulle
        >>> from tulle.sql.data import Database
        >>> connection = duckdb.connect()
        >>> _ = connection.execute(
        ...     "CREATE TABLE meeting AS "
        ...     "SELECT range AS a, range + 1 AS b, range % 50 AS day FROM range(5000)")
        >>> town = Database.connect(connection, owners={"meeting": ["a", "b"]})
        >>> question = tulle.sql("SELECT day, COUNT(*) FROM meeting GROUP BY day",
        ...                      groups={"day": range(50)})
        >>> r = tulle.release(town, question, unit="participant", epsilon=1, delta=1e-6)
        >>> print(r.mechanism, r.guarantee)
        gaussian epsilon = 1, delta = 1e-06, per participant (add-remove)
    """

    title: ClassVar[str] = "truncation at one private threshold, Gaussian noise on every group"
    reference: ClassVar[str] = "Canonne et al., NeurIPS 2020"
    needs_delta: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = Recursive.options

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query = bound_query(terms)
        share = validate.share(
            selection_share=options.get("selection_share", _TUNING.selection_share)
        )
        rho = largest_rho(terms.epsilon, terms.delta)
        if not terms.composed:
            rho = largest_rho_where(
                terms.epsilon, terms.delta, lambda rho: _noise(query, rho, share)
            )
        rho = rho / _sides(query)
        # Pure epsilon is epsilon²/2-concentrated: thresholds suit this much of it.
        equal = floor_to(Fraction(math.sqrt(2 * rho)), 12)
        part = replace(terms, query=query, epsilon=max(equal, Fraction(1, 10**12)) * _sides(query))
        tuned = RecursiveSettings.read(
            Recursive.settings(_TUNED, part, {**_TUNED.defaults(query), **options})
        )
        chosen = GroupedSettings(
            tuned.theta,
            tuned.beta,
            tuned.start,
            tuned.reach,
            rho * share,
            rho * (1 - share),
            groups=group_count(query),
            groups_per_person=1 if query.single_owner else group_count(query),
            single_owner=query.single_owner,
        )
        if GaussianNoise.at(1.0, chosen).variance * 4 > LARGEST_VARIANCE:
            raise QueryError(
                "epsilon and delta are too small for the noise on "
                f"{counted(chosen.groups, 'group')} to be "
                "drawn; ask for fewer groups"
            )
        return chosen

    def event(self, terms: Terms, settings: Parameters) -> Event:
        chosen, query = GroupedSettings.read(settings), bound_query(terms)
        rho = chosen.rho_select + chosen.rho_answer
        parts = _noise(query, rho * _sides(query), chosen.rho_select / rho)
        return Composed(tuple(Gaussian(*part) for part in parts))

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        chosen, query = GroupedSettings.read(settings), bound_query(terms)
        if like is None:
            each = usual_groups(query) if chosen.single_owner else chosen.groups_per_person
            noise = math.sqrt(each / (2 * float(chosen.rho_answer)) * _sides(query))
            return Prediction(None, None, relative=noise)
        cut, variance, slack = np.zeros(chosen.groups), 0.0, 0.0
        if chosen.single_owner:
            ball = person_totals(query, like, power=2)
            tau = chosen.threshold(least_level(in_full_size(ball, like), chosen.thresholds))
            noise_on = GaussianNoise.at(tau, chosen)
            cut += ball.clipped(tau) + ball.fixed
            variance, slack = float(noise_on.sigma) ** 2, noise_on.slack
        else:
            for sign, groups in _parts(query, like):
                sized = [in_full_size(group, like) for group in groups]
                tau = chosen.threshold(largest_level(sized, chosen.thresholds))
                noise_on = GaussianNoise.at(tau, chosen)
                sigma = float(noise_on.sigma)
                cut += sign * np.array([predicted_value(group, tau, sigma) for group in groups])
                variance, slack = variance + sigma**2, slack + noise_on.slack
        truth, cut = np.ravel(query.expected(like)).astype(np.float64), cut * like.stands_for
        short = np.abs(truth - cut)
        sigma = math.sqrt(variance)
        mean = float(np.mean(short)) + sigma * math.sqrt(2 / math.pi)
        joint = GaussianTruncationLaw(
            Fraction(sigma), slack, chosen.groups, float(short.max(initial=0.0))
        )
        points = gaussian_points(sigma, chosen.groups)
        law = StandInLaw.of(joint, truth, [(cut, points)], lambda found: shown(query, found))
        return Prediction(None, law, mean)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query, chosen = bound_query(terms), GroupedSettings.read(settings)
        if chosen.single_owner:
            values, tau, noise = release_in_ball(
                person_totals(query, dataset, power=2), chosen, source
            )
            thresholds = [tau]
        else:
            values, thresholds = np.zeros(chosen.groups), []
            for sign, groups in _parts(query, dataset):
                drawn, tau, noise = release_groups(groups, chosen, source)
                values += sign * drawn
                thresholds.append(tau)
        law = GaussianTruncationLaw(noise.sigma, noise.slack + 0.5, chosen.groups)
        # A difference of two numbers that may each fall short is bounded on neither side.
        error = None if is_signed(query) else law
        return Outcome(answer(query, values), error, {"thresholds": thresholds})


def _noise(query: SqlQuery, rho: Fraction, share: Fraction) -> Noise:
    """Return the noise on levels and on answers, whatever the thresholds that will be found.

    A level moves by one. Lattices are such that a group moves by 1,024 to 2,049 steps, and the
    root of the number of groups, rounded up, is at most twice the root (:class:`GaussianNoise`).
    """
    sides = Fraction(_sides(query))
    level, answer = rho * share, rho * (1 - share)
    most = sides * 4 * group_count(query) * 2049**2
    return (level, sides, sides / (2 * level)), (answer, most, sides * 1024**2 / (2 * answer))


def _sides(query: Query) -> int:
    return _TUNED.sides(query)


def _parts(query: SqlQuery, dataset: Dataset) -> list[tuple[int, list[Truncation]]]:
    """Return the groups of each sign, whose rows need several participants."""
    sides = [_TUNED.truncations(query, relation) for relation in relations_in(query, dataset)]
    return [
        (signed[0][0], [truncation for _, truncation in signed])
        for signed in zip(*sides, strict=True)
    ]
