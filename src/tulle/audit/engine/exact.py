"""The whole distribution of what leaves, on tiny domains, against the stated guarantee."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
from scipy.stats import chi2

from tulle.audit.engine.broken import name_of
from tulle.audit.engine.exhaustive import parts_of
from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.laws import excess
from tulle.audit.engine.world import World
from tulle.core.arrays import Floats
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Mechanism, Parameters, Terms
from tulle.core.query import Query
from tulle.core.validate import text

TOLERANCE = 1e-9
"""Largest error of the computed log-ratios and divergences, relative to epsilon and delta."""

SIGNIFICANCE = 1e-6
"""How often a correct sampler is called wrong, at one look."""

FIRST_LOOK = 10
"""The first look is at one run in so many."""

UNLISTED = 0.5
"""How many of all runs may be expected, together, at outcomes that are not listed: too few to
move the comparison, whose cells hold eight or more."""

FEW, TOO_MANY = 8, 40
"""Outcomes expected less often than the first are rare; one of them, or all that are not listed,
seen so much more often than expected has no chance: a Poisson count of mean 8 is above 48 once in
10^19."""

EXACT, SAMPLER = "exact", "sampler"


def check_exact(
    kind: AuditView,
    mechanism: Mechanism,
    query: Query,
    world: World,
    described: Sequence[Description],
    guarantee: Guarantee,
) -> Finding:
    """Compare the output distributions of all neighbours with what is guaranteed.

    The parts of a run are independent, so the worst joint log-ratio is the sum of the parts'
    worst ones; with a delta, the joint hockey-stick divergence is summed over all cells. It is
    what leaves before post-processing that is compared: post-processing only brings
    distributions closer.
    """
    assert guarantee.epsilon is not None
    epsilon, delta = float(guarantee.epsilon), float(guarantee.delta)
    observed = (
        _excesses(world, described, epsilon) / delta
        if delta
        else _losses(world, described) / epsilon
    )
    place = int(np.argmax(observed)) if len(observed) else 0
    worst = float(observed[place]) if len(observed) else -1.0
    where = (int(world.first[place]), int(world.second[place])) if len(observed) else (0, 0)
    figure = (
        f"delta {worst * delta:.4g} of {text(guarantee.delta)} at epsilon {text(guarantee.epsilon)}"
        if delta
        else f"loss {worst * epsilon:.6g} of {text(guarantee.epsilon)}"
    )
    return Finding(
        mechanism.name,
        str(query),
        EXACT,
        len(world.first),
        worst,
        worst <= 1 + TOLERANCE,
        figure,
        f"{kind.show(world.datasets[where[0]])} | {kind.show(world.datasets[where[1]])}",
    )


def _losses(world: World, described: Sequence[Description]) -> Floats:
    """Return the worst log-ratio of each pair of neighbours; parts add up."""
    total = np.zeros(len(world.first))
    for _, laws in parts_of(described):
        places, whose = world.distinct_pairs(laws)
        total += np.array([laws[a].loss(laws[b]) for a, b in places])[whose]
    return total


def _excesses(world: World, described: Sequence[Description], epsilon: float) -> Floats:
    places, whose = world.distinct_pairs(described)
    found = [_excess(described[a], described[b], epsilon) for a, b in places]
    return np.array(found)[whose]


def _excess(one: Description, other: Description, epsilon: float) -> float:
    """Return the hockey-stick divergence of the joint distribution."""
    (_, first), *rest = one.parts
    masses, losses = first.losses(other.parts[0][1])
    total = 0.0
    # The other parts are pure and take few values of the log-ratio: condition on each.
    others = [
        law.losses(neighbour)
        for (_, law), (_, neighbour) in zip(rest, other.parts[1:], strict=True)
    ]
    for cells in product(*(zip(*map(np.ndarray.tolist, part), strict=True) for part in others)):
        weight = math.prod(mass for mass, _ in cells)
        spent = math.fsum(loss for _, loss in cells)
        left = -math.inf if spent == math.inf else epsilon - spent
        total += weight * (1.0 if left == -math.inf else excess(masses, losses, left))
    return total


def output_law(
    kind: AuditView,
    mechanism: Mechanism,
    terms: Terms,
    settings: Parameters,
    description: Description,
    left_out: float = 1e-7,
) -> dict[Hashable, float]:
    """Return the probability of each possible release, all but ``left_out`` of the mass."""
    own = kind.own_case(name_of(mechanism))
    finish = (own.finish if own else partial(kind.finish, mechanism))(terms, settings)
    share = left_out / len(description.parts)
    listed = [law.points(share) for _, law in description.parts]
    answers, weights = listed[0]
    finished: dict[Hashable, float] = defaultdict(float)
    tails = [list(zip(values, masses.tolist(), strict=True)) for values, masses in listed[1:]]
    # Post-processing of the answer can be slow, and mostly does not look at the other parts.
    rest = list(product(*tails))
    blank = tuple(cell[0] for cell in rest[0])
    answered: dict[Hashable, tuple[object, float]] = {}
    for answer, weight in zip(answers, weights.tolist(), strict=True):
        seen = answer if description.joint else finish((answer, *blank))
        known = answered.get(seen)
        answered[seen] = (answer, weight + (known[1] if known else 0.0))
    for answer, weight in answered.values():
        for cells in rest:
            outcome = finish((answer, *(value for value, _ in cells)))
            finished[outcome] += weight * math.prod(mass for _, mass in cells)
    return dict(finished)


def check_sampler(
    kind: AuditView,
    mechanism: Mechanism,
    query: Query,
    *,
    epsilon: Fraction,
    delta: Fraction,
    runs: int,
) -> Finding:
    """Compare real runs, from the system's source, with the closed form (chi-square).

    This ties the descriptions that the other checks use to the code that draws: centre, noise,
    independence of the parts and post-processing.
    """
    for finding in sampler_looks(kind, mechanism, query, epsilon=epsilon, delta=delta, runs=runs):
        if not finding.passed:
            break
    return finding


def sampler_looks(
    kind: AuditView,
    mechanism: Mechanism,
    query: Query,
    *,
    epsilon: Fraction,
    delta: Fraction,
    runs: int,
) -> Iterator[Finding]:
    """Yield the comparison after a tenth of the runs, where a gross fault is seen, and after all.

    Each is a test of its own, at the full significance.
    """
    dataset = kind.small(query)[0]
    unit = kind.unit_for(query, dataset)
    terms = kind.terms(query, dataset, unit, epsilon, delta)
    settings = mechanism.settings(terms, kind.options(mechanism)[0])
    description = kind.describe(mechanism, terms, settings, dataset)
    law = output_law(kind, mechanism, terms, settings, description, UNLISTED / runs)
    draw = kind.draw(mechanism, terms, settings, dataset)
    seen: Counter[Hashable] = Counter()
    for total in (runs // FIRST_LOOK, runs):
        seen.update(kind.observe(draw()) for _ in range(total - seen.total()))
        probability = chi_square(seen, law, total)
        yield Finding(
            mechanism.name,
            str(query),
            SAMPLER,
            total,
            ratio_of_significance(probability),
            probability >= SIGNIFICANCE,
            f"chi-square p = {probability:.2g}",
            kind.show(dataset),
        )


def ratio_of_significance(probability: float) -> float:
    """Return ln p / ln significance: above 1 the test rejects."""
    if probability <= 0:
        return math.inf
    return math.log(probability) / math.log(SIGNIFICANCE)


def chi_square(seen: Counter[Hashable], law: dict[Hashable, float], runs: int) -> float:
    """Return the probability of a fit at least as bad, rare outcomes taken as one."""
    expected, observed = [], []
    rare_expected, rare_observed = 0.0, runs
    for outcome, probability in law.items():
        if probability * runs >= FEW:
            expected.append(probability * runs)
            observed.append(seen[outcome])
            rare_observed -= seen[outcome]
    # A source with a seed gives one outcome again and again, however rare it should be.
    unlisted = max(1.0 - math.fsum(law.values()), 0.0)
    if any(law.get(one, unlisted) * runs < FEW and n > FEW + TOO_MANY for one, n in seen.items()):
        return 0.0
    rare_expected = max(runs - math.fsum(expected), 0.0)
    if rare_expected >= FEW:
        expected.append(rare_expected)
        observed.append(rare_observed)
    elif rare_observed > rare_expected + TOO_MANY:
        # Outcomes that should hardly occur.
        return 0.0
    if len(expected) < 2:
        return 1.0 if rare_observed <= rare_expected + TOO_MANY else 0.0
    e, o = np.array(expected), np.array(observed, dtype=np.float64)
    return float(chi2.sf(float(np.sum((o - e) ** 2 / e)), len(e) - 1))
