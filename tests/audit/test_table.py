import json

import pytest

from tulle.audit import run_audit
from tulle.audit.surveys import kind
from tulle.audit.table import AuditTable, Row, completeness, survey_rows
from tulle.core import registry
from tulle.core.errors import InputError
from tulle.core.mechanism import Mechanism, Outcome, Prediction


@pytest.mark.parametrize("group", registry.groups("mechanism"))
def test_every_registered_mechanism_of_every_kind_is_examined(group):
    for mechanism in registry.mechanisms(group).values():
        missing = [row.check for row in completeness(mechanism)]
        assert not missing, f"{group}/{mechanism.name}: the audit needs {' and '.join(missing)}"


def test_the_kinds_are_all_there():
    assert set(registry.groups("mechanism")) >= {
        "contributions",
        "database",
        "genotypes",
        "graph",
        "matrix",
        "relation",
        "table",
    }
    for group in ("graph", "database", "relation"):
        assert {"recursive", "race"} <= set(registry.mechanisms(group))


class Stranger(Mechanism):
    """Answers everything, without noise; nobody has ever examined it."""

    title, reference = "a stranger", "none"

    def settings(self, terms, options):
        return {}

    def predict(self, terms, settings, like):
        return Prediction(None, None)

    def run(self, terms, settings, dataset, source):
        return Outcome(0, None)


@pytest.fixture
def scratch(monkeypatch):
    """A registry that may be spoilt."""
    monkeypatch.setattr(
        registry, "_items", {key: dict(known) for key, known in registry._items.items()}
    )


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize("group", [*registry.groups("mechanism"), "cubes"])
def test_a_mechanism_that_nobody_examined_fails_the_audit(group):
    stranger = type("Stranger", (Stranger,), {})
    registry.mechanism(group, "stranger", answers=())(stranger)
    missing = [row.check for row in completeness(registry.make_mechanism(group, "stranger"))]
    assert "has a broken version" in missing
    table = run_audit(mechanisms=["stranger"])
    assert not table.passed
    assert {(row.kind, row.mechanism) for row in table.lines if not row.good} == {
        (group, "stranger")
    }


def test_a_survey_design_that_nobody_examined_fails_the_audit(monkeypatch):
    assert all(row.good for row in survey_rows())
    some = [case for case in kind.cases() if case[0] != "unary encoding"]
    monkeypatch.setattr(kind, "cases", lambda: iter(some))
    bad = [row for row in survey_rows() if not row.good]
    assert [(row.kind, row.mechanism) for row in bad] == [("survey", "UnaryEncoding")]


def test_one_mechanism():
    told = []
    table = run_audit(mechanisms=["isotonic"], progress=told.append)
    assert table.passed, str(table)
    assert told
    rows = table.rows()
    assert {row["verdict"] for row in rows} == {"passed", "caught"}
    assert {row["kind"] for row in rows} == {"graph"}
    assert any(row["mechanism"].startswith("broken: isotonic") for row in rows)
    checks = {row["check"].partition(":")[0] for row in rows if row["mechanism"] == "isotonic"}
    assert checks == {"claims", "exact", "sampler", "fresh noise", "black box", "cost"}
    written = json.loads(json.dumps(table.to_json()))
    assert written["passed"]
    assert len(written["rows"]) == len(rows)
    assert "isotonic" in str(table)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recursive", "race"])
def test_truncation_has_rows_for_relations_graphs_and_databases(name):
    table = run_audit(mechanisms=[name])
    for group in ("relation", "graph", "database"):
        checks = {row.check for row in table.lines if (row.kind, row.mechanism) == (group, name)}
        assert {"exact", "sampler", "fresh noise", "black box"} <= checks
        assert any(row.verdict == "caught" for row in table.lines if row.kind == group)


def test_a_failure_or_a_miss_spoils_the_table():
    good = Row("graph", "a", "q", "exact", 1, "", "passed")
    for verdict in ("FAILED", "MISSED"):
        assert not AuditTable((good, Row("graph", "b", "q", "exact", 1, "", verdict))).passed
    assert AuditTable((good, Row("graph", "b", "q", "exact", 1, "", "caught"))).passed
    assert str(AuditTable(())) == "Nothing was audited."


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="nothing"):
        run_audit(mechanisms=["nothing"])


@pytest.mark.slow
@pytest.mark.parametrize("name", dict.fromkeys(m.name for m in registry.every_mechanism()))
def test_all_of_it(name):
    """Worlds of six nodes, forty thousand draws, a black box of a hundred thousand: each by itself.

    No other test does the same for mechanisms on graphs, so that they are paid for once.
    """
    table = run_audit(slow=True, mechanisms=[name])
    assert table.passed, str(table)
