"""What the terms on a page mean, in one line each: the lines of the guide's glossary."""

from __future__ import annotations

from tulle.reports.terms import TERMS


def test_terms_are_those_of_the_glossary() -> None:
    from pathlib import Path

    lines = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
    for term, meaning in TERMS.items():
        assert meaning in lines, term
