"""Reports: one page that stands alone, for people outside, and another for the custodian.

The outside page is made from releases alone, so that it cannot show anything that is not out
already. The inside page sets beside each answer its truth and the error that was predicted.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from tulle.core import registry
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.core.release import Release
from tulle.core.release_table import possible
from tulle.core.table import written
from tulle.core.validate import counted
from tulle.core.wording import (
    allowance,
    answer,
    between,
    ends,
    hidden,
    interval,
    rounded,
    size_of_error,
    state,
)
from tulle.reports.charts import (
    alone,
    bar_chart,
    heat_chart,
    interval_chart,
    line_chart,
    network_chart,
)
from tulle.reports.layout import MOST_NODES
from tulle.reports.terms import TERMS, guarantee_terms

if TYPE_CHECKING:
    from tulle.core.plan import Plan
_ROWS = 20
"""So many rows of a table stand on a page."""

_BARS = 30
"""Up to so many numbers are drawn as bars with names, more as a curve."""

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
.band{fill:var(--accent);opacity:.18}.axis{stroke:var(--line)}.bar{fill:var(--accent);opacity:.55}
.whisker{stroke:var(--ink);stroke-width:2}.arrow{fill:none;stroke:var(--accent);stroke-width:3}
.link{stroke:var(--soft);stroke-width:.6;opacity:.45;fill:none}.dot{fill:var(--accent)}
.wide{overflow-x:auto}td{font-variant-numeric:tabular-nums}.question{font-size:1.15rem}.inside{background:#d9a4412e;
padding:.6rem 1rem;border-left:4px solid var(--warm)}@media print{body{max-width:none}}
"""


@registry.register("page", "release", "outside")
def outside_report(
    releases: Sequence[Release],
    *,
    series: Sequence[Sequence[Release]] = (),
    title: str | None = None,
) -> str:
    """Return one self-contained page about releases, to hand on.

    Each of ``series`` has the steps of a stream, which were paid for together: they are drawn as
    one series with its band.

    It says what was asked, who is protected, what the price means, the answers with their ranges,
    what was clipped, how to read them and how to cite them. It holds nothing but what the releases
    hold.

    Example:
        >>> import tulle
        >>> square = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=4)
        >>> r = tulle.release(square, tulle.edges(), unit="edge", epsilon=1.0)
        >>> page = outside_report([r])
        >>> "What epsilon means here" in page
        True
    """
    streams = [steps for steps in series if steps]
    paid = [*releases, *(steps[-1] for steps in streams)]
    if not paid:
        name = html.escape(title or "Nothing was released")
        return _page(name, f"<h1>{name}</h1><p>There is no release to report on.</p>")
    heading = html.escape(title or _title(paid))
    total = Guarantee.compose([release.guarantee for release in paid])
    body = [
        f"<h1>{heading}</h1>",
        _about([*releases, *(release for steps in streams for release in steps)]),
        _summary(paid, total),
        "" if total.holds else _WARNING,
        *(_section(release, alone=title is None and len(paid) == 1) for release in releases),
        *(part for steps in streams for part in _series(steps)),
        _meaning(total),
        _READING,
        _citing(paid, total),
    ]
    return _page(heading, "\n".join(body))


def series_report(releases: Sequence[Release], *, title: str | None = None) -> str:
    """Return one page about the steps of a stream: its totals with their band, step by step.

    All steps were paid for together, so one guarantee holds for the page.
    """
    if not releases:
        name = html.escape(title or "Nothing was released")
        return _page(name, f"<h1>{name}</h1><p>No step was released yet.</p>")
    last = releases[-1]
    heading = html.escape(title or f"Totals over time: {last.dataset or 'a stream'}")
    body = [f"<h1>{heading}</h1>", _about(releases), _summary(releases, last.guarantee)]
    body += [*_series(releases, alone=True), _meaning(last.guarantee)]
    return _page(heading, "\n".join(body))


def series_charts(releases: Sequence[Release]) -> list[tuple[str, str]]:
    """Return, for each group of a stream, its name and a drawing of its totals with their band."""
    return [
        (
            name,
            line_chart(
                values,
                (lows, highs),
                across=f"step, {labels[0]} to {labels[-1]}",
                up=name,
                first=1,
                whole=True,
            ),
        )
        for name, labels, values, lows, highs in _totals(releases)
    ]


