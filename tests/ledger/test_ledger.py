"""Versions of the data and budgets that renew: one period's budget is never spent twice."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drawn import Drawn
from tests.ledger.ledger_toy import Jar, Marbles, Shaker

from tulle.core import registry
from tulle.core.errors import BudgetError, InputError, LedgerError
from tulle.core.guarantee import Guarantee
from tulle.core.mechanism import Outcome
from tulle.core.period import MOST_IN_A_YEAR, WEEKDAYS, Calendar
from tulle.core.unit import Unit
from tulle.ledger import account as account_module
from tulle.ledger import ledger as ledger_module
from tulle.ledger.filters import Filter
from tulle.ledger.ledger import Ledger
from tulle.ledger.renewal import Renewal
from tulle.ledger.session import Session
from tulle.ledger.totals import Period, Totals

PRICE = Fraction(1, 10)
FORMAT_2 = Path(__file__).parent / "data" / "format-2.ledger"
"""Written before there were versions: accounts of epsilon, of epsilon and delta, and of rho."""
FORMAT_2_HEAD = "33:f95b5978421c1bddfa85f2616ed03994f684d44e22fe2d2337981bffbaec49f3"


class Shake(Shaker):
    drawn = 0

    def run(self, terms: Any, settings: Any, dataset: Any, source: Any) -> Outcome:
        Shake.drawn += 1
        return Outcome(Shake.drawn, None)


class Jars(Jar):
    """Jars whose public facts change with the weeks."""

    def __init__(self, most: int) -> None:
        self.most = most

    def facts(self, unit: Unit) -> Mapping[str, Any]:
        return {"most": self.most}


@pytest.fixture(scope="module", autouse=True)
def shake() -> Iterator[None]:
    """Register the mechanism for these tests only: others look at all that are registered."""
    registry.register("mechanism", Jar.kind, Shake.name)(Shake)
    registry.register("query", Jar.kind, "marbles")(Marbles)
    yield
    del registry._items["mechanism", Jar.kind]
    del registry._items["query", Jar.kind]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.ledger"


def weekly(path: Path, version: str, day: str, **more: Any) -> Session:
    terms = {"epsilon": Fraction(3, 10), "every": "week", "zone": "Europe/Zurich", **more}
    return Ledger(path).open("jar", Jar(), unit="participant", version=version, date=day, **terms)


# --- periods of the calendar --------------------------------------------------------------------


# --- versions -----------------------------------------------------------------------------------


def test_kept_answers_belong_to_a_version(path: Path) -> None:
    study = Ledger(path).open(
        "jar", Jar(), unit="participant", epsilon=1, version="2026-W45", date="2026-11-02"
    )
    first = study.ask(Marbles(1), epsilon=PRICE)
    assert study.ask(Marbles(1), epsilon=PRICE).kept
    assert first.version == "2026-W45"
    week = study.next_version("2026-W46", Jar(), date="2026-11-09")
    second = week.ask(Marbles(1), epsilon=PRICE)
    assert (second.kept, second.version) == (False, "2026-W46")
    assert second.value != first.value
    assert week.ask(Marbles(1), epsilon=PRICE).value == second.value
    assert week.ask(Marbles(1), epsilon=PRICE, version="2026-W45").value == first.value
    assert week.remaining.epsilon == Fraction(8, 10)
    # The old session has the old data. Kept answers are out already; new ones are refused.
    assert study.ask(Marbles(1), epsilon=PRICE).value == first.value
    with pytest.raises(LedgerError, match="of version '2026-W45'; the present version"):
        study.ask(Marbles(2), epsilon=PRICE)
    with pytest.raises(LedgerError, match="Only answers that were kept"):
        week.ask(Marbles(2), epsilon=PRICE, version="2026-W45")
    with pytest.raises(LedgerError, match="of version '2026-W45'"):
        study.ask_all([Marbles(2)], share=PRICE)
    with pytest.raises(InputError, match="asked again"):
        week.ask(Marbles(1), epsilon=PRICE, version="2026-W45", again=True)
    assert week.remaining.epsilon == Fraction(8, 10)
    assert week._ledger.verify(releases=[first, second]) == []


def test_the_same_questions_of_a_new_week_are_one_call(path: Path) -> None:
    study = weekly(path, "2026-W45", "2026-11-02")
    old = [study.ask(Marbles(colour), epsilon=PRICE) for colour in (1, 2)]
    study.ask(Marbles(1), epsilon=PRICE)
    new = study.next_version("2026-W46", Jar(), date="2026-11-09").repeat()
    assert [item.query for item in new] == [item.query for item in old]
    assert {item.version for item in new} == {"2026-W46"}
    assert {item.value for item in new}.isdisjoint({item.value for item in old})
    ledger = Ledger(path)
    assert len(ledger.debits("jar")) == 3  # the new ones are booked together
    assert ledger.remaining("jar").epsilon == PRICE
    again = ledger.open("jar", Jar(), unit="participant").repeat("2026-W45")
    assert [item.value for item in again] == [item.value for item in new]
    assert all(item.kept for item in again)
    with pytest.raises(InputError, match="the data at hand"):
        ledger.open("jar", Jar(), unit="participant").repeat("2026-W46")


def test_repeating_is_paid_for_wholly_or_not(path: Path) -> None:
    study = weekly(path, "2026-W45", "2026-11-02")
    for colour in (1, 2):
        study.ask(Marbles(colour), epsilon=PRICE)
    week = study.next_version("2026-W46", Jar(), date="2026-11-09")
    week.ask(Marbles(9), epsilon=Fraction(2, 10))
    with pytest.raises(BudgetError, match=r"epsilon = 0\.1 for 2026-W46 is left"):
        week.repeat("2026-W45")
    assert week.remaining.epsilon == PRICE


def test_a_version_has_one_date_and_dates_do_not_go_backwards(path: Path) -> None:
    study = weekly(path, "2026-W45", "2026-11-02")
    ledger = Ledger(path)
    noted = ledger.head()
    ledger.declare("jar", "2026-W45", date="2026-11-02")  # said again: nothing new
    assert ledger.head() == noted
    for name, day, words in (
        ("2026-W45", "2026-11-03", "was declared before, of 2026-11-02"),
        ("2026-W44", "2026-10-26", "do not go backwards"),
        ("x", "2026-11-01", "do not go backwards"),
    ):
        with pytest.raises(LedgerError, match=words):
            ledger.declare("jar", name, date=day)
    tomorrow = datetime.now(UTC).date() + timedelta(days=2)
    for name, when in (("y", tomorrow), ("", "2026-11-09"), ("y", None), ("y", "W"), ("\n", "x")):
        with pytest.raises(InputError):
            ledger.declare("jar", name, date=when)
    assert ledger.head() == noted
    with pytest.raises(LedgerError, match="another name"):
        Ledger(path).open("jar", Jars(4), unit="participant")
    assert study.ask(Marbles(1), epsilon=PRICE).version == "2026-W45"


def test_a_version_may_have_other_public_facts(path: Path) -> None:
    study = Ledger(path).open(
        "jar", Jars(4), unit="participant", epsilon=1, version="a", date="2026-01-01"
    )
    week = study.next_version("b", Jars(5), date="2026-01-08")
    assert week.ask(Marbles(1), epsilon=PRICE).version == "b"
    ledger = Ledger(path)
    assert ledger.account("jar").facts == {"most": 5}
    with pytest.raises(LedgerError, match="public facts"):
        ledger.open("jar", Jars(4), unit="participant")
    with pytest.raises(LedgerError, match="other public facts"):
        ledger.declare("jar", "b", date="2026-01-08", dataset=Jars(6))
    with pytest.raises(LedgerError, match="present version"):
        ledger.open("jar", Jars(4), unit="participant", version="a", date="2026-01-01")
    assert ledger.verify() == []


# --- budgets that renew -------------------------------------------------------------------------


def test_a_budget_renews_with_the_period_of_the_data(path: Path) -> None:
    study = weekly(path, "a", "2026-11-02")
    study.ask_all([Marbles(1), Marbles(2)], share=1)
    with pytest.raises(BudgetError, match="0 for 2026-W45 is left"):
        study.ask(Marbles(3), epsilon=PRICE)
    same = study.next_version("b", Jar(), date="2026-11-08")  # the Sunday of that week
    assert same.remaining.epsilon == 0
    with pytest.raises(BudgetError):
        same.ask(Marbles(3), epsilon=PRICE)
    later = same.next_version("c", Jar(), date="2026-11-09")
    assert str(later.remaining) == "epsilon = 0.3 for 2026-W46"
    later.ask(Marbles(3), epsilon=PRICE)
    assert later.remaining.epsilon == Fraction(2, 10)
    ledger = Ledger(path)
    weeks = ledger.calendar("jar")
    assert [(w.label, w.first_day, w.last_day, w.debits) for w in weeks] == [
        ("2026-W45", "2026-11-02", "2026-11-08", 1),
        ("2026-W46", "2026-11-09", "2026-11-15", 1),
    ]
    assert [[v.name for v in w.versions] for w in weeks] == [["a", "b"], ["c"]]
    assert [w.spent.epsilon for w in weeks] == [Fraction(3, 10), PRICE]
    assert ledger.spent("jar").epsilon == Fraction(4, 10)  # type: ignore[union-attr]
    assert "in a calendar year at most epsilon = 16.2" in ledger.account("jar").words
    assert ledger.verify() == []


def test_what_is_left_is_carried_over_where_the_terms_say_so(path: Path) -> None:
    study = weekly(path, "a", "2026-11-02", carry=True)
    study.ask(Marbles(1), epsilon=PRICE)
    later = study.next_version("b", Jar(), date="2026-11-09")
    assert later.remaining.epsilon == Fraction(5, 10)
    later.ask(Marbles(2), epsilon=Fraction(4, 10))
    with pytest.raises(BudgetError):
        later.ask(Marbles(3), epsilon=Fraction(2, 10))
    assert "after k weeks at most k times as much" in Ledger(path).account("jar").words


def test_the_terms_of_renewal_are_settled_once(path: Path) -> None:
    weekly(path, "a", "2026-11-02")
    ledger = Ledger(path)
    assert ledger.open("jar", Jar(), unit="participant").version == "a"
    with pytest.raises(LedgerError, match=r"for each week .* asked for one that is for ever"):
        ledger.open("jar", Jar(), unit="participant", epsilon=Fraction(3, 10))
    for other in ({"carry": True}, {"zone": "UTC"}, {"every": "day"}, {"begins": "sunday"}):
        with pytest.raises(LedgerError, match="for each week"):
            weekly(path, "a", "2026-11-02", **other)
    with pytest.raises(InputError, match="give version="):
        ledger.open("new", Jar(), unit="participant", epsilon=1, every="week")
    with pytest.raises(InputError, match="go with every="):
        ledger.open("new", Jar(), unit="participant", epsilon=1, carry=True)
    with pytest.raises(InputError, match="goes with version="):
        ledger.open("new", Jar(), unit="participant", epsilon=1, date="2026-01-01")


@pytest.mark.parametrize("carry", [False, True])
def test_an_account_of_rho_and_a_tight_one_renew(path: Path, carry: bool) -> None:
    days = {"every": "day", "carry": carry, "date": "2026-11-02", "version": "a"}
    ledger = Ledger(path)
    for name, terms in (
        ("rho", {"rho": Fraction(1, 2)}),
        ("tight", {"epsilon": 1, "delta": Fraction(1, 10**6)}),
    ):
        study = ledger.open(name, Jar(), unit="participant", **terms, **days)
        whole = study.remaining
        study.ask(Marbles(1), epsilon=Fraction(1, 2))
        left = study.remaining
        assert left.epsilon < whole.epsilon
        later = study.next_version("b", Jar(), date="2026-11-03").remaining
        if carry:
            assert later.epsilon > whole.epsilon
            assert later.delta == 2 * whole.delta
        else:
            assert (later.epsilon, later.delta, later.rho) == (
                whole.epsilon, whole.delta, whole.rho,
            )  # fmt: skip
    assert ledger.verify() == []


def test_words_say_the_sum_over_a_year() -> None:
    weeks = Renewal(Calendar("week", "Europe/Zurich"))
    one = Guarantee.of("participant", epsilon=1, delta=Fraction(1, 10**6))
    said = weeks.words(one)
    assert said.startswith("epsilon = 1, delta = 1e-06 each week (from Monday), Europe/Zurich")
    assert "at most epsilon = 54, delta = 5.4e-05" in said
    assert "rho = 6, zero-concentrated" in Renewal(Calendar("month")).words(
        Guarantee.of("participant", rho=Fraction(1, 2))
    )


@given(st.integers(1, 60), st.fractions(Fraction(1, 100), 3), st.booleans())
def test_so_many_budgets_together(count: int, epsilon: Fraction, tight: bool) -> None:
    part = Fraction(1, 10**7) if tight else Fraction(0)
    order = Fraction(20) if tight else None
    each = Filter(epsilon, Fraction(1, 10**6), part, order)
    many = each.times(count)
    assert (many.epsilon, many.order) == (count * epsilon, order)
    # What many periods may spend is at most what their guarantees add up to.
    assert many.delta <= count * each.delta
    assert many.spendable_delta == count * each.spendable_delta
    if tight and each.limit:
        assert many.limit == each.limit + (count - 1) * epsilon
    assert each.times(1) == each


# --- any history, compared with a slow account of it --------------------------------------------


@dataclass
class Model:
    """The plainest account: what each period may spend, and what it did."""

    carry: bool
    calendar: Calendar
    total: Fraction = Fraction(3, 10)
    spent: dict[int, Fraction] = field(default_factory=dict)
    names: dict[str, date] = field(default_factory=dict)
    kept: set[tuple[str, int]] = field(default_factory=set)
    day: date = date(2025, 12, 29)

    def declare(self, name: str, day: date) -> bool:
        if self.names.get(name, day) != day or (name not in self.names and day < self.day):
            return False
        if name not in self.names:
            self.names[name], self.day = day, day
        return True

    @property
    def present(self) -> str:
        return list(self.names)[-1]

    def left(self) -> Fraction:
        now = self.calendar.number(self.day)
        if not self.carry:
            return self.total - self.spent.get(now, Fraction(0))
        first = self.calendar.number(next(iter(self.names.values())))
        return self.total * (now - first + 1) - sum(self.spent.values())

    def pay(self, colour: int, again: bool) -> str:
        if (self.present, colour) in self.kept and not again:
            return "kept"
        if self.left() < PRICE:
            return "refused"
        now = self.calendar.number(self.day)
        self.spent[now] = self.spent.get(now, Fraction(0)) + PRICE
        self.kept.add((self.present, colour))
        return "paid"


def live(path: Path, seed: int, steps: int = 40) -> None:
    """Do anything in any order; ledger and model must agree after every step."""
    chance = random.Random(seed)
    every = chance.choice(list(MOST_IN_A_YEAR))
    model = Model(chance.random() < 0.5, Calendar(every, "UTC", chance.choice(WEEKDAYS)))
    begin = date(2025, 12, 29)
    model.names["v0"] = begin
    terms = {"every": every, "carry": model.carry, "begins": model.calendar.begins}
    study = Ledger(path).open(
        "jar", Jar(), unit="participant", epsilon=model.total, version="v0", date=begin, **terms
    )
    other = Ledger(path).open("other", Jar(), unit="participant", epsilon=1)
    for step in range(steps):
        act = chance.randrange(8)
        if act < 2:
            name = f"v{chance.choice([step, chance.randrange(step + 1)])}"
            day = model.day + timedelta(days=chance.choice((-40, -7, -1, 0, 0, 1, 3, 7, 31, 200)))
            day = min(day, datetime.now(UTC).date())
            expected = model.declare(name, day)
            try:
                Ledger(path).declare("jar", name, date=day)
                assert expected, f"{name} of {day} should be refused"
            except LedgerError:
                assert not expected, f"{name} of {day} should be declared"
            study = Ledger(path).open("jar", Jar(), unit="participant")
        elif act < 3:
            other.ask(Marbles(step), epsilon=Fraction(1, 100))
        elif act < 4:
            study = Ledger(path).open(
                "jar", Jar(), unit="participant", epsilon=model.total, **terms
            )
        else:
            colour, again = chance.randrange(4), chance.random() < 0.3
            expected_act = model.pay(colour, again)
            try:
                answer = study.ask(Marbles(colour), epsilon=PRICE, again=again)
                found = "kept" if answer.kept else "paid"
                assert answer.version == model.present
            except BudgetError:
                found = "refused"
            assert found == expected_act
        assert study.remaining.epsilon == model.left()
    ledger = Ledger(path)
    assert ledger.verify(releases=ledger.releases("jar")) == []
    assert sum(week.spent.epsilon for week in ledger.calendar("jar")) == sum(model.spent.values())
    assert {week.label for week in ledger.calendar("jar")} >= {
        model.calendar.label(number) for number in model.spent
    }


@pytest.mark.parametrize("seed", range(8))
def test_any_history_is_as_a_plain_account_of_it(path: Path, seed: int) -> None:
    live(path, seed)


@pytest.mark.slow
@pytest.mark.timed(3)
def test_many_histories_are_as_a_plain_account_of_them(tmp_path: Path, drawn: Drawn) -> None:
    for seed in drawn.seeds():
        live(tmp_path / f"{seed}.ledger", seed, 80)


def reset_by_version(self: Period, day: str) -> Period:
    """The broken twin: every version brings a budget of its own."""
    number = self.calendar.number(date.fromisoformat(day))
    return replace(self, number=number, spent=self.spent.unspent())


def any_order(self: Totals, version: Any) -> Totals:
    """The broken twin: a version may be dated before the last."""
    return replace(self, version=version, period=self.period and self.period.at(version.date))


def one_name(key: Mapping[str, Any], version: str | None) -> str:
    """The broken twin: an answer is given for every version."""
    return honest_identity(key, None)


honest_identity = ledger_module.identity_of
TWINS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a budget for every version": (Period, "at", reset_by_version),
    "answers of all versions": (ledger_module, "identity_of", one_name),
}


@pytest.mark.parametrize("twin", TWINS)
def test_broken_renewals_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twin: str
) -> None:
    monkeypatch.setattr(*TWINS[twin])
    for seed in range(8):
        try:
            live(tmp_path / f"{seed}.ledger", seed)
        except AssertionError:
            return
    pytest.fail("no history caught the broken twin")


def test_dates_that_go_backwards_under_a_forged_guard_do_not_verify(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes the entry by other means leaves a ledger that fails its checks."""
    study = weekly(path, "a", "2026-11-09")
    study.ask(Marbles(1), epsilon=Fraction(3, 10))
    body = {"version": {"name": "b", "date": "2026-11-02"}, "facts": {"most": 9}}
    with pytest.raises(LedgerError):
        Ledger(path)._store.append("version", "jar", body)
    with monkeypatch.context() as patch:
        patch.setattr(Totals, "_advance", any_order)
        Ledger(path)._store.append("version", "jar", body)
    assert any("cannot be read" in str(problem) for problem in Ledger(path).verify())


