"""Write what is derived from registrations: ``tulle/_index.py`` and the type stubs of packages.

The decorators ``@public(...)``, ``@registry.register(...)``, ``@registry.mechanism(...)`` and
``@registry.offered(...)`` are read off the source, which is not imported. ``make index`` runs this;
a test fails where it is forgotten.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
TOP = "tulle"
HEAD = '"""Written by tools/index.py from the registrations in the source; not to be edited."""\n'

TASKS = (
    "Hold data",
    "Plan, pay, release",
    "Count in a graph",
    "Describe a graph",
    "Publish a graph",
    "Ask in SQL",
    "Publish a matrix",
    "Judge",
    "Errors",
)
"""The tasks of the map, in its order."""

ROOMS = {
    "attacks": "what somebody learns from a release, and the most that anybody could",
    "audit": "check every mechanism, or your own, by machine",
    "genomes": "genotypes: allele counts, tests of association, strongest SNPs",
    "models": "regression models of a table of people",
    "noise": "exact samplers",
    "surveys": "answers that are private before they leave the person",
}
"""Packages that are public as such."""


@dataclass
class Found:
    """Everything that decorators say."""

    public: dict[str, dict[str, str]] = field(default_factory=dict)
    tasks: dict[str, list[str]] = field(default_factory=dict)
    registered: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    answers: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    units: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    named_only: dict[str, dict[str, dict[str, tuple[str, ...]]]] = field(default_factory=dict)
    offered: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    def add_public(self, module: str, name: str, task: str) -> None:
        room = ".".join(module.split(".")[:2])
        self.public.setdefault(room, {})[name] = module
        if task:
            if task not in TASKS:
                raise SystemExit(f"{module}.{name}: {task!r} is not a task of the map.")
            self.public.setdefault(TOP, {})[name] = module
            self.tasks.setdefault(task, []).append(name)

    def add_registered(self, module: str, role: str, group: str, name: str) -> None:
        self.registered.setdefault((role, group), {})[name] = module


def modules(source: Path = SOURCE) -> Iterator[tuple[str, Path]]:
    """Yield the name and file of every module, in order."""
    for path in sorted((source / TOP).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def collect(source: Path = SOURCE) -> Found:
    """Read all decorators."""
    found = Found()
    for module, path in modules(source):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call):
                        _read(found, module, node.name, decorator)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                call = node.value.func
                if isinstance(call, ast.Call) and isinstance(node.targets[0], ast.Name):
                    _read(found, module, node.targets[0].id, call)
    return found


def _read(found: Found, module: str, name: str, call: ast.Call) -> None:
    words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    verb = ast.unparse(call.func)
    if verb == "public":
        found.add_public(module, name, *(words or [""]))
    elif verb == "registry.register":
        found.add_registered(module, *words)
    elif verb == "registry.offered":
        page, *card = words
        found.offered[page] = (*found.offered.get(page, ()), tuple(card))
    elif verb == "registry.mechanism":
        kind, word = words
        found.add_registered(module, "mechanism", kind, word)
        stated = {keyword.arg: keyword.value for keyword in call.keywords}
        found.answers.setdefault(kind, {})[word] = tuple(_names(stated["answers"]))
        if isinstance(protected := stated.get("units"), ast.Tuple):
            found.units.setdefault(kind, {})[word] = ast.literal_eval(protected)
        if isinstance(by_unit := stated.get("named_only"), ast.Dict):
            found.named_only.setdefault(kind, {})[word] = {
                ast.literal_eval(unit): tuple(_names(classes))
                for unit, classes in zip(by_unit.keys, by_unit.values, strict=True)
                if unit is not None
            }


def _names(stated: Any) -> Iterator[str]:
    for node in stated.elts if isinstance(stated, ast.Tuple) else [stated]:
        yield ast.unparse(node).rpartition(".")[2]


def write(found: Found) -> dict[Path, str]:
    """Return the files that follow from the decorators, each with its text."""
    top = SOURCE / TOP
    files = {top / "_index.py": _index(found), top / "__init__.pyi": _stub(found, TOP)}
    for room in sorted(set(found.public) & {f"{TOP}.{name}" for name in ROOMS}):
        files[SOURCE.joinpath(*room.split("."), "__init__.pyi")] = _stub(found, room)
    return files


def _stub(found: Found, package: str) -> str:
    lines = [f"from {module} import {name} as {name}\n" for name, module in _sorted(found, package)]
    if package == TOP:
        lines = [f"from tulle import {room} as {room}\n" for room in sorted(ROOMS)] + lines
        # The room and the question that it answers have one name.
        lines.append("from tulle.sql.queries import sql as sql\n\n__version__: str\n")
    return HEAD.replace('"""', "# ", 1).replace('"""', "") + "".join(lines)


def _sorted(found: Found, package: str) -> list[tuple[str, str]]:
    return sorted(found.public[package].items(), key=lambda item: (item[1], item[0]))


def _index(found: Found) -> str:
    public = {
        package: dict(_sorted(found, package))
        for package in sorted(found.public)
        if package == TOP or package.removeprefix(f"{TOP}.") in ROOMS
    }
    return (
        HEAD
        + "\nfrom collections.abc import Mapping\n"
        + f'\nMAP = """\\\n{_map(found)}"""\n'
        + f"\nROOMS = {tuple(sorted(ROOMS))!r}\n"
        + f"\nPUBLIC: Mapping[str, Mapping[str, str]] = {public!r}\n"
        + "\nREGISTERED: Mapping[tuple[str, str], Mapping[str, str]] = "
        + f"{dict(sorted(found.registered.items()))!r}\n"
        + "\nANSWERS: Mapping[str, Mapping[str, tuple[str, ...]]] = "
        + f"{dict(sorted(found.answers.items()))!r}\n"
        + "\nUNITS: Mapping[str, Mapping[str, tuple[str, ...]]] = "
        + f"{dict(sorted(found.units.items()))!r}\n"
        + "\nNAMED_ONLY: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]] = "
        + f"{dict(sorted(found.named_only.items()))!r}\n"
        + "\nOFFERED: Mapping[str, tuple[tuple[str, str, str], ...]] = "
        + f"{dict(sorted(found.offered.items()))!r}\n"
    )


def _map(found: Found) -> str:
    lines = []
    for task in TASKS:
        names, line = sorted(found.tasks.get(task, ())), f"{task}:"
        if task == "Ask in SQL":
            names = sorted([*names, "sql"])
        for name in names:
            if len(line) + len(name) + 2 > 96:
                lines.append(line)
                line = "   "
            line += f" {name}"
        lines.append(line)
    return "\n".join([*lines, "", *(f"tulle.{room}: {words}" for room, words in ROOMS.items())])


def main() -> None:
    """Write the files; with ``--check`` only say whether they are as they should be."""
    import subprocess

    stale = []
    for path, text in write(collect()).items():
        shown = subprocess.run(
            [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        if not path.exists() or path.read_text(encoding="utf-8") != shown:
            stale.append(path)
            if "--check" not in sys.argv:
                path.write_text(shown, encoding="utf-8")
    if stale and "--check" in sys.argv:
        raise SystemExit(
            f"Run `make index`: {', '.join(path.name for path in stale)} is out of date."
        )


if __name__ == "__main__":
    main()
