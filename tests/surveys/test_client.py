"""The client: nothing unperturbed leaves, budgets hold, and asking twice costs once."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from tests.ledger import test_store_place as places
from tests.surveys.survey_helpers import chi_square_p

import tulle
from tulle.audit.surveys.kind import Laws, is_private
from tulle.core.errors import BudgetError, InputError, LedgerError, UnitError
from tulle.ledger.store_place import Place
from tulle.surveys import (
    ClientAccount,
    Collection,
    LocalHashing,
    RandomizedResponse,
    Survey,
    UnaryEncoding,
    respond,
)

SECRET = "zanzibar"
SURVEY = Survey({"place": ["home", SECRET], "grade": 5}, name="test")
FORM = SURVEY.form(epsilon={"place": 1, "grade": "1/2"})


def account(epsilon: object = 10) -> ClientAccount:
    return ClientAccount(epsilon=epsilon, unit="client")  # type: ignore[arg-type]


def test_reports_have_the_law_of_the_design() -> None:
    counts: dict[object, int] = {}
    for _ in range(4000):
        sent = respond(FORM, {"place": SECRET, "grade": 3}, account=account())
        key = sent["place"], sent["grade"]
        counts[key] = counts.get(key, 0) + 1
    place, grade = FORM.designs[0].law(1), FORM.designs[1].law(3)
    law = {(a, b): p * q for a, p in place.items() for b, q in grade.items()}
    assert chi_square_p(counts, law) > 1e-6
    # Power: the same reports are not taken for those of a neighbour.
    other = {(a, b): p * q for a, p in FORM.designs[0].law(0).items() for b, q in grade.items()}
    assert chi_square_p(counts, other) < 1e-6


@pytest.mark.parametrize(
    "answers",
    [
        {"place": "elsewhere-" + SECRET, "grade": 1},
        {"place": SECRET, "grade": 77123},
        {"place": SECRET, "grade": True},
        {"place": SECRET, "grade": float("nan")},
        {"place": [SECRET], "grade": 1},
        {"place": SECRET},
        {"place": SECRET, "grade": 1, "more": SECRET},
    ],
)
def test_a_refused_answer_is_named_by_its_attribute_only(
    answers: dict[str, object], caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = account()
    with caplog.at_level(logging.DEBUG), pytest.raises(InputError) as refused:
        respond(FORM, answers, account=mine)
    shown = str(refused.value) + caplog.text + "".join(capsys.readouterr())
    assert SECRET not in shown
    assert "77123" not in shown
    assert refused.value.__cause__ is None
    assert any(name in str(refused.value) for name in ("place", "grade", "more"))
    assert mine.spent == 0


def test_asking_twice_spends_once_and_gives_the_same_report() -> None:
    mine = account("3/2")
    first = respond(FORM, {"place": SECRET, "grade": 3}, account=mine)
    for grade in range(5):  # whatever the answer is now
        assert respond(FORM, {"place": "home", "grade": grade}, account=mine) == first
    assert mine.spent == Fraction(3, 2)
    with pytest.raises(BudgetError, match="has 0 left"):
        respond(FORM, {"place": SECRET, "grade": 3}, account=mine, wave="2025")


def test_another_form_with_the_same_question_gets_the_stored_report() -> None:
    mine = account()
    first = respond(FORM, {"place": SECRET, "grade": 3}, account=mine)
    small = Survey({"place": ["home", SECRET]}, name="test").form(epsilon=1)
    assert respond(small, {"place": SECRET}, account=mine)["place"] == first["place"]
    assert mine.spent == Fraction(3, 2)
    # Another epsilon is another question.
    dearer = Survey({"place": ["home", SECRET]}, name="test").form(epsilon=2)
    respond(dearer, {"place": SECRET}, account=mine)
    assert mine.spent == Fraction(7, 2)


def test_a_refusal_draws_and_stores_nothing() -> None:
    mine = account("5/4")
    with pytest.raises(BudgetError, match=r"cost epsilon = 1\.5.*Nothing was sent"):
        respond(FORM, {"place": SECRET, "grade": 3}, account=mine)
    assert mine.spent == 0


def test_the_file_outlives_the_process_and_holds_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "mine.account"
    with ClientAccount(epsilon=2, unit="client", path=path) as mine:
        first = respond(FORM, {"place": SECRET, "grade": 3}, account=mine)
    with ClientAccount(epsilon=2, unit="client", path=path) as mine:
        assert mine.spent == Fraction(3, 2)
        assert respond(FORM, {"place": "home", "grade": 0}, account=mine) == first
    assert SECRET.encode() not in path.read_bytes()
    with pytest.raises(InputError, match="budget does not change"):
        ClientAccount(epsilon=3, unit="client", path=path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.account"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerError, match="cannot be used"):
        ClientAccount(epsilon=2, unit="client", path=path)


def test_a_failed_write_sends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.account"
    mine = ClientAccount(epsilon=2, unit="client", path=path)
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE reports")
    other.close()
    with pytest.raises(LedgerError):
        respond(FORM, {"place": SECRET, "grade": 3}, account=mine)
    mine.close()


RACE = """
import sys
from tulle.surveys import ClientAccount, Survey, respond
from tulle.core.errors import BudgetError
form = Survey({"a": 2}).form(epsilon=1)
mine = ClientAccount(epsilon=3, unit="client", path=sys.argv[1])
sent = 0
for wave in range(10):
    try:
        respond(form, {"a": 1}, account=mine, wave=f"{sys.argv[2]}-{wave}")
        sent += 1
    except BudgetError:
        pass
