"""Every form of release on every surface: nothing breaks, names are there, sides are told apart."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.answer_forms import NAMES, cases, releases

from tulle.cli import answering
from tulle.core import registry, wording
from tulle.core.errors import InputError
from tulle.core.guarantee import Guarantee
from tulle.core.release import Release
from tulle.core.unit import Unit
from tulle.reports.report import public_report

FORMS = sorted(
    [name for name, *_ in cases()]
    + [
        "several columns",
        *("survey proportions", "survey table", "survey mean", "survey entropy"),
        *("survey chi_square", "survey mutual_information", "survey correlation"),
        *("survey links edges", "survey links degrees", "survey links two_stars"),
        *("survey links triangles", "survey links triangles_by_node", "survey links graph"),
    ]
)

_REPR = re.compile(r"<\w+ object at|\barray\(|Fraction\(|dtype=|\bnan\b|\binf\b|np\.\w+\(|Labels\(")
"""Traces of a value that was printed as Python sees it."""


def test_every_registered_question_is_in_the_list() -> None:
    known = {
        f"{kind} {name}"
        for kind in registry.groups("query")
        for name in registry.find("query", kind)
    }
    asked = {" ".join(name.split(" ")[:2]) for name, *_ in cases()}
    assert known == {name for name in asked if name in known}
    assert sorted(releases()) == FORMS


def test_every_shape_of_interval_is_in_the_list() -> None:
    def shape(release: Release) -> tuple[str, str]:
        found = wording.ends(release)
        form = type(release.value).__name__
        if isinstance(release.value, np.ndarray):
            form = f"array {release.value.ndim}"
        if found is None:
            return form, "none"
        return form, "two" if np.isfinite(found[1]).all() else "one"

    shapes = {shape(release) for release in releases().values()}
    assert {("int", "two"), ("int", "one"), ("float", "two"), ("array 1", "two")} <= shapes
    assert {("array 1", "one"), ("array 1", "none"), ("array 2", "two")} <= shapes
    assert {("SyntheticGraph", "none"), ("Spectrum", "none"), ("dict", "none")} <= shapes


@pytest.fixture(params=FORMS)
def release(request: pytest.FixtureRequest) -> Release:
    return releases()[request.param]


def said_of(release: Release, text: str) -> None:
    """Check what every surface must say of a release."""
    said = wording.state(release)
    assert not _REPR.search(text), _REPR.search(text)
    assert said.answer in text
    assert said.not_in_it in text
    found = wording.ends(release)
    assert said.wider in text
    if found is not None and not np.isfinite(np.asarray(found[1], dtype=float)).all():
        # A side without an end is never written as if it had one.
        assert "at least" in text
        assert "±" not in said.interval
    if not hasattr(release.value, "edge_count"):
        for key in release.table().keys:
            assert key in text


def test_python_shows_it(release: Release) -> None:
    said_of(release, repr(release))
    said_of(release, html.unescape(release._repr_html_()))


def test_json_brings_it_back(release: Release) -> None:
    again = Release.from_json(json.dumps(release.to_json()))
    assert again.table() == release.table()
    assert again.labels.question == release.labels.question
    assert repr(again) == repr(release)


def test_every_question_has_words(release: Release) -> None:
    assert re.search(r"[.?)]$|SQL", release.labels.question), release.query


def test_libraries_read_the_same_table(release: Release) -> None:
    table = release.table()
    arrow = release.to_arrow()
    assert arrow.column_names == list(table.names)
    assert pa.table(release).num_rows == len(table)
    assert list(release.to_pandas().columns) == list(table.names)
    assert release.to_polars().columns == list(table.names)
    assert release.to_dict() == table.to_dict()
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows[0] == list(table.names)
    assert len(rows) == len(table) + 1


def test_ends_of_the_table_are_those_of_the_interval(release: Release) -> None:
    table, found = release.table(), wording.ends(release)
    if "low" not in table.names:
        return
    for name, end in zip(("low", "high"), found or (None, None), strict=True):
        listed = table.to_dict()[name]
        if end is None:
            assert listed == [None] * len(table)
            continue
        flat = np.broadcast_to(end, np.shape(release.value)).ravel().tolist()
        assert listed == [x if math.isfinite(x) else None for x in flat]


def test_the_command_line_shows_it(
    release: Release, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answering._show(release, None, True, None, None)
    text = " ".join(capsys.readouterr().out.split())
    said_of(release, text)
    assert "kept answer" in text
    shown = json.dumps(answering._to_json(release, None, False, None))
    assert json.loads(shown)["release"]["query"] == release.query
    assert answering.save(release, tmp_path / "answer.csv") is None
    assert (tmp_path / "answer.csv").read_text() == release.table().to_csv()


def test_a_report_shows_it(release: Release) -> None:
    page = release.report()
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    said_of(release, " ".join(text.split()))
    assert release.labels.question in text
    assert wording.hidden(release.guarantee) in text
    assert "How to cite" in text
    # Whatever is drawn has an end: no coordinate is missing.
    assert not re.search(r'="(nan|inf|-inf)"', page)


def test_names_stand_beside_their_numbers() -> None:
    found = releases()
    assert found["graph triangles_per_node"].to_dict()["node"] == list(NAMES)
    assert found["database sql part groups"].to_dict()["city"] == ["Aarhus", "Bern", "Como"]
    both = found["database sql part two groups"].table()
    assert both.keys == ("city", "paid")
    assert len(both) == 6
    trips = found["contributions weights"].table()
    assert list(trips.rows())[1][:2] == ("home", "school")
    assert found["table linear"].to_dict()["feature"] == ["intercept", "age"]
    assert found["genotypes chi_squares"].to_dict()["snp"] == [f"rs{j}" for j in range(1, 6)]
    assert found["genotypes p_values"].to_dict()["snp"] == ["rs2", "rs4"]
    assert set(found["genotypes allele_counts"].to_dict()["group"]) == {"cases", "controls"}
    assert found["survey table"].table().keys == ("smokes", "city")
    assert set(found["graph topology"].to_dict()["source"]) <= set(NAMES)
    # A synthetic graph of a model that knows nobody has numbers.
    assert all(isinstance(node, int) for node in found["graph synthetic"].to_dict()["source"])


def test_no_name_is_told_where_nodes_are_protected() -> None:
    for name in ("graph edges per node", "graph degree_distribution per node"):
        assert not any(node in json.dumps(releases()[name].to_json()) for node in NAMES)


def test_labels_of_another_length_are_not_put_beside_the_numbers() -> None:
    """A twin whose names are shifted by one would name everybody wrongly, silently."""
    good = releases()["graph triangles_per_node"]
    axis = replace(good.labels.axes[0], labels=list(NAMES[1:]))
    broken = replace(good, labels=replace(good.labels, axes=(axis,)))
    with pytest.raises(InputError, match="Give one label for each place"):
        broken.table()


# --- kept in a ledger, and shown by the studio and the commands that read ledgers -----------------

PRICE = Guarantee(Unit.of("edge"), Fraction(1, 100))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a studio whose account holds one answer of every form, and the debits by form."""
    from tulle.studio.app import build
    from tulle.studio.security import Door
    from tulle.studio.state import StudioState

    folder = tmp_path_factory.mktemp("studio")
    (folder / "friends.csv").write_text("".join(f"{i},{(i + 1) % 12}\n" for i in range(12)))
    state = StudioState([str(folder / "friends.csv")], folder / "study.ledger")
    door = Door(build(state), port=8125)
    client = TestClient(door, base_url="http://127.0.0.1:8125", follow_redirects=False)
    client.get(door.link())
    study = next(iter(state.studies.values()))
    study.read({"kind": "graph", "path": str(folder / "friends.csv"), "nodes": 12})
    study.open("friends", "edge", "9", "0")
    debits = {}
    for name, made in releases().items():
        key = {"query": {"query": name}}
        debit, _ = state.ledger.book("friends", made.query, key, PRICE)
        answer = replace(made, guarantee=PRICE, debit=debit)
        state.ledger.keep("friends", debit, key, answer)
        debits[name] = debit
    yield client, study, debits
    state.close()


