"""Trait, identity and new-trait inference from a catalogue or from private study results.

These attacks are on people in general: the target need not have taken part in any study. What a
study's guarantee bounds is how much one person's taking part changes what is learnt; it does not
bound what the results say about everybody. The reports therefore have no limit, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.attacks.intervals import mean_interval, rate_interval
from tulle.attacks.limits import NO_LIMIT
from tulle.attacks.report import AttackReport
from tulle.core import validate
from tulle.core.arrays import Floats
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.genomes.network import TraitNetwork

LEVEL = 0.95
REASON = "the guarantee is about taking part in the study, not about people in general"


@public()
def trait_inference(
    network: TraitNetwork, profiles: Any, trait: str, *, truth: Any = None
) -> AttackReport:
    """Infer a trait of people whose genotypes the adversary has.

    ``profiles`` has one row per person, as :meth:`TraitNetwork.align` gives. For one person the
    figure is the belief that they have the trait; for several its mean over them. With ``truth``
    (who has it) it is how often the likelier answer is right.

    Error:
        Beliefs are exact for the network. The interval of a mean is for other people of the same
        population.

    Raises:
        InputError: when the network does not know the trait or the profiles do not fit it.

    Reference:
        Wang, Wu & Shi, Using aggregate human genome data for individual identification, 2013;
        algorithm 6 and lemma 9 of the chapter.

    Example:
        >>> from tulle.genomes import Association, Catalogue
        >>> made = Catalogue.of([Association("Mumps", "rs1", "A", 0.2, 4.0)])
        >>> network = TraitNetwork(made, prevalence=0.1, copies=1)
        >>> found = trait_inference(network, [1], "Mumps")
        >>> found.before, round(found.after, 3), found.bounded
        (0.1, 0.217, False)
    """
    beliefs = _network(network).posterior(profiles, trait)
    before = float(network.prevalence[network.place(trait)])
    knows = ("the target's genotypes", "how common each trait is")
    details = {"snps": list(network.children(trait))}
    if truth is not None:
        real = _answers(truth, len(beliefs))
        right = int(((beliefs > 0.5) == real).sum())
        before = max(float(real.mean()), 1 - float(real.mean()))
        return _report(
            "trait",
            f"who has {trait}",
            knows,
            "success",
            before,
            right / len(real),
            rate_interval(right, len(real), LEVEL),
            network,
            trials=len(real),
            details=details,
        )
    after = float(beliefs.mean())
    return _report(
        "trait",
        f"the target has {trait}",
        knows,
        "belief",
        before,
        after,
        (after, after) if len(beliefs) == 1 else mean_interval(beliefs, LEVEL),
        network,
        trials=len(beliefs),
        details=details,
    )


def record_beliefs(
    network: TraitNetwork, profiles: Any, traits: Sequence[str], *, as_printed: bool = False
) -> Floats:
    """Return the chance that each record of an anonymous table is that of the target.

    The target has the ``traits``, and every record could be theirs. The chance of a record is in
    proportion to P(record | traits) / P(record): the other records are anybody's, so that a
    common record is no better for being common. Lemma 10 as printed leaves out the denominator;
    ``as_printed`` does too, for comparison.
    """
    known = _network(network)
    if not traits:
        return np.full(len(known.check(profiles)), 1 / len(known.check(profiles)))
    logs = known.log_likelihood(profiles, list(traits))
    if not as_printed:
        logs = logs - known.log_likelihood(profiles, [], snps_of=list(traits))
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@public()
def identity_inference(
    network: TraitNetwork, profiles: Any, *, traits: Sequence[str], truth: int | None = None
) -> AttackReport:
    """Find the target's record in an anonymous table of genotypes, knowing traits of theirs.

    The figure is the belief in the record ``truth``, or in the likeliest one when that is not
    given.

    Raises:
        InputError: when the network does not know a trait or the profiles do not fit it.

    Reference:
        Algorithm 7 and lemma 10 of the chapter, with the denominator that it lacks.
    """
    beliefs = record_beliefs(network, profiles, traits)
    record = int(np.argmax(beliefs)) if truth is None else validate.whole(truth=truth, at_least=0)
    if record >= len(beliefs):
        raise InputError(f"truth names record {record}; there are {len(beliefs)} from 0.")
    after = float(beliefs[record])
    return _report(
        "identity",
        "which record is the target's",
        (f"that the target has {', '.join(traits)}", "that the table holds their record"),
        "belief",
        1 / len(beliefs),
        after,
        (after, after),
        network,
        details={
            "record": record,
            "records": len(beliefs),
            "rank": int((beliefs > beliefs[record]).sum()) + 1,
        },
    )


@public()
def new_trait_inference(
    network: TraitNetwork, profiles: Any, *, traits: Sequence[str], new: str
) -> AttackReport:
    """Infer a further trait of someone whose record is somewhere in an anonymous table.

    Each record's chance of being the target's weighs what it says about the new trait.

    Raises:
        InputError: when the network does not know a trait or the profiles do not fit it.

    Reference:
        Lemma 11 of the chapter.
    """
    weights = record_beliefs(network, profiles, traits)
    after = float(weights @ network.posterior(profiles, new))
    return _report(
        "new_trait",
        f"the target has {new}",
        (f"that the target has {', '.join(traits)}", "that the table holds their record"),
        "belief",
        float(network.prevalence[network.place(new)]),
        after,
        (after, after),
        network,
        details={"records": len(weights)},
    )


def _network(network: Any) -> TraitNetwork:
    if isinstance(network, TraitNetwork):
        return network
    what = "sealed data" if isinstance(network, Dataset) else f"a {type(network).__name__}"
    raise InputError(
        "These attacks run on a TraitNetwork, made of a published catalogue or of releases; got "
        f"{what}."
    )


def _answers(truth: Any, people: int) -> npt.NDArray[np.bool_]:
    real = np.asarray(truth)
    if real.shape != (people,) or not bool(np.isin(real, (0, 1)).all()):
        raise InputError("truth must say for each person whether they have the trait: 1 or 0.")
    return real.astype(bool)


def _report(
    attack: str,
    secret: str,
    knows: tuple[str, ...],
    measure: Any,
    before: float,
    after: float,
    interval: tuple[float, float],
    network: TraitNetwork,
    *,
    trials: int = 1,
    details: dict[str, Any],
) -> AttackReport:
    return AttackReport(
        attack=attack,
        secret=secret,
        knows=knows,
        measure=measure,
        before=before,
        after=after,
        interval=interval,
        level=1.0 if interval[0] == interval[1] else LEVEL,
        limits=NO_LIMIT,
        reason=REASON,
        guarantee=network.guarantee,
        trials=trials,
        details=details,
    )
