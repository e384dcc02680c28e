"""Whatever is wrong: one paragraph, the right exit code, no record, nothing spent."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.cli.cli_helpers import SECRET, Run

GRAPHML = f"""<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">
<node id="{SECRET}-1"/><node id="{SECRET}-2"/><edge source="{SECRET}-1" target="{SECRET}-2"/>
</graph></graphml>
"""
BAD_FILES = {
    "missing.csv": None,
    "binary.csv": bytes(range(256)) * 40,
    "empty.csv": b"",
    "comments.csv": b"# nothing\n",
    "one_node.csv": f"{SECRET}-1,{SECRET}-1\n".encode(),
    "ragged.csv": f"{SECRET}-1,{SECRET}-2\n{SECRET}-3\n".encode(),
    "three.csv": f"{SECRET}-1,{SECRET}-2,{SECRET}-3\n".encode(),
    "torn.csv.gz": b"\x1f\x8b\x08\x00torn",
    "directed.graphml": GRAPHML.encode(),
    "torn.graphml": GRAPHML[:150].encode(),
    "not.parquet": b"not parquet",
    "not.mtx": f"{SECRET}".encode(),
}
BAD_WORDS = [
    ("triangles", "edge", "0", "above zero"),
    ("triangles", "edge", "-1", "above zero"),
    ("triangles", "edge", "nan", "finite"),
    ("triangles", "edge", "inf", "finite"),
    ("triangles", "edge", "-inf", "finite"),
    ("triangles", "edge", "1e999", "finite"),
    ("triangles", "edge", "much", "number"),
    ("triangles", "edge", "", "number"),
    ("triangles", "edge", "1/0", "zero"),
    ("triangles", "people", "1", "edge, node"),
    ("triangles", "row", "1", "edge, node"),
    ("triangles", "", "1", "edge, node"),
    ("triangles", "edges", "1", "Did you mean 'edge'?"),
    ("hexagons", "edge", "1", "triangles"),
    ("trianglez", "edge", "1", "Did you mean 'triangles'?"),
    ("stars", "edge", "1", "k"),
    ("stars()", "edge", "1", "k"),
    ("True", "edge", "1", "is not a number"),
    ("triangles * 1e999", "edge", "1", "is not a number"),
    (" + ".join(["triangles"] * 3000), "edge", "1", "at most 2,000 characters"),
    ("stars(1)", "edge", "1", "at least 2"),
    ("stars(", "edge", "1", "is not a question"),
    ("degrees + 1", "edge", "1", "more than one number"),
    ("", "edge", "1", "is not a question"),
    ("7", "edge", "1", "asks nothing"),
    ("[bold]triangles[/bold]", "edge", "1", "is not a question"),
]


@pytest.fixture
def book(run: Run, friends: Path, tmp_path: Path) -> Path:
    """A ledger with one answer booked and epsilon = 1 left."""
    file = tmp_path / "study.ledger"
    asked = ("ask", friends, "edges", "--unit", "edge", "--epsilon", "1", "--ledger", file)
    assert run(*asked, "--budget", "2").code == 0
    return file


def check(run: Run, code: int, kind: str, *arguments: object) -> str:
    """See that a command fails alike in both forms; return its message."""
    plain = run(*arguments)
    assert plain.code == code, plain
    assert plain.out == ""
    assert plain.err.startswith("error: ")
    assert plain.err.count("\n") == 1
    machine = run(*arguments, "--json")
    assert machine.code == code
    assert machine.err == ""
    error = machine.json()["error"]
    assert error["kind"] == kind
    assert error["message"] == plain.err.removeprefix("error: ").removesuffix("\n")
    return str(error["message"])


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(run: Run, book: Path, name: str, tmp_path: Path) -> None:
    file, content = tmp_path / name, BAD_FILES[name]
    if content is not None:
        file.write_bytes(content)
    before = book.read_bytes()
    words = (file, "triangles", "--unit", "edge", "--epsilon", "0.5")
    for arguments in (
        ("plan", *words),
        ("ask", *words, "--no-ledger"),
        ("ask", *words, "--ledger", book, "--account", "new", "--budget", "1"),
    ):
        plain = run(*arguments)
        assert plain.code == 2, plain
        machine = run(*arguments, "--json")
        assert machine.code == 2
        assert machine.json()["error"]["message"]
    assert book.read_bytes() == before


def test_a_folder_is_not_a_network(run: Run, tmp_path: Path) -> None:
    check(run, 2, "InputError", "plan", tmp_path, "edges", "--unit", "edge", "--epsilon", "1")


@pytest.mark.parametrize(("question", "unit", "epsilon", "says"), BAD_WORDS)
def test_bad_words(
    run: Run, friends: Path, book: Path, question: str, unit: str, epsilon: str, says: str
) -> None:
    before = book.read_bytes()
    words = (friends, question, f"--unit={unit}", f"--epsilon={epsilon}")
    for arguments in (("plan", *words), ("ask", *words, "--ledger", book)):
        plain = run(*arguments)
        assert plain.code == 2, plain
        assert plain.out == ""
        assert says in plain.err
        assert says in run(*arguments, "--json").json()["error"]["message"]
    assert book.read_bytes() == before


def test_a_question_that_no_mechanism_answers_per_node(run: Run, friends: Path) -> None:
    words = (friends, "degrees", "--unit", "node", "--epsilon", "1")
    for arguments in (
        ("plan", *words),
        ("ask", *words, "--ledger", "new.ledger", "--budget", "1"),
        ("ask", *words, "--no-ledger"),
    ):
        ran = run(*arguments)
        assert ran.code == 2
        assert "cannot be answered per node. It can be asked per edge." in ran.err
    assert not Path("new.ledger").exists()


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (("--mechanism", "magic"), "laplace"),
        (("--mechanism", "smooth"), "delta above zero"),
        (("--mechanism", "laplace", "--option", "magic=1"), "options"),
        (("--option", "spread_share=0.1"), "--mechanism"),
        (("--mechanism", "smoothed_ladder", "--option", "spread_share"), "NAME=VALUE"),
        (("--mechanism", "smoothed_ladder", "--option", "spread_share=2"), "at most 0.9"),
        (("--delta", "-1"), "delta"),
        (("--delta", "1"), "at most 0.999999999"),
        (("--delta", "nan"), "finite"),
        (("--nodes", "-4"), "nodes"),
        (("--nodes", "10"), ""),
        (("--format", "magic"), "parquet"),
        (("--ignore", "everything"), "weights"),
        (("--columns", "0"), "two different columns"),
        (("--columns", "0,magic"), "column"),
        (("--like", "missing.csv"), "does not exist"),
    ],
)
def test_bad_options(
    run: Run, friends: Path, book: Path, extra: tuple[str, ...], says: str
) -> None:
    before = book.read_bytes()
    words = (friends, "triangles", "--unit", "edge", "--epsilon", "0.5", *extra)
    for arguments in (("plan", *words), ("ask", *words, "--ledger", book)):
        ran = run(*arguments)
        assert ran.code == 2, ran
        assert says in ran.err
    assert book.read_bytes() == before


def test_overspending(run: Run, friends: Path, book: Path) -> None:
    before = book.read_bytes()
    words = (friends, "triangles", "--unit", "edge", "--epsilon", "1.000001", "--ledger", book)
    message = check(run, 3, "BudgetError", "ask", *words)
    assert "Nothing was spent" in message
    assert "epsilon up to 1" in message
    words = (friends, "triangles", "--unit", "edge", "--epsilon", "1", "--delta", "1e-6")
    spend_delta = ("--ledger", book, "--mechanism", "smooth")
    check(run, 3, "BudgetError", "ask", *words, *spend_delta)
    assert book.read_bytes() == before


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "all"])
def test_bad_budgets_make_no_ledger(run: Run, friends: Path, budget: str) -> None:
    words = ("ask", friends, "edges", "--unit", "edge", "--epsilon", "1", "--ledger", "new.ledger")
    check(run, 2, "InputError", *words, f"--budget={budget}")
    assert not Path("new.ledger").exists()


def test_a_question_beyond_the_first_budget_opens_nothing(run: Run, friends: Path) -> None:
    words = ("ask", friends, "edges", "--unit", "edge", "--epsilon", "2", "--ledger", "new.ledger")
    check(run, 3, "BudgetError", *words, "--budget", "1")
    assert not Path("new.ledger").exists()


def test_an_account_keeps_its_terms_and_its_data(run: Run, friends: Path, book: Path) -> None:
    before = book.read_bytes()
    words = ("--epsilon", "0.5", "--ledger", book)
    asked = ("ask", friends, "edges", "--unit", "edge", *words)
    assert "differs" in check(run, 4, "LedgerError", *asked, "--budget", "9")
    node = ("ask", friends, "edges", "--unit", "node", *words)
    assert run(*node).code in (2, 4)
    other = friends.with_name("friends.txt")
    other.write_text("0 1\n1 2\n")
    smaller = ("ask", other, "edges", "--unit", "edge", *words)
    assert "public facts" in check(run, 4, "LedgerError", *smaller)
    assert book.read_bytes() == before


def _other_version(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def _corrupt(file: Path) -> None:
    file.write_bytes(b"\x00\x01" * 4000)


def _emptied(file: Path) -> None:
    file.write_bytes(b"")


def _foreign(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE shop (item TEXT)")
    connection.close()


@pytest.mark.parametrize("harm", [_other_version, _corrupt, _emptied, _foreign])
def test_ledgers_that_cannot_be_used(run: Run, friends: Path, book: Path, harm: object) -> None:
    assert callable(harm)
    harm(book)
    before = book.read_bytes()
    words = (friends, "edges", "--unit", "edge", "--epsilon", "0.5", "--ledger", book)
    for extra in ((), ("--budget", "2")):
        message = check(run, 4, "LedgerError", "ask", *words, *extra)
        assert "Nothing was spent" in message
    for command in ("show", "accounts", "export", "head"):
        check(run, 4, "LedgerError", "ledger", command, book)
    assert run("ledger", "verify", book).code == 1
    assert book.read_bytes() == before


def test_a_folder_is_not_a_ledger(run: Run, friends: Path, tmp_path: Path) -> None:
    words = (friends, "edges", "--unit", "edge", "--epsilon", "0.5", "--ledger", tmp_path)
    check(run, 4, "LedgerError", "ask", *words, "--budget", "1")


def test_faults_hold_back_what_they_might_quote(
    run: Run, friends: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"at the edge {SECRET}-1,{SECRET}-2")

    monkeypatch.setattr("tulle.ledger.answer.plan_for", fail)
    words = ("plan", friends, "edges", "--unit", "edge", "--epsilon", "1")
    message = check(run, 70, "fault", *words)
    assert "RuntimeError" in message
    assert "TULLE_DEBUG=1" in message
    monkeypatch.setenv("TULLE_DEBUG", "1")
    with pytest.raises(RuntimeError, match=SECRET):
        run(*words)