@pytest.mark.parametrize("name", FORMS)
def test_the_studio_shows_it(name: str, filled: Any) -> None:
    client, study, debits = filled
    place = f"/study/{study.identifier}/answers/{debits[name]}"
    page = client.get(place)
    assert page.status_code == 200, page.text
    without_data = re.sub(r"<script.*?</script>", " ", page.text, flags=re.S)
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without_data)).split())
    release = releases()[name]
    assert not _REPR.search(text)
    assert release.labels.question in text
    assert wording.leaves_out(release) in text
    assert wording.allowance(release) in text
    found = wording.ends(release)
    if found is not None:
        assert wording.interval(release) in text
    assert client.get(f"{place}/figure.json").status_code == 200
    for form in ("json", "csv", "html"):
        assert client.get(f"{place}/download/{form}").status_code == 200, form
    assert client.get(f"{place}/download/csv").text == release.table().to_csv()


def test_text_in_a_drawing_cannot_end_its_element() -> None:
    from tulle.studio.responses import embedded

    assert "</script>" not in embedded({"name": "</script><script>alert(1)"})
    assert json.loads(embedded({"name": "</b>"})) == {"name": "</b>"}


def test_one_report_of_all_forms_stands(filled: Any) -> None:
    _, study, _ = filled
    page = public_report(study.ledger.releases("friends"), title="All of them")
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert not _REPR.search(text)
    for release in releases().values():
        assert release.labels.question in text


def test_the_command_line_lists_them(filled: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from tulle.cli.commands.ledger import _show_account

    _, study, _ = filled
    _show_account(study.ledger, study.ledger.account("friends"))
    assert not _REPR.search(capsys.readouterr().out)
