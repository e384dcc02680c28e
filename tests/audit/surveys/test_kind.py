"""The audit of survey designs passes all of them and rejects every twin."""

import pytest

from tulle.audit.surveys import kind as surveys
from tulle.audit.table import survey_rows


@pytest.mark.parametrize("finding", surveys.check_surveys(), ids=lambda f: f"{f.mechanism}")
def test_every_design_keeps_its_epsilon(finding):
    assert finding.passed, finding
    assert 0.3 < finding.worst <= 1 + 1e-9


@pytest.mark.parametrize("finding", surveys.catch_broken(), ids=lambda f: f.query)
def test_every_twin_is_caught(finding):
    assert not finding.passed
    assert finding.worst > 1


def test_the_table_has_them():
    rows = survey_rows()
    assert all(row.good for row in rows)
    assert {row.verdict for row in rows} == {"passed", "caught"}
    assert sum(row.verdict == "caught" for row in rows) == 7
