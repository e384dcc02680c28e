"""Partition selection: tables by keys that nobody listed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.error_law import ErrorLaw, GaussianLaw, LaplaceLaw
from tulle.core.errors import QueryError
from tulle.core.events import Pure
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Prediction, Settings, Terms
from tulle.core.plan import Plan
from tulle.core.query import Query
from tulle.core.release import Release
from tulle.core.source import Source
from tulle.core.table import LabelledTable
from tulle.core.validate import rational, text
from tulle.noise import uniform_below
from tulle.noise.charge import PricedCharge, charge
from tulle.noise.keys_per_person import TUNING, choose_keys, key_scores
from tulle.noise.partition_law import PeopleLaw
from tulle.noise.partition_selection import Rule, best_rule, rule_from_json
from tulle.planning.planner import make_plan
from tulle.planning.preview import Preview, predicted_on
from tulle.sql.compile.fetched import numbers_in, rows_at, texts_in
from tulle.sql.data import Database
from tulle.sql.keys.question import OF_TABLE, PRIVATE, PUBLIC, DiscoveredTable, Discovery
from tulle.sql.keys.statements import DIGEST, KEY, LONGEST, PEOPLE, PLACE
from tulle.sql.mechanisms.found_keys import FoundKeys, FoundTable, table_of
from tulle.sql.schema.schema import Schema
from tulle.sql.tables.question import LEVEL


@dataclass(frozen=True)
class Tuning:
    """What epsilon and delta are divided into.

    Not chosen on any data: with halves neither part has more than twice the noise that the whole
    epsilon would leave it, and no other division promises that.
    """

    share: Fraction = Fraction(1, 2)
    """Finds the keys; the rest is for their answers."""


_TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class AnswerShare(Settings):
    """Of the settings, what is left of the price for answers."""

    epsilon_answers: Fraction
    delta_answers: Fraction


@dataclass(frozen=True, eq=False)
class KeySettings(AnswerShare):
    """The public settings of one run; those of the rule are its own (``Rule.to_json``)."""

    epsilon_keys: Fraction
    delta_keys: Fraction
    keys_in: str
    longest_key: int
    top: int | None
    other: str | None
    minimum: int | None = None
    keys_per_person: Any = None
    """A number, or that it is chosen privately."""
    epsilon_choice: Fraction | None = None
    rules: Any = None
    """Where the number is chosen: each number and its rule."""
    seen_from: Any = None
    rule: str | None = None
    threshold: int | None = None
    scale: Fraction | None = None
    variance: Fraction | None = None
    delta_noise: Fraction | None = None
    steps: int | None = None

    def selection(self) -> dict[int, Rule]:
        """Return the rule for each number of keys per person that there may be."""
        assert self.minimum is not None
        listed = self.rules if self.keys_per_person == PRIVATE else [[self.keys_per_person, self]]
        return {int(keys): rule_from_json(data, int(keys), self.minimum) for keys, data in listed}


@registry.mechanism(
    "database", "partition_selection", answers=(DiscoveredTable,), units=("participant",)
)
class PartitionSelection(Mechanism):
    """Keys are found by how many people have them; then their answers are bought.

    Everyone is bounded to ``keys_per_person`` keys, chosen evenly by a salted digest of their own
    keys. A key is shown when its number of people, with noise, is above a threshold; the rule is
    the truncated geometric one or Gaussian noise, whichever shows keys of fewer people. Where no
    number of people is asked for, Gaussian noise is added to sums of weights: a person of n keys
    counts for 1/sqrt(n) in each of them, so that whoever has few counts for more. With
    ``keys_per_person="private"`` that number is chosen by the exponential mechanism. For the
    keys that are shown the statement's aggregates are bought as if the list were public. A COUNT
    (DISTINCT ...) of the owners is the noisy number itself and is not bought again.

    Guarantee:
        (epsilon, delta) per participant: finding keys is (epsilon_keys, delta_keys)-private, as
        :mod:`tulle.noise.partition_selection` argues for any choice of at most ``keys_per_person``
        keys that depends on one person's rows and on the salt alone; choosing their number is
        pure epsilon_choice before (:func:`tulle.noise.keys_per_person.key_scores`), and the
        rules for all numbers cost the same; given the keys, their answers
        cost (epsilon_answers, delta_answers) by mechanisms of their own; the two compose. Where
        rows need several people, keys are found in one table whose rows have one owner each, which
        is a question of its own about the same participants; keys of a public table are public.

    Error:
        Which keys are missing is said by the plan: from how many people on a key is seen. Numbers
        of keys that are shown have the errors of the mechanisms that answer them.

    Reference:
        Desfontaines, Voss, Gipson & Mandayam, Differentially private partition selection, PETS
        2022.

    Example:
        >>> import duckdb, tulle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE visit AS SELECT range AS person, CASE WHEN range "
        ...     "< 300 THEN 'Oslo' WHEN range < 500 THEN 'Bergen' ELSE 'Å' END AS town "
        ...     "FROM range(501)")
        >>> clinic = tulle.Database.connect(connection, owners={"visit": "person"})
        >>> towns = tulle.sql("SELECT town, COUNT(*) AS n FROM visit GROUP BY town",
        ...     keys_per_person=1)
        >>> r = tulle.release(clinic, towns, unit="participant", epsilon=2.0, delta=1e-6)
        >>> r.value["town"]
        ('Bergen', 'Oslo')
    """

    title: ClassVar[str] = "partition selection"
    reference: ClassVar[str] = "Desfontaines et al., PETS 2022"

    def settings(self, terms: Terms, options: Parameters) -> Parameters:
        query, found = _bound(terms)
        given = query.options
        about: dict[str, Any] = {
            "keys_in": found.table or "rows",
            "longest_key": LONGEST,
            "top": given.top,
            "other": given.other,
        }
        if found.where == PUBLIC:
            public = KeySettings(
                terms.epsilon, terms.delta, Fraction(0), Fraction(0), **about, rule="public"
            )
            self._check_answers(found, terms, public)
            return public
        if not terms.delta:
            first = query.names[0]
            raise QueryError(
                f"GROUP BY {', '.join(query.names)} without a list of keys needs a delta above "
                "zero: with none, a key that one person has could not be kept back. Give delta= "
                "(--delta), such as 1e-6, well below one over the number of people; or list the "
                f"keys that everyone may know with groups={{'{first}': [...]}} "
                f"(--groups {first}=A,B)"
            )
        whole = not _bought(found)
        choice = terms.epsilon * TUNING.share if found.chosen else Fraction(0)
        epsilon = (terms.epsilon - choice) * (1 if whole else _TUNING.share)
        delta = terms.delta if whole else terms.delta * _TUNING.share
        about |= {
            "epsilon_keys": epsilon,
            "delta_keys": delta,
            "epsilon_answers": terms.epsilon - choice - epsilon,
            "delta_answers": terms.delta - delta,
            "minimum": given.minimum,
        }
        rules = {
            keys: best_rule(epsilon, delta, keys, given.minimum, numbers=found.numbers)
            for keys in (TUNING.candidates if found.chosen else (found.keys_per_person,))
        }
        if found.chosen:
            about |= {
                "keys_per_person": PRIVATE,
                "epsilon_choice": choice,
                "rules": [[keys, rule.to_json()] for keys, rule in rules.items()],
                "seen_from": [rule.seen_from() for rule in rules.values()],
            }
        else:
            ((keys, rule),) = rules.items()
            about |= {"keys_per_person": keys, **rule.to_json(), "seen_from": rule.seen_from()}
        made = KeySettings.read(about)
        if not whole:
            self._check_answers(found, terms, made)
        return made

    def _check_answers(self, found: Discovery, terms: Terms, settings: Parameters) -> None:
        """Refuse before anything is paid what would be refused once the keys are known."""
        plan_answers(found.blank, OnSchema(found.schema), terms, settings)

    def guarantee(self, terms: Terms, settings: Parameters) -> Guarantee:
        """Return all of epsilon and delta: answers may use what finding the keys leaves."""
        return Guarantee(terms.unit, terms.epsilon, terms.delta)

    def predict(self, terms: Terms, settings: Parameters, like: Dataset | None) -> Prediction:
        query, found = _bound(terms)
        if found.where == PUBLIC:
            keys = ", ".join(query.names)
            return Prediction(
                None,
                None,
                notes=(f"The keys of {keys} are all those of the public {found.table}.",),
            )
        known = KeySettings.read(settings)
        rules, delta = known.selection(), float(known.delta_keys)
        if found.chosen:
            least, most = rules[TUNING.candidates[0]], rules[TUNING.candidates[-1]]
            assert known.epsilon_choice is not None
            notes = [
                "For how many keys one person counts is chosen privately, so that three quarters "
                f"of the people have all theirs counted, with epsilon {text(known.epsilon_choice)} "
                f"of the price. With {least.keys}: {least.in_words('key', delta)} With "
                f"{most.keys}: {most.in_words('key', delta)}"
            ]
        else:
            notes = [rule.in_words("key", delta) for rule in rules.values()]
        if found.where == OF_TABLE:
            notes.append(
                f"The rows need several people, so keys are found in {found.table} first, whose "
                "rows belong to one person each, and used as the list."
            )
        return Prediction(None, None, notes=tuple(notes))

    def predict_columns(
        self, terms: Terms, settings: Parameters, like: Dataset
    ) -> tuple[tuple[str, ErrorLaw | None], ...]:
        """Return the error to expect in each column, for the keys that are seen on a stand-in."""
        query, found = _bound(terms)
        assert isinstance(like, Database)
        rule = self.rule_for(query, found, settings, like, "0" * 32, None, expected=True)
        keys, people, _ = self.select(query, found, rule, like, "0" * 32, None, expected=True)
        if not keys.size:
            return tuple((name, None) for name, _ in query.chosen.columns)
        table = table_of(query, found, keys)
        made = Preview(like, "")
        laws: dict[str, ErrorLaw | None] = {}
        values = {}
        if table.parts():
            plan = predicted_on(plan_answers(table, OnSchema(found.schema), terms, settings), made)
            for part in plan.parts:
                known = part.chosen.prediction
                laws[str(part.query)] = known.typical or known.bound
                values[str(part.query)] = part.query.expected(like)
        if found.shared:
            assert rule is not None
            laws |= dict.fromkeys(found.shared, _people_law(rule))
            values |= dict.fromkeys(found.shared, people)
        return table.predict(values, laws)

    def run(
        self, terms: Terms, settings: Parameters, dataset: Dataset, source: Source | None
    ) -> Outcome:
        query, found = _bound(terms)
        assert isinstance(dataset, Database)
        with charge(PricedCharge(lambda draws: Pure(Fraction(0)), ("uniform",))):
            salt = f"{uniform_below(2**128, source=source):032x}"
        rule = self.rule_for(query, found, settings, dataset, salt, source)
        keys, people, law = self.select(query, found, rule, dataset, salt, source)
        table = table_of(query, found, keys)
        details = {"level": LEVEL, "after_noise": list(query.chosen.after(query.dialect))}
        if found.chosen and rule is not None:
            details["keys_counted"] = rule.keys
        if not keys.size:
            return Outcome(table.empty(), None, details)
        parts = self._answers(table, terms, settings, dataset, source)
        for name in found.shared:
            parts[name] = _part(name, people, law, terms)
        return Outcome(table.assemble(parts)[0], None, details)

    def rule_for(
        self,
        query: DiscoveredTable,
        found: Discovery,
        settings: Parameters,
        dataset: Database,
        salt: str,
        source: Source | None,
        *,
        expected: bool = False,
    ) -> Rule | None:
        """Return by which rule keys are shown, for a number of keys per person that is chosen."""
        if found.where == PUBLIC:
            return None
        known = KeySettings.read(settings)
        rules = known.selection()
        if not found.chosen:
            return rules[found.keys_per_person]
        rows = found.rewritten(dataset._schema, dataset._gone, query.names, query.functions)
        statement = rows.having(salt, TUNING.candidates[-1] + 1)
        dataset.check(statement)
        fetched = dataset._engine.fetch(statement)
        numbers, people = (fetched.column(name).to_pylist() for name in (PLACE, PEOPLE))
        having = dict(zip(numbers, people, strict=True))
        epsilon = known.epsilon_choice
        assert epsilon is not None
        if expected:
            scores = key_scores(having, epsilon)
            return rules[TUNING.candidates[scores.index(max(scores))]]
        return rules[choose_keys(having, epsilon, source)]

    def select(
        self,
        query: DiscoveredTable,
        found: Discovery,
        rule: Rule | None,
        dataset: Database,
        salt: str,
        source: Source | None,
        *,
        expected: bool = False,
    ) -> tuple[FoundKeys, Any, ErrorLaw | None]:
        """Return the keys that are shown, in canonical order, and their noisy numbers.

        Those that are ``expected``, on a public stand-in, have as many people as are mostly seen;
        if none has, the one with the most.
        """
        rows = found.rewritten(dataset._schema, dataset._gone, query.names, query.functions)
        if rule is None:
            statement = rows.listed(salt)
        else:
            statement = rows.counted(salt, rule.keys, rule.levels)
        # Again: tables may have changed since the question was bound.
        dataset.check(statement)
        # In the order of digests: which noise a key gets has nothing to do with the order of rows.
        fetched = dataset._engine.fetch(statement).sort_by(DIGEST)
        law: ErrorLaw | None = None
        if rule is None:
            people = np.zeros(fetched.num_rows, dtype=np.int64)
        else:
            counted = numbers_in(fetched, PEOPLE)
            if expected:
                noisy = counted * dataset.stands_for
                shown = noisy >= min(rule.enough(), noisy.max(initial=0))
            else:
                shown, noisy = rule.show(counted, source)
            fetched, people = rows_at(fetched, np.flatnonzero(shown)), noisy[shown]
            if found.numbers:
                law = PeopleLaw(rule.threshold, _spread(rule), rows.once)
        keys, order = FoundKeys.of(
            query.names,
            rows.kinds,
            salt,
            fetched.column(DIGEST).to_pylist(),
            [texts_in(fetched.column(f"{KEY}_{place}")) for place in range(len(rows.kinds))],
            query.options.other,
        )
        people = people[np.array(order, dtype=np.int64)]
        top = query.options.top
        if top is not None and top < len(keys.digests):
            # The most people first; of equal numbers, the first in the order of keys.
            kept = np.sort(np.argsort(-people, kind="stable")[:top])
            keys = replace(
                keys,
                digests=tuple(keys.digests[place] for place in kept),
                columns=tuple(tuple(column[place] for place in kept) for column in keys.columns),
            )
            people = people[kept]
        return keys, people, law

    def _answers(
        self,
        table: FoundTable,
        terms: Terms,
        settings: Parameters,
        dataset: Database,
        source: Source | None,
    ) -> dict[str, Any]:
        """Buy what is not known from finding the keys, as if the list were public."""
        if not table.parts():
            return {}
        return buy_parts(plan_answers(table, dataset, terms, settings), terms, dataset, source)

    def true_table(self, query: DiscoveredTable, dataset: Database) -> LabelledTable:
        """Return the exact table of all keys. Custodian side."""
        bound = query.bind(dataset)
        found = bound.bound
        assert found is not None
        rows = found.rewritten(dataset._schema, dataset._gone, query.names, query.functions)
        salt = "0" * 32
        fetched = dataset._engine.fetch(rows.listed(salt)).sort_by(DIGEST)
        keys, _ = FoundKeys.of(
            query.names,
            rows.kinds,
            salt,
            fetched.column(DIGEST).to_pylist(),
            [texts_in(fetched.column(f"{KEY}_{place}")) for place in range(len(rows.kinds))],
            query.options.other,
        )
        table = table_of(bound, found, keys)
        return table.truth(dataset) if keys.size else table.empty()


@dataclass(frozen=True)
class OnSchema:
    """The public side of a database that a question is bound to already."""

    schema: Schema
    kind: ClassVar[str] = "database"

    def check(self, statement: str) -> None:
        """Accept what the schema accepts: there is no engine to ask."""


def _bound(terms: Terms) -> tuple[DiscoveredTable, Discovery]:
    query = terms.query
    assert isinstance(query, DiscoveredTable)
    bound = query if query.bound is not None else query.bound_to(terms.facts)
    assert bound.bound is not None
    return bound, bound.bound


def plan_answers(asked: Any, public: Any, terms: Terms, settings: Parameters) -> Plan:
    """Return how answers are bought for what is left by finding what they are asked about."""
    left = AnswerShare.read(settings)
    return make_plan(
        asked,
        kind="database",
        facts=terms.facts,
        public=public,
        unit=terms.unit,
        epsilon=left.epsilon_answers,
        delta=left.delta_answers,
        composed=terms.composed,
    )


def _bought(found: Discovery) -> list[Query]:
    assert found.blank.bought is not None
    return [leaf.query for leaf in found.blank.bought.leaves if leaf.name not in found.shared]


def _spread(rule: Rule) -> float:
    found: Mapping[str, Any] = rule.to_json()
    if "variance" in found:
        return math.sqrt(rational(found["variance"]))
    return math.sqrt(2) * float(rational(found["scale"]))


def buy_parts(
    plan: Plan, terms: Terms, dataset: Database, source: Source | None
) -> dict[str, Release]:
    """Return the answers of a planned table's parts, by question."""
    parts = {}
    for part in plan.parts:
        offer = part.chosen
        mechanism = registry.make_mechanism("database", offer.mechanism)
        outcome = mechanism.run(offer.terms, offer.settings, dataset, source)
        parts[str(part.query)] = replace(
            _part(str(part.query), outcome.value, outcome.error, terms),
            mechanism=offer.mechanism,
        )
    return parts


def _people_law(rule: Rule) -> ErrorLaw:
    """Return the law of the noise on the number of people of one key."""
    found: Mapping[str, Any] = rule.to_json()
    if "variance" in found:
        return GaussianLaw(Fraction(math.sqrt(rational(found["variance"]))))
    return LaplaceLaw(rational(found["scale"]))


def _part(name: str, value: Any, error: ErrorLaw | None, terms: Terms) -> Release:
    return Release(value, name, "partition_selection", Guarantee(terms.unit, terms.epsilon), error)
