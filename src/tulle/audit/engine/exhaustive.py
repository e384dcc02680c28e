"""Every claim of every proof, on every small dataset and every neighbour of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tulle.audit.engine.findings import Finding
from tulle.audit.engine.kind import AuditView, Description
from tulle.audit.engine.laws import Claim, Law
from tulle.audit.engine.world import World
from tulle.core.mechanism import Mechanism, Parameters
from tulle.core.query import Query

TOLERANCE = 1e-9
"""What floating-point may add to a ratio; a false claim about whole numbers is off by far more."""

CHECK = "claims"


def describe_world(
    kind: AuditView,
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
    kind: AuditView,
    mechanism: Mechanism,
    query: Query,
    world: World,
    described: Sequence[Description],
) -> list[Finding]:
    """Compare each dataset with each of its neighbours; return one finding for each claim.

    The claims are those of the laws in the descriptions: sensitivities, ladder conditions,
    smoothness. Equal pairs of laws are compared once and counted as often as they occur.
    """
    worst: dict[str, tuple[Claim, tuple[int, int]]] = {}
    for name, laws in parts_of(described):
        for place in world.distinct_pairs(laws)[0]:
            for claim in laws[place[0]].claims(laws[place[1]]):
                check = f"{name}, {claim.check}"
                if check not in worst or claim.observed > worst[check][0].observed:
                    worst[check] = claim, place
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


def parts_of(described: Sequence[Description]) -> Iterator[tuple[str, list[Law]]]:
    """Yield the name of each part, and its law on every dataset."""
    for entries in zip(*(one.parts for one in described), strict=True):
        yield entries[0][0], [law for _, law in entries]
