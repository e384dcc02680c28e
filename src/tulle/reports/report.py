"""Reports: one page that stands alone, for people outside, and another for the custodian.

The outside page is made from releases alone, so that it cannot show anything that is not out
already. The inside page sets beside each answer its truth and the error that was predicted.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.errors import NoIntervalError
from tulle.core.guarantee import Guarantee
from tulle.core.release import Release
from tulle.reports.charts import heat_chart, interval_chart, line_chart

if TYPE_CHECKING:
    from tulle.planning.planner import Plan

_STYLE = """
:root{color-scheme:light dark;--ink:#1d2326;--soft:#5b666b;--line:#d8d3c7;--paper:#fbfaf6;
--accent:#14666a;--warm:#d9a441}
@media(prefers-color-scheme:dark){:root{--ink:#e8e6df;--soft:#a5aeb2;--line:#3a4144;
--paper:#15191b;--accent:#57b9b3}}
body{font:17px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;
max-width:46rem;padding:2rem 1.2rem 4rem}
h1{font-size:1.7rem;line-height:1.2}h2{margin-top:2.4rem;font-size:1.25rem;
border-top:1px solid var(--line);padding-top:1.2rem}
.big{font-size:2.2rem;font-weight:700;margin:.2rem 0}small,.soft{color:var(--soft)}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem .3rem 0;
border-bottom:1px solid var(--line);vertical-align:baseline}
dt{color:var(--soft)}dd{margin:0 0 .4rem;overflow-wrap:anywhere}code{font-size:.85em}
svg,.heat{max-width:100%}.heat{image-rendering:pixelated;height:auto;border:1px solid var(--line)}
svg text{font:13px system-ui,sans-serif;fill:var(--soft)}.range{stroke:var(--accent);
stroke-width:3}.value{fill:var(--accent)}.line{fill:none;stroke:var(--accent);stroke-width:1.6}
.band{fill:var(--accent);opacity:.18}.axis{stroke:var(--line)}.inside{background:#d9a4412e;
padding:.6rem 1rem;border-left:4px solid var(--warm)}@media print{body{max-width:none}}
"""


@registry.register("page", "release", "outside")
def outside_report(releases: Sequence[Release], *, title: str | None = None) -> str:
    """Return one self-contained page about releases, to hand on.

    It says what was asked, who is protected, what the price means, the answers with their ranges,
    how to read them and how to cite them. It holds nothing but what the releases hold.

    Example:
        >>> import tulle
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> r = tulle.release(square, tulle.edges(), unit="edge", epsilon=1.0)
        >>> page = outside_report([r])
        >>> "What epsilon means here" in page
        True
    """
    if not releases:
        name = html.escape(title or "Nothing was released")
        return _page(name, f"<h1>{name}</h1><p>There is no release to report on.</p>")
    heading = html.escape(title or f"Released: {releases[0].query}")
    total = Guarantee.compose([release.guarantee for release in releases])
    body = [
        f"<h1>{heading}</h1>",
        _summary(releases, total),
        "" if total.holds else _WARNING,
        *(_section(release) for release in releases),
        _meaning(total),
        _READING,
        _citing(releases),
    ]
    return _page(heading, "\n".join(body))


def inside_report(
    account: str, rows: Sequence[Mapping[str, Any]], terms: Guarantee, left: str
) -> str:
    """Return the custodian's page: each answer beside the truth and the predicted error.

    Each row has ``question``, ``price``, ``released``, ``truth``, ``off`` and ``predicted``; the
    last three may be None where there is no number to tell. This page is not private.
    """
    name = html.escape(f"Inside: {account}")
    lines = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(_text(row[column]))}</td>"
            for column in ("question", "price", "released", "truth", "off", "predicted")
        )
        + "</tr>"
        for row in rows
    )
    missing = "" if all(row["truth"] is not None for row in rows) else _MISSING
    body = f"""<h1>{name}</h1>
<p class="inside"><b>This page shows the truth. It must stay with the custodian.</b></p>
<p>{html.escape(str(terms))}; {html.escape(left)} left.</p>
<table><tr><th>question<th>price<th>released<th>truth<th>off by<th>predicted</tr>{lines}</table>
<p class="soft">Predicted: what 19 of 20 errors stay within, known before the price was paid; of a
list of numbers, the predicted mean error of one. Off by: how far the release is from the truth,
of a list on average.</p>{missing}"""
    return _page(name, body)


_MISSING = """<p class="soft">Where there is no truth, it is no number, or the ledger's text does
not hold the whole question. Give such a question again:
<code>study.report(path, questions=[...])</code>.</p>"""


def inside_row(release: Release, truth: Any, plan: Plan | None) -> dict[str, Any]:
    """Return a line of the custodian's page; None stands where there is no number to tell."""
    import numpy as np

    released, true = _numbers(release.value), _numbers(truth)
    row: dict[str, Any] = {
        "question": release.query,
        "price": str(release.guarantee),
        "released": _told(release.value, released),
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
    if numbers is None:
        return type(value).__name__
    if numbers.ndim == 0:
        return numbers.item()
    return "a list of numbers" if numbers.ndim == 1 else "a table of numbers"


def _summary(releases: Sequence[Release], total: Guarantee) -> str:
    count = f"{len(releases)} answers" if len(releases) > 1 else "one answer"
    return (
        f"<p>This page reports {count} about data that is not public. Each was given with "
        f"differential privacy: random noise hides {html.escape(_protected(total))}. In all: "
        f"<b>{html.escape(str(total))}</b>.</p>"
    )


_WARNING = (
    '<p class="inside"><b>No guarantee.</b> At least one answer was drawn from a replayable source '
    "of randomness, as tests do. It is not private.</p>"
)


def _section(release: Release) -> str:
    facts = [
        ("Question", release.query),
        ("Protected", _protected(release.guarantee)),
        ("Price", str(release.guarantee)),
        ("Mechanism", release.mechanism),
        ("Booked as", release.debit or "not booked in a ledger"),
    ]
    rows = "".join(f"<dt>{n}</dt><dd>{html.escape(text)}</dd>" for n, text in facts)
    shown = "".join(_show(name, value, release) for name, value in _values(release))
    return f"<h2>{html.escape(release.query)}</h2>{shown}<dl>{rows}</dl>"


def _values(release: Release) -> list[tuple[str | None, Any]]:
    """Return what to draw: the value, or what an object says should be shown of it."""
    reported = getattr(release.value, "reported", None)
    return list(reported().items()) if callable(reported) else [(None, release.value)]


def _show(name: str | None, value: Any, release: Release) -> str:
    import numpy as np

    caption = "" if name is None else f"<p><b>{html.escape(name)}</b></p>"
    if isinstance(value, int | float | np.integer | np.floating):
        drawn = f'<p class="big">{html.escape(_text(value))}</p>'
        interval = _interval(release) if name is None else None
        if interval is not None:
            low, high = (float(end) for end in interval)
            drawn += interval_chart(float(value), low, high)
            drawn += f"<p>{html.escape(_range(low, high))}</p>"
        return caption + drawn
    array = np.asarray(value) if isinstance(value, np.ndarray | list | tuple) else None
    if array is not None and array.ndim == 1 and array.size and array.dtype.kind in "iufb":
        interval = _interval(release) if name is None else None
        band = None if interval is None else (_floats(interval[0]), _floats(interval[1]))
        return caption + line_chart(array.astype(float).tolist(), band)
    if array is not None and array.ndim == 2 and array.size and array.dtype.kind in "iufb":
        return caption + heat_chart(array)
    return f"{caption}<p>{html.escape(str(value))}</p>"


def _floats(values: Any) -> list[float]:
    return [float(value) for value in values]


def _interval(release: Release) -> Any:
    try:
        return release.interval(0.95)
    except (NoIntervalError, TypeError, ValueError):
        return None


def _range(low: float, high: float) -> str:
    if math.isinf(high):
        return f"The truth is at least {_text(low)}; 19 of 20 such statements are right."
    ends = f"{_text(low)} and {_text(high)}"
    return f"The truth lies between {ends}; 19 of 20 such statements are right."


def _meaning(total: Guarantee) -> str:
    if total.epsilon is None:
        return ""
    epsilon = min(float(total.epsilon), 700.0)
    factor = math.exp(epsilon)
    rows = "".join(
        f"<tr><td>{belief:.0%}<td>at most {_belief(belief, factor):.1%}"
        f"<td>at least {_belief(belief, 1 / factor):.1%}</tr>"
        for belief in (0.01, 0.1, 0.5, 0.9)
    )
    slack = ""
    if total.delta:
        slack = (
            f" With a probability of about {float(total.delta):.1g} (delta) that promise may fail."
        )
    shown = f"{factor:,.1f}" if factor < 1e6 else f"{factor:.1e}"
    return f"""<h2>What epsilon means here</h2>
<p>Take anyone who wants to find out about {html.escape(_protected(total))}, whatever else they
know and however they reckon. These answers can change their odds by a factor of at most
e<sup>{epsilon:g}</sup> = <b>{shown}</b>, all of them together.{slack}</p>
<table><tr><th>what they believed before<th>and after, if it is so<th>and after, if it is not</tr>
{rows}</table>
<p class="soft">It does not say that nothing can be learned about people: what holds for everyone,
holds with or without any one of them.</p>"""


def _belief(before: float, factor: float) -> float:
    odds = before / (1 - before) * factor
    return odds / (1 + odds)


_READING = """<h2>How to read the numbers</h2>
<p>Noise was added on purpose, so a number is not exact; counts may come out negative or odd. Use
the ranges: a difference smaller than they are wide may be noise. Anything computed from these
answers is as private as they are, and costs nothing more. Asking the data again would.</p>"""


def _citing(releases: Sequence[Release]) -> str:
    first = releases[0]
    versions = ", ".join(f"{name} {number}" for name, number in first.versions.items())
    price = Guarantee.compose([release.guarantee for release in releases])
    questions = "; ".join(dict.fromkeys(release.query for release in releases))
    text = f"“{questions}”, released with differential privacy ({price}) by tulle. {versions}."
    return f"<h2>How to cite</h2><p>{html.escape(text)}</p>"


def _protected(guarantee: Guarantee) -> str:
    return guarantee.unit.meaning.partition(";")[0]


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        return "without end" if math.isinf(number) else "–"
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )
