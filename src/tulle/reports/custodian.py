"""The custodian's page: each answer beside its truth and the error that was predicted."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tulle.core.guarantee import Guarantee
from tulle.core.release import Release
from tulle.core.table import LabelledTable
from tulle.core.validate import counted
from tulle.core.wording import (
    answer,
    hidden,
    state,
)
from tulle.reports.terms import guarantee_terms

if TYPE_CHECKING:
    from tulle.core.plan import Plan
from tulle.reports.page import cited, explained, number_text, page


def custodian_report(
    account: str, rows: Sequence[Mapping[str, Any]], terms: Guarantee, left: str
) -> str:
    """Return the custodian's page: each answer beside the truth and the predicted error.

    The rows are those of :func:`custodian_row`. This page is not private.
    """
    name = html.escape(f"Inside: {account}")
    count = (
        "Nothing was"
        if not rows
        else "One answer was"
        if len(rows) == 1
        else (f"{counted(len(rows), 'answer')} were")
    )
    missing = "" if all(row["truth"] is not None for row in rows) else _MISSING
    columns = ("question", "price", "released", "truth", "off", "predicted")
    lines = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(number_text(row[one]))}</td>" for one in columns)
        + "</tr>"
        for row in rows
    )
    titles = "<th>question<th>price<th>released<th>truth<th>off by<th>predicted"
    overview = f"<div class='wide'><table><tr>{titles}</tr>{lines}</table></div>"
    body = f"""<h1>{name}</h1>
<p class="inside"><b>This page shows the truth. It must stay with the custodian.</b></p>
<p>{count} released. Noise hides <b>{html.escape(hidden(terms))}</b>. The account allows
<b>{html.escape(str(terms))}</b>{explained(guarantee_terms(terms))}
Of it, <b>{html.escape(left)}</b> is left.</p>
{overview if rows else ""}{_PREDICTED if rows else ""}{missing}
{"".join(map(_section, rows))}"""
    return page(name, body)


def _section(row: Mapping[str, Any]) -> str:
    """Return one answer beside its truth, in sentences."""
    told = {name: html.escape(number_text(row[name])) for name in ("released", "truth")}
    off, promised = (html.escape(_sized(row[name])) for name in ("off", "predicted"))
    said = f"Released: <b>{told['released']}</b>."
    if row["truth"] is not None:
        several = isinstance(row["truth"], str)
        said += (
            f" Its numbers are off by <b>{off}</b> on average"
            if several
            else f" The truth is <b>{told['truth']}</b>; the release is off by <b>{off}</b>"
        )
        if row["predicted"] is not None:
            within = "no more than" if row["off"] <= row["predicted"] else "more than"
            said += f", {within} the predicted {promised}"
        said += "."
    cut = f"<p class='inside'><b>What was clipped.</b> {html.escape(row['clipped'])}</p>"
    return (
        f"<h2>{html.escape(row['asked'])}</h2><p>{said}</p>{cut if row['clipped'] else ''}"
        f"<dl><dt>Formula</dt><dd><code>{html.escape(row['question'])}</code></dd>"
        f"<dt>Price</dt><dd>{html.escape(row['price'])}</dd>"
        f"<dt>To cite the release</dt><dd>{html.escape(row['cited'])}</dd></dl>"
    )


def _sized(width: float | None) -> str:
    """Write the size of an error with the two digits that mean something."""
    return "–" if width is None else number_text(float(f"{width:.2g}"))


_PREDICTED = """<p class="soft">Predicted: what 19 of 20 errors stay within, known before the
price was paid; of a list of numbers, the predicted mean error of one. Off by: how far the release
is from the truth, of a list on average.</p>"""


_MISSING = """<p class="soft">Where no truth is shown, it is no number, or the ledger's text does
not hold the whole question. Give such a question again:
<code>study.report(path, questions=[...])</code>.</p>"""


def custodian_row(release: Release, truth: Any, plan: Plan | None) -> dict[str, Any]:
    """Return what the custodian's page says of an answer; None where there is no number to tell."""
    import numpy as np

    value = release.value
    if isinstance(value, LabelledTable) and isinstance(truth, LabelledTable):
        released, true = _matched(value, truth)
    else:
        released, true = _numbers(value), _numbers(truth)
    row: dict[str, Any] = {
        "asked": release.labels.question or release.query,
        "question": release.query,
        "price": str(release.guarantee),
        "released": _told(value, released),
        "clipped": state(release).not_in_it,
        "cited": cited([release], release.guarantee),
        "truth": None,
        "off": None,
        "predicted": None,
    }
    if true is None or released is None or true.shape != released.shape:
        return row
    row |= {"truth": _told(truth, true), "off": float(np.abs(released - true).mean())}
    if plan is not None:
        one = true.ndim == 0 or not plan.offers
        predicted = plan.half_width(0.95) if one else plan.chosen.prediction.rank()
        row["predicted"] = None if predicted is None or math.isinf(predicted) else predicted
    return row


def _matched(released: LabelledTable, truth: LabelledTable) -> tuple[Any, Any]:
    """Return the one column of numbers of two tables, by their keys; None if there are more."""
    import numpy as np

    names = truth.measures
    if len(names) != 1:
        return None, None
    found = []
    for table in (released, truth):
        rows = zip(*(table[key] for key in table.keys), table[names[0]], strict=True)
        found.append(sorted(rows, key=lambda row: repr(row[:-1])))
    if [repr(row[:-1]) for row in found[0]] != [repr(row[:-1]) for row in found[1]]:
        return None, None
    told, true = (np.array([row[-1] for row in rows], dtype=np.float64) for rows in found)
    return told, true


def _numbers(value: Any) -> Any:
    """Return a value's numbers as an array, or None when it is not made of numbers."""
    import numpy as np

    if value is None or isinstance(value, str | bytes | Mapping):
        return None
    held = value.to_numpy() if hasattr(value, "to_numpy") else value
    try:
        return np.asarray(held, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _told(value: Any, numbers: Any) -> Any:
    if numbers is None or isinstance(value, LabelledTable):
        return answer(value)
    if numbers.ndim == 0:
        return numbers.item()
    return "a list of numbers" if numbers.ndim == 1 else "a table of numbers"
