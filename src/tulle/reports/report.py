"""Reports: one page that stands alone, for people outside.

It is made from releases alone, so that it cannot show anything that is not out already.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from tulle.core import registry
from tulle.core.guarantee import Guarantee
from tulle.core.release import Release
from tulle.core.validate import counted
from tulle.core.wording import (
    hidden,
    state,
)
from tulle.reports.charts import (
    line_chart,
)
from tulle.reports.terms import guarantee_terms

if TYPE_CHECKING:
    pass
from tulle.reports.drawing import show_answer
from tulle.reports.page import cited, explained, number_text, page


@registry.register("page", "release", "outside")
def public_report(
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
        >>> page = public_report([r])
        >>> "What epsilon means here" in page
        True
    """
    streams = [steps for steps in series if steps]
    paid = [*releases, *(steps[-1] for steps in streams)]
    if not paid:
        name = html.escape(title or "Nothing was released")
        return page(name, f"<h1>{name}</h1><p>There is no release to report on.</p>")
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
    return page(heading, "\n".join(body))


def series_report(releases: Sequence[Release], *, title: str | None = None) -> str:
    """Return one page about the steps of a stream: its totals with their band, step by step.

    All steps were paid for together, so one guarantee holds for the page.
    """
    if not releases:
        name = html.escape(title or "Nothing was released")
        return page(name, f"<h1>{name}</h1><p>No step was released yet.</p>")
    last = releases[-1]
    heading = html.escape(title or f"Totals over time: {last.dataset or 'a stream'}")
    body = [f"<h1>{heading}</h1>", _about(releases), _summary(releases, last.guarantee)]
    body += [*_series(releases, alone=True), _meaning(last.guarantee)]
    return page(heading, "\n".join(body))


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
            f"<tr><td>{html.escape(label)}<td>{number_text(value)}<td>{number_text(low)}<td>{number_text(high)}</tr>"
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
        ("Price", str(release.guarantee), explained(guarantee_terms(release.guarantee))),
        ("Mechanism", release.mechanism, explained(["mechanism"])),
        ("Booked as", release.debit or "not booked in a ledger", explained(["debit"])),
    ]
    rows = "".join(
        f"<dt>{name}</dt><dd>{html.escape(text)}{more}</dd>" for name, text, more in facts
    )
    cut = ""
    if said.not_in_it:
        cut = f'<p class="inside"><b>What was clipped.</b> {html.escape(said.not_in_it)}</p>'
    question = html.escape(release.labels.question or release.query)
    head = "<hr>" if alone else f"<h2>{question}</h2>"
    return f"{head}{show_answer(release)}{cut}<dl>{rows}</dl>"


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
