"""Whole paths replayed on neighbours: whatever shows besides the noise is a finding."""

import logging
import sys
import warnings
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.audit.replay import worlds
from tests.audit.replay.engine import (
    Case,
    Replayed,
    Seen,
    causes_of,
    form_of,
    replay,
    replay_case,
    replay_commands,
    replay_studio,
)
from typer.testing import CliRunner

import tulle
from tulle.cli.main import app
from tulle.core import registry
from tulle.core.mechanism import Mechanism, Outcome
from tulle.core.query import Query
from tulle.core.unit import Unit
from tulle.matrices.binary.data import BinaryMatrix
from tulle.noise import SeededSource
from tulle.studio.data_worker import DataWorker

KINDS = tuple(worlds.SETTINGS)


def found_in(kind: str, *, thorough: bool = False) -> list[str]:
    """Replay the cases of a kind and return all findings.

    A replay of failures alone would show nothing: the first variant must open, and whatever a
    mechanism supports must be answered at least once.
    """
    found, supported, answered = [], set(), set()
    mechanisms = registry.mechanisms(kind).values()
    for case in worlds.cases(kind, thorough=thorough):
        seen = replay_case(case)
        found += [f"{case}: {finding}" for finding in seen.findings]
        assert seen.gives("open"), (str(case), seen.shown[0])
        asked = str(case.query), case.unit
        if any(item.supports(case.query, Unit.of(case.unit)) for item in mechanisms):
            supported.add(asked)
        if seen.gives("ask"):
            answered.add(asked)
    assert supported
    assert supported <= answered, supported - answered
    return found


# --- every question, every unit, every reader ---------------------------------------------------


def test_every_registered_question_and_kind_has_a_case():
    assert set(worlds.questions()) == worlds.registered()
    assert set(worlds.SETTINGS) == set(registry.groups("query"))


def test_every_unit_of_every_kind_has_a_plain_setting():
    for kind in KINDS:
        settings = list(worlds.SETTINGS[kind]())
        opened = settings[0].variants[0](Path())
        plain = {setting.unit for setting in settings if setting.plain}
        assert plain == set(opened.units), kind


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_show_the_same(kind):
    assert found_in(kind) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_show_the_same_to_the_last_mechanism_and_reader(kind):
    assert found_in(kind, thorough=True) == []


@pytest.mark.slow
def test_a_database_of_csv_files_shows_the_same():
    def opened(rows, folder):
        path = worlds.write_rows(folder / "person.csv", [("id", "salary"), *rows])
        return tulle.Database.connect("duckdb://", owners={"person": "id"}, tables={"person": path})

    rows = [("1", "40"), ("2", "50")]
    variants = [partial(opened, held) for held in (rows, [*rows, ("3", "many")])]
    case = Case("csv", "participant", variants, tulle.sql("SELECT COUNT(*) FROM person"))
    assert replay_case(case).findings == ()


# --- the order of records -----------------------------------------------------------------------


def shuffled(records):
    order = np.random.default_rng(5).permutation(len(records))
    return [records[i] for i in order]


@pytest.mark.parametrize(
    ("name", "open_records", "records", "query", "unit"),
    [
        (f"{kind}, {reader}", opened, records, query, "participant")
        for kind, readers, records, query in (
            (
                "contributions",
                worlds.contribution_readers(),
                (*worlds.TRIPS, *worlds.EVERYWHERE),
                tulle.weights(bound=2, total=5),
            ),
            ("table", worlds.table_readers(), worlds.PEOPLE, tulle.models.linear("income")),
            (
                "genotypes",
                worlds.genotype_readers(),
                worlds.STUDY,
                tulle.genomes.allele_counts(),
            ),
        )
        for reader, opened in readers.items()
        if reader != "matrix"
    ],
)
def test_the_order_of_records_changes_nothing(name, open_records, records, query, unit, tmp_path):
    drawn = [
        tulle.release(
            open_records(listed, tmp_path),
            query,
            unit=unit,
            epsilon=1,
            delta=1e-6,
            source=SeededSource(1),
        )
        for listed in (records, shuffled(records))
    ]
    np.testing.assert_array_equal(drawn[0].value, drawn[1].value)


# --- the command line and the studio ------------------------------------------------------------

BOOKED = (
    "--ledger",
    "{folder}/s.ledger",
    "--account",
    "a",
    "--budget",
    "9",
    "--budget-delta",
    "1e-3",
)
PRICE = ("--epsilon", "1", "--delta", "1e-6")
REPORTED = (
    ("report", "{folder}/s.ledger", "--out", "{folder}/page.html"),
    ("ledger", "show", "{folder}/s.ledger"),
)


def run_line(line):
    result = CliRunner().invoke(app, list(line))
    failure = [] if result.exception is None else causes_of(result.exception)
    return f"exit {result.exit_code}: {result.output} {result.stderr} {failure}"


def commands(group, file, question, *more):
    terms = (f"{{folder}}/{file}", question, *PRICE, *more)
    return (
        (*group, "plan", *terms),
        (*group, "ask", *terms, *BOOKED, "--json", "--out", "{folder}/out.json"),
        (*group, "ask", *terms, *BOOKED),
        (*group, "ask", *terms, "--no-ledger"),
        (*group, "ask", *terms[:2], "--epsilon", "50", *more, *BOOKED),
        *REPORTED,
    )


TRIP_OPTIONS = (
    *("--unit", "participant", "--individual", "who", "--row", "from", "--column", "to"),
    *("--weight", "trips", "--rows", "home,work"),
)
LINES = {
    "graph per edge": (
        [partial(worlds.write_graph, ".mtx", n, e) for n, e in worlds.GRAPHS["a kite"][1]],
        commands((), "edges.mtx", "triangles", "--unit", "edge"),
    ),
    "graph per node": (
        [
            partial(worlds.write_graph, ".csv", n, e)
            for n, e in worlds.GRAPHS["a kite and a guest"][1]
        ],
        commands((), "edges.csv", "edges", "--unit", "node"),
    ),
    "votes": (
        [partial(worlds.write_matrix, ".csv", rows) for rows in worlds.MATRICES["votes"][1]],
        commands(("matrix",), "votes.csv", "xor", "--unit", "row"),
    ),
    "trips": (
        [partial(worlds.write_trips, ".csv", records) for records in worlds.CONTRIBUTIONS["trips"]],
        commands(("matrix",), "trips.csv", "weights(bound=2, total=5)", *TRIP_OPTIONS),
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_command_lines_show_the_same(name):
    variants, lines = LINES[name]
    seen = replay_commands(run_line, variants, lines, ("out.json", "page.html"))
    assert seen.findings == ()
    codes = [one.text[:12] for one in seen.shown if one.place.startswith("tulle ")]
    assert codes == ["gives exit 0"] * 4 + ["gives exit 3"] + ["gives exit 0"] * 2, seen.shown


def write_database(staff, friends, folder):
    import duckdb

    with duckdb.connect(str(folder / "staff.duckdb")) as connection:
        for statement in (*worlds.MAKE_STAFF, *worlds.staff_rows(staff, friends)):
            connection.execute(statement.replace("DOUBLE PRECISION", "DOUBLE"))
    (folder / "staff.toml").write_text(
        'url = "duckdb:///staff.duckdb"\n[owners]\nperson = "id"\nfriend = ["a", "b"]\n'
    )
    return folder / "staff.toml"


STAFF = [partial(write_database, *rows) for rows in worlds.STAFFS["staff"]]


def test_command_lines_of_a_database_show_the_same():
    asked = "SELECT COUNT(*) FROM person WHERE salary > 100 AND name <> 'ann'"
    terms = ("{folder}/staff.toml", asked, "--unit", "participant", "--epsilon", "1")
    lines = (
        ("sql", "plan", *terms),
        ("sql", "ask", *terms, *BOOKED, "--json"),
        ("sql", "ask", *terms, *BOOKED),
        *REPORTED,
    )
    seen = replay_commands(run_line, STAFF, lines, ("page.html",))
    assert seen.findings == ()
    assert all("exit 0" in one.text for one in seen.shown if one.place.startswith("tulle ")), seen


@pytest.mark.parametrize(
    ("variants", "spec", "asked", "unit"),
    [
        (
            LINES["graph per edge"][0],
            {"kind": "graph"},
            {"kind": "graph", "text": "triangles"},
            "edge",
        ),
        (LINES["votes"][0], {"kind": "matrix", "header": True}, {"kind": "matrix"}, "row"),
        (
            LINES["trips"][0],
            {"kind": "contributions", **worlds.NAMED, **worlds.GRID},
            {"kind": "contributions", "arguments": {"bound": 2, "total": 5}},
            "participant",
        ),
        (
            STAFF,
            {"kind": "database"},
            {"kind": "database", "text": "SELECT COUNT(*) FROM person"},
            "participant",
        ),
    ],
)
def test_the_studio_shows_the_same(variants, spec, asked, unit):
    seen = replay_studio(DataWorker, variants, spec, asked, unit)
    assert seen.findings == ()
    assert seen.gives("ask"), seen.shown


# --- surveys and estimators ---------------------------------------------------------------------

ANSWERS = {"smokes": ["no", "yes", "no"], "district": [3, 0, 0]}
OTHERS = (
    {"smokes": ["yes", "yes", "no"], "district": [0, 0, 0]},
    {"smokes": ["no", "no", "no"], "district": [39, 0, 0]},
)


@pytest.mark.parametrize("design", ["randomized response", "unary encoding", "local hashing"])
def test_collectors_of_neighbours_show_the_same(design):
    from tulle.surveys import Collection, Survey, perturb
    from tulle.surveys.bulk import encode

    survey = Survey({"smokes": ["no", "yes"], "district": 40})
    form = survey.form(epsilon=2, designs={"district": design})

    def path(onlooker, tape, opener, folder):
        def report():
            found = perturb(form, encode(survey, opener(folder)), source=SeededSource(1))
            onlooker.note("form", {n: (c.shape, c.dtype) for n, c in found.columns.items()})
            return tape.pass_on(found)

        reports = onlooker.see("reports", report, show=lambda found: len(found))
        collection = Collection(form)
        onlooker.see("add", lambda: collection.add(reports))
        onlooker.see("collection", lambda: collection)
        for name in survey.names:
            onlooker.see("shares", lambda name=name: collection.proportions(name).to_json())

    variants = [lambda folder, held=held: held for held in (ANSWERS, *OTHERS)]
    seen = replay(variants, path)
    assert seen.findings == ()
    assert seen.gives("shares")


@pytest.mark.parametrize("unit", ["participant", "row"])
def test_estimators_show_the_same(unit):
    pytest.importorskip("sklearn")
    from tulle.models import LinearRegression, LogisticRegression

    rows = [[1.0, 2.0], [2.0, 0.0], [5.0, 9.0], [4.0, 4.0]]
    targets, labels = [1.0, 2.0, 3.0, 9.0], ["ill", "ill", "well", "ill"]
    changed = [[1e9, -1e9], *rows[1:]]
    more = [
        (rows[1:], targets[1:], labels[1:]),
        ([*rows, rows[0]], [*targets, 1.0], [*labels, "well"]),
    ]
    swaps = [(changed, [1e300, *targets[1:]], ["well", *labels[1:]])]
    others = more if unit == "participant" else swaps

    def path(onlooker, tape, opener, folder):
        held, numbers, words = opener(folder)
        terms = {"epsilon": 1.0, "delta": 1e-6, "unit": unit, "bounds": (0, 10)}
        line = LinearRegression(**terms, target_bounds=(0, 10))
        odds = LogisticRegression(**terms, classes=["ill", "well"])
        for model, answers in ((line, numbers), (odds, words)):
            onlooker.see("fit", lambda model=model, a=answers: model.fit(held, a))
            onlooker.see("release", lambda model=model: model.release_.to_json())
            onlooker.see("coefficients", lambda model=model: (model.coef_, model.intercept_))
            onlooker.see("predict", lambda model=model: model.predict([[1.0, 2.0]]))

    seen = replay([lambda folder, one=one: one for one in ((rows, targets, labels), *others)], path)
    assert seen.findings == ()
    assert seen.gives("coefficients"), seen.shown


# --- broken versions that the replay must catch -------------------------------------------------

VOTES = worlds.MATRICES["votes"][1]


def case_of(opener, query=None, unit="row"):
    return Case("twin", unit, [partial(opener, rows) for rows in VOTES], query or tulle.xor())


def caught(seen: Replayed, place: str) -> None:
    assert any(place in finding for finding in seen.findings), seen.findings


class Talkative(BinaryMatrix):
    """Its representation counts."""

    def __repr__(self):
        return f"<Talkative: {int(self.to_numpy().sum())} ones>"


class Moody(BinaryMatrix):
    """Whether it fails, and with which words, depends on its cells."""

    def facts(self, unit):
        ones = int(self.to_numpy().sum())
        if ones != 6:
            raise tulle.InputError(f"{ones} ones")
        return super().facts(unit)


class Logging(BinaryMatrix):
    """It logs what it holds, where nobody looks."""

    def facts(self, unit):
        logging.getLogger("deep.inside").debug("ones: %d", int(self.to_numpy().sum()))
        return super().facts(unit)


class Warning(BinaryMatrix):
    """It warns when something is odd."""

    def facts(self, unit):
        if not self.to_numpy()[0].any() or self.to_numpy()[0].sum() == 1:
            warnings.warn("an odd first row", stacklevel=2)
        return super().facts(unit)


class Printing(BinaryMatrix):
    """It prints."""

    def facts(self, unit):
        print(self.to_numpy()[0], file=sys.stderr)
        return super().facts(unit)


class Keeping(BinaryMatrix):
    """Its errors have the same words and keep a record behind them."""

    def facts(self, unit):
        try:
            raise ValueError(str(self.to_numpy()[0]))
        except ValueError:
            raise tulle.InputError("No.") from None


@pytest.mark.parametrize(
    ("twin", "place"),
    [
        (Talkative, "repr"),
        (Moody, "facts"),
        (Logging, "log"),
        (Warning, "warning"),
        (Printing, "stderr"),
        (Keeping, "facts"),
    ],
)
def test_a_dataset_that_shows_something_is_caught(twin, place):
    caught(replay_case(case_of(lambda rows, folder: twin([list(r) for r in rows]))), place)


class Watched(Query):
    """Asks for the sum, whatever the twin of a mechanism makes of it."""

    name = "watched"
    kind = "matrix"

    def truth(self, dataset):
        return int(dataset.to_numpy().sum())


class Honest(Mechanism):
    """Adds noise to a sum; its twins show something beside it."""

    name = "honest"
    kind = "matrix"
    title = reference = "a sum"

    def supports(self, query, unit):
        return isinstance(query, Watched)

    def settings(self, terms, options):
        return {}

    def predict(self, terms, settings, like):
        from tulle.core.mechanism import Prediction

        return Prediction(None, None)

    def run(self, terms, settings, dataset, source):
        return Outcome(source.read(1)[0] + terms.query.truth(dataset), None)


class Long(Honest):
    """As many numbers as there are ones."""

    def run(self, terms, settings, dataset, source):
        return Outcome(np.zeros(terms.query.truth(dataset), dtype=np.int64), None)


class Mixed(Honest):
    """A float when the sum is even."""

    def run(self, terms, settings, dataset, source):
        return Outcome(1.0 if terms.query.truth(dataset) % 2 else 1, None)


class Keyed(Honest):
    """Keys in the order of the data."""

    def run(self, terms, settings, dataset, source):
        order = np.argsort(dataset.to_numpy().sum(axis=0), kind="stable")
        return Outcome({f"q{i}": 0 for i in order}, None)


class Telling(Honest):
    """A public setting that is not public."""

    def run(self, terms, settings, dataset, source):
        return Outcome(0, None, {"rows_used": terms.query.truth(dataset)})


class Failing(Honest):
    """Fails after the debit, on some data."""

    def run(self, terms, settings, dataset, source):
        if terms.query.truth(dataset) > 6:
            raise tulle.InputError("too many")
        return super().run(terms, settings, dataset, source)


@pytest.mark.parametrize("twin", [Long, Mixed, Keyed, Telling, Failing])
def test_a_mechanism_that_shows_something_is_caught(monkeypatch, twin):
    registry.find("mechanism", "matrix")  # imports the room
    shelf = registry._items["mechanism", "matrix"]
    for mechanism, clean in ((Honest, True), (twin, False)):
        monkeypatch.setitem(shelf, "honest", mechanism)
        seen = replay_case(case_of(worlds.matrix_readers()["lists"], Watched()))
        assert seen.gives("ask") or not clean, seen.shown
        assert (seen.findings == ()) == clean, seen.findings


def test_a_debit_that_follows_the_data_is_caught(monkeypatch):
    from tulle.ledger.session import Session

    ask = Session.ask

    def dear(self, query, *, epsilon, **more):
        heavy = int(self._dataset.to_numpy().sum()) > 6
        return ask(self, query, epsilon="2" if heavy else epsilon, **more)

    monkeypatch.setattr(Session, "ask", dear)
    seen = replay_case(case_of(worlds.matrix_readers()["lists"]))
    caught(seen, "what is left")
    caught(seen, "entry")


def test_a_ledger_that_tells_how_long_answers_took_is_caught(monkeypatch):
    """The broken version enters moments; of two entries they tell what lay between them."""
    from tulle.ledger import store

    monkeypatch.setattr(store, "today", lambda: datetime.now(UTC).isoformat())
    seen = replay_case(case_of(worlds.matrix_readers()["lists"]))
    caught(seen, "entry")


def test_a_report_that_counts_rows_is_caught(monkeypatch):
    from tulle.cli import answering

    show, held = answering._show, []
    read = BinaryMatrix.read.__func__

    def reading(cls, path, **more):
        held.append(read(cls, path, **more))
        return held[-1]

    def counting(*given):
        show(*given)
        print("ones:", int(held[-1].to_numpy().sum()))

    monkeypatch.setattr(BinaryMatrix, "read", classmethod(reading))
    monkeypatch.setattr(answering, "_show", counting)
    seen = replay_commands(run_line, LINES["votes"][0], LINES["votes"][1][:3])
    caught(seen, "tulle matrix ask")


def test_an_exit_code_that_follows_the_data_is_caught(monkeypatch):
    monkeypatch.setattr(BinaryMatrix, "facts", Moody.facts)
    seen = replay_commands(run_line, LINES["votes"][0], LINES["votes"][1][:1])
    caught(seen, "exit")


def test_the_form_of_an_outcome_hides_numbers_and_nothing_else():
    one, two = (
        Outcome({"a": [value], "b": np.array([value])}, None, {"spread": value, "step": 2})
        for value in (1.5, 2.5)
    )
    assert form_of(one, ["spread"]) == form_of(two, ["spread"])
    assert form_of(one, []) != form_of(two, [])
    longer = Outcome({"a": [1.5, 1.5], "b": np.array([1.5])}, None, {"spread": 1.5, "step": 2})
    assert form_of(one, ["spread"]) != form_of(longer, ["spread"])


def test_what_is_seen_is_told_with_hidden_texts_replaced():
    from tests.audit.replay.engine import Onlooker

    onlooker = Onlooker()
    onlooker.hide("/tmp/x", "folder")
    assert onlooker.see("act", lambda: 1 / 0) is None
    onlooker.see("print", lambda: print("/tmp/x/file"))
    told = onlooker.told()
    assert told[0] == Seen("act", "raises ZeroDivisionError: division by zero")
    assert Seen("print: stdout", "<folder>/file\n") in told
