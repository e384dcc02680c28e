from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tulle
from tulle.core.errors import SealedError
from tulle.core.source import Source
from tulle.ledger.answer import check_stand_in
from tulle.ledger.chain import Head
from tulle.ledger.store import Store
from tulle.noise import SeededSource


@pytest.fixture
def friends() -> tulle.Graph:
    pairs = [(a, b) for a in range(12) for b in range(a) if (a * b + a) % 3]
    return tulle.Graph.from_edges(pairs, nodes=12)


@pytest.fixture
def ledger(tmp_path: Path) -> tulle.Ledger:
    return tulle.Ledger(tmp_path / "study.ledger")


def test_ten_tenths_are_exactly_one(friends: tulle.Graph, ledger: tulle.Ledger) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    for _ in range(10):
        study.ask(tulle.edges(), epsilon=0.1, again=True)
    assert study.remaining == 0.0
    assert study.remaining.epsilon == 0
    with pytest.raises(tulle.BudgetError, match="used up"):
        study.ask(tulle.edges(), epsilon=1e-9)


def test_the_day_on_which_an_answer_was_ready_is_told_nowhere(
    friends: tulle.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Midnight passes while each answer is drawn: whoever chose the moment would learn how long."""
    from tulle.ledger import answer, session, store, store_file

    run, now = answer._run, {"day": 5}

    def slowly(*given: Any) -> Any:
        now["day"] += 1
        return run(*given)

    for module in (answer, session, store, store_file):
        monkeypatch.setattr(module, "today", lambda: f"2026-01-0{now['day']}")
    monkeypatch.setattr(answer, "_run", slowly)
    for ask in (
        lambda study: [study.ask(tulle.edges() / tulle.triangles(), epsilon=1)],
        lambda study: study.ask_all([tulle.edges(), tulle.triangles()], share=0.5),
    ):
        now["day"] = 5
        ledger = tulle.Ledger(tmp_path / f"{len(list(tmp_path.iterdir()))}.ledger")
        study = ledger.open("friends", friends, unit="edge", epsilon=4, delta=1e-6)
        answers = ask(study)
        assert now["day"] == 7
        parts = [part for item in answers for part in item.parts.values()]
        assert {item.date for item in [*answers, *parts]} == {"2026-01-05"}
        assert {entry.time for entry in ledger.entries()} == {"2026-01-05"}


def test_the_identical_question_is_free_and_another_is_not(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    first = study.ask(tulle.triangles(), epsilon=0.5)
    again = study.ask(tulle.triangles(), epsilon=0.5)
    assert again.value == first.value
    assert again.debit == first.debit
    assert study.remaining == 0.5
    # Free also when nothing is left, and in a new process that opens the same file.
    study.ask(tulle.edges(), epsilon=0.5)
    reopened = tulle.Ledger(ledger.path).open("friends", friends, unit="edge", epsilon=1.0)
    assert reopened.ask(tulle.triangles(), epsilon=0.5).value == first.value
    with pytest.raises(tulle.BudgetError):
        study.ask(tulle.triangles(), epsilon=0.4)
    with pytest.raises(tulle.BudgetError):
        study.ask(tulle.triangles(), epsilon=0.5, again=True)


def test_an_overspend_says_what_was_asked_what_is_left_and_what_fits(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0, delta=1e-6)
    study.ask(tulle.edges(), epsilon=0.75)
    with pytest.raises(tulle.BudgetError) as caught:
        study.ask(tulle.triangles(), epsilon=0.5)
    message = str(caught.value)
    assert "epsilon = 0.5" in message
    assert "epsilon = 0.25 for one more question, delta = 5e-07 is left" in message
    assert "epsilon up to 0.25" in message
    assert "Nothing was spent" in message
    with pytest.raises(tulle.BudgetError, match="delta up to 5e-07"):
        study.ask(tulle.triangles(), epsilon=0.1, delta=1e-3, mechanism="smooth")
    assert study.remaining == 0.25


def test_an_account_opens_again_only_with_its_own_terms(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    ledger.open("friends", friends, unit="edge", epsilon=1.0)
    ledger.open("friends", friends, unit="edge", epsilon=1)
    with pytest.raises(tulle.LedgerError, match="its terms are epsilon = 1"):
        ledger.open("friends", friends, unit="edge", epsilon=2.0)
    with pytest.raises(tulle.LedgerError, match="its terms are"):
        ledger.open("friends", friends, unit="node", epsilon=1.0)
    other = tulle.Graph.from_edges([(0, 1)], nodes=5)
    with pytest.raises(tulle.LedgerError, match="public facts"):
        ledger.open("friends", other, unit="edge", epsilon=1.0)
    with pytest.raises(tulle.InputError, match="name"):
        ledger.open(" ", friends, unit="edge", epsilon=1.0)


def test_a_debit_is_on_disk_before_the_first_bit(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    seen: list[int] = []

    class Watching(SeededSource):
        def read(self, count: int) -> bytes:
            seen.append(len(tulle.Ledger(ledger.path).debits("friends")))
            return super().read(count)

    study.ask(tulle.triangles(), epsilon=0.5, source=Watching(1))
    assert seen
    assert set(seen) == {1}


def test_a_mechanism_that_fails_keeps_its_debit(friends: tulle.Graph, ledger: tulle.Ledger) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)

    class Broken(SeededSource):
        def read(self, count: int) -> bytes:
            raise OSError("no random bytes")

    with pytest.raises(OSError, match="no random bytes"):
        study.ask(tulle.edges(), epsilon=0.5, source=Broken(1))
    assert study.remaining == 0.5


def test_a_seeded_release_has_no_guarantee_and_never_stands_in_for_a_real_one(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=2.0)
    seeded = study.ask(tulle.edges(), epsilon=0.5, source=SeededSource(1))
    assert not seeded.guarantee.holds
    assert "no guarantee" in repr(seeded)
    back = tulle.Release.from_json(json.dumps(seeded.to_json()))
    assert not back.guarantee.holds
    real = study.ask(tulle.edges(), epsilon=0.5)
    assert real.guarantee.holds
    assert real.debit != seeded.debit
    assert study.remaining == 1.0


def test_expressions_spend_no_more_than_asked_and_carry_their_parts(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    ratio = study.ask(3 * tulle.triangles() / tulle.stars(2), epsilon=0.7)
    assert set(ratio.parts) == {"triangles()", "stars(2)"}
    spent = 1 - study.remaining.epsilon
    assert Fraction(699, 1000) < spent <= Fraction(7, 10)
    assert sum(p.guarantee.epsilon for p in ratio.parts.values()) == spent  # type: ignore[misc]
    back = tulle.Release.from_json(json.dumps(ratio.to_json()))
    assert back.interval(0.9) == ratio.interval(0.9)
    low, high = ratio.interval(0.95)
    assert low <= ratio.value <= high


@pytest.mark.parametrize(
    "query",
    [
        tulle.edges(),
        tulle.triangles(),
        tulle.stars(3),
        tulle.k_triangles(2),
        tulle.cliques(4),
        tulle.degrees(),
        tulle.degree_distribution(),
    ],
    ids=str,
)
def test_a_release_reads_back_from_json_unchanged(
    query: tulle.core.query.Query, friends: tulle.Graph, tmp_path: Path
) -> None:
    kept = tulle.release(friends, query, unit="edge", epsilon=1.0)
    kept.save(tmp_path / "r.json")
    back = tulle.Release.load(tmp_path / "r.json")
    assert np.array_equal(back.value, kept.value)
    assert type(back.value) is type(kept.value)
    assert back.guarantee == kept.guarantee
    assert back.error == kept.error
    assert back.parameters == kept.parameters
    assert np.array_equal(back.interval(0.9), kept.interval(0.9))
    assert repr(back) == repr(kept)
    assert "<table>" in back._repr_html_()


def test_what_is_not_a_release_is_refused() -> None:
    for bad in ("{}", "[]", "not json", '{"format": 99}', "3"):
        with pytest.raises(tulle.InputError):
            tulle.Release.from_json(bad)


def test_records_do_not_leave_by_side_doors(friends: tulle.Graph, ledger: tulle.Ledger) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    assert repr(friends) == f"{friends}" == str(friends) == "<Graph: sealed>"
    assert "Graph" not in repr(study)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SealedError, match="sealed"):
            leave(friends)


def test_plans_come_from_public_facts_only(friends: tulle.Graph, ledger: tulle.Ledger) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    other = tulle.Graph.from_edges([(0, 1)], nodes=12)
    twin = ledger.open("other", other, unit="edge", epsilon=1.0)
    for query in (tulle.triangles(), tulle.degrees(), 3 * tulle.triangles() / tulle.stars(2)):
        assert repr(study.plan(query, epsilon=1)) == repr(twin.plan(query, epsilon=1))
        assert "<table>" in study.plan(query, epsilon=1)._repr_html_()
    assert study.remaining == 1.0


def test_like_changes_the_prediction_and_the_split(friends: tulle.Graph) -> None:
    from tulle.graphs.generators import erdos_renyi
    from tulle.ledger.answer import plan_for

    ratio = 3 * tulle.triangles() / tulle.stars(2)
    dense = erdos_renyi(12, 0.9, seed=1)
    plain = plan_for(friends, ratio, unit="edge", epsilon=1)
    guided = plan_for(friends, ratio, unit="edge", epsilon=1, like=dense)
    assert plain.parts[0].guarantee != guided.parts[0].guarantee
    assert guided.stand_in is not None
    assert "like=" in guided.stand_in


def made_of_one(friends: tulle.Graph) -> Iterator[tuple[tulle.Dataset, tulle.Dataset]]:
    """Yield datasets of the same records, as a custodian would make one of the other."""
    yield friends, friends.with_attributes(nodes={"team": ["a"] * friends.node_count})
    dated = tulle.Graph.from_edges([(0, 1), (1, 2)], nodes=3, times=["2026-01-05", "2026-02-05"])
    january = dated.of_days(date(2026, 1, 1), date(2026, 1, 31))
    yield dated, january
    told = dated.with_attributes(nodes={"team": ["a", "b", "b"]})
    yield january, told.of_days(date(2026, 2, 1), date(2026, 2, 28))
    trips = pa.table(
        {"who": [1, 2], "start": ["a", "b"], "end": ["b", "b"], "day": [date(2026, 1, 5)] * 2}
    )
    database = tulle.Database.from_tables(
        {"trip": trips}, owners={"trip": "who"}, times={"trip": "day"}
    )
    yield database, database.without("trip", 1)
    yield database.under("participant-day"), database
    yield tuple(  # type: ignore[misc]
        tulle.Contributions.from_query(
            database, "SELECT start, end FROM trip", rows=["a", "b"], columns=columns
        )
        for columns in (["a", "b"], ["b"])
    )
    yield database, tulle.Contributions.from_query(database, "SELECT start, end FROM trip")


def test_what_is_made_of_the_data_is_not_its_stand_in(friends: tulle.Graph) -> None:
    for one, other in made_of_one(friends):
        for data, stand_in in ((one, other), (other, one)):
            with pytest.raises(tulle.InputError, match="the dataset itself"):
                check_stand_in(data, tulle.edges(), stand_in)
    again = tulle.Graph.from_edges(friends.edges(), nodes=friends.node_count)
    check_stand_in(friends, tulle.edges(), again)


def test_the_data_is_not_its_own_stand_in(
    friends: tulle.Graph, ledger: tulle.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = tulle.Contributions([1, 2, 3], [0, 1, 0], [0, 0, 1], rows=2, columns=2)
    study = ledger.open("friends", friends, unit="edge", epsilon=1)
    grid = ledger.open("trips", trips, unit="participant", epsilon=1)
    own = {"epsilon": 1, "like": friends}
    referred = [tulle.weights(reference=trips, quantile=share) for share in (None, 0.5)]
    terms = {"unit": "participant", "epsilon": 1}
    ways: list[Callable[[], object]] = [
        lambda: tulle.plan(friends, tulle.triangles(), unit="edge", **own),  # type: ignore[arg-type]
        lambda: tulle.release(friends, tulle.triangles(), unit="edge", **own),  # type: ignore[arg-type]
        lambda: study.plan(tulle.triangles(), **own),  # type: ignore[arg-type]
        lambda: study.ask(tulle.triangles(), **own),  # type: ignore[arg-type]
        lambda: study.ask_all([tulle.triangles()], share=1, like=friends),
        *(lambda q=q: tulle.release(trips, q, **terms) for q in referred),  # type: ignore[misc]
        *(lambda q=q: grid.ask(q, epsilon=1) for q in referred),  # type: ignore[misc]
    ]
    for act in ways:
        with pytest.raises(tulle.InputError, match="the dataset itself"):
            act()
    assert study.remaining == grid.remaining == 1
    # Without the check a plan has the truth in it.
    monkeypatch.setattr("tulle.ledger.answer.check_stand_in", lambda *given: None)
    assert tulle.plan(friends, tulle.triangles(), unit="edge", **own).offers  # type: ignore[arg-type]


def test_what_is_no_source_and_no_dataset_is_refused_before_the_price(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    """Also what says of itself that it is secure."""
    study = ledger.open("friends", friends, unit="edge", epsilon=1)
    odd: list[Any] = [7, "x", b"", [1], SeededSource, type("Mine", (), {"secure": True})()]
    for one in odd:
        for given in ({"source": one}, {"like": one}):
            with pytest.raises(tulle.InputError):
                study.ask(tulle.edges(), epsilon=0.1, **given)
        with pytest.raises(tulle.InputError):
            study.next_version("second", one, date="2026-01-05")
    assert study.remaining == 1


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), "much", None])
def test_bad_epsilon_spends_nothing(
    epsilon: object, friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    with pytest.raises(tulle.InputError, match="epsilon"):
        study.ask(tulle.edges(), epsilon=epsilon)  # type: ignore[arg-type]
    with pytest.raises(tulle.InputError, match="epsilon"):
        ledger.open("more", friends, unit="edge", epsilon=epsilon)  # type: ignore[arg-type]
    assert study.remaining == 1.0
    assert not ledger.debits("friends")


def test_what_cannot_be_answered_says_what_can(friends: tulle.Graph) -> None:
    release = tulle.release
    with pytest.raises(tulle.UnitError, match="unit='person' is not known"):
        release(friends, tulle.edges(), unit="person", epsilon=1)
    with pytest.raises(tulle.UnitError, match="Units for a graph: edge, node"):
        release(friends, tulle.edges(), unit="row", epsilon=1)
    with pytest.raises(tulle.QueryError, match="no mechanism 'magic'"):
        release(friends, tulle.edges(), unit="edge", epsilon=1, mechanism="magic")
    with pytest.raises(tulle.QueryError, match="needs a delta above zero"):
        release(friends, tulle.triangles(), unit="edge", epsilon=1, mechanism="smooth")
    with pytest.raises(tulle.QueryError, match="cannot answer edges"):
        release(friends, tulle.edges(), unit="edge", epsilon=1, mechanism="ladder")
    with pytest.raises(tulle.InputError, match="no option 'share'"):
        release(friends, tulle.triangles(), unit="edge", epsilon=1, mechanism="ladder", share=1)
    with pytest.raises(tulle.InputError, match="name it with mechanism="):
        release(friends, tulle.triangles(), unit="edge", epsilon=1, spread_share=0)
    with pytest.raises(tulle.QueryError, match="A question is needed"):
        release(friends, "triangles", unit="edge", epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(tulle.InputError, match="sealed dataset"):
        release([(0, 1)], tulle.edges(), unit="edge", epsilon=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("nodes", [0, 1])
def test_too_few_nodes_have_no_edge_to_protect(nodes: int, ledger: tulle.Ledger) -> None:
    tiny = tulle.Graph.from_edges([], nodes=nodes)
    study = ledger.open("tiny", tiny, unit="edge", epsilon=1.0)
    for query in (tulle.edges(), tulle.triangles(), tulle.degrees()):
        with pytest.raises(tulle.QueryError, match="no edge to protect"):
            study.ask(query, epsilon=0.1)
    assert study.remaining == 1.0


def test_a_release_without_an_interval_says_so(friends: tulle.Graph) -> None:
    bare = tulle.release(
        friends, tulle.triangles(), unit="edge", epsilon=1, mechanism="ladder", spread_share=0
    )
    assert bare.guarantee.epsilon == 1
    with pytest.raises(tulle.TulleError, match="no interval"):
        bare.interval(0.9)
    assert "interval" not in repr(bare)
    for level in (0, 1, 1.5):
        with pytest.raises(tulle.InputError, match="level"):
            tulle.release(friends, tulle.edges(), unit="edge", epsilon=1).interval(level)


def test_verify_accepts_a_sound_ledger_and_finds_an_old_copy(
    friends: tulle.Graph, ledger: tulle.Ledger, tmp_path: Path
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    study.ask(tulle.edges(), epsilon=0.1)
    old = ledger.path.read_bytes()
    late = study.ask(tulle.triangles(), epsilon=0.1)
    head = ledger.head()
    assert not ledger.verify(head=head, releases=[late])
    (tmp_path / "old.ledger").write_bytes(old)
    restored = tulle.Ledger(tmp_path / "old.ledger")
    assert not restored.verify()
    assert restored.verify(head=head)
    assert restored.verify(releases=[late])


class Impatient(Source):
    """Interrupts the first draw, as Ctrl-C would."""

    secure = True

    def read(self, count: int) -> bytes:
        raise KeyboardInterrupt


def test_an_interrupted_answer_says_what_was_booked(
    friends: tulle.Graph, ledger: tulle.Ledger
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)
    with pytest.raises(KeyboardInterrupt) as error:
        study.ask(tulle.edges(), epsilon=0.25, source=Impatient())
    text = str(error.value)
    assert "epsilon = 0.25" in text
    assert "'friends' and stays spent" in text
    assert "epsilon = 0.75 is left" in text
    assert study.remaining.epsilon == Fraction(3, 4)


def test_an_answer_interrupted_while_it_is_paid_for_says_so(
    friends: tulle.Graph, ledger: tulle.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = ledger.open("friends", friends, unit="edge", epsilon=1.0)

    def interrupt(self: Store, booked: Head) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "_confirm", interrupt)
    with pytest.raises(KeyboardInterrupt, match=r"is shown by its debits.* 0\.75 is left"):
        study.ask(tulle.edges(), epsilon=0.25)
