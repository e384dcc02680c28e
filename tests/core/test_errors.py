"""Errors that take the place of others remember nothing of them, which may quote a row."""

from __future__ import annotations

import ast
import gc
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from traceback import TracebackException, extract_tb
from typing import Any

import pytest

import tulle
from tulle.core.dataset import Dataset
from tulle.core.errors import InputError, TulleError, forgetful, raise_alone
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


def handled(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield ways to hand over records that fail somewhere, with a value in a variable there."""
    from tulle import surveys
    from tulle.models import LinearRegression

    yield from unreadable(folder)
    names = [SECRET, SECRET]
    yield "edges", lambda: tulle.Graph.from_edges([(SECRET, "b", 1)])  # type: ignore[list-item]
    yield "contributions", lambda: tulle.Contributions(names, names, names, rows=2, columns=2)
    yield "genotypes", lambda: tulle.Genotypes([[SECRET]])
    yield "a table", lambda: Table({"x": names}, bounds={"x": (0, 1)})
    yield "a series", lambda: tulle.Series(names, names[:1], every="day", first="2026-01-05",
                                           steps=3, bound=1)  # fmt: skip
    yield "tables", lambda: tulle.Database.from_tables({"t": {"a": names, "b": [1]}}, owners={})
    private = LinearRegression(epsilon=1, unit="row", bounds=(0, 1), target_bounds=(0, 1))
    yield "an estimator", lambda: private.fit([[SECRET]], [1])
    form = surveys.Survey({"q": ["no", "yes"]}).form(epsilon=1)
    mine = surveys.ClientAccount(epsilon=1, unit="client")
    yield "a client", lambda: surveys.respond(form, {"q": SECRET}, account=mine)
    yield "a survey", lambda: surveys.perturb(form, {"q": names})


def shown(error: BaseException) -> list[str]:
    """Return the functions of tulle whose variables a verbose traceback shows with the value."""
    frames = TracebackException.from_exception(error, capture_locals=True).stack
    return [
        f"{frame.filename}: {frame.name}: {name}"
        for frame in frames
        for name, written in (frame.locals or {}).items()
        if SECRET in written and frame.filename.startswith(str(SOURCE))
    ]


def test_no_frame_of_a_traceback_shows_a_record(tmp_path: Path) -> None:
    for name, act in handled(tmp_path):
        with pytest.raises(TulleError) as caught:
            act()
        assert SECRET not in str(caught.value), name
        assert shown(caught.value) == [], name
        assert caught.value.__traceback__ is not None
        assert extract_tb(caught.value.__traceback__)[-1].filename.startswith(str(SOURCE)), name


def test_nor_where_a_mechanism_fails_or_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    friends = tulle.Graph.from_edges([(SECRET, "b"), ("b", "c")])
    for kind in (KeyboardInterrupt, MemoryError):

        def stops(self: Any, graph: Any, kind: type[BaseException] = kind) -> Any:
            names = list(graph.labels)
            assert SECRET in names
            raise kind

        with monkeypatch.context() as patch:
            patch.setattr(type(tulle.edges()), "truth", stops)
            with pytest.raises(kind) as caught:
                tulle.release(friends, tulle.edges(), unit="edge", epsilon=1)
        frames = TracebackException.from_exception(caught.value, capture_locals=True).stack
        shown_there = [f.name for f in frames if SECRET in str(f.locals)]
        assert set(shown_there) <= {"test_nor_where_a_mechanism_fails_or_is_stopped"}
        assert "stops" in [frame.name for frame in frames]


def test_every_way_to_make_a_dataset_is_forgetful() -> None:
    """A reader that is not would be found: one is made here, outside of a dataset."""

    def remembers(records: list[str]) -> None:
        raise InputError("Nothing is said of them.")

    def frames(act: Callable[[], Any]) -> str:
        with pytest.raises(InputError) as caught:
            act()
        return str(
            [
                frame.locals
                for frame in TracebackException.from_exception(
                    caught.value, capture_locals=True
                ).stack
                if frame.name in ("remembers", "call")
            ]
        )

    records = [SECRET]
    assert SECRET in frames(lambda: remembers(records))
    assert SECRET not in frames(lambda: forgetful(remembers)(records))
    kinds = {kind for kind in Dataset.__subclasses__() if kind.__module__.startswith("tulle.")}
    assert len(kinds) >= 6
    for kind in kinds:
        for name, member in vars(kind).items():
            made = member.__func__ if isinstance(member, classmethod) else member
            is_way_in = isinstance(member, classmethod) and not name.startswith("_")
            if (is_way_in or name == "__init__") and not hasattr(made, "__wrapped__"):
                assert only_assigns(made), f"{kind.__name__}.{name}"


def only_assigns(function: Callable[..., Any]) -> bool:
    """Say whether a function does nothing that can fail: names, comparisons, lengths."""
    (defined,) = ast.parse(dedent(inspect.getsource(function))).body
    assert isinstance(defined, ast.FunctionDef)
    plain = all(
        isinstance(line, ast.Assign)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in defined.body
    )
    called = {ast.unparse(node.func) for node in ast.walk(defined) if isinstance(node, ast.Call)}
    return plain and called <= {"len"}


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
