"""The price of a run, recomputed from every draw that it made.

A run is watched (:mod:`tulle.noise.charge`): each draw has to be charged for, each charge becomes
an event with the parameters that the sampler was really called with, and the events of the run
must compose to no more than the guarantee says. Which branch a run takes depends on the data and on
the noise, so many datasets are run, extreme ones among them, at several budgets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from tulle.audit.engine.findings import Finding, merge
from tulle.audit.engine.kind import AuditView, is_audited, kind_of
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.events import Composed, Event, noise_of, price
from tulle.core.guarantee import Guarantee, display
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.source import Source
from tulle.ledger.divergence import concentration
from tulle.noise.charge import CostError
from tulle.noise.watch import watch

BUDGETS = (
    (Fraction(1, 100), Fraction(1, 10**6)),
    (Fraction(1), Fraction(1, 10**9)),
    (Fraction(30), Fraction(1, 20)),
)
"""Every (epsilon, delta) at which runs are watched."""


@dataclass(frozen=True)
class Case:
    """One run to watch."""

    terms: Terms
    options: Parameters
    dataset: Dataset
    source: Source | None = None
    """Where the noise comes from, if not from the system."""


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
        mechanism.run(case.terms, settings, case.dataset, case.source)
    epsilon, delta = price(Composed(tuple(events)), guarantee.delta)
    stated = mechanism.event(case.terms, settings)
    rho = None if noise_of(stated) is None else concentration(stated)
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
    if not is_audited(mechanism.kind):
        return
    kind = kind_of(mechanism.kind)
    allowed: dict[str, bool] = {}
    for case in _cases(kind, mechanism, size):
        # Settings follow from public facts, so one answer for each set of them is enough.
        key = repr((case.terms, case.options))
        if key not in allowed:
            allowed[key] = is_allowed(mechanism, case)
        if allowed[key]:
            yield case


def _cases(kind: AuditView, mechanism: Mechanism, size: int) -> Iterator[Case]:
    for query in kind.questions(mechanism):
        world = kind.world_for(size, query)
        extremes = (world.datasets[0], world.datasets[-1], *kind.small(query))
        for dataset, options, budget in product(extremes, kind.options(mechanism), BUDGETS):
            terms = kind.terms(query, dataset, world.unit, *budget)
            yield Case(terms, options, dataset)
    for query, dataset in kind.priced(mechanism):
        for unit, budget in product(map(dataset.check_unit, dataset.units), BUDGETS):
            if mechanism.supports(query, unit):
                terms = Terms(query, unit, *budget, dataset.facts(unit))
                yield Case(terms, kind.options(mechanism)[0], dataset)
    for query in kind.odd_questions():
        dataset = kind.world(size).datasets[-1]
        for unit in map(dataset.check_unit, dataset.units):
            if mechanism.supports(query, unit):
                terms = Terms(query, unit, *BUDGETS[1], dataset.facts(unit))
                yield Case(terms, kind.options(mechanism)[0], dataset)


def is_allowed(mechanism: Mechanism, case: Case) -> bool:
    """Say whether public facts do not refuse a case."""
    try:
        mechanism.settings(case.terms, case.options)
    except (InputError, QueryError):
        return False
    return True