print(sent)
"""


def test_two_processes_never_overspend(tmp_path: Path) -> None:
    path = tmp_path / "mine.account"
    ClientAccount(epsilon=3, unit="client", path=path).close()
    started = [
        subprocess.Popen([sys.executable, "-c", RACE, path, name], stdout=subprocess.PIPE)
        for name in ("one", "two")
    ]
    sent = sum(int(process.communicate(timeout=600)[0]) for process in started)
    assert sent == 3


def test_threads_share_an_account_and_never_overspend() -> None:
    shared = account(3)
    surveys = [Survey({f"grade{number}": 5}, name="test") for number in range(8)]
    forms = [one.form(epsilon={f"grade{number}": 1}) for number, one in enumerate(surveys)]

    def answer(number: int) -> bool:
        try:
            respond(forms[number], {f"grade{number}": 3}, account=shared)
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(answer, range(8))) == 3
    assert shared.remaining == 0


def test_another_thread_may_drop_an_account() -> None:
    """Which thread collects what nobody holds any more is chance."""
    held = [account()]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(held.clear).result()


def test_units_of_accounts_are_kept_apart() -> None:
    with pytest.raises(UnitError, match="priced per client"):
        respond(FORM, {"place": SECRET, "grade": 3}, account=ClientAccount(epsilon=9, unit="edge"))
    with pytest.raises(UnitError):
        ClientAccount(epsilon=1, unit="node")
    for epsilon in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError):
            ClientAccount(epsilon=epsilon, unit="client")


def test_questions_that_differ_in_anything_share_no_report() -> None:
    def keys(name: str, attributes: dict[str, object], epsilon: object) -> list[str]:
        form = Survey(attributes, name=name).form(epsilon=epsilon)  # type: ignore[arg-type]
        return [form.question_key(one) for one in form.survey.names]

    found = [
        *keys("one", {"a": 3, "b": 3}, 2),
        *keys("other", {"a": 3}, 1),
        *keys("one", {"a": 3}, 2),
        *keys("one", {"a": 4}, 1),
        *keys("one", {"a": ["0", "1", "2"]}, 1),
        *keys("one", {"a": ["0", "2", "1"]}, 1),
    ]
    assert len(set(found)) == len(found)


# --- the account's file -------------------------------------------------------------------------

SMOKES = Survey({"smokes": ["no", "yes"]}).form(epsilon=1)


def mine(path: object) -> ClientAccount:
    return ClientAccount(epsilon=1, unit="client", path=path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", [":memory:", "file::memory:", "file:x?mode=memory", "a?b#c%20d", " ", "é", "x'y"]
)
def test_whatever_a_file_is_called_it_keeps_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with mine(name) as opened:
        sent = respond(SMOKES, {"smokes": "yes"}, account=opened)
    assert os.listdir(tmp_path) == [name]
    with mine(name) as opened:
        assert opened.remaining == 0
        assert respond(SMOKES, {"smokes": "no"}, account=opened) == sent


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 5, object()])
def test_what_names_no_file_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="must name a file"):
        mine(name)


def removed(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    moved(path)
    mine(path).close()


def linked(path: Path) -> None:
    os.link(path, path.with_name("second"))


@pytest.mark.parametrize("harm", [removed, moved, replaced, linked])
def test_an_account_without_its_file_sends_nothing(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Else whoever opens the path anew has the whole budget once more."""
    path = tmp_path / "mine.db"
    with mine(path) as opened:
        harm(path)
        with pytest.raises(LedgerError, match="Nothing was spent"):
            respond(SMOKES, {"smokes": "yes"}, account=opened)


def test_a_second_name_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    mine(tmp_path / "mine.db").close()
    linked(tmp_path / "mine.db")
    for name in ("mine.db", "second"):
        with pytest.raises(LedgerError, match="2 names"):
            mine(tmp_path / name)


