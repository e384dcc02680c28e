"""Most significant SNPs of a study.

How many of ten planted SNPs among a thousand are found, in studies of 1,500 cases and as many
controls, against the price, by three mechanisms.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import INSIDE, OUTSIDE, SOFT, panels, save

import tulle
from tulle.genomes import Association, top_snps
from tulle.genomes.generators import made_up_study


def draw(path: Path) -> None:
    """Draw the figure."""
    planted = [f"rs{i}" for i in range(10)]
    published = [
        Association("trait", f"rs{i}", "A", frequency=0.3, odds_ratio=2.5 if i < 10 else 1.0)
        for i in range(1000)
    ]
    study = made_up_study(published, cases=1500, controls=1500, seed=1)
    prices = [0.05, 0.1, 0.2, 0.5, 1.0]
    figure, (panel,) = panels()
    marks = {"one_shot": (OUTSIDE, 0.0), "peeling": (SOFT, 0.0), "exponential": (INSIDE, 1e-6)}
    for mechanism, (colour, delta) in marks.items():
        found = [
            np.mean([_share(study, planted, epsilon, mechanism, delta) for _ in range(6)])
            for epsilon in prices
        ]
        words = f"{mechanism}, delta = {delta:g}" if delta else mechanism
        panel.plot(prices, found, "o-", color=colour, label=words)
    panel.set(xscale="log", xlabel="epsilon", ylabel="share found", ylim=(0, 1.05))
    panel.legend(frameon=False)
    save(figure, path)


def _share(
    study: tulle.Genotypes, planted: list[str], epsilon: float, mechanism: str, delta: float
) -> float:
    r = tulle.release(
        study, top_snps(10), unit="row", epsilon=epsilon, delta=delta, mechanism=mechanism
    )
    return len(set(r.value["snps"]) & set(planted)) / 10
