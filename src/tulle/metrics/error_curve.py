"""How wrong answers are at each price: every mechanism on equal terms, on data that may be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tulle.core import validate
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, QueryError
from tulle.core.public import public
from tulle.core.query import Query
from tulle.core.table import LabelledTable
from tulle.core.validate import Number
from tulle.ledger.answer import plan_for, release


@public("Judge")
def error_curve(
    query: Query,
    dataset: Dataset,
    epsilons: Sequence[Number],
    mechanisms: Sequence[str] | None = None,
    *,
    unit: str,
    delta: Number = 0.0,
    runs: int = 40,
) -> LabelledTable:
    """Measure the error of a question at several prices, for each mechanism.

    It reads the true answer, and draws each release ``runs`` times: for data that is public or
    made up, never for data that is to be protected. Without ``mechanisms`` all that a plan offers
    are measured.

    Returns:
        A row for each mechanism and epsilon: the median and the 95th percentile of the error that
        was measured (for several numbers, of their mean absolute error), and the median that the
        plan had predicted (None where it does not know).

    Raises:
        InputError: when there is nothing to measure.

    Example:
        >>> import tulle
        >>> ring = tulle.Graph.from_edges([(i, (i + 1) % 60) for i in range(60)], nodes=60)
        >>> curve = tulle.error_curve(tulle.edges(), ring, [0.1, 10], unit="edge", runs=10)
        >>> curve.to_dict()["mechanism"]
        ['laplace', 'laplace']
    """
    if not len(epsilons):
        raise InputError("Give at least one epsilon.")
    runs = validate.whole(runs=runs, at_least=1, at_most=10**6)
    truth = np.asarray(query.truth(dataset), dtype=np.float64)
    rows: list[tuple[str, float, float, float, float | None]] = []
    for epsilon in epsilons:
        terms: dict[str, Any] = {"unit": unit, "epsilon": epsilon, "delta": delta}
        offers = plan_for(dataset, query, **terms).offers
        names = mechanisms or [offer.mechanism for offer in offers]
        for name in names:
            try:
                plan = plan_for(dataset, query, **terms, mechanism=name)
            except QueryError:
                # It needs a delta, or cannot do this at this price; others can.
                continue
            errors = [
                np.abs(_numbers(release(dataset, query, **terms, mechanism=name).value) - truth)
                for _ in range(runs)
            ]
            sizes = [float(error.mean()) for error in errors]
            predicted = plan.chosen.prediction.rank() if plan.offers else float("inf")
            rows.append(
                (
                    name,
                    float(epsilon),
                    float(np.median(sizes)),
                    float(np.quantile(sizes, 0.95)),
                    predicted if np.isfinite(predicted) else None,
                )
            )
    if not rows:
        raise InputError(f"No mechanism named answers {query} at these prices.")
    titles = ("mechanism", "epsilon", "median_error", "error_95", "predicted_median")
    columns = dict(zip(titles, map(list, zip(*rows, strict=True)), strict=True))
    return LabelledTable(columns, keys=("mechanism", "epsilon"))


def _numbers(value: Any) -> Any:
    return np.asarray(value, dtype=np.float64)
