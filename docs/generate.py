"""Pages that are made from the code and from benchmark results, when the guide is built."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from notebooks import write_notebooks
from tables import write_tables

_OWN = ("self", "cls")
_ROLE = re.compile(r":(?:class|func|mod|data|meth):`~?\.?([^`]*)`")
_SECTIONS = {
    "Guarantee",
    "Error",
    "Raises",
    "Returns",
    "Warns",
    "Reference",
    "Cost",
    "Example",
    "Note",
}


def generate(docs: Path) -> None:
    """Write all generated pages below ``generated/``."""
    folder = docs / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "queries.md").write_text("\n".join(_queries()), encoding="utf-8")
    (folder / "units.md").write_text("\n".join(_units()), encoding="utf-8")
    (folder / "mechanisms.md").write_text("\n".join(_mechanisms()), encoding="utf-8")
    (folder / "reference.md").write_text("\n".join(_reference()), encoding="utf-8")
    (folder / "which.md").write_text("\n".join(_which(docs)), encoding="utf-8")
    write_tables(docs)
    write_notebooks(docs, folder / "notebooks")
    (folder / "gallery.md").write_text("\n".join(_gallery(docs, folder)), encoding="utf-8")


def _queries() -> Iterator[str]:
    from tulle.core import registry

    yield "# What can I ask? Every question\n"
    yield "Made from the code. A question is frozen, holds no data and checks itself when built.\n"
    for kind in registry.groups("query"):
        yield f"## About a {kind}\n"
        for name, make in sorted(registry.find("query", kind).items()):
            yield f"### `{name}{_signature(make)}`\n"
            yield from _prose(make)


def _reference() -> Iterator[str]:
    """Every public name that is not a question: classes with their members, functions, errors."""
    from tulle import _index
    from tulle.core import registry

    questions = {name for kind in registry.groups("query") for name in registry.find("query", kind)}
    yield "# What is it called? Everything else by name\n"
    yield "Made from the code. Questions have [a page of their own](queries.md).\n"
    for package, names in _index.PUBLIC.items():
        yield f"## `{package}`\n"
        for name, home in sorted(names.items(), key=lambda pair: (pair[0].islower(), pair[0])):
            thing = getattr(importlib.import_module(home), name)
            if name in questions:
                continue
            if not inspect.isclass(thing):
                yield f"### `{name}{_signature(thing) if callable(thing) else ''}`\n"
                yield from _prose(thing)
                continue
            yield f"### `{name}`\n"
            yield from _prose(thing)
            yield from _members(name, thing)


def _members(name: str, thing: type) -> Iterator[str]:
    """The methods and properties of a class that say what they do, bases of ours included."""
    for member in sorted(dir(thing)):
        raw = inspect.getattr_static(thing, member)
        wrapped = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
        module = getattr(getattr(wrapped, "fget", None) or wrapped, "__module__", None) or ""
        if member.startswith("_") or not module.startswith("tulle") or not inspect.getdoc(wrapped):
            continue
        if inspect.isfunction(wrapped):
            yield f"#### `{name}.{member}{_signature(wrapped)}`\n"
            yield from _prose(wrapped)
        elif isinstance(raw, (property, cached_property)):
            yield f"#### `{name}.{member}`\n"
            yield from _prose(raw if isinstance(raw, property) else raw.func)


def _units() -> Iterator[str]:
    from tulle.core.unit import UNITS

    yield "# Whom can I protect? Every unit\n"
    yield "Made from the code. See [who is protected](../concepts/units.md).\n"
    yield "| unit | neighbours | what is hidden |\n|---|---|---|"
    for unit in UNITS.values():
        yield f"| `{unit.name}` | {unit.relation} | {unit.meaning} |"
    yield ""


def _mechanisms() -> Iterator[str]:
    from tulle.core import registry

    yield "# What does each mechanism promise?\n"
    yield "Made from the code: what each promises and why, its error, where it comes from.\n"
    for kind in registry.groups("mechanism"):
        yield f"## For a {kind}\n"
        for mechanism in registry.mechanisms(kind).values():
            yield f"### `{mechanism.name}`: {mechanism.title}\n"
            if mechanism.options:
                listed = ", ".join(f"`{option}`" for option in mechanism.options)
                yield f"*Options:* {listed}.\n"
            yield f"*Delta:* {'needed' if mechanism.needs_delta else 'not needed'}.\n"
            yield from _prose(type(mechanism))
            yield f"*From:* {mechanism.reference}\n"


def _which(docs: Path) -> Iterator[str]:
    results = json.loads((docs / "results" / "which.json").read_text(encoding="utf-8"))
    yield "# Which mechanism answers when?\n"
    yield (
        "Median relative error over repeated releases, the best in each line in bold. Made from "
        f"the results of `python -m benchmarks which` ({results['runs']} runs a cell). The plan "
        "chooses for you by predicted error; this page shows how right it is to.\n"
    )
    for (unit, epsilon), rows in _groups(results["rows"]).items():
        yield f"## Per {unit}, epsilon = {epsilon}\n"
        names = list(dict.fromkeys(name for row in rows for name in row["errors"]))
        yield "| network | question | " + " | ".join(f"`{n}`" for n in names) + " |"
        yield "|---|---|" + "---|" * len(names)
        for row in rows:
            best = min(row["errors"].values())
            cells = [_cell(row["errors"].get(name), best) for name in names]
            yield f"| {row['graph']} | `{row['question']}` | " + " | ".join(cells) + " |"
        yield ""


def _groups(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["unit"], row["epsilon"]), []).append(row)
    return found


def _cell(error: float | None, best: float) -> str:
    if error is None:
        return ""
    if error >= 1:
        return "drowned"
    shown = f"{100 * error:.0f} %" if error >= 0.1 else f"{100 * error:.2g} %"
    return f"**{shown}**" if error == best else shown


def _gallery(docs: Path, folder: Path) -> Iterator[str]:
    yield "# What does it look like? Gallery\n"
    yield "One figure for each capability, all on made-up data, each made by a script in `docs/`.\n"
    for script in sorted((docs / "gallery").glob("[a-z]*.py")):
        module = importlib.import_module(f"gallery.{script.stem}")
        picture = folder / f"{script.stem}.svg"
        if not picture.exists():
            module.draw(picture)
        title, _, text = inspect.getdoc(module).partition("\n")  # type: ignore[union-attr]
        yield f"## {title.rstrip('.')}\n\n{text.strip()}\n\n![{title}]({picture.name})\n"


def _signature(make: Any) -> str:
    found = inspect.signature(make)
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name not in _OWN]
    return str(found.replace(parameters=bare, return_annotation=found.empty))


def _prose(thing: Any) -> Iterator[str]:
    """Turn a docstring into Markdown: sections as bold words, examples as code."""
    text = _ROLE.sub(lambda found: f"``{found[1]}``", inspect.getdoc(thing) or "")
    lines: list[str] = []
    coding = False
    for line in text.splitlines():
        plain = line.strip()
        code = plain.startswith((">>>", "..."))
        if code and not coding:
            lines += ["", "```python"]
        if coding and not code and not plain:
            lines += ["```"]
            coding = False
        coding = coding or code
        head = plain.removesuffix(":")
        if plain.endswith(":") and head in _SECTIONS:
            lines.append(f"\n**{head}.**" if head != "Example" else "")
        else:
            lines.append(plain if not coding else line.strip() if code else plain)
    if coding:
        lines.append("```")
    yield "\n".join(lines) + "\n"
