"""A join, counted per person.

Pairs of orders by the same customer for the same item, a self-join, per region, at epsilon = 2 in
all. One customer with everything they bought is hidden.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
from gallery._style import INSIDE, OUTSIDE, panels, save

import tulle

REGIONS = ["north", "south", "east", "west"]
STATEMENT = (
    "SELECT a.region, count(*) AS pairs FROM orders a JOIN orders b ON a.customer = b.customer "
    "AND a.item = b.item AND a.id < b.id GROUP BY a.region"
)


def draw(path: Path) -> None:
    """Draw the figure."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE orders AS SELECT i AS id, (i * 7919) % 6000 AS customer, (i * 104729) % 11 "
        "AS item, ['north', 'south', 'east', 'west'][1 + ((i * 7919) % 6000) % 4] AS region "
        "FROM range(120000) t(i)"
    )
    shop = tulle.Database.connect(connection, owners={"orders": "customer"})
    query = tulle.sql(STATEMENT, groups={"region": REGIONS})
    r = tulle.release(shop, query, unit="participant", epsilon=2.0)
    places = np.arange(4)
    figure, (panel,) = panels()
    panel.bar(places - 0.2, query.truth(shop)["pairs"], 0.38, color=INSIDE, label="inside")
    pairs, low = (np.asarray(r.value[name], dtype=float) for name in ("pairs", "pairs_low"))
    spread = np.array([pairs - low, np.zeros(4)])
    panel.bar(places + 0.2, pairs, 0.38, yerr=spread, color=OUTSIDE, label="released", capsize=4)
    panel.set(xticks=places, xticklabels=REGIONS, ylabel="pairs of orders")
    panel.legend(frameon=False)
    save(figure, path)
