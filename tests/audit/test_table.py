import json

import pytest

from tulle.audit import run_audit
from tulle.audit.table import AuditTable, Row
from tulle.core.errors import InputError


def test_one_mechanism():
    told = []
    table = run_audit(mechanisms=["isotonic"], progress=told.append)
    assert table.passed, str(table)
    assert told
    rows = table.rows()
    assert {row["verdict"] for row in rows} == {"passed", "caught"}
    assert any(row["mechanism"].startswith("broken: isotonic") for row in rows)
    written = json.loads(json.dumps(table.to_json()))
    assert written["passed"]
    assert len(written["rows"]) == len(rows)
    assert "isotonic" in str(table)


def test_a_failure_or_a_miss_spoils_the_table():
    good = Row("a", "q", "exact", 1, "", "passed")
    for verdict in ("FAILED", "MISSED"):
        assert not AuditTable((good, Row("b", "q", "exact", 1, "", verdict))).passed
    assert AuditTable((good, Row("b", "q", "exact", 1, "", "caught"))).passed
    assert str(AuditTable(())) == "Nothing was audited."


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="nothing"):
        run_audit(mechanisms=["nothing"])


@pytest.mark.slow
def test_all_of_it():
    table = run_audit(slow=True)
    assert table.passed, str(table)
