"""What every page has: its frame, how numbers and terms are written, and how to cite."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tulle.core.guarantee import Guarantee
from tulle.core.release import Release
from tulle.reports.terms import TERMS

if TYPE_CHECKING:
    pass


STYLE = """
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


def explained(terms: Sequence[str]) -> str:
    """Return what terms mean, in small print."""
    lines = "; ".join(f"<i>{term}</i>: {html.escape(TERMS[term])}" for term in terms)
    return f"<br><small>{lines}.</small>"


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


def number_text(value: Any) -> str:
    """Write a number as a page shows it; a dash where there is none."""
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


def page(title: str, body: str) -> str:
    """Return a whole page that stands alone."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )
