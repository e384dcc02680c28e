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
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import pytest
from tests.surveys.survey_helpers import chi_square_p

from tulle.audit.surveys.kind import Laws, is_private
from tulle.core.errors import BudgetError, InputError, LedgerError, UnitError
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
