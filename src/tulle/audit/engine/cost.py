"""The price of a run, recomputed from every draw that it made.

A run is watched (:mod:`tulle.noise.charge`): each draw has to be charged for, each charge becomes
an event with the parameters that the sampler was really called with, and the events of the run
must compose to no more than the guarantee says. Which branch a run takes depends on the data and on
the noise, so many datasets are run, extreme ones among them, at several budgets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tulle.audit.engine.findings import Finding, merge
from tulle.audit.engine.kind import is_audited, kind_of
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Composed, Event, Gaussian, price
from tulle.core.guarantee import Guarantee, display
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.ledger.divergence import concentration
from tulle.noise.charge import CostError, watch

BUDGETS = (
    (Fraction(1, 100), Fraction(1, 10**6)),
    (Fraction(1), Fraction(1, 10**9)),
    (Fraction(30), Fraction(1, 20)),
)
"""Every (epsilon, delta) at which runs are watched."""

REMAINDER = Fraction(1, 100)
"""A mechanism that leaves more of epsilon than this unspent gives accuracy away."""


@dataclass(frozen=True)
class Case:
    """One run to watch."""

    terms: Terms
    options: Parameters
    dataset: Dataset


@dataclass(frozen=True)
class Cost:
    """What a run spent, beside what it is allowed to."""

    events: tuple[Event, ...]
    epsilon: Fraction
    delta: Fraction
    guarantee: Guarantee
    rho: Fraction | None = None
    """What accounts are told to add, where all noise is Gaussian."""

    @property
    def share(self) -> float:
        """The part of the price that was spent; above 1 the guarantee is broken."""
        assert self.guarantee.epsilon is not None
        if self.delta > self.guarantee.delta or not self._added:
            return math.inf
        return float(self.epsilon / self.guarantee.epsilon)

    @property
    def kept(self) -> bool:
        """Whether the guarantee covers what was spent, in exact numbers."""
        assert self.guarantee.epsilon is not None
        within = self.epsilon <= self.guarantee.epsilon and self.delta <= self.guarantee.delta
        return within and self._added

    @property
    def _added(self) -> bool:
        """Whether an account that is told a rho adds at least what was drawn."""
        if self.rho is None:
            return True
        drawn = concentration(Composed(self.events))
        return drawn is not None and drawn <= self.rho


def cost_of(mechanism: Mechanism, case: Case) -> Cost:
    """Run a mechanism and add up what its draws cost.

    Raises:
        CostError: when something was drawn that no charge accounts for.
    """
    settings = mechanism.settings(case.terms, case.options)
    guarantee = mechanism.guarantee(case.terms, settings)
    with watch() as events:
        mechanism.run(case.terms, settings, case.dataset, None)
    epsilon, delta = price(Composed(tuple(events)), guarantee.delta)
    stated = mechanism.event(case.terms, settings)
    rho = stated.rho if isinstance(stated, Gaussian) else None
    return Cost(tuple(events), epsilon, delta, guarantee, rho)


@dataclass(frozen=True)
class Watched:
    """One run that was watched: what it cost, or why that cannot be said."""

    case: Case
    cost: Cost | None
    fault: str = ""

    @property
    def good(self) -> bool:
        """Whether every draw was accounted for, and the guarantee covers all of them."""
        return self.cost is not None and self.cost.kept


def watch_runs(mechanism: Mechanism, cases: Iterable[Case]) -> list[Watched]:
    """Run each case once, and say what it cost."""
    found = []
    for case in cases:
        try:
            found.append(Watched(case, cost_of(mechanism, case)))
        except CostError as error:
            found.append(Watched(case, None, str(error)))
    return found


def check_cost(mechanism: Mechanism, cases: Iterable[Case]) -> list[Finding]:
    """Return, for each question, the most that a run of a mechanism spent."""
    return merge([_finding(mechanism, run) for run in watch_runs(mechanism, cases)])


def _finding(mechanism: Mechanism, run: Watched) -> Finding:
    terms = run.case.terms
    share = math.inf if run.cost is None else run.cost.share
    return Finding(
        mechanism.name,
        f"{terms.query} per {terms.unit.name}",
        "cost",
        1,
        share,
        run.good,
        run.fault or f"{share:.6f} of the price",
        f"epsilon = {display(terms.epsilon)}",
    )


def unspent(runs: Iterable[Watched]) -> float:
    """Return the largest part of epsilon that a run left unspent, of those that drew anything."""
    costs = [run.cost for run in runs if run.cost is not None and run.cost.events]
    return max((1 - cost.share for cost in costs), default=0.0)


def cases_of(mechanism: Mechanism, size: int = 3) -> Iterator[Case]:
    """Yield runs of a registered mechanism: its questions, all units, budgets and odd datasets."""
    yield from _known_cases(mechanism, size)
    if mechanism.kind == "database":
        yield from _allowed(mechanism, _database_cases(mechanism))
    elif not is_audited(mechanism.kind) or not kind_of(mechanism.kind).questions(mechanism):
        yield from _allowed(mechanism, _graph_cases(mechanism))


def _known_cases(mechanism: Mechanism, size: int) -> Iterator[Case]:
    """Yield runs on the audit's own questions and, as far as it answers them, on odd ones."""
    if not is_audited(mechanism.kind):
        return
    kind = kind_of(mechanism.kind)
    for query in kind.questions(mechanism):
        world = kind.world_for(size, query)
        extremes = (world.datasets[0], world.datasets[-1], *kind.small(query))
        for dataset in extremes:
            for options in kind.options(mechanism):
                for epsilon, delta in BUDGETS:
                    terms = kind.terms(query, dataset, world.unit, epsilon, delta)
                    yield from _allowed(mechanism, [Case(terms, options, dataset)])
    options = kind.options(mechanism)[0]
    for query in kind.odd_questions():
        dataset = kind.world(size).datasets[-1]
        for name in dataset.units:
            unit = dataset.check_unit(name)
            if mechanism.supports(query, unit):
                epsilon, delta = BUDGETS[1]
                terms = Terms(query, unit, epsilon, delta, dataset.facts(unit))
                yield from _allowed(mechanism, [Case(terms, options, dataset)])