def _totals(
    releases: Sequence[Release],
) -> Iterator[tuple[str, list[str], list[float], list[float], list[float]]]:
    """Yield each group of a stream: its name, steps, totals and the ends of their intervals."""
    labels = [str(release.parameters["label"]) for release in releases]
    axes = [axis.labels or () for axis in releases[-1].labels.axes]
    names = [", ".join(map(str, found)) for found in product(*axes)] if axes else ["total"]
    ends = [release.interval(0.95) for release in releases]
    columns = ([r.value for r in releases], [low for low, _ in ends], [high for _, high in ends])
    for place, name in enumerate(names):
        values, lows, highs = (
            [float(one[place] if axes else one) for one in column] for column in columns
        )
        yield name, labels, values, lows, highs


def _series(releases: Sequence[Release], *, alone: bool = False) -> list[str]:
    """Return the parts of a page about the steps of one stream."""
    last = releases[-1]
    body = [] if alone else [f"<h2>{html.escape(last.query)}</h2>"]
    level = "h2" if alone else "h3"
    drawings = series_charts(releases)
    for (name, labels, *columns), (_, drawn) in zip(_totals(releases), drawings, strict=True):
        rows = "".join(
            f"<tr><td>{html.escape(label)}<td>{_text(value)}<td>{_text(low)}<td>{_text(high)}</tr>"
            for label, value, low, high in zip(labels, *columns, strict=True)
        )
        body.append(
            f"<{level}>{html.escape(name)}</{level}>{drawn}<div class='wide'><table>"
            f"<tr><th>up to<th>total<th>at least<th>at most</tr>{rows}</table></div>"
        )
    over = last.guarantee.over_time
    body.append(
        "<p>At each step the truth is in the band 19 times of 20. Errors of neighbouring steps are "
        "alike, so that the change from one step to the next is known better than two totals are."
        f"</p>{'' if over is None else f'<p>{html.escape(over)}</p>'}"
    )
    return body


def _title(releases: Sequence[Release]) -> str:
    if len(releases) == 1:
        return releases[0].labels.question or f"Released: {releases[0].query}"
    return f"Released: {releases[0].dataset or releases[0].query}"


def _about(releases: Sequence[Release]) -> str:
    """Say what data the answers are about and when they were given."""
    names = sorted({release.dataset for release in releases if release.dataset})
    days = sorted({release.date for release in releases if release.date})
    said = []
    if names:
        said.append(f"Data: <b>{html.escape(', '.join(names))}</b>")
    if days:
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        said.append(f"released {html.escape(when)}")
    return f"<p class='soft'>{' · '.join(said)}</p>" if said else ""


def inside_report(
    account: str, rows: Sequence[Mapping[str, Any]], terms: Guarantee, left: str
) -> str:
    """Return the custodian's page: each answer beside the truth and the predicted error.

    The rows are those of :func:`inside_row`. This page is not private.
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
        "<tr>" + "".join(f"<td>{html.escape(_text(row[one]))}</td>" for one in columns) + "</tr>"
        for row in rows
    )
    titles = "<th>question<th>price<th>released<th>truth<th>off by<th>predicted"
    overview = f"<div class='wide'><table><tr>{titles}</tr>{lines}</table></div>"
    body = f"""<h1>{name}</h1>
