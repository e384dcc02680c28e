"""Numbers of things in words: "1 row", not "1 rows", wherever text is made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tulle
from tulle.core.validate import counted

SOURCES = sorted(Path(tulle.__file__).parent.rglob("*.py"))

NO_PLURALS = """
accounts asks changes compares costs fails gives has hides holds is joins keeps lists makes names
needs occurs protects reads refers reports says stands states takes was draws numbers moves covers
means starts ends lacks lies shows allows differs does leads gets comes goes uses spends passes
stays leaves wants belongs across as downwards its less plus times this us towards series
"""
"""What may follow the name of a thing, or a number, and ends like a plural."""

MADE_OF_TEXT = frozenset({("select_rewriter.py", "columns"), ("partition_selection.py", "keys")})
"""Numbers that are already said in words, or are two and more."""


def uncounted(source: str) -> Iterator[tuple[int, str]]:
    """Find numbers in f-strings that are followed by a plural, whatever the number is."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for before, after in zip(node.values, node.values[1:], strict=False):
            if not isinstance(before, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            found = re.match(r" ([a-z]+s)\b", str(after.value))
            # An upper-case name is a limit that is larger than one; !r makes a name of a thing.
            limit = isinstance(before.value, ast.Name) and before.value.id.isupper()
            if found is None or limit or before.conversion != -1:
                continue
            if found[1] not in NO_PLURALS.split():
                yield before.lineno, found[1]


def test_a_number_and_its_noun_agree():
    # The figures of audits are left out: they are for those who work on the checks.
    found = [
        (path.name, line, noun)
        for path in SOURCES
        if "audit" not in path.parts
        for line, noun in uncounted(path.read_text(encoding="utf-8"))
        if (path.name, noun) not in MADE_OF_TEXT
    ]
    assert not found, "say counted(number, noun)"


def test_the_search_finds_a_plural_that_is_always_one():
    assert [*uncounted('f"{len(rows):,} rows in all"')] == [(1, "rows")]
    assert [*uncounted('f"read {size} entries"')] == [(1, "entries")]
    assert not [*uncounted("f\"{counted(size, 'entry', 'entries')} and {name} has\"")]


@pytest.mark.parametrize("number", [0, 1, 2, 1200])
def test_one_is_one_and_all_else_are_many(number):
    said = counted(number, "row")
    assert said == f"{number:,} row" + "s" * (number != 1)
