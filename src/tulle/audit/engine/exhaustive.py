"""Every claim of every proof, on every small dataset and every neighbour of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import Description, Kind
from tulle.audit.engine.laws import Claim
from tulle.audit.engine.world import World
from tulle.core.mechanism import Mechanism, Parameters
from tulle.core.query import Query

TOLERANCE = 1e-9
"""What floating-point may add to a ratio; a false claim about whole numbers is off by far more."""

CHECK = "claims"


def describe_world(
    kind: Kind,
    mechanism: Mechanism,
    query: Query,
    world: World,
    epsilon: Fraction,
    delta: Fraction,
    options: Parameters | None = None,
) -> list[Description]:
    """Return the closed form of a run on each dataset of a world."""
    described = []
    chosen: dict[str, Parameters] = {}
    for dataset in world.datasets:
        terms = kind.terms(query, dataset, world.unit, epsilon, delta)
        # Settings follow from public facts, so one per set of facts is enough.
        facts = repr(terms.facts)
        if facts not in chosen:
            chosen[facts] = mechanism.settings(terms, options or {})
        described.append(kind.describe(mechanism, terms, chosen[facts], dataset))
    return described


def check_claims(
    kind: Kind,
    mechanism: Mechanism,
    query: Query,
    world: World,
    described: Sequence[Description],
) -> list[Finding]:
    """Compare each dataset with each of its neighbours; return one finding for each claim.

    The claims are those of the laws in the descriptions: sensitivities, ladder conditions,
    smoothness. Equal pairs of descriptions are compared once and counted as often as they occur.
    """
    worst: dict[str, tuple[Claim, tuple[int, int]]] = {}
    for place in world.distinct_pairs(described).values():
        for claim in _claims(described[place[0]], described[place[1]]):
            if claim.check not in worst or claim.observed > worst[claim.check][0].observed:
                worst[claim.check] = claim, place
    return [
        Finding(
            mechanism.name,
            str(query),
            f"{CHECK}: {check}",
            len(world.first),
            claim.observed,
            claim.observed <= 1 + TOLERANCE,
            claim.figure,
            f"{kind.show(world.datasets[place[0]])} | {kind.show(world.datasets[place[1]])}",
        )
        for check, (claim, place) in worst.items()
    ]


def _claims(one: Description, other: Description) -> Iterator[Claim]:
    for (name, law), (_, neighbour) in zip(one.parts, other.parts, strict=True):
        for claim in law.claims(neighbour):
            yield claim._replace(check=f"{name}, {claim.check}")