<p class="inside"><b>This page shows the truth. It must stay with the custodian.</b></p>
<p>{count} released. Noise hides <b>{html.escape(hidden(terms))}</b>. The account allows
<b>{html.escape(str(terms))}</b>{_explained(guarantee_terms(terms))}
Of it, <b>{html.escape(left)}</b> is left.</p>
{overview if rows else ""}{_PREDICTED if rows else ""}{missing}
{"".join(map(_inside_section, rows))}"""
    return _page(name, body)


def _inside_section(row: Mapping[str, Any]) -> str:
    """Return one answer beside its truth, in sentences."""
    told = {name: html.escape(_text(row[name])) for name in ("released", "truth")}
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
    return "–" if width is None else _text(float(f"{width:.2g}"))


_PREDICTED = """<p class="soft">Predicted: what 19 of 20 errors stay within, known before the
price was paid; of a list of numbers, the predicted mean error of one. Off by: how far the release
is from the truth, of a list on average.</p>"""

_MISSING = """<p class="soft">Where no truth is shown, it is no number, or the ledger's text does
not hold the whole question. Give such a question again:
<code>study.report(path, questions=[...])</code>.</p>"""


def inside_row(release: Release, truth: Any, plan: Plan | None) -> dict[str, Any]:
    """Return what the custodian's page says of an answer; None where there is no number to tell."""
    import numpy as np

    released, true = _numbers(release.value), _numbers(truth)
    row: dict[str, Any] = {
        "asked": release.labels.question or release.query,
        "question": release.query,
        "price": str(release.guarantee),
        "released": _told(release.value, released),
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
        return answer(value)
    if numbers.ndim == 0:
        return numbers.item()
    return "a list of numbers" if numbers.ndim == 1 else "a table of numbers"


def _summary(releases: Sequence[Release], total: Guarantee) -> str:
    count = counted(len(releases), "answer") if len(releases) > 1 else "one answer"
    return (
        f"<p>This page reports {count} about data that is not public. Random noise in each answer "
        f"hides <b>{html.escape(hidden(total))}</b>; how well is said below, under what epsilon "
        f"means. In all: <b>{html.escape(str(total))}</b>.</p>"
    )


_WARNING = (
    '<p class="inside"><b>No guarantee.</b> At least one answer was drawn from a replayable source '
    "of randomness, as tests do. It is not private.</p>"
)


def _section(release: Release, *, alone: bool) -> str:
    """Return what is said of one release; alone on its page, the page's title is its question."""
    said = state(release)
    unit = release.guarantee.unit
    facts = [
        ("Formula", release.query, ""),
        ("Released", said.answer, ""),
        ("Protected", f"{hidden(release.guarantee)} (unit {unit.name}: {unit.meaning})", ""),
        ("Price", str(release.guarantee), _explained(guarantee_terms(release.guarantee))),
        ("Mechanism", release.mechanism, _explained(["mechanism"])),
        ("Booked as", release.debit or "not booked in a ledger", _explained(["debit"])),
    ]
    rows = "".join(
        f"<dt>{name}</dt><dd>{html.escape(text)}{more}</dd>" for name, text, more in facts
    )
    cut = ""
    if said.not_in_it:
        cut = f'<p class="inside"><b>What was clipped.</b> {html.escape(said.not_in_it)}</p>'
    question = html.escape(release.labels.question or release.query)
    head = "<hr>" if alone else f"<h2>{question}</h2>"
    return f"{head}{_show(release)}{cut}<dl>{rows}</dl>"


def _explained(terms: Sequence[str]) -> str:
    lines = "; ".join(f"<i>{term}</i>: {html.escape(TERMS[term])}" for term in terms)
    return f"<br><small>{lines}.</small>"


def _show(release: Release) -> str:
    """Draw an answer by its form, with the table of its numbers and their names below."""
    import numpy as np

    value = release.value
    if isinstance(value, int | float | np.number):
        return _number(release, float(value))
    if hasattr(value, "edges") and hasattr(value, "edge_count"):
        return _network(value)
    drawn = ""
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "biuf":
        shown = possible(release)
        drawn = _list(release, shown) if value.ndim == 1 else _matrix(release, shown)
    said = interval(release)
    words = f"Interval: {said}. {allowance(release)}".strip()
    ranges = "" if ends(release) is None else f"<p>{html.escape(words)}</p>"
    return f"{drawn}{ranges}<div class='wide'>{release.table().to_html(_ROWS)}</div>"


@registry.register("page", "release", "drawing")
def draw(release: Release) -> str:
    """Return a release as one picture in SVG that stands alone.

    Raises:
        InputError: when it is nothing that can be drawn.
    """
    import numpy as np

    value, drawn = release.value, ""
    if isinstance(value, int | float | np.number):
        low, high = ends(release) or (value, value)
        drawn = interval_chart(float(value), float(low), float(high))
    elif hasattr(value, "edges") and hasattr(value, "edge_count"):
        nodes = int(getattr(value, "node_count", None) or value.nodes)
        drawn = network_chart(nodes, np.asarray(value.edges()))
    elif isinstance(value, np.ndarray) and value.size and value.dtype.kind in "biuf":
        shown = possible(release)
        drawn = _list(release, shown) if value.ndim == 1 else _matrix(release, shown)
    if not drawn:
        raise InputError(
            f"An answer to {release.query} cannot be drawn as one picture. release.table() has its "
            "numbers, and release.report() a page."
        )
    return alone(drawn, _STYLE)


def _number(release: Release, value: float) -> str:
    found = ends(release)
    if found is None:
        return f'<p class="big">{written(release.value)}</p><p>It has no interval.</p>'
    low, high = (float(end) for end in found)
    sides = [abs(value - end) for end in (low, high) if math.isfinite(end)]
    width = max(sides, default=math.inf)
    about = rounded(value, width)
    same = about == written(release.value)
    unit = release.labels.measure
    named = "" if unit == "value" else f" <small>{html.escape(unit)}</small>"
    drawn = f'<p class="big">{"" if same else "about "}{html.escape(about)}{named}</p>'
    drawn += interval_chart(value, low, high) + f"<p>{html.escape(_range(low, high))}"
    if math.isfinite(low) and math.isfinite(high):
        drawn += f" The error is {html.escape(size_of_error(value, width))}."
    if why := allowance(release):
        drawn += f" {html.escape(why)}"
    return drawn + f" <small>{_term('interval')}</small></p>"


def _term(name: str) -> str:
    return f"{name}: {html.escape(TERMS[name])}."


def _list(release: Release, value: Any) -> str:
    (axis, _), *others = release.labels.sides(value.shape)
    found = ends(release)
    band = None
    if found is not None:
        low, high = ([float(x) for x in end] for end in found)
        band = low, high
    numbers = value.astype(float).tolist()
    unit = "" if release.labels.measure == "value" else release.labels.measure
    if len(numbers) <= _BARS:
        keys = release.table()
        names = [
            " · ".join(written(cell) for cell in row)
            for row in zip(*(keys.to_dict()[key] for key in keys.keys), strict=True)
        ]
        across = " · ".join(keys.keys)
        return bar_chart(names, numbers, band, across=across, up=unit)
    across = axis.name if not others else "group"
    first = axis.first if axis.labels is None and axis.paired is None else 0
    return line_chart(numbers, band, across=across, up=unit, first=first)


def _matrix(release: Release, value: Any) -> str:
    names = [axis.name for axis, _ in release.labels.sides(value.shape)]
    if value.ndim == 2:
        return heat_chart(value, down=names[0], across=names[1])
    return ""


def _network(value: Any) -> str:
    """Draw a released network as one, beside how many nodes have how many links."""
    import numpy as np

    edges = np.asarray(value.edges())
    nodes = int(getattr(value, "node_count", None) or value.nodes)
    degrees = np.bincount(np.bincount(edges.ravel(), minlength=nodes)).astype(float).tolist()
    shown = network_chart(nodes, edges)
    part = "" if nodes <= MOST_NODES else f", {MOST_NODES} of its nodes drawn"
    histogram = (
        bar_chart([str(i) for i in range(len(degrees))], degrees, across="links", up="nodes")
        if len(degrees) <= _BARS
        else line_chart(degrees, across="links", up="nodes")
    )
    return (
        f"<p class='big'>{counted(nodes, 'node')}, {counted(value.edge_count, 'link')}</p>{shown}"
        f"<p class='soft'>The released network{part}. It is public; no single link in it need "
        f"exist.</p><p><b>How many nodes have how many links</b></p>{histogram}"
    )


def _range(low: float, high: float) -> str:
    return f"The truth is {between(low, high)}; 19 of 20 such statements are right."


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
<p>Take anyone who wants to find out about {html.escape(hidden(total))}, whatever else they
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


def _citing(releases: Sequence[Release], price: Guarantee) -> str:
    return f"<h2>How to cite</h2><p>{html.escape(cited(releases, price))}</p>"


def cited(releases: Sequence[Release], price: Guarantee) -> str:
    """Return how to cite releases, in one line."""
    first = releases[0]
    versions = ", ".join(f"{name} {number}" for name, number in first.versions.items())
    questions = "; ".join(dict.fromkeys(release.query for release in releases))
    data = f" about {first.dataset}" if first.dataset else ""
    year = f", {first.date}" if first.date else ""
    plain = replace(price, assumptions=())
    return (
        f"“{questions}”{data}, released with differential privacy ({plain}) by tulle{year}. "
        f"{versions}."
    )


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
