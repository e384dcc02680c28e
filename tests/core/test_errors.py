"""Errors that take the place of others remember nothing of them, which may quote a row."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tulle
from tulle.core.errors import InputError, TulleError, raise_alone
from tulle.models.data import Table

SOURCE = Path(tulle.__file__).parent

ELSEWHERE = {
    "core/errors.py",  # raise_alone itself
    *(
        "ledger/ledger.py",
        "ledger/store.py",
        "ledger/store_file.py",
    ),  # SQLite, without rows
}

SECRET = "hidden_7431"


def chained(text: str) -> list[int]:
    """Return the lines on which an error is raised while another one is handled."""
    found: list[int] = []

    def walk(node: ast.AST, handling: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            handling = False
        if isinstance(node, ast.ExceptHandler):
            handling = True
        if isinstance(node, ast.Raise) and handling and node.exc is not None:
            found.append(node.lineno)
        for child in ast.iter_child_nodes(node):
            walk(child, handling)

    walk(ast.parse(text), handling=False)
    return found


def test_no_error_is_raised_while_another_is_handled() -> None:
    """Use raise_alone(error) there. A plain ``raise`` goes on with the one that was caught."""
    wrong = {
        f"{file.relative_to(SOURCE)}:{line}"
        for file in SOURCE.rglob("*.py")
        if str(file.relative_to(SOURCE)) not in ELSEWHERE
        for line in chained(file.read_text(encoding="utf-8"))
    }
    assert wrong == set()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("try:\n  f()\nexcept E:\n  raise X('a') from None", 1),
        ("try:\n  f()\nexcept E as e:\n  if e:\n    raise X from e", 1),
        ("try:\n  f()\nexcept E:\n  with g():\n    raise X", 1),
        ("try:\n  f()\nexcept E:\n  raise", 0),
        ("try:\n  f()\nexcept E:\n  raise_alone(X())", 0),
        ("try:\n  f()\nexcept E:\n  def g():\n    raise X", 0),
        ("try:\n  raise X\nfinally:\n  pass", 0),
    ],
)
def test_the_check_finds_what_it_looks_for(text: str, count: int) -> None:
    assert len(chained(text)) == count


def held(error: BaseException) -> list[BaseException]:
    return [item for item in gc.get_referents(error) if isinstance(item, BaseException)]


def test_an_error_raised_alone_holds_no_other() -> None:
    def read(text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise_alone(InputError("Whole numbers are needed."))

    with pytest.raises(InputError) as caught:
        read(SECRET)
    error = caught.value
    assert error.__context__ is error.__cause__ is None
    assert error.__suppress_context__
    assert held(error) == []
    # Also when the whole of it happens while something else is handled.
    try:
        raise KeyError(SECRET)
    except KeyError:
        with pytest.raises(InputError) as caught:
            raise_alone(InputError("Nothing."))
    assert held(caught.value) == []


def unreadable(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield ways to read records that another library fails on, with a value in its words."""

    def file(name: str, text: str | bytes) -> Path:
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    ragged = file("ragged.csv", f"person,x\n1,2\n{SECRET},2,3\n")
    yield "a table of a model", lambda: Table.read(ragged, bounds={"x": (0, 1)})
    from tulle.core.cells import read_table

    yield "a table of contributions", lambda: read_table(ragged)
    yield "a matrix", lambda: tulle.BinaryMatrix([[0, 1], [SECRET, 1]])
    yield "rows of a matrix", lambda: tulle.BinaryMatrix([[0, 1], [SECRET]])
    no_text = file("latin.txt", f"1 2\n{SECRET} \xff\xfe\n".encode("latin-1"))
    yield "an edge list", lambda: tulle.Graph.read(no_text)
    market = file("market.mtx", f"%%MatrixMarket matrix coordinate pattern\n2 2 1\n{SECRET} 1\n")
    yield "a MatrixMarket file", lambda: tulle.Graph.read(market)
    xml = file("graph.graphml", f"<graphml><node id='{SECRET}'></graphml>")
    yield "a GraphML file", lambda: tulle.Graph.read(xml)
    parquet = file("table.parquet", SECRET)
    yield "a Parquet file", lambda: tulle.Graph.read(parquet)


def test_readers_forget_what_they_stumbled_over(tmp_path: Path) -> None:
    for name, act in unreadable(tmp_path):
        with pytest.raises(TulleError) as caught:
            act()
        waiting: list[BaseException] = [caught.value]
        for error in waiting:
            assert not held(error), name
            assert error.__context__ is None, name
            assert error.__cause__ is None, name
            assert SECRET not in str(error), name
