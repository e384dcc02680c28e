"""A survey without a collector to trust.

Sixty thousand clients perturb their own answer; the shares are estimated from what they sent, with
intervals, at three prices.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import INSIDE, OUTSIDE, SOFT, panels, save

import tulle
from tulle.surveys import Collection, perturb

LEVELS = ["never", "rarely", "monthly", "weekly", "daily"]
SHARES = np.array([0.42, 0.25, 0.17, 0.11, 0.05])


def draw(path: Path) -> None:
    """Draw the figure."""
    survey = tulle.Survey({"how often": LEVELS}, name="habits")
    answers = np.repeat(np.arange(5), (SHARES * 60_000).astype(int))
    figure, (panel,) = panels()
    panel.bar(np.arange(5), SHARES, color=INSIDE, alpha=0.5, label="inside")
    for place, (epsilon, colour) in enumerate([(0.5, SOFT), (1.0, OUTSIDE), (3.0, "#1d2326")]):
        form = survey.form(epsilon={"how often": epsilon})
        collection = Collection(form)
        collection.add(perturb(form, {"how often": answers}))
        estimate = collection.proportions("how often")
        low, high = estimate.interval(0.95)
        value = np.asarray(estimate.value)
        panel.errorbar(
            np.arange(5) + 0.18 * (place - 1),
            value,
            yerr=[np.maximum(value - low, 0), np.maximum(high - value, 0)],
            fmt="o",
            ms=4,
            capsize=3,
            color=colour,
            label=f"epsilon = {epsilon:g}",
        )
    panel.set(xticks=np.arange(5), xticklabels=LEVELS, ylabel="share")
    panel.legend(frameon=False)
    save(figure, path)
