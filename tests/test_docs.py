"""Every example in the guide runs."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
MADE = {"generated", "_build"}
"""Folders of the guide that are made when it is built."""
PAGES = sorted(
    [
        *(page for page in ROOT.glob("docs/**/*.md") if not MADE & set(page.parts)),
        ROOT / "README.md",
    ]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    written = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", written):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


UNREADABLE = re.compile(
    r"\b(?:(?:is|are) not taken|asked so|house|rooms|(?:this|a|the|only|noise|in its) room|"
    r"conscience|mischief|(?:broken )?twins?)\b",
    re.IGNORECASE,
)
"""Words that a reader would have to be told the meaning of."""


def shown_texts() -> dict[str, str]:
    """Return what users read, by where it stands: guide, studio, messages and docstrings."""
    # The page on the architecture is for those who work on it, and speaks of its rooms.
    pages = [page for page in PAGES if page.name not in ("README.md", "architecture.md")]
    shown = {page.name: page.read_text(encoding="utf-8") for page in pages}
    source = ROOT / "src" / "tulle"
    for file in (*source.glob("studio/templates/*.html"), *source.glob("studio/static/*.js")):
        shown[file.name] = file.read_text(encoding="utf-8")
    for file in source.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            # A key or an identifier is no text: texts have more than one word.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                shown[f"{file.relative_to(source).as_posix()}:{node.lineno}"] = node.value
    return shown


def test_plain_words() -> None:
    found = {place: UNREADABLE.search(text) for place, text in shown_texts().items()}
    assert {place: match[0] for place, match in found.items() if match} == {}


@pytest.mark.parametrize("text", ["LEFT JOIN is not taken: why.", "A broken twin.", "Two rooms."])
def test_private_words_are_found(text: str) -> None:
    assert UNREADABLE.search(text)


def test_glossary_has_each_term_once_and_in_order() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    sections = [
        re.findall(r"^\| ([^|]+) \| .+ \|$", part, re.MULTILINE) for part in page.split("## ")
    ]
    terms = [[term for term in section if term != "term"] for section in sections]
    assert all(section == sorted(section, key=str.casefold) for section in terms)
    names = [term.partition(" (")[0] for section in terms for term in section]
    assert len(names) == len(set(names)) > 50


def load_architecture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "architecture.py")
    assert spec is not None
    assert spec.loader is not None
    architecture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(architecture)
    return architecture


def test_drawing_of_the_rooms_is_up_to_date() -> None:
    drawn = (ROOT / "docs" / "pictures" / "architecture.svg").read_text(encoding="utf-8")
    assert drawn == load_architecture().draw_rooms(), "run `make index`"


def test_drawing_follows_the_imports(tmp_path: Path) -> None:
    texts = {
        "core": "",
        "noise": "from tulle.core import exact\n",
        "lp": "import tulle.core.validate\n",
    }
    for room, text in texts.items():
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("")
        (tmp_path / room / "a.py").write_text(text)
    architecture = load_architecture()
    before = architecture.draw_rooms(tmp_path)
    assert architecture.direct(architecture.read_imports(tmp_path)) == {
        "core": set(),
        "noise": {"core"},
        "lp": {"core"},
    }
    (tmp_path / "lp" / "a.py").write_text("def f():\n    from tulle.noise.a import x\n")
    assert architecture.draw_rooms(tmp_path) != before


def modules_of_rows(text: str) -> list[str]:
    return re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE)


def test_every_room_is_described() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    described = re.findall(
        r"^\| `(\w+)` \|", page.partition("## One registration")[0], re.MULTILINE
    )
    assert set(described) == set(load_architecture().read_imports())


def walk(*arguments: str) -> tuple[list[str], list[int]]:
    """Return the modules that a question passes in a fresh process, and the numbers of the walk."""
    script = ROOT / "docs" / "architecture.py"
    done = subprocess.run(
        [sys.executable, str(script), "walk", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    *lines, last = done.stdout.splitlines()
    return [line.split()[0] for line in lines], [int(n) for n in re.findall(r"\d+", last)]


def test_walk_on_the_page_is_the_real_one() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    passed, _ = walk("edge")
    shown = re.findall(
        r"^\| `([\w.]+)` \|", page.partition("## A question's walk")[2], re.MULTILINE
    )
    assert shown == passed, "`python docs/architecture.py walk edge` shows the walk"


@pytest.mark.parametrize(("question", "most"), [("edge", 20), ("node", 30), ("sql", 25)])
def test_walk_passes_few_modules_after_binding(question: str, most: int) -> None:
    _, (_, _, after_binding, _) = walk(question)
    assert after_binding <= most


def test_first_release_imports_few_modules() -> None:
    _, (imported, *_) = walk("edge", "--fresh")
    assert imported <= 60


def test_included_tables_are_made_from_the_results(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "results")
    (tmp_path / "generated").mkdir()
    tables.write_tables(tmp_path)
    included = {
        name
        for page in PAGES
        for name in re.findall(r"\{include\} (generated/\S+)", page.read_text(encoding="utf-8"))
    }
    assert included == {f"generated/{made.name}" for made in (tmp_path / "generated").iterdir()}
    for name in included:
        rows = [row for row in (tmp_path / name).read_text().splitlines() if row.startswith("|")]
        assert len(rows) > 3
        assert not any("nan" in row for row in rows)
