"""Broken versions of the mechanisms on contributions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from tulle.audit.contributions.kind import (
    APART,
    ONE_BLOCK,
    QUESTIONS,
    TWO_BLOCKS,
    people_of,
)
from tulle.audit.contributions.laws import OneDraw
from tulle.audit.engine.broken import Broken
from tulle.audit.engine.laws import Law
from tulle.audit.faults import (
    BOTH,
    ChangeLaw,
    ChangeSettings,
    broken,
    forget_delta,
    leave_open,
    read_support_from_data,
)
from tulle.core import registry
from tulle.core.dataset import Dataset
from tulle.core.mechanism import Mechanism, Outcome, Parameters, Terms
from tulle.core.source import Source
from tulle.core.validate import text
from tulle.matrices.contributions.block_mechanism import (
    BlockMechanism,
    BlockSettings,
    limits_from,
    masses,
    weights_query,
)
from tulle.matrices.contributions.blocks import frame_of
from tulle.matrices.contributions.clipping import clip
from tulle.matrices.contributions.data import Contributions
from tulle.matrices.contributions.partition import GAUSSIAN
from tulle.matrices.contributions.private_partition import VoteSettings


def around(centre: Any) -> ChangeLaw:
    """Return a law of the same noise around other totals, ``centre(terms, settings, data)``."""

    def law(laws: Mapping[str, Any], *run: Any) -> Mapping[str, Law]:
        whole = tuple(int(entry) for entry in np.reshape(centre(*run), -1))
        return {"totals": replace(laws["totals"], centre=whole)}

    return law


def not_clipped(mechanism: Mechanism) -> Broken:
    """Take individuals as they are."""
    return broken(
        mechanism,
        "not clipped",
        "a participant beyond the bounds moves the totals by more than them",
        QUESTIONS[mechanism.name],
        BOTH,
        law=around(lambda terms, settings, data: data.totals()),
    )


def one_draw_per_block(mechanism: Mechanism) -> Broken:
    """Draw once for all cells of a block, as printed in the pseudo-code."""

    def run(
        self: BlockMechanism, terms: Terms, settings: Parameters, data: Dataset, source: Source
    ) -> Outcome:
        assert isinstance(data, Contributions)
        limits = limits_from(terms, settings)
        centre = clip(data, limits)
        for block, scale in enumerate(BlockSettings.read(settings).scales):
            centre[limits.labels == block] += self.draw(scale, 1, source)
        return Outcome(centre.astype(np.float64), None)

    return broken(
        mechanism,
        "one draw per block",
        "cells of a block share one draw: their differences are exact",
        (ONE_BLOCK,),
        ("exact", "sampler"),
        law=lambda laws, *_: {"totals": OneDraw(**vars(laws["totals"]))},
        run=run,
    )


def replaced_by_another(terms: Terms, settings: Parameters, data: Any) -> Any:
    """Return totals in which whoever is beyond the bounds is replaced by somebody who is within."""
    most = limits_from(terms, settings).total
    people = people_of(data)
    within = [person for person in people if sum(map(abs, person)) <= most]
    model = within[0] if within else (0, 0)
    kept = [person if sum(map(abs, person)) <= most else model for person in people]
    return np.array(kept).reshape(-1, 2).sum(axis=0)


def own_bounds(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, data: Any
) -> Mapping[str, Law]:
    """Let the largest person of the data be the bound: a reference that is the data itself."""
    most = max((sum(map(abs, person)) for person in people_of(data)), default=0)
    honest = laws["totals"]
    scales = tuple(max(most, 1) / terms.epsilon for _ in honest.scales)
    whole = tuple(int(entry) for entry in data.totals().reshape(-1))
    return {"totals": replace(honest, centre=whole, scales=scales)}


def balle_and_wang(length: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation for a move of this length."""

    def excess(mu: float) -> float:
        tail = math.exp(epsilon + norm.logcdf(-epsilon / mu - mu / 2))
        return float(norm.cdf(-epsilon / mu + mu / 2) - tail - delta)

    return length / float(brentq(excess, 1e-3, 100.0, xtol=1e-12))


def printed_deviation(length: float, epsilon: float, delta: float) -> float:
    """Return sqrt(2 ln(1.25 / delta)) · length / epsilon."""
    return length * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def twice_delta(deviation: Any) -> ChangeSettings:
    """Calibrate each of K blocks to delta_k = 2·delta / K, by some formula."""

    def change(honest: Parameters, terms: Terms) -> Parameters:
        frame = frame_of(weights_query(terms), terms.facts, GAUSSIAN)
        caps, _ = masses(frame, limits_from(terms, honest), True)
        parts = [math.sqrt(math.sqrt(c) * n) for c, n in zip(caps, honest["sizes"], strict=True)]
        delta = min(2 * float(terms.delta) / len(caps), 0.99)
        found = [
            deviation(math.sqrt(cap), float(terms.epsilon) * part / sum(parts), delta)
            for cap, part in zip(caps, parts, strict=True)
        ]
        return {"scales": [text(Fraction(sigma**2)) for sigma in found]}

    return change


def more_than_one_vote(
    laws: Mapping[str, Any], terms: Terms, settings: Parameters, data: Any
) -> Mapping[str, Law]:
    """Count contributions, not people."""
    whole = np.abs(data.totals()).reshape(-1) * VoteSettings.read(settings).pieces
    return {"votes": replace(laws["votes"], centre=tuple(int(entry) for entry in whole))}


@registry.register("audit", "contributions", "faults")
def contribution_faults() -> list[Broken]:
    """Return all broken versions."""
    real = registry.mechanisms("contributions")
    laplace, gaussian = real["block_laplace"], real["block_gaussian"]
    return [
        forget_delta(gaussian, QUESTIONS["block_gaussian"]),
        one_draw_per_block(laplace),
        read_support_from_data(
            laplace, (TWO_BLOCKS, APART), "totals", what="support read off the data"
        ),
        not_clipped(laplace),
        not_clipped(gaussian),
        broken(
            laplace,
            "replaced by another's records",
            "one participant's records are released once for each who is replaced (I_0)",
            (ONE_BLOCK,),
            BOTH,
            law=around(replaced_by_another),
        ),
        broken(
            laplace,
            "bounds read off the data",
            "a reference that is not public: the noise tells how much the largest person has",
            (ONE_BLOCK,),
            BOTH,
            law=own_bounds,
        ),
        broken(
            gaussian,
            "delta_k = 2·delta/K",
            "the blocks' deltas add up to twice the delta",
            (ONE_BLOCK,),
            settings=twice_delta(balle_and_wang),
        ),
        broken(
            gaussian,
            "the printed deviation",
            "the printed deviation holds for epsilon < 1 only",
            (ONE_BLOCK, TWO_BLOCKS, APART),
            settings=twice_delta(printed_deviation),
        ),
        broken(
            real["block_quantiles"],
            "all of epsilon for each block",
            "one participant is in every block, and each choice costs epsilon",
            QUESTIONS["block_quantiles"][1:2],
            settings=lambda _, terms: {"epsilon": text(terms.epsilon)},
        ),
        leave_open(
            real["vote_partition"],
            "votes",
            QUESTIONS["vote_partition"],
            "which cells stand out is read off the data, as printed",
        ),
        broken(
            real["vote_partition"],
            "a vote for each contribution",
            "whoever contributes more has more votes than one",
            QUESTIONS["vote_partition"],
            BOTH,
            law=more_than_one_vote,
        ),
    ]