def test_a_clock_gives_no_budget(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = weekly(path, "a", "2026-11-02")
    study.ask(Marbles(1), epsilon=Fraction(3, 10))

    class Turned(datetime):
        year_shown = 1999

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(cls.year_shown, 1, 1, tzinfo=tz)

    for year in (1999, 2040):
        Turned.year_shown = year
        monkeypatch.setattr(account_module, "datetime", Turned)
        again = Ledger(path).open("jar", Jar(), unit="participant")
        assert again.remaining.epsilon == 0
        with pytest.raises(BudgetError):
            again.ask(Marbles(2), epsilon=PRICE)
        with pytest.raises((LedgerError, InputError)):
            again.next_version("b", Jar(), date="2026-10-26")


def test_a_restored_copy_is_found_by_what_is_outside(path: Path, tmp_path: Path) -> None:
    study = weekly(path, "a", "2026-11-02")
    copy = shutil.copy(path, tmp_path / "copy.ledger")
    released = study.next_version("b", Jar(), date="2026-11-09").ask(Marbles(1), epsilon=PRICE)
    noted = Ledger(path).head()
    ledger = Ledger(path)
    ledger.head()
    shutil.copy(copy, path)
    with pytest.raises(LedgerError, match="older copy"):
        ledger.declare("jar", "b", date="2026-11-09")
    assert Ledger(path).verify() == []
    assert Ledger(path).verify(head=noted)
    assert Ledger(path).verify(releases=[released])


# --- older files --------------------------------------------------------------------------------


def test_a_ledger_of_format_2_goes_on_with_every_promise(tmp_path: Path) -> None:
    path = Path(shutil.copy(FORMAT_2, tmp_path / "old.ledger"))
    content = path.read_bytes()
    ledger = Ledger(path)
    assert str(ledger.head()) == FORMAT_2_HEAD
    published = [item for name in ("jar", "other", "rho") for item in ledger.releases(name)]
    assert ledger.verify(head=ledger.head(), releases=published) == []
    assert ledger.remaining("other").epsilon == Fraction(16, 10)
    assert ledger.remaining("rho").rho == Fraction(495, 1000)
    assert ledger.calendar("other")[0].debits == 4
    assert path.read_bytes() == content
    noted, study = ledger.head(), ledger.open("other", Jar(), unit="participant", epsilon=2)
    assert study.version is None
    assert study.ask(Marbles(3), epsilon=PRICE).value == 103  # kept, not drawn
    assert path.read_bytes() == content
    week = study.next_version("2026-W46", Jar(), date="2026-11-09")
    assert not week.ask(Marbles(3), epsilon=PRICE).kept
    assert week.remaining.epsilon == Fraction(15, 10)
    assert (
        ledger.open("jar", Jar(), unit="participant").ask(Marbles(1), epsilon=Fraction(1, 30)).value
        == 101
    )
    weekly_path = ledger.open(
        "new", Jar(), unit="participant", epsilon=1, every="week", version="a", date="2026-11-09"
    )
    assert weekly_path.remaining.epsilon == 1
    assert ledger.verify(head=noted, releases=published) == []


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("study", "Study"),
        ("study", "study "),
        ("my study", "my  study"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01sh", "fish"),
        ("stra\u00dfe", "STRASSE"),
        ("study1", "study\uff11"),
    ],
)
def test_two_accounts_do_not_read_alike(
    path: Path, name: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first, second in ((name, other), (other, name)):
        ledger = Ledger(path.with_name(f"{first.encode().hex()}.ledger"))
        ledger.open(first, Jar(), unit="participant", epsilon=1)
        with pytest.raises(LedgerError, match="read alike"):
            ledger.open(second, Jar(), unit="participant", epsilon=1)
        assert [account.name for account in ledger.accounts()] == [first]
        # The account itself, and one that differs, are opened as ever.
        ledger.open(first, Jar(), unit="participant", epsilon=1)
        ledger.open(f"{first}2", Jar(), unit="participant", epsilon=1)
    monkeypatch.setattr(ledger_module, "check_name", lambda name, known: None)
    ledger.open("again", Jar(), unit="participant", epsilon=1)
    ledger.open("Again", Jar(), unit="participant", epsilon=1)  # a broken version: twice the budget
    assert len(ledger.accounts()) > 2


SIZES = (1 / Fraction(10) ** 400, Fraction(5e-324), Fraction(1), Fraction(10**6), Fraction(2**1000))


@pytest.mark.parametrize("delta", [0, 1 / Fraction(10) ** 3000, 5e-324, "1/2", "0.999999999", 1])
@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize(
    "size", SIZES, ids=lambda size: f"{math.log2(size.numerator) - math.log2(size.denominator):.0f}"
)
def test_extreme_budgets_are_refused_or_can_be_told(size: Fraction, name: str, delta: Any) -> None:
    try:
        found = account_module.new_account(
            "jar", Jar(), unit="participant", delta=delta, **{name: size}
        )
    except InputError:
        return
    left = account_module.left_of(found, found.empty)
    assert str(left)
    assert found.words
    assert 0 < found.filter.largest_pure(found.empty) == left.epsilon or size < 1


def test_the_name_of_a_new_account_is_short(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "study.ledger")
    terms: dict[str, Any] = {"unit": "participant", "epsilon": 1}
    for _ in range(2):  # new, and there already
        assert ledger.open("ä" * 200, Jar(), **terms).remaining == 1
    with pytest.raises(InputError, match="at most 200 characters"):
        ledger.open("ä" * 201, Jar(), **terms)
