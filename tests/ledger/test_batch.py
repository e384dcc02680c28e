"""Many questions as one: a share of an account, one debit, the least total error."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tulle
from tulle.ledger import batch
from tulle.ledger.batch import composed, divide


@pytest.fixture
def friends() -> tulle.Graph:
    return tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0), (3, 4)], nodes=40)


@pytest.fixture
def ledger(tmp_path: Path) -> tulle.Ledger:
    return tulle.Ledger(tmp_path / "study.ledger")


QUESTIONS = [tulle.edges(), tulle.triangles(), tulle.stars(2)]
TERMS = [
    {"epsilon": 2},
    {"epsilon": 2, "delta": 1e-6},
    {"rho": 0.05},
]


def test_the_same_question_twice_has_two_answers_that_verify(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=2)
    answers = study.ask_all([tulle.edges(), tulle.edges()], share=1)
    assert ledger.verify(releases=answers) == []
    forged = replace(answers[0], value=answers[0].value + 1000)
    assert len(ledger.verify(releases=[forged])) == 1


@pytest.mark.parametrize("last", [0, 1, 2])
def test_an_interrupted_batch_says_what_was_booked(
    friends: tulle.Graph, ledger: tulle.Ledger, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=2)
    keep, kept = tulle.Ledger.keep, []

    def interrupt(*arguments: Any) -> None:
        if len(kept) == last:
            raise KeyboardInterrupt
        kept.append(keep(*arguments))

    monkeypatch.setattr(tulle.Ledger, "keep", interrupt)
    with pytest.raises(KeyboardInterrupt, match=r"edges\(\); triangles\(\); stars"):
        study.ask_all(QUESTIONS, share=0.5)
    assert study.remaining == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("share", [1, Fraction(1, 52)])
def test_a_batch_takes_its_share_and_no_more(
    friends: tulle.Graph, ledger: tulle.Ledger, terms: dict[str, float], share: Fraction
) -> None:
    study = ledger.open("friends", friends, unit="edge", **terms)
    answers = study.ask_all(QUESTIONS, share=share)
    assert [answer.query for answer in answers] == [str(query) for query in QUESTIONS]
    (debit,) = ledger.debits("friends")
    account = ledger.account("friends")
    totals = account.empty.after("debit", debit.body)
    used = account.filter.used(account.empty, totals)
    assert Fraction(98, 100) * share <= used <= share
    assert {answer.debit for answer in answers} == {debit.digest}
    assert ledger.verify(releases=answers) == []
    # The same again is free, and whatever is left stays.
    before = study.remaining
    kept = study.ask_all(QUESTIONS, share=share)
    assert [answer.value for answer in kept] == [answer.value for answer in answers]
    assert study.remaining == before
    assert ledger.description(answers[1])["query"] == "triangles"


def test_a_batch_is_paid_for_together_or_not_at_all(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1)
    study.ask(tulle.edges(), epsilon=0.75)
    with pytest.raises(tulle.BudgetError):
        study.ask_all(QUESTIONS, share=0.5)
    assert study.remaining.epsilon == Fraction(1, 4)
    with pytest.raises(tulle.InputError, match="at most 1"):
        study.ask_all(QUESTIONS, share=2)
    with pytest.raises(tulle.InputError, match="nothing to ask"):
        study.ask_all([], share=1)


# Small budgets: large errors, which do not jump from one whole number to the next.
@pytest.mark.parametrize(
    "terms", [{"epsilon": 0.1}, {"epsilon": 0.1, "delta": 1e-6}, {"rho": 1e-4}]
)
def test_the_division_is_nearly_the_best(
    friends: tulle.Graph, ledger: tulle.Ledger, terms: dict[str, float]
) -> None:
    study = ledger.open("friends", friends, unit="edge", **terms)
    account = ledger.account("friends")
    queries = [tulle.edges(), tulle.triangles()]

    def plan(query: tulle.Query, epsilon: Fraction) -> tulle.Plan:
        return study.plan(query, epsilon=epsilon)

    def total(plans: list[tulle.Plan]) -> float:
        return sum(map(batch.predicted_error, plans))

    found = divide(queries, plan, account.filter, account.empty, Fraction(1))
    first, second = (float(item.guarantee.epsilon or 0) for item in found)
    for factor in (0.5, 0.8, 1.25, 2):
        moved = [plan(queries[0], Fraction(first * factor)), plan(queries[1], Fraction(second))]
        # The other price is what still fits beside the moved one.
        low, high = 0.0, 4.0
        for _ in range(30):
            middle = (low + high) / 2
            moved[1] = plan(queries[1], Fraction(middle + 1e-6))
            price, event = composed(moved)
            body = {"guarantee": price.to_json(), "event": batch.event_to_json(event)}
            after = account.empty.after("debit", body)
            low, high = (middle, high) if account.filter.admits(after) else (low, middle)
        if low > 0:
            moved[1] = plan(queries[1], Fraction(low))
            assert total(found) <= total(moved) * 1.1


def test_a_hundred_counts_have_a_third_of_the_error_they_have_by_addition(
    ledger: tulle.Ledger,
) -> None:
    ring = tulle.Graph.from_edges([(i, (i + 1) % 4000) for i in range(4000)], nodes=4000)
    errors = {}
    for part in (None, 0):
        study = ledger.open(
            f"ring {part}", ring, unit="edge", epsilon=1, delta=1e-6, composition_delta=part
        )
        answers = study.ask_all([tulle.edges()] * 100, share=1)
        errors[part] = sum((answer.value - 4000) ** 2 for answer in answers) ** 0.5
        laws = {answer.error for answer in answers}
        assert len(laws) == 1
        (law,) = laws
        assert law is not None
        errors[part, "law"] = law.variance() ** 0.5
    assert errors[None, "law"] <= errors[0, "law"] / 2.98
    assert errors[None] < errors[0] / 2


def test_a_plan_says_what_its_price_means_to_the_account(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=2)
    assert "It takes 25.00% of the account." in repr(study.plan(tulle.edges(), epsilon=0.5))
    assert "cannot pay this: epsilon = 2 is left" in repr(study.plan(tulle.edges(), epsilon=3))
    assert study.plan(tulle.edges(), epsilon=0.5).to_json()["account"]