def test_the_commit_is_the_durable_kind(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    mine(path).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA journal_mode = WAL")
    other.close()
    with mine(path) as opened:
        found = [
            opened._database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "fullfsync")
        ]
    assert found == ["delete", 3, 1]


def test_a_ledger_is_not_made_an_account(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    tulle.Ledger(path)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="another kind"):
        mine(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("odd", ["", "x", "1/0", "[" * 100_000, b"\xff", None, 7, -1.5])
@pytest.mark.parametrize("column", ["epsilon", "report"])
def test_whatever_is_in_the_file_there_is_one_kind_of_error(
    tmp_path: Path, column: str, odd: object
) -> None:
    path = tmp_path / "mine.db"
    with ClientAccount(epsilon=9, unit="client", path=path) as opened:
        respond(SMOKES, {"smokes": "yes"}, account=opened)
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
    other.close()
    with sqlite3.connect(path) as other:
        other.execute(f"UPDATE reports SET {column} = ?", (odd,))
    other.close()
    with ClientAccount(epsilon=9, unit="client", path=path) as opened:
        for act in (
            lambda: opened.spent,
            lambda: respond(SMOKES, {"smokes": "yes"}, account=opened),
            lambda: respond(SMOKES, {"smokes": "yes"}, account=opened, wave="2"),
        ):
            with suppress(LedgerError, InputError):
                act()


def test_a_commit_that_fails_sends_nothing_and_the_account_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    with mine(path) as opened:
        opened._database.execute("PRAGMA busy_timeout = 0")
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM terms").fetchall()
        with pytest.raises(LedgerError, match="Nothing was sent"):
            respond(SMOKES, {"smokes": "yes"}, account=opened)
        reader.close()
        assert opened.remaining == 1
        respond(SMOKES, {"smokes": "yes"}, account=opened)
        assert opened.remaining == 0


# --- one file by two names, locks that exclude nobody: as for a ledger ---------------------------

LIMIT = 10
names, unlocked = places.names, places.unlocked  # fixtures


def tell(path: Path, most: int = 2 * LIMIT) -> int:
    """Answer new questions until the budget or the file says no; return how many were sent."""
    sent = 0
    with (
        suppress(BudgetError, LedgerError),
        ClientAccount(epsilon=LIMIT, unit="client", path=path) as opened,
    ):
        for _ in range(most):
            respond(SMOKES, {"smokes": "yes"}, account=opened, wave=os.urandom(8).hex())
            sent += 1
    return sent


def killed(path: Path, moment: str) -> None:
    """Leave file and journal as a kill inside the commit of one more report leaves them."""
    before = path.read_bytes()

    def work() -> None:
        ClientAccount._confirm = lambda *_: os._exit(0)  # type: ignore[assignment]
        tell(path, 1)

    places.in_child(work)
    path.with_name(f"{path.name}-journal").write_bytes(places.journal_of(before, path.read_bytes()))
    if moment == "before the pages are written":
        path.write_bytes(before)


def attack(names: tuple[Path, Any, Any], moment: str) -> int:
    one, there, back = names
    sent = tell(one, 5)
    killed(one, moment)
    return sent + tell(there()) + tell(back())


@pytest.mark.parametrize("moment", places.MOMENTS[:2])
@pytest.mark.parametrize("names", places.WAYS, indirect=True)
def test_two_names_of_an_account_do_not_send_twice(
    names: tuple[Path, Any, Any],
    moment: str,
) -> None:
    assert 5 <= attack(names, moment) <= LIMIT


@pytest.mark.parametrize("check", ["check_names", "_check_mount", "_check_journal"])
@pytest.mark.parametrize("names", places.WAYS, indirect=True)
def test_without_the_checks_more_is_sent_than_there_is(
    names: tuple[Path, Any, Any],
    check: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broken version; where the journal alone is looked at, that is enough."""
    others = {"check_names", "_check_mount", "_check_journal"}
    for name in others - ({check} if check == "_check_journal" else set()):
        monkeypatch.setattr(Place, name, lambda self: None)
    sent = attack(names, "before the pages are written")
    assert sent <= LIMIT if check == "_check_journal" else sent == 15


def test_a_killed_account_goes_on_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    for moment in places.MOMENTS[:2]:
        sent = tell(path, 2)
        killed(path, moment)
        with ClientAccount(epsilon=LIMIT, unit="client", path=path) as opened:
            assert opened.spent in (sent, 2 * sent)
    assert tell(path) == LIMIT - 4


def test_an_account_that_is_killed_while_it_is_made_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    mine(path).close()
    made = path.read_bytes()
    for left in (b"", made[:4096], made):
        path.write_bytes(left)
        path.with_name("mine.db-journal").write_bytes(places.journal_of(b"", made))
        mine(path).close()
        assert path.read_bytes()[:16] == made[:16]


def test_an_account_whose_file_is_gone_is_not_made_anew_beside_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    tell(path, 2)
    killed(path, "after the pages are written")
    path.rename(tmp_path / "elsewhere")
    assert tell(path) == 0


@pytest.mark.usefixtures("unlocked")
def test_locks_that_exclude_nobody_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="grants a lock"):
        mine(tmp_path / "mine.db")
    assert places.race(tmp_path / "other.db", tell) == 0


@pytest.mark.usefixtures("unlocked")
def test_without_the_question_for_a_lock_more_is_sent_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version; chance decides how often, once is enough."""
    monkeypatch.setattr(Place, "check_lock", lambda self, writing: None)
    monkeypatch.setattr(Place, "_check_journal", lambda self: None)
    monkeypatch.setattr(ClientAccount, "_confirm", lambda self, written: None)
    for attempt in range(30):
        path = tmp_path / f"{attempt}.db"
        with suppress(LedgerError):
            ClientAccount(epsilon=LIMIT, unit="client", path=path).close()
        if places.race(path, tell) > LIMIT:
            return
    pytest.fail("the race did not catch the broken version")


# --- memoised reports: an exact law over two waves of a changing answer ------------------------


def transcripts(design: RandomizedResponse, memo_by_value: bool) -> Laws:
    """Return the law of two reports for each history of two answers."""
    size = design.categories
    histories = list(product(range(size), repeat=2))
    laws = {}
    for history in histories:
        law: dict[object, Fraction] = {}
        for first, second in product(range(size), repeat=2):
            if memo_by_value and history[0] != history[1]:
                chance = design.law(history[0])[first] * design.law(history[1])[second]
            else:
                chance = design.law(history[0])[first] * (first == second)
            law[first, second] = law.get((first, second), Fraction(0)) + chance
        laws[history] = law
    return Laws(design.epsilon, laws, list(combinations(histories, 2)))


def test_a_memo_by_value_tells_that_the_answer_changed() -> None:
    """The twin repeats a report while the answer stays and draws anew when it changes."""
    design = RandomizedResponse.of(3, epsilon=1)
    assert is_private(transcripts(design, memo_by_value=False))
    assert not is_private(transcripts(design, memo_by_value=True))


# --- from the wire ----------------------------------------------------------------------------


def test_reports_travel_as_json_and_are_checked_on_arrival() -> None:
    survey = Survey({"a": 3, "b": 6, "c": 9})
    form = survey.form(
        epsilon=3,
        designs={
            "b": UnaryEncoding.of(6, epsilon=1),
            "c": LocalHashing.of(9, epsilon=1),
        },
    )
    collection = Collection(form)
    for _ in range(20):
        sent = respond(form, {"a": 1, "b": 2, "c": 3}, account=account())
        collection.add(json.loads(json.dumps(sent)))
    assert collection.responses == 20
    good = dict(sent)
    for bad in (
        {**good, "a": 3},
        {**good, "a": -1},
        {**good, "b": "0101"},
        {**good, "b": "01010x"},
        {**good, "c": [1]},
        {**good, "c": [10**9, 0]},
        {"a": 1},
        {**good, "d": 1},
        [1, 2, 3],
    ):
        with pytest.raises(InputError):
            collection.add(bad)  # type: ignore[arg-type]
    assert collection.responses == 20


def in_child(act: Callable[[], str]) -> str:
    """Return what a forked process answers."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = act()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            said = type(error).__name__
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_no_second_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = Survey({"smokes": ["no", "yes"]}).form(epsilon=1)
    for path in (None, tmp_path / "mine.db"):
        with ClientAccount(epsilon=1, unit="client", path=path) as mine:

            def ask(mine: ClientAccount = mine) -> str:
                return str(respond(form, {"smokes": "yes"}, account=mine))

            assert in_child(ask) == "LedgerError"
            assert in_child(lambda mine=mine: str(mine.remaining)) == "LedgerError"  # type: ignore[misc]
            assert mine.remaining == 1
            ask()
            assert mine.remaining == 0
    # A broken version without the check tells twice what was paid for once.
    mine = ClientAccount(epsilon=1, unit="client")
    monkeypatch.setattr(ClientAccount, "_check_process", lambda self: None)
    assert "smokes" in in_child(lambda: str(respond(form, {"smokes": "yes"}, account=mine)))
    assert mine.remaining == 1
