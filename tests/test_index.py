"""What is derived from registrations is up to date, and names only public things."""

from __future__ import annotations

import importlib.util
import pydoc
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tulle
from tulle import _index
from tulle.core import registry
from tulle.core.unit import UNITS

ROOT = Path(__file__).parents[1]


def test_the_index_follows_from_the_source() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "index.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_stale_index_would_be_found(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("index", ROOT / "tools" / "index.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules["index"] = tool
    spec.loader.exec_module(tool)
    (tmp_path / "tulle" / "graphs").mkdir(parents=True)
    (tmp_path / "tulle" / "graphs" / "new.py").write_text(
        '@public("Count in a graph")\n@registry.register("query", "graph", "new")\n'
        "def new():\n    ...\n\n\n"
        '@registry.offered("ask", "new(2)", "New", "how new it is")\n'
        '@registry.mechanism("graph", "newer", answers=(counts.Triangles, Stars), units=())\n'
        "class Newer:\n    ...\n"
    )
    found = tool.collect(tmp_path)
    assert found.public["tulle"] == {"new": "tulle.graphs.new"}
    assert found.registered["query", "graph"] == {"new": "tulle.graphs.new"}
    assert found.answers["graph"] == {"newer": ("Triangles", "Stars")}
    assert found.offered["ask"] == (("new(2)", "New", "how new it is"),)


def test_dir_shows_public_names_only() -> None:
    assert set(dir(tulle)) == {*_index.PUBLIC["tulle"], *_index.ROOMS, "sql"}
    for name in dir(tulle):
        assert getattr(tulle, name) is not None


def test_help_is_one_screen() -> None:
    text = pydoc.plain(pydoc.render_doc(tulle))
    assert "Count in a graph: " in text
    assert len(text.splitlines()) <= 60


@pytest.mark.parametrize(("role", "group"), list(_index.REGISTERED))
def test_every_registered_name_is_found(role: registry.Role, group: str) -> None:
    found = registry.find(role, group)
    for name in found:
        assert found[name] is not None


def test_a_mechanism_is_found_by_whatever_it_supports() -> None:
    """The index narrows what a plan imports; it must not narrow what a plan offers."""
    for kind in registry.groups("mechanism"):
        everything = registry.mechanisms(kind)
        assert set(everything) == set(registry.find("mechanism", kind))
        for name, item in everything.items():
            if name in _index.ANSWERS.get(kind, {}):
                stated = {answer.__name__ for answer in type(item).answers}
                assert stated == set(_index.ANSWERS[kind][name])
                assert all(unit in UNITS for unit in type(item).units)
                by_unit = {
                    unit: tuple(query.__name__ for query in queries)
                    for unit, queries in type(item).named_only.items()
                }
                assert by_unit == _index.NAMED_ONLY.get(kind, {}).get(name, {})


def test_what_is_not_imported_would_not_have_been_offered() -> None:
    left_out = set()
    for query in (tulle.edges(), tulle.triangles(), tulle.stars(3), tulle.paths(3)):
        everything = registry.mechanisms("graph", query)
        for unit in (UNITS["edge"], UNITS["node"]):
            imported = registry.mechanisms("graph", query, unit.name)
            for name in set(everything) - set(imported):
                item = everything[name]
                assert not (item.supports(query, unit) and item.offers(query, unit))
                left_out.add((query.name, unit.name, name))
    assert ("triangles", "edge", "recursive") in left_out
    assert ("paths", "edge", "recursive") not in left_out
    assert ("triangles", "node", "laplace") in left_out
    truncating = {"recursive", "sparse_vector"}
    assert {(q, n) for q, unit, n in left_out if unit == "node" and n in truncating} == {
        ("edges", "recursive"),
        ("triangles", "recursive"),
        ("stars", "sparse_vector"),
        ("paths", "sparse_vector"),
    }


def test_units_of_the_index_are_those_of_the_mechanisms() -> None:
    for kind in registry.groups("mechanism"):
        for name, item in registry.mechanisms(kind).items():
            stated = _index.UNITS.get(kind, {}).get(name)
            assert stated is None or stated == item.units, (kind, name)


def test_importing_tulle_is_quick() -> None:
    script = "import time; t = time.process_time(); import tulle; print(time.process_time() - t)"
    times = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
        )
        times.append(float(done.stdout))
        time.sleep(0.01)
    assert min(times) < 0.05


def test_sql_is_there_in_a_fresh_process() -> None:
    """It is a package as well, so anything imported below it would hide that it is missing."""
    script = "import tulle; tulle.sql('SELECT COUNT(*) FROM visit')"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
