"""The import order of the rooms, and what starting up may import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tulle"

_DATA = {"core", "noise", "relations"}
_KINDS = {"graphs", "sql", "matrices", "surveys", "models", "genomes"}
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "noise": {"core"},
    "relations": {"core", "noise"},
    "graphs": _DATA,
    "sql": _DATA,
    "matrices": {"core", "noise"},
    "surveys": {"core", "noise"},
    "models": {"core", "noise"},
    "genomes": {"core", "noise"},
    "attacks": _DATA | _KINDS,
    "audit": _DATA | _KINDS,
    "metrics": _DATA | _KINDS,
    "cli": _DATA | _KINDS | {"attacks", "audit", "metrics", "studio"},
    "studio": _DATA | _KINDS | {"attacks", "audit", "metrics"},
}
"""Which rooms a room may import besides itself."""


def rooms() -> list[str]:
    return sorted(p.name for p in SOURCE.iterdir() if p.is_dir() and p.name != "__pycache__")


def imported_rooms(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            module = node.module or ""
            names = [f"tulle.{a.name}" for a in node.names] if module == "tulle" else [module]
        found |= {name.split(".")[1] for name in names if name.startswith("tulle.")}
    return found


def violations(room: str, found: set[str]) -> set[str]:
    # The version lives at the top; everything else there is only a door to the rooms.
    return found - ALLOWED[room] - {room, "__version__"}


@pytest.mark.parametrize("room", rooms())
def test_imports_point_down_the_list_only(room: str) -> None:
    assert room in ALLOWED, f"add {room} to the order of rooms in DESIGN and here"
    for path in sorted((SOURCE / room).rglob("*.py")):
        wrong = violations(room, imported_rooms(path))
        assert not wrong, f"{path.relative_to(SOURCE)} may not import {sorted(wrong)}"


def test_a_wrong_import_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "def f():\n    from tulle.graphs.data import Graph\n    import tulle.cli.main\n"
    )
    assert violations("core", imported_rooms(file)) == {"graphs", "cli"}
    file.write_text("from tulle import noise\n")
    assert violations("core", imported_rooms(file)) == {"noise"}


def test_only_noise_draws_randomness() -> None:
    """Generators of made-up graphs hold no private data and may use ordinary random numbers; the
    studio's tokens are no noise.
    """
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "noise" or path.name in {"generators.py", "tokens.py"}:
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
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
