"""An engine is one folder: nothing outside of it names the engine, but for the default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "tulle"
ENGINES = SOURCE / "sql" / "engines"

DEFAULT = {("sql/dialect.py", "duckdb")}
"""The one engine that is named: frames, files and questions are DuckDB's unless they say."""

EMBEDDED = {
    "audit/sql/kind.py",
    "audit/sql/partition_selection.py",
    "audit/sql/private_ranges.py",
    "sql/stand_in/build.py",
}
"""Made-up rows are held by DuckDB itself, whatever engine a question is asked of: they import it,
and may say so where they build a question about those rows."""

HELP = {"cli/commands/sql.py", "cli/commands/studio.py"}
"""Texts of ``--help``, which list what a user can write."""


@cache
def folders() -> list[str]:
    return sorted(p.name for p in ENGINES.iterdir() if p.is_dir() and p.name != "__pycache__")


def words(text: str) -> list[str]:
    """Return the names of engines in a piece of code."""
    stems = "|".join({*folders(), "postgres"})
    return [found.lower() for found in re.findall(stems, text, re.IGNORECASE)]


def texts_for_reading(tree: ast.AST) -> set[int]:
    """Return the texts that stand by themselves: they say what a thing is, and do nothing."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def named(source: str) -> Iterator[tuple[int, str]]:
    """Yield each place of code that names an engine: in a text, a name or an import."""
    tree = ast.parse(source)
    apart = texts_for_reading(tree)
    for node in ast.walk(tree):
        pieces: list[str] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            pieces = [node.value]
        elif isinstance(node, ast.Name):
            pieces = [node.id]
        elif isinstance(node, ast.Attribute):
            pieces = [node.attr]
        elif isinstance(node, ast.keyword | ast.arg):
            pieces = [node.arg or ""]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            pieces = [getattr(node, "module", None) or "", *(one.name for one in node.names)]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            pieces = [node.name]
        for piece in pieces:
            yield from ((getattr(node, "lineno", 0), word) for word in words(piece))


@cache
def outside() -> tuple[tuple[str, int, str], ...]:
    """Return what is named in all modules that are in no engine's folder."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        inside = ENGINES in path.parents and path.parent != ENGINES
        source = path.read_text(encoding="utf-8")
        # Most modules name none, not even in their words.
        if not inside and path.name != "_index.py" and words(source):
            place = path.relative_to(SOURCE).as_posix()
            found += [(place, line, word) for line, word in named(source)]
    return tuple(found)


def test_only_the_default_is_named_outside_of_its_folder() -> None:
    found = {one for one in outside() if one[0] not in EMBEDDED | HELP}
    assert {(place, word) for place, _, word in found} == DEFAULT
    assert len(found) == 1


def test_made_up_rows_name_no_other_engine_than_the_one_that_holds_them() -> None:
    used = {(place, word) for place, _, word in outside() if place in EMBEDDED}
    assert {word for _, word in used} == {"duckdb"}
    assert {place for place, _ in used} == EMBEDDED


def test_every_folder_has_the_same_parts() -> None:
    for name in folders():
        assert {p.name for p in (ENGINES / name).glob("*.py")} >= {
            "connect.py",
            "dialect.py",
            "engine.py",
            "forms.py",
        }


def test_a_branch_on_an_engine_is_found() -> None:
    """The twins: what the code was full of before."""
    branch = 'def f(dialect):\n    "On DuckDB."\n    return 1 if dialect == "postgres" else 0\n'
    assert list(named(branch)) == [(3, "postgres")]
    assert [word for _, word in named("said(duckdb='a', spark='b')")] == ["duckdb", "spark"]
    assert [word for _, word in named("from x.engines.duckdb.engine import DuckDB")] == [
        "duckdb",
        "duckdb",
    ]