def _allowed(mechanism: Mechanism, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases that public facts do not refuse."""
    for case in cases:
        try:
            mechanism.settings(case.terms, case.options)
        except (InputError, QueryError):
            continue
        yield case


def _graph_cases(mechanism: Mechanism) -> list[Case]:
    """Return cases of mechanisms on graphs that go through a relation."""
    from tulle.graphs.data import Graph
    from tulle.graphs.queries.counts import edges, triangles

    star = Graph.from_edges([(0, 1), (0, 2), (0, 3), (1, 2)], nodes=4)
    graphs = [star, Graph.from_edges([], nodes=3)]
    return _crossed(mechanism, [triangles(), edges()], ["node", "edge"], graphs)


def _database_cases(mechanism: Mechanism) -> list[Case]:
    """Return cases of mechanisms on databases: rows of one owner or several, groups, signs."""
    from tulle.sql.queries import sql
    from tulle.sql.tables.quantiles import SqlQuantile

    by_place = (("place", (0, 1, 2)),)
    plain, grouped = "SELECT SUM(cost) FROM visit", "SELECT SUM(cost) FROM visit GROUP BY place"
    questions: list[Query] = [
        *(SqlQuantile(plain, "duckdb", (), (), Fraction(at)) for at in ("0", "0.5", "0.9")),
        SqlQuantile(grouped, "duckdb", by_place, (), Fraction(1, 2)),
        sql("SELECT COUNT(*) FROM visit"),
        sql("SELECT SUM(cost) FROM visit"),
        sql("SELECT COUNT(*) FROM visit a JOIN visit b ON a.place = b.place"),
        sql("SELECT SUM(a.cost - b.cost) FROM visit a JOIN visit b ON a.place = b.place"),
        sql("SELECT place, SUM(cost) FROM visit GROUP BY place", groups={"place": [0, 1, 2]}),
    ]
    questions += [
        sql("SELECT COUNT(*) FROM person"),
        sql("SELECT SUM(cost) FROM person"),
        sql("SELECT place, SUM(cost) FROM person GROUP BY place", groups={"place": [0, 1, 2]}),
    ]
    found = _crossed(mechanism, questions, ["participant"], list(_databases()))
    # Bound to the database itself: its keys are not among the facts.
    return [
        replace(case, terms=replace(case.terms, query=case.terms.query.bind(case.dataset, {})))
        for case in found
    ]


def _crossed(
    mechanism: Mechanism, questions: Sequence[Query], units: Sequence[str], datasets: Sequence[Any]
) -> list[Case]:
    options = {"bound": 8} if "bound" in mechanism.needs_options else {}
    return [
        Case(Terms(query, unit, epsilon, delta, dataset.facts(unit)), options, dataset)
        for query in questions
        for unit in map(Unit.of, units)
        if mechanism.supports(query, unit)
        for dataset in datasets
        for epsilon, delta in BUDGETS
    ]


@lru_cache(maxsize=1)
def _databases() -> tuple[Dataset, ...]:
    """Return a database in which a few people have rows, and one in which nobody has."""
    import duckdb

    from tulle.sql.data import Database

    made = []
    for rows in ("range(7)", "range(0)"):
        connection = duckdb.connect()
        connection.execute(
            "CREATE TABLE visit AS SELECT range % 4 AS person, range % 3 AS place, "
            f"range - 2 AS cost FROM {rows}"
        )
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, place INTEGER, cost INTEGER);"
            f"INSERT INTO person SELECT range, range % 3, range - 2 FROM {rows}"
        )
        ranges = {"visit.cost": (-10, 10), "person.cost": (-10, 10)}
        owners = {"visit": "person", "person": "id"}
        made.append(Database.connect(connection, owners=owners, ranges=ranges))
    return tuple(made)
