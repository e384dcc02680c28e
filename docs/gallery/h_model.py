"""A private model.

Accuracy of a logistic model of five thousand made-up people against the price, with the model that
no one may see and the guess that needs no data.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery._style import INSIDE, OUTSIDE, SOFT, panels, save

import tulle
from tulle.models import Model, Table, logistic


def draw(path: Path) -> None:
    """Draw the figure."""
    some = np.random.default_rng(1)
    age, married = some.uniform(20, 80, 5000), some.random(5000) < 0.5
    rich = some.random(5000) < 1 / (1 + np.exp(-(age - 60) / 8 - 2 * married))
    features = {"age": age, "married": married.tolist()}
    people = Table(
        {**features, "rich": rich.tolist()},
        bounds={"age": (18, 90)},
        classes={"married": [False, True], "rich": [False, True]},
    )
    prices = [0.01, 0.03, 0.1, 0.3, 1.0]
    figure, (panel,) = panels()
    for epsilon in prices:
        right = []
        for _ in range(8):
            r = tulle.release(people, logistic("rich"), unit="row", epsilon=epsilon)
            right.append(np.mean(np.asarray(Model.of(r).predict(features)) == rich))
        panel.plot([epsilon] * 8, right, ".", color=OUTSIDE)
    best = np.mean(((age - 60) / 8 + 2 * married > 0) == rich)
    panel.axhline(best, color=INSIDE, label="the true rule")
    panel.axhline(max(rich.mean(), 1 - rich.mean()), color=SOFT, ls=":", label="the larger class")
    panel.set(xscale="log", xlabel="epsilon", ylabel="accuracy")
    panel.legend(frameon=False)
    save(figure, path)
