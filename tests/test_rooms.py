"""The import order of rooms and of the folders inside them, and what starting up may import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tulle"

_SPINE = {"core", "planning", "ledger", "reports"}
_DATA = {*_SPINE, "noise", "lp", "relations"}
_KINDS = {"graphs", "sql", "matrices", "surveys", "models", "genomes", "streams"}
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "planning": {"core"},
    "reports": {"core"},
    "ledger": {"core", "planning", "reports"},
    "noise": {"core"},
    "lp": {"core"},
    "relations": {"core", "noise", "lp"},
    "graphs": {"core", "noise", "lp", "relations"},
    "sql": {"core", "planning", "noise", "lp", "relations"},
    "matrices": {"core", "noise"},
    "surveys": {"core", "noise", "ledger"},
    "models": {"core", "noise", "ledger"},
    "genomes": {"core", "noise"},
    "streams": {"core", "noise", "ledger", "reports", "sql"},
    "attacks": _DATA | _KINDS,
    "audit": _DATA | _KINDS,
    "metrics": _DATA | _KINDS,
    "studio": _DATA | _KINDS | {"attacks", "audit", "metrics"},
    "cli": _DATA | _KINDS | {"attacks", "audit", "metrics", "studio"},
}
"""Which rooms a room may import besides itself."""


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Return every module below a folder by its name, such as ``graphs.data``."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imported(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the import statements of a file that run, also those inside functions."""
    found: list[ast.Import | ast.ImportFrom] = []
    stack: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        stack.extend(ast.iter_child_nodes(node))
    return found


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield what a module imports of ours when it runs, also inside functions; not for typing."""
    for node in imported(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{path}: imports are written in full"
            base = node.module or ""
            whole = [f"{base}.{alias.name}" for alias in node.names]
            names = [n if n.removeprefix("tulle.") in known else base for n in whole]
            names = [n if n != "tulle" else w for n, w in zip(names, whole, strict=True)]
        yield from (name.removeprefix("tulle.") for name in names if name.startswith("tulle."))


def place(module: str, known: dict[str, Path]) -> str:
    """Return the folder that a module is in; files directly in a room stand for themselves."""
    folder = module if known[module].name == "__init__.py" else module.rpartition(".")[0]
    return folder if folder.count(".") else module


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of places that import each other in a circle."""
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        stack = list(edges[start])
        while stack:
            here = stack.pop()
            if here not in seen:
                seen.add(here)
                stack.extend(edges.get(here, ()))
        reach[start] = seen
    groups = {
        tuple(sorted(o for o in reach[p] if p in reach.get(o, ()))) for p in edges if p in reach[p]
    }
    return [list(group) for group in sorted(groups)]


def graph_of(known: dict[str, Path], *, folders: bool) -> dict[str, set[str]]:
    """Return who imports whom, by module or by folder."""
    edges: dict[str, set[str]] = {}
    for module, path in known.items():
        own = place(module, known) if folders else module
        for name in imports(path, known):
            if name not in known:
                continue
            other = place(name, known) if folders else name
            if other != own:
                edges.setdefault(own, set()).add(other)
    return edges


def violations(room: str, names: Iterator[str]) -> set[str]:
    # The version and the index live at the top; everything else there is a door to the rooms.
    return {name.split(".")[0] for name in names} - ALLOWED[room] - {room, "__version__", "_index"}


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_point_down_the_list_only(room: str) -> None:
    known = modules()
    for module, path in known.items():
        if module.split(".")[0] == room:
            wrong = violations(room, imports(path, known))
            assert not wrong, f"{module} may not import {sorted(wrong)}"


def test_every_room_is_in_the_order() -> None:
    assert {module.split(".")[0] for module in modules()} - {"", "_index"} == set(ALLOWED)


def test_folders_import_in_one_direction() -> None:
    assert cycles(graph_of(modules(), folders=True)) == []


def test_modules_import_in_one_direction() -> None:
    assert cycles(graph_of(modules(), folders=False)) == []


def test_a_wrong_import_would_be_found(tmp_path: Path) -> None:
    for name, text in {
        "core/a.py": "def f():\n    from tulle.graphs.data import Graph\n    import tulle.cli.x\n",
        "core/b.py": "from tulle import noise\n",
        "core/c.py": "if TYPE_CHECKING:\n    from tulle.graphs.data import Graph\n",
        "graphs/data.py": "",
        "graphs/io/read.py": "def f():\n    from tulle.graphs.queries.ask import x\n",
        "graphs/queries/ask.py": "from tulle.graphs.io import read\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    known = modules(tmp_path)
    assert violations("core", imports(known["core.a"], known)) == {"graphs", "cli"}
    assert violations("core", imports(known["core.b"], known)) == {"noise"}
    assert violations("core", imports(known["core.c"], known)) == set()
    assert cycles(graph_of(known, folders=True)) == [["graphs.io", "graphs.queries"]]
    assert cycles(graph_of(known, folders=False)) == [["graphs.io.read", "graphs.queries.ask"]]


def test_only_noise_draws_randomness() -> None:
    """Generators of made-up graphs hold no private data and may use ordinary random numbers; the
    studio's tokens are no noise.
    """
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE).parts[0] == "noise"
        if inside or path.name in {"generators.py", "tokens.py"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"random", "secrets", "numpy.random"}, path
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"urandom", "default_rng"}, path
                drawn = node.attr == "random" and getattr(node.value, "id", "") in {"np", "numpy"}
                assert not drawn, path


def test_importing_tulle_imports_nothing_heavy() -> None:
    script = (
        "import sys, tulle, tulle.cli.main\n"
        "heavy = {'numpy', 'scipy', 'numba', 'pyarrow', 'pandas', 'matplotlib', 'networkx', "
        "'sklearn', 'fastapi', 'plotly'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.strip() == "[]"


def test_types_of_arrays_have_one_name() -> None:
    for path in SOURCE.rglob("*.py"):
        if path != SOURCE / "core" / "arrays.py":
            text = path.read_text(encoding="utf-8")
            found = re.findall(
                r"^\w+ = npt\.NDArray\[(?:Any|np\.(?:float64|int64|bool_|uint8))\]$", text, re.M
            )
            assert not found, f"{path}: core/arrays.py has a name for it"


NAMESAKES = {
    "Entry": "a line of a ledger's chain, and of the table of SQL functions",
    "Form": "a survey's form, and in sql/compile the form of a SELECT of derivations",
    "Tuning": "the numbers set by hand of one mechanism each",
    "TemporaryTables": "what an engine keeps for one question, in the engine's own folder",
    "Gaussian": "the mechanism of a kind of data, and the event of running it",
    "GaussianSettings": "those of the mechanism",
    "Laplace": "the mechanism of a kind of data, and the event of running it",
    "LaplaceSettings": "those of the mechanism",
    "RandomizedResponse": "the design of a survey, and the event of running it",
}
"""Classes of one name in several modules, and what they have in common."""


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.relative_to(SOURCE).as_posix())
    several = {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1}
    assert set(several) == set(NAMESAKES), several


STORIES = {
    "house",
    "conscience",
    "mischief",
    "heard",
    "sounding",
    "believed",
    "purse",
    "manner",
    "strain",
    "firmness",
    "embody",
    "desk",
    "clerk",
    "afterwards",
    "epigraph",
    "patient",
}
"""Words of a private vocabulary: the glossary has the field's."""


def test_names_need_no_story() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "name", None) or getattr(node, "id", None) or ""
            if isinstance(name, str):
                plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
                assert not STORIES & {plain, *plain.split("_")}, f"{path}: {name}"
